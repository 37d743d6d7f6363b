# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate asks of what is installed."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import request_id
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl_host import (
    check_install,
    check_topology,
    check_version,
    nccl_tests_due,
    packages_to_install,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of

LIBRARY = "/usr/lib64/libnccl.so.2.30.7"
ARCHIVE = {"source": {"file": "a.tgz"}, "checksum": "sha256:" + "a" * 64, "version": "2.19.6", "mpi_home": "/usr/lib/openmpi"}
INSTALL = {"kind": "packages", "packages": {"libnccl2": {"version": "2.30.7-1"}, "openmpi-bin": None}}


def nccl(**keys: Any) -> dict[str, Any]:
    section: dict[str, Any] = lab_intent(nccl=keys)["nccl"]
    return section


def brief(findings: list[Finding]) -> list[tuple[str, str, str, str]]:
    assert {(finding.stage, finding.host) for finding in findings} == {("nccl", "node1")}
    for finding in findings:
        assert ("node1" in finding.remedy) == (finding.status in ("error", "unknown"))
    return [(finding.subject, finding.status, finding.observed, finding.expected) for finding in findings]


@pytest.mark.parametrize(
    ("version", "there", "status", "observed"),
    [
        ("2.30.7", {"library": LIBRARY, "version": "2.30.7"}, "ok", f"2.30.7 ({LIBRARY})"),
        ("2.30", {"library": LIBRARY, "version": "2.30.7"}, "ok", f"2.30.7 ({LIBRARY})"),
        ("2.3", {"library": LIBRARY, "version": "2.30.7"}, "error", f"2.30.7 ({LIBRARY})"),
        ("2.29.7", {"library": LIBRARY, "version": "2.30.7"}, "error", f"2.30.7 ({LIBRARY})"),
        ("2.30.7", {"library": "/opt/libnccl.so.2"}, "unknown", "/opt/libnccl.so.2, whose name contains no version"),
        ("2.30.7", {}, "not_applicable", "the host has no libnccl.so.2; frameworks bring their own"),
        ("2.30.7", None, "unknown", "the facts do not contain the NCCL version"),
        (
            None,
            {"library": LIBRARY, "version": "2.30.7"},
            "not_applicable",
            f"rdma_nccl.version is not set; the host has 2.30.7 ({LIBRARY})",
        ),
        (None, {}, "not_applicable", "the host has no libnccl.so.2; frameworks bring their own"),
        (None, None, "not_applicable", "rdma_nccl.version is not set"),
    ],
    ids=str,
)
def test_the_version_is_that_of_the_intent(version: str | None, there: dict[str, Any] | None, status: str, observed: str) -> None:
    expected = f"NCCL {version}" if version else "any version"
    found = check_version("node1", nccl(version=version), from_dict({"nccl": there}))
    assert brief(found) == [("libnccl.so.2", status, observed, expected)]


def test_a_library_that_the_intent_installs_must_be_there() -> None:
    requested = nccl(version="2.30.7", install=INSTALL)
    assert brief(check_version("node1", requested, from_dict({"nccl": {}}))) == [
        ("libnccl.so.2", "error", "the host has no libnccl.so.2", "NCCL 2.30.7")
    ]


def facts_with(asked: dict[str, str | None] | None, tests: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"stack": {"distribution": {"asked": asked}}, "nccl": {"tests": tests}}


@pytest.mark.parametrize(
    ("asked", "missing", "seen"),
    [
        ({"libnccl2": "2.30.7-1", "openmpi-bin": "4.1.4"}, [], [("ok", "2.30.7-1"), ("ok", "4.1.4")]),
        ({"libnccl2": "2.29.7-1", "openmpi-bin": None}, ["libnccl2", "openmpi-bin"], [("error", "2.29.7-1"), ("error", "not installed")]),
        ({"openmpi-bin": "5.0.2"}, ["libnccl2"], [("error", "not installed"), ("ok", "5.0.2")]),
        (None, ["libnccl2", "openmpi-bin"], [("unknown", "the package database was not read")] * 2),
    ],
    ids=["there", "older", "digest", "unread"],
)
def test_each_package_in_its_version(asked: dict[str, str | None] | None, missing: list[str], seen: list[tuple[str, str]]) -> None:
    requested, facts = nccl(install=INSTALL), facts_with(asked)
    assert packages_to_install(requested, from_dict(facts)) == missing
    (first, second) = seen
    assert brief(check_install("node1", requested, from_dict(facts))) == [
        ("package libnccl2", *first, "2.30.7-1"),
        ("package openmpi-bin", *second, "installed"),
    ]


def test_nccl_tests_are_those_that_were_ordered() -> None:
    requested = nccl(install={"tests": ARCHIVE})
    order = {"folder": "/opt/nccl-tests", "version": "2.19.6", "order": request_id(requested["install"]["tests"])}
    expected = "2.19.6 in /opt/nccl-tests"
    cases = {
        "ok": (order, expected),
        "older": ({**order, "version": "2.18.2", "order": "0"}, "2.18.2 in /opt/nccl-tests"),
        "otherwise": ({**order, "order": "0"}, f"{expected}, from another archive or with other options"),
        "absent": (None, "not installed by this collection"),
    }
    for name, (there, seen) in cases.items():
        facts = facts_with({}, there)
        assert nccl_tests_due(requested, from_dict(facts)) is (name != "ok")
        status = "ok" if name == "ok" else "error"
        assert brief(check_install("node1", requested, from_dict(facts))) == [("nccl-tests", status, seen, expected)]
    assert brief(check_install("node1", requested, from_dict({}))) == [("nccl-tests", "unknown", "the facts do not contain it", expected)]


def test_other_options_are_another_order() -> None:
    tests = nccl(install={"tests": ARCHIVE})["install"]["tests"]
    others = [
        {"checksum": "sha256:" + "b" * 64}, {"folder": "/opt/x"}, {"built": True}, {"cuda_home": "/opt/cuda"},
        {"mpi_home": "/opt/mpi"}, {"nccl_home": "/opt/nccl"}, {"architectures": [90]},
    ]  # fmt: skip
    assert len({request_id({**tests, **other}) for other in [{}, *others]}) == len(others) + 1
    assert request_id({**tests, "build_minutes": 5}) == request_id(tests)


def test_nothing_to_install() -> None:
    assert brief(check_install("node1", nccl(), from_dict({}))) == [
        ("NCCL", "not_applicable", "rdma_nccl.install names nothing", "what rdma_nccl.install names")
    ]


@pytest.mark.parametrize(
    ("path", "files", "found"),
    [
        (None, {}, ("NCCL_TOPO_FILE", "not_applicable", "not set: NCCL detects the topology itself")),
        ("/etc/t.xml", {"/etc/t.xml": {}}, ("/etc/t.xml", "ok", "exists")),
        ("/etc/t.xml", {}, ("/etc/t.xml", "error", "missing")),
        ("/etc/t.xml", None, ("/etc/t.xml", "unknown", "the facts do not contain files")),
    ],
    ids=["unset", "there", "gone", "unread"],
)
def test_the_topology_file_is_there(path: str | None, files: dict[str, Any] | None, found: tuple[str, str, str]) -> None:
    assert brief(check_topology("node1", path, from_dict({"files": files}))) == [(*found, "an existing file")]


def test_like_hosts_have_like_versions() -> None:
    def host(node: int, version: str) -> dict[str, Any]:
        return {
            "intent": lab_intent(node),
            "facts": {**lab_facts(node), "nccl": {"library": LIBRARY, "version": version, "openmpi": "4.1.4"}},
        }

    hosts = {f"node{node}": host(node, "2.29.7" if node == 3 else "2.30.7") for node in range(1, 5)}
    found = FLEET_CHECKS["nccl"](known_of(hosts))
    alike = {name: finding for name, findings in found.items() for finding in findings if finding.check == "alike.nccl"}
    assert {name: finding.status for name, finding in alike.items()} == {"node1": "ok", "node2": "ok", "node3": "warning", "node4": "ok"}
    assert alike["node3"].observed == (
        "versions NCCL 2.29.7, nccl-tests not installed, Open MPI 4.1.4; "
        "NCCL 2.30.7, nccl-tests not installed, Open MPI 4.1.4 on 3 of 4 hosts (node1, node2, node4)"
    )
