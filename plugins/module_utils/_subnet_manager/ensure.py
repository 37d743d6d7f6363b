# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""opensm on a host as planned: its files, its service, and the files that it has read; compared, guarded, changed, and verified."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import keys_path
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import parse_state
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.conf import port_changes, redacted, with_port_settings_of
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.guard import Fleet, Guard, Losses, MasterReading
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import with_default_of, with_limited_default
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import (
    DROP_IN,
    FOLDER,
    MARK,
    PATTERNS,
    PORTS_FILE,
    SHARP_UNIT,
    UNIT_FOLDER,
    Instance,
    at_boot,
    at_boot_path,
    config_path,
    drop_in,
    drop_in_path,
    instance_files,
    keys_file,
    partitions_path,
    plane_of,
    ports_file,
    sharp_mark,
)
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.state import (
    NOTHING,
    RELOAD,
    RESTART,
    Service,
    Texts,
    memory_path,
    memory_text,
    needed_paths,
    next_step,
    read_service,
    read_sums,
    running_guid,
)

#: How long the port of a new subnet manager may take to become active.
SETTLE_SECONDS = 60.0
_SYSTEMCTL_SECONDS = 150.0
#: How often, and at which interval, to read the P_Key tables before refusing a second subnet manager because of them.
TABLE_READS, TABLE_SECONDS = 4, 5.0
#: The effects of this role on a live fabric, each of which must be allowed by name.
RESTARTS, TAKEOVER, PARTITION_CHANGE, SETTINGS_CHANGE, STOP = EFFECTS = (
    "restart",
    "takeover",
    "partition_change",
    "settings_change",
    "stop",
)


@dataclass(frozen=True)
class ManagerHost:
    """The readers of a host. root: the root of its files."""

    sys: SysRoot
    runner: Runner


