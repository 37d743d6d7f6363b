# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cables that cannot be, pools without room, and other networks in the pool: each is reported with its path, file and line."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.mesh import mesh_host_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import Pool

RAIL = {"name": "ab", "nic": {"pci": "0000:01:00.0"}, "address": "192.168.100.2/24"}
CABLE = ["a/0000:01:00.0", "b/0000:01:00.0"]
POOL = "192.168.100.0/16"


def intent(cables: Any = "discover", *, pool: str = POOL, rails: Any = (RAIL,), fabric: Any = None, **more: Any) -> Any:
    """more: keys of the mesh."""
    mesh = {"pool": pool, "cables": cables, **more}
    return normalize({"rdma_rails": list(rails), "rdma_fabric": {"topology": "mesh", "mesh": mesh, **(fabric or {})}})


def problems(*args: Any, **given: Any) -> list[str]:
    try:
        intent(*args, **given)
    except IntentError as error:
        return [str(problem) for problem in error.problems]
    return []


def full(hosts: int) -> list[list[str]]:
    """The cables of a full mesh: host i uses its function j for host j."""
    return [[f"n{i}/0000:{j:02x}:00.0", f"n{j}/0000:{i:02x}:00.0"] for i, j in itertools.combinations(range(hosts), 2)]


def test_a_sound_mesh_is_in_normal_form() -> None:
    found = intent([["a/0000:0A:00.0", "b/52:54:00:AB:00:01"], CABLE])["fabric"]["mesh"]
    assert found == {"pool": POOL, "prefix_length": 24, "cables": [["a/0000:0a:00.0", "b/52:54:00:ab:00:01"], CABLE]}
    assert intent()["fabric"]["mesh"]["cables"] == "discover"
    assert problems(full(17), rails=[{**RAIL, "nic": {"pci": "0000:02:00.0"}}]) == []


@pytest.mark.parametrize(
    ("cables", "words"),
    [
        ("discovered", "rdma_fabric.mesh.cables must be one of discover; got 'discovered'"),
        ([], "rdma_fabric.mesh.cables must be a list with at least one element"),
        ([[CABLE[0]]], "rdma_fabric.mesh.cables[0] has 1 end"),
        ([[*CABLE, "c/0000:01:00.0"]], "rdma_fabric.mesh.cables[0] has 3 ends"),
        ([["a/0000:01:00.0", "a/0000:01:00.1"]], "rdma_fabric.mesh.cables[0] is a cable from a to itself"),
        ([["a/0000:01:00.0", "a/0000:01:00.0"]], "rdma_fabric.mesh.cables[0] is a cable from a to itself"),
        (
            [CABLE, ["c/0000:01:00.0", "b/0000:01:00.0"]],
            "rdma_fabric.mesh.cables[1][1] is b/0000:01:00.0, which is also an end of cables[0]",
        ),
        ([CABLE, CABLE], "rdma_fabric.mesh.cables[1][0] is a/0000:01:00.0, which is also an end of cables[0]"),
        ([["a", "b/0000:01:00.0"]], "rdma_fabric.mesh.cables[0][0] must be a host and the PCI or MAC address of its NIC"),
        ([["a/ens1", "b/0000:01:00.0"]], "rdma_fabric.mesh.cables[0][0] must be a host and the PCI or MAC address of its NIC"),
        (full(33), "rdma_fabric.mesh.cables are a full mesh of 33 hosts, which needs 32 NICs a host"),
        ([[f"hub/0000:{n:02x}:00.0", f"n{n}/0000:01:00.0"] for n in range(17)], "rdma_fabric.mesh.cables need 17 NICs in hub"),
    ],
    ids=str,
)
def test_cables_that_cannot_be(cables: Any, words: str) -> None:
    assert problems(cables)[0].startswith(words)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"pool": "192.168.100.0/23", "cables": full(4)},
            "100.0/23, which has room for 2 subnets of /24, but there are 6 cables",
        ),
        (
            {"pool": "192.168.254.0/16", "cables": full(4)},
            "254.0/16, which has room for 2 subnets of /24, but there are 6 cables",
        ),
        (
            {"pool": "192.168.100.0/30", "cables": [CABLE]},
            "100.0/30, which has room for 0 subnets of /24, but there are 1 cables",
        ),
        ({"pool": "192.168.100.1/16"}, "begins at 192.168.100.1, which is not the first address of a /24"),
        ({"pool": "fd00::/64"}, "must be the first IPv4 address of the pool"),
        ({"pool": "192.168.100.0"}, "must be the first IPv4 address of the pool"),
        (
            {"fabric": {"management": {"subnet": "192.168.128.0/17"}}},
            "is 192.168.100.0/16, which overlaps the management subnet 192.168.128.0/17",
        ),
        ({"fabric": {"topology": "switched"}}, "is given, but topology is switched"),
    ],
    ids=str,
)
def test_pools_without_room_and_beside_the_mesh(given: Any, words: str) -> None:
    assert words in " ".join(problems(**given))


