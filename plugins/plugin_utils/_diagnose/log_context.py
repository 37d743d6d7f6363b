# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The context in a job's log: the hosts of the ranks, their version of NCCL, and NCCL's variables."""

from __future__ import annotations

import re
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_line import LocatedLine, read

_RANK = re.compile(r"\brank ([0-9]{1,7}) nranks ([0-9]{1,7}) cudaDev ([0-9]{1,3})\b")
#: NCCL's own line. PyTorch appends it to an error in its own format: ", NCCL version 2.18.1", and for 2.10.3 ", NCCL version 21.0.3".
_VERSION = re.compile(r"(?<!, )\bNCCL version ([0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,3}[\w.+-]{0,40})")
_VARIABLE = re.compile(r"\b(NCCL_[A-Z0-9_]{1,60}) set (?:by environment )?to (.{1,1024}?)\.?\s*$")
_TESTS_RANK = re.compile(
    r"#\s{1,9}Rank\s{1,9}([0-9]{1,7})\s.{0,60}?\bPid\s{1,9}([0-9]{1,10}) on\s{1,60}(\S{1,253})\s{1,60}device(?:\s{1,9}([0-9]{1,3})\b)?"
)
#: "misc/socket.cc:568 -> 2": the places that a failed call passes, from the innermost; 3 to 7 and 1, 2 are results of NCCL.
_TRACE = re.compile(r"NCCL INFO ([\w./-]{1,200}\.(?:cc|cu|h)):[0-9]{1,5} -> [1-7]\b")
#: "Bootstrap : Using eth0:10.0.0.1<0>", with "[0]" before the name up to NCCL 2.7.
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using (?:\[0\])?([\w.@-]{1,32}):([0-9a-fA-F.:]{3,45})(?:%\w+)?<")
#: "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:…".
_LAYER = re.compile(r"\[[0-9]{1,3}\]\w{1,63}:[0-9]{1,3}/(RoCE|IB)\b")
_NETWORK = re.compile(r"Using network (\S.{0,60}?)\s*$")
_TESTS_END = "# Avg bus bandwidth"
_MOST = 65_536
_MOST_VALUES = 8
_MOST_VARIABLES = 256

#: A process: its host and its number.
Process = tuple["str | None", "int | None"]


