# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of locked memory, which RDMA needs to register memory, and of open files: for logins and for services.

limits.conf(5) applies to PAM sessions only, and its `*` excludes root. The limits of a service, and so of a job that slurmd or containerd
starts, come from the manager's DefaultLimit…= (systemd-system.conf(5)) or from its own unit. NVIDIA's guide to NCCL recommends no limit of
locked memory and 131072 open files (for connections and pieces of shared memory). It advises against an unlimited stack, so this is never
set here.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot, named
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import service_group
from ansible_collections.rdma.cluster.plugins.module_utils._host.limit_sources import LimitSource, unit_source

NAME = "90-rdma-cluster.conf"
LOGIN_FILE = f"/etc/security/limits.d/{NAME}"
SYSTEM_FILE = f"/etc/systemd/system.conf.d/{NAME}"
USER_FILE = f"/etc/systemd/user.conf.d/{NAME}"
LOGIND_FILE = f"/etc/systemd/logind.conf.d/{NAME}"
HEADER = "# Managed by rdma.cluster: RDMA locks the memory that it registers.\n"
LOGIND_TEXT = "# Managed by rdma.cluster: a job's shared memory outlives the login that started it.\n[Login]\nRemoveIPC=no\n"
#: The kernel's own maximum (fs.nr_open); the soft limit may be raised to it. systemd's default hard limit is half of it.
OPEN_FILES_HARD = 1048576
MEMLOCK_KEY, OPEN_FILES_KEY = "DefaultLimitMEMLOCK", "DefaultLimitNOFILE"
MEMLOCK_ROW, OPEN_FILES_ROW = "Max locked memory", "Max open files"
ASK = ("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits")
LIMIT_HEADER = ["Limit", "Soft", "Limit", "Hard", "Limit", "Units"]
_LONGEST_LINE = 200
LIMIT_LINE = re.compile(r"(?P<name>\S.*?) {2,}(?P<soft>[0-9]{1,20}|unlimited) +(?P<hard>[0-9]{1,20}|unlimited)(?: +(?P<unit>\S+))? *")


@dataclass(frozen=True)
class Limit:
    """One line of /proc/PID/limits. soft and hard: in unit, None: unlimited; unit: "bytes", "us", …, None: without one."""

    soft: int | None
    hard: int | None
    unit: str | None


@dataclass(frozen=True)
class Memlock:
    """The memory that a process may lock; bytes is None if unlimited."""

    unlimited: bool
    bytes: int | None

    @property
    def words(self) -> str:
        return "unlimited" if self.unlimited else f"{self.bytes} bytes"


@dataclass(frozen=True)
class LimitsRequest:
    """memlock_unlimited: no limit of locked memory; open_files: the minimum of open files, 0: unchanged; keep_ipc: RemoveIPC=no."""

    memlock_unlimited: bool
    open_files: int
    keep_ipc: bool


@dataclass(frozen=True)
class ServiceLimits:
    """The limits of a process: its soft limits, which the kernel enforces. open_files is None if there is no limit."""

    memlock: Memlock
    open_files: int | None


def parse_limits(text: str) -> dict[str, Limit]:
    """Return the limits in /proc/PID/limits (proc(5)) by their names ("Max locked memory"). Raises ParseError."""
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
    """Return the limits for RDMA in /proc/PID/limits. Raises ParseError if one of them is missing."""
    found = parse_limits(text)
    missing = [row for row in (MEMLOCK_ROW, OPEN_FILES_ROW) if row not in found]
    if missing:
        raise ParseError(f"the limits of a process show no limit {missing[0]!r}: {text!r}")
    memlock = found[MEMLOCK_ROW].soft
    return ServiceLimits(Memlock(unlimited=memlock is None, bytes=memlock), found[OPEN_FILES_ROW].soft)


def read_service_limits(runner: Runner) -> ServiceLimits | None:
    """Return the limits of a service that starts now, read from inside one; None if systemd does not start one.

    Raises ParseError if the service's output is invalid.
    """
    try:
        done = runner.run(ASK)
    except CommandError:
        return None
    return None if done.rc else named("`systemd-run … cat /proc/self/limits`", service_limits, done.stdout)


