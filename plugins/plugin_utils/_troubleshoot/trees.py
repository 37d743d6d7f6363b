# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision tree of each symptom: questions in the order in which an engineer asks them, each answered by checks of the catalogue.

A question is phrased so that "yes" is healthy. Sources: the debugging procedures of operators for low all-reduce throughput, GPUDirect
RDMA, ECMP, flapping links, discards, libraries, memory registration and meshes, with the corrections of docs/errata.md.
"""

from __future__ import annotations

from dataclasses import dataclass

#: The pseudo-stage of the first question, which is about the hosts and not about a check of a stage.
EVERY = "every"
#: The stages whose findings come from measurements of an earlier run, because troubleshooting puts no load on the network.
MEASURED = ("pairs", "collectives")
#: rdma_measure: also what has a valid proof.
MEASURE_PAIRS = "ansible-playbook rdma.cluster.pairs -e rdma_measure=true"
MEASURE_COLLECTIVES = "ansible-playbook rdma.cluster.collectives -e rdma_measure=true"
MEASURE_PATH_MTU = "ansible-playbook rdma.cluster.validate"
MEASURE_SPINES = "ansible-playbook rdma.cluster.fabric rdma.cluster.pairs -e rdma_measure=true"


@dataclass(frozen=True)
class Step:
    """One question. checks: the IDs that answer it. why: how a bad answer explains the symptom.

    measure: what to run if it was not measured. unknown_explains: whether an answer that could not be read is itself the explanation.
    explains: whether a bad answer ends the walk. A bad measurement is the symptom itself, and does not.
    """

    question: str
    checks: tuple[str, ...]
    why: str
    measure: str = ""
    unknown_explains: bool = False
    explains: bool = True


@dataclass(frozen=True)
class Tree:
    """The path of a symptom. meaning: the symptom in words. steps: in order. otherwise: the steps to take if no question explains it."""

    symptom: str
    meaning: str
    steps: tuple[Step, ...]
    otherwise: tuple[str, ...]


HOSTS = Step(
    "Is the intent of every host valid, and does the host answer?",
    ("stage.completed", "host.facts", "intent.key", "intent.type", "intent.value"),
    "A host that does not answer stops every job on it. A host without a valid intent cannot be compared with anything.",
    unknown_explains=True,
)
DEVICES = Step(
    "Does each rail have its NIC, driver modules, RDMA device and device node?",
    ("driver.nic", "driver.module", "driver.device", "driver.node", "driver.loaded"),
    "Without a device NCCL uses fewer rails, or TCP sockets, or fails.",
)
LINKS = Step(
    "Is each link up, at the planned rate, width and MTU?",
    ("link.state", "link.layer", "link.rate", "link.width", "link.mtu", "alike.rate", "network.mtu", "network.rdma_mtu", "alike.mtu"),
    "A collective is as slow as its slowest link. With different MTUs, small messages pass and large ones are lost.",
)
ADDRESSES = Step(
    "Does each rail have its address, its GID and its partition, each only once?",
    ("network.address", "network.duplicate", "network.gid", "alike.gid_index", "link.pkey", "link.partitions", "network.manager"),
    "Connections fail or time out if an address, GID or P_Key is missing or exists twice.",
)
SUBNET_MANAGER = Step(
    "Does each InfiniBand plane have exactly its planned subnet managers?",
    ("link.sm",),
    "Without a subnet manager, ports stay in INIT. A second one with other settings can take over, and change routes or partitions.",
)
CLEAN_LINKS = Step(
    "Are the links free of new errors, failures and bad optics?",
    ("link.errors", "link.flaps", "link.optic", "fabric.counters"),
    "A bad cable or optic damages packets. RDMA repeats them, and the whole collective waits.",
)
ROUTES = Step(
    "Are the uplinks complete, equal and evenly used?",
    ("fabric.graph", "fabric.link", "fabric.cabling", "fabric.symmetry", "fabric.ratio", "fabric.bisection", "fabric.balance"),
    "If uplinks are missing, slower or unevenly used, flows share a path although another one is free.",
)
LOSSLESS = Step(
    "On RoCE, do PFC, ECN, trust and DSCP agree on every host?",
    (
        "qos.trust",
        "qos.dscp",
        "qos.pfc",
        "qos.pause",
        "qos.ecn",
        "qos.cnp",
        "qos.dcqcn",
        "qos.ets",
        "qos.buffers",
        "qos.dcbx",
        "qos.overwritten",
        "qos.rdma_cm",
        "qos.traffic_class",
        "qos.backend",
        "qos.boot",
    ),
    "If RDMA is outside the lossless priority on one host, its packets are discarded under load and repeated after a timeout.",
)
LOSSLESS_LOAD = Step(
    "Was RDMA in its priority, and nothing discarded, when it was measured?",
    ("qos.traffic", "qos.load"),
    "Discards under a many-to-one load show that a switch or host does not treat RDMA as lossless.",
    MEASURE_PAIRS,
)
NCCL = Step(
    "Do the NCCL variables name the right devices, with valid and equal values on all hosts?",
    (
        "nccl.hca",
        "nccl.pkey",
        "nccl.gid_index",
        "nccl.socket_ifname",
        "nccl.lint",
        "nccl.user_lines",
        "nccl.file",
        "nccl.topology",
        "nccl.alike",
    ),
    "A wrong or left-over variable makes NCCL use sockets, fewer NICs, or another algorithm on one host.",
)
GPU_DRIVER = Step(
    "Does each GPU have its driver, and do CUDA and Fabric Manager have the same version?",
    ("gpu.driver", "gpu.cuda", "gpu.fabricmanager"),
    "A lost GPU, or a Fabric Manager of another version, stops or slows all ranks of the host.",
)
GPUDIRECT = Step(
    "Does each GPU have a path for GPUDirect RDMA to a near NIC?",
    ("gpu.path", "gpu.nics", "pcie.distance"),
    "One host without GPUDirect RDMA copies through its CPU memory, and slows the whole ring.",
)
PEER_TO_PEER = Step(
    "Do IOMMU and ACS leave the path between GPU and NIC direct?",
    ("host.iommu", "pcie.acs", "host.pcie"),
    "An IOMMU that translates, or ACS on a bridge, sends traffic between GPU and NIC through the root complex.",
)
GPU_MEASURED = Step(
    "Was the bandwidth from GPU memory as high as from host memory?",
    ("pair.gpu", "collective.transport"),
    "A large difference shows that data goes through the host.",
    MEASURE_PAIRS,
)
SLOTS = Step(
    "Does each NIC have its full PCIe speed, width, payload and read request size?",
    ("pcie.link", "pcie.path", "alike.pcie", "pcie.payload", "pcie.mrrs"),
    "A slot with too few lanes limits the NIC, whatever the network does.",
)
STRAGGLERS = Step(
    "Are memory, clock source, CPU settings and firmware of the hosts healthy and equal?",
    ("host.memory", "host.clocksource", "host.cpu", "host.shm", "alike.firmware", "alike.board", "alike.driver", "alike.kernel"),
    "One slow host delays every collective in which it takes part.",
)
SCOPE = Step(
    "Was the last measurement of all hosts and pairs good?",
    ("pair.bandwidth", "pair.latency", "pair.errors", "pair.oversubscription", "collective.busbw", "collective.ladder", "collective.hcas"),
    "The measurements say whether the whole fabric, a group of hosts, or one host or rail is slow.",
    MEASURE_PAIRS,
    explains=False,
)
PATH_MTU = Step(
    "Did packets of the interfaces' MTU pass between all hosts?",
    ("network.path_mtu",),
    "If a switch port drops large packets, small messages pass and large ones are lost: a job starts, and then hangs.",
    MEASURE_PATH_MTU,
)
REGISTRATION = Step(
    "May logins and the services that start jobs lock enough memory?",
    ("host.memlock", "host.services", "host.files"),
    "Registering memory for RDMA locks it. A limit makes ibv_reg_mr fail; a running service keeps the limits of its start.",
)
MEMORY = Step(
    "Is enough memory and shared memory available, and is shared memory kept for logged-out users?",
    ("host.memory", "host.shm", "host.ipc"),
    "NCCL puts queues into /dev/shm. If it is full, or systemd-logind removes it, ranks fail or wait.",
)
VERSIONS = Step(
    "Do hosts have equal NCCL, and the planned version?",
    ("nccl.version", "nccl.install", "alike.nccl"),
    "Ranks with different NCCL versions fail at start, or choose different algorithms.",
)

TREES: dict[str, Tree] = {
    tree.symptom: tree
    for tree in (
        Tree(
            "slow",
            "a job, or all-reduce, is slower than expected",
            (
                HOSTS,
                DEVICES,
                SCOPE,
                STRAGGLERS,
                LINKS,
                PATH_MTU,
                CLEAN_LINKS,
                SLOTS,
                ROUTES,
                LOSSLESS,
                LOSSLESS_LOAD,
                NCCL,
                GPUDIRECT,
                PEER_TO_PEER,
                GPU_MEASURED,
            ),
            (
                f"Measure the pairs of hosts while no job runs: `{MEASURE_PAIRS}`.",
                f"Measure NCCL on growing sets of hosts: `{MEASURE_COLLECTIVES}`.",
                "If both are good, look for the slow rank in the job itself: docs/straggler.md.",
            ),
        ),
        Tree(
            "hang",
            "a job hangs at start or in the middle",
            (
                HOSTS,
                DEVICES,
                GPU_DRIVER,
                LINKS,
                PATH_MTU,
                SUBNET_MANAGER,
                ADDRESSES,
                NCCL,
                VERSIONS,
                REGISTRATION,
                MEMORY,
                CLEAN_LINKS,
                LOSSLESS,
            ),
            (
                "Read the log of the job: `ansible-playbook rdma.cluster.diagnose -e rdma_job_log=FILE`, with the output of all ranks.",
                "Start the job again with `NCCL_DEBUG=INFO` and `NCCL_DEBUG_SUBSYS=INIT,NET`, and diagnose that log.",
                "Check the firewall between the hosts: NCCL's own connections use TCP ports of `net.ipv4.ip_local_port_range`.",
            ),
        ),
        Tree(
            "gdr",
            "GPUDirect RDMA is not used, or NCCL's log has no GDRDMA",
            (HOSTS, DEVICES, GPU_DRIVER, GPUDIRECT, PEER_TO_PEER, SLOTS, NCCL, GPU_MEASURED),
            (
                "Search NCCL's log for `/GDRDMA` on each channel: `NCCL_DEBUG=INFO`.",
                "On one host, compare `nvidia-smi topo -m` with the rails: the path must be PIX or PXB, or the platform's own (C2C).",
                f"Set `rdma_pairs.gpu_memory: true`, and compare perftest from GPU memory with host memory: `{MEASURE_PAIRS}`.",
            ),
        ),
        Tree(
            "ecmp",
            "some paths across the spines are overloaded while others are idle",
            (HOSTS, DEVICES, LINKS, ROUTES, CLEAN_LINKS, LOSSLESS, NCCL, SCOPE),
            (
                f"Measure all pairs across the spines at once, while no job runs: `{MEASURE_SPINES}`.",
                "On the leaf switches, compare the bytes of all uplinks during the load: they may differ by 20 %.",
                "Give the hash more flows: `NCCL_IB_QPS_PER_CONNECTION=4` in `rdma_nccl.variables`. Or enable adaptive routing.",
            ),
        ),
        Tree(
            "flap",
            "a link goes down and comes up again",
            (HOSTS, DEVICES, CLEAN_LINKS, LINKS, SUBNET_MANAGER, ROUTES),
            (
                "Read the times on the host: `journalctl -k | grep -iE 'link (is )?(up|down)'`.",
                "Exchange cable or optic with a good neighbor, and see whether the failure moves with it.",
                f"Compare the counters before and after a load, while no job runs: `{MEASURE_PAIRS}`.",
            ),
        ),
        Tree(
            "drops",
            "buffers overrun, packets are discarded or arrive out of order",
            (HOSTS, DEVICES, LOSSLESS, LINKS, PATH_MTU, CLEAN_LINKS, LOSSLESS_LOAD, SLOTS),
            (
                "On the hosts, compare two readings: `ethtool -S IFACE | grep -E 'discard|drop|pause|out_of_sequence'`.",
                "On the switches, read discards and pause frames of the ports to these hosts, and compare their PFC priority and MTU.",
                f"Make many hosts send to one, while no job runs: `{MEASURE_PAIRS}`.",
            ),
        ),
        Tree(
            "mesh",
            "hosts with direct cables between them do not connect",
            (HOSTS, DEVICES, LINKS, ADDRESSES, PATH_MTU, ROUTES, NCCL, VERSIONS),
            (
                "Ping each neighbor through its cable: `ping -I IFACE NEIGHBOR`. Each cable needs its own subnet.",
                "Compare the cabling with the plan: `lldpcli show neighbors` on each host.",
                f"Measure each cable: `{MEASURE_PAIRS}`.",
            ),
        ),
        Tree(
            "library",
            "a program fails at start, with unknown symbols or different versions",
            (
                HOSTS,
                Step(
                    "Are driver modules of one stack, built for and loaded in the running kernel?",
                    ("driver.stack", "driver.package", "driver.dkms", "driver.loaded", "driver.module", "driver.next_kernel"),
                    "Modules of another stack or kernel have unknown symbols. An old initramfs loads an old copy.",
                ),
                Step(
                    "Do like hosts have equal drivers, kernels and RDMA packages?",
                    ("alike.driver", "alike.kernel", "alike.packages", "alike.os", "alike.firmware", "firmware.version"),
                    "A container or program that works on one host fails on a host with another version.",
                ),
                GPU_DRIVER,
                VERSIONS,
            ),
            (
                "On a host where it fails, see which file is used: `ldd PROGRAM | grep -E 'ibverbs|rdmacm|nccl|cuda'`.",
                "Look for copies before the system's: `echo $LD_LIBRARY_PATH`, and `ldconfig -p | grep -E 'ibverbs|nccl'`.",
                "In a container, compare its rdma-core with the host's kernel modules: `ibv_devinfo` must list the devices there.",
            ),
        ),
        Tree(
            "registration",
            "memory cannot be registered (ibv_reg_mr fails)",
            (HOSTS, DEVICES, REGISTRATION, GPUDIRECT, GPU_DRIVER, MEMORY, PEER_TO_PEER),
            (
                "In the job's own environment, run `ulimit -l`: it must print `unlimited`. A container needs `--ulimit memlock=-1`.",
                "Read the kernel log of the host: `dmesg | grep -iE 'mlx5|peermem|nvidia'`.",
                "Diagnose the log of the job: `ansible-playbook rdma.cluster.diagnose -e rdma_job_log=FILE`.",
            ),
        ),
    )
}
