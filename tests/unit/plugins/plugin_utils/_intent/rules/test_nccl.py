# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows only between the keys of rdma_nccl."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import relays
from tests.unit.builders.hosts import lab_rails

SUM = "sha256:" + "a" * 64
FILE = {"version": "2.30.7-1", "source": {"file": "libnccl2.deb"}, "checksum": SUM}
TESTS = {"version": "2.19.6", "source": {"file": "nccl-tests.tgz"}, "checksum": SUM, "mpi_home": "/usr/lib/openmpi"}
MESH = {"kind": "mesh", "source": {"file": "mesh.tgz"}, "checksum": SUM}
OTHER = {"kind": "file", "name": "ofi", "file": {"file": "libnccl-net-ofi.so"}, "checksum": SUM}


def problems(nccl: dict[str, Any], **sections: Any) -> list[str]:
    try:
        normalize({"rdma_rails": lab_rails(), "rdma_nccl": nccl, **sections})
    except IntentError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "nccl",
    [
        {"profile": "mesh"},
        {"profile": "mesh", "version": "2.30.7"},
        {"profile": "rail_only", "version": "2.18.3", "launchers": ["slurm", "openmpi"]},
        {"install": {"kind": "packages", "packages": {"libnccl2": {"version": "2.30.7-1+cuda13.0"}, "openmpi-bin": None}}},
        {"install": {"kind": "files", "packages": {"libnccl2": FILE}}},
        {"install": {"tests": TESTS}},
        {"install": {"tests": {**TESTS, "mpi_home": None, "built": True}}},
        {"plugin": {**MESH, "version": "679a394", "variables": {"NCCL_MESH_GID_INDEX": 3, "NCCL_MESH_MAX_RELAY_HOPS": 2}}},
        {"plugin": {**MESH, "source": None, "file": {"url": "https://example.org/libnccl-net-mesh.so"}}},
        {"plugin": {**OTHER, "variables": {"NCCL_OFI_ANYTHING": "x"}}, "version": "2.21.5"},
        {"profile": "mesh", "version": "2.29.7", "plugin": MESH},
    ],
    ids=str,
)
def test_what_fits(nccl: dict[str, Any]) -> None:
    assert problems(nccl) == []