def files(request: LimitsRequest) -> list[ManagedFile]:
    """Return the files for logins, services, users' services and logind; an empty one is removed."""
    manager = [f"{MEMLOCK_KEY}=infinity"] if request.memlock_unlimited else []
    manager += [f"{OPEN_FILES_KEY}={request.open_files}:{OPEN_FILES_HARD}"] if request.open_files else []
    manager_text = "\n".join([f"{HEADER}[Manager]", *manager, ""]) if manager else None
    logins = [f"{who} - memlock unlimited" for who in ("*", "root") if request.memlock_unlimited]
    for who in ("*", "root") if request.open_files else ():
        logins += [f"{who} soft nofile {request.open_files}", f"{who} hard nofile {OPEN_FILES_HARD}"]
    return [
        ManagedFile(LOGIN_FILE, HEADER + "\n".join([*logins, ""]) if logins else None),
        ManagedFile(SYSTEM_FILE, manager_text),
        ManagedFile(USER_FILE, manager_text),
        ManagedFile(LOGIND_FILE, LOGIND_TEXT if request.keep_ipc else None),
    ]


def locks_too_little(request: LimitsRequest, seen: Memlock) -> bool:
    return request.memlock_unlimited and not seen.unlimited


def opens_too_few(request: LimitsRequest, open_files: int | None) -> bool:
    """Return whether the limit is too low. None: there is no limit."""
    return open_files is not None and open_files < request.open_files


def loses_ipc(request: LimitsRequest, removed: bool | None) -> bool:
    """Return whether shared memory would be lost. removed: whether logind removes a user's shared memory; None: it does not run."""
    return request.keep_ipc and bool(removed)


def too_low(request: LimitsRequest, seen: ServiceLimits) -> list[tuple[str, str, str]]:
    """Return the limits of a process that are below the request: (name, actual, requested) in words."""
    found = []
    if locks_too_little(request, seen.memlock):
        found.append(("memlock of services", seen.memlock.words, "unlimited"))
    if opens_too_few(request, seen.open_files):
        found.append(("open files of services", str(seen.open_files), str(request.open_files)))
    return found


FIRST = "/etc/security/limits.conf"
FOLDER = "/etc/security/limits.d"
#: `*` means every user except root.
DOMAINS = ("*", "root")
UNLIMITED = ("-1", "infinity", "unlimited")
#: The limits that a line's type sets.
TYPES = {"-": ("soft", "hard"), "soft": ("soft",), "hard": ("hard",)}


@dataclass(frozen=True)
class Rule:
    """One line. types: "soft", "hard" or both; item: "memlock", "nofile", …; value as written; line: its number, from 1."""

    domain: str
    types: tuple[str, ...]
    item: str
    value: str
    line: int = 1


@dataclass(frozen=True)
class LoginLimit:
    """The limit of a login, and the line that sets it; unless it is unlimited, the value as written there (memlock: KiB)."""

    unlimited: bool
    value: str
    file: str
    line: int | None = None


def parse_limits_conf(text: str) -> list[Rule]:
    """Return the lines for every user and for root, in order; pam_limits skips lines that it does not understand, and so does this."""
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if len(words) == 4 and words[0] in DOMAINS and words[1] in TYPES:
            rules.append(Rule(words[0], TYPES[words[1]], words[2], words[3], number))
    return rules


def read_login_limits(sys: SysRoot, item: str) -> dict[str, LoginLimit | None]:
    """Return an item's limit for every user ("*") and for root; None if no file sets it, so that the kernel's default applies."""
    names = [f"{FOLDER}/{name}" for name in sys.list_dir(FOLDER) if name.endswith(".conf")]
    last: dict[tuple[str, str], LoginLimit] = {}
    for path in (FIRST, *names):
        for rule in parse_limits_conf(sys.read(path) or ""):
            for kind in rule.types if rule.item == item else ():
                last[rule.domain, kind] = LoginLimit(rule.value in UNLIMITED, rule.value, path, rule.line)
    return {domain: _least([last.get((domain, kind)) for kind in ("soft", "hard")]) for domain in DOMAINS}


