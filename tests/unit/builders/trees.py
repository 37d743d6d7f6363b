# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees of /sys, /proc and /etc for tests, written as text: a line is "path: content" or "path -> target"."""

from __future__ import annotations

from pathlib import Path

ZERO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def write_tree(root: Path, text: str) -> Path:
    """Write the files and symlinks that the lines of text name below root, and return root.

    A file's content ends in a line break unless it is empty; backslash-n in it is a line break.
    Later lines win over earlier ones, so that a test can change one file of a machine.
    """
    for line in filter(None, (line.strip() for line in text.splitlines())):
        link, arrow, target = line.partition(" -> ")
        name, _colon, content = (line + " ").partition(": ")
        path = root / (link if arrow else name).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (arrow and path.exists()):
            path.unlink()
        if arrow:
            path.symlink_to(target)
        else:
            content = content.strip().replace("\\n", "\n")
            path.write_text(content + "\n" if content else "")
    return root


def soft_roce_machine(root: Path) -> Path:
    """A virtual machine with three virtio NICs, eth0 for management and an rxe device on each of the others.

    The attributes are those of Linux 6.1. rxe1's interface is down, and so its device has no GIDs.
    """
    text = _system("6.1.0-28-amd64", ["ib_core", "ib_uverbs", "rdma_rxe", "virtio_net"])
    text += "\n/sys/module/ib_core/holders/rdma_rxe -> ../../rdma_rxe\n/sys/module/ib_core/holders/ib_uverbs -> ../../ib_uverbs\n"
    root_port = "/sys/devices/pci0000:00/0000:00:06.0"
    text += _virtio_netdev("eth0", "/sys/devices/pci0000:00/0000:00:03.0", "virtio0", "52:54:00:00:00:01", mtu_bytes=1500)
    text += _virtio_netdev("eth1", f"{root_port}/0000:01:00.0", "virtio1", "52:54:00:00:01:01", mtu_bytes=9000)
    text += _virtio_netdev("eth2", f"{root_port}/0000:02:00.0", "virtio2", "52:54:00:00:02:01", mtu_bytes=9000, up=False)
    text += f"""
        {root_port}/numa_node: -1
        {root_port}/0000:01:00.0/numa_node: 1
        {root_port}/0000:01:00.0/current_link_speed: 2.5 GT/s PCIe
        {root_port}/0000:01:00.0/current_link_width: 1
    """
    text += _rxe(
        "rxe0", "eth1", "5054:00ff:fe00:0101", ["fe80:0000:0000:0000:5054:00ff:fe00:0101", "0000:0000:0000:0000:0000:ffff:0a0a:0101"]
    )
    text += _rxe("rxe1", "eth2", "5054:00ff:fe00:0201", [])
    return write_tree(root, text)


def mlx5_machine(root: Path) -> Path:
    """A host with one ConnectX-7 of two ports, RoCE, behind a PCIe switch whose own link is half as wide.

    mlx5_0 has IPv6 and IPv4 GIDs of both types; mlx5_1's cable is out.
    """
    text = _system("6.8.0-51-generic", ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "mlx_compat", "nvidia_peermem"])
    text += """
        /sys/module/mlx5_core/version: 24.10-1.1.4
        /sys/module/mlx5_core/holders/mlx5_ib -> ../../mlx5_ib
    """
    root_port = "/sys/devices/pci0000:3a/0000:3a:01.0"
    switch = f"{root_port}/0000:3b:00.0/0000:3c:00.0"
    text += _pci_link(root_port, "32.0 GT/s PCIe", 16) + _pci_link(f"{root_port}/0000:3b:00.0", "32.0 GT/s PCIe", 8)
    text += _pci_link(switch, "32.0 GT/s PCIe", 16)
    for port in (0, 1):
        function = f"{switch}/0000:3d:00.{port}"
        text += _pci_link(function, "32.0 GT/s PCIe", 16)
        text += f"""
            {function}/vendor: 0x15b3
            {function}/device: 0x1021
            {function}/numa_node: 0
            {function}/driver -> ../../../../../../bus/pci/drivers/mlx5_core
        """
        text += _netdev(f"ens1f{port}np{port}", function, f"a0:88:c2:00:00:0{port}", mtu_bytes=9000, up=port == 0)
        text += _mlx5(f"mlx5_{port}", function, port)
    mlx5_0 = f"{switch}/0000:3d:00.0/infiniband/mlx5_0"
    text += _gid(mlx5_0, 0, "fe80:0000:0000:0000:a288:c2ff:fe00:0000", "IB/RoCE v1", "ens1f0np0")
    text += _gid(mlx5_0, 1, "fe80:0000:0000:0000:a288:c2ff:fe00:0000", "RoCE v2", "ens1f0np0")
    text += _gid(mlx5_0, 2, ZERO_GID, "", "")
    text += _gid(mlx5_0, 10, "0000:0000:0000:0000:0000:ffff:0a0a:0102", "IB/RoCE v1", "ens1f0np0")
    text += _gid(mlx5_0, 11, "0000:0000:0000:0000:0000:ffff:0a0a:0102", "RoCE v2", "ens1f0np0")
    text += f"{mlx5_0}/ports/1/hw_counters/out_of_sequence: 7\n"
    return write_tree(root, text)


