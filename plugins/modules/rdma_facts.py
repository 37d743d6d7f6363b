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
  - It reads files below C(/sys), C(/proc), C(/etc), C(/lib/modules) and C(/var/lib), and asks drivers of interfaces by ethtool's ioctls.
    Of the running system it also runs C(ip), C(ibv_devinfo), C(modinfo), C(systemctl) and, for the limits that a service gets,
    C(systemd-run) once each, C(ethtool -m) for each interface with a module in its cage, C(mstlink -m) for each InfiniBand card, and
    C(mlnx_qos) once or C(dcb) up to five times for each interface with a RoCE port; on RHEL's family C(rpm), with Secure Boot
    C(mokutil). What they do not tell is V(null).
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
        files, units, load, time, memory, file systems), V(netdevs) (addresses, who manages each interface, ethtool, the MTU of ports),
        V(optics) (the modules in the cages), V(qos) (RoCE quality of service of interfaces) and V(stack) (kernel modules and their
        files, DKMS, kernels, headers, packages).
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
  firmware:
    description: Firmware settings to read of every NVIDIA card with C(mstconfig) or C(mlxconfig), which takes seconds for each card.
    type: list
    elements: str
    default: []
  packages:
    description: Further packages of the distribution to tell the versions of.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - rdma.cluster._attributes
  - rdma.cluster._attributes.facts
notes:
  - Reading the running system needs no privileges. PCI configuration space, optics, C(mlnx_qos), C(debugfs), other people's processes
    and the counters of some drivers do.
"""

EXAMPLES = r"""
- name: Observe the RDMA devices
  rdma.cluster.rdma_facts:

- name: State of the first port
  ansible.builtin.debug:
    msg: "{{ ansible_facts.rdma.devices.mlx5_0.ports['1'].state }}"

