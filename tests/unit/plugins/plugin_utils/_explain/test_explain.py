# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host explained to a person: whole texts, each mark by itself, and trees that lack any part."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.explain import explain
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import WIDTH
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.qos_hosts import dcb_qos, mlx5_qos

Tree = dict[str, Any]
KERNEL = "6.8.0-45-generic"
NEWER = "6.8.0-50-generic"
SYSCTL_FILE = "/etc/sysctl.d/99-zz-rdma-cluster.conf"
LIMITS_FILE = "/etc/security/limits.d/90-rdma-cluster.conf"
NCCL_FILES = ("/etc/nccl.conf", "/etc/rdma-cluster/nccl.env")
KEYS = {"net.ipv4.conf.all.arp_announce": "2", "net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.conf.all.rp_filter": "2"}


def intent(**sections: Any) -> Tree:
    """Two rails of ConnectX-7, planned with 400 Gb/s. sections: rdma_ variables beside the rails, without their prefix."""
    host = {"cpu": {"governor": "performance", "max_cstate_latency_us": 10}}
    sections = {**sections, "host": {**host, **sections.get("host", {})}}
    rails = [
        {
            "name": f"rail{rail}",
            "nic": {"pci": f"0000:{bus}:00.0"},
            "rate_gbps": 400,
            "plane": "blue",
            "address": f"192.168.{rail}.1/24",
            "mtu_bytes": 9000,
        }
        for rail, bus in enumerate(("3d", "5e"))
    ]
    return normalize({"rdma_rails": rails, **{f"rdma_{name}": value for name, value in sections.items()}})


def pci_function(address: str, bridge: str) -> Tree:
    link = {"speed_gtps": 32.0, "width": 16, "max_speed_gtps": 32.0, "max_width": 16, "mps_bytes": 256, "mps_max_bytes": 512}
    return {
        "address": address,
        "vendor_id": "0x15b3",
        "device_id": "0x1021",
        "numa_node": 0,
        **link,
        "mrrs_bytes": 4096,
        "narrowest": {"address": address, "speed_gtps": 32.0, "width": 16},
        "hops": [{"address": bridge, **link, "acs": []}],
    }


def device(rail: int, address: str, bridge: str) -> Tree:
    gid = {"index": 3, "gid": "0000:0000:0000:0000:0000:ffff:c0a8:0001", "type": "RoCE v2", "netdev": f"eth{rail}"}
    return {
        "driver": "mlx5_core",
        "software": False,
        "firmware": "28.41.1000",
        "board_id": "MT_0000000838",
        "node_type": "CA",
        "numa_node": 0,
        "function": "pf",
        "parent_pci": None,
        "pci": pci_function(address, bridge),
        "ports": {
            "1": {
                "state": "ACTIVE",
                "physical_state": "LinkUp",
                "link_layer": "Ethernet",
                "rate_gbps": 400.0,
                "width": 4,
                "speed": "NDR",
                "lid": None,
                "sm_lid": None,
                "netdev": f"eth{rail}",
                "active_mtu_bytes": 4096,
                "gids": [{**gid, "ipv4": f"192.168.{rail}.1"}],
                "rocev2": {f"192.168.{rail}.1": 3},
                "counters": {"symbol_error": 0},
                "hw_counters": {},
            }
        },
    }


def netdev(rail: int, pci: str) -> Tree:
    optic = {
        "identifier": "OSFP",
        "vendor": "NVIDIA",
        "part_number": "MMS4X00-NS",
        "length_m": None,
        "temperature_celsius": {"value": 45.5, "high_warning": 70.0, "high_alarm": 75.0},
        "voltage_volt": None,
        "lanes": [{"rx_power_mw": {"value": 1.2, "low_alarm": 0.1}, "tx_power_mw": None, "tx_bias_ma": None}],
        "alarms": [],
    }
    return {
        "mac": f"02:00:00:00:00:0{rail}",
        "mtu_bytes": 9000,
        "carrier": True,
        "admin_up": True,
        "dev_port": 0,
        "driver": "mlx5_core",
        "pci": pci,
        "numa_node": 0,
        "ipv4": [f"192.168.{rail}.1/24"],
        "ethtool": {"speed_mbps": 400000, "supported_speeds_mbps": [100000, 400000], "optic": optic},
    }


def module(srcversion: str, **more: Any) -> Tree:
    own = {"version": None, "srcversion": srcversion, "file_version": None, "file_srcversion": srcversion, "holders": []}
    return {**own, "file": "/lib/modules/x.ko", "provenance": "kernel", "signer": None, **more}


