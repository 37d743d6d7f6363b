# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A routed Clos network: leaves, spines and hosts as network namespaces, joined by veth pairs, with the real FRR on the switches, and on
hosts that have a configuration.

The kernel that forwards and the routing daemons are real; only the switch hardware is missing. Nothing is visible on this machine's own
network. Each node has its own /etc/frr and /run, so that plain commands such as `vtysh` and `lldpcli` work inside it.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lab import clos_plan, namespace, paths, preflight, process
from lab.clos_cabling import HOST_PORT, Cable
from lab.clos_daemon import Daemon
from lab.clos_plan import MTU_BYTES, ClosShape, checked, namespace_of
from lab.errors import LabError
from lab.paths import ClosFolder
from lab.shell import ENVIRONMENT, log, run

ENTER = Path(__file__).parent / "clos_node"
FRR = Path("/usr/lib/frr")
#: In the order in which they start; zebra makes the socket that the others need.
DAEMONS = ("zebra", "bgpd", "bfdd")
#: The kernel settings of a switch that routes. The role frr sets the same on a real one.
SWITCH_SYSCTLS = {
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv4.fib_multipath_hash_policy": 1,
    "net.ipv4.conf.all.ignore_routes_with_linkdown": 1,
}
TABLE = "lab_silence"


@dataclass(frozen=True)
class Clos:
    """A network that is up, as recorded in its state file."""

    name: str
    shape: ClosShape

    @property
    def folder(self) -> ClosFolder:
        return ClosFolder.of(self.name)

    def argv(self, node: str, words: Sequence[str | Path]) -> list[str]:
        """Return the words that run a command inside a node. Raises LabError for a node that is not there."""
        if node not in self.shape.namespaces:
            raise LabError(f"'{node}' is not a node of '{self.name}': {', '.join(self.shape.namespaces)}.")
        return [str(ENTER), namespace_of(self.name, node), str(self.folder.node(node)), *map(str, words)]

    def run(self, node: str, *words: str | Path, check: bool = True, stdin: str | None = None) -> str:
        """Run a command inside a node and return its standard output."""
        return run(self.argv(node, words), check=check, stdin=stdin)


def up(name: str, shape: ClosShape, configurations: Path | None = None) -> Clos:
    """Create the namespaces and cables, and start FRR if there are configurations. An `up` that fails leaves nothing behind.

    configurations: a folder with NODE/frr.conf for each switch or host to start; None starts none.
    """
    clos = Clos(checked(name), shape)
    preflight.check_clos()
    preflight.need_root()
    with locked(name):
        if clos.folder.state.exists():
            log(f"Clos network '{name}' is up already. (lab clos down)")
            return load(name)
        started = time.monotonic()
        try:
            _create(clos)
            if configurations is not None:
                route(clos, texts_of(configurations))
            clos.folder.state.write_text(json.dumps(dataclasses.asdict(shape)) + "\n")
        except BaseException:
            _tear_down(name)
            raise
        cores = f"{shape.cores} cores, " if shape.cores else ""
        tiers = f"{len(shape.switches)} switches, " if shape.given else f"{shape.leaves} leaves, {shape.spines} spines, {cores}"
        words = f"{tiers}{len(shape.host_names)} hosts"
        log(f"clos      '{name}' is up after {time.monotonic() - started:.1f} s: {words}; planned cabling: {clos.folder.cabling}")
    return clos


def load(name: str) -> Clos:
    """Return the network of this name. Raises LabError if there is none."""
    try:
        shape = ClosShape(**json.loads(ClosFolder.of(checked(name)).state.read_text()))
    except FileNotFoundError:
        raise LabError(f"There is no Clos network '{name}'. Make one with: lab clos up --name {name}") from None
    return Clos(name, shape)


def down(name: str) -> None:
    """End the daemons of a network, and remove its namespaces and files. Raises LabError if a lab needs it."""
    preflight.need_root()
    with locked(checked(name)):
        if ClosFolder.of(name).state.exists() and load(name).shape.of_lab:
            raise LabError(f"The Clos network '{name}' belongs to the lab of this name: lab down --name {name}")
        there = _tear_down(name)
        log(f"Clos network '{name}' is down." if there else f"There is no Clos network '{name}': nothing to do.")
    (paths.closes() / f".{name}.lock").unlink(missing_ok=True)


