# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the intent's schema that says how RoCE is told from other traffic, on NICs and on switches."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    HOST,
    Key,
    Section,
    choice,
    flag,
    integer,
    keys,
    matching,
    named,
    number,
    optional,
    text,
)

#: The languages that a switch's file is written in; plugin_utils/_roce/switch_config.py has a renderer for each.
SYNTAXES = ("nvue", "table")
PORTS = matching(
    r"[A-Za-z][A-Za-z0-9/:.-]{0,62}[A-Za-z0-9]", "a switch port, or a range of them at its end (swp1-32, swp33s0-3, Ethernet1/1)"
)
#: A field of 32 bits in the kernel's include/linux/mlx5/mlx5_ifc.h (cong_control_r_roce_ecn_rp, _np).
U32 = 2**32 - 1


def _dcqcn(meaning: str, maximum: int = U32, minimum: int = 0) -> Key:
    return integer(meaning, minimum, maximum)


#: Parameters of DCQCN, by the names of OFED's files in /sys/class/net/IF/ecn; those of 10 bits, the percentages and the units are
#: from NVIDIA's page "DCQCN CC Parameters" (DOCA 3.4).
DCQCN: dict[str, Key] = {
    "min_time_between_cnps": _dcqcn("The least time between two CNPs, in µs."),
    "clamp_tgt_rate": _dcqcn("1: each slow-down also lowers the target rate to the current one.", 1),
    "clamp_tgt_rate_after_time_inc": _dcqcn("1: also the first slow-down after the timer has raised the rate.", 1),
    "rpg_time_reset": _dcqcn("The timer threshold: the time between two raises of the rate, in µs."),
    "rpg_byte_reset": _dcqcn("The byte threshold: the data between two raises of the rate, in the firmware's units."),
    "rpg_threshold": _dcqcn("How often timer or byte counter expire before the next phase of raises begins."),
    "rpg_max_rate": _dcqcn("The rate from which on there is no limit, in Mb/s; 0 is the port's."),
    "rpg_ai_rate": _dcqcn("What an additive raise adds, in Mb/s."),
    "rpg_hai_rate": _dcqcn("What a hyper raise adds, in Mb/s."),
    "rpg_gd": _dcqcn("The shift from alpha to the part of the rate that a slow-down takes."),
    "rpg_min_dec_fac": _dcqcn("The least that a slow-down leaves of the rate, in percent.", 100),
    "rpg_min_rate": _dcqcn("The rate below which nothing is slowed down, in Mb/s."),
    "rate_to_set_on_first_cnp": _dcqcn("Current and target rate after a flow's first CNP, in Mb/s; 0 is 85 % of the line rate."),
    "dce_tcp_g": _dcqcn("The weight of the old alpha when it is updated, in 1/1024.", 1023),
    "dce_tcp_rtt": _dcqcn("The time between two updates of alpha, in µs."),
    "rate_reduce_monitor_period": _dcqcn("The least time between two slow-downs, in µs."),
    "initial_alpha_value": _dcqcn("Alpha at a flow's first CNP, in 1/1024.", 1023),
}
CABLE = "The longest cable, in metres: headroom holds what is under way when a pause begins."
SWITCH = keys(
    "A switch.",
    syntax=choice("The language of its file: `nvue` of Cumulus Linux, or a plain `table` for any other.", "table", *SYNTAXES),
    ports=Key((list,), "Its ports that carry RDMA.", required=True, each=text("Ports.", PORTS)),
    mtu_bytes=integer("MTU of those ports; 9216 is NVUE's own, and leaves room for what encapsulates.", 1280, 65535, default=9216),
    cable_length_m=integer(CABLE + " `rdma_roce.cable_length_m` where it is absent.", 1, 1000),
    rate_gbps=number("Rate of those ports, in 10^9 bit/s; that of the host's RoCE rails where it is absent.", 1, 10000),
)
SECTIONS: dict[str, Section] = {
    "rdma_roce": Section(
        optional(
            keys(
                "How RoCE is told from other traffic, the same on every NIC and switch port ([quality of service](qos.md)). Without it "
                "nothing is marked and nothing is set.",
                priority=integer("The priority of RDMA; not 0, which is everybody's.", 0, 7, default=3),
                dscp=integer("The DSCP of RDMA.", 0, 63, default=26),
                pfc=flag("Priority flow control: the priority of RDMA is lossless.", True),
                ecn=flag("Mark congestion, and slow down for it (DCQCN).", True),
                cnp_dscp=integer("The DSCP of congestion notifications.", 0, 63, default=48),
                cnp_priority=integer("The priority of congestion notifications, which goes first.", 0, 7, default=6),
                rdma_percent=integer("What RDMA has of a link that is full (ETS); the rest is everybody else's.", 1, 99, default=50),
                dcbx=choice(
                    "Who owns a NIC's settings: the operating system, or the firmware, which takes a switch's.", "os", "os", "firmware"
                ),
                cable_length_m=integer(CABLE + " The driver's own assumption where it is absent.", 1, 1000),
                dcqcn=keys("Parameters of DCQCN; the firmware's own where they are absent.", **DCQCN),
                switches=named("The switches that a file is written for, by name.", HOST, SWITCH),
            )
        ),
        ("qos", "nccl", "pairs"),
    ),
}
