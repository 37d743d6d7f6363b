# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether NCCL uses a plugin on a host, and what follows: variables, installation, and what is asked of the host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import relays
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import nccl_differs, nccl_variables, with_missing_devices
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.install import nccl_install
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.lint import host_problems, origins
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import MeshPath, mesh_path, plugin_query
from tests.unit.builders.hosts import lab_facts, lab_intent

SUM = "sha256:" + "a" * 64
MESH: dict[str, Any] = {"kind": "mesh", "source": {"url": "https://example.org/mesh.tgz"}, "checksum": SUM}
PATH = "/opt/rdma-cluster/nccl/mesh/libnccl-net-mesh.so"
UNKNOWN = "the version of NCCL is unknown, and NCCL before 2.30.7 does not select the NIC by the peer's subnet"


def intent_of(plugin: dict[str, Any] | None, profile: str = "default", version: str | None = None, **more: Any) -> dict[str, Any]:
    return lab_intent(nccl={"plugin": plugin, "profile": profile, "version": version, **more})


def facts_of(version: str | None = None) -> dict[str, Any]:
    facts = lab_facts()
    library = f"/usr/lib64/libnccl.so.{version}" if version else None
    facts["nccl"] = {"library": library, "version": version, "tests": None, "openmpi": None}
    return facts


@pytest.mark.parametrize(
    ("plugin", "profile", "version", "there", "path"),
    [
        (None, "default", None, None, MeshPath(None, "rdma_nccl.plugin is not set")),
        (None, "mesh", None, None, MeshPath("subnet", "rdma_nccl.profile is mesh")),
        (MESH, "default", "2.30.7", None, MeshPath("plugin", "rdma_nccl.plugin requests it, and rdma_nccl.profile is not mesh")),
        (MESH, "mesh", "2.30.7", None, MeshPath("subnet", "NCCL 2.30.7 selects the NIC by the peer's subnet itself")),
        (MESH, "mesh", None, "2.32.3", MeshPath("subnet", "NCCL 2.32.3 selects the NIC by the peer's subnet itself")),
        (MESH, "mesh", None, "2.28.9", MeshPath("plugin", "NCCL 2.28.9 does not select the NIC by the peer's subnet (2.30.7 does)")),
        (MESH, "mesh", "2.29.7", "2.32.3", MeshPath("plugin", "NCCL 2.29.7 does not select the NIC by the peer's subnet (2.30.7 does)")),
        (MESH, "mesh", None, None, MeshPath("plugin", UNKNOWN)),
        (
            {**MESH, "variables": {"NCCL_MESH_ENABLE_RELAY": 1}},
            "mesh",
            "2.30.7",
            None,
            MeshPath("plugin", "NCCL_MESH_ENABLE_RELAY is 1, and NCCL's own routing reaches only hosts with a direct cable"),
        ),
    ],
)
def test_the_path_of_a_mesh(plugin: dict[str, Any] | None, profile: str, version: str | None, there: str | None, path: MeshPath) -> None:
    intent, facts = intent_of(plugin, profile, version), from_dict(facts_of(there))
    assert mesh_path(intent, facts) == path
    variables = nccl_variables(intent, facts)
    assert ("NCCL_NET_PLUGIN" in variables) == (path.by == "plugin")
    assert ("NCCL_IB_SUBNET_AWARE_ROUTING" in variables) == (path.by == "subnet")


@pytest.mark.parametrize(
    ("plugin", "profile", "relayed"),
    [
        (None, "mesh", False),
        (MESH, "default", True),
        (MESH, "mesh", False),
        ({**MESH, "variables": {"NCCL_MESH_ENABLE_RELAY": 1}}, "mesh", True),
        ({**MESH, "variables": {"NCCL_MESH_ENABLE_RELAY": 0}}, "default", False),
        ({"kind": "file", "name": "x", "file": {"file": "x.so"}, "checksum": SUM}, "default", False),
    ],
)
def test_hosts_without_a_direct_cable(plugin: dict[str, Any] | None, profile: str, relayed: bool) -> None:
    assert relays(intent_of(plugin, profile)) is relayed


