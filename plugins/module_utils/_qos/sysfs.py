# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RoCE settings that are files: congestion control, the traffic class of a device, and RDMA-CM's defaults.

OFED's driver has them in sysfs (en_sysfs.c and en_ecn.c of mlnx-ofa_kernel; traffic_class: its mlx5_ib), Linux' own in debugfs
(drivers/infiniband/hw/mlx5/cong.c), and both have RDMA-CM's in configfs (drivers/infiniband/core/cma_configfs.c). This code only reads:
it does not even create the folder through which configfs shows a device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._qos.dcb import PRIORITIES
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import RdmaCm, parse_mode, parse_tos, rdma_cm_folder

_T = TypeVar("_T")
#: Parameters of the notification point, which sends CNPs for marked packets: OFED's name → the name in debugfs.
NP_PARAMETERS = {
    "min_time_between_cnps": "np_min_time_between_cnps",
    "cnp_dscp": "np_cnp_dscp",
    "cnp_802p_prio": "np_cnp_prio",
}
#: Parameters of the reaction point, which slows down after CNPs: OFED's name → the name in debugfs.
RP_PARAMETERS = {
    "clamp_tgt_rate": "rp_clamp_tgt_rate",
    "clamp_tgt_rate_after_time_inc": "rp_clamp_tgt_rate_ati",
    "rpg_time_reset": "rp_time_reset",
    "rpg_byte_reset": "rp_byte_reset",
    "rpg_threshold": "rp_threshold",
    "rpg_max_rate": "rp_max_rate",
    "rpg_ai_rate": "rp_ai_rate",
    "rpg_hai_rate": "rp_hai_rate",
    "rpg_gd": "rp_gd",
    "rpg_min_dec_fac": "rp_min_dec_fac",
    "rpg_min_rate": "rp_min_rate",
    "rate_to_set_on_first_cnp": "rp_rate_to_set_on_first_cnp",
    "dce_tcp_g": "rp_dce_tcp_g",
    "dce_tcp_rtt": "rp_dce_tcp_rtt",
    "rate_reduce_monitor_period": "rp_rate_reduce_monitor_period",
    "initial_alpha_value": "rp_initial_alpha_value",
}
SYSFS, DEBUGFS = "sysfs", "debugfs"
_NUMBER = re.compile(r"[0-9]{1,10}")
_TCLASS = re.compile(r"^Global tclass=([0-9]{1,3})$", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """The files of congestion control: parameter → file; enable_np, enable_rp: the switches by priority.

    source: "sysfs" | "debugfs", which has no switches; None if the driver has no such files.
    """

    source: str | None
    np: dict[str, str]
    rp: dict[str, str]
    enable_np: list[str]
    enable_rp: list[str]


def parse_number(text: str) -> int:
    """Parse a file with one number. Raises ParseError, as the others do."""
    if _NUMBER.fullmatch(text.strip()) is None:
        raise ParseError(f"not a number: {quoted(text)}")
    return int(text.strip())


def parse_trust(text: str) -> str:
    """Parse qos/trust, which OFED had up to 2018: "pcp", "dscp" or "both"."""
    if text.strip() not in ("pcp", "dscp", "both"):
        raise ParseError(f"not a trust state: {quoted(text)}, expected 'pcp' or 'dscp'")
    return text.strip()


def parse_traffic_class(text: str) -> int | None:
    """Parse tc/1/traffic_class: "Global tclass=106"; None if it has only rules for single addresses, on separate lines."""
    match = _TCLASS.search(text)
    if match is None and ("Global" in text or "tclass" not in text):
        raise ParseError(f"not a traffic class: {quoted(text)}, expected the form 'Global tclass=106'")
    return int(match.group(1)) if match else None


def traffic_class_file(device: str, port: str) -> str:
    """Return the file with the traffic class that OFED's driver forces on all connections of a port."""
    return f"/sys/class/infiniband/{device}/tc/{port}/traffic_class"


class Careful:
    """Reads files that may be denied, such as debugfs on a locked-down kernel: the value is None, with the reason in warnings."""

    def __init__(self, sys: SysRoot) -> None:
        self._sys = sys
        self.warnings: list[str] = []

    def value(self, path: str, parser: Callable[[str], _T]) -> _T | None:
        """Return the parsed file, None if it is absent or empty."""
        return self._try(lambda: self._sys.value(path, parser))

    def exists(self, path: str) -> bool:
        """Return whether the path exists."""
        return self._try(lambda: self._sys.exists(path)) is True

    def numbers(self, files: Mapping[str, str]) -> dict[str, int]:
        """Return name → number of the readable files; one reason stands for all unreadable ones."""
        before = len(self.warnings)
        read = {name: self.value(path, parse_number) for name, path in files.items()}
        if len(self.warnings) > before + 1:
            self.warnings[before:] = [f"{self.warnings[before]} (and {len(self.warnings) - before - 1} more beside it)"]
        return {name: number for name, number in read.items() if number is not None}

    def _try(self, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except (OSError, ParseError) as exc:
            self.warnings.append(str(exc))
            return None


def find_places(reader: Careful, interface: str, pci: str | None) -> Places:
    """Return the existing congestion control files of an interface whose PCI function is pci ("0000:3d:00.0")."""
    ecn, params = f"/sys/class/net/{interface}/ecn", f"/sys/kernel/debug/mlx5/{pci}/cc_params"
    if reader.exists(ecn):
        return Places(
            source=SYSFS,
            np=_present(reader, {name: f"{ecn}/roce_np/{name}" for name in NP_PARAMETERS}),
            rp=_present(reader, {name: f"{ecn}/roce_rp/{name}" for name in RP_PARAMETERS}),
            enable_np=[f"{ecn}/roce_np/enable/{priority}" for priority in range(PRIORITIES)],
            enable_rp=[f"{ecn}/roce_rp/enable/{priority}" for priority in range(PRIORITIES)],
        )
    if pci is not None and reader.exists(params):
        np = {name: f"{params}/{there}" for name, there in NP_PARAMETERS.items()}
        rp = {name: f"{params}/{there}" for name, there in RP_PARAMETERS.items()}
        return Places(DEBUGFS, _present(reader, np), _present(reader, rp), [], [])
    return Places(None, {}, {}, [], [])


def read_switches(reader: Careful, files: list[str]) -> list[bool] | None:
    """Return whether congestion control is on, by priority; None if a file has no answer."""
    numbers = reader.numbers({path: path for path in files})
    return [bool(numbers[path]) for path in files] if files and len(numbers) == len(files) else None


def read_rdma_cm(reader: Careful, device: str, port: str) -> RdmaCm | None:
    """Return RDMA-CM's defaults; None if the folder does not exist: the kernel then uses RoCE v2, ToS 0."""
    folder = rdma_cm_folder(device, port)
    if not reader.exists(folder):
        return None
    return RdmaCm(
        mode=reader.value(f"{folder}/default_roce_mode", parse_mode),
        tos=reader.value(f"{folder}/default_roce_tos", parse_tos),
    )


def _present(reader: Careful, files: Mapping[str, str]) -> dict[str, str]:
    return {name: path for name, path in files.items() if reader.exists(path)}
