# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `ofed_info` and `ofed_info -s` of MLNX_OFED and DOCA-OFED print: the version, and the packages that belong to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

_HEAD = re.compile(r"(?P<name>[A-Za-z][A-Za-z_]*(?:-[A-Za-z_]+)*)-(?P<version>[0-9][0-9.]*-[0-9][0-9A-Za-z.~+]*)\s*(?:\([^()]*\)\s*)?:")
_COMPONENT = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*:")
_RULE = re.compile(r"-{3,}")
# The two letters of `dpkg -l`: what is wanted, and the state. Only the state i is installed; h is a held package.
_DPKG = re.compile(r"(?P<want>[uihrp])(?P<state>[ncHUFWti])(?P<error>R?)\s+(?P<name>\S+)(?:\s+(?P<version>\S+).*)?")
_RPM = re.compile(r"[A-Za-z][A-Za-z0-9_.+~-]*")
_ARCHITECTURE = re.compile(r"\.(?:noarch|x86_64|aarch64|ppc64le)$")


@dataclass(frozen=True)
class OfedInfo:
    """name: "MLNX_OFED_LINUX" | "OFED-internal" (DOCA-OFED) | …; version: "24.10-1.1.4.0".

    packages: each installed package with its version, None for a version that is not said (RPM based systems list names
    alone); packages is None where none are listed (`ofed_info -s`).
    """

    name: str
    version: str
    packages: dict[str, str | None] | None


def parse_ofed_info(text: str) -> OfedInfo:
    """Raises ParseError for text of another kind, and for a list that was cut off, quoting the line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    heads = [(number, match) for number, match in enumerate(map(_HEAD.fullmatch, lines)) if match]
    if not heads:
        raise ParseError(f"no line like 'MLNX_OFED_LINUX-24.10-1.1.4.0:' in the output of ofed_info, which ends {lines[-1:]!r:.200}")
    number, head = heads[0]
    return OfedInfo(name=head["name"], version=head["version"], packages=_packages(lines[number + 1 :]))


def _packages(lines: list[str]) -> dict[str, str | None] | None:
    start = next((number for number, line in enumerate(lines) if line.startswith("Installed Packages:")), None)
    listed = [line for line in lines[start + 1 :] if not _RULE.fullmatch(line)] if start is not None else []
    if not listed and (start is not None or any(_COMPONENT.fullmatch(line) for line in lines)):
        raise ParseError(f"no installed packages in the output of ofed_info, which ends {lines[-1][:200]!r}")
    if not listed:
        return None
    return dict(_dpkg(listed) if _DPKG.fullmatch(listed[0]) else _rpm(listed))


def _dpkg(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Lines of `dpkg -l`; what comes after them is no longer of this tool."""
    for line in lines:
        match = _DPKG.fullmatch(line)
        if match is None:
            return
        if match["version"] is None:
            raise ParseError(f"a package without its version in the output of ofed_info: {line[:200]!r}")
        if match["state"] == "i":
            yield match["name"].partition(":")[0], match["version"]


def _rpm(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    """Names of packages, in older versions with version and release: "ibacm-41mlnx1-OFED.4.6.0.4.1.46101.x86_64"."""
    for line in lines:
        if not _RPM.fullmatch(line):
            return
        name, *version = _ARCHITECTURE.sub("", line).rsplit("-", 2)
        if len(version) == 2 and "0" <= version[0][:1] <= "9":
            yield name, "-".join(version)
        else:
            yield line, None
