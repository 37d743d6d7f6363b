# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All files of a plan describe the same cables, their lengths follow the model of the room, and growth moves no cable."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import NoPlanError, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import cost, prices_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.report import plan_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.files import Written, files_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.growth import growth, refusal
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import (
    Place,
    length_m,
    places,
    rack_order,
    sold_m,
    spot_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.stored import Existing, read_existing
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest, Room

#: Not dragonfly_plus: the cables between its groups depend on the hosts of today, so they may have to move.
FAMILIES = ("leaf_spine", "fat_tree", "rail", "rail_planes")


def read(**wishes: Any) -> PlanRequest:
    request, _file = read_request({"rdma_plan": {"switch": {"ports": 16, "gbps": 400}, **wishes}})
    return request


def chosen(request: PlanRequest, existing: Design | None = None) -> tuple[list[Candidate], Design]:
    candidates = plan(request, existing)
    (design,) = [candidate.design for candidate in candidates if candidate.chosen]
    assert design is not None
    return candidates, design


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def written(request: PlanRequest, existing: Existing | None = None) -> tuple[Written, Design]:
    candidates, design = chosen(request, None if existing is None else existing.design)
    return files_of(request, candidates, existing, "before.json"), design


def existing_of(files: Written) -> Existing:
    return read_existing(json.loads(files.files["topology.json"]))


SHAPES = [
    {"hosts": 24, "nics_per_host": 2, "topology": "leaf_spine"},
    {"hosts": 40, "nics_per_host": 1, "topology": "fat_tree"},
    {"hosts": 24, "nics_per_host": 4, "topology": "rail"},
    {"hosts": 24, "nics_per_host": 4, "topology": "rail_planes"},
    {"hosts": 24, "nics_per_host": 2, "topology": "dragonfly_plus"},
    {"hosts": 5, "nics_per_host": 2, "topology": "single"},
    {"hosts": 4, "nics_per_host": 3, "topology": "mesh"},
    {"hosts": 5, "nics_per_host": 4, "topology": "ring"},
    {"hosts": 20, "nics_per_host": 2, "nic_gbps": 200, "topology": "leaf_spine", "switch": {"ports": 16, "gbps": 400, "breakout": 2}},
]


def plan_ends(files: Written, design: Design) -> set[frozenset[tuple[str, str]]]:
    """The cables of the cable plans: both ends, each a node and a port or rail."""
    found = set()
    for plane in design.planes:
        for link in parse_plan(files.files[f"cabling/{plane}.yml"], design.hosts).links:
            found.add(frozenset((spot.name, spot.device or str(spot.port)) for spot in (link.a, link.b)))
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['topology']}-{shape.get('nic_gbps', 400)}")
def test_each_cable_is_once_in_every_list(shape: dict[str, Any]) -> None:
    request = read(**shape)
    files, design = written(request)
    parts = request.host_parts

    def number(end: tuple[str, str]) -> tuple[str, str]:
        """A port as in the cable plan: "3/2" of ports in two parts is 6."""
        port, slash, part = end[1].partition("/")
        if port.startswith("rail") or not slash:
            return end
        return end[0], str((int(port) - 1) * parts + int(part))

    listed = rows(files.files["cables.csv"])
    ends = [frozenset(number(end) for end in ((row["from"], row["from_port"]), (row["to"], row["to_port"]))) for row in listed]
    assert len(ends) == len(set(ends)) == len(design.cables)
    assert set(ends) == plan_ends(files, design)
    labels = [row["label"] for row in listed]
    assert len(set(labels)) == len(labels)
    assert len(set(ends)) * 2 == len({end for each in ends for end in each})
    # The port maps have each end at a switch, with the same label and length.
    maps = {switch.name: rows(files.files[f"ports/{switch.name}.csv"]) for switch in design.switches}
    in_maps = {(name, row["number"], row["label"], row["length_m"]) for name, its in maps.items() for row in its}
    switches = set(maps)
    wanted = {
        (*number((row[side], row[f"{side}_port"])), row["label"], row["length_m"])
        for row in listed
        for side in ("from", "to")
        if row[side] in switches
    }
    assert in_maps == wanted
    assert sum(map(len, maps.values())) == len(wanted)
    # The printed pages have each cable twice, once for each rack at which it ends, and each rack once.
    page = files.files["cables.html"]
    assert page.count("<tr><td>") == 2 * len(listed)
    assert page.count("<h2") == len({row[side] for row in listed for side in ("from_rack", "to_rack")})
    # The bill counts them all.
    bill = rows(files.files["bom.csv"])
    assert sum(int(row["count"]) for row in bill if row["item"] in ("dac", "aoc", "fiber")) == len(listed)
    assert sum(int(row["count"]) for row in bill if row["item"] == request.switch.name) == len(design.switches)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['topology']}-{shape.get('nic_gbps', 400)}")
