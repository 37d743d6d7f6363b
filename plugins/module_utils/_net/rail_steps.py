# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that bring a live interface to its planned address and MTU: only differences, each with its harm to a running job.

Sources: ip-address(8), ip-link(8); net/ipv4/devinet.c and drivers/infiniband/core/roce_gid_mgmt.c of Linux.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

ADDRESS_GOES = "removes an address and its GID"
#: Also if it is raised: mlx5, bnxt_en and ice close and reopen their queues.
MTU_CHANGES = "restarts the interface's queues"
RECONFIGURES = "drops the interface's addresses and GIDs and adds them again"


@dataclass(frozen=True)
class Target:
    """The planned state of an interface.

    mtu_bytes: None keeps its MTU; keep: further addresses that are not ours and stay; former: addresses set before by our file.
    """

    netdev: str
    mtu_bytes: int | None
    address: str | None
    keep: tuple[str, ...] = ()
    former: frozenset[str] = frozenset()


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


def ours(target: Target, ipv4: Sequence[str]) -> list[str]:
    """Return our outdated addresses: those that our file gave the interface before, and the planned one with another prefix."""
    planned = ipaddress.IPv4Interface(target.address) if target.address else None
    return [
        text
        for text in ipv4
        if text != target.address and (text in target.former or (planned is not None and ipaddress.IPv4Interface(text).ip == planned.ip))
    ]


def keeping(target: Target, ipv4: Sequence[str]) -> Target:
    """Return the target with the interface's other addresses: the kernel may remove secondary addresses along with a primary one."""
    wrong = ours(target, ipv4)
    return replace(target, keep=tuple(text for text in ipv4 if text not in wrong and text != target.address))


def mtu_differs(planned_bytes: int | None, mtu_bytes: int | None) -> bool:
    """Return whether the MTU differs. planned_bytes: None keeps the interface's; mtu_bytes: None if it was not read."""
    return planned_bytes is not None and mtu_bytes != planned_bytes


def address_misses(planned: str | None, ipv4: Sequence[str]) -> bool:
    """Return whether an interface lacks the planned address, "192.168.100.1/24"."""
    return bool(planned) and planned not in ipv4


def steps(target: Target, mtu_bytes: int | None, ipv4: Sequence[str]) -> list[Step]:
    """Return the remaining steps. mtu_bytes, ipv4: the interface's current values.

    The new address is added before an old one is removed, unless both are the same with different prefixes: the kernel removes the GID of
    an address although the address still exists a second time.
    """
    wrong = ours(target, ipv4)
    twins = [text for text in wrong if target.address and _ip(text) == _ip(target.address)]
    seen = ", ".join(ipv4) or "none"
    found: list[Step] = []
    argv: tuple[str, ...]
    if mtu_differs(target.mtu_bytes, mtu_bytes):
        argv = ("ip", "link", "set", "dev", target.netdev, "mtu", str(target.mtu_bytes))
        found.append(Step(target.netdev, f"MTU {mtu_bytes} bytes", f"MTU {target.mtu_bytes} bytes", argv, MTU_CHANGES))
    found += [_remove(target, text, f"address {target.address}") for text in twins]
    for text in (each for each in (target.address, *target.keep) if each and each not in ipv4):
        argv = ("ip", "address", "add", text, *_broadcast(text), "dev", target.netdev)
        harm = ADDRESS_GOES if twins and text == target.address else ""
        found.append(Step(target.netdev, f"address {seen}", f"address {text}", argv, harm))
    found += [_remove(target, text, f"no address {text}") for text in wrong if text not in twins]
    return found


def _remove(target: Target, text: str, planned: str) -> Step:
    return Step(target.netdev, f"address {text}", planned, ("ip", "address", "del", text, "dev", target.netdev), ADDRESS_GOES)


def _broadcast(text: str) -> tuple[str, ...]:
    """Return the broadcast options that match systemd-networkd: 252 to 257 treat an address without one as different, and replace it."""
    return ("brd", "+") if ipaddress.IPv4Interface(text).network.prefixlen <= 30 else ()


def _ip(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Interface(text).ip


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
