# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated InfiniBand fabric as a whole: up, down, status, its faults, and the tools run on it.

What is simulated is the hardware (ibsim answers for switches and HCAs); the subnet manager and the tools are the real ones.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab import fabric_plan, ibsim, opensm, paths, preflight
from lab.errors import LabError
from lab.fabric_plan import End, FabricPlan, Shape
from lab.paths import FabricFolder
from lab.shell import log, run

#: ibportstate's numbers for what a port is to allow (IBA PortInfo LinkWidthEnabled and LinkSpeedExtEnabled).
WIDTHS = {1: 1, 2: 16, 4: 3}
SPEEDS = {"FDR": 1, "EDR": 3, "HDR": 7}
#: Counters that ibsim keeps only in the 64-bit attribute.
EXTENDED = ("PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMultiCastXmitPkts", "PortMultiCastRcvPkts")


@dataclass(frozen=True)
class Fabric:
    """A fabric that exists, as its state file tells."""

    plan: FabricPlan
    folder: FabricFolder
    manager_node: str

    @property
    def patience_seconds(self) -> float:
        """How long its simulator and its manager may take: 3 s and 4 s for 2048 HCAs on one busy core, tenfold."""
        return 20 + len(self.plan.hcas) / 40


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One command at a time on a fabric's console."""
    paths.fabrics().mkdir(parents=True, exist_ok=True)
    with (paths.fabrics() / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _checked(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{0,9}", name):
        raise LabError(f"A fabric's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '{name}'.")
    return name


def load(name: str) -> Fabric:
    """The fabric of this name; LabError if there is none, or only what an interrupted `up` has left."""
    state = _state(_checked(name))
    if state is None or state["phase"] != "up":
        raise LabError(f"There is no fabric '{name}'. Make one with: lab fabric up --name {name}")
    return Fabric(fabric_plan.make(Shape(**state["shape"])), FabricFolder.of(name), state["manager_node"])


def _state(name: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(FabricFolder.of(name).state.read_text()))
    except FileNotFoundError:
        return None


def _write_state(fabric: Fabric, phase: str) -> None:
    state = {"phase": phase, "shape": dataclasses.asdict(fabric.plan.shape), "manager_node": fabric.manager_node}
    new = fabric.folder.state.with_suffix(".new")
    new.write_text(json.dumps(state) + "\n")
    new.rename(fabric.folder.state)


def up(name: str, shape: Shape, *, node: str | None = None, named: bool = True, options: Mapping[str, str] | None = None) -> None:
    """Bring a fabric and its subnet manager up; an `up` that fails or is interrupted leaves nothing behind."""
    folder = FabricFolder.of(_checked(name))
    plan = fabric_plan.make(shape)
    fabric = Fabric(plan, folder, node or plan.hcas[0].name)
    plan.guid(fabric.manager_node)
    preflight.check_fabric()
    with locked(name):
        state = _state(name)
        if state and state["phase"] == "up":
            log(f"Fabric '{name}' is up already. (lab fabric status; lab fabric down)")
            return
        _tear_down(folder)
        try:
            _bring_up(fabric, named=named, options=options or {})
        except BaseException:
            _tear_down(folder)
            raise


def _bring_up(fabric: Fabric, *, named: bool, options: Mapping[str, str]) -> None:
    started = time.monotonic()
    folder, plan = fabric.folder, fabric.plan
    folder.clients.mkdir(parents=True)
    _write_state(fabric, "starting")
    folder.topology.write_text(fabric_plan.topology(plan, named=named))
    folder.cabling.write_text(fabric_plan.cabling(plan))
    folder.name_map.write_text(fabric_plan.name_map(plan))
    ibsim.start(folder, plan, patience_seconds=fabric.patience_seconds)
    simulated = time.monotonic()
    role = opensm.start(folder, 1, fabric.manager_node, options, patience_seconds=fabric.patience_seconds)
    _write_state(fabric, "up")
    log(
        f"fabric    {len(plan.hcas)} HCAs of {plan.shape.hosts} hosts on {len(plan.switches)} switches, {sum(1 for _ in plan.cables())} cables"
    )
    log(
        f"fabric    ibsim took {simulated - started:.1f} s; opensm at {fabric.manager_node} is {role} after {time.monotonic() - simulated:.1f} s"
    )
    log(f"fabric    '{folder.path.name}' is up; planned cabling: {folder.cabling}, names: {folder.name_map}")


def down(name: str) -> None:
    """Remove a fabric and everything that belongs to it."""
    with locked(_checked(name)):
        there = _tear_down(FabricFolder.of(name))
        log(f"Fabric '{name}' is down." if there else f"There is no fabric '{name}': nothing to do.")
    (paths.fabrics() / f".{name}.lock").unlink(missing_ok=True)


def _tear_down(folder: FabricFolder) -> bool:
    there = folder.path.exists()
    for number in opensm.numbers(folder):
        opensm.stop(folder, number)
    ibsim.stop(folder)
    if there:
        shutil.rmtree(folder.path)
    return there


def status(name: str) -> None:
    """Print the simulator and the managers: whether they run, as what, and their memory."""
    fabric = load(name)
    folder = fabric.folder
    log(f"Fabric '{name}': {len(fabric.plan.hcas)} HCAs, {len(fabric.plan.switches)} switches, folder {folder.path}")
    log(f"  ibsim    {'running' if ibsim.is_running(folder) else 'ended'}")
    for number in opensm.numbers(folder):
        role = opensm.role_of(opensm.read_log(folder.manager(number)))
        log(f"  opensm{number}  {role if opensm.is_running(folder, number) else 'ended'}")


def tool(fabric: Fabric, words: Sequence[str], *, node: str | None = None) -> tuple[list[str], dict[str, str]]:
    """How a real tool is run on the fabric, seen from a node: its argv and environment; it must run in `folder.clients`."""
    seen_from = node or fabric.manager_node
    fabric.plan.guid(seen_from)
    with locked(fabric.folder.path.name):
        ibsim.forget_the_dead(fabric.folder)
    return list(words), ibsim.environment(fabric.folder, seen_from)


def run_tool(name: str, words: Sequence[str], node: str | None) -> None:
    """Become the tool; its output and exit status are this program's."""
    fabric = load(name)
    argv, environment = tool(fabric, words, node=node)
    os.chdir(fabric.folder.clients)
    try:
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError:
        raise LabError(f"The command `{argv[0]}` is not installed on this machine.") from None


def cut(name: str, link: str) -> None:
    """Unplug one cable, or all of a node's."""
    _link_command(name, "Unlink", link)


def restore(name: str, link: str) -> None:
    """Plug in again what `cut` unplugged; a degraded cable gets its full width and speed back."""
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
    """Exchange two cables at the ends named: each then leads to where the other led. Twice is as before."""
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
    """Make a cable narrower or slower: both its ports are told, by the real ibportstate, to allow no more.

    Both, for ibsim takes a link's width and speed from the port that was set last, and opensm's sweeps set every port.
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
    for end in (at, End(*there)):
        for what, number in changes:
            words = ["ibportstate", "-G", f"{fabric.plan.port_guid(end):#x}", str(end.port), what, str(number)]
            argv, environment = tool(fabric, words)
            run(argv, environment=environment, folder=fabric.folder.clients)
    log(f"{link}: " + ", ".join(f"{width}x" if what == "width" else str(speed) for what, _number in changes))


def counter(name: str, node: str, port: int, counter_name: str, value: int) -> None:
    """Set a performance counter of a port, by perfquery's name (or ATTRIBUTE.NAME of ibsim's)."""
    fabric = load(name)
    fabric.plan.guid(node)
    attribute = "PortCountersExtended" if counter_name in EXTENDED else "PortCounters"
    field = counter_name if "." in counter_name else f"{attribute}.{counter_name}"
    with locked(name):
        log(ibsim.say(fabric.folder, f'PerformanceSet "{node}"[{port}] {field}={value}').strip())


def console(name: str, command: str) -> None:
    """Say anything else to ibsim, and print its answer."""
    fabric = load(name)
    with locked(name):
        log(ibsim.say(fabric.folder, command).strip())


def second_manager(name: str, node: str | None, options: Mapping[str, str]) -> None:
    """Start one more opensm, at another host than the first unless said."""
    fabric = load(name)
    at = node or next(hca.name for hca in fabric.plan.hcas if hca.name.split()[0] != fabric.manager_node.split()[0])
    fabric.plan.guid(at)
    with locked(name):
        ibsim.forget_the_dead(fabric.folder)
        number = max(opensm.numbers(fabric.folder)) + 1
        role = opensm.start(fabric.folder, number, at, options, patience_seconds=fabric.patience_seconds)
    log(f"opensm{number} at {at} is {role}")


def stop_manager(name: str, number: int) -> None:
    """End one subnet manager, as if its host had lost it."""
    fabric = load(name)
    if number not in opensm.numbers(fabric.folder):
        raise LabError(f"Fabric '{name}' has no opensm{number}; it has {', '.join(f'opensm{n}' for n in opensm.numbers(fabric.folder))}.")
    opensm.stop(fabric.folder, number)
    log(f"opensm{number} has ended")


@contextmanager
def _swept(fabric: Fabric) -> Iterator[None]:
    """Do something to the cables, and wait until the masters have swept the fabric again; a manager that does not is only told of."""
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
