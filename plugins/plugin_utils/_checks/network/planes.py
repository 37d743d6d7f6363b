# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the network gate on management and data plane: the management of a host must not depend on a rail."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.services import NFS, is_address
from ansible_collections.rdma.cluster.plugins.module_utils._host.sockets import Listener
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import (
    IPV4_LISTENERS,
    IPV6_LISTENERS,
    SSH_PORT,
    DefaultRoute,
    Planes,
    Service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_addresses, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import one_network, rail_under

_ROUTES = reads.file("/proc/net/route")
_WAY = reads.kernel("RTM_GETROUTE")
_LISTENERS = (reads.file(IPV4_LISTENERS), reads.file(IPV6_LISTENERS, absent_means="the kernel has no IPv6"))
declare(
    {
        "planes.route": Check(
            "network",
            "default routes of IPv4 and IPv6 in the main table: none through a compute rail",
            "`/proc/net/route` for IPv4, rtnetlink for IPv6",
            "`ip route del default dev IF`; remove the gateway from the file that configures the rail",
            sources=(_ROUTES, _WAY),
        ),
        "planes.dns": Check(
            "network",
            "name servers: none is reached through a compute rail",
            "`/etc/resolv.conf`, behind systemd-resolved its own list; the kernel's route to each address",
            "use a name server on the management network; `resolvectl status` shows which interface sets it",
            sources=(
                _ROUTES,
                _WAY,
                reads.file("/etc/resolv.conf", absent_means="no name server is configured", garbled_means="no line names one"),
            ),
        ),
        "planes.services": Check(
            "network",
            "time servers of chrony or systemd-timesyncd, syslog servers of rsyslog, and Ansible's control node: none is reached through a "
            "compute rail. Names of servers are not resolved",
            "the files of chrony, systemd-timesyncd and rsyslog, and the SSH session; the kernel's route to each address",
            "use a server on the management network",
            sources=(
                _ROUTES,
                _WAY,
                reads.file("/etc/chrony/chrony.conf", absent_means="chrony is not installed", garbled_means="no line names a server"),
            ),
        ),
        "planes.nfs": Check(
            "network",
            "servers of mounted NFS file systems: a warning if one is reached through a compute rail",
            "`/proc/mounts`; the kernel's route to each address",
            "mount from an address on the management network, or plan the rail with `role: storage`",
            sources=(
                _ROUTES,
                _WAY,
                reads.file("/proc/mounts", absent_means="nothing is mounted", garbled_means="no line shows an NFS mount"),
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
            sources=(_ROUTES, *_LISTENERS),
        ),
        "planes.listeners": Check(
            "network",
            "sshd on other ports, slurmd, kubelet, node_exporter and similar daemons: an error if one listens on addresses of rails alone, "
            "a warning if only one of its ports does",
            "`/proc/net/tcp`, `/proc/net/tcp6`; the owner of each socket in `/proc/PID/fd`",
            "let the daemon listen on the management address, or on all addresses",
            sources=(_ROUTES, *_LISTENERS),
        ),
    }
)

STAGE = "network"
SUBJECT = "management and data plane"
#: Check → what is expected.
EXPECTED = {
    "planes.route": "no default route through a compute rail",
    "planes.dns": "no name server behind a compute rail",
    "planes.services": "no server of the management behind a compute rail",
    "planes.nfs": "no NFS server behind a compute rail",
    "planes.forward": "no forwarding between interfaces",
    "planes.ssh": "an SSH daemon on the management address, or on all addresses",
    "planes.listeners": "daemons on the management address, or on all addresses",
}


@dataclass(frozen=True)
class _Host:
    """A host, with the rails of its plan as its hardware has them."""

    name: str
    facts: Facts
    planes: Planes
    rails: Sequence[ResolvedRail]

    def compute_rail(self, netdev: str | None) -> ResolvedRail | None:
        """Return the compute rail that an interface uses; None for any other interface."""
        rail = rail_under(netdev, self.rails, self.facts)
        return rail if rail is not None and rail.rail["role"] == "compute" else None

    def finding(self, check: str, status: str, seen: str, remedy: str = "", subject: str = SUBJECT) -> Finding:
        return Finding(STAGE, check, self.name, subject, status, seen, EXPECTED[check], remedy)


def check_planes(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings of all checks of EXPECTED on one host. If the host has one network for everything, `planes.management` alone reports it."""
    planes = facts.planes
    if planes is None:
        remedy = f"Run `cat /proc/net/route` on {host}."
        return [
            Finding(STAGE, check, host, SUBJECT, UNKNOWN, "the routes were not read", words, remedy) for check, words in EXPECTED.items()
        ]
    rail = one_network(intent, facts)
    if rail is not None:
        seen = f"the host has one network for everything, {rail.name}: see planes.management"
        return [Finding(STAGE, check, host, SUBJECT, NOT_APPLICABLE, seen, words) for check, words in EXPECTED.items()]
    of = _Host(host, facts, planes, resolve(intent["rails"], facts))
    return [*_route(of), *_dns(of), *_services(of), *_nfs(of), *_forward(of), *_ssh(of), *_listening(of)]


def _no_way(of: _Host, check: str) -> Finding:
    seen = f"the kernel did not answer how servers are reached: {of.planes.way_error or 'not read'}"
    return of.finding(check, UNKNOWN, seen, f"Run `ip route get 192.0.2.1` on {of.name}, and fix its error.")


def _route(of: _Host) -> Iterator[Finding]:
    through = [(route, rail) for route in of.planes.default_routes if (rail := of.compute_rail(route.netdev))]
    if not through:
        if of.planes.way_error is not None:
            yield _no_way(of, "planes.route")
            return
        seen = ", ".join(dict.fromkeys(route.netdev for route in of.planes.default_routes)) or "no default route"
        yield of.finding("planes.route", OK, seen)
        return
    words = "; ".join(f"a default route{_version(route)} through {route.netdev}, which is {rail.name}" for route, rail in through)
    first = through[0][0]
    command, source = ("ip", "by DHCP, set `UseGateway=no` in its section [DHCPv4]")
    if first.version == 6:
        command, source = "ip -6", "by a router's advertisement, set `IPv6AcceptRA=no` there"
    remedy = (
        f"1. On {of.name}, run `{command} route del default dev {first.netdev}`. 2. Remove the gateway from the file that configures "
        f"{first.netdev} (`networkctl status {first.netdev}` names it). 3. If the route came {source}."
    )
    yield of.finding("planes.route", ERROR, words, remedy)


def _version(route: DefaultRoute) -> str:
    return " of IPv6" if route.version == 6 else ""


def _dns(of: _Host) -> Iterator[Finding]:
    servers = of.planes.name_servers
    if servers is None:
        yield _no_way(of, "planes.dns")
        return
    behind = [(server, rail) for server in servers if (rail := of.compute_rail(server.netdev))]
    if behind:
        words = "; ".join(f"{each.address} is reached through {each.netdev}, which is {rail.name}" for each, rail in behind)
        remedy = (
            f"1. On {of.name}, find what sets {behind[0][0].address}: `resolvectl status`, or `grep nameserver /etc/resolv.conf`. "
            "2. Set a name server on the management network there. Otherwise logins and jobs wait for DNS if the rail fails."
        )
        yield of.finding("planes.dns", ERROR, words, remedy)
        return
    if servers and all(ipaddress.ip_address(each.address.partition("%")[0]).is_loopback for each in servers):
        seen = f"a resolver on the host itself answers at {servers[0].address}; the servers that it asks are not known"
        yield of.finding("planes.dns", NOT_APPLICABLE, seen)
        return
    yield of.finding("planes.dns", OK, ", ".join(server.address for server in servers) or "no name server")


def _services(of: _Host) -> Iterator[Finding]:
    yield from _servers(of, "planes.services", [each for each in of.planes.services or () if each.kind != NFS], ERROR)


def _nfs(of: _Host) -> Iterator[Finding]:
    yield from _servers(of, "planes.nfs", [each for each in of.planes.services or () if each.kind == NFS], WARNING)


def _servers(of: _Host, check: str, services: Sequence[Service], status: str) -> Iterator[Finding]:
    """Yield a finding for each service behind a compute rail, else one for all of them."""
    if of.planes.services is None:
        yield _no_way(of, check)
        return
    behind = [(each, rail) for each in services if (rail := of.compute_rail(each.netdev))]
    for each, rail in behind:
        words = f"{each.address} is reached through {each.netdev}, which is {rail.name}"
        if each.kind == NFS:
            remedy = (
                f"1. Mount the file system from an address of the server on another network; {each.where} on {of.name} shows it. "
                f"2. If {rail.name} is for storage, set `role: storage` for it in rdma_rails."
            )
        else:
            remedy = (
                f"1. On {of.name}, run `ip route get {each.address}`. 2. Use an address on the management network ({each.where} names "
                f"{each.address}), or remove the route through {each.netdev}."
            )
        yield of.finding(check, status, words, remedy, subject=f"{each.kind} {each.address}")
    if not behind:
        yield of.finding(check, OK, ", ".join(_service_words(each) for each in services) or "none is configured")


def _service_words(service: Service) -> str:
    return f"{service.kind} {service.address}" + ("" if is_address(service.address) else " (a name, not resolved)")


def _forward(of: _Host) -> Iterator[Finding]:
    forwarding, check = of.planes.forwarding, "planes.forward"
    if forwarding is None:
        yield of.finding(check, UNKNOWN, "net.ipv4.ip_forward was not read", f"Run `sysctl net.ipv4.ip_forward` on {of.name}.")
    elif forwarding and any(rail.netdev is not None and rail.rail["role"] == "compute" for rail in of.rails):
        words = "net.ipv4.ip_forward is 1, so packets can pass between management network and rails"
        remedy = (
            f"1. If {of.name} runs Docker, Podman or Kubernetes, they need it: drop packets between rails and other interfaces. "
            "2. Otherwise run `sysctl net.ipv4.ip_forward=0` there. 3. Find the file that sets it: `grep -r ip_forward /etc/sysctl.conf "
            "/etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d`."
        )
        yield of.finding(check, WARNING, words, remedy)
    else:
        yield of.finding(check, OK, "net.ipv4.ip_forward is " + "01"[forwarding])


def _rail_of(of: _Host, address: str) -> ResolvedRail | None:
    """Return the rail that has an address, by the plan or by the host's own interfaces."""
    planned = next((rail for rail in of.rails if address in map(ip_of, rail_addresses(rail.rail))), None)
    return planned or next(
        (rail for each in of.planes.listeners or () if each.address == address and (rail := rail_under(each.netdev, of.rails, of.facts))),
        None,
    )


def _ssh(of: _Host) -> Iterator[Finding]:
    if of.planes.ssh is None:
        yield of.finding("planes.ssh", UNKNOWN, "the listeners were not read", f"Run `cat /proc/net/tcp` on {of.name}.")
        return
    listening = [address for address in of.planes.ssh if not ipaddress.ip_address(address).is_loopback]
    on_rails = [(address, rail) for address in listening if (rail := _rail_of(of, address))]
    if len(on_rails) < len(listening) or not listening:
        yield of.finding("planes.ssh", OK, ", ".join(listening) or f"nothing listens on port {SSH_PORT}")
        return
    words = "; ".join(f"port {SSH_PORT} listens on {address}, the address of {rail.name}" for address, rail in on_rails)
    remedy = (
        f"1. On {of.name}, remove `ListenAddress {on_rails[0][0]}` from /etc/ssh/sshd_config and its .d folder, and keep the management "
        "address. 2. Check it with `sshd -t`, then run `systemctl reload ssh` (or sshd)."
    )
    yield of.finding("planes.ssh", ERROR, words, remedy)


def _listening(of: _Host) -> Iterator[Finding]:
    """Yield a finding for each daemon and port that only rails reach; port 22 is that of planes.ssh."""
    check, listeners = "planes.listeners", of.planes.listeners
    if listeners is None:
        yield of.finding(check, UNKNOWN, "the listeners, or their owners, were not read", f"Run `ss -tlnp` as root on {of.name}.")
        return
    outside = [each for each in listeners if not ipaddress.ip_address(each.address).is_loopback]
    ports: dict[tuple[str, int], list[Listener]] = {}
    for each in outside:
        ports.setdefault((each.program, each.port), []).append(each)
    rails = {each.address: rail for each in outside if (rail := _rail_of(of, each.address))}
    # A daemon of which one port is reachable on another network can still be managed there.
    reachable = {each.program for each in outside if each.address not in rails}
    found = False
    for (program, port), sockets in ports.items():
        if port == SSH_PORT or any(each.address not in rails for each in sockets):
            continue
        found = True
        words = "; ".join(f"port {port} listens on {each.address}, the address of {rails[each.address].name}" for each in sockets)
        remedy = (
            f"1. On {of.name}, find the address in the configuration of {program}. 2. Set the management address there, and restart it."
        )
        yield of.finding(check, WARNING if program in reachable else ERROR, words, remedy, subject=f"{program}, port {port}")
    if not found:
        yield of.finding(check, OK, _programs(listeners))


def _programs(listeners: Sequence[Listener]) -> str:
    names = sorted({each.program for each in listeners})
    return f"{', '.join(names)}: not on rails alone" if names else "no daemon listens on the address of an interface"
