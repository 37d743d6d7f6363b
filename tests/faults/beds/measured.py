# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beds of measurements: sweeps and loads that nobody measured. Plans, evidence and gates are the real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.qos_proof import check_traffic
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import check_path_mtu
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from tests.faults.beds.scene import Inject, Scene
from tests.unit.builders.fabric_runs import GBPS, FabricRun
from tests.unit.builders.fabrics import leafspine
from tests.unit.builders.fabrics import rail as rail_fabric
from tests.unit.builders.soaks import SoakRun
from tests.unit.plugins.plugin_utils._pairs.gate.test_qos_proof import SENT, counted, profile
from tests.unit.plugins.plugin_utils._pairs.gate.test_qos_proof import WELL as TRAFFIC
from tests.unit.plugins.plugin_utils._pairs.loads.test_fabric import Run
from tests.unit.plugins.plugin_utils._pairs.loads.test_qos import STILL, counters, measured
from tests.unit.plugins.plugin_utils._pairs.loads.test_qos import judged as judged_load
from tests.unit.plugins.plugin_utils._pairs.plan.test_pair_gpu import measured as from_gpus
from tests.unit.plugins.plugin_utils._pairs.test_path_mtu import fleet, probed

#: What a pair of healthy ports takes, in microseconds.
USEC = 1.5
#: Slices of a soak.
SLICES = 15
#: The checks of the pairs stage that a bed of pairs shows; the others have beds of their own.
PAIRS = ("pair.bandwidth", "pair.latency", "pair.errors", "pair.clock", "pair.results")


def _sweep(inject: Inject, earlier: Inject, folder: Path, *, hosts: int) -> list[Finding]:
    """All pairs of hosts on a leaf, measured twice.

    share: host → what its port reaches; pairs: [host, host, share] of pairs; failed: host → kind; usec: host → its latency;
    risen: host → counters that rose under load; forged: host → lines that it adds; no_clock: hosts.
    """
    found: list[Finding] = []
    for number, changes in enumerate((earlier, inject)):
        run = FabricRun(folder / f"R{number}", leafspine(1, 1, hosts), latency_command="ib_write_lat").sweep()
        plan = run.folder.read_json("pairs/plan.json")
        names, rows = plan["hosts"], {host: [] for host in plan["hosts"]}
        for at in planned_meetings(plan):
            ends = [names[at[2]], names[at[3]]]
            rows[ends[1]] += [json.dumps(row) for row in _rows(at, ends, changes)]
        for host, lines in rows.items():
            forged = [json.dumps(each) for each in (changes.get("forged") or {}).get(host, ())]
            run.folder.write(run.folder.host_file("pairs", host, ".jsonl"), "".join(f"{line}\n" for line in (*lines, *forged)))
            risen = (changes.get("risen") or {}).get(host, {})
            quiet = {"seconds": 60.0, "risen": risen, "netdev": None, "priorities": None, "cnps": {}}
            run.folder.write_json(run.folder.host_file("pairs", host, ".counters.json"), {"rail0": quiet})
        for host in changes.get("no_clock") or ():
            failure = {"kind": "clock", "role": "client", "server": "x", "client": host, "rail": "rail0", "clock_source": "hpet"}
            run.folder.write(run.folder.host_file("pairs", host, ".failures.jsonl"), json.dumps(failure) + "\n")
        found = [each for check in PAIRS for each in run.judged(check)]
    return found


def _rows(at: Any, ends: list[str], changes: Inject) -> list[list[Any]]:
    """The results of one pair: bandwidth and latency."""
    if ends[1] in (changes.get("no_clock") or ()):
        lost = [None, 9.0, 0.1, "clock", "Correlation coefficient r^2: 0.1 < 0.9"]
        return [[*at, 0, 0, *lost], [*at, 1, 0, *lost]]
    kind = next((kind for host, kind in (changes.get("failed") or {}).items() if host in ends), None)
    if kind is not None:
        return [[*at, 0, 0, None, 9.0, 0.1, kind, "Failed status 12"]]
    shares = [share for host, share in (changes.get("share") or {}).items() if host in ends]
    shares += [share for one, other, share in changes.get("pairs") or () if {one, other} == {*ends}]
    usec = [value for host, value in (changes.get("usec") or {}).items() if host in ends]
    return [[*at, 0, 0, GBPS * min(shares, default=1.0), 9.0, 0.1], [*at, 1, 0, max(usec, default=USEC), 1.2, 0.1]]


