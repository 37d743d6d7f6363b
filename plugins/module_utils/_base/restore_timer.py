# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A timer of systemd that undoes a temporary change, whatever happens to Ansible, its connection or the control node.

It is armed before the change. Source: systemd-run(1).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import unit_state


def script(commands: Iterable[Sequence[str]]) -> str:
    """Return a shell script that runs all commands, also after one has failed; then once more, for routes that need an address."""
    lines = [" ".join(shlex.quote(word) for word in each) for each in commands]
    return "#!/bin/sh\n" + "\n".join([*lines, "sleep 2", *lines]) + "\nexit 0\n"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def arm(runner: Runner, unit: str, path: Path, seconds: int, *, timer: str, unchanged: str) -> None:
    """Run the script at `path` after some seconds. Raises ApplyError unless the timer waits.

    timer, unchanged: for the message: "The timer that would set the rails up again", "no rail was set down".
    """
    command = ("systemd-run", f"--unit={unit}", f"--on-active={seconds}s", "--timer-property=AccuracySec=1s", "--collect")
    try:
        run_checked(runner, *command, "/bin/sh", str(path))
        armed = is_armed(runner, unit)
    except CommandError as error:
        raise ApplyError(f"{timer} cannot be armed, so {unchanged}: {error}") from error
    except ApplyError as error:
        raise ApplyError(f"{timer} cannot be armed, so {unchanged}. {error}") from error
    if not armed:
        raise ApplyError(f"{timer} is not active, so {unchanged}: systemctl status {unit}.timer")


def is_armed(runner: Runner, unit: str) -> bool:
    """Return whether the timer waits. Raises ApplyError if systemd does not answer."""
    return unit_state(runner, f"{unit}.timer").active


def disarm(runner: Runner, unit: str) -> None:
    """Stop the timer. Raises ApplyError if systemd does not."""
    run_checked(runner, "systemctl", "stop", f"{unit}.timer")
