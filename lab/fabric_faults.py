# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes to the cables and counters of a running simulated fabric."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lab import fabric_plan, ibsim, opensm
from lab.errors import LabError
from lab.fabric import tool
from lab.fabric_plan import End
from lab.fabric_state import Fabric, load, locked
from lab.paths import FabricFolder
from lab.shell import log, run

#: ibportstate's numbers for the widths and speeds that a port allows (IBA PortInfo LinkWidthEnabled and LinkSpeedExtEnabled).
WIDTHS = {1: 1, 2: 16, 4: 3}
SPEEDS = {"FDR": 1, "EDR": 3, "HDR": 7}
#: The same speeds in ibsim's `Dump`.
LANE_SPEEDS = {"FDR": "14G", "EDR": "25G", "HDR": "50G"}
ATTEMPTS, SETTLE_SECONDS = 5, 0.5
#: Counters that ibsim has only in the 64-bit attribute.
EXTENDED = ("PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMultiCastXmitPkts", "PortMultiCastRcvPkts")


def cut(name: str, link: str) -> None:
    """Unplug one cable, or all cables of a node."""
    _link_command(name, "Unlink", link)


def restore(name: str, link: str) -> None:
    """Plug in cables that `cut` unplugged; restore the full width and speed of a degraded cable."""
    fabric = load(name)
    at = fabric_plan.end(link)
    if at.port and at.port in _peers(fabric, at.node):
        degrade(name, link, fabric_plan.WIDTH, fabric_plan.SPEED)
    else:
        _link_command(name, "ReLink", link)


def _link_command(name: str, verb: str, link: str) -> None:
    fabric = load(name)
    at = fabric_plan.end(link)
    fabric.plan.guid(at.node)
    with _swept(fabric):
        ibsim.say(fabric.folder, f'{verb} "{at.node}"' + (f"[{at.port}]" if at.port else ""))
    log(f"{link}: {'unplugged' if verb == 'Unlink' else 'plugged in again'}")


def swap(name: str, first: str, second: str) -> None:
    """Exchange the far ends of two cables: each leads to the other's peer afterwards. A second call restores both."""
    fabric = load(name)
    ends = [fabric_plan.end(first), fabric_plan.end(second)]
    far = []
    for at in ends:
        there = _peers(fabric, at.node).get(at.port)
        if there is None:
            raise LabError(f"{at} is not plugged in anywhere.")
        far.append(End(*there))
    with _swept(fabric):
        for at in ends:
            ibsim.say(fabric.folder, f'Unlink "{at.node}"[{at.port}]')
        for at, to in zip(ends, reversed(far), strict=True):
            ibsim.say(fabric.folder, f'Link "{at.node}"[{at.port}] "{to.node}"[{to.port}]')
    log(f"{first} now leads to {far[1]}, {second} to {far[0]}")


def _peers(fabric: Fabric, node: str) -> dict[int, tuple[str, int]]:
    fabric.plan.guid(node)
    with locked(fabric.folder.path.name):
        return ibsim.peers(ibsim.say(fabric.folder, f'Dump "{node}"'))


def degrade(name: str, link: str, width: int | None, speed: str | None) -> None:
    """Make a cable narrower or slower: limit both of its ports with the real ibportstate.

    One port is not enough: ibsim uses the width and speed of the port that was set last, and opensm's sweeps set every port.
    """
    fabric = load(name)
    at = fabric_plan.end(link)
    there = _peers(fabric, at.node).get(at.port)
    if there is None:
        raise LabError(f"{link} is not plugged in anywhere.")
    if width is None and speed is None:
        raise LabError("Say what the cable is to be: --width, --speed or both.")
    changes = [("width", WIDTHS[width])] if width else []
    changes += [("espeed", SPEEDS[speed])] if speed else []
    for _attempt in range(ATTEMPTS):
        for end in (at, End(*there)):
            for what, number in changes:
                words = ["ibportstate", "-G", f"{fabric.plan.port_guid(end):#x}", str(end.port), what, str(number)]
                argv, environment = tool(fabric, words)
                run(argv, environment=environment, folder=fabric.folder.clients)
        # A running sweep sets every port to its earlier values, so the new values must still be there after it.
        time.sleep(SETTLE_SECONDS)
        if all(_has(fabric, end, width, speed) for end in (at, End(*there))):
            log(f"{link}: " + ", ".join([f"{width}x"] * bool(width) + [str(speed)] * bool(speed)))
            return
    raise LabError(f"{link} does not stay as it is set; opensm sets it back.")


def _has(fabric: Fabric, end: End, width: int | None, speed: str | None) -> bool:
    with locked(fabric.folder.path.name):
        now = ibsim.rate(ibsim.say(fabric.folder, f'Dump "{end.node}"'), end.port)
    return now is not None and width in (None, now[0]) and (speed is None or LANE_SPEEDS[speed] == now[1])


def counter(name: str, node: str, port: int, counter_name: str, value: int) -> None:
    """Set a performance counter of a port, by perfquery's name or by ibsim's ATTRIBUTE.NAME."""
    fabric = load(name)
    fabric.plan.guid(node)
    attribute = "PortCountersExtended" if counter_name in EXTENDED else "PortCounters"
    field = counter_name if "." in counter_name else f"{attribute}.{counter_name}"
    with locked(name):
        log(ibsim.say(fabric.folder, f'PerformanceSet "{node}"[{port}] {field}={value}').strip())


def console(name: str, command: str) -> None:
    """Send any other command to ibsim, and print the answer."""
    fabric = load(name)
    with locked(name):
        log(ibsim.say(fabric.folder, command).strip())


@contextmanager
def _swept(fabric: Fabric) -> Iterator[None]:
    """Wait after a change of cables until the masters have swept the fabric again. Only log a manager that does not."""
    folder = fabric.folder
    with locked(folder.path.name):
        masters = [n for n in opensm.numbers(folder) if opensm.is_running(folder, n) and _is_master(folder, n)]
        before = {n: (folder.manager(n) / "log").stat().st_size for n in masters}
        yield
        deadline = time.monotonic() + fabric.patience_seconds
        while waiting := [n for n in masters if not opensm.has_swept(opensm.read_log(folder.manager(n), before[n]))]:
            if time.monotonic() > deadline:
                log(f"opensm{waiting[0]} has not swept the fabric again within {fabric.patience_seconds:.0f} s")
                return
            time.sleep(0.05)


def _is_master(folder: FabricFolder, number: int) -> bool:
    return opensm.role_of(opensm.read_log(folder.manager(number))) == "master"