class Context:
    """The context read so far.

    nranks: of the largest communicator; versions: version of NCCL → its hosts; second_version_line: the first line with another version;
    variables: variable of NCCL → its values on ranks; network_line: the first line with another network than before;
    gpu_buffer: whether the test of perftest that the log is at uses GPU memory; layers: of the ports that NCCL uses, "IB" and "RoCE";
    bootstraps: host → the interface of its first connections and the address; trace: the source file of
    NCCL where its first failed call is, "" if the log does not show it.
    """

    def __init__(self) -> None:
        self.nranks = 0
        self.versions: dict[str, dict[str, None]] = {}
        self.second_version_line = 0
        self.variables: dict[str, dict[str, None]] = {}
        self.single_line = 0
        self.network_line = 0
        self.gpu_buffer = False
        self.layers: set[str] = set()
        self.trace = ""
        self.bootstraps: dict[str, tuple[str, str]] = {}
        self._networks: dict[str, dict[str, None]] = {}
        self._singles: dict[Process, None] = {}
        self._several_at_once: dict[Process, None] = {}
        self._places: dict[int, tuple[str, int]] = {}
        self._ranks: dict[tuple[str | None, int | None, int | None], tuple[int, int]] = {}
        self._firsts: dict[Process, None] = {}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are known to have a rank."""
        return tuple(dict.fromkeys(host for host, _nranks in self._places.values()))

    @property
    def singles(self) -> tuple[Process, ...]:
        """The processes that ran at once as separate jobs of one rank; empty in a job of more than one rank."""
        if self.nranks > 1:
            return ()
        return tuple(self._several_at_once or (self._singles if len(self._singles) > 1 else ()))

    def networks(self) -> dict[str, list[str]]:
        """NCCL's networks and the hosts of each, empty if the hosts of the job use the same one, or a host has used several."""
        job, hosts = self.hosts, dict[str, list[str]]()
        for host, names in self._networks.items():
            if len(names) > 1:
                return {}
            if not job or host in job:
                hosts.setdefault(next(iter(names)), []).append(host)
        return hosts if len(hosts) > 1 else {}

    def network(self, number: int, line: str) -> None:
        """Read the network that a rank chose."""
        found, host = _NETWORK.search(line), read(line).host
        if found is None or host is None or (host not in self._networks and len(self._networks) >= _MOST):
            return
        if not self.network_line and self._networks and all(found[1] not in names for names in self._networks.values()):
            self.network_line = number
        there = self._networks.setdefault(host, {})
        if len(there) < _MOST_VALUES:
            there[found[1]] = None

    def host_of(self, rank: int) -> str | None:
        return self._places[rank][0] if rank in self._places else None

    def placed(self, located: LocatedLine) -> LocatedLine:
        """A line's origin, completed with the known rank of its process or the known host of its rank."""
        if located.rank is None and located.host is not None:
            known = self._ranks.get((located.host, located.pid, located.device))
            return located if known is None else replace(located, rank=known[0])
        if located.host is None and located.rank is not None:
            return replace(located, host=self.host_of(located.rank))
        return located

    def line(self, number: int, line: str, *, info: bool) -> None:
        """Read the context from a line that is not an error. info: whether NCCL wrote it at level INFO."""
        if "NCCL version " in line:
            self._version(number, line)
        elif info:
            self._info(number, line)
        elif "GPU buffer" in line:
            self.gpu_buffer = "dealloc" not in line
        elif " Pid " in line:
            self._tests_rank(number, line)
        elif _TESTS_END in line:
            self._firsts.clear()

    def _info(self, number: int, line: str) -> None:
        if " nranks " in line:
            self._rank(number, line)
        elif " set " in line:
            self._variable(line)
        elif " -> " in line:
            self._traced(line)
        elif "Bootstrap" in line:
            self._bootstrap(line)
        elif "NET/IB" in line:
            self.layers.update(_LAYER.findall(line))

    def _version(self, number: int, line: str) -> None:
        found = _VERSION.search(line)
        if found is None or (found[1] not in self.versions and len(self.versions) >= _MOST_VALUES):
            return
        hosts = self.versions.setdefault(found[1], {})
        if len(self.versions) == 2 and not self.second_version_line:
            self.second_version_line = number
        host = read(line).host
        if host is not None and len(hosts) < _MOST:
            hosts[host] = None

    def _rank(self, number: int, line: str) -> None:
        found = _RANK.search(line)
        if found is None:
            return
        located, rank, nranks = read(line), int(found[1]), int(found[2])
        self.nranks = max(self.nranks, nranks)
        key = (located.host, located.pid, located.device)
        if nranks > self._ranks.get(key, (0, 0))[1] and len(self._ranks) < _MOST:
            self._ranks[key] = (rank, nranks)
        self._place(rank, located.host, nranks)
        if nranks == 1 and len(self._singles) < _MOST:
            self._singles[(located.host, located.pid)] = None
            self.single_line = self.single_line or number

    def _traced(self, line: str) -> None:
        found = _TRACE.search(line) if not self.trace else None
        if found is not None:
            self.trace = found[1]

    def _bootstrap(self, line: str) -> None:
        found, host = _BOOTSTRAP.search(line), read(line).host
        if found is not None and host is not None and len(self.bootstraps) < _MOST:
            self.bootstraps.setdefault(host, (found[1], found[2]))

    def _place(self, rank: int, host: str | None, nranks: int) -> None:
        if host is not None and nranks > self._places.get(rank, ("", 0))[1] and len(self._places) < _MOST:
            self._places[rank] = (host, nranks)

    def _variable(self, line: str) -> None:
        found = _VARIABLE.search(line)
        if found is not None and (found[1] in self.variables or len(self.variables) < _MOST_VARIABLES):
            values = self.variables.setdefault(found[1], {})
            if len(values) < _MOST_VALUES:
                values[found[2]] = None

    def _tests_rank(self, number: int, line: str) -> None:
        """Read a line of the header of nccl-tests: two processes of rank 0 before a test has ended are two jobs."""
        found = _TESTS_RANK.search(line)
        if found is None:
            return
        rank, process = int(found[1]), (found[3], int(found[2]))
        self._place(rank, found[3], 1)
        if found[4] is not None and len(self._ranks) < _MOST:
            self._ranks.setdefault((found[3], int(found[2]), int(found[4])), (rank, 1))
        if rank == 0 and len(self._firsts) < _MOST:
            self._firsts[process] = None
            if len(self._firsts) > 1:
                self._several_at_once.update(self._firsts)
                self.single_line = self.single_line or number
