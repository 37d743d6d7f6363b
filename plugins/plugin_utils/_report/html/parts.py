# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Further parts of the report: the fabric, collectives, counters, drift, proofs, commands, and where figures come from."""

from __future__ import annotations

import base64
import json
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import perftest_argv
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.marks import Ends, bad_links, end_words, link_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.svg import svg
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import names
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import if_sound, natural

#: Rows of a table at most. The files of the run have all.
ROWS = 300
#: A larger drawing is left out.
DRAWING_BYTES = 2 * 2**20
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Drawing:
    """The drawing of a plane as an image of its own, so that its styles and names cannot affect the page. bad: the faults in words."""

    plane: str
    words: str
    image: str
    bad: Sequence[tuple[str, str]]
    problems: Sequence[str]


def graphs_of(run: Run) -> list[Graph]:
    """Return the graphs of the planes that the run has read; those that cannot be read are missing."""
    found = []
    for each in run.mapping(FABRIC).get("planes") or []:
        try:
            found.append(Graph.from_dict(each))
        except (ParseError, KeyError, TypeError, ValueError, AttributeError):
            continue
    return found


def drawings(graphs: Sequence[Graph], found_bad: Sequence[Finding] = ()) -> list[Drawing]:
    """Return the drawing of each plane, with its bad links, and the cables of HCAs that an error of the fabric stage names."""
    found = []
    wrong = [each for each in found_bad if each.stage == "fabric"]
    for graph in graphs:
        marked = {**_named(graph, wrong), **bad_links(graph)}
        picture = svg(graph, marked).encode()
        bad = [(link_words(graph, link), str(marked[link.a, link.b])) for link in graph.links if (link.a, link.b) in marked]
        image = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}" if len(picture) <= DRAWING_BYTES else ""
        words = f"Fabric {graph.plane}: {len(graph.nodes)} nodes, {len(graph.links)} links, of which {len(bad)} bad"
        found.append(Drawing(graph.plane, words, image, bad[:ROWS], list(graph.problems)[:ROWS]))
    return found


def _named(graph: Graph, findings: Sequence[Finding]) -> dict[Ends, str]:
    """Return the links of the HCAs that findings name, such as swapped cables, with the check."""
    found: dict[Ends, str] = {}
    for link in graph.links if findings else ():
        nodes = [graph.nodes[guid] for guid, _port in (link.a, link.b)]
        hcas = [node.description for node in nodes if node.kind != "switch" and node.description]
        for each in findings:
            if any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", each.observed) for name in hcas):
                found[link.a, link.b] = f"{each.check}: {each.host}"
    return found


def leaves(graphs: Sequence[Graph]) -> dict[str, str]:
    """Return the GUID of each host's node, as hexadecimal digits → the name of the switch at its first port."""
    found: dict[str, str] = {}
    for graph in graphs:
        for link in graph.links:
            for one, other in ((link.a[0], link.b[0]), (link.b[0], link.a[0])):
                if graph.nodes[one].kind != "switch" and graph.nodes[other].kind == "switch":
                    found.setdefault(one.removeprefix("0x"), graph.nodes[other].name)
    return found


def cables(graphs: Sequence[Graph]) -> dict[tuple[str, str], str]:
    """Return both ends of each cable by name, in order → its plane."""
    found = {}
    for graph in graphs:
        for link in graph.links:
            ends = sorted(end_words(graph, end) for end in (link.a, link.b))
            found[ends[0], ends[1]] = graph.plane
    return found


@dataclass(frozen=True)
class Collective:
    """One run of nccl-tests. sizes: (bytes, GB/s) by size, empty if the run is of a version that did not store them."""

    operation: str
    hosts: str
    count: int
    status: str
    gbytes_per_s: float | None
    expected: float | None
    sizes: Sequence[tuple[int, float]]
    command: str

    @property
    def share(self) -> float | None:
        return self.gbytes_per_s / self.expected if self.gbytes_per_s is not None and self.expected else None


def collectives(run: Run) -> tuple[list[Collective], list[str], str]:
    """Return the runs, joint ones first; who is to blame in words; and why the ladder was interrupted, "" if it was not."""
    ladder = run.mapping("collectives.json")
    records = [*ladder.get("runs", ()), *ladder.get("also", ())]
    alone: list[dict[str, Any]] = [if_sound(file) or {} for _host, file in run.host_files("collectives")]
    records += [each for each in alone if "operation" in each]
    blames = [str(blame.get("words", "")) for blame in ladder.get("blames", ()) if isinstance(blame, Mapping)]
    return [_collective(each) for each in records[:ROWS] if isinstance(each, Mapping)], blames, str(ladder.get("problem", ""))


def _collective(data: Mapping[str, Any]) -> Collective:
    hosts = [str(host) for host in data.get("hosts", ())]
    return Collective(
        operation=str(data.get("operation", "")),
        hosts=names(hosts),
        count=len(hosts),
        status=str(data.get("status", "unknown")),
        gbytes_per_s=data.get("gbytes_per_s"),
        expected=data.get("expected_gbytes_per_s"),
        sizes=[(int(size), float(rate)) for size, rate in data.get("sizes") or ()],
        command=shlex.join(str(word) for word in data.get("argv", ())),
    )


def risen_counters(run: Run) -> list[tuple[str, str, str, int]]:
    """Return (host, rail, counter, increase) during the sweep, the greatest first."""
    rows = []
    for host, file in run.host_files("pairs", ".counters.json"):
        rails: dict[str, Any] = if_sound(file) or {}
        for rail, found in rails.items():
            risen = found.get("risen") if isinstance(found, Mapping) else None
            rows += [(host, str(rail), str(name), count) for name, count in (risen or {}).items() if isinstance(count, int) and count > 0]
    return sorted(rows, key=lambda row: -row[3])


