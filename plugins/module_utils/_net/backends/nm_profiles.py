# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager's files for rails: a profile a rail, and what makes it keep a rail without carrier, or leave it to another manager.

Without ignore-carrier, NetworkManager removes the addresses of an interface that has lost its carrier for about 6 s, and sets its MTU back:
seen on 1.42, and the GID of a rail would move. `match-device=mac:` compares the permanent address, which not every driver reports, so that
setting names the interface; it does no harm to another one. `managed=0` does, and so it names the MAC wherever that is an Ethernet one.
Sources: nm-settings-keyfile(5), NetworkManager.conf(5), nmcli(1).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import Bond
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import Vlan
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NM_UNIT, PREFIX, NetworkRail
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import MAIN

#: NetworkManager takes the profile with the highest priority that fits an interface; those that it makes itself have -999.
PRIORITY = 100
#: `nmcli device status`, one line an interface: "ens1:connected:11111111-2222-5333-8444-555555555555".
STATUS = ("nmcli", "--terse", "--fields", "DEVICE,STATE,CON-UUID", "device", "status")
UNMANAGED = "unmanaged"


def uuid_of(rail: str) -> str:
    """Return the UUID of a rail's profile: the same on every host, since only one host knows it."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{rail}.rdma.cluster"))


def profile_path(rail: str) -> str:
    """Return the path of a rail's profile."""
    return f"{rail_network.PROFILES}/{PREFIX}{rail}.nmconnection"


def conf_path(rail: str) -> str:
    """Return the path of the file with the settings of a rail's interface."""
    return f"{rail_network.CONF}/{PREFIX}{rail}.conf"


def render_profile(rail: NetworkRail) -> str:
    """Return the profile of a rail. Raises ApplyError for what is written for systemd-networkd only."""
    if rail.ipoib is not None and rail.ipoib.children:
        raise ApplyError(
            f"{rail.name}: IP over InfiniBand on partitions is written for systemd-networkd only. "
            "Set rdma_host.network.backend to networkd, or remove ipoib.children."
        )
    kind = "infiniband" if rail.is_infiniband else "ethernet"
    vlan, bond = rail.link.vlan, rail.link.bond
    nic = f"mac-address={rail.nic['mac'].upper()}" if "mac" in rail.nic else None
    mode = [f"transport-mode={rail.ipoib.mode if rail.ipoib else 'datagram'}"] if rail.is_infiniband else []
    lines = [
        f"# Managed by rdma.cluster: {rail.name}.",
        "[connection]",
        f"id=rdma-{rail.name}",
        f"uuid={uuid_of(rail.name)}",
        f"type={'vlan' if vlan is not None else 'bond' if bond is not None else kind}",
        *([f"interface-name={rail.netdev}"] if rail.link.is_made else []),
        *([f"master={rail.link.master}", "slave-type=bond"] if rail.link.master else []),
        f"autoconnect-priority={PRIORITY}",
        "",
        *(["[match]", f"path={rail_network.udev_path(rail.nic['pci'])};", ""] if nic is None and not rail.link.is_made else []),
        *(_vlan_lines(vlan) if vlan is not None else []),
        *(_bond_lines(bond) if bond is not None else []),
        f"[{kind}]",
        *([nic] if nic and not rail.link.is_made else []),
        *([f"mtu={rail.mtu_bytes}"] if rail.mtu_bytes is not None else []),
        *mode,
    ]
    if rail.link.master:
        # The addresses are those of the bond.
        return "\n".join(lines) + "\n"
    lines += [
        "",
        "[ipv4]",
        *_ipv4_lines(rail),
        "",
        "[ipv6]",
        *_ipv6_lines(rail),
    ]
    return "\n".join(lines) + "\n"


def _ipv4_lines(rail: NetworkRail) -> list[str]:
    manual = ["method=manual", *_numbered(rail.ipv4), "never-default=true"] if rail.ipv4 else ["method=disabled"]
    return [*manual, *([] if rail.address and is_ipv6(rail.address) else _routing_lines(rail))]


def _ipv6_lines(rail: NetworkRail) -> list[str]:
    """Return the lines of [ipv6]: without router advertisements and temporary addresses. may-fail: IPv4 does not wait for IPv6."""
    if not rail.ipv6:
        return ["method=link-local"]
    lines = ["method=manual", *_numbered(rail.ipv6), "never-default=true", "addr-gen-mode=eui64", "ip6-privacy=0", "may-fail=true"]
    return [*lines, *(_routing_lines(rail) if rail.address and is_ipv6(rail.address) else [])]


def _numbered(addresses: Sequence[str]) -> list[str]:
    return [f"address{number}={text}" for number, text in enumerate(addresses, 1)]


