# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails' addresses and MTU through systemd-networkd: one file a rail, only that link reconfigured.

The functions `files` and `ensure` are the interface that other network managers implement as well.
Sources: systemd.network(5), networkctl(1), ip-address(8).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import FileChange, ManagedFile, ensure_files, listed_diff, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UnitState, unit_state

SERVICE = "systemd-networkd.service"
FOLDER = "/etc/systemd/network"
#: Ours are the files with this prefix; before distributions' 70- and 80-, so that they win.
PREFIX = "60-rdma-"
SETTLE_SECONDS = 20.0


@dataclass(frozen=True)
class NetworkRail:
    """A rail as the network manager sees it. nic: {"pci"} or {"mac"}; address: "192.168.100.1/24"."""

    name: str
    nic: dict[str, str]
    netdev: str
    address: str | None
    mtu_bytes: int


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


def render(rail: NetworkRail) -> str:
    """The .network file of a rail."""
    match = f"Path=pci-{rail.nic['pci'].lower()}" if "pci" in rail.nic else f"MACAddress={rail.nic['mac'].lower()}"
    lines = [
        f"# Managed by rdma.cluster: {rail.name}.",
        "[Match]",
        match,
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
    kept = {path_of(name) for name in planned}
    return wanted + [ManagedFile(path, None) for path in sorted(present) if path not in kept]


def ensure(rails: Sequence[NetworkRail], planned: Sequence[str], *, runner: Runner, check_mode: bool) -> NetworkResult:
    """Make files and live state agree with the rails; reconfigure only the links that differ. planned: as in `files`.

    Raises ApplyError if a link does not come to the wished state within SETTLE_SECONDS.
    """
    present = [str(path) for path in Path(FOLDER).glob(f"{PREFIX}*.network")]
    changes = ensure_files(files(rails, present, planned), check_mode=check_mode)
    touched = {change.path for change in changes}
    live = {rail.netdev: found for rail in rails if (found := live_differences(rail, *_shown(rail, runner)))}
    serve = unit_state(runner, SERVICE) != UnitState(active=True, enabled=True)
    if not check_mode:
        if serve:
            run_checked(runner, "systemctl", "enable", "--now", SERVICE)
        if changes:
            run_checked(runner, "networkctl", "reload")
        for rail in rails:
            if rail.netdev in live or path_of(rail.name) in touched:
                run_checked(runner, "networkctl", "reconfigure", rail.netdev)
                _settle(rail, runner)
    return NetworkResult(changes, live, serve)


def live_differences(rail: NetworkRail, mtu_bytes: int | None, ipv4: Sequence[str]) -> list[tuple[str, str]]:
    """What differs on a live interface, (seen, wished) in words. ipv4: its addresses, "192.168.100.1/24"."""
    found = []
    if mtu_bytes != rail.mtu_bytes:
        found.append((f"MTU {mtu_bytes} bytes", f"MTU {rail.mtu_bytes} bytes"))
    if rail.address and rail.address not in ipv4:
        found.append((f"address {', '.join(ipv4) or 'none'}", f"address {rail.address}"))
    return found


def _shown(rail: NetworkRail, runner: Runner) -> tuple[int | None, list[str]]:
    """MTU and IPv4 addresses of a rail's interface, now."""
    done = runner.run(["ip", "-j", "address", "show", "dev", rail.netdev])
    if done.rc:
        raise ApplyError(f"There is no interface {rail.netdev} for {rail.name}: {done.stderr.strip()}")
    shown = json.loads(done.stdout)[0]
    return shown["mtu"], [f"{item['local']}/{item['prefixlen']}" for item in shown["addr_info"] if item["family"] == "inet"]


def _settle(rail: NetworkRail, runner: Runner) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    while found := live_differences(rail, *_shown(rail, runner)):
        if time.monotonic() > deadline:
            words = "; ".join(f"{seen} instead of {wished}" for seen, wished in found)
            raise ApplyError(f"systemd-networkd was told to configure {rail.netdev}, and after {SETTLE_SECONDS:.0f} s it has {words}.")
        time.sleep(0.3)
