# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the driver stage asks of the modules in the kernel: of the planned stack, and the same as on disk."""

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
            "where the modules below the rails come from and which version they are, against `rdma_driver`",
            "`modinfo` (filename, version, srcversion), `ofed_info`; how the last installation ended",
            "keep the installed stack (`stack: keep`), or allow the switch; see why the planned stack is not installed for this kernel",
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
            "reload the module or reboot; `modprobe --showconfig`; rebuild the initramfs",
            sources=(reads.file("/sys/module/*/parameters/*"),),
        ),
        "driver.loaded": Check(
            "driver",
            "each loaded module of RDMA against its file: version and srcversion",
            "`/sys/module/NAME`, `modinfo`",
            "reload the driver or reboot; if it stays, an old copy is in the initramfs",
            sources=(reads.MODINFO, *reads.SOURCE_VERSIONS),
        ),
    }
)

#: How many modules a finding names.
NAMED = 6
#: How many lines of a log.
LINES = 4
Modules = Mapping[str, Module]


def left_over_modules(intent: Intent, facts: Facts) -> Modules:
    """The modules that are still loaded of an add-on whose place on disk the kernel's own have taken, since an installation failed."""
    stack = stack_of(facts)
    if planned_modules(intent) == INBOX or not why_stock(stack):
        return {}
    found = {name: each for name, each in stack.modules.items() if each.provenance == KERNELS_OWN and compare(each) == ERROR}
    return found if any(each.version for each in found.values()) else {}


def still_loaded(host: str, left_over: Modules, stack: Stack) -> tuple[str, ...]:
    """Status, words and remedy of left_over_modules: the driver of before still works, and goes with a reload or a reboot."""
    names = sorted(left_over, key=lambda name: (name != DRIVER, not left_over[name].version, name))
    first, version = names[0], next(left_over[name].version for name in names if left_over[name].version)
    others = f" (and {some(names[1:])})" if len(names) > 1 else ""
    observed = f"{first}{others} of OFED {version} is still loaded, and the stock {first} is on disk: {why_stock(stack)}"
    return ERROR, observed, f"Do not reload the driver of {host}, and do not reboot it: it would come up with the stock one. {mend(host)}"


def mend(host: str) -> str:
    """What to do after an installation that failed."""
    return (
        f"Mend that on {host} and run the driver stage again. The log is driver/{host}.log in the folder of the run that failed; "
        f"see also /var/lib/dkms/*/*/build/make.log on {host}."
    )


def why_stock(stack: Stack) -> str:
    """Why the planned stack is not there: what DKMS has not built, and how the last installation failed, with the lines of its log."""
    lacking = [each.words for each in missing(stack) if each.name in OFED]
    failure = stack.last_build
    return "; ".join([*lacking, *([failure.meaning, *failure.lines[:LINES]] if failure is not None else [])])


def lacks_planned(intent: Intent, stack: Stack, kernel: str) -> bool | None:
    """Whether a kernel would load its own driver in the place of the planned stack's; None where that is not known, or nothing is planned
    beside the kernel's own."""
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
    """How to build the installed stack for kernels that lack it, and to boot the newest of them; without DKMS only its installer can."""
    newest = kernels[-1]
    them = newest if len(kernels) == 1 else "them"
    if not any(entry.name in OFED for entry in stack.dkms):
        return (
            f"1. Install the stack's packages for {' and '.join(kernels)} on {host}, or remove {them} there. "
            f"2. Reboot {host} only after that."
        )
    packages = [headers_package(kernel, stack.distribution) for kernel in kernels if not stack.headers.get(kernel)]
    install = f"install {' and '.join(packages)}, then " if packages else ""
    builds = " and ".join(f"`dkms autoinstall -k {kernel}`" for kernel in kernels)
    return f"1. On {host} {install}run {builds}. 2. Reboot {host} into {newest} only after that. 3. Or remove {them} there instead."


def some(names: Iterable[str]) -> str:
    """The first of these modules, and how many more there are."""
    listed = list(names)
    more = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")


STAGE = "driver"
SUBJECT = "loaded modules"


