# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unload kernel modules and load those on disk: blockers, order, and the check afterwards.

Nothing is forced: if another user holds a module, it is named, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import Module, compare, provenance, read_modinfo
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now

OPENIBD, AUTO = "openibd", "auto"
UNIT = "openibd.service"
UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
#: openibd waits for devices; a host with many functions takes minutes.
SERVICE_SECONDS, MODULE_SECONDS = 600.0, 120.0
#: The message of kmod's modprobe for a loaded module without a file: "FATAL: Module mlx_compat not found."
NO_FILE = "not found"
_LINES = 5


@dataclass(frozen=True)
class SwapResult:
    """The changes, or in check mode the planned ones. restarted: the unit, if there is one."""

    unloaded: list[str]
    restarted: str | None
    loaded: list[str]

    @property
    def changed(self) -> bool:
        return bool(self.unloaded or self.restarted or self.loaded)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        return [
            *listed_diff("unloaded kernel modules", self.unloaded),
            *listed_diff("restarted services", [self.restarted] if self.restarted else []),
            *listed_diff("loaded kernel modules", self.loaded),
        ]


def unload_order(modules: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names of modules, name → its holders, so that each comes after all that hold it.

    Holders that are not among the names are ignored. Of modules that hold each other, which the kernel does not allow, any is first.
    """
    order: list[str] = []
    begun: set[str] = set()

    def visit(name: str) -> None:
        if name in begun or name not in modules:
            return
        begun.add(name)
        for holder in sorted(modules[name]):
            visit(holder)
        order.append(name)

    for name in sorted(modules):
        visit(name)
    return order


def reload_driver(
    modules: Sequence[str], load: Sequence[str], *, service: str, always: bool, runner: Runner, sys: SysRoot, check_mode: bool
) -> SwapResult:
    """Unload modules, top first, restart openibd if service requires it, and load others, lowest first.

    service: "openibd", "none", or "auto": openibd if the unit is installed. always: also if all of them are loaded already, and are those
    on disk; without load, nothing is compared before. Raises ApplyError before any change if a module, a GPU or a job uses the host.
    Raises it afterwards if the loaded modules are not those on disk.
    """
    present = [name for name in modules if is_present(name, sys)]
    if load and not always and not missing_or_other([*load, *present], runner, sys):
        return SwapResult([], None, [])
    restarted = UNIT if service == OPENIBD or (service == AUTO and has_openibd(sys)) else None
    if present or restarted:
        _refuse_if_at_work(sys)
    refuse_if_used(present, sys)
    gone = {*present}
    loaded = [name for name in load if name in gone or not is_present(name, sys)]
    result = SwapResult(present, restarted, loaded)
    if not check_mode:
        _swap(result, runner, sys)
        wrong = missing_or_other([*load, *(name for name in modules if name not in load and is_present(name, sys))], runner, sys)
        if wrong:
            raise ApplyError(f"After the reload, {'; '.join(wrong)}. {_state([*modules, *load], runner, sys)}")
    return result


def is_present(name: str, sys: SysRoot) -> bool:
    """Return whether a module is loaded, or is a visible part of the kernel."""
    return sys.exists(f"/sys/module/{name}")


def has_openibd(sys: SysRoot) -> bool:
    """Return whether MLNX_OFED's or DOCA-OFED's service is installed."""
    return any(sys.exists(f"{folder}/{UNIT}") for folder in UNIT_FOLDERS)


def _refuse_if_at_work(sys: SysRoot) -> None:
    """Raise ApplyError if a job or a process on a GPU runs now: it may hold no module at this moment, and open a device at the next."""
    in_use = in_use_now(sys)
    if in_use:
        raise ApplyError(f"Nothing was unloaded: the host is in use ({in_use}). Drain it, then rerun.")


def refuse_if_used(names: Sequence[str], sys: SysRoot) -> None:
    """Raise ApplyError if one of these cannot be unloaded in this order, with its holder or its other uses.

    The kernel counts each holder, and each other use: an open device, a mount, a connection.
    """
    reasons = [reason for position, name in enumerate(names) if (reason := _in_the_way(name, names[:position], sys))]
    if reasons:
        raise ApplyError(f"Nothing was unloaded: {'; '.join(reasons)}. Stop the programs that use them, or reboot the host instead.")


def _in_the_way(name: str, before: Sequence[str], sys: SysRoot) -> str | None:
    holders = sys.list_dir(f"/sys/module/{name}/holders")
    left = [holder for holder in holders if holder not in before]
    if left:
        return f"{name} is held by {', '.join(left)}"
    count = sys.text(f"/sys/module/{name}/refcnt")
    if count is None or not count.isdecimal():
        return f"{name} is part of the kernel, or cannot be unloaded"
    others = int(count) - len(holders)
    return f"{name} is in use {others} times (an open device, a mount, a connection)" if others > 0 else None


def missing_or_other(names: Sequence[str], runner: Runner, sys: SysRoot) -> list[str]:
    """Return those of these modules, in words, that are not loaded, are not the ones on disk, or have no file to compare with."""
    distinct = list(dict.fromkeys(names))
    absent = [f"{name} is not loaded" for name in distinct if not is_present(name, sys)]
    present = [name for name in distinct if is_present(name, sys)]
    files = read_modinfo(runner, present)
    others = []
    for name in present:
        file = files.get(name)
        loaded = sys.text(f"/sys/module/{name}/version"), sys.text(f"/sys/module/{name}/srcversion")
        if file is None:
            others.append(f"modinfo finds no file for {name}")
            continue
        module = Module(*loaded, [], file.file, file.version, file.srcversion, provenance(file.file))
        if compare(module) == ERROR:
            others.append(f"{name} is {_build(*loaded)}, {file.file} is {_build(file.version, file.srcversion)}")
    return [*absent, *others]


def _build(version: str | None, srcversion: str | None) -> str:
    return f"{version or 'without version'} (srcversion {srcversion or 'unknown'})"


def _swap(planned: SwapResult, runner: Runner, sys: SysRoot) -> None:
    for name in planned.unloaded:
        # The previous one may have removed it: modprobe -r removes unused modules.
        if is_present(name, sys):
            _unload(name, planned, runner, sys)
            if is_present(name, sys):
                raise ApplyError(
                    f"Cannot unload {name}: modprobe reports no error, but it is still loaded. {_state_of(planned, runner, sys)}"
                )
    if planned.restarted:
        _run(["systemctl", "restart", planned.restarted], f"Cannot restart {planned.restarted}", planned, runner, sys)
    for name in planned.loaded:
        if not is_present(name, sys):
            _run(["modprobe", name], f"Cannot load {name}", planned, runner, sys)


def _unload(name: str, planned: SwapResult, runner: Runner, sys: SysRoot) -> None:
    """Unload a module with modprobe, which follows `remove` lines of modprobe.d(5).

    If its file was removed with its package, use rmmod, which needs no file.
    """
    failed = f"Cannot unload {name}"
    done = _try(["modprobe", "-r", name], failed, planned, runner, sys)
    if done.rc and NO_FILE in done.stderr:
        done = _try(["rmmod", name], failed, planned, runner, sys)
    _refuse_failed(done, failed, planned, runner, sys)


def _run(argv: list[str], failed: str, planned: SwapResult, runner: Runner, sys: SysRoot) -> None:
    """Run a step. A failure ends the change: nothing is reverted, and the error describes the current state."""
    _refuse_failed(_try(argv, failed, planned, runner, sys), failed, planned, runner, sys)


def _try(argv: list[str], failed: str, planned: SwapResult, runner: Runner, sys: SysRoot) -> Completed:
    try:
        return runner.run(argv, timeout_seconds=SERVICE_SECONDS if argv[0] == "systemctl" else MODULE_SECONDS)
    except CommandError as error:
        raise ApplyError(f"{failed}: {error}. {_state_of(planned, runner, sys)}") from error


def _refuse_failed(done: Completed, failed: str, planned: SwapResult, runner: Runner, sys: SysRoot) -> None:
    if done.rc:
        raise ApplyError(f"{failed}: {done.stderr.strip() or f'exit status {done.rc}'}. {_state_of(planned, runner, sys)}")


def _state_of(planned: SwapResult, runner: Runner, sys: SysRoot) -> str:
    return _state([*planned.unloaded, *planned.loaded], runner, sys)


def _state(names: Sequence[str], runner: Runner, sys: SysRoot) -> str:
    loaded = [name for name in dict.fromkeys(names) if is_present(name, sys)]
    messages = kernel_messages(runner, names)
    quoted = f" Kernel messages: {' | '.join(messages)}" if messages else ""
    return f"Loaded now: {', '.join(loaded) or 'none of them'}.{quoted}"


def kernel_messages(runner: Runner, words: Sequence[str]) -> list[str]:
    """Return the last lines of dmesg that contain one of the words, else the last lines; none if it cannot be read."""
    try:
        done = runner.run(["dmesg"])
    except CommandError:
        return []
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.rc == 0 else []
    about = [line for line in lines if any(word in line.replace("-", "_") for word in words)]
    return (about or lines)[-_LINES:]
