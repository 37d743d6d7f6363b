# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails' addresses and MTU through systemd-networkd: one file a rail, only that link reconfigured.

The functions `files` and `ensure` are the interface that other network managers implement as well.
Sources: systemd.network(5), networkctl(1), ip-address(8).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import FileChange, ManagedFile, ensure_files, listed_diff, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._ipoib import (
    SUFFIXES,
    Ipoib,
    child_files,
    from_options,
    ipoib_differences,
    is_child_of,
    netdev_of,
    parent_lines,
)
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UnitState, unit_state

SERVICE = "systemd-networkd.service"
#: What is enabled along with it. It waits until a link is online that is required, which none of ours is: 120 s at each boot, and fails.
WAIT_ONLINE = "systemd-networkd-wait-online.service"
FOLDER = "/etc/systemd/network"
#: Ours are the files with this prefix; before distributions' 70- and 80-, so that they win.
PREFIX = "60-rdma-"
SETTLE_SECONDS = 20.0
#: Where netplan puts what it makes of /etc/netplan: "10-netplan-ens1.network", which comes before ours.
NETPLAN = "/run/systemd/network/10-netplan-"
_NETWORK_FILE = re.compile(r"^[ \t]*Network File: (/\S+)", re.MULTILINE)


@dataclass(frozen=True)
class NetworkRail:
    """A rail as the network manager sees it. nic: {"pci"} or {"mac"}; address: "192.168.100.1/24"; ipoib: where more is said of it."""

    name: str
    nic: dict[str, str]
    netdev: str
    address: str | None
    mtu_bytes: int
    ipoib: Ipoib | None = None


@dataclass(frozen=True)
class NetworkResult:
    """What was done, or would be in check mode; live: interface → what differed there, (seen, wished); service: networkd was not up."""

    files: list[FileChange]
    live: dict[str, list[tuple[str, str]]]
    service: bool

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live or self.service)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        live = [setting_diff(name, *each) for name, differences in self.live.items() for each in differences]
        service = ["enabled and started"] if self.service else []
        return [*(file.to_diff() for file in self.files), *listed_diff(SERVICE, service), *live]


def make_rail(given: Mapping[str, Any]) -> NetworkRail:
    """Of a module's options. Raises ApplyError for a child whose name would be too long."""
    return NetworkRail(**{**given, "ipoib": from_options(given["netdev"], given.get("ipoib"))})


def _match(nic: Mapping[str, str]) -> str:
    """What tells a NIC. A VLAN, bridge or bond on it has its MAC too, and another type.

    Hyper-V gives what it hands to a machine a PCI domain above 0, and the path begins with its bus: acpi-VMBUS:00-pci-0101:00:00.0.
    """
    if "mac" in nic:
        return f"MACAddress={nic['mac'].lower()}\nType=ether"
    path = f"pci-{nic['pci'].lower()}"
    return f"Path={path}" if path.startswith("pci-0000:") else f"Path={path} *-{path}"


def render(rail: NetworkRail) -> str:
    """The .network file of a rail."""
    lines = [
        f"# Managed by rdma.cluster: {rail.name}.",
        "[Match]",
        _match(rail.nic),
        "",
        "[Link]",
        f"MTUBytes={rail.mtu_bytes}",
        "RequiredForOnline=no",
        "",
        "[Network]",
        "DHCP=no",
        "IPv6AcceptRA=no",
        "ConfigureWithoutCarrier=yes",
        *([f"Address={rail.address}"] if rail.address else []),
        *(parent_lines(rail.ipoib) if rail.ipoib else []),
    ]
    return "\n".join(lines) + "\n"


def path_of(rail: str) -> str:
    """The file of a rail."""
    return f"{FOLDER}/{PREFIX}{rail}.network"


def files(rails: Sequence[NetworkRail], present: Sequence[str], planned: Sequence[str]) -> list[ManagedFile]:
    """The files of these rails; of those present under our prefix, the ones of no planned rail shall go.

    planned: the names of all rails, those included whose NIC is not there now.
    """
    wanted = [ManagedFile(path_of(rail.name), render(rail)) for rail in rails]
    children = [
        ManagedFile(f"{FOLDER}/{PREFIX}{name}", text) for rail in rails if rail.ipoib for name, text in child_files(rail.name, rail.ipoib)
    ]
    kept = {path_of(name) for name in planned} | {child.path for child in children}
    absent = [name for name in planned if name not in [rail.name for rail in rails]]
    gone = [path for path in sorted(present) if path not in kept and not is_child_of(path[len(f"{FOLDER}/{PREFIX}") :], absent)]
    return [*wanted, *children, *(ManagedFile(path, None) for path in gone)]


