# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of an explanation on the system: distribution, kernel, driver stack, limits, kernel settings, clock, disks, load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import Module, compare
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import INBOX, KEEP
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import Limits, Time
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import GOVERNOR, IDLE_STATES, CpuRequest
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import (
    LimitsRequest,
    LoginLimit,
    Memlock,
    locks_too_little,
    opens_too_few,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Process
from ansible_collections.rdma.cluster.plugins.module_utils._host.memory import Filesystem
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import BootValue
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import missing
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import cpu_request, cpu_wrong, limits_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    NOT_READ,
    Item,
    Row,
    duration_words,
    items,
    listed,
    section,
    table,
    text_lines,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import sysctl_settings


def cpus(intent: Intent | None, cpu: Cpu | None) -> Item:
    """Governors, idle states and tuned; marked if they differ from the intent."""
    if cpu is None:
        return Item("CPUs", NOT_READ)
    request = cpu_request(intent) if intent else CpuRequest(None, None)
    wrong = cpu_wrong(request, cpu)
    words = [f"governor {listed(list(cpu.governors))}" if cpu.governors else "the kernel does not scale frequencies"]
    if GOVERNOR in wrong:
        words.append(f"planned {request.governor}")
    if cpu.idle_states:
        planned = f", planned at most {request.max_cstate_latency_us} µs" if IDLE_STATES in wrong else ""
        words.append(f"idle states {listed(_entered(cpu))}{planned}")
    if cpu.tuned:
        words.append(f"tuned's profile {cpu.tuned.profile or 'not reported'}")
    return Item("CPUs", ", ".join(words), bool(wrong))


def _entered(cpu: Cpu) -> list[str]:
    """The idle states that at least one CPU may enter: "C6 (133 µs)"."""
    return [f"{name} ({state.latency_us} µs)" for name, state in cpu.idle_states.items() if state.disabled < state.cpus]


def clock(time: Time | None) -> Item:
    """Whether the clock is synchronized, and chrony's source."""
    if time is None or time.synchronized is None:
        return Item("clock", NOT_READ)
    words, chrony = ["synchronized with a time server" if time.synchronized else "not synchronized with a time server"], time.chrony
    if chrony and chrony.source:
        offset = f", {abs(chrony.offset_seconds) * 1e6:.0f} µs off" if chrony.offset_seconds is not None else ""
        words.append(f"chrony follows {chrony.source}{offset}")
    return Item("clock", ", ".join(words), not time.synchronized)


def open_files(intent: Intent | None, limits_facts: Limits | None) -> Item:
    """The number of files that a service and a login may have open; marked if less than planned."""
    service, login = (limits_facts.service_open_files, limits_facts.login_open_files.get("*")) if limits_facts else (None, None)
    if service is None and login is None:
        return Item("open files", NOT_READ)
    request = _limits_request(intent)
    words = [
        f"a service {NOT_READ if service is None else service}",
        "a login the kernel's default" if login is None else f"a login {'unlimited' if login.unlimited else login.value}",
    ]
    few = opens_too_few(request, service)
    return Item("open files", ", ".join([*words, *([f"planned {request.open_files}"] if few else [])]), few)


GIB_BYTES = 2**30
#: The logins of limits.conf.
LOGINS = {"*": "a login of any user but root", "root": "a login of root"}


def system(facts: Facts) -> str:
    """Distribution, kernel, uptime, and the interface of Ansible's SSH session."""
    stack, boot = facts.stack, facts.boot
    release = " ".join(filter(None, (stack.distribution.id, stack.distribution.version_id))) if stack else ""
    return section(
        "SYSTEM",
        items(
            [
                Item("host name", boot.hostname or NOT_READ),
                Item("distribution", release or NOT_READ),
                _kernel(stack),
                _headers(stack),
                Item("uptime", NOT_READ if boot.uptime_seconds is None else duration_words(boot.uptime_seconds)),
                _session(facts.session),
            ]
        ),
    )


def _kernel(stack: Stack | None) -> Item:
    kernel, newest = (stack.kernel, stack.newest) if stack else (None, None)
    if kernel is None or newest is None:
        return Item("kernel", f"{kernel}; the newest installed one is not known" if kernel else NOT_READ)
    if kernel == newest:
        return Item("kernel", f"{kernel}, the newest installed")
    return Item("kernel", f"{kernel}; the newest installed is {newest}, which the next boot starts", marked=True)


def _headers(stack: Stack | None) -> Item | None:
    there = stack.headers.get(stack.kernel or "") if stack else None
    return None if there is None else Item("headers", "of the running kernel: installed" if there else "of the running kernel: missing")


def _session(session: Session | None) -> Item | None:
    if session is None or not session.address:
        return None
    return Item("SSH session", f"to {session.address} on {session.netdev or 'an unknown interface'}")


def driver(intent: Intent | None, stack: Stack | None) -> str:
    """The driver stack: its kind, Secure Boot, DKMS, and the loaded modules against those on disk."""
    planned = intent["driver"]["stack"] if intent else None
    packages = stack.distribution.packages if stack else None
    versions = [f"{name} {version}" for name, version in sorted((packages or {}).items()) if version]
    lines = [
        _kind(stack, planned),
        Item("planned", str(planned)) if planned else None,
        Item("packages", listed(versions, most=12) if packages else NOT_READ),
        Item("Secure Boot", _secure_boot(stack)),
        Item("lockdown", stack.lockdown) if stack and stack.lockdown else None,
        *_dkms(stack),
    ]
    return section("DRIVER STACK", items(lines), _modules(stack))


def _kind(stack: Stack | None, planned: str | None) -> Item:
    """The kind of the stack, marked if an add-on is loaded but not planned, or planned but not loaded."""
    if stack is None:
        return Item("stack", NOT_READ)
    add_on = stack.kind == "ofed"
    differs = planned not in {None, KEEP} and add_on == (planned == INBOX)
    if add_on:
        return Item("stack", f"{stack.ofed_version or 'MLNX_OFED or DOCA-OFED of unknown version'} is loaded", differs)
    return Item("stack", stack.kind or "no MLNX_OFED and no DOCA-OFED is loaded", differs)


def _secure_boot(stack: Stack | None) -> str:
    if stack is None:
        return NOT_READ
    return {True: "on", False: "off", None: "not known: no EFI, or it could not be read"}[stack.secure_boot]


def _dkms(stack: Stack | None) -> list[Item]:
    """Each package of DKMS; marked if RDMA or a GPU needs it and the running kernel lacks it."""
    if stack is None:
        return [Item("DKMS", NOT_READ)]
    lacking = {each.name for each in missing(stack)}
    states: dict[str, list[str]] = {}
    for entry in stack.dkms:
        where = f" for {entry.kernel}" if entry.kernel else ""
        states.setdefault(f"{entry.name} {entry.version}", []).append(f"{entry.state}{where}")
    lines = [Item("DKMS", f"{package}: {', '.join(states[package])}", package.split()[0] in lacking) for package in sorted(states)]
    return lines or [Item("DKMS", "no package")]


def _modules(stack: Stack | None) -> list[str]:
    if stack is None or not stack.modules:
        return text_lines("kernel modules: " + (NOT_READ if stack is None else "no RDMA module is loaded"))
    header = ("module", "loaded", "on disk", "comes from", "signed by")
    return table(header, [_module(name, module) for name, module in sorted(stack.modules.items())], (24, 26, 26, 12))


def _module(name: str, module: Module) -> Row:
    state = compare(module)
    on_disk = {OK: "the same", ERROR: _build(module.file_version, module.file_srcversion)}.get(state, "cannot be compared")
    from_words = {"kernel": "the kernel", "dkms": "DKMS", "extra": "an add-on"}
    origin = from_words.get(module.provenance or "", "-")
    return Row((name, _build(module.version, module.srcversion), on_disk, origin, module.signer or "-"), state == ERROR)


def _build(version: str | None, srcversion: str | None) -> str:
    return version or (srcversion and f"source {srcversion}") or "without a version"


def limits(intent: Intent | None, limits_facts: Limits | None) -> str:
    """The limits of locked memory, which RDMA needs to register memory, and of open files."""
    request, service = _limits_request(intent), limits_facts.service_memlock if limits_facts else None
    lines = [Item("a service", NOT_READ)]
    if service is not None:
        words = "unlimited" if service.unlimited else "limited" if service.bytes is None else f"{service.bytes} bytes"
        lines = [Item("a service", words, locks_too_little(request, service))]
    logins = limits_facts.login_memlock if limits_facts else {}
    lines += [_login(label, logins[who], request) if who in logins else Item(label, NOT_READ) for who, label in LOGINS.items()]
    return section("LIMITS: LOCKED MEMORY, OPEN FILES", items([*lines, open_files(intent, limits_facts)]))


def _limits_request(intent: Intent | None) -> LimitsRequest:
    """The requested limits; without an intent, unlimited locked memory, which RDMA needs."""
    return limits_request(intent) if intent else LimitsRequest(memlock_unlimited=True, open_files=0, keep_ipc=False)


def _login(label: str, login: LoginLimit | None, request: LimitsRequest) -> Item:
    low = locks_too_little(request, Memlock(unlimited=login is not None and login.unlimited, bytes=None))
    if login is None:
        return Item(label, "no file sets it: the kernel's default", low)
    return Item(label, f"{'unlimited' if login.unlimited else f'{login.value} KiB'}, by {login.file}", low)


def settings(intent: Intent | None, facts: Facts) -> str:
    """Kernel settings: now, after a boot, and in the intent."""
    planned = sysctl_settings(intent) if intent is not None else {}
    live, boot = (facts.sysctl.live, facts.sysctl.boot) if facts.sysctl else ({}, {})
    keys = sorted({*planned, *live, *boot})
    title = "KERNEL SETTINGS"
    if not keys:
        return section(title, text_lines("The intent requests none." if intent is not None else NOT_READ))
    header = ("setting", "now", "after a boot", "intent", "the file for the boot")
    return section(title, table(header, [_setting(key, planned.get(key), live, boot) for key in keys], (44, 20, 20, 20)))


def _setting(key: str, planned: str | None, live: Mapping[str, str | None], boot: Mapping[str, BootValue | None]) -> Row:
    """The row of a setting, marked if it differs from the intent or, without an intent, if a boot changes it."""
    now, at_boot = live.get(key), boot.get(key)
    value = at_boot.value if at_boot else None
    shown = NOT_READ if key not in live else "no such key" if now is None else now
    then = NOT_READ if key not in boot else value or "as it is then"
    known = [each for each in (shown, then) if each != NOT_READ]
    wrong = any(each != planned for each in known) if planned is not None else value not in (None, now)
    return Row((key, shown, then, planned or "-", at_boot.file if at_boot else "-"), wrong)


def time_and_load(intent: Intent | None, facts: Facts) -> str:
    """CPU settings, clock, free disk space, and the processes at work."""
    return section(
        "CPUS, CLOCK, DISKS, LOAD",
        items(
            [
                cpus(intent, facts.cpu),
                clock(facts.time),
                *(_disk(path, disk) for path, disk in sorted((facts.filesystems or {}).items())),
                Item("on GPUs", _processes(facts.load.gpu_processes) if facts.load else NOT_READ),
                Item("jobs", _processes(facts.load.jobs) if facts.load else NOT_READ),
            ]
        ),
    )


def _disk(path: str, disk: Filesystem) -> Item:
    size = f" of {disk.size_bytes / GIB_BYTES:.1f}" if disk.size_bytes else ""
    return Item(f"disk {path}", f"{disk.free_bytes / GIB_BYTES:.1f} GiB free{size}")


def _processes(processes: Sequence[Process] | None) -> str:
    """The processes in words. processes: None if some of them could not be read."""
    if processes is None:
        return "not known: some processes could not be read"
    return listed([f"{process.name} ({process.pid})" for process in processes])