def healthy() -> Tree:
    """Facts of a host on which nothing is to be marked: every part of the tree is there."""
    memlock = {"unlimited": True, "value": "unlimited", "file": LIMITS_FILE}
    gpus = [(0, "0000:1b:00.0", "0000:1a:00.0"), (1, "0000:4f:00.0", "0000:4e:00.0")]
    return {
        "schema": 1,
        "devices": {"mlx5_0": device(0, "0000:3d:00.0", "0000:3c:01.0"), "mlx5_1": device(1, "0000:5e:00.0", "0000:5d:01.0")},
        "netdevs": {"eth0": netdev(0, "0000:3d:00.0"), "eth1": netdev(1, "0000:5e:00.0")},
        "stack": {
            "kind": None,
            "ofed_version": None,
            "kernel": KERNEL,
            "kernels": [KERNEL],
            "newest": KERNEL,
            "headers": {KERNEL: True},
            "secure_boot": False,
            "dkms": [{"name": "nvidia", "version": "580.159.03", "kernel": KERNEL, "arch": "x86_64", "state": "installed"}],
            "distribution": {
                "id": "ubuntu",
                "version_id": "24.04",
                "like": ["debian"],
                "packages": {"rdma-core": "50.0", "perftest": None},
            },
            "modules": {"mlx5_core": module("A1B2C3"), "ib_core": module("D4E5F6", signer="Canonical Ltd.")},
        },
        "gpus": [
            {"address": gpu, "model": "NVIDIA H200", "uuid": f"GPU-{number}", "numa_node": 0, "pci": pci_function(gpu, bridge)}
            for number, gpu, bridge in gpus
        ],
        "gpu_driver": {"version": "580.159.03", "open": True},
        "distances": {"0000:1b:00.0": {"mlx5_0": "PIX", "mlx5_1": "SYS"}, "0000:4f:00.0": {"mlx5_0": "SYS", "mlx5_1": "PXB"}},
        "gpudirect": {"dmabuf": {"possible": True, "why_not": []}, "peermem": {"possible": False, "why_not": ["it is not loaded"]}},
        "iommu": {"present": True, "mode": "passthrough", "virtual_machine": False},
        "time": {"synchronized": True, "chrony": {"source": "ntp1", "offset_seconds": -0.0000123}},
        "cpu": {
            "driver": "intel_pstate",
            "governors": {"performance": 64},
            "idle_states": {
                "C1": {"latency_us": 1, "cpus": 64, "disabled": 0},
                "C6": {"latency_us": 133, "cpus": 64, "disabled": 64},
            },
            "latency_us": None,
            "tuned": None,
        },
        "qos": {f"eth{rail}": mlx5_qos(f"mlx5_{rail}", dcqcn_source="sysfs") for rail in (0, 1)},
        "filesystems": {"/": {"free_bytes": 40 * 2**30, "size_bytes": 100 * 2**30}},
        "session": {"address": "10.0.0.15", "netdev": "eno1"},
        "boot": {"boot_id": "b", "machine_id": "m", "hostname": "node1", "uptime_seconds": 273600.0},
        "limits": {
            "service_memlock": {"unlimited": True, "bytes": None},
            "login_memlock": {"*": memlock, "root": dict(memlock)},
            "service_open_files": 131072,
            "login_open_files": {"*": {"unlimited": False, "value": "131072", "file": LIMITS_FILE}},
        },
        "sysctl": {"live": dict(KEYS), "boot": {key: {"value": value, "file": SYSCTL_FILE} for key, value in KEYS.items()}},
        "files": {},
        "nccl_files": {path: {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_SOCKET_IFNAME": "=eno1"} for path in NCCL_FILES},
        "units": {f"rdma-qos@eth{rail}.service": {"active": True, "enabled": True} for rail in (0, 1)},
        "load": {"gpu_processes": [], "jobs": [{"pid": 4711, "name": "slurmstepd"}]},
        "since": {"run": "20261120T120501Z-4711", "seconds": 10980.0, "devices": {"mlx5_0": {"1": {}}}, "netdevs": {"eth0": {}}},
    }


def marked(text: str) -> list[str]:
    """The lines with a mark, with single blanks and without the mark; the legend left out."""
    return [" ".join(line[1:].split()) for line in text.splitlines()[2:] if line.startswith("!")]


def part_of(text: str, title: str) -> list[str]:
    """The lines of one section, without its title."""
    return next(each for each in text.split("\n\n") if each.startswith(f"{title}\n")).splitlines()[1:]


HEALTHY = """\
node1: what matters to RDMA and NCCL
! marks differences from the intent and likely causes of low throughput. The gates decide: rdma.cluster.validate.

SYSTEM
  host name     node1
  distribution  ubuntu 24.04
  kernel        6.8.0-45-generic, the newest installed
  headers       of the running kernel: installed
  uptime        3 days 4 h
  SSH session   to 10.0.0.15 on eno1

DRIVER STACK
  stack        no MLNX_OFED and no DOCA-OFED is loaded
  planned      keep
  packages     rdma-core 50.0
  Secure Boot  off
  DKMS         nvidia 580.159.03: installed for 6.8.0-45-generic
  module     loaded         on disk   comes from  signed by
  ib_core    source D4E5F6  the same  the kernel  Canonical Ltd.
  mlx5_core  source A1B2C3  the same  the kernel  -

RAILS
  rail 0: rail0, RoCE, compute, plane blue
    device   mlx5_0/1 on eth0, PCI 0000:3d:00.0, mlx5_core, firmware 28.41.1000, board MT_0000000838
    state    ACTIVE, LinkUp
    link     Ethernet, 400 Gb/s as 4 lanes of NDR, planned 400 Gb/s
    MTU      9000 bytes, RDMA 4096 bytes
    address  192.168.0.1/24, its RoCE v2 GID has index 3
    PCIe     Gen5 x16, no slower link on the path: 459 Gb/s of payload
    place    NUMA node 0, nearest GPU 0000:1b:00.0 (PIX)
    card     MRRS 4096 bytes, MPS 256 bytes, at most 512
    optic    NVIDIA MMS4X00-NS OSFP, 45.5 °C
    QoS      rdma_roce is not set: no traffic is marked
  rail 1: rail1, RoCE, compute, plane blue
    device   mlx5_1/1 on eth1, PCI 0000:5e:00.0, mlx5_core, firmware 28.41.1000, board MT_0000000838
    state    ACTIVE, LinkUp
    link     Ethernet, 400 Gb/s as 4 lanes of NDR, planned 400 Gb/s
    MTU      9000 bytes, RDMA 4096 bytes
    address  192.168.1.1/24, its RoCE v2 GID has index 3
    PCIe     Gen5 x16, no slower link on the path: 459 Gb/s of payload
    place    NUMA node 0, nearest GPU 0000:4f:00.0 (PXB)
    card     MRRS 4096 bytes, MPS 256 bytes, at most 512
    optic    NVIDIA MMS4X00-NS OSFP, 45.5 °C
    QoS      rdma_roce is not set: no traffic is marked

RDMA DEVICES THAT ARE NOT RAILS
  none

GPUS AND GPUDIRECT RDMA
  GPU           model        NUMA  nearest RDMA devices  PCIe
  0000:1b:00.0  NVIDIA H200  0     mlx5_0 (PIX)          Gen5 x16, no slower link on the path: 459 Gb/s of payload
  0000:4f:00.0  NVIDIA H200  0     mlx5_1 (PXB)          Gen5 x16, no slower link on the path: 459 Gb/s of payload
  driver             580.159.03, the open kernel modules
  by DMA-BUF         possible
  by nvidia_peermem  not possible: it is not loaded
  planned            auto
  IOMMU              passthrough; bare metal
  ACS                redirects at no bridge above them

ERRORS SINCE THE LAST RUN
  Since run 20261120T120501Z-4711, 3 h 3 min before this reading:
  none

LIMITS: LOCKED MEMORY, OPEN FILES
  a service                     unlimited
  a login of any user but root  unlimited, by /etc/security/limits.d/90-rdma-cluster.conf
  a login of root               unlimited, by /etc/security/limits.d/90-rdma-cluster.conf
  open files                    a service 131072, a login 131072

KERNEL SETTINGS
  setting                         now  after a boot  intent  the file for the boot
  net.ipv4.conf.all.arp_announce  2    2             2       /etc/sysctl.d/99-zz-rdma-cluster.conf
  net.ipv4.conf.all.arp_ignore    1    1             1       /etc/sysctl.d/99-zz-rdma-cluster.conf
  net.ipv4.conf.all.rp_filter     2    2             2       /etc/sysctl.d/99-zz-rdma-cluster.conf

CPUS, CLOCK, DISKS, LOAD
  CPUs     governor performance, idle states C1 (1 µs)
  clock    synchronized with a time server, chrony follows ntp1, 12 µs off
  disk /   40.0 GiB free of 100.0
  on GPUs  none
  jobs     slurmstepd (4711)

NCCL
  The first of these files that sets a variable is used, else NCCL's default (2.30). Containers see only mounted files.
    environment of what is started with it  /etc/rdma-cluster/nccl.env, 2 variables
    jobs of root; others have their own     /root/.nccl.conf, not there
    every job                               /etc/nccl.conf, 2 variables
  variable              value               from                        meaning
  NCCL_IB_HCA           =mlx5_0:1,mlx5_1:1  /etc/rdma-cluster/nccl.env  RDMA devices and ports to use; = exactly these,
                                                                        ^ all but these, else prefixes
  NCCL_SOCKET_IFNAME    =eno1               /etc/rdma-cluster/nccl.env  interfaces of bootstrap and TCP, needed with
                                                                        RDMA too; = exact, ^ all but, else prefixes
  NCCL_DEBUG            not set             NCCL's default              what it prints: VERSION, WARN, INFO, TRACE; INFO
                                                                        is for a check, not for every job
  NCCL_DEBUG_SUBSYS     INIT,BOOTSTRAP,ENV  NCCL's default              which parts print with NCCL_DEBUG=INFO; NET
                                                                        shows the path of each channel
  NCCL_IB_DISABLE       0                   NCCL's default              1 disables RDMA: all traffic uses TCP
  NCCL_NET_GDR_LEVEL    PXB; P2C with C2C   NCCL's default              how far apart NIC and GPU may be for GPUDirect
                                                                        RDMA; LOC or 0: never
  NCCL_ALGO             NCCL's choice       NCCL's default              forces algorithms: Ring, Tree, CollnetDirect,
                                                                        CollnetChain, NVLS, NVLSTree, PAT; for tests
  NCCL_PROTO            NCCL's choice       NCCL's default              forces protocols: LL, LL128, Simple; for tests,
                                                                        as LL128 by force can corrupt data
  NCCL_NTHREADS         512                 NCCL's default              threads of a block: 64, 128, 256, 512; for tests
  NCCL_P2P_LEVEL        NCCL's choice       NCCL's default              how far apart two GPUs may be for direct access;
                                                                        for tests
  NCCL_SHM_DISABLE      0                   NCCL's default              1 leaves shared memory between processes alone;
                                                                        for tests
  NCCL_BUFFSIZE         4194304             NCCL's default              bytes of the buffer of a channel and peer, a
                                                                        power of two; for tests
  NCCL_GRAPH_DUMP_FILE  not set             NCCL's default              file to write the chosen graph to
  NCCL_NCHUNKS_COARSE   -                   -                           no version of NCCL has ever had it
  NCCL_SHARP_ENABLE     -                   -                           no version of NCCL has ever had it: SHARP takes
                                                                        NCCL_COLLNET_ENABLE=1 and its network plugin"""


def test_a_host_on_which_all_is_well() -> None:
    assert explain("node1", intent(), healthy()) == HEALTHY


def test_a_lab_machine() -> None:
    text = explain("node1", lab_intent(), lab_facts())
    assert marked(text) == ["clock not synchronized with a time server"]
    assert part_of(text, "RAILS")[:7] == [
        "  rail 0: rail0, Soft-RoCE, compute, plane lab",
        "    device   rxe_rail0/1 on ens1, rdma_rxe, software",
        "    state    ACTIVE, LinkUp",
        "    link     Ethernet, a software device has no line rate",
        "    MTU      9000 bytes, RDMA 4096 bytes",
        "    address  192.168.100.1/24, its RoCE v2 GID has index 1",
        "    place    NUMA node 0",
    ]


def test_quality_of_service_that_is_not_planned_or_not_to_be_had() -> None:
    def lines(**sections: Any) -> list[str]:
        text = explain("node1", lab_intent(**sections), {**lab_facts(), "qos": qos})
        return [" ".join(line.split()) for line in part_of(text, "RAILS") if line.split()[0] in ("QoS", "!QoS", "boot", "differs")]

    qos: Any = None
    assert lines() == ["QoS rdma_roce is not set: no traffic is marked"] * 2
    words = "QoS DSCP 26 in priority 3, PFC, ECN, CNPs DSCP 48 in priority 6, traffic class 106;"
    assert lines(roce={}) == [f"{words} not read"] * 2
    lossless = lines(roce={"ecn": False})
    assert lossless[0] == "QoS DSCP 26 in priority 3, PFC, no ECN, traffic class 104; not read"
    qos = {name: dcb_qos(f"rxe_rail{rail}", backend=None, why="no DCB") for rail, name in enumerate(("ens1", "ens2"))}
    assert lines(roce={})[:2] == [f"{words} no tool can set it: no DCB", "boot rdma-qos@ens1.service: not read"]


# What is marked


def put(value: Any, *path: str) -> Callable[[Tree], None]:
    """Changes one place of a tree."""

    def change(tree: Tree) -> None:
        for name in path[:-1]:
            tree = tree[name]
        tree[path[-1]] = value

    return change


PORT = ("devices", "mlx5_1", "ports", "1")
OPTIC = ("netdevs", "eth1", "ethtool", "optic")
PCI = ("devices", "mlx5_1", "pci")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (put(NEWER, "stack", "newest"), f"kernel {KERNEL}; the newest installed is {NEWER}, which the next boot starts"),
        (
            put([{"name": "nvidia", "version": "580", "kernel": NEWER, "state": "installed"}], "stack", "dkms"),
            f"DKMS nvidia 580: installed for {NEWER}",
        ),
        (
            put(module("A1B2C3", file_srcversion="0F0F0F"), "stack", "modules", "mlx5_core"),
            "mlx5_core source A1B2C3 source 0F0F0F the kernel -",
        ),
        (put("eth9", *PORT, "netdev"), "device no RDMA device on eth1"),
        (put("RNIC", "devices", "mlx5_1", "node_type"), "board MT_0000000838, uses iWARP,"),
        (put("DOWN", *PORT, "state"), "state DOWN, LinkUp"),
        (put("Polling", *PORT, "physical_state"), "state ACTIVE, Polling"),
        (put("InfiniBand", *PORT, "link_layer"), "link InfiniBand, planned Ethernet, 400 Gb/s as 4 lanes of NDR, planned 400 Gb/s"),
        (put(100000, "netdevs", "eth1", "ethtool", "speed_mbps"), "link Ethernet, 100 Gb/s, planned 400 Gb/s"),
        (put(1500, "netdevs", "eth1", "mtu_bytes"), "MTU 1500 bytes, planned 9000, RDMA 4096 bytes"),
        (put(1024, *PORT, "active_mtu_bytes"), "MTU 9000 bytes, RDMA 1024 bytes"),
        (put({"192.168.1.9": 3}, *PORT, "rocev2"), "address 192.168.1.1/24, without a RoCE v2 GID"),
        (
            put(["10.1.1.1/8"], "netdevs", "eth1", "ipv4"),
            "address 192.168.1.1/24, which the interface does not have: 10.1.1.1/8, its RoCE v2 GID has index 3",
        ),
        (put(8, *PCI, "width"), "PCIe Gen5 x8, at most Gen5 x16, no slower link on the path: 459 Gb/s of payload"),
        (put(16.0, *PCI, "speed_gtps"), "PCIe Gen4 x16, at most Gen5 x16, no slower link on the path: 459 Gb/s of payload"),
        (
            put({"address": "0000:5d:01.0", "speed_gtps": 16.0, "width": 16}, *PCI, "narrowest"),
            "PCIe Gen5 x16, slowest at 0000:5d:01.0: Gen4 x16 with 229 Gb/s of payload, which limits 400 Gb/s",
        ),
        (
            put({"value": 71.0, "high_warning": 70.0}, *OPTIC, "temperature_celsius"),
            "71 °C, temperature 71, above its high warning threshold of 70 °C",
        ),
        (put(["Laser rx power low alarm (Chan 1)"], *OPTIC, "alarms"), "'Laser rx power low alarm (Chan 1)' is raised"),
        (put("translated", "iommu", "mode"), "IOMMU translated; bare metal"),
        (put(["SrcValid", "ReqRedir"], *PCI, "hops", "acs"), "ACS redirects at 0000:5d:01.0"),
        (put({"symbol_error": 12, "link_downed": 1}, "since", "devices", "mlx5_0", "1"), "mlx5_0/1 link_downed +1, symbol_error +12"),
        (put({"carrier_downs": 2}, "since", "netdevs", "eth0"), "eth0 carrier_downs +2"),
        (put({"unlimited": False, "bytes": 8388608}, "limits", "service_memlock"), "a service 8388608 bytes"),
        (put(None, "limits", "login_memlock", "root"), "a login of root no file sets it: the kernel's default"),
        (
            put({"unlimited": False, "value": "64", "file": "/etc/security/limits.conf"}, "limits", "login_memlock", "*"),
            "a login of any user but root 64 KiB, by /etc/security/limits.conf",
        ),
        (put("0", "sysctl", "live", "net.ipv4.conf.all.arp_ignore"), f"net.ipv4.conf.all.arp_ignore 0 1 1 {SYSCTL_FILE}"),
        (put(None, "sysctl", "live", "net.ipv4.conf.all.arp_ignore"), f"net.ipv4.conf.all.arp_ignore no such key 1 1 {SYSCTL_FILE}"),
        (put(None, "sysctl", "boot", "net.ipv4.conf.all.rp_filter"), "net.ipv4.conf.all.rp_filter 2 as it is then 2 -"),
        (put(64, "limits", "service_open_files"), "open files a service 64, a login 131072, planned 131072"),
        (put({"powersave": 64}, "cpu", "governors"), "CPUs governor powersave, planned performance, idle states C1 (1 µs)"),
        (
            put(63, "cpu", "idle_states", "C6", "disabled"),
            "idle states C1 (1 µs), C6 (133 µs), planned at most 10 µs",
        ),
        (put(False, "time", "synchronized"), "clock not synchronized with a time server"),
        (put({path: {"NCCL_SOCKET_IFNAME": "=eno1"} for path in NCCL_FILES}, "nccl_files"), "NCCL_IB_HCA every ACTIVE port NCCL's default"),
    ],
)
def test_a_mark_stands_before_what_differs_and_nothing_else(change: Callable[[Tree], None], line: str) -> None:
    facts = healthy()
    facts["devices"]["mlx5_1"]["pci"]["hops"] = Hops(facts["devices"]["mlx5_1"]["pci"]["hops"])
    change(facts)
    marks = marked(explain("node1", intent(), facts))
    assert len(marks) == 1, marks
    assert line in marks[0]


