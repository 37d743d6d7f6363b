# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One master a plane, the intended one; who stands by, and who should not be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.manager_views import Seen
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import check_managers
from tests.unit.builders.known import known_of


def sm(lid: int, state: str | None, priority: int = 0) -> SmInfo:
    return SmInfo(lid, f"{lid:#x}", state, priority, 1)


MANAGER = {"kind": "hosts", "hosts": ["n1", "n2"]}
SEEN: dict[str, Sequence[SmInfo]] = {"blue": [sm(1, "MASTER", 14), sm(2, "STANDBY", 13)]}


def host(lid: int, sm_lid: int | None, manager: Any, state: str = "ACTIVE") -> dict[str, Any]:
    rail = {"name": "rail0", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband", "plane": "blue"}
    port = {"state": state, "lid": lid, "sm_lid": sm_lid, "netdev": None}
    facts = {"netdevs": {}, "devices": {"mlx5_0": {"pci": {"address": "0000:18:00.0"}, "ports": {"1": port}}}}
    return {"intent": {"rails": [rail], "fabric": {"planes": {"blue": {"subnet_manager": manager}}}}, "facts": facts}


def fleet(*sm_lids: int | None, manager: Any = None) -> dict[str, Any]:
    return {f"n{lid}": host(lid, sm_lid, manager or MANAGER) for lid, sm_lid in enumerate(sm_lids, 1)}


def check(hosts: Any, seen: dict[str, Sequence[SmInfo]] | None = None) -> Any:
    return check_managers(known_of(hosts), {plane: Seen(managers) for plane, managers in (SEEN if seen is None else seen).items()})


def brief(hosts: Any, seen: Any = None) -> list[tuple[str, str, str, str]]:
    """Host, subject, status and what was seen, of what is not ok."""
    found = check(hosts, seen)
    assert set(found) - {"plane blue"} == set(hosts)
    return [(name, each.subject, each.status, each.observed) for name, all_of in found.items() for each in all_of if each.status != OK]


def test_all_have_the_intended_master_and_one_stands_by() -> None:
    hosts = fleet(1, 1, 1, 1)
    assert brief(hosts) == []
    found = check(hosts)
    assert [(each.subject, each.observed) for each in found["n1"]] == [("plane blue", "n1 (LID 1)"), ("plane blue, n2", "STANDBY")]
    assert [(each.subject, each.observed) for each in found["n3"]] == [("plane blue", "LID 1")]


def test_one_that_stood_by_has_taken_over() -> None:
    assert brief(fleet(2, 2, 2), {"blue": [sm(2, "MASTER", 13)]}) == [("n1", "plane blue", ERROR, "n2 (LID 2)")]


def test_one_that_does_not_hand_over_is_distinguished_from_one_that_does_not_run() -> None:
    remedies = []
    for first in ([], [sm(1, "STANDBY", 14)]):
        (finding, *_others) = check(fleet(2, 2), {"blue": [sm(2, "MASTER", 13), *first]})["n1"]
        assert (finding.status, finding.observed) == (ERROR, "n2 (LID 2)")
        remedies.append(finding.remedy)
    assert "On n1, run `systemctl status 'opensm*'` to see why opensm does not run" in remedies[0]
    assert "opensm on n2 has not handed over to n1. On n2, run `systemctl restart 'opensm@*'`" in remedies[1]


def test_another_host_or_a_switch_is_the_master() -> None:
    assert brief(fleet(3, 3, 3))[0] == ("n1", "plane blue", ERROR, "n3 (LID 3)")
    assert brief(fleet(9, 9, 9))[0] == ("n1", "plane blue", ERROR, "a switch, or a host that is not in this run (LID 9)")


def test_two_masters_are_reported_of_the_host_that_has_the_other_one() -> None:
    assert brief(fleet(1, 1, 9, 1)) == [("n3", "plane blue", ERROR, "its master is LID 9 on rail0; that of the plane is LID 1")]


def test_one_that_does_not_stand_by() -> None:
    seen = {"blue": [sm(1, "MASTER", 14)]}
    assert brief(fleet(1, 1, 1), seen) == [("n1", "plane blue, n2", ERROR, "no subnet manager answers there")]
    seen["blue"].append(sm(2, "NOTACT"))
    assert brief(fleet(1, 1, 1), seen) == [("n1", "plane blue, n2", ERROR, "NOTACT")]


def test_one_that_runs_with_other_settings_than_its_files() -> None:
    """opensm's own priority is 0: with the files of the role nobody has it."""
    seen = {"blue": [sm(1, "MASTER"), sm(2, "STANDBY", 13)]}
    assert brief(fleet(1, 1, 1), seen) == [("n1", "plane blue, n1", ERROR, "MASTER, priority 0")]
    seen = {"blue": [sm(1, "MASTER", 14), sm(2, "STANDBY")]}
    assert brief(fleet(1, 1, 1), seen) == [("n1", "plane blue, n2", ERROR, "STANDBY, priority 0")]
    found = check(fleet(1, 1, 1), seen)["n1"][1]
    assert found.expected == "priority 13"
    assert "for n2 with `-e subnet_manager_restart_allowed=true`" in found.remedy


def test_a_second_subnet_manager_that_nobody_planned() -> None:
    seen = {"blue": [*SEEN["blue"], sm(3, "STANDBY"), sm(40, "DISCOVER", 15), sm(41, "NOTACT")]}
    assert brief(fleet(1, 1, 1), seen) == [
        ("n1", "plane blue, n3 (LID 3)", ERROR, "STANDBY, priority 0"),
        ("n1", "plane blue, 0x28 (LID 40)", ERROR, "DISCOVER, priority 15"),
    ]


def silent(lid: int, hosts: Any) -> list[tuple[str, str, str, str, str]]:
    why = f"the subnet administrator, a part of the subnet manager, does not answer saquery: x; no subnet manager answers at LID {lid}"
    found = check_managers(known_of(hosts), {"blue": Seen(None, why)})
    return [
        (each.host, each.subject, each.status, each.observed, each.remedy)
        for all_of in found.values()
        for each in all_of
        if each.status != OK
    ]


def test_a_master_that_answers_no_more_is_an_error() -> None:
    """Ports keep the LID of a master that has died until another one gives them its own."""
    ((host, subject, status, observed, remedy),) = silent(1, fleet(1, 1, 1))
    assert (host, subject, status, observed) == ("n1", "plane blue", ERROR, "n1 (LID 1), which no longer answers")
    assert "On n1, run `systemctl status 'opensm*'` to see why it ended; n2 should take over within a minute. Then rerun." in remedy
    ((_host, _subject, status, observed, remedy),) = silent(2, fleet(2, 2, 2))
    assert (status, observed) == (ERROR, "n2 (LID 2), which no longer answers")
    assert "n1 should take over" in remedy
    alone = silent(9, fleet(9, 9, manager={"kind": "switch", "hosts": []}))
    gone = "a switch, or a host that is not in this run (LID 9), which no longer answers"
    assert [(each[2], each[3]) for each in alone] == [(ERROR, gone)]


def test_one_that_stands_by_and_does_not_answer_leaves_it_unknown() -> None:
    assert [(each[1], each[2]) for each in silent(2, fleet(1, 1, 1))] == [("plane blue, n2", UNKNOWN)]


def test_what_sminfo_was_not_asked_is_unknown() -> None:
    assert brief(fleet(1, 1), {}) == [("n1", "plane blue, n2", UNKNOWN, "sminfo was not run")]
    alone = fleet(1, 1, manager={"kind": "hosts", "hosts": ["n1"]})
    assert brief(alone, {}) == [("n1", "plane blue, others", UNKNOWN, "sminfo was not run")]
    assert brief(alone, {"blue": [sm(1, "MASTER", 14)]}) == []
    found = check_managers(known_of(alone), {"blue": Seen(None, "saquery is not installed on this host: install infiniband-diags")})
    assert "saquery is not installed" in found["n1"][1].observed


SWITCH: dict[str, Any] = {"kind": "switch", "hosts": []}


def on_switch(lid: int, state: str = "MASTER", description: str = "MF0;sw1:MQM8700/U1") -> SmInfo:
    return SmInfo(lid, f"{lid:#018x}", state, 0, 1, "switch", description)


def switch_master(*managers: SmInfo, name: str | None = None, why_not: str | None = None) -> tuple[str, str]:
    hosts = fleet(9, 9, manager={**SWITCH, "switch": name})
    found = check_managers(known_of(hosts), {"blue": Seen(list(managers) if why_not is None else None, why_not)})
    assert [each.status for host in hosts for each in found[host]] == [OK, OK]
    (finding,) = found["plane blue"]
    return finding.status, finding.observed


def test_a_switch_is_the_master_only_where_its_node_says_that_it_is_one() -> None:
    status, observed = switch_master(on_switch(9), on_switch(8, "STANDBY"))
    assert status == OK
    assert observed == "switch 'MF0;sw1:MQM8700/U1', GUID 0x0000000000000009, LID 9, priority 0, MASTER"
    assert switch_master(SmInfo(9, "0x9", "MASTER", 5, 1, "host", "stranger mlx5_0"))[0] == ERROR
    assert switch_master(sm(9, "MASTER"))[0] == UNKNOWN
    assert switch_master(on_switch(9, "STANDBY")) == (
        UNKNOWN,
        "LID 9 is not a master; subnet managers: switch 'MF0;sw1:MQM8700/U1', GUID 0x0000000000000009, LID 9, priority 0, STANDBY",
    )


def test_two_switches_as_masters_are_an_error() -> None:
    status, observed = switch_master(on_switch(9), on_switch(8, description="sw2"))
    assert status == ERROR
    assert observed.startswith("two masters: switch 'MF0;sw1:MQM8700/U1', GUID 0x0000000000000009")
    assert "switch 'sw2'" in observed


def test_a_named_switch_is_the_one() -> None:
    for name in ("sw1", "SW1", "MF0;sw1:MQM8700/U1", "0x0000000000000009"):
        assert switch_master(on_switch(9), name=name)[0] == OK, name
    for name in ("sw", "sw2", "0x0000000000000008"):
        assert switch_master(on_switch(9), name=name)[0] == ERROR, name


def test_a_switch_that_could_not_be_read_is_unknown() -> None:
    missing = "sminfo is not installed on this host: install infiniband-diags"
    assert switch_master(why_not=missing) == (UNKNOWN, f"LID 9; {missing}")
    assert brief(fleet(9, 9, manager=SWITCH), {})[0][2] == UNKNOWN


def test_a_host_beside_a_switch_is_an_error() -> None:
    second = [("plane blue", "plane blue, n2 (LID 2)", ERROR, "STANDBY, priority 3")]
    assert brief(fleet(9, 9, manager=SWITCH), {"blue": [on_switch(9), sm(2, "STANDBY", 3)]}) == second
    assert brief(fleet(2, 2, manager=SWITCH), {}) == [("plane blue", "plane blue", ERROR, "n2 (LID 2)")]
    stranger = SmInfo(7, "0x7", "STANDBY", 1, 1, "host", "stranger mlx5_0")
    assert brief(fleet(9, 9, manager=SWITCH), {"blue": [on_switch(9), stranger]}) == [
        ("plane blue", "plane blue, stranger mlx5_0 (LID 7)", ERROR, "STANDBY, priority 1")
    ]


def test_a_foreign_master_is_named_with_all_that_is_known_of_it() -> None:
    (finding, *others) = check(fleet(9, 9), {"blue": [on_switch(9)]})["n1"]
    assert [each.subject for each in others] == ["plane blue, n2"]
    assert (finding.status, finding.observed) == (ERROR, on_switch(9).words)
    assert "subnet_manager_takeover_allowed" in finding.remedy


def test_ports_that_are_not_up_have_their_own_finding() -> None:
    hosts = {**fleet(1, 1), "n3": host(3, None, MANAGER, "INIT"), "n4": {"intent": None, "facts": None}}
    assert brief(hosts) == [("n3", "plane blue", NOT_APPLICABLE, "none of its ports is up: see link.state")]
    assert brief({**fleet(1, 1), "n3": host(3, None, MANAGER)}) == [
        ("n3", "plane blue", UNKNOWN, "rail0 does not report the LID of its subnet manager")
    ]


def test_a_plane_without_a_plan_is_not_looked_at() -> None:
    assert brief({"n1": host(1, 1, None)}) == []
    assert check({"n1": host(1, 1, None)})["n1"] == []
    nobody: dict[str, Any] = {"kind": "none", "hosts": []}
    assert brief(fleet(1, manager=nobody))[0][2] == NOT_APPLICABLE


def without_port(**of: Any) -> dict[str, Any]:
    """Three hosts whose master has LID 1; the planned one, n1, has no InfiniBand port on the plane. of: of n1, None if not in the run."""
    hosts = {**fleet(1, 1, 1), **of}
    return {name: each for name, each in hosts.items() if each is not None}


ETHERNET: Any = host(1, 1, MANAGER)
ETHERNET["facts"]["devices"]["mlx5_0"]["ports"]["1"]["link_layer"] = "Ethernet"
BY_NAME = SmInfo(1, "0x1", "MASTER", 14, 1, "host", "n1 HCA-1")
STANDBY = sm(2, "STANDBY", 13)


@pytest.mark.parametrize(
    ("of_n1", "about", "why"),
    [(ETHERNET, "n1", "has no active InfiniBand port on rail0"), (None, "plane blue", "is not in this run")],
    ids=["a dead card, or a port that is Ethernet", "no answer, or --limit"],
)
def test_a_planned_master_without_its_port_is_unknown_and_no_other_host_is_accused(of_n1: Any, about: str, why: str) -> None:
    hosts = without_port(n1=of_n1)
    unknown = [(about, "plane blue", UNKNOWN, f"LID 1, which no port of this run has; n1, the planned one, {why}")]
    assert brief(hosts, {"blue": [sm(1, "MASTER", 14), STANDBY]}) == unknown
    # The node description, or nobody that answers, decides.
    assert brief(hosts, {"blue": [BY_NAME, STANDBY]}) == []
    foreign = replace(BY_NAME, description="n10 HCA-1")
    assert brief(hosts, {"blue": [foreign, STANDBY]}) == [(about, "plane blue", ERROR, foreign.words)]
    ((host, _subject, status, observed, remedy),) = silent(1, hosts)
    assert (host, status) == (about, ERROR)
    assert observed == f"the subnet manager at LID 1 no longer answers; n1, the planned one, {why}"
    assert remedy.startswith("Fix n1: ")


def test_a_standby_that_is_not_in_this_run_is_known_by_its_description_only() -> None:
    alone = {"n1": fleet(1)["n1"]}
    nameless = "not all its ports are in this run and active; LID 2 may be its"
    assert brief(alone) == [("n1", "plane blue, n2", UNKNOWN, nameless)]
    assert brief(alone, {"blue": [SEEN["blue"][0], replace(STANDBY, kind="host", description="n2 mlx5_0")]}) == []
    assert brief(alone, {"blue": [SEEN["blue"][0]]}) == [("n1", "plane blue, n2", ERROR, "no subnet manager answers there")]


def test_a_standby_that_took_over_from_a_host_without_its_port_is_an_error_of_that_host() -> None:
    hosts = {**fleet(2, 2, 2), "n1": host(1, None, MANAGER, "DOWN")}
    assert brief(hosts, {"blue": [sm(2, "MASTER", 13)]}) == [("n1", "plane blue", ERROR, "n2 (LID 2)")]
