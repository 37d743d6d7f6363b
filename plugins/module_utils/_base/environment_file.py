# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Environments: files for systemd's EnvironmentFile= and `set -a; . file`, those of processes, and those that `systemctl show` reports.

Sources: systemd.exec(5), systemctl(1).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import lines_of

#: The properties to request from systemctl.
PROPERTIES = "Id,LoadState,MainPID,User,Environment,EnvironmentFiles"
#: All variables of a unit are one line.
_LONGEST_ENVIRONMENT = 65536
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_FILE = re.compile(r"(.+?)(?: \(ignore_errors=(?:yes|no)\))?")
_ESCAPE = re.compile(r'\\(["\\$`])')


@dataclass(frozen=True)
class ServiceEnvironment:
    """main_pid: None if it does not run; user: "" for root; variables: of the unit itself; files: in their order, globs included."""

    unit: str
    main_pid: int | None
    user: str
    variables: dict[str, str]
    files: list[str]


def parse_environment_file(text: str) -> dict[str, str]:
    """Return the variables; if a name has two lines, the last one counts. Comments and lines without an assignment are left out."""
    variables = {}
    for line in text.split("\n"):
        found = _ASSIGNMENT.fullmatch(line.rstrip("\r"))
        if found and not line.lstrip().startswith(("#", ";")):
            variables[found[1]] = unquoted(found[2].strip())
    return variables


def unquoted(value: str) -> str:
    """Return a value without the quotes around it and, for double quotes, without the backslashes that they need."""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1]
    if len(value) > 1 and value[0] == value[-1] == '"':
        return _ESCAPE.sub(r"\1", value[1:-1])
    return value


def parse_environ(data: bytes) -> dict[str, str]:
    """Parse /proc/PID/environ (proc_pid_environ(5)), separated by NUL; bytes that are not UTF-8 become replacement characters."""
    words = (word.decode("utf-8", "replace").partition("=") for word in data.split(b"\0"))
    return {name: value for name, equals, value in words if name and equals}


def parse_service_environment(text: str) -> ServiceEnvironment:
    """Parse `systemctl show --property=PROPERTIES UNIT`. Raises ParseError, also for a unit that systemd does not know."""
    lines = [line.partition("=")[::2] for line in lines_of(text.strip(), _LONGEST_ENVIRONMENT)]
    properties = dict(lines)
    if "Id" not in properties:
        raise ParseError(f"systemctl show names no unit in {quoted(text)}")
    if properties.get("LoadState") == "not-found":
        raise ParseError(f"systemd has no unit {properties['Id']}")
    pid = properties.get("MainPID", "0")
    if not re.fullmatch(r"[0-9]{1,10}", pid):
        raise ParseError(f"systemctl show: MainPID is {pid!r}, expected a number")
    try:
        words = [word.partition("=") for name, value in lines if name == "Environment" for word in shlex.split(value)]
    except ValueError as exc:
        raise ParseError(f"systemctl show: {exc} in Environment={quoted(properties['Environment'])}") from exc
    files = [found[1] for name, value in lines if name == "EnvironmentFiles" for found in [_FILE.fullmatch(value)] if found]
    variables = {name: value for name, _equals, value in words}
    return ServiceEnvironment(properties["Id"], int(pid) or None, properties.get("User", ""), variables, files)
