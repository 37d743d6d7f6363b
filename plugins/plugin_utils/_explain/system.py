# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an explanation says of the system: distribution and kernel, driver stack, limits, kernel settings, clock, disks, load."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import compare
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import INBOX, KEEP
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import GOVERNOR, IDLE_STATES, CpuWish
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import LimitsWish, locks_too_little, opens_too_few
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import Facts, Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import missing
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.wishes import cpu_wish, cpu_wrong, limits_wish, memlock_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    NOT_READ,
    Item,
    Row,
    at,
    duration_words,
    elements,
    items,
    listed,
    part,
    section,
    table,
    text_lines,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import sysctl_settings


def cpus(intent: Intent | None, facts: Facts) -> Item:
    """Governors, idle states and tuned; marked where they are not as the intent wishes."""
    cpu = part(facts, "cpu")
    if not cpu:
        return Item("CPUs", NOT_READ)
    wish = cpu_wish(intent) if intent else CpuWish(None, None)
    governors, wrong = part(cpu, "governors"), cpu_wrong(wish, cpu)
    words = [f"governor {listed([str(name) for name in governors])}" if governors else "frequencies are not the kernel's to scale"]
    if GOVERNOR in wrong:
        words.append(f"planned {wish.governor}")
    if part(cpu, "idle_states"):
        planned = f", planned none that takes more than {wish.max_cstate_latency_us} µs" if IDLE_STATES in wrong else ""
        words.append(f"idle states {listed(_entered(cpu))}{planned}")
    if cpu.get("tuned"):
        words.append(f"tuned's profile {at(cpu, 'tuned', 'profile') or 'not told'}")
    return Item("CPUs", ", ".join(words), bool(wrong))


def _entered(cpu: Facts) -> list[str]:
    """The idle states that some CPU may enter: "C6 (133 µs)"."""
    return [name if latency_us is None else f"{name} ({latency_us} µs)" for name, latency_us in _waking_us(cpu).items()]


def _waking_us(cpu: Facts) -> dict[str, int | None]:
    """Idle state that some CPU may enter → how long it takes to wake up from it, None where that is not told."""
    states = part(cpu, "idle_states")
    entered = [name for name in states if (at(states, name, "disabled") or 0) < (at(states, name, "cpus") or 1)]
    return {name: at(states, name, "latency_us") for name in entered}


def clock(facts: Facts) -> Item:
    """Whether the clock is kept, and what chrony follows."""
    synchronised = at(facts, "time", "synchronised")
    if synchronised is None:
        return Item("clock", NOT_READ)
    words = ["kept in step with a time server" if synchronised else "not in step with any time server"]
    source, offset = at(facts, "time", "chrony", "source"), at(facts, "time", "chrony", "offset_seconds")
    if source:
        words.append(f"chrony follows {source}" + (f", {abs(offset) * 1e6:.0f} µs off" if offset is not None else ""))
    return Item("clock", ", ".join(words), not synchronised)


def open_files(intent: Intent | None, facts: Facts) -> Item:
    """How many files a service and a login may have open; marked where that is less than planned."""
    service, login = at(facts, "limits", "service_open_files"), at(facts, "limits", "login_open_files", "*")
    if service is None and login is None:
        return Item("open files", NOT_READ)
    wish = _limits_wish(intent)
    most = at(login, "value")
    words = [
        f"a service {NOT_READ if service is None else service}",
        "a login the kernel's default" if login is None else f"a login {'unlimited' if at(login, 'unlimited') else most or NOT_READ}",
    ]
    few = opens_too_few(wish, service)
    return Item("open files", ", ".join([*words, *([f"planned {wish.open_files}"] if few else [])]), few)


GIB_BYTES = 2**30
#: Whose logins limits.conf tells of.
LOGINS = {"*": "a login of any user but root", "root": "a login of root"}


def system(facts: Facts) -> str:
    """Distribution, kernel, uptime, and by which interface we have come."""
    stack, distribution = part(facts, "stack"), part(facts, "stack", "distribution")
    release = " ".join(str(distribution[name]) for name in ("id", "version_id") if distribution.get(name))
    uptime = at(facts, "boot", "uptime_seconds")
    return section(
        "SYSTEM",
        items(
            [
                Item("host name", str(at(facts, "boot", "hostname") or NOT_READ)),
                Item("distribution", release or NOT_READ),
                _kernel(stack),
                _headers(stack),
                Item("uptime", NOT_READ if uptime is None else duration_words(uptime)),
                _session(part(facts, "session")),
            ]
        ),
    )


