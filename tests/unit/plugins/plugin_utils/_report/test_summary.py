# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run says to a person: whole texts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import names, with_command
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import (
    OFFENDERS,
    ROWS,
    WARNINGS,
    drift_table,
    offender_lines,
    render,
    stage_block,
    warning_lines,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import Withheld, WithheldGroup

STAGES = ("driver", "link", "network")
DECISION = "link gate: 1 of 2 hosts do not pass (50 %); policy stop allows 0 %. The build stops: node2."


def good(host: str, stage: str = "link", status: str = "ok") -> Finding:
    return Finding(stage, f"{stage}.state", host, "rail 0", status, "ACTIVE", "ACTIVE")


def bad(host: str, subject: str = "rail 0", status: str = "error", **more: Any) -> Finding:
    return Finding("link", "link.state", host, subject, status, "DOWN", "ACTIVE", **{"remedy": "Check the cable.", **more})


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
    assert stage_block("link", [good("node1", status="warning")], DECISION, 1.0) == "link            1 host       1 s  1 warning"


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


def test_a_plane_is_reported_beside_the_hosts() -> None:
    lines = stage_block("fabric", [good("node1", "fabric"), bad("plane default")], "x", 0.0).splitlines()
    assert lines[0] == "fabric          1 host       0 s  1 ok, plane default error"
    assert lines[1].startswith("  plane default, rail 0: ")


def test_an_offence_that_hosts_share_is_reported_once() -> None:
    findings = [bad(host) for host in nodes(7)]
    assert stage_block("link", findings, DECISION, 1.0).splitlines()[1:3] == [
        "  node1, node2, node3, node4, node5 and 2 more, rail 0: link.state is error (link stage)",
        "    seen:     DOWN",
    ]


def test_a_finding_on_the_host_itself_names_it_once() -> None:
    (line, *_rest) = offender_lines([Finding("fabric", "fabric.cabling", "node17", "node17", "error", "swapped", "as planned")])
    assert line == "  node17: fabric.cabling is error (fabric stage)"


def test_a_block_of_hosts_with_other_steps_says_whose_steps_it_prints() -> None:
    one, two = (
        Finding("link", "a.b", host, "s", "error", "x", "y", f"Remove line {line} for {host}.") for host, line in (("a", 1), ("b", 2))
    )
    (line,) = [line for line in offender_lines([one, two]) if " do: " in line]
    assert line == "    do:       Remove line 1 for a. (This is for a; findings.jsonl of the evidence has the steps of the others.)"
    like = Finding("link", "a.b", "c", "s", "error", "x", "y", "Remove line 1 for c.")
    assert "findings.jsonl" not in "\n".join(offender_lines([one, like]))


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


# Findings that follow from another one


def missing(host: str, check: str, stage: str, caused_by: str | None) -> Finding:
    status = "error" if caused_by is None else "unknown"
    return Finding(stage, check, host, "rail 0", status, "no RDMA device", "one", "Look in dmesg.", caused_by=caused_by)


CAUSE = "driver.device on rail 0"


def test_a_cause_is_printed_once_and_names_what_follows_from_it() -> None:
    findings = [
        each
        for host in ("node1", "node2")
        for each in (
            missing(host, "driver.device", "driver", None),
            missing(host, "link.state", "link", CAUSE),
            missing(host, "network.gid", "network", CAUSE),
        )
    ]
    text = render("R1", STAGES, findings, {}, "/e").split("\n\n")
    assert text[2].splitlines() == [
        "To fix:",
        "  node1, node2, rail 0: driver.device is error (driver stage)",
        "    seen:     no RDMA device",
        "    expected: one",
        "    do:       Look in dmesg.",
        "    also:     link.state, network.gid, which follow from it",
    ]
    # The table still counts them.
    assert text[1].splitlines()[1].split() == ["node1", "error", "unknown", "unknown"]


def test_hosts_with_other_symptoms_are_other_groups() -> None:
    findings = [missing(host, "driver.device", "driver", None) for host in ("node1", "node2")]
    findings.append(missing("node2", "link.state", "link", CAUSE))
    assert len([line for line in offender_lines(findings) if "driver.device is error" in line]) == 2


def test_what_follows_from_another_stage_is_one_line_and_not_hidden() -> None:
    lines = stage_block("link", [missing("node1", "link.state", "link", CAUSE)], DECISION, 1.0).splitlines()
    assert lines[0].endswith("1 unknown")
    assert lines[1:] == ["  node1: link.state follows from driver.device on rail 0, reported above", DECISION]


# Warnings


def warning(host: str, check: str = "pcie.width", subject: str = "rail 0", observed: str = "x8") -> Finding:
    return Finding("link", check, host, subject, "warning", observed, "x16", "Reseat the card.")


def test_warnings_are_grouped_over_hosts_and_subjects() -> None:
    findings = [
        warning("node1"),
        warning("node1", subject="rail 1"),
        warning("node2"),
        warning("node2", "link.flaps", observed="3 an hour"),
    ]
    assert warning_lines(findings) == [
        "Warnings: 4.",
        "  node1, node2, rail 0 and 1 more: pcie.width: x8 (expected: x16)",
        "    do:       Reseat the card.",
        "  node2, rail 0: link.flaps: 3 an hour (expected: x16)",
        "    do:       Reseat the card.",
    ]
    assert "Warnings: 4." in render("R1", STAGES, findings, {}, "/e")


def test_no_warning_no_line() -> None:
    assert warning_lines([good("node1"), bad("node1")]) == []
    assert warning_lines([Finding("link", "a.b", "node1", "s", "warning", "x", "y", silenced_by="ada")]) == []


def test_very_many_warnings_are_ten_lines_and_the_rest_is_counted() -> None:
    findings = [warning(f"node{number}", f"check.c{number}") for number in range(30)]
    lines = warning_lines(findings)
    assert lines[0] == "Warnings: 30. Each one's remedy is in findings.jsonl of the evidence."
    assert len(lines) == 1 + WARNINGS
    assert lines[-1] == "  and 21 more of 21 checks on node9, node10, node11, node12, node13 and 16 more"


def test_many_values_of_one_check_share_a_line() -> None:
    lines = warning_lines([warning(f"node{number}", observed=f"{number} an hour") for number in range(30)])
    assert lines[1:] == [
        "  node0, node1, node2, node3, node4 and 25 more, rail 0: pcie.width: 30 different ones, for example 0 an hour (expected: x16)",
        "    do:       Reseat the card.",
    ]


# Effects that are not allowed


def test_withheld_effects_name_hosts_reason_and_the_variable() -> None:
    groups = [
        WithheldGroup(
            "driver_switch", "driver", "MLNX_OFED 5.8 is installed", "driver_switch_allowed: true", ("node1", "node2"), ("ofed-a",)
        ),
        WithheldGroup("reboot", "driver", "the new driver loads at boot", "reboot_allowed: true", ("node1",), ()),
    ]
    assert render("R1", STAGES, [good("node1")], {}, "/e", withheld=groups).split("\n\n")[2].splitlines() == [
        "Not applied, because it is not allowed:",
        "  driver_switch on node1, node2: MLNX_OFED 5.8 is installed",
        "    changes:  ofed-a",
        "    allow:    driver_switch_allowed: true",
        "  reboot on node1: the new driver loads at boot",
        "    allow:    reboot_allowed: true",
    ]


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
            "Bad once, good when measured again:",
            "  node1, rail2: slow once",
            "",
            "To fix:",
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


def test_what_is_silenced_is_listed_separately_from_what_is_to_be_fixed() -> None:
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


EVIL = "DOWN\x1b]0;title\x07\x1b[2K\x1b[1A\rlink            3 hosts      1 s  3 ok\nlink            3 hosts      1 s  3 ok"
FORGED = "link            3 hosts      1 s  3 ok"


def prints(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_a_host_cannot_forge_a_line_of_a_stage() -> None:
    found = Finding("link", "link.state", "node1", EVIL, "error", EVIL, EVIL, f"1. Look at {EVIL}")
    for text in (stage_block("link", [found], "The build stops: node1.", 1.0), render("R1", ["link"], [found], {}, "/srv")):
        assert prints(text)
        assert not any(line.startswith(FORGED) for line in text.splitlines())
        assert text.count("\n              " + FORGED) == 6


def test_the_steps_of_a_remedy_stand_below_each_other() -> None:
    text = stage_block("link", [bad("node1", remedy="1. Look.\n2. Act.")], "The build stops.", 1.0)
    assert "    do:       1. Look.\n              2. Act.\n" in text


def test_a_reason_of_a_host_is_one_line() -> None:
    text = stage_block("link", [Finding("link", "link.state", "node1", "rail 0", "not_applicable", EVIL, "")], "", 1.0)
    assert len(text.splitlines()) == 1
    assert prints(text)


def test_what_hosts_say_beside_findings_is_clean() -> None:
    rail = {"rail": EVIL, "measured": 1, "planned": 1, "proven": 0, "ports": 2, "median_gbps": None, "median_usec": None}
    pairs = {"rails": [rail], "verdicts": [EVIL], "cleared": [EVIL]}
    withheld = Withheld(host="node1", effect="reboot", stage="host", reason=EVIL, touches=(EVIL,), allow="reboot_allowed: true")
    groups = [WithheldGroup("reboot", "host", withheld.reason, withheld.allow, (withheld.host,), withheld.touches)]
    text = render("R1", ["link"], [], pairs, "/srv", withheld=groups)
    assert prints(text)
    assert not any(line.strip().startswith(FORGED) for line in text.splitlines())
    changed = Difference("node1", "host", EVIL, EVIL, EVIL)
    table = drift_table([changed.to_dict()])
    assert prints(table)
    assert not any(line.startswith(FORGED) for line in table.splitlines())


def test_a_difference_is_cut() -> None:
    changed = Difference("node1", "host", "/etc/x", "x" * 50_000_000, "")
    assert len(changed.was) < 100_000
    assert changed.was.endswith("(cut, 50,000,000 characters)")
    assert Difference("node1", "host", "/etc/x", "\ta = 1\n\tb = 2", "").was == "\ta = 1\n\tb = 2"


@pytest.mark.parametrize(
    ("remedy", "hosts", "expected"),
    [
        (
            "Run the driver stage for node1 and read the error of apt or dnf.",
            ["node1"],
            "Run the driver stage for node1 (`ansible-playbook rdma.cluster.driver -l node1`) and read the error of apt or dnf.",
        ),
        (
            "1. Run the QoS stage for node1. 2. Look.",
            ["node1", "node2", "node1"],
            "1. Run the QoS stage for node1, node2 (`ansible-playbook rdma.cluster.qos -l node1,node2`). 2. Look.",
        ),
        (
            "Run the host stage for node1.",
            [f"node{number}" for number in range(1, 8)],
            "Run the host stage for node1, node2, node3, node4, node5 and 2 more (`ansible-playbook rdma.cluster.host`).",
        ),
        ("Run the link stage for the plane's subnet manager.", ["node1"], "Run the link stage for the plane's subnet manager."),
        ("Run the host stage for node1: `ansible-playbook x`.", ["node1"], "Run the host stage for node1: `ansible-playbook x`."),
        ("Check the cable.", ["node1"], "Check the cable."),
    ],
)
def test_a_remedy_that_runs_a_stage_has_the_command_line(remedy: str, hosts: list[str], expected: str) -> None:
    assert with_command(remedy, "node1", hosts) == expected


def test_the_drift_of_each_host_is_together_in_the_order_of_hosts() -> None:
    lines = [
        {"host": host, "stage": stage, "subject": "file", "was": "", "should_be": "x"}
        for host, stage in (("node10", "driver"), ("node2", "driver"), ("node10", "host"), ("node2", "host"))
    ]
    rows = [line.split()[:2] for line in drift_table(lines).splitlines()[2:]]
    assert rows == [["node2", "driver"], ["node2", "host"], ["node10", "driver"], ["node10", "host"]]
