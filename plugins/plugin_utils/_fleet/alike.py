# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that compare the facts of like hosts: firmware, boards, drivers, packages, rates, names, PCIe links, GID indexes.

Hosts with compute rails are alike, and so are hosts with only storage rails. Rails are compared by name; in a mesh, where a rail is a
cable, by index. Also checks for addresses that two hosts have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import session_address
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rail_addresses
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet import claims as fleet_claims
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.claims import Claimed, Host
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import (
    Claim,
    Found,
    Odd,
    Tie,
    group_by,
    odd_ones,
    some,
    tied,
    undecided,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

declare(
    {
        "alike.firmware": Check(
            "driver",
            "the firmware of all NICs of the same board (PSID)",
            "`fw_ver`, `board_id`",
            "burn the same firmware on the NIC that differs",
            sources=(reads.FIRMWARE, reads.BOARD),
        ),
        "alike.board": Check(
            "driver",
            "the board (PSID) of each rail, on like hosts",
            "`board_id`",
            "check which card it is",
            sources=(reads.BOARD,),
        ),
        "alike.driver": Check(
            "driver",
            "the loaded driver, on like hosts; the kernel's own only between equal kernels",
            "`/sys/module/NAME/version`, `srcversion`",
            "run the driver stage for the host that differs, and reboot it",
            sources=reads.SOURCE_VERSIONS,
        ),
        "alike.kernel": Check(
            "driver",
            "the running kernel, on like hosts",
            "`/proc/sys/kernel/osrelease`",
            "install the same kernel, and reboot",
            sources=(reads.RELEASE,),
        ),
        "alike.packages": Check(
            "driver",
            "perftest and rdma-core, on like hosts",
            "`/var/lib/dpkg/status`",
            "install the same versions on the host that differs",
            sources=(reads.PACKAGES_OF, reads.DPKG, reads.RPM),
        ),
        "alike.os": Check(
            "driver",
            "the distribution, on like hosts",
            "`/etc/os-release`",
            "install the same distribution on the host that differs",
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
            "rate and width of each active rail, on like hosts, if `link.rate` does not check them",
            "`ports/N/rate`",
            "check cable, port speed, card and switch port of the rail that differs",
            sources=(reads.RATE,),
        ),
        "alike.names": Check(
            "link",
            "device and interface names of each rail, on like hosts",
            "`/sys/class/infiniband`, `/sys/class/net`",
            "use PCI addresses or MACs in configurations, or give the interfaces equal names with .link files",
            sources=(reads.DEVICES,),
        ),
        "alike.pcie": Check(
            "link",
            "the PCIe link of each rail's NIC, on like hosts",
            "`current_link_speed`, `current_link_width`",
            "check slot, riser and BIOS settings of the host that differs",
            sources=reads.PCI_LINK[:2],
        ),
        "network.duplicate": Check(
            "network",
            "whether an address of a rail is also on another host",
            "`ip address show` of all hosts, `rdma_rails`",
            "`ip addr del` on the host that must not have it; find what adds it",
            sources=(reads.ADDRESSES,),
        ),
        "alike.gid_index": Check(
            "network",
            "the index of each rail's RoCE v2 GID, on like hosts",
            "`ports/N/gids`, `gid_attrs`",
            "do not set a GID index by hand (NCCL 2.21 or newer finds it)",
            sources=(reads.GIDS, reads.GID_TYPES),
        ),
        "alike.nccl": Check(
            "nccl",
            "the versions of NCCL, nccl-tests and Open MPI, on like hosts",
            "the sources of `nccl.version` and `nccl.install`",
            "install the same versions",
            sources=(reads.LIBNCCL, reads.STAMP, reads.PACKAGES_OF, reads.DPKG, reads.RPM),
        ),
    }
)

ON_ONE_HOST = "each address of a rail or of an Ansible connection on one host only"


@dataclass(frozen=True)
class Alike:
    """One comparison. what: the property in words; of: the things that claim, in the plural; todo: the remedy for one that differs;
    nothing: the reason if a host claims nothing; severity: of one that differs; without a majority the fleet gets a warning."""

    check: str
    what: str
    claims: Callable[[Host], Iterator[Claimed]]
    todo: str
    nothing: str
    severity: str = WARNING
    of: str = "hosts"


def check_alike(hosts: Mapping[str, Known], stage: str) -> Found:
    """The findings `alike.*` of every host at the gate of a stage: for each check one `ok`, or the differences.

    Without a majority the finding is that of FLEET, and the hosts that differ are `not_applicable`.
    A host without known intent or facts has no findings here; other checks report it.
    """
    known = [Host(host, each.intent, each.facts) for host, each in hosts.items() if each.intent and each.facts]
    found: Found = {host: [] for host in hosts}
    for alike in COMPARISONS[stage]:
        for host, findings in _compare(stage, alike, known).items():
            found.setdefault(host, []).extend(findings)
    return found


def check_duplicates(hosts: Mapping[str, Known]) -> Found:
    """The findings `network.duplicate` of every host: an address of a rail, or of Ansible's session, that another host has too.

    Other addresses do not count: every host may have the same address on its own bridges (docker0). On another host, a planned address
    of a rail counts like a current one.
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
    """A host with a current or planned address. rail: the rail of the plan; netdev: the interface that has it now;
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
    planned = {ip_of(text): rail.name for rail in host.rails for text in rail_addresses(rail.rail)}
    rails = {name for rail in host.rails for name in rail.interfaces}
    live = {ip_of(text): name for name, each in (host.facts.interfaces or {}).items() for text in each.addresses or ()}
    reached = _reached_at(host)
    for address, name in live.items():
        yield _Holder(host.name, address, planned.get(address), name, on_rail=name in rails, of_session=address == reached)
    yield from (_Holder(host.name, address, rail, None) for address, rail in planned.items() if address not in live)


def _reached_at(host: Host) -> str | None:
    """The address at which Ansible's session reaches a host; None without a session and behind a forwarded port."""
    forwarded = (host.facts.reached_at or "").startswith(("localhost", "127.", "::1"))
    return None if forwarded else session_address(host.facts.session)


def _duplicate(host: str, group: Sequence[_Holder]) -> Finding:
    """The finding of one host with a duplicate address: an error if the plan gives it to another host, else a warning.

    If the plan names no host, the address belongs to the host that reports that Ansible reaches it there.
    """
    own = next(holder for holder in group if holder.host == host)
    owners = [holder for holder in group if holder.rail is not None] or [holder for holder in group if holder.of_session]
    wrong = [holder for holder in group if holder.is_live and holder not in owners]
    # intent.address reports two plans with one address; both hosts are named here too.
    which = wrong if owners else group
    planned_here = own.rail is not None and bool(wrong) and {holder.host for holder in owners} == {host}
    steps = [f"Run `ip addr del {each.address}/PREFIX dev {each.netdev}` on {each.host}" for each in which if each.netdev][:2]
    remedy = f"1. {', or '.join(steps)}. 2. Find what adds it: `networkctl`, `nmcli`." if steps else "Give one of them another address."
    return Finding(
        "network", "network.duplicate", host, own.rail or f"interface {own.netdev}", WARNING if planned_here else ERROR,
        f"{own.address} is {some([holder.words for holder in group])}", ON_ONE_HOST, remedy,
    )  # fmt: skip


def _compare(stage: str, alike: Alike, hosts: Sequence[Host]) -> Found:
    groups: dict[Hashable, list[Claim]] = defaultdict(list)
    for host in hosts:
        for key, subject, value in alike.claims(host):
            groups[key].append(Claim(host.name, subject, value))
    differing = [odd_ones(claims, alike.of) for claims in groups.values()]
    odd = group_by((each for odds, _tie in differing for each in odds), lambda each: each.claim.host)
    ties = [tie for _odds, tie in differing if tie is not None]
    of_tie = {host for tie in ties for host in tie.hosts}
    claiming = {claim.host for claims in groups.values() for claim in claims}
    compared = {claim.host for claims in groups.values() if any(claim.host != claims[0].host for claim in claims) for claim in claims}
    found: Found = {FLEET: list(_ties(stage, alike, ties))} if ties else {}
    for name in [each.name for each in hosts]:
        if name in odd:
            found[name] = list(_odd(stage, alike, name, odd[name]))
        elif name in of_tie:
            found[name] = [undecided(stage, alike.check, name, alike.what, f"the same {alike.what} on like hosts")]
        else:
            found[name] = [_not_odd(stage, alike, name, claims=name in claiming, compared=name in compared)]
    return found


def _ties(stage: str, alike: Alike, ties: Sequence[Tie]) -> Iterator[Finding]:
    """The findings on the fleet; rails that differ in the same way are one finding."""
    for values, same in group_by(ties, lambda tie: tie.values).items():
        subject = some(list(dict.fromkeys(tie.subject for tie in same)))
        remedy = alike.todo.format(host="the other hosts")
        yield tied(stage, alike.check, subject, WARNING, f"{alike.what}: {values}", f"the same {alike.what} on like hosts", remedy)


def _odd(stage: str, alike: Alike, host: str, odd: Sequence[Odd]) -> Iterator[Finding]:
    """The differences of a host; rails that differ in the same way are one finding."""
    for (value, others), same in group_by(odd, lambda each: (each.claim.value, each.others)).items():
        subject = some(list(dict.fromkeys(each.claim.subject for each in same)))
        seen, expected = f"{alike.what} {value}; {others}", f"{alike.what} {same[0].usual}"
        yield Finding(stage, alike.check, host, subject, alike.severity, seen, expected, alike.todo.format(host=host))


def _not_odd(stage: str, alike: Alike, host: str, *, claims: bool, compared: bool) -> Finding:
    expected = f"the same {alike.what} on like hosts"
    if compared:
        return Finding(stage, alike.check, host, alike.what, OK, "as on like hosts", expected)
    why = "no like host to compare with" if claims else alike.nothing
    return Finding(stage, alike.check, host, alike.what, NOT_APPLICABLE, why, expected)


#: Stage → the comparisons at its gate.
COMPARISONS: dict[str, tuple[Alike, ...]] = {
    "driver": (
        Alike(
            "alike.firmware", "firmware", fleet_claims.firmware,
            "Burn the same firmware on {host} (`mstflint -d ADDRESS query` shows it).", "no NIC with a board ID", of="NICs",
        ),
        Alike(
            "alike.board", "board", fleet_claims.board,
            "Check that {host} has the card that was ordered (`mstflint -d ADDRESS query`, PSID).", "no NIC with a board ID",
        ),
        Alike(
            "alike.driver", "driver", fleet_claims.driver,
            "Run the driver stage for {host}, and reboot it if its loaded modules differ from those on disk.",
            "no rail has a device, or no RDMA module is loaded",
        ),
        Alike("alike.kernel", "kernel", fleet_claims.kernel, "Install the same kernel on {host}, and reboot.", "the release was not read"),
        Alike(
            "alike.packages", "packages", fleet_claims.packages,
            "Install the same versions on {host}: an old and a new perftest cannot talk to each other.",
            "the package database was not read",
        ),
        Alike("alike.os", "distribution", fleet_claims.distribution, "Install the same distribution on {host}.", "os-release was not read"),
    ),
    "link": (
        Alike(
            "alike.rate", "rate", fleet_claims.rate,
            "Check cable, port speed and card of this rail on {host} and its switch port (`mlxlink -d DEVICE`, `ethtool IF`). If this rate "
            "is intended, set `rate_gbps` for it.",
            "no port to compare: Soft-RoCE, not up, or checked by link.rate", severity=ERROR,
        ),
        Alike(
            "alike.names", "names", fleet_claims.names,
            "Use PCI addresses or MACs, or give the interfaces equal names with .link files: a name in a configuration (NCCL_IB_HCA, an "
            "interface) means another NIC on {host}.",
            "no RDMA device",
        ),
        Alike(
            "alike.pcie", "PCIe link", fleet_claims.pcie,
            "Check slot, riser and BIOS settings of {host} (`lspci -vv`, LnkSta and LnkCap).", "no PCIe link was read",
        ),
    ),
    "network": (
        Alike(
            "alike.mtu", "MTU", fleet_claims.mtu,
            "Set mtu_bytes of this rail in rdma_rails on all hosts, then run the network stage while {host} is idle.",
            "network.mtu checks the MTU against the plan, or no MTU was read", severity=ERROR,
        ),
        Alike(
            "alike.gid_index", "GID index", fleet_claims.gid_index,
            "Remove a fixed index (NCCL_IB_GID_INDEX, `-x`) from configurations: it means another GID on {host}. `rdma link` and "
            "`show_gids` there show its addresses.",
            "no RoCE v2 GID of a planned address",
        ),
    ),
    "nccl": (
        Alike(
            "alike.nccl", "versions", fleet_claims.nccl,
            "Install the same versions on {host} (rdma_nccl.install): ranks with different versions of NCCL cannot talk to each other.",
            "the NCCL version was not read",
        ),
    ),
}  # fmt: skip
