# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Readings of a host for the recorder: flat tables of what may change, cheap enough to be made again and again.

Sources: sysfs of Linux (Documentation/ABI/testing/sysfs-class-net, Documentation/ABI/stable/sysfs-class-infiniband), proc(5).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import FILE as SYSCTL_FILE
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import live_values
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import COUNTERS, Statistics
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import CLASS, port_folders

NET, MODULES = "/sys/class/net", "/sys/module"
NVIDIA_VERSION = "/proc/driver/nvidia/version"
#: The kinds of values: see docs/recorder.md. Those of QUICK are read every few seconds, the others once a minute.
CARRIER, STATE, INTERFACE, DEVICE, MODULE, COUNTER, GID = "carrier", "state", "interface", "device", "module", "counters", "gid"
RATE, MTU, FIRMWARE, DRIVER, KERNEL, SYSCTL, IRQ = "rate", "mtu", "firmware", "driver", "kernel", "sysctl", "irq_affinity"
QUICK = (CARRIER, STATE, INTERFACE, DEVICE, MODULE)
KINDS = (*QUICK, COUNTER, GID, RATE, MTU, FIRMWARE, DRIVER, KERNEL, SYSCTL, IRQ)
#: The longest recorded value and subject, in characters, and the most values of one reading.
LONGEST, MOST = 200, 20_000
_ZERO_GID = re.compile(r"[0:]*|fe80:[0:]*")
_SYSCTL_KEY = re.compile(r"^-?([A-Za-z0-9][\w./*-]{0,150}) *=", re.MULTILINE)
#: An interface that is administratively down has no carrier to report.
_CARRIERS = {"1": "up", "0": "no carrier", "": "down"}
_NUMBER = re.compile(r"[0-9]{1,20}")

#: What is recorded: subject → value. A counter is a number; anything else is text.
Values = dict[str, Union[str, int]]


@dataclass(frozen=True)
class Reading:
    """Values of one moment. values: kind → its values; unread: kind → why it could not be read now.

    pci: name of an interface or RDMA device → PCI address, because a reboot can change names.
    """

    values: dict[str, Values]
    unread: dict[str, str] = field(default_factory=dict)
    pci: dict[str, str] = field(default_factory=dict)


