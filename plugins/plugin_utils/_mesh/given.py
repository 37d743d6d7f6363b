# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the inventory that a mesh is planned from. It may be incomplete: rails without addresses, and hosts without rails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import MeshIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import VALUE, IntentError, IntentProblem, where_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_sections
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.common import value_at
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.mesh import mesh_host_problems, mesh_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import DISCOVER, Pool, split_end
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import relays
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.plan import Cable, RailOf
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.forged import plain

SECTIONS = ("rdma_fabric", "rdma_rails", "rdma_nccl")


@dataclass(frozen=True)
class Given:
    """rails: host → its rails by the schema, for each host of the mesh. plane: the plane of new rails, None if several are possible.

    cables: None for those that the hosts discover. relays: whether NCCL reaches hosts without a common cable.
    """

    rails: dict[str, list[RailOf]]
    pool: Pool
    cables: list[Cable] | None
    plane: str | None
    relays: bool


def read_given(variables: Mapping[str, Mapping[str, Any]], inventory: Iterable[str]) -> Given | None:
    """Return what the inventory gives for a mesh; None if no host has rdma_fabric.mesh.

    variables: host of the play → its variables. inventory: all hosts. Raises IntentError with each problem once.
    """
    sections: dict[str, dict[str, Any]] = {}
    problems: dict[str, IntentProblem] = {}
    for host, of in variables.items():
        try:
            # The writer of YAML does not know Ansible's own text types.
            read = plain(read_sections(of, SECTIONS))
        except IntentError as error:
            problems.update({str(each): each for each in error.problems})
            continue
        if read["rdma_fabric"]["mesh"] is not None:
            sections[host] = read
            problems.update({str(each): each for each in _problems(of, read["rdma_fabric"], inventory)})
    meshes = {json.dumps(each["rdma_fabric"]["mesh"], sort_keys=True): host for host, each in sections.items()}
    if len(meshes) > 1:
        message = f"differs between {' and '.join(meshes.values())}"
        problems["differ"] = IntentProblem("rdma_fabric.mesh", message, VALUE, "the same on all hosts", message)
    if problems:
        raise IntentError(list(problems.values()))
    if not sections:
        return None
    first = next(iter(sections.values()))
    mesh: MeshIntent = first["rdma_fabric"]["mesh"]
    planes = list(first["rdma_fabric"]["planes"])
    nccl: Any = {"nccl": first["rdma_nccl"]}
    return Given(
        {host: each["rdma_rails"] for host, each in sections.items()},
        Pool.of(mesh["pool"], mesh["prefix_length"]),
        cables_of(mesh),
        planes[0] if len(planes) == 1 else None,
        relays(nccl),
    )


def cables_of(mesh: MeshIntent) -> list[Cable] | None:
    """Return the cables of the intent; None for those that the hosts discover. mesh: valid by the rules."""
    if mesh["cables"] == DISCOVER:
        return None
    ends: Sequence[Any] = mesh["cables"]
    return [(split_end(a), split_end(b)) for a, b in ends]


def _problems(given: Mapping[str, Any], fabric: Mapping[str, Any], inventory: Iterable[str]) -> list[IntentProblem]:
    found = [*mesh_problems(fabric), *mesh_host_problems(fabric["mesh"], inventory)]
    return [
        IntentProblem(f"rdma_fabric.{path}", message, VALUE, expected, message, where_of(value_at(given["rdma_fabric"], path)))
        for path, message, expected in found
    ]