def ensure(rails: Sequence[NetworkRail], planned: Sequence[str], *, runner: Runner, check_mode: bool) -> NetworkResult:
    """Make files and live state agree with the rails; reconfigure only the links that differ. planned: as in `files`.

    Raises ApplyError if a link does not come to the wished state within SETTLE_SECONDS.
    """
    present = [str(path) for suffix in SUFFIXES for path in Path(FOLDER).glob(f"{PREFIX}*{suffix}")]
    changes = ensure_files(files(rails, present, planned), check_mode=check_mode)
    touched = {change.path for change in changes}
    live = {rail.netdev: found for rail in rails if (found := _differences(rail, runner))}
    gone = [name for change in changes if change.after is None and (name := netdev_of(change))]
    state = unit_state(runner, SERVICE)
    serve = state != UnitState(active=True, enabled=True)
    if not check_mode:
        if serve:
            _serve(runner, was_enabled=state.enabled)
        if changes:
            run_checked(runner, "networkctl", "reload")
        for name in gone:
            _delete(name, runner)
        for rail in rails:
            if rail.netdev in live or touched.intersection(_paths(rail)):
                run_checked(runner, "networkctl", "reconfigure", rail.netdev)
                _settle(rail, runner)
    return NetworkResult(changes, live, serve)


def _serve(runner: Runner, *, was_enabled: bool) -> None:
    """Where nobody had systemd-networkd enabled, another manager has the other links, and waits for them."""
    run_checked(runner, "systemctl", "enable", "--now", SERVICE)
    if not was_enabled and unit_state(runner, WAIT_ONLINE).enabled:
        run_checked(runner, "systemctl", "disable", WAIT_ONLINE)


def live_differences(rail: NetworkRail, mtu_bytes: int | None, ipv4: Sequence[str]) -> list[tuple[str, str]]:
    """What differs on a live interface, (seen, wished) in words. ipv4: its addresses, "192.168.100.1/24"."""
    found = []
    if mtu_bytes != rail.mtu_bytes:
        found.append((f"MTU {mtu_bytes} bytes", f"MTU {rail.mtu_bytes} bytes"))
    if rail.address and rail.address not in ipv4:
        found.append((f"address {', '.join(ipv4) or 'none'}", f"address {rail.address}"))
    return found


def _paths(rail: NetworkRail) -> list[str]:
    children = child_files(rail.name, rail.ipoib) if rail.ipoib else []
    return [path_of(rail.name), *(f"{FOLDER}/{PREFIX}{name}" for name, _text in children)]


def _differences(rail: NetworkRail, runner: Runner) -> list[tuple[str, str]]:
    """Of the interface, and of its children on partitions."""
    found = live_differences(rail, *_shown(rail, runner))
    return [*found, *(ipoib_differences(rail.netdev, rail.ipoib, runner) if rail.ipoib else [])]


def _delete(name: str, runner: Runner) -> None:
    """A file that goes does not take its interface along."""
    if runner.run(["ip", "-j", "address", "show", "dev", name]).rc == 0:
        run_checked(runner, "ip", "link", "delete", "dev", name)


def _shown(rail: NetworkRail, runner: Runner) -> tuple[int | None, list[str]]:
    """MTU and IPv4 addresses of a rail's interface, now."""
    done = runner.run(["ip", "-j", "address", "show", "dev", rail.netdev])
    if done.rc:
        raise ApplyError(f"There is no interface {rail.netdev} for {rail.name}: {done.stderr.strip()}")
    shown = json.loads(done.stdout)[0]
    return shown["mtu"], [f"{item['local']}/{item['prefixlen']}" for item in shown["addr_info"] if item["family"] == "inet"]


def _settle(rail: NetworkRail, runner: Runner) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    while found := _differences(rail, runner):
        if time.monotonic() > deadline:
            words = "; ".join(f"{seen} instead of {wished}" for seen, wished in found)
            hint = f" {rail.ipoib.hint}" if rail.ipoib else ""
            raise ApplyError(
                f"systemd-networkd was told to configure {rail.netdev}, and after {SETTLE_SECONDS:.0f} s it has {words}."
                f"{_in_the_way(rail, runner)}{hint}"
            )
        time.sleep(0.3)


def _in_the_way(rail: NetworkRail, runner: Runner) -> str:
    """A sentence on a file that systemd-networkd takes for a rail's interface in the place of ours; "" where it takes ours."""
    file = parse_network_file(runner.run(["networkctl", "status", rail.netdev]).stdout)
    if file is None or file == path_of(rail.name):
        return ""
    source = "/etc/netplan, run `netplan generate`" if file.startswith(NETPLAN) else "it"
    return f" It takes {file} in the place of {path_of(rail.name)}: take {rail.netdev} out of {source}, then `networkctl reload`."


def parse_network_file(text: str) -> str | None:
    """The .network file that `networkctl status IF` names (systemd 249 to 257); None for an interface without one ("n/a")."""
    found = _NETWORK_FILE.search(text)
    return found[1] if found is not None else None
