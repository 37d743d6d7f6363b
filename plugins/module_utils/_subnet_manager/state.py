# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a running opensm has read its files, and which step makes it do so: none, a signal, or a restart.

A heavy sweep rereads partitions.conf and most of opensm.conf (osm_state_mgr.c, osm_pkey_mgr.c of 3.3.24), and SIGHUP starts one
(opensm(8)). A record in /run has the files at the last signal, and the start of the service that received it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import plain_guid
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.conf import parse_conf, restart_reasons

START, RESTART, RELOAD, NOTHING = "start", "restart", "reload", "nothing"
PROPERTIES = "Id,ActiveState,UnitFileState,MainPID,InvocationID,ExecMainStartTimestampMonotonic"
MEMORY = "/run/rdma-cluster"
#: The file that opensm reads by default.
DEFAULT_CONFIG = "/etc/opensm/opensm.conf"
_PORT_GUID = re.compile(r"0x[0-9a-fA-F]{1,16}")
_NEEDED = re.compile(r"^ConditionPathExists=(/.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Service:
    """A unit now. invocation: the id of its current start, None if it does not run; started_seconds: when, since the machine booted.

    ended: it neither runs nor is about to. main_pid: its process, None if it has none.
    """

    active: bool
    enabled: bool
    invocation: str | None
    started_seconds: float | None
    ended: bool = False
    main_pid: int | None = None


@dataclass(frozen=True)
class Texts:
    """The files of an instance: config, partitions, and the unit's drop-in; None for a missing one."""

    config: str | None
    partitions: str | None
    drop_in: str | None

    @property
    def sums(self) -> dict[str, str]:
        return {name: _sum(text) for name, text in vars(self).items()}


def parse_service(text: str) -> Service:
    """Parse `systemctl show --property=PROPERTIES UNIT`."""
    shown = dict(line.partition("=")[::2] for line in text.strip().splitlines())
    if "Id" not in shown:
        raise ParseError(f"systemctl show names no unit in {quoted(text)}")
    microseconds = shown.get("ExecMainStartTimestampMonotonic", "0")
    if not microseconds.isdecimal():
        raise ParseError(f"systemctl show: ExecMainStartTimestampMonotonic is {microseconds!r}, expected a number")
    active = shown.get("ActiveState") == "active"
    return Service(
        active=active,
        enabled=shown.get("UnitFileState") in ("enabled", "generated"),
        invocation=(shown.get("InvocationID") or None) if active else None,
        started_seconds=int(microseconds) / 1e6 if active and int(microseconds) else None,
        ended=shown.get("ActiveState") in ("inactive", "failed"),
        main_pid=int(shown["MainPID"]) if active and shown.get("MainPID", "").isdecimal() and int(shown["MainPID"]) else None,
    )


def needed_paths(text: str) -> list[str]:
    """Return the paths without which a unit is not started, from `systemctl cat`; those after "!" or "|" do not count."""
    return [match.rstrip() for match in _NEEDED.findall(text)]


def read_service(runner: Runner, unit: str) -> Service:
    return parse_service(run_checked(runner, "systemctl", "show", f"--property={PROPERTIES}", unit))


def running_guid(service: Service, sys: SysRoot) -> str | None:
    """Return the GUID of the port that a running opensm uses by its command line or its file; None if neither has one."""
    words = (sys.text(f"/proc/{service.main_pid}/cmdline") or "").split("\0") if service.main_pid is not None else []
    if not words or PurePosixPath(words[0]).name != "opensm":
        return None
    given = _option(words, "g", "guid")
    if given is None:
        given = parse_conf(sys.text(_option(words, "F", "config") or DEFAULT_CONFIG) or "").get("guid")
    return plain_guid(given) if given is not None and _PORT_GUID.fullmatch(given) and int(given, 16) else None


def _option(words: Sequence[str], short: str, name: str) -> str | None:
    """Return the value of a program's option, as getopt_long reads it."""
    for word, following in zip(words, [*words[1:], ""]):
        if word in (f"-{short}", f"--{name}"):
            return following
        for start in (f"--{name}=", f"-{short}"):
            if word.startswith(start):
                return word[len(start) :]
    return None


def memory_path(plane: str) -> str:
    return f"{MEMORY}/opensm-{plane}.json"


def memory_text(service: Service, texts: Texts) -> str:
    """Return the record to keep after opensm was started or signaled."""
    return json.dumps({"invocation": service.invocation, **texts.sums}) + "\n"


def read_sums(service: Service, memory: str | None, there: Texts, changed_seconds: float | None) -> Mapping[str, str] | None:
    """Return the checksums of the files that the running opensm has read; None if unknown.

    memory: the record; there: the files now; changed_seconds: when the youngest of them was written, since the machine booted.
    """
    try:
        known = json.loads(memory or "{}")
    except (ValueError, RecursionError):
        known = {}
    if service.invocation is not None and isinstance(known, dict) and known.get("invocation") == service.invocation:
        return {name: str(known.get(name)) for name in there.sums}
    if None not in (service.started_seconds, changed_seconds) and float(changed_seconds or 0) < float(service.started_seconds or 0):
        return there.sums
    return None


def next_step(service: Service, sums: Mapping[str, str] | None, there: Texts, planned: Texts) -> tuple[str, list[str]]:
    """Return START, RESTART, RELOAD or NOTHING, and for a RESTART why a signal is not enough."""
    if not service.active:
        return START, []
    if sums is None:
        return RESTART, ["the files that it has read are not known"]
    reasons = _reasons(sums, there, planned)
    if reasons:
        return RESTART, reasons
    return (NOTHING if sums == planned.sums else RELOAD), []


def _reasons(sums: Mapping[str, str], there: Texts, planned: Texts) -> list[str]:
    """Return why a signal is not enough."""
    if sums["drop_in"] != planned.sums["drop_in"]:
        return ["its command line"]
    if sums["config"] == planned.sums["config"]:
        return []
    if sums["config"] != there.sums["config"]:
        return ["opensm.conf is another than it has read"]
    return restart_reasons(there.config or "", planned.config or "")


def _sum(text: str | None) -> str:
    return "absent" if text is None else hashlib.sha256(text.encode()).hexdigest()