def drift_lines(run: Run) -> list[dict[str, str]]:
    """Return the lines of drift.jsonl; a damaged one is left out."""
    file = run.folder.path / "drift.jsonl"
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else ():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict):
            found.append({key: str(data.get(key, "")) for key in ("host", "stage", "subject", "was", "should_be")})
    return found


@dataclass(frozen=True)
class ProofRow:
    """The proofs of one rail: (age in words, hosts, the run that measured them)."""

    rail: str
    ages: Sequence[tuple[str, int, str, str]]


def proofs(run: Run) -> tuple[list[ProofRow], int]:
    """Return the valid records by rail, oldest first, and how many are of later runs. Ages count from the begin of this run."""
    known = pairs_proofs.read(if_sound(run.folder.path / pairs_proofs.FILE))
    by_rail: dict[str, dict[str, list[tuple[float, str]]]] = {}
    later = 0
    hosts = set(run.hosts)
    for host, of in known.items():
        for rail, proof in of.items() if host in hosts else ():
            if proof.run > run.name:
                later += 1
            else:
                by_rail.setdefault(rail, {}).setdefault(proof.run, []).append((proof.measured, host))
    rows = []
    for rail, runs in sorted(by_rail.items()):
        ages = [
            (
                age_words(run.began - min(each)[0]) if name != run.name else "this run",
                len(each),
                names(sorted((host for _at, host in each), key=natural)),
                name,
            )
            for name, each in sorted(runs.items())
        ]
        rows.append(ProofRow(rail, ages[:20]))
    return rows, later


def age_words(seconds: float) -> str:
    """Return an age in hours, or in days above two."""
    hours = max(0.0, seconds) / SECONDS_PER_HOUR
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"


def time_words(seconds: float) -> str:
    """Return a time in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def commands(run: Run, plan: Mapping[str, Any] | None, found: Sequence[Collective]) -> list[tuple[str, str]]:
    """Return (what it reproduces, command line)."""
    stages = [stage for stage in run.stages if stage != "pairs"]
    lines = [("the gates, without measuring", "ansible-playbook rdma.cluster.validate")] if stages else []
    if plan:
        lines.append(("all pairs of this sweep", "ansible-playbook rdma.cluster.pairs -e rdma_measure=true"))
        suspects = list(dict.fromkeys(each.host for each in run.bad if each.stage == "pairs"))
        if 0 < len(suspects) <= 20:
            lines.append(
                (
                    "only the hosts with errors",
                    f"ansible-playbook rdma.cluster.pairs -l {shlex.quote(','.join(suspects))} -e rdma_measure=true",
                )
            )
        lines += _perftest(plan)
    if found:
        lines.append(("the collectives", "ansible-playbook rdma.cluster.collectives -e rdma_measure=true"))
        lines += [(f"{each.operation} on {each.hosts}", each.command) for each in found[:5] if each.command]
    lines.append(("this page", f"ansible-playbook rdma.cluster.report -e rdma_run={run.name}"))
    return lines


def _perftest(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the command lines of the first port's tests: the runner adds only the partner's address and the CPUs of the NUMA node."""
    rail = next((each for each in plan["rails"] if any(number is not None for number in each["profiles"])), None)
    if rail is None:
        return []
    profile = plan["profiles"][next(number for number in rail["profiles"] if number is not None)]
    lines = []
    for test in plan["tests"]:
        try:
            argv = perftest_argv(dict(test), dict(profile), int(plan.get("perftest_port", 18515)), "PARTNER")
        except (KeyError, ValueError, RuntimeError):
            continue
        lines.append((f"{test['name']} of one pair on {rail['name']}; first the same without PARTNER there", shlex.join(argv)))
    return lines


EVIDENCE = {
    "cards": ("measured, on cards", "The hosts of this run reported RDMA cards, and these results of perftest."),
    "software": (
        "measured, on software devices",
        "perftest measured Soft-RoCE devices. Such figures show that the path exists, and nothing about the rate of a product.",
    ),
    "mixed": ("measured, some on software devices", "Some rails are Soft-RoCE. Their figures show nothing about the rate of a product."),
    "unknown": (
        "measured, device unknown",
        "The facts of the measured ports are missing, so figures cannot be compared with an expectation.",
    ),
}


def evidence(kind: str, run: Run, plan: Mapping[str, Any] | None, found: Sequence[Collective]) -> list[tuple[str, str, str]]:
    """Return (figure, rung, explanation), from the strongest rung to what was not measured."""
    rows = []
    if plan:
        rung, words = EVIDENCE[kind]
        rows.append(
            (
                "bandwidth and latency of pairs",
                rung,
                f"{words} Source: pairs/HOST.jsonl. If another program wrote these files, such as a simulator, this page cannot detect it.",
            )
        )
    else:
        rows.append(
            ("bandwidth and latency of pairs", "not measured in this run", "Valid proofs of earlier runs count. See their age below.")
        )
    if found:
        rows.append(("busbw of collectives", "measured", "nccl-tests printed it. The runs are in collectives.json."))
    elif "collectives" in run.stages:
        rows.append(("busbw of collectives", "not measured in this run", "No run of nccl-tests is in the run folder."))
    rows += [
        (
            "expected bandwidth",
            "derived",
            "Computed from the negotiated rate, the MTU and the PCIe path of both ends. It is not a measurement.",
        ),
        (
            "state, versions, counters, affinity",
            "reported by hosts",
            "Read by the collection on each host. A host is trusted only about itself.",
        ),
        ("cabling", "reported by switches and hosts", "ibnetdiscover or LLDP reported it."),
    ]
    return rows
