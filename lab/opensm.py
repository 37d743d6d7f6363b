# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real opensm as a client of the simulator, with everything it writes in a folder of its own."""

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
#: What makes opensm sweep again.
NOTICE = "Link state change"
#: Ports keep what they are told to allow; by default opensm would give a cable that the lab has made slow its speed back.
LET_BE = {"force_link_speed": "0", "force_link_speed_ext": "0", "force_link_width": "0"}
#: Keys that the lab sets itself: what opensm writes stays in the fabric's folder, and it may be killed by its pid.
OWN = ("log_file", "dump_files_dir", "force_log_flush", "daemon", "console")


def configuration(home: Path, options: Mapping[str, str]) -> str:
    """opensm.conf: opensm's defaults but for where it writes and LET_BE, and `options` (any key of opensm(8) but OWN)."""
    for key, value in options.items():
        if key in OWN or not re.fullmatch(r"[a-z0-9_]+", key) or "\n" in value:
            raise LabError(f"'{key} {value}' cannot be set: KEY VALUE of opensm.conf, none of {', '.join(OWN)}.")
    # Without the flush a line of the log may stay in opensm's memory for as long as nothing else happens.
    own = {"log_file": home / "log", "dump_files_dir": home, "force_log_flush": "TRUE", "daemon": "FALSE", "console": "off"}
    return "".join(f"{key} {value}\n" for key, value in {**own, **LET_BE, **options}.items())


def start(folder: FabricFolder, number: int, node: str, options: Mapping[str, str], *, patience_seconds: float) -> str:
    """Start a manager at a node and wait until it is master (then its subnet is up) or standby; which of them is returned."""
    home = folder.manager(number)
    home.mkdir()
    (home / "opensm.conf").write_text(configuration(home, options))
    (home / "node").write_text(node)
    return again(folder, number, patience_seconds=patience_seconds)


def again(folder: FabricFolder, number: int, *, patience_seconds: float) -> str:
    """Start a manager that was stopped once more, as it was."""
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
    """Where a manager runs."""
    return (home / "node").read_text()


def rank(options: Mapping[str, str], guid: int) -> tuple[int, int]:
    """What decides who is master: the highest priority (opensm's default is 0), then the lowest port GUID (IBA 14.4.1)."""
    return int(options.get("sm_priority", "0")), -guid


def rank_of(home: Path, plan: FabricPlan) -> tuple[int, int]:
    """The rank of a manager that has been started."""
    pairs = (line.split(maxsplit=1) for line in (home / "opensm.conf").read_text().splitlines())
    return rank(dict(pairs), plan.guid(node(home)))


def role_of(log: str) -> str | None:
    """ "master" or "standby" as the log last says; None before either."""
    master, standby = log.rfind(UP), log.rfind(STANDBY)
    if master == standby:
        return None
    return "master" if master > standby else "standby"


def read_log(home: Path, since: int = 0) -> str:
    """The log from a byte on; empty before there is one."""
    try:
        with (home / "log").open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def has_swept(log: str) -> bool:
    """True if the log's last sweep ended after the last notice of a link."""
    return log.rfind(UP) > log.rfind(NOTICE)


def is_running(folder: FabricFolder, number: int) -> bool:
    return process.is_ours(folder.manager(number) / "pid", str(folder.manager(number)))


def stop(folder: FabricFolder, number: int, *, kill: bool = False) -> None:
    first = signal.SIGKILL if kill else signal.SIGTERM
    process.end(folder.manager(number) / "pid", str(folder.manager(number)), first=first)


def numbers(folder: FabricFolder) -> list[int]:
    """The managers that have been started, whether or not they still run."""
    return sorted(int(path.name[len("opensm") :]) for path in folder.path.glob("opensm*") if path.is_dir())
