# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Report the state of a build: it runs, it succeeded, or it failed, with the lines that show why."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import LOST, NONE, OTHER, BuildUnit, Look
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_codes import Meaning
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_log import build_failed, decisive, log_paths, progress, tail

#: The maximum size that is read from the end of a log, and the maximum number of further logs.
TAIL_BYTES = 512 * 1024
FOLLOWED = 8
DKMS_TREE = Path("/var/lib/dkms")


def read_tail(path: Path, most_bytes: int = TAIL_BYTES) -> str | None:
    """Return the end of a log, from a whole line on; None if there is no such file, or it is not a log."""
    # A text names it, maybe below /tmp, where others can create links: a target that is not a log is not read.
    real = Path(os.path.realpath(path))
    if real.suffix != ".log":
        return None
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as handle:
        status = os.fstat(handle.fileno())
        if not stat.S_ISREG(status.st_mode):
            return None
        handle.seek(max(0, status.st_size - most_bytes))
        text = handle.read(most_bytes).decode("utf-8", "replace")
    return text if status.st_size <= most_bytes else text.partition("\n")[2]


def failed_builds(since: float, tree: Path = DKMS_TREE) -> list[Path]:
    """Return the logs of DKMS's builds that were written since a time (seconds since 1970) and are still in a failed build's place."""
    return sorted(path for path in tree.glob("*/*/build/make.log") if path.stat().st_mtime >= since)


def gather(log: Path, others: Iterable[Path] = ()) -> dict[str, str]:
    """Return the ends of a log and of the logs that they name, by path, the first one first; unreadable ones are omitted."""
    found: dict[str, str] = {}
    waiting = [log, *others]
    seen: set[Path] = set()
    while waiting and len(found) <= FOLLOWED:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        text = read_tail(path)
        if text is not None:
            found[str(path)] = text
            waiting += [Path(each) for each in log_paths(text)]
    return found


#: The number of log lines in the answer of a failure, and the number of quoted lines if no line is decisive.
LOG_LINES = 200
_LAST_LINES = 5
_PROGRESS_BYTES = 64 * 1024
#: The common options of modules that run a build, and of actions that wait for one.
OPTIONS: dict[str, dict[str, Any]] = {
    "timeout_seconds": {"type": "int", "default": 3600},
    "poll_seconds": {"type": "int", "default": 10},
    "collect": {"type": "bool", "default": False},
    "host": {"type": "str"},
}


@dataclass(frozen=True)
class Report:
    """changed: something was done, or would be (would: what, in check mode). started: by this call; running: it is still running.

    finished: it has ended, with rc, meaning and remedy; failed: the end is a failure. seconds: since its start. lines: those that show why
    it failed; log: the end of its log; log_files: all its logs, its own first. note: additional information for the user.
    """

    changed: bool = False
    started: bool = False
    running: bool = False
    finished: bool = False
    failed: bool = False
    rc: int | None = None
    meaning: str = ""
    remedy: str = ""
    progress: str | None = None
    seconds: float | None = None
    lines: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    log_files: list[str] = field(default_factory=list)
    note: str | None = None
    would: str | None = None

    def to_result(self, header: str) -> dict[str, Any]:
        """Return the report as a module's result. header: the title of the diff in check mode."""
        return {**asdict(self), "diff": listed_diff(header, [self.would] if self.would else [])}

    @property
    def message(self) -> str:
        """Return the full message of a failure."""
        return "\n".join([f"{self.meaning[:1].upper()}{self.meaning[1:]}. {self.remedy}".strip(), *self.lines])


#: Returns a reason and a remedy if a seemingly good end is a failure; None if it is good.
Judge = Callable[[], "Meaning | None"]


def refuse_other(look: Look, unit: str, host: str) -> None:
    """Raise ApplyError if another program runs in the unit."""
    if look.phase == OTHER:
        what = " ".join(look.argv) or "an unknown program"
        raise ApplyError(f"{unit} runs another program on {host}: {what}. Wait until it ends, or run `systemctl stop {unit}` there.")


def follow(unit: BuildUnit, wait_seconds: float, host: str, explain: Callable[[Look], Meaning], judge: Judge) -> Report:
    """Wait for the end up to the limit, and return the state; an ended unit is collected.

    explain: the meaning of an end. judge: called only for an end that is good so far. Raises ApplyError if another program runs.
    """
    look = unit.wait(wait_seconds)
    refuse_other(look, unit.job.unit, host)
    if look.running:
        text = read_tail(unit.job.log, _PROGRESS_BYTES) or ""
        return Report(changed=True, running=True, progress=progress(text), seconds=look.seconds)
    if look.phase in (NONE, LOST):
        return _gone(unit, look, host)
    unit.collect(look)
    report = _ended(unit, look, explain(look), judge)
    unit.remember({"meaning": report.meaning, "lines": report.lines} if report.failed else None)
    return report


