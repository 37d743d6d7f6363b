# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's own hash of ports: the busiest of two spines has the share that the forecast of hashed paths expects."""

from __future__ import annotations

import json
import math
import random
import sys

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.hashed import forecast
from lab.clos import Clos
from tests.verify.clos import SETTLED, address_hosts, plan_of

#: Sends packets of each flow, a source port each; the other end need not listen.
SEND = """
import socket, sys
for port in map(int, sys.argv[2:]):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", port))
    for _count in range(int(sys.argv[1])):
        s.sendto(bytes(64), ("10.1.1.67", 4791))
    s.close()
"""
DRAWS, PACKETS = 16, 1600


def sent(network: Clos) -> list[int]:
    """Return the packets that leaf1 has sent to each spine so far."""
    links = json.loads(network.run("leaf1", "ip", "-j", "-s", "link", "show"))
    return [next(link["stats64"]["tx"]["packets"] for link in links if link["ifname"] == port) for port in ("swp1", "swp2")]


@pytest.mark.parametrize("flows", [1, 4, 64])
def test_the_busiest_spine_has_the_forecast_share(routed: Clos, flows: int) -> None:
    address_hosts(routed, plan_of(routed))
    # The same hash in each run, from Linux 6.11 on.
    routed.run("leaf1", "sysctl", "-qw", "net.ipv4.fib_multipath_hash_seed=7", check=False)
    draw, shares = random.Random(flows), []
    for _draw in range(DRAWS):
        before = sent(routed)
        routed.run("host1", sys.executable, "-c", SEND, str(PACKETS // flows), *map(str, draw.sample(range(20000, 60000), flows)))
        more = [after - was for after, was in zip(sent(routed), before, strict=True)]
        assert sum(more) >= PACKETS
        shares.append(max(more) / sum(more))
    mean, expected = sum(shares) / DRAWS, forecast(2, flows).largest_share
    chances = [math.comb(flows, load) / 2**flows for load in range(flows + 1)]
    spread = math.sqrt(sum(chance * (max(load, flows - load) / flows - expected) ** 2 for load, chance in enumerate(chances)))
    print(f"{flows} flows: the busiest spine had {mean:.3f} of the packets, forecast {expected:.3f}")
    # BGP and BFD send some packets too: less than 1 %.
    assert abs(mean - expected) <= 3 * spread / math.sqrt(DRAWS) + 0.01
    SETTLED.add(routed.name)
