# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much memory a process may lock, which RDMA needs to register memory: for logins and for services.

limits.conf(5) holds for PAM sessions only, and its `*` is not root; what a service may lock, and so a job that slurmd or
containerd starts, comes from the manager's DefaultLimitMEMLOCK (systemd-system.conf(5)) or from its own unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._files import FileChange, ManagedFile, ensure_files
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

NAME = "90-rdma-cluster.conf"
LOGIN_FILE = f"/etc/security/limits.d/{NAME}"
SYSTEM_FILE = f"/etc/systemd/system.conf.d/{NAME}"
USER_FILE = f"/etc/systemd/user.conf.d/{NAME}"
HEADER = "# Managed by rdma.cluster: RDMA locks the memory that it registers.\n"
LOGIN_TEXT = f"{HEADER}* - memlock unlimited\nroot - memlock unlimited\n"
MANAGER_TEXT = f"{HEADER}[Manager]\nDefaultLimitMEMLOCK=infinity\n"
#: Where the system manager looks for drop-ins; a file hides those of its name in the folders after its own.
DROP_INS = tuple(f"{folder}/systemd/system.conf.d" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
DEFAULT_KEY = "DefaultLimitMEMLOCK"
ASK = ("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits")
LIMIT_HEADER = ["Limit", "Soft", "Limit", "Hard", "Limit", "Units"]
LIMIT_LINE = re.compile(r"(?P<name>\S.*?) {2,}(?P<soft>\d+|unlimited) +(?P<hard>\d+|unlimited)(?: +(?P<unit>\S+))? *")


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
class MemlockResult:
    """What was done, or would be in check mode; live: what services were given before, None if that stays as it is."""

    files: list[FileChange]
    live: str | None

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        header = {"before_header": "memlock of services", "after_header": "memlock of services"}
        live = [{**header, "before": f"{self.live}\n", "after": "unlimited\n"}] if self.live else []
        return [*(file.to_diff() for file in self.files), *live]


def parse_limits(text: str) -> dict[str, Limit]:
    """The limits in /proc/PID/limits (proc(5)) by their names ("Max locked memory"). Raises ParseError."""
    lines = text.splitlines()
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


def read_service_memlock(runner: Runner) -> Memlock | None:
    """What a service that starts now may lock, seen from inside one; None if systemd does not start one.

    It is the soft limit: the kernel compares with that one when memory is registered, and it is never above the hard one.
    Raises ParseError if what the service says makes no sense.
    """
    try:
        done = runner.run(ASK)
    except CommandError:
        return None
    if done.rc:
        return None
    limit = parse_limits(done.stdout).get("Max locked memory")
    if limit is None:
        raise ParseError(f"`{' '.join(ASK)}` shows no limit 'Max locked memory': {done.stdout!r}")
    return Memlock(unlimited=limit.soft is None, bytes=limit.soft)


def files(*, unlimited: bool = True) -> list[ManagedFile]:
    """The files that lift the limit for logins, services and users' services; unlimited False: that they shall go."""
    wanted = {LOGIN_FILE: LOGIN_TEXT, SYSTEM_FILE: MANAGER_TEXT, USER_FILE: MANAGER_TEXT}
    return [ManagedFile(path, text if unlimited else None) for path, text in wanted.items()]


def ensure_memlock(*, runner: Runner, sys: SysRoot, check_mode: bool, unlimited: bool) -> MemlockResult:
    """Write the files, and have systemd read them again if a service that starts now is still limited.

    unlimited False: remove the files and leave the running manager alone, as nothing is known of what it should say.
    Raises ApplyError if the limit cannot be seen or is still there afterwards.
    """
    changes = ensure_files(files(unlimited=unlimited), check_mode=check_mode)
    before = read_service_memlock(runner) if unlimited else None
    if not unlimited or (before is not None and before.unlimited):
        return MemlockResult(changes, None)
    if not check_mode:
        if before is None:
            raise ApplyError(f"Cannot see what services may lock: `{' '.join(ASK)}` does not work here.")
        run_checked(runner, "systemctl", "daemon-reexec")
        _read_back(runner, sys)
    return MemlockResult(changes, before.words if before is not None else "unknown")


def _read_back(runner: Runner, sys: SysRoot) -> None:
    after = read_service_memlock(runner)
    if after is not None and after.unlimited:
        return
    seen = after.words if after is not None else "unknown"
    later = overriding_drop_in(sys)
    if later is not None:
        why = f"{later} comes after {NAME} and sets {DEFAULT_KEY} as well: take it out there."
    else:
        why = (
            f"Look for what sets it with `systemd-analyze cat-config systemd/system.conf` and in `systemctl cat -- service.d`: not {NAME}."
        )
    raise ApplyError(f"systemd was told {DEFAULT_KEY}=infinity, and services may still lock {seen}. {why}")


def overriding_drop_in(sys: SysRoot) -> str | None:
    """The last file that the system manager reads after ours and that sets the default anew; None if there is none."""
    chosen: dict[str, str] = {}
    for folder in DROP_INS:
        for name in sys.list_dir(folder):
            chosen.setdefault(name, f"{folder}/{name}")
    later = [chosen[name] for name in sorted(chosen) if name.endswith(".conf") and name > NAME]
    setting = [path for path in later if parse_default_memlock(sys.read(path) or "") is not None]
    return setting[-1] if setting else None


def parse_default_memlock(text: str) -> str | None:
    """DefaultLimitMEMLOCK of a manager's configuration file as it stands there ("64M"); None if it is not set."""
    section, found = "", None
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            section = line
        key, equals, value = line.partition("=")
        if equals and section == "[Manager]" and key.strip() == DEFAULT_KEY:
            found = value.strip()
    return found
