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
  - Reads the kernel's data about RDMA devices, their ports, GIDs and counters, and the PCI path to each device. It also reads
    network interfaces, and the loaded modules of the driver stack.
  - It reads files below C(/sys), C(/proc), C(/etc), C(/lib/modules) and C(/var/lib), and queries drivers of interfaces with ethtool ioctls.
  - On the running system it also runs C(ip), C(ibv_devinfo), C(modinfo), C(systemctl) and, for the limits of a service, C(systemd-run)
    once each. It runs C(ethtool -m) for each interface with an optical module, and C(mstlink -m) for each InfiniBand card.
  - For each interface with a RoCE port it runs C(mlnx_qos) once or C(dcb) up to five times. On the RHEL family it runs C(rpm), and with
    Secure Boot C(mokutil).
  - Values that a host or tool does not expose are V(null), never V(0).
options:
  root:
    description:
      - The folder that contains C(/sys), C(/proc) and C(/etc).
      - If it is not V(/), the module reads a captured tree instead of the running system. Symbolic links are followed inside the folder.
    type: path
    default: /
  gather_subset:
    description:
      - The parts to read. Devices, their ports, PCIe paths and interfaces are always read, and start no process.
      - V(all) reads all parts, V(min) no other part. A leading C(!) excludes a part.
      - V(counters) reads the counters of ports, and V(gpus) the GPUs with GPUDirect and IOMMU.
      - V(host) reads limits, kernel settings, files, units, load, time, memory and file systems.
      - V(netdevs) reads addresses, managers of each interface, ethtool, and the MTU of ports.
      - V(optics) reads optical modules, and V(qos) the RoCE quality of service of interfaces.
      - V(stack) reads kernel modules and their files, DKMS, kernels, headers and packages.
    type: list
    elements: str
    default: [all]
  sysctl:
    description: Kernel settings to read, with the live value and the value of the next boot.
    type: list
    elements: str
    default: []
  files:
    description: Files to report in addition to the collection's own files.
    type: list
    elements: path
    default: []
  firmware:
    description: Firmware settings to read from every NVIDIA card with C(mstconfig) or C(mlxconfig). This takes seconds for each card.
    type: list
    elements: str
    default: []
  packages:
    description: More packages of the distribution whose versions are reported.
    type: list
    elements: str
    default: []
  nccl_plugin:
    description:
      - A network plugin of NCCL below C(/opt/rdma-cluster/nccl) to report. On the running system it is loaded in a process of its own as
        the user C(nobody), and asked for its devices. It opens RDMA devices and sends nothing.
    type: dict
    suboptions:
      name:
        description: The name of the plugin.
        type: str
        required: true
      variables:
        description: Variables for the process.
        type: dict
        default: {}
      nccl:
        description: The version of NCCL in use. By default the version of the host.
        type: str
extends_documentation_fragment:
  - rdma.cluster._attributes
  - rdma.cluster._attributes.facts
notes:
  - Reading the running system needs no privileges, except for PCI configuration space, optics, C(mlnx_qos), C(debugfs), processes of other
    users and the counters of some drivers.
"""

EXAMPLES = r"""
- name: Observe the RDMA devices
  rdma.cluster.rdma_facts:

