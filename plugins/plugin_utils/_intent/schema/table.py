# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schema of the intent, as data: every variable and key, with type, default, limits and meaning.

_intent/read.py reads an inventory by it, and _intent/docs.py generates docs/intent.md from it. Defaults are nowhere else.
"""

from __future__ import annotations

from datetime import date

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ADDRESS,
    CHECK,
    DATE,
    GUID,
    HOST,
    INTERFACE,
    MAC,
    NAME,
    PCI,
    ROUTER,
    SUBNET,
    SYSCTL_NAME,
    SYSCTL_VALUE,
    Key,
    Section,
    choice,
    flag,
    integer,
    keys,
    named,
    number,
    optional,
    text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.drill import DRILL
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.driver import SECTIONS as DRIVER_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.fabric import IPOIB
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.fabric import SECTIONS as FABRIC_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.links import BOND, VLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.metrics import METRICS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl import COLLECTIVES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl import SECTIONS as NCCL_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.roce import SECTIONS as ROCE_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.scheduler import SECTIONS as SCHEDULER_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.soak import SOAK
from ansible_collections.rdma.cluster.plugins.plugin_utils._machines.presets import PRESETS

RAIL = keys(
    "A rail of this host.",
    name=text("Name of the rail, the same on every host; in a mesh, name of the cable, the same at both ends.", NAME, required=True),
    nic=Key(
        (dict,),
        "The NIC, by one of these keys. Device and interface names are not allowed, because a reboot can change them.",
        required=True,
        one_of=True,
        keys={
            "pci": text("PCI address of the NIC.", PCI),
            "mac": text("MAC address of the NIC.", MAC),
            "guid": text(
                "GUID of an InfiniBand port, or node GUID of a card with one port, as `ibstat` prints it. Needs `link_layer: infiniband`.",
                GUID,
            ),
        },
    ),
    link_layer=choice("Link layer of the port.", "roce", "roce", "infiniband"),
    rate_gbps=number("Expected rate, in 10^9 bit/s.", 1, 10000),
    plane=text(
        "Plane of the rail: the set of rails that one fabric joins. It must be one of `rdma_fabric.planes` if these are set.",
        NAME,
        default="default",
    ),
    role=choice("`compute` (used by NCCL) or `storage` (not used by NCCL).", "compute", "compute", "storage"),
    address=text(
        "IPv4 or IPv6 address with prefix length, which RDMA uses. Required for RoCE; on InfiniBand only for IP over InfiniBand. All hosts "
        "of a rail use the same family.",
        ADDRESS,
    ),
    addresses=Key(
        (list,),
        "Further addresses of the interface, of any family, which RDMA does not use.",
        each=text("An address with prefix length.", ADDRESS),
    ),
    gateway=text(
        "The router of the rail's subnet, for rails whose hosts are in different subnets. What leaves from the rail's address goes through "
        "it, by a routing table of the rail; the main table gets no default route.",
        ROUTER,
    ),
    routes=Key(
        (list,),
        "Subnets behind `gateway`, for the main table: at least those in which the rail's other hosts are.",
        each=text("A subnet.", SUBNET),
    ),
    # 1280 is IPv6's minimum; below it an interface is of no use to anything. 65535 is the largest that IPv4 can say.
    mtu_bytes=integer(
        "The MTU of the interface, live and at boot. Without it, the interface keeps its MTU. RoCE needs at least 4192 for its largest MTU "
        "of 4096; IP over InfiniBand carries at most 4092.",
        1280,
        65535,
    ),
    soft=flag("Create a Soft-RoCE device on this NIC.", False),
    ipoib=IPOIB,
    vlan=VLAN,
    bond=BOND,
)
PTP = keys(
    "Follow a grandmaster by PTP (IEEE 1588); chrony then takes the time from ptp4l. It needs `manage: true` and `time_sync_ptp_allowed`. "
    "Without it, PTP stays as it is.",
    rail=text("The RoCE rail that carries PTP. Either this or `interface`.", NAME),
    interface=text("The interface that carries PTP, for one that is not a rail.", INTERFACE),
    domain=integer("The PTP domain.", 0, 127, default=0),
    transport=choice("`UDPv4`: UDP ports 319 and 320, which need an address; `L2`: Ethernet frames.", "UDPv4", "UDPv4", "L2"),
    timestamping=choice(
        "`hardware`: the NIC stamps packets with its own clock (PHC), and chrony follows that clock; `software`: the kernel stamps them.",
        "hardware",
        "hardware",
        "software",
    ),
    max_offset_ns=integer("Largest offset to the grandmaster, in ns. Without it, 1000 by `hardware` and 100000 by `software`.", 1, 10**9),
    grandmaster=text("The host that is the grandmaster, with `software` only. Without it, the grandmaster is another device.", HOST),
)
RULE = keys(
    "What this site makes of one check.",
    severity=choice("Severity of an error or a warning of this check.", None, "error", "warning"),
    threshold=number("Replaces the check's own threshold; [the checks](checks.md) lists the checks that have one.", 0),
    silenced_by=text("Person who silenced the check; needs `reason` and `until`."),
    reason=text("Reason of the silence."),
    until=Key((str, date), "The last day of the silence.", form=DATE),
)
EVERY = ("every",)

#: Every variable of the intent, in the order of the documentation.
SECTIONS: dict[str, Section] = {
    "rdma_preset": Section(
        choice(
            "The known machine that this host is ([presets](presets.md)). It gives defaults for `rdma_rails`; given values have priority. "
            "The host must be this machine (`preflight.preset`).",
            None,
            *PRESETS,
        ),
        ("preflight",),
    ),
    "rdma_rails": Section(
        Key((list,), "The rails of a host, in order; at least one.", required=True, each=RAIL),
        ("preflight", "driver", "link", "fabric", "network", "nccl", "pairs"),
    ),
    "rdma_fabric": FABRIC_SECTIONS["rdma_fabric"],
    **DRIVER_SECTIONS,
    "rdma_host": Section(
        keys(
            "Settings of the operating system.",
            memlock_unlimited=flag(
                "Allow services and sessions to lock unlimited memory, because RDMA pins the memory that it registers.", True
            ),
            open_files=integer("Minimum for the limit of open files per process; 0 leaves the limit as it is.", 0, 1048576, default=131072),
            keep_ipc=flag("logind keeps the shared memory of users who have logged out, because their jobs may still use it.", True),
            sysctl=named(
                "Kernel parameters, live and at boot. They override those that the rails need.",
                SYSCTL_NAME,
                Key((str, int), "Its value.", form=SYSCTL_VALUE),
            ),
            rings=keys(
                "Ring sizes of the rails' NICs, limited to the maximum of the hardware. A change resets the interface.",
                rx=integer("Descriptors in a receive ring. Without it, the driver's own choice.", 16, 65536),
                tx=integer("Descriptors in a transmit ring.", 16, 65536),
            ),
            cpu=keys(
                "CPU settings. A missing key leaves the setting as it is.",
                governor=choice("The frequency governor.", None, "performance", "powersave", "schedutil", "ondemand", "conservative"),
                max_cstate_latency_us=integer("Disable idle states with a longer wake-up time than this, in µs.", 0, 100_000),
                irqbalance=choice("The service irqbalance, which moves interrupts between CPUs.", None, "enabled", "disabled"),
            ),
            pcie=keys(
                "PCIe settings of the rails' NICs, live and at boot.",
                mrrs_bytes=Key(
                    (int, str),
                    "MRRS (maximum read request size) of the cards, 128 to 4096 bytes; needs `pcie_mrrs_allowed`. `auto`: 4096 on "
                    "cards of 100 Gb/s or more, no change on others; `leave`: no change.",
                    "auto",
                    choices=("auto", "leave"),
                    minimum=128,
                    maximum=4096,
                ),
                acs=choice(
                    "ACS of the bridges above GPUs and NICs. `bare_metal`: disable ACS redirection (needs `pcie_acs_write_allowed`); "
                    "`vm` and `datadirect`: keep it; `auto`: depends on the host; `leave`: no change.",
                    "auto",
                    "auto",
                    "bare_metal",
                    "vm",
                    "datadirect",
                    "leave",
                ),
            ),
            time=keys(
                "Clock synchronization.",
                manage=flag("Install chrony and keep it running.", False),
                servers=Key((list,), "Time servers, in addition to those of the distribution.", each=text("A server.", HOST)),
                ptp=optional(PTP),
            ),
            network=keys(
                "The network manager that configures the rails at boot.",
                backend=choice(
                    "`auto`: the manager that has the files of this collection; at first the manager of the interface by which Ansible "
                    "reaches the host (`netplan` where it renders files for systemd-networkd), and `networkd` on hosts with another one.",
                    "auto",
                    "auto",
                    "networkd",
                    "networkmanager",
                    "netplan",
                ),
            ),
        ),
        ("host", "network"),
    ),
    **ROCE_SECTIONS,
    "rdma_partitions": FABRIC_SECTIONS["rdma_partitions"],
    **NCCL_SECTIONS,
    "rdma_pairs": Section(
        keys(
            "Measurement and judgment of pairs of hosts.",
            command=choice(
                "Perftest program for bandwidth. The client writes, sends, or reads from the server.",
                "ib_write_bw",
                "ib_write_bw",
                "ib_read_bw",
                "ib_send_bw",
            ),
            bidirectional=flag("Measure the sum of both directions at once (perftest's `-b`).", False),
            latency_command=choice(
                "Perftest program for latency, run after bandwidth with 2 bytes; `none` skips it.",
                "ib_write_lat",
                "ib_write_lat",
                "ib_send_lat",
                "ib_read_lat",
                "none",
            ),
            schedule=choice(
                "Measured pairs. `full`: every pair; `ring`: each host with the next one; `sample`: each host with `partners` others; "
                "`full+cross`: every pair, and after them some pairs of ports of different rails.",
                "full",
                "full",
                "ring",
                "sample",
                "full+cross",
            ),
            partners=integer(
                "Number of partners of a host in a `sample`, of proven partners of a new or changed host, and of a port across rails.",
                2,
                4096,
                default=4,
            ),
            seed=integer("Random seed of a `sample`. Without it, a new seed is generated and recorded.", 0, 2**63 - 1),
            size_bytes=integer("Size of a message.", 1, 2**31 - 1, default=1048576),
            queue_pairs=integer("Queue pairs of a measurement. A single one may not fill 400 Gb/s.", 1, 16384, default=4),
            duration_seconds=integer("Duration of a measurement (perftest's `-D`).", 1, 86400, default=10),
            iterations=integer(
                "Number of iterations instead of a duration (`-n`). On an overloaded CPU a software device can count nothing "
                "within the duration.",
                5,
                100_000_000,
            ),
            deadline_seconds=integer(
                "Time limit of a perftest: at least the duration plus 30 s, unless `iterations` is set.", 1, 86400, default=60
            ),
            mtu_bytes=integer("RDMA MTU of the measurement (`-m`), a power of two. Without it, the MTU of the ports.", 256, 4096),
            qp_timeout=integer(
                "Timeout of a queue pair (perftest's `-u`): it retries after 4.096 µs × 2^n. perftest's default is 14.", 0, 31
            ),
            gpu_memory=flag(
                "Also measure each pair from GPU memory, by the path of `rdma_gpudirect`. Needs a perftest built with CUDA.",
                False,
            ),
            gpu_fail_below=number(
                "A port is an error if its bandwidth from GPU memory is less than this fraction of its bandwidth from host memory.",
                0,
                1,
                default=0.90,
            ),
            floor_gbps=number("A pair below this bandwidth is an error, in 10^9 bit/s.", 0, default=0.0),
            software_fail_below=number(
                "For software devices, which have no line rate: less than this fraction of what the fleet reaches is an error.",
                0,
                1,
                default=0.25,
            ),
            fail_below=number("A bandwidth below this fraction of the limit (link, MTU, PCIe path) is an error.", 0, 1, default=0.80),
            warn_below=number("A bandwidth below this fraction of the limit is a warning.", 0, 1, default=0.95),
        ),
        ("pairs",),
    ),
    "rdma_collectives": COLLECTIVES,
    **SCHEDULER_SECTIONS,
    "rdma_recorder": Section(
        keys(
            "The recorder of changes ([the recorder](recorder.md)). Without it, a host keeps what it has.",
            manage=flag("Install the recorder and keep it running, or remove it.", False),
            state=choice("`absent` stops the recorder and removes it; its record stays.", "present", "present", "absent"),
            interfaces=Key(
                (list,),
                "Interfaces to record although no device is below them, for example VLANs. Bonds are always recorded.",
                each=text("An interface.", INTERFACE),
            ),
            size_mib=integer("Largest size of the record on a host, in MiB.", 1, 1024, default=16),
        ),
        ("host",),
    ),
    "rdma_drill": DRILL,
    "rdma_soak": SOAK,
    "rdma_metrics": METRICS,
    "rdma_gate": Section(
        keys(
            "What happens if hosts do not pass a gate.",
            policy=choice(
                "`stop`: the build stops; `quarantine`: it continues without them up to the limit; `report`: it continues with them.",
                "stop",
                "stop",
                "quarantine",
                "report",
            ),
            max_failed_percent=number("Limit of `quarantine`, which requires one; `stop` means 0.", 0, 100),
        ),
        EVERY,
    ),
    "rdma_checks": Section(named("Rules of this site for single checks, by their id (see [the checks](checks.md)).", CHECK, RULE), EVERY),
}
_ANY = (str, int, list)

#: The variables of one run, set with -e or in the inventory.
RUN: dict[str, Key] = {
    "rdma_measure": Key(
        (str, bool),
        "`auto`: measure hosts without a valid proof; `true`: always measure; `false`: never measure.",
        "auto",
        choices=("auto", "true", "false"),
    ),
    "rdma_load_allowed": flag("Also measure on hosts with a running GPU process or job.", False),
    "rdma_proof_max_age_hours": number("A proof older than this is not valid.", 0, default=168),
    "rdma_facts_max_age_seconds": number("Facts of this run that are older are read again.", 0, default=300),
    "rdma_soak_hours": number("How long `soak` measures, instead of `rdma_soak.hours`; set it with `-e`.", 0.01, 720),
    "rdma_serial": Key(_ANY, "Number of hosts that a stage changes at a time: a number, a percentage, or a list of these."),
    "rdma_restart_serial": Key(_ANY, "Number of hosts that reload their driver or reboot at a time, in the same forms.", 1),
    "rdma_hosts": Key(_ANY, "Hosts of the run, by default without the group `rdma_switches`; set it with `-e`.", "all"),
    "rdma_run_dir": text("Folder of the evidence, relative to the working directory unless it is absolute.", default="artifacts"),
    "rdma_discover_planes": Key(
        (list,),
        "Planes that `discover` reads: for each one `plane`, and the `device` and `port` of the first host on it. "
        "Without it, one plane by the first active port.",
        each=keys(
            "A plane.",
            plane=text("Its name.", NAME, required=True),
            device=text("An RDMA device."),
            port=integer("Its port.", 1, 255),
        ),
    ),
    "rdma_run": text("For `report`: ID of the run to show, a folder below `rdma_run_dir`.", default="latest"),
    "rdma_compare": text("For `report`: ID of another run to compare `rdma_run` with."),
    "rdma_job_log": text("Log of a job, a file on the control node, for the playbook `diagnose` and for `plan --tags rings`."),
    "rdma_job_hostfile": text("Hostfile of a job, a file on the control node, for `plan --tags rings`."),
    "rdma_job_hosts": named(
        "For `diagnose` and `plan --tags rings`: name in the log → host of the inventory, for names that the inventory does not have.",
        HOST,
        text("A host of the inventory.", HOST),
    ),
    "rdma_job_time": text(
        "For `diagnose`: when the job failed, with the time zone: `2026-11-23 14:05 UTC`. Without it, the time of the log's first error."
    ),
    "rdma_since": text("For `changed`: first time, `2026-11-23 14:05 UTC`, `2h` (before now), or the ID of a run: its end."),
    "rdma_until": text("For `changed`: last time, in the same forms. Without it, now."),
    "rdma_symptom": text(
        "Symptom for the playbook `troubleshoot`: `slow`, `hang`, `gdr`, `ecmp`, `flap`, `drops`, `mesh`, `library` or `registration`."
    ),
    "rdma_stage": text("Stage of a playbook; the playbooks set it."),
}
#: Other variables of a host that begin with rdma_: the fact of this schema, those of plays, and a role's own.
OURS = ("rdma_intent", "rdma_host_plan", "rdma_plan")
OURS_PREFIX = "rdma_modules_"