def _gpu(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """Pairs measured from the memory of GPUs. share: host → what it reaches from there, null: it registers no memory."""
    return from_gpus(folder, **(inject.get("share") or {})).judged("pair.gpu")


def _isolation(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """Two hosts in each of two partitions. through: [column, server] of attempts that succeed."""
    red, blue = (0x7FFF, 0x8001), (0x7FFF, 0x8002)
    tables = {"node1": red, "node2": red, "node3": blue, "node4": blue}
    run = FabricRun(folder / "R1", leafspine(1, 1, 4), tables=tables).sweep()
    run.part()
    plan = run.folder.read_json("pairs/isolation/plan.json")
    servers = {plan["hosts"][at[2]]: plan["rails"][at[0]]["name"] for at in planned_meetings(plan)}
    through = [(servers[host], host) for host in inject.get("through", ())]
    run.tried(through, **({"kind": inject["kind"]} if "kind" in inject else {}))
    return run.judged("pair.isolation")


def _soak(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """A soak of five hosts. dropped: host → packets that it loses in every third slice; cleared: [host, slice] of cleared counters."""

    def counted(number: int, host: str, partner: str) -> Mapping[str, Any]:
        lost = [(inject.get("dropped") or {}).get(end, 0) for end in (host, partner)]
        risen = {"out_of_sequence" if lost[0] else "packet_seq_err": max(lost)} if any(lost) and number % 3 == 0 else {}
        cleared = [host, number] in (inject.get("cleared") or ())
        return {"risen": {} if cleared else risen, "uncounted": ["out_of_sequence"] if cleared else []}

    run = SoakRun(folder, hosts=5)
    run.begin()
    run.slices(SLICES, counted)
    run.result()
    return run.findings()


def _cross(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """Pairs across two rails. share: what they reach; null: nothing."""
    run = FabricRun(folder / "R1", rail_fabric(4, 2), schedule="full+cross").sweep()
    run.across()
    share = inject.get("share", 1.0)
    run.cross_measured(lambda _one, _other: share)
    return run.judged("pair.cross")


def _spines(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """All pairs across the spines at once. spread: what the fabric carries of what its uplinks could."""
    run = FabricRun(folder / "R1", leafspine()).sweep()
    run.plan()
    run.load(inject.get("spread", 1.0))
    return run.judged()


def _path_mtu(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """Large packets from each host to each other. lost: [from, to, the largest size that passes]."""
    lost = {(one, other): size for one, other, size in inject.get("lost", ())}
    return [each.finding for each in check_path_mtu(probed(folder, 4, lost), fleet(4))]


def _under_load(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """The graph before and after a load. shares: [leaf, spine, of what its uplink could carry]; cut, slow: an end of a cable."""
    run = Run(folder)
    run.load({(leaf, spine): share for leaf, spine, share in inject.get("shares", ())})
    if "cut" in inject:
        run.after.cut(tuple(inject["cut"]))  # type: ignore[arg-type]
    if "slow" in inject:
        run.after.slow(tuple(inject["slow"]), width=1)  # type: ignore[arg-type]
    return run.judged()


def _priorities(inject: Inject, _earlier: Inject, _folder: Path) -> list[Finding]:
    """What a port counted by priority while it was measured. priorities: "p0" → its counters."""
    of_rail = counted(**{"p3": TRAFFIC, **(inject.get("priorities") or {})})
    return list(check_traffic("node1", ["rail0"], profile(), {"rail0": of_rail}, SENT))


def _many_to_one(inject: Inject, _earlier: Inject, _folder: Path) -> list[Finding]:
    """Three hosts send to one. counters: of its priority of RDMA; gbps: what each source reached."""
    reported: Mapping[str, Any] = inject.get("counters", {"tx_pause": 12})
    gbps = inject.get("gbps", [32.0, 33.0, 31.0])
    return [judged_load(counters(node1={**STILL, **reported}), measured(*gbps))]


BEDS = {
    "pairs": Scene(partial(_sweep, hosts=6), ("share", "pairs", "failed", "usec", "risen", "forged", "no_clock")),
    "pairs from GPUs": Scene(_gpu, ("share",)),
    "partitions": Scene(_isolation, ("through", "kind")),
    "soak": Scene(_soak, ("dropped", "cleared")),
    "pairs across rails": Scene(_cross, ("share",)),
    "load across spines": Scene(_spines, ("spread",)),
    "path MTU": Scene(_path_mtu, ("lost",)),
    "graph under load": Scene(_under_load, ("shares", "cut", "slow")),
    "traffic by priority": Scene(_priorities, ("priorities",)),
    "many to one": Scene(_many_to_one, ("counters", "gbps")),
}
