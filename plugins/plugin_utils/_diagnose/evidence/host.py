# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the causes of a failed job on a host: its memory, RDMA devices, and the variables of NCCL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import Memlock
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import DeviceList, missing_entries, parse_list
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Answer, Scene, Test, confirmed, excluded, unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed

#: The least free /dev/shm: a container has less by default (64 MiB), and it is little for a host.
_SHM_LEAST_BYTES = 256 * 1024**2


def locked_memory(scene: Scene) -> Answer:
    """Whether services, logins or the services that start jobs may lock too little memory."""
    limits = scene.facts.limits
    if limits is None:
        return unknown("the limits were not read")
    service = limits.service_memlock
    is_enough = {f"services may lock {_bytes(service)}": service.unlimited} if service else {}
    for unit, running in sorted(limits.running.items()):
        is_enough[f"{unit} and its jobs may lock {_bytes(running.memlock)}"] = running.memlock.unlimited
    for who, login in sorted(limits.login_memlock.items()):
        words = f"logins of {'root' if who == 'root' else 'users'} get {login.value if login else 'the kernel default'}"
        is_enough[words] = login is not None and login.unlimited
    low = [words for words, enough in is_enough.items() if not enough]
    if low:
        return confirmed("; ".join(low))
    return excluded("services and logins may lock any amount") if is_enough else unknown("the limits were not read")


def _bytes(limit: Memlock) -> str:
    return "any amount" if limit.unlimited else f"{limit.bytes} bytes"


def no_device(scene: Scene) -> Answer:
    devices = scene.devices
    if devices is None:
        return unknown("the RDMA devices were not read")
    return excluded(f"the host has {listed(sorted(devices))}") if devices else confirmed("the host has no RDMA device")


def other_vendor(scene: Scene) -> Answer:
    """Whether the device of the line, or any if it names none, has another driver than mlx5."""
    devices = scene.devices
    named = [name for name in scene.field_values("device") if not name.startswith("mlx5")]
    if named:
        return confirmed(f"the line names {listed(named)}")
    if devices is None:
        return unknown("the RDMA devices were not read")
    others = [name for name, device in sorted(devices.items()) if device.driver not in (None, "mlx5_core")]
    return confirmed(f"{listed(others)} is of another driver") if others else excluded("all RDMA devices are of mlx5")


def no_infiniband(scene: Scene) -> Answer:
    """Whether no port of the host, or of the device that the line names, is InfiniBand."""
    devices = scene.devices
    if not devices:
        return unknown("there is no RDMA device, or it was not read")
    named = [name for name in scene.field_values("device") if name in devices]
    layers = {f"{name}/{number}": port.link_layer for name, number, port in _ports(devices) if name in named or not named}
    if None in layers.values() or not layers:
        return unknown("the link layer of ports was not read")
    if any(layer == "InfiniBand" for layer in layers.values()):
        return excluded(f"{listed([port for port, layer in layers.items() if layer == 'InfiniBand'])} is InfiniBand")
    return confirmed(f"{listed(list(layers))} {'is' if len(layers) == 1 else 'are'} Ethernet")


def device_list(scene: Scene) -> Answer:
    """Whether NCCL_IB_HCA names a device that the host does not have, or selects no ACTIVE port."""
    devices = scene.devices
    if devices is None:
        return unknown("the RDMA devices were not read")
    if not devices:
        return unknown("the host has no RDMA device to name")
    values = list(scene.variable("NCCL_IB_HCA"))
    if not values:
        return excluded("NCCL_IB_HCA is not set")
    for value, where in values:
        wanted = parse_list(value)
        missing = missing_entries(wanted, devices)
        if missing:
            return confirmed(f"NCCL_IB_HCA={value} by {where} names {listed(missing)}; the host has {listed(sorted(devices))}")
        states = {f"{name}:{port}": facts.state for name, port, facts in _ports(devices) if wanted.has(name, int(port))}
        if "ACTIVE" not in states.values():
            seen = [f"{name} {state}" for name, state in states.items()]
            observed = f"its ports are {listed(seen)}" if seen else f"it matches none of {listed(sorted(devices))}"
            return confirmed(f"NCCL_IB_HCA={value} by {where}: {observed}")
    return excluded(f"NCCL_IB_HCA={values[0][0]} ({values[0][1]}) names ports that are ACTIVE")


def _ports(devices: Mapping[str, Device]) -> list[tuple[str, str, Port]]:
    return [(name, number, port) for name, device in sorted(devices.items()) for number, port in sorted(device.ports.items())]