def test_the_variables_of_nccl_may_have_the_setting_of_relays() -> None:
    assert not relays(intent_of(MESH, variables={"NCCL_MESH_ENABLE_RELAY": 0}))
    assert relays(intent_of(MESH, "mesh", variables={"NCCL_MESH_ENABLE_RELAY": 1}))


@pytest.mark.parametrize(("seen", "changes"), [({}, True), ({"unread": "Permission denied"}, False)])
def test_files_that_name_a_missing_library_wait_for_it(seen: dict[str, Any], changes: bool) -> None:
    """The role installs it first; if it is unknown, nothing is written."""
    intent, tree = intent_of(MESH, version="2.28.9"), facts_of("2.28.9")
    tree["nccl"]["plugin"] = {"path": PATH, "machine": "x86_64", "library": None, "stamp": None, "probe": None, "unread": None, **seen}
    facts = from_dict(tree)
    assert nccl_differs(intent, facts) is changes
    differing = Finding("nccl", "nccl.file", "n1", "/etc/nccl.conf", "error", "differs", "the plan")
    (finding,) = with_missing_devices([differing], "n1", intent, facts)
    assert (finding.status, finding.observed) == ("not_applicable", "unchanged: the network plugin is not installed as requested")
    assert with_missing_devices([differing], "n1", intent_of(None), facts) == [differing]


def test_the_variables_of_a_plugin_are_written_and_known() -> None:
    intent = intent_of({**MESH, "variables": {"NCCL_MESH_GID_INDEX": 1}}, variables={"NCCL_DEBUG": "WARN"})
    facts = from_dict(facts_of("2.28.9"))
    variables = nccl_variables(intent, facts)
    assert {name: variables[name] for name in ("NCCL_NET_PLUGIN", "NCCL_MESH_GID_INDEX", "NCCL_DEBUG")} == {
        "NCCL_NET_PLUGIN": PATH,
        "NCCL_MESH_GID_INDEX": "1",
        "NCCL_DEBUG": "WARN",
    }
    assert {origins(intent, facts)[name] for name in ("NCCL_NET_PLUGIN", "NCCL_MESH_GID_INDEX")} == {"rdma_nccl.plugin"}
    tree = facts_of("2.28.9")
    tree["nccl_files"] = {"/etc/nccl.conf": {"NCCL_NET_PLUGIN": PATH, "NCCL_MESH_GID_INDEX": "1"}}
    problems = [each for each in host_problems(intent, from_dict(tree)) or [] if "MESH" in each["variable"]]
    assert [(each["severity"], each["where"]) for each in problems] == [("info", "rdma_nccl.plugin")]


def test_the_installation_and_the_question() -> None:
    intent = intent_of({**MESH, "version": "679a394", "variables": {"NCCL_MESH_GID_INDEX": 1}, "build_minutes": 2}, version="2.28.9")
    install = nccl_install(intent, from_dict(facts_of()))
    assert install["differs"]
    assert install["plugin"] == {
        "source": {"url": "https://example.org/mesh.tgz"},
        "options": {
            "name": "mesh", "file": "/var/lib/rdma-cluster/nccl/mesh.tgz", "checksum": SUM, "version": "679a394", "build": True,
            "verbs": True, "timeout_seconds": 120,
        },
    }  # fmt: skip
    assert plugin_query(intent) == {"name": "mesh", "variables": {"NCCL_MESH_GID_INDEX": "1"}, "nccl": "2.28.9"}
    other = intent_of({"kind": "file", "name": "ofi", "file": {"host_file": "/opt/ofi.so"}, "checksum": SUM})
    options = nccl_install(other, from_dict(facts_of()))["plugin"]["options"]
    assert (options["name"], options["file"], options["build"], options["verbs"]) == ("ofi", "/opt/ofi.so", False, False)
    assert nccl_install(intent_of(None), from_dict(facts_of()))["plugin"] is None
    assert plugin_query(intent_of(None)) is None
    routed = intent_of(MESH, "mesh", "2.30.7")
    assert nccl_install(routed, from_dict(facts_of()))["plugin"] is None
