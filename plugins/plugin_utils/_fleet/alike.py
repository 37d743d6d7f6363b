# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The odd one out among like hosts, by their facts: firmware, boards, drivers, packages; rates, names, PCIe links; GID indexes.

Like hosts are those that have compute rails, and those that have only storage rails; rails are compared by their names, in a mesh,
where a rail is a cable, by their places. And addresses of rails that two hosts have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import session_address
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rail_ip
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet import claims as fleet_claims
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.claims import Host, Said
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Claim, Found, Odd, group_by, odd_ones, some

declare(
    {
        "alike.firmware": Check(
            "driver",
            "the firmware of all NICs that are the same board (PSID)",
            "`fw_ver`, `board_id`",
            "burn the same on the odd one",
            sources=(reads.FIRMWARE, reads.BOARD),
        ),
        "alike.board": Check(
            "driver",
            "the board (PSID) of each rail, on like hosts",
            "`board_id`",
            "see which card it is",
            sources=(reads.BOARD,),
        ),
        "alike.driver": Check(
            "driver",
            "the loaded driver, on like hosts; the kernel's own where the kernel is the same",
            "`/sys/module/NAME/version`, `srcversion`",
            "run the driver stage for the odd one, reboot it",
            sources=reads.SOURCE_VERSIONS,
        ),
        "alike.kernel": Check(
            "driver",
            "the running kernel, on like hosts",
            "`/proc/sys/kernel/osrelease`",
            "install the same, and reboot",
            sources=(reads.RELEASE,),
        ),
        "alike.packages": Check(
            "driver",
            "perftest and rdma-core, on like hosts",
            "`/var/lib/dpkg/status`",
            "install the same versions on the odd one",
            sources=(reads.DPKG, reads.RPM),
        ),
        "alike.os": Check(
            "driver",
            "the distribution, on like hosts",
            "`/etc/os-release`",
            "install the same on the odd one",
            sources=(reads.OS,),
        ),
        "alike.mtu": Check(
            "network",
            "the MTU of each rail whose intent has no `mtu_bytes`, on like hosts; in a mesh at both ends of the cable",
            "`/sys/class/net/IF/mtu`",
            "set `mtu_bytes` of the rail on all hosts",
            sources=(reads.file(f"{reads.NET}/mtu"),),
        ),
        "alike.rate": Check(
            "link",
            "rate and width of each rail that is up, on like hosts, where `link.rate` does not judge it already",
            "`ports/N/rate`",
            "cable, port speed, card, switch port of the odd one",
            sources=(reads.RATE,),
        ),
        "alike.names": Check(
            "link",
            "names of device and interface of each rail, on like hosts",
            "`/sys/class/infiniband`, `/sys/class/net`",
            "name NICs by PCI address or MAC in configurations, or give the interfaces the same names by .link files",
            sources=(reads.DEVICES,),
        ),
        "alike.pcie": Check(
            "link",
            "the PCIe link of each rail's NIC, on like hosts",
            "`current_link_speed`, `current_link_width`",
            "slot, riser, BIOS settings of the odd one",
            sources=reads.PCI_LINK[:2],
        ),
        "network.duplicate": Check(
            "network",
            "addresses of rails: none on a second host",
            "`ip address show` of all hosts, `rdma_rails`",
            "`ip addr del` on the host that must not have it; find who adds it",
            sources=(reads.ADDRESSES,),
        ),
        "alike.gid_index": Check(
            "network",
            "the index of each rail's RoCE v2 GID, on like hosts",
            "`ports/N/gids`, `gid_attrs`",
            "set no GID index by hand (NCCL 2.21 or newer finds it)",
            sources=(reads.GIDS, reads.GID_TYPES),
        ),
        "alike.nccl": Check(
            "nccl",
            "NCCL, nccl-tests and Open MPI of like hosts",
            "as of `nccl.version` and `nccl.install`",
            "install the same versions",
            sources=(reads.LIBNCCL, reads.STAMP, reads.DPKG, reads.RPM),
        ),
    }
)

ON_ONE_HOST = "each address of a rail, and where Ansible reaches a host, on one host"


@dataclass(frozen=True)
class Alike:
    """One comparison. what: in a person's words; of: what each claim is about, in the plural; todo: how to mend the odd one;
    severity: of an odd one, and of all where there is no majority a warning."""

    check: str
    what: str
    claims: Callable[[Host], Iterator[Said]]
    todo: str
    nothing: str
    severity: str = WARNING
    of: str = "hosts"


def check_alike(hosts: Mapping[str, Known], stage: str) -> Found:
    """The findings `alike.*` of every host at the gate of a stage: for each check one `ok`, or what is odd.

    A host whose intent or facts are not known has none: it is lost already, and says so itself.
    """
    known = [Host(host, each.intent, each.facts) for host, each in hosts.items() if each.intent and each.facts]
    found: Found = {host: [] for host in hosts}
    for alike in COMPARISONS[stage]:
        for host, findings in _compare(stage, alike, known).items():
            found[host] += findings
    return found


