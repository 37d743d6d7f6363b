# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The name and the secret of a sweep that has begun and is not collected, so that a later run can resume it.

They are in the user's own folder (ANSIBLE_HOME), readable only by the user: the run folder has no secrets.
"""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from ansible import constants

#: For this long after the maximum duration of a sweep, its results count as current. Later, the sweep is started again.
KEPT_SECONDS = 3600.0
#: The time after which an uncollected sweep is forgotten.
FORGOTTEN_SECONDS = 30 * 24 * 3600.0


@dataclass(frozen=True)
class Begun:
    """sweep: its name. token: authenticates its runners to each other. seed: of a sample. at: seconds since 1970."""

    sweep: str
    token: str
    seed: int
    at: float


def _file(fingerprint: str) -> Path:
    home = Path(constants.config.get_config_value("ANSIBLE_HOME")).expanduser()  # type: ignore[no-untyped-call]
    return home / "rdma.cluster" / "sweeps" / f"{fingerprint}.json"


def begun(fingerprint: str, sweep: str, now: float, runtime_max_seconds: float) -> Begun:
    """Return the uncollected sweep of this plan, or a new one of this name. fingerprint: of the plan."""
    file = _file(fingerprint)
    earlier = _read(file)
    if earlier is not None and 0 <= now - earlier.at <= runtime_max_seconds + KEPT_SECONDS:
        return earlier
    new = Begun(sweep, secrets.token_hex(32), secrets.randbelow(2**32), now)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in file.parent.glob("*.json"):
        if now - old.stat().st_mtime > FORGOTTEN_SECONDS:
            old.unlink(missing_ok=True)
    number, part = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    with open(number, "w", encoding="utf-8") as stream:
        json.dump(asdict(new), stream)
    Path(part).replace(file)
    return new


def _read(file: Path) -> Begun | None:
    """Return None if there is none, another version has written it, or it is damaged."""
    try:
        found = Begun(**json.loads(file.read_text(encoding="utf-8")))
        return found if isinstance(found.at, (int, float)) and isinstance(found.sweep, str) and isinstance(found.token, str) else None
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        return None


def collected(fingerprint: str) -> None:
    """Forget a collected sweep."""
    if re.fullmatch(r"[0-9a-f]{64}", fingerprint):
        _file(fingerprint).unlink(missing_ok=True)