def remove(name: str) -> None:
    """Remove the network of a lab, complete or not."""
    with locked(checked(name)):
        _tear_down(name)
    (paths.closes() / f".{name}.lock").unlink(missing_ok=True)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of a network: one `up` or `down` at a time."""
    paths.closes().mkdir(parents=True, exist_ok=True)
    with (paths.closes() / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def texts_of(folder: Path) -> dict[str, str]:
    """Return node → text of its frr.conf, from a folder with NODE/frr.conf."""
    found = {path.parent.name: path.read_text() for path in sorted(folder.glob("*/frr.conf"))}
    if not found:
        raise LabError(f"{folder} has no NODE/frr.conf.")
    return found


def route(clos: Clos, texts: Mapping[str, str]) -> None:
    """Write each text as frr.conf of its switch or host, and start the daemons there again with it."""
    for node, text in texts.items():
        if node not in clos.shape.namespaces:
            raise LabError(f"'{node}' is not a node of '{clos.name}'.")
        stop_daemons(clos, node)
        # zebra leaves the addresses of its file in the kernel. Those of a host are not from its file.
        ports = [port for cable in clos.shape.cables for end, port in (cable.a, cable.b) if end == node]
        for interface in ("lo", *ports) if node in clos.shape.switches else ():
            _ip(clos, node, "address", "flush", "dev", interface, "scope", "global")
        (clos.folder.node(node) / "etc/frr.conf").write_text(text)
    for daemons in (DAEMONS[:1], DAEMONS[1:]):
        for each in [_start_daemon(clos, node, daemon) for node in texts for daemon in daemons]:
            each.wait()
    # FRR's own service gives the file to its daemons in this way too.
    _together([clos.argv(node, ["vtysh", "-b"]) for node in texts])


def stop_daemons(clos: Clos, node: str, only: Sequence[str] = DAEMONS, *, grace_seconds: float = 10.0) -> None:
    """End the daemons of a node that this lab started."""
    for daemon in reversed(DAEMONS):
        if daemon in only:
            process.end(clos.folder.node(node) / f"run/{daemon}.pid", f"{FRR}/{daemon}", grace_seconds=grace_seconds)


def cut(clos: Clos, link: str) -> None:
    """Take the carrier from both ends of a cable. The far end is set down, so the near one keeps its settings."""
    cable = _cable(clos, link)
    _ip(clos, cable.b[0], "link", "set", cable.b[1], "down")


def silence(clos: Clos, link: str) -> None:
    """Drop everything on a cable in both directions, and keep its carrier: like a bad transceiver between two switches."""
    node, interface = _cable(clos, link).a
    rules = [f"add table inet {TABLE}"]
    for hook, side in (("input", "iifname"), ("output", "oifname"), ("forward", "iifname")):
        chain = f"inet {TABLE} {hook}"
        rules.append(f"add chain {chain} {{ type filter hook {hook} priority -300 ; }}")
        rules.append(f'add rule {chain} {side} "{interface}" drop')
    rules.append(f'add rule inet {TABLE} forward oifname "{interface}" drop')
    clos.run(node, "nft", "-f", "-", stdin="\n".join(rules) + "\n")


def set_mtu(clos: Clos, link: str, mtu_bytes: int) -> None:
    """Set the MTU of the interface at the named end of a cable."""
    node, interface = _cable(clos, link).a
    _ip(clos, node, "link", "set", interface, "mtu", str(mtu_bytes))


def restore(clos: Clos, link: str) -> None:
    """Restore carrier, MTU and traffic of a cable. A silence at the other cables of the named switch ends too."""
    cable = _cable(clos, link)
    for node, interface in (cable.a, cable.b):
        clos.run(node, "nft", "delete", "table", "inet", TABLE, check=False)
        _ip(clos, node, "link", "set", interface, "mtu", str(MTU_BYTES), "up")


def counters(clos: Clos) -> dict[str, dict[str, int]]:
    """Return bytes and packets of every port of a switch: {"leaf1/1": {"sent_bytes": …, "received_bytes": …, …}}."""
    found = {}
    for switch in clos.shape.switches:
        for link in json.loads(namespace.ip(namespace_of(clos.name, switch), "-j", "-s", "link", "show")):
            if link["ifname"].startswith("swp"):
                sent, received = link["stats64"]["tx"], link["stats64"]["rx"]
                found[f"{switch}/{link['ifname'].removeprefix('swp')}"] = {
                    "sent_bytes": sent["bytes"],
                    "received_bytes": received["bytes"],
                    "sent_packets": sent["packets"],
                    "received_packets": received["packets"],
                }
    return found


def add_leaf(clos: Clos) -> Clos:
    """Add one more leaf with its cables and hosts, without its daemons, and return the larger network."""
    if clos.shape.of_lab:
        raise LabError(f"'{clos.name}' is the network of a lab, whose hosts are given when it is made.")
    larger = Clos(clos.name, dataclasses.replace(clos.shape, leaves=clos.shape.leaves + 1))
    known = set(clos.shape.cables)
    _nodes(larger, [f"leaf{larger.shape.leaves}", *larger.shape.host_names[len(clos.shape.host_names) :]])
    _plug(larger, [cable for cable in larger.shape.cables if cable not in known])
    larger.folder.cabling.write_text(clos_plan.cabling(larger.shape))
    larger.folder.state.write_text(json.dumps(dataclasses.asdict(larger.shape)) + "\n")
    return larger


def _cable(clos: Clos, link: str) -> Cable:
    """Return a cable of this network. Raises LabError for the cable of a lab's node."""
    cable = clos.shape.cable(link)
    for node, interface in (cable.a, cable.b):
        if node not in clos.shape.namespaces:
            rail = interface.removeprefix(HOST_PORT)
            raise LabError(f"'{link}' is the cable of {node}: lab cable {node} {rail} --cut --name {clos.name}")
    return cable


