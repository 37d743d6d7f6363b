# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The differences between a RoCE profile and an interface: the same comparison for role, boot unit and gate.

A profile is the output of roce_profile; a state is as_tree of QosState. A setting that the host does not support is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: In the order in which they are written: the owner of the settings first, and global pause off before PFC, which shares its register.
SETTINGS = (
    *("dcbx", "global_pause", "trust", "dscp", "pfc", "ets", "cable_length", "ecn_np", "ecn_rp", "np", "rp", "traffic_class", "rdma_cm"),
)
#: The settings that DCBX negotiates: if the firmware owns them, nothing else writes them.
NEGOTIATED = frozenset({"trust", "dscp", "pfc", "ets", "cable_length"})
#: Writing these takes the link down and up (mlx5e_dcbnl_ieee_setpfc and mlx5e_set_pauseparam of Linux).
TOGGLING = frozenset({"pfc", "global_pause"})
#: The values of RDMA-CM until they are set (cma_add_one of drivers/infiniband/core/cma.c).
RDMA_CM_DEFAULT = {"mode": "RoCE v2", "tos": 0}
Profile = Mapping[str, Any]
State = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """setting: one of SETTINGS; subject: which of several ("26", "rpg_threshold"), else ""; was, requested: values as in JSON."""

    setting: str
    subject: str
    was: Any
    requested: Any

    @property
    def name(self) -> str:
        """Return the name for a message: "pfc", "dscp 26"."""
        return f"{self.setting} {self.subject}".strip()

    @property
    def toggles(self) -> bool:
        """Return whether writing it takes the link down for a moment."""
        return self.setting in TOGGLING


def format_value(value: Any) -> str:
    """Return a value for a message: flags by priority as "0,0,0,1,0,0,0,0", values with several parts as "mode RoCE v2, tos 106"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ",".join(str(int(each)) if isinstance(each, bool) else str(each) for each in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def differences(profile: Profile, state: State) -> list[Difference]:
    """Return the changes that make the interface match the profile, in the order of SETTINGS.

    With trust in PCP, mlnx_qos reports no DSCP: DSCP entries are compared after trust is changed.
    """
    found = [*_interface(profile, state), *_congestion(profile, state), *_device(profile, state)]
    return sorted(found, key=lambda each: SETTINGS.index(each.setting))


def _interface(profile: Profile, state: State) -> Iterator[Difference]:
    if state.get("backend") is None:
        return
    yield from _scalar("dcbx", state.get("dcbx"), profile["dcbx"])
    pause = state.get("pause") or {}
    if (pause.get("rx") or pause.get("tx")) and not profile["global_pause"]:
        yield Difference("global_pause", "", {"rx": pause.get("rx"), "tx": pause.get("tx")}, {"rx": False, "tx": False})
    yield from _scalar("trust", state.get("trust"), profile["trust"])
    yield from _dscp(profile, state)
    yield from _scalar("pfc", state.get("pfc"), list(profile["pfc"]))
    yield from _ets(profile, state)
    if profile["cable_length_m"] is not None:
        yield from _scalar("cable_length", state.get("cable_length_m"), profile["cable_length_m"])


def _scalar(setting: str, was: Any, requested: Any) -> Iterator[Difference]:
    if was is not None and was != requested:
        yield Difference(setting, "", was, requested)


def _dscp(profile: Profile, state: State) -> Iterator[Difference]:
    """Return the differences of DSCP entries.

    A DSCP without its own entry may have any priority: mlx5 gives it 0 when its entry is removed (mlx5e_dcbnl_ieee_delapp).
    """
    codes, trusted = state.get("dscp_to_priority"), state.get("trust") == profile["trust"]
    # Without an entry dcb would continue to trust PCP.
    by_entries = state["backend"] == "dcb"
    if codes is None or not (trusted or by_entries):
        return
    for code, requested in sorted(profile["dscp_to_priority"].items(), key=lambda item: int(item[0])):
        was = codes.get(code)
        if was != requested:
            yield Difference("dscp", code, was, requested)


def _ets(profile: Profile, state: State) -> Iterator[Difference]:
    """Return the differences of ETS. Classes without a priority are skipped: mlnx_qos does not report them."""
    was, requested = _classes(state), _classes(profile)
    if was is None or requested is None:
        return
    used = sorted(set(requested["priority_to_tc"]))
    same = was["priority_to_tc"] == requested["priority_to_tc"] and all(
        was[key][tc] == requested[key][tc] for key in ("tsa", "bandwidth_percent") for tc in used
    )
    if not same:
        yield Difference("ets", "", was, requested)


def _classes(settings: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    keys = ("priority_to_tc", "tsa", "bandwidth_percent")
    return None if any(settings.get(key) is None for key in keys) else {key: list(settings[key]) for key in keys}


def _congestion(profile: Profile, state: State) -> Iterator[Difference]:
    for setting in ("ecn_np", "ecn_rp"):
        values = state.get(setting)
        if values is not None and values[profile["priority"]] is not profile["ecn"]:
            yield Difference(setting, str(profile["priority"]), values[profile["priority"]], profile["ecn"])
    for setting in ("np", "rp"):
        values = state.get(setting) or {}
        for name, requested in sorted(profile[setting].items()):
            if name in values and values[name] != requested:
                yield Difference(setting, name, values[name], requested)


def _device(profile: Profile, state: State) -> Iterator[Difference]:
    if state.get("traffic_class_settable") and state.get("traffic_class") != profile["traffic_class"]:
        yield Difference("traffic_class", "", state.get("traffic_class"), profile["traffic_class"])
    values = state.get("rdma_cm") or RDMA_CM_DEFAULT
    was = {key: values.get(key) for key in profile["rdma_cm"]}
    if was != dict(profile["rdma_cm"]):
        yield Difference("rdma_cm", "", was, dict(profile["rdma_cm"]))
