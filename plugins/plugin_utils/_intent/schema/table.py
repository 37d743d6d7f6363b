# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schema of the intent, as data: every variable, every key, its type, default, limits and meaning.

_intent/read.py reads an inventory by it, _intent/docs.py writes docs/intent.md from it. Nothing else knows a default.
"""

from __future__ import annotations

from datetime import date

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ADDRESS,
    CHECK,
    DATE,
    HOST,
    MAC,
    NAME,
    PCI,
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
    text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.driver import SECTIONS as DRIVER_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.fabric import IPOIB
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.fabric import SECTIONS as FABRIC_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl import COLLECTIVES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl import SECTIONS as NCCL_SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.roce import SECTIONS as ROCE_SECTIONS

RAIL = keys(
    "A rail of this host.",
    name=text("The rail's name, the same on every host; in a mesh the cable's, the same at both ends.", NAME, required=True),
    nic=Key(
        (dict,),
        "The NIC, by one of the two; never by a name that a reboot changes.",
        required=True,
        one_of=True,
        keys={"pci": text("By where it is.", PCI), "mac": text("By what it is.", MAC)},
    ),
    link_layer=choice("What the port must be.", "roce", "roce", "infiniband"),
    rate_gbps=number("The rate that it should have, in 10^9 bit/s.", 1, 10000),
    plane=text("The set of rails that one fabric joins; one of `rdma_fabric.planes`, where those are given.", NAME, default="default"),
    role=choice("What it is for.", "compute", "compute", "storage"),
    address=text("IPv4 address with prefix length; RoCE needs one, InfiniBand has one where it carries IP.", ADDRESS),
    # 1280 is IPv6's minimum; below it an interface is of no use to anything. 65535 is the largest that IPv4 can say.
    mtu_bytes=integer(
        "MTU of the interface, live and at boot. Without it, the interface keeps its MTU. RoCE reaches its largest MTU of 4096 from 4192 "
        "on; IP over InfiniBand carries at most 4092.",
        1280,
        65535,
    ),
    soft=flag("Put a Soft-RoCE device on this NIC.", False),
    ipoib=IPOIB,
)
RULE = keys(
    "What this site makes of one check.",
    severity=choice("What an error or a warning of it counts as.", None, "error", "warning"),
    threshold=number("Replaces the check's own limit; [the checks](checks.md) says which have one.", 0),
    silenced_by=text("Who has silenced it; needs `reason` and `until`."),
    reason=text("Why it is silenced."),
    until=Key((str, date), "The last day of the silence.", form=DATE),
)
EVERY = ("every",)

#: Every variable of the intent, in the order in which it is documented.
SECTIONS: dict[str, Section] = {
    "rdma_rails": Section(
        Key((list,), "The rails of a host, in order, one at least.", required=True, each=RAIL),
        ("preflight", "driver", "link", "fabric", "network", "nccl", "pairs"),
    ),
    "rdma_fabric": FABRIC_SECTIONS["rdma_fabric"],
    **DRIVER_SECTIONS,
    "rdma_host": Section(
        keys(
            "Settings of the operating system.",
            memlock_unlimited=flag("Services and sessions may lock as much memory as they like; RDMA pins what it registers.", True),
            open_files=integer("Files that a process may have open at least; 0 leaves it as it is.", 0, 1048576, default=131072),
            keep_ipc=flag("logind leaves the shared memory of users who have logged out, which their jobs may still use.", True),
            sysctl=named(
                "Kernel parameters, live and at boot; they win over those that the rails need.",
                SYSCTL_NAME,
                Key((str, int), "Its value.", form=SYSCTL_VALUE),
            ),
            rings=keys(
                "The rings of the rails' NICs, as far as the hardware goes; a change resets the interface.",
                rx=integer("Descriptors in a receive ring; the driver's own choice where it is absent.", 16, 65536),
                tx=integer("Descriptors in a transmit ring.", 16, 65536),
            ),
            cpu=keys(
                "The CPUs; what is absent is left as it is.",
                governor=choice("The frequency governor.", None, "performance", "powersave", "schedutil", "ondemand", "conservative"),
                max_cstate_latency_us=integer("Idle states that take longer to wake up from, in µs, are not entered.", 0, 100_000),
                irqbalance=choice("The service of this name, which moves interrupts between CPUs.", None, "enabled", "disabled"),
            ),
            pcie=keys(
                "PCIe of the rails' NICs, live and at boot.",
                mrrs_bytes=Key(
                    (int, str),
                    "MRRS (maximum read request size) of their cards, 128 to 4096 bytes; needs `pcie_mrrs_allowed`. `auto`: 4096 on cards"
                    " of 100 Gb/s or more, others as they are; `leave`: as it is.",
                    "auto",
                    choices=("auto", "leave"),
                    minimum=128,
                    maximum=4096,
                ),
                acs=choice(
                    "ACS of the bridges above GPUs and NICs. `bare_metal` switches off what redirects (needs `pcie_acs_write_allowed`),"
                    " `vm` and `datadirect` keep it, `auto`: by what the host is, `leave`: as it is.",
                    "auto",
                    "auto",
                    "bare_metal",
                    "vm",
                    "datadirect",
                    "leave",
                ),
            ),
            time=keys(
                "The clock.",
                manage=flag("Install chrony and keep it running.", False),
                servers=Key((list,), "Time servers, beside those that the distribution names.", each=text("A server.", HOST)),
            ),
        ),
        ("host",),
    ),
    **ROCE_SECTIONS,
    "rdma_partitions": FABRIC_SECTIONS["rdma_partitions"],
    **NCCL_SECTIONS,
    "rdma_pairs": Section(
        keys(
            "How pairs of hosts are measured and judged.",
            command=choice(
                "The perftest program that measures bandwidth; the client writes or sends, or reads what the server has.",
                "ib_write_bw",
                "ib_write_bw",
                "ib_read_bw",
                "ib_send_bw",
            ),
            bidirectional=flag("Both directions at once (perftest's `-b`): the sum of them is measured.", False),
            latency_command=choice(
                "The perftest program that measures latency after bandwidth, with 2 bytes; `none` measures none.",
                "ib_write_lat",
                "ib_write_lat",
                "ib_send_lat",
                "ib_read_lat",
                "none",
            ),
            schedule=choice(
                "Who meets whom: `full`: every pair; `ring`: each host the next one; `sample`: each host as many as `partners` says.",
                "full",
                "full",
                "ring",
                "sample",
            ),
            partners=integer(
                "Partners of a host in a `sample`, and proven partners of a host that is new or has changed.", 2, 4096, default=4
            ),
            seed=integer("What a `sample` is drawn from; a new one is drawn and recorded where it is absent.", 0, 2**63 - 1),
            size_bytes=integer("The size of a message.", 1, 2**31 - 1, default=1048576),
            queue_pairs=integer("Queue pairs of a measurement; one alone may not fill 400 Gb/s.", 1, 16384, default=4),
            duration_seconds=integer("How long a pair is measured (perftest's `-D`).", 1, 86400, default=10),
            iterations=integer(
                "Instead of a duration (`-n`): on a starved CPU a software device can count nothing within its duration.", 5, 100_000_000
            ),
            deadline_seconds=integer(
                "After this a perftest is ended; at least the duration and 30 s, unless `iterations` are given.", 1, 86400, default=60
            ),
            mtu_bytes=integer("The RDMA MTU of the measurement (`-m`), a power of two; that of the ports where it is absent.", 256, 4096),
            qp_timeout=integer("perftest's `-u`: a queue pair sends again after 4.096 µs × 2^n; perftest's own is 14.", 0, 31),
            gpu_memory=flag(
                "Measure each pair from the memory of GPUs as well, by the path of `rdma_gpudirect`; needs a perftest built with CUDA.",
                False,
            ),
            gpu_fail_below=number(
                "A port that reaches less from a GPU's memory than this fraction of what it reaches from the host's is an error.",
                0,
                1,
                default=0.90,
            ),
            floor_gbps=number("A pair below this is an error, in 10^9 bit/s.", 0, default=0.0),
            software_fail_below=number(
                "Of software devices, without a line rate: below this fraction of what the fleet reaches is an error.", 0, 1, default=0.25
            ),
            fail_below=number("A pair below this fraction of what link, MTU and PCIe path allow is an error.", 0, 1, default=0.80),
            warn_below=number("A pair below this fraction of it is a warning.", 0, 1, default=0.95),
        ),
        ("pairs",),
    ),
    "rdma_collectives": COLLECTIVES,
    "rdma_gate": Section(
        keys(
            "What happens when hosts do not pass a gate.",
            policy=choice(
                "`stop`: the build stops; `quarantine`: it goes on without them up to the limit; `report`: it goes on.",
                "stop",
                "stop",
                "quarantine",
                "report",
            ),
            max_failed_percent=number("The limit of `quarantine`, which needs one; `stop` means 0.", 0, 100),
        ),
        EVERY,
    ),
    "rdma_checks": Section(named("What this site makes of single checks, by their id (see [the checks](checks.md)).", CHECK, RULE), EVERY),
}
_ANY = (str, int, list)

#: The variables of one run, given with -e or in the inventory.
RUN: dict[str, Key] = {
    "rdma_measure": Key(
        (str, bool),
        "`auto`: measure where a host has no valid proof; `true`: always; `false`: never.",
        "auto",
        choices=("auto", "true", "false"),
    ),
    "rdma_load_allowed": flag("Measure also on hosts with a running GPU process or job.", False),
    "rdma_proof_max_age_hours": number("A proof older than this is not valid.", 0, default=168),
    "rdma_facts_max_age_seconds": number("Facts of this run older than this are read again.", 0, default=300),
    "rdma_serial": Key(_ANY, "How many hosts at a time a stage changes: a number, a percentage, or a list of them."),
    "rdma_restart_serial": Key(_ANY, "How many hosts at a time reload their driver or reboot, in the same forms.", 1),
    "rdma_hosts": Key(_ANY, "Which hosts the run is about; give it with `-e`.", "all"),
    "rdma_run_dir": text("Where evidence goes; below the working directory unless it is absolute.", default="artifacts"),
    "rdma_discover_planes": Key(
        (list,),
        "What `discover` reads: for each plane its `plane`, and the `device` and `port` of the first host that are on it; by itself "
        "one plane, by the first active port.",
        each=keys(
            "A plane.",
            plane=text("Its name.", NAME, required=True),
            device=text("RDMA device."),
            port=integer("Its port.", 1, 255),
        ),
    ),
    "rdma_job_log": text("The log of a job, a file on the control node; the playbook `diagnose` reads it."),
    "rdma_job_hosts": named(
        "For `diagnose`, a name in the log → the host of the inventory, for names that the inventory does not have.",
        HOST,
        text("A host of the inventory.", HOST),
    ),
    "rdma_stage": text("The stage that a playbook is about; the playbooks set it."),
}
#: What else begins with rdma_ among a host's variables: the fact that this very schema makes, what plays define, and a role's own.
OURS = ("rdma_intent", "rdma_plan")
OURS_PREFIX = "rdma_modules_"
