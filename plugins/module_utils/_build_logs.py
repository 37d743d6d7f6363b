# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading the logs of a build: its own, and those that it names, each from its end."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._ofed_log import log_paths

#: So much is read of a log, from its end, and so many logs are followed beside the first one.
TAIL_BYTES = 512 * 1024
FOLLOWED = 8
DKMS_TREE = Path("/var/lib/dkms")


def read_tail(path: Path, most_bytes: int = TAIL_BYTES) -> str | None:
    """The end of a log, from a whole line on; None if there is no such file, or it is no log."""
    # A text names it, maybe below /tmp, where others can put links: what is no log in the end is not read.
    real = Path(os.path.realpath(path))
    if real.suffix != ".log":
        return None
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as handle:
        status = os.fstat(handle.fileno())
        if not stat.S_ISREG(status.st_mode):
            return None
        handle.seek(max(0, status.st_size - most_bytes))
        text = handle.read(most_bytes).decode("utf-8", "replace")
    return text if status.st_size <= most_bytes else text.partition("\n")[2]


def failed_builds(since: float, tree: Path = DKMS_TREE) -> list[Path]:
    """The logs of DKMS's builds that were written since a time (seconds since 1970) and are still where a failed build leaves them."""
    return sorted(path for path in tree.glob("*/*/build/make.log") if path.stat().st_mtime >= since)


def gather(log: Path, others: Iterable[Path] = ()) -> dict[str, str]:
    """The ends of a log and of those that it and they name, by path, the first one first; what cannot be read is left out."""
    found: dict[str, str] = {}
    waiting = [log, *others]
    seen: set[Path] = set()
    while waiting and len(found) <= FOLLOWED:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        text = read_tail(path)
        if text is not None:
            found[str(path)] = text
            waiting += [Path(each) for each in log_paths(text)]
    return found
