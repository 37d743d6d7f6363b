# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four containers as hosts of a simulated fabric: the playbooks as a person runs them, with the real opensm and the real tools on them.

The HCAs are stand-ins (docs/lab.md); what the fabric says is ibsim's.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import yaml

from lab import cluster, fabric, fabric_faults, remote
from lab.fabric import FabricRequest
from lab.fabric_plan import Shape
from tests.verify.patience import until
from tests.verify.site import ROOT, Site

NAME = "mfabric3"
HOSTS = ["node1", "node2", "node3", "node4"]
TWO = ["node1", "node2"]
#: How long one that stands by waits for a master that says nothing (opensm polls it four times, 10 s apart) and a sweep.
TAKE_OVER_SECONDS = 90
MAD = "/sys/class/infiniband_mad"
RED = {"red": {"key": 0x0101, "members": ["node1", "node2"]}}
SVG = "{http://www.w3.org/2000/svg}"
#: How long the stand-ins may take to follow the simulated ports.
FOLLOW_SECONDS = 30


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A lab of containers on a fabric with two rails, whose subnet manager the role is to run."""
    cluster.up(NAME, "container", len(HOSTS), None)
    try:
        fabric.up(NAME, Shape("rail", len(HOSTS), 2, ports=8), FabricRequest(lab=NAME, own_manager=False))
        yield Site(fabric.load(NAME).folder.inventory, tmp_path_factory.mktemp("site"))
    finally:
        fabric.down(NAME)
        cluster.down(NAME)


def on(host: str, command: str) -> str:
    lab = cluster.load(NAME)
    answer = remote.execute(lab.plan.node(host), lab.folder, command)
    assert answer.status == 0, answer.stderr
    return answer.stdout.strip()


def state(host: str, device: str) -> str:
    return on(host, f"cat /sys/class/infiniband/{device}/ports/1/state")


def changed(answer: str) -> dict[str, int]:
    """Host → what a run has changed there, by its recap."""
    return {host: int(count) for host, count in re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", answer, re.MULTILINE) if host in HOSTS}


def build(site: Site, *words: str) -> tuple[int, str]:
    """The link stage, and the fabric stage if that passes."""
    both = site.run_dir.parent / "link_and_fabric.yml"
    both.write_text(yaml.safe_dump([{"import_playbook": str(ROOT / f"playbooks/{stage}.yml")} for stage in ("link", "fabric")]))
    done = site.run(str(both), *words)
    return done.returncode, done.stdout


def brief(site: Site) -> list[tuple[str, str, str]]:
    """The findings of the last run that are an error or unknown, without those that the lab's inventory silences by name: check, host or
    plane, subject."""
    found = [json.loads(line) for line in (site.evidence / "findings.jsonl").read_text().splitlines()]
    bad = [each for each in found if each["status"] in ("error", "unknown") and not each["silenced_by"]]
    return sorted((each["check"], each["host"], each["subject"]) for each in bad)


def test_without_a_subnet_manager_every_port_waits(site: Site) -> None:
    assert [state(host, "mlx5_1") for host in HOSTS] == ["2: INIT"] * 4


def test_the_site_goes_through_its_fabric_stage(site: Site) -> None:
    """Preflight, driver, link and fabric pass; the host stage needs a kernel of its own, which a container has not."""
    done = site.run("site")
    run = site.evidence
    gates = {stage: json.loads((run / f"gates/{stage}.json").read_text()) for stage in ("preflight", "driver", "link", "fabric")}
    assert [(gate["out"], gate["planes"], gate["stops"]) for gate in gates.values()] == [({}, {}, False)] * 4, done.stdout
    assert "rdma.cluster.limits" in done.stdout
    assert [state(host, "mlx5_1") for host in HOSTS] == ["4: ACTIVE"] * 4
    assert "priority 14 state 3 SMINFO_MASTER" in on("node3", "sminfo -C mlx5_1")


def test_a_second_run_changes_nothing(site: Site) -> None:
    status, answer = build(site)
    assert status == 0, answer
    assert changed(answer) == dict.fromkeys(HOSTS, 0)
    assert brief(site) == []


def test_a_partition_is_in_the_ports_of_its_members(site: Site) -> None:
    words = ["-e", json.dumps({"rdma_partitions": RED})]
    status, answer = build(site, *words)
    assert status == 0, answer
    keys = {host: on(host, "grep -h 8101 /sys/class/infiniband/mlx5_*/ports/1/pkeys/* || true").split() for host in HOSTS}
    assert keys == {"node1": ["0x8101"] * 2, "node2": ["0x8101"] * 2, "node3": [], "node4": []}
    status, answer = build(site, *words)
    assert (status, changed(answer)) == (0, dict.fromkeys(HOSTS, 0)), answer
    status, answer = build(site)
    assert (status, changed(answer)) == (2, dict.fromkeys(HOSTS, 0)), answer
    assert "subnet_manager_partition_change_required: compute: node1 mlx5_0" in answer
    status, answer = build(site, "-e", "subnet_manager_partition_change_allowed=true")
    assert status == 0, answer
    assert not [key for host in HOSTS for key in on(host, "grep -h 8101 /sys/class/infiniband/mlx5_*/ports/1/pkeys/* || true").split()]


def test_a_hosts_cable_that_is_cut_is_named(site: Site) -> None:
    fabric_faults.cut(NAME, "node3 mlx5_1")
    try:
        until(lambda: state("node3", "mlx5_1") == "1: DOWN", FOLLOW_SECONDS, "a port that is down")
        status, answer = build(site)
    finally:
        fabric_faults.restore(NAME, "node3 mlx5_1")
    assert status == 2, answer
    assert brief(site) == [("link.state", "node3", "rail 1 (rail1, 0000:31:00.0)")]
    assert "mlx5_1/1 is DOWN, Polling" in answer
    until(lambda: state("node3", "mlx5_1") == "4: ACTIVE", FOLLOW_SECONDS, "an active port")


def test_an_uplink_that_is_cut_is_named(site: Site) -> None:
    fabric_faults.cut(NAME, "leaf1/5")
    try:
        status, answer = build(site)
    finally:
        fabric_faults.restore(NAME, "leaf1/5")
    assert status == 2, answer
    assert brief(site) == [("fabric.cabling", "plane compute", "leaf1 port 5 to spine1 port 1")]


@pytest.fixture(scope="module")
def discovered(site: Site) -> Path:
    """The folder of a run of discover, from an inventory of names, while an uplink is narrow."""
    inventory = yaml.safe_load(site.inventory.read_text())
    variables = inventory["all"]["vars"]
    inventory["all"]["vars"] = {key: value for key, value in variables.items() if not key.startswith("rdma_")}
    names = site.run_dir.parent / "names.yml"
    names.write_text(yaml.safe_dump(inventory))
    fabric_faults.degrade(NAME, "leaf2/5", 1, None)
    try:
        done = Site(names, site.run_dir.parent / "discover").run("discover")
    finally:
        fabric_faults.restore(NAME, "leaf2/5")
    assert done.returncode == 0, done.stdout
    assert set(changed(done.stdout).values()) == {0}
    (folder,) = [path.parent for path in (site.run_dir.parent / "discover/artifacts").glob("*/fabric.json") if not path.parent.is_symlink()]
    return folder


def test_the_graph_is_the_planned_fabric(discovered: Path) -> None:
    (graph,) = json.loads((discovered / "fabric.json").read_text())["planes"]
    assert (graph["complete"], graph["problems"]) == (True, [])
    names = {guid: node["name"] if node["kind"] == "switch" else node["description"] for guid, node in graph["nodes"].items()}
    found = {frozenset({f"{names[a]}/{port}", f"{names[b]}/{other}"}) for a, port, b, other, *_rate in graph["links"]}
    assert found == {frozenset({str(a), str(b)}) for a, b in fabric.load(NAME).plan.cables()}


def test_graphml_has_the_narrow_link_marked(discovered: Path) -> None:
    graph = nx.read_graphml(discovered / "fabric/default.graphml")
    names = nx.get_node_attributes(graph, "name")
    assert sorted(names.values()) == sorted([*HOSTS, *HOSTS, "leaf1", "leaf2", "spine1", "spine2"])
    bad = [(names[a], names[b], data["width"]) for a, b, data in graph.edges(data=True) if "bad" in data]
    assert [({one, other}, width) for one, other, width in bad] == [({"leaf2", "spine1"}, 1)]
    assert graph.number_of_edges() == 16


def test_the_drawing_shows_every_switch_and_host_and_the_bad_link(discovered: Path) -> None:
    top = ET.parse(discovered / "fabric/default.svg").getroot()  # noqa: S314 (our own)
    texts = ["".join(each.itertext()) for each in top.iter(f"{SVG}text")]
    assert {*HOSTS, "leaf1", "leaf2", "spine1", "spine2"} <= set(texts)
    assert "4 hosts, 8 HCAs, 4 switches, 16 links, of which 1 bad" in texts
    assert [text for text in texts if text.startswith("leaf2 port 5 to spine1 port 3, 1X HDR")]
    assert len([each for each in top.iter(f"{SVG}line") if each.get("class") == "bad"]) == 1


def test_the_proposal_has_the_rails(discovered: Path, site: Site) -> None:
    proposed = yaml.safe_load((discovered / "fabric/inventory.yml").read_text())["all"]
    ours: dict[str, Any] = yaml.safe_load(site.inventory.read_text())["all"]
    assert proposed["vars"]["rdma_rails"] == [{**rail, "plane": "default"} for rail in ours["vars"]["rdma_rails"]]
    assert list(proposed["hosts"]) == HOSTS


def asked_as_nobody(site: Site) -> dict[str, Any]:
    """What fabric_facts returns to a user without rights, on the real tools: nothing of the lab's stands before them."""
    answer = site.run_dir.parent / "nobody.json"
    read = {"rdma.cluster.fabric_facts": {"plane": "compute", "device": "mlx5_1", "port": 1}, "register": "__read"}
    write = {"ansible.builtin.copy": {"content": "{{ __read | to_json }}", "dest": str(answer), "mode": "0644"}, "delegate_to": "localhost"}
    nobody = {"become": True, "become_user": "nobody", "environment": {"PATH": "/usr/sbin:/usr/bin"}}
    tasks = [{"name": "Read", **read, **nobody}, {"name": "Keep", **write, "vars": {"ansible_connection": "local"}}]
    book = site.run_dir.parent / "nobody.yml"
    book.write_text(yaml.safe_dump([{"name": "Ask as nobody", "hosts": "node4", "gather_facts": False, "tasks": tasks}]))
    done = site.run(str(book))
    assert done.returncode == 0, done.stdout
    return dict(json.loads(answer.read_text()))


