# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails' interfaces administratively up, now. Boot state belongs to the network manager."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: linux/if.h
IFF_UP = 0x1


def ensure_up(netdevs: Sequence[str], *, runner: Runner, sys: SysRoot, wait_seconds: float, check_mode: bool) -> list[str]:
    """Set interfaces up that are down, wait until each has carrier, and return those that were down.

    A link that gets no carrier in wait_seconds is not an error here: the link gate says so, with the cable in question.
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
