# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Use a lab's containers as hosts of a simulated fabric: their real tools query ibsim, and stand-ins in /sys show their HCAs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from lab import cluster, container, fabric_inventory, fabric_tree, ibsim, namespace, remote
from lab.cluster import Lab
from lab.errors import LabError
from lab.fabric_plan import FabricPlan, Hca
from lab.paths import FabricFolder
from lab.plan import Node
from lab.shell import log

PARTS = Path(__file__).parent / "fabric_host"
INTERPRETER = "#!/usr/bin/python3\n"
#: Paths in a container.
PROGRAMS, BASE, UNITS = "usr/local/lib/lab-fabric", "var/lib/lab-fabric", "etc/systemd/system"
LINKS = "usr/local/sbin"
UNIT = "lab-fabric.service"
TOOLS = (
    "ibaddr", "iblinkinfo", "ibnetdiscover", "ibping", "ibportstate", "ibqueryerrors", "ibroute", "ibstat", "ibtracert", "perfquery",
    "saquery", "sminfo", "smpdump", "smpquery",
)  # fmt: skip
#: A stand-in, because nothing simulates verbs.
DEVINFO = "ibv_devinfo"
PACKAGES = "infiniband-diags ibsim-utils"
INSTALL_SECONDS = 300.0
DIVERT = "--local --quiet --rename --divert /usr/sbin/opensm.real"
#: opensm is diverted, because units name it by its path. If it is installed later, dpkg writes it to the diverted path.
PREPARE = (
    f"depmod && apt-get install --yes --quiet --no-install-recommends {PACKAGES} && dpkg-divert {DIVERT} --add /usr/sbin/opensm "
    f"&& ln -sf /{PROGRAMS}/tool /usr/sbin/opensm && systemctl daemon-reload && systemctl --quiet enable {UNIT} && systemctl restart {UNIT}"
)
UNDO = (
    f"systemctl --quiet disable --now {UNIT}; systemctl stop 'opensm@*' opensm; rm -f /usr/sbin/opensm; "
    f"dpkg-divert {DIVERT} --remove /usr/sbin/opensm; rm -rf /{PROGRAMS} /{BASE} /{UNITS}/{UNIT} "
    "/lib/modules/$(uname -r); systemctl daemon-reload"
)


def hcas_of(plan: FabricPlan, node: str) -> dict[str, Hca]:
    """Return device name → HCA for a host."""
    return {device: hca for hca in plan.hcas for host, device in [hca.name.split(" ")] if host == node}


def check(lab: Lab, plan: FabricPlan) -> None:
    """Raise LabError unless all nodes of the lab are running containers and hosts of the plan."""
    name = lab.plan.name
    if lab.plan.kind != "container":
        raise LabError(f"Lab '{name}' is made of machines; only containers can be on a simulated fabric: lab up --kind container")
    for node in lab.plan.nodes:
        if not hcas_of(plan, node.name):
            raise LabError(f"The fabric has no {node.name}, which lab '{name}' has: it needs --hosts {len(lab.plan.nodes)} at least.")
        if not lab.is_running(node):
            raise LabError(f"{node.name} of lab '{name}' is off: lab power {node.name} on --name {name}")


