# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for an Ethernet plane whose switches route: leaves and spines that speak BGP on unnumbered links (RFC 7938)."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    HOST,
    IPV4_SUBNET,
    choice,
    flag,
    integer,
    keys,
    matching,
    named,
    optional,
    text,
)

#: The first and last ASN for private use of 16 and of 32 bits (RFC 6996).
PRIVATE_16 = (64512, 65534)
PRIVATE_32 = (4200000000, 4294967294)
#: The value of net.ipv4.fib_multipath_hash_policy (Linux, Documentation/networking/ip-sysctl.rst).
HASH_POLICIES = {"l4": 1, "l3": 0}

#: The forms of a switch's configuration; plugin_utils/_fabric/routing has a renderer for each.
SYNTAXES = ("frr", "nvue", "sonic")
#: The most paths of `multipaths ebgp` in NVUE, and in this intent.
MOST_NVUE_PATHS, MOST_PATHS = 128, 256
PORT_PREFIX = matching(r"[A-Za-z][A-Za-z0-9_-]{0,10}", "letters, digits, _ and -, at most 11")
MOST_LANES = 16

ROUTING = optional(
    keys(
        "The switches of this Ethernet plane route between their ports with BGP ([the routed fabric](routed.md)). The switches and their "
        "cables are those of `plan`. `rdma.cluster.plan` writes the configuration of each switch.",
        kind=choice(
            "`bgp_unnumbered`: eBGP between leaves and spines by the IPv6 link-local addresses of their ports.",
            "bgp_unnumbered",
            "bgp_unnumbered",
        ),
        asn_base=integer(
            "The ASN of the spines. Leaf number N has `asn_base` + 100 + N. With cores, the spines of pod P have `asn_base` + P - 1, and "
            "the cores `asn_base` + 64. All must be for private use (64512 to 65534, or 4200000000 to 4294967294).",
            PRIVATE_16[0],
            PRIVATE_32[1],
            default=PRIVATE_32[0],
        ),
        spine_asn=choice(
            "`shared`: all spines of a pod have one ASN, so no route passes two of them, and all cores have one; `own`: spine number N has "
            "`asn_base` + N, and core number N has `asn_base` + 64 + N.",
            "shared",
            "shared",
            "own",
        ),
        loopbacks=text("The pool of the switches' loopback addresses, one for each switch.", IPV4_SUBNET, required=True),
        host_subnets=text(
            "The pool of the hosts' addresses. Each leaf has one subnet of it, and each of its host ports a /31 in that.",
            IPV4_SUBNET,
            required=True,
        ),
        leaf_prefix_length=integer("The prefix length of a leaf's subnet.", 16, 30, default=24),
        port_prefix=text(
            "The name of a switch's port without its number in `plan`: with `swp`, port 33 is `swp33`.", PORT_PREFIX, default="swp"
        ),
        port_lanes=integer(
            "For SONiC, which names a port by its first lane: with 8, port 3 is `Ethernet16`. Without it, by its number in `plan`.",
            1,
            MOST_LANES,
        ),
        syntax=choice(
            "The configuration of the switches: `frr`, the files of FRR for Linux switches, which `rdma.cluster.routed` can apply; `nvue`, "
            "commands for Cumulus Linux; `sonic`, parts of `config_db.json` and `frr.conf`. Your network team applies the last two.",
            *SYNTAXES[:1],
            *SYNTAXES,
        ),
        switches=named(
            "Switches that differ from the plane, by their name in `plan`.",
            HOST,
            keys(
                "A switch that differs from the plane.",
                syntax=choice("As `syntax` of the plane.", None, *SYNTAXES),
                port_prefix=text("As `port_prefix` of the plane.", PORT_PREFIX),
                port_lanes=integer("As `port_lanes` of the plane.", 1, MOST_LANES),
            ),
        ),
        hosts_peer=flag(
            "The hosts of the plane speak BGP with their leaves too ([hosts that speak BGP](routed.md#hosts-that-speak-bgp)). Each "
            "announces the addresses of its rails and nothing else. Its ASN is `asn_base` + 1000000 + the number of its first /31 "
            "in `host_subnets`.",
            False,
        ),
        bfd=flag("Detect a silent link in less than 1 s by BFD. Without it, BGP notices after 9 s.", True),
        maximum_paths=integer("Maximum number of equal paths to one destination.", 1, MOST_PATHS, default=64),
        hash_policy=choice(
            "What chooses the path of a packet: `l4`, addresses and ports, so that the flows of one pair of hosts use all spines; `l3`, "
            "addresses alone, so that all flows of a pair use one spine.",
            "l4",
            *HASH_POLICIES,
        ),
    )
)
