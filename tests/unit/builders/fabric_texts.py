# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outputs of the tools of infiniband-diags over a stand-in of a fabric, and topology files of any size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures/fabric"
LEAF1, LEAF2, SPINE1, SPINE2 = (f"0x2c5eab0300000{number}00" for number in (1, 2, 3, 4))
NODE1_MLX5_0, NODE1_MLX5_1 = "0xe09d730300000010", "0xe09d730300000110"


def fabric_text(name: str) -> str:
    """One of the outputs in fixtures/fabric."""
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def rail_fabric(hosts: int, rails: int, leaves_per_rail: int, spines: int, uplinks: int) -> str:
    """A rail-optimised fabric as ibnetdiscover prints it: each rail has its own leaves, and every leaf as many links to each spine."""
    switches = [f"leaf{number}" for number in range(1, rails * leaves_per_rail + 1)] + [f"spine{number}" for number in range(1, spines + 1)]
    guids = {name: f"2c5eab03{number:08x}" for number, name in enumerate(switches, 1)}
    ends: dict[str, list[tuple[int, str, int]]] = {name: [] for name in switches}
    hcas = [
        (f"node{host} mlx5_{rail}", f"e09d73{host:06x}{rail:04x}", *_place(host, rail, hosts, leaves_per_rail))
        for host in range(hosts)
        for rail in range(rails)
    ]
    for name, guid, leaf, port in hcas:
        guids[name] = guid
        ends[f"leaf{leaf}"].append((port, name, 1))
    for leaf in range(1, rails * leaves_per_rail + 1):
        first = -(-hosts // leaves_per_rail) + 1
        for spine in range(1, spines + 1):
            for cable in range(uplinks):
                down, up = (leaf - 1) * uplinks + cable + 1, first + (spine - 1) * uplinks + cable
                ends[f"leaf{leaf}"].append((up, f"spine{spine}", down))
                ends[f"spine{spine}"].append((down, f"leaf{leaf}", up))
    lines = ["#", "# Topology file: generated", "#", f"# Initiated from node {hcas[0][1]} port {hcas[0][1]}"]
    for name in switches:
        lines += _switch(name, guids, sorted(ends[name]))
    for name, guid, leaf, port in hcas:
        lines += _hca(name, guid, guids[f"leaf{leaf}"], f"leaf{leaf}", port)
    return "\n".join(lines) + "\n"


def _place(host: int, rail: int, hosts: int, leaves_per_rail: int) -> tuple[int, int]:
    of_leaf = -(-hosts // leaves_per_rail)
    return rail * leaves_per_rail + host // of_leaf + 1, host % of_leaf + 1


def _switch(name: str, guids: dict[str, str], ends: list[tuple[int, str, int]]) -> Iterator[str]:
    guid = guids[name]
    yield from ("", "vendid=0x2c9", "devid=0xd2f2", f"sysimgguid=0x{guid}", f"switchguid=0x{guid}({guid})")
    yield f'Switch\t129 "S-{guid}"\t\t# "{name}" enhanced port 0 lid {int(guid, 16) % 40000 + 1} lmc 0'
    for port, far, far_port in ends:
        other = guids[far]
        letter, tail = ("H", f"({other}) ") if far.startswith("node") else ("S", "")
        yield f'[{port}]\t"{letter}-{other}"[{far_port}]{tail}\t\t# "{far}" lid 7 4xNDR'


def _hca(name: str, guid: str, leaf_guid: str, leaf: str, port: int) -> Iterator[str]:
    yield from ("", "vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{guid}", f"caguid=0x{guid}")
    yield f'Ca\t1 "H-{guid}"\t\t# "{name}"'
    yield f'[1]({guid}) \t"S-{leaf_guid}"[{port}]\t\t# lid 7 lmc 0 "{leaf}" lid 9 4xNDR'
