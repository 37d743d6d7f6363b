# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the QoS settings of an interface with one of two tools: mlnx_qos, or iproute2's dcb, never both.

Processes: one with mlnx_qos; five with dcb, and one if the driver has no DCB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.dcb import (
    PRIORITIES,
    DcbEts,
    is_unsupported,
    parse_dcb_app,
    parse_dcb_buffer,
    parse_dcb_dcbx,
    parse_dcb_ets,
    parse_dcb_pfc,
)
from ansible_collections.rdma.cluster.plugins.module_utils._qos.mlnx_qos import MlnxQos, TrafficClass, parse_mlnx_qos

_T = TypeVar("_T")
MLNX_QOS, DCB = "mlnx_qos", "dcb"
OS, FIRMWARE = "os", "firmware"
_DCBX = {"OS controlled": OS, "Firmware controlled": FIRMWARE}
_NO_BANDWIDTH = 0
_NO_MLNX_QOS = "mlnx_qos is not installed"
NOT_MLX5 = "mlnx_qos supports only mlx5 interfaces"


@dataclass(frozen=True)
class DcbSettings:
    """The answer of a backend on an interface; None for missing values. Lists are by priority, or by class, from 0 to 7.

    backend: "mlnx_qos" | "dcb" | None; why: the reason that the others are not used. dcbx: the owner of the settings, "os" | "firmware".
    trust: "dscp" | "pcp" ("both" by mlnx_qos of 2017). dscp_to_priority: all codes by mlnx_qos, by dcb those that have an entry; none with
    "pcp". tsa, bandwidth_percent: None in the list for a class without a priority, which mlnx_qos omits; bandwidth is 0 except for "ets".
    cable_length_m: the driver computes the headroom of lossless buffers from it; only mlx5 has it.
    """

    backend: str | None
    why: str
    dcbx: str | None = None
    trust: str | None = None
    dscp_to_priority: dict[int, int] | None = None
    pfc: list[bool] | None = None
    priority_to_tc: list[int] | None = None
    tsa: list[str | None] | None = None
    bandwidth_percent: list[int | None] | None = None
    cable_length_m: int | None = None
    priority_to_buffer: list[int] | None = None
    buffer_bytes: list[int] | None = None


def read_dcb_settings(runner: Runner, interface: str, warnings: list[str], *, is_mlx5: bool) -> DcbSettings:
    """Query mlnx_qos for an interface of mlx5; otherwise, and if it does not answer, query dcb. Warnings of the tools go into warnings."""
    dcb = _Dcb(runner, interface, warnings)
    if not is_mlx5:
        return dcb.settings(NOT_MLX5, is_mlx5=False, buffers=True)
    answer = _ask_mlnx_qos(runner, interface, warnings)
    # At most five processes per interface.
    return answer if isinstance(answer, DcbSettings) else dcb.settings(answer, is_mlx5=True, buffers=answer == _NO_MLNX_QOS)


def _ask_mlnx_qos(runner: Runner, interface: str, warnings: list[str]) -> DcbSettings | str:
    """Return its answer, or why there is none. It prints errors to stdout, too."""
    done = _run(runner, (MLNX_QOS, "-i", interface))
    if isinstance(done, str):
        return done
    if done.rc:
        return f"`mlnx_qos -i {interface}` fails: {_last_line(done.stderr or done.stdout)}"
    try:
        answer = parse_mlnx_qos(done.stdout)
    except ParseError as exc:
        return str(exc)
    warnings.extend(answer.warnings)
    return _of_mlnx_qos(answer)


def _run(runner: Runner, argv: tuple[str, ...]) -> Completed | str:
    """Return the completed command, or why it could not run."""
    try:
        return runner.run(argv)
    except CommandError as exc:
        return f"{argv[0]} is not installed" if str(exc).startswith("command not found") else str(exc)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


