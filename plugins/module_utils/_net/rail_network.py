# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails' addresses and MTU: differences are changed with `ip`, and systemd-networkd applies one file per rail at boot.

A live rail is never reconfigured as a whole. `networkctl reload` makes systemd-networkd read a new file, and reconfigures the links
whose file has changed: up to 251 it removes their addresses and adds them again, from 252 on it removes those that are not in the file,
unless the file has KeepConfiguration=static (seen on 252 and 257). The reload is therefore deferred as long as a rail is in use: the
file PENDING, which a boot removes, reports it to the next run. The reload also applies files of others that changed since
systemd-networkd last loaded its files. It is also deferred if such a file applies to an interface that is not a rail.
The functions `files` and `ensure` are the interface that other network managers implement as well.
Sources: systemd.network(5), networkctl(1), ip-address(8); networkd-link.c of systemd 249 to 257.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import (
    FileChange,
    ManagedFile,
    ensure_files,
    listed_diff,
    setting_diff,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState, unit_state
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, host_users, rail_users, read_load
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import (
    SUFFIXES,
    Ipoib,
    child_files,
    from_options,
    ipoib_differences,
    is_child_of,
    netdev_of,
    parent_lines,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import read_networkd_link
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import applied_files, reloaded_files
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import (
    RECONFIGURES,
    Step,
    Target,
    address_misses,
    keeping,
    mtu_differs,
    steps,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session

SERVICE = "systemd-networkd.service"
#: Enabled along with it. It waits until a required link is online. Ours are not required, so it waits 120 s at each boot, and fails.
WAIT_ONLINE = "systemd-networkd-wait-online.service"
FOLDER = "/etc/systemd/network"
#: The prefix of our files; it sorts before distributions' 70- and 80-, so that ours win.
PREFIX = "60-rdma-"
SETTLE_SECONDS = 20.0
#: How long systemd-networkd may take to notice a changed file. After that, another file on the interface means that ours is not used.
LOAD_SECONDS = 2.0
#: Exists while systemd-networkd has not loaded our files, because a reload was deferred.
PENDING = "/run/rdma-cluster/network-reload"
#: Its timestamp is that of our last reload.
LOADED = "/run/rdma-cluster/network-loaded"
NO_SESSION = Session(None, None)
SESSION = "our SSH session"
_PASSES = 5
#: Where netplan writes its output for /etc/netplan: "10-netplan-ens1.network", which sorts before ours.
NETPLAN = "/run/systemd/network/10-netplan-"
_ADDRESS = re.compile(r"^Address=(\S+)[ \t]*$", re.MULTILINE)
_NETWORK_FILE = re.compile(r"^[ \t]*Network File: (/\S+)", re.MULTILINE)


@dataclass(frozen=True)
class NetworkRail:
    """A rail as the network manager sees it. nic: {"pci"} or {"mac"}; address: "192.168.100.1/24"; ipoib: further IPoIB settings.

    mtu_bytes: None keeps the interface's MTU. Without address, MTU and ipoib nothing is configured, and the rail has no file.

    device, port: its RDMA port, used to find its users; None for a rail without one.
    """

    name: str
    nic: dict[str, str]
    netdev: str
    address: str | None
    mtu_bytes: int | None
    ipoib: Ipoib | None = None
    device: str | None = None
    port: int | None = None

    @property
    def is_configured(self) -> bool:
        """Whether anything is planned for its interface."""
        return self.address is not None or self.mtu_bytes is not None or self.ipoib is not None


@dataclass(frozen=True)
class Withheld:
    """A change that is withheld because the rail is in use. rail: its name; netdev: None for one that is no longer planned."""

    rail: str
    netdev: str | None
    change: str
    users: str

    @property
    def words(self) -> str:
        where = f"{self.rail} ({self.netdev})" if self.netdev else self.rail
        return f"{where}: {self.change}; withheld because of {self.users}"


@dataclass(frozen=True)
class NetworkResult:
    """The changes that were made, or would be in check mode.

    live: interface → its differences (current, planned); service: systemd-networkd was not up; withheld: changes not made.
    """

    files: list[FileChange]
    live: dict[str, list[tuple[str, str]]]
    service: bool
    withheld: list[Withheld] = field(default_factory=list)
    reloaded: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live or self.service or self.reloaded)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        live = [setting_diff(name, *each) for name, differences in self.live.items() for each in differences]
        service = ["enabled and started"] if self.service else []
        return [*(file.to_diff() for file in self.files), *listed_diff(SERVICE, service), *live]


def make_rail(given: Mapping[str, Any]) -> NetworkRail:
    """Return the rail in a module's options. Raises ApplyError for a child whose name would be too long."""
    return NetworkRail(**{**given, "ipoib": from_options(given["netdev"], given.get("ipoib"))})


def _match(nic: Mapping[str, str]) -> str:
    """Return the [Match] lines that identify a NIC. A VLAN, bridge or bond on it has the same MAC, but another type.

    Hyper-V gives devices passed to a virtual machine a PCI domain above 0, and the path begins with its bus:
    acpi-VMBUS:00-pci-0101:00:00.0.
    """
    if "mac" in nic:
        return f"MACAddress={nic['mac'].lower()}\nType=ether"
    path = f"pci-{nic['pci'].lower()}"
    return f"Path={path}" if path.startswith("pci-0000:") else f"Path={path} *-{path}"


def render(rail: NetworkRail) -> str:
    """Return the .network file of a rail."""
    lines = [
        f"# Managed by rdma.cluster: {rail.name}.",
        "[Match]",
        _match(rail.nic),
        "",
        "[Link]",
        *([f"MTUBytes={rail.mtu_bytes}"] if rail.mtu_bytes is not None else []),
        "RequiredForOnline=no",
        "",
        "[Network]",
        "DHCP=no",
        "IPv6AcceptRA=no",
        "ConfigureWithoutCarrier=yes",
        "KeepConfiguration=static",
        *([f"Address={rail.address}"] if rail.address else []),
        *(parent_lines(rail.ipoib) if rail.ipoib else []),
    ]
    return "\n".join(lines) + "\n"


def path_of(rail: str) -> str:
    """Return the path of a rail's file."""
    return f"{FOLDER}/{PREFIX}{rail}.network"


def files(rails: Sequence[NetworkRail], present: Sequence[str], planned: Sequence[str]) -> list[ManagedFile]:
    """Return the planned files of these rails; files present under our prefix are removed if their rail is not planned or has no settings.

    planned: the names of all rails, including those whose NIC is missing now.
    """
    wanted = [ManagedFile(path_of(rail.name), render(rail)) for rail in rails if rail.is_configured]
    children = [
        ManagedFile(f"{FOLDER}/{PREFIX}{name}", text) for rail in rails if rail.ipoib for name, text in child_files(rail.name, rail.ipoib)
    ]
    absent = [name for name in planned if name not in [rail.name for rail in rails]]
    kept = {path_of(name) for name in absent} | {file.path for file in (*wanted, *children)}
    gone = [path for path in sorted(present) if path not in kept and not is_child_of(path[len(f"{FOLDER}/{PREFIX}") :], absent)]
    return [*wanted, *children, *(ManagedFile(path, None) for path in gone)]


def ensure(
    rails: Sequence[NetworkRail],
    planned: Sequence[str],
    *,
    runner: Runner,
    sys: SysRoot,
    check_mode: bool,
    change_allowed: bool = False,
    session: Session = NO_SESSION,
) -> NetworkResult:
    """Make files and live state match the rails, and change only what differs. planned: as in `files`.

    The users of a rail are read here and now. Changes that would harm them are withheld unless change_allowed. The rail then keeps its
    file as well, so that a restart of systemd-networkd cannot apply them. Changes that would harm our own SSH session are always withheld.
    Raises ApplyError if an interface does not reach the planned state.
    """
    return _Change(rails, planned, runner, sys, allowed=change_allowed, session=session).run(check_mode=check_mode)


class _Change:
    """One call of `ensure`."""

    def __init__(
        self, rails: Sequence[NetworkRail], planned: Sequence[str], runner: Runner, sys: SysRoot, *, allowed: bool, session: Session
    ) -> None:
        self.rails, self.planned, self.runner, self.sys, self.allowed = rails, planned, runner, sys, allowed
        self.session = session
        self.carries_session: set[str] = set()
        self.withheld: list[Withheld] = []
        self._load: Load | None = None

    def run(self, *, check_mode: bool) -> NetworkResult:
        present = [str(path) for suffix in SUFFIXES for path in Path(FOLDER).glob(f"{PREFIX}*{suffix}")]
        targets = {rail.name: self._target(rail) for rail in self.rails}
        todo = {rail.name: self._steps(rail, targets[rail.name]) for rail in self.rails}
        held = {rail.name for rail in self.rails if self._is_held(rail, todo[rail.name])}
        wanted = self._wanted(files(self.rails, present, self.planned), held)
        changes = ensure_files(wanted, check_mode=check_mode)
        pending = Path(PENDING).exists()
        state = unit_state(self.runner, SERVICE)
        serve = state != UnitState(active=True, enabled=True) and needs_service(self.rails)
        foreign = self._foreign(state)
        put_off = bool(foreign) or any(
            [
                self._puts_off(changes, pending=pending, starts=serve and not state.active),
                bool(changes or pending) and state.active and self._applies_others(),
            ]
        )
        allowed = {name: [step for step in each if name not in held or not step.harm] for name, each in todo.items()}
        shown = todo if check_mode else allowed
        live = {rail.netdev: [(step.was, step.planned) for step in shown[rail.name]] for rail in self.rails if shown[rail.name]}
        reloads = bool(changes or pending) and not put_off and (serve or state.active)
        if not check_mode:
            if serve and not foreign:
                _serve(self.runner, state, start=not put_off)
            if put_off:
                ensure_files([ManagedFile(PENDING, "systemd-networkd has not loaded the files of the rails.\n")], check_mode=False)
            elif reloads:
                _reload(self.runner)
                Path(PENDING).unlink(missing_ok=True)
                self._wait_until_loaded({change.path for change in changes}, everything=pending)
            for name in [name for change in changes if change.after is None and (name := netdev_of(change))]:
                _delete(name, self.runner)
            for rail in self.rails:
                if allowed[rail.name] or reloads:
                    self._apply(rail, targets[rail.name], harmless=rail.name in held)
        return NetworkResult(changes, live, serve, self.withheld, reloads)

    def _target(self, rail: NetworkRail) -> Target:
        """Return the target with the interface's other addresses: those from our file are removed, those of others stay."""
        file = Path(path_of(rail.name))
        former = _ADDRESS.findall(file.read_text(encoding="utf-8", errors="replace")) if file.exists() else []
        target = Target(rail.netdev, rail.mtu_bytes, rail.address, former=frozenset(former))
        ipv4 = _shown(rail, self.runner)[1]
        is_below = self.session.netdev is not None and self.session.netdev.partition(".")[0] == rail.netdev
        if is_below or self.session.netdev == rail.netdev or _has_address(ipv4, self.session):
            self.carries_session.add(rail.name)
        return keeping(target, ipv4)

    def _steps(self, rail: NetworkRail, target: Target) -> list[Step]:
        """Return the steps of the interface, and of its children on partitions."""
        argv = ("networkctl", "reconfigure", rail.netdev)
        children = ipoib_differences(rail.netdev, rail.ipoib, self.runner) if rail.ipoib else []
        return [*steps(target, *_shown(rail, self.runner)), *(Step(rail.netdev, *each, argv, RECONFIGURES) for each in children)]

    def _users(self, rail: NetworkRail | None) -> str:
        """Return the current users of a rail, or of the whole host; read once. Our own session counts even if changes are allowed."""
        if rail is not None and rail.name in self.carries_session:
            return SESSION
        if self.allowed:
            return ""
        if self._load is None:
            self._load = read_load(self.sys, self.runner)
        return host_users(self._load) if rail is None else rail_users(self._load, rail.device, rail.port)

    def _is_held(self, rail: NetworkRail, todo: Sequence[Step]) -> bool:
        harmful = [step.words for step in todo if step.harm]
        users = self._users(rail) if harmful else ""
        if users:
            self.withheld.append(Withheld(rail.name, rail.netdev, "; ".join(harmful), users))
        return bool(users)

    def _wanted(self, every: Sequence[ManagedFile], held: set[str]) -> list[ManagedFile]:
        """Return the files, without those of rails that keep theirs, and those to be removed while anything on the host is in use."""
        kept = {path for rail in self.rails if rail.name in held for path in _paths(rail)}
        gone = [file.path for file in every if file.content is None]
        users = self._users(None) if gone else ""
        if any(_has_address(_ADDRESS.findall(_read(path)), self.session) for path in gone):
            users = SESSION
        if users:
            change = f"removal of {', '.join(gone)} (systemd-networkd removes the addresses that it has set)"
            self.withheld.append(Withheld("rails that are no longer planned", None, change, users))
            kept |= set(gone)
        return [file for file in every if file.path not in kept]

    def _puts_off(self, changes: Sequence[FileChange], *, pending: bool, starts: bool) -> bool:
        """Return whether systemd-networkd must not load files, or must not be started, now."""
        touched = {change.path for change in changes}
        gone = any(change.after is None for change in changes)
        every = pending or starts or gone
        affected = [rail for rail in self.rails if every or touched.intersection(_paths(rail))]
        users = {rail.netdev: who for rail in affected if (who := self._users(rail))}
        verb = "start of systemd-networkd" if starts else "`networkctl reload`, which loads the files of the rails"
        names = {rail.netdev: rail.name for rail in affected}
        self.withheld += [Withheld(names[netdev], netdev, verb, who) for netdev, who in users.items()]
        return bool(users)

    def _applies_others(self) -> bool:
        """Return whether a reload would apply files of others, changed since the last one, to interfaces that are not rails."""
        if self.allowed:
            return False
        netdevs = {rail.netdev for rail in self.rails}
        found = reloaded_files(self.sys, netdevs, f"{FOLDER}/{PREFIX}")
        if not found:
            return False
        loaded_seconds = _loaded_seconds(self.runner)
        changed = {name: [path for path in paths if _is_newer(self.sys, path, loaded_seconds)] for name, paths in found.items()}
        verb = "`networkctl reload`, which loads all changed files"
        self.withheld += [
            Withheld(
                "no rail", name, verb, f"{', '.join(paths)}, changed since systemd-networkd loaded it, which applies or may apply to it"
            )
            for name, paths in changed.items()
            if paths
        ]
        return any(changed.values())

    def _foreign(self, state: UnitState) -> dict[str, str]:
        """Return the interfaces that are not rails and that systemd-networkd would take over if it were enabled: name → file."""
        if self.allowed or (state.active and state.enabled) or not needs_service(self.rails):
            return {}
        found = applied_files(self.sys, {rail.netdev for rail in self.rails})
        verb = "start of systemd-networkd, at boot as well"
        self.withheld += [Withheld("no rail", name, verb, f"{file} would apply to it") for name, file in found.items()]
        return found

    def _wait_until_loaded(self, touched: set[str], *, everything: bool) -> None:
        """Wait until systemd-networkd has configured the interfaces of these files, or evidently uses another file for them."""
        began = time.monotonic()
        for rail in self.rails:
            while everything or touched.intersection(_paths(rail)):
                seen = read_networkd_link(self.sys, rail.netdev)
                passed = time.monotonic() - began
                is_ours = seen is not None and seen.file == path_of(rail.name)
                if (is_ours and seen is not None and seen.state == "configured") or passed > (SETTLE_SECONDS if is_ours else LOAD_SECONDS):
                    break
                time.sleep(0.2)

    def _apply(self, rail: NetworkRail, target: Target, *, harmless: bool) -> None:
        """Run the steps and read back. harmless: only the steps without harm."""
        deadline, passes, reconfigured = time.monotonic() + SETTLE_SECONDS, 0, False
        while todo := [step for step in self._steps(rail, target) if not (harmless and step.harm)]:
            if time.monotonic() > deadline or passes > _PASSES:
                raise ApplyError(_failed(rail, todo, self.runner))
            for step in todo:
                if step.argv[0] != "networkctl":
                    run_checked(self.runner, *step.argv)
                elif not reconfigured:
                    reconfigured = True
                    run_checked(self.runner, *step.argv)
            passes += not reconfigured
            if reconfigured:
                time.sleep(0.3)


def _has_address(texts: Sequence[str], session: Session) -> bool:
    """Return whether our session uses one of these addresses, "192.168.100.1/24"."""
    return session.address is not None and session.address in {text.partition("/")[0] for text in texts}


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _reload(runner: Runner) -> None:
    """Make systemd-networkd load its files, and record the time before it: later changes may not be loaded."""
    began = time.time()
    run_checked(runner, "networkctl", "reload")
    Path(LOADED).parent.mkdir(parents=True, exist_ok=True)
    Path(LOADED).touch()
    os.utime(LOADED, (began, began))


def _loaded_seconds(runner: Runner) -> float | None:
    """Return when systemd-networkd last loaded its files: its start, or our last reload (seconds since 1970); None if unknown."""
    answer = run_checked(runner, "systemctl", "show", "--property=ExecMainStartTimestampMonotonic", SERVICE)
    text = answer.strip().partition("=")[2]
    if not text.isdecimal() or text == "0":
        return None
    started = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC) + int(text) / 1e6
    return max(started, Path(LOADED).stat().st_mtime) if Path(LOADED).exists() else started


def _is_newer(sys: SysRoot, path: str, loaded_seconds: float | None) -> bool:
    """Return whether a file changed since then. A deleted file has changed."""
    changed_seconds = sys.changed_seconds(path)
    return loaded_seconds is None or changed_seconds is None or changed_seconds > loaded_seconds


def _serve(runner: Runner, state: UnitState, *, start: bool) -> None:
    """Enable systemd-networkd. If it was not enabled, another manager has the other links, and boots must not wait for those."""
    run_checked(runner, "systemctl", "enable", *(["--now"] if start else []), SERVICE)
    if not state.enabled and unit_state(runner, WAIT_ONLINE).enabled:
        run_checked(runner, "systemctl", "disable", WAIT_ONLINE)


def _failed(rail: NetworkRail, todo: Sequence[Step], runner: Runner) -> str:
    words = "; ".join(f"{step.was} instead of {step.planned}" for step in todo)
    hint = f" {rail.ipoib.hint}" if rail.ipoib else ""
    return f"{rail.netdev} was configured, and still has {words}.{_in_the_way(rail, runner)}{hint}"


def live_differences(rail: NetworkRail, mtu_bytes: int | None, ipv4: Sequence[str]) -> list[tuple[str, str]]:
    """Return the differences of a live interface as texts (current, planned). ipv4: its addresses, "192.168.100.1/24"."""
    found = []
    if mtu_differs(rail.mtu_bytes, mtu_bytes):
        found.append((f"MTU {mtu_bytes} bytes", f"MTU {rail.mtu_bytes} bytes"))
    if address_misses(rail.address, ipv4):
        found.append((f"address {', '.join(ipv4) or 'none'}", f"address {rail.address}"))
    return found


def needs_service(rails: Sequence[NetworkRail]) -> bool:
    """Return whether systemd-networkd must run: not if no rail has settings, because then it has no file of ours."""
    return not rails or any(rail.is_configured for rail in rails)


def _paths(rail: NetworkRail) -> list[str]:
    children = child_files(rail.name, rail.ipoib) if rail.ipoib else []
    return [path_of(rail.name), *(f"{FOLDER}/{PREFIX}{name}" for name, _text in children)]


def _delete(name: str, runner: Runner) -> None:
    """Delete an interface: removing its file does not."""
    if runner.run(["ip", "-j", "address", "show", "dev", name]).rc == 0:
        run_checked(runner, "ip", "link", "delete", "dev", name)


def _shown(rail: NetworkRail, runner: Runner) -> tuple[int | None, list[str]]:
    """Return the current MTU and IPv4 addresses of a rail's interface."""
    done = runner.run(["ip", "-j", "address", "show", "dev", rail.netdev])
    if done.rc:
        raise ApplyError(f"There is no interface {rail.netdev} for {rail.name}: {done.stderr.strip()}")
    shown = json.loads(done.stdout)[0]
    return shown["mtu"], [f"{item['local']}/{item['prefixlen']}" for item in shown["addr_info"] if item["family"] == "inet"]


def _in_the_way(rail: NetworkRail, runner: Runner) -> str:
    """Return a sentence on a file that systemd-networkd uses for a rail's interface instead of ours; "" if it uses ours."""
    file = parse_network_file(runner.run(["networkctl", "status", rail.netdev]).stdout)
    if file is None or file == path_of(rail.name):
        return ""
    source = "/etc/netplan, run `netplan generate`" if file.startswith(NETPLAN) else "it"
    return f" It takes {file} in the place of {path_of(rail.name)}: take {rail.netdev} out of {source}, then `networkctl reload`."


def parse_network_file(text: str) -> str | None:
    """Return the .network file that `networkctl status IF` names (systemd 249 to 257); None for an interface without one ("n/a")."""
    found = _NETWORK_FILE.search(text)
    return found[1] if found is not None else None