def _kernel(stack: Facts) -> Item:
    kernel, newest = stack.get("kernel"), stack.get("newest")
    if kernel is None or newest is None:
        return Item("kernel", f"{kernel}; which one is the newest installed is not known" if kernel else NOT_READ)
    if kernel == newest:
        return Item("kernel", f"{kernel}, the newest installed")
    return Item("kernel", f"{kernel}; the newest installed is {newest}, which the next boot takes", marked=True)


def _headers(stack: Facts) -> Item | None:
    there = part(stack, "headers").get(stack.get("kernel") or "")
    return None if there is None else Item("headers", "of the running kernel: there" if there else "of the running kernel: not there")


def _session(session: Facts) -> Item | None:
    if not session.get("address"):
        return None
    return Item("our SSH", f"comes in at {session['address']} on {session.get('netdev') or 'an interface that is not known'}")


def driver(intent: Intent | None, facts: Facts) -> str:
    """The driver stack: what it is, whether it is signed, built and loaded as installed."""
    stack = part(facts, "stack")
    packages = part(stack, "distribution", "packages")
    versions = [f"{name} {version}" for name, version in sorted(packages.items()) if version]
    lines = [
        _kind(stack, at(intent, "driver", "stack")),
        Item("planned", str(at(intent, "driver", "stack"))) if at(intent, "driver", "stack") else None,
        Item("packages", listed(versions, most=12)) if packages else Item("packages", NOT_READ),
        Item("Secure Boot", _secure_boot(stack)),
        Item("lockdown", str(stack["lockdown"])) if stack.get("lockdown") else None,
        *_dkms(stack),
    ]
    return section("DRIVER STACK", items(lines), _modules(stack))


def _kind(stack: Facts, planned: str | None) -> Item:
    """Marked where an add-on is loaded that is not planned, or the other way round."""
    if "kind" not in stack:
        return Item("stack", NOT_READ)
    add_on = stack["kind"] == "ofed"
    differs = planned not in {None, KEEP} and add_on == (planned == INBOX)
    if add_on:
        version = stack.get("ofed_version") or "MLNX_OFED or DOCA-OFED of a version that is not told"
        return Item("stack", f"{version} is loaded", differs)
    return Item("stack", str(stack["kind"] or "no MLNX_OFED and no DOCA-OFED is loaded"), differs)


def _secure_boot(stack: Facts) -> str:
    if stack.get("secure_boot") is None:
        return "not told: there is no EFI, or it could not be read" if "secure_boot" in stack else NOT_READ
    return "on" if stack["secure_boot"] else "off"


def _dkms(stack: Facts) -> list[Item]:
    """Each package of DKMS; marked if RDMA or a GPU needs it and the running kernel does not have it."""
    if stack.get("dkms") is None:
        return [Item("DKMS", NOT_READ)]
    entries = [entry for entry in elements(stack, "dkms") if entry.get("name")]
    lacking = {each.name for each in missing({**stack, "dkms": entries})}
    states: dict[str, list[str]] = {}
    for entry in entries:
        package = f"{entry['name']} {entry.get('version') or ''}".strip()
        where = f" for {entry['kernel']}" if entry.get("kernel") else ""
        states.setdefault(package, []).append(f"{entry.get('state') or 'state not told'}{where}")
    lines = [Item("DKMS", f"{package}: {', '.join(states[package])}", package.split()[0] in lacking) for package in sorted(states)]
    return lines or [Item("DKMS", "no package")]


def _modules(stack: Facts) -> list[str]:
    modules = part(stack, "modules")
    if not modules:
        return text_lines("kernel modules: " + (NOT_READ if stack.get("modules") is None else "none of RDMA is loaded"))
    header = ("module", "loaded", "on disk", "comes from", "signed by")
    return table(header, [_module(name, part(modules, name)) for name in sorted(modules)], (24, 26, 26, 12))


def _module(name: str, module: Facts) -> Row:
    state = compare(module)
    there = _build(module.get("file_version"), module.get("file_srcversion"))
    on_disk = {OK: "the same", ERROR: there, UNKNOWN: "cannot be compared"}.get(state, NOT_READ)
    from_words = {"kernel": "the kernel", "dkms": "DKMS", "extra": "an add-on"}
    origin = from_words.get(module.get("provenance") or "", "-")
    loaded = _build(module.get("version"), module.get("srcversion"))
    return Row((name, loaded, on_disk, origin, module.get("signer") or "-"), state == ERROR)


