# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on a simulated InfiniBand fabric: up, down, status, subnet managers, and tools.

Only the hardware is simulated: ibsim answers for switches and HCAs. The subnet manager and the tools are real.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import cluster, fabric_hosts, fabric_plan, fabric_refresh, fabric_texts, ibsim, opensm, paths, preflight
from lab.cluster import Lab
from lab.errors import LabError
from lab.fabric_plan import Shape
from lab.fabric_state import Fabric, checked, load, locked, on_lab, state, write_state
from lab.paths import FabricFolder
from lab.shell import log


@dataclass(frozen=True)
class FabricRequest:
    """The requested properties of a fabric other than its shape. node: the node of opensm; options: of opensm.conf.

    named: whether switches have their names as node descriptions. lab: the lab whose containers become hosts. own_manager: whether the lab
    runs opensm; otherwise, one of the hosts must run it.
    """

    node: str | None = None
    named: bool = True
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lab: str = ""
    own_manager: bool = True


def up(name: str, shape: Shape, request: FabricRequest | None = None) -> None:
    """Start a fabric and its subnet manager. An `up` that fails or is interrupted leaves nothing behind."""
    request = request or FabricRequest()
    folder = FabricFolder.of(checked(name))
    plan = fabric_plan.make(shape)
    # With a lab, opensm runs on a switch, as the lab's inventory states.
    usual = plan.switches[-1] if request.lab else plan.hcas[0]
    fabric = Fabric(plan, folder, request.node or usual.name, request.lab, request.own_manager)
    plan.guid(fabric.manager_node)
    preflight.check_fabric()
    hosts = _hosts(fabric)
    with locked(name):
        known = state(name)
        if known and known["phase"] == "up":
            log(f"Fabric '{name}' is up already. (lab fabric status; lab fabric down)")
            return
        _tear_down(folder)
        try:
            _bring_up(fabric, request, hosts)
        except BaseException:
            _tear_down(folder)
            raise


def _hosts(fabric: Fabric) -> Lab | None:
    if not fabric.lab:
        return None
    preflight.need_root()
    lab = cluster.load(fabric.lab)
    fabric_hosts.check(lab, fabric.plan)
    if others := [name for name in on_lab(fabric.lab) if name != fabric.folder.path.name]:
        raise LabError(f"Lab '{fabric.lab}' is on fabric '{others[0]}' already: lab fabric down --name {others[0]}")
    return lab


def _bring_up(fabric: Fabric, request: FabricRequest, hosts: Lab | None) -> None:
    started = time.monotonic()
    folder, plan = fabric.folder, fabric.plan
    folder.clients.mkdir(parents=True)
    write_state(fabric, "starting")
    if hosts is not None:
        folder.network.write_text(fabric_hosts.network(hosts))
    folder.topology.write_text(fabric_texts.topology(plan, named=request.named))
    folder.cabling.write_text(fabric_texts.cabling(plan))
    folder.name_map.write_text(fabric_texts.name_map(plan))
    ibsim.start(folder, plan, patience_seconds=fabric.patience_seconds)
    simulated = time.monotonic()
    role = None
    if request.own_manager:
        role = opensm.start(folder, 1, fabric.manager_node, request.options, patience_seconds=fabric.patience_seconds)
    ended = time.monotonic()
    if hosts is not None:
        fabric_hosts.attach(hosts, plan, folder, own_manager=request.own_manager)
    write_state(fabric, "up")
    if hosts is not None:
        fabric_refresh.start(folder, fabric.lab)
    log(f"fabric    {len(plan.hcas)} HCAs of {plan.shape.hosts} hosts, {len(plan.switches)} switches, {len(list(plan.cables()))} cables")
    managed = f"opensm {ended - simulated:.1f} s; it is {role} at {fabric.manager_node}" if role else "and there is no subnet manager yet"
    log(f"fabric    ibsim took {simulated - started:.1f} s, {managed}")
    log(f"fabric    '{folder.path.name}' is up; planned cabling: {folder.cabling}, names: {folder.name_map}")


def down(name: str) -> None:
    """Remove a fabric and all its resources."""
    with locked(checked(name)):
        there = _tear_down(FabricFolder.of(name))
        log(f"Fabric '{name}' is down." if there else f"There is no fabric '{name}': nothing to do.")
    (paths.fabrics() / f".{name}.lock").unlink(missing_ok=True)


def _tear_down(folder: FabricFolder) -> bool:
    there = folder.path.exists()
    fabric_refresh.stop(folder)
    if lab := (state(folder.path.name) or {}).get("lab"):
        fabric_hosts.detach(lab)
    for number in opensm.numbers(folder):
        opensm.stop(folder, number)
    ibsim.stop(folder)
    if there:
        shutil.rmtree(folder.path)
    return there


