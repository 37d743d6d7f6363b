# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that bring a live interface to its planned address and MTU: only differences, each with its harm to a running job.

Sources: ip-address(8), ip-link(8); net/ipv4/devinet.c, net/ipv6/addrconf.c and drivers/infiniband/core/roce_gid_mgmt.c of Linux.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of, ipv4_of, ipv6_of, is_ipv6

ADDRESS_GOES = "removes an address and its GID"
#: Also if it is raised: mlx5, bnxt_en and ice close and reopen their queues.
MTU_CHANGES = "restarts the interface's queues"
RECONFIGURES = "drops the interface's addresses and GIDs and adds them again"


@dataclass(frozen=True)
class Target:
    """The planned state of an interface.

    mtu_bytes: None keeps its MTU; keep: addresses that are not ours and stay; former: addresses set before by our file; further: planned
    addresses besides the first one, which RDMA uses.
    """

    netdev: str
    mtu_bytes: int | None
    address: str | None
    keep: tuple[str, ...] = ()
    former: frozenset[str] = frozenset()
    further: tuple[str, ...] = ()

    @property
    def planned(self) -> tuple[str, ...]:
        """All planned addresses, the first one first."""
        return (*([self.address] if self.address else []), *self.further)

    @property
    def has_ipv6(self) -> bool:
        """Whether a planned or former address is of IPv6; only then the interface's IPv6 addresses matter."""
        return any(is_ipv6(text) for text in (*self.planned, *self.former))


@dataclass(frozen=True)
class Step:
    """One command. was, planned: in words; harm: its effect on a job that uses the rail, "" if there is none."""

    netdev: str
    was: str
    planned: str
    argv: tuple[str, ...]
    harm: str = ""

    @property
    def words(self) -> str:
        """The change in words, with its harm."""
        return f"{self.was} → {self.planned}" + (f" ({self.harm})" if self.harm else "")


def ours(target: Target, there: Sequence[str]) -> list[str]:
    """Return our outdated addresses: those that our file gave the interface before, and the planned ones with another prefix."""
    planned = {ip_of(text) for text in target.planned}
    return [text for text in there if text not in target.planned and (text in target.former or ip_of(text) in planned)]


def keeping(target: Target, there: Sequence[str]) -> Target:
    """Return the target with the interface's other addresses: the kernel may remove secondary addresses along with a primary one."""
    wrong = ours(target, there)
    return replace(target, keep=tuple(text for text in there if text not in wrong and text not in target.planned))


def mtu_differs(planned_bytes: int | None, mtu_bytes: int | None) -> bool:
    """Return whether the MTU differs. planned_bytes: None keeps the interface's; mtu_bytes: None if it was not read."""
    return planned_bytes is not None and mtu_bytes != planned_bytes


def missing_addresses(planned: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return the planned addresses that an interface lacks, "192.168.100.1/24"."""
    return [text for text in planned if text not in there]


def steps(target: Target, mtu_bytes: int | None, there: Sequence[str]) -> list[Step]:
    """Return the remaining steps. mtu_bytes, there: the interface's current MTU and addresses.

    The new address is added before an old one is removed, unless both are the same with different prefixes: the kernel removes the GID of
    an address although the address still exists a second time.
    """
    wrong = ours(target, there)
    planned = {ip_of(text): text for text in target.planned}
    twins = [text for text in wrong if ip_of(text) in planned]
    seen = ", ".join(there) or "none"
    found: list[Step] = []
    argv: tuple[str, ...]
    if mtu_differs(target.mtu_bytes, mtu_bytes):
        argv = ("ip", "link", "set", "dev", target.netdev, "mtu", str(target.mtu_bytes))
        found.append(Step(target.netdev, f"MTU {mtu_bytes} bytes", f"MTU {target.mtu_bytes} bytes", argv, MTU_CHANGES))
    found += [_remove(target, text, f"address {planned[ip_of(text)]}") for text in twins]
    for text in missing_addresses((*target.planned, *target.keep), there):
        argv = ("ip", "address", "add", text, *_options(text), "dev", target.netdev)
        harm = ADDRESS_GOES if ip_of(text) in map(ip_of, twins) else ""
        found.append(Step(target.netdev, f"address {seen}", f"address {text}", argv, harm))
    found += [_remove(target, text, f"no address {text}") for text in wrong if text not in twins]
    return found


def _remove(target: Target, text: str, planned: str) -> Step:
    return Step(target.netdev, f"address {text}", planned, ("ip", "address", "del", text, "dev", target.netdev), ADDRESS_GOES)


def _options(text: str) -> tuple[str, ...]:
    """Return the options of a new address.

    The broadcast address matches systemd-networkd: 252 to 257 treat an address without one as different, and replace it. With duplicate
    address detection, an IPv6 address could not be used for a second or two, and without carrier not at all. `network.duplicate` finds
    two hosts with one address.
    """
    if is_ipv6(text):
        return ("nodad",)
    return ("brd", "+") if ipaddress.IPv4Interface(text).network.prefixlen <= 30 else ()


def read_interface(target: Target, runner: Runner, *, rail: str, is_made: bool) -> tuple[int | None, list[str]]:
    """Return the current MTU and addresses of a rail's interface; those of IPv6 only where the rail has or had one.

    rail: its name. is_made: a manager, or we, make the interface; if it has still to be made, the answer is (None, []). Raises ApplyError
    if the interface of a NIC does not exist.
    """
    done = runner.run(["ip", "-j", "address", "show", "dev", target.netdev])
    if done.rc and is_made:
        return None, []
    if done.rc:
        raise ApplyError(f"There is no interface {target.netdev} for {rail}: {done.stderr.strip()}")
    shown = json.loads(done.stdout)[0]
    ipv6 = ipv6_of(shown["addr_info"], state="static") if target.has_ipv6 else []
    return shown["mtu"], [*ipv4_of(shown["addr_info"]), *ipv6]


#: linux/if.h
IFF_UP = 0x1


def ensure_up(netdevs: Sequence[str], *, runner: Runner, sys: SysRoot, wait_seconds: float, check_mode: bool) -> list[str]:
    """Set interfaces up that are down, wait until each has carrier, and return those that were down.

    A link without carrier after wait_seconds is not an error here: the link gate reports it, and names the cable.
    Raises ApplyError if an interface is unknown, or still down after it was set up.
    """
    down = [name for name in netdevs if not is_up(name, sys)]
    if check_mode:
        return down
    for name in down:
        done = runner.run(["ip", "link", "set", "dev", name, "up"])
        if done.rc or not is_up(name, sys):
            raise ApplyError(f"Cannot set {name} up: {done.stderr.strip() or 'it is still down'}")
    deadline = time.monotonic() + wait_seconds
    while down and not all(has_carrier(name, sys) for name in down) and time.monotonic() < deadline:
        time.sleep(0.2)
    return down


def is_up(name: str, sys: SysRoot) -> bool:
    flags = sys.read(f"/sys/class/net/{name}/flags")
    if flags is None:
        raise ApplyError(f"There is no interface {name} on this host.")
    return bool(int(flags, 16) & IFF_UP)


def has_carrier(name: str, sys: SysRoot) -> bool:
    return (sys.read(f"/sys/class/net/{name}/carrier") or "").strip() == "1"