@dataclass
class ManagerResult:
    """The changes that were made, or would be in check mode. withheld: effect → plane → why it is needed and was not done.

    losses: plane → the ports that lose a partition or full membership, done or withheld; foreign: units that are not ours, left alone.
    """

    files: list[FileChange] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    withheld: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {effect: {} for effect in EFFECTS})
    losses: dict[str, list[str]] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return bool(self.files or self.steps)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints, without keys."""
        hidden = [
            replace(file, before=_hidden(file, file.before, "secret"), after=_hidden(file, file.after, "planned secret"))
            for file in self.files
        ]
        steps = [*self.steps, *(f"plane {plane}, {each}" for plane, lost in self.losses.items() for each in lost)]
        return [*(each.to_diff() for each in hidden), *listed_diff("opensm", steps)]


def _hidden(file: FileChange, text: str | None, word: str) -> str | None:
    if text is not None and Path(file.path).name.startswith("diags-"):
        return f"({word})\n"
    return None if text is None else redacted(text, word)


@dataclass(frozen=True)
class _Plan:
    """One instance that may be changed, and the step for it."""

    instance: Instance
    unit: str
    step: str
    reasons: Sequence[str]


class _Host:
    """The subnet managers of a host, in one run. allowed: the effects of EFFECTS that the user allows."""

    def __init__(
        self, flavor: str, host: ManagerHost, fleet: Fleet, allowed: Sequence[str], *, sharp: bool = False, check_mode: bool
    ) -> None:
        self.flavor, self.host, self.fleet, self.allowed = flavor, host, fleet, allowed
        self.sharp, self.check_mode = sharp, check_mode
        self.result = ManagerResult()

    def withhold(
        self, effect: str, plane: str, reasons: Sequence[str], busy: Mapping[str, str] | None = None, refusal: str | None = None
    ) -> bool:
        """Return True if an effect is not allowed, or is refused although it is: because a host is in use, or for another reason.

        busy: the affected hosts that are in use; None: all hosts in use.
        """
        touched = self.fleet.busy if busy is None else busy
        refusals = [f"refused, also if it is allowed: {refusal}"] if refusal is not None else []
        if effect in self.allowed and touched:
            refusals.append(f"refused while hosts are in use: {'; '.join(f'{name}: {words}' for name, words in touched.items())}")
        if effect in self.allowed and not refusals:
            return False
        self.result.withheld[effect][plane] = [*reasons, *refusals]
        return True

    def plan(self, instance: Instance) -> _Plan | None:
        """Return what to do for one instance; None if it must not be touched. A converged instance does not read the fabric."""
        unit = instance.unit(self.flavor)
        paths = (instance.config_path, instance.partitions_path, drop_in_path(unit))
        there = Texts(*(self.host.sys.read(path) for path in paths))
        service = read_service(self.host.runner, unit)
        sums = read_sums(service, self.host.sys.read(memory_path(instance.plane)), there, _written_seconds(paths))
        if not instance.default_given and there.partitions is not None and there.drop_in is not None:
            instance = replace(instance, partitions=with_default_of(instance.partitions, there.partitions))
        instance = self._port_settings_allowed(instance, service, there)
        step, reasons = next_step(service, sums, there, _planned(instance))
        differs = bool(ensure_files(instance_files(instance, self.flavor), check_mode=True))
        if differs or step not in (NOTHING, RESTART) or (step == RESTART and RESTARTS in self.allowed):
            guarded = self._guarded(instance, service, there)
            if guarded is None:
                return None
            if guarded != instance:
                instance = guarded
                step, reasons = next_step(service, sums, there, _planned(instance))
        if step == RESTART and there.drop_in is not None and self.withhold(RESTARTS, instance.plane, reasons):
            step = NOTHING
        return _Plan(instance, unit, step, reasons)

    def _port_settings_allowed(self, instance: Instance, service: Service, there: Texts) -> Instance:
        """Return the instance with the present file's M_Key and virtual lanes if a change of these is withheld.

        A running opensm reads its file again in any heavy sweep, so a withheld value must not be written.
        """
        if not service.active or there.drop_in is None or there.config is None:
            return instance
        changes = port_changes(there.config, instance.config)
        if not changes or not self.withhold(SETTINGS_CHANGE, instance.plane, changes):
            return instance
        diags = self.host.sys.read(keys_path(instance.plane))
        return replace(instance, config=with_port_settings_of(instance.config, there.config), diags=diags)

    def _guarded(self, instance: Instance, service: Service, there: Texts) -> Instance | None:
        """Return the instance as far as it may be changed now; None if it may not be changed at all."""
        ours = there.drop_in is not None
        if service.active and not ours and self._runs_elsewhere(instance, service):
            return None
        if not ours and instance.diags is not None and not self.check_mode:
            # Ports with an M_Key answer only those who have it, so without this file nothing below could be read.
            self.result.files += ensure_files([keys_file(instance)], check_mode=False)
        guard = Guard(instance, self.fleet, self.host.runner, self.host.sys)
        reading = guard.read_master()
        foreign = guard.takeover_reasons(reading, active=service.active, ours=ours)
        if foreign and self.withhold(TAKEOVER, instance.plane, foreign):
            return None
        # Our file is the plane's current one as long as no other subnet manager is the master.
        if ours and there.partitions is not None and not foreign:
            return self._partitions_allowed(instance, guard.losses_between(there.partitions), there.partitions)
        lost = self._losses_from_tables(guard, reading, retry=not foreign)
        if lost.limited and not instance.default_given:
            limited = self._with_present_default(instance, lost)
            if limited is None:
                return None
            instance = limited
            guard = Guard(instance, self.fleet, self.host.runner, self.host.sys)
            lost = self._losses_from_tables(guard, reading, retry=not foreign)
        return self._partitions_allowed(instance, lost, None)

    def _losses_from_tables(self, guard: Guard, reading: MasterReading, *, retry: bool) -> Losses:
        """Return the losses. Read again if a just started master, for example on the other host, has not written all tables yet."""
        lost = guard.losses_from_tables(reading)
        for _again in range(TABLE_READS - 1):
            mixed = lost.limited and lost.full and not guard.instance.default_given
            if not retry or reading.master is None or not (lost.words or lost.unknown or mixed):
                break
            time.sleep(TABLE_SECONDS)
            lost = guard.losses_from_tables(reading)
        return lost

    def _with_present_default(self, instance: Instance, lost: Losses) -> Instance | None:
        """Return the instance with the fabric's limited default partition; None if the fabric's ports differ."""
        if not lost.full:
            return replace(instance, partitions=with_limited_default(instance.partitions))
        some, others = (f"{len(each)} ports ({', '.join(each[:3])}{', …' if len(each) > 3 else ''})" for each in (lost.limited, lost.full))
        key = f"rdma_fabric.planes.{instance.plane}.subnet_manager.default_membership"
        self.withhold(
            PARTITION_CHANGE,
            instance.plane,
            [f"in the default partition (0x7fff) {some} are limited members and {others} are full ones"],
            refusal=f"set {key}, or define 0x7fff in rdma_partitions",
        )
        return None

    def _runs_elsewhere(self, instance: Instance, service: Service) -> bool:
        """Return whether the distribution's single unit runs an opensm that is not ours on another or an unknown port."""
        if self.flavor == "debian":
            return False
        guid = running_guid(service, self.host.sys)
        if guid == instance.guid:
            return False
        unit = instance.unit(self.flavor)
        port = f"on port {guid}" if guid is not None else "on a port that its command line and its file do not give"
        return self.withhold(
            TAKEOVER,
            instance.plane,
            [f"{unit} runs an opensm that this role did not configure, {port}"],
            refusal=f"a takeover of plane {instance.plane} would stop it, and it may be the master of another plane",
        )

    def _partitions_allowed(self, instance: Instance, lost: Losses, present: str | None) -> Instance | None:
        """Return the instance with the partitions to use. present: those to keep while ours are withheld; None: ours are required."""
        if not lost.words and not lost.unknown:
            return instance
        words = [*lost.words, *lost.unknown]
        self.result.losses[instance.plane] = words
        refusal = "it is not known what all ports would lose" if lost.unknown else None
        if not self.withhold(PARTITION_CHANGE, instance.plane, words, self.fleet.busy_of(lost), refusal):
            return instance
        return None if present is None else replace(instance, partitions=present)

    def apply(self, plans: Sequence[_Plan], held: Sequence[Instance]) -> None:
        """Stop units that no longer run our files, write the files, then apply the services. held: instances that must not be touched."""
        result, host = self.result, self.host
        gone = self._stale_units([*(plan.unit for plan in plans), *(each.unit(self.flavor) for each in held)])
        kept = {*(plan.instance.plane for plan in plans), *(each.plane for each in held)}
        stopped = [
            (unit, plane) for unit, plane, active in gone if not active or not self._withhold_stop(unit, plane, "runs with our files")
        ]
        kept |= {plane for unit, plane, _active in gone if (unit, plane) not in stopped}
        left = [each.unit(self.flavor) for each in held if host.sys.read(drop_in_path(each.unit(self.flavor)))]
        left += [unit for unit, plane, _active in gone if (unit, plane) not in stopped]
        wanted = [file for plan in plans for file in instance_files(plan.instance, self.flavor)]
        at_start = [*(plan.unit for plan in plans), *left]
        wanted += [at_boot(at_start) if at_start else ManagedFile(at_boot_path(), None)]
        if (host.sys.read(PORTS_FILE) or "").startswith(MARK):
            wanted.append(ports_file())
        there = (path.name[len("opensm-") : -len(".conf")] for path in sorted(Path(FOLDER).glob("opensm-*.conf")))
        removed = [each(plane) for plane in there if plane not in kept for each in (config_path, partitions_path, keys_path)]
        wanted += [ManagedFile(path, None) for path in (*removed, *(drop_in_path(unit) for unit, _plane in stopped))]
        running = {unit for unit, _plane, active in gone if active}
        for unit in (unit for unit, _plane in stopped if unit in running):
            result.steps.append(f"stop {unit}")
            if not self.check_mode:
                _systemctl(host, "stop", unit)
        files = ensure_files(wanted, check_mode=self.check_mode)
        result.files += files
        if files and not self.check_mode:
            _systemctl(host, "daemon-reload")
        self._enable_single([plan.unit for plan in plans], [unit for unit, _plane in stopped])
        for plan in plans:
            if plan.step != NOTHING:
                result.steps.append(f"{plan.step} {plan.unit}{f' ({chr(44).join(plan.reasons)})' if plan.reasons else ''}")
                if not self.check_mode:
                    _do(plan.step, plan.instance, plan.unit, host)
        if stopped or not (plans or held or left):
            self._stop_sharp(", ".join(plane for _unit, plane in stopped))

    def _withhold_stop(self, unit: str, plane: str, why: str) -> bool:
        return self.withhold(STOP, plane, [f"{unit} {why}, and rdma_fabric no longer gives plane {plane} to this host"])

    def run_sharp(self) -> None:
        """Enable and start sharp_am. The mark is written first: without it, sharp_am counts as the admin's own."""
        if not read_service(self.host.runner, SHARP_UNIT).enabled:
            self.result.files += ensure_files([sharp_mark()], check_mode=self.check_mode)
        self.enable(SHARP_UNIT, enabled=True, run=True)

    def _stop_sharp(self, plane: str) -> None:
        """Stop sharp_am, only if this role enabled it and no plane of this host needs it."""
        mark = sharp_mark()
        if self.sharp or self.host.sys.read(mark.path) is None:
            return
        state = read_service(self.host.runner, SHARP_UNIT)
        if state.active and self._withhold_stop(SHARP_UNIT, plane or SHARP_UNIT, "was enabled by this role"):
            return
        self.enable(SHARP_UNIT, enabled=False, run=True)
        self.result.files += ensure_files([replace(mark, content=None)], check_mode=self.check_mode)

    def _stale_units(self, wanted: Sequence[str]) -> list[tuple[str, str, bool]]:
        """Return our units that are no longer planned: unit, plane, and whether it runs."""
        found = []
        for path in sorted(Path(UNIT_FOLDER).glob(f"opensm*.d/{DROP_IN}")):
            unit, plane = path.parent.name[: -len(".d")], plane_of(self.host.sys.read(str(path)))
            if plane is not None and unit not in wanted:
                found.append((unit, plane, read_service(self.host.runner, unit).active))
        return found

    def report_foreign(self, ours: Sequence[str]) -> None:
        """Report the running units of opensm that are not ours; they may manage other planes."""
        argv = ["systemctl", "list-units", "--plain", "--no-legend", "--state=active", *PATTERNS[self.flavor]]
        running = [line.split()[0] for line in run_checked(self.host.runner, *argv).splitlines() if line.strip()]
        self.result.foreign = [unit for unit in running if unit not in ours and plane_of(self.host.sys.read(drop_in_path(unit))) is None]

    def _enable_single(self, units: Sequence[str], stopped: Sequence[str]) -> None:
        """Enable the distribution's single service for opensm at boot, if it has one; Debian's instances are wanted by our own file."""
        if self.flavor == "debian":
            return
        for unit, enabled in (*((unit, True) for unit in units), *((unit, False) for unit in stopped)):
            self.enable(unit, enabled=enabled)

    def enable(self, unit: str, *, enabled: bool, run: bool = False) -> None:
        """Enable or disable a unit at boot; run: and start or stop it now as well."""
        state = read_service(self.host.runner, unit)
        if state.enabled == enabled and (not run or state.active == enabled):
            return
        word = "enable" if enabled else "disable"
        self.result.steps.append(f"{word} {unit}")
        if not self.check_mode:
            _systemctl(self.host, word, *(["--now"] if run else []), unit)


