# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of hosts of a mesh about their neighbors. Port 2 of host a is "a2": ens2, 0000:02:00.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import LinkPeers, Nic, PortPeers
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import Answer


def nic(number: int) -> str:
    return f"0000:{number:02x}:00.0"


def end(name: str) -> CableEnd:
    """ "a2" → its end."""
    return CableEnd(name[0], nic(int(name[1:])))


def mac(name: str) -> str:
    return f"52:54:00:00:{ord(name[0]):02x}:{int(name[1:]):02x}"


def _port(number: int, far: str) -> PortPeers:
    netdev = f"ens{number}"
    if far == "!":
        return PortPeers(netdev, None, error="the interface is down")
    return PortPeers(netdev, far != "-", [mac(each) for each in far.split() if each != "-"])


def asked(**hosts: Sequence[str]) -> dict[str, Answer]:
    """Host → its answer. hosts: the neighbors of each port, "b1"; "" for a silent one, "-" without a link, "!" for one that is down."""
    return {
        host: Answer(
            LinkPeers(
                {nic(number): _port(number, far) for number, far in enumerate(ports, 1)},
                {f"ens{number}": Nic(mac(f"{host}{number}"), nic(number)) for number, _far in enumerate(ports, 1)},
            )
        )
        for host, ports in hosts.items()
    }


def named(answers: Mapping[str, Answer]) -> dict[str, list[str]]:
    """Host → the NICs that it was asked by."""
    return {host: list(answer.peers.ports) for host, answer in answers.items() if answer.peers is not None}
