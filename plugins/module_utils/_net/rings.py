# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rings of the rails' NICs: their lengths now, and by one udev rule whenever the interface comes to be (boot, driver reload, hot-plug).

Rings do nothing for the queue pairs of RDMA; they help sockets, which lose packets in a burst where a ring is short. A change resets
the interface: on many drivers the link goes for about a second, so only a difference is written.

A systemd.link(5) file could say the same (RxBufferSize=), but only the first file that matches an interface is used: ours would take the
place of the distribution's 99-default.link, and with it its naming, and the interface would have another name after a boot. A udev rule
shadows nothing. Sources: udev(7), ethtool(8), include/uapi/linux/ethtool.h.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import EthtoolPort, Rings
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import has_carrier

RULES_FILE = "/etc/udev/rules.d/90-rdma-cluster-rings.rules"
#: udev takes absolute paths only; Debian, Ubuntu and RHEL have it here.
ETHTOOL = "/usr/sbin/ethtool"
HEADER = "# Managed by rdma.cluster: the length of the rings of the rails' NICs.\n"
SETTLE_SECONDS = 20.0
#: Way ("rx", "tx") → entries; None: unknown.
Lengths = Mapping[str, Optional[int]]


@dataclass(frozen=True)
class RailRings:
    """The rings that a rail's NIC shall have. nic: {"pci"} or {"mac"}; netdev: its interface now; rx, tx: None to leave it."""

    name: str
    nic: dict[str, str]
    netdev: str
    rx: int | None
    tx: int | None

    @property
    def wished(self) -> dict[str, int]:
        return {way: length for way, length in (("rx", self.rx), ("tx", self.tx)) if length is not None}


@dataclass(frozen=True)
class RingsResult:
    """What was done, or would be in check mode; live: interface → (seen, wished); withheld: those left as they are."""

    files: list[FileChange]
    live: dict[str, tuple[Lengths, Lengths]]
    withheld: list[str]

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        live = [
            setting_diff(f"{way} ring of {name}", _shown(seen[way]), wished[way])
            for name, (seen, wished) in self.live.items()
            for way in wished
            if seen[way] != wished[way]
        ]
        return [*(file.to_diff() for file in self.files), *live]

    @property
    def told(self) -> dict[str, tuple[str, str]]:
        """live in words."""
        return {name: (words(seen), words(wished)) for name, (seen, wished) in self.live.items()}


def words(lengths: Lengths) -> str:
    """ "rx 8192, tx 8192"."""
    return ", ".join(f"{way} {_shown(length)}" for way, length in lengths.items())


def _shown(length: int | None) -> str:
    return "unknown" if length is None else str(length)


def rules_file(rails: Sequence[RailRings]) -> list[ManagedFile]:
    """The udev rules of these rails; none: that the file shall go."""
    lines = [_rule(rail) for rail in rails if rail.wished]
    return [ManagedFile(RULES_FILE, HEADER + "".join(lines) if lines else None)]


def _rule(rail: RailRings) -> str:
    match = f'KERNELS=="{rail.nic["pci"].lower()}"' if "pci" in rail.nic else f'ATTR{{address}}=="{rail.nic["mac"].lower()}"'
    sizes = " ".join(f"{way} {length}" for way, length in rail.wished.items())
    return f'ACTION=="add", SUBSYSTEM=="net", {match}, RUN+="{ETHTOOL} -G $name {sizes}"\n'


def ring_difference(rail: RailRings, seen: Lengths) -> tuple[Lengths, Lengths] | None:
    """(seen, wished) of the rings of a rail that are not as they shall be; None if they are. seen: nothing of those that are not told."""
    now = {way: seen.get(way) for way in rail.wished}
    return None if now == rail.wished else (now, rail.wished)


def lengths_of(rings: Rings | None) -> Lengths:
    """As ring_difference takes them."""
    return {} if rings is None else {"rx": rings.rx, "tx": rings.tx}


def ensure_rings(
    rails: Sequence[RailRings], *, runner: Runner, port: EthtoolPort, sys: SysRoot, refused: str, check_mode: bool
) -> RingsResult:
    """Write the rules, and give each interface that differs its rings, one after the other, as each change resets the interface.

    refused: why no interface may be reset now, "" if it may; then the interfaces stay as they are, and withheld names them and the reason.
    Check mode shows their differences as well. Raises ApplyError if an interface does not have its rings afterwards.
    """
    files = ensure_files(rules_file(rails), check_mode=check_mode)
    different = [(rail, found) for rail in rails if (found := ring_difference(rail, lengths_of(port.rings(rail.netdev)))) is not None]
    withheld = [f"{rail.netdev}: {words(seen)}, requested {words(wished)} ({refused})" for rail, (seen, wished) in different if refused]
    if not refused and not check_mode:
        for rail, _found in different:
            _set(rail, runner, port, sys)
    live = {rail.netdev: found for rail, found in different if not refused or check_mode}
    return RingsResult(files, live, withheld)


def _set(rail: RailRings, runner: Runner, port: EthtoolPort, sys: SysRoot) -> None:
    had_carrier = has_carrier(rail.netdev, sys)
    sizes = [word for way, length in rail.wished.items() for word in (way, str(length))]
    run_checked(runner, "ethtool", "-G", rail.netdev, *sizes)
    left = ring_difference(rail, lengths_of(port.rings(rail.netdev)))
    if left is not None:
        raise ApplyError(
            f"`ethtool -G {rail.netdev} {' '.join(sizes)}` succeeded, and the rings are {words(left[0])}. "
            "Drivers round lengths, often to a power of two: put a length that the driver takes into rdma_host.rings."
        )
    deadline = time.monotonic() + SETTLE_SECONDS
    # A link that does not come back is the link gate's to tell.
    while had_carrier and not has_carrier(rail.netdev, sys) and time.monotonic() < deadline:
        time.sleep(0.2)