def marking() -> Tree:
    """A healthy host with rdma_roce."""
    facts = healthy()
    for variables in facts["nccl_files"].values():
        variables["NCCL_IB_TC"] = "106"
    return facts


def test_quality_of_service_as_planned() -> None:
    text = explain("node1", intent(roce={}), marking())
    assert marked(text) == []
    assert [line.strip() for line in part_of(text, "RAILS") if line.split()[0] in ("QoS", "boot")] == [
        "QoS      DSCP 26 in priority 3, PFC, ECN, CNPs DSCP 48 in priority 6, traffic class 106; by mlnx_qos",
        "boot     rdma-qos@eth0.service, active and enabled",
        "QoS      DSCP 26 in priority 3, PFC, ECN, CNPs DSCP 48 in priority 6, traffic class 106; by mlnx_qos",
        "boot     rdma-qos@eth1.service, active and enabled",
    ]


QOS = [
    (
        put([False] * 8, "qos", "eth1", "pfc"),
        "differs pfc is 0,0,0,0,0,0,0,0 by mlnx_qos, requested 0,0,0,1,0,0,0,0 (rdma_roce: pfc, priority)",
    ),
    (
        put(46, "qos", "eth0", "np", "cnp_dscp"),
        "differs np cnp_dscp is 46 by sysfs, requested 48 (rdma_roce: cnp_dscp, cnp_priority, dcqcn)",
    ),
    (
        put(None, "qos", "eth0", "rdma_cm"),
        "differs rdma_cm is mode RoCE v2, tos 0 by configfs, requested mode RoCE v2, tos 106 (rdma_roce: dscp, ecn)",
    ),
    (put("firmware", "qos", "eth0", "dcbx"), "differs dcbx is firmware by mlnx_qos, requested os (rdma_roce: dcbx)"),
    (put({"rx": True, "tx": True}, "qos", "eth0", "pause"), "by ethtool, requested rx off, tx off (the same for every profile)"),
    (put({"lldpad": {"active": True, "enabled": False}}, "qos", "eth0", "agents"), "agent lldpad would overwrite PFC and ETS"),
    (put(False, "units", "rdma-qos@eth1.service", "enabled"), "boot rdma-qos@eth1.service, not enabled"),
    (put(None, "qos", "eth1", "backend"), "no tool can set it: it answers"),
]