def test_a_user_who_may_not_open_umad_is_reported_so(site: Site) -> None:
    """The node is a stand-in that belongs to root, as udev's does; libibumad and its refusal are real."""
    node = "/dev/infiniband/umad1"
    on("node4", f"install -m 0600 /dev/null {node}")
    refused = asked_as_nobody(site)["graph"]
    on("node4", f"rm {node}")
    missing = asked_as_nobody(site)["graph"]
    assert refused["problems"] == [
        f"ibnetdiscover cannot query: it may not open {node} to query mlx5_1 port 1 (permission denied): become root"
    ]
    assert (refused["nodes"], refused["complete"]) == ({}, False)
    (why,) = missing["problems"]
    assert why.startswith(f"ibnetdiscover cannot query: there is no {node} to query mlx5_1 port 1")


def link(site: Site, *words: str) -> tuple[int, str]:
    """The link stage where two hosts are to run the subnet managers."""
    fabric_of = yaml.safe_load(site.inventory.read_text())["all"]["vars"]["rdma_fabric"]
    fabric_of["planes"]["compute"]["subnet_manager"] = {"hosts": TWO}
    done = site.run("link", "-e", json.dumps({"rdma_fabric": fabric_of}), *words)
    return done.returncode, done.stdout


def lid(host: str) -> int:
    return int(on(host, "cat /sys/class/infiniband/mlx5_0/ports/1/lid"), 16)