def _bond_lines(bond: Bond) -> list[str]:
    """Return the section [bond]."""
    return ["[bond]", *(f"{key}={value}" for key, value in bond.options), ""]


def _vlan_lines(vlan: Vlan) -> list[str]:
    """Return the section [vlan]. flags=1: the kernel removes the tag of received frames, as by default."""
    egress = ",".join(f"{priority}:{pcp}" for priority, pcp in vlan.egress.items())
    lines = ["[vlan]", f"parent={vlan.parent}", f"id={vlan.id}", "flags=1"]
    return [*lines, *([f"egress-priority-map={egress}"] if egress else []), ""]


def _routing_lines(rail: NetworkRail) -> list[str]:
    """Return the rail's rule and routes, as lines of [ipv4] or [ipv6]."""
    lines = [
        f"routing-rule{number}=priority {rule.priority} from {rule.source} table {rule.table}"
        for number, rule in enumerate(rail.routing.rules, 1)
    ]
    for number, route in enumerate(rail.routing.planned, 1):
        table = [] if route.table == MAIN else [f"table={route.table}"]
        scope = ["scope=253"] if route.gateway is None and not is_ipv6(route.network) else []
        options = ",".join([*scope, *([f"src={route.source}"] if route.source else []), *table])
        lines.append(f"route{number}={route.network}" + (f",{route.gateway}" if route.gateway else ""))
        lines += [f"route{number}_options={options}"] if options else []
    return lines


def render_conf(rail: NetworkRail) -> str:
    """Return the settings that keep the addresses of a rail without carrier."""
    return _device(rail, f"interface-name:{rail.netdev}", "ignore-carrier=yes")


def render_release(rail: NetworkRail) -> str:
    """Return the settings that make NetworkManager leave a rail to another manager."""
    mac = rail.nic.get("mac") or rail.mac
    if rail.is_infiniband or mac is None or rail.link.is_made:
        return _device(rail, f"interface-name:{rail.netdev}", "managed=0")
    return _device(rail, f"mac:{mac.lower()}", "managed=0")


def _device(rail: NetworkRail, match: str, setting: str) -> str:
    head = f"# Managed by rdma.cluster: {rail.name}."
    return "\n".join([head, f"[device-rdma-{rail.name}]", f"match-device={match}", setting]) + "\n"


def release_files(rail: NetworkRail) -> list[ManagedFile]:
    """Return the file by which NetworkManager leaves a rail to another manager."""
    return [ManagedFile(conf_path(rail.name), render_release(rail))]


def release(rails: Sequence[NetworkRail], changes: Sequence[FileChange], units: Mapping[str, UnitState], runner: Runner) -> None:
    """Make a running NetworkManager leave rails whose file says so. The interfaces keep their addresses."""
    paths = {change.path for change in changes}
    if not units[NM_UNIT].active or not any(path.startswith((f"{rail_network.CONF}/", f"{rail_network.PROFILES}/")) for path in paths):
        return
    read_conf(runner)
    seen = read_status(runner)
    for rail in rails:
        if conf_path(rail.name) in paths and rail.is_configured and seen.get(rail.netdev, (UNMANAGED, ""))[0] != UNMANAGED:
            run_checked(runner, "nmcli", "device", "set", rail.netdev, "managed", "no")
    forget(changes, runner)


def forget(changes: Sequence[FileChange], runner: Runner) -> None:
    """Delete the profiles whose files were removed: NetworkManager would keep them until it starts again."""
    for change in changes:
        if change.after is None and change.path.endswith(".nmconnection"):
            known = uuid_of(rail_network.owner_of(change.path))
            if runner.run(["nmcli", "--get-values", "connection.uuid", "connection", "show", "uuid", known]).rc == 0:
                run_checked(runner, "nmcli", "connection", "delete", "uuid", known)


def read_conf(runner: Runner) -> None:
    """Make NetworkManager read NetworkManager.conf and conf.d again. No connection changes."""
    run_checked(runner, "nmcli", "general", "reload", "conf")


def read_status(runner: Runner) -> dict[str, tuple[str, str]]:
    """Return each interface's state ("connected", "unmanaged", …) and the UUID of its active profile, "" if it has none."""
    return parse_status(run_checked(runner, *STATUS))


def parse_status(text: str) -> dict[str, tuple[str, str]]:
    """Parse the output of STATUS. nmcli puts a backslash before a colon within a value; no value here has one but a name."""
    found = {}
    for line in text.splitlines():
        words = line.replace("\\:", "\0").split(":")
        if len(words) == 3:
            found[words[0].replace("\0", ":")] = (words[1], words[2])
    return found
