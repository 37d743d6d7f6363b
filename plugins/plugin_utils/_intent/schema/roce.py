# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for RoCE: how it is separated from other traffic, on NICs and on switches."""

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

#: The formats of a switch's file; plugin_utils/_roce/switch_config.py has a renderer for each.
SYNTAXES = ("nvue", "table")
PORTS = matching(r"[A-Za-z][A-Za-z0-9/:.-]{0,62}[A-Za-z0-9]", "a switch port, or a range of ports (swp1-32, swp33s0-3, Ethernet1/1)")
#: A 32-bit field in the kernel's include/linux/mlx5/mlx5_ifc.h (cong_control_r_roce_ecn_rp, _np).
U32 = 2**32 - 1


def _dcqcn(meaning: str, maximum: int = U32, minimum: int = 0) -> Key:
    return integer(meaning, minimum, maximum)


#: Parameters of DCQCN, by the names of OFED's files in /sys/class/net/IF/ecn. The 10-bit values, percentages and units are from NVIDIA's
#: page "DCQCN CC Parameters" (DOCA 3.4).
DCQCN: dict[str, Key] = {
    "min_time_between_cnps": _dcqcn("Minimum time between two CNPs, in µs."),
    "clamp_tgt_rate": _dcqcn("1: each rate reduction also lowers the target rate to the current rate.", 1),
    "clamp_tgt_rate_after_time_inc": _dcqcn("1: the first rate reduction after an increase by the timer does so too.", 1),
    "rpg_time_reset": _dcqcn("Timer threshold: time between two rate increases, in µs."),
    "rpg_byte_reset": _dcqcn("Byte threshold: data between two rate increases, in the firmware's units."),
    "rpg_threshold": _dcqcn("Number of expirations of timer or byte counter before the next phase of increases begins."),
    "rpg_max_rate": _dcqcn("Rate above which there is no limit, in Mb/s; 0 means the port's rate."),
    "rpg_ai_rate": _dcqcn("Step of an additive increase, in Mb/s."),
    "rpg_hai_rate": _dcqcn("Step of a hyper increase, in Mb/s."),
    "rpg_gd": _dcqcn("Shift from alpha to the part of the rate that a rate reduction removes."),
    "rpg_min_dec_fac": _dcqcn("Minimum part of the rate that a rate reduction leaves, in percent.", 100),
    "rpg_min_rate": _dcqcn("Rate below which there is no rate reduction, in Mb/s."),
    "rate_to_set_on_first_cnp": _dcqcn("Current and target rate after a flow's first CNP, in Mb/s; 0 is 85 % of the line rate."),
    "dce_tcp_g": _dcqcn("Weight of the old alpha in an update, in 1/1024.", 1023),
    "dce_tcp_rtt": _dcqcn("Time between two updates of alpha, in µs."),
    "rate_reduce_monitor_period": _dcqcn("Minimum time between two rate reductions, in µs."),
    "initial_alpha_value": _dcqcn("Alpha at a flow's first CNP, in 1/1024.", 1023),
}
CABLE = "Length of the longest cable, in meters. The headroom buffer holds the data that is in flight when a pause begins."
SWITCH = keys(
    "A switch.",
    syntax=choice("Syntax of the switch's file: `nvue` for Cumulus Linux, or a plain `table` for any other switch.", "table", *SYNTAXES),
    ports=Key((list,), "Ports of the switch that carry RDMA.", required=True, each=text("Ports.", PORTS)),
    mtu_bytes=integer("MTU of these ports. 9216 is NVUE's default and leaves room for encapsulation.", 1280, 65535, default=9216),
    cable_length_m=integer(CABLE + " Without it, `rdma_roce.cable_length_m`.", 1, 1000),
    rate_gbps=number("Rate of these ports, in 10^9 bit/s. Without it, the rate of the hosts' RoCE rails.", 1, 10000),
)
SECTIONS: dict[str, Section] = {
    "rdma_roce": Section(
        optional(
            keys(
                "Separation of RoCE from other traffic, the same on every NIC and switch port ([quality of service](qos.md)). "
                "Without it, nothing is marked and nothing is set.",
                priority=integer("Priority of RDMA. 0 is not allowed: other traffic uses it.", 0, 7, default=3),
                dscp=integer("DSCP of RDMA.", 0, 63, default=26),
                pfc=flag("Enable priority flow control: the priority of RDMA is lossless.", True),
                ecn=flag("Mark congestion, and slow down senders (DCQCN).", True),
                cnp_dscp=integer("DSCP of congestion notification packets (CNPs).", 0, 63, default=48),
                cnp_priority=integer("Priority of CNPs, which are sent before other traffic.", 0, 7, default=6),
                rdma_percent=integer("Share of RDMA on a full link (ETS). The rest is for other traffic.", 1, 99, default=50),
                dcbx=choice(
                    "Owner of a NIC's settings: the operating system, or the firmware, which applies those of the switch.",
                    "os",
                    "os",
                    "firmware",
                ),
                cable_length_m=integer(CABLE + " Without it, the driver's own assumption.", 1, 1000),
                dcqcn=keys("Parameters of DCQCN. Without a key, the firmware's default.", **DCQCN),
                switches=named("Switches for which a file is written, by name.", HOST, SWITCH),
            )
        ),
        ("qos", "nccl", "pairs"),
    ),
}