def check_modules(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `driver.stack` (one) and `driver.loaded` (one for each cause where modules differ, else one) of one host.

    Of one cause there is one error: what is loaded and differs from what is on disk is `driver.loaded` alone, and the kernel's own
    modules in the place of those that were not built are `driver.stack`, which says why, also while an older add-on is still loaded.
    """
    left_over = left_over_modules(intent, facts)
    return [_stack(host, intent, facts, left_over), *_loaded(host, stack_of(facts), told=left_over)]


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
        return finding(NOT_APPLICABLE, "no module of the rails' drivers is loaded: driver.module says so")
    same = {name: module for name, module in judged.items() if compare(module) != ERROR}
    if not same:
        return finding(NOT_APPLICABLE, "others are loaded than are on disk: driver.loaded says which")
    told = {name: module for name, module in same.items() if module.provenance is not None}
    if planned == INBOX:
        return finding(*_inbox(host, told, stack, kept=is_kept(intent)))
    return finding(*(_add_on(host, intent, told, stack) or _installed(host, intent, told, stack)))


def _expected(intent: Intent, stack: Stack) -> str:
    planned, version = planned_modules(intent), (intent.get("driver") or {}).get("version")
    if is_kept(intent):
        found = ofed_state(stack)
        seen = {INBOX: "the kernel's own modules", ADD_ON: "add-on modules"}.get(planned) or f"{found.stack} {found.version or ''}".rstrip()
        return f"the installed stack, kept as it is: {seen}"
    return "the kernel's own modules (inbox)" if planned == INBOX else f"the modules of {planned}" + (f" {version}" if version else "")


def _switch(host: str) -> str:
    """How to reach the planned stack on a host that has another."""
    return (
        f"1. To keep what {host} has, set `rdma_driver: {{stack: keep}}`. 2. To switch, first list what is removed: "
        f"`ansible-playbook rdma.cluster.driver --limit {host} --check`. "
        f"3. Drain {host}, then run it without --check and with `-e driver_switch_allowed=true`."
    )


def _inbox(host: str, told: Modules, stack: Stack, *, kept: bool) -> tuple[str, ...]:
    foreign = [name for name, module in told.items() if module.provenance in ADD_ONS]
    if foreign or stack.kind == "ofed":
        version = stack.ofed_version or "an add-on"
        file = told[foreign[0]].file if foreign else None
        what = f"{some(foreign or ['mlx_compat'])} of {version}" + (f" ({file})" if file else "")
        if kept:
            return OK, what
        todo = f"1. To keep it, set `rdma_driver: {{stack: keep}}` for {host}. 2. Or remove its packages on {host}, then reboot it."
        # Another vendor's driver is no other stack: it is said, and stops nothing.
        another = stack.kind == "ofed" or bool({DRIVER, "ib_core"} & set(foreign))
        return ERROR if another else WARNING, f"{what} in the place of the kernel's own", todo
    todo = f"Run `modinfo -F filename ib_core` on {host}."
    return (OK, f"{some(told)} of the kernel") if told else (UNKNOWN, "it is not told where the modules come from", todo)


def _add_on(host: str, intent: Intent, told: Modules, stack: Stack) -> tuple[str, ...]:
    """Whether the modules are those of an add-on; () if they are."""
    own = sorted((name for name, module in told.items() if module.provenance == KERNELS_OWN), key=lambda name: name != DRIVER)
    if not told:
        todo = f"Look at `modinfo -F filename mlx5_core` on {host}."
        return UNKNOWN, "it is not known where the modules come from", todo
    if not own:
        return ()
    others = f"; the same is true of {some(own[1:])}" if len(own) > 1 else ""
    why = why_stock(stack)
    if why:
        return ERROR, f"the stock {own[0]} is running{others}: {why}", mend(host)
    planned = planned_modules(intent)
    todo = f"See on {host} whether {planned} is installed for {stack.kernel} (`modinfo -F filename {own[0]}`, `dkms status`)"
    return ERROR, f"the stock {own[0]} is running, not the installed one{others}", f"{todo}; then reload the driver, or reboot."


def _installed(host: str, intent: Intent, told: Modules, stack: Stack) -> tuple[str, ...]:
    """Whether the add-on is the planned one, in the planned version."""
    wished, planned = (intent.get("driver") or {}).get("version"), planned_modules(intent)
    state = ofed_state(stack)
    has_it = has_version(state, planned, wished)
    seen = " ".join(filter(None, (state.stack, state.version))) or "an add-on of another kind"
    if has_it is False:
        return ERROR, f"{seen} is installed, not {planned} {wished or ''}".rstrip(), _switch(host)
    if has_it is None and wished:
        return (
            UNKNOWN,
            f"{_of(told)}; it is not known whether that is {planned} {wished}",
            f"Look at `ofed_info -s` and the packages on {host}.",
        )
    return OK, _of(told)


def _of(told: Modules) -> str:
    """The driver's file, version and srcversion; of a host without it the names of what is there."""
    if DRIVER not in told:
        return f"{some(told)} of an add-on"
    module = told[DRIVER]
    marks = (f"{key} {value}" for key, value in (("version", module.version), ("srcversion", module.srcversion)) if value)
    return ", ".join([f"{DRIVER} from {module.file or 'a file that is not told'}", *marks])


def _judged(intent: Intent, facts: Facts) -> list[str]:
    """The modules below the rails of a host: those of RDMA itself, and of their NICs' drivers as far as the planned stack has them.

    An add-on's driver is judged without such a rail too. Not the core: Soft-RoCE stands on the kernel's own.
    """
    planned = planned_modules(intent)
    rails = [rail for rail in resolve(intent["rails"], facts) if not rail.rail["soft"]]
    if not rails and planned != INBOX:
        return [DRIVER]
    known = {module_of(facts.devices[rail.device].driver or DRIVER) if rail.device else DRIVER for rail in rails}
    drivers = known if planned == INBOX else known & set(OFED_DRIVERS)
    return [*CORE, *(name for driver in sorted(drivers) for name in modules_of(driver))]


def _loaded(host: str, stack: Stack, told: Modules) -> list[Finding]:
    """told: the modules of which driver.stack speaks, with all that differs in the same pile."""
    by_status: dict[str, list[str]] = {}
    for name, module in stack.modules.items():
        if name in told:
            continue
        status = compare(module)
        by_status.setdefault(OK if status == UNKNOWN and _stands_on_add_on(name, stack.modules) else status, []).append(name)
    if ERROR in by_status:
        return [_different(host, group, stack) for group in causes(by_status[ERROR], stack.modules)]
    expected = "the same as on disk"
    if told:
        return [Finding(STAGE, "driver.loaded", host, SUBJECT, NOT_APPLICABLE, "driver.stack says why", expected)]
    if UNKNOWN in by_status:
        names = by_status[UNKNOWN]
        remedy = f"Look at `modinfo {names[0]}` and /sys/module/{names[0]}/srcversion on {host}."
        return [Finding(STAGE, "driver.loaded", host, SUBJECT, UNKNOWN, f"cannot be compared: {some(names)}", expected, remedy)]
    if OK in by_status:
        return [Finding(STAGE, "driver.loaded", host, SUBJECT, OK, f"{len(by_status[OK])} modules, the same as on disk", expected)]
    return [Finding(STAGE, "driver.loaded", host, SUBJECT, NOT_APPLICABLE, "no module of RDMA is loaded", expected)]


def _stands_on_add_on(name: str, modules: Modules) -> bool:
    """Whether a module of an add-on that declares nothing stands on one that is the same as on disk, which the kernel's own cannot.

    Debian's kernels give no srcversion, and of OFED's modules only some have a version.
    """
    below = [module for module in modules.values() if name in module.holders]
    return modules[name].provenance in ADD_ONS and any(
        module.provenance in ADD_ONS and module.version and compare(module) == OK for module in below
    )


def causes(names: Sequence[str], modules: Modules) -> list[list[str]]:
    """The modules that differ, those together that are below or above each other; in each the lowest first."""
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
    others = f"; the same is true of {some(names[1:])}" if len(names) > 1 else ""
    return Finding(
        STAGE, "driver.loaded", host, f"kernel module {names[0]}", ERROR,
        observed=f"{installed} is installed, {loaded} is loaded{others}",
        expected="the same as on disk",
        remedy=(
            f"Reload the driver on {host} (`systemctl restart openibd` where it is there) or reboot it; if it is the same after that, "
            "an old copy is in the initramfs (`update-initramfs -u`, `dracut -f`)."
        ),
    )  # fmt: skip


def _build(version: str | None, srcversion: str | None, nameless: str) -> str:
    """A module in a person's words. nameless: what one is that declares no version, as the kernel's own often do."""
    return f"{version or nameless} (srcversion {srcversion})" if srcversion else version or nameless


OPTION = "driver.option"


def module_options(intent: Intent) -> dict[str, str]:
    """rdma_driver.module_options, a module's name spelled as the kernel does."""
    planned: Mapping[str, str] = (intent.get("driver") or {}).get("module_options") or {}
    return {name.replace("-", "_"): text for name, text in planned.items()}


def check_options(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Finding `driver.option` for each planned option of a kernel module of one host; none where none is planned."""
    parameters = facts.module_parameters
    findings: list[Finding] = []
    for module, text in sorted(module_options(intent).items()):
        try:
            wished = parse_options(text)
        except ParseError as error:
            remedy = f"Correct rdma_driver.module_options of {host}."
            findings.append(Finding(STAGE, OPTION, host, f"kernel module {module}", ERROR, str(error), "options", remedy))
            continue
        findings += _of_module(host, module, wished, None if parameters is None else parameters.get(module, {}), facts)
    return findings


def _of_module(
    host: str, module: str, wished: Mapping[str, str | None], shown: Mapping[str, str] | None, facts: Facts
) -> Iterator[Finding]:
    for name, value in wished.items():
        subject, expected = f"{module}.{name}", "on" if value is None else value
        if shown is None or name not in shown:
            status = UNKNOWN if shown is None else NOT_APPLICABLE
            look = f"Run `grep -r . /sys/module/{module}/parameters` on {host}." if shown is None else ""
            yield Finding(STAGE, OPTION, host, subject, status, _why_unknown(module, name, facts, told=shown is not None), expected, look)
        elif same_value(value, shown[name]):
            yield Finding(STAGE, OPTION, host, subject, OK, shown[name], expected)
        else:
            yield Finding(STAGE, OPTION, host, subject, ERROR, shown[name] or "empty", expected, _remedy(host, module))


def _why_unknown(module: str, name: str, facts: Facts, *, told: bool) -> str:
    if not told:
        return "the facts do not tell the parameters of modules"
    if module not in stack_of(facts).modules:
        return f"{module} is not loaded, or is no module that is looked at"
    return f"{module} does not show {name}: see `modinfo -p {module}` whether it has one"


def _remedy(host: str, module: str) -> str:
    return (
        f"A module takes its options when it is loaded: reload {module} on {host}, or reboot it. If it is the same after that, see "
        f"`modprobe --showconfig | grep 'options {module} '` there, and build the initramfs again (`update-initramfs -u`, `dracut -f`)."
    )
