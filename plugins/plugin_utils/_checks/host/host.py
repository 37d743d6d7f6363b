# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the host gate on memory and kernel settings: lockable memory, free memory, /dev/shm, sysctl."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import Limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.limit_sources import LimitSource
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import (
    LOGIN_FILE,
    NAME,
    UNLIMITED,
    LimitsRequest,
    LoginLimit,
    RunningService,
    locks_too_little,
    loses_ipc,
    opens_too_few,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.memory import Memory
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import FILE, BootValue, remedy
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import limits_request, memlock_of

_LIMITS_CONF = reads.folder(
    "/etc/security/limits.d", absent_means="no file raises the kernel's own limit, which is an error", about="*login*"
)
_IN_A_SERVICE = reads.command("systemd-run", about="*a service*")
declare(
    {
        "host.memlock": Check(
            "host",
            "how much memory a service and a login may lock",
            "`/proc/self/limits` in a transient service, `limits.d`; `system.conf.d`, `service.d` for the line that sets it",
            "remove the line that the finding names, or run the host stage",
            sources=(_IN_A_SERVICE, _LIMITS_CONF),
        ),
        "host.sysctl": Check(
            "host",
            "each kernel setting, now and after a boot",
            "`/proc/sys`, `sysctl.d`",
            "remove the key from the later file that the finding names",
            sources=(
                reads.file("/proc/sys/net/*", absent_means="the kernel has no such key, which is an error"),
                reads.folder("/etc/sysctl.d", absent_means="nothing sets the key at boot, which is an error"),
            ),
        ),
        "host.files": Check(
            "host",
            "how many files a service and a login may have open",
            "`/proc/self/limits` in a transient service, `limits.d`",
            "remove the later file or drop-in that sets less",
            sources=(_IN_A_SERVICE, _LIMITS_CONF),
        ),
        "host.ipc": Check(
            "host",
            "whether logind removes the shared memory of users who have logged out",
            "`RemoveIPC` of `org.freedesktop.login1`",
            "find the later file that sets it: `systemd-analyze cat-config systemd/logind.conf`",
            sources=(
                reads.command("busctl", "get-property"),
                reads.folder(reads.SERVICE_GROUPS, absent_means="logind does not run"),
            ),
        ),
        "host.services": Check(
            "host",
            "how much memory the running services that start jobs may lock: SSH, slurmd, containerd, Docker, kubelet",
            "`/proc/PID/limits`",
            "remove the line of its unit or drop-in that the finding names; drain the host and restart the service",
            sources=(
                reads.file(f"{reads.SERVICE_GROUPS}/*/cgroup.procs", absent_means="a service that does not run has no processes"),
                reads.file("/proc/*/comm", absent_means="a process that has ended has no name"),
                reads.file("/proc/*/limits", absent_means="a process that has ended has no limits"),
            ),
        ),
        "host.memory": Check(
            "host",
            "available memory: an error below the smaller of 1 GiB and 5 %, a warning below the smaller of 4 GiB and 10 %",
            "`/proc/meminfo`",
            "stop the largest processes; reduce huge pages; delete files in `/dev/shm`",
            threshold="GiB that must be available, instead of both limits",
            sources=(reads.file("/proc/meminfo"),),
        ),
        "host.shm": Check(
            "host",
            "free space and inodes of `/dev/shm`, where NCCL puts shared memory: an error below the smaller of 0.5 GiB and 10 %, or 1024 "
            "inodes; a warning if it is smaller than 1 GiB and a quarter of the memory",
            "`statvfs`, `/proc/meminfo`",
            "`du -ah /dev/shm | sort -h | tail`; `mount -o remount,size=50% /dev/shm`",
            threshold="GiB that must be free in `/dev/shm`",
            sources=(reads.kernel("statvfs"), reads.file("/proc/meminfo")),
        ),
    }
)

STAGE = "host"
MEMLOCK_SUBJECT = "memory that a service may lock"
MEMORY_SUBJECT = "available memory"
SHM, SHM_SUBJECT = "/dev/shm", "shared memory (/dev/shm)"  # noqa: S108 - it is judged, and nothing is put there
#: The checked logins, by their name in limits.conf.
LOGINS = {"*": "any user", "root": "root"}
MIB_BYTES, GIB_BYTES = 2**20, 2**30
#: Available memory below the first limit is an error, below the second a warning: the smaller of GiB and a fraction of all memory.
EXHAUSTED, SCARCE = (1.0, 0.05), (4.0, 0.10)
#: NCCL puts about 10 MB into /dev/shm for each connection between GPUs of a host. Free: the smaller of GiB and a fraction of its size.
SHM_FREE = (0.5, 0.10)
#: A smaller size is too small for a job on 8 GPUs, unless the host has little memory; the kernel's default is half of the memory.
SHM_SIZE = (1.0, 0.25)
#: Each segment uses one inode.
SHM_INODES = 1024


def check_host(host: str, intent: Intent, facts: Facts, settings: Mapping[str, str]) -> list[Finding]:
    """Finding `host.memlock`, and `host.sysctl` for each setting: key → value, live and after a boot."""
    if not settings:
        why = "the intent requests no kernel setting"
        return [*_memlock(host, intent, facts), Finding(STAGE, "host.sysctl", host, "kernel settings", NOT_APPLICABLE, why, "none")]
    return [*_memlock(host, intent, facts), *(_setting(host, key, value, facts) for key, value in settings.items())]


def check_memory(host: str, facts: Facts, memory_gib: float | None = None, shm_gib: float | None = None) -> list[Finding]:
    """Findings `host.memory` and `host.shm`. memory_gib, shm_gib: thresholds instead of the built-in ones."""
    return [_memory(host, facts, memory_gib), _shm(host, facts, shm_gib)]


def _memory(host: str, facts: Facts, limit_gib: float | None) -> Finding:
    memory = facts.memory
    available, total = (memory.available_bytes, memory.total_bytes) if memory is not None else (None, 0)
    if memory is None or available is None or not total:
        remedy = f"On {host}, run `cat /proc/meminfo`."
        return Finding(
            STAGE, "host.memory", host, MEMORY_SUBJECT, UNKNOWN, "/proc/meminfo was not read, or has no MemAvailable", "known", remedy
        )
    exhausted = _part(EXHAUSTED, total) if limit_gib is None else limit_gib * GIB_BYTES
    scarce = max(exhausted, _part(SCARCE, total)) if limit_gib is None else exhausted
    expected = f"{_gib(scarce)} or more"
    holders = [
        f"{what} {_gib(held)}"
        for what, held in (("huge pages hold", memory.huge_bytes), ("shared memory and tmpfs hold", memory.shared_bytes))
        if held and held >= total / 10
    ]
    observed = "; ".join([f"{_gib(available)} of {_gib(total)}", *holders])
    if available >= scarce:
        return Finding(STAGE, "host.memory", host, MEMORY_SUBJECT, OK, observed, expected)
    status = ERROR if available < exhausted else WARNING
    return Finding(STAGE, "host.memory", host, MEMORY_SUBJECT, status, observed, expected, _free_memory(host, memory, available))


def _free_memory(host: str, memory: Memory, available_bytes: int) -> str:
    """The steps that free memory, the largest user first."""
    steps = {
        f"On {host}, `ps -eo pid,rss,comm --sort=-rss | head` shows the largest processes: stop those that do not belong there.": (
            memory.total_bytes - available_bytes - memory.huge_bytes - memory.shared_bytes
        ),
        f"On {host}, `grep -i huge /proc/meminfo` shows unused huge pages: lower vm.nr_hugepages.": memory.huge_free_bytes,
        f"On {host}, `du -ah {SHM} | sort -h | tail` shows files in memory: remove those of ended jobs.": memory.shared_bytes,
    }
    first = [step for step, held in sorted(steps.items(), key=lambda item: -item[1]) if held > 0]
    return " ".join(f"{number}. {step}" for number, step in enumerate(first or list(steps), start=1))


def _shm(host: str, facts: Facts, limit_gib: float | None) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "host.shm", host, SHM_SUBJECT, status, observed, "room for the shared memory of NCCL", remedy)

    if not facts.filesystems:
        return finding(UNKNOWN, "file systems were not read", f"On {host}, run `df -h {SHM}`.")
    shm = facts.filesystems.get(SHM)
    if shm is None:
        return finding(ERROR, f"{SHM} does not exist", f"On {host}, run `mkdir {SHM} && mount -t tmpfs -o mode=1777 tmpfs {SHM}`.")
    free, size = shm.free_bytes, shm.size_bytes
    needed = _part(SHM_FREE, size) if limit_gib is None else limit_gib * GIB_BYTES
    observed = f"{_gib(free)} of {_gib(size)} free"
    clean = f"On {host}, `du -ah {SHM} | sort -h | tail` shows the largest files: remove those of ended jobs."
    few_inodes = shm.inodes and shm.free_inodes < SHM_INODES
    if free < needed or few_inodes:
        observed += f"; {shm.free_inodes} of {shm.inodes} inodes free" if few_inodes else ""
        return finding(ERROR, observed, f"1. {clean}{_enlarge(host, 2)}")
    total = facts.memory.total_bytes if facts.memory is not None else None
    if size >= (_part(SHM_SIZE, total) if total else SHM_SIZE[0] * GIB_BYTES):
        return finding(OK, observed)
    if total:
        return finding(WARNING, f"{observed}; this host has {_gib(total)} of memory", _enlarge(host, 1).strip())
    why = f"{observed}; not known whether this is enough: /proc/meminfo was not read"
    return finding(UNKNOWN, why, f"On {host}, run `cat /proc/meminfo`.")