@pytest.mark.parametrize(("change", "line"), QOS, ids=range(len(QOS)))
def test_what_differs_of_quality_of_service_says_from_where_it_comes(change: Callable[[Tree], None], line: str) -> None:
    facts = marking()
    change(facts)
    text = explain("node1", intent(roce={}), facts)
    assert len(marked(text)) == 1, marked(text)
    assert line in " ".join(text.split())


class Hops(list[Tree]):
    """Lets a path of names lead into the first bridge."""

    def __setitem__(self, name: Any, value: Any) -> None:
        self[0][name] = value


def test_a_rail_without_its_nic_names_those_that_are_there() -> None:
    facts = healthy()
    facts["netdevs"]["eth1"]["pci"] = "0000:99:00.0"
    facts["devices"]["mlx5_1"]["pci"]["address"] = "0000:99:00.0"
    text = explain("node1", intent(), facts)
    assert "device no NIC with pci 0000:5e:00.0; there are 0000:3d:00.0, 0000:99:00.0" in marked(text)
    assert part_of(text, "RDMA DEVICES THAT ARE NOT RAILS") == [
        "  mlx5_1/1  ACTIVE, Ethernet, 400 Gb/s, on eth1, PCI 0000:99:00.0, mlx5_core"
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"function": "vf", "parent_pci": "0000:3d:00.0"}, "a virtual function of 0000:3d:00.0"),
        ({"function": "sf"}, "a subfunction"),
        ({"software": True, "driver": "rdma_rxe"}, "rdma_rxe, software"),
        ({"node_type": "RNIC", "software": True}, "uses iWARP, which RoCE peers do not understand"),
    ],
)
def test_what_kind_of_device_no_rail_plans(changes: Tree, words: str) -> None:
    facts = healthy()
    facts["devices"]["mlx5_9"] = {**device(9, "0000:3d:00.2", "0000:3c:01.0"), **changes}
    (line,) = part_of(explain("node1", intent(), facts), "RDMA DEVICES THAT ARE NOT RAILS")
    assert line.startswith("  mlx5_9/1  ACTIVE, Ethernet, ")
    assert line.endswith(words)


