# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a host that facts report in addition to its RDMA devices: limits, kernel settings, units."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState, is_running, unit_states
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import (
    Chrony,
    ClockSource,
    read_chrony,
    read_clocksource,
    read_hardware_clocks,
    read_synchronized,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.limit_sources import LimitSource, service_source
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import SERVICE as LOGIND
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import (
    LoginLimit,
    Memlock,
    RunningService,
    read_login_limits,
    read_remove_ipc,
    read_running_services,
    read_service_limits,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp import ClockProgram, Ptp, read_programs, read_ptp
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import BootValue, boot_values, live_values
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.nm_boot import read_boot_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Ethtool, EthtoolPort, read_ethtool
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import IpAddresses, read_ip_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev, read_netdev
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import read_boot_networks
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device

UFW, UFW_CONF, UFW_ENABLED = "ufw.service", "/etc/ufw/ufw.conf", re.compile(r"^\s*ENABLED=[\"']?yes", re.MULTILINE | re.IGNORECASE)
_MACHINE_ID, _HOSTNAME = re.compile(r"[0-9a-f]{32}"), re.compile(r"[!-~]{1,64}")
#: Sets up the switches between GPUs.
FABRIC_MANAGER = "nvidia-fabricmanager.service"
#: The units whose state decides whether a role has something to do, the firewalls, and those that a check needs.
UNITS = (
    "rdma-soft-links.service",
    "rdma-pcie.service",
    "rdma-recorder.timer",
    "systemd-networkd.service",
    "NetworkManager.service",
    "firewalld.service",
    UFW,
    "nftables.service",
    FABRIC_MANAGER,
    "rdma-cpu.service",
    "irqbalance.service",
    "chrony.service",
    "chronyd.service",
)
#: For all users, and for root's own jobs (nccl:src/misc/param.cc).
NCCL_FILES = ("/etc/nccl.conf", "/root/.nccl.conf")
NCCL_PREFIXES = ("NCCL_", "UCX_")


@dataclass(frozen=True)
class Limits:
    """service_memlock, service_open_files: the limits of a service, read inside a transient one; None if they could not be read.

    login_memlock, login_open_files: the limits of logins, "*" (everyone but root) and "root"; None if no file sets them.
    running: the services that run and start jobs, by unit. remove_ipc: whether logind cleans up after users; None if
    it does not run or does not answer. logind: whether it runs, None if unknown.
    service_sources: "memlock", "nofile" → the line of systemd's configuration that sets it for services; None if no file sets it.
    """

    service_memlock: Memlock | None
    login_memlock: dict[str, LoginLimit | None]
    service_open_files: int | None
    login_open_files: dict[str, LoginLimit | None]
    running: dict[str, RunningService]
    remove_ipc: bool | None
    logind: bool | None = None
    service_sources: dict[str, LimitSource | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Sysctl:
    """live: key → current value; boot: key → the value that the next boot sets, and the file it comes from; None if there is none."""

    live: dict[str, str | None]
    boot: dict[str, BootValue | None]

    def differs(self, key: str, value: str) -> bool:
        """Return whether a setting is not proven to have this value, now and after a boot."""
        later = self.boot.get(key)
        return self.live.get(key) != value or later is None or later.value != value


@dataclass(frozen=True)
class Boot:
    """Which boot of which machine was read, its own name, and how long it has been up."""

    boot_id: str | None
    machine_id: str | None
    hostname: str | None
    uptime_seconds: float | None


@dataclass(frozen=True)
class Time:
    """Whether the kernel considers its clock synchronized, None if not read; chrony's report, None if it does not run.

    hardware_clocks: interface → the clock of its NIC, for those that have one. chrony_unread: why a running chrony does not answer.
    clock_seconds: the time of day, since 1970; None for a captured tree. clocksource: the clock source of the kernel.
    programs: those that run and can adjust a clock. ptp: ptp4l's report, None if it does not run; ptp_unread: why it does not answer.
    """

    synchronized: bool | None
    chrony: Chrony | None = None
    hardware_clocks: dict[str, str] = field(default_factory=dict)
    chrony_unread: str | None = None
    clock_seconds: float | None = None
    clocksource: ClockSource | None = None
    programs: list[ClockProgram] = field(default_factory=list)
    ptp: Ptp | None = None
    ptp_unread: str | None = None


def parse_uptime(text: str) -> float:
    """Parse /proc/uptime: the first number of "4711.08 1234.50" (proc(5)). Raises ParseError."""
    found = re.match(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ", text)
    if found is None:
        raise ParseError(f"not an uptime: {quoted(text)}, expected the form '4711.08 1234.50'")
    return float(found[1])


def read_boot(sys: SysRoot) -> Boot:
    """Return the boot. An invalid machine-id ("uninitialized" before the first boot has ended), and an impossible hostname, become None."""
    machine_id, hostname = sys.text("/etc/machine-id"), sys.text("/proc/sys/kernel/hostname")
    return Boot(
        boot_id=sys.text("/proc/sys/kernel/random/boot_id"),
        machine_id=machine_id if _MACHINE_ID.fullmatch(machine_id or "") else None,
        hostname=hostname if _HOSTNAME.fullmatch(hostname or "") else None,
        uptime_seconds=sys.value("/proc/uptime", parse_uptime),
    )


def read_time(sys: SysRoot, runner: Runner | None) -> Time:
    clock_seconds = time.time() if runner is not None else None
    chrony, unread = read_chrony(sys, runner)
    nic_clocks = read_hardware_clocks(sys)
    programs = read_programs(sys, nic_clocks)
    ptp, ptp_unread = read_ptp(sys, runner, programs)
    return Time(
        read_synchronized(runner), chrony, nic_clocks, unread, clock_seconds, read_clocksource(sys), programs, ptp, ptp_unread
    )  # fmt: skip


def read_nccl_files(sys: SysRoot, files: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the variables in NCCL's own places and in the files, as NCCL reads them, for files that exist and may be read."""
    texts = {path: _readable(sys, path) for path in dict.fromkeys((*NCCL_FILES, *files))}
    return {path: variables_in(text) for path, text in texts.items() if text is not None}


def _readable(sys: SysRoot, path: str) -> str | None:
    try:
        return sys.read(path)
    except PermissionError:
        return None


def variables_in(text: str) -> dict[str, str]:
    """Return the variables of NCCL and UCX in a text, as NCCL reads them; also names that it ignores, such as "export NCCL_IB_HCA"."""
    return {name: value for name, value in parse_nccl_conf(text).variables.items() if _is_meant(name)}


def _is_meant(name: str) -> bool:
    return (name.split() or [""])[-1].startswith(NCCL_PREFIXES)


def read_limits(sys: SysRoot, runner: Runner | None) -> Limits:
    service = read_service_limits(runner) if runner is not None else None
    return Limits(
        service_memlock=service.memlock if service is not None else None,
        login_memlock=read_login_limits(sys, "memlock"),
        service_open_files=service.open_files if service is not None else None,
        login_open_files=read_login_limits(sys, "nofile"),
        running=read_running_services(sys),
        remove_ipc=read_remove_ipc(sys, runner) if runner is not None else None,
        logind=is_running(sys, LOGIND),
        service_sources={name: service_source(sys, name.upper()) for name in ("memlock", "nofile")},
    )


def read_sysctl(sys: SysRoot, keys: Sequence[str]) -> Sysctl:
    return Sysctl(live=live_values(sys, keys), boot=boot_values(sys, keys))


def read_units(sys: SysRoot, runner: Runner | None, others: Sequence[str] = ()) -> dict[str, UnitState] | None:
    """Return the units of UNITS and others, or None on a host whose systemd does not answer.

    A stock Ubuntu has ufw.service active while ufw filters nothing: it counts as active only if its own file enables it.
    """
    if runner is None:
        return None
    try:
        states = unit_states(runner, *UNITS, *others)
    except (ApplyError, CommandError):
        return None
    if UFW in states and not UFW_ENABLED.search(sys.read(UFW_CONF) or ""):
        states[UFW] = replace(states[UFW], active=False)
    return states


def add_named(sys: SysRoot, known: Mapping[str, Netdev], devices: Mapping[str, Device]) -> dict[str, Netdev]:
    """Return the known interfaces, and those that ports and GIDs of RDMA devices name: a bond has no device below it."""
    ports = [port for device in devices.values() for port in device.ports.values()]
    used = {name for port in ports for name in (port.netdev, *(gid.netdev for gid in port.gids)) if name is not None}
    return {**known, **{name: read_netdev(sys, name) for name in sorted(used - known.keys())}}


def read_addresses(runner: Runner) -> dict[str, IpAddresses]:
    """Return what `ip` reports about every interface; empty without iproute2."""
    return read_ip_addresses(runner) or {}


def add_live(
    sys: SysRoot,
    runner: Runner,
    port: EthtoolPort,
    netdevs: Mapping[str, Netdev],
    addresses: Mapping[str, IpAddresses],
    *,
    subset: Collection[str],
) -> dict[str, Netdev]:
    """Return the interfaces with addresses, the managers that claim them, now and at boot, and their drivers' reports.

    subset: decides whether counters and optics are read.
    """
    boot, profiles = read_boot_networks(sys, netdevs), read_boot_profiles(sys, netdevs)
    return {
        name: replace(
            netdev,
            max_mtu_bytes=addresses[name].max_mtu_bytes if name in addresses else None,
            ipv4=addresses[name].ipv4 if name in addresses else None,
            ipv6=addresses[name].ipv6 if name in addresses else None,
            dad_failed=addresses[name].dad_failed if name in addresses else None,
            managers=read_managers(sys, name, netdev.ifindex),
            boot=boot[name],
            profile=profiles[name],
            ethtool=_ethtool(port, runner, name, subset),
        )
        for name, netdev in netdevs.items()
    }


def _ethtool(port: EthtoolPort, runner: Runner, name: str, subset: Collection[str]) -> Ethtool | None:
    reading = read_ethtool(port, runner if "optics" in subset else None, name)
    return reading if reading is None or "counters" in subset else replace(reading, counters={})