def _of_mlnx_qos(answer: MlnxQos) -> DcbSettings:
    classes = answer.traffic_classes
    of_priority = {priority: tc for tc, its in (classes or {}).items() for priority in its.priorities}
    return DcbSettings(
        backend=MLNX_QOS,
        why="it is installed and works for this interface",
        dcbx=_DCBX.get(answer.dcbx_mode or ""),
        trust=answer.trust,
        dscp_to_priority={} if answer.trust == "pcp" else answer.dscp_to_priority,
        pfc=answer.pfc_enabled,
        priority_to_tc=[of_priority[priority] for priority in range(PRIORITIES)] if classes is not None else None,
        tsa=[classes[tc].tsa if tc in classes else None for tc in range(PRIORITIES)] if classes is not None else None,
        bandwidth_percent=[_bandwidth(classes.get(tc)) for tc in range(PRIORITIES)] if classes is not None else None,
        cable_length_m=answer.cable_length_m,
        priority_to_buffer=answer.pfc_buffer,
        buffer_bytes=answer.buffer_sizes_bytes,
    )


def _bandwidth(tc: TrafficClass | None) -> int | None:
    return None if tc is None else tc.bandwidth_percent or _NO_BANDWIDTH


class _Dcb:
    """Queries dcb for one interface."""

    def __init__(self, runner: Runner, interface: str, warnings: list[str]) -> None:
        self._runner = runner
        self._interface = interface
        self._warnings = warnings

    def settings(self, why: str, *, is_mlx5: bool, buffers: bool) -> DcbSettings:
        """Return all settings, PFC first: if the driver has none, nothing else is queried. why: the reason that mlnx_qos is not used."""
        done = self._show("pfc")
        if isinstance(done, str) or done.rc:
            return DcbSettings(None, f"{why}; {self._refusal(done)}")
        pfc = self._parsed(done, parse_dcb_pfc)
        if pfc is None:
            return DcbSettings(None, f"{why}; {self._warnings.pop()}")
        ets, codes = self._asked("ets", parse_dcb_ets), self._asked("app", parse_dcb_app, "dscp-prio")
        flags = self._asked("dcbx", parse_dcb_dcbx)
        buffer = self._asked("buffer", parse_dcb_buffer) if buffers else None
        return DcbSettings(
            backend=DCB,
            why=why,
            dcbx=_owner(flags) if flags is not None else None,
            trust=_trust(codes) if codes is not None else None,
            dscp_to_priority=codes,
            pfc=pfc.enabled,
            priority_to_tc=ets.priority_to_tc if ets else None,
            tsa=list(ets.tsa) if ets else None,
            bandwidth_percent=_ets_bandwidth(ets) if ets else None,
            cable_length_m=pfc.delay if is_mlx5 else None,
            priority_to_buffer=buffer.priority_to_buffer if buffer else None,
            buffer_bytes=buffer.sizes_bytes if buffer else None,
        )

    def _show(self, kind: str, *parameters: str) -> Completed | str:
        return _run(self._runner, (DCB, "-N", "-j", kind, "show", "dev", self._interface, *parameters))

    def _asked(self, kind: str, parser: Callable[[str], _T], *parameters: str) -> _T | None:
        """Return the parsed answer. None also if the driver or version does not support it, which is no warning."""
        done = self._show(kind, *parameters)
        if isinstance(done, str) or done.rc:
            if isinstance(done, str) or not is_unsupported(done.stderr):
                self._warnings.append(self._refusal(done))
            return None
        return self._parsed(done, parser)

    def _parsed(self, done: Completed, parser: Callable[[str], _T]) -> _T | None:
        try:
            return parser(done.stdout)
        except ParseError as exc:
            self._warnings.append(str(exc))
            return None

    def _refusal(self, done: Completed | str) -> str:
        if isinstance(done, str):
            return done
        if is_unsupported(done.stderr):
            return f"the driver of {self._interface} has no DCB ({_last_line(done.stderr)})"
        return f"`{' '.join(done.argv)}` fails: {_last_line(done.stderr)}"


def _owner(flags: Sequence[str]) -> str:
    return OS if "host" in flags else FIRMWARE


def _trust(codes: Mapping[int, int]) -> str:
    """Return the trust mode. mlx5 trusts DSCP from the first entry on (en_dcbnl.c)."""
    return "dscp" if codes else "pcp"


def _ets_bandwidth(ets: DcbEts) -> list[int | None]:
    return [share if tsa == "ets" else _NO_BANDWIDTH for tsa, share in zip(ets.tsa, ets.bandwidth_percent)]
