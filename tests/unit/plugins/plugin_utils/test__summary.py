# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run says to a person: whole texts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._summary import OFFENDERS, ROWS, drift_table, names, render, stage_block

STAGES = ("driver", "link", "network")
DECISION = "link gate: 1 of 2 hosts do not pass (50 %); policy stop allows 0 %. The build stops: node2."


def good(host: str, stage: str = "link", status: str = "ok") -> Finding:
    return Finding(stage, f"{stage}.state", host, "rail 0", status, "ACTIVE", "ACTIVE")


def bad(host: str, subject: str = "rail 0", status: str = "error", **more: Any) -> Finding:
    return Finding("link", "link.state", host, subject, status, "DOWN", "ACTIVE", "Check the cable.", **more)


def nodes(count: int) -> list[str]:
    return [f"node{number}" for number in range(1, count + 1)]


# A stage that has ended


def test_a_good_stage_is_one_line() -> None:
    findings = [good("node1"), good("node1"), good("node2")]
    assert stage_block("link", findings, "link gate: all 2 hosts pass.", 3.6) == "link            2 hosts      4 s  2 ok"


def test_a_bad_stage_names_its_offenders_and_what_was_decided() -> None:
    assert stage_block("link", [good("node1"), good("node2"), bad("node2")], DECISION, 61.2) == "\n".join(
        [
            "link            2 hosts     61 s  1 ok, 1 error",
            "  node2, rail 0: link.state is error (link stage)",
            "    seen:     DOWN",
            "    expected: ACTIVE",
            "    do:       Check the cable.",
            DECISION,
        ]
    )


def test_the_worst_of_a_host_counts() -> None:
    findings = [bad("node1", status="unknown"), good("node1"), good("node2", status="warning"), good("node2"), good("node3", "link", "ok")]
    assert stage_block("link", findings, "x", 0.0).splitlines()[0] == "link            3 hosts      0 s  1 ok, 1 warning, 1 unknown"


def test_a_warning_is_counted_and_stops_nothing() -> None:
    assert stage_block("link", [good("node1", status="warning")], DECISION, 1.0) == "link            1 hosts      1 s  1 warning"


def not_applicable(host: str, why: str) -> Finding:
    return Finding("fabric", "fabric.graph", host, "host", "not_applicable", why, "the planned graph")


def test_a_stage_that_is_not_applicable_says_why_once() -> None:
    findings = [not_applicable(host, "no rail on a fabric") for host in nodes(2)]
    expected = "fabric          2 hosts      0 s  2 not applicable: no rail on a fabric"
    assert stage_block("fabric", findings, "all pass", 0.0) == expected


@pytest.mark.parametrize("other", [not_applicable("node2", "InfiniBand"), good("node2", "fabric")])
def test_where_hosts_are_not_all_alike_no_reason_is_given_for_all(other: Finding) -> None:
    text = stage_block("fabric", [not_applicable("node1", "no rail on a fabric"), other], "x", 0.0)
    assert text.startswith("fabric          2 hosts      0 s  ")
    assert "no rail" not in text


def test_a_plane_is_told_beside_the_hosts() -> None:
    lines = stage_block("fabric", [good("node1", "fabric"), bad("plane default")], "x", 0.0).splitlines()
    assert lines[0] == "fabric          1 hosts      0 s  1 ok, plane default error"
    assert lines[1].startswith("  plane default, rail 0: ")


def test_an_offence_that_hosts_share_is_told_once() -> None:
    findings = [bad(host) for host in nodes(7)]
    assert stage_block("link", findings, DECISION, 1.0).splitlines()[1:3] == [
        "  node1, node2, node3, node4, node5 and 2 more, rail 0: link.state is error (link stage)",
        "    seen:     DOWN",
    ]


def test_a_silenced_offence_stops_nothing() -> None:
    assert stage_block("link", [bad("node1", silenced_by="ada")], DECISION, 1.0).count("\n") == 0


def test_very_many_offences_are_cut() -> None:
    findings = [bad("node1", f"rail {number}") for number in range(OFFENDERS + 3)]
    lines = stage_block("link", findings, DECISION, 1.0).splitlines()
    assert len(lines) == 1 + 4 * OFFENDERS + 1 + 1
    assert lines[-2:] == ["  and 3 more, in findings.jsonl of the evidence", DECISION]


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["b", "a", "b"], "b, a"),
        (list("abcde"), "a, b, c, d, e"),
        (list("abcdef"), "a, b, c, d, e and 1 more"),
        (list("abcdefg") * 2, "a, b, c, d, e and 2 more"),
    ],
)
def test_the_names_of_hosts(hosts: list[str], expected: str) -> None:
    assert names(hosts) == expected


# The end of a run

FINDINGS = [good("node1", "driver"), good("node22", "driver"), bad("node22")]


