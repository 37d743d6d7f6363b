# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the link gate: every planned port is up, of the right kind, at its rate, width and MTU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import DRIVERS, card_port
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import LINK_LAYERS, LINK_TYPES
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import BEST_MTU_BYTES
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.rate import check_rate
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort, rail_ports

declare(
    {
        "link.state": Check(
            "link",
            "the state of each planned rail's port",
            "`ports/N/state`, `phys_state`; `carrier`, `flags` of the interface",
            "check cable, switch port and optic, or what set the interface down; on InfiniBand, INIT means no subnet manager, and Disabled "
            "a disabled port",
            follows=NO_DEVICE,
            sources=(reads.file(f"{reads.IB}/ports/*/state"), reads.file(f"{reads.IB}/ports/*/phys_state")),
        ),
        "link.layer": Check(
            "link",
            "the link layer of that port",
            "`ports/N/link_layer`",
            "set `LINK_TYPE` of the NIC, or correct the intent",
            sources=(reads.file(f"{reads.IB}/ports/*/link_layer"),),
        ),
        "link.iwarp": Check(
            "link",
            "whether the device of each rail uses RoCE or InfiniBand, not iWARP",
            "`node_type`",
            "switch an E800 to RoCE with `devlink`, remove a siw device, or plan another NIC",
            sources=(reads.file(f"{reads.IB}/node_type"),),
        ),
        "link.mtu": Check(
            "link",
            "the active MTU of each InfiniBand port",
            "`ibv_devinfo`",
            "compare `max_mtu` of the card and MtuCap of its switch port (`smpquery portinfo`): the subnet manager uses the smaller one",
            sources=(reads.DEVINFO,),
        ),
    }
)

STAGE = "link"
UP = "ACTIVE, LinkUp"

#: Why an InfiniBand port is not up, by its state: the meaning and the remedy.
STATES = {
    "INIT": (
        "the link is up, but no subnet manager has configured it",
        "1. On {host}, check whether a subnet manager answers: `sminfo -C {device} -P {number}`. 2. If none does, start one for {plane}.",
    ),
    "ARMED": (
        "the subnet manager has configured it, but not activated it",
        "1. On {host}, find the subnet manager of {plane}: `sminfo -C {device} -P {number}`. 2. Check its log there, then run again.",
    ),
    "ACTIVE_DEFER": (
        "it was active, but its link has just failed",
        "1. On {host}, run {look}. 2. Replace {cable}, which loses the link.",
    ),
}
TRAINING = (
    "both ends detect each other, but the link does not come up",
    "1. Clean and reseat {cable} at both ends. 2. On {host}, run {look} for the module's readings. 3. Replace cable or optic.",
)
#: Why a port is DOWN, by its physical state: the meaning and the remedy.
PHYSICAL_STATES = {
    "Polling": (
        "it detects no partner",
        "Check {cable}: seated at both ends, switch port enabled, optic lit ({look}).",
    ),
    "Disabled": (
        "the port is disabled",
        "Enable it on {host}: `ibportstate -C {device} -P {number} -D 0 {number} enable`.",
    ),
    "Sleep": (
        "the port is in sleep mode",
        "Wake it on {host}: `ibportstate -C {device} -P {number} -D 0 {number} enable`.",
    ),
    "PortConfigurationTraining": TRAINING,
    "LinkErrorRecovery": TRAINING,
    "Phy Test": (
        "the port runs a physical-layer test",
        "End the test on {host}: `mstlink -d {address} --port_state TG`. It takes the link down and up.",
    ),
}
CABLE = ("", "Check {cable}: seated at both ends, switch port enabled, optic lit ({look}).")

E800_REMEDY = (
    "1. On {host}, disable iWARP: `devlink dev param set pci/{address} name enable_iwarp value false cmode runtime`. 2. Run the same "
    "with `enable_roce` and `true`. Intel's own irdma needs the module option `roce_ena=1` instead."
)
ONLY_IWARP = "Plan another NIC of {host} for this rail: this one supports only iWARP."
#: The remedy for an iWARP device, by its driver, or by the driver of the PCI function below it.
IWARP_REMEDIES = {
    "siw": "1. On {host}, remove the software iWARP device: `rdma link delete {device}`. 2. Run the driver stage, which creates Soft-RoCE.",
    "ice": E800_REMEDY,
    "irdma": E800_REMEDY,
    "i40e": ONLY_IWARP,
    "i40iw": ONLY_IWARP,
    "cxgb4": ONLY_IWARP,
    "iw_cxgb4": ONLY_IWARP,
}
IWARP_REMEDY = "Set {address} of {host} to RoCE with its vendor's tool, or plan another NIC for this rail."