def ensure_managers(
    instances: Sequence[Instance], flavor: str, host: ManagerHost, *, fleet: Fleet, allowed: Sequence[str], sharp: bool, check_mode: bool
) -> ManagerResult:
    """Make this host run these subnet managers, as far as that is allowed. Raises ApplyError for a change that failed."""
    here = _Host(flavor, host, fleet, allowed, sharp=sharp, check_mode=check_mode)
    here.report_foreign([])
    plans = [plan for plan in map(here.plan, instances) if plan is not None]
    planned = {plan.instance.plane for plan in plans}
    here.apply(plans, [each for each in instances if each.plane not in planned])
    if sharp and plans:
        here.run_sharp()
    return here.result


def _planned(instance: Instance) -> Texts:
    return Texts(instance.config, instance.partitions, drop_in(instance))


def _written_seconds(paths: Sequence[str]) -> float | None:
    """Return when the youngest of the files was written, in seconds since the machine booted; None if none exists."""
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
    ensure_files([ManagedFile(memory_path(instance.plane), memory_text(service, _planned(instance)))], check_mode=False)


def _settle(instance: Instance, unit: str, host: ManagerHost) -> None:
    """Wait for the port to become active. Every subnet manager activates its own port first; for a standby, the master has done it."""
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
    """Return why a unit ended. If its condition is not met it is skipped: systemctl reports success, and there is no log and no failure."""
    paths = needed_paths(run_checked(host.runner, "systemctl", "cat", unit))
    missing = [path for path in paths if not host.sys.exists(path)]
    if not missing:
        return f"{unit} does not run any more: see `journalctl -u {unit}` and /var/log/opensm.{instance.guid}.log."
    load = " It is there as soon as ib_umad is loaded: `modprobe ib_umad`." if "infiniband_mad" in missing[0] else ""
    return f"{unit} was not started: its condition ConditionPathExists={missing[0]} is not met.{load}"


def _systemctl(host: ManagerHost, *words: str) -> None:
    run_checked(host.runner, "systemctl", *words, timeout_seconds=_SYSTEMCTL_SECONDS)
