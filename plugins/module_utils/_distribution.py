# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which distribution a host runs, and which of its RDMA packages are installed. Read, not asked of a package manager."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
DPKG_STATUS = "/var/lib/dpkg/status"
INSTALLED = "install ok installed"
HELD = "hold ok installed"
#: The packages whose presence the driver stage decides by.
PACKAGES = ("ibverbs-utils", "infiniband-diags", "mstflint", "perftest", "rdma-core")


@dataclass(frozen=True)
class Distribution:
    """os-release(5): id "debian", version_id "12", like: the ids it is close to; packages: name → version, None if absent.

    packages is None where the package database is of a kind that is not read here (it is not known what is installed).
    """

    id: str | None
    version_id: str | None
    like: list[str]
    packages: dict[str, str | None] | None


def parse_os_release(text: str) -> dict[str, str]:
    """The variables of os-release(5). Raises ParseError that quotes a line that is no assignment."""
    values = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.strip().partition("=")
        try:
            words = shlex.split(value)
        except ValueError as exc:
            raise ParseError(f"os-release: {exc} in {line!r}") from exc
        if not equals or len(words) > 1:
            raise ParseError(f"os-release: no assignment: {line!r}")
        values[name] = words[0] if words else ""
    return values


def parse_dpkg_status(text: str, names: Sequence[str]) -> dict[str, str | None]:
    """The version of each package that is installed, None for one that is not (deb-control(5), dpkg's status file)."""
    found: dict[str, str | None] = dict.fromkeys(names)
    for match in re.finditer(rf"^Package: ({'|'.join(map(re.escape, names))})$", text, re.MULTILINE):
        stanza = text[match.start() :].split("\n\n", 1)[0]
        fields = dict(re.findall(r"^(Status|Version): (.*)$", stanza, re.MULTILINE))
        if fields.get("Status") in (INSTALLED, HELD):
            found[match[1]] = fields.get("Version")
    return found


def read_distribution(sys: SysRoot) -> Distribution:
    """Read os-release and, on Debian's family, dpkg's status file."""
    text = next((text for path in OS_RELEASE if (text := sys.read(path)) is not None), None)
    release = parse_os_release(text) if text is not None else {}
    status = sys.read(DPKG_STATUS)
    return Distribution(
        id=release.get("ID"),
        version_id=release.get("VERSION_ID"),
        like=release.get("ID_LIKE", "").split(),
        packages=parse_dpkg_status(status, PACKAGES) if status is not None else None,
    )
