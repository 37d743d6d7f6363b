# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages RPM has installed: what one `rpm -qa` says, whose database is not for others to read."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

#: EVR is version-release, with the epoch in front where there is one: "48.0-1.el9", "1:2.3-4.el9".
ALL = ("rpm", "-qa", "--queryformat", r"%{NAME} %{EVR}\n")
_TIMEOUT_SECONDS = 60.0
_NAME, _VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}"), re.compile(r"[A-Za-z0-9()][A-Za-z0-9._+~^:()-]{0,199}")


def parse_rpm_packages(text: str) -> dict[str, str]:
    """The version of each package by its name, from the output of ALL (rpm 4.8 to 6.0); the first of several with one name counts.

    Raises ParseError for a line of another form, for a last one that is cut off, and for no package at all.
    """
    lines = text.split("\n")
    if lines[-1]:
        raise ParseError(f"the output of `rpm -qa` is cut off: {lines[-1]!r}")
    found: dict[str, str] = {}
    for line in lines[:-1]:
        name, blank, version = line.partition(" ")
        if not (blank and _NAME.fullmatch(name) and _VERSION.fullmatch(version)):
            raise ParseError(f"not a package of `rpm -qa`: {line!r}, expected the form 'rdma-core 48.0-1.el9'")
        found.setdefault(name, version)
    if not found:
        raise ParseError("`rpm -qa` names no package, expected lines of the form 'rdma-core 48.0-1.el9'")
    return found


def read_rpm_packages(runner: Runner) -> dict[str, str] | None:
    """Ask the running system, once for all; None where there is no rpm, or where it cannot read its database."""
    try:
        done = runner.run(ALL, timeout_seconds=_TIMEOUT_SECONDS)
    except CommandError:
        return None
    return None if done.rc else parse_rpm_packages(done.stdout)
