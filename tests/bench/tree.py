# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made tree of /sys and /proc: a host with 16 ConnectX-7 and 8 GPUs behind PCIe switches, with tables as long as real ones are."""

from __future__ import annotations

from pathlib import Path

from tests.unit.builders.trees import ZERO_GID, write_tree

HCAS = 16
#: Length of mlx5's GID table on Ethernet, and of the part of it that is used.
GIDS, USED = 256, 8
#: sysfs counters of Linux 6.8 for a port of mlx5.
COUNTERS = (
    *("VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery", "local_link_integrity_errors"),
    *("multicast_rcv_packets", "multicast_xmit_packets", "port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors"),
    *("port_rcv_packets", "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_constraint_errors"),
    *("port_xmit_data", "port_xmit_discards", "port_xmit_packets", "port_xmit_wait", "symbol_error", "unicast_rcv_packets"),
    "unicast_xmit_packets",
)
HW_COUNTERS = (
    *("clear_counters", "duplicate_request", "implied_nak_seq_err", "lifespan", "local_ack_timeout_err", "np_cnp_sent"),
    *("np_ecn_marked_roce_packets", "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error", "req_cqe_flush_error"),
    *("req_remote_access_errors", "req_remote_invalid_request", "req_transport_retries_exceeded", "resp_cqe_error"),
    *("resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors", "rnr_nak_retry_err", "roce_adp_retrans"),
    *("roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans", "rp_cnp_handled"),
    *("rp_cnp_ignored", "rx_atomic_requests", "rx_icrc_encapsulated", "rx_read_requests", "rx_write_requests"),
)
MODULES = ("ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "rdma_cm", "rdma_ucm", "nvidia", "nvidia_peermem")


def write(root: Path) -> Path:
    """Write the tree below root."""
    text = "\n".join(f"/sys/module/{name}/srcversion: {name.upper()}0123\n/sys/module/{name}/holders/none: " for name in MODULES)
    text += "\n/proc/sys/kernel/osrelease: 6.8.0-51-generic\n/proc/uptime: 4711.08 1234.5\n"
    for number in range(HCAS):
        text += _hca(number)
    for number in range(HCAS // 2):
        text += _function(
            f"{_switch(2 * number)}/0000:{_bus(2 * number)}:08.0/0000:{_bus(number):>2}:00.0", number, "0x10de", "0x2330", "0x030200"
        )
    return write_tree(root, text)


def _bus(number: int) -> str:
    return f"{0x10 + 8 * number:02x}"


def _switch(number: int) -> str:
    """Two NICs and a GPU share a switch, four switches a socket."""
    bus = 0x10 + 8 * (number // 2 * 2)
    return f"/sys/devices/pci0000:{bus:02x}/0000:{bus:02x}:01.0/0000:{bus + 1:02x}:00.0"


def _link(path: str, width: int = 16) -> str:
    values = {"link_speed": "32.0 GT/s PCIe", "link_width": width}
    return "".join(f"{path}/{which}_{name}: {value}\n" for which in ("current", "max") for name, value in values.items())


def _function(path: str, number: int, vendor: str, device: str, kind: str) -> str:
    name = Path(path).name
    text = f"/sys/bus/pci/devices/{name} -> ../../../{path[len('/sys/') :]}\n" + _link(path)
    text += f"{path}/vendor: {vendor}\n{path}/device: {device}\n{path}/class: {kind}\n{path}/numa_node: {number // 8}\n"
    for hop in (Path(path).parent, *Path(path).parents):
        if ":" in hop.name and not hop.name.startswith("pci"):
            text += _link(str(hop))
    return text


def _hca(number: int) -> str:
    function = f"{_switch(number)}/0000:{_bus(number)}:{number % 2:02x}.0/0000:{0x12 + 8 * number:02x}:00.0"
    device, netdev = f"{function}/infiniband/mlx5_{number}", f"{function}/net/ens{number}np0"
    text = _function(function, number, "0x15b3", "0x1021", "0x020000")
    text += f"{function}/driver -> ../../../../../../bus/pci/drivers/mlx5_core\n"
    text += f"/sys/class/net/ens{number}np0 -> ../../{netdev[len('/sys/') :]}\n{netdev}/device -> ../../../{Path(function).name}\n"
    for name, value in {
        "address": f"a0:88:c2:00:00:{number:02x}",
        "mtu": "9000",
        "operstate": "up",
        "carrier": "1",
        "flags": "0x1003",
    }.items():
        text += f"{netdev}/{name}: {value}\n"
    text += f"{netdev}/type: 1\n{netdev}/dev_port: 0\n{netdev}/ifindex: {number + 2}\n{netdev}/carrier_down_count: 1\n"
    text += f"/sys/class/infiniband/mlx5_{number} -> ../../{device[len('/sys/') :]}\n{device}/device -> ../../../{Path(function).name}\n"
    guid = f"a088:c203:0000:{number:04x}"
    for name, value in {"fw_ver": "28.41.1000", "board_id": "MT_0000000838", "hca_type": "MT4129", "node_type": "1: CA"}.items():
        text += f"{device}/{name}: {value}\n"
    text += f"{device}/node_guid: {guid}\n{device}/sys_image_guid: {guid}\n"
    return text + _port(f"{device}/ports/1", number)


def _port(port: str, number: int) -> str:
    values = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "link_layer": "Ethernet",
        "rate": "400 Gb/sec (4X NDR)",
        "lid": "0x0",
        "sm_lid": "0x0",
    }
    lines = [f"{port}/{name}: {value}" for name, value in values.items()]
    for index in range(GIDS):
        gid = f"fe80:0000:0000:0000:a288:c2ff:fe{number:02x}:{index // 2:04x}" if index < USED else ZERO_GID
        lines.append(f"{port}/gids/{index}: {gid}")
        if index < USED:
            lines += [
                f"{port}/gid_attrs/types/{index}: {'RoCE v2' if index % 2 else 'IB/RoCE v1'}",
                f"{port}/gid_attrs/ndevs/{index}: ens{number}np0",
            ]
    lines += [f"{port}/counters/{name}: {number}" for name in COUNTERS]
    lines += [f"{port}/hw_counters/{name}: {number}" for name in HW_COUNTERS]
    return "\n".join(lines) + "\n"
