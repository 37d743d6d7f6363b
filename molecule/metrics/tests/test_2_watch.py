# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The live view over real SSH, as a user who may use sudo: its rates are those of a writer that moves the counters of a port.

The writer is a stand-in of a transfer: it runs on the container, advances the counter files of an HCA that is itself a stand-in, and
notes what it has moved. SSH, sudo and the reader are real.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import cluster, fabric
from tests.child import environment
from tests.verify.driver import Hosts
from tests.verify.sender import Sender
from tests.verify.site import ROOT

LAB = "metrics"
MODULE = "ansible_collections.rdma.cluster.plugins.plugin_utils._watch"
USER, HOST = "watcher", "node1"
GBPS, SECONDS = 180.0, 15
TOLERANCE = 0.10
ACCOUNT = f"""
useradd --create-home --shell /bin/bash {USER}
install -d -m 0700 -o {USER} /home/{USER}/.ssh
install -m 0600 -o {USER} /root/.ssh/authorized_keys /home/{USER}/.ssh/authorized_keys
"""
SUDO = f"echo '{USER} ALL=(root) NOPASSWD: ALL' > /etc/sudoers.d/{USER} && chmod 0440 /etc/sudoers.d/{USER}"


@pytest.fixture(scope="module")
def hosts() -> Hosts:
    found = Hosts(cluster.load(LAB))
    for node in found.lab.plan.nodes:
        found.run(node.name, ACCOUNT)
    return found


@pytest.fixture(scope="module")
def inventory(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fabric's inventory, with an ordinary user."""
    given = yaml.safe_load(fabric.load(LAB).folder.inventory.read_text())
    given["all"]["vars"] |= {"ansible_user": USER, "ansible_become": True}
    file = tmp_path_factory.mktemp("watch") / "hosts.yml"
    file.write_text(yaml.safe_dump(given))
    return file


@pytest.fixture
def sender(hosts: Hosts) -> Iterator[Sender]:
    found = Sender(hosts, HOST, "mlx5_0", GBPS)
    found.start()
    yield found
    found.stop()


def watch(inventory: Path, *words: str) -> list[dict[str, Any]]:
    """The views that the program prints as JSON."""
    argv = [sys.executable, "-m", MODULE, "-i", str(inventory), "--json", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, env=environment())
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def ports(view: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(port["host"], port["port"]): port for port in view["ports"]}


def test_without_sudo_rights_a_host_is_ended_and_not_still(hosts: Hosts, inventory: Path) -> None:
    (view,) = watch(inventory, "--once", "--become", "--limit", HOST)
    assert view["silent"] == {HOST: "ended: sudo: a password is required"}
    assert view["ports"] == []


def test_the_rates_are_those_of_the_sender(hosts: Hosts, inventory: Path, sender: Sender) -> None:
    for node in hosts.lab.plan.nodes:
        hosts.run(node.name, SUDO)
    views = watch(inventory, "--become", "--seconds", str(SECONDS))
    sent = sender.moved_gbps()
    seen = [ports(view)[HOST, "mlx5_0/1"] for view in views if (HOST, "mlx5_0/1") in ports(view)]
    rates = [port["out_gbps"] for port in seen if port["out_gbps"] is not None]
    print(f"\nsent {sent:.2f} Gb/s; shown {statistics.median(rates):.2f} Gb/s, {min(rates):.2f} to {max(rates):.2f}")
    assert len(rates) >= SECONDS / 2
    assert abs(sent / GBPS - 1) < TOLERANCE
    assert all(abs(rate / sent - 1) < TOLERANCE for rate in rates), rates
    assert statistics.median(port["in_gbps"] for port in seen if port["in_gbps"] is not None) == pytest.approx(sent / 4, rel=TOLERANCE)
    # It moves on this port and on no other.
    last = ports(views[-1])
    assert {key for key, port in last.items() if port["moves"]} == {(HOST, "mlx5_0/1")}
    assert len(last) == 6
    assert views[-1]["silent"] == {}


def test_the_reader_has_the_rights_of_root_and_ends_with_the_view(hosts: Hosts, inventory: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-m", MODULE, "-i", str(inventory), "--json", "--become", "--limit", HOST, "--seconds", "60"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(),
    )  # fmt: skip
    # Its words are those of the program that Python reads from its input.
    readers = "ps -e -o user=,args= | grep '[o]s.memfd_create' | grep -v sudo | grep -v bash | awk '{print $1}' || true"
    try:
        assert begun.stdout is not None
        begun.stdout.readline()
        begun.stdout.readline()
        assert hosts.run(HOST, readers).split() == ["root"]
    finally:
        begun.terminate()
        begun.wait()
    hosts.run(HOST, f'for _ in $(seq 100); do [ -z "$({readers})" ] && exit 0; sleep 0.1; done; exit 1')
