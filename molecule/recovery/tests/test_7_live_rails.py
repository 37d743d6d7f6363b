# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live rails: while a perftest holds queue pairs, what would harm it is withheld; drift is fixed without touching the rest."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from lab import remote
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.nodes import run_with_netdev as run
from tests.verify.site import Site

#: Of no rail's subnet: what an admin has added for a purpose of his own.
FOREIGN = "10.77.0.1/24"
PLANNED_MTU, DRIFTED_MTU = 9000, 8000
WAIT_SECONDS = 90


@pytest.fixture(scope="module")
def job(lab: Lab) -> Iterator[dict[str, str]]:
    """A perftest between two nodes on rail 0 that holds its queue pairs until it is ended: node → its process."""
    server, client = lab.plan.nodes[:2]
    address = run(lab, server, "ip -4 -br address show dev $netdev | grep -o '192[^/]*'")
    start = "systemd-run --quiet --unit=live-rail -p LimitMEMLOCK=infinity ib_send_bw -d rxe_rail0 -x 1 -F -D 900 -s 1024"
    run(lab, server, start)
    time.sleep(3)
    run(lab, client, f"{start} {address}")
    pids = {}
    for node in (server, client):
        wait = f"timeout {WAIT_SECONDS} sh -c 'until rdma resource show qp link rxe_rail0/1 | grep -q ib_send_bw; do sleep 1; done'"
        run(lab, node, f"{wait}; rdma resource show qp link rxe_rail0/1")
        pids[node.name] = run(lab, node, "systemctl show --property=MainPID --value live-rail")
    # Stopped, they hold their queue pairs open and leave the emulated machines their one CPU.
    for node in (client, server):
        run(lab, node, "systemctl kill --signal=SIGSTOP live-rail")
    yield pids
    for node in (server, client):
        end = "systemctl kill --signal=SIGCONT live-rail; systemctl stop live-rail; systemctl reset-failed live-rail"
        remote.execute(node, lab.folder, end)


def mtu(lab: Lab, node: Node) -> int:
    return int(run(lab, node, "cat /sys/class/net/$netdev/mtu"))


def test_a_change_is_withheld_while_queue_pairs_are_open(lab: Lab, site: Site, job: dict[str, str]) -> None:
    node = lab.plan.nodes[0]
    run(lab, node, f"ip link set dev $netdev mtu {DRIFTED_MTU}")
    done = site.run("network")
    assert done.returncode != 0, done.stdout
    assert mtu(lab, node) == DRIFTED_MTU
    assert site.lines("changes.jsonl") == []
    words = f"ib_send_bw (pid {job[node.name]}) on rxe_rail0/1"
    assert "network_change_required: rail0 (" in done.stdout
    assert words in done.stdout
    [finding] = [each for each in site.json(f"findings/network/{node.name}.json") if each["status"] == "error"]
    assert finding["check"] == "network.mtu"
    assert words in finding["remedy"]
    # It goes on where it was stopped: its queue pairs have not noticed anything.
    for each in lab.plan.nodes[:2]:
        run(lab, each, "systemctl kill --signal=SIGCONT live-rail; sleep 5")
        assert run(lab, each, "systemctl is-active live-rail") == "active"
        run(lab, each, "systemctl kill --signal=SIGSTOP live-rail")


def test_check_mode_shows_it_and_says_that_it_would_be_withheld(lab: Lab, site: Site, job: dict[str, str]) -> None:
    node = lab.plan.nodes[0]
    done = site.run("network", "--check", "--diff")
    assert done.returncode == 0, done.stdout
    assert f"+MTU {PLANNED_MTU} bytes" in done.stdout
    assert f"ib_send_bw (pid {job[node.name]})" in done.stdout
    assert mtu(lab, node) == DRIFTED_MTU


def test_an_address_is_added_beside_the_job(lab: Lab, site: Site, job: dict[str, str]) -> None:
    """This is safe on a rail in use as well. Here it is the other rail of the same host."""
    node = lab.plan.nodes[1]
    run(lab, node, "ip address flush dev $netdev scope global", rail=1)
    site.run("network", "--limit", node.name)
    assert "192.168." in run(lab, node, "ip -4 -br address show dev $netdev", rail=1)
    assert run(lab, node, "systemctl show --property=MainPID --value live-rail") == job[node.name]


def test_it_is_applied_when_the_job_has_ended(lab: Lab, site: Site, job: dict[str, str]) -> None:
    for node in lab.plan.nodes[:2]:
        assert job[node.name] != "0"
        run(lab, node, "systemctl kill --signal=SIGCONT live-rail; systemctl stop live-rail")
    done = site.run("network")
    assert done.returncode == 0, done.stdout
    assert mtu(lab, lab.plan.nodes[0]) == PLANNED_MTU
    assert {line["host"] for line in site.lines("changes.jsonl")} == {lab.plan.nodes[0].name}


def test_an_address_is_fixed_without_dropping_the_others(lab: Lab, site: Site) -> None:
    """Watched by `ip monitor` on the host itself: nothing is removed, on no interface, and one address is added."""
    node = lab.plan.nodes[1]
    planned = run(lab, node, "ip -4 -o address show dev $netdev | awk '{print $4}'", rail=1)
    run(lab, node, f"ip address add {FOREIGN} dev $netdev; ip address del {planned} dev $netdev", rail=1)
    run(lab, node, "systemd-run --quiet --unit=watch-rails sh -c 'exec ip -4 monitor address > /run/watch-rails'")
    try:
        done = site.run("network")
    finally:
        run(lab, node, "systemctl stop watch-rails")
    seen = run(lab, node, "cat /run/watch-rails")
    print(f"\nip monitor on {node.name}:\n{seen}")
    events = [line for line in seen.splitlines() if " inet " in line]
    assert "Deleted" not in seen
    assert [planned in line for line in events] == [True]
    assert sorted(run(lab, node, "ip -4 -o address show dev $netdev | awk '{print $4}'", rail=1).split()) == sorted([FOREIGN, planned])
    assert done.returncode == 0, done.stdout
    run(lab, node, f"ip address del {FOREIGN} dev $netdev", rail=1)


@pytest.mark.fault("drop-in-for-the-boot")
def test_a_drop_in_is_found_before_a_boot_makes_it_true(lab: Lab, site: Site) -> None:
    """Live all is well, and the finding names file and line."""
    node = lab.plan.nodes[0]
    drop_in = "/etc/systemd/network/60-rdma-rail0.network.d/site.conf"
    run(lab, node, f"mkdir -p $(dirname {drop_in}); printf '[Link]\\nMTUBytes=1500\\n' > {drop_in}")
    try:
        lines = [line for line in site.drift() if line["stage"] == "network"]
    finally:
        run(lab, node, f"rm -r $(dirname {drop_in})")
    assert [(line["host"], line["subject"].split(":")[0], line["was"]) for line in lines] == [
        (node.name, "network.boot", f"MTUBytes=1500 ({drop_in}:2)")
    ]