- name: Observe without starting a process
  rdma.cluster.rdma_facts:
    gather_subset: [min, counters]

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
            function:
              description: V(pf), V(vf) or V(sf), a physical, virtual or subfunction.
              type: str
              returned: success
            parent_pci:
              description: Of a virtual function, the PCI address of its physical one.
              type: str
              returned: success
            uverbs:
              description: The node that programs open. V(null) if it is not there.
              type: str
              returned: success
              sample: /dev/infiniband/uverbs0
            pci:
              description:
                - The PCI function with C(address), C(vendor_id), C(device_id), C(numa_node), the negotiated
                  C(speed_gtps) and C(width), and the greatest possible C(max_speed_gtps) and C(max_width).
                - Its C(narrowest) is the link of least bandwidth between the device and the root, with C(address),
                  C(speed_gtps) and C(width); C(hops) are the bridges up to the root, nearest first, each with its link, its payload
                  and the ACS controls (C(acs)) that are enabled.
                - C(mps_bytes), C(mps_max_bytes) and C(mrrs_bytes) are the payload of a packet and the size of a read request that
                  are set, and the payload that is possible. Configuration space needs root; V(null) without.
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
                speed:
                  description: The kernel's word for the speed of a lane.
                  type: str
                  returned: success
                  sample: NDR
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
                optic:
                  description: Of an InfiniBand port, the module in its cage by C(mstlink), as C(optic) of an interface.
                  type: dict
                  returned: success
                active_mtu_bytes:
                  description: MTU that the port uses, by C(ibv_devinfo). V(null) where that cannot be asked.
                  type: int
                  returned: success
                  sample: 4096
                rocev2:
                  description: Of each IPv4 address in the GID table, the index to use for RoCE v2 on it.
                  type: dict
                  returned: success
                  sample: {192.168.100.1: 3}
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
                      V(null) where the driver has no value, and for all of them if they were not asked for.
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
            ifindex:
              description: The kernel's number of the interface.
              type: int
              returned: success
            function:
              description: V(pf), V(vf), V(sf), or V(representor), which is a switch's end of a virtual or subfunction.
              type: str
              returned: success
            master:
              description: The bond, bridge or VRF that it is part of.
              type: str
              returned: success
            carrier_downs:
              description: How often its link has gone since it was made.
              type: int
              returned: success
            managers:
              description: Who claims to configure it. V(null) for a captured tree.
              type: list
              elements: str
              returned: success
              sample: [systemd-networkd]
            ethtool:
              description:
                - What its driver tells, V(null) for a captured tree. C(driver), C(version), C(firmware), C(bus_info), C(speed_mbps),
                  C(duplex), C(autoneg), C(port), C(supported_speeds_mbps), C(rings), C(pause), C(counters) without those of single queues.
                - C(optic) is the module in its cage with C(temperature_celsius), C(voltage_volt) and, for each of its C(lanes),
                  C(rx_power_mw), C(tx_power_mw) and C(tx_bias_ma); each has its C(value) and the thresholds that the module itself
                  names. C(alarms) are those that the module has raised.
              type: dict
              returned: success
        interfaces:
          description:
            - Every network interface by its name, also those that are no NIC's, such as V(lo), bonds, VLANs and bridges.
              V(null) for a captured tree without any.
          type: dict
          returned: success
          contains:
            admin_up:
              description: Whether the interface is administratively up.
              type: bool
              returned: success
            ipv4:
              description: IPv4 addresses with prefix length. V(null) for a captured tree, or with neither V(host) nor V(netdevs) read.
              type: list
              elements: str
              returned: success
              sample: [10.0.0.1/24]
        qos:
          description: RoCE quality of service of each interface with a RoCE port, of the members of a bond. V(null) for a captured tree.
          type: dict
          returned: success
          contains:
            backend:
              description: What was asked, V(mlnx_qos) or V(dcb). V(null) if neither answers.
              type: str
              returned: success
            why:
              description: Why it is this one, or none.
              type: str
              returned: success
            device:
              description: The RDMA device on the interface; C(port) is the number of its port.
              type: str
              returned: success
            dcbx:
              description: Whose the settings are, V(os) or V(firmware), whose peer may change them.
              type: str
              returned: success
            trust:
              description: Whether DSCP (V(dscp)) or the tag of the VLAN (V(pcp)) says which priority a packet has.
              type: str
              returned: success
            dscp_to_priority:
              description: Of each DSCP its priority, with C(dcb) of those that have an entry.
              type: dict
              returned: success
              sample: {"26": 3, "48": 6}
            pfc:
              description: Of each priority whether it is lossless.
              type: list
              elements: bool
              returned: success
            priority_to_tc:
              description: Of each priority its traffic class.
              type: list
              elements: int
              returned: success
            tsa:
              description: Of each class V(ets), V(strict) or V(vendor). V(null) for one without a priority, which C(mlnx_qos) leaves out.
              type: list
              elements: str
              returned: success
            bandwidth_percent:
              description: Of each class its share of what V(ets) gives out.
              type: list
              elements: int
              returned: success
            cable_length_m:
              description: Length of the cable that the driver reckons with.
              type: int
              returned: success
            priority_to_buffer:
              description: Of each priority its receive buffer; C(buffer_bytes) has their sizes.
              type: list
              elements: int
              returned: success
            np:
              description:
                - Parameters of the notification point of congestion control, and C(rp) of the reaction point, by the names of
                  MLNX_OFED's files; C(dcqcn_source) says whether they stand in V(sysfs) or V(debugfs).
              type: dict
              returned: success
              sample: {cnp_802p_prio: 6, cnp_dscp: 48, min_time_between_cnps: 4}
            ecn_np:
              description: Of each priority whether the notification point is on; C(ecn_rp) of the reaction point.
              type: list
              elements: bool
              returned: success
            traffic_class:
              description:
                - The traffic class that the driver forces on all connections of the port. V(null) if none is set;
                  C(traffic_class_settable) says whether one can be.
              type: int
              returned: success
              sample: 106
            rdma_cm:
              description: C(mode) and C(tos) that RDMA-CM gives connections. V(null) while the kernel's defaults hold.
              type: dict
              returned: success
            agents:
              description: Daemons that may overwrite the settings, each with C(active) and C(enabled).
              type: dict
              returned: success
            warnings:
              description: What could not be read, and what the tools warn of.
              type: list
              elements: str
              returned: success
        nics:
          description: Network cards that have no RDMA device (yet), by PCI address, each as C(pci) of a device.
          type: dict
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
                - Of the file that would be loaded now, C(file), C(file_version), C(file_srcversion), C(signer), and C(provenance),
                  V(kernel), V(dkms) or V(extra). V(null) for a captured tree.
              type: dict
              returned: success
            distribution:
              description: C(id), C(version_id), C(like), and C(packages) with the version of each RDMA package, V(null) if it is not there.
              type: dict
              returned: success
            kernels:
              description: Releases of the installed kernels, oldest first.
              type: list
              elements: str
              returned: success
            newest:
              description: The newest of those that are of the running one's flavour.
              type: str
              returned: success
            headers:
              description: Of each installed kernel, whether modules can be built for it.
              type: dict
              returned: success
            secure_boot:
              description: Whether Secure Boot is on, as the kernel takes it. V(null) without EFI, or if it is in C(unread).
              type: bool
              returned: success
            lockdown:
              description: Kernel lockdown, V(none), V(integrity) or V(confidentiality). V(null) without its file.
              type: str
              returned: success
            unread:
              description: Which of C(secure_boot) and C(lockdown) the host may have and could not be read.
              type: list
              elements: str
              returned: success
            dkms:
              description: Modules that DKMS knows, each with C(name), C(version), C(kernel), C(arch) and C(state).
              type: list
              elements: dict
              returned: success
            ofed_version:
              description: Version of the installed MLNX_OFED or DOCA-OFED.
              type: str
              returned: success
              sample: MLNX_OFED_LINUX-24.10-1.1.4.0
        boot:
          description:
            - What was read, C(machine_id) and C(hostname), since which start of it, C(boot_id), and for how long, C(uptime_seconds).
          type: dict
          returned: success
        limits:
          description:
            - C(service_memlock), the locked memory that a service gets, read inside a transient one, C(unlimited) or C(bytes).
              V(null) for a captured tree.
            - C(login_memlock), what logins of everybody (C(*)) and of C(root) get, C(unlimited), C(value) in KiB and the C(file)
              and C(line) that set it last; V(null) where none does.
            - The same of open files, C(service_open_files) and C(login_open_files); C(running), the locked memory that services of ours
              and of schedulers run with; C(remove_ipc), whether logind removes the shared memory of users who have logged out;
              C(logind), whether it runs;
              C(service_sources), of C(memlock) and C(nofile) the C(file), C(line) and C(value) of systemd's configuration that set it.
          type: dict
          returned: success
        sysctl:
          description:
            - Of the settings asked for, C(live), the value now, and C(boot), the next boot's value with the file and line it comes
              from, V(null) if none sets it.
          type: dict
          returned: success
        files:
          description:
            - Files of this collection on the host, by their path, each with C(sha256), C(mode) and C(owner), the numbers of user
              and group.
            - Of C(/etc/nccl.conf) and the files asked for also C(block), the SHA-256 of the managed block, and C(others), the variables
              of NCCL that lines outside of the block set.
          type: dict
          returned: success
        module_parameters:
          description: The parameters that each kernel module of the stack shows, by module and name, as text.
          type: dict
          returned: success
        firmware:
          description:
            - The firmware settings that were asked for, of each card by PCI address. C(settings) has C(current), C(next_boot) and
              C(default) of each; V(null) for one that the card lacks. C(error) says why one is not told.
          type: dict
          returned: with O(firmware)
        nodes:
          description: The permission bits of the nodes in C(/dev/infiniband) that are open to all. V(null) for a captured tree.
          type: dict
          returned: success
        units:
          description: Whether the units that the collection relies on are C(active) and C(enabled). V(null) for a captured tree.
          type: dict
          returned: success
        subset:
          description: What was read beside that which always is. The parts below are V(null) where they were not asked for.
          type: list
          elements: str
          returned: success
        gpus:
          description: NVIDIA GPUs, each with C(address), C(model), C(uuid), C(numa_node) and C(pci) as for a device.
          type: list
          elements: dict
          returned: success
        gpu_driver:
          description: C(version) of the loaded NVIDIA driver and whether it is the C(open) one.
          type: dict
          returned: success
        gpu_support:
          description:
            - Of a host with GPUs, the version of libcuda (C(cuda)), how many NVSwitches are on the bus (C(nvswitches)) or how many NICs
              lead to others (C(nvswitch_bridges)), and the version of Fabric Manager (C(fabric_manager)).
          type: dict
          returned: success
        distances:
          description: Of each GPU, by address, its distance to each RDMA device; V(PIX), V(PXB), V(PHB), V(NODE) or V(SYS).
          type: dict
          returned: success
        gpudirect:
          description: Whether C(dmabuf) and C(peermem) are each C(possible), and C(why_not).
          type: dict
          returned: success
        iommu:
          description: Whether there is one (C(present)), its C(mode), and whether this is a C(virtual_machine).
          type: dict
          returned: success
        time:
          description:
            - Whether the clock is C(synchronised); what C(chrony) says of it, V(null) where it does not run, with C(source),
              C(offset_seconds) and C(sources); why a chrony that runs does not answer (C(chrony_unread)); which interfaces have
              C(hardware_clocks).
            - C(clock_seconds), the host's time of day when it was read; C(clocksource), what the kernel counts time with, C(current) and
              C(available). In the run's folder also C(between_seconds), the control node's clock before and after the reading.
          type: dict
          returned: success
        cpu:
          description:
            - Of the CPUs their frequency C(driver), C(governors) and how many have each, those that are C(available), C(idle_states) and
              how many may not enter each, C(latency_us) that processes allow, and the profile of C(tuned).
          type: dict
          returned: success
        filesystems:
          description: C(free_bytes), C(size_bytes), C(free_inodes) and C(inodes) of C(/), C(/boot), C(/var) and C(/dev/shm).
          type: dict
          returned: success
        memory:
          description:
            - Main memory, C(total_bytes) and C(available_bytes), and what holds it, C(shared_bytes) (shared memory and tmpfs),
              C(huge_bytes) (reserved for huge pages) and C(huge_free_bytes) (of those not in use).
          type: dict
          returned: success
        session:
          description: At which C(address) our own SSH session comes in, and on which interface (C(netdev)).
          type: dict
          returned: success
        nccl:
          description:
            - What is installed of NCCL. C(library), the file that C(libnccl.so.2) leads to, and its C(version); C(tests), what the
              collection has installed of nccl-tests (C(folder), C(version), C(wish)); C(openmpi), the version of the distribution's
              package. Each is V(null) where it is not there; C(tests_unread) says why that of nccl-tests is not known. What frameworks
              and containers bring is not looked for.
          type: dict
          returned: success
        nccl_files:
          description: NCCL's variables in C(/etc/nccl.conf), C(/root/.nccl.conf) and the files asked for, by path.
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

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked, gather, parse_subset, to_dict


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "gather_subset": {"type": "list", "elements": "str", "default": ["all"]},
            "sysctl": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "firmware": {"type": "list", "elements": "str", "default": []},
            "packages": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    root = module.params["root"]
    runner = SubprocessRunner() if root == "/" else None
    if not Path(root).is_dir():
        module.fail_json(msg=f"root is not a folder: {root}. Name one that has sys/class/infiniband in it, or leave root out.")
    try:
        more = (module.params[name] for name in ("sysctl", "files", "firmware", "packages"))
        asked = Asked(parse_subset(module.params["gather_subset"]), *more)
        facts = to_dict(gather(SysRoot(root), runner, asked))
    except (OSError, ParseError, CommandError, ApplyError) as exc:
        module.fail_json(msg=f"cannot read the RDMA facts below {root}: {exc}")
    module.exit_json(ansible_facts={"rdma": facts})


if __name__ == "__main__":
    main()
