# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proofs: good results of a sweep, by host and rail, with their basis; valid while that has not changed.

They are stored beside the runs (proofs/pairs.json in rdma_run_dir). A run with valid proofs puts no load on the fabric.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, address_netdev, resolve
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import DEFAULT_KEY
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import needed_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import tests_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import partition_place

FILE = "../proofs/pairs.json"
SCHEMA = 2
SECONDS_PER_HOUR = 3600.0
#: Keys of a rail that did not exist when proofs began.
LATER_KEYS = ("addresses", "vlan", "bond")
#: The values of the NIC's PCI function that limit a measurement.
PCI_KEYS = ("address", "speed_gtps", "width", "narrowest")

#: The basis of a host's rail: "driver", "firmware", "port", "intent" → a hash.
Basis = Mapping[str, str]
#: Host → rail → its proof.
Proofs = dict[str, dict[str, "Proof"]]


@dataclass(frozen=True)
class Proof:
    """One rail of one host, proven good. measured: seconds since 1970, by the control node's clock. run: the run that measured it.

    partners: their number. medians: test → median with them (Gb/s or µs). ratio: of the expected value. endpoint: where it was reached, so
    that a run of other hosts can measure against it. met: the names of the partners if the schedule omits pairs (ring, sample); None after
    a full sweep, and for a new port that a full schedule has measured beside proven ones.
    """

    basis: Basis
    measured: float
    run: str
    partners: int
    medians: Mapping[str, float]
    ratio: float
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    met: Sequence[str] | None = None


@dataclass(frozen=True)
class Standing:
    """changed: why its proof is no longer valid, "" if it is. too_old: only its age makes it invalid."""

    proof: Proof | None
    changed: str = ""
    too_old: bool = False

    @property
    def valid(self) -> bool:
        return self.proof is not None and not self.changed and not self.too_old

    @property
    def words(self) -> str:
        """Why the proof is not valid."""
        return self.changed or "its proof is older than rdma_proof_max_age_hours"


def bases(intent: Intent, facts: Facts) -> dict[str, Basis]:
    """Return rail → the basis of its measurements on this host. intent: normalized. facts: of comparable()."""
    loaded = facts.stack.modules if facts.stack else {}
    modules = {name: (loaded[name].version, loaded[name].srcversion) for name in needed_modules(intent, facts) if name in loaded}
    driver = _hash([facts.stack.kernel if facts.stack else None, modules])
    tests = [{key: value for key, value in test.items() if key != "deadline_seconds"} for test in tests_of(intent)]
    return {rail.name: _basis(rail, facts, driver, tests, _partition(rail, facts, intent)) for rail in resolve(intent["rails"], facts)}


def _partition(rail: ResolvedRail, facts: Facts, intent: Intent) -> list[int | None]:
    """Return the partition in which a port is measured, if it is not the default one."""
    if rail.device is None or rail.port is None:
        return []
    place = partition_place(facts.devices[rail.device].ports[rail.port], intent)
    return [] if place is not None and place.pkey in (None, DEFAULT_KEY) else [place and place.pkey]


def _basis(rail: ResolvedRail, facts: Facts, driver: str, tests: Sequence[Mapping[str, Any]], partition: Sequence[int | None]) -> Basis:
    device = facts.devices[rail.device] if rail.device else None
    return {
        "driver": driver,
        "firmware": _hash((device.firmware, device.board_id) if device else (None, None)),
        "port": _hash([*_port(rail, facts), *partition]),
        # Keys that came later do not count where they are absent: the proofs of rails without them stay valid.
        "intent": _hash([{key: value for key, value in rail.rail.items() if value or key not in LATER_KEYS}, tests]),
    }


