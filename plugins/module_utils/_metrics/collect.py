# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a host once and return its metrics. It only reads: sysfs, the counters of drivers, modules of Ethernet ports, and QoS settings.

A source that cannot be read never affects another one: its samples are missing, and rdma_scrape_error names it. Series are bounded: by
rail, priority, lane and GPU, never by pair, queue pair or process, and at most MOST_SERIES.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import read_gpus
from ansible_collections.rdma.cluster.plugins.module_utils._metrics import catalogue
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import Config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.exposition import Metric, Sample, exposition
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import result_samples
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Ethtool, EthtoolPort, read_ethtool
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev, read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics_model import Optic, Reading, out_of_range
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import DISTANCES, read_distances
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import differences
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import CONFIG as QOS_CONFIG
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import QosPlan, find_ports, parse_plan
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import as_tree, read_qos
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import PriorityCounters, priority_counters
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, add_optics, read_devices
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_ip, resolve, rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import CLASS, parse_counter

#: Series of a host at most; families that exceed it are left out, from the last one.
MOST_SERIES = 4000
BYTES_PER_GBIT = 1e9 / 8
_UNREAD = (ParseError, CommandError, ApplyError, OSError)


@dataclass(frozen=True)
class Host:
    """The readers of a host. now: seconds since 1970."""

    sys: SysRoot
    runner: Runner
    ethtool: EthtoolPort
    now: Callable[[], float] = time.time


@dataclass(frozen=True)
class _Found:
    """The part of a host in which its rails are found; see _rdma/rails.py."""

    netdevs: Mapping[str, Netdev]
    devices: Mapping[str, Device]
    vlans: None = None
    bonds: None = None


class Samples:
    """The samples of one run, by family, and the sources that could not be read."""

    def __init__(self) -> None:
        self.by_metric: dict[str, list[Sample]] = {}
        self._errors: dict[tuple[str, str], bool] = {}

    def add(self, metric: Metric, value: float | None, **labels: object) -> None:
        """Add a sample; a value of None was not read, and labels of None are left out."""
        if value is not None:
            named = {name: str(each) for name, each in labels.items() if each is not None}
            self.by_metric.setdefault(metric.name, []).append((named, float(value)))

    @contextmanager
    def source(self, name: str, rail: str = "") -> Iterator[None]:
        """Note whether a source could be read; an error in it ends only its own block."""
        self._errors.setdefault((name, rail), False)
        try:
            yield
        except _UNREAD:
            self.failed(name, rail)

    def failed(self, name: str, rail: str = "") -> None:
        """Note that a source could not be read."""
        self._errors[name, rail] = True

    def finish(self) -> None:
        """Add the samples of the sources."""
        for (name, rail), failed in sorted(self._errors.items()):
            self.add(catalogue.SCRAPE_ERROR, float(failed), source=name, rail=rail or None)


def collect(config: Config, host: Host) -> str:
    """Return the text of the file of a host."""
    began, samples = host.now(), Samples()
    for metric, found in result_samples({config.host: config.results}):
        samples.by_metric.setdefault(metric.name, []).extend(found)
    with samples.source("ports"):
        _host_info(host.sys, samples)
        netdevs, pci = read_netdevs(host.sys), PciReader(host.sys)
        devices = read_devices(host.sys, netdevs, pci, counters=False)
        rails = resolve(config.rails, _Found(netdevs, devices))
        for rail in rails:
            _port(rail, devices, samples)
            if config.hw_counters and rail.device is not None:
                _hw_counters(host.sys, rail, samples)
        _interfaces(rails, host, samples)
        if config.infiniband_optics:
            _infiniband_modules(rails, devices, host.runner, samples)
        with samples.source("gpu"):
            _gpu_paths(rails, devices, host.sys, pci, samples)
    samples.add(catalogue.SCRAPE_TIME, began)
    samples.add(catalogue.SCRAPE_DURATION, max(0.0, host.now() - began))
    return _text(config, samples)


def _text(config: Config, samples: Samples) -> str:
    """Return the families in the order of the catalogue, up to MOST_SERIES samples."""
    left, whole = MOST_SERIES, []
    for metric in catalogue.METRICS:
        found = samples.by_metric.get(metric.name, [])
        if len(found) > left:
            samples.failed("series")
        elif metric is not catalogue.SCRAPE_ERROR:
            left -= len(found)
            whole.append((metric, found))
    samples.finish()
    whole.append((catalogue.SCRAPE_ERROR, samples.by_metric.get(catalogue.SCRAPE_ERROR.name, [])))
    common = {"host": config.host, **config.labels}
    return "".join(exposition(metric, [({**common, **labels}, value) for labels, value in found]) for metric, found in whole)