def check_duplicates(hosts: Mapping[str, Known]) -> Found:
    """The findings `network.duplicate` of every host: an address of a rail, or of Ansible's session, that another host has as well.

    No other address counts: each host may have the same addresses on bridges of its own (docker0). On another host, a planned address of a
    rail counts as well as a current one.
    """
    known = [Host(host, each.intent, each.facts) for host, each in hosts.items() if each.intent and each.facts]
    holders: dict[str, list[_Holder]] = defaultdict(list)
    for host in known:
        for holder in _holders(host):
            holders[holder.address].append(holder)
    found: Found = {host: [] for host in hosts}
    for group in holders.values():
        several = len({holder.host for holder in group}) > 1
        if several and any(holder.is_live for holder in group) and any(holder.of_rail or holder.of_session for holder in group):
            for name in dict.fromkeys(holder.host for holder in group):
                found[name].append(_duplicate(name, group))
    for host in known:
        if not found[host.name] and host.facts.interfaces:
            found[host.name].append(Finding("network", "network.duplicate", host.name, "addresses", OK, "on no other host", ON_ONE_HOST))
        elif not found[host.name]:
            why = f"no address of {host.name} was read"
            remedy = f"Run `ip address show` on {host.name}."
            found[host.name].append(Finding("network", "network.duplicate", host.name, "addresses", UNKNOWN, why, ON_ONE_HOST, remedy))
    return found


@dataclass(frozen=True)
class _Holder:
    """A host that has an address, or for which it is planned. rail: the rail of the plan; netdev: the interface that has it now;
    on_rail: whether that is a rail's; of_session: whether Ansible reaches the host at this address."""

    host: str
    address: str
    rail: str | None
    netdev: str | None
    on_rail: bool = False
    of_session: bool = False

    @property
    def is_live(self) -> bool:
        return self.netdev is not None

    @property
    def of_rail(self) -> bool:
        return self.rail is not None or self.on_rail

    @property
    def words(self) -> str:
        where = f"on {self.netdev} of {self.host}" if self.netdev else f"planned for {self.rail} of {self.host}, which does not have it"
        what = self.rail or ("where Ansible reaches it" if self.of_session else None)
        return f"{where} ({what})" if self.netdev and what else where


def _holders(host: Host) -> Iterator[_Holder]:
    planned = {address: rail.name for rail in host.rails if (address := rail_ip(rail.rail)) is not None}
    rails = {rail.netdev for rail in host.rails}
    live = {text.split("/")[0]: name for name, each in (host.facts.interfaces or {}).items() for text in each.ipv4 or ()}
    reached = _reached_at(host)
    for address, name in live.items():
        yield _Holder(host.name, address, planned.get(address), name, on_rail=name in rails, of_session=address == reached)
    yield from (_Holder(host.name, address, rail, None) for address, rail in planned.items() if address not in live)


def _reached_at(host: Host) -> str | None:
    """The address of a host where Ansible's session comes in; None without a session and behind a forwarded port."""
    forwarded = (host.facts.reached_at or "").startswith(("localhost", "127.", "::1"))
    return None if forwarded else session_address(host.facts.session)


def _duplicate(host: str, group: Sequence[_Holder]) -> Finding:
    """Of one host that has the address. Whoever has the address against the plan is at fault; the host of the plan gets a warning.

    Where the plan names no host, the host that Ansible reaches at the address has the right to it; a host tells that of itself.
    """
    own = next(holder for holder in group if holder.host == host)
    owners = [holder for holder in group if holder.rail is not None] or [holder for holder in group if holder.of_session]
    wrong = [holder for holder in group if holder.is_live and holder not in owners]
    # Two plans with one address are intent.address's; both hosts are named all the same.
    which = wrong if owners else group
    planned_here = own.rail is not None and bool(wrong) and {holder.host for holder in owners} == {host}
    steps = [f"Run `ip addr del {each.address}/PREFIX dev {each.netdev}` on {each.host}" for each in which if each.netdev][:2]
    remedy = f"1. {', or '.join(steps)}. 2. Find who adds it: `networkctl`, `nmcli`." if steps else "1. Give one of them another address."
    return Finding(
        "network", "network.duplicate", host, own.rail or f"interface {own.netdev}", WARNING if planned_here else ERROR,
        f"{own.address} is {some([holder.words for holder in group])}", ON_ONE_HOST, remedy,
    )  # fmt: skip


