# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""report.html: its verdict, structure, escaping and bytes. A browser is not needed; docs/report.md has what was seen in one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.parse import parse_nccl_tests
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html import report as report_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report import report_of, write_safely
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.verdict import verdict_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import under_way
from tests.bench import fleet
from tests.bench.report import DEAD, GBPS, RUN, SLOW, write

ROOT = Path(__file__).parents[6]
HOSTS = 12
VOID = frozenset(("meta", "link", "img", "br", "rect", "line", "circle", "polyline"))
EVIL = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='x", "</script><script>alert(2)</script>",
    "\u202eevil\u2066", "{{ 7 * 7 }}", "&lt;b&gt;", "a" * 200, "\x1b[31mred", "]]><!--",
]  # fmt: skip


class Page(HTMLParser):
    """The tags of a page. Raises AssertionError if they are not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _value in attrs}) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text_of(self, tag: str) -> str:
        return "".join(text for place, text in self.texts if place == tag)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one run of HOSTS hosts: a slow port and a dead one."""
    base = tmp_path_factory.mktemp("runs")
    write(base, HOSTS)
    return base


def page_of(base: Path, run: str = RUN) -> Page:
    return Page(report_of(base, run).read_text(encoding="utf-8"))


def small(base: Path, findings: list[Finding], *, run: str = RUN, summary: dict[str, Any] | None = None) -> Run:
    folder = RunFolder(base / run)
    folder.path.mkdir(parents=True, exist_ok=True)
    by_place: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        by_place.setdefault((each.stage, each.host), []).append(each)
    for (stage, host), found in by_place.items():
        folder.write_findings(stage, host, found)
    if summary is not None:
        folder.write_json("summary.json", {"run": run, "check_mode": False, "failed": [], "unreachable": [], **summary})
    return Run(folder)


def finding(status: str = "ok", host: str = "node1", stage: str = "link", observed: str = "seen") -> Finding:
    return Finding(stage, f"{stage}.check", host, "rail 0", status, observed, "expected", "Look.")


# The verdict


def test_a_clean_run_is_good(tmp_path: Path) -> None:
    verdict = verdict_of(small(tmp_path, [finding()], summary={"outcome": "clean"}))
    assert (verdict.kind, verdict.headline) == ("good", "Good: 1 host passed all gates of this run")


@pytest.mark.parametrize("status", ["ok", "warning", "error"])
def test_a_killed_run_is_partial_and_never_good(tmp_path: Path, status: str) -> None:
    verdict = verdict_of(small(tmp_path, [finding(status), under_way("pairs", "node3"), under_way("pairs", "node12")]))
    assert (verdict.kind, verdict.headline) == ("partial", "Partial: stopped in pairs at node3, node12")
    page = page_of(tmp_path)
    assert "Partial: stopped in pairs at node3, node12" in page.text_of("h1")
    assert not any("v-good" in str(each.get("class")) for each in page.all("div"))


def test_a_run_that_was_killed_between_stages_is_partial(tmp_path: Path) -> None:
    assert verdict_of(small(tmp_path, [finding()])).headline == "Partial: stopped after link"


@pytest.mark.parametrize(
    ("findings", "summary", "kind"),
    [
        ([finding("error")], {"outcome": "failed"}, "bad"),
        ([finding("unknown")], {"outcome": "failed"}, "bad"),
        ([finding()], {"outcome": "failed", "failed": ["node1"]}, "bad"),
        ([finding()], {"outcome": "unreachable", "unreachable": ["node2"]}, "bad"),
        ([finding()], {"outcome": "drifted", "drift": 3}, "bad"),
        ([], {"outcome": "clean"}, "nothing"),
        ([finding("not_applicable")], {"outcome": "clean"}, "nothing"),
    ],
)
def test_only_judged_hosts_without_error_are_good(tmp_path: Path, findings: list[Finding], summary: dict[str, Any], kind: str) -> None:
    assert verdict_of(small(tmp_path, findings, summary=summary)).kind == kind


