# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of mstconfig for a ConnectX-6 of two ports, in the form of mstflint 4.26; a card is written as rows of three values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.unit.builders.cards import card_facts, card_rails

CARD = "0000:3d:00.0"
ROWS: dict[str, tuple[str, str, str]] = {
    "NUM_OF_VFS": ("8", "8", "8"),
    "SRIOV_EN": ("False(0)", "False(0)", "False(0)"),
    "LINK_TYPE_P1": ("IB(1)", "IB(1)", "IB(1)"),
    "LINK_TYPE_P2": ("IB(1)", "ETH(2)", "ETH(2)"),
    "ESWITCH_HAIRPIN_DESCRIPTORS": ("Array[0..7]", "Array[0..7]", "Array[0..7]"),
    "ROCE_CC_MASK": ("0x0(0)", "0x0(0)", "0x0(0)"),
}


def listing(rows: Mapping[str, tuple[str, str, str]], *, read_only: Sequence[str] = (), failed: str = "", device: str = CARD) -> str:
    """What `mstconfig -d DEVICE -e q` prints; rows: name → default, current, next boot."""
    lines = ["", "Device #1:", "----------", ""]
    labels = {"Device type": "ConnectX6", "Name": "MCX653106A-HDA_Ax", "Description": "ConnectX-6 VPI adapter card", "Device": device}
    lines += [f"{label + ':':<20}{value:<20}" for label, value in labels.items()]
    lines += ["", f"{'Configurations:':<52}Default              Current              Next Boot"]
    for name, values in rows.items():
        mark = ("*" if len(set(values)) > 1 else " ") + ("RO" if name in read_only else "  ")
        lines.append(f"{mark}     {name:<44}" + " ".join(f"{value:<20}" for value in values))
    if failed:
        lines += [
            "-E- Failed to query some of the TLVs:",
            "    Failed to query the current values of the following TLVs:",
            f"    {failed} ",
            "",
        ]
    return "\n".join([*lines, ""])


def query(tool: str = "mstconfig", device: str = CARD) -> tuple[str, ...]:
    return (tool, "-d", device, "-e", "q")


def intent(
    rails: list[dict[str, Any]], settings: dict[str, Any] | None = None, *, link_type: bool = True, **versions: str
) -> dict[str, Any]:
    """As much of a normalized intent as firmware needs."""
    return {"rails": rails, "firmware": {"settings": settings or {}, "versions": versions, "link_type": link_type}}


def setting_facts(next_boot: str | None, current: str | None = "", **more: Any) -> dict[str, Any]:
    """The facts of a setting; current is as the next boot unless given."""
    return {"default": None, "current": next_boot if current == "" else current, "next_boot": next_boot, "read_only": False, **more}


def entry(error: str | None = None, **settings: Any) -> dict[str, Any]:
    """The facts of a card."""
    return {"tool": "mstconfig", "settings": settings, "error": error}


def dual_port(link_layer: str = "Ethernet") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rails and facts of a host whose two rails are the two ports of one card, each a function of its own."""
    rails, facts = card_rails(), card_facts(link_layer)
    rails[1]["nic"] = {"pci": "0000:3d:00.1"}
    facts["devices"]["mlx5_1"]["pci"]["address"] = facts["netdevs"]["ens2np0"]["pci"] = "0000:3d:00.1"
    return rails, facts
