# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fabric's plan as text: the topology for ibsim, the cabling plan, and the node-name map of the tools. Pure."""

from __future__ import annotations

from lab.fabric_plan import SPEED, WIDTH, End, FabricPlan, Trunk

MELLANOX, QUANTUM, CONNECTX6 = 0x2C9, 0xD2F0, 0x101B
#: The node description of an unnamed switch.
UNNAMED = "Quantum Mellanox Technologies"


def topology(plan: FabricPlan, *, named: bool = True) -> str:
    """Return the topology for ibsim: in ibnetdiscover's format, with width and speed after each cable, and our names as node ids.

    named: False gives the switches the node description of new ones. Source: ibsim 0.10, sim_net.c.
    """
    far: dict[str, list[tuple[int, End]]] = {node.name: [] for node in plan.nodes}
    for a, b in plan.cables():
        far[a.node].append((a.port, b))
        far[b.node].append((b.port, a))
    parts = []
    for switch in plan.switches:
        shown_name = switch.name if named else UNNAMED
        head = f'Switch\t{plan.shape.ports} "{switch.name}"\t\t# "{shown_name}" base port 0 lid 0 lmc 0'
        parts.append([*_identity(switch.guid, QUANTUM, "switchguid"), head, *_cable_lines(far[switch.name], "lid 0")])
    for hca in plan.hcas:
        head = f'Ca\t1 "{hca.name}"\t\t# "{hca.name}"'
        parts.append([*_identity(hca.guid, CONNECTX6, "caguid"), head, *_cable_lines(far[hca.name], "lid 0 lmc 0")])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _identity(guid: int, device: int, key: str) -> list[str]:
    return [f"vendid={MELLANOX:#x}", f"devid={device:#x}", f"sysimgguid={guid:#x}", f"{key}={guid:#x}"]


def _cable_lines(cables: list[tuple[int, End]], lid: str) -> list[str]:
    return [f'[{port}]\t"{end.node}"[{end.port}]\t\t# {lid} "{end.node}" lid 0 {WIDTH}x{SPEED}' for port, end in sorted(cables)]


def cabling(plan: FabricPlan) -> str:
    """Return the cabling plan as YAML, for the file of `rdma_fabric.planes.NAME.plan`."""
    lines = ["switches:"]
    lines += [f'  {switch.name}: {{guid: "{switch.guid:#018x}", tier: {switch.tier}}}' for switch in plan.switches]
    lines += ["links:"]
    lines += [f'  - {{from: "{_ports(trunk.a, trunk)}", to: "{_ports(trunk.b, trunk)}"}}' for trunk in plan.trunks]
    return "\n".join(lines) + "\n"


def _ports(end: End, trunk: Trunk) -> str:
    if " " in end.node:
        return end.node
    return str(end) if trunk.count == 1 else f"{end}-{end.port + trunk.count - 1}"


def name_map(plan: FabricPlan) -> str:
    """Return the switches' names by GUID, in the format of the tools' `--node-name-map` and opensm's `node_name_map_name`."""
    return "".join(f'{switch.guid:#018x} "{switch.name}"\n' for switch in plan.switches)
