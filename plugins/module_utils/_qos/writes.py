# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a difference from a RoCE profile: with mlnx_qos, iproute2's dcb, or a file. One interface uses one backend only.

Options of mlnx_qos are those of mlnx-tools 5.8 to 24.10, of dcb those of iproute2 5.11 and newer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.backends import DCB, FIRMWARE, MLNX_QOS, OS
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import Difference
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import Places, traffic_class_file


@dataclass(frozen=True)
class Command:
    """A program that writes a setting."""

    argv: tuple[str, ...]


@dataclass(frozen=True)
class FileText:
    """A file of the kernel that takes a setting as text."""

    path: str
    text: str


@dataclass(frozen=True)
class Target:
    """An interface, the RDMA port on it ("1"), its backend, and its congestion control files."""

    interface: str
    device: str
    port: str
    backend: str | None
    places: Places


def writes(difference: Difference, target: Target) -> list[Command | FileText]:
    """Return the writes for a difference; none if another write includes it. RDMA-CM's defaults are handled by _rdma_cm.

    Raises ApplyError if the backend does not support it.
    """
    setting, requested = difference.setting, difference.requested
    if setting in ("ecn_np", "ecn_rp"):
        files = target.places.enable_np if setting == "ecn_np" else target.places.enable_rp
        return [FileText(files[int(difference.subject)], str(int(requested)))]
    if setting in ("np", "rp"):
        return [FileText(getattr(target.places, setting)[difference.subject], str(requested))]
    if setting == "traffic_class":
        return [FileText(traffic_class_file(target.device, target.port), str(requested))]
    if setting == "global_pause":
        return [Command(("ethtool", "-A", target.interface, "rx", _switch(requested["rx"]), "tx", _switch(requested["tx"])))]
    return [Command(words) for words in _BACKENDS[str(target.backend)](difference, target.interface)]


def _mlnx_qos(difference: Difference, interface: str) -> list[tuple[str, ...]]:
    requested: Any = difference.requested
    options: dict[str, Callable[[], tuple[str, ...]]] = {
        "dcbx": lambda: ("--dcbx", {OS: "os", FIRMWARE: "fw"}[requested]),
        "trust": lambda: ("--trust", requested),
        "dscp": lambda: ("--dscp2prio", f"set,{difference.subject},{requested}"),
        "pfc": lambda: ("--pfc", _commas(int(each) for each in requested)),
        "ets": lambda: (
            f"--prio_tc={_commas(requested['priority_to_tc'])}",
            f"--tsa={_commas(requested['tsa'])}",
            f"--tcbw={_commas(requested['bandwidth_percent'])}",
        ),
        "cable_length": lambda: ("--cable_len", str(requested)),
    }
    return [(MLNX_QOS, "-i", interface, *options[difference.setting]())]


def _dcb(difference: Difference, interface: str) -> list[tuple[str, ...]]:
    requested: Any = difference.requested
    if difference.setting == "trust":
        # The first entry for a DSCP sets it (mlx5e_dcbnl_ieee_setapp).
        return []
    if difference.setting == "dcbx" and requested != OS:
        raise ApplyError(f"dcb cannot hand the settings of {interface} to the firmware: install mlnx-tools for `mlnx_qos -d fw`.")
    words: dict[str, Callable[[], tuple[str, ...]]] = {
        "dcbx": lambda: ("dcbx", "set", "dev", interface, "host", "ieee"),
        "dscp": lambda: ("app", "replace", "dev", interface, "dscp-prio", f"{difference.subject}:{requested}"),
        "pfc": lambda: ("pfc", "set", "dev", interface, "prio-pfc", *_numbered([_switch(each) for each in requested])),
        "ets": lambda: (
            *("ets", "set", "dev", interface, "prio-tc", *_numbered(requested["priority_to_tc"])),
            *("tc-tsa", *_numbered(requested["tsa"]), "tc-bw", *_numbered(requested["bandwidth_percent"])),
        ),
        "cable_length": lambda: ("pfc", "set", "dev", interface, "delay", str(requested)),
    }
    return [(DCB, *words[difference.setting]())]


_BACKENDS: dict[str, Callable[[Difference, str], list[tuple[str, ...]]]] = {MLNX_QOS: _mlnx_qos, DCB: _dcb}


def _commas(values: Any) -> str:
    return ",".join(str(value) for value in values)


def _numbered(values: Sequence[Any]) -> list[str]:
    return [f"{number}:{value}" for number, value in enumerate(values)]


def _switch(on: object) -> str:
    return "on" if on else "off"
