# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start FRR in nodes of a routed Clos network of the lab without its waits at a start. The configuration that then runs is the given one.

FRR 8.4.4 waits twice before the first session, by its log:

* 5 s for route-maps ("released from config-pending hold"), by `bgp route-map delay-timer`. It is 1 s while the file is read, and then the
  default;
* up to 10 s for a router advertisement of the neighbor, whose address BGP unnumbered learns from it. FRR answers a router solicitation at
  once, so each node sends one.

What is measured of a start (`test_1_snippet.py`) uses `lab.clos.route`, which waits.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from lab import clos, namespace
from lab.clos import Clos
from lab.clos_plan import namespace_of

DELAY = "bgp route-map delay-timer"
ALL_ROUTERS = "ff02::2"
#: ICMPv6 type 133 and code 0, a checksum that the kernel fills in, and a reserved word (RFC 4861).
SOLICITATION = bytes((133, 0, 0, 0, 0, 0, 0, 0))
#: A router drops a solicitation that another router may have forwarded.
HOP_LIMIT = 255


def start(network: Clos, texts: Mapping[str, str]) -> None:
    """Start FRR in nodes, or start it again, with these files, as lab.clos.route does."""
    clos.route(network, {node: f"{DELAY} 1\n{text}" for node, text in texts.items()})
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda node: _finish(network, node, texts[node]), texts))
    for node in texts:
        solicit(network, node)


def reload(network: Clos, node: str, text: str = "") -> None:
    """Reload a node with a file as the role does, which keeps good sessions. text: by default that of its present file."""
    file = network.folder.node(node) / "etc/frr.conf"
    text = text or file.read_text()
    file.write_text(f"{DELAY} 1\n{text}")
    network.run(node, "/usr/lib/frr/frr-reload.py", "--reload", "/etc/frr/frr.conf")
    _finish(network, node, text)


def _finish(network: Clos, node: str, text: str) -> None:
    (network.folder.node(node) / "etc/frr.conf").write_text(text)
    network.run(node, "vtysh", "-c", "configure terminal", "-c", f"no {DELAY}")


def solicit(network: Clos, node: str) -> None:
    """Request a router advertisement at each port of a node. A port that cannot send is left out."""
    ports = [port for cable in network.shape.cables for end, port in (cable.a, cable.b) if end == node]

    def send() -> None:
        with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as raw:
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, HOP_LIMIT)
            for port in ports:
                try:
                    raw.sendto(SOLICITATION, (ALL_ROUTERS, 0, 0, socket.if_nametoindex(port)))
                except OSError:
                    continue

    namespace.inside(namespace_of(network.name, node), send)
