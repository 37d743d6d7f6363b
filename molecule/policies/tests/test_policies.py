# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop, quarantine and report on twenty hosts, of which one has an odd setting and two cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import cluster
from tests.verify.site import Site

ODD = "node5"
OFF = ["node7", "node13"]
HOSTS = [f"node{number}" for number in range(1, 21)]
BUILD = "molecule/policies/two_stages.yml"
#: A container's cables are veth pairs, which are no NICs; everything else about it is real.
NO_NICS = {"intent.nic": {"severity": "warning"}}
#: (policy, who reaches the second stage)
POLICIES: list[tuple[dict[str, Any], list[str]]] = [
    ({"policy": "stop"}, []),
    ({"policy": "quarantine", "max_failed_percent": 15}, [host for host in HOSTS if host not in (ODD, *OFF)]),
    ({"policy": "quarantine", "max_failed_percent": 14}, []),
    ({"policy": "report"}, [host for host in HOSTS if host not in OFF]),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The lab's inventory with one host whose first rail has another MTU than all others; two of the hosts are off."""
    lab = cluster.load("policies")
    folder = tmp_path_factory.mktemp("site")
    inventory = yaml.safe_load(lab.folder.inventory.read_text())
    inventory["all"]["hosts"][ODD]["rdma_rails"][0]["mtu_bytes"] = 1500
    Path(folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    for name in OFF:
        cluster.power("policies", name, "off")
    yield Site(folder / "hosts.yml", folder)
    for name in OFF:
        cluster.power("policies", name, "on")


@pytest.mark.parametrize("words", [[], ["--check"]], ids=["run", "check"])
@pytest.mark.parametrize(("policy", "expected"), POLICIES)
def test_each_policy_does_what_it_says(site: Site, policy: dict[str, Any], expected: list[str], words: list[str]) -> None:
    if words:
        # A gate fails nobody in check mode; who cannot be reached is out all the same.
        expected = [host for host in HOSTS if host not in OFF]
    done = site.run(BUILD, "-e", json.dumps({"rdma_gate": policy, "rdma_checks": NO_NICS}), *words)
    reached = {path.stem for path in (site.evidence / "findings/fabric").glob("*.json")}
    assert reached == set(expected), done.stdout
    assert done.returncode != 0
    decision = site.json("gates/preflight.json")
    assert sorted(decision["out"]) == sorted([ODD, *OFF])
    assert decision["hosts"] == len(HOSTS)
    assert decision["stops"] is (expected == [])
    mac = cluster.load("policies").plan.node(ODD).rails[0].mac
    assert f"  {ODD}, rail 0 (rail0, {mac}): intent.rails is error (preflight stage)" in done.stdout, done.stdout
    assert f"  {', '.join(OFF)}, stage: stage.completed is unknown (preflight stage)\n    seen:     it cannot be reached" in done.stdout