def test_the_drawings_have_all_nodes_and_cables(shape: dict[str, Any]) -> None:
    files, design = written(read(**shape))
    count, switches = 0, set()
    for plane in design.planes:
        graph = nx.parse_graphml(files.files[f"drawings/{plane}.graphml"], force_multigraph=True)
        count += graph.number_of_edges()
        switches |= {name for name, kind in graph.nodes(data="kind") if kind == "switch"}
        drawn = ElementTree.fromstring(files.files[f"drawings/{plane}.svg"])  # noqa: S314 (our own text)
        assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
        dot = files.files[f"drawings/{plane}.dot"]
        lines = [line for line in dot.splitlines() if " -- " in line]
        assert sum(int(line.partition('label="')[2].partition('"')[0] or 1) for line in lines) == graph.number_of_edges()
        assert dot.startswith(f'graph "{plane}" {{\n')
        assert dot.endswith("}\n")
    assert count == len(design.cables)
    assert switches == {switch.name for switch in design.switches}


def test_the_bill_is_the_cost_of_the_numbers() -> None:
    prices = {"dac": 200, "aoc": 900, "optic": 1500}
    more: dict[str, Any] = {
        "switch": {"ports": 16, "gbps": 400, "price": 80000},
        "prices": {"fiber": 50, "nic": 1700, "nics": True, "aoc_max_m": 7},
    }
    request = read(hosts=24, nics_per_host=4, topology="rail", cables={"prices": prices}, **more)
    files, design = written(request)
    bill = rows(files.files["bom.csv"])
    kinds = {row["kind"] for row in rows(files.files["cables.csv"])}
    assert {"aoc", "optic"} <= kinds
    counts = {row["item"]: 0 for row in bill if row["count"]}
    for row in bill:
        if row["count"]:
            counts[row["item"]] += int(row["count"])
    assert counts["optic"] == 2 * counts["fiber"]
    assert counts["nic"] == 96
    total = cost(counts, prices_of(plan_of(request), request.switch)).total
    assert total is not None
    assert float(bill[-2]["total"]) == pytest.approx(total)
    # The printed cost has the same pieces, with the lengths of the plan.
    assert f"  sum     ${total / 1e6:.3g} M" in files.text.splitlines()
    assert len(design.switches) == counts["switch"]


def test_a_part_without_a_price_leaves_the_sum_open() -> None:
    files, _design = written(read(hosts=24, nics_per_host=4, topology="rail", cables={"prices": {"dac": 200}}))
    bill = rows(files.files["bom.csv"])
    assert {row["total"] for row in bill if row["item"] == "aoc"} == {"not given"}
    assert bill[-2]["item"] == "all parts"
    assert bill[-2]["total"] == "not given"


# Racks and lengths

ROOM = Room()


