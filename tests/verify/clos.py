# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A routed Clos network of the lab under our plan: its configurations, the readings of its switches, and what the checks say of them."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import RoutingIntent
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import RouterState, router_state
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.findings import check_routers
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import render
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr_host import render_host
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan
from lab import clos_plan
from lab.clos import Clos
from lab.clos_plan import namespace_of

ROOT = Path(__file__).parents[2]
SETTINGS: RoutingIntent = {
    "kind": "bgp_unnumbered", "asn_base": 4200000000, "spine_asn": "own", "loopbacks": "10.0.0.0/24", "host_subnets": "10.1.0.0/16",
    "leaf_prefix_length": 24, "port_prefix": "swp", "port_lanes": None, "syntax": "frr",
    "switches": {}, "hosts_peer": False, "bfd": True, "maximum_paths": 64, "hash_policy": "l4",
}  # fmt: skip
#: Inside a node: the reader as it runs on a switch. Each line of its input is answered by a line of JSON.
READ = """
import json, sys
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import read_router
for line in sys.stdin:
    print(json.dumps(read_router(SysRoot(), SubprocessRunner())), flush=True)
"""
#: The readers that run, by what they are inside of. A start takes longer than the reading.
READERS: dict[tuple[str, ...], subprocess.Popen[str]] = {}
#: A datagram that fills the MTU of 9000, and must not be fragmented (IP_MTU_DISCOVER: IP_PMTUDISC_DO).
RECEIVE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(8)
s.bind(("", 4791))
print("ready", flush=True)
data, (sender, _port) = s.recvfrom(65535)
print(sender, len(data))
"""
SEND = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 10, 2)
s.sendto(bytes(8972), ("10.1.1.67", 4791))
"""
#: Readings side by side. They wait for the daemons most of the time.
WORKERS = 8
MANAGEMENT = "172.31.0.0/16"
#: The networks that the last test has left as planned, by name.
SETTLED: set[str] = set()


def plan_of(clos: Clos, **changes: Any) -> RoutedPlane:
    settings: Any = {**SETTINGS, **changes}
    return make_plan("fab", settings, parse_plan(clos_plan.cabling(clos.shape)))


def texts(plane: RoutedPlane) -> dict[str, str]:
    """Return switch, or host that speaks BGP → frr.conf."""
    switches = {name: render(plane, router) for name, router in plane.routers.items()}
    return {**switches, **{name: render_host([plane], name) for name in plane.hosts}}


def read(clos: Clos, node: str) -> dict[str, Any]:
    """Return the answer of a switch or a host, read inside it."""
    reader = _reader(clos, node)
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write("\n")
    reader.stdin.flush()
    answer: dict[str, Any] = json.loads(reader.stdout.readline())
    return answer


@atexit.register
def _end_readers() -> None:
    for reader in READERS.values():
        reader.communicate()


def _reader(clos: Clos, node: str) -> subprocess.Popen[str]:
    """Return the reader inside a node, started if it does not run. It ends with the test run."""
    init = clos.folder.node(node) / "init.pid"
    network = (Path("/run/netns") / namespace_of(clos.name, node)).stat().st_ino
    place = (clos.name, node, str(network), init.read_text() if init.exists() else "")
    if place not in READERS or READERS[place].poll() is not None:
        words = clos.argv(node, ["env", f"PYTHONPATH={ROOT}/.venv/collections", sys.executable, "-c", READ])
        READERS[place] = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return READERS[place]


def findings(clos: Clos, plane: RoutedPlane, mtu_bytes: int | None = 9000) -> list[tuple[str, str, str]]:
    """Return (status, subject, observed) of each finding."""
    with ThreadPoolExecutor(WORKERS) as pool:
        states = dict(zip(plane.speakers, pool.map(lambda node: _state(clos, node), plane.speakers), strict=True))
    return [(each.status, each.subject, each.observed) for each in check_routers(plane, states, mtu_bytes, [MANAGEMENT])]


def _state(clos: Clos, node: str) -> RouterState | str:
    try:
        return router_state(read(clos, node))
    except ParseError as error:
        return str(error)


def is_clean(found: list[tuple[str, str, str]]) -> bool:
    return [status for status, _subject, _observed in found] == ["ok"]


def until(condition: Callable[[], Any], seconds: float, every_seconds: float = 0.1) -> float:
    """Return after how many seconds a condition became true. Fails the test if it did not."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"not within {seconds:.0f} s"
        time.sleep(every_seconds)
    return time.monotonic() - started


def settle(clos: Clos, seconds: float = 20) -> None:
    """Wait until the network is as planned: every session is up, and there is no finding. Fails the test if it is not in time."""
    until(lambda: is_clean(findings(clos, plan_of(clos))), seconds, 0.3)
    SETTLED.add(clos.name)


def address_hosts(clos: Clos, plane: RoutedPlane) -> None:
    """Give each host the address of its rails. Without BGP on the hosts, they have a route to the others too."""
    for router in plane.routers.values():
        for port in router.host_ports:
            clos.run(port.host, "ip", "address", "replace", port.host_address, "dev", port.device)
            if plane.hosts:
                clos.run(port.host, "ip", "route", "flush", "exact", "10.1.0.0/16")
            else:
                clos.run(port.host, "ip", "route", "replace", "10.1.0.0/16", "via", port.address.partition("/")[0])


def datagram(clos: Clos) -> str:
    """Send a datagram that fills the MTU from host1 to host2. Returns the sender and the size that host2 has seen."""
    with subprocess.Popen(clos.argv("host2", [sys.executable, "-c", RECEIVE]), stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        clos.run("host1", sys.executable, "-c", SEND)
        return receiver.communicate(timeout=10)[0]


def summary(clos: Clos, switch: str) -> Mapping[str, Any]:
    """Return the peers of a switch, as vtysh prints them."""
    peers: Mapping[str, Any] = json.loads(clos.run(switch, "vtysh", "-c", "show bgp summary json")).get("ipv4Unicast", {}).get("peers", {})
    return peers


def are_established(clos: Clos, plane: RoutedPlane) -> bool:
    """Return whether each planned session is up."""
    with ThreadPoolExecutor(WORKERS) as pool:
        seen = dict(zip(plane.speakers, pool.map(lambda node: summary(clos, node), plane.speakers), strict=True))
    return all(
        seen[name].get(each.port, {}).get("state") == "Established" for name, router in plane.speakers.items() for each in router.sessions
    )


def paths(clos: Clos, switch: str, prefix: str) -> list[str]:
    """Return the interfaces by which the kernel reaches a prefix, by name."""
    routes = json.loads(clos.run(switch, "ip", "-j", "route", "show", prefix) or "[]")
    return sorted(hop["dev"] for route in routes for hop in route.get("nexthops", [route]) if "dev" in hop)