def attach(lab: Lab, plan: FabricPlan, folder: FabricFolder, *, own_manager: bool) -> None:
    """Make the lab's containers hosts of a running fabric, and write their inventory. own_manager: opensm runs outside of them."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        for done in [pool.submit(_attach, lab, node, plan, folder) for node in lab.plan.nodes]:
            done.result()
    data = fabric_inventory.inventory(lab.plan, plan, lab.folder, folder, own_manager=own_manager)
    folder.inventory.write_text(yaml.safe_dump(data, sort_keys=False))
    log(f"fabric    {len(lab.plan.nodes)} containers of lab '{lab.plan.name}' are on it; inventory: {folder.inventory}")


def _attach(lab: Lab, node: Node, plan: FabricPlan, folder: FabricFolder) -> None:
    root = lab.folder.node(node.name) / "root"
    hcas = hcas_of(plan, node.name)
    _programs(root, node, hcas, folder)
    _trees(root, hcas)
    refresh_host(root, hcas, folder)
    result = remote.execute(node, lab.folder, PREPARE, timeout_seconds=INSTALL_SECONDS)
    if result.status:
        raise LabError(f"{node.name} cannot be made a host of the fabric: {(result.stderr or result.stdout).strip().splitlines()[-1]}")


def _programs(root: Path, node: Node, hcas: Mapping[str, Hca], folder: FabricFolder) -> None:
    """Write the program that runs the tools, the links to it, and the unit that mounts the stand-ins."""
    programs = root / PROGRAMS
    programs.mkdir(parents=True, exist_ok=True)
    shutil.copy(PARTS / "mount.sh", programs / "mount.sh")
    for name in ("tool", DEVINFO):
        (programs / name).write_text(INTERPRETER + (PARTS / name).read_text(encoding="utf-8"), encoding="utf-8")
        (programs / name).chmod(0o755)
    shutil.copy(PARTS / UNIT, root / UNITS / UNIT)
    known = {device: {"node": hca.name, "port_guid": f"{hca.guid + 1:#018x}"} for device, hca in hcas.items()}
    host = {"name": node.name, "network": container.FABRIC_NETWORK, "socket": ibsim.socket_name(folder), "hcas": known}
    (programs / "host.json").write_text(json.dumps(host, indent=1) + "\n")
    for name in (*TOOLS, DEVINFO):
        link = root / LINKS / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"/{PROGRAMS}/{'tool' if name in TOOLS else name}")


def _trees(root: Path, hcas: Mapping[str, Hca]) -> None:
    rails = {device: rail for rail, device in enumerate(hcas)}
    files, links = fabric_tree.fixed(rails)
    write(root / BASE / "sys", root, files)
    for name, target in links.items():
        link = root / BASE / "sys" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    built_in = root / "lib/modules" / os.uname().release
    built_in.mkdir(exist_ok=True)
    for name, text in fabric_tree.built_in().items():
        (built_in / name).write_bytes(text)
    for device, hca in hcas.items():
        live = root / BASE / "live" / device
        write(live, root, fabric_tree.identity(hca))
        (live / "device").unlink(missing_ok=True)
        (live / "device").symlink_to(fabric_tree.device_link(rails[device]))


def write(base: Path, root: Path, files: Mapping[str, str]) -> bool:
    """Write the files that differ, and return whether any did. Each is replaced atomically: a reader sees the old text or the new one."""
    new, changed = root / BASE / "new", False
    for name, text in files.items():
        path = base / name
        if path.exists() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text)
        new.rename(path)
        changed = True
    return changed


def refresh_host(root: Path, hcas: Mapping[str, Hca], folder: FabricFolder) -> bool:
    """Update the stand-ins of a host's devices from its simulated ports. Return whether anything has changed."""
    changed = False
    for device, hca in hcas.items():
        asked = [["smpquery", "portinfo", "-D", "0", "1"], ["smpquery", "pkeys", "-D", "0", "1"]]
        portinfo, pkeys = (ibsim.ask(folder, hca.name, words) for words in asked)
        if portinfo is None or pkeys is None:
            raise LabError(f"The simulated port of '{hca.name}' does not answer.")
        # perfquery uses the LID, so it does not reach a port that is down: its counters stay unchanged.
        counters = ibsim.ask(folder, hca.name, ["perfquery"])
        changed |= write(root / BASE / "live" / device, root, fabric_tree.port(hca, portinfo, pkeys, counters))
    return changed


def detach(lab_name: str) -> None:
    """Remove the fabric's files from a lab's containers, if lab and containers still exist."""
    try:
        lab = cluster.load(lab_name)
    except LabError:
        return
    for node in lab.plan.nodes:
        if not lab.is_running(node):
            log(f"fabric    {node.name} is off: what the fabric has laid there stays")
            continue
        remote.execute(node, lab.folder, UNDO)
        for name in (*TOOLS, DEVINFO):
            (lab.folder.node(node.name) / "root" / LINKS / name).unlink(missing_ok=True)


def network(lab: Lab) -> str:
    """Return the network namespace of a fabric for this lab's containers."""
    return os.fspath(namespace.path(lab.plan.namespace))
