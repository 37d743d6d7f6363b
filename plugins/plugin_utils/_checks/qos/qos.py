# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the QoS gate: every setting of each RoCE rail matches the profile, now and after a boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._qos.backends import NOT_MLX5
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import Difference, differences, format_value
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import unit_of
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, RP_PARAMETERS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare

_NP = reads.file(f"{reads.NET}/ecn/roce_np/cnp_*", "/sys/kernel/debug/mlx5/*/cc_params/np_cnp_*", absent_means=reads.NO_DCQCN)
_RP = reads.file(f"{reads.NET}/ecn/roce_rp/rpg_ai_rate", "/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate", absent_means=reads.NO_DCQCN)
#: Without an answer of the tool the settings of a rail are not read: qos.backend reports it.
_TOOL = (reads.MLNX_QOS, reads.DCB_PFC)
_NO_TOOL = "neither tool is installed, which is an error"
declare(
    {
        "qos.backend": Check(
            "qos",
            "whether mlnx_qos or dcb answers for each RoCE rail",
            "`mlnx_qos -i`, `dcb pfc show`",
            "install iproute2 or mlnx-tools",
            follows=NO_DEVICE,
            sources=(reads.but(reads.MLNX_QOS, absent_means=_NO_TOOL), reads.but(reads.DCB_PFC, absent_means=_NO_TOOL)),
        ),
        "qos.dcbx": Check(
            "qos",
            "whether host or firmware controls the DCB settings of each rail",
            "`mlnx_qos -i`, `dcb dcbx show`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(*_TOOL, reads.command("dcb", "-N", "-j", "dcbx")),
        ),
        "qos.pause": Check(
            "qos",
            "that global pause, which conflicts with PFC, is off",
            "`ethtool -a`",
            "run the QoS stage with `-e roce_qos_link_toggle_allowed=true`",
            sources=(*_TOOL, reads.driver("pause")),
        ),
        "qos.trust": Check(
            "qos",
            "that each rail trusts DSCP",
            "`mlnx_qos -i`, `dcb app show`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(*_TOOL, reads.command("dcb", "-N", "-j", "app")),
        ),
        "qos.dscp": Check(
            "qos",
            "the priorities of the DSCP values of RDMA and CNPs",
            "`mlnx_qos -i`, `dcb app show`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(*_TOOL, reads.command("dcb", "-N", "-j", "app")),
        ),
        "qos.pfc": Check(
            "qos",
            "that PFC is enabled only for RDMA's priority",
            "`mlnx_qos -i`, `dcb pfc show`",
            "run the QoS stage with `-e roce_qos_link_toggle_allowed=true`, which takes the link down briefly",
            sources=_TOOL,
        ),
        "qos.ets": Check(
            "qos",
            "the traffic classes of the priorities and their bandwidth shares",
            "`mlnx_qos -i`, `dcb ets show`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(*_TOOL, reads.command("dcb", "-N", "-j", "ets")),
        ),
        "qos.buffers": Check(
            "qos",
            "the configured cable length, which sets the headroom",
            "`mlnx_qos -i`, `dcb pfc show`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=_TOOL,
        ),
        "qos.ecn": Check(
            "qos",
            "that congestion control is enabled for RDMA's priority",
            "`/sys/class/net/IF/ecn`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(reads.file(f"{reads.NET}/ecn/roce_*/enable/*", absent_means="the driver has no switch for it"),),
        ),
        "qos.cnp": Check(
            "qos",
            "DSCP and priority of CNPs",
            "`/sys/class/net/IF/ecn/roce_np`, `cc_params` in debugfs",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(_NP,),
        ),
        "qos.dcqcn": Check(
            "qos",
            "the DCQCN parameters that `rdma_roce.dcqcn` sets",
            "`/sys/class/net/IF/ecn`, `cc_params` in debugfs",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(_RP,),
        ),
        "qos.traffic_class": Check(
            "qos",
            "the traffic class that OFED's driver forces",
            "`/sys/class/infiniband/DEVICE/tc`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(reads.file(f"{reads.IB}/tc/*/traffic_class", absent_means="the kernel's own driver forces none"),),
        ),
        "qos.rdma_cm": Check(
            "qos",
            "RDMA-CM's default mode and ToS",
            "`/sys/kernel/config/rdma_cm`",
            "run the QoS stage; check `journalctl --unit rdma-qos@INTERFACE.service`",
            sources=(reads.folder("/sys/kernel/config/rdma_cm", absent_means="no program has created the folder, which is an error"),),
        ),
        "qos.overwritten": Check(
            "qos",
            "that no DCBX daemon would overwrite the settings",
            "control groups of lldpad and dcbd",
            "`systemctl disable --now lldpad.socket lldpad.service`",
            sources=(
                *_TOOL,
                reads.folder(reads.SERVICE_GROUPS, absent_means="no service runs"),
                reads.folder("/etc/systemd/system", absent_means="nothing is enabled"),
            ),
        ),
        "qos.boot": Check(
            "qos",
            "that each rail has a service that applies the settings at boot",
            "`systemctl show`",
            "run the QoS stage; check `systemctl status rdma-qos@INTERFACE.service`",
            sources=(reads.UNITS,),
        ),
    }
)

