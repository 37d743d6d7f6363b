# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What processes may lock of memory, which RDMA needs to register it, and have open of files: for logins and for services.

limits.conf(5) holds for PAM sessions only, and its `*` is not root; what a service gets, and so a job that slurmd or containerd starts,
comes from the manager's DefaultLimit…= (systemd-system.conf(5)) or from its own unit. NVIDIA's guide to NCCL asks for no limit of
locked memory and for 131072 open files (connections and pieces of shared memory take them), and against an unlimited stack, which is
never set here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import named

NAME = "90-rdma-cluster.conf"
LOGIN_FILE = f"/etc/security/limits.d/{NAME}"
SYSTEM_FILE = f"/etc/systemd/system.conf.d/{NAME}"
USER_FILE = f"/etc/systemd/user.conf.d/{NAME}"
LOGIND_FILE = f"/etc/systemd/logind.conf.d/{NAME}"
HEADER = "# Managed by rdma.cluster: RDMA locks the memory that it registers.\n"
LOGIND_TEXT = "# Managed by rdma.cluster: a job's shared memory outlives the login that started it.\n[Login]\nRemoveIPC=no\n"
#: The kernel's own ceiling (fs.nr_open); the soft limit may be raised to it. systemd's default of the hard one is half of it.
OPEN_FILES_HARD = 1048576
MEMLOCK_KEY, OPEN_FILES_KEY = "DefaultLimitMEMLOCK", "DefaultLimitNOFILE"
MEMLOCK_ROW, OPEN_FILES_ROW = "Max locked memory", "Max open files"
ASK = ("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits")
LIMIT_HEADER = ["Limit", "Soft", "Limit", "Hard", "Limit", "Units"]
_LONGEST_LINE = 200
LIMIT_LINE = re.compile(r"(?P<name>\S.*?) {2,}(?P<soft>[0-9]{1,20}|unlimited) +(?P<hard>[0-9]{1,20}|unlimited)(?: +(?P<unit>\S+))? *")


@dataclass(frozen=True)
class Limit:
    """One line of /proc/PID/limits. soft and hard: in unit, None: unlimited; unit: "bytes", "us", …, None: none is said."""

    soft: int | None
    hard: int | None
    unit: str | None


@dataclass(frozen=True)
class Memlock:
    """How much memory a process may lock; bytes is None if unlimited."""

    unlimited: bool
    bytes: int | None

    @property
    def words(self) -> str:
        return "unlimited" if self.unlimited else f"{self.bytes} bytes"


@dataclass(frozen=True)
class LimitsWish:
    """memlock_unlimited: no limit of locked memory; open_files: files open at least, 0: as it is; keep_ipc: RemoveIPC=no."""

    memlock_unlimited: bool
    open_files: int
    keep_ipc: bool


@dataclass(frozen=True)
class ServiceLimits:
    """What a process has: its soft limits, with which the kernel compares. open_files is None if there is no limit."""

    memlock: Memlock
    open_files: int | None


def parse_limits(text: str) -> dict[str, Limit]:
    """The limits in /proc/PID/limits (proc(5)) by their names ("Max locked memory"). Raises ParseError."""
    lines = lines_of(text, _LONGEST_LINE)
    if not lines or lines[0].split() != LIMIT_HEADER:
        raise ParseError(f"not the limits of a process: {(lines or [''])[0]!r}, expected the line {' '.join(LIMIT_HEADER)!r}")
    limits = {}
    for line in lines[1:]:
        match = LIMIT_LINE.fullmatch(line)
        if match is None:
            raise ParseError(f"not a limit: {line!r}, expected name, soft limit, hard limit and unit")
        limits[match["name"]] = Limit(_number(match["soft"]), _number(match["hard"]), match["unit"])
    return limits


def _number(word: str) -> int | None:
    return None if word == "unlimited" else int(word)


def service_limits(text: str) -> ServiceLimits:
    """The limits of RDMA in /proc/PID/limits. Raises ParseError if one of them is not there."""
    found = parse_limits(text)
    missing = [row for row in (MEMLOCK_ROW, OPEN_FILES_ROW) if row not in found]
    if missing:
        raise ParseError(f"the limits of a process show no limit {missing[0]!r}: {text!r}")
    memlock = found[MEMLOCK_ROW].soft
    return ServiceLimits(Memlock(unlimited=memlock is None, bytes=memlock), found[OPEN_FILES_ROW].soft)


def read_service_limits(runner: Runner) -> ServiceLimits | None:
    """What a service that starts now gets, seen from inside one; None if systemd does not start one.

    Raises ParseError if what the service says makes no sense.
    """
    try:
        done = runner.run(ASK)
    except CommandError:
        return None
    return None if done.rc else named("`systemd-run … cat /proc/self/limits`", service_limits, done.stdout)


def files(wish: LimitsWish) -> list[ManagedFile]:
    """The files of logins, services, users' services and logind; one that has nothing to say shall not be there."""
    manager = [f"{MEMLOCK_KEY}=infinity"] if wish.memlock_unlimited else []
    manager += [f"{OPEN_FILES_KEY}={wish.open_files}:{OPEN_FILES_HARD}"] if wish.open_files else []
    manager_text = "\n".join([f"{HEADER}[Manager]", *manager, ""]) if manager else None
    logins = [f"{who} - memlock unlimited" for who in ("*", "root") if wish.memlock_unlimited]
    for who in ("*", "root") if wish.open_files else ():
        logins += [f"{who} soft nofile {wish.open_files}", f"{who} hard nofile {OPEN_FILES_HARD}"]
    return [
        ManagedFile(LOGIN_FILE, HEADER + "\n".join([*logins, ""]) if logins else None),
        ManagedFile(SYSTEM_FILE, manager_text),
        ManagedFile(USER_FILE, manager_text),
        ManagedFile(LOGIND_FILE, LOGIND_TEXT if wish.keep_ipc else None),
    ]


def too_low(wish: LimitsWish, seen: ServiceLimits) -> list[tuple[str, str, str]]:
    """What of a process's limits is less than wished: (what, seen, wished) in words."""
    found = []
    if wish.memlock_unlimited and not seen.memlock.unlimited:
        found.append(("memlock of services", seen.memlock.words, "unlimited"))
    if seen.open_files is not None and seen.open_files < wish.open_files:
        found.append(("open files of services", str(seen.open_files), str(wish.open_files)))
    return found
