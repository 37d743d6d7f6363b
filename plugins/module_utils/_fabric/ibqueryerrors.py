# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `ibqueryerrors` of infiniband-diags (rdma-core): the counters of ports, with --data, --details, -r and --counters too.

Exit status: 0 if no port is above its threshold, 1 if some are, 255 if it failed. Without an SM it prints nothing and exits with 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import Problems, plain_guid

_TITLE = re.compile(r'(?:Errors|Data Counters) for (?:(0x[0-9a-fA-F]{1,16}) )?"(.*)"')
_PORT = re.compile(r"GUID (0x[0-9a-fA-F]{1,16}) port ([0-9]{1,3}|ALL): ?((?:\s*\[[^][]*\])*)")
_COUNTER = re.compile(r"\[([A-Za-z][A-Za-z0-9_]{1,60}) == ([0-9]{1,20})(?: \([^()]*\))?\]")
_SUMMARY = re.compile(r"## Summary: ([0-9]{1,9}) nodes checked, ([0-9]{1,9}) bad nodes found")
_PORTS = re.compile(r"##\s+([0-9]{1,9}) ports checked, ([0-9]{1,9}) ports have errors beyond threshold")
_FAILED = re.compile(r"##\s+([0-9]{1,9}) PMA query failures")
_THRESHOLD = re.compile(r"\[([A-Za-z0-9]{1,60}) = ([0-9]{1,20})\]")
_SUPPRESSED = re.compile(r"## ?Suppressed:(.*)")
_OTHER = re.compile(r"Link info: |## (?:Thresholds:|\(null\))")
#: The names before OFED 1.5, and the current ones (libibmad's fields.c).
_TODAY = {
    "SymbolErrors": "SymbolErrorCounter", "LinkRecovers": "LinkErrorRecoveryCounter", "LinkDowned": "LinkDownedCounter",
    "RcvErrors": "PortRcvErrors", "RcvRemotePhysErrors": "PortRcvRemotePhysicalErrors", "RcvSwRelayErrors": "PortRcvSwitchRelayErrors",
    "XmtDiscards": "PortXmitDiscards", "XmtConstraintErrors": "PortXmitConstraintErrors", "RcvConstraintErrors": "PortRcvConstraintErrors",
    "LinkIntegrityErrors": "LocalLinkIntegrityErrors", "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors", "XmtWait": "PortXmitWait",
    "XmtData": "PortXmitData", "RcvData": "PortRcvData", "XmtPkts": "PortXmitPkts", "RcvPkts": "PortRcvPkts",
}  # fmt: skip


@dataclass(frozen=True)
class QuerySummary:
    """The number of checked ports, and the omissions: a counter that is suppressed or below its threshold is not printed."""

    nodes_checked: int
    bad_nodes: int
    ports_checked: int | None
    bad_ports: int | None
    failures: int
    thresholds: dict[str, int]
    suppressed: list[str]


@dataclass(frozen=True)
class QueriedErrors:
    """counters: (GUID, port) → counter → value, port 255 for all ports of a switch together.

    The GUID is a switch's own or an HCA's port's (with --counters the node's). summary: None if the text ends before it. problems: lines
    that were not understood, and queries without an answer.
    """

    counters: dict[tuple[str, int], dict[str, int]]
    summary: QuerySummary | None
    problems: list[str]


class _Reading:
    """The state of parsing after the previous lines."""

    def __init__(self) -> None:
        self.counters: dict[tuple[str, int], dict[str, int]] = {}
        self.numbers: dict[str, int] = {}
        self.thresholds: dict[str, int] = {}
        self.suppressed: list[str] | None = None
        self.problems = Problems("ibqueryerrors")

    def port(self, number: int, line: str, match: re.Match[str]) -> None:
        guid, port, words = match.groups()
        pairs = _COUNTER.findall(words)
        if len(pairs) != words.count("["):
            self.problems.line(number, line, "has a counter that is not understood")
        key = plain_guid(guid), 255 if port == "ALL" else int(port)
        self.counters.setdefault(key, {}).update({_counter_name(name): int(value) for name, value in pairs})

    def ends(self, line: str) -> bool:
        """Return whether the line belongs to the summary."""
        for form, names in ((_SUMMARY, ("nodes", "bad_nodes")), (_PORTS, ("ports", "bad_ports")), (_FAILED, ("failures",))):
            match = form.fullmatch(line)
            if match is not None:
                self.numbers.update(zip(names, map(int, match.groups())))
                return True
        suppressed = _SUPPRESSED.fullmatch(line)
        if suppressed is not None:
            self.suppressed = suppressed.group(1).split()
        self.thresholds.update((name, int(value)) for name, value in _THRESHOLD.findall(line) if line.startswith("##"))
        return suppressed is not None or _OTHER.match(line) is not None


def _counter_name(name: str) -> str:
    """Return a counter's current name in the tools: "SymbolErrors" → "SymbolErrorCounter"."""
    return _TODAY.get(name, name)


def parse_ibqueryerrors(text: str) -> QueriedErrors:
    """Parse the text.

    Raises ParseError for a text without a port and without a summary, such as an empty one: missing output is not health.
    """
    reading = _Reading()
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        match = _PORT.fullmatch(line)
        if match is not None:
            reading.port(number, line, match)
        elif line and _TITLE.fullmatch(line) is None and not reading.ends(line):
            reading.problems.line(number, line)
    if not reading.counters and not reading.numbers:
        raise ParseError(f"not the output of ibqueryerrors: {quoted(text)}")
    return QueriedErrors(reading.counters, _summary(reading), reading.problems.sentences())


def _summary(reading: _Reading) -> QuerySummary | None:
    numbers, problems = reading.numbers, reading.problems
    if "nodes" not in numbers or reading.suppressed is None:
        problems.add("the output of ibqueryerrors is cut off: it lacks its summary or the end of it")
        return None
    failures = numbers.get("failures", 0)
    if failures:
        problems.add(f"{failures} queries of ibqueryerrors were not answered: the counters of these ports are unknown")
    bad_ports, reported = numbers.get("bad_ports"), sum(port != 255 for _guid, port in reading.counters)
    if bad_ports is not None and reported < bad_ports:
        problems.add(f"ibqueryerrors counts {bad_ports} ports with errors, but reports {reported}")
    return QuerySummary(
        numbers["nodes"], numbers["bad_nodes"], numbers.get("ports"), bad_ports, failures, reading.thresholds, reading.suppressed
    )