def rail(name: str, measured: int, planned: int, proven: int, *gbps: float, usec: float | None = None) -> dict[str, Any]:
    """gbps: median, lowest, highest."""
    median, lowest, highest = gbps or (None, None, None)
    figures = {"median_gbps": median, "lowest_gbps": lowest, "highest_gbps": highest, "median_usec": usec}
    return {"rail": name, "measured": measured, "planned": planned, "ports": 3, "proven": proven, **figures}


def test_the_whole_text_with_pairs() -> None:
    rails = [rail("rail0", 2, 3, 0, 0.3, 0.2, 0.4, usec=1.52), rail("rail1", 0, 0, 3), rail("rail2", 1, 1, 1, 0.3, 0.3, 0.3)]
    pairs = {"rails": rails, "verdicts": ["node22, rail0: slow"], "cleared": ["node1, rail2: slow once"]}
    assert render("R1", STAGES, FINDINGS, pairs, "/e/R1") == "\n".join(
        [
            "RDMA cluster, run R1",
            "",
            "host    driver  link   network",
            "node1   ok      -      -",
            "node22  ok      error  -",
            "",
            "rail0: 2 of 3 pairs measured, median 0.3 Gb/s (lowest 0.2, highest 0.4), latency 1.52 µs",
            "rail1: no pair measured, 3 of 3 ports proven before",
            "rail2: 1 of 1 pairs measured, 1 of 3 ports proven before, median 0.3 Gb/s (lowest 0.3, highest 0.3)",
            "To blame:",
            "  node22, rail0: slow",
            "Bad once, well when measured again:",
            "  node1, rail2: slow once",
            "",
            "To be mended:",
            "  node22, rail 0: link.state is error (link stage)",
            "    seen:     DOWN",
            "    expected: ACTIVE",
            "    do:       Check the cable.",
            "",
            "Evidence: /e/R1",
        ]
    )


def test_the_whole_text_without_pairs_and_offences() -> None:
    findings = [good("node1"), not_applicable("node1", "why")]
    assert render("R1", ("link", "fabric", "network"), findings, {}, "/e/R1") == "\n".join(
        ["RDMA cluster, run R1", "", "host   link  fabric  network", "node1  ok    n/a     -", "", "Evidence: /e/R1"]
    )


def test_pairs_of_which_none_was_measured_have_no_median() -> None:
    pairs = {"rails": [rail("rail0", 0, 2, 0)], "verdicts": [], "cleared": []}
    assert "\nrail0: 0 of 2 pairs measured\n" in render("R1", STAGES, FINDINGS, pairs, "/e")


def test_what_is_silenced_is_told_apart_from_what_is_to_be_mended() -> None:
    text = render("R1", STAGES, [bad("node1", silenced_by="ada until 2999-12-31: cable ordered")], {}, "/e")
    assert text.split("\n\n")[2:] == ["Silenced:\n  node1, rail 0: link.state, by ada until 2999-12-31: cable ordered", "Evidence: /e"]


def table(findings: list[Finding]) -> list[str]:
    return render("R1", STAGES, findings, {}, "/e").split("\n\n")[1].splitlines()


def test_up_to_a_screen_of_hosts_has_a_row_each() -> None:
    assert len(table([good(host) for host in nodes(ROWS)])) == 1 + ROWS


def test_more_hosts_share_rows_and_the_rarest_come_first() -> None:
    hosts = nodes(ROWS + 8)
    findings = [good(host, "driver") for host in hosts] + [good(host) for host in hosts[:-9]]
    findings += [bad(host) for host in hosts[-9:-1]] + [bad(hosts[-1], status="unknown")]
    assert table(findings) == [
        "host                                               driver  link     network",
        "node40                                             ok      unknown  -",
        "node32, node33, node34, node35, node36 and 3 more  ok      error    -",
        "node1, node2, node3, node4, node5 and 26 more      ok      ok       -",
    ]


# Drift


def line(subject: str, was: str, should_be: str, host: str = "node1") -> dict[str, str]:
    return {"host": host, "stage": "network", "subject": subject, "was": was, "should_be": should_be}


def test_no_drift() -> None:
    assert drift_table([]) == "Drift: none."


def test_every_difference_is_one_aligned_line() -> None:
    lines = [line("ens1", "MTU 1500 bytes", "MTU 9000 bytes"), line("/etc/nccl.conf", "", "A=1\n\n  B=2\n", "node22")]
    assert drift_table(lines) == "\n".join(
        [
            "Drift: 2 differences",
            "host    stage    subject         was             should be",
            "node1   network  ens1            MTU 1500 bytes  MTU 9000 bytes",
            "node22  network  /etc/nccl.conf  -               A=1 | B=2",
        ]
    )


@pytest.mark.parametrize(("length", "shown"), [(60, "x" * 60), (61, "x" * 59 + "…")])
def test_a_long_difference_is_cut(length: int, shown: str) -> None:
    assert drift_table([line("f", "", "x" * length)]).splitlines()[-1].split()[-1] == shown
