# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts between the keys of rdma_nccl, or between them and the rails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint
from ansible_collections.rdma.cluster.plugins.module_utils._nccl import plugin as net_plugin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules_plan import PLUGIN
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import value_trouble
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables import mesh
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import NEVER, PLUGIN_VARIABLES, VARIABLES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import (
    BY_SUBNET_SINCE,
    MESH,
    RAIL_ONLY,
    knows,
    loaded_plugin,
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
    yield from _plugin(nccl)
    if nccl["profile"] == MESH and not knows(nccl["version"], BY_SUBNET_SINCE) and nccl["plugin"]["kind"] != net_plugin.MESH:
        message = f"is mesh, but NCCL {nccl['version']} does not select the NIC by the peer's subnet"
        yield "profile", message, "NCCL 2.30.7 or newer, or rdma_nccl.plugin of the kind mesh"


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


def _plugin(nccl: Mapping[str, Any]) -> Iterator[Problem]:
    plugin = nccl["plugin"]
    kind, given = plugin["kind"], [name for name in ("name", "version", "source", "file", "checksum", "variables") if plugin[name]]
    if kind == net_plugin.NONE:
        for name in given:
            yield f"plugin.{name}", "is given, but kind: none uses no plugin", "nothing, or kind: mesh or file"
        return
    yield from _plugin_file(plugin)
    if is_older(nccl["version"], net_plugin.PATH_SINCE):
        message = f"is {kind}, but NCCL {nccl['version']} accepts no path in {PLUGIN}"
        yield "plugin.kind", message, f"NCCL {net_plugin.PATH_SINCE} or newer"
    if PLUGIN in nccl["variables"]:
        yield f"variables.{PLUGIN}", "is given, but rdma_nccl.plugin sets it", "only one of them"
    for name, value in plugin["variables"].items():
        if name in nccl["variables"]:
            yield f"variables.{name}", "is given in rdma_nccl.plugin.variables too", "only one of them"
        yield from _plugin_variable(kind, name, str(value))


def _plugin_file(plugin: Mapping[str, Any]) -> Iterator[Problem]:
    if plugin["source"] is not None and plugin["file"] is not None:
        yield "plugin.file", "is given, but so is source", "only one of them"
    if plugin["kind"] == net_plugin.MESH:
        if plugin["source"] is None and plugin["file"] is None:
            yield "plugin.source", "is missing: the collection downloads nothing by default", "file, host_file or url, or a built file"
    else:
        if plugin["source"] is not None:
            yield "plugin.source", "is given, but only kind: mesh can be built", "a built library in file"
        elif plugin["file"] is None:
            yield "plugin.file", "is missing: kind: file requires it", "file, host_file or url"
        if plugin["name"] is None:
            yield "plugin.name", "is missing: kind: file requires it", "a name (ofi)"
    if plugin["checksum"] is None:
        yield "plugin.checksum", "is missing: a library is loaded into every job", OF_FILES["checksum"]


def _plugin_variable(kind: str, name: str, value: str) -> Iterator[Problem]:
    """Yield a variable of the plugin that nothing reads, or whose value it does not accept; of a foreign plugin no name is known."""
    key, expected = f"plugin.variables.{name}", "one of the plugin's variables"
    if name in NEVER:
        yield key, f"is never read: {NEVER[name]}", expected
    elif name in VARIABLES:
        yield key, "is a variable of NCCL and not of the plugin", f"rdma_nccl.variables.{name}"
    elif name in PLUGIN_VARIABLES:
        trouble = value_trouble(PLUGIN_VARIABLES[name], value)
        if trouble is not None:
            yield key, f"is {value}, which the plugin does not accept", trouble.expected
    elif kind == net_plugin.MESH or name.startswith(mesh.PREFIX):
        yield key, f"is not read by the plugin: {hint(name, PLUGIN_VARIABLES, 'variables')}", expected


def nccl_rail_problems(intent: Intent) -> Iterator[Problem]:
    """Yield a profile that does not match the rails or the fabric; both are valid by themselves."""
    profile, topology = intent["nccl"]["profile"], intent["fabric"]["topology"]
    if profile == RAIL_ONLY and topology == MESH:
        yield "profile", "is rail_only, but rdma_fabric.topology is mesh, where each cable leads to another host", "mesh"
    if profile != MESH:
        version = intent["nccl"]["version"]
        # A host with one NIC has nothing to select.
        several = len([rail for rail in intent["rails"] if rail["role"] == "compute"]) > 1
        if topology == MESH and several and not knows(version, BY_SUBNET_SINCE) and loaded_plugin(intent) is None:
            message = f"is {version}, which does not select the NIC by the peer's subnet, but rdma_fabric.topology is mesh"
            yield "version", message, "NCCL 2.30.7 or newer, or rdma_nccl.plugin of the kind mesh"
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
