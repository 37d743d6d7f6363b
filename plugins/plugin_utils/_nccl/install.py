# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nccl stage's installation on a host: packages, nccl-tests, and a network plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, PluginIntent
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import PARTS
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import RPM
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import MESH
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl_host import nccl_tests_due, packages_to_install
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import plugin_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_due

#: The folder on a host for copied or downloaded files.
FOLDER = "/var/lib/rdma-cluster/nccl"


def nccl_install(intent: Intent, facts: Facts) -> dict[str, Any]:
    """Return {differs, family, packages, files, tests, plugin} for the role.

    packages: as for apt or dnf (libnccl2=2.30.7-1+cuda13.0). files: {source, path, checksum} of package files. tests: None if there is
    nothing to do, else {source, timeout_seconds} and the options of rdma.cluster.nccl_tests_install. plugin: the same, of
    rdma.cluster.nccl_plugin.
    """
    nccl = intent["nccl"]
    install, family = nccl["install"], facts.stack.distribution.family if facts.stack else None
    names = packages_to_install(nccl, facts)
    of_files = install["kind"] == "files"
    packages = [] if of_files else [_specification(name, install["packages"][name]["version"], family) for name in names]
    files = [_package(install["packages"][name]) for name in names] if of_files else []
    requested = install["tests"]
    tests = _tests(requested) if requested is not None and nccl_tests_due(nccl, facts) else None
    plugin = _plugin(nccl["plugin"]) if plugin_due(intent, facts) else None
    return {
        "differs": bool(packages or files or tests or plugin),
        "family": family,
        "packages": packages,
        "files": files,
        "tests": tests,
        "plugin": plugin,
    }


def _specification(name: str, version: str | None, family: str | None) -> str:
    if version is None:
        return name
    return f"{name}-{version}" if family == RPM else f"{name}={version}"


def _package(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for a package, always in our folder: a file elsewhere could be replaced between checksum and installation."""
    (place,) = given["source"].values()
    return {**_file(given), "path": f"{FOLDER}/{str(place).rpartition('/')[2]}"}


def _file(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the path of a given file on the host: its existing one, or that of the copy."""
    source = given["source"]
    (place,) = source.values()
    path = place if "host_file" in source else f"{FOLDER}/{str(place).rpartition('/')[2]}"
    return {"source": source, "path": path, "checksum": given["checksum"]}


def _tests(tests: Mapping[str, Any]) -> dict[str, Any]:
    file = _file(tests)
    options = {name: tests[name] for name in (*PARTS, "version")}
    return {
        "source": file["source"],
        "options": {**options, "archive": file["path"], "timeout_seconds": tests["build_minutes"] * 60},
    }


def _plugin(plugin: PluginIntent) -> dict[str, Any]:
    build = plugin["source"] is not None
    file = _file({"source": plugin["source"] or plugin["file"], "checksum": plugin["checksum"]})
    return {
        "source": file["source"],
        "options": {
            "name": plugin_name(plugin),
            "file": file["path"],
            "checksum": plugin["checksum"],
            "version": plugin["version"] or "",
            "build": build,
            "verbs": plugin["kind"] == MESH,
            "timeout_seconds": plugin["build_minutes"] * 60,
        },
    }
