# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the network gate on addresses: each is only on its rail's interface, and each interface has at most one manager."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of, is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, address_netdev, rail_addresses, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.links import missing_words

declare(
    {
        "network.address": Check(
            "network",
            "addresses of rails and other interfaces, IPv4 and IPv6: each as planned, none in another rail's subnet, and none that failed "
            "duplicate address detection",
            "`ip address show`",
            "`ip addr del`; find what adds it",
            repeats=("intent.nic",),
            sources=(reads.ADDRESSES,),
        ),
        "network.manager": Check(
            "network",
            "the managers of each planned rail's interface: at most one",
            "systemd-networkd's, NetworkManager's and ifupdown's own state in `/run`",
            "`networkctl`; `unmanaged-devices` of NetworkManager, `nmcli device set IF managed no` until a boot; `/etc/network/interfaces`",
            sources=(
                reads.file("/run/systemd/netif/links/*", absent_means="systemd-networkd does not know the interface"),
                reads.file(f"{reads.NET}/ifindex"),
            ),
        ),
    }
)

STAGE = "network"
Address = ipaddress.IPv4Interface | ipaddress.IPv6Interface
#: (status, observed, remedy)
Fault = tuple[str, str, str]
#: Manager → how to make it release an interface; {netdev} is its name.
RELEASE = {
    "NetworkManager": "`nmcli device set {netdev} managed no` until the next boot, and permanently a file in /etc/NetworkManager/conf.d "
    "with the lines `[keyfile]` and `unmanaged-devices=interface-name:{netdev}`",
    "dhclient": "`dhclient -x {netdev}`",
    "dhcpcd": "`dhcpcd -x {netdev}`",
    "ifupdown": "remove its stanza from /etc/network/interfaces",
    "systemd-networkd": "remove its file, which `networkctl status {netdev}` names",
}
#: DHCP clients that a manager starts for its own interfaces: the manager and its client count as one.
CLIENTS = {"ifupdown": {"dhclient", "dhcpcd"}, "NetworkManager": {"dhclient", "dhcpcd"}}


@dataclass(frozen=True)
class Plan:
    """A rail with its planned addresses, that of RDMA first, and the addresses of its interface (None: not known).

    failed: those of the interface that the kernel does not use, because duplicate address detection found them elsewhere.
    """

    rail: ResolvedRail
    planned: list[Address]
    there: list[str] | None
    failed: list[str]

    @property
    def has_address(self) -> bool | None:
        """Whether the interface has the planned address of RDMA, with any prefix; None if it is not known."""
        return self.has(self.planned[0]) if self.planned else None

    def has(self, address: Address) -> bool | None:
        """Whether the interface has an address, with any prefix; None if it is not known."""
        return None if self.there is None else str(address.ip) in map(ip_of, self.there)

    def plans(self, text: str) -> bool:
        """Whether an address is planned for the rail, with any prefix."""
        return ip_of(text) in {str(each.ip) for each in self.planned}

    @property
    def words(self) -> str:
        return ", ".join(map(str, self.planned))


