# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the current RoCE quality of service of an interface from the running system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState, is_running
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Pause
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import address_of, find_function
from ansible_collections.rdma.cluster.plugins.module_utils._qos.backends import DCB, DcbSettings, read_dcb_settings
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import (
    Careful,
    Places,
    find_places,
    parse_traffic_class,
    parse_trust,
    read_rdma_cm,
    read_switches,
    traffic_class_file,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import RdmaCm

AGENTS = ("lldpad", "dcbd")
_UNITS = "/etc/systemd/system"


def read_agents(sys: SysRoot) -> dict[str, UnitState]:
    """Return the agents that run, or start at boot, by name."""
    agents = {name: UnitState(active=is_running(sys, f"{name}.service") is True, enabled=_is_enabled(sys, name)) for name in AGENTS}
    return {name: state for name, state in agents.items() if state.active or state.enabled}


def _is_enabled(sys: SysRoot, name: str) -> bool:
    """Return whether a target or a socket starts the service; a masked one never starts."""
    if sys.link_target(f"{_UNITS}/{name}.service") == "/dev/null":
        return False
    folders = [entry for entry in sys.list_dir(_UNITS) if entry.endswith((".wants", ".requires"))]
    wanted = {unit for folder in folders for unit in sys.list_dir(f"{_UNITS}/{folder}")}
    return bool(wanted & {f"{name}.service", f"{name}.socket"})


_MLX5 = "mlx5_core"


@dataclass(frozen=True)
class QosState(DcbSettings):
    """The answer of a backend, and the values of related files; None if the driver does not have a value or it could not be read.

    device, port: the RDMA port on the interface, the source of traffic_class (None while unset) and rdma_cm (None without its configfs
    folder). traffic_class_settable: whether the driver has the file for it. np, rp: parameters of congestion control by OFED's names, and
    dcqcn_source, their place ("sysfs" | "debugfs"). ecn_np, ecn_rp: whether it is on, by priority. agents: daemons that may overwrite the
    settings. warnings: read failures, and warnings of the tools.
    """

    device: str | None = None
    port: str | None = None
    np: dict[str, int] | None = None
    rp: dict[str, int] | None = None
    ecn_np: list[bool] | None = None
    ecn_rp: list[bool] | None = None
    dcqcn_source: str | None = None
    traffic_class: int | None = None
    traffic_class_settable: bool = False
    rdma_cm: RdmaCm | None = None
    agents: dict[str, UnitState] | None = None
    warnings: list[str] | None = None


def read_qos(sys: SysRoot, runner: Runner, interface: str, device: str, port: str) -> QosState:
    """Read the state of an interface and of the RDMA port ("1") on it.

    Starts at most five processes (_qos/backends.py). A failure of this interface alone is no error: the value is None, with a warning.
    """
    reader = Careful(sys)
    function = find_function(sys, f"/sys/class/net/{interface}/device")
    pci = address_of(function) if function is not None else None
    places = find_places(reader, interface, pci)
    settings = read_dcb_settings(runner, interface, reader.warnings, is_mlx5=_is_mlx5(sys, interface, places))
    if settings.backend == DCB:
        settings = _with_trust(reader, interface, settings)
    file = traffic_class_file(device, port)
    return QosState(
        **vars(settings),
        device=device,
        port=port,
        np=reader.numbers(places.np) if places.source else None,
        rp=reader.numbers(places.rp) if places.source else None,
        ecn_np=read_switches(reader, places.enable_np),
        ecn_rp=read_switches(reader, places.enable_rp),
        dcqcn_source=places.source,
        traffic_class=reader.value(file, parse_traffic_class),
        traffic_class_settable=reader.exists(file),
        rdma_cm=read_rdma_cm(reader, device, port),
        agents=read_agents(sys),
        warnings=reader.warnings,
    )


def read_all_qos(sys: SysRoot, runner: Runner, netdevs: Mapping[str, Netdev], devices: Mapping[str, Device]) -> dict[str, dict[str, Any]]:
    """Return as_tree of every interface that carries a RoCE port. Without such a port, no process is started."""
    ports = sorted(roce_interfaces(netdevs, devices).items())
    return {name: as_tree(read_qos(sys, runner, name, *port), _pause(netdevs[name])) for name, port in ports}


def roce_interfaces(netdevs: Mapping[str, Netdev], devices: Mapping[str, Device]) -> dict[str, tuple[str, str]]:
    """Return interface → (device, port) of the RoCE port on it. A bond has no priorities of its own: its member interfaces represent it.

    If a hardware and a software device share an interface, the hardware device counts.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, device in sorted(devices.items(), key=lambda item: (item[1].software is True, item[0])):
        for number, port in device.ports.items():
            if device.node_type == "CA" and port.link_layer == "Ethernet" and port.netdev is not None:
                members = [member for member, netdev in netdevs.items() if netdev.master == port.netdev]
                for interface in members or [port.netdev]:
                    found.setdefault(interface, (name, number))
    return found


def _pause(netdev: Netdev) -> Pause | None:
    return netdev.ethtool.pause if netdev.ethtool is not None else None


def as_tree(state: QosState, pause: Pause | None) -> dict[str, Any]:
    """Return the state as in JSON: the keys of dscp_to_priority are texts. pause: global pause, {"rx", "tx"}, None if unknown."""
    tree = {**asdict(state), "pause": {"rx": pause.rx, "tx": pause.tx} if pause is not None else None}
    if state.dscp_to_priority is not None:
        tree["dscp_to_priority"] = {str(code): priority for code, priority in state.dscp_to_priority.items()}
    return tree


def _is_mlx5(sys: SysRoot, interface: str, places: Places) -> bool:
    """Return whether mlx5 drives it: by its driver, or by the files of congestion control, which only mlx5 has."""
    driver = sys.link_target(f"/sys/class/net/{interface}/device/driver") or ""
    return places.source is not None or driver.rpartition("/")[2] == _MLX5


def _with_trust(reader: Careful, interface: str, settings: DcbSettings) -> DcbSettings:
    """Return the answer with the trust in the driver's file, if it has one (OFED up to 2018): it is more reliable than APP entries."""
    trust = reader.value(f"/sys/class/net/{interface}/qos/trust", parse_trust)
    return settings if trust is None else replace(settings, trust=trust)
