# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply a RoCE profile to an interface: read, compare, write differences, read back. Used by the module and the boot unit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import EthtoolPort
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import address_of, find_function
from ansible_collections.rdma.cluster.plugins.module_utils._qos.backends import FIRMWARE
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import NEGOTIATED, Difference, differences, format_value
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import as_tree, read_qos
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import Careful, find_places
from ansible_collections.rdma.cluster.plugins.module_utils._qos.writes import Command, FileText, Target, writes
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import Configfs, RdmaCm, apply_rdma_cm

#: Trust is written before the settings that only a trusting interface reports, so one pass is not enough.
LOOKS = 3
UP_SECONDS = 60.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class QosPort:
    """An interface and the RDMA port on it ("1")."""

    interface: str
    device: str
    port: str


@dataclass(frozen=True)
class QosHost:
    """The host's interfaces for reading and writing. configfs writes every file of the kernel."""

    sys: SysRoot
    runner: Runner
    ethtool: EthtoolPort
    configfs: Configfs
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Outcome:
    """The written settings of an interface; in check mode every difference.

    withheld: settings that would take the link down and were not written; waits: the other settings that were not written.
    """

    interface: str
    written: list[Difference]
    withheld: list[Difference]
    waits: list[Difference] = field(default_factory=list)


def ensure_qos(
    profile: Mapping[str, Any], port: QosPort, host: QosHost, *, check_mode: bool, change_allowed: bool, toggle_allowed: bool
) -> Outcome:
    """Apply the profile to an interface, as far as it can be set there.

    change_allowed: whether anything may change now; toggle_allowed: whether its link may go down for a moment; the function then waits for
    the link. An interface is written as a whole or not at all: traffic that moves to a priority without PFC is lossy. If the firmware owns
    DCBX, settings that DCBX negotiates are not written. Raises ApplyError if a write is refused, has no effect, or the link does not come
    back.
    """
    written: list[Difference] = []
    for _look in range(LOOKS):
        state = _state(port, host)
        left = to_write(profile, state, toggle_allowed=True)
        toggles = [each for each in left if each.toggles]
        held = left and (not change_allowed or (toggles and not toggle_allowed))
        withheld, waits = (toggles, [each for each in left if not each.toggles]) if held else ([], [])
        if check_mode:
            return Outcome(port.interface, left, withheld, waits)
        left = [] if held else left
        new = [each for each in left if each not in written]
        if not new:
            break
        _write(new, port, host, state["backend"])
        written += new
    if left:
        lost = (f"{each.name} of {port.interface} was written, but is not {format_value(each.requested)}" for each in left)
        raise ApplyError("; ".join(lost))
    return Outcome(port.interface, written, withheld, waits)


def to_write(profile: Mapping[str, Any], state: Mapping[str, Any], *, toggle_allowed: bool) -> list[Difference]:
    """Return the differences that may be written: if the firmware owns DCBX, settings that DCBX negotiates are excluded."""
    negotiated = NEGOTIATED if profile["dcbx"] == FIRMWARE else frozenset()
    return [each for each in differences(profile, state) if each.setting not in negotiated and (toggle_allowed or not each.toggles)]


def _state(port: QosPort, host: QosHost) -> dict[str, Any]:
    state = read_qos(host.sys, host.runner, port.interface, port.device, port.port)
    return as_tree(state, host.ethtool.pause(port.interface))


def _write(found: Sequence[Difference], port: QosPort, host: QosHost, backend: str | None) -> None:
    was_active = _is_active(port, host)
    target = _target(port, host, backend)
    for each in found:
        if each.setting == "rdma_cm":
            requested = RdmaCm(each.requested["mode"], each.requested["tos"])
            apply_rdma_cm(port.device, int(port.port), requested, sys=host.sys, configfs=host.configfs, check_mode=False)
            continue
        for write in writes(each, target):
            _do(write, host)
        if each.toggles and was_active:
            _wait_until_active(each, port, host)


def _target(port: QosPort, host: QosHost, backend: str | None) -> Target:
    function = find_function(host.sys, f"/sys/class/net/{port.interface}/device")
    places = find_places(Careful(host.sys), port.interface, address_of(function) if function is not None else None)
    return Target(port.interface, port.device, port.port, backend, places)


def _do(write: Command | FileText, host: QosHost) -> None:
    """Run a command or write a file. mlnx_qos prints its errors to stdout."""
    try:
        if isinstance(write, FileText):
            host.configfs.write(write.path, f"{write.text}\n")
            return
        done = host.runner.run(write.argv)
    except (OSError, CommandError) as exc:
        raise ApplyError(str(exc)) from exc
    if done.rc:
        raise ApplyError(f"`{' '.join(write.argv)}` failed: {done.stderr.strip() or done.stdout.strip() or done.rc}")


def _is_active(port: QosPort, host: QosHost) -> bool:
    state = host.sys.text(f"/sys/class/infiniband/{port.device}/ports/{port.port}/state") or ""
    return "ACTIVE" in state and host.sys.text(f"/sys/class/net/{port.interface}/carrier") == "1"


def _wait_until_active(difference: Difference, port: QosPort, host: QosHost) -> None:
    deadline = time.monotonic() + UP_SECONDS
    # The link goes down a moment after the write has returned.
    host.sleep(_POLL_SECONDS)
    while not _is_active(port, host):
        if time.monotonic() > deadline:
            where = f"{port.interface} ({port.device}/{port.port})"
            raise ApplyError(f"{difference.name} took the link of {where} down, and it is not ACTIVE again after {UP_SECONDS:.0f} s.")
        host.sleep(_POLL_SECONDS)