class Reader:
    """Reads a host. interfaces: names to record although they have no device below them; statistics: of drivers."""

    def __init__(self, root: str = "/", interfaces: Sequence[str] = (), statistics: Statistics | None = None) -> None:
        self._root, self._named, self._statistics = root, frozenset(interfaces), statistics
        self._pci: dict[str, str] = {}
        self._physical: dict[str, bool] = {}
        self._devices_before: list[str] = []
        self._ports_before: list[tuple[str, str]] = []

    def quick(self) -> Reading:
        """Read what changes when a link or a driver fails."""
        return self._read(
            {CARRIER: self._carriers, STATE: self._states, INTERFACE: self._interfaces, DEVICE: self._devices, MODULE: self._modules}
        )

    def slow(self) -> Reading:
        """Read the rest: counters, GIDs, rates, versions and settings."""
        readers = {COUNTER: self._counters, RATE: self._rates, MTU: self._mtus, FIRMWARE: self._firmware, DRIVER: self._drivers}
        return self._read({**readers, KERNEL: self._kernel, SYSCTL: self._sysctl, IRQ: self._interrupts, GID: self._gids})

    def gids(self) -> Reading:
        """Read the GID tables only."""
        return self._read({GID: self._gids})

    def _read(self, readers: Mapping[str, Callable[[SysRoot], Values]]) -> Reading:
        sys = SysRoot(self._root)
        values: dict[str, Values] = {}
        unread: dict[str, str] = {}
        for kind, reader in readers.items():
            try:
                values[kind] = bounded(reader(sys))
            except (OSError, ValueError) as error:
                unread[kind] = str(error)[:LONGEST]
        return Reading(values, unread, self._pci)

    def _netdevs(self, sys: SysRoot) -> list[str]:
        """The interfaces with a device, bonds, and the named ones; not those of containers and bridges."""
        names = sys.list_dir(NET)
        for name in names:
            if name not in self._physical:
                self._physical[name] = any(sys.exists(f"{NET}/{name}/{entry}") for entry in ("device", "bonding"))
                self._place(sys, name, f"{NET}/{name}/device")
        for gone in self._physical.keys() - set(names):
            del self._physical[gone]
        return [name for name in names if self._physical[name] or name in self._named]

    def _place(self, sys: SysRoot, name: str, device: str) -> None:
        """Note the PCI address of a device: its own, or that of the PCI function that a virtio device is part of."""
        for part in reversed((sys.resolve(device) or "").split("/")):
            if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", part):
                self._pci[name] = part
                return

    def _ports(self, sys: SysRoot) -> list[tuple[str, str]]:
        """Return name ("mlx5_0/1") and path of each port of each RDMA device. They are listed again if the devices have changed."""
        devices = sys.list_dir(CLASS)
        if devices != self._devices_before:
            self._devices_before = devices
            for device in devices:
                self._place(sys, device, f"{CLASS}/{device}/device")
            self._ports_before = port_folders(sys, devices)
        return self._ports_before

    def _carriers(self, sys: SysRoot) -> Values:
        """Return the carrier of each interface, and how often it was lost: a loss between two readings shows only there.

        An interface that is administratively down has no value: "down".
        """
        values: Values = {}
        for name in self._netdevs(sys):
            text = sys.text(f"{NET}/{name}/carrier")
            values[name] = _CARRIERS.get(text or "", text or "")
            losses = sys.text(f"{NET}/{name}/carrier_down_count")
            if losses is not None and _NUMBER.fullmatch(losses):
                values[f"{name} losses"] = int(losses)
        return values

    def _states(self, sys: SysRoot) -> Values:
        return {name: sys.text(f"{path}/state") or "unknown" for name, path in self._ports(sys)}

    def _interfaces(self, sys: SysRoot) -> Values:
        return {name: self._pci.get(name, "present") for name in self._netdevs(sys)}

    def _devices(self, sys: SysRoot) -> Values:
        return {name: self._pci.get(name, "present") for name in sys.list_dir(CLASS)}

    def _modules(self, sys: SysRoot) -> Values:
        """Return all names below /sys/module; those of the kernel itself never change."""
        return dict.fromkeys(sys.list_dir(MODULES), "loaded")

    def _counters(self, sys: SysRoot) -> Values:
        values: Values = {}
        for name, path in self._ports(sys):
            for folder in ("counters", "hw_counters"):
                values.update(_numbers(name, sys.read_files(f"{path}/{folder}")))
        for name in self._netdevs(sys):
            found = (self._statistics(name) if self._statistics is not None else None) or {}
            values.update({f"{name} {counter}": value for counter, value in found.items() if counter in COUNTERS})
        return values

    def _rates(self, sys: SysRoot) -> Values:
        speeds = {name: sys.text(f"{NET}/{name}/speed") for name in self._netdevs(sys)}
        return _present({**speeds, **{name: sys.text(f"{path}/rate") for name, path in self._ports(sys)}})

    def _mtus(self, sys: SysRoot) -> Values:
        return _present({name: sys.text(f"{NET}/{name}/mtu") for name in self._netdevs(sys)})

    def _firmware(self, sys: SysRoot) -> Values:
        return _present({name: sys.text(f"{CLASS}/{name}/fw_ver") for name in sys.list_dir(CLASS)})

    def _drivers(self, sys: SysRoot) -> Values:
        """Return the modules below interfaces and devices with their versions, and NVIDIA's driver."""
        links = [f"{NET}/{name}/device/driver" for name in self._netdevs(sys)]
        links += [f"{CLASS}/{name}/device/driver" for name in sys.list_dir(CLASS)]
        values: Values = {}
        for module in sorted({(sys.link_target(link) or "").rpartition("/")[2] for link in links} - {""}):
            parts = [sys.text(f"{MODULES}/{module}/{name}") for name in ("version", "srcversion")]
            values[module] = " ".join(part for part in parts if part) or "no version"
        nvidia = sys.text(NVIDIA_VERSION)
        return {**values, "nvidia": nvidia.splitlines()[0]} if nvidia else values

    def _kernel(self, sys: SysRoot) -> Values:
        return _present({"kernel": sys.text("/proc/sys/kernel/osrelease")})

    def _sysctl(self, sys: SysRoot) -> Values:
        """Return the live values of the keys in our file."""
        keys = [key for key in _SYSCTL_KEY.findall(sys.read(SYSCTL_FILE) or "") if "*" not in key]
        return _present(live_values(sys, keys))

    def _interrupts(self, sys: SysRoot) -> Values:
        values: Values = {}
        for name in self._netdevs(sys):
            for number in sys.list_dir(f"{NET}/{name}/device/msi_irqs"):
                cpus = sys.text(f"/proc/irq/{number}/smp_affinity_list") if _NUMBER.fullmatch(number) else None
                if cpus is not None:
                    values[f"{name} {number}"] = cpus
        return values

    def _gids(self, sys: SysRoot) -> Values:
        values: Values = {}
        for name, path in self._ports(sys):
            for index, text in sys.read_files(f"{path}/gids").items():
                gid = text.strip()
                if not _ZERO_GID.fullmatch(gid):
                    attributes = [sys.text(f"{path}/gid_attrs/{entry}/{index}") for entry in ("types", "ndevs")]
                    values[f"{name} {index}"] = " ".join([gid, *(each for each in attributes if each)])
        return values


def bounded(values: Values) -> Values:
    """Return values of bounded number and length: a driver, or a kernel's table, may hold anything."""
    if len(values) > MOST:
        values = dict(itertools.islice(values.items(), MOST))
    if any(len(of) > LONGEST or (isinstance(value, str) and len(value) > LONGEST) for of, value in values.items()):
        values = {of[:LONGEST]: value[:LONGEST] if isinstance(value, str) else value for of, value in values.items()}
    return values


def _present(texts: Mapping[str, str | None]) -> Values:
    return {name: text for name, text in texts.items() if text is not None}


def _numbers(name: str, texts: Mapping[str, str]) -> Values:
    stripped = {counter: text.strip() for counter, text in texts.items() if counter in COUNTERS}
    return {f"{name} {counter}": int(text) for counter, text in stripped.items() if _NUMBER.fullmatch(text)}