def managers() -> list[str]:
    """State and priority of each opensm, as its own host reports them."""
    return [on(host, f"sminfo -C mlx5_0 {lid(host)}").partition("priority ")[2] for host in TWO]


def managers_of_ports() -> set[int]:
    """The LIDs of the master by the files of each host's ports."""
    texts = [on(host, "cat /sys/class/infiniband/mlx5_*/ports/1/sm_lid") for host in HOSTS]
    return {int(text, 16) for each in texts for text in each.split()}


def managers_of(host: str) -> str:
    """What the master of a host's port says of itself; empty while there is none."""
    return on(host, "sminfo -C mlx5_0 2>/dev/null || true")


def test_two_hosts_run_it_by_the_same_files_and_the_first_is_the_master(site: Site) -> None:
    status, answer = link(site)
    assert (status, brief(site)) == (0, []), answer
    assert managers() == ["14 state 3 SMINFO_MASTER", "13 state 2 SMINFO_STANDBY"]
    sums = [on(host, "cat /etc/rdma-cluster/opensm-compute.conf /etc/rdma-cluster/partitions-compute.conf | sha256sum") for host in TWO]
    assert sums[0] == sums[1]
    status, answer = link(site)
    assert (status, changed(answer)) == (0, dict.fromkeys(HOSTS, 0)), answer