def _port(rail: ResolvedRail, facts: Facts) -> list[Any]:
    device = facts.devices[rail.device] if rail.device else None
    port = device.ports[rail.port] if device and rail.port else None
    netdev = facts.netdevs[rail.netdev] if rail.netdev else None
    pci = asdict(device.pci) if device and device.pci else {}
    mrrs_bytes = pci.get("mrrs_bytes") if device and device.function == "pf" else None
    numa_node = device.numa_node if device else None
    if numa_node is None and netdev:
        numa_node = netdev.numa_node
    carries = address_netdev(rail, facts)
    mtus = [carries.mtu_bytes if carries else None, port.active_mtu_bytes if port else None]
    link = [port.link_layer, port.rate_gbps, port.width] if port else [None, None, None]
    return [device.node_guid if device else None, {key: pci.get(key) for key in PCI_KEYS}, *link, *mtus, numa_node, mrrs_bytes]


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def standing(proof: Proof | None, basis: Basis, now: float, max_age_hours: float, required: Collection[str] = ()) -> Standing:
    """Compare a proof with the current endpoint. now: seconds since 1970. required: the partners required by the schedule."""
    if proof is None:
        return Standing(None, "never measured, or not proven good")
    differ = [part for part in basis if basis[part] != proof.basis.get(part)]
    if differ:
        return Standing(proof, f"changed since it was measured: {', '.join(differ)}")
    unmet = [] if proof.met is None else [host for host in required if host not in set(proof.met)]
    if unmet:
        return Standing(proof, f"never measured with {some(unmet)}, as `rdma_pairs.schedule: full` requires")
    return Standing(proof, too_old=not is_young(proof, now, max_age_hours))


def is_young(proof: Proof, now: float, max_age_hours: float) -> bool:
    """Return whether a proof is not too old."""
    return 0 <= (now - proof.measured) / SECONDS_PER_HOUR <= max_age_hours


def read(data: Mapping[str, Any] | None) -> Proofs:
    """Return the proofs of FILE. Those of another schema and damaged ones do not count: their rails are measured again."""
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA or not isinstance(data.get("endpoints"), Mapping):
        return {}
    found: Proofs = {}
    for host, rails in data["endpoints"].items():
        whole = {rail: proof for rail, each in (rails.items() if isinstance(rails, Mapping) else ()) if (proof := _proof(each))}
        if whole:
            found[str(host)] = whole
    return found


def _proof(data: Any) -> Proof | None:
    """Return one record of FILE; None if write could not have made it."""
    if not isinstance(data, Mapping) or {*data, "endpoint"} != {each.name for each in fields(Proof)}:
        return None
    proof = Proof(**data)
    numbers = [proof.measured, proof.ratio, *(proof.medians.values() if isinstance(proof.medians, Mapping) else ["damaged"])]
    sound = (
        all(isinstance(number, (int, float)) and not isinstance(number, bool) and _is_finite(number) for number in numbers)
        and isinstance(proof.basis, Mapping)
        and all(isinstance(each, str) for each in proof.basis.values())
        and isinstance(proof.run, str)
        and isinstance(proof.partners, int)
        and isinstance(proof.endpoint, Mapping)
        and (proof.met is None or (isinstance(proof.met, list) and all(isinstance(each, str) for each in proof.met)))
        and (not proof.endpoint or _is_address(proof.endpoint.get("address")))
        and _is_address(proof.endpoint.get("gid_address", "::"))
    )
    return proof if sound else None


def _is_finite(number: float) -> bool:
    """Return whether a float can have the value; an integer in a damaged file may be too large."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and ipaddress.ip_address(value) is not None
    except ValueError:
        return False


def write(proofs: Proofs) -> dict[str, Any]:
    """Return the content of FILE."""
    return {"schema": SCHEMA, "endpoints": {host: {rail: asdict(proof) for rail, proof in of.items()} for host, of in proofs.items()}}


def renewed(proofs: Proofs, attempted: Mapping[str, set[str]], good: Proofs) -> Proofs:
    """Return the records after a sweep: its good results are proven, its other subjects (host → rails) no longer are."""
    kept = {host: {rail: proof for rail, proof in of.items() if rail not in attempted.get(host, set())} for host, of in proofs.items()}
    for host, of in good.items():
        kept.setdefault(host, {}).update(of)
    return {host: of for host, of in kept.items() if of}


#: (host, rail)
Port = tuple[str, str]


@dataclass(frozen=True)
class Doubt:
    """A finding, and the ports under load that it affects. below: ports on the named elements. around: all ports that could be affected."""

    finding: Finding
    below: frozenset[Port] = frozenset()
    around: frozenset[Port] = frozenset()

    def ports(self, tried: Set[Port]) -> frozenset[Port]:
        """Return those of the measured ports (tried) that must be measured again: below the named elements, if there are any."""
        return (self.below & tried) or (self.around & tried)


def in_doubt(doubts: Iterable[Doubt], tried: Set[Port]) -> frozenset[Port]:
    """Return the ports that these doubts affect together. tried: the ports measured by this run; others were not under its load."""
    return frozenset[Port]().union(*(each.ports(tried) for each in doubts))