STAGE = "qos"
CNP = frozenset({"cnp_dscp", "cnp_802p_prio"})
#: Check → the keys of a state that show it, any of which is enough, and why it does not apply without them.
KEYS_OF_CHECK: Mapping[str, tuple[tuple[str, ...], str]] = {
    "qos.dcbx": (("dcbx",), "the driver does not report who controls the settings"),
    "qos.pause": (("pause",), "the driver has no global pause"),
    "qos.trust": (("trust",), ""),
    "qos.dscp": (("dscp_to_priority",), ""),
    "qos.pfc": (("pfc",), ""),
    "qos.ets": (("priority_to_tc",), "the driver has no traffic classes to set"),
    "qos.buffers": (("cable_length_m",), "the driver does not derive headroom from a cable length"),
    "qos.ecn": (("ecn_np", "ecn_rp"), "the driver has no switch for it; the firmware has (ROCE_CC_PRIO_MASK_P1, on by default)"),
    "qos.cnp": (("np",), "the driver does not report notification settings"),
    "qos.dcqcn": (("rp", "np"), "the driver does not report rate control settings"),
    "qos.traffic_class": (("traffic_class_settable",), "the driver forces none; NCCL_IB_TC and perftest's --tclass set it"),
    "qos.rdma_cm": ((), ""),
}
#: Checks of settings that the kernel shows in files, without mlnx_qos and dcb.
FROM_FILES = ("qos.ecn", "qos.cnp", "qos.dcqcn", "qos.traffic_class", "qos.rdma_cm")
#: Checks that are unknown, not inapplicable, without these keys.
REQUIRED = frozenset({"qos.trust", "qos.dscp", "qos.pfc"})
_CHECK_OF = {
    **{setting: f"qos.{setting}" for setting in ("dcbx", "trust", "dscp", "pfc", "ets", "traffic_class", "rdma_cm")},
    "global_pause": "qos.pause",
    "cable_length": "qos.buffers",
    "ecn_np": "qos.ecn",
    "ecn_rp": "qos.ecn",
    "rp": "qos.dcqcn",
}


def check_qos(host: str, intent: Intent, facts: Facts, profile: Mapping[str, Any] | None) -> list[Finding]:
    """The findings of `KEYS_OF_CHECK`, `qos.backend`, `qos.boot` and `qos.overwritten` of each RoCE rail.

    profile: the result of roce_profile for the intent.
    """
    rails = [rail for rail in resolve(intent["rails"], facts) if rail.rail["link_layer"] == "roce"]
    if profile is None or not rails:
        why = "no rail is RoCE; InfiniBand has its own flow control" if not rails else "rdma_roce is not set, so no traffic is marked"
        return [Finding(STAGE, "qos.backend", host, "host", NOT_APPLICABLE, why, "the profile of rdma_roce")]
    return [finding for rail in rails for finding in _Rail(host, rail, facts, profile).findings()]


