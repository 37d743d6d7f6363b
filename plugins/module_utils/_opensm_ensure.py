# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""opensm on a host as it shall be: files, service, and what the running one has read; compared, changed, and looked at again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._infiniband import parse_state
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_conf import redacted
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_service import (
    DROP_IN,
    ENABLED,
    FOLDER,
    SHARP_UNIT,
    UNIT_FOLDER,
    Instance,
    at_boot_path,
    drop_in,
    drop_in_path,
    service_files,
    stale,
)
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_state import (
    NOTHING,
    RELOAD,
    RESTART,
    Texts,
    memory_path,
    memory_text,
    needed_paths,
    next_step,
    read_service,
    read_sums,
)
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: How long the port of a new subnet manager may take to become active.
SETTLE_SECONDS = 60.0
_SYSTEMCTL_SECONDS = 150.0


@dataclass(frozen=True)
class ManagerHost:
    """The readers of a host. root: where its files are."""

    sys: SysRoot
    runner: Runner


@dataclass
class ManagerResult:
    """What was done, or would be in check mode. withheld: plane → why it has to be started again, and was not."""

    files: list[FileChange] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    withheld: dict[str, list[str]] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return bool(self.files or self.steps)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints; keys are not in it."""
        hidden = [
            replace(file, before=_hidden(file.before, "secret"), after=_hidden(file.after, "secret as wished")) for file in self.files
        ]
        return [*(file.to_diff() for file in hidden), *listed_diff("opensm", self.steps)]


def _hidden(text: str | None, word: str) -> str | None:
    return None if text is None else redacted(text, word)


def ensure_managers(
    instances: Sequence[Instance], flavour: str, host: ManagerHost, *, sharp: bool, restart_allowed: bool, check_mode: bool
) -> ManagerResult:
    """Make this host run these subnet managers and no others of ours. Raises ApplyError for what did not come to be."""
    result = ManagerResult()
    plans = [_plan(instance, flavour, host) for instance in instances]
    wanted = service_files(instances, flavour)
    result.files = ensure_files([*wanted, *stale(ours(), wanted)], check_mode=check_mode)
    if result.files and not check_mode:
        _systemctl(host, "daemon-reload")
    _stop_strays(instances, flavour, host, result, check_mode=check_mode)
    _enable(ENABLED[flavour], host, result, wished=bool(instances), check_mode=check_mode)
    for instance, step, reasons in plans:
        unit = instance.unit(flavour)
        if step == RESTART and not restart_allowed:
            result.withheld[instance.plane] = reasons
        elif step != NOTHING:
            result.steps.append(f"{step} {unit}{f' ({chr(44).join(reasons)})' if reasons else ''}")
            if not check_mode:
                _do(step, instance, unit, host)
    if sharp or (not instances and read_service(host.runner, SHARP_UNIT).enabled):
        _enable(SHARP_UNIT, host, result, wished=sharp, check_mode=check_mode, run=True)
    return result


def ours() -> list[str]:
    """The files of ours that are on this host."""
    there = [*Path(FOLDER).glob("opensm-*.conf"), *Path(FOLDER).glob("partitions-*.conf")]
    units = [*Path(UNIT_FOLDER).glob(f"opensm*.d/{DROP_IN}"), *(path for path in [Path(at_boot_path())] if path.exists())]
    return [str(path) for path in [*there, *units]]


def _plan(instance: Instance, flavour: str, host: ManagerHost) -> tuple[Instance, str, list[str]]:
    unit = instance.unit(flavour)
    paths = (instance.config_path, instance.partitions_path, drop_in_path(unit))
    there = Texts(*(host.sys.read(path) for path in paths))
    service = read_service(host.runner, unit)
    sums = read_sums(service, host.sys.read(memory_path(instance.plane)), there, _written_seconds(paths))
    return (instance, *next_step(service, sums, there, _wished(instance)))


def _wished(instance: Instance) -> Texts:
    return Texts(instance.config, instance.partitions, drop_in(instance))


def _written_seconds(paths: Sequence[str]) -> float | None:
    """When the youngest of the files was written, in seconds since the machine booted; None if none is there."""
    times = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            times.append(Path(path).stat().st_mtime)
    return max(times) - (time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)) if times else None


def _do(step: str, instance: Instance, unit: str, host: ManagerHost) -> None:
    _systemctl(host, "reload" if step == RELOAD else "restart", unit)
    if step != RELOAD:
        _settle(instance, unit, host)
    service = read_service(host.runner, unit)
    if not service.active:
        raise ApplyError(_why_ended(instance, unit, host))
    ensure_files([ManagedFile(memory_path(instance.plane), memory_text(service, _wished(instance)))], check_mode=False)


def _settle(instance: Instance, unit: str, host: ManagerHost) -> None:
    """Its own port is the first that a subnet manager makes active, also one that stands by: then the master has."""
    path = f"/sys/class/infiniband/{instance.device}/ports/{instance.number}/state"
    deadline = time.monotonic() + SETTLE_SECONDS
    while (state := host.sys.value(path, parse_state)) != "ACTIVE":
        if read_service(host.runner, unit).ended:
            raise ApplyError(_why_ended(instance, unit, host))
        if time.monotonic() > deadline:
            raise ApplyError(
                f"{unit} was started, and after {SETTLE_SECONDS:.0f} s its port {instance.device}/{instance.number} is {state}: "
                f"see /var/log/opensm.{instance.guid}.log."
            )
        time.sleep(0.5)


def _why_ended(instance: Instance, unit: str, host: ManagerHost) -> str:
    """A unit whose condition is not met is skipped, and systemctl calls that a success; it leaves no log and no failure."""
    paths = needed_paths(run_checked(host.runner, "systemctl", "cat", unit))
    missing = [path for path in paths if not host.sys.exists(path)]
    if not missing:
        return f"{unit} does not run any more: see `journalctl -u {unit}` and /var/log/opensm.{instance.guid}.log."
    load = " It is there as soon as ib_umad is loaded: `modprobe ib_umad`." if "infiniband_mad" in missing[0] else ""
    return f"{unit} was not started: its condition ConditionPathExists={missing[0]} is not met.{load}"


def _stop_strays(instances: Sequence[Instance], flavour: str, host: ManagerHost, result: ManagerResult, *, check_mode: bool) -> None:
    """Debian's package starts opensm on every port; those that are not planned would be managers of other planes."""
    wanted = {instance.unit(flavour) for instance in instances}
    pattern = "opensm@*.service" if flavour == "debian" else ENABLED[flavour]
    shown = run_checked(host.runner, "systemctl", "list-units", "--plain", "--no-legend", "--state=active", pattern)
    running = [line.split()[0] for line in shown.splitlines() if line.strip()]
    for unit in (unit for unit in running if unit not in wanted):
        result.steps.append(f"stop {unit}")
        if not check_mode:
            _systemctl(host, "stop", unit)


def _enable(unit: str, host: ManagerHost, result: ManagerResult, *, wished: bool, check_mode: bool, run: bool = False) -> None:
    """At boot; run: and now as well."""
    state = read_service(host.runner, unit)
    if state.enabled == wished and (not run or state.active == wished):
        return
    word = "enable" if wished else "disable"
    result.steps.append(f"{word} {unit}")
    if not check_mode:
        _systemctl(host, word, *(["--now"] if run else []), unit)


def _systemctl(host: ManagerHost, *words: str) -> None:
    run_checked(host.runner, "systemctl", *words, timeout_seconds=_SYSTEMCTL_SECONDS)
