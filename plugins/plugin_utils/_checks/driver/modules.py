# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the driver gate on kernel modules: from the planned stack, equal to those on disk, and with the planned options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import (
    ERROR,
    NOT_APPLICABLE,
    OK,
    UNKNOWN,
    WARNING,
    Finding,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import INSTALLED, OFED
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import CORE, parse_options, same_value
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import ADD_ONS, KERNELS_OWN, Module, compare, is_stock
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import DRIVER, has_version, ofed_state
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import (
    ADD_ON,
    INBOX,
    headers_package,
    is_kept,
    planned_modules,
    planned_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import OFED_DRIVERS, module_of, modules_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import missing
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

declare(
    {
        "driver.stack": Check(
            "driver",
            "origin and version of the rails' kernel modules against `rdma_driver`",
            "`modinfo` (filename, version, srcversion), `ofed_info`; how the last installation ended",
            "keep the installed stack (`stack: keep`), or allow the switch; check why the planned stack is not installed for this kernel",
            sources=(
                reads.MODINFO,
                reads.MODULES,
                reads.file("/usr/bin/ofed_info", absent_means="no OFED is installed, or its packages give its version"),
            ),
        ),
        "driver.option": Check(
            "driver",
            "the parameters of kernel modules that the intent sets (`rdma_driver.module_options`)",
            "`/sys/module/NAME/parameters`",
            "reload the module or reboot; check `modprobe --showconfig`; rebuild the initramfs",
            sources=(reads.file("/sys/module/*/parameters/*"),),
        ),
        "driver.loaded": Check(
            "driver",
            "version and srcversion of each loaded RDMA module against its file on disk",
            "`/sys/module/NAME`, `modinfo`",
            "reload the driver or reboot; if that does not help, rebuild the initramfs, which has an old copy",
            sources=(reads.MODINFO, *reads.SOURCE_VERSIONS),
        ),
    }
)

#: The maximum number of modules in a finding.
NAMED = 6
#: The maximum number of quoted log lines in a finding.
LINES = 4
Modules = Mapping[str, Module]


def left_over_modules(intent: Intent, facts: Facts) -> Modules:
    """The loaded modules of an add-on that the kernel's own modules have replaced on disk because an installation failed."""
    stack = stack_of(facts)
    if planned_modules(intent) == INBOX or not why_stock(stack):
        return {}
    found = {name: each for name, each in stack.modules.items() if each.provenance == KERNELS_OWN and compare(each) == ERROR}
    return found if any(each.version for each in found.values()) else {}


def still_loaded(host: str, left_over: Modules, stack: Stack) -> tuple[str, ...]:
    """Status, words and remedy of left_over_modules: the old driver still works until a reload or a reboot."""
    names = sorted(left_over, key=lambda name: (name != DRIVER, not left_over[name].version, name))
    first, version = names[0], next(left_over[name].version for name in names if left_over[name].version)
    others = f" (and {some(names[1:])})" if len(names) > 1 else ""
    observed = f"{first}{others} of OFED {version} is still loaded, but the stock {first} is on disk: {why_stock(stack)}"
    return ERROR, observed, f"Do not reload the driver of {host} and do not reboot it: it would load the stock driver. {remedy_for(host)}"


def remedy_for(host: str) -> str:
    """The remedy for an installation that failed."""
    return (
        f"1. Read driver/{host}.log in the folder of the run that failed, and `/var/lib/dkms/*/*/build/make.log` on {host}. "
        f"2. Fix the cause on {host}, then run the driver stage again."
    )


def why_stock(stack: Stack) -> str:
    """Why the planned stack is missing: the modules that DKMS has not built, and how the last installation failed, with log lines."""
    lacking = [each.words for each in missing(stack) if each.name in OFED]
    failure = stack.last_build
    return "; ".join([*lacking, *([failure.meaning, *failure.lines[:LINES]] if failure is not None else [])])


def lacks_planned(intent: Intent, stack: Stack, kernel: str) -> bool | None:
    """Whether a kernel would load its own driver instead of the planned stack's; None if that is unknown, or if the kernel's own is
    planned."""
    if planned_modules(intent) == INBOX:
        return None
    if kernel in (stack.driver_files or {}):
        file = (stack.driver_files or {})[kernel]
        return file is None or is_stock(file)
    if not any(entry.name in OFED for entry in stack.dkms):
        return None
    return not dkms_versions(stack, kernel)


def dkms_versions(stack: Stack, kernel: str | None) -> set[str]:
    """The versions of OFED's modules that DKMS has installed, or linked, for a kernel."""
    return {entry.version for entry in stack.dkms if entry.name in OFED and entry.kernel == kernel and entry.state.startswith(INSTALLED)}


def build_steps(host: str, kernels: Sequence[str], stack: Stack) -> str:
    """The steps to build the installed stack for kernels without it, and to boot the newest. Without DKMS only its installer can."""
    newest = kernels[-1]
    them = newest if len(kernels) == 1 else "them"
    if not any(entry.name in OFED for entry in stack.dkms):
        return f"1. On {host}, install the stack's packages for {' and '.join(kernels)}, or remove {them}. 2. Only then reboot {host}."
    packages = [headers_package(kernel, stack.distribution) for kernel in kernels if not stack.headers.get(kernel)]
    install = f"install {' and '.join(packages)}, then " if packages else ""
    builds = " and ".join(f"`dkms autoinstall -k {kernel}`" for kernel in kernels)
    return f"1. On {host}, {install}run {builds}. 2. Only then reboot {host} into {newest}. 3. Or remove {them} instead."


def some(names: Iterable[str]) -> str:
    """The names of the first modules, and the number of the others."""
    return first_of(list(names), NAMED)


STAGE = "driver"
SUBJECT = "loaded modules"


def check_modules(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `driver.stack` (one) and `driver.loaded` (one for each cause of different modules, else one) of one host.

    Each cause is one error: `driver.loaded` reports loaded modules that differ from the disk. `driver.stack` reports the kernel's own
    modules in place of those that were not built, also while an older add-on is still loaded.
    """
    left_over = left_over_modules(intent, facts)
    return [_stack(host, intent, facts, left_over), *_loaded(host, stack_of(facts), reported=left_over)]


def _stack(host: str, intent: Intent, facts: Facts, left_over: Modules) -> Finding:
    planned, stack = planned_modules(intent), stack_of(facts)

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "driver.stack", host, "driver stack", status, observed, _expected(intent, stack), remedy)

    installed = ofed_state(stack)
    if planned_stack(intent) == INBOX and not is_kept(intent) and installed.stack is not None:
        return finding(ERROR, f"{installed.stack} {installed.version or ''}".rstrip() + " is installed", _switch(host))
    if left_over:
        return finding(*still_loaded(host, left_over, stack))
    judged = {name: stack.modules[name] for name in _judged(intent, facts) if name in stack.modules}
    if not judged:
        return finding(NOT_APPLICABLE, "no module of the rails' drivers is loaded: see driver.module")
    same = {name: module for name, module in judged.items() if compare(module) != ERROR}
    if not same:
        return finding(NOT_APPLICABLE, "the loaded modules differ from those on disk: see driver.loaded")
    known = {name: module for name, module in same.items() if module.provenance is not None}
    if planned == INBOX:
        return finding(*_inbox(host, known, stack, kept=is_kept(intent)))
    return finding(*(_add_on(host, intent, known, stack) or _installed(host, intent, known, stack)))


def _expected(intent: Intent, stack: Stack) -> str:
    planned, version = planned_modules(intent), (intent.get("driver") or {}).get("version")
    if is_kept(intent):
        found = ofed_state(stack)
        seen = {INBOX: "the kernel's own modules", ADD_ON: "add-on modules"}.get(planned) or f"{found.stack} {found.version or ''}".rstrip()
        return f"the installed stack (kept): {seen}"
    return "the kernel's own modules (inbox)" if planned == INBOX else f"the modules of {planned}" + (f" {version}" if version else "")


def _switch(host: str) -> str:
    """The steps to keep or switch the stack of a host that has another one than planned."""
    return (
        f"1. To keep the stack of {host}, set `rdma_driver: {{stack: keep}}`. 2. To switch, list first what would be removed: "
        f"`ansible-playbook rdma.cluster.driver --limit {host} --check`. "
        f"3. Drain {host}, then run it without --check and with `-e driver_switch_allowed=true`."
    )


def _inbox(host: str, known: Modules, stack: Stack, *, kept: bool) -> tuple[str, ...]:
    foreign = [name for name, module in known.items() if module.provenance in ADD_ONS]
    if foreign or stack.kind == "ofed":
        version = stack.ofed_version or "an add-on"
        file = known[foreign[0]].file if foreign else None
        what = f"{some(foreign or ['mlx_compat'])} of {version}" + (f" ({file})" if file else "")
        if kept:
            return OK, what
        todo = f"1. To keep it, set `rdma_driver: {{stack: keep}}` for {host}. 2. Or remove its packages on {host}, then reboot it."
        # A single driver of another vendor is not another stack: only a warning.
        another = stack.kind == "ofed" or bool({DRIVER, "ib_core"} & set(foreign))
        return ERROR if another else WARNING, f"{what} instead of the kernel's own", todo
    todo = f"Run `modinfo -F filename ib_core` on {host}."
    return (OK, f"{some(known)} of the kernel") if known else (UNKNOWN, "the origin of the modules is not known", todo)


def _add_on(host: str, intent: Intent, known: Modules, stack: Stack) -> tuple[str, ...]:
    """The fault of modules that are not those of an add-on: status, observed, remedy; () if there is none."""
    own = sorted((name for name, module in known.items() if module.provenance == KERNELS_OWN), key=lambda name: name != DRIVER)
    if not known:
        todo = f"Run `modinfo -F filename mlx5_core` on {host}."
        return UNKNOWN, "the origin of the modules is not known", todo
    if not own:
        return ()
    others = f"; likewise {some(own[1:])}" if len(own) > 1 else ""
    why = why_stock(stack)
    if why:
        return ERROR, f"the stock {own[0]} is running{others}: {why}", remedy_for(host)
    planned = planned_modules(intent)
    todo = f"1. On {host}, check that {planned} is installed for {stack.kernel}: `modinfo -F filename {own[0]}`, `dkms status`."
    return ERROR, f"the stock {own[0]} is running, not the installed one{others}", f"{todo} 2. Reload the driver, or reboot."


def _installed(host: str, intent: Intent, known: Modules, stack: Stack) -> tuple[str, ...]:
    """Status, observed and remedy on whether the add-on is the planned one, in the planned version."""
    requested, planned = (intent.get("driver") or {}).get("version"), planned_modules(intent)
    state = ofed_state(stack)
    has_it = has_version(state, planned, requested)
    seen = " ".join(filter(None, (state.stack, state.version))) or "an add-on of another kind"
    if has_it is False:
        return ERROR, f"{seen} is installed, not {planned} {requested or ''}".rstrip(), _switch(host)
    if has_it is None and requested:
        return (
            UNKNOWN,
            f"{_of(known)}; not known whether this is {planned} {requested}",
            f"Run `ofed_info -s` on {host} and check its packages.",
        )
    return OK, _of(known)


def _of(known: Modules) -> str:
    """The driver's file, version and srcversion; on a host without it, the names of the add-on's modules."""
    if DRIVER not in known:
        return f"{some(known)} of an add-on"
    module = known[DRIVER]
    marks = (f"{key} {value}" for key, value in (("version", module.version), ("srcversion", module.srcversion)) if value)
    return ", ".join([f"{DRIVER} from {module.file or 'an unknown file'}", *marks])


def _judged(intent: Intent, facts: Facts) -> list[str]:
    """The modules that the rails of a host use: the RDMA core and those of their NICs' drivers that the planned stack contains.

    An add-on's driver is checked also on a host without such a rail. The core is not, because Soft-RoCE uses the kernel's own.
    """
    planned = planned_modules(intent)
    rails = [rail for rail in resolve(intent["rails"], facts) if not rail.rail["soft"]]
    if not rails and planned != INBOX:
        return [DRIVER]
    known = {module_of(facts.devices[rail.device].driver or DRIVER) if rail.device else DRIVER for rail in rails}
    drivers = known if planned == INBOX else known & set(OFED_DRIVERS)
    return [*CORE, *(name for driver in sorted(drivers) for name in modules_of(driver))]


def _loaded(host: str, stack: Stack, reported: Modules) -> list[Finding]:
    """Findings `driver.loaded`. reported: the modules that driver.stack already reports."""
    by_status: dict[str, list[str]] = {}
    for name, module in stack.modules.items():
        if name in reported:
            continue
        status = compare(module)
        by_status.setdefault(OK if status == UNKNOWN and _stands_on_add_on(name, stack.modules) else status, []).append(name)
    if ERROR in by_status:
        return [_different(host, group, stack) for group in causes(by_status[ERROR], stack.modules)]
    expected = "the same as on disk"
    if reported:
        return [Finding(STAGE, "driver.loaded", host, SUBJECT, NOT_APPLICABLE, "see driver.stack", expected)]
    if UNKNOWN in by_status:
        names = by_status[UNKNOWN]
        remedy = f"On {host}, run `modinfo {names[0]}` and `cat /sys/module/{names[0]}/srcversion`."
        return [Finding(STAGE, "driver.loaded", host, SUBJECT, UNKNOWN, f"cannot be compared: {some(names)}", expected, remedy)]
    if OK in by_status:
        return [Finding(STAGE, "driver.loaded", host, SUBJECT, OK, f"{len(by_status[OK])} modules, the same as on disk", expected)]
    return [Finding(STAGE, "driver.loaded", host, SUBJECT, NOT_APPLICABLE, "no RDMA module is loaded", expected)]


def _stands_on_add_on(name: str, modules: Modules) -> bool:
    """Whether an add-on's module without version depends on an add-on's module that is the same as on disk.

    Debian's kernels have no srcversion, and only some of OFED's modules have a version.
    """
    below = [module for module in modules.values() if name in module.holders]
    return modules[name].provenance in ADD_ONS and any(
        module.provenance in ADD_ONS and module.version and compare(module) == OK for module in below
    )


def causes(names: Sequence[str], modules: Modules) -> list[list[str]]:
    """The different modules in groups that depend on each other, the lowest module of each group first."""
    above = {name: set(modules[name].holders) & set(names) for name in names}
    groups: list[set[str]] = []
    for name in names:
        touching = [group for group in groups if group & {name, *above[name]}]
        groups = [group for group in groups if group not in touching]
        groups.append({name, *above[name]}.union(*touching))
    return [sorted(group, key=lambda name: (any(name in above[other] for other in group), name)) for group in groups]


def _different(host: str, names: Sequence[str], stack: Stack) -> Finding:
    module, own = stack.modules[names[0]], f"{stack.kernel}'s own"
    from_kernel = module.provenance == KERNELS_OWN
    installed = _build(module.file_version, module.file_srcversion, own if from_kernel else "one without version")
    loaded = _build(module.version, module.srcversion, "another build" if from_kernel else own)
    others = f"; likewise {some(names[1:])}" if len(names) > 1 else ""
    return Finding(
        STAGE, "driver.loaded", host, f"kernel module {names[0]}", ERROR,
        observed=f"{installed} is installed, {loaded} is loaded{others}",
        expected="the same as on disk",
        remedy=(
            f"1. Reload the driver on {host} (`systemctl restart openibd` if it exists), or reboot it. 2. If it still differs, the "
            "initramfs has an old copy: rebuild it (`update-initramfs -u`, `dracut -f`) and reboot."
        ),
    )  # fmt: skip


def _build(version: str | None, srcversion: str | None, nameless: str) -> str:
    """A module's version and srcversion. nameless: the words for a module without version, as many of the kernel's own."""
    return f"{version or nameless} (srcversion {srcversion})" if srcversion else version or nameless


OPTION = "driver.option"


def module_options(intent: Intent) -> dict[str, str]:
    """rdma_driver.module_options, with module names in the kernel's spelling."""
    planned: Mapping[str, str] = (intent.get("driver") or {}).get("module_options") or {}
    return {name.replace("-", "_"): text for name, text in planned.items()}


def check_options(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Finding `driver.option` for each planned option of a kernel module of one host."""
    parameters = facts.module_parameters
    findings: list[Finding] = []
    for module, text in sorted(module_options(intent).items()):
        try:
            options = parse_options(text)
        except ParseError as error:
            remedy = f"Correct rdma_driver.module_options of {host}."
            findings.append(Finding(STAGE, OPTION, host, f"kernel module {module}", ERROR, str(error), "options", remedy))
            continue
        findings += _of_module(host, module, options, None if parameters is None else parameters.get(module, {}), facts)
    return findings


def _of_module(
    host: str, module: str, options: Mapping[str, str | None], shown: Mapping[str, str] | None, facts: Facts
) -> Iterator[Finding]:
    for name, value in options.items():
        subject, expected = f"{module}.{name}", "on" if value is None else value
        if shown is None or name not in shown:
            status = UNKNOWN if shown is None else NOT_APPLICABLE
            look = f"Run `grep -r . /sys/module/{module}/parameters` on {host}." if shown is None else ""
            yield Finding(STAGE, OPTION, host, subject, status, _why_unknown(module, name, facts, listed=shown is not None), expected, look)
        elif same_value(value, shown[name]):
            yield Finding(STAGE, OPTION, host, subject, OK, shown[name], expected)
        else:
            yield Finding(STAGE, OPTION, host, subject, ERROR, shown[name] or "empty", expected, _remedy(host, module))


def _why_unknown(module: str, name: str, facts: Facts, *, listed: bool) -> str:
    if not listed:
        return "the facts do not contain module parameters"
    if module not in stack_of(facts).modules:
        return f"{module} is not loaded, or is not among the checked modules"
    return f"{module} does not show {name}: `modinfo -p {module}` lists its parameters"


def _remedy(host: str, module: str) -> str:
    return (
        f"1. Reload {module} on {host}, or reboot it: options apply when a module is loaded. 2. If it still differs, run "
        f"`modprobe --showconfig | grep 'options {module} '` there. 3. Rebuild the initramfs (`update-initramfs -u`, `dracut -f`)."
    )
