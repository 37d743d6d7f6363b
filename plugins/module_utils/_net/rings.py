# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rings of the rails' NICs: their current lengths, and one udev rule that sets them at boot, driver reload and hot-plug.

Rings do nothing for the queue pairs of RDMA; they help sockets, which lose packets in a burst if a ring is short. A change resets
the interface, and on many drivers the link is down for about a second. So only differences are written.

A systemd.link(5) file could do the same (RxBufferSize=), but only the first file that matches an interface is used. Ours would replace
the distribution's 99-default.link and its naming, and the interface would have another name after a boot. A udev rule
hides nothing. Sources: udev(7), ethtool(8), include/uapi/linux/ethtool.h.
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
#: Direction ("rx", "tx") → entries; None: unknown.
Lengths = Mapping[str, Optional[int]]


@dataclass(frozen=True)
class RailRings:
    """The planned rings of a rail's NIC. nic: {"pci"} or {"mac"}; netdev: its interface now; rx, tx: None keeps the current length."""

    name: str
    nic: dict[str, str]
    netdev: str
    rx: int | None
    tx: int | None

    @property
    def requested(self) -> dict[str, int]:
        return {way: length for way, length in (("rx", self.rx), ("tx", self.tx)) if length is not None}


@dataclass(frozen=True)
class RingsResult:
    """The changes that were made, or would be in check mode; live: interface → (current, planned); withheld: interfaces not changed."""

    files: list[FileChange]
    live: dict[str, tuple[Lengths, Lengths]]
    withheld: list[str]

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        live = [
            setting_diff(f"{way} ring of {name}", _shown(seen[way]), planned[way])
            for name, (seen, planned) in self.live.items()
            for way in planned
            if seen[way] != planned[way]
        ]
        return [*(file.to_diff() for file in self.files), *live]

    @property
    def live_words(self) -> dict[str, tuple[str, str]]:
        """Return live in words."""
        return {name: (words(seen), words(planned)) for name, (seen, planned) in self.live.items()}


def words(lengths: Lengths) -> str:
    """Return lengths in words: "rx 8192, tx 8192"."""
    return ", ".join(f"{way} {_shown(length)}" for way, length in lengths.items())


def _shown(length: int | None) -> str:
    return "unknown" if length is None else str(length)


def rules_file(rails: Sequence[RailRings]) -> list[ManagedFile]:
    """Return the udev rules of these rails; without rails, the file is removed."""
    lines = [_rule(rail) for rail in rails if rail.requested]
    return [ManagedFile(RULES_FILE, HEADER + "".join(lines) if lines else None)]


def _rule(rail: RailRings) -> str:
    match = f'KERNELS=="{rail.nic["pci"].lower()}"' if "pci" in rail.nic else f'ATTR{{address}}=="{rail.nic["mac"].lower()}"'
    sizes = " ".join(f"{way} {length}" for way, length in rail.requested.items())
    return f'ACTION=="add", SUBSYSTEM=="net", {match}, RUN+="{ETHTOOL} -G $name {sizes}"\n'


def ring_difference(rail: RailRings, seen: Lengths) -> tuple[Lengths, Lengths] | None:
    """Return (current, planned) of a rail's rings that differ; None if they do not. seen: without rings of unknown length."""
    now = {way: seen.get(way) for way in rail.requested}
    return None if now == rail.requested else (now, rail.requested)


def lengths_of(rings: Rings | None) -> Lengths:
    """Return the lengths in the form that ring_difference expects."""
    return {} if rings is None else {"rx": rings.rx, "tx": rings.tx}


def ensure_rings(
    rails: Sequence[RailRings], *, runner: Runner, port: EthtoolPort, sys: SysRoot, refused: str, check_mode: bool
) -> RingsResult:
    """Write the rules, and set the rings of each interface that differs, one after another, because each change resets the interface.

    refused: why no interface may be reset now, "" if it may; then the interfaces are not changed, and withheld names them and the reason.
    Check mode shows their differences as well. Raises ApplyError if an interface does not have its rings afterwards.
    """
    files = ensure_files(rules_file(rails), check_mode=check_mode)
    different = [(rail, found) for rail in rails if (found := ring_difference(rail, lengths_of(port.rings(rail.netdev)))) is not None]
    withheld = [f"{rail.netdev}: {words(seen)}, requested {words(planned)} ({refused})" for rail, (seen, planned) in different if refused]
    if not refused and not check_mode:
        for rail, _found in different:
            _set(rail, runner, port, sys)
    live = {rail.netdev: found for rail, found in different if not refused or check_mode}
    return RingsResult(files, live, withheld)


def _set(rail: RailRings, runner: Runner, port: EthtoolPort, sys: SysRoot) -> None:
    had_carrier = has_carrier(rail.netdev, sys)
    sizes = [word for way, length in rail.requested.items() for word in (way, str(length))]
    run_checked(runner, "ethtool", "-G", rail.netdev, *sizes)
    left = ring_difference(rail, lengths_of(port.rings(rail.netdev)))
    if left is not None:
        raise ApplyError(
            f"`ethtool -G {rail.netdev} {' '.join(sizes)}` succeeded, and the rings are {words(left[0])}. "
            "Drivers round lengths, often to a power of two: put a length that the driver takes into rdma_host.rings."
        )
    deadline = time.monotonic() + SETTLE_SECONDS
    # If the link does not come back, the link gate reports it.
    while had_carrier and not has_carrier(rail.netdev, sys) and time.monotonic() < deadline:
        time.sleep(0.2)
