# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the last installation of a driver stack ended on a host, as ofed_install and driver_build have written it down (_build_unit)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

BUNDLE, DOCA, DKMS = "bundle", "doca", "dkms"
#: Of the bundle's installer, of DOCA's packages, and of what DKMS has built anew, for a kernel.
STATES = {
    f"/var/lib/rdma-cluster/{place}/state.json": source
    for place, source in (("ofed", BUNDLE), ("builds/doca", DOCA), ("builds/dkms", DKMS))
}


@dataclass(frozen=True)
class LastBuild:
    """An installation that failed: meaning of its exit status, the lines of its logs that tell why, and what was run: one of the three."""

    meaning: str
    lines: list[str]
    source: str = BUNDLE


def parse_state(text: str, source: str = BUNDLE) -> tuple[float, LastBuild | None]:
    """When it was started, in seconds since 1970, and how it failed: None if it ended well, or runs. Raises ParseError for other text."""
    try:
        state = json.loads(text)
        failure, started = state.get("failure"), float(state.get("started") or 0)
        if failure is None:
            return started, None
        return started, LastBuild(str(failure["meaning"]), [str(line) for line in failure["lines"]], source)
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError, OverflowError) as exc:
        raise ParseError(f"not the state of an installation: {text[:200]!r}, expected a JSON object with 'failure'") from exc


def read_last_build(sys: SysRoot) -> LastBuild | None:
    """The failure of the newest of them, None if that did not fail. One that may not be read, or is cut off, does not count."""
    told = [state for path, source in STATES.items() if (state := _state(sys, path, source)) is not None]
    return max(told, key=lambda state: state[0])[1] if told else None


def _state(sys: SysRoot, path: str, source: str) -> tuple[float, LastBuild | None] | None:
    try:
        return sys.value(path, lambda text: parse_state(text, source))
    except (OSError, ParseError):
        return None