def _compare(stage: str, alike: Alike, hosts: Sequence[Host]) -> Found:
    groups: dict[Hashable, list[Claim]] = defaultdict(list)
    for host in hosts:
        for key, subject, value in alike.claims(host):
            groups[key].append(Claim(host.name, subject, value))
    odd = group_by((each for claims in groups.values() for each in odd_ones(claims, alike.of)), lambda each: each.claim.host)
    claiming = {claim.host for claims in groups.values() for claim in claims}
    compared = {claim.host for claims in groups.values() if any(claim.host != claims[0].host for claim in claims) for claim in claims}
    return {
        host.name: list(_odd(stage, alike, host.name, odd[host.name]))
        if host.name in odd
        else [_not_odd(stage, alike, host.name, claims=host.name in claiming, compared=host.name in compared)]
        for host in hosts
    }


def _odd(stage: str, alike: Alike, host: str, odd: Sequence[Odd]) -> Iterator[Finding]:
    """What a host has odd; rails that are odd in the same way are one finding."""
    for (value, others, has_majority), same in group_by(odd, lambda each: (each.claim.value, each.others, each.has_majority)).items():
        subject = some(list(dict.fromkeys(each.claim.subject for each in same)))
        if has_majority:
            expected = f"{alike.what} {same[0].usual}"
            seen, remedy = f"{alike.what} {value}; {others}", alike.todo.format(host=host)
            yield Finding(stage, alike.check, host, subject, alike.severity, seen, expected, remedy)
        else:
            remedy = f"No majority tells which is right. {alike.todo.format(host=f'{host} or the others')}"
            seen, expected = f"{alike.what} {value}; there are {others}", f"the same {alike.what} on like hosts"
            yield Finding(stage, alike.check, host, subject, WARNING, seen, expected, remedy)


def _not_odd(stage: str, alike: Alike, host: str, *, claims: bool, compared: bool) -> Finding:
    expected = f"the same {alike.what} on like hosts"
    if compared:
        return Finding(stage, alike.check, host, alike.what, OK, "as on like hosts", expected)
    why = "no like host to compare with" if claims else alike.nothing
    return Finding(stage, alike.check, host, alike.what, NOT_APPLICABLE, why, expected)


#: What is compared at the gate of which stage.
COMPARISONS: dict[str, tuple[Alike, ...]] = {
    "driver": (
        Alike(
            "alike.firmware", "firmware", fleet_claims.firmware,
            "Burn the same firmware on {host} (`mstflint -d ADDRESS query` tells it).", "no NIC with a board id", of="NICs",
        ),
        Alike(
            "alike.board", "board", fleet_claims.board,
            "See on {host} whether it is the card that was ordered (`mstflint -d ADDRESS query`, PSID).", "no NIC with a board id",
        ),
        Alike(
            "alike.driver", "driver", fleet_claims.driver,
            "Run the driver stage for {host}, and reboot it where another module is loaded than is on disk.", "no module of RDMA is loaded",
        ),
        Alike("alike.kernel", "kernel", fleet_claims.kernel, "Install the same kernel on {host}, and reboot.", "the release was not read"),
        Alike(
            "alike.packages", "packages", fleet_claims.packages,
            "Install the same versions on {host}: versions of perftest that are far apart do not talk to each other.",
            "the package database was not read",
        ),
        Alike("alike.os", "distribution", fleet_claims.distribution, "Install the same one on {host}.", "os-release was not read"),
    ),
    "link": (
        Alike(
            "alike.rate", "rate", fleet_claims.rate,
            "Look at cable, port speed and card of this rail on {host} and at its switch port (`mlxlink -d DEVICE`, `ethtool IF`); plan "
            "rate_gbps for it if it is meant.",
            "no port to compare: Soft-RoCE, not up, or link.rate judges by the plan", severity=ERROR,
        ),
        Alike(
            "alike.names", "names", fleet_claims.names,
            "A name in a configuration (NCCL_IB_HCA, an interface) means another NIC on {host}: use PCI addresses or MACs, or name the "
            "interfaces alike with .link files.",
            "no RDMA device",
        ),
        Alike(
            "alike.pcie", "PCIe link", fleet_claims.pcie,
            "See slot, riser and BIOS settings of {host} (`lspci -vv`, LnkSta and LnkCap).", "no PCIe link was read",
        ),
    ),
    "network": (
        Alike(
            "alike.mtu", "MTU", fleet_claims.mtu,
            "Set mtu_bytes of this rail in rdma_rails on all hosts, then run the network stage while {host} is idle.",
            "network.mtu judges the MTU by the plan, or no MTU was read", severity=ERROR,
        ),
        Alike(
            "alike.gid_index", "GID index", fleet_claims.gid_index,
            "One number in a configuration (NCCL_IB_GID_INDEX, `-x`) means another GID on {host}: leave it out, or see which addresses "
            "came and went there (`rdma link`, `show_gids`).",
            "no RoCE v2 GID of a planned address",
        ),
    ),
    "nccl": (
        Alike(
            "alike.nccl", "versions", fleet_claims.nccl,
            "Install the same versions on {host} (rdma_nccl.install): ranks of different versions of NCCL do not talk to each other.",
            "what is installed of NCCL was not read",
        ),
    ),
}  # fmt: skip
