# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts speak BGP with their leaves (`hosts_peer`), and RDMA crosses the fabric between the /32 addresses that they announce.

It needs hosts that are built: `pytest molecule/clos/tests -k "switches_get or built or hosts_peer"` runs only what it needs.
"""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from lab.clos import Clos
from lab.cluster import Lab
from tests.verify.clos import paths, until
from tests.verify.clos_traffic import gid_index, sent, write
from tests.verify.nodes import say
from tests.verify.planned_clos import PLANE, PlannedClos
from tests.verify.site import Site

SECONDS = 10


@pytest.fixture(scope="module")
def peers(planned: PlannedClos, lab: Lab, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of the scenario with `hosts_peer: true` in the routing of its plane."""
    folder = tmp_path_factory.mktemp("hosts_peer")
    fabric = yaml.safe_load(planned.inventory(lab).read_text())["all"]["vars"]["rdma_fabric"]
    fabric["planes"][PLANE]["plan"] = str((planned.folder / "cabling" / f"{PLANE}.yml").resolve())
    fabric["planes"][PLANE]["routing"]["hosts_peer"] = True
    (folder / "hosts_peer.yml").write_text(yaml.safe_dump({"all": {"vars": {"rdma_fabric": fabric}}}))
    return Site(site.inventory, folder, [*site.words, "-i", str(folder / "hosts_peer.yml")])


def test_hosts_peer_is_configured_to_the_end_of_the_playbook_and_once(lab: Lab, peers: Site) -> None:
    nodes = [node.name for node in lab.plan.nodes]
    done = peers.run("routed", "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout
    changed = dict(re.findall(r"^(\w+) +: ok=.*? changed=(\d+)", done.stdout, re.M))
    assert all(int(changed[name]) > 0 for name in (*nodes, "leaf1", "leaf2")), changed
    again = peers.run("routed", "-e", "frr_allowed=true")
    assert again.returncode == 0, again.stdout
    assert set(re.findall(r"^(?:leaf|spine|node)\d .*changed=(\d+)", again.stdout, re.M)) == {"0"}


def test_hosts_peer_has_all_sessions_and_routes_by_the_gate(peers: Site) -> None:
    done = peers.run("fabric")
    assert done.returncode == 0, done.stdout
    found = [(line["status"], line["observed"]) for line in peers.lines("findings.jsonl") if line["check"] == "fabric.bgp"]
    # Four uplinks, and two rails of each of four hosts.
    assert [status for status, _observed in found] == ["ok"], found
    assert found[0][1].startswith("12 sessions"), found


def test_hosts_peer_announces_the_address_of_the_gid_and_rdma_uses_the_table_of_its_rail(lab: Lab, network: Clos) -> None:
    """The announced address is that of the rail's interface, so it has a GID there. A loopback address would have none.

    What RDMA sends has this source address, so the rule of the rail leads to the rail's own table, not to BGP's routes.
    """
    first, last = lab.plan.node("node1"), lab.plan.node("node4")
    mine, other = (node.rails[0].address.partition("/")[0] for node in (first, last))
    until(lambda: paths(network, "leaf1", f"{other}/32") == ["swp5", "swp6"], 20, 0.5)
    assert gid_index(lab, first) >= 0
    [announced] = json.loads(say(lab, first, f"ip -j route show {other}/32"))
    assert announced["protocol"] == "bgp"
    [unbound] = json.loads(say(lab, first, f"ip -j route get {other}"))
    assert unbound["dev"] == announced["dev"]
    assert "table" not in unbound
    [bound] = json.loads(say(lab, first, f"ip -j route get {other} from {mine}"))
    assert (bound["gateway"], bound["table"]) == (first.rails[0].gateway, "1000")


def test_hosts_peer_rdma_crosses_the_fabric_between_the_announced_addresses(lab: Lab, network: Clos) -> None:
    peer = lab.plan.node("node3").rails[0].address.partition("/")[0]
    assert paths(network, "leaf1", f"{peer}/32") == ["swp5", "swp6"]
    idle = sent(network)
    with ThreadPoolExecutor(2) as pool:
        server = pool.submit(write, lab, "node3", seconds=SECONDS)
        time.sleep(4)
        client = pool.submit(write, lab, "node1", peer, SECONDS)
        ended = client.result()
        assert ended.status == 0, ended.stdout + ended.stderr
        assert server.result().status == 0
    moved = sum(sent(network).values()) - sum(idle.values())
    print(f"bytes that leaf1 has sent to the spines: {moved}; {ended.stdout.strip().splitlines()[-2]}")
    # At 0.02 Gb/s, a tenth of what such a machine reaches, 10 s are 25 MB.
    assert moved > 5e6


def test_hosts_peer_pairs_stage_measures_every_host(lab: Lab, peers: Site) -> None:
    done = peers.run("pairs")
    assert done.returncode == 0, done.stdout
    good = {line["host"] for line in peers.lines("findings.jsonl") if line["check"] == "pair.bandwidth" and line["status"] == "ok"}
    assert good == {node.name for node in lab.plan.nodes}
