# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host says of itself, changed in one place at a time: it makes that host unknown, and no other."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.gate import CollectiveGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import CollectivePlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable, digest
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import (
    LONGEST_TEXT,
    MOST_ENTRIES,
    FactsError,
    admitted,
    facts_finding,
    place_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.intents import check_fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS, compared
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS, host_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.gate import PairGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders import blind_hosts, blind_trees

HOSTS = ("node1", "node2", "node3", "node4")
#: The host whose facts are changed.
ODD = "node2"
REMOVED = object()
#: What stands in the place of one value. The last are control characters, and a text of 10 MB.
VALUES: tuple[Any, ...] = (
    REMOVED, None, True, 0, -1, 2**63, 10**30, 1e308, float("nan"), float("inf"), -0.5, "", "x", "1.5",
    [], {}, [None], ["x"], [[]], {"x": None}, {"x": "y"}, "\x1b[2K\x1b]0;x\x07\x00\n{{ 1 }}", "x" * 10_000_000,
)  # fmt: skip
#: How many changes a run of the tests makes.
EXAMPLES = int(os.environ.get("RDMA_TEST_MUTATIONS", "450"))
BriefFindings = dict[str, list[tuple[str, str, str]]]


@dataclass
class Figures:
    calls: int = 0
    refused: int = 0
    slowest_seconds: float = 0.0
    slowest: str = ""


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values and subtrees."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(tree: Mapping[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(dict(tree))
    node: Any = result
    for key in path[:-1]:
        node = node[key]
    if value is REMOVED:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return result


class Cluster:
    """Four hosts of one kind in a run's folder, of which one is changed."""

    def __init__(self, folder: Path, host: blind_hosts.Host) -> None:
        self.raw: dict[str, Any] = json.loads(json.dumps(blind_hosts.read(host).facts))
        self.between = self.raw["time"].pop("between_seconds")
        self.intent = normalize(host.variables)
        self.folder = RunFolder(folder)
        self.write(self.raw)
        for name in HOSTS:
            self.folder.write_json(f"intent/{name}.json", self.intent)
            for stage in (*FLEET_CHECKS, "fabric", "pairs", "collectives"):
                self.folder.write_findings(stage, name, [])
        self.usual = self.gates()
        assert all(name in of for of in self.usual.values() for name in HOSTS)

    def write(self, tree: Mapping[str, Any]) -> None:
        """What observe stores of each host; tree: of ODD."""
        for name in HOSTS:
            kept = copy.deepcopy(dict(tree if name == ODD else self.raw))
            if kept["time"]:
                kept["time"]["between_seconds"] = self.between
            self.folder.write_json(f"facts/{name}.json", {**kept, "since": None, "reached_at": "192.0.2.1"})

    def gates(self) -> dict[str, BriefFindings]:
        """Stage → host → what its gate says, of comparing hosts and of each alone."""
        answer = {
            stage: _brief(compared(stage, known_hosts(self.folder, self.folder.hosts_of(stage)), self.folder)) for stage in FLEET_CHECKS
        }
        known = measurable_hosts(self.folder, self.folder.hosts_of("pairs"))
        fleet = Fleet.of(known)
        answer["fabric"] = _brief(FabricGate(self.folder, known, "run", lambda _name: "").judge().hosts)
        answer["pairs"] = _brief(PairGate(self.folder, fleet, {}, self.intent["pairs"], 168.0, False, 0.0, len(HOSTS), []).judge())
        answer["collectives"] = _brief(CollectiveGate(self.folder, CollectivePlan(fleet, {}, 0.0, 168.0), False, len(HOSTS)).judge())
        for each in ("fabric", "pairs", "collectives"):
            for host, known_host in known.items():
                if known_host.problem:
                    answer[each].setdefault(host, []).append(_key(facts_finding(each, host, known_host.problem)))
        for stage in HOST_CHECKS:
            intent = {**self.intent, "allowed": {}}
            of = {name: host_findings(stage, name, intent, self.folder.read_json(f"facts/{name}.json")) for name in HOSTS}
            answer[f"{stage} of a host"] = _brief(of)
        return answer

    def try_one(self, path: Sequence[Any], value: Any, figures: Figures) -> None:
        begun = time.monotonic()
        figures.calls += 1
        try:
            tree = admitted(changed(self.raw, path, value))
        except FactsError as error:
            problem = str(error)
        else:
            problem = ""
        self._note(begun, path, figures)
        if problem:
            figures.refused += 1
            assert len(problem) < 400
            assert problem.isprintable()
            return
        digest(tree)
        comparable(tree)
        self.write(tree)
        answer = self.gates()
        self._note(begun, path, figures)
        for stage, of in answer.items():
            for name in HOSTS:
                if name != ODD:
                    assert of[name] == self.usual[stage][name], (path, value, stage, name)
            # Of the host itself no check that was well vanishes without a word.
            mine = of.get(ODD, [])
            silent = {check for check, _subject, status in self.usual[stage][ODD] if status == OK} - {check for check, *_rest in mine}
            assert not silent or any(status in (ERROR, UNKNOWN) for *_rest, status in mine), (path, value, stage, silent)

    @staticmethod
    def _note(begun: float, path: Sequence[Any], figures: Figures) -> None:
        seconds = time.monotonic() - begun
        if seconds > figures.slowest_seconds:
            figures.slowest_seconds, figures.slowest = seconds, ".".join(map(str, path))


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.check, finding.subject, finding.status


def _brief(found: Mapping[str, Sequence[Finding]]) -> BriefFindings:
    return {host: [_key(each) for each in findings] for host, findings in found.items()}


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cluster]:
    trees = tmp_path_factory.mktemp("trees")
    return {name: Cluster(tmp_path_factory.mktemp(name), host) for name, host in blind_trees.hosts(trees).items()}


