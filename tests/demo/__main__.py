# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: the gates on 32 hosts with eight rails, first healthy, then with three faults, then fixed. docs/demo.md describes it."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.end import CLEAN, RunEnd
from lab import fabric, fabric_faults, fabric_state
from lab.errors import LabError
from lab.fabric import FabricRequest
from lab.fabric_plan import FabricPlan, Shape
from lab.fabric_state import Fabric
from tests.demo.gates import PLANE, Run
from tests.demo.hosts import facts_of
from tests.faults.machines import keep_record, said_of
from tests.unit.builders.inventories import load

INVENTORY = "demo"
#: The faults: two cables of the simulated fabric are swapped, a NIC in the recorded facts has half of its PCIe lanes, a port is slow in the
#: simulated sweep.
CABLES = ("node17 mlx5_3", "node17 mlx5_4")
NARROW_HOST, NARROW_RAIL, NARROW_WIDTH = "node9", 5, 8
SLOW_HOST, SLOW_RAIL, SLOW_SHARE = "node23", "rail6", 0.6
#: The name of the first one in tests/faults/machines.yml, and its check.
RECORDED, CABLING = "demo-swapped-cables", "fabric.cabling"
#: Stage, host and check of the errors that the gates must report, and of no others.
FAULTS = {("preflight", "node9", "pcie.path"), ("fabric", "node17", CABLING), ("pairs", "node23", "pair.bandwidth")}
INTRODUCTION = """\
rdma.cluster in a minute. Nothing here was measured on hardware:
  real       the gates of the collection; opensm, ibnetdiscover, iblinkinfo, ibqueryerrors, sminfo
  recorded   the facts of the hosts: read on one lab machine and given to 32 hosts, with stand-ins for their HCAs
  simulated  the switches, cables and counters (ibsim), and the bandwidth of each pair of hosts
"""
REPORT = ("summary.txt", "findings.jsonl", "metrics.prom", f"fabric/{PLANE}.svg")
#: Characters of a line, and the indentation of what is folded: that of the summary's labels.
WIDTH, INDENTATION = 118, 14


class UnexpectedError(Exception):
    """The gates reported something else than what was broken."""


def say(text: str) -> None:
    """Print the lines of a text, long ones folded."""
    for line in text.split("\n"):
        print(textwrap.fill(line, WIDTH, subsequent_indent=" " * INDENTATION, break_long_words=False, break_on_hyphens=False), flush=True)


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Keep back what the lab prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        yield printed


@contextlib.contextmanager
def simulated_fabric(shape: Shape, out: Path) -> Iterator[Fabric]:
    """A fabric that is up until the context ends. Its planned cabling is copied to the folder `out`."""
    name = f"d{os.getpid()}"
    with quiet():
        # The subnet manager runs at a switch, as in the intent.
        fabric.up(name, shape, FabricRequest(node="spine1"))
    try:
        up = fabric_state.load(name)
        shutil.copy(up.folder.cabling, out)
        yield up
    finally:
        with quiet():
            fabric.down(name)


def plan_words(plan: FabricPlan) -> str:
    """The planned fabric in one line."""
    tiers = [switch.tier for switch in plan.switches]
    switches = ", ".join(f"{tiers.count(tier)} {tier} switches" for tier in dict.fromkeys(tiers))
    cables = len(list(plan.cables()))
    return f"  {plan.shape.hosts} hosts with {plan.shape.rails} rails each: {len(plan.hcas)} HCAs, {switches}, {cables} cables"


