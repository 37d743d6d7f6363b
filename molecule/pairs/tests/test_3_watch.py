# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The live view beside a sweep over Soft-RoCE: its rates are those that perftest reports. It leaves tests/output/watch_sweep.svg."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Lab
from tests.child import environment
from tests.tools.pictures import picture_view
from tests.verify.site import ROOT, Site

MODULE = "ansible_collections.rdma.cluster.plugins.plugin_utils._watch"
HOSTS = "node1,node2"
PICTURE = ROOT / "tests/output/watch_sweep.svg"
#: Long enough for ten readings of a transfer, also on a quiet computer, where it is faster.
ITERATIONS, DEADLINE_SECONDS, LONGEST_SECONDS = 6000, 240, 900
#: What an MTU of 9000 bytes leaves for a RoCE packet: Soft-RoCE has no counters of bytes, and perftest does not count headers.
PAYLOAD_BITS = 4096 * 8
#: A sender's packets are data, and the answers of the other end are fewer.
DATA_TO_ANSWERS = 3
FEWEST_READINGS, TOLERANCE = 10, 0.10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watch")


def sent_gbps(views: list[dict[str, Any]], host: str, device: str) -> list[float]:
    """The shown rates of a port while it sends, without the first and the last reading, which are of a part of a second."""
    ports = [port for view in views for port in view["ports"] if (port["host"], port["port"]) == (host, f"{device}/1")]
    known = [(port["out_packets"], port["in_packets"]) for port in ports if port["out_packets"] is not None]
    return [out * PAYLOAD_BITS / 1e9 for out, answers in known if out > DATA_TO_ANSWERS * answers][1:-1]


def test_the_rates_are_those_of_perftest(lab: Lab, site: Site, folder: Path) -> None:
    inventory, recording = lab.folder.inventory, folder / "sweep.recording"
    pairs = yaml.safe_load(inventory.read_text())["all"]["vars"]["rdma_pairs"]
    longer = {"rdma_pairs": {**pairs, "iterations": ITERATIONS, "deadline_seconds": DEADLINE_SECONDS}}
    argv = [sys.executable, "-m", MODULE, "-i", str(inventory), "--limit", HOSTS, "--seconds", str(LONGEST_SECONDS), "--json"]
    with (folder / "views").open("w+") as output:
        view = subprocess.Popen([*argv, "--record", str(recording)], cwd=ROOT, stdout=output, env=environment())
        try:
            done = site.run("pairs", "--limit", HOSTS, "-e", "rdma_measure=true", "-e", json.dumps(longer))
        finally:
            view.terminate()
            view.wait()
        output.seek(0)
        views = [json.loads(line) for line in output if line.endswith("\n")]
    assert done.returncode == 0, done.stdout
    plan, results = site.json("pairs/plan.json"), site.results()
    assert len(results) == 4
    for rail, _round, _server, client, _test, _role, measured, *_rest in results:
        rates = sent_gbps(views, plan["hosts"][client], plan["profiles"][rail]["device"])
        shown, name = statistics.mean(rates), f"{plan['hosts'][client]} {plan['rails'][rail]['name']}"
        print(f"\n{name}: perftest {measured:.4f}, shown {shown:.4f} Gb/s, {len(rates)} readings")
        assert len(rates) >= FEWEST_READINGS
        assert shown == pytest.approx(measured, rel=TOLERANCE)
    # The picture is of the moment at which most ports had traffic.
    busiest = max(views, key=lambda view: sum(port["moves"] is True for port in view["ports"]))
    PICTURE.parent.mkdir(exist_ok=True)
    picture_view(recording, PICTURE, busiest["seconds"])