def _host_info(sys: SysRoot, samples: Samples) -> None:
    samples.add(
        catalogue.HOST_INFO,
        1,
        kernel=sys.text("/proc/sys/kernel/osrelease"),
        driver=sys.text("/sys/module/mlx5_core/version") or None,
    )


def _port(rail: ResolvedRail, devices: Mapping[str, Device], samples: Samples) -> None:
    """Add the state of a rail's port. A rail whose NIC is missing is down."""
    planned = rail.rail["rate_gbps"]
    samples.add(catalogue.PORT_EXPECTED_RATE, planned * BYTES_PER_GBIT if planned is not None else None, rail=rail.name)
    device = devices.get(rail.device or "")
    port = device.ports.get(rail.port or "") if device is not None else None
    samples.add(catalogue.PORT_UP, float(port is not None and port.state == "ACTIVE"), rail=rail.name)
    if device is None or port is None:
        return
    samples.add(catalogue.PORT_RATE, port.rate_gbps * BYTES_PER_GBIT if port.rate_gbps is not None else None, rail=rail.name)
    samples.add(catalogue.PORT_GID_INDEX, rocev2_gid_index(port, rail_ip(rail.rail)), rail=rail.name)
    samples.add(
        catalogue.PORT_INFO,
        1,
        rail=rail.name,
        device=rail.device,
        port=rail.port,
        interface=rail.netdev,
        link_layer=port.link_layer,
        firmware=device.firmware,
        pci=device.pci.address if device.pci is not None else None,
    )


def _hw_counters(sys: SysRoot, rail: ResolvedRail, samples: Samples) -> None:
    """Add the hw_counters of a port. One that cannot be read leaves the others as they are."""
    folder = f"{CLASS}/{rail.device}/ports/{rail.port}/hw_counters"
    for name in sys.list_dir(folder):
        if name in catalogue.HW_METRICS:
            with samples.source("hw_counters", rail.name):
                text = sys.text(f"{folder}/{name}")
                if text is None:
                    raise ParseError(f"{folder}/{name} has no value")
                samples.add(catalogue.HW_METRICS[name], parse_counter(text), rail=rail.name)


def _interfaces(rails: list[ResolvedRail], host: Host, samples: Samples) -> None:
    """Add QoS, the counters of priorities, and modules, of each Ethernet interface of a rail."""
    plan: QosPlan | None = None
    with samples.source("qos"):
        plan = host.sys.value(QOS_CONFIG, parse_plan)
        if plan is not None:
            _qos(rails, plan, host, samples)
    for rail in rails:
        if rail.rail["link_layer"] != "roce":
            continue
        for interface in rail.netdevs:
            with samples.source("interface", rail.name):
                seen = read_ethtool(host.ethtool, host.runner, interface)
                if seen is not None:
                    _priorities(rail, interface, seen, plan, samples)
                    _module(rail, interface, seen, samples)


def _qos(rails: list[ResolvedRail], plan: QosPlan, host: Host, samples: Samples) -> None:
    """Add the number of settings that differ from the plan. Without an answer of mlnx_qos or dcb there is no number."""
    names = {interface: rail.name for rail in rails for interface in rail.netdevs}
    for interface, port in find_ports(host.sys, plan.nics).found.items():
        rail = names.get(interface)
        if rail is None:
            continue
        with samples.source("qos", rail):
            state = read_qos(host.sys, host.runner, interface, port.device, port.port)
            if state.backend is None:
                raise ParseError(f"the settings of {interface} cannot be read: {state.why}")
            found = differences(plan.profile, as_tree(state, host.ethtool.pause(interface)))
            samples.add(catalogue.QOS_DRIFT, len(found), rail=rail, interface=interface)


def _priorities(rail: ResolvedRail, interface: str, seen: Ethtool, plan: QosPlan | None, samples: Samples) -> None:
    """Add the counters of the priorities that have PFC by the plan, and of others from their first pause, discard or mark on."""
    if "statistics" in seen.unread:
        samples.failed("statistics", rail.name)
        return
    lossless = [number for number, on in enumerate(plan.profile.get("pfc") or ()) if on] if plan is not None else []
    for priority, of in priority_counters(seen.counters).items():
        if priority in lossless or any(_events(of)):
            _priority(of, samples, {"rail": rail.name, "interface": interface, "priority": priority})


