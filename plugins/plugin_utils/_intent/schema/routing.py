# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for an Ethernet plane whose switches route: leaves and spines that speak BGP on unnumbered links (RFC 7938)."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    IPV4_SUBNET,
    choice,
    flag,
    integer,
    keys,
    matching,
    optional,
    text,
)

#: The first and last ASN for private use of 16 and of 32 bits (RFC 6996).
PRIVATE_16 = (64512, 65534)
PRIVATE_32 = (4200000000, 4294967294)
#: The value of net.ipv4.fib_multipath_hash_policy (Linux, Documentation/networking/ip-sysctl.rst).
HASH_POLICIES = {"l4": 1, "l3": 0}

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
            "The ASN of the spines. Leaf number N has `asn_base` + 100 + N. All must be for private use (64512 to 65534, or "
            "4200000000 to 4294967294).",
            PRIVATE_16[0],
            PRIVATE_32[1],
            default=PRIVATE_32[0],
        ),
        spine_asn=choice(
            "`shared`: all spines have one ASN, so no route passes two spines; `own`: spine number N has `asn_base` + N.",
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
            "The name of a switch's port without its number in `plan`: with `swp`, port 33 is `swp33`.",
            matching(r"[A-Za-z][A-Za-z0-9_-]{0,10}", "letters, digits, _ and -, at most 11"),
            default="swp",
        ),
        bfd=flag("Detect a silent link in less than 1 s by BFD. Without it, BGP notices after 9 s.", True),
        maximum_paths=integer("Maximum number of equal paths to one destination.", 1, 256, default=64),
        hash_policy=choice(
            "What chooses the path of a packet: `l4`, addresses and ports, so that the flows of one pair of hosts use all spines; `l3`, "
            "addresses alone, so that all flows of a pair use one spine.",
            "l4",
            *HASH_POLICIES,
        ),
    )
)