def narrowed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a host one of whose NICs has negotiated fewer PCIe lanes than it can."""
    changed = copy.deepcopy(dict(facts))
    pci = changed["devices"][f"mlx5_{NARROW_RAIL}"]["pci"]
    pci.update(width=NARROW_WIDTH, narrowest={**pci["narrowest"], "width": NARROW_WIDTH})
    return changed


def swap_cables(up: Fabric) -> str:
    """Exchange the two cables on the simulated fabric; what the lab says of it. Twice is as before."""
    with quiet() as printed:
        fabric_faults.swap(up.folder.path.name, *CABLES)
    return printed.getvalue().strip()


def expect(end: RunEnd, faults: set[tuple[str, str, str]]) -> None:
    """Raise UnexpectedError unless the errors of a run, without those that follow from another, are exactly these: stage, host, check."""
    found = {(each.stage, each.host, each.check) for each in stopping(end.findings) if each.caused_by is None}
    if found != faults:
        raise UnexpectedError(f"expected the errors {_listed(faults)}; the gates reported {_listed(found)}")


def _listed(faults: set[tuple[str, str, str]]) -> str:
    return "; ".join(f"{check} on {host} ({stage} stage)" for stage, host, check in sorted(faults)) or "none"


def show_report(out: Path) -> None:
    """The whole demo. out: an empty folder for the evidence. Raises UnexpectedError, and LabError where a program is missing."""
    begun = time.monotonic()
    say(INTRODUCTION)
    intents = load(INVENTORY)
    rails = len(next(iter(intents.values()))["rails"])
    with simulated_fabric(Shape("rail", len(intents), rails), out) as up:
        say(f"1. The plan: inventories/{INVENTORY}/hosts.yml\n{plan_words(up.plan)}\n")
        facts = {host: facts_of(host, intent, up.plan) for host, intent in intents.items()}

        say("2. The gates on the healthy cluster")
        first = Run(out, 1, intents, facts, up)
        expect(first.judge(say), set())
        say(f"  {first.measured} pairs were measured (simulated), and every port is proven.\n")

        broken = {**facts, NARROW_HOST: narrowed(facts[NARROW_HOST])}
        say(
            "3. Three faults\n"
            f"  cables (simulated): {swap_cables(up)}\n"
            f"  a host (recorded facts, changed): the NIC of rail {NARROW_RAIL} in {NARROW_HOST} has {NARROW_WIDTH} PCIe lanes, not 16\n"
            f"  a port (simulated): {SLOW_RAIL} of {SLOW_HOST} reaches {SLOW_SHARE * 100:.0f} % of its bandwidth"
        )
        second = Run(out, 2, intents, broken, up, slow={(SLOW_HOST, SLOW_RAIL): SLOW_SHARE})
        swapped = time.monotonic()
        end = second.judge(say, measure="true")
        expect(end, FAULTS)
        said = [said_of(asdict(each)) for each in end.findings if each.check == CABLING and each.status == ERROR]
        keep_record(RECORDED, "demo", "passed", time.monotonic() - swapped, said)

        say(f"\n4. The faults are fixed\n  {swap_cables(up)}")
        third, fourth = (Run(out, number, intents, facts, up) for number in (3, 4))
        expect(third.judge(say), set())
        again = fourth.judge(lambda _block: None)
        expect(again, set())
        if not 0 < third.measured < first.measured or fourth.measured or again.outcome != CLEAN:
            counts = f"{first.measured}, {third.measured} and {fourth.measured} pairs"
            raise UnexpectedError(f"expected to measure all pairs, those of one port, and none; measured {counts}")
        say(
            f"  Only {SLOW_HOST} was measured again: {third.measured} pairs (simulated). The proofs of the other ports are valid.\n"
            "  A second run measured nothing, and all gates passed.\n"
        )
    seconds = time.monotonic() - begun
    say(f"5. The report of the run with the three faults ({', '.join(REPORT)})\n  {second.folder.path}\n")
    say(f"The gates reported these three faults and no others, in {seconds:.0f} s. Next: `make lab` builds four machines.")


def interrupted(number: int, _frame: FrameType | None) -> None:
    """Let the fabric be removed."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(out: Path) -> int:
    """Exit status: 0 if each stage reported what it must, 1 with one sentence, 130 if it was interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        show_report(out)
    except (LabError, UnexpectedError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; the fabric is removed.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
