# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host stage derives from the intent, and whether a host differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _limits
from ansible_collections.rdma.cluster.plugins.module_utils._files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._sysctl import path_of, spelling, sysctl_files

#: For several addresses in reach of each other: each rail answers and asks for its own address only, and takes what comes to it
#: although the way back may be another rail's. The kernel takes the larger of "all" and the interface's own value.
MULTI_RAIL = {
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.conf.all.rp_filter": "2",
}


def sysctl_settings(intent: Mapping[str, Any]) -> dict[str, str]:
    """The kernel settings of a host, key → value: what its rails need, and what rdma_host.sysctl says, which wins.

    A key is spelled one way whatever the intent's is, so that two spellings cannot both be there.
    Raises ParseError for a key that is none.
    """
    addressed = [rail for rail in intent["rails"] if rail["link_layer"] == "roce" and rail["address"]]
    needed = MULTI_RAIL if len(addressed) > 1 or intent["fabric"]["shared_subnet"] else {}
    wished = {spelling(path_of(key)): " ".join(str(value).split()) for key, value in intent["host"]["sysctl"].items()}
    return {**needed, **wished}


def sysctl_differs(intent: Mapping[str, Any], facts: Mapping[str, Any] | None) -> bool:
    """True unless the facts prove that our file, the live values and those after a boot are all as wished."""
    settings = sysctl_settings(intent)
    if facts is None or files_differ(sysctl_files(settings), facts):
        return True
    seen = facts.get("sysctl") or {}
    live, boot = seen.get("live") or {}, seen.get("boot") or {}
    return any(live.get(key) != value or (boot.get(key) or {}).get("value") != value for key, value in settings.items())


def memlock_differs(intent: Mapping[str, Any], facts: Mapping[str, Any] | None) -> bool:
    """True unless the facts prove that the files are as wished, and the limit of services too if it shall be none."""
    unlimited = intent["host"]["memlock_unlimited"]
    if facts is None or files_differ(_limits.files(unlimited=unlimited), facts):
        return True
    seen = (facts.get("limits") or {}).get("service_memlock") or {}
    return bool(unlimited and not seen.get("unlimited"))
