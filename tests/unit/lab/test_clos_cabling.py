# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lab from a cabling plan, as `rdma.cluster.plan --tags topology` writes it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan as plan_fabric
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.files import files_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from lab import clos_hosts, cluster
from lab.clos_cabling import Cable, read_cabling, read_file
from lab.clos_plan import ClosShape, cabling, shape_of
from lab.errors import LabError
from lab.plan import inventory, make_plan

REQUEST = Path(__file__).parents[3] / "molecule/clos/files/request.yml"


def planned(**changes: Any) -> str:
    """The cabling of the scenario clos."""
    request, _file = read_request({"rdma_plan": {**yaml.safe_load(REQUEST.read_text())["rdma_plan"], **changes}})
    return files_of(request, plan_fabric(request)).files["cabling/fabric.yml"]


@pytest.mark.parametrize("hosts", [4, 8])
def test_the_cables_are_those_of_the_plan(hosts: int) -> None:
    text = planned(hosts=hosts, switch={"ports": 3 * hosts // 2, "gbps": 100})
    shape, read = shape_of(hosts, 2, text), parse_plan(text)
    assert cabling(shape) == text
    assert shape.switches == list(read.switches)
    assert shape.host_names == [f"node{number}" for number in range(1, hosts + 1)]

    def end(name: str, device: str | None, port: int) -> tuple[str, str]:
        return name, device or f"swp{port}"

    expected = {frozenset(end(spot.name, spot.device, spot.port) for spot in (link.a, link.b)) for link in read.links}
    cables = list(shape.cables)
    assert {frozenset((cable.a, cable.b)) for cable in cables} == expected
    assert all(cable.a[0] in read.switches for cable in cables)


def test_several_cables_are_one_line_of_the_plan() -> None:
    text = "switches: {leaf1: {tier: leaf}, spine1: {tier: spine}}\nlinks:\n  - {from: 'leaf1/5-6,9', to: 'spine1/1-3'}\n"
    ends = [(cable.a[1], cable.b[1]) for cable in read_cabling(text).cables]
    assert ends == [("swp5", "swp1"), ("swp6", "swp2"), ("swp9", "swp3")]


def test_a_lab_has_the_switches_of_the_plan_and_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses, the rails and the fabric are in the inventory that was planned with the cables."""
    monkeypatch.setenv("RDMA_LAB_DIR", "/lab")
    plan = make_plan("lab", "machine", 4, 22000, fabric=planned())
    rails = [rail for node in plan.nodes for rail in node.rails]
    assert {(rail.address, rail.gateway) for rail in rails} == {("", "")}
    assert [rail.uplink for rail in rails] == [f"u{rail.cable}" for rail in rails]
    found = clos_hosts.with_switches(plan, inventory(plan, "key", "hosts"))["all"]
    assert "rdma_fabric" not in found["vars"]
    assert found["hosts"]["node3"] == {"ansible_port": 22003}
    assert list(found["children"]["rdma_switches"]["hosts"]) == ["leaf1", "leaf2", "spine1", "spine2"]


def test_the_shape_survives_its_file() -> None:
    shape = shape_of(4, 2, planned())
    assert ClosShape(**json.loads(json.dumps(dataclasses.asdict(shape)))) == shape


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("- {from: node1 rail1, to: leaf1/2}", "", "has no cable for node1 rail1"),
        ("node4 rail1", "node5 rail1", "has no cable for node4 rail1"),
        ("node4 rail1", "node4 mlx5_1", "got 'node4 mlx5_1'"),
        ("to: leaf2/4", "to: leaf2/3", "several cables at leaf2 swp3"),
        ("to: leaf2/4", "to: leaf3/4", "'leaf3' is not one of its switches"),
        ("from: leaf1/5,", "from: leaf1/5-6,", "the same number of ports"),
        ("leaf1: {tier: leaf}", "leaf1: {tier: top}", "'leaf1' needs a tier"),
        ("leaf1: {tier: leaf}", "'../x': {tier: leaf}", "'../x' needs a tier"),
        ("links:", "cables:", "has no switches or no links"),
        ("links:", "links: [", "is no YAML"),
    ],
)
def test_a_plan_that_this_lab_cannot_build_is_refused(old: str, new: str, words: str) -> None:
    text = planned()
    assert text.count(old) == 1
    with pytest.raises(LabError, match=words.replace(".", r"\.")):
        make_plan("lab", "machine", 4, 22000, fabric=text.replace(old, new))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"--fabric is clos or a file with a cabling plan; there is no file '.*none\.yml'"):
        cluster.up("lab", "machine", 4, None, fabric=str(tmp_path / "none.yml"))
    (tmp_path / "bad.yml").write_bytes(b"\xff\xfe")
    with pytest.raises(LabError, match=r"bad\.yml cannot be read"):
        read_file(tmp_path / "bad.yml")


def test_the_host_is_the_second_end() -> None:
    assert read_cabling(planned()).cables[-1] == Cable(("leaf2", "swp4"), ("node4", "rail1"))