@pytest.mark.parametrize(
    ("nccl", "words"),
    [
        ({"profile": "rails"}, "rdma_nccl.profile must be one of default, debug_first_run, rail_only, mesh, cloud; got 'rails'"),
        ({"launchers": ["pbs"]}, "rdma_nccl.launchers[0] must be one of profile_d, slurm, openmpi; got 'pbs'"),
        ({"launchers": ["slurm", "slurm"]}, "rdma_nccl.launchers has slurm twice"),
        (
            {"profile": "mesh", "version": "2.29.7"},
            "rdma_nccl.profile is mesh, but NCCL 2.29.7 does not select the NIC by the peer's subnet",
        ),
        ({"install": {"packages": {"libnccl2": {}}}}, "rdma_nccl.install.packages is given, but kind: none installs nothing"),
        (
            {"install": {"kind": "packages", "packages": {"libnccl2": {**FILE, "source": None}}}},
            "rdma_nccl.install.packages.libnccl2.checksum is given, but only kind: files reads it",
        ),
        (
            {"install": {"kind": "files", "packages": {"libnccl2": {**FILE, "version": None}}}},
            "rdma_nccl.install.packages.libnccl2.version is missing: kind: files requires it",
        ),
        ({"install": {"tests": {**TESTS, "source": None}}}, "rdma_nccl.install.tests.source is missing: the collection downloads nothing"),
        ({"install": {"tests": {**TESTS, "mpi_home": None}}}, "rdma_nccl.install.tests.mpi_home is missing: without MPI"),
        (
            {"install": {"tests": {**TESTS, "checksum": "md5:1"}}},
            "rdma_nccl.install.tests.checksum must be 'sha256:' and 64 hexadecimal digits",
        ),
        ({"plugin": {"name": "mesh"}}, "rdma_nccl.plugin.name is given, but kind: none uses no plugin"),
        ({"plugin": {**MESH, "source": None}}, "rdma_nccl.plugin.source is missing: the collection downloads nothing by default"),
        ({"plugin": {**MESH, "checksum": None}}, "rdma_nccl.plugin.checksum is missing: a library is loaded into every job"),
        ({"plugin": {**MESH, "file": {"file": "x.so"}}}, "rdma_nccl.plugin.file is given, but so is source"),
        ({"plugin": {**OTHER, "name": None}}, "rdma_nccl.plugin.name is missing: kind: file requires it"),
        ({"plugin": {**OTHER, "file": None}}, "rdma_nccl.plugin.file is missing: kind: file requires it"),
        (
            {"plugin": {**OTHER, "source": {"file": "x.tgz"}, "file": None}},
            "rdma_nccl.plugin.source is given, but only kind: mesh can be built",
        ),
        ({"plugin": {**MESH, "name": "../etc"}}, "rdma_nccl.plugin.name must be lower-case letters, digits, _ and -"),
        ({"plugin": MESH, "version": "2.20.5"}, "rdma_nccl.plugin.kind is mesh, but NCCL 2.20.5 accepts no path in NCCL_NET_PLUGIN"),
        (
            {"plugin": MESH, "variables": {"NCCL_NET_PLUGIN": "mesh"}},
            "rdma_nccl.variables.NCCL_NET_PLUGIN is given, but rdma_nccl.plugin sets it",
        ),
        (
            {"plugin": {**MESH, "variables": {"NCCL_MESH_DEBUG": 1}}, "variables": {"NCCL_MESH_DEBUG": 2}},
            "rdma_nccl.variables.NCCL_MESH_DEBUG is given in rdma_nccl.plugin.variables too",
        ),
        (
            {"plugin": {**MESH, "variables": {"NCCL_MESH_MAX_HOPS": 4}}},
            "rdma_nccl.plugin.variables.NCCL_MESH_MAX_HOPS is never read: the README of nccl-mesh-plugin has this name, but its code reads "
            "NCCL_MESH_MAX_RELAY_HOPS",
        ),
        (
            {"plugin": {**MESH, "variables": {"NCCL_MESH_GID_INDX": 4}}},
            "rdma_nccl.plugin.variables.NCCL_MESH_GID_INDX is not read by the plugin: did you mean 'NCCL_MESH_GID_INDEX'?",
        ),
        (
            {"plugin": {**OTHER, "variables": {"NCCL_MESH_HOPS": 4}}},
            "rdma_nccl.plugin.variables.NCCL_MESH_HOPS is not read by the plugin",
        ),
        (
            {"plugin": {**MESH, "variables": {"NCCL_IB_TC": 104}}},
            "rdma_nccl.plugin.variables.NCCL_IB_TC is a variable of NCCL and not of the plugin",
        ),
        (
            {"plugin": {**MESH, "variables": {"NCCL_MESH_TIMEOUT_MS": 5}}},
            "rdma_nccl.plugin.variables.NCCL_MESH_TIMEOUT_MS is 5, which the plugin does not accept",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "given",
)
def test_what_does_not_fit(nccl: dict[str, Any], words: str) -> None:
    (problem,) = problems(nccl)
    assert problem.startswith(words)


def test_a_mesh_is_roce_with_subnets_of_one_size() -> None:
    rails = lab_rails()
    rails[1]["address"] = "192.168.101.1/30"
    (problem,) = problems({"profile": "mesh"}, rdma_rails=rails)
    assert "the rails have different prefix lengths (rail0: /24, rail1: /30), and NCCL supports only one" in problem
    for rail in rails:
        rail.update(link_layer="infiniband", soft=False, mtu_bytes=None)
    (problem,) = problems({"profile": "mesh"}, rdma_rails=rails)
    assert "no compute rail is RoCE" in problem


def test_a_mesh_has_no_rails_to_keep_apart() -> None:
    (problem,) = problems({"profile": "rail_only"}, rdma_fabric={"topology": "mesh"})
    assert problem.startswith("rdma_nccl.profile is rail_only, but rdma_fabric.topology is mesh")


@pytest.mark.parametrize(
    ("nccl", "found"),
    [
        ({"version": "2.29.7"}, True),
        ({"version": "2.30.6"}, True),
        ({"version": "2.30.7"}, False),
        ({}, False),
        ({"version": "2.29.7", "variables": {"NCCL_NET_PLUGIN": "mesh"}}, False),
        ({"version": "2.29.7", "variables": {"NCCL_NET_PLUGIN": "none"}}, True),
    ],
    ids=str,
)
def test_a_mesh_needs_an_nccl_that_selects_by_subnet_or_a_plugin(nccl: dict[str, Any], found: bool) -> None:
    words = "does not select the NIC by the peer's subnet, but rdma_fabric.topology is mesh"
    assert [words in each for each in problems(nccl, rdma_fabric={"topology": "mesh"})] == [True] * found
    assert problems(nccl) == []
    assert not [each for each in problems(nccl, rdma_fabric={"topology": "mesh"}, rdma_rails=lab_rails()[:1]) if words in each]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"NCCL_NET_PLUGIN": "mesh"}, False),
        ({"NCCL_NET_PLUGIN": "mesh", "NCCL_MESH_ENABLE_RELAY": 1}, True),
        ({"NCCL_NET_PLUGIN": "/opt/x/libnccl-net-mesh.so", "NCCL_MESH_ENABLE_RELAY": 1}, True),
        ({"NCCL_NET_PLUGIN": "sharp", "NCCL_MESH_ENABLE_RELAY": 1}, False),
    ],
    ids=str,
)
def test_only_the_mesh_plugin_relays_and_only_if_it_may(variables: dict[str, Any], expected: bool) -> None:
    assert relays(normalize({"rdma_rails": lab_rails(), "rdma_nccl": {"variables": variables}})) is expected