def _least(both: list[LoginLimit | None]) -> LoginLimit | None:
    """Return the effective one of soft and hard limit; None if either is missing."""
    known = [limit for limit in both if limit is not None]
    return min(known, key=_height) if len(known) == len(both) else None


def _height(limit: LoginLimit) -> tuple[bool, int]:
    """Return a sort key. A value that is not a number counts as the lowest, because it cannot be relied on."""
    return limit.unlimited, int(limit.value) if limit.value.isdecimal() else 0


SERVICE = "systemd-logind.service"
_LOGIN1 = "org.freedesktop.login1"
ASK_REMOVE_IPC = ("busctl", "get-property", _LOGIN1, "/org/freedesktop/login1", f"{_LOGIN1}.Manager", "RemoveIPC")
RELOAD = ("systemctl", "kill", "--signal=HUP", SERVICE)
SETTLE_SECONDS = 5.0


def parse_bool_property(text: str) -> bool:
    """Parse `busctl get-property` for a boolean property: "b true". Raises ParseError."""
    words = text.split()
    if len(words) != 2 or words[0] != "b" or words[1] not in ("true", "false"):
        raise ParseError(f"not a boolean property: {quoted(text)}, expected 'b true' or 'b false'")
    return words[1] == "true"


def read_remove_ipc(sys: SysRoot, runner: Runner) -> bool | None:
    """Return logind's current setting; None if it does not run or does not answer. Raises ParseError for an invalid answer."""
    if service_group(sys, SERVICE) is None:
        return None
    try:
        done = runner.run(ASK_REMOVE_IPC)
    except CommandError:
        return None
    return None if done.rc else named("`busctl get-property`", parse_bool_property, done.stdout)


def keep_ipc(sys: SysRoot, runner: Runner) -> None:
    """Reload logind's files, and check that it no longer removes anything. Raises ApplyError if it still would."""
    run_checked(runner, *RELOAD)
    deadline = time.monotonic() + SETTLE_SECONDS
    while read_remove_ipc(sys, runner) is not False:
        if time.monotonic() > deadline:
            raise ApplyError(
                f"{SERVICE} has reloaded its files, but still has RemoveIPC=yes. "
                "Run `systemd-analyze cat-config systemd/logind.conf` to find a later file that sets it."
            )
        time.sleep(0.2)


#: The unit, and the name of its main process; distributions use both names for SSH's unit.
STARTERS = {
    "ssh.service": "sshd",
    "sshd.service": "sshd",
    "slurmd.service": "slurmd",
    "containerd.service": "containerd",
    "docker.service": "dockerd",
    "kubelet.service": "kubelet",
}


@dataclass(frozen=True)
class RunningService:
    """A running service: its main process, its limit of locked memory, and the line of its unit or a drop-in that sets it."""

    pid: int
    memlock: Memlock
    source: LimitSource | None = None


def read_running_services(sys: SysRoot) -> dict[str, RunningService]:
    """Return those of STARTERS that run, by unit; no process is started. One that ends meanwhile, or may not be read, is omitted."""
    found = {unit: _read(sys, unit, name) for unit, name in STARTERS.items()}
    return {unit: service for unit, service in found.items() if service is not None}


def _read(sys: SysRoot, unit: str, name: str) -> RunningService | None:
    group = service_group(sys, unit)
    pids = (sys.text(f"{group}/cgroup.procs") or "").split() if group is not None else []
    for pid in sorted(int(word) for word in pids if word.isdecimal()):
        path = f"/proc/{pid}/limits"
        try:
            text = sys.read(path) if sys.text(f"/proc/{pid}/comm") == name else None
        except (PermissionError, ProcessLookupError):
            continue
        if text:
            return RunningService(pid, named(path, service_limits, text).memlock, unit_source(sys, unit, "MEMLOCK"))
    return None
