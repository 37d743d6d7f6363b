# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the link gate on a rail's module (transceiver or cable): its readings are within its own limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import Lane, Optic, out_of_range
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort, rail_ports

declare(
    {
        "link.optic": Check(
            "link",
            "the readings of each rail's optical module against the module's own limits",
            "`ethtool -m`, on InfiniBand `mstlink -m`",
            "clean and reseat both ends, replace the module or its partner; check cooling; if it could not be read, run the tool as root; "
            "if the tool is missing (not applicable), install ethtool or mstflint",
            sources=(
                reads.command("ethtool", "-m"),
                reads.command("mstlink", "-d"),
                reads.driver("module", absent_means="the driver reports that there is no module"),
            ),
        ),
    }
)

STAGE = "link"
CHECK = "link.optic"
EXPECTED = "every reading within the module's own limits"
#: No light at all: modules report 0, or their smallest step, -40 dBm.
DARK_MW = 0.0001
#: The program that reads a module, and its package; the key: whether the port is InfiniBand.
TOOLS = {False: ("ethtool", "ethtool"), True: ("mstlink", "mstflint")}


def check_optic(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `link.optic` for each planned rail of one host: an error outside the module's alarm limits, else a warning."""
    return [_optic(port) for port in rail_ports(STAGE, host, rails, facts)]


def _optic(port: RailPort) -> Finding:
    optic, unread = _used(port), _unread(port)
    if not optic and unread and port.not_judged is None:
        if unread.startswith("command not found"):
            return _no_tool(port)
        remedy = f"Run {port.look} on {port.host} as root, which may show more of the cause."
        return port.finding(CHECK, UNKNOWN, f"the module could not be read: {unread}", EXPECTED, remedy)
    if not optic or not _has_diagnostics(optic):
        why_not = port.not_judged or (f"{_module(optic)} reports no readings, like a copper cable" if optic else _no_module(port))
        return port.skip(CHECK, why_not, EXPECTED)
    alarms, warnings = _troubles(optic)
    words = "; ".join([*alarms, *warnings])
    if port.not_judged is not None:
        return port.skip(CHECK, port.not_judged + (f" ({_module(optic)}: {words})" if words else ""), EXPECTED)
    if not words:
        return port.finding(CHECK, OK, f"{_module(optic)} is within its limits", EXPECTED)
    return port.finding(CHECK, ERROR if alarms else WARNING, f"{_module(optic)}: {words}", EXPECTED, _remedy(port, words))


def _no_tool(port: RailPort) -> Finding:
    """Finding `link.optic` of a module without a tool to read it: not_applicable, since Debian installs none of them by default."""
    tool, package = TOOLS[port.infiniband]
    remedy = f"1. Install the package {package} on {port.host}. 2. Run `ansible-playbook rdma.cluster.link --limit {port.host}`."
    return port.finding(CHECK, NOT_APPLICABLE, f"{tool}, which reads the module, is not installed", EXPECTED, remedy)


def _unread(port: RailPort) -> str | None:
    """Why the module could not be read; None if it was read, or the driver or tool reports that there is none."""
    if port.software or port.virtual:
        return None
    return port.port.optic_unread if port.port and port.infiniband else port.unread_by_driver("module")


def _no_module(port: RailPort) -> str:
    if port.software or port.virtual:
        return "no module of its own: " + ("a software device" if port.software else "a virtual function")
    return "no module: the port's driver reports none"


def _used(port: RailPort) -> Optic | None:
    """The module without its dark lanes if the link runs on fewer lanes, as with a splitter cable."""
    optic = (port.port.optic if port.port else None) or (port.ethtool.optic if port.ethtool else None)
    if optic is None or port.port is None or not port.up:
        return optic
    lit = [lane for lane in optic.lanes if lane.rx_power_mw is None or lane.rx_power_mw.value > DARK_MW]
    return replace(optic, lanes=lit) if len(lit) == port.port.width else optic


def _module(optic: Optic) -> str:
    parts = [optic.vendor, optic.part_number, f"serial {optic.serial}" if optic.serial else None]
    return " ".join(part for part in parts if part) or "the module"


def _has_diagnostics(optic: Optic) -> bool:
    readings = (optic.temperature_celsius, optic.voltage_volt)
    return any(readings) or any(lane != Lane(None, None, None) for lane in optic.lanes) or bool(optic.alarms)


def _troubles(optic: Optic) -> tuple[list[str], list[str]]:
    """The readings outside alarm limits, and those outside warning limits, in words.

    A flag that the module has raised is a warning: it remains until it is read, so it may be old.
    """
    found = [(severity, f"{what} is {value:g}, {bound}") for what, severity, value, bound in out_of_range(optic)]
    found += [("warning", f"{flag!r} was raised since the last reading") for flag in optic.alarms]
    alarms = [words for severity, words in found if severity == "alarm"]
    return alarms, [words for severity, words in found if severity != "alarm"]


def _remedy(port: RailPort, words: str) -> str:
    look = f"run `ethtool -m {port.rail.netdev}`, which shows all readings"
    if "power" in words.lower() or "bias" in words.lower():
        return (
            f"1. Clean both ends of {port.cable} and reseat the modules. 2. On {port.host}, {look}. "
            "3. If it is not better, replace the module, then its partner."
        )
    if "temp" in words.lower():
        return (
            f"1. Check the cooling of {port.host} and its card {port.address}. 2. There, {look}. "
            f"3. Replace the module of rail {port.rail.index}."
        )
    return f"1. On {port.host}, {look}. 2. Replace the module of rail {port.rail.index}."