def _events(of: PriorityCounters) -> tuple[int | None, ...]:
    return (of.rx_pause, of.tx_pause, of.rx_discards, of.rx_buffer_discards, of.rx_congestion_discards, of.rx_marked)


def _priority(of: PriorityCounters, samples: Samples, where: Mapping[str, Any]) -> None:
    for direction, of_bytes, frames, usec in (
        ("receive", of.rx_bytes, of.rx_pause, of.rx_pause_usec),
        ("transmit", of.tx_bytes, of.tx_pause, of.tx_pause_usec),
    ):
        samples.add(catalogue.PRIORITY_BYTES, of_bytes, **where, direction=direction)
        samples.add(catalogue.PAUSE_FRAMES, frames, **where, direction=direction)
        samples.add(catalogue.PAUSE_SECONDS, None if usec is None else usec / 1e6, **where, direction=direction)
    for reason, count in (("port", of.rx_discards), ("buffer", of.rx_buffer_discards), ("congestion", of.rx_congestion_discards)):
        samples.add(catalogue.DISCARDS, count, **where, reason=reason)
    samples.add(catalogue.ECN_MARKED, of.rx_marked, **where)


def _module(rail: ResolvedRail, interface: str, seen: Ethtool, samples: Samples) -> None:
    """Add the readings of a module. A cable without sensors has none, and no alarms."""
    if "module" in seen.unread:
        samples.failed("optics", rail.name)
    if seen.optic is not None:
        _readings(seen.optic, {"rail": rail.name, "interface": interface}, samples)


def _infiniband_modules(rails: list[ResolvedRail], devices: Mapping[str, Device], runner: Runner, samples: Samples) -> None:
    """Add the readings of the modules of InfiniBand rails, as mstlink reports them."""
    names = [rail.device for rail in rails if rail.device is not None and rail.rail["link_layer"] == "infiniband"]
    read = add_optics(runner, {name: devices[name] for name in names if name in devices})
    for rail in rails:
        port = read[rail.device].ports.get(rail.port or "") if rail.device in read else None
        if port is not None:
            with samples.source("optics", rail.name):
                if port.optic_unread is not None:
                    raise ParseError(port.optic_unread)
            if port.optic is not None:
                _readings(port.optic, {"rail": rail.name, "device": rail.device}, samples)


def _readings(optic: Optic, where: Mapping[str, Any], samples: Samples) -> None:
    samples.add(catalogue.OPTIC_TEMPERATURE, _value(optic.temperature_celsius), **where)
    samples.add(catalogue.OPTIC_VOLTAGE, _value(optic.voltage_volt), **where)
    for number, lane in enumerate(optic.lanes, 1):
        samples.add(catalogue.OPTIC_RECEIVE, _value(lane.rx_power_mw, 1e-3), **where, lane=number)
        samples.add(catalogue.OPTIC_TRANSMIT, _value(lane.tx_power_mw, 1e-3), **where, lane=number)
    if optic.lanes or optic.temperature_celsius is not None:
        alarms = [each for each in out_of_range(optic) if each[1] == "alarm"]
        samples.add(catalogue.OPTIC_ALARMS, len(alarms), **where)


def _value(reading: Reading | None, factor: float = 1.0) -> float | None:
    return None if reading is None else round(reading.value * factor, 9)


def _gpu_paths(rails: list[ResolvedRail], devices: Mapping[str, Device], sys: SysRoot, pci: PciReader, samples: Samples) -> None:
    """Add the nearest rail of each GPU: the first one of the shortest path."""
    gpus, _driver = read_gpus(sys, pci)
    functions = {rail.name: devices[rail.device].pci for rail in rails if rail.device is not None}
    for gpu, paths in read_distances(sys, {gpu.address: gpu.pci for gpu in gpus}, functions).items():
        known = [(DISTANCES.index(path), number, rail, path) for number, (rail, path) in enumerate(paths.items()) if path is not None]
        if known:
            _rank, _number, rail, path = min(known)
            samples.add(catalogue.GPU_PATH, 1, gpu=gpu, rail=rail, path=path)
        elif paths:
            samples.failed("gpu")
