# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fault of a Linux switch, or of a rail of a host, for a drill: made, and ended.

A timer of systemd is armed before the fault is made. It ends the fault even if the control node or the connection is lost. Sources:
ip-link(8), nft(8), systemd-run(1), FRR's frr.service.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base import restore_timer
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.restore_timer import arm, disarm, script, write_private
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import unit_state
from ansible_collections.rdma.cluster.plugins.module_utils._drill.rail import (
    RAIL_KINDS,
    RailState,
    rail_differences,
    rail_recipe,
    read_rail,
    refuse_rail,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import has_carrier, is_up
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.planes_proof import interfaces_on, parse_addresses, parse_own_routes

CUT, SILENCE, STOP_FRR, PORTS_DOWN = "cut", "silence", "stop_frr", "ports_down"
KINDS = (CUT, SILENCE, STOP_FRR, PORTS_DOWN)
#: The token of the step is part of the name, because systemd may keep an ended unit, and its name, for a while.
UNIT = "rdma-drill-restore-{token}"
FOLDER = Path("/run/rdma-cluster/drill")
STATE, SCRIPT, RULES = "fault.json", "restore.sh", "silence.nft"
TABLE = ("inet", "rdma_drill")
SERVICE = "frr.service"
#: How long a port may take to have its carrier again, and frr.service to start.
BACK_SECONDS, LOOK_SECONDS = 30.0, 0.2
TIMER = "The timer that would end the fault"
NOTHING = "nothing was changed"
#: The protocols of routes that an administrator has set. Routes of a routing daemon must not be set again: they may be out of date.
_STATIC = ("boot", "static")


@dataclass(frozen=True)
class Fault:
    """kind: one of KINDS. ports: the interfaces of the switch that it takes down or silences; for stop_frr, those that lose their sessions.

    restore: the commands that end it. unit: the timer that runs them. before: for a fault of a rail, the state that must come back
    (RailState as a dictionary).
    """

    kind: str
    ports: list[str]
    restore: list[list[str]]
    unit: str
    before: dict[str, Any] | None = None


@dataclass(frozen=True)
class Ended:
    """left: what is not as before, as sentences; none if all is. by_timer: whether the timer ended the fault, before the control node."""

    left: list[str]
    by_timer: bool


def refuse_session(session: Session, ports: Sequence[str], sys: SysRoot, runner: Runner, client: str | None) -> None:
    """Raise ApplyError if Ansible's SSH session uses one of the ports, or if that is unknown. client: the address of its other end."""
    if session.address is None:
        return
    named = interfaces_on(ports, sys)
    if session.netdev in named:
        raise ApplyError(f"Ansible's SSH session uses {session.netdev}: this fault would cut it.")
    if session.netdev is None:
        raise ApplyError(f"The interface of Ansible's SSH session is unknown: no single interface has its address {session.address}.")
    netdev = _route_to(client, runner) if client is not None else None
    if netdev in named:
        raise ApplyError(f"Ansible's SSH session comes from {client}, and the route to it is through {netdev}: this fault would cut it.")


def _route_to(client: str, runner: Runner) -> str | None:
    text = run_checked(runner, "ip", "-json", "route", "get", client.partition("%")[0])
    try:
        return str(json.loads(text)[0]["dev"])
    except (ValueError, LookupError, TypeError) as error:
        raise ParseError(f"not the JSON of `ip -json route get`: {quoted(text)}") from error


def refuse_state(kind: str, ports: Sequence[str], sys: SysRoot, runner: Runner, folder: Path = FOLDER) -> None:
    """Raise ApplyError if the fault cannot be made here: a missing port, one that is down, no nft, no frr.service, another drill.

    A fault of a rail is also refused if something else depends on its interface (refuse_rail).
    """
    missing = [port for port in ports if not sys.exists(f"/sys/class/net/{port}")]
    if missing:
        raise ApplyError(f"This machine has no interface {', '.join(missing)}.")
    if down := [port for port in ports if not is_up(port, sys) or not has_carrier(port, sys)]:
        raise ApplyError(f"{', '.join(down)} has no carrier or is disabled before the drill. Restore it, then rerun.")
    if kind == SILENCE and runner.run(["nft", "--version"]).rc:
        raise ApplyError("`nft --version` fails: a silent cable needs nftables.")
    if kind == STOP_FRR and not unit_state(runner, SERVICE).active:
        raise ApplyError(f"{SERVICE} is not active, so stopping and starting it would not restore what runs now.")
    if (before := _read(folder)) is not None:
        steps = f"Wait until `systemctl is-active {before.unit}.timer` is inactive, then run the playbook drill with --tags restore."
        raise ApplyError(f"Another drill is under way here, or was interrupted: {before.kind} of {', '.join(before.ports)}. {steps}")
    if kind in RAIL_KINDS:
        for port in ports:
            refuse_rail(kind, port, read_rail(port, runner, sys), sys)


def preview(kind: str, ports: Sequence[str], *, runner: Runner, sys: SysRoot, address: str | None = None) -> list[str]:
    """Return the commands of a fault of a rail, for check mode. Raises ApplyError if the fault would change nothing."""
    return [" ".join(each) for port in ports for each in rail_recipe(kind, port, address, read_rail(port, runner, sys)).make]


def make(
    kind: str,
    ports: Sequence[str],
    seconds: int,
    token: str,
    *,
    runner: Runner,
    sys: SysRoot,
    folder: Path = FOLDER,
    address: str | None = None,
) -> None:
    """Arm the timer, then make the fault. Raises ApplyError; the fault is then ended again.

    seconds: after them the timer ends the fault. token: of the step, part of the timer's name. address: the planned one of a rail, with
    its prefix length. Call the refusals before.
    """
    fault, commands = _planned(kind, ports, UNIT.format(token=token), address=address, runner=runner, sys=sys, folder=folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / SCRIPT, script(fault.restore))
    write_private(folder / STATE, json.dumps(asdict(fault)))
    if kind == SILENCE:
        write_private(folder / RULES, silence_rules(ports))
    try:
        arm(runner, fault.unit, folder / SCRIPT, seconds, timer=TIMER, unchanged=NOTHING)
    except ApplyError:
        _forget(folder)
        raise
    try:
        for command in commands:
            run_checked(runner, *command)
        if kind in RAIL_KINDS and not _left(fault, runner, sys):
            raise ApplyError(f"nothing has changed after `{' '.join(commands[0])}`")
        if kind in (CUT, PORTS_DOWN) and (up := [port for port in ports if is_up(port, sys)]):
            raise ApplyError(f"still up after `ip link set dev {up[0]} down`: {', '.join(up)}")
    except (ApplyError, CommandError) as error:
        ended = end(runner=runner, sys=sys, folder=folder)
        left = " ".join(ended.left) if ended is not None else ""
        raise ApplyError(f"The fault could not be made, and was ended again: {error}. {left}".rstrip()) from error


def _planned(
    kind: str, ports: Sequence[str], unit: str, *, address: str | None, runner: Runner, sys: SysRoot, folder: Path
) -> tuple[Fault, list[list[str]]]:
    """Return the record of a fault, and the commands that make it."""
    if kind not in RAIL_KINDS:
        return Fault(kind, list(ports), _restore_commands(kind, ports, runner), unit), _commands(kind, ports, folder)
    [port] = ports
    before = read_rail(port, runner, sys)
    recipe = rail_recipe(kind, port, address, before)
    return Fault(kind, [port], recipe.restore, unit, asdict(before)), recipe.make


def end(*, runner: Runner, sys: SysRoot, folder: Path = FOLDER) -> Ended | None:
    """End the fault, wait until its ports and its service are up, and disarm the timer. None if there is no fault.

    The timer stays armed if something is not up again.
    """
    fault = _read(folder)
    if fault is None:
        return None
    by_timer = not restore_timer.is_armed(runner, fault.unit)
    for command in fault.restore:
        # One that was run by the timer already may fail; what counts is the state.
        runner.run(command, timeout_seconds=BACK_SECONDS)
    deadline = time.monotonic() + BACK_SECONDS
    while (left := _left(fault, runner, sys)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    if not left:
        if not by_timer:
            disarm(runner, fault.unit)
        _forget(folder)
    return Ended(left, by_timer)


def _read(folder: Path) -> Fault | None:
    """Return the fault that was made here and not ended by the drill. The timer may have ended it."""
    try:
        return Fault(**json.loads((folder / STATE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ParseError(f"{folder / STATE} is not the record of a fault ({error}). Check this machine, then remove the file.") from error


def _forget(folder: Path) -> None:
    for name in (STATE, SCRIPT, RULES):
        if (folder / name).exists():
            (folder / name).unlink()


def _commands(kind: str, ports: Sequence[str], folder: Path) -> list[list[str]]:
    if kind == SILENCE:
        return [["nft", "-f", str(folder / RULES)]]
    if kind == STOP_FRR:
        return [["systemctl", "stop", SERVICE]]
    return [["ip", "link", "set", "dev", port, "down"] for port in ports]


def _restore_commands(kind: str, ports: Sequence[str], runner: Runner) -> list[list[str]]:
    if kind == SILENCE:
        return [["nft", "delete", "table", *TABLE]]
    if kind == STOP_FRR:
        return [["systemctl", "start", SERVICE]]
    commands = [["ip", "link", "set", "dev", port, "up"] for port in ports]
    for port in ports:
        addresses = parse_addresses(run_checked(runner, "ip", "-json", "address", "show", "dev", port))
        commands += [["ip", "address", "replace", *words, "dev", port] for words in addresses]
        for family in ("-4", "-6"):
            routes = parse_own_routes(run_checked(runner, "ip", family, "route", "show", "table", "all", "dev", port))
            commands += [["ip", family, "route", "replace", *route.split(), "dev", port] for route in routes if _is_static(route)]
    return commands


def _is_static(route: str) -> bool:
    words = route.split()
    return "proto" not in words[:-1] or words[words.index("proto") + 1] in _STATIC


def silence_rules(ports: Sequence[str]) -> str:
    """Return nft's text that drops every packet of the ports, in both directions, before any other rule."""
    names = ", ".join(f'"{port}"' for port in ports)
    lines = [f"add table {' '.join(TABLE)}"]
    for hook, sides in (("input", ("iifname",)), ("output", ("oifname",)), ("forward", ("iifname", "oifname"))):
        chain = f"{' '.join(TABLE)} {hook}"
        lines.append(f"add chain {chain} {{ type filter hook {hook} priority -400 ; }}")
        lines += [f"add rule {chain} {side} {{ {names} }} drop" for side in sides]
    return "\n".join(lines) + "\n"


def _left(fault: Fault, runner: Runner, sys: SysRoot) -> list[str]:
    """Return what is not as before the fault, as sentences."""
    if fault.kind in RAIL_KINDS:
        [port] = fault.ports
        return rail_differences(port, RailState(**(fault.before or {})), read_rail(port, runner, sys))
    if fault.kind == SILENCE:
        is_there = not runner.run(["nft", "list", "table", *TABLE]).rc
        return [f"The rules that drop packets are still there: nft delete table {' '.join(TABLE)}"] if is_there else []
    if fault.kind == STOP_FRR:
        return [] if unit_state(runner, SERVICE).active else [f"{SERVICE} is not active: systemctl start {SERVICE}"]
    down = [port for port in fault.ports if not is_up(port, sys) or not has_carrier(port, sys)]
    return [f"{port} has no carrier or is disabled: ip link set dev {port} up" for port in down]
