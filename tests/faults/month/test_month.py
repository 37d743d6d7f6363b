# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The month of docs/faults_month.md: its first days are simulated again, and what counts its alarms can fail."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET
from tests.faults.fault import Fault, faults
from tests.faults.month import page
from tests.faults.month.cluster import CLUSTERS, DAYS, RUN_EVERY_HOURS, Cluster, Run
from tests.faults.month.count import FALSE, LATE, TRUE, Count, month
from tests.faults.month.machine import Event
from tests.faults.score import is_bad

OUTDATED = "run `make month`"
#: The days that a test simulates again.
AGAIN_DAYS = 2


@cache
def written() -> str:
    return page.PAGE.read_text(encoding="utf-8")


def fault(name: str) -> Fault:
    return next(each for each in faults() if each.id == name)


def finding(check: str, host: str, status: str = ERROR) -> Finding:
    return Finding("host", check, host, "rail 0", status, "seen", "expected", "1. Repair it.")


def fresh() -> Count:
    """The count of a cluster in which nothing happens by itself."""
    cluster = Cluster("dcb")
    cluster._calendar.clear()
    return Count(cluster)


def happened(count: Count, name: str, host: str, begins: float) -> Event:
    event = Event(replace(fault(name), expect=tuple(replace(each, host=host) for each in fault(name).expect)), host, begins)
    count.cluster.events.append(event)
    count.cluster.machines[host].events.append(event)
    return event


@pytest.mark.parametrize("kind", CLUSTERS)
def test_the_first_days_are_as_the_page_says(kind: str) -> None:
    hours = 24.0 * AGAIN_DAYS
    again = month(kind, hours=hours).cluster.events
    known = page.rows(written(), kind)
    assert [page.event_row(kind, each) for each in again if each.ends is not None and each.ends <= hours] == [
        row for row in known if (match := page.ROW.match(row)) and match["ended"] != "-" and float(match["ended"].split(",")[0]) <= hours
    ], OUTDATED
    assert sorted(each.fault.id for each in again) == sorted(
        match["fault"] for row in known if (match := page.ROW.match(row)) and float(match["hours"]) <= hours
    ), OUTDATED


def test_the_tables_of_the_page_are_those_of_its_rows() -> None:
    assert page.score({kind: page.rows(written(), kind) for kind in CLUSTERS}) in written(), OUTDATED
    assert len([*page.ALARMS.finditer(written())]) == len(CLUSTERS)
    assert f"every {RUN_EVERY_HOURS} hours, {DAYS} days long" in written()


def test_no_fault_is_missed_and_each_false_alarm_has_its_reason() -> None:
    false = [line for line in written().splitlines() if re.match(r"\* \w+, hour ", line)]
    assert sum(int(match["false"]) for match in page.ALARMS.finditer(written())) == len(false)
    assert page.unexplained(false) == []
    assert {check for check in page.SHORTFALLS if any(f": {check} " in each for each in false)} == {*page.SHORTFALLS}, (
        "remove the shortfall"
    )
    assert all(why in written() for why in page.SHORTFALLS.values())
    found = [match["verdict"] for match in page.ROW.finditer(written())]
    assert page.MISSED not in found
    assert found.count(page.FIRST) > 50


def test_a_finding_that_nothing_explains_is_a_false_alarm() -> None:
    count = fresh()
    happened(count, "ptp-in-another-domain", "node1", 1.0)
    count.add(Run(12.0, (finding("host.ptp", "node2"),), frozenset({"node1", "node2"})))
    assert (count.alarms[FALSE], count.alarms[TRUE]) == (1, 0)
    assert "host.ptp error on node2" in count.false[0]


def test_an_alarm_of_the_first_run_is_true_and_begins_the_repair() -> None:
    count = fresh()
    event = happened(count, "ptp-in-another-domain", "node1", 1.0)
    count.add(Run(12.0, (finding("host.ptp", "node1"),), frozenset({"node1", "node2"})))
    count.add(Run(24.0, (finding("host.ptp", "node1"),), frozenset({"node1", "node2"})))
    assert (count.alarms[TRUE], count.alarms[FALSE]) == (1, 0)
    assert event.ends is not None
    assert page.verdict(event) == page.FIRST


def test_an_alarm_of_the_second_run_is_late() -> None:
    count = fresh()
    event = happened(count, "ptp-in-another-domain", "node1", 1.0)
    count.add(Run(12.0, (), frozenset({"node1", "node2"})))
    assert page.verdict(event) == page.MISSED
    count.add(Run(24.0, (finding("host.ptp", "node1"),), frozenset({"node1", "node2"})))
    assert (count.alarms[LATE], page.verdict(event)) == (1, page.NAMED_LATE)


def test_an_alarm_after_the_repair_is_false() -> None:
    count = fresh()
    event = happened(count, "ptp-in-another-domain", "node1", 1.0)
    event.ends = 11.0
    count.add(Run(12.0, (finding("host.ptp", "node1"),), frozenset({"node1", "node2"})))
    assert count.alarms[FALSE] == 1
    assert page.verdict(event) == page.UNSEEN


def test_a_short_outage_is_seen_by_its_counter_and_a_reboot_clears_it() -> None:
    cluster = Cluster("roce")
    cluster._calendar.clear()
    machine = cluster.machines["node2"]
    cluster.run(12.0)
    machine.arrive(Event(fault("cable-out-ethernet"), "node2", 13.0, 13.5, short=True))
    found = [each for each in cluster.run(24.0).findings if is_bad(each)]
    assert [(each.check, each.host, each.status) for each in found] == [("link.flaps", "node2", WARNING)]
    machine.arrive(Event(fault("cable-out-ethernet"), "node2", 25.0, 25.5, short=True))
    machine.reboot(26.0, 0.2)
    assert not cluster.run(36.0).findings


def test_a_tie_of_the_fleet_names_the_faults_of_its_hosts_and_accuses_no_other() -> None:
    count = fresh()
    event = happened(count, "other-distribution-on-one-host", "node1", 1.0)
    tie = replace(finding("alike.os", FLEET, WARNING), subject="distribution")
    count.add(Run(12.0, (tie,), frozenset({"node1", "node2"})))
    assert (count.alarms[TRUE], count.alarms[FALSE], page.verdict(event)) == (1, 0, page.FIRST)
    # Without such a fault on any host it is a false alarm like others.
    count.add(Run(24.0, (replace(tie, check="alike.kernel"),), frozenset({"node1", "node2"})))
    assert count.alarms[FALSE] == 1
    assert "alike.kernel warning on the fleet" in count.false[0]


def test_a_plane_whose_manager_is_on_a_host_that_is_off_has_none() -> None:
    cluster = Cluster("infiniband")
    cluster._calendar.clear()
    machine = cluster.machines["node1"]
    cluster._down(machine, 1.0, 20.0)
    found = [(each.check, each.host) for each in cluster.run(12.0).findings]
    assert ("link.sm", "plane blue") in found
    assert not [host for check, host in found if check == "link.sm" and host != "plane blue"]