def check_link(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Findings `link.state`, `link.layer`, `link.iwarp`, `link.rate`, `link.width` and `link.mtu` for each planned rail of one host."""
    return [finding for port in rail_ports(STAGE, host, rails, facts) for finding in _rail(port)]


def _rail(port: RailPort) -> Iterator[Finding]:
    if port.device is None or port.port is None:
        yield port.finding(
            "link.state", UNKNOWN, "no RDMA device, so no port to check", UP,
            f"Run the driver stage for {port.host}. Its gate reports what is missing.",
        )  # fmt: skip
        return
    yield _state(port, port.port)
    yield _layer(port)
    yield _iwarp(port, port.device)
    yield from check_rate(port)
    yield _mtu(port, port.port.active_mtu_bytes)


def _words(port: RailPort, template: str) -> str:
    plane = port.rail.rail.get("plane")
    return template.format(
        host=port.host, device=port.rail.device, number=port.rail.port, address=port.address, cable=port.cable, look=port.look,
        plane=f"plane {plane} (rail {port.rail.name})" if plane else f"the fabric of {port.rail.name}",
    )  # fmt: skip


def _state(port: RailPort, seen: Port) -> Finding:
    state, physical = seen.state, seen.physical_state
    observed = f"{port.name} is {state}, {physical}"
    if port.up:
        return port.finding("link.state", OK, observed, UP)
    if port.wrong_kind:
        return port.skip("link.state", f"{observed}, with the wrong link layer: see link.layer", UP)
    if state is None or physical is None:
        remedy = f"On {port.host}, run `grep . {port.sysfs}/state {port.sysfs}/phys_state` and check `dmesg`."
        return port.finding("link.state", UNKNOWN, f"{observed}: the kernel does not report its state", UP, remedy)
    if not port.infiniband:
        return _ethernet_down(port, observed)
    meaning, remedy = STATES.get(state) or PHYSICAL_STATES.get(physical) or CABLE
    return port.finding("link.state", ERROR, ": ".join(filter(None, (observed, meaning))), UP, _words(port, remedy))


def _ethernet_down(port: RailPort, observed: str) -> Finding:
    """Finding `link.state` of an Ethernet port, which shows DOWN, Disabled both without carrier and if the interface is down."""
    netdev, name = port.netdev, port.rail.netdev
    remedy = _words(port, CABLE[1])
    if netdev is None:
        return port.finding("link.state", ERROR, observed, UP, remedy)
    observed += f"; {name} is {_netdev_words(netdev)}"
    if netdev.admin_up is False:
        remedy = (
            f"1. On {port.host}, run `ip link set {name} up`, or run the site playbook again. "
            f"2. Find what set it down: `networkctl status {name}`."
        )
    elif netdev.carrier:
        remedy = f"On {port.host}, run `rdma link show {port.name}` and check `dmesg`: only the RDMA port is down, not the interface."
    return port.finding("link.state", ERROR, observed, UP, remedy)


def _netdev_words(netdev: Netdev) -> str:
    if netdev.admin_up is False:
        return "administratively down"
    return {True: "up, with carrier", False: "up, without carrier", None: "up, carrier unknown"}[netdev.carrier]


def _layer(port: RailPort) -> Finding:
    planned, seen = port.rail.rail["link_layer"], port.link_layer
    expected = LINK_LAYERS[planned]
    if seen is None:
        remedy = f"Run `cat {port.sysfs}/link_layer` on {port.host}."
        return port.finding("link.layer", UNKNOWN, "the kernel does not report it", expected, remedy)
    if seen == expected:
        return port.finding("link.layer", OK, seen, expected)
    remedy = f"Correct link_layer of {port.rail.name} of {port.host}"
    if port.driver in DRIVERS and port.pci:
        card, number = card_port(port.pci.address, int(port.rail.port or 1))
        remedy += f", or set LINK_TYPE_P{number} of {card} to {LINK_TYPES[planned]} with mstconfig and reboot {port.host}"
    return port.finding("link.layer", ERROR, seen, expected, remedy + ".")


def _iwarp(port: RailPort, device: Device) -> Finding:
    expected, kind = "RoCE or InfiniBand", device.node_type
    if kind is None:
        look = f"Run `cat /sys/class/infiniband/{port.rail.device}/node_type` on {port.host}."
        return port.finding("link.iwarp", UNKNOWN, f"the protocol of {port.rail.device} is not known", expected, look)
    if kind != "RNIC":
        return port.finding("link.iwarp", OK, f"{port.rail.device} is a {kind}", expected)
    remedy = _words(port, IWARP_REMEDIES.get(device.driver or "", IWARP_REMEDY))
    return port.finding("link.iwarp", ERROR, f"{port.rail.device} uses iWARP, which RoCE peers do not understand", expected, remedy)


def _mtu(port: RailPort, mtu_bytes: int | None) -> Finding:
    expected, check = f"{BEST_MTU_BYTES} bytes", "link.mtu"
    if not port.infiniband:
        return port.skip(check, "on Ethernet it depends on the interface's MTU, which the network stage checks", expected)
    if not port.up:
        return port.skip(check, port.not_judged or "the port is not up", expected)
    look = f"`ibv_devinfo -d {port.rail.device} -i {port.rail.port}` on {port.host}"
    if mtu_bytes is None:
        return port.finding(check, UNKNOWN, "the active MTU could not be read", expected, f"Run {look}.")
    if mtu_bytes >= BEST_MTU_BYTES:
        return port.finding(check, OK, f"{mtu_bytes} bytes", expected)
    remedy = (
        f"1. Run {look}: max_mtu is the card's limit. 2. Run `smpquery portinfo LID PORT` for its switch port: MtuCap is the switch's "
        "limit. 3. Raise the smaller one. The subnet manager of {plane} sets the link to it at its next sweep."
    )
    return port.finding(check, WARNING, f"{mtu_bytes} bytes", expected, _words(port, remedy))
