# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a build is, for whoever waits for it: it runs, it ended well, or it failed, with the lines that tell why."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import LOST, NONE, OTHER, BuildUnit, Look
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_codes import Meaning
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_log import build_failed, decisive, log_paths, progress, tail

#: So much is read of a log, from its end, and so many logs are followed beside the first one.
TAIL_BYTES = 512 * 1024
FOLLOWED = 8
DKMS_TREE = Path("/var/lib/dkms")


def read_tail(path: Path, most_bytes: int = TAIL_BYTES) -> str | None:
    """The end of a log, from a whole line on; None if there is no such file, or it is no log."""
    # A text names it, maybe below /tmp, where others can put links: what is no log in the end is not read.
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
    """The logs of DKMS's builds that were written since a time (seconds since 1970) and are still where a failed build leaves them."""
    return sorted(path for path in tree.glob("*/*/build/make.log") if path.stat().st_mtime >= since)


def gather(log: Path, others: Iterable[Path] = ()) -> dict[str, str]:
    """The ends of a log and of those that it and they name, by path, the first one first; what cannot be read is left out."""
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


#: So many lines of a failure's log go with the answer, and so many are quoted of one that has no decisive line.
LOG_LINES = 200
_LAST_LINES = 5
_PROGRESS_BYTES = 64 * 1024
#: What every module that runs a build is asked, and every action that waits for one.
OPTIONS: dict[str, dict[str, Any]] = {
    "timeout_seconds": {"type": "int", "default": 3600},
    "poll_seconds": {"type": "int", "default": 10},
    "collect": {"type": "bool", "default": False},
    "host": {"type": "str"},
}


@dataclass(frozen=True)
class Report:
    """changed: something was done, or would be (would: what, in check mode). started: by this call; running: it goes on.

    finished: it has come to its end, whose rc, meaning and remedy are told; failed: and that is not good. seconds: since its start.
    lines: those that tell why it failed; log: the end of its log; log_files: all logs that belong to it, its own first. note: what
    else a person should know.
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

    def told(self, header: str) -> dict[str, Any]:
        """What a module returns of it. header: what the diff of check mode is about."""
        return {**asdict(self), "diff": listed_diff(header, [self.would] if self.would else [])}

    @property
    def message(self) -> str:
        """A failure in full."""
        return "\n".join([f"{self.meaning[:1].upper()}{self.meaning[1:]}. {self.remedy}".strip(), *self.lines])


#: What makes an end that looks good a failure: a reason and a remedy; None for one that is good.
Judge = Callable[[], "Meaning | None"]


def refuse_other(look: Look, unit: str, host: str) -> None:
    """Raise ApplyError if something else runs in the unit."""
    if look.phase == OTHER:
        what = " ".join(look.argv) or "an unknown program"
        raise ApplyError(f"{unit} runs another program on {host}: {what}. Wait until it ends, or run `systemctl stop {unit}` there.")


def follow(unit: BuildUnit, wait_seconds: float, host: str, explain: Callable[[Look], Meaning], judge: Judge) -> Report:
    """Wait for the end, at most so long, and tell how far it is; what has ended is collected.

    explain: what an end means. judge: asked only of an end that is good so far. Raises ApplyError if something else runs.
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
    """Why a unit that was started is not there."""
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
    """An exit status of 0 does not tell of modules that DKMS could not build."""
    said = build_failed(text)
    if not said:
        return None
    return Meaning(
        "it exited with 0, but DKMS could not build a module",
        "1. Fix the cause in the lines below; `dkms status` on the host shows the builds for each kernel. 2. Run the playbook again.",
    )


def _why(text: str, own: str) -> list[str]:
    """The decisive lines; if there is none, the last ones of its own log."""
    return decisive(text) or [line for line in tail(own, LOG_LINES) if line][-_LAST_LINES:]


BUNDLE, DOCA, DKMS = "bundle", "doca", "dkms"
#: Of the bundle's installer, of DOCA's packages, and of what DKMS has built anew, for a kernel.
STATES = {
    f"/var/lib/rdma-cluster/{place}/state.json": source
    for place, source in (("ofed", BUNDLE), ("builds/doca", DOCA), ("builds/dkms", DKMS))
}


@dataclass(frozen=True)
class LastBuild:
    """An installation that failed: meaning of its exit status, the lines of its logs that tell why, and what was run: one of the three."""

    meaning: str
    lines: list[str]
    source: str = BUNDLE


def parse_state(text: str, source: str = BUNDLE) -> tuple[float, LastBuild | None]:
    """When it was started, in seconds since 1970, and how it failed: None if it ended well, or runs. Raises ParseError for other text."""
    try:
        state = json.loads(text)
        failure, started = state.get("failure"), float(state.get("started") or 0)
        if failure is None:
            return started, None
        return started, LastBuild(str(failure["meaning"]), [str(line) for line in failure["lines"]], source)
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError, OverflowError) as exc:
        raise ParseError(f"not the state of an installation: {text[:200]!r}, expected a JSON object with 'failure'") from exc


def read_last_build(sys: SysRoot) -> LastBuild | None:
    """The failure of the newest of them, None if that did not fail. One that may not be read, or is cut off, does not count."""
    told = [state for path, source in STATES.items() if (state := _state(sys, path, source)) is not None]
    return max(told, key=lambda state: state[0])[1] if told else None


def _state(sys: SysRoot, path: str, source: str) -> tuple[float, LastBuild | None] | None:
    try:
        return sys.value(path, lambda text: parse_state(text, source))
    except (OSError, ParseError):
        return None
