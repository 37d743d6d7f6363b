#!/usr/bin/python

# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_facts
short_description: Observe the RDMA devices of a host
version_added: 0.1.0
author:
  - the rdma.cluster authors (@rdma-cluster)
description:
  - Reads what the kernel tells about RDMA devices, their ports, GIDs and counters, the PCI path to each device,
    network interfaces, and the loaded modules of the driver stack.
  - It reads files below C(/sys), C(/proc) and C(/etc). Of the running system it also asks C(ip), C(systemctl) and, for the
    limits that a service gets, C(systemd-run); what they do not tell is V(null).
  - What a host does not expose is V(null), never V(0).
options:
  root:
    description:
      - The folder to read C(/sys), C(/proc) and C(/etc) from.
      - With another folder than V(/), a tree that was captured from some system is read instead of the running system.
        Its symbolic links are followed inside the folder.
    type: path
    default: /
  gather_subset:
    description:
      - What to read beside devices, their ports and PCIe paths and interfaces, which are always read and cost no process.
      - V(all), V(min) for nothing else, or some of V(counters), V(gpus) (with GPUDirect and IOMMU), V(host) (limits, kernel settings,
        files, units, load, time, file systems), V(netdevs) (addresses, who manages each interface, ethtool, the MTU of ports),
        V(optics) (the modules in the cages) and V(stack) (kernel modules and their files, DKMS, kernels, headers, packages).
      - A C(!) in front leaves one out.
    type: list
    elements: str
    default: [all]
  sysctl:
    description: Kernel settings to read, live and as the next boot will set them.
    type: list
    elements: str
    default: []
  files:
    description: Further files to tell of, beside those that the collection keeps in places of its own.
    type: list
    elements: path
    default: []
extends_documentation_fragment:
  - rdma.cluster._attributes
  - rdma.cluster._attributes.facts
notes:
  - Reading the running system needs no privileges. The counters of some drivers do.
"""

EXAMPLES = r"""
- name: Observe the RDMA devices
  rdma.cluster.rdma_facts:

- name: State of the first port
  ansible.builtin.debug:
    msg: "{{ ansible_facts.rdma.devices.mlx5_0.ports['1'].state }}"

- name: Observe a system that was captured into a folder
  rdma.cluster.rdma_facts:
    root: /var/tmp/capture
