# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the tools of infiniband-diags on one host, and report every reason for incomplete output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

T = TypeVar("T")
_TIMED_OUT = re.compile(r"bad status 110|Connection timed out")
_CLOSED = re.compile(r"can't open UMAD port|can't open MAD port|Failed to open")
_NO_SM = "No SM/SA found"
#: Part of the problems of a graph that was read while no subnet manager answered.
NO_MANAGER = "found no subnet manager"
#: Part of the problem of a tool whose library has found one GUID twice.
SAME_GUID = "found the same GUID on two ports"
#: Part of the problem if the manager that the port knows, or its subnet administration, does not answer.
SILENT_MANAGER = "no subnet manager answers"
SILENT_RECORDS = "the subnet administrator, a part of the subnet manager, does not answer"
_TWICE = re.compile(
    r"Duplicate (?:Port|Node): (?:Port|Node) with guid (0x[0-9a-f]{16})|Error Occurred when trying to insert new (?:port|node)"
)
_RECORDS = re.compile(r"Query SA failed|sa call \w+ failed")
_MANAGER = re.compile(r"_do_madrpc failed; dport \(Lid ([0-9]{1,5})\)")
_NO_MODULE = "is ib_umad module loaded"
_PACKAGE = "infiniband-diags"
_ENDED_WELL = {"ibqueryerrors": (0, 1)}


def keys_path(plane: str) -> str:
    """Return the file with a plane's M_Key and SA_Key for the tools (option -z); only root reads it, and no key is on a command line."""
    return f"/etc/rdma-cluster/diags-{plane}.conf"


def keys_text(m_key: str | None, sa_key: str | None) -> str | None:
    """Return that file's text, in the form of /etc/infiniband-diags/ibdiag.conf; None without a key to write."""
    keys = [f"{name}={value}\n" for name, value in (("m_key", m_key), ("sa_key", sa_key)) if value]
    return "".join(["# Managed by rdma.cluster: keys of the fabric, for the tools of infiniband-diags.\n", *keys]) if keys else None


@dataclass(frozen=True)
class Asked:
    """The data to read. device and port: the local port of the tools; with None they use the first active port.

    links: states and best possible links, with iblinkinfo; errors and data: counters, with ibqueryerrors; timeout_seconds: of each tool.
    """

    plane: str = "default"
    device: str | None = None
    port: int | None = None
    links: bool = True
    errors: bool = True
    data: bool = False
    node_name_map: str | None = None
    timeout_seconds: float = 120.0


class Tools:
    """Runs the tools, and collects the problems."""

    def __init__(self, runner: Runner, sys: SysRoot, asked: Asked) -> None:
        self._runner, self._sys, self._asked = runner, sys, asked
        self.problems: list[str] = []
        self.where = ["-C", asked.device] if asked.device is not None else []
        self.where += ["-P", str(asked.port)] if asked.port is not None else []
        keys = keys_path(asked.plane)
        self.where += ["-z", keys] if sys.exists(keys) else []

    def run(self, tool: str, options: Sequence[str], parse: Callable[[str], T]) -> T | None:
        """Return the parsed output of a tool, or None; every reason for incomplete output becomes a problem."""
        try:
            done = self._runner.run([tool, *options, *self.where], timeout_seconds=self._asked.timeout_seconds)
        except CommandError as exc:
            missing = str(exc).startswith("command not found")
            self.problems.append(f"{tool} is not installed on this host: install {_PACKAGE}" if missing else str(exc))
            return None
        complaints = self._complaints(tool, done)
        self.problems += complaints
        if done.rc not in _ENDED_WELL.get(tool, (0,)):
            self.problems += [] if complaints else [f"{tool} exited with status {done.rc} and no message"]
            return None
        try:
            return parse(done.stdout)
        except ParseError as exc:
            self.problems += [] if complaints else [str(exc)]
            return None

    def _complaints(self, tool: str, done: Completed) -> list[str]:
        failed = done.rc not in _ENDED_WELL.get(tool, (0,))
        # IBEXIT prints "iberror: failed: …" on standard output.
        lines = [line for line in done.stderr.splitlines() + (done.stdout.splitlines()[-1:] if failed else []) if line.strip()]
        text = "\n".join(lines)
        if _NO_MODULE in text:
            return [f"{tool} cannot query: the kernel module ib_umad is not loaded on this host (modprobe ib_umad)"]
        if _CLOSED.search(text):
            return [f"{tool} cannot query: {self._why_closed()}"]
        if _NO_SM in text:
            return [f"{tool} {NO_MANAGER} on {self._port_words()}, and sent no query"]
        if tool == "sminfo" and (asked := _MANAGER.search(text)) is not None:
            return [f"{SILENT_MANAGER} at LID {asked.group(1)}"]
        twice = [line for line in lines if _TWICE.search(line)]
        records = [line for line in lines if _RECORDS.search(line)]
        silent = [line for line in lines if _TIMED_OUT.search(line) and line not in records]
        other = [line for line in lines if line not in (*twice, *records, *silent)]
        reasons = _twice(tool, twice)
        reasons += [f"{SILENT_RECORDS} {tool}: {records[0].strip()}"] if records else []
        unanswered = f"{len(silent)} queries of {tool} were not answered, so nodes or ports are missing"
        reasons += [f"{unanswered}: {silent[0].strip()}"] if silent else []
        return [*reasons, f"{tool} complains: {'; '.join(line.strip() for line in other[:3])}"] if other else reasons

    def _port_words(self) -> str:
        device, port = self._asked.device, self._asked.port
        return f"{device or 'the first device'} port {port}" if port is not None else device or "the first active port"

    def _why_closed(self) -> str:
        device, port = self._asked.device, self._asked.port
        folder = f"/sys/class/infiniband/{device}"
        if device is not None and not self._sys.exists(folder):
            return f"there is no RDMA device {device}"
        if device is not None and port is not None:
            if not self._sys.exists(f"{folder}/ports/{port}"):
                return f"{device} has no port {port}"
            if self._sys.text(f"{folder}/ports/{port}/link_layer") == "Ethernet":
                return f"{device} port {port} is an Ethernet port, without an InfiniBand fabric"
        node = self._umad_node()
        if node is None:
            return f"it may not open /dev/infiniband/umad* for {self._port_words()} (permission denied: become root), or no port is active"
        if not self._sys.exists(node):
            return f"there is no {node} to query {self._port_words()}: udev creates it, and a container needs it passed in"
        return f"it may not open {node} to query {self._port_words()} (permission denied): become root"

    def _umad_node(self) -> str | None:
        """Return ib_umad's device node for the querying port; the tools do not report why they cannot open it (rdma-core 44)."""
        folder, wanted = "/sys/class/infiniband_mad", (self._asked.device, str(self._asked.port))
        for name in self._sys.list_dir(folder):
            if (self._sys.text(f"{folder}/{name}/ibdev"), self._sys.text(f"{folder}/{name}/port")) == wanted:
                return f"/dev/infiniband/{name}"
        return None


def _twice(tool: str, lines: Sequence[str]) -> list[str]:
    guids = dict.fromkeys(match.group(1) for line in lines if (match := _TWICE.search(line)) is not None and match.group(1))
    return [f"{tool} {SAME_GUID}: {', '.join(guids) or lines[0].strip()}"] if lines else []