- name: Show the state of the first port
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
  description: The observed facts in one dictionary.
  returned: success
  type: dict
  contains:
    rdma:
      description: The tree of facts.
      type: dict
      returned: success
      contains:
        schema:
          description: The version of the tree's format.
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
              description: Whether it is a software device on top of a network interface.
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
              description: The driver's name for the kind of device.
              type: str
              returned: success
              sample: MT4129
            node_guid:
              description: GUID of the device. V(null) if it is not set.
              type: str
              returned: success
              sample: "0002:c903:00f9:bfa0"
            sys_image_guid:
              description: The GUID that all devices of one adapter share. V(null) if it is not set.
              type: str
              returned: success
              sample: "0002:c903:00f9:bfa3"
            node_type:
              description: V(CA) for InfiniBand and RoCE, V(RNIC) for iWARP.
              type: str
              returned: success
              sample: CA
            numa_node:
              description: NUMA node. V(null) if the firmware reports none.
              type: int
              returned: success
            function:
              description: V(pf), V(vf) or V(sf), a physical, virtual or subfunction.
              type: str
              returned: success
            parent_pci:
              description: The PCI address of the physical function of a virtual function.
              type: str
              returned: success
            uverbs:
              description: The device node that programs open. V(null) if it is missing.
              type: str
              returned: success
              sample: /dev/infiniband/uverbs0
            pci:
              description:
                - The PCI function with C(address), C(vendor_id), C(device_id), C(numa_node), the negotiated
                  C(speed_gtps) and C(width), and the maximum C(max_speed_gtps) and C(max_width).
                - C(narrowest) is the link with the least bandwidth between the device and the root, with C(address),
                  C(speed_gtps) and C(width). C(hops) are the bridges up to the root, nearest first, each with its link, its payload
                  and the enabled ACS controls (C(acs)).
                - C(mps_bytes) is the configured maximum payload size, C(mps_max_bytes) the supported one, and C(mrrs_bytes) the
                  configured maximum read request size. Reading them needs root; otherwise they are V(null).
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
                  description: Negotiated rate of all lanes in 10^9 bit/s.
                  type: float
                  returned: success
                  sample: 400.0
                width:
                  description: Negotiated number of lanes.
                  type: int
                  returned: success
                  sample: 4
                speed:
                  description: The kernel's name for the speed of a lane.
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
                  description: Network interface of the port. V(null) if there is none, or if several are possible.
                  type: str
                  returned: success
                optic:
                  description: The optical module of an InfiniBand port by C(mstlink), as C(optic) of an interface.
                  type: dict
                  returned: success
                active_mtu_bytes:
                  description: Active MTU of the port by C(ibv_devinfo). V(null) if C(ibv_devinfo) is not available.
                  type: int
                  returned: success
                  sample: 4096
                rocev2:
                  description:
                    - The GID index to use for RoCE v2, by IPv4 or global IPv6 address in the GID table. IPv6 addresses are in compressed
                      text.
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
                    - Counters of the port by name. C(port_xmit_data) and C(port_rcv_data) count words of four bytes. A counter is V(null)
                      if the driver has no value. C(counters) is V(null) if they were not requested.
                  type: dict
                  returned: success
                hw_counters:
                  description: Driver-specific counters by name.
                  type: dict
                  returned: success
        netdevs:
          description: Network interfaces that have a hardware device or belong to RDMA, by name.
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
              description: Largest MTU that the driver allows. V(null) if it has no limit, and for a captured tree.
              type: int
              returned: success
            ipv4:
              description: IPv4 addresses with prefix length. V(null) for a captured tree.
              type: list
              elements: str
              returned: success
            ipv6:
              description:
                - Global IPv6 addresses in use, with prefix length. Link-local and temporary ones are left out, as are those whose duplicate
                  address detection runs or failed. V(null) for a captured tree.
              type: list
              elements: str
              returned: success
            dad_failed:
              description: IPv6 addresses that failed duplicate address detection and are not used. V(null) for a captured tree.
              type: list
              elements: str
              returned: success
            ifindex:
              description: The kernel's index of the interface.
              type: int
              returned: success
            function:
              description: V(pf), V(vf), V(sf), or V(representor), the switch side of a virtual function or subfunction.
              type: str
              returned: success
            master:
              description: The bond, bridge or VRF to which it belongs.
              type: str
              returned: success
            carrier_downs:
              description: How often its link went down since it was created.
              type: int
              returned: success
            managers:
              description: The network managers that claim to configure it. V(null) for a captured tree.
              type: list
              elements: str
              returned: success
              sample: [systemd-networkd]
            ethtool:
              description:
                - The driver's data. V(null) for a captured tree. C(driver), C(version), C(firmware), C(bus_info), C(speed_mbps),
                  C(duplex), C(autoneg), C(port), C(supported_speeds_mbps), C(rings), C(pause), and C(counters) without per-queue counters.
                - C(optic) is the optical module with C(temperature_celsius), C(voltage_volt) and, for each of its C(lanes),
                  C(rx_power_mw), C(tx_power_mw) and C(tx_bias_ma). Each has its C(value) and the thresholds of the module.
                  C(alarms) are the active alarms of the module.
                - C(timestamping) has the time stamps that the interface supports, C(hardware) and C(software), and the number of the
                  NIC's C(clock), V(null) without one.
              type: dict
              returned: success
        interfaces:
          description:
            - All network interfaces by name, including V(lo), bonds, VLANs and bridges. V(null) for a captured tree without any.
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
            ipv6:
              description: Global IPv6 addresses in use, as in C(netdevs). V(null) in the same cases.
              type: list
              elements: str
              returned: success
              sample: ["2001:db8:100::1/64"]
        bonds:
          description: The bonds by name. V(null) if they may not be read.
          type: dict
          returned: success
          contains:
            mode:
              description: The mode.
              type: str
              returned: success
              sample: 802.3ad
            hash_policy:
              description: What chooses the member for a packet. V(null) in a mode without a choice.
              type: str
              returned: success
              sample: layer3+4
            lacp_rate:
              description: How often LACP is sent, V(fast) or V(slow). V(null) without LACP.
              type: str
              returned: success
            members:
              description: >-
                Interface → C(up), its carrier; C(mac), its own address; C(aggregator), its LACP aggregator, and C(partner), the MAC address
                of its LACP partner.
              type: dict
              returned: success
        vlans:
          description: The VLAN interfaces by name. V(null) if they may not be read.
          type: dict
          returned: success
          contains:
            parent:
              description: The interface that carries the frames of the VLAN.
              type: str
              returned: success
              sample: ens1
            id:
              description: The number of the VLAN.
              type: int
              returned: success
            egress:
              description: Priority of a packet inside the kernel → PCP in its tag, without those that have PCP 0.
              type: dict
              returned: success
        qos:
          description: RoCE quality of service of each interface with a RoCE port; for a bond, of its members. V(null) for a captured tree.
          type: dict
          returned: success
          contains:
            backend:
              description: The tool that was used, V(mlnx_qos) or V(dcb). V(null) if neither works.
              type: str
              returned: success
            why:
              description: The reason for this tool, or for none.
              type: str
              returned: success
            device:
              description: The RDMA device of the interface; C(port) is the number of its port.
              type: str
              returned: success
            dcbx:
              description: The owner of the settings, V(os) or V(firmware). With V(firmware), the peer may change them.
              type: str
              returned: success
            trust:
              description: Whether DSCP (V(dscp)) or the VLAN tag (V(pcp)) determines the priority of a packet.
              type: str
              returned: success
            dscp_to_priority:
              description: The priority of each DSCP. With C(dcb), only DSCPs that have an entry.
              type: dict
              returned: success
              sample: {"26": 3, "48": 6}
            pfc:
              description: Whether each priority is lossless.
              type: list
              elements: bool
              returned: success
            priority_to_tc:
              description: The traffic class of each priority.
              type: list
              elements: int
              returned: success
            tsa:
              description: V(ets), V(strict) or V(vendor) for each class. V(null) for a class without a priority, which C(mlnx_qos) omits.
              type: list
              elements: str
              returned: success
            bandwidth_percent:
              description: The share of each class in the bandwidth of V(ets).
              type: list
              elements: int
              returned: success
            cable_length_m:
              description: The cable length that the driver assumes.
              type: int
              returned: success
            priority_to_buffer:
              description: The receive buffer of each priority; C(buffer_bytes) has the sizes of the buffers.
              type: list
              elements: int
              returned: success
            np:
              description:
                - Parameters of the notification point of congestion control, by the names of MLNX_OFED's files. C(rp) has those of the
                  reaction point. C(dcqcn_source) is V(sysfs) or V(debugfs).
              type: dict
              returned: success
              sample: {cnp_802p_prio: 6, cnp_dscp: 48, min_time_between_cnps: 4}
            ecn_np:
              description: Whether the notification point is enabled for each priority; C(ecn_rp) for the reaction point.
              type: list
              elements: bool
              returned: success
            traffic_class:
              description:
                - The traffic class that the driver forces on all connections of the port. V(null) if none is set.
                  C(traffic_class_settable) is whether it can be set.
              type: int
              returned: success
              sample: 106
            rdma_cm:
              description: The C(mode) and C(tos) that RDMA-CM sets on connections. V(null) if the kernel's defaults apply.
              type: dict
              returned: success
            agents:
              description: Daemons that may overwrite the settings, each with C(active) and C(enabled).
              type: dict
              returned: success
            warnings:
              description: Values that could not be read, and warnings of the tools.
              type: list
              elements: str
              returned: success
        nics:
          description: Network cards without an RDMA device, by PCI address, each as C(pci) of a device.
          type: dict
          returned: success
        stack:
          description: The driver stack.
          type: dict
          returned: success
          contains:
            kind:
              description: V(ofed) if MLNX_OFED or DOCA-OFED is loaded. V(null) if the files do not show it.
              type: str
              returned: success
            kernel:
              description: Release of the running kernel.
              type: str
              returned: success
            modules:
              description:
                - Loaded modules that concern RDMA, by name, each with C(version), C(srcversion) and C(holders), the modules that use it.
                - The file that would be loaded now has C(file), C(file_version), C(file_srcversion), C(signer), and C(provenance),
                  which is V(kernel), V(dkms) or V(extra). V(null) for a captured tree.
              type: dict
              returned: success
            distribution:
              description: C(id), C(version_id), C(like), and C(packages) with the version of each RDMA package, V(null) if not installed.
              type: dict
              returned: success
            kernels:
              description: Releases of the installed kernels, oldest first.
              type: list
              elements: str
              returned: success
            newest:
              description: The newest installed kernel of the running kernel's flavor.
              type: str
              returned: success
            headers:
              description: Whether modules can be built for each installed kernel.
              type: dict
              returned: success
            secure_boot:
              description: Whether Secure Boot is enabled according to the kernel. V(null) without EFI, or if it is in C(unread).
              type: bool
              returned: success
            lockdown:
              description: Kernel lockdown, V(none), V(integrity) or V(confidentiality). V(null) without its file.
              type: str
              returned: success
            unread:
              description: Which of C(secure_boot) and C(lockdown) may be enabled but could not be read.
              type: list
              elements: str
              returned: success
            dkms:
              description: The modules of DKMS, each with C(name), C(version), C(kernel), C(arch) and C(state).
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
            - The identity of the host, C(machine_id) and C(hostname), and of its current boot, C(boot_id) and C(uptime_seconds).
          type: dict
          returned: success
        limits:
          description:
            - C(service_memlock), the locked memory of a service, read inside a transient service, C(unlimited) or C(bytes).
              V(null) for a captured tree.
            - C(login_memlock), the locked memory of logins of all users (C(*)) and of C(root), with C(unlimited), C(value) in KiB and the
              C(file) and C(line) that set it last. V(null) if no line sets it.
            - C(service_open_files) and C(login_open_files), the same for open files.
            - C(running), the locked memory of the running services of the collection and of schedulers.
            - C(remove_ipc), whether logind removes the shared memory of users who have logged out, and C(logind), whether it runs.
            - C(service_sources), the C(file), C(line) and C(value) of systemd's configuration that set C(memlock) and C(nofile).
          type: dict
          returned: success
        sysctl:
          description:
            - The requested settings, each with C(live), the current value, and C(boot), the value of the next boot with its file and line.
              C(boot) is V(null) if no line sets it.
          type: dict
          returned: success
        files:
          description:
            - Files of this collection on the host, by path, each with C(sha256), C(mode) and C(owner), the user ID and group ID.
            - C(/etc/nccl.conf) and the requested files also have C(block), the SHA-256 of the managed block, and C(others), the NCCL
              variables that lines outside the block set.
          type: dict
          returned: success
        module_parameters:
          description: The parameters of each kernel module of the stack, by module and name, as text.
          type: dict
          returned: success
        firmware:
          description:
            - The requested firmware settings of each card, by PCI address. C(settings) has C(current), C(next_boot) and C(default) of
              each setting, and V(null) for a setting that the card lacks. C(error) is why a setting could not be read.
          type: dict
          returned: with O(firmware)
        nodes:
          description: The permission bits of the device nodes in C(/dev/infiniband) that all users may open. V(null) for a captured tree.
          type: dict
          returned: success
        units:
          description: Whether the units that the collection relies on are C(active) and C(enabled). V(null) for a captured tree.
          type: dict
          returned: success
        subset:
          description: The parts that were read in addition to those always read. The parts below are V(null) if they were not requested.
          type: list
          elements: str
          returned: success
        gpus:
          description: NVIDIA GPUs, each with C(address), C(model), C(uuid), C(numa_node) and C(pci) as for a device.
          type: list
          elements: dict
          returned: success
        gpu_driver:
          description: The C(version) of the loaded NVIDIA driver, and whether it is the C(open) driver.
          type: dict
          returned: success
        gpu_support:
          description:
            - For a host with GPUs, the versions of libcuda (C(cuda)) and of Fabric Manager (C(fabric_manager)).
            - C(nvswitches) is the number of NVSwitches on the bus, and C(nvswitch_bridges) the number of NICs that lead to NVSwitches.
          type: dict
          returned: success
        distances:
          description: The distance of each GPU, by address, to each RDMA device; V(PIX), V(PXB), V(PHB), V(NODE) or V(SYS).
          type: dict
          returned: success
        gpudirect:
          description: Whether C(dmabuf) and C(peermem) are each C(possible), and if not, C(why_not).
          type: dict
          returned: success
        iommu:
          description: Whether there is an IOMMU (C(present)), its C(mode), and whether the host is a C(virtual_machine).
          type: dict
          returned: success
        time:
          description:
            - Whether the clock is C(synchronized). C(chrony) is its data about the clock, with C(source), C(offset_seconds) and C(sources),
              and V(null) if it does not run. C(chrony_unread) is why a running chrony does not answer. C(hardware_clocks) are the
              interfaces with a clock.
            - C(clock_seconds) is the host's time at the reading. C(clocksource) has the C(current) and C(available) clock sources of the
              kernel. In the run folder, C(between_seconds) is the control node's clock before and after the reading.
            - C(programs) are the running programs that can adjust a clock, with C(pid), C(name), the C(clock) that each adjusts (V("") for
              none, V(null) if C(unread) is why it is not known), and whether the program is C(ours).
            - C(ptp) is ptp4l's report with C(domain), the state of its C(ports), C(identity), C(grandmaster), C(offset_ns),
              C(path_delay_ns), and whether a grandmaster is C(present), was C(measured), and uses C(tai). It is V(null) if ptp4l does not
              run. C(ptp_unread) is why a running ptp4l does not answer.
          type: dict
          returned: success
        cpu:
          description:
            - The frequency C(driver) of the CPUs, the C(governors) with the number of CPUs of each, and the C(available) governors.
            - The C(idle_states) with the number of CPUs that may not enter each, the C(latency_us) that processes allow, and the profile
              of C(tuned).
          type: dict
          returned: success
        filesystems:
          description: C(free_bytes), C(size_bytes), C(free_inodes) and C(inodes) of C(/), C(/boot), C(/var) and C(/dev/shm).
          type: dict
          returned: success
        memory:
          description:
            - Main memory, C(total_bytes) and C(available_bytes), and its use, C(shared_bytes) (shared memory and tmpfs),
              C(huge_bytes) (reserved for huge pages) and C(huge_free_bytes) (unused huge pages).
          type: dict
          returned: success
        planes:
          description:
            - The C(default_routes), each with C(netdev), C(gateway), C(metric) and C(version) (4 or 6); the C(name_servers), each with
              C(address) and the C(netdev) that leads to it; the C(services), other servers, likewise; whether IPv4 C(forwarding) is on;
              the addresses on which C(ssh) (port 22) listens; the C(listeners), sockets of daemons of the management; C(way_error), why
              the kernel named no way to the servers; the IPv4 C(networks) behind gateways, each with C(network) and C(netdev), V(null) if
              there are more than 1000; the IPv4 routes with several next hops (C(multipath)), each with C(network) and C(netdevs); the
              C(hash_policy) that selects one of them (C(fib_multipath_hash_policy)). V(null) for a captured tree.
          type: dict
          returned: success
        routing:
          description:
            - The C(rules) by source address, each with C(priority), C(source) and C(table). The C(routes) in the tables of rails
              and the static routes of the main table (254), each with C(network), C(gateway), C(netdev), C(table) and C(source).
              Without a rule for a rail's table, and without recorded routes, C(routes) is empty. C(ipv6) is true if IPv6 was read
              too, which needs an RDMA port with an IPv6 address. V(null) for a captured tree, or if C(ip) does not answer.
            - C(recorded) has the rules and routes that the collection's files for the network manager set, by the C(owner) of the
              files; V(null) if they may not be read.
          type: dict
          returned: success
        firewall:
          description:
            - The C(backend), V(firewalld), V(ufw) or V(nftables), V(null) if none runs; the C(others) that run as well; what the rules of
              the collection let pass (C(opened)), as interface, subnet and protocol; C(unread), why the rules are unknown.
              V(null) for a captured tree.
          type: dict
          returned: success
        network_backend:
          description: The network manager of the host, V(networkd), V(networkmanager) or V(netplan). V(null) for a captured tree.
          type: str
          returned: success
        session:
          description: The C(address) and the interface (C(netdev)) of the host that our own SSH session uses.
          type: dict
          returned: success
        nccl:
          description:
            - The NCCL installation. C(library) is the file to which C(libnccl.so.2) links, with its C(version). C(tests) is the
              collection's installation of nccl-tests (C(folder), C(version), C(order)). C(openmpi) is the version of the distribution's
              package. Each is V(null) if it is missing.
            - C(tests_unread) is why the installation of nccl-tests is unknown. Libraries of frameworks and containers are not read.
            - C(plugin) is the network plugin of O(nccl_plugin), V(null) without a request. It has the C(path), the C(machine) of the host,
              the C(library) with C(sha256), C(machine), C(interfaces) and C(verbs), the C(stamp) of the installation, and in C(probe) the
              plugin's answers. C(unread) is why it is unknown.
          type: dict
          returned: success
        nccl_files:
          description: NCCL's variables in C(/etc/nccl.conf), C(/root/.nccl.conf) and the requested files, by path.
          type: dict
          returned: success
        load:
          description:
            - The current work on the host. C(gpu_processes) have a GPU open, and C(jobs) were placed by a scheduler. Each has C(pid) and
              C(name).
          type: dict
          returned: success
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked, gather, parse_subset, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import PluginQuery


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "gather_subset": {"type": "list", "elements": "str", "default": ["all"]},
            "sysctl": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "firmware": {"type": "list", "elements": "str", "default": []},
            "packages": {"type": "list", "elements": "str", "default": []},
            "nccl_plugin": {
                "type": "dict",
                "options": {
                    "name": {"type": "str", "required": True},
                    "variables": {"type": "dict", "default": {}},
                    "nccl": {"type": "str"},
                },
            },
        },
        supports_check_mode=True,
    )
    root = module.params["root"]
    runner = SubprocessRunner() if root == "/" else None
    if not Path(root).is_dir():
        module.fail_json(msg=f"root is not a folder: {root}. Set it to a folder that contains sys/class/infiniband, or omit it.")
    try:
        more = (module.params[name] for name in ("sysctl", "files", "firmware", "packages"))
        plugin = PluginQuery(**module.params["nccl_plugin"]) if module.params["nccl_plugin"] else None
        asked = Asked(parse_subset(module.params["gather_subset"]), *more, plugin=plugin)
        facts = to_dict(gather(SysRoot(root), runner, asked))
    except (OSError, ParseError, CommandError, ApplyError) as exc:
        module.fail_json(msg=f"cannot read the RDMA facts below {root}: {exc}")
    module.exit_json(ansible_facts={"rdma": facts})


if __name__ == "__main__":
    main()