def test_the_package_has_started_nothing_by_itself(site: Site) -> None:
    """With PORTS=NONE Debian's service is skipped; so the first opensm that ever ran there had our files."""
    for host in TWO:
        assert "opensm is disabled via PORTS=NONE." in on(host, "journalctl -u opensm -o cat --no-pager")
        first = on(host, "journalctl -o cat --no-pager -u 'opensm@*' | grep -m1 -A1 '^OpenSM 3'")
        assert "/etc/rdma-cluster/opensm-compute.conf" in first


def test_the_second_one_takes_over_and_the_gate_says_who_is_missing(site: Site) -> None:
    on("node1", "systemctl stop 'opensm@*'")
    _status, answer = link(site, "--check")
    assert f"node1 (LID {lid('node1')}), which no longer answers" in answer, answer
    assert brief(site) == [("link.sm", "node1", "plane compute")]
    until(lambda: managers_of("node2").endswith("priority 13 state 3 SMINFO_MASTER"), TAKE_OVER_SECONDS, "node2 as the master")
    # The new master configures one port after the other. The files of the stand-in HCAs change with each.
    until(lambda: managers_of_ports() == {lid("node2")}, FOLLOW_SECONDS, "node2 as the master of every port")
    _status, answer = link(site, "--check")
    assert f"node2 (LID {lid('node2')})" in answer, answer
    assert "The standby has taken over" in answer
    assert brief(site) == [("link.sm", "node1", "plane compute")]


def test_a_service_that_its_condition_keeps_from_starting_is_reported_at_once(site: Site) -> None:
    """Also restarts them: the first one first, since ibsim does not let a master hand over (docs/lab.md)."""
    on("node2", "systemctl stop 'opensm@*'")
    on("node2", f"mount -t tmpfs -o ro tmpfs {MAD}")
    try:
        status, answer = link(site)
    finally:
        on("node2", f"umount {MAD}")
    assert status == 2, answer
    assert f"its condition ConditionPathExists={MAD}/abi_version is not met" in answer
    assert "`modprobe ib_umad`" in answer
    status, answer = link(site)
    assert (status, brief(site)) == (0, []), answer
    assert managers() == ["14 state 3 SMINFO_MASTER", "13 state 2 SMINFO_STANDBY"]


def test_it_runs_after_a_reboot(site: Site) -> None:
    """Debian's service is wanted by network-online.target alone, which nobody wants here."""
    cluster.power(NAME, "node2", "cycle")
    running = "systemctl list-units --plain --no-legend --state=running 'opensm@*' || true"
    until(lambda: on("node2", running) != "", FOLLOW_SECONDS, "opensm on node2")
    assert on("node2", "systemctl is-active network-online.target || true") == "inactive"