def test_the_verdict_names_what_stops_and_who_is_to_blame(tmp_path: Path) -> None:
    run = small(tmp_path, [finding("error", observed="2 lanes"), finding(host="node2")], summary={"outcome": "failed"})
    run.folder.write_json("gates/link.json", {"stops": True})
    verdict = verdict_of(run)
    assert (verdict.headline, verdict.stops) == ("Not good: 1 error on 1 host or plane", "The gate of the link stage stops the build.")
    assert verdict.blame == ["node1, rail 0: 2 lanes"]


# The page


def test_the_page_is_whole_and_reachable(large: Path) -> None:
    page = page_of(large)
    ids = [str(attributes["id"]) for _tag, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {str(each["href"])[1:] for each in page.all("a")} <= set(ids)
    assert [attributes.get("lang") for attributes in page.all("html")] == ["en"]
    assert len(page.all("h1")) == 1
    assert len(page.all("main")) == 1
    assert page.all("a")[0]["class"] == "skip"
    assert page.all("table")
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
    assert all(each.get("alt") for each in page.all("img"))
    order = [str(each["id"]) for each in page.all("h2")]
    assert order == [
        "gates", "findings", "pairs", "distribution", "fabric", "collectives", "affinity", "counters", "drift", "changes", "history",
        "proofs", "versions", "commands", "evidence",
    ]  # fmt: skip


def test_the_page_makes_no_request(large: Path) -> None:
    text = report_of(large, RUN).read_text(encoding="utf-8")
    page = Page(text)
    for _tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert re.match(r"#|data:", str(attributes.get(name, "#"))), attributes
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", text)
    policy = next(str(each["content"]) for each in page.all("meta") if each.get("http-equiv"))
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("script", "style"):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert len(found) == 1
        assert f"sha256-{base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()}" in policy


def test_the_bytes_are_the_same_for_the_same_run(large: Path) -> None:
    first = report_of(large, RUN).read_bytes()
    # In another process the order of sets is another one.
    room = "ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report"
    code = f"import sys, {room} as report; from pathlib import Path; report.report_of(Path(sys.argv[1]), sys.argv[2])"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path), "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", code, str(large), RUN], check=True, env=environment)
    assert (large / RUN / "report.html").read_bytes() == first


def test_the_heat_map_has_each_result(large: Path) -> None:
    data = json.loads(page_of(large).text_of("script").split('"use strict"', maxsplit=1)[0])
    plan = json.loads((large / RUN / "pairs/plan.json").read_text())
    assert data["hosts"] == plan["hosts"]
    rails = {rail["name"]: rail for rail in data["rails"]}
    seen = 0
    for host in plan["hosts"]:
        for line in (large / RUN / f"pairs/{host}.jsonl").read_text().splitlines():
            rail, _round, server, client, test, _role, value, *_rest = json.loads(line)
            each, cell = rails[f"rail{rail}"], client * HOSTS + server
            two = base64.b64decode(each["gbps_grid"])[2 * cell : 2 * cell + 2]
            step = int.from_bytes(two, "little")
            if test == 0 and value is None:
                assert step == 1
            elif test == 0:
                assert (step - 3) * each["gbps_step"] == pytest.approx(value, abs=0.006)
            else:
                code = base64.b64decode(each["usec_grid"])[cell]
                assert each["usec_low"] * each["usec_factor"] ** (code - 3) == pytest.approx(value, rel=0.01)
            seen += 1
    assert seen == HOSTS * (HOSTS - 1) // 2 * 8 * 2 - (HOSTS - 1)
    failed = [row for row in data["raw"] if row[0] == DEAD[1]]
    assert len(failed) == len(data["raw"]) == HOSTS - 1
    assert failed[0][3:] == ["retry_exceeded", "Failed status 12"]


def test_the_slow_port_is_in_the_tables(large: Path) -> None:
    text = report_of(large, RUN).read_text(encoding="utf-8")
    slow = fleet.name(SLOW[0] + 1)
    row = re.search(rf'<th scope="row">{slow}</th>(?:<td>[^<]*</td>)+', text)
    assert row is not None
    shares = [float(each.removesuffix(" %")) for each in re.findall(r"<td>([\d.]+ %)</td>", row[0])]
    assert shares[SLOW[1]] == pytest.approx(100 * 0.6 * GBPS / 392, abs=5)
    assert min(share for rail, share in enumerate(shares) if rail != SLOW[1]) > 90