def test_lengths_follow_the_model() -> None:
    top = spot_of(Place("R1", 1), ROOM, is_host=False)
    host = spot_of(Place("R1", 1), ROOM, is_host=True)
    # From 0.45 m to the switch at 1.9 m, and 1 m of slack: 2.45 m.
    assert (host.height_m, top.height_m) == (0.45, 1.9)
    assert length_m(host, top, ROOM) == 2.5
    # Rack 9 begins row 2: one rack width from the head of row 2, which is 3 m behind row 1.
    other = spot_of(Place("R9", 4), ROOM, is_host=True)
    assert (other.x_m, other.y_m) == (0.6, 6.0)
    # 2.4 - 1.9 up, 3.0 across, 2.4 - 1.8 down, 1 m of slack: 5.1 m.
    assert length_m(top, other, ROOM) == 7.0
    spine = spot_of(Place("N0-1", 1), ROOM, is_host=False)
    # 0.5 up, 3 m to row 0, 2.3 down, and 1: 6.8 m.
    assert length_m(top, spine, ROOM) == 7.0


def test_a_cable_is_sold_in_steps() -> None:
    assert [sold_m(each) for each in (0.1, 0.5, 2.4 + 0.1, 2.51, 50.0, 50.1, 61)] == [0.5, 0.5, 2.5, 3.0, 50.0, 60.0, 70.0]


def test_leaves_stand_in_a_rack_only_if_all_their_hosts_do() -> None:
    _candidates, one_rack = chosen(read(hosts=24, nics_per_host=4, topology="leaf_spine"))
    at = places(one_rack, ROOM)
    assert {at[switch.name].rack[0] for switch in one_rack.switches if switch.tier == "leaf"} == {"R"}
    assert {at[switch.name].rack for switch in one_rack.switches if switch.tier == "spine"} == {"N0-1"}
    _candidates, rails = chosen(read(hosts=24, nics_per_host=4, topology="rail"))
    at = places(rails, ROOM)
    assert {at[switch.name].rack for switch in rails.switches if switch.tier == "leaf"} == {"N1-1"}
    assert rack_order("N0-2") < rack_order("N1-1") < rack_order("R1") < rack_order("R10")


def test_no_two_nodes_have_one_place() -> None:
    for shape in SHAPES:
        _candidates, design = chosen(read(**shape))
        at = places(design, ROOM)
        # Hosts count from the bottom of a rack, and switches from its top.
        for names in (design.hosts, [switch.name for switch in design.switches]):
            assert len({at[name] for name in names}) == len(names)


# Growth


REQUESTS = st.tuples(
    st.sampled_from(FAMILIES), st.integers(2, 30), st.integers(0, 30), st.integers(0, 20), st.integers(1, 4), st.sampled_from([8, 16])
)


@settings(max_examples=15, deadline=None)
@given(REQUESTS, st.integers(1, 3), st.integers(1, 4))
def test_growth_within_hosts_later_moves_nothing(wanted: tuple[str, int, int, int, int, int], per_rack: int, per_row: int) -> None:
    family, hosts, more, later, nics, ports = wanted
    shape: dict[str, Any] = {
        "nics_per_host": nics,
        "topology": family,
        "switch": {"ports": ports, "gbps": 400},
        "hosts_later": hosts + more + later,
        "hosts_per_rack": per_rack,
        "room": {"racks_per_row": per_row},
    }
    try:
        before, _old = written(read(hosts=hosts, **shape))
    except NoPlanError:
        assume(False)
        return
    existing = existing_of(before)
    after, design = written(read(hosts=hosts + more, **shape), existing)
    found = growth(existing.design, design)
    assert found.moved == ()
    assert found.hosts == more
    assert len(found.kept) == len(existing.design.cables)
    old, new = (rows(files.files["cables.csv"]) for files in (before, after))
    by_label = {row["label"]: row for row in new}
    for row in old:
        assert by_label[row["label"]] == {**row, "status": "existing"}
    added = [row["label"] for row in new if row["status"] == "new"]
    listed = rows(after.files["growth.csv"])
    assert [row["label"] for row in listed] == added
    assert {row["change"] for row in listed} <= {"add"}
    bill = rows(after.files["bom.csv"])
    cables = ("dac", "aoc", "fiber")
    assert sum(int(row["new"]) for row in bill if row["item"] in cables) == len(added)
    assert sum(int(row["new"]) for row in bill if row["item"] == "switch") == found.switches
    assert "  must move: none" in after.text.splitlines()
    # The grown fabric can grow again: no place of it has moved.
    again = existing_of(after)
    assert {name: again.places[name] for name in existing.places} == existing.places


