# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts between the keys of rdma_nccl, or between them and the rails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import (
    BY_SUBNET_SINCE,
    MESH,
    RAIL_ONLY,
    knows,
    net_plugin,
    prefix_lengths,
)

Problem = tuple[str, str, str]
"""(key's path below rdma_nccl, what is wrong with it, what is expected)"""
#: The keys that package files require, and that packages of a repository do not read.
OF_FILES = {
    "version": "the full version of the package",
    "source": "file, host_file or url",
    "checksum": "'sha256:…', as `sha256sum` prints it",
}


def nccl_section_problems(nccl: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a section that is valid by itself."""
    launchers = nccl["launchers"]
    for name in dict.fromkeys(name for name in launchers if launchers.count(name) > 1):
        yield "launchers", f"has {name} twice", "each once"
    yield from _install(nccl["install"])
    if nccl["profile"] == MESH and not knows(nccl["version"], BY_SUBNET_SINCE):
        message = f"is mesh, but NCCL {nccl['version']} does not select the NIC by the peer's subnet"
        yield "profile", message, "NCCL 2.30.7 or newer, or the profile default with a network plugin for meshes"


def _install(install: Mapping[str, Any]) -> Iterator[Problem]:
    kind, packages, tests = install["kind"], install["packages"], install["tests"]
    if kind == "none" and packages:
        yield "install.packages", "is given, but kind: none installs nothing", "nothing, or kind: packages or files"
    for name, package in packages.items():
        for key, words in OF_FILES.items():
            if kind == "files" and package[key] is None:
                yield f"install.packages.{name}.{key}", "is missing: kind: files requires it", words
            if kind == "packages" and key != "version" and package[key] is not None:
                yield f"install.packages.{name}.{key}", "is given, but only kind: files reads it", "nothing, or kind: files"
    if tests is not None and tests["source"] is None:
        yield "install.tests.source", "is missing: the collection downloads nothing by default", OF_FILES["source"]
    if tests is not None and not tests["built"] and tests["mpi_home"] is None:
        message = "is missing: without MPI, each process would test alone"
        yield "install.tests.mpi_home", message, "the folder of include/mpi.h, or built: true"


def nccl_rail_problems(intent: Intent) -> Iterator[Problem]:
    """Yield a profile that does not match the rails or the fabric; both are valid by themselves."""
    profile, topology = intent["nccl"]["profile"], intent["fabric"]["topology"]
    if profile == RAIL_ONLY and topology == MESH:
        yield "profile", "is rail_only, but rdma_fabric.topology is mesh, where each cable leads to another host", "mesh"
    if profile != MESH:
        version = intent["nccl"]["version"]
        if topology == MESH and not knows(version, BY_SUBNET_SINCE) and net_plugin(intent) is None:
            message = f"is {version}, which does not select the NIC by the peer's subnet, but rdma_fabric.topology is mesh"
            yield "version", message, "NCCL 2.30.7 or newer, or a network plugin for meshes (NCCL_NET_PLUGIN in rdma_nccl.variables)"
        return
    lengths = prefix_lengths(intent)
    if not lengths:
        yield "profile", "is mesh, but NCCL selects by subnet only on RoCE, and no compute rail is RoCE", "another profile"
    by_ipv6 = [rail["name"] for rail in intent["rails"] if rail["name"] in lengths and ":" in str(rail["address"])]
    if by_ipv6:
        yield "profile", f"is mesh, but NCCL selects by subnets of IPv4 only, and {', '.join(by_ipv6)} uses IPv6", "addresses of IPv4"
    elif len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}: /{length}" for name, length in lengths.items())
        message = f"is mesh, but the rails have different prefix lengths ({shown}), and NCCL supports only one"
        yield "profile", message, "addresses with the same prefix length"
