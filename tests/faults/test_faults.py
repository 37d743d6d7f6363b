# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every gate can fail: each fault of the catalogue is reported as it says, and docs/faults.md shows what is reported.

Each test compares its own part of the page, so that the faults are judged once and side by side.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import CHECK as FACTS
from tests.faults import machines, page
from tests.faults.combinations import Combination, all_combinations
from tests.faults.fault import Fault, exceptions, faults
from tests.faults.machines import MachineFault, machine_faults
from tests.faults.score import BEDS, brief, healthy, is_bad, judge

ROOT = Path(__file__).parents[2]
OUTDATED = "run `make faults`"
#: What the captured fabric truly has: two cables from a leaf to one spine, and one to each other.
TRULY_BAD = {"captured fabric": {"fabric.symmetry"}}
LEAST_FAULTS = 120


@cache
def written() -> str:
    return page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.id)
def test_a_fault_is_reported_and_nobody_else_is_accused(fault: Fault) -> None:
    result = judge(fault)
    if fault.shortfall:
        assert result.problems, "the product names it right now: remove its shortfall"
    else:
        assert result.problems == []
    assert page.section(result) == page.sections(written()).get(fault.id), OUTDATED


REFUSED = [fault for fault in faults() if any(each.check == FACTS for each in fault.expect)]


@pytest.mark.parametrize("fault", REFUSED, ids=lambda fault: fault.id)
def test_the_facts_of_a_host_are_refused_once_in_a_stage(fault: Fault) -> None:
    found = BEDS[fault.bed].judge({host: [fault.inject] for host in fault.on})
    refused = [(each.stage, each.host) for each in found if each.check == FACTS]
    assert refused
    assert refused == [*dict.fromkeys(refused)]


@pytest.mark.parametrize("combination", all_combinations(), ids=lambda combination: combination.name)
def test_a_combination_is_reported_as_the_page_says(combination: Combination) -> None:
    assert page.combination_row(combination) in page.combination_rows(written()), OUTDATED


@pytest.mark.parametrize("bed", BEDS)
def test_nothing_is_reported_where_nothing_is_broken(bed: str) -> None:
    assert [brief(each) for each in healthy(bed) if is_bad(each) and each.check not in TRULY_BAD.get(bed, ())] == []


def test_the_page_is_what_is_generated() -> None:
    texts = page.sections(written())
    assert list(texts) == [fault.id for fault in faults()], OUTDATED
    assert written() == page.render(texts, page.combination_rows(written())), OUTDATED


def test_every_check_has_a_fault_or_a_reason() -> None:
    stopped = {each.check for fault in faults() for each in fault.expect if each.status in (ERROR, WARNING)}
    unknown = {each.check for fault in faults() for each in fault.expect if each.status == UNKNOWN}
    no_fault, only_unknown = exceptions("no_fault"), exceptions("only_unknown")
    assert sorted(all_checks().keys() - stopped) == sorted({**no_fault, **only_unknown})
    assert only_unknown.keys() <= unknown
    assert not stopped & no_fault.keys()
    assert len(faults()) >= LEAST_FAULTS


def test_every_check_has_a_near_miss_or_a_reason() -> None:
    near = {check for fault in faults() for each in fault.near for check in each.ok}
    assert sorted(all_checks().keys() - near) == sorted(exceptions("no_near_miss"))


@pytest.mark.parametrize("fault", machine_faults(), ids=lambda fault: fault.id)
def test_a_fault_of_machines_is_injected_by_its_scenario(fault: MachineFault) -> None:
    text = (ROOT / fault.injected).read_text(encoding="utf-8")
    assert fault.check in all_checks()
    assert fault.check in text or f'fault("{fault.id}")' in text
    assert (f'"{fault.id}"' if fault.injected.startswith("tests/demo/") else f'@pytest.mark.fault("{fault.id}")') in text


def test_the_page_of_machines_is_that_of_the_records() -> None:
    seen = machines.load_seen()
    assert {record["fault"] for record in seen.values()} <= {fault.id for fault in machine_faults()}
    assert machines.PAGE.read_text(encoding="utf-8") == machines.page(seen), "run `python -m tests.faults --lab-page`"