def _build(version: str | None, srcversion: str | None) -> str:
    return version or (srcversion and f"source {srcversion}") or "without a version"


def limits(intent: Intent | None, facts: Facts) -> str:
    """How much memory may be locked, which is what RDMA registers, and how many files may be open."""
    wish = _limits_wish(intent)
    service = at(facts, "limits", "service_memlock")
    lines = [Item("a service", NOT_READ)]
    if isinstance(service, Mapping):
        unlimited, most = bool(service.get("unlimited")), service.get("bytes")
        words = "unlimited" if unlimited else "limited" if most is None else f"{most} bytes"
        lines = [Item("a service", words, locks_too_little(wish, memlock_of(service)))]
    logins = part(facts, "limits", "login_memlock")
    lines += [_login(label, logins, who, wish) for who, label in LOGINS.items()]
    return section("LIMITS: LOCKED MEMORY, OPEN FILES", items([*lines, open_files(intent, facts)]))


def _limits_wish(intent: Intent | None) -> LimitsWish:
    """Without an intent, the limit of memory is looked at as RDMA needs it."""
    return limits_wish(intent) if intent else LimitsWish(memlock_unlimited=True, open_files=0, keep_ipc=False)


def _login(label: str, logins: Facts, who: str, wish: LimitsWish) -> Item:
    if who not in logins:
        return Item(label, NOT_READ)
    low = locks_too_little(wish, memlock_of(logins[who] or {}))
    if logins[who] is None:
        return Item(label, "no file says it: the kernel's default", low)
    unlimited, most = bool(at(logins, who, "unlimited")), at(logins, who, "value")
    words = "unlimited" if unlimited else "limited" if most is None else f"{most} KiB"
    return Item(label, f"{words}, by {at(logins, who, 'file') or 'a file that is not told'}", low)


def settings(intent: Intent | None, facts: Facts) -> str:
    """Kernel settings: now, after a boot, and by the intent."""
    wished = sysctl_settings(intent) if intent is not None else {}
    live, boot = part(facts, "sysctl", "live"), part(facts, "sysctl", "boot")
    keys = sorted({*wished, *live, *boot})
    title = "KERNEL SETTINGS"
    if not keys:
        return section(title, text_lines("The intent asks for none." if intent is not None else NOT_READ))
    header = ("setting", "now", "after a boot", "intent", "the file for the boot")
    return section(title, table(header, [_setting(key, wished.get(key), live, boot) for key in keys], (44, 20, 20, 20)))


def _setting(key: str, wished: str | None, live: Facts, boot: Facts) -> Row:
    """Marked if what was read differs from the intent or, without an intent, now and after a boot from each other."""
    now = NOT_READ if key not in live else live[key] if live[key] is not None else "no such key"
    then = NOT_READ if key not in boot else at(boot, key, "value") or "as it is then"
    known = [value for value in (now, then) if value != NOT_READ]
    wrong = any(value != wished for value in known) if wished is not None else at(boot, key, "value") not in (None, live.get(key))
    return Row((key, str(now), str(then), wished or "-", at(boot, key, "file") or "-"), wrong)


def time_and_load(intent: Intent | None, facts: Facts) -> str:
    """How CPUs and clock are set, room on the disks, and who is at work."""
    return section(
        "CPUS, CLOCK, DISKS, LOAD",
        items(
            [
                cpus(intent, facts),
                clock(facts),
                *(_disk(path, part(facts, "filesystems", path)) for path in sorted(part(facts, "filesystems"))),
                Item("on GPUs", _processes(facts, "gpu_processes")),
                Item("jobs", _processes(facts, "jobs")),
            ]
        ),
    )


def _disk(path: str, disk: Facts) -> Item:
    free, size = disk.get("free_bytes"), disk.get("size_bytes")
    if free is None:
        return Item(f"disk {path}", NOT_READ)
    return Item(f"disk {path}", f"{free / GIB_BYTES:.1f} GiB free" + (f" of {size / GIB_BYTES:.1f}" if size else ""))


def _processes(facts: Facts, what: str) -> str:
    if at(facts, "load", what) is None:
        return NOT_READ if what not in part(facts, "load") else "not known: some processes could not be looked into"
    return listed([_process(process) for process in elements(facts, "load", what)])


def _process(process: Facts) -> str:
    return f"{process.get('name') or 'a process'} ({process.get('pid') or 'pid not told'})"
