# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether logind removes a user's shared memory and semaphores at the end of the user's last login: RemoveIPC= of logind.conf(5).

Jobs of a batch system, and those left behind with nohup, then lose the segments in /dev/shm by which the processes of NCCL talk.
Source: the property RemoveIPC of org.freedesktop.login1(5); logind reads its configuration again on SIGHUP (logind.c, systemd 249 to 257).
"""

from __future__ import annotations

import time

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot, named
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import service_group

SERVICE = "systemd-logind.service"
_LOGIN1 = "org.freedesktop.login1"
ASK_REMOVE_IPC = ("busctl", "get-property", _LOGIN1, "/org/freedesktop/login1", f"{_LOGIN1}.Manager", "RemoveIPC")
RELOAD = ("systemctl", "kill", "--signal=HUP", SERVICE)
SETTLE_SECONDS = 5.0


def parse_bool_property(text: str) -> bool:
    """What `busctl get-property` says of a property of type boolean: "b true". Raises ParseError."""
    words = text.split()
    if len(words) != 2 or words[0] != "b" or words[1] not in ("true", "false"):
        raise ParseError(f"not a boolean property: {text[:200]!r}, expected 'b true' or 'b false'")
    return words[1] == "true"


def read_remove_ipc(sys: SysRoot, runner: Runner) -> bool | None:
    """What logind does now; None where it does not run, or does not answer. Raises ParseError for an answer that makes no sense."""
    if service_group(sys, SERVICE) is None:
        return None
    try:
        done = runner.run(ASK_REMOVE_IPC)
    except CommandError:
        return None
    return None if done.rc else named("`busctl get-property`", parse_bool_property, done.stdout)


def keep_ipc(sys: SysRoot, runner: Runner) -> None:
    """Have logind read its files again, and see that it removes nothing any more. Raises ApplyError if it still would."""
    run_checked(runner, *RELOAD)
    deadline = time.monotonic() + SETTLE_SECONDS
    while read_remove_ipc(sys, runner) is not False:
        if time.monotonic() > deadline:
            raise ApplyError(
                f"{SERVICE} was told to read its files again, and still says RemoveIPC=yes. "
                "See `systemd-analyze cat-config systemd/logind.conf` for a later file that sets it."
            )
        time.sleep(0.2)
