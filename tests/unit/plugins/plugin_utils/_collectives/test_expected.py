# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which NICs of a host a collective goes by: in a mesh, with some of its GPUs, and where GPUs are far from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.expected import Expectations
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from tests.unit.builders.collective_hosts import known
from tests.unit.builders.known import known_of

CABLES = {"node1": ("cable12", "cable13"), "node2": ("cable12", "cable23"), "node3": ("cable13", "cable23")}
GPUS = ("0000:1b:00.0", "0000:2b:00.0", "0000:3b:00.0", "0000:4b:00.0")
WAY = {"possible": True, "why_not": []}


def mesh() -> Expectations:
    of = known(list(CABLES))
    for host, names in CABLES.items():
        of[host]["intent"]["fabric"]["topology"] = "mesh"
        for rail, name in zip(of[host]["intent"]["rails"], names, strict=True):
            rail["name"] = name
    return Expectations(Fleet.of(known_of(of)))


def with_gpus(far: str = "PIX", path: str = "auto") -> Expectations:
    """Hosts of four GPUs, the first two of which are as far as that from the first NIC, the others from the second one."""
    of = known()
    for each in of.values():
        each["intent"]["gpudirect"] = {"path": path}
        near = [{"rxe_rail0": far, "rxe_rail1": "SYS"}] * 2 + [{"rxe_rail0": "SYS", "rxe_rail1": far}] * 2
        gpus = [{"address": address, "model": "NVIDIA H100 80GB HBM3"} for address in GPUS]
        each["facts"].update(gpus=gpus, gpudirect={"dmabuf": WAY, "peermem": WAY}, distances=dict(zip(GPUS, near, strict=True)))
    return Expectations(Fleet.of(known_of(of)))


def gbps(of: Expectations, *hosts: str, gpus: int = 2) -> float:
    found = of.rate(hosts, "all_reduce", gpus).gbps
    assert found is not None
    return found


def test_in_a_mesh_two_hosts_have_the_cable_that_joins_them() -> None:
    both = gbps(mesh(), "node1", "node2", "node3")
    assert gbps(mesh(), "node1", "node2") == gbps(mesh(), "node2", "node3") == pytest.approx(both / 2)
    assert [rail.name for rail in mesh().rails("node3", ["node2", "node3"])] == ["cable23"]


def test_in_a_mesh_no_nic_is_idle_by_mistake() -> None:
    assert mesh().expected(["node1", "node2"], "all_reduce", 2)["all_hcas"] is False


def test_hosts_of_a_mesh_that_nothing_joins() -> None:
    of = known(["node1", "node2"])
    for host, name in (("node1", "a"), ("node2", "b")):
        of[host]["intent"]["fabric"]["topology"] = "mesh"
        of[host]["intent"]["rails"] = [{**of[host]["intent"]["rails"][0], "name": name}]
    found = Expectations(Fleet.of(known_of(of))).rate(["node1", "node2"], "all_reduce", 2)
    assert (found.gbps, found.no_limit, found.reason) == (None, "", "no cable connects node1 to another of these hosts")


@pytest.mark.parametrize(("operation", "every"), [("all_reduce", True), ("alltoall", True), ("sendrecv", False)])
def test_of_sendrecv_the_last_rank_of_a_host_alone_has_something_for_another_host(operation: str, every: bool) -> None:
    assert Expectations(Fleet.of(known_of(known()))).expected(["node1", "node2"], operation, 2)["all_hcas"] is every


def test_some_of_the_gpus_go_by_the_nics_near_them() -> None:
    every = gbps(with_gpus(), "node1", "node2", gpus=4)
    assert gbps(with_gpus(), "node1", "node2", gpus=2) == pytest.approx(every / 2)
    assert [with_gpus().expected(["node1", "node2"], "all_reduce", gpus)["all_hcas"] for gpus in (2, 4)] == [False, True]


def test_where_it_is_not_known_which_nics_are_near_no_figure_is_invented() -> None:
    fleet = with_gpus().fleet
    unreported = replace(fleet, facts={host: replace(facts, distances=None) for host, facts in fleet.facts.items()})
    found = Expectations(unreported).rate(["node1", "node2"], "all_reduce", 2)
    assert (found.gbps, found.no_limit) == (None, "2 GPUs of node1 take part, but the NICs near them are unknown")


@pytest.mark.parametrize(
    ("far", "path", "planned"),
    [("PIX", "auto", True), ("PXB", "auto", True), ("PHB", "auto", None), ("SYS", "dmabuf", True), ("PIX", "none", False)],
)
def test_gpudirect_is_expected_where_nccl_takes_it_by_itself_or_it_is_asked_for(far: str, path: str, planned: bool | None) -> None:
    assert with_gpus(far, path).expected(["node1", "node2"], "all_reduce", 4)["gdr"] is planned
