# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on a whole lab: up, down, status, power and cables. A partly finished step can be undone."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from lab import cables, clos, clos_cabling, clos_hosts, container, image, machine, namespace, paths, preflight, remote
from lab.errors import LabError
from lab.image import Image
from lab.mesh import parse_end, read_mesh
from lab.paths import LabFolder
from lab.plan import CLOS, MOST_PORTS, NIC_PREFIXES, Node, Plan, inventory, make_plan
from lab.shell import log

PORT_BASE = 22000
PORTS_PER_LAB = 256
#: For an emulated machine on a shared core: four booted within 60 s here, and two within 274 s on a busy computer.
READY_SECONDS_PER_MACHINE = 300
READY_SECONDS_PER_CONTAINER = 5


@dataclass(frozen=True)
class Lab:
    """An existing lab, as recorded in its state file."""

    plan: Plan
    folder: LabFolder
    image: Image

    @property
    def host(self) -> ModuleType:
        """The module for this kind of node, with prepare, create, start, stop, is_running, set_carrier, has_booted and host_key."""
        return machine if self.plan.kind == "machine" else container

    def is_running(self, node: Node) -> bool:
        return bool(self.host.is_running(self.folder.node(node.name)))


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lab's lock: only one command at a time changes a lab."""
    paths.labs().mkdir(parents=True, exist_ok=True)
    with (paths.labs() / f".{name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"Another command is at work on lab '{name}'; wait for it.") from None
        yield


def load(name: str) -> Lab:
    """Return the lab of this name. Raises LabError if there is none, or if its `up` was interrupted."""
    state = _state(name)
    if state is None or state["phase"] != "up":
        raise LabError(f"There is no lab '{name}'. Make one with: lab up" + ("" if name == "lab" else f" --name {name}"))
    parts = {key: state[key] for key in ("kernel_arguments", "nic_prefix", "fabric") if key in state}
    mesh = tuple(((a, b), (c, d)) for (a, b), (c, d) in state.get("mesh", []))
    plan = make_plan(name, state["kind"], state["nodes"], state["port_base"], **parts, mesh=mesh)
    return Lab(plan, LabFolder.of(name), Image(paths.images() / state["image"]))


def _state(name: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(LabFolder.of(name).state.read_text()))
    except FileNotFoundError:
        return None


def _write_state(lab: Lab, phase: str) -> None:
    state = {
        "phase": phase, "kind": lab.plan.kind, "nodes": len(lab.plan.nodes), "port_base": lab.plan.port_base,
        "image": lab.image.path.name, "kernel_arguments": lab.plan.kernel_arguments,
        "nic_prefix": lab.plan.nic_prefix, "mesh": lab.plan.mesh,
        "fabric": (lab.plan.clos.given or CLOS) if lab.plan.clos else None,
    }  # fmt: skip
    new = lab.folder.state.with_suffix(".new")
    new.write_text(json.dumps(state) + "\n")
    new.rename(lab.folder.state)


def up(
    name: str,
    kind: str,
    nodes: int,
    port_base: int | None,
    kernel_arguments: str = "",
    *,
    mesh: str | None = None,
    fabric: str | None = None,
) -> None:
    """Start a lab unless it is already up. An `up` that fails or is interrupted leaves nothing behind.

    mesh: the shape of the cables between the nodes, or a file with them; None for a switch for each rail. fabric: CLOS, or a file with a
    cabling plan, for switches that route between the nodes.
    """
    if fabric not in (None, CLOS):
        fabric = clos_cabling.read_file(Path(fabric))
    cables_between = read_mesh(mesh, nodes, MOST_PORTS) if mesh else ()
    requested = make_plan(name, kind, nodes, port_base or PORT_BASE, kernel_arguments, mesh=cables_between, fabric=fabric)
    if os.geteuid() and not preflight.has_sudo():
        preflight.check(requested)
    preflight.need_root()
    with locked(name):
        state = _state(name)
        if state and state["phase"] == "up" and not namespace.exists(requested.namespace):
            log(f"lab       '{name}' ended with a restart of this computer, and is made again")
        elif state and state["phase"] == "up":
            log(f"Lab '{name}' is up already: {state['nodes']} {state['kind']}s. (lab status; lab down)")
            return
        tear_down(name)
        preflight.check(make_plan(name, kind, nodes, port_base or _free_port_base(nodes), kernel_arguments, fabric=fabric))
        made = image.ensure()
        # The ports are chosen again, because another program can take one while the image is built.
        base, prefix = port_base or _free_port_base(nodes), secrets.choice(NIC_PREFIXES)
        plan = make_plan(name, kind, nodes, base, kernel_arguments, nic_prefix=prefix, mesh=cables_between, fabric=fabric)
        lab = Lab(plan, LabFolder.of(name), made)
        clos_hosts.refuse_other(plan)
        try:
            _bring_up(lab)
        except BaseException:
            tear_down(name)
            raise


def _free_port_base(nodes: int) -> int:
    """Return the start of the first block of ports that neither a lab nor another program uses."""
    taken = [_state(path.parent.name) or {} for path in paths.labs().glob("*/lab.json")]
    bases = {state.get("port_base") for state in taken}
    blocks = (base for base in range(PORT_BASE, 60000, PORTS_PER_LAB) if base not in bases)
    return next(base for base in blocks if all(preflight.is_free(base + index) for index in range(1, nodes + 1)))


def _bring_up(lab: Lab) -> None:
    started = time.monotonic()
    folder, plan = lab.folder, lab.plan
    folder.path.mkdir(parents=True)
    _write_state(lab, "starting")
    namespace.create(plan)
    clos_hosts.create(plan)
    lab.host.prepare(plan, folder.path, lab.image)
    log(f"nodes     starting {len(plan.nodes)} {plan.kind}s ...")
    for node in plan.nodes:
        lab.host.create(plan, node, folder.node(node.name), lab.image)
    _write_access(lab)
    for node in plan.nodes:
        lab.host.start(plan, node, folder.node(node.name), lab.image)
    wait_until_ready(lab, list(plan.nodes), started)
    _write_state(lab, "up")
    log(f"lab       '{plan.name}' is up after {time.monotonic() - started:.0f} s; inventory: {folder.inventory}")


def _write_access(lab: Lab) -> None:
    """Write the SSH key, the known hosts and the inventory."""
    shutil.copy2(lab.image.key, lab.folder.key)
    # The user of sudo owns the key, because ssh and ansible-playbook run without sudo.
    os.chown(lab.folder.key, int(os.environ.get("SUDO_UID", "0")), -1)
    keys = {node: lab.host.host_key(lab.folder.node(node.name), lab.image) for node in lab.plan.nodes}
    lab.folder.known_hosts.write_text("".join(f"[127.0.0.1]:{node.ssh_port} {key}\n" for node, key in keys.items()))
    data = clos_hosts.with_switches(lab.plan, inventory(lab.plan, str(lab.folder.key), str(lab.folder.known_hosts)))
    lab.folder.inventory.write_text(yaml.safe_dump(data, sort_keys=False))


def wait_until_ready(lab: Lab, nodes: list[Node], started: float) -> None:
    each = READY_SECONDS_PER_MACHINE if lab.plan.kind == "machine" else READY_SECONDS_PER_CONTAINER
    remote.wait_until_ready(
        nodes,
        lab.folder,
        timeout_seconds=60 + each * len(nodes),
        alive=lab.is_running,
        booted=lambda node: bool(lab.host.has_booted(lab.folder.node(node.name))),
        ready=lambda node: log(f"nodes     {node.name} is ready ({time.monotonic() - started:.0f} s)"),
    )


def down(name: str) -> None:
    """Remove a lab and all its resources; the cached image stays."""
    preflight.need_root()
    with locked(name):
        there = tear_down(name)
        log(f"Lab '{name}' is down." if there else f"There is no lab '{name}': nothing to do.")
    (paths.labs() / f".{name}.lock").unlink(missing_ok=True)


def tear_down(name: str) -> bool:
    """Stop, unmount and remove all parts of a lab, also after a failed `up`. Return whether its folder existed."""
    folder = LabFolder.of(name)
    there = folder.path.exists()
    has_clos = bool((_state(name) or {}).get("fabric"))
    nodes = [path for path in folder.path.glob("node*") if path.is_dir()] if folder.path.exists() else []
    for path in nodes:
        machine.stop(path)
        container.stop(path)
    container.remove(name, nodes)
    container.stop_forwarder(folder.path)
    if has_clos:
        clos.remove(name)
    namespace.delete(f"rdma-{name}")
    if folder.path.exists():
        shutil.rmtree(folder.path)
    return there


def status(name: str) -> None:
    """Print each node, its SSH port, and whether it runs."""
    lab = load(name)
    log(f"Lab '{name}': {len(lab.plan.nodes)} {lab.plan.kind}s, inventory {lab.folder.inventory}")
    for node in lab.plan.nodes:
        rails = "  ".join(f"{rail.name} {rail.address or rail.far}" for rail in node.rails)
        log(f"  {node.name:8} {'running' if lab.is_running(node) else 'off':8} 127.0.0.1:{node.ssh_port}  {rails}")


def power(name: str, node_name: str, action: str) -> None:
    """Power a node off without a shutdown, power it on and wait until it answers, or both."""
    preflight.need_root()
    with locked(name):
        lab = load(name)
        node = lab.plan.node(node_name)
        folder = lab.folder.node(node.name)
        if action in ("off", "cycle"):
            lab.host.stop(folder)
        if action in ("on", "cycle") and not lab.is_running(node):
            started = time.monotonic()
            lab.host.start(lab.plan, node, folder, lab.image)
            wait_until_ready(lab, [node], started)
        log(f"{node.name} is {'running' if lab.is_running(node) else 'off'}.")


def cable(name: str, node_name: str, rail_index: int, change: dict[str, str | int | bool]) -> None:
    """Apply one or more changes to a cable: rate, loss, mark, mtu, cut, restore."""
    preflight.need_root()
    with locked(name):
        lab = load(name)
        rail = lab.plan.rail(node_name, rail_index)
        ends = cables.nics(lab.plan, rail)
        if change.get("restore"):
            for node, end in ends:
                cables.restore(lab.plan, end)
                lab.host.set_carrier(lab.folder.node(node.name), end, up=True)
        if "rate" in change:
            cables.set_rate(lab.plan, rail, str(change["rate"]))
        if "loss" in change:
            cables.set_loss(lab.plan, rail, int(change["loss"]))
        if "mark" in change:
            cables.set_mark(lab.plan, rail, int(change["mark"]))
        if "mtu" in change:
            cables.set_mtu(lab.plan, rail, int(change["mtu"]))
        if change.get("cut"):
            for node, end in ends:
                cables.cut(lab.plan, end)
                lab.host.set_carrier(lab.folder.node(node.name), end, up=False)
        done = (key if value is True else f"{key} {value}" for key, value in change.items())
        log(f"{node_name} rail {rail_index}: {', '.join(done)}")


def swap(name: str, one: str, other: str) -> None:
    """Exchange the plugs in two ports ("node1/0"), as a person does who connects two cables wrongly. A second time undoes it."""
    preflight.need_root()
    with locked(name):
        lab = load(name)
        rails = [lab.plan.rail(f"node{node}", port) for node, port in map(parse_end, (one, other))]
        cables.swap(lab.plan, rails[0], rails[1])
        log(f"The plugs in {one} and {other} are exchanged.")