@pytest.mark.parametrize(
    ("sm_lid", "words"), [(1, "subnet manager at LID 1"), (None, "no subnet manager known"), (0, "no subnet manager known")]
)
def test_infiniband_has_lids_where_roce_has_a_gid(sm_lid: int | None, words: str) -> None:
    facts = healthy()
    facts["devices"]["mlx5_0"]["ports"]["1"].update(link_layer="InfiniBand", lid=5, sm_lid=sm_lid)
    facts["netdevs"]["eth0"].update(mtu_bytes=2044)
    wanted = intent()
    wanted["rails"][0].update(link_layer="infiniband", mtu_bytes=2044)
    text = explain("node1", wanted, facts)
    assert marked(text) == []
    assert f"    address  192.168.0.1/24, LID 5, {words}" in part_of(text, "RAILS")


def test_ipv6_and_a_further_address_that_is_missing() -> None:
    facts, wanted = healthy(), intent()
    wanted["rails"][0].update(address="2001:db8::1/64", addresses=["192.168.0.1/24", "10.7.0.1/16"])
    facts["netdevs"]["eth0"]["ipv6"] = ["2001:db8::1/64"]
    facts["devices"]["mlx5_0"]["ports"]["1"]["rocev2"]["2001:db8::1"] = 5
    text = " ".join(explain("node1", wanted, facts).split())
    assert "! address 2001:db8::1/64 and 192.168.0.1/24 and 10.7.0.1/16, of which the interface does not have 10.7.0.1/16" in text
    assert "its RoCE v2 GID has index 5" in text


