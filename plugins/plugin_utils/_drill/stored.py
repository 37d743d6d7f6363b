# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measured outages of the planes, beside the runs (drill/outages.json in rdma_run_dir). The check nccl.outage compares them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, MeasuredOutage
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

FILE = "../drill/outages.json"
SCHEMA = 1


def basis_of(intent: Intent, plane: str) -> str:
    """Return a hash of the settings on which the outages of a plane depend: its routing, with BFD, and its cabling plan's name."""
    settings = intent["fabric"]["planes"].get(plane)
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def store(folder: RunFolder, plane: str, basis: str, outage: tuple[str, float], now: float) -> None:
    """Keep the outage of a fault, (name of the step, seconds). Those of other settings of the plane are dropped. now: since 1970."""
    fault, seconds = outage
    kept = folder.read_if_there(FILE) or {}
    planes = dict(kept["planes"]) if kept.get("schema") == SCHEMA and isinstance(kept.get("planes"), dict) else {}
    before = planes.get(plane) or {}
    faults = dict(before["faults"]) if before.get("basis") == basis else {}
    faults[fault] = {"seconds": seconds, "measured": now, "run": folder.path.name}
    folder.write_json(FILE, {"schema": SCHEMA, "planes": {**planes, plane: {"basis": basis, "faults": faults}}})


def longest(folder: RunFolder, intent: Intent, *, max_age_hours: float, clock: Callable[[], float] = time.time) -> MeasuredOutage | None:
    """Return the longest valid outage of the planes of a host's compute rails; None without one.

    An outage is valid if the plane has the settings under which it was measured, and if it is not too old.
    """
    kept = folder.read_if_there(FILE)
    if not isinstance(kept, Mapping) or kept.get("schema") != SCHEMA:
        return None
    oldest = clock() - max_age_hours * 3600
    try:
        found = [
            (float(each["seconds"]), str(fault), float(each["measured"]))
            for plane in {rail["plane"] for rail in intent["rails"] if rail["role"] == "compute"}
            if (of := _of(kept, plane)).get("basis") == basis_of(intent, plane)
            for fault, each in of["faults"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"{FILE[3:]} beside the runs is not a record of drills ({error!r}). Remove it, then rerun the drill.") from error
    valid = [each for each in found if each[2] >= oldest]
    if not valid:
        return None
    seconds, fault, measured = max(valid)
    return {"seconds": seconds, "fault": fault, "day": time.strftime("%Y-%m-%d", time.gmtime(measured))}


def _of(kept: Mapping[str, Any], plane: str) -> Mapping[str, Any]:
    of: Mapping[str, Any] = kept["planes"].get(plane) or {}
    return of