def _enlarge(host: str, step: int) -> str:
    return f" {step}. If it is too small, run `mount -o remount,size=50% {SHM}` on {host}, and correct its line in /etc/fstab."


def _part(limit: tuple[float, float], of_bytes: float) -> float:
    """The smaller of a limit in GiB and a fraction of a size, in bytes."""
    return min(limit[0] * GIB_BYTES, limit[1] * of_bytes)


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / GIB_BYTES:.1f} GiB" if size_bytes >= GIB_BYTES else f"{size_bytes / MIB_BYTES:.0f} MiB"


def _memlock(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    if not intent["host"]["memlock_unlimited"]:
        why = "rdma_host.memlock_unlimited is false: the limit is not changed"
        return [Finding(STAGE, "host.memlock", host, MEMLOCK_SUBJECT, NOT_APPLICABLE, why, "any")]
    limits, request = facts.limits, limits_request(intent)
    logins = limits.login_memlock if limits is not None else {}
    return [_service_memlock(host, request, limits), *(_login_memlock(host, request, who, logins.get(who)) for who in LOGINS)]


def _login_memlock(host: str, request: LimitsRequest, who: str, seen: LoginLimit | None) -> Finding:
    subject = f"memory that a login of {LOGINS[who]} may lock"
    if seen is None:
        todo = f"Run the host stage for {host}."
        return Finding(STAGE, "host.memlock", host, subject, ERROR, "no file sets it: the kernel's default", "unlimited", todo)
    good = not locks_too_little(request, memlock_of(seen))
    return Finding(
        STAGE, "host.memlock", host, subject, OK if good else ERROR,
        observed="unlimited" if good else f"{seen.value} KiB by {place(seen)}",
        expected="unlimited",
        remedy="" if good else login_remedy(host, seen),
    )  # fmt: skip


def _service_memlock(host: str, request: LimitsRequest, limits: Limits | None) -> Finding:
    seen = limits.service_memlock if limits is not None else None
    if limits is None or seen is None:
        return Finding(
            STAGE, "host.memlock", host, MEMLOCK_SUBJECT, UNKNOWN, "the limit of a service could not be read", "unlimited",
            f"On {host}, run `systemd-run --wait --pipe cat /proc/self/limits` and fix its error.",
        )  # fmt: skip
    good, source = not locks_too_little(request, seen), limits.service_sources.get("memlock")
    by = f" by {place(source)}" if source is not None and is_foreign(source) else ""
    return Finding(
        STAGE, "host.memlock", host, MEMLOCK_SUBJECT, OK if good else ERROR,
        observed="unlimited" if good else f"{seen.bytes} bytes{by}",
        expected="unlimited",
        remedy="" if good else service_remedy(host, source),
    )  # fmt: skip


def place(source: LimitSource | LoginLimit | BootValue) -> str:
    """The line of a file that sets a limit."""
    return f"line {source.line} of {source.file}" if source.line else source.file


def is_foreign(source: LimitSource | None) -> bool:
    """Whether a file of another program or admin sets a limit. source: None if no file sets it."""
    return source is not None and not source.file.endswith(f"/{NAME}")


def login_remedy(host: str, seen: LoginLimit) -> str:
    """The remedy for a limit of logins: pam_limits reads files in the order of their names, and the last line wins."""
    if seen.file.rpartition("/")[2] <= NAME or not seen.file.startswith(LOGIN_FILE.rpartition("/")[0]):
        return f"1. Run the host stage for {host}: its {LOGIN_FILE} overrides {seen.file}. 2. Log in again."
    return f"1. On {host}, remove {place(seen)}: pam_limits reads it after {LOGIN_FILE}, and the last line wins. 2. Log in again."


def service_remedy(host: str, source: LimitSource | None) -> str:
    """The remedy for a limit of services. source: the line that sets it, if known."""
    restart = "restart the services that start jobs while no job runs: they keep their old limit until then"
    if source is None or not is_foreign(source):
        return f"1. Run the host stage for {host}. 2. On {host}, {restart}."
    return (
        f"1. On {host}, remove {place(source)}: it overrides the host stage's setting. "
        f"2. Run `systemctl daemon-reexec` there, then the host stage for {host}. 3. On {host}, {restart}."
    )


def _setting(host: str, key: str, value: str, facts: Facts) -> Finding:
    expected = f"{value}, live and after a boot"
    live, boot = (facts.sysctl.live, facts.sysctl.boot) if facts.sysctl is not None else ({}, {})
    if key not in live or key not in boot:
        return Finding(STAGE, "host.sysctl", host, key, UNKNOWN, "not read", expected, f"Read the facts of {host} again.")
    observed = f"live {live[key] or 'no such key'}, after a boot {_boot_words(boot[key])}"
    todo = _todo(host, key, value, live[key], boot[key]) if facts.sysctl is None or facts.sysctl.differs(key, value) else ""
    return Finding(STAGE, "host.sysctl", host, key, ERROR if todo else OK, observed, expected, todo)


def _boot_words(boot: BootValue | None) -> str:
    return f"{boot.value} ({boot.file})" if boot is not None else "not set by any file"


def _todo(host: str, key: str, value: str, live: str | None, boot: BootValue | None) -> str:
    """The remedy for a setting that differs."""
    if live is None:
        return f"Correct {key} in rdma_host.sysctl, or load the kernel module on {host} that provides it."
    if boot is not None and boot.value != value and not boot.file.startswith("/etc/"):
        return f"On {host}, {remedy(boot.file)}."
    if boot is not None and boot.value != value and boot.file != FILE:
        return (
            f"1. On {host}, remove {key} from {place(boot)}, then run the host stage; or run it with `-e sysctl_replace_allowed=true`. "
            f"2. If that value is right, set it in rdma_host.sysctl."
        )
    return f"Run the host stage for {host}."


SERVICE_SUBJECT = "files that a service may have open"
IPC_SUBJECT = "shared memory of users who have logged out"


def check_limits(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `host.files`, `host.ipc`, and `host.services`, one for each service that starts jobs."""
    limits, request = facts.limits, limits_request(intent)
    return [*_open_files(host, request, limits), _ipc(host, request, limits), *_services(host, request, limits)]


def _open_files(host: str, request: LimitsRequest, limits: Limits | None) -> list[Finding]:
    if not request.open_files:
        why = "rdma_host.open_files is 0: the limit is not changed"
        return [Finding(STAGE, "host.files", host, SERVICE_SUBJECT, NOT_APPLICABLE, why, "any")]
    logins = limits.login_open_files if limits is not None else {}
    return [_service_files(host, request, limits), *(_login_files(host, request, who, logins.get(who)) for who in LOGINS)]


def _service_files(host: str, request: LimitsRequest, limits: Limits | None) -> Finding:
    seen, expected = limits.service_open_files if limits is not None else None, f"{request.open_files} at least"
    if limits is None or seen is None:
        remedy = f"On {host}, run `systemd-run --wait --pipe cat /proc/self/limits` and fix its error."
        return Finding(STAGE, "host.files", host, SERVICE_SUBJECT, UNKNOWN, "the limit of a service could not be read", expected, remedy)
    remedy = service_remedy(host, limits.service_sources.get("nofile")) if opens_too_few(request, seen) else ""
    return Finding(STAGE, "host.files", host, SERVICE_SUBJECT, ERROR if remedy else OK, str(seen), expected, remedy)


def _login_files(host: str, request: LimitsRequest, who: str, seen: LoginLimit | None) -> Finding:
    subject, expected = f"files that a login of {LOGINS[who]} may have open", f"{request.open_files} at least"
    if seen is None:
        todo = f"Run the host stage for {host}."
        return Finding(STAGE, "host.files", host, subject, ERROR, "no file sets it: the kernel's default", expected, todo)
    # A value that is not a number counts as 0.
    most = None if seen.unlimited else int(seen.value) if seen.value.isdecimal() else 0
    good = not opens_too_few(request, most)
    remedy = "" if good else login_remedy(host, seen)
    return Finding(STAGE, "host.files", host, subject, OK if good else ERROR, f"{seen.value} by {place(seen)}", expected, remedy)


def _ipc(host: str, request: LimitsRequest, limits: Limits | None) -> Finding:
    if not request.keep_ipc:
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, NOT_APPLICABLE, "rdma_host.keep_ipc is false: logind is not changed", "any")
    removed = limits.remove_ipc if limits is not None else None
    if removed is None and (limits is None or limits.logind):
        look = f"Run `busctl introspect org.freedesktop.login1 /org/freedesktop/login1 | grep RemoveIPC` on {host}."
        words = "logind runs but did not answer" if limits is not None else "logind was not read"
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, UNKNOWN, words, "kept", look)
    if removed is None:
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, NOT_APPLICABLE, "logind, which could remove it, does not run here", "kept")
    if not loses_ipc(request, removed):
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, OK, "kept", "kept")
    remedy = (
        f"1. Run the host stage for {host}. 2. If it stays, run `systemd-analyze cat-config systemd/logind.conf` there "
        "and remove the later setting."
    )
    return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, ERROR, "removed by logind", "kept", remedy)


def _services(host: str, request: LimitsRequest, limits: Limits | None) -> list[Finding]:
    expected = "unlimited, as for newly started services"
    running = limits.running if limits is not None else None
    if running is None and request.memlock_unlimited:
        look = f"Run `systemctl list-units --type service --state running` on {host}."
        return [Finding(STAGE, "host.services", host, "services that run", UNKNOWN, "running services were not read", expected, look)]
    if not request.memlock_unlimited or not running:
        why = "rdma_host.memlock_unlimited is false: the limit is not changed" if running else "no service that starts jobs runs here"
        return [Finding(STAGE, "host.services", host, "services that run", NOT_APPLICABLE, why, expected)]
    return [_service(host, request, unit, seen, expected) for unit, seen in sorted(running.items())]


def _service(host: str, request: LimitsRequest, unit: str, seen: RunningService, expected: str) -> Finding:
    """Finding `host.services` of one service: at most a warning, since the configuration is right and a restart ends its jobs."""
    subject = f"memory that {unit} may lock"
    if not locks_too_little(request, seen.memlock):
        return Finding(STAGE, "host.services", host, subject, OK, "unlimited", expected)
    source = seen.source
    observed = f"{seen.memlock.bytes} bytes (process {seen.pid})"
    if source is not None and source.value not in UNLIMITED:
        observed += f" by {place(source)}"
        remedy = (
            f"1. On {host}, remove {place(source)} and run `systemctl daemon-reload`. 2. Drain {host}, then `systemctl restart {unit}`."
        )
    else:
        remedy = f"Drain {host}, then run `systemctl restart {unit}` there: it started before the limit was raised."
    return Finding(STAGE, "host.services", host, subject, WARNING, observed, expected, remedy)
