# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of faults: catalogue/*.yml, one file for each subject, read into typed values.

A fault:

    - id: rail-down                          # unique
      breaks: The cable of rail 0 is out.    # in an admin's words
      bed: roce                              # where it is injected: a name of beds.BEDS
      host: node1                            # the host, or a list of hosts
      inject: {write: {/sys/…/state: "1: DOWN"}}
      expect: [link.state error]             # CHECK STATUS [HOST [SUBJECT]]; SUBJECT is a pattern, HOST the host of the fault by default
      may: [link.rate]                       # checks that may follow from it, on the same host; `CHECK HOST` for another one
      repair: Plug the cable.
      after: [fabric.change]                 # checks that truly report the repair in the run after it
      near:                                  # values which must not fire, and the checks that must stay as they were
        - {what: …, inject: …, ok: [link.state]}

Checks without a fault are listed with their reason in catalogue/no_fault.yml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import STATUSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES, all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET, PLANE

CATALOGUE = Path(__file__).parent / "catalogue"
NO_FAULT = CATALOGUE / "no_fault.yml"
#: What the catalogue calls the groups that a finding may be about instead of a host.
GROUPS = {"fleet": FLEET, "plane:blue": f"{PLANE}blue"}
#: The rungs of reality, from a value in facts to hardware.
RUNGS = {
    "facts tree": "a file, link or answer of a host is changed in a whole tree of `/sys`, `/proc` and `/etc`; the real readers read it",
    "raw output": "the text that a command prints is changed; the real parser reads it",
    "inventory": "a variable of the inventory is changed",
    "facts": "a value is changed in the facts that a host returns",
    "graph": "a link, node or counter is changed in the graph of a generated fabric",
    "simulated results": "the results are generated and changed; no network was measured",
}
KEYS = {"id", "breaks", "bed", "host", "inject", "expect", "may", "repair", "near", "rung", "shortfall", "after"}


@dataclass(frozen=True)
class Expected:
    """A finding that a fault must cause. subject: a pattern."""

    check: str
    status: str
    host: str
    subject: str = "*"

    def __str__(self) -> str:
        return f"{self.check} {self.status} on {self.host}" + ("" if self.subject == "*" else f", {self.subject}")


#: Checks that no stage runs, by the first part of their names: the name of the playbook.
OWN_PLAYBOOKS = ("soak",)


@dataclass(frozen=True)
class NearMiss:
    """What is close to a fault and none. ok: checks that must report the same as without it; may: those that may report it."""

    what: str
    inject: Mapping[str, Any]
    ok: tuple[str, ...]
    may: tuple[str, ...] = ()
    bed: str = ""
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """One fault. subject: the name of its file; shortfall: why the product does not name it right, "" if it does;
    after: (check, host) of what the first run after the repair truly reports, such as a new link."""

    id: str
    subject: str
    breaks: str
    bed: str
    on: tuple[str, ...]
    inject: Mapping[str, Any]
    expect: tuple[Expected, ...]
    repair: str
    rung: str
    may: tuple[tuple[str, str], ...] = ()
    near: tuple[NearMiss, ...] = field(default=())
    shortfall: str = ""
    after: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        """The cheapest command that shows it: the playbook of the first stage that reports it."""
        own = [name for each in self.expect if (name := each.check.partition(".")[0]) in OWN_PLAYBOOKS]
        stage = min((_stage(each.check) for each in self.expect), key=STAGES.index)
        return f"ansible-playbook rdma.cluster.{own[0] if own else stage}"


def _stage(check: str) -> str:
    stage = all_checks()[check].stage.split(", ")[0]
    return STAGES[0] if stage == "every" else stage


@cache
def faults() -> tuple[Fault, ...]:
    """Every fault, by the name of its file. Raises ValueError for one that is not valid."""
    found = tuple(_fault(path.stem, each) for path in _files() for each in yaml.safe_load(path.read_text(encoding="utf-8")))
    ids = [each.id for each in found]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"declared twice: {', '.join(twice)}")
    return found


def _files() -> Iterator[Path]:
    yield from (path for path in sorted(CATALOGUE.glob("*.yml")) if path != NO_FAULT)


def exceptions(kind: str) -> dict[str, str]:
    """Check → the reason. kind: "no_fault", "only_unknown" or "no_near_miss"."""
    return dict(yaml.safe_load(NO_FAULT.read_text(encoding="utf-8"))[kind] or {})


def _fault(subject: str, given: Mapping[str, Any]) -> Fault:
    name = given.get("id", "?")
    if unknown := sorted(given.keys() - KEYS):
        raise ValueError(f"{subject}, {name}: unknown keys {', '.join(unknown)}")
    on = _words(given.get("host", "node1"))
    rung = given.get("rung") or _rung(given["inject"])
    if rung not in RUNGS:
        raise ValueError(f"{subject}, {name}: rung is one of {', '.join(RUNGS)}")
    expect = tuple(_expected(name, text, on) for text in given["expect"])
    may, after = (
        tuple((check, GROUPS.get(host, host) or on[0]) for check, _space, host in (each.partition(" ") for each in given.get(key, ())))
        for key in ("may", "after")
    )
    near = tuple(_near(each, expect) for each in given.get("near", ()))
    for check in (*(each.check for each in expect), *(check for check, _host in may), *(check for each in near for check in each.ok)):
        if check not in all_checks():
            raise ValueError(f"{subject}, {name}: no check {check}")
    return Fault(
        name, subject, given["breaks"], given["bed"], on, given["inject"], expect, given["repair"], rung, may, near,
        given.get("shortfall", ""), after,
    )  # fmt: skip


def _near(given: Mapping[str, Any], expect: Sequence[Expected]) -> NearMiss:
    ok = tuple(given.get("ok", sorted({each.check for each in expect})))
    return NearMiss(given["what"], given["inject"], ok, tuple(given.get("may", ())), given.get("bed", ""), _words(given.get("host", [])))


def _expected(name: str, text: str, on: Sequence[str]) -> Expected:
    check, status, *more = text.split(" ", 3)
    if status not in STATUSES:
        raise ValueError(f"{name}: {text!r}: {status} is not a status")
    return Expected(check, status, GROUPS.get(more[0], more[0]) if more else on[0], more[1] if len(more) > 1 else "*")


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _rung(inject: Mapping[str, Any]) -> str:
    """The lowest rung of the injectors of a fault."""
    return next((rung for key, rung in _RUNG_OF.items() if key in inject), "facts tree")


_RUNG_OF = {
    "facts": "facts",
    "intent": "inventory",
    "absent": "inventory",
    "fabric": "graph",
    "managers": "raw output",
    "output": "raw output",
    **dict.fromkeys(("cables", "planned", "variables"), "inventory"),
    **dict.fromkeys(("share", "pairs", "failed", "usec", "risen", "forged", "no_clock", "through", "spread", "lost"), "simulated results"),
    **dict.fromkeys(("shares", "cut", "slow", "priorities", "counters", "gbps", "bad_pair", "repeat_slow"), "simulated results"),
    **dict.fromkeys(("perftest_gbps", "job", "exit_status", "ports", "transfer", "sysctls", "dropped", "cleared"), "simulated results"),
}