def test_one_host_that_makes_no_sense_is_unknown_and_no_other(clusters: dict[str, Cluster], capsys: pytest.CaptureFixture[str]) -> None:
    """RDMA_TEST_EXAMPLES=new draws others."""
    seed = random.SystemRandom().randrange(10**9) if os.environ.get("RDMA_TEST_EXAMPLES") == "new" else 7
    drawn = random.Random(seed)
    figures, begun = Figures(), time.monotonic()
    for cluster in clusters.values():
        cases = [(path, value) for path in places(cluster.raw) for value in VALUES]
        for path, value in drawn.sample(cases, EXAMPLES // len(clusters)):
            cluster.try_one(path, value, figures)
    with capsys.disabled():
        print(
            f"\n  {figures.calls} changes (seed {seed}) in {time.monotonic() - begun:.1f} s: {figures.refused} refused at "
            f"the door; slowest {figures.slowest_seconds:.2f} s: {figures.slowest}"
        )
    assert figures.calls == EXAMPLES // len(clusters) * len(clusters)
    # Both ways are taken: values that are refused at the door, and values that the gates have to bear.
    assert EXAMPLES / 2 < figures.refused < 0.95 * EXAMPLES


def test_what_the_reader_makes_is_admitted_as_it_is(clusters: dict[str, Cluster]) -> None:
    for cluster in clusters.values():
        assert admitted(cluster.raw) == cluster.raw
        assert admitted({**cluster.raw, "since": {}, "rdma_intent": {}}) == cluster.raw


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("schema",), 99, "schema: expected 1, got 99"),
        (("schema",), True, "schema: expected 1, got True"),
        (("boot",), REMOVED, "boot: missing"),
        (("boot", "hostname"), 5, "boot.hostname: expected text, got 5"),
        (
            ("boot", "hostname"),
            "x" * (LONGEST_TEXT + 1),
            f"boot.hostname: expected at most {LONGEST_TEXT} characters, got {LONGEST_TEXT + 1}",
        ),
        (("boot", "uptime_seconds"), float("nan"), "boot.uptime_seconds: expected a finite number, got nan"),
        (("memory", "total_bytes"), 10**30, "memory.total_bytes: expected a number of 64 bits"),
        (("devices", "mlx5_0", "ports", "1", "netdev"), REMOVED, "devices.mlx5_0.ports.1.netdev: missing"),
        (("devices", "mlx5_0", "pci", "address"), "../..", "devices.mlx5_0.pci.address: expected a PCI address, got '../..'"),
        (("netdevs", "ens1np0", "ipv4"), ["x\x1b"], "netdevs.ens1np0.ipv4: expected an IPv4 address, got 'x\\x1b'"),
        (("gpus",), {}, "gpus: expected a list, got a dictionary of 0"),
        (("units",), {str(each): None for each in range(MOST_ENTRIES + 1)}, f"units: expected at most {MOST_ENTRIES} entries"),
        (("qos", "ens1np0", "dscp_to_priority"), {"x": 1}, "qos.ens1np0.dscp_to_priority: expected integers as names, got 'x'"),
        (("files", "/etc/nccl.conf", "sha256"), None, "files./etc/nccl.conf.sha256: expected text, got None"),
        (("firmware", "0000:3d:00.0", "settings", "NUM_OF_VFS"), "8", "firmware.0000:3d:00.0.settings.NUM_OF_VFS: expected a dictionary"),
        (("devices", "\x1b]0;x"), None, "'devices.\\x1b]0;x': expected a dictionary, got None"),
    ],
)
def test_what_is_refused_is_named(clusters: dict[str, Cluster], path: tuple[str, ...], value: Any, words: str) -> None:
    with pytest.raises(FactsError) as refused:
        admitted(changed(clusters["roce"].raw, path, value))
    assert words in str(refused.value)