def _system(kernel: str, modules: list[str]) -> str:
    lines = [f"/sys/module/{name}/srcversion: {name.upper()}0123" for name in modules]
    lines += [
        f"/proc/sys/kernel/osrelease: {kernel}",
        "/proc/sys/kernel/random/boot_id: 6f2f6d0e-4d6f-4d2a-9a43-0d2c3e3f5a11",
        "/etc/machine-id: 0123456789abcdef0123456789abcdef",
    ]
    return "\n".join(lines) + "\n"


def _netdev(name: str, device: str, mac: str, *, mtu_bytes: int, up: bool = True) -> str:
    """An interface below a device; carrier of one that is down is empty, as a capture has it."""
    base = f"{device}/net/{name}"
    return f"""
        /sys/class/net/{name} -> {"../../" + base[len("/sys/") :]}
        {base}/device -> ../../../{Path(device).name}
        {base}/address: {mac}
        {base}/mtu: {mtu_bytes}
        {base}/operstate: {"up" if up else "down"}
        {base}/carrier: {"1" if up else ""}
        {base}/flags: {"0x1003" if up else "0x1002"}
        {base}/type: 1
        {base}/dev_port: 0
    """


def _virtio_netdev(name: str, function: str, device: str, mac: str, *, mtu_bytes: int, up: bool = True) -> str:
    driver = "../" * (function.count("/") - 1) + "bus/virtio/drivers/virtio_net"
    text = f"""
        {function}/vendor: 0x1af4
        {function}/device: 0x1041
        {function}/{device}/driver -> {driver}
    """
    return text + _netdev(name, f"{function}/{device}", mac, mtu_bytes=mtu_bytes, up=up)


def _pci_link(function: str, speed: str, width: int) -> str:
    return f"""
        {function}/current_link_speed: {speed}
        {function}/current_link_width: {width}
        {function}/max_link_speed: {speed}
        {function}/max_link_width: {width}
    """


def _rxe(name: str, netdev: str, guid: str, gids: list[str]) -> str:
    base = f"/sys/devices/virtual/infiniband/{name}"
    text = f"""
        /sys/class/infiniband/{name} -> ../../devices/virtual/infiniband/{name}
        {base}/parent: {netdev}
        {base}/node_desc: node1 HCA-1
        {base}/node_type: 1: CA
        {base}/node_guid: {guid}
        {base}/sys_image_guid: {guid}
        {base}/fw_ver:
        {base}/ports/1/state: {"4: ACTIVE" if gids else "1: DOWN"}
        {base}/ports/1/phys_state: {"5: LinkUp" if gids else "3: Disabled"}
        {base}/ports/1/link_layer: Ethernet
        {base}/ports/1/rate: 2.5 Gb/sec (1X SDR)
        {base}/ports/1/lid: 0x0
        {base}/ports/1/sm_lid: 0x0
        {base}/ports/1/hw_counters/lifespan: 10
        {base}/ports/1/hw_counters/sent_pkts: 12
    """
    for index in range(4):
        used = index < len(gids)
        text += _gid(base, index, gids[index] if used else ZERO_GID, "RoCE v2" if used else "", netdev if used else "")
    return text


def _mlx5(name: str, function: str, port: int) -> str:
    base = f"{function}/infiniband/{name}"
    return f"""
        /sys/class/infiniband/{name} -> {"../../" + base[len("/sys/") :]}
        {base}/device -> ../../../{Path(function).name}
        {base}/fw_ver: 28.41.1000
        {base}/board_id: MT_0000000838
        {base}/hca_type: MT4129
        {base}/node_type: 1: CA
        {base}/node_guid: a088:c203:0000:000{port}
        {base}/sys_image_guid: a088:c203:0000:0000
        {base}/ports/1/state: {"4: ACTIVE" if port == 0 else "1: DOWN"}
        {base}/ports/1/phys_state: {"5: LinkUp" if port == 0 else "3: Disabled"}
        {base}/ports/1/link_layer: Ethernet
        {base}/ports/1/rate: {"200 Gb/sec (2X NDR)" if port == 0 else "40 Gb/sec (4X QDR)"}
        {base}/ports/1/lid: 0x0
        {base}/ports/1/sm_lid: 0x0
        {base}/ports/1/counters/port_xmit_data: 18446744073709551615
        {base}/ports/1/counters/symbol_error: N/A (no PMA)
        {base}/ports/1/gids/0: {ZERO_GID}
        {base}/ports/1/hw_counters/lifespan: 10
    """


def _gid(device: str, index: int, gid: str, kind: str, netdev: str) -> str:
    """An entry of the GID table; the device of a device path, "" for kind and netdev of an unused entry."""
    port = f"{device}/ports/1"
    return f"""
        {port}/gids/{index}: {gid}
        {port}/gid_attrs/types/{index}: {kind}
        {port}/gid_attrs/ndevs/{index}: {netdev}
    """