def test_an_mtu_that_is_not_planned_is_no_difference() -> None:
    facts, wanted = healthy(), intent()
    facts["netdevs"]["eth1"]["mtu_bytes"] = 1500
    wanted["rails"][1]["mtu_bytes"] = None
    text = explain("node1", wanted, facts)
    assert "planned None" not in text
    assert not [line for line in marked(text) if "MTU" in line]


def test_a_link_that_is_down_says_which_side_of_the_kernel_is_to_blame() -> None:
    facts = healthy()
    for rail, changes in enumerate(({"admin_up": False, "carrier": None}, {"carrier": False})):
        facts["devices"][f"mlx5_{rail}"]["ports"]["1"].update(state="DOWN", physical_state="Disabled")
        facts["netdevs"][f"eth{rail}"].update(changes)
    assert marked(explain("node1", intent(), facts)) == [
        "state DOWN, Disabled; eth0 is administratively down",
        "state DOWN, Disabled; eth1 has no carrier",
    ]


def test_the_nearest_gpus_and_not_all_of_them() -> None:
    facts = healthy()
    facts["distances"] = {f"0000:{bus}:00.0": {"mlx5_0": "PIX" if bus < 30 else "NODE", "mlx5_1": None} for bus in range(24, 36)}
    places = [line for line in part_of(explain("node1", intent(), facts), "RAILS") if "  place  " in line]
    shown = "0000:24:00.0, 0000:25:00.0, 0000:26:00.0, 0000:27:00.0 and 2 more (PIX)"
    assert places == [f"    place    NUMA node 0, nearest GPU {shown}", "    place    NUMA node 0"]


