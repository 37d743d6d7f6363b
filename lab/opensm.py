# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real opensm as a client of the simulator, with all of its output in its own folder."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from lab import ibsim, process
from lab.errors import LabError
from lab.fabric_plan import FabricPlan
from lab.paths import FabricFolder

UP, STANDBY = "SUBNET UP", "Entering STANDBY state"
#: The log line before opensm sweeps again.
NOTICE = "Link state change"
#: Ports keep their limits: by default, opensm would restore the speed of a cable that the lab has slowed down.
LET_BE = {"force_link_speed": "0", "force_link_speed_ext": "0", "force_link_width": "0"}
#: Keys that only the lab sets, so that opensm writes to the fabric's folder only, and can be killed by its pid.
OWN = ("log_file", "dump_files_dir", "force_log_flush", "daemon", "console")


def configuration(home: Path, options: Mapping[str, str]) -> str:
    """Return opensm.conf: opensm's defaults except for its folders, LET_BE, and `options` (any key of opensm(8) except OWN)."""
    for key, value in options.items():
        if key in OWN or not re.fullmatch(r"[a-z0-9_]+", key) or "\n" in value:
            raise LabError(f"'{key} {value}' cannot be set: KEY VALUE of opensm.conf, none of {', '.join(OWN)}.")
    # Without the flush, a log line may stay in opensm's memory until the next event.
    own = {"log_file": home / "log", "dump_files_dir": home, "force_log_flush": "TRUE", "daemon": "FALSE", "console": "off"}
    return "".join(f"{key} {value}\n" for key, value in {**own, **LET_BE, **options}.items())


def start(folder: FabricFolder, number: int, node: str, options: Mapping[str, str], *, patience_seconds: float) -> str:
    """Start a manager on a node, wait until it is master (with its subnet up) or standby, and return its role."""
    home = folder.manager(number)
    home.mkdir()
    (home / "opensm.conf").write_text(configuration(home, options))
    (home / "node").write_text(node)
    return again(folder, number, patience_seconds=patience_seconds)


def again(folder: FabricFolder, number: int, *, patience_seconds: float) -> str:
    """Start a stopped manager again, with the same settings, and return its role."""
    home = folder.manager(number)
    at = node(home)
    (home / "log").unlink(missing_ok=True)
    place = {"OSM_CACHE_DIR": str(home), "OSM_TMP_DIR": str(home)}
    with (home / "stdout").open("wb") as output:
        started = subprocess.Popen(
            [*folder.enter, "nice", "-n", "10", "opensm", "-F", str(home / "opensm.conf")], cwd=home, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True, env={**ibsim.environment(folder, at), **place},
        )  # fmt: skip
    (home / "pid").write_text(str(started.pid))
    deadline = time.monotonic() + patience_seconds
    while (role := role_of(read_log(home))) is None:
        if started.poll() is not None:
            raise LabError(f"opensm at {at} has ended while it was starting; see {home}/stdout and {home}/log.")
        if time.monotonic() > deadline:
            raise LabError(f"opensm at {at} is neither master nor standby after {patience_seconds:.0f} s; see {home}/log.")
        time.sleep(0.05)
    return role


def node(home: Path) -> str:
    """Return the node that a manager runs on."""
    return (home / "node").read_text()


def rank(options: Mapping[str, str], guid: int) -> tuple[int, int]:
    """Return the rank that decides the master: the highest priority (opensm's default is 0), then the lowest port GUID (IBA 14.4.1)."""
    return int(options.get("sm_priority", "0")), -guid


def rank_of(home: Path, plan: FabricPlan) -> tuple[int, int]:
    """Return the rank of a manager that has been started."""
    pairs = (line.split(maxsplit=1) for line in (home / "opensm.conf").read_text().splitlines())
    return rank(dict(pairs), plan.guid(node(home)))


def role_of(log: str) -> str | None:
    """Return the last role in the log, "master" or "standby"; None before the first one."""
    master, standby = log.rfind(UP), log.rfind(STANDBY)
    if master == standby:
        return None
    return "master" if master > standby else "standby"


def read_log(home: Path, since: int = 0) -> str:
    """Return the log from a byte on; "" if there is no log yet."""
    try:
        with (home / "log").open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def has_swept(log: str) -> bool:
    """Return whether the log's last sweep ended after the last change of a link."""
    return log.rfind(UP) > log.rfind(NOTICE)


def is_running(folder: FabricFolder, number: int) -> bool:
    return process.is_ours(folder.manager(number) / "pid", str(folder.manager(number)))


def stop(folder: FabricFolder, number: int, *, kill: bool = False) -> None:
    first = signal.SIGKILL if kill else signal.SIGTERM
    process.end(folder.manager(number) / "pid", str(folder.manager(number)), first=first)


def numbers(folder: FabricFolder) -> list[int]:
    """Return the numbers of all managers that have been started, running or not."""
    return sorted(int(path.name[len("opensm") :]) for path in folder.path.glob("opensm*") if path.is_dir())
