# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the preflight stage asks of a host before anything is touched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, OK, UNKNOWN, Finding

STAGE = "preflight"
#: os-release's ID → the VERSION_IDs whose packages are known.
SUPPORTED = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
SUPPORTED_WORDS = "Debian 12 or 13, Ubuntu 22.04 or 24.04"
OLDEST_KERNEL = (5, 4)


def check_preflight(host: str, facts: Mapping[str, Any]) -> list[Finding]:
    """Findings `preflight.os` and `preflight.kernel` of one host."""
    return [_os(host, facts["stack"]["distribution"]), _kernel(host, facts["stack"]["kernel"])]


def _os(host: str, distribution: Mapping[str, Any]) -> Finding:
    name, version = distribution["id"], distribution["version_id"]
    if name is None:
        return Finding(
            STAGE,
            "preflight.os",
            host,
            "distribution",
            UNKNOWN,
            "no os-release file",
            SUPPORTED_WORDS,
            f"Look for /etc/os-release on {host}.",
        )
    good = version in SUPPORTED.get(name, ())
    return Finding(
        STAGE, "preflight.os", host, "distribution", OK if good else ERROR, f"{name} {version}", SUPPORTED_WORDS,
        "" if good else f"Take {host} out of the play with --limit, or install a supported distribution on it.",
    )  # fmt: skip


def _kernel(host: str, release: str | None) -> Finding:
    expected = ".".join(map(str, OLDEST_KERNEL)) + " or newer"
    found = re.match(r"(\d+)\.(\d+)", release or "")
    if found is None:
        remedy = f"Look at `uname -r` on {host}."
        return Finding(STAGE, "preflight.kernel", host, "running kernel", UNKNOWN, f"release {release!r}", expected, remedy)
    good = (int(found[1]), int(found[2])) >= OLDEST_KERNEL
    return Finding(
        STAGE, "preflight.kernel", host, "running kernel", OK if good else ERROR, str(release), expected,
        "" if good else f"Boot {host} with a newer kernel of its distribution.",
    )  # fmt: skip