@pytest.mark.parametrize(
    ("path", "way", "marks"),
    [
        ("peermem", "peermem", ["by nvidia_peermem not possible: it is not loaded; and the symbol is missing"]),
        ("dmabuf", "peermem", []),
        ("auto", "dmabuf", []),
    ],
)
def test_a_way_between_gpu_and_nic_is_marked_if_it_is_the_planned_one(path: str, way: str, marks: list[str]) -> None:
    facts = healthy()
    facts["gpudirect"][way] = {"possible": False, "why_not": ["it is not loaded", "and the symbol is missing"]}
    text = explain("node1", intent(gpudirect={"path": path}), facts)
    assert marked(text) == marks
    assert text.count("not possible: it is not loaded; and the symbol is missing") == 1


def test_the_speed_of_an_idle_gpu_says_nothing_and_its_lanes_do() -> None:
    facts = healthy()
    facts["gpus"][0]["pci"]["speed_gtps"] = 2.5
    facts["gpus"][1]["pci"]["width"] = 8
    (line,) = marked(explain("node1", intent(), facts))
    assert line.startswith("0000:4f:00.0 NVIDIA H200 0 mlx5_1 (PXB) Gen5 x8, at most Gen5 x16")


@pytest.mark.parametrize(("gpus", "words"), [(None, "not read"), ([], "none")])
def test_without_a_gpu(gpus: list[Tree] | None, words: str) -> None:
    lines = part_of(explain("node1", intent(), {**healthy(), "gpus": gpus}), "GPUS AND GPUDIRECT RDMA")
    assert lines == [f"  GPUs   {words}", "  IOMMU  passthrough; bare metal"]


def test_in_a_virtual_machine_the_iommu_and_acs_are_as_they_have_to_be() -> None:
    facts = healthy()
    facts["iommu"] = {"present": True, "mode": "translated", "virtual_machine": True}
    facts["gpus"][0]["pci"]["hops"][0]["acs"] = ["ReqRedir", "CmpltRedir"]
    text = explain("node1", intent(), facts)
    assert marked(text) == []
    assert "  ACS                redirects at 0000:1a:00.0" in part_of(text, "GPUS AND GPUDIRECT RDMA")


def test_limits_that_the_intent_leaves_alone_are_not_marked() -> None:
    facts = healthy()
    facts["limits"] = {"service_memlock": {"unlimited": False, "bytes": 65536}, "login_memlock": {"*": None, "root": None}}
    assert len(marked(explain("node1", intent(), facts))) == 3
    assert marked(explain("node1", intent(host={"memlock_unlimited": False}), facts)) == []


def test_a_setting_that_nobody_asks_for_is_marked_if_a_boot_changes_it() -> None:
    facts = healthy()
    facts["sysctl"]["live"].update({"vm.swappiness": "10", "vm.zone_reclaim_mode": "0"})
    facts["sysctl"]["boot"].update({"vm.swappiness": {"value": "60", "file": "/etc/sysctl.d/a.conf"}, "vm.zone_reclaim_mode": None})
    assert marked(explain("node1", intent(), facts)) == ["vm.swappiness 10 60 - /etc/sysctl.d/a.conf"]