def check_addressing(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Findings `network.address` for each planned rail and each other interface with a wrong address, `network.manager` for each rail.

    A RoCE rail without its address is the error `network.gid`; the same address on another interface is then not a second error.
    """
    plans = [_plan(rail, facts) for rail in resolve(rails, facts)]
    return [
        *(finding for plan in plans for finding in _address(host, plan, plans, facts)),
        *_intruders(host, plans, facts),
        *(_manager(host, plan, facts) for plan in plans),
    ]


def _plan(rail: ResolvedRail, facts: Facts) -> Plan:
    planned = [ipaddress.ip_interface(text) for text in rail_addresses(rail.rail)]
    netdev = address_netdev(rail, facts)
    unread = netdev is None or (netdev.ipv6 is None and any(each.version == 6 for each in planned))
    return Plan(rail, planned, None if netdev is None or unread else netdev.addresses, (netdev.dad_failed or []) if netdev else [])


def _address(host: str, plan: Plan, plans: Sequence[Plan], facts: Facts) -> Iterator[Finding]:
    rail = plan.rail
    expected = f"{plan.words}, and no address in another rail's subnet" if plan.planned else "no address in another rail's subnet"

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "network.address", host, rail.subject, status, observed, expected, remedy)

    if plan.there is None:
        if rail.netdev is None:
            yield finding(NOT_APPLICABLE, "no interface: see driver.nic")
        elif rail.interface not in facts.netdevs:
            yield finding(NOT_APPLICABLE, missing_words(rail, str(rail.interface)))
        else:
            yield finding(UNKNOWN, "the addresses were not read", f"Run `ip -json address show dev {rail.interface}` on {host}.")
        return
    failures = [_failed(host, text, plan) for text in plan.failed]
    if plan.has_address is False and not any(map(plan.plans, plan.failed)):
        remedy = f"Run the network stage for {host}, then check `ip addr show {rail.interface}` there."
        seen = f"{', '.join(plan.there) or 'no address'} on {rail.interface}"
        yield finding(NOT_APPLICABLE, f"{seen}: see network.gid") if _reported_by_gid(plan, facts) else finding(ERROR, seen, remedy)
        return
    others = [fault for text in plan.there if not plan.plans(text) and (fault := _fault(host, text, plan, plans)) is not None]
    faults = [*failures, *_differences(host, plan, plan.there), *others]
    if faults:
        statuses, observed, remedies = zip(*faults, strict=True)
        yield finding(ERROR if ERROR in statuses else WARNING, "; ".join(observed), " ".join(remedies))
    else:
        yield finding(OK, ", ".join(plan.there) or "no address")


def _failed(host: str, text: str, plan: Plan) -> Fault:
    """The fault of an address that failed duplicate address detection: the kernel does not use it, although it may have a GID."""
    remedy = (
        f"1. Find the other host that has {ip_of(text)}: `ip -6 neighbor`, and `network.duplicate`. 2. Remove it there. "
        f"3. Run `ip address del {text} dev {plan.rail.interface}` on {host}, then the network stage for it."
    )
    observed = f"{text} on {plan.rail.interface} failed duplicate address detection: another host has it"
    return ERROR if plan.plans(text) else WARNING, observed, remedy


def _differences(host: str, plan: Plan, there: Sequence[str]) -> Iterator[Fault]:
    """The faults of planned addresses: a prefix that is not the planned one, and further addresses that are missing."""
    netdev, failed = plan.rail.interface, set(map(ip_of, plan.failed))
    for planned in plan.planned:
        wrong = next((text for text in there if ip_of(text) == str(planned.ip)), None)
        if wrong is None and str(planned.ip) not in failed:
            yield ERROR, f"no {planned} on {netdev}", f"Run the network stage for {host}, then check `ip addr show {netdev}` there."
        elif wrong is not None and str(planned) not in there:
            remedy = f"Run `ip addr del {wrong} dev {netdev}` on {host}, then the network stage for it."
            yield ERROR, f"{wrong} on {netdev}: the prefix is not the planned one", remedy


def _reported_by_gid(plan: Plan, facts: Facts) -> bool:
    """Whether network.gid is not ok: on RoCE, unless the GID table still has the address that the interface lacks."""
    rail = plan.rail
    if rail.rail["link_layer"] != "roce":
        return False
    if rail.device is None or rail.port is None:
        return True
    return not plan.planned or str(plan.planned[0].ip) not in facts.devices[rail.device].ports[rail.port].rocev2


def _fault(host: str, text: str, plan: Plan, plans: Sequence[Plan]) -> Fault | None:
    """The fault of an address on a rail's interface that is not planned for it."""
    netdev = str(plan.rail.interface)
    other = _owner(text, [each for each in plans if each is not plan])
    own = any(ipaddress.ip_interface(text).ip in planned.network for planned in plan.planned)
    if other is not None and not (own and not other.plans(text)):
        return _astray(host, text, netdev, other)
    if own:
        observed = f"{text} in addition to {plan.words} on {netdev}: GID indexes and ARP replies depend on their order"
        if is_ipv6(text):
            observed = f"{text} in addition to {plan.words} on {netdev}: GID indexes depend on their order"
        return WARNING, observed, f"Run `ip addr del {text} dev {netdev}` on {host}, and find what adds it (`networkctl`, `nmcli`)."
    return None


def _owner(text: str, plans: Sequence[Plan]) -> Plan | None:
    """The rail with this planned address, else a rail whose subnet contains it."""
    address = ipaddress.ip_interface(text).ip
    exact = next((plan for plan in plans if plan.plans(text)), None)
    return exact or next((plan for plan in plans if any(address in planned.network for planned in plan.planned)), None)


def _astray(host: str, text: str, netdev: str, other: Plan) -> Fault:
    """The fault of an address that belongs to another rail; a warning if that rail lacks it, which is an error of its own."""
    name = other.rail.name
    planned = [each for each in other.planned if str(each.ip) == ip_of(text)]
    missing = bool(planned) and other.has(planned[0]) is False
    observed = f"{text} on {netdev} is " + (f"the address of {name}" if planned else f"in {name}'s subnet")
    remedy = f"Run `ip addr del {text} dev {netdev}` on {host}, and find what adds it (`networkctl`, `nmcli`, /etc/network/interfaces)."
    return WARNING if missing else ERROR, f"{observed} ({other.words})", remedy


def _intruders(host: str, plans: Sequence[Plan], facts: Facts) -> Iterator[Finding]:
    """Findings on interfaces with an address in a rail's subnet that are neither a rail nor a rail's bond or bridge."""
    rails = {plan.rail.interface for plan in plans if plan.rail.interface}
    known = rails | {facts.netdevs[name].master for name in rails if name in facts.netdevs}
    for name, netdev in sorted(facts.netdevs.items()):
        for text in (netdev.addresses or ()) if name not in known else ():
            other = _owner(text, plans)
            if other is not None:
                status, observed, remedy = _astray(host, text, name, other)
                expected = "no address in a rail's subnet"
                yield Finding(STAGE, "network.address", host, f"interface {name}", status, observed, expected, remedy)


def _manager(host: str, plan: Plan, facts: Facts) -> Finding:
    netdev, seen = plan.rail.interface, address_netdev(plan.rail, facts)
    managers = seen.managers if seen is not None else None

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "network.manager", host, plan.rail.subject, status, observed, "at most one", remedy)

    if netdev is None:
        return finding(NOT_APPLICABLE, "no interface: see driver.nic")
    if seen is None:
        return finding(NOT_APPLICABLE, missing_words(plan.rail, netdev))
    if managers is None:
        return finding(UNKNOWN, "not in the facts", f"Run `networkctl status {netdev}` and `nmcli device show {netdev}` on {host}.")
    started = set().union(*(CLIENTS.get(name, set()) for name in managers))
    managers = [name for name in managers if name not in started]
    if len(managers) > 1:
        ways = ", or ".join(f"{name}: {RELEASE.get(name, 'make it release it').format(netdev=netdev)}" for name in managers)
        return finding(ERROR, f"{', '.join(managers)} all claim {netdev}", f"On {host}, keep one manager of {netdev}. {ways}.")
    if not managers and plan.has_address is False:
        return finding(NOT_APPLICABLE, "not managed and without an address: see network.gid or network.address")
    return finding(OK, managers[0] if managers else "none, and none is needed")