def test_collectives_of_a_real_machine_and_affinity(large: Path, tmp_path: Path) -> None:
    """busbw as nccl-tests printed it on two H200, and made-up distances."""
    base = tmp_path / "runs"
    shutil.copytree(large, base)
    printed = (ROOT / "tests/unit/fixtures/h200/all_reduce_perf.txt").read_text(encoding="utf-8")
    rows = [(row.size_bytes, row.out_of_place.busbw_gbytes_per_s) for row in parse_nccl_tests(printed).rows if row.out_of_place]
    run = {
        "operation": "all_reduce_perf",
        "hosts": [fleet.name(1)],
        "status": "ok",
        "gbytes_per_s": rows[-1][1],
        "expected_gbytes_per_s": None,
        "sizes": rows,
        "argv": ["all_reduce_perf", "-g", "2"],
    }
    RunFolder(base / RUN).write_json("collectives.json", {"runs": [run]})
    file = base / RUN / "facts" / f"{fleet.name(1)}.json"
    near = {"0000:1b:00.0": {"mlx5_0": "PIX", "mlx5_1": "SYS"}, "0000:43:00.0": {"mlx5_0": "NODE", "mlx5_1": "PXB"}}
    file.write_text(json.dumps({**json.loads(file.read_text()), "distances": near}))
    text = report_of(base, RUN).read_text(encoding="utf-8")
    Page(text)
    assert len(rows) > 5
    assert all(f"{rate:.4g}" in text for _size, rate in rows)
    part = text[text.index('<h2 id="affinity">') :]
    table = part[: part.index("</table>")]
    assert re.findall(r"<t[hd][^>]*>([^<]+)</t[hd]>", table) == [
        *("GPU", "mlx5_0", "mlx5_1", "0000:1b:00.0", "PIX", "SYS", "0000:43:00.0", "NODE", "PXB")
    ]


@pytest.mark.parametrize("evil", EVIL)
def test_texts_of_hosts_stay_texts(tmp_path: Path, evil: str) -> None:
    base = tmp_path / "runs"
    folder = write(base, 7)
    host = f"node{evil}"
    folder.write_findings("link", host, [Finding("link", "link.check", host, evil, "error", evil, evil, evil)])
    folder.write_findings("host", host, [Finding("host", "host.check", host, evil, "warning", evil, evil, evil, silenced_by=evil)])
    facts = folder.read_json("facts/gpu0001.json")
    facts["stack"]["kernel"] = evil
    facts["distances"] = {evil: {evil: evil}}
    folder.write_json(folder.host_file("facts", host), facts)
    folder.append("drift.jsonl", {"host": host, "stage": evil, "subject": evil, "was": evil, "should_be": evil})
    run = {"operation": evil, "hosts": [host], "status": evil, "gbytes_per_s": 1.0, "argv": [evil], "findings": []}
    folder.write_json("collectives.json", {"schema": 1, "runs": [run], "blames": [{"words": evil}], "problem": evil})
    folder.write_json("pairs/summary.json", {"verdicts": [evil], "cleared": [evil], "rails": []})
    plan = json.loads((folder.path / "pairs/plan.json").read_text())
    results = folder.path / "pairs/gpu0001.jsonl"
    results.rename(folder.path / folder.host_file("pairs", host, ".jsonl"))
    folder.write_json("pairs/plan.json", {**plan, "hosts": [host, *plan["hosts"][1:]]})
    plain = page_of(large_copy(tmp_path))
    text = report_of(base, RUN).read_text(encoding="utf-8")
    page = Page(text)
    assert {tag for tag, _attributes in page.tags} <= {tag for tag, _attributes in plain.tags} | {
        "details",
        "summary",
        "article",
        "ul",
        "li",
    }
    assert len(page.all("script")) == 2
    assert not any(name.startswith("on") for _tag, attributes in page.tags for name in attributes)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", text)
    assert "49" not in page.text_of("h3")
    json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[0])


def large_copy(tmp_path: Path) -> Path:
    base = tmp_path / "plain"
    write(base, 7)
    return base


# What must not fail a run