# What is not there


def test_without_an_intent_it_says_why_and_compares_with_none() -> None:
    problems = ["rdma_rails[0] has no key 'adress': did you mean 'address'? (hosts.yml:12)", "rdma_gate.policy is wrong"]
    text = explain("node1", None, healthy(), problems)
    head = text.split("\n\n", maxsplit=1)[0].splitlines()
    assert head[2:] == ["! There is no intent to compare with, because of these problems:", *(f"    {problem}" for problem in problems)]
    assert marked(text) == ["There is no intent to compare with, because of these problems:"]
    assert part_of(text, "RAILS") == ["  No rail is planned."]
    assert [line.split()[0] for line in part_of(text, "RDMA DEVICES THAT ARE NOT RAILS")] == ["mlx5_0/1", "mlx5_1/1"]


def test_without_an_intent_and_without_a_problem() -> None:
    assert "! There is no intent to compare with.\n\nSYSTEM" in explain("node1", None, healthy())


@pytest.mark.parametrize("facts", [None, {}])
def test_a_host_of_which_nothing_is_known(facts: Tree | None) -> None:
    text = explain("node1", intent(), facts)
    assert [line for line in marked(text) if "no NIC with pci" not in line] == []
    for title in ("SYSTEM", "DRIVER STACK", "LIMITS: LOCKED MEMORY, OPEN FILES", "CPUS, CLOCK, DISKS, LOAD"):
        assert all(line.endswith("not read") for line in part_of(text, title) if "planned" not in line), text
    assert part_of(text, "RDMA DEVICES THAT ARE NOT RAILS") == ["  not read"]


def places(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key of a tree, by its path."""
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*path, name)
        yield from places(value, (*path, name))


def without(tree: Tree, path: tuple[str | int, ...], *, null: bool) -> None:
    """Take a key out, or make it null; nothing where a key above it has gone already."""
    place: Any = tree
    for name in path[:-1]:
        place = place.get(name) if isinstance(place, dict) else place[name] if isinstance(place, list) else None
    if isinstance(place, dict) and path[-1] in place:
        if null or isinstance(path[-1], int):
            place[path[-1]] = None
        else:
            del place[path[-1]]


def may_lack(hint: Any, path: tuple[str | int, ...]) -> bool:
    """Whether facts of a type may lack what is at a path. An entry of a list or a dictionary is as its type says."""
    arguments = get_args(hint)
    if dataclasses.is_dataclass(hint):
        return bool(path) and may_lack(get_type_hints(hint)[str(path[0])], path[1:])
    if type(None) in arguments:
        return not path or may_lack(arguments[0], path)
    return hint is Any or (bool(path) and may_lack(arguments[-1], path[1:]))


#: Of quality of service one interface and one parameter stand for all.
PLACES = [
    path
    for path in places({name: part for name, part in healthy().items() if name != "since"})
    if may_lack(Facts, path) and path[:2] != ("qos", "eth1") and path[2:3] not in (("dscp_to_priority",), ("rp",))
]
PLANNED = intent(roce={})
READINGS = ("not read", "not reported", "not known", "unknown")


def assert_text(text: str) -> None:
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "None" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("null", [False, True], ids=["missing", "null"])
def test_any_part_may_be_missing(null: bool) -> None:
    for path in PLACES:
        facts = healthy()
        without(facts, path, null=null)
        assert_text(explain("node1", PLANNED, facts))
        assert_text(explain("node1", None, facts))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.booleans()), max_size=40))
def test_any_parts_may_be_missing(cuts: list[tuple[tuple[str | int, ...], bool]]) -> None:
    facts = healthy()
    for path, null in cuts:
        without(facts, path, null=null)
    before = copy.deepcopy(facts)
    assert_text(explain("node1", PLANNED, facts))
    assert facts == before


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_whatever_a_host_says_of_itself_stays_text_of_this_width(answer: str) -> None:
    facts = healthy()
    facts["boot"]["hostname"] = facts["stack"]["kernel"] = facts["devices"]["mlx5_0"]["firmware"] = answer
    facts["nccl_files"]["/etc/nccl.conf"] = {answer: answer, "NCCL_IB_HCA": answer}
    facts["gpus"][0]["model"] = answer
    text = explain("node1", intent(), facts)
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert all(char.isprintable() or char == "\n" for char in text)
    assert re.search(r"^NCCL$", text, re.M)


@pytest.mark.parametrize(("planned", "mark"), [("keep", " "), ("inbox", "!")])
def test_a_loaded_stack_differs_only_from_a_plan_for_another(planned: str, mark: str) -> None:
    tree = lab_facts()
    tree["stack"]["kind"] = "ofed"
    lines = explain("node1", lab_intent(driver={"stack": planned}), tree).splitlines()
    (line,) = [line for line in lines if "of unknown version is loaded" in line]
    assert line.startswith(mark), line