def _ip(clos: Clos, node: str, *words: str) -> None:
    namespace.ip(namespace_of(clos.name, node), *words)


def _create(clos: Clos) -> None:
    _tear_down(clos.name)
    clos.folder.path.mkdir(parents=True)
    clos.folder.cabling.write_text(clos_plan.cabling(clos.shape))
    _nodes(clos, clos.shape.namespaces)
    _plug(clos, [cable for cable in clos.shape.cables if cable.b[0] in clos.shape.namespaces])


def _nodes(clos: Clos, nodes: Sequence[str]) -> None:
    for node in nodes:
        run(["ip", "netns", "add", namespace_of(clos.name, node)])
        _ip(clos, node, "link", "set", "lo", "up")
        for part in ("etc", "run", "sysctl"):
            (clos.folder.node(node) / part).mkdir(parents=True)
            # The daemons run as this user, as on a real switch.
            shutil.chown(clos.folder.node(node) / part, "frr", "frr")
        # Its /run, on which `run` is mounted.
        (clos.folder.node(node) / "system/frr").mkdir(parents=True)
        (clos.folder.node(node) / "etc/vtysh.conf").write_text("service integrated-vtysh-config\n")
        # The switches of a lab get them from the role frr.
        if node in clos.shape.switches and not clos.shape.of_lab:
            settings = [f"{name}={value}" for name, value in SWITCH_SYSCTLS.items()]
            run(["ip", "netns", "exec", namespace_of(clos.name, node), "sysctl", "-qw", *settings])


def _plug(clos: Clos, cables: Sequence[Cable]) -> None:
    """Make the veth pairs, with one process for all."""
    lines = []
    for cable in cables:
        (a, port), (b, other) = cable.a, cable.b
        ends = f"netns {namespace_of(clos.name, a)} mtu {MTU_BYTES} type veth peer name {other} netns {namespace_of(clos.name, b)}"
        lines.append(f"link add name {port} {ends} mtu {MTU_BYTES}")
    run(["ip", "-batch", "-"], stdin="\n".join(lines) + "\n")
    for node in sorted({end[0] for cable in cables for end in (cable.a, cable.b)}):
        ports = [end[1] for cable in cables for end in (cable.a, cable.b) if end[0] == node]
        text = "".join(f"link set {port} up\n" for port in ports)
        run(["ip", "-n", namespace_of(clos.name, node), "-batch", "-"], stdin=text)


def _start_daemon(clos: Clos, node: str, daemon: str) -> Daemon:
    """Start a daemon as a child (not -d), with the profile that frr.conf names: a running daemon does not change its profile."""
    home = clos.folder.node(node)
    words: list[str | Path] = [FRR / daemon, "-P", "0", "--log", "file:/run/frr/log"]
    text = (home / "etc/frr.conf").read_text()
    if profile := next((line.split()[2] for line in text.splitlines() if line.startswith("frr defaults ")), ""):
        words += ["-F", profile]
    socket, printed = home / f"run/{daemon}.vty", home / f"run/{daemon}.out"
    socket.unlink(missing_ok=True)
    return Daemon.start(f"{daemon} of {node}", clos.argv(node, words), socket, printed)


def _together(commands: Sequence[Sequence[str]]) -> None:
    """Run commands side by side. Raises LabError for the first that fails."""
    running = [
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        for words in commands
    ]
    for words, each in zip(commands, running, strict=True):
        output, _none = each.communicate(timeout=60)
        if each.returncode:
            raise LabError(f"`{' '.join(words)}` failed with exit status {each.returncode}: {output[-400:]}")


def end_init(home: Path) -> None:
    """Kill process 1 of a node that runs systemd (clos_systemd), and so all its processes."""
    file = home / "init.pid"
    try:
        pid = int(file.read_text())
        if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd" and str(home) in Path(f"/proc/{pid}/environ").read_text():
            os.kill(pid, signal.SIGKILL)
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.02)
    except (FileNotFoundError, ProcessLookupError):
        pass
    file.unlink(missing_ok=True)


def _tear_down(name: str) -> bool:
    folder = ClosFolder.of(name)
    there = folder.path.exists()
    for home in sorted(folder.path.glob("nodes/*")):
        end_init(home)
    for pid_file in sorted(folder.path.glob("nodes/*/run/*.pid")):
        # Nothing of them stays, so they need not say goodbye to their neighbors, for which SIGTERM would wait.
        process.end(pid_file, f"{FRR}/{pid_file.stem}", first=signal.SIGKILL)
    for pid_file in sorted(folder.path.glob("nodes/*/lldpd.pid")):
        process.end(pid_file, "lldpd", first=signal.SIGKILL)
    prefix = namespace_of(name, "")
    for each in sorted(Path("/run/netns").glob(f"{prefix}*")):
        there = True
        namespace.delete(each.name)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder.path)
    return there
