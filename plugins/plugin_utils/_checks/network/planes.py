# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the network gate on management and data plane: the management of a host must not depend on a rail."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import IPV4_LISTENERS, IPV6_LISTENERS, SSH_PORT, Planes
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_ip, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

_ROUTES = reads.file("/proc/net/route")
declare(
    {
        "planes.route": Check(
            "network",
            "default routes of IPv4: none through a compute rail",
            "`/proc/net/route`: the main table of IPv4",
            "`ip route del default dev IF`; remove the gateway from the file that configures the rail",
            sources=(_ROUTES,),
        ),
        "planes.dns": Check(
            "network",
            "name servers: none is reached through a compute rail",
            "`/etc/resolv.conf`, behind systemd-resolved its own list; `/proc/net/route`",
            "use a name server on the management network; `resolvectl status` shows which interface sets it",
            sources=(
                _ROUTES,
                reads.file("/etc/resolv.conf", absent_means="no name server is configured", garbled_means="no line names one"),
            ),
        ),
        "planes.forward": Check(
            "network",
            "whether a host with compute rails forwards IPv4 packets; only a warning, because container engines enable it",
            "`/proc/sys/net/ipv4/ip_forward`",
            "`sysctl net.ipv4.ip_forward=0`, if no container engine needs it",
            sources=(_ROUTES, reads.file("/proc/sys/net/ipv4/ip_forward")),
        ),
        "planes.ssh": Check(
            "network",
            "the SSH daemon (port 22): it must not listen on addresses of rails alone",
            "`/proc/net/tcp`, `/proc/net/tcp6`",
            "remove the rail's address from `ListenAddress` in `/etc/ssh/sshd_config`, then reload sshd",
            sources=(_ROUTES, reads.file(IPV4_LISTENERS), reads.file(IPV6_LISTENERS, absent_means="the kernel has no IPv6")),
        ),
    }
)

STAGE = "network"
SUBJECT = "management and data plane"


def check_planes(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Findings `planes.route`, `planes.dns`, `planes.forward` and `planes.ssh` of one host."""
    planes = facts.planes
    if planes is None:
        remedy = f"Run `cat /proc/net/route` on {host}."
        checks = {"planes.route": _NO_ROUTE, "planes.dns": _NO_DNS, "planes.forward": _NO_FORWARD, "planes.ssh": _NO_SSH}
        return [Finding(STAGE, check, host, SUBJECT, UNKNOWN, "the routes were not read", words, remedy) for check, words in checks.items()]
    resolved = resolve(rails, facts)
    compute = {name: rail for rail in resolved if rail.rail["role"] == "compute" for name in (*rail.netdevs, rail.interface) if name}
    return [*_route(host, planes, compute), *_dns(host, planes, compute), *_forward(host, planes, compute), *_ssh(host, planes, resolved)]


_NO_ROUTE = "no default route through a compute rail"
_NO_DNS = "no name server behind a compute rail"
_NO_FORWARD = "no forwarding between interfaces"
_NO_SSH = "an SSH daemon on the management address, or on all addresses"


def _route(host: str, planes: Planes, compute: Mapping[str, ResolvedRail]) -> Iterator[Finding]:
    through = [route for route in planes.default_routes if route.netdev in compute]
    if not through:
        seen = ", ".join(route.netdev for route in planes.default_routes) or "no default route"
        yield Finding(STAGE, "planes.route", host, SUBJECT, OK, seen, _NO_ROUTE)
        return
    words = "; ".join(f"a default route through {each.netdev}, which is {compute[each.netdev].name}" for each in through)
    first = through[0]
    remedy = (
        f"1. On {host}, run `ip route del default dev {first.netdev}`. 2. Remove the gateway from the file that configures {first.netdev} "
        f"(`networkctl status {first.netdev}` names it). 3. If the route came by DHCP, set `UseGateway=no` in its section [DHCPv4]."
    )
    yield Finding(STAGE, "planes.route", host, SUBJECT, ERROR, words, _NO_ROUTE, remedy)


def _dns(host: str, planes: Planes, compute: Mapping[str, ResolvedRail]) -> Iterator[Finding]:
    behind = [server for server in planes.name_servers if server.netdev in compute]
    if not behind:
        seen = ", ".join(server.address for server in planes.name_servers) or "no name server"
        yield Finding(STAGE, "planes.dns", host, SUBJECT, OK, seen, _NO_DNS)
        return
    words = "; ".join(f"{each.address} is reached through {each.netdev}, which is {compute[str(each.netdev)].name}" for each in behind)
    remedy = (
        f"1. On {host}, find what sets {behind[0].address}: `resolvectl status`, or `grep nameserver /etc/resolv.conf`. "
        "2. Set a name server on the management network there. Otherwise logins and jobs wait for DNS if the rail fails."
    )
    yield Finding(STAGE, "planes.dns", host, SUBJECT, ERROR, words, _NO_DNS, remedy)


def _forward(host: str, planes: Planes, compute: Mapping[str, ResolvedRail]) -> Iterator[Finding]:
    if planes.forwarding is None:
        remedy = f"Run `sysctl net.ipv4.ip_forward` on {host}."
        yield Finding(STAGE, "planes.forward", host, SUBJECT, UNKNOWN, "net.ipv4.ip_forward was not read", _NO_FORWARD, remedy)
    elif planes.forwarding and compute:
        words = "net.ipv4.ip_forward is 1, so packets can pass between management network and rails"
        remedy = (
            f"1. If {host} runs Docker, Podman or Kubernetes, they need it: drop packets between rails and other interfaces. "
            "2. Otherwise run `sysctl net.ipv4.ip_forward=0` there. 3. Find the file that sets it: `grep -r ip_forward /etc/sysctl.conf "
            "/etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d`."
        )
        yield Finding(STAGE, "planes.forward", host, SUBJECT, WARNING, words, _NO_FORWARD, remedy)
    else:
        yield Finding(STAGE, "planes.forward", host, SUBJECT, OK, "net.ipv4.ip_forward is " + "01"[planes.forwarding], _NO_FORWARD)


def _ssh(host: str, planes: Planes, rails: Sequence[ResolvedRail]) -> Iterator[Finding]:
    if planes.ssh is None:
        remedy = f"Run `cat /proc/net/tcp` on {host}."
        yield Finding(STAGE, "planes.ssh", host, SUBJECT, UNKNOWN, "the listeners were not read", _NO_SSH, remedy)
        return
    addresses = {address: rail for rail in rails if (address := rail_ip(rail.rail)) is not None}
    listening = [address for address in planes.ssh if not ipaddress.ip_address(address).is_loopback]
    on_rails = [address for address in listening if address in addresses]
    if len(on_rails) < len(listening) or not listening:
        seen = ", ".join(listening) or f"nothing listens on port {SSH_PORT}"
        yield Finding(STAGE, "planes.ssh", host, SUBJECT, OK, seen, _NO_SSH)
        return
    words = "; ".join(f"port {SSH_PORT} listens on {address}, the address of {addresses[address].name}" for address in on_rails)
    remedy = (
        f"1. On {host}, remove `ListenAddress {on_rails[0]}` from /etc/ssh/sshd_config and its .d folder, and keep the management address. "
        "2. Check it with `sshd -t`, then run `systemctl reload ssh` (or sshd)."
    )
    yield Finding(STAGE, "planes.ssh", host, SUBJECT, ERROR, words, _NO_SSH, remedy)
