# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the last installation of a driver stack ended on a host, as ofed_install has written it down (_build_unit)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

STATE = "/var/lib/rdma-cluster/ofed/state.json"


@dataclass(frozen=True)
class LastBuild:
    """An installation that failed: meaning of its exit status, and the lines of its logs that tell why."""

    meaning: str
    lines: list[str]


def parse_last_build(text: str) -> LastBuild | None:
    """None for an installation that ended well, runs, or was never begun. Raises ParseError for text of another kind."""
    try:
        failure = json.loads(text).get("failure")
        return LastBuild(str(failure["meaning"]), [str(line) for line in failure["lines"]]) if failure is not None else None
    except (ValueError, AttributeError, TypeError, LookupError) as exc:
        raise ParseError(f"not the state of an installation: {text[:200]!r}, expected a JSON object with 'failure'") from exc


def read_last_build(sys: SysRoot) -> LastBuild | None:
    """None also where the state may not be read, and where a power cut has left half of it."""
    try:
        return sys.value(STATE, parse_last_build)
    except (OSError, ParseError):
        return None