def test_a_management_subnet_before_the_pool_is_beside_it() -> None:
    assert problems(fabric={"management": {"subnet": "192.168.0.0/22"}}) == []


@pytest.mark.parametrize(
    ("address", "cables", "given", "words"),
    [
        ("192.168.100.2/24", "discover", {}, None),
        ("192.168.100.2/24", [CABLE], {}, None),
        ("10.0.0.2/24", [["a/0000:05:00.0", "b/0000:05:00.0"]], {}, None),
        ("192.168.100.1/30", "discover", {}, "is in a /30, but rdma_fabric.mesh.prefix_length is 24: NCCL supports only one"),
        ("192.168.100.2/24", [CABLE], {"prefix_length": 31}, "is in a /24, but rdma_fabric.mesh.prefix_length is 31"),
        (
            "192.168.120.2/24",
            [["a/0000:05:00.0", "b/0000:05:00.0"]],
            {},
            "is in 192.168.120.0/24, which overlaps the pool of the mesh, 192.168.100.0/16; no cable of rdma_fabric.mesh has its NIC",
        ),
    ],
    ids=str,
)
def test_rails_in_the_pool_and_other_prefix_lengths(address: str, cables: Any, given: Any, words: str | None) -> None:
    found = problems(cables, rails=[{**RAIL, "address": address}], **given)
    assert [each.startswith(f"rdma_rails[0].address {words}") for each in found] == [True] * (words is not None), found


def test_an_end_on_an_unknown_host_has_its_nearest_neighbor() -> None:
    mesh = intent([["spark1/0000:01:00.0", "sparc2/0000:01:00.0"]])["fabric"]["mesh"]
    assert list(mesh_host_problems(mesh, ["spark1", "spark2"])) == [
        ("mesh.cables[0][1]", "is on sparc2, which is not in the inventory", "a host of the inventory; did you mean spark2?")
    ]


def test_a_problem_has_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(
        "rdma_rails:\n  - {name: ab, nic: {pci: '0000:01:00.0'}, address: 192.168.100.2/24}\n"
        "rdma_fabric:\n  topology: mesh\n  mesh:\n    pool: 192.168.100.0/16\n    cables:\n"
        "      - [a/0000:01:00.0, b/0000:01:00.0]\n      - [a/0000:01:00.1]\n"
    )
    with pytest.raises(IntentError) as error:
        normalize(DataLoader().load_from_file(str(tmp_path / "hosts.yml")))
    (problem,) = error.value.problems
    assert (problem.where, problem.origin.rpartition("/")[2]) == ("rdma_fabric.mesh.cables[1]", "hosts.yml:9")


def test_a_misspelt_key_has_its_nearest_neighbor() -> None:
    assert problems(prefix_lenght=30)[0] == "rdma_fabric.mesh has no key 'prefix_lenght': did you mean 'prefix_length'?"


def test_subnets_of_a_pool_are_in_order() -> None:
    pool = Pool.of(POOL, 24)
    assert [str(pool.subnet(number)) for number in (0, 1, 155)] == ["192.168.100.0/24", "192.168.101.0/24", "192.168.255.0/24"]
    assert (pool.size, Pool.of("10.0.0.0/24", 31).size, Pool.of("10.0.0.8/24", 30).size) == (156, 128, 62)