@pytest.mark.parametrize("tree", [None, [], "x", {}, {"schema": 1}])
def test_no_tree_at_all_is_refused(tree: Any) -> None:
    with pytest.raises(FactsError):
        admitted(tree)


def test_facts_that_break_a_comparison_are_found_and_left_out(clusters: dict[str, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, or only together with those of others."""
    cluster = clusters["roce"]
    cluster.write({**cluster.raw, "boot": {**cluster.raw["boot"], "hostname": "odd"}})
    usual = _brief(compared("preflight", known_hosts(cluster.folder, cluster.folder.hosts_of("preflight")), cluster.folder))
    for least in (1, 3):

        def breaks(hosts: Any, least: int = least) -> Any:
            names = [each.facts.boot.hostname for each in hosts.values() if each.facts]
            if "odd" in names and len(names) >= least:
                raise ZeroDivisionError("by its facts")
            return check_fleet(hosts)

        monkeypatch.setitem(FLEET_CHECKS, "preflight", breaks)
        found = compared("preflight", known_hosts(cluster.folder, cluster.folder.hosts_of("preflight")), cluster.folder)
        (problem,) = [each for each in found[ODD] if each.check == "host.facts"]
        assert problem.status == UNKNOWN
        assert problem.observed.startswith("ZeroDivisionError")
        assert {name: found_of for name, found_of in _brief(found).items() if name != ODD} == {
            name: found_of for name, found_of in usual.items() if name != ODD
        }


def test_damaged_facts_in_the_folder_are_one_hosts_unknown(clusters: dict[str, Cluster]) -> None:
    cluster = clusters["roce"]
    cluster.write(cluster.raw)
    cluster.folder.write(f"facts/{ODD}.json", '{"devices": 5}')
    known = known_hosts(cluster.folder, cluster.folder.hosts_of("link"))
    assert known[ODD].facts is None
    assert known[ODD].problem.startswith("KeyError at plugin_utils/_facts/digest.py:")
    assert [name for name in HOSTS if known[name].problem] == [ODD]
    (finding,) = host_findings("link", ODD, cluster.intent, {"devices": 5})
    assert (finding.check, finding.status, finding.host) == ("host.facts", UNKNOWN, ODD)


def test_an_exception_is_reported_in_one_printable_line() -> None:
    with pytest.raises(KeyError) as raised:
        json.loads("{}")["\x1b[2K" * 100]
    assert place_of(raised.value).isprintable()
    assert len(place_of(raised.value)) < 200