def test_a_fabric_that_cannot_grow_says_what_is_short_and_what_would_move() -> None:
    before, _design = written(read(hosts=24, nics_per_host=2, topology="leaf_spine"))
    existing = existing_of(before)
    request = read(hosts=100, nics_per_host=2)
    with pytest.raises(NoPlanError):
        plan(request, existing.design)
    words, would = refusal(request, existing.design)
    most = int(words.partition("at most ")[2].split()[0])
    assert words.startswith(
        f"The existing fabric holds at most {most} hosts without moving a cable; 100 are planned: {100 - most} too many."
    )
    chosen(read(hosts=most, nics_per_host=2, topology="leaf_spine"), existing.design)
    with pytest.raises(NoPlanError):
        plan(read(hosts=most + 1, nics_per_host=2), existing.design)
    assert would is not None
    assert f"moves {len(would.moved)} of {len(existing.design.cables)} existing cables" in words
    # What moves and what stays are all existing cables.
    assert len(would.moved) + len(would.kept) == len(existing.design.cables)


def test_another_room_is_refused_because_places_would_move() -> None:
    before, _design = written(read(hosts=24, nics_per_host=2, topology="leaf_spine", hosts_later=30))
    request = read(hosts=30, nics_per_host=2, topology="leaf_spine", hosts_per_rack=8, room={"slack_m": 2})
    existing = existing_of(before)
    candidates, _new = chosen(request, existing.design)
    with pytest.raises(ParseError, match="hosts_per_rack is 8 and was 4, slack_m is 2 and was 1"):
        files_of(request, candidates, existing, "before.json")


HOSTILE = ["../../etc/passwd", "<script>alert(1)</script>", '=cmd|"/c calc"!A1', "node1; rm -rf", "leaf1\nleaf2", "", "a" * 300, "{{ 1 }}"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("what", ["host", "switch", "plane", "rack"])
def test_a_hostile_name_in_an_existing_plan_is_refused(what: str, name: str) -> None:
    files, _design = written(read(hosts=4, nics_per_host=1, topology="single"))
    stored = json.loads(files.files["topology.json"])
    design = stored["design"]
    if what == "host":
        design["hosts"][0] = name
    elif what == "plane":
        design["planes"][0] = name
    elif what == "switch":
        design["switches"][0] = " ".join([name, *design["switches"][0].split(" ")[1:]])
    else:
        stored["places"]["node1"] = f"{name} 1"
    with pytest.raises(ParseError, match=r"it is not a plan/topology\.json of this collection"):
        read_existing(stored)


def test_a_cable_of_an_unknown_node_is_refused() -> None:
    files, _design = written(read(hosts=4, nics_per_host=1, topology="single"))
    stored = json.loads(files.files["topology.json"])
    stored["design"]["cables"][0] = "node9 1 rail0 leaf1 1 400"
    with pytest.raises(ParseError, match="a cable of 'node9', which is no host and no switch"):
        read_existing(stored)


def test_the_summary_has_the_same_tables_in_both_forms() -> None:
    files, _design = written(read(hosts=24, nics_per_host=4))
    text, page = files.files["summary.md"], files.files["summary.html"]
    assert text.startswith("# Plan of a fabric for 24 hosts: rail\n")
    assert page.count("<h2>") == text.count("\n## ")
    assert page.count("<tr>") == sum(line.startswith("|") and not line.startswith("| ---") for line in text.splitlines())
    for words in ("src=", "href=", "@import", "url("):
        assert words not in page
    assert yaml.safe_load(files.files["inventory.yml"])["all"]["hosts"].keys() == {f"node{number}" for number in range(1, 25)}