def set_to(name: str, *values: str) -> Test:
    """A test whether a variable of NCCL is set to one of these values."""

    def test(scene: Scene) -> Answer:
        found = list(scene.variable(name))
        bad = [(value, where) for value, where in found if value in values]
        if bad:
            return confirmed(f"{name}={bad[0][0]} by {bad[0][1]}")
        if found:
            return excluded(f"{name}={found[0][0]} by {found[0][1]}")
        if scene.facts.nccl_files is None:
            return unknown("NCCL's files were not read, and the log does not contain it")
        return excluded(f"{name} is not set")

    return test


def is_set(*names: str) -> Test:
    """A test whether one of these variables of NCCL is set."""

    def test(scene: Scene) -> Answer:
        there = [f"{name}={value} by {where}" for name in names for value, where in scene.variable(name)]
        if there:
            return confirmed("; ".join(there))
        if scene.facts.nccl_files is None:
            return unknown("NCCL's files were not read, and the log does not contain them")
        return excluded(f"{' and '.join(names)} are not set")

    return test


def names_file(name: str) -> Test:
    """A test whether a variable of NCCL names the file of the line."""

    def test(scene: Scene) -> Answer:
        files = scene.field_values("file")
        setters = [f"{value} by {where}" for value, where in scene.variable(name) if value in files]
        if setters:
            return confirmed(f"{name}={setters[0]}")
        return unknown(f"neither the log nor the host's files show what sets {name}")

    return test


def ports_down(scene: Scene) -> Answer:
    """Whether a port that the job needs is not ACTIVE: that of the line, else those of NCCL_IB_HCA, else any port.

    NCCL skips a port that is down: one that neither the line nor the list names in full may never have had a cable.
    """
    devices = scene.devices
    if devices is None:
        return unknown("the RDMA devices were not read")
    named = [device.removesuffix("_dma") for device in scene.field_values("device")]
    lists = [parse_list(value) for value, _where in scene.variable("NCCL_IB_HCA")]
    wanted = [
        (f"{name}/{port}", facts.state, name in named or _is_named(name, lists))
        for name, port, facts in _ports(devices)
        if (name in named if named else all(each.has(name, int(port)) for each in lists))
    ]
    down = {f"{port} is {state or 'in an unknown state'}": is_named for port, state, is_named in wanted if state != "ACTIVE"}
    missed = [words for words, is_named in down.items() if is_named]
    if not wanted:
        if not named:
            return unknown("there is no port")
        return confirmed(f"no RDMA device {listed(named)}; the host has {listed(sorted(devices))}")
    if missed or (down and len(down) == len(wanted)):
        return confirmed(listed(missed or list(down)))
    if down:
        return unknown(f"{listed(list(down))}; the log does not show which ports the job uses")
    return excluded(f"{listed([port for port, *_facts in wanted])} {'is' if len(wanted) == 1 else 'are'} ACTIVE now")


def _is_named(name: str, lists: Sequence[DeviceList]) -> bool:
    """Whether every value of NCCL_IB_HCA (at least one) has the full name of a device, unlike "mlx5" and "^mlx5_7"."""
    return bool(lists) and all(not each.excluded and any(entry.name == name for entry in each.entries) for each in lists)


def no_node(scene: Scene) -> Answer:
    """Whether a device has no node in /dev/infiniband."""
    devices = scene.devices
    if not devices:
        return unknown("there is no RDMA device, or it was not read")
    without = [name for name, device in sorted(devices.items()) if device.uverbs is None]
    return confirmed(f"{listed(without)} has no node in /dev/infiniband") if without else excluded("each device has its node on the host")


def iommu(scene: Scene) -> Answer:
    mode = scene.facts.iommu.mode if scene.facts.iommu else None
    if mode is None:
        return unknown("the IOMMU's mode was not read")
    observed = f"the IOMMU is {'off' if mode == 'off' else f'on: {mode}'}"
    return confirmed(observed) if mode in ("translated", "mixed") else excluded(observed)


def shared_memory(scene: Scene) -> Answer:
    space = (scene.facts.filesystems or {}).get("/dev/shm")  # noqa: S108
    if space is None:
        return unknown("the free space of /dev/shm was not read")
    observed = f"{space.free_bytes // 1024**2} of {space.size_bytes // 1024**2} MiB of the host's /dev/shm are free now"
    return confirmed(observed) if space.free_bytes < _SHM_LEAST_BYTES else excluded(observed)


def ipc_removed(scene: Scene) -> Answer:
    removed = scene.facts.limits.remove_ipc if scene.facts.limits else None
    if removed is None:
        return unknown("RemoveIPC of logind was not read, or there is no logind")
    return confirmed("logind removes the files of users who log out") if removed else excluded("logind keeps them")