def _gone(unit: BuildUnit, look: Look, host: str) -> Report:
    remedy = "Run the playbook again, which starts it again."
    if look.phase == NONE:
        why = f"it was not started on {host}, or another one was started since"
        return Report(finished=True, failed=True, meaning=why, remedy=remedy)
    logs = gather(unit.job.log)
    own = logs.get(str(unit.job.log), "")
    return Report(
        changed=True,
        finished=True,
        failed=True,
        meaning=f"it was interrupted: {cut_off(unit, host)}",
        remedy=remedy,
        lines=_why("\n".join(logs.values()), own),
        log=tail(own, LOG_LINES),
        log_files=list(logs),
    )


def cut_off(unit: BuildUnit, host: str) -> str:
    """Return why a unit that was started no longer exists."""
    return f"{host} was rebooted in the meantime" if unit.rebooted() else f"{unit.job.unit} was removed from {host}"


def _ended(unit: BuildUnit, look: Look, meaning: Meaning, judge: Judge) -> Report:
    logs = gather(unit.job.log, failed_builds(unit.started()))
    text = "\n".join(logs.values())
    good = look.rc == 0 and look.result in ("success", "")
    if good:
        wrong = judge() or _not_built(text)
        if wrong is None:
            return Report(changed=True, finished=True, rc=0, meaning=meaning.text, seconds=look.seconds, log_files=list(logs))
        meaning = wrong
    own = logs.get(str(unit.job.log), "")
    return Report(
        changed=True,
        finished=True,
        failed=True,
        rc=look.rc,
        meaning=meaning.text,
        remedy=meaning.remedy,
        seconds=look.seconds,
        lines=_why(text, own),
        log=tail(own, LOG_LINES),
        log_files=list(logs),
    )


def _not_built(text: str) -> Meaning | None:
    """Return a failure of DKMS. An exit status of 0 does not show modules that DKMS could not build."""
    reason = build_failed(text)
    if not reason:
        return None
    return Meaning(
        "it exited with 0, but DKMS could not build a module",
        "1. Fix the cause in the lines below; `dkms status` on the host shows the builds for each kernel. 2. Run the playbook again.",
    )


def _why(text: str, own: str) -> list[str]:
    """Return the decisive lines; without any, the last ones of its own log."""
    return decisive(text) or [line for line in tail(own, LOG_LINES) if line][-_LAST_LINES:]


BUNDLE, DOCA, DKMS = "bundle", "doca", "dkms"
#: Of the bundle's installer, of DOCA's packages, and of DKMS builds for a kernel.
STATES = {
    f"/var/lib/rdma-cluster/{place}/state.json": source
    for place, source in (("ofed", BUNDLE), ("builds/doca", DOCA), ("builds/dkms", DKMS))
}


@dataclass(frozen=True)
class LastBuild:
    """An installation that failed: meaning of its exit status, the log lines that show why, and its program: one of the three."""

    meaning: str
    lines: list[str]
    source: str = BUNDLE


def parse_state(text: str, source: str = BUNDLE) -> tuple[float, LastBuild | None]:
    """Return when it was started, in seconds since 1970, and how it failed: None if it succeeded, or runs.

    Raises ParseError for other text.
    """
    try:
        state = json.loads(text)
        failure, started = state.get("failure"), float(state.get("started") or 0)
        if failure is None:
            return started, None
        return started, LastBuild(str(failure["meaning"]), [str(line) for line in failure["lines"]], source)
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError, OverflowError) as exc:
        raise ParseError(f"not the state of an installation: {quoted(text)}, expected a JSON object with 'failure'") from exc


def read_last_build(sys: SysRoot) -> LastBuild | None:
    """Return the failure of the newest one, None if it did not fail. Unreadable or truncated files do not count."""
    builds = [state for path, source in STATES.items() if (state := _state(sys, path, source)) is not None]
    return max(builds, key=lambda state: state[0])[1] if builds else None


def _state(sys: SysRoot, path: str, source: str) -> tuple[float, LastBuild | None] | None:
    try:
        return sys.value(path, lambda text: parse_state(text, source))
    except (OSError, ParseError):
        return None