"""

RETURN = r"""
ansible_facts:
  description: What was observed, in one dictionary.
  returned: success
  type: dict
  contains:
    rdma:
      description: The tree.
      type: dict
      returned: success
      contains:
        schema:
          description: Number of the form that this tree has.
          type: int
          returned: success
          sample: 1
        devices:
          description: RDMA devices by their name.
          type: dict
          returned: success
          contains:
            driver:
              description: Kernel driver of the device, such as V(mlx5_core), V(bnxt_en), V(rdma_rxe) or V(siw).
              type: str
              returned: success
            software:
              description: Whether the device is one of software, on top of a network interface.
              type: bool
              returned: success
            firmware:
              description: Version of the firmware.
              type: str
              returned: success
              sample: 28.41.1000
            board_id:
              description: Identifier of the board (PSID).
              type: str
              returned: success
              sample: MT_0000000838
            hca_type:
              description: Name that the driver gives to the kind of device.
              type: str
              returned: success
              sample: MT4129
            node_guid:
              description: GUID of the device. V(null) if it is not set.
              type: str
              returned: success
              sample: "0002:c903:00f9:bfa0"
            sys_image_guid:
              description: GUID that the devices of one adapter share. V(null) if it is not set.
              type: str
              returned: success
              sample: "0002:c903:00f9:bfa3"
            node_type:
              description: V(CA) for InfiniBand and RoCE, V(RNIC) for iWARP.
              type: str
              returned: success
              sample: CA
            numa_node:
              description: NUMA node. V(null) if the firmware names none.
              type: int
              returned: success
            pci:
              description:
                - The PCI function with C(address), C(vendor_id), C(device_id), C(numa_node), the negotiated
                  C(speed_gtps) and C(width), and the greatest possible C(max_speed_gtps) and C(max_width).
                - Its C(narrowest) is the link of least bandwidth between the device and the root, with C(address),
                  C(speed_gtps) and C(width).
                - V(null) for a device that is not on PCI.
              type: dict
              returned: success
            ports:
              description: Ports by their number, from V(1).
              type: dict
              returned: success
              contains:
                state:
                  description: Logical state.
                  type: str
                  returned: success
                  sample: ACTIVE
                physical_state:
                  description: Physical state.
                  type: str
                  returned: success
                  sample: LinkUp
                link_layer:
                  description: V(InfiniBand) or V(Ethernet).
                  type: str
                  returned: success
                rate_gbps:
                  description: Negotiated rate of all lanes together in 10^9 bit/s.
                  type: float
                  returned: success
                  sample: 400.0
                width:
                  description: Negotiated number of lanes.
                  type: int
                  returned: success
                  sample: 4
                lid:
                  description: Local identifier. V(null) if no subnet manager has assigned one.
                  type: int
                  returned: success
                sm_lid:
                  description: Local identifier of the subnet manager. V(null) if there is none.
                  type: int
                  returned: success
                netdev:
                  description: Network interface of the port. V(null) if there is none, or more than one could be meant.
                  type: str
                  returned: success
                gids:
                  description:
                    - Used entries of the GID table, in order, each with C(index), C(gid), C(type) (V(RoCE v2) or
                      V(IB/RoCE v1)), C(netdev) and C(ipv4).
                  type: list
                  elements: dict
                  returned: success
                counters:
                  description:
                    - Counters of the port by their name; C(port_xmit_data) and C(port_rcv_data) count words of four bytes.
                      V(null) where the driver has no value.
                  type: dict
                  returned: success
                hw_counters:
                  description: Counters that only this driver has, by their name.
                  type: dict
                  returned: success
        netdevs:
          description: Network interfaces that have a device below them or belong to RDMA, by their name.
          type: dict
          returned: success
          contains:
            mac:
              description: Hardware address; 20 bytes on IP over InfiniBand.
              type: str
              returned: success
            mtu_bytes:
              description: MTU.
              type: int
              returned: success
            operstate:
              description: Operational state.
              type: str
              returned: success
              sample: up
            carrier:
              description: Whether there is a link. V(null) while the interface is administratively down.
              type: bool
              returned: success
            admin_up:
              description: Whether the interface is administratively up.
              type: bool
              returned: success
            type:
              description: ARPHRD number, V(1) for Ethernet and V(32) for IP over InfiniBand.
              type: int
              returned: success
            dev_port:
              description: Port of the device that the interface belongs to, from V(0).
              type: int
              returned: success
            driver:
              description: Driver of the device below.
              type: str
              returned: success
            pci:
              description: Address of the PCI function.
              type: str
              returned: success
              sample: "0000:3d:00.0"
            numa_node:
              description: NUMA node of the PCI function.
              type: int
              returned: success
            max_mtu_bytes:
              description: Largest MTU that the driver takes. V(null) if it sets no bound, and for a captured tree.
              type: int
              returned: success
            ipv4:
              description: IPv4 addresses with prefix length. V(null) for a captured tree.
              type: list
              elements: str
              returned: success
        stack:
          description: The driver stack.
          type: dict
          returned: success
          contains:
            kind:
              description: V(ofed) if MLNX_OFED or DOCA-OFED is loaded. V(null) if the files do not tell.
              type: str
              returned: success
            kernel:
              description: Release of the running kernel.
              type: str
              returned: success
            modules:
              description:
                - Loaded modules that have to do with RDMA, by their name, each with C(version), C(srcversion)
                  and C(holders), the modules that use it.
              type: dict
              returned: success
        boot:
          description: What was read, C(machine_id) and C(hostname), and since which start of it, C(boot_id).
          type: dict
          returned: success
        limits:
          description:
            - C(service_memlock), the locked memory that a service gets, read inside a transient one, C(unlimited) or C(bytes).
              V(null) for a captured tree.
            - C(login_memlock), what logins of everybody (C(*)) and of C(root) get, C(unlimited), C(value) in KiB and the C(file) that
              says so last; V(null) where none does.
          type: dict
          returned: success
        sysctl:
          description:
            - Of the settings asked for, C(live), the value now, and C(boot), the value that the next boot sets and the file it comes
              from, V(null) if none sets it.
          type: dict
          returned: success
        files:
          description:
            - Files of this collection on the host, by their path, each with C(sha256), C(mode) and C(owner), the numbers of user
              and group.
          type: dict
          returned: success
        units:
          description: Whether the units that the collection relies on are C(active) and C(enabled). V(null) for a captured tree.
          type: dict
          returned: success
        load:
          description:
            - What works on the host already, C(gpu_processes), which hold a GPU open, and C(jobs), which a scheduler has placed here,
              each with C(pid) and C(name).
          type: dict
          returned: success
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._facts import Asked, gather, parse_subset, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "gather_subset": {"type": "list", "elements": "str", "default": ["all"]},
            "sysctl": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    root = module.params["root"]
    runner = SubprocessRunner() if root == "/" else None
    if not Path(root).is_dir():
        module.fail_json(msg=f"root is not a folder: {root}. Name one that has sys/class/infiniband in it, or leave root out.")
    try:
        asked = Asked(parse_subset(module.params["gather_subset"]), module.params["sysctl"], module.params["files"])
        facts = to_dict(gather(SysRoot(root), runner, asked))
    except (OSError, ParseError, CommandError, ApplyError) as exc:
        module.fail_json(msg=f"cannot read the RDMA facts below {root}: {exc}")
    module.exit_json(ansible_facts={"rdma": facts})


if __name__ == "__main__":
    main()