def status(name: str) -> None:
    """Print whether the simulator and the subnet managers run, and the role of each manager."""
    fabric = load(name)
    folder = fabric.folder
    log(f"Fabric '{name}': {len(fabric.plan.hcas)} HCAs, {len(fabric.plan.switches)} switches, folder {folder.path}")
    log(f"  ibsim    {'running' if ibsim.is_running(folder) else 'ended'}")
    if fabric.lab:
        log(f"  hosts    the containers of lab '{fabric.lab}', inventory {folder.inventory}")
        log(f"  refresh  {'running' if fabric_refresh.is_running(folder) else 'ended'}")
    for number in opensm.numbers(folder):
        role = opensm.role_of(opensm.read_log(folder.manager(number)))
        log(f"  opensm{number}  {role if opensm.is_running(folder, number) else 'ended'}")


def tool(fabric: Fabric, words: Sequence[str], *, node: str | None = None) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment to run a real tool on the fabric from a node. It must run in `folder.clients`."""
    seen_from = node or fabric.manager_node
    fabric.plan.guid(seen_from)
    with locked(fabric.folder.path.name):
        ibsim.forget_the_dead(fabric.folder)
    return [*fabric.folder.enter, *words], ibsim.environment(fabric.folder, seen_from)


def run_tool(name: str, words: Sequence[str], node: str | None) -> None:
    """Replace this process with the tool, so that output and exit status are the tool's."""
    fabric = load(name)
    argv, environment = tool(fabric, words, node=node)
    os.chdir(fabric.folder.clients)
    try:
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError:
        raise LabError(f"The command `{words[0]}` is not installed on this machine.") from None


def second_manager(name: str, node: str | None, options: Mapping[str, str]) -> None:
    """Start another opensm, by default on another host than the first. Afterwards, the manager with the highest rank is master."""
    fabric = load(name)
    folder = fabric.folder
    at = node or next(hca.name for hca in fabric.plan.hcas if hca.name.split()[0] != fabric.manager_node.split()[0])
    with locked(name), _others_wait(fabric, opensm.rank(options, fabric.plan.guid(at))):
        number = max(opensm.numbers(folder), default=0) + 1
        role = opensm.start(folder, number, at, options, patience_seconds=fabric.patience_seconds)
    log(f"opensm{number} at {at} is {role}")


def start_manager(name: str, number: int) -> None:
    """Start an ended subnet manager again, unchanged. Afterwards, the manager with the highest rank is master."""
    fabric = load(name)
    home = _manager(fabric, number)
    if opensm.is_running(fabric.folder, number):
        raise LabError(f"opensm{number} of fabric '{name}' runs.")
    with locked(name), _others_wait(fabric, opensm.rank_of(home, fabric.plan)):
        role = opensm.again(fabric.folder, number, patience_seconds=fabric.patience_seconds)
    log(f"opensm{number} is {role}")


@contextmanager
def _others_wait(fabric: Fabric, new: tuple[int, int]) -> Iterator[None]:
    """Stop all managers while one with a higher rank starts, and start them again afterwards.

    ibsim announces a new manager to the master before it is ready. opensm 3.3.23 may then hand over to a manager that is still discovering,
    and the fabric has no master from then on.
    """
    folder = fabric.folder
    ibsim.forget_the_dead(folder)
    others = [number for number in opensm.numbers(folder) if opensm.is_running(folder, number)]
    wins = all(new > opensm.rank_of(folder.manager(number), fabric.plan) for number in others)
    for other in others if wins else []:
        opensm.stop(folder, other)
    yield
    for other in others if wins else []:
        opensm.again(folder, other, patience_seconds=fabric.patience_seconds)


def stop_manager(name: str, number: int, *, kill: bool = False) -> None:
    """Stop a subnet manager, as if it had failed on its host. kill: with SIGKILL, which it cannot handle."""
    fabric = load(name)
    _manager(fabric, number)
    opensm.stop(fabric.folder, number, kill=kill)
    log(f"opensm{number} has ended")


def _manager(fabric: Fabric, number: int) -> Path:
    """Return the folder of a subnet manager that has been started. Raises LabError if no manager has this number."""
    there = opensm.numbers(fabric.folder)
    if number not in there:
        raise LabError(
            f"Fabric '{fabric.folder.path.name}' has no opensm{number}; it has {', '.join(f'opensm{each}' for each in there) or 'none'}."
        )
    return fabric.folder.manager(number)
