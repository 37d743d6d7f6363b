# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for simulated HCAs in a container's /sys: the files that mlx5 and ib_core would show there. Pure.

A device's files are those of drivers/infiniband/core/sysfs.c. State, LID, speed, P_Keys and counters are the answers of the simulated port
to smpquery and perfquery (infiniband-diags 43).
"""

from __future__ import annotations

import re

from lab.fabric_plan import Hca

STATES = {"Down": 1, "Initialize": 2, "Armed": 3, "Active": 4}
STATE_WORDS = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE"}
PHYSICAL = ("Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest")
#: The kernel's Gb/s of a lane by its speed; and the speed by the signaling rate of smpquery.
LANE_GBPS = {"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR": 14, "EDR": 25, "HDR": 50}
SPEEDS = {"2.5": "SDR", "5.0": "DDR", "10.0": "QDR", "14.0625": "FDR", "25.78125": "EDR", "53.125": "HDR"}
#: perfquery's name → the kernel's name.
COUNTERS = {
    "SymbolErrorCounter": "symbol_error", "LinkErrorRecoveryCounter": "link_error_recovery", "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors", "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors", "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors", "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors", "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "VL15Dropped": "VL15_dropped", "PortXmitData": "port_xmit_data", "PortRcvData": "port_rcv_data",
    "PortXmitPkts": "port_xmit_packets", "PortRcvPkts": "port_rcv_packets", "PortXmitWait": "port_xmit_wait",
}  # fmt: skip
#: The GID prefix of a port without one from a subnet manager.
LINK_LOCAL = 0xFE80000000000000
PORT = "ports/1"
#: The folder of ib_umad; Debian's opensm@.service does not start without it.
MAD = "class/infiniband_mad"
VERBS = "class/infiniband_verbs"
#: A container has the kernel of this machine, so these modules appear as built into it.
MODULES = (
    "ib_cm", "ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", "iw_cm", "mlx5_core", "mlx5_ib", "rdma_cm", "rdma_ucm",
)  # fmt: skip
DRIVER = "bus/pci/drivers/mlx5_core"


def pci_address(rail: int) -> str:
    """Return the PCI address of a rail's HCA, which is behind its own root port like a machine's NIC."""
    return f"0000:{0x21 + 0x10 * rail:02x}:00.0"


def _function(rail: int) -> str:
    bus = f"{0x20 + 0x10 * rail:02x}"
    return f"devices/pci0000:{bus}/0000:{bus}:00.0/{pci_address(rail)}"


def fixed(devices: dict[str, int]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what never changes below /sys: files with their text, and links with their target. devices: "mlx5_1" → its rail."""
    files, links = {f"{DRIVER}/stand-in": "a stand-in of the lab\n", f"{MAD}/abi_version": "5\n"}, {}
    files.update({f"module/{name}/stand-in": "" for name in MODULES})
    for device, rail in devices.items():
        files.update({f"{MAD}/umad{rail}/ibdev": f"{device}\n", f"{MAD}/umad{rail}/port": "1\n"})
        files.update({f"{VERBS}/uverbs{rail}/ibdev": f"{device}\n"})
        base = _function(rail)
        up = "../" * (base.count("/") + 1)
        for each in (base.rpartition("/")[0], base):
            files.update({f"{each}/{kind}_link_speed": "16.0 GT/s PCIe\n" for kind in ("current", "max")})
            files.update({f"{each}/{kind}_link_width": "16\n" for kind in ("current", "max")})
            files.update({f"{each}/numa_node": "-1\n"})
        files.update({f"{base}/vendor": "0x15b3\n", f"{base}/device": "0x101b\n", f"{base}/class": "0x020700\n"})
        # The device's own files are mounted here.
        files[f"{base}/infiniband/{device}/stand-in"] = ""
        links[f"{base}/driver"] = up + DRIVER
        links[f"bus/pci/devices/{pci_address(rail)}"] = f"../../../{base}"
        links[f"class/infiniband/{device}"] = f"../../{base}/infiniband/{device}"
    return files, links


def built_in() -> dict[str, bytes]:
    """Return the files of /lib/modules/RELEASE that make kmod treat the modules as built in, once depmod has run."""
    paths = [f"kernel/drivers/infiniband/{name}.ko" for name in MODULES]
    modinfo = b"".join(f"{name}.file=drivers/infiniband/{name}\0{name}.description=stand-in of the lab\0".encode() for name in MODULES)
    return {"modules.builtin": "".join(f"{path}\n" for path in paths).encode(), "modules.builtin.modinfo": modinfo, "modules.order": b""}


def identity(hca: Hca) -> dict[str, str]:
    """Return a device's files that never change. `port` has those of its port, and `device_link` its link."""
    digits = f"{hca.guid:016x}"
    guid = ":".join(digits[at : at + 4] for at in range(0, 16, 4))
    return {
        "node_type": "1: CA\n",
        "node_guid": f"{guid}\n",
        "sys_image_guid": f"{guid}\n",
        "node_desc": f"{hca.name}\n",
        "fw_ver": "0.0.0\n",
        "hca_type": "MT4123\n",
        "board_id": "STANDIN\n",
        f"{PORT}/link_layer": "InfiniBand\n",
        f"{PORT}/gid_attrs/types/0": "IB/RoCE v1\n",
    }


def device_link(rail: int) -> str:
    """Return the target of a device's link `device`."""
    return f"/sys/{_function(rail)}"


def port(hca: Hca, portinfo: str, pkeys: str, counters: str | None) -> dict[str, str]:
    """Return a port's files from the outputs of `smpquery portinfo`, `smpquery pkeys` and `perfquery`. counters: None omits them."""
    fields = dict(re.findall(r"^(\w+):\.*(.*)$", portinfo, re.MULTILINE))
    state = STATES[fields["LinkState"]]
    files = {
        "state": f"{state}: {STATE_WORDS[state]}",
        "phys_state": f"{PHYSICAL.index(fields['PhysLinkState']) + 1}: {fields['PhysLinkState']}",
        "rate": rate(fields),
        "lid": f"{int(fields['Lid']):#x}",
        "sm_lid": f"{int(fields['SMLid']):#x}",
        "lid_mask_count": fields["LMC"],
        "cap_mask": f"{int(fields['CapMask'], 16):#010x}",
        "gids/0": gid(int(fields["GidPrefix"], 16) or LINK_LOCAL, hca.guid + 1),
    }
    keys = re.findall(r"0x[0-9a-f]{4}", pkeys)
    files.update({f"pkeys/{index}": key for index, key in enumerate(keys)})
    if counters is not None:
        counted = dict(re.findall(r"^(\w+):\.*(\d+)$", counters, re.MULTILINE))
        files.update({f"counters/{name}": counted[key] for key, name in COUNTERS.items() if key in counted})
    return {f"{PORT}/{name}": f"{text}\n" for name, text in files.items()}


def rate(fields: dict[str, str]) -> str:
    """Return "200 Gb/sec (4X HDR)" from the fields of PortInfo; an extended speed has priority."""
    width = int(fields["LinkWidthActive"].removesuffix("X"))
    lane = next(word for key in ("LinkSpeedExtActive", "LinkSpeedActive") if (word := SPEEDS.get(fields.get(key, "").split()[0])))
    return f"{width * LANE_GBPS[lane]:g} Gb/sec ({width}X {lane})"


def gid(prefix: int, guid: int) -> str:
    """Return the port's GID in the kernel's form."""
    digits = f"{prefix:016x}{guid:016x}"
    return ":".join(digits[at : at + 4] for at in range(0, 32, 4))
