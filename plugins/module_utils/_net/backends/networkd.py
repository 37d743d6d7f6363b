# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-networkd applies one file per rail at boot.

`networkctl reload` makes systemd-networkd read a new file, and reconfigures the links whose file has changed: up to 251 it removes their
addresses and adds them again, from 252 on it removes those that are not in the file, unless the file has KeepConfiguration=static (seen on
252 and 257). The reload is therefore deferred as long as a rail is in use. The reload also applies files of others that changed since
systemd-networkd last loaded its files. It is also deferred if such a file applies to an interface that is not a rail.
Where NetworkManager runs as well, a file of ours makes it leave the rails alone; that keeps their addresses (seen on 1.42).
Sources: systemd.network(5), networkctl(1); networkd-link.c of systemd 249 to 257; NetworkManager.conf(5).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState, unit_state
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import nm_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.change import Change, Loading
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import LACP, MONITOR_MS, Bond
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import child_files, ipoib_differences, parent_lines
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import Vlan, made_names
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import read_networkd_link
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import applied_files, reloaded_files
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import (
    NETPLAN_PREFIX,
    NETWORKD_UNIT,
    PREFIX,
    NetworkRail,
    Running,
    Withheld,
    needs_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import MAIN
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import RECONFIGURES, Step

#: Enabled along with it. It waits until a required link is online. Ours are not required, so it waits 120 s at each boot, and fails.
WAIT_ONLINE = "systemd-networkd-wait-online.service"
#: How long systemd-networkd may take to notice a changed file. After that, another file on the interface means that ours is not used.
LOAD_SECONDS = 2.0
#: Its timestamp is that of our last reload.
LOADED = "/run/rdma-cluster/network-loaded"
#: Where netplan writes its output for /etc/netplan: "10-netplan-ens1.network", which sorts before ours; and that for our files there.
RENDERED = "/run/systemd/network"
NETPLAN = f"{RENDERED}/10-netplan-"
RENDERED_PREFIX = "10-netplan-rdma-"
_NETWORK_FILE = re.compile(r"^[ \t]*Network File: (/\S+)", re.MULTILINE)


def _match(nic: Mapping[str, str]) -> str:
    """Return the [Match] lines that identify a NIC. A VLAN, bridge or bond on it has the same MAC, but another type."""
    if "mac" in nic:
        return f"MACAddress={nic['mac'].lower()}\nType=ether"
    return f"Path={rail_network.udev_path(nic['pci'])}"


def match_lines(rail: NetworkRail) -> str:
    """Return the [Match] lines of a rail's interface: that of its NIC, or the name of one that is made."""
    if rail.link.is_made:
        return f"Name={rail.netdev}"
    # A bond gives its members its own address.
    return _match(rail.nic).replace("MACAddress=", "PermanentMACAddress=") if rail.link.master else _match(rail.nic)


def render_bond(rail: NetworkRail, bond: Bond) -> str:
    """Return the .netdev file of a bond."""
    lines = [f"# Managed by rdma.cluster: {rail.name}.", "[NetDev]", f"Name={rail.netdev}", "Kind=bond", "", "[Bond]", f"Mode={bond.mode}"]
    lacp = [f"LACPTransmitRate={bond.lacp_rate}", f"TransmitHashPolicy={bond.hash_policy}"] if bond.mode == LACP else []
    return "\n".join([*lines, f"MIIMonitorSec={MONITOR_MS}ms", *lacp]) + "\n"


def render_netdev(rail: NetworkRail, vlan: Vlan) -> str:
    """Return the .netdev file of a VLAN."""
    lines = [f"# Managed by rdma.cluster: {rail.name}.", "[NetDev]", f"Name={rail.netdev}", "Kind=vlan", "", "[VLAN]", f"Id={vlan.id}"]
    egress = " ".join(f"{priority}-{pcp}" for priority, pcp in vlan.egress.items())
    return "\n".join([*lines, *([f"EgressQOSMaps={egress}"] if egress else [])]) + "\n"


def render(rail: NetworkRail) -> str:
    """Return the .network file of a rail."""
    lines = [
        f"# Managed by rdma.cluster: {rail.name}.",
        "[Match]",
        match_lines(rail),
        "",
        "[Link]",
        *([f"MTUBytes={rail.mtu_bytes}"] if rail.mtu_bytes is not None else []),
        "RequiredForOnline=no",
        "",
        "[Network]",
        "DHCP=no",
        "IPv6AcceptRA=no",
        *(["LinkLocalAddressing=ipv6"] if rail.ipv6 else []),
        "ConfigureWithoutCarrier=yes",
        "KeepConfiguration=static",
        *(f"Address={text}" for text in rail.ipv4),
        *([f"Bond={rail.link.master}"] if rail.link.master else []),
        *(f"VLAN={name}" for name in rail.link.vlans),
        *(parent_lines(rail.ipoib) if rail.ipoib else []),
        *_ipv6_lines(rail),
        *_routing_lines(rail),
    ]
    return "\n".join(lines) + "\n"


def _ipv6_lines(rail: NetworkRail) -> list[str]:
    """Return the sections with the rail's IPv6 addresses, without duplicate address detection, as in the live steps."""
    return [line for text in rail.ipv6 for line in ("", "[Address]", f"Address={text}", "DuplicateAddressDetection=none")]


def _routing_lines(rail: NetworkRail) -> list[str]:
    """Return the sections with the rail's rule and routes."""
    lines = []
    for rule in rail.routing.rules:
        lines += ["", "[RoutingPolicyRule]", f"From={rule.source}", f"Table={rule.table}", f"Priority={rule.priority}"]
    for route in rail.routing.planned:
        where = [f"Gateway={route.gateway}"] if route.gateway else [] if is_ipv6(route.network) else ["Scope=link"]
        source = [f"PreferredSource={route.source}"] if route.source else []
        table = [] if route.table == MAIN else [f"Table={route.table}"]
        lines += ["", "[Route]", f"Destination={route.network}", *where, *source, *table]
    return lines


def render_release(rail: NetworkRail) -> str:
    """Return a .network file that makes systemd-networkd leave a rail to another manager."""
    return "\n".join([f"# Managed by rdma.cluster: {rail.name}.", "[Match]", match_lines(rail), "", "[Link]", "Unmanaged=yes"]) + "\n"


def path_of(rail: str) -> str:
    """Return the path of a rail's file."""
    return f"{rail_network.NETWORKD_FOLDER}/{PREFIX}{rail}.network"


def netdev_path(rail: str) -> str:
    """Return the path of the file that makes a rail's interface."""
    return f"{rail_network.NETWORKD_FOLDER}/{PREFIX}{rail}.netdev"


class NetworkdChange(Change):
    """The changes for systemd-networkd."""

    #: Whether systemd-networkd is enabled and started where it is not; netplan does that by itself at boot.
    serves = True

    @staticmethod
    def rail_files(rail: NetworkRail, running: Running) -> list[ManagedFile]:
        """Return the planned files of a rail."""
        children = child_files(rail.name, rail.ipoib) if rail.ipoib else []
        return [
            *([ManagedFile(netdev_path(rail.name), render_netdev(rail, rail.link.vlan))] if rail.link.vlan is not None else []),
            *([ManagedFile(netdev_path(rail.name), render_bond(rail, rail.link.bond))] if rail.link.bond is not None else []),
            ManagedFile(path_of(rail.name), render(rail)),
            *(ManagedFile(f"{rail_network.NETWORKD_FOLDER}/{PREFIX}{name}", text) for name, text in children),
            *(nm_profiles.release_files(rail) if running.networkmanager else []),
        ]

    def profile_steps(self, rail: NetworkRail) -> list[Step]:
        """Return the steps of the interface's mode, and of its children on partitions."""
        argv = ("networkctl", "reconfigure", rail.netdev)
        children = ipoib_differences(rail.netdev, rail.ipoib, self.runner) if rail.ipoib else []
        return [Step(rail.netdev, *each, argv, RECONFIGURES) for each in children]

    def boot_file(self, rail: NetworkRail) -> str:
        """Return the .network file that systemd-networkd has to use for a rail."""
        return path_of(rail.name)

    def plan(self, changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> Loading:
        state = units[NETWORKD_UNIT]
        serve = self.serves and not (state.active and state.enabled) and needs_service(self.rails)
        foreign = self._foreign(state)
        affected = affected_rails(self.rails, changes, pending=pending or (serve and not state.active))
        verb = "start of systemd-networkd" if serve and not state.active else RELOADS
        put_off = bool(foreign) or any(
            [self.puts_off(affected, verb), bool(changes or pending) and state.active and applies_others(self, self.rails)]
        )
        loads = bool(changes or pending) and not put_off and (serve or state.active)
        self._starts = serve and not foreign
        return Loading(put_off, loads, NETWORKD_UNIT if serve else None)

    def load(self, loading: Loading, changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> None:
        if self._starts:
            _serve(self.runner, units[NETWORKD_UNIT], start=not loading.put_off)
        if loading.loads:
            nm_profiles.release(self.rails, changes, units, self.runner)
            self.install(changes)
            reload(self.runner)
            self._wait_until_loaded(changes, everything=pending)

    def install(self, changes: Sequence[FileChange]) -> None:
        """Put in place what systemd-networkd reads, if that is not our files themselves."""
        remove_rendered(changes)

    def hint(self, rail: NetworkRail) -> str:
        """Return a sentence on a file that systemd-networkd uses for a rail's interface instead of ours; "" if it uses ours."""
        file = parse_network_file(self.runner.run(["networkctl", "status", rail.netdev]).stdout)
        if file is None or file == self.boot_file(rail):
            return ""
        source = "/etc/netplan, run `netplan generate`" if file.startswith(NETPLAN) else "it"
        return f" It takes {file} in the place of {self.boot_file(rail)}: take {rail.netdev} out of {source}, then `networkctl reload`."

    def _foreign(self, state: UnitState) -> dict[str, str]:
        """Return the interfaces that are not rails and that systemd-networkd would take over if it were enabled: name → file."""
        if self.allowed or not self.serves or (state.active and state.enabled) or not needs_service(self.rails):
            return {}
        found = applied_files(self.sys, {rail.netdev for rail in self.rails})
        verb = "start of systemd-networkd, at boot as well"
        self.withheld += [Withheld("no rail", name, verb, f"{file} would apply to it") for name, file in found.items()]
        return found

    def _wait_until_loaded(self, changes: Sequence[FileChange], *, everything: bool) -> None:
        """Wait until systemd-networkd has configured the interfaces of these files, or evidently uses another file for them."""
        began = time.monotonic()
        for rail in affected_rails(self.rails, [change for change in changes if change.after is not None], pending=everything):
            while True:
                seen = read_networkd_link(self.sys, rail.netdev)
                passed = time.monotonic() - began
                is_ours = seen is not None and seen.file == self.boot_file(rail)
                limit_seconds = rail_network.SETTLE_SECONDS if is_ours else LOAD_SECONDS
                if (is_ours and seen is not None and seen.state == "configured") or passed > limit_seconds:
                    break
                time.sleep(0.2)


#: The reload in words.
RELOADS = "`networkctl reload`, which loads the files of the rails"


def affected_rails(rails: Sequence[NetworkRail], changes: Sequence[FileChange], *, pending: bool) -> list[NetworkRail]:
    """Return the rails whose files change; all of them if a file goes, since its rail may be any, or if a load is pending."""
    every = pending or any(change.after is None for change in changes)
    owners = {rail_network.owner_of(change.path) for change in changes}
    return [rail for rail in rails if every or any(rail_network.is_of(owner, [rail.name]) for owner in owners)]


def applies_others(change: Change, rails: Sequence[NetworkRail]) -> bool:
    """Return whether a reload would apply files of others, changed since the last one, to interfaces that are not rails; record it."""
    if change.allowed:
        return False
    found = reloaded_files(change.sys, {rail.netdev for rail in rails}, f"{rail_network.NETWORKD_FOLDER}/{PREFIX}")
    if not found:
        return False
    loaded_seconds = _loaded_seconds(change.runner)
    changed = {name: [path for path in paths if _is_newer(change.sys, path, loaded_seconds)] for name, paths in found.items()}
    verb = "`networkctl reload`, which loads all changed files"
    words = "changed since systemd-networkd loaded it, which applies or may apply to it"
    change.withheld += [Withheld("no rail", name, verb, f"{', '.join(paths)}, {words}") for name, paths in changed.items() if paths]
    return any(changed.values())


def remove_rendered(changes: Sequence[FileChange] = ()) -> None:
    """Remove what netplan rendered for rails that are no longer in its files: systemd-networkd would use it until the next boot.

    What it rendered for a VLAN has the name of the interface, which only the changed file still has.
    """
    for change in changes:
        left = set(made_names(change.before or "")) - set(made_names(change.after or ""))
        for name in left if change.path.endswith(".yaml") else ():
            for suffix in (".network", ".netdev"):
                Path(f"{RENDERED}/10-netplan-{name}{suffix}").unlink(missing_ok=True)
    for path in Path(RENDERED).glob(f"{RENDERED_PREFIX}*.network"):
        rail = path.name[len(RENDERED_PREFIX) :].removesuffix(".network")
        if not Path(f"{rail_network.NETPLAN_FOLDER}/{NETPLAN_PREFIX}{rail}.yaml").exists():
            path.unlink()


def reload(runner: Runner) -> None:
    """Make systemd-networkd load its files, and record the time before it: later changes may not be loaded."""
    began = time.time()
    run_checked(runner, "networkctl", "reload")
    Path(LOADED).parent.mkdir(parents=True, exist_ok=True)
    Path(LOADED).touch()
    os.utime(LOADED, (began, began))


def _loaded_seconds(runner: Runner) -> float | None:
    """Return when systemd-networkd last loaded its files: its start, or our last reload (seconds since 1970); None if unknown."""
    answer = run_checked(runner, "systemctl", "show", "--property=ExecMainStartTimestampMonotonic", NETWORKD_UNIT)
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
    run_checked(runner, "systemctl", "enable", *(["--now"] if start else []), NETWORKD_UNIT)
    if not state.enabled and unit_state(runner, WAIT_ONLINE).enabled:
        run_checked(runner, "systemctl", "disable", WAIT_ONLINE)


def parse_network_file(text: str) -> str | None:
    """Return the .network file that `networkctl status IF` names (systemd 249 to 257); None for an interface without one ("n/a")."""
    found = _NETWORK_FILE.search(text)
    return found[1] if found is not None else None
