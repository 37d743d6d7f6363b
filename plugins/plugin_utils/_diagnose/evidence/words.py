# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the causes of a failed job in its log: what the lines say."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import (
    Answer,
    Scene,
    Test,
    confirmed,
    excluded,
    not_checkable,
    unknown,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed

#: NCCL's numbers of a socket's kind (src/include/socket.h since 2.13): those of its two networks.
_SOCKET_KINDS = {"3": "sockets", "4": "RDMA"}
#: The words of another end that answers and refuses.
_REFUSALS = ("REJECTED", "rejected")


def mixed_networks(scene: Scene) -> Answer | None:
    """Whether the line shows that one rank uses NCCL's sockets and another one RDMA; None if it shows nothing of it."""
    kinds = {*scene.field_values("one_kind"), *scene.field_values("other_kind")}
    if kinds >= _SOCKET_KINDS.keys():
        return confirmed("one rank uses RDMA and the other one sockets: kinds 3 and 4 of a connection")
    return None


def name_unresolved(scene: Scene) -> Answer:
    words = scene.field_values("unresolved")
    return confirmed(f"the line says: {words[0]}") if words else unknown("the log does not say whether the name resolves")


def refused(scene: Scene) -> Answer:
    """Whether the other end answers and refuses: then its port and the path to it work."""
    words = [event for event in scene.field_values("event") if event in _REFUSALS]
    return confirmed("the other end answers and refuses the connection") if words else unknown("the processes of the other end have ended")


def of_program(*programs: str, why: str) -> Test:
    """Excluded if another program wrote the line."""

    def test(scene: Scene) -> Answer:
        source = scene.occurrence.source
        if any(program in source for program in programs):
            return unknown(why)
        return excluded(f"{source.split()[0]} wrote the line")

    return test


def of_fields(*names: str, why: str) -> Test:
    """Excluded if no line of the kind has one of these fields: it is about something else."""

    def test(scene: Scene) -> Answer:
        if any(scene.field_values(name) for name in names):
            return unknown(why)
        return excluded("the lines are about something else")

    return test


def said(scene: Scene, kind: str) -> Answer | None:
    """Confirmed by the line of a kind; None if the log has none."""
    line = next((each for each in scene.log.occurrences if each.name == kind), None)
    return confirmed(f"line {line.line}: {line.says}") if line is not None else None


def kernels_too_large(scene: Scene) -> Answer:
    return said(scene, "nccl.kernels") or unknown("the log does not contain the limits of the GPU")


def earlier_error(scene: Scene) -> Answer:
    """Whether the log has an error before this one, of any rank."""
    before = [each for each in scene.log.occurrences if each.kind == ERROR and each.line < scene.occurrence.line]
    if not before:
        return excluded("the log has no error before this line")
    first = min(before, key=lambda each: each.line)
    where = f" on {listed(first.hosts)}" if first.hosts else ""
    return confirmed(f"line {first.line}{where}: {first.says}")


def versions_differ(scene: Scene) -> Answer:
    versions = [f"{version} on {listed(list(hosts))}" for version, hosts in sorted(scene.log.context.versions.items())]
    if len(versions) > 1:
        return confirmed("; ".join(versions))
    if versions:
        return unknown(f"only {versions[0]} is known")
    numbers = [*scene.field_values("one_version"), *scene.field_values("other_version")]
    return confirmed(f"versions {listed(numbers)}") if len(set(numbers)) > 1 else unknown("the log does not contain the versions")


def networks_differ(scene: Scene) -> Answer:
    mixed = mixed_networks(scene)
    if mixed is not None:
        return mixed
    networks = [f"{name} on {listed(hosts)}" for name, hosts in scene.log.context.networks().items()]
    return confirmed("; ".join(networks)) if len(networks) > 1 else unknown("the log does not name the networks of several hosts")


def on_layer_of(layer: str, test: Test) -> Test:
    """A test that holds only on ports of a layer: "RoCE" or "IB". NCCL names the layer of each port that it uses."""

    def on_layer(scene: Scene) -> Answer:
        layers = scene.log.context.layers
        if layers and layer not in layers:
            return excluded(f"NCCL uses only {'InfiniBand' if layer == 'RoCE' else 'RoCE'} ports, according to the log")
        return test(scene)

    return on_layer


#: The test of a cause within a job's container.
of_container: Test = not_checkable("the facts describe the host, not a job's container")
