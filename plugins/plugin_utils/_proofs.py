# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proofs: measurements that were found good, recorded with what they depend on, and valid while that has not changed.

They lie beside the runs (proofs/pairs.json in rdma_run_dir), so that a run which finds them valid puts no load on the fabric.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import needed_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_checks import PairResult

FILE = "../proofs/pairs.json"
SCHEMA = 1
SECONDS_PER_HOUR = 3600.0
#: Of the NIC's PCI function, what bounds a measurement.
PCI_KEYS = ("address", "speed_gtps", "width", "narrowest")

#: What the measurements of a host depend on: "driver", "firmware", "ports", "intent" → a hash of it.
Basis = Mapping[str, str]


def basis(intent: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, str]:
    """What this host's measurements depend on. intent: normalised; facts: digest."""
    rails = resolve(intent["rails"], facts)
    devices = [facts["devices"].get(rail.device, {}) for rail in rails]
    loaded = facts["stack"]["modules"]
    modules = {name: (loaded[name]["version"], loaded[name]["srcversion"]) for name in needed_modules(intent, facts) if name in loaded}
    return {
        "driver": _hash([facts["stack"]["kernel"], modules]),
        "firmware": _hash([(device.get("firmware"), device.get("board_id")) for device in devices]),
        "ports": _hash([_port(rail, facts) for rail in rails]),
        "intent": _hash([intent["rails"], intent["pairs"]]),
    }


def _port(rail: ResolvedRail, facts: Mapping[str, Any]) -> list[Any]:
    device = facts["devices"].get(rail.device, {})
    port = device.get("ports", {}).get(rail.port, {})
    netdev = facts["netdevs"].get(rail.netdev, {})
    pci = {key: (device.get("pci") or {}).get(key) for key in PCI_KEYS}
    return [device.get("node_guid"), pci, port.get("link_layer"), port.get("rate_gbps"), port.get("width"), netdev.get("mtu_bytes")]


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Standing:
    """What the records say of one pair on one rail: result, None without a record; changed: why it no longer holds, "" if it does;
    too_old: it would hold, but for its age."""

    result: PairResult | None
    changed: str = ""
    too_old: bool = False

    @property
    def valid(self) -> bool:
        return self.result is not None and not self.changed and not self.too_old


def standing(record: Mapping[str, Any] | None, bases: Mapping[str, Basis], now: float, max_age_hours: float) -> Standing:
    """Hold a record against its two hosts as they are now. now: seconds since 1970."""
    if record is None:
        return Standing(None, "never measured")
    result = PairResult(**record["result"])
    then = record["bases"]
    differ = [f"{part} of {host}" for host in then for part in bases[host] if bases[host][part] != then[host].get(part)]
    if differ:
        return Standing(result, f"changed since it was measured: {', '.join(differ)}")
    age_hours = (now - (result.started or 0.0)) / SECONDS_PER_HOUR
    return Standing(result, too_old=not 0 <= age_hours <= max_age_hours)


def key(rail: str, pair: Iterable[str]) -> str:
    """The name of a pair's record, whichever of the two was the client."""
    return " ".join([rail, *sorted(pair)])


def renewed(
    records: Mapping[str, Any], measured: Iterable[PairResult], good: Iterable[PairResult], bases: Mapping[str, Basis], run: str
) -> dict[str, Any]:
    """The records after a sweep: what it measured well is recorded, what it did not is no longer proven."""
    kept = dict(records)
    for result in measured:
        kept.pop(key(result.rail, (result.server, result.client)), None)
    for result in good:
        kept[key(result.rail, (result.server, result.client))] = {
            "result": {**result.to_dict(), "run": run},
            "bases": {host: dict(bases[host]) for host in (result.server, result.client)},
        }
    return kept
