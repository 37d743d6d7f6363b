# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schema of rdma_plan, the request for the plan of a fabric that is not bought yet."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    FILE,
    NAME,
    Key,
    choice,
    flag,
    integer,
    keys,
    named,
    number,
    text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import NUMBERS

FABRICS = ("infiniband", "ethernet")
TOPOLOGIES = ("auto", "single", "leaf_spine", "fat_tree", "rail", "rail_planes", "mesh", "ring", "dragonfly_plus")
#: The most hosts of a plan. A plan of 32,768 hosts with one NIC takes seconds.
MOST_HOSTS = 65536

_PORTS = integer("Physical ports.", 2, 1024)
_GBPS = number("Rate of a port, in 10^9 bit/s.", 1, 10000)
_PRICE = number(
    "Price of one switch, in any currency. Prices decide if those of `cables.prices` are set too, else the number of switches.", 0
)
_WATTS = number("Typical power of one switch, in W.", 0)
MODEL = keys(
    "A model of switch.",
    ports=replace(_PORTS, required=True),
    gbps=replace(_GBPS, required=True),
    breakout=Key((list,), "Numbers of parts into which a port can be split.", each=integer("Parts.", 2, 8)),
    fabric=choice("What it switches.", "infiniband", *FABRICS),
    price=_PRICE,
    watts=_WATTS,
    latency_ns=number("Latency from port to port, in ns.", 0),
)
PLAN = keys(
    "The request for a plan.",
    hosts=integer("Hosts.", 2, MOST_HOSTS, required=True),
    hosts_later=integer("Later number of hosts: the plan holds for them without moving a cable. Default: `hosts`.", 2, MOST_HOSTS),
    gpus_per_host=integer("GPUs of a host.", 0, 64, default=8),
    nics_per_host=integer("Compute NIC ports of a host: its rails.", 1, 64, default=8),
    nic_gbps=number("Rate of a NIC port, in 10^9 bit/s.", 1, 10000, default=400),
    topology=choice(
        "Family of the fabric. `auto`: the cheapest one that holds all bounds.",
        "auto",
        *TOPOLOGIES,
    ),
    fabric=choice("What the switches switch.", "infiniband", *FABRICS),
    switch=keys(
        "The switch, by `model`, or by `ports` and `gbps`.",
        model=text("A model of [the catalog](plan.md#switch-models) or of `models`."),
        ports=_PORTS,
        gbps=_GBPS,
        breakout=integer(
            "Parts into which each port to hosts is split. Default: the number that makes the parts as fast as a NIC, if the model has it, "
            "else 1.",
            1,
            8,
        ),
        uplink_breakout=integer("Parts into which each port between switches is split.", 1, 8, default=1),
        price=_PRICE,
        watts=_WATTS,
    ),
    models=named("More models of switches, or other values of known ones.", NAME, MODEL),
    oversubscription=number("Bandwidth of the NICs of a leaf / bandwidth of its uplinks, at most 2.", 1, default=1.0),
    spare_ports=integer("Ports that stay free on each leaf.", 0, 1023, default=0),
    survive=keys(
        "Failures that the fabric survives.",
        spines=integer(
            "Failed switches above the leaves, at the same time. With 0, a small plane may have a single spine.", 0, 8, default=0
        ),
        links=integer("Failed cables between switches, in addition.", 0, 64, default=0),
        min_bisection=number("Share of the requested bisection that then remains in each plane.", 0, 1, default=0.5),
    ),
    hosts_per_rack=integer("Hosts of a rack.", 1, 256, default=4),
    room=keys(
        "The room, for the lengths of the cables ([the model](plan.md#racks-and-cable-lengths)).",
        racks_per_row=integer("Racks with hosts in a row.", 1, 1000, default=8),
        rack_width_m=number("Width of a rack, in m.", 0.1, 5, default=0.6),
        row_pitch_m=number("Distance from a row to the next one, in m.", 0.5, 100, default=3.0),
        slack_m=number("Slack of a cable, both ends together, in m.", 0, 20, default=1.0),
    ),
    cables=keys(
        "Cables.",
        dac_max_m=number("Longest copper cable, in m.", 0, 100, default=3),
        prices=keys(
            "Prices of one cable or transceiver.",
            dac=number("Copper cable.", 0),
            aoc=number("Active optical cable.", 0),
            optic=number("Transceiver.", 0),
        ),
    ),
    **NUMBERS,
    existing=text(
        "`plan/topology.json` of a fabric that exists: the plan keeps all its cables. `latest`: of the newest earlier run that has planned "
        "a fabric.",
        FILE,
    ),
    from_fabric=flag(
        "Compare the fabrics that the fabric stage has stored with the best plan for their hosts and switches. `hosts`, `nics_per_host`, "
        "`nic_gbps`, `fabric` and `switch` are those found, unless they are given.",
        False,
    ),
)
