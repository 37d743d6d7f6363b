# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a lab consists of, and the inventory that comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lab import cluster
from lab.errors import LabError
from lab.image import Image
from lab.paths import LabFolder
from lab.plan import NIC_PREFIX, NIC_PREFIXES, Plan, inventory, make_plan

EXAMPLE = Path(__file__).parents[3] / "inventories/lab/hosts.yml"


def test_a_node_of_the_default_lab() -> None:
    node = make_plan("lab", "machine", 4, 22000).node("node3")
    assert node.ssh_port == 22003
    assert [(rail.pci, rail.address, rail.mac, rail.cable) for rail in node.rails] == [
        ("0000:21:00.0", "192.168.100.3/24", "52:54:00:1a:00:03", "n3r0"),
        ("0000:41:00.0", "192.168.101.3/24", "52:54:00:1a:01:03", "n3r1"),
    ]


@pytest.mark.parametrize("nic_prefix", [NIC_PREFIX, NIC_PREFIXES[0], NIC_PREFIXES[-1]])
def test_nothing_is_given_out_twice(nic_prefix: int) -> None:
    nodes = make_plan("lab", "container", 200, 22000, nic_prefix=nic_prefix).nodes
    rails = [rail for node in nodes for rail in node.rails]
    for values in ([rail.mac for rail in rails] + [node.management_mac for node in nodes], [rail.address for rail in rails]):
        assert len(set(values)) == len(values)
    assert len({node.machine_id for node in nodes}) == 200
    assert all(len(rail.cable) <= 15 for rail in rails), "an interface's name has 15 characters at most"


def test_a_new_lab_has_other_nics_and_keeps_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Otherwise the proofs of an earlier lab of this name would hold for machines that were never measured."""
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path))
    macs = []
    for nic_prefix in (NIC_PREFIXES[0], NIC_PREFIXES[-1]):
        made = cluster.Lab(make_plan("lab", "machine", 2, 22000, nic_prefix=nic_prefix), LabFolder.of("lab"), Image(tmp_path / "images/x"))
        made.folder.path.mkdir(parents=True, exist_ok=True)
        cluster._write_state(made, "up")
        loaded = cluster.load("lab").plan
        assert loaded == made.plan
        macs += [rail.mac for node in loaded.nodes for rail in node.rails]
    assert len(set(macs)) == 8
    assert [macs[0], macs[-1]] == ["52:54:01:00:00:01", "52:54:ff:ff:01:02"]


WRONG = [
    ({"name": "Lab 1"}, "A lab's name"),
    ({"name": "../x"}, "A lab's name"),
    ({"kind": "pod"}, "machine or container"),
    ({"nodes": 0}, "1 to 200 nodes"),
    ({"nodes": 201}, "1 to 200 nodes"),
    ({"port_base": 80}, "The first SSH port"),
    ({"port_base": 65500}, "The first SSH port"),
    ({"kind": "container", "kernel_arguments": "quiet"}, "Only a machine has a kernel of its own"),
    ({"kernel_arguments": "quiet\ninit=/bin/sh"}, "printable ASCII"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_what_cannot_be_is_reported_in_one_sentence(change: dict[str, object], words: str) -> None:
    arguments = {"name": "lab", "kind": "machine", "nodes": 4, "port_base": 22000, **change}
    with pytest.raises(LabError, match=words) as caught:
        make_plan(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_an_unknown_node_is_answered_with_those_that_are() -> None:
    with pytest.raises(LabError, match=r"no node 'node9'; it has node1, node2\."):
        make_plan("lab", "machine", 2, 22000).node("node9")


def lab_inventory(plan: Plan) -> dict[str, object]:
    folder = LabFolder.of(plan.name)
    return inventory(plan, str(folder.key), str(folder.known_hosts))


def test_the_example_inventory_is_what_up_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RDMA_LAB_DIR", raising=False)
    expected = lab_inventory(make_plan("lab", "machine", 4, cluster.PORT_BASE))
    assert yaml.safe_load(EXAMPLE.read_text()) == expected


def test_containers_name_their_nics_by_mac() -> None:
    hosts = lab_inventory(make_plan("c", "container", 1, 22000))["all"]["hosts"]  # type: ignore[index]
    assert hosts["node1"]["rdma_rails"][1]["nic"] == {"mac": "52:54:00:1a:01:01"}
