# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the last installation of a driver stack ended on a host, as ofed_install and driver_build have written it down (_build_unit)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: Of the bundle's installer, of DOCA's packages, and of what DKMS has built anew.
STATES = tuple(f"/var/lib/rdma-cluster/{place}/state.json" for place in ("ofed", "builds/doca", "builds/dkms"))


@dataclass(frozen=True)
class LastBuild:
    """An installation that failed: meaning of its exit status, and the lines of its logs that tell why."""

    meaning: str
    lines: list[str]


def parse_state(text: str) -> tuple[float, LastBuild | None]:
    """When it was started, in seconds since 1970, and how it failed: None if it ended well, or runs. Raises ParseError for other text."""
    try:
        state = json.loads(text)
        failure, started = state.get("failure"), float(state.get("started") or 0)
        return started, LastBuild(str(failure["meaning"]), [str(line) for line in failure["lines"]]) if failure is not None else None
    except (ValueError, AttributeError, TypeError, LookupError) as exc:
        raise ParseError(f"not the state of an installation: {text[:200]!r}, expected a JSON object with 'failure'") from exc


def read_last_build(sys: SysRoot) -> LastBuild | None:
    """The failure of the newest of them, None if that did not fail. One that may not be read, or is cut off, does not count."""
    told = [state for path in STATES if (state := _state(sys, path)) is not None]
    return max(told, key=lambda state: state[0])[1] if told else None


def _state(sys: SysRoot, path: str) -> tuple[float, LastBuild | None] | None:
    try:
        return sys.value(path, parse_state)
    except (OSError, ParseError):
        return None