def _is_answer(why: str) -> bool:
    """Whether a part of QosState.why reports a missing tool or a driver without DCB, and not a tool that failed."""
    return why.endswith("is not installed") or " has no DCB (" in why or why == NOT_MLX5


def check_of(difference: Difference) -> str:
    """The check that a difference fails."""
    if difference.setting == "np":
        return "qos.cnp" if difference.subject in CNP else "qos.dcqcn"
    return _CHECK_OF[difference.setting]


def overwriting(state: Mapping[str, Any]) -> list[str]:
    """The DCBX daemons that run, or are enabled at boot, and would overwrite PFC and ETS."""
    return [name for name, unit in (state.get("agents") or {}).items() if unit.get("active") or unit.get("enabled")]


class _Rail:
    """One RoCE rail of a host."""

    def __init__(self, host: str, rail: ResolvedRail, facts: Facts, profile: Mapping[str, Any]) -> None:
        self._host, self._rail, self._profile, self._units = host, rail, profile, facts.units
        self._netdev = facts.netdevs[rail.netdev] if rail.netdev else None
        self._state: Mapping[str, Any] | None = (facts.qos or {}).get(rail.netdev or "")

    def findings(self) -> Iterator[Finding]:
        state = self._state
        if state is None:
            why = "its NIC is missing: see driver.nic" if self._rail.netdev is None else "not read"
            remedy = f"1. Fix what driver.nic and driver.device report of {self._host}. 2. Run `ansible-playbook rdma.cluster.qos`."
            yield self._finding("qos.backend", UNKNOWN, why, "mlnx_qos or dcb", remedy)
            return
        found = differences(self._profile, state)
        yield self._backend(state)
        if state.get("backend") is None:
            # The other checks need a backend. Files do not; a port without them has nothing to judge.
            for check in FROM_FILES:
                keys, _why_not = KEYS_OF_CHECK[check]
                if not keys or any(state.get(key) for key in keys):
                    yield from self._judged(check, state, found)
        else:
            for check in KEYS_OF_CHECK:
                yield from self._judged(check, state, found)
            yield from self._overwritten(state)
        yield self._boot()

    def _backend(self, state: Mapping[str, Any]) -> Finding:
        expected, why = "mlnx_qos or dcb", str(state.get("why") or "")
        if state.get("backend") is not None:
            return self._finding("qos.backend", OK, f"{state['backend']}: {why}", expected)
        if self._rail.rail["soft"]:
            return self._finding("qos.backend", NOT_APPLICABLE, f"Soft-RoCE, and {why}", expected)
        if self._netdev and self._netdev.function == "vf":
            whose = "a virtual function: the host that owns the card sets trust, PFC and classes"
            return self._finding("qos.backend", NOT_APPLICABLE, f"{whose}; {why}", expected)
        if not all(_is_answer(each) for each in why.split("; ")):
            remedy = f"Run `mlnx_qos -i {self._rail.netdev}` and `dcb pfc show dev {self._rail.netdev}` on {self._host} as root."
            return self._finding("qos.backend", UNKNOWN, why, expected, remedy)
        remedy = f"Install iproute2's dcb or mlnx-tools on {self._host}. A NIC whose driver has no DCB cannot carry lossless RoCE."
        return self._finding("qos.backend", ERROR, why, expected, remedy)

    def _judged(self, check: str, state: Mapping[str, Any], found: list[Difference]) -> Iterator[Finding]:
        keys, why_not = KEYS_OF_CHECK[check]
        wrong = [each for each in found if check_of(each) == check]
        unread = self._unread(check, state)
        if unread:
            remedy = f"Read the files on {self._host} as root. A kernel in lockdown does not show debugfs."
            yield self._finding(check, UNKNOWN, f"could not be read: {'; '.join(unread)}", "as in the profile", remedy)
        elif wrong:
            observed = ", ".join(f"{each.name}: {format_value(each.was)}" for each in wrong)
            expected = ", ".join(f"{each.name}: {format_value(each.requested)}" for each in wrong)
            yield self._finding(check, ERROR, observed, expected, self._remedy(found))
        elif keys and all(not state.get(key) and state.get(key) != {} for key in keys):
            status = UNKNOWN if check in REQUIRED else NOT_APPLICABLE
            observed = why_not or "; ".join(state.get("warnings") or ()) or "not reported"
            remedy = f"Run `{self._show(state)}` on {self._host}." if status == UNKNOWN else ""
            yield self._finding(check, status, observed, "as in the profile", remedy)
        else:
            yield self._finding(check, OK, "as in the profile", "as in the profile")

    def _unread(self, check: str, state: Mapping[str, Any]) -> list[str]:
        """The files of a check that could not be read, and why; without those that the driver does not have."""
        planned = {name: setting for setting in ("np", "rp") for name in self._profile[setting]}
        missing = [name for name, setting in planned.items() if name not in (state.get(setting) or {})]
        names = [name for name in missing if (check == "qos.cnp") == (name in CNP)] if check in ("qos.cnp", "qos.dcqcn") else []
        words = {"qos.traffic_class": ("/traffic_class",), "qos.rdma_cm": ("/rdma_cm/",), "qos.ecn": ("/enable/",)}
        files = tuple({**NP_PARAMETERS, **RP_PARAMETERS}[name] for name in names) + tuple(names) + words.get(check, ())
        if check == "qos.pause":
            failed = self._netdev.ethtool.unread if self._netdev and self._netdev.ethtool else {}
            return [f"global pause: {failed['pause']}"] if "pause" in failed else []
        warnings = [each for each in state.get("warnings") or () if any(file in each for file in files)]
        if warnings or state.get("dcqcn_source") is None:
            return warnings
        return [f"{name} is not among the values of {state['dcqcn_source']}" for name in names]

    def _remedy(self, found: list[Difference]) -> str:
        """The remedy for a difference. found: all differences of the interface; one that toggles its link blocks the others."""
        if any(each.toggles for each in found):
            allowed = "with `-e roce_qos_link_toggle_allowed=true` while no job runs. It takes the link down briefly"
            return f"Run the QoS stage for {self._host} {allowed}."
        return f"1. Run the QoS stage for {self._host}. 2. If it fails, check `journalctl --unit {unit_of(str(self._rail.netdev))}` there."

    def _show(self, state: Mapping[str, Any]) -> str:
        name = self._rail.netdev
        return f"mlnx_qos -i {name}" if state.get("backend") == "mlnx_qos" else f"dcb pfc show dev {name}"

    def _overwritten(self, state: Mapping[str, Any]) -> Iterator[Finding]:
        agents = overwriting(state)
        expected = "nothing else that sets PFC and ETS"
        if agents:
            remedy = f"On {self._host}: " + ", ".join(f"`systemctl disable --now {name}.socket {name}.service`" for name in agents) + "."
            yield self._finding("qos.overwritten", WARNING, f"{' and '.join(agents)} would overwrite it", expected, remedy)
        else:
            yield self._finding("qos.overwritten", OK, "neither lldpad nor dcbd", expected)

    def _boot(self) -> Finding:
        unit, units = unit_of(str(self._rail.netdev)), self._units
        expected = f"{unit} active and enabled"
        remedy = f"1. Run the QoS stage for {self._host}. 2. If it fails, check `systemctl status {unit}` there."
        if units is None or unit not in units:
            return self._finding("qos.boot", UNKNOWN, "not read", expected, remedy)
        words = [word for word, holds in (("active", units[unit].active), ("enabled", units[unit].enabled)) if not holds]
        if not words:
            return self._finding("qos.boot", OK, "active and enabled", expected)
        return self._finding("qos.boot", ERROR, f"not {' and not '.join(words)}", expected, remedy)

    def _finding(self, check: str, status: str, observed: str, expected: str, remedy: str = "") -> Finding:
        where = ", ".join([self._rail.name, *([self._rail.netdev] if self._rail.netdev else [])])
        return Finding(STAGE, check, self._host, f"rail {self._rail.index} ({where})", status, observed, expected, remedy)