def test_damaged_files_do_not_stop_the_report(large: Path, tmp_path: Path) -> None:
    base = tmp_path / "runs"
    shutil.copytree(large, base)
    for name in (
        "facts/gpu0001.json",
        "pairs/summary.json",
        "collectives.json",
        "fabric.json",
        "pairs/gpu0002.counters.json",
        "drift.jsonl",
    ):
        (base / RUN / name).parent.mkdir(exist_ok=True)
        (base / RUN / name).write_text('{"cut')
    (base / RUN / "facts/gpu0003.json").write_text('{"schema": 1, "devices": {"mlx5_0": 7}}')
    with (base / "history.jsonl").open("a") as stream:
        stream.write('{"cut\n[1]\n{"schema": 99}\n')
    assert "the file is damaged" in page_of(base).text_of("td")


def test_an_error_is_a_reason_and_no_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small(tmp_path, [finding()], summary={"outcome": "clean"})

    def fail(*_arguments: object) -> None:
        raise RuntimeError("broken\x1b[31m")

    monkeypatch.setattr(report_file, "verdict_of", fail)
    assert write_safely(run.folder) == (None, "RuntimeError: broken?[31m")


def test_a_run_that_is_not_there_is_named_with_the_newest(tmp_path: Path) -> None:
    small(tmp_path, [finding()])
    with pytest.raises(ReportError, match=rf"has no run '\.\./etc'\. The newest runs are {RUN}\."):
        report_of(tmp_path, "../etc")


# Two runs

LATER = "20261127T120000Z-2"


#: With 17 pairs a port, the sign test of its 144 ports can reach the level of significance.
COMPARED = 18


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("compared")
    write(base, COMPARED)
    return base


@pytest.fixture
def two(once: Path, tmp_path: Path) -> Path:
    """A run and the same a day later: every result differs by 0.1 %, and those of one port by 10 %."""
    base = tmp_path / "runs"
    shutil.copytree(once, base)
    shutil.copytree(base / RUN, base / LATER)
    slow = {(rail, server, client) for rail in (4,) for server in range(COMPARED) for client in range(COMPARED) if 7 in (server, client)}
    for file in (base / LATER / "pairs").glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for number, row in enumerate(rows):
            if row[4] == 0 and row[6] is not None:
                row[6] = round(row[6] * (1 + 0.001 * (-1) ** number) * (0.9 if (row[0], row[2], row[3]) in slow else 1), 2)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return base


def test_the_comparison_names_the_port_that_changed(two: Path) -> None:
    path = report_of(two, LATER, RUN)
    assert path.name == f"report-vs-{RUN}.html"
    text = path.read_text(encoding="utf-8")
    Page(text)
    table = re.search(r"<caption>Ports that changed</caption>.*?</table>", text, re.S)
    assert table is not None
    assert re.findall(r'<th scope="row">([^<]+)</th>', table[0]) == [f"{fleet.name(8)}, rail4"]
    pairs = re.search(r"<caption>Pairs that changed significantly</caption>.*?</table>", text, re.S)
    assert pairs is not None
    rows = re.findall(r'<th scope="row">([^<]+)</th>', pairs[0])
    assert len(rows) == COMPARED - 1
    assert all(fleet.name(8) in row and row.endswith(", rail4") for row in rows)


def test_results_of_another_schema_are_refused(two: Path) -> None:
    file = two / RUN / "pairs/plan.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 1}))
    with pytest.raises(
        ReportError, match=rf"Run {RUN} cannot be compared: the results of pairs have schema 1, and this version reads schema 2"
    ):
        report_of(two, LATER, RUN)


def test_a_summary_of_another_schema_is_refused(two: Path) -> None:
    (two / RUN / "summary.json").write_text('{"schema": 9}')
    with pytest.raises(ReportError, match=rf"Run {RUN} has a summary of schema 9, and this version of rdma.cluster reads schema 1"):
        report_of(two, LATER, RUN)


def test_facts_of_another_schema_are_refused(two: Path) -> None:
    for file in (two / RUN / "facts").glob("*.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 0}))
    with pytest.raises(ReportError, match="has facts of schema 0"):
        report_of(two, LATER, RUN)


def test_a_run_is_not_compared_with_itself(large: Path) -> None:
    with pytest.raises(ReportError, match="are the same run"):
        report_of(large, RUN, RUN)
