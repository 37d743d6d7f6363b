# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""netplan renders one file per rail for systemd-networkd at boot.

`netplan apply` is never run: it may take away the address by which the host is reached. `netplan generate` is not run on the host's own
tree either, since systemd-networkd reconfigures every interface whose file it writes again. It renders a copy of the host's files instead,
which finds mistakes in any of them before ours is written, and only what it rendered for our rails is copied to /run/systemd/network.
An InfiniBand rail has a file of systemd-networkd itself: netplan has no such devices. Seen with netplan 0.106.
Sources: netplan-generate(8), netplan(5).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import networkd, nm_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import LACP, MONITOR_MS, Bond, bond_name
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import Vlan, made_names
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import NETPLAN_FOLDERS
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import (
    NETPLAN_PREFIX,
    NETWORKD_UNIT,
    NetworkRail,
    Running,
    rail_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import MAIN

_PLACE = re.compile(r"^(/\S+?):(\d+):(\d+): (.*)$", re.MULTILINE)


def path_of(rail: str) -> str:
    """Return the path of a rail's file."""
    return f"{rail_network.NETPLAN_FOLDER}/{NETPLAN_PREFIX}{rail}.yaml"


def rendered_path(rail: str, made: str | None = None) -> str:
    """Return the path of the .network file that netplan makes of it. made: the rail's interface, if it is a VLAN."""
    return f"{networkd.RENDERED}/10-netplan-{made}.network" if made else f"{networkd.RENDERED}/{networkd.RENDERED_PREFIX}{rail}.network"


def render(rail: NetworkRail) -> str:
    """Return the YAML of a rail. critical: systemd-networkd keeps the address when it stops.

    set-name: for an entry with an MTU, netplan also writes a .link file. Without a name in it, udev would leave the interface its kernel
    name at the next boot, eth1 (seen on 0.106).
    """
    mac = rail.nic.get("mac") or rail.mac
    if mac is None and not rail.link.is_made:
        raise ApplyError(f"{rail.name}: netplan finds an interface by its MAC address, and that of {rail.netdev} is not known.")
    lines = [
        f"# Managed by rdma.cluster: {rail.name}.",
        "network:",
        "  version: 2",
        *_head_lines(rail, str(mac).lower()),
        *([f"      mtu: {rail.mtu_bytes}"] if rail.mtu_bytes is not None else []),
        "      dhcp4: false",
        "      dhcp6: false",
        "      accept-ra: false",
        "      link-local: [ipv6]",
        "      optional: true",
        "      ignore-carrier: true",
        "      critical: true",
        *(["      addresses:", *(f"        - {_scalar(text)}" for text in rail.planned)] if rail.planned else []),
        *_routing_lines(rail),
    ]
    return "\n".join(lines) + "\n"


def _head_lines(rail: NetworkRail, mac: str) -> list[str]:
    """Return the lines that define an interface."""
    if rail.link.vlan is not None:
        return _vlan_lines(rail, rail.link.vlan)
    return _nic_lines(rail, mac) if rail.link.bond is None else _bond_lines(rail, rail.link.bond)


def _bond_lines(rail: NetworkRail, bond: Bond) -> list[str]:
    """Return the lines that define a bond, whose name in netplan is that of the interface."""
    name = rail_of(rail.name)
    members = [f"rdma-{name}{f'@{number}' if number else ''}" for number in range(len(bond.members))]
    lines = [
        "  bonds:",
        f"    {rail.netdev}:",
        "      renderer: networkd",
        f"      interfaces: [{', '.join(members)}]",
        "      parameters:",
    ]
    lacp = [f"        lacp-rate: {bond.lacp_rate}", f"        transmit-hash-policy: {bond.hash_policy}"] if bond.mode == LACP else []
    return [*lines, f"        mode: {bond.mode}", f"        mii-monitor-interval: {MONITOR_MS}", *lacp]


def _nic_lines(rail: NetworkRail, mac: str) -> list[str]:
    """Return the lines that define a NIC."""
    lines = ["  ethernets:", f"    rdma-{rail.name}:", "      renderer: networkd", "      match:", f'        macaddress: "{mac}"']
    return [*lines, f"      set-name: {rail.netdev}"]


def _vlan_lines(rail: NetworkRail, vlan: Vlan) -> list[str]:
    """Return the lines that define a VLAN, whose name in netplan is that of the interface. Raises ApplyError for what netplan lacks."""
    if vlan.pcp is not None:
        raise ApplyError(
            f"{rail.name}: netplan cannot set the priority in the tag of a VLAN. Remove pcp from its vlan, or set "
            "rdma_host.network.backend to networkd."
        )
    return ["  vlans:", f"    {rail.netdev}:", "      renderer: networkd", f"      id: {vlan.id}", f"      link: {_id_of(rail, vlan)}"]


def _id_of(rail: NetworkRail, vlan: Vlan) -> str:
    """Return the name in netplan of what carries a VLAN: that of a NIC, or of a bond."""
    bond = bond_name(rail_of(rail.name))
    return bond if vlan.parent == bond else f"rdma-{rail_of(rail.name)}"


def _routing_lines(rail: NetworkRail) -> list[str]:
    """Return the rail's rule and routes."""
    lines = []
    if rail.routing.rules:
        lines.append("      routing-policy:")
    for rule in rail.routing.rules:
        lines += [f"        - from: {_scalar(rule.source)}", f"          table: {rule.table}", f"          priority: {rule.priority}"]
    if rail.routing.planned:
        lines.append("      routes:")
    for route in rail.routing.planned:
        where = f"          via: {_scalar(route.gateway)}" if route.gateway else "          scope: link"
        lines += [f"        - to: {_scalar(route.network)}", where]
        lines += [f"          from: {_scalar(route.source)}"] if route.source else []
        lines += [] if route.table == MAIN else [f"          table: {route.table}"]
    return lines


def _scalar(address: str) -> str:
    """Return an address or network in YAML: one of IPv6 has colons, and needs quotes."""
    return f'"{address}"' if is_ipv6(address) else address


class NetplanChange(networkd.NetworkdChange):
    """The changes for netplan with systemd-networkd as its renderer."""

    serves = False

    @staticmethod
    def rail_files(rail: NetworkRail, running: Running) -> list[ManagedFile]:
        """Return the planned files of a rail."""
        if rail.is_infiniband:
            return networkd.NetworkdChange.rail_files(rail, running)
        # netplan warns of files that others can read.
        return [
            ManagedFile(path_of(rail.name), render(rail), mode=0o600),
            *(nm_profiles.release_files(rail) if running.networkmanager else []),
        ]

    def boot_file(self, rail: NetworkRail) -> str:
        return super().boot_file(rail) if rail.is_infiniband else rendered_path(rail.name, rail.netdev if rail.link.is_made else None)

    def validate(self, wanted: Sequence[ManagedFile]) -> None:
        """Render a copy of all files of netplan, and keep what it makes of ours."""
        self.rendered: dict[str, bytes] = {}
        files = [file for file in wanted if file.path.startswith(f"{rail_network.NETPLAN_FOLDER}/")]
        if not files:
            return
        with tempfile.TemporaryDirectory(prefix="rdma-cluster-") as folder:
            root = Path(folder)
            for source in NETPLAN_FOLDERS:
                for path in sorted(Path(source).glob("*.yaml")):
                    _put(root, str(path), path.read_bytes())
            for file in files:
                if file.content is None:
                    _below(root, file.path).unlink(missing_ok=True)
                else:
                    _put(root, file.path, file.text.encode())
            done = self.runner.run(["netplan", "generate", "--root-dir", folder])
            if done.rc:
                raise ApplyError(_refused(done.stderr or done.stdout, folder))
            made = _below(root, networkd.RENDERED)
            names = [path.name for path in sorted(made.glob(f"{networkd.RENDERED_PREFIX}*.network"))]
            vlans = [name for file in files if file.content is not None for name in made_names(file.text)]
            names += [f"10-netplan-{name}{suffix}" for name in vlans for suffix in (".netdev", ".network")]
            self.rendered = {name: (made / name).read_bytes() for name in names if (made / name).exists()}

    def refusal(self, units: Mapping[str, UnitState]) -> str:
        if units[NETWORKD_UNIT].active:
            return ""
        return (
            f"{NETWORKD_UNIT} does not run, and netplan needs it for the rails. 1. Set rdma_host.network.backend to networkmanager if "
            f"NetworkManager renders the files of netplan here; otherwise start {NETWORKD_UNIT}. 2. Run the network stage again."
        )

    def install(self, changes: Sequence[FileChange]) -> None:
        """Put what netplan rendered for our rails where the next boot puts it; remove what it no longer renders."""
        networkd.remove_rendered(changes)
        folder = Path(networkd.RENDERED)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.rendered.items():
            if not (folder / name).exists() or (folder / name).read_bytes() != content:
                (folder / name).write_bytes(content)
                (folder / name).chmod(0o644)


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _put(root: Path, path: str, content: bytes) -> None:
    place = _below(root, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    shutil.chown(place, 0, 0)
    place.chmod(0o600)


def _refused(text: str, root: str) -> str:
    """Return an error that names the file and the line that netplan refuses. root: that of the copy, which the user does not have."""
    found = _PLACE.search(text.replace(root, ""))
    if found is None:
        return f"netplan refuses the files in /etc/netplan, so the files of the rails were not written: {text.strip()[:500]}"
    path, line, _column, reason = found.groups()
    return (
        f"netplan refuses {path}, line {line}: {reason} The files of the rails were not written. 1. Correct {path}. "
        "2. Check it with `netplan generate`. 3. Run the network stage again."
    )
