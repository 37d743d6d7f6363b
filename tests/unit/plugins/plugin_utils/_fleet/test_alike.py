# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Like hosts side by side, by their facts: who is the odd one out, who is not, and how long a thousand hosts take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.alike import COMPARISONS, check_alike, check_duplicates
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of

Fleet = dict[str, dict[str, Any]]
STAGES = ("driver", "link", "network")
BDF = "0000:{:02x}:00.0"


def device(rail: int, node: int) -> dict[str, Any]:
    port = {
        "state": "ACTIVE",
        "physical_state": "LinkUp",
        "link_layer": "Ethernet",
        "rate_gbps": 400.0,
        "width": 4,
        "netdev": f"ens{rail}np0",
        "rocev2": {f"10.{rail}.{node // 250}.{node % 250 + 1}": 3},
    }
    return {
        "driver": "mlx5_core",
        "software": False,
        "firmware": "28.39.1002",
        "board_id": "MT_0000000838",
        "pci": {"address": BDF.format(rail), "speed_gtps": 32.0, "width": 16},
        "ports": {"1": port},
    }


def host(node: int, rails: int = 2) -> dict[str, Any]:
    """A host with ConnectX-7 cards: its intent, and its facts as a digest has them."""
    planned = [
        {
            "name": f"rail{rail}",
            "nic": {"pci": BDF.format(rail)},
            "link_layer": "roce",
            "rate_gbps": None,
            "role": "compute",
            "address": f"10.{rail}.{node // 250}.{node % 250 + 1}/16",
            "soft": False,
            "mtu_bytes": None,
        }
        for rail in range(rails)
    ]
    ofed = {"version": "24.10-1.1.4", "srcversion": "A1B2"}
    packages = {"perftest": "24.10.0-0.1", "rdma-core": "2410mlnx54-1", "mstflint": "4.30"}
    facts = {
        "devices": {f"mlx5_{rail}": device(rail, node) for rail in range(rails)},
        "netdevs": {f"ens{rail}np0": {"pci": BDF.format(rail), "dev_port": 0, "mtu_bytes": 9000} for rail in range(rails)},
        "stack": {
            "kind": "ofed",
            "kernel": "5.15.0-91-generic",
            "modules": {name: dict(ofed) for name in ("ib_core", "mlx5_core", "mlx5_ib")},
            "distribution": {"id": "ubuntu", "version_id": "22.04", "like": ["debian"], "packages": packages},
        },
    }
    return {"intent": {"rails": planned, "fabric": {"topology": "switched"}}, "facts": facts}


def fleet(count: int, rails: int = 2) -> Fleet:
    return {f"node{node}": host(node, rails) for node in range(1, count + 1)}


def found(hosts: Fleet, stage: str) -> dict[str, list[Finding]]:
    """What is not ok, by host; every host has something to each check."""
    by_host = check_alike(known_of(hosts), stage)
    groups = {FLEET: by_host.pop(FLEET)} if FLEET in by_host else {}
    assert list(by_host) == list(hosts)
    ids = {alike.check for alike in COMPARISONS[stage]}
    for name, findings in by_host.items():
        assert {finding.check for finding in findings} == ids
        assert all((finding.host, finding.stage) == (name, stage) for finding in findings)
    by_host |= groups
    return {name: bad for name, findings in by_host.items() if (bad := [finding for finding in findings if finding.status != "ok"])}


def brief(hosts: Fleet, stage: str) -> dict[str, list[tuple[str, str, str]]]:
    return {name: [(finding.check, finding.status, finding.observed) for finding in bad] for name, bad in found(hosts, stage).items()}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("count", [2, 5])
def test_hosts_that_are_alike_get_one_ok_for_each_check(stage: str, count: int) -> None:
    hosts = fleet(count)
    assert found(hosts, stage) == {}
    assert [len(findings) for findings in check_alike(known_of(hosts), stage).values()] == [len(COMPARISONS[stage])] * count


def of(node: str, rail: int) -> Callable[[Fleet], dict[str, Any]]:
    return lambda hosts: hosts[node]["facts"]["devices"][f"mlx5_{rail}"]


def change_rate(hosts: Fleet) -> None:
    of("node2", 1)(hosts)["ports"]["1"].update(rate_gbps=200.0, width=2)


def rename(hosts: Fleet) -> None:
    facts = hosts["node2"]["facts"]
    facts["devices"]["mlx5_9"] = facts["devices"].pop("mlx5_1")


ODD = [
    pytest.param(
        "driver",
        lambda hosts: of("node2", 1)(hosts).update(firmware="28.38.1900"),
        ("alike.firmware", "warning", "28.38.1900 on board MT_0000000838; 28.39.1002 on board MT_0000000838 on 7 of 8 NICs"),
        id="firmware",
    ),
    pytest.param(
        "driver",
        lambda hosts: of("node2", 1)(hosts).update(board_id="MT_0000001093"),
        ("alike.board", "warning", "board MT_0000001093; MT_0000000838 on 3 of 4 hosts (node1, node3, node4)"),
        id="board",
    ),
    pytest.param(
        "driver",
        lambda hosts: hosts["node2"]["facts"]["stack"]["modules"]["mlx5_core"].update(version="24.07-0.6.1", srcversion="0C3"),
        (
            "alike.driver",
            "warning",
            "driver ofed: ib_core 24.10-1.1.4 (A1B2), mlx5_core 24.07-0.6.1 (0C3); ofed: ib_core 24.10-1.1.4 (A1B2)",
        ),
        id="driver",
    ),
    pytest.param(
        "driver",
        lambda hosts: hosts["node2"]["facts"]["stack"].update(kind=None),
        ("alike.driver", "warning", "driver ib_core 24.10-1.1.4 (A1B2), mlx5_core 24.10-1.1.4 (A1B2); ofed: "),
        id="stack",
    ),
    pytest.param(
        "driver",
        lambda hosts: hosts["node2"]["facts"]["stack"].update(kernel="5.15.0-88-generic"),
        ("alike.kernel", "warning", "kernel 5.15.0-88-generic; 5.15.0-91-generic on 3 of 4 hosts (node1, node3, node4)"),
        id="kernel",
    ),
    pytest.param(
        "driver",
        lambda hosts: hosts["node2"]["facts"]["stack"]["distribution"]["packages"].update(perftest=None),
        (
            "alike.packages",
            "warning",
            "packages perftest not installed, rdma-core 2410mlnx54-1; perftest 24.10.0-0.1, rdma-core 2410mlnx54-1",
        ),
        id="packages",
    ),
    pytest.param(
        "driver",
        lambda hosts: hosts["node2"]["facts"]["stack"]["distribution"].update(version_id="24.04"),
        ("alike.os", "warning", "distribution ubuntu 24.04; ubuntu 22.04 on 3 of 4 hosts"),
        id="distribution",
    ),
    pytest.param("link", change_rate, ("alike.rate", "error", "rate 200 Gb/s (2x); 400 Gb/s (4x) on 3 of 4 hosts"), id="rate"),
    pytest.param("link", rename, ("alike.names", "warning", "names mlx5_9, ens1np0; mlx5_1, ens1np0 on 3 of 4 hosts"), id="names"),
    pytest.param(
        "link",
        lambda hosts: of("node2", 1)(hosts)["pci"].update(speed_gtps=16.0, width=8),
        ("alike.pcie", "warning", "PCIe link 16 GT/s x8; 32 GT/s x16 on 3 of 4 hosts"),
        id="PCIe",
    ),
    pytest.param(
        "network",
        lambda hosts: of("node2", 1)(hosts)["ports"]["1"].update(rocev2={"10.1.0.3": 5}),
        ("alike.gid_index", "warning", "GID index 5; 3 on 3 of 4 hosts"),
        id="GID index",
    ),
]


@pytest.mark.parametrize(("stage", "change", "expected"), ODD)
def test_the_odd_one_out(stage: str, change: Callable[[Fleet], None], expected: tuple[str, str, str]) -> None:
    hosts = fleet(4)
    change(hosts)
    bad = found(hosts, stage)
    assert list(bad) == ["node2"]
    (finding,) = bad["node2"]
    check, status, words = expected
    assert (finding.check, finding.status) == (check, status)
    assert words in finding.observed
    assert "node2" in finding.remedy
    assert finding.expected


def test_only_the_rail_that_is_odd_is_named_and_rails_alike_in_it_together() -> None:
    hosts = fleet(4, rails=8)
    for rail in (2, 5):
        of("node3", rail)(hosts)["pci"].update(width=8)
    (finding,) = found(hosts, "link")["node3"]
    assert finding.subject == "rail 2 (rail2, 0000:02:00.0, ens2np0), rail 5 (rail5, 0000:05:00.0, ens5np0)"
    assert (finding.observed, finding.expected) == (
        "PCIe link 32 GT/s x8; 32 GT/s x16 on 3 of 4 hosts (node1, node2, node4)",
        "PCIe link 32 GT/s x16",
    )


@pytest.mark.parametrize(("stage", "change", "expected"), ODD)
def test_half_against_half_is_a_warning_of_the_fleet_and_accuses_no_host(
    stage: str, change: Callable[[Fleet], None], expected: tuple[str, str, str]
) -> None:
    hosts = fleet(2)
    if expected[0] == "alike.firmware":
        hosts = fleet(2, rails=1)
        of("node2", 0)(hosts).update(firmware="28.38.1900")
    else:
        change(hosts)
    bad = found(hosts, stage)
    assert [(name, finding.check, finding.status) for name, findings in bad.items() for finding in findings] == [
        ("node1", expected[0], "not_applicable"),
        ("node2", expected[0], "not_applicable"),
        (FLEET, expected[0], "warning"),
    ]
    (finding,) = bad[FLEET]
    assert finding.remedy.startswith("1. Choose which of them is right: none is on more than half, so no host is known to be wrong.")
    assert all(
        f" on 1 of 2 {of} ({host})" in finding.observed for host in hosts for of in ["NICs" if "firmware" in expected[0] else "hosts"]
    )
    assert bad["node1"][0].observed == f"no value is on more than half of the hosts: see {expected[0]} of {FLEET}"


def test_firmware_is_compared_on_the_same_board_only() -> None:
    hosts = fleet(3)
    for name in hosts:
        of(name, 1)(hosts).update(board_id="MT_0000000359", firmware="22.39.1002")
    assert found(hosts, "driver") == {}
    of("node3", 1)(hosts).update(firmware="22.36.1010")
    assert brief(hosts, "driver") == {
        "node3": [
            (
                "alike.firmware",
                "warning",
                "firmware 22.36.1010 on board MT_0000000359; 22.39.1002 on board MT_0000000359 on 2 of 3 NICs (node1, node2)",
            )
        ]
    }


def test_storage_hosts_are_no_odd_ones_among_those_for_computing() -> None:
    hosts = fleet(5)
    for name in ("node4", "node5"):
        for rail in hosts[name]["intent"]["rails"]:
            rail["role"] = "storage"
        hosts[name]["facts"]["stack"]["kernel"] = "6.1.0-9-amd64"
        of(name, 0)(hosts)["ports"]["1"].update(rate_gbps=100.0)
    assert found(hosts, "driver") == {}
    assert found(hosts, "link") == {}


def test_modules_of_the_kernel_are_compared_where_the_kernel_is_the_same() -> None:
    hosts = fleet(5)
    for name, known in hosts.items():
        stack = known["facts"]["stack"]
        stack.update(kind=None, kernel="5.15.0-91-generic" if name != "node5" else "5.15.0-88-generic")
        stack["modules"] = {"ib_core": {"version": None, "srcversion": "K1" if name != "node5" else "K0"}}
    assert {name: [finding.check for finding in bad] for name, bad in found(hosts, "driver").items()} == {"node5": ["alike.kernel"]}
    hosts["node2"]["facts"]["stack"]["modules"]["ib_core"]["srcversion"] = "MINE"
    bad = brief(hosts, "driver")["node2"]
    assert bad == [
        ("alike.driver", "warning", "driver srcversion of ib_core MINE; srcversion of ib_core K1 on 3 of 4 hosts (node1, node3, node4)")
    ]


def test_the_kernel_s_own_among_add_ons_is_odd() -> None:
    hosts = fleet(3)
    hosts["node3"]["facts"]["stack"].update(kind=None, modules={"ib_core": {"version": None, "srcversion": None}})
    ((check, status, observed),) = brief(hosts, "driver")["node3"]
    assert (check, status) == ("alike.driver", "warning")
    assert observed.startswith("driver ib_core of the kernel; ofed: ib_core 24.10-1.1.4 (A1B2)")


RATES: list[Any] = [
    pytest.param(lambda hosts: of("node2", 0)(hosts)["ports"]["1"].update(state="DOWN", rate_gbps=10.0), id="a port that is not up"),
    pytest.param(lambda hosts: hosts["node2"]["intent"]["rails"][0].update(rate_gbps=400), id="link.rate judges by the plan"),
    pytest.param(
        lambda hosts: hosts["node2"]["facts"]["netdevs"]["ens0np0"].update(ethtool={"supported_speeds_mbps": [200000, 400000]}),
        id="link.rate judges by what the NIC can do",
    ),
    pytest.param(lambda hosts: of("node2", 0)(hosts).update(software=True), id="a software device"),
]


def test_two_kinds_of_boards_have_two_rates() -> None:
    hosts = fleet(5)
    for name in ("node1", "node2"):
        for index in (0, 1):
            of(name, index)(hosts)["ports"]["1"].update(rate_gbps=200.0)
            of(name, index)(hosts)["board_id"] = "MT_0000000225"
    assert "alike.rate" not in {finding.check for bad in found(hosts, "link").values() for finding in bad}


@pytest.mark.parametrize("change", RATES)
def test_a_rate_that_another_check_judges_is_no_second_error(change: Callable[[Fleet], None]) -> None:
    hosts = fleet(4)
    of("node2", 0)(hosts)["ports"]["1"].update(rate_gbps=100.0)
    assert [finding.check for finding in found(hosts, "link")["node2"]] == ["alike.rate"]
    change(hosts)
    assert found(hosts, "link") == {}


def test_a_slower_card_is_odd_although_it_does_what_it_can() -> None:
    hosts = fleet(4)
    of("node2", 0)(hosts)["ports"]["1"].update(rate_gbps=100.0)
    hosts["node2"]["facts"]["netdevs"]["ens0np0"]["ethtool"] = {"supported_speeds_mbps": [25000, 100000]}
    assert brief(hosts, "link")["node2"] == [
        ("alike.rate", "error", "rate 100 Gb/s (4x); 400 Gb/s (4x) on 3 of 4 hosts (node1, node3, node4)")
    ]


def test_infiniband_has_no_gid_index_and_what_ipoib_says_of_speeds_is_not_asked() -> None:
    hosts = fleet(3)
    for known in hosts.values():
        for rail in known["intent"]["rails"]:
            rail.update(link_layer="infiniband", address=None)
    of("node2", 0)(hosts)["ports"]["1"].update(rate_gbps=200.0, width=2)
    hosts["node2"]["facts"]["netdevs"]["ens0np0"]["ethtool"] = {"supported_speeds_mbps": [400000]}
    assert [finding.check for finding in found(hosts, "link")["node2"]] == ["alike.rate"]
    seen = [finding.observed for finding in check_alike(known_of(hosts), "network")["node1"]]
    assert seen == ["as on like hosts", "no RoCE v2 GID of a planned address"]


def test_in_a_mesh_rails_are_compared_by_their_place() -> None:
    hosts = fleet(3)
    for name, known in hosts.items():
        known["intent"]["fabric"]["topology"] = "mesh"
        for index, rail in enumerate(known["intent"]["rails"]):
            rail["name"] = f"cable_{name}_{index}"
    assert found(hosts, "link") == {}
    of("node2", 1)(hosts)["pci"].update(width=8)
    assert [(name, finding.check) for name, bad in found(hosts, "link").items() for finding in bad] == [("node2", "alike.pcie")]


def test_an_mtu_that_no_intent_has_is_the_same_on_like_hosts() -> None:
    hosts = fleet(4)
    hosts["node2"]["facts"]["netdevs"]["ens1np0"]["mtu_bytes"] = 1500
    (finding,) = found(hosts, "network")["node2"]
    assert (finding.check, finding.status, finding.observed.partition(" on ")[0]) == ("alike.mtu", "error", "MTU 1500 bytes; 9000 bytes")
    for known in hosts.values():
        known["intent"]["rails"][1]["mtu_bytes"] = 9000
    assert found(hosts, "network") == {}, "network.mtu judges it by the plan"


def test_in_a_mesh_the_ends_of_a_cable_have_one_mtu() -> None:
    hosts = fleet(3)
    cables = {"node1": ("cable12", "cable13"), "node2": ("cable12", "cable23"), "node3": ("cable13", "cable23")}
    for name, known in hosts.items():
        known["intent"]["fabric"]["topology"] = "mesh"
        for rail, cable in zip(known["intent"]["rails"], cables[name], strict=True):
            rail["name"] = cable
    hosts["node3"]["facts"]["netdevs"]["ens1np0"]["mtu_bytes"] = 1500
    odd = {name: [finding.check for finding in bad] for name, bad in found(hosts, "network").items()}
    assert {name: "alike.mtu" in checks for name, checks in odd.items()} == {"node2": True, "node3": True, FLEET: True}


@pytest.mark.parametrize("stage", STAGES)
def test_one_host_alone_has_nobody_to_compare_with(stage: str) -> None:
    findings = check_alike(known_of(fleet(1)), stage)["node1"]
    assert {finding.status for finding in findings if finding.check != "alike.firmware"} <= {"not_applicable"}
    assert {finding.observed for finding in findings if finding.status != "ok"} == {"no like host to compare with"}


@pytest.mark.parametrize("known", [{"intent": None, "facts": None}, {"intent": host(4)["intent"], "facts": None}])
@pytest.mark.parametrize("stage", STAGES)
def test_a_host_of_which_not_all_is_known_is_no_part_of_any_majority(stage: str, known: dict[str, Any]) -> None:
    hosts = fleet(3)
    by_host = check_alike(known_of({**hosts, "node4": known}), stage)
    assert by_host.pop("node4") == []
    assert {finding.status for findings in by_host.values() for finding in findings} == {"ok"}


@pytest.mark.parametrize("stage", STAGES)
def test_facts_that_report_nothing_are_not_applicable(stage: str) -> None:
    hosts = fleet(3)
    for known in hosts.values():
        known["facts"] = {"devices": {}, "netdevs": {}, "stack": {}}
    by_host = check_alike(known_of(hosts), stage)
    assert {finding.status for findings in by_host.values() for finding in findings} == {"not_applicable"}
    assert all(len(findings) == len(COMPARISONS[stage]) for findings in by_host.values())


@pytest.mark.parametrize("stage", STAGES)
def test_the_digests_of_the_lab_are_alike(stage: str) -> None:
    lab = {f"node{node}": {"intent": lab_intent(node), "facts": comparable(lab_facts(node))} for node in (1, 2, 3, 4)}
    by_host = check_alike(known_of(lab), stage)
    assert [finding for findings in by_host.values() for finding in stopping(findings)] == []
    assert {finding.status for findings in by_host.values() for finding in findings} <= {"ok", "not_applicable"}


def spoil(hosts: Fleet) -> None:
    """Everything differs on every host."""
    for node, known in enumerate(hosts.values()):
        stack = known["facts"]["stack"]
        stack.update(kernel=f"5.15.0-{node}", modules={"ib_core": {"version": str(node), "srcversion": None}})
        stack["distribution"].update(version_id=str(node), packages={"perftest": str(node)})
        for index, each in enumerate(known["facts"]["devices"].values()):
            each.update(firmware=f"{node}.{index}", board_id="MT_1" if node % 2 else f"MT_{node}")
            each["pci"]["width"] = node
            each["ports"]["1"].update(rate_gbps=float(node), rocev2=dict.fromkeys(each["ports"]["1"]["rocev2"], node))


@pytest.mark.parametrize("worst", [False, True], ids=["well", "everything differs"])
def test_a_thousand_hosts_take_a_second_for_all_stages(worst: bool) -> None:
    hosts = fleet(1000, rails=8)
    if worst:
        spoil(hosts)
    known = known_of(hosts)
    begun = time.process_time()
    by_stage = {stage: check_alike(known, stage) for stage in STAGES}
    assert time.process_time() - begun < 3, "about one second on a machine that has nothing else to do"
    findings = [finding for by_host in by_stage.values() for each in by_host.values() for finding in each]
    assert any(finding.status == "warning" for finding in findings) is worst
    assert max(len(finding.observed) for finding in findings) < 500


def addresses(**hosts: dict[str, list[str]]) -> Fleet:
    """Lab machines node1, node2, …, with all that they have on their interfaces; lo and a bridge of their own are the same on all."""
    fleet = {}
    for number, (name, live) in enumerate(hosts.items(), 1):
        interfaces = {netdev: {"ipv4": own} for netdev, own in {"docker0": ["172.17.0.1/16"], **live}.items()}
        fleet[name] = {"intent": lab_intent(number), "facts": {**comparable(lab_facts(number)), "interfaces": interfaces}}
    return fleet


RAILS = {number: {"ens1": [f"192.168.100.{number}/24"], "ens2": [f"192.168.101.{number}/24"]} for number in (1, 2, 3)}


def test_each_address_on_its_own_host_is_well() -> None:
    found = check_duplicates(known_of(addresses(node1=RAILS[1], node2=RAILS[2])))
    assert [(each.check, each.status) for findings in found.values() for each in findings] == [("network.duplicate", "ok")] * 2
    assert comparable(lab_facts())["interfaces"]["ens1"] == {"ipv4": ["192.168.100.1/24"]}
    assert "lo" not in comparable(lab_facts())["interfaces"]


def test_an_address_of_one_host_added_on_another_is_an_error_of_the_one_that_took_it() -> None:
    found = check_duplicates(
        known_of(addresses(node1=RAILS[1], node2={**RAILS[2], "ens2": ["192.168.101.2/24", "192.168.100.1/32"]}, node3=RAILS[3]))
    )
    [one], [two], [three] = found["node1"], found["node2"], found["node3"]
    assert three.status == "ok"
    assert (one.status, one.subject) == ("warning", "rail0")
    assert (two.status, two.subject) == ("error", "interface ens2")
    assert one.observed == two.observed == "192.168.100.1 is on ens1 of node1 (rail0), on ens2 of node2"
    assert one.remedy.startswith("1. Run `ip addr del 192.168.100.1/PREFIX dev ens2` on node2. 2. ")


def test_also_where_its_own_host_does_not_have_it_now_or_nobody_plans_it() -> None:
    taken = check_duplicates(known_of(addresses(node1={"ens2": RAILS[1]["ens2"]}, node2={**RAILS[2], "vlan7": ["192.168.100.1/24"]})))
    assert taken["node1"][0].observed == "192.168.100.1 is planned for rail0 of node1, which does not have it, on vlan7 of node2"
    assert taken["node2"][0].status == "error"
    extra = {"ens1": ["192.168.100.9/24"]}
    foreign = check_duplicates(known_of(addresses(node1={**RAILS[1], **extra}, node2={**RAILS[2], **extra})))
    assert any("192.168.100.9 is on ens1 of node1, on ens1 of node2" in each.observed for each in foreign["node1"])


@pytest.mark.parametrize(("reached_at", "statuses"), [("node1", ["error", "error"]), ("127.0.0.1", ["ok", "ok"])])
def test_the_address_of_the_session_on_another_host(reached_at: str, statuses: list[str]) -> None:
    """Behind a forwarded port each machine may have the same address."""
    fleet = addresses(node1={**RAILS[1], "eno1": ["10.1.0.1/24"]}, node2={**RAILS[2], "lo": ["10.1.0.1/32"]})
    fleet["node1"]["facts"].update(session={"address": "10.1.0.1", "netdev": "eno1"}, reached_at=reached_at)
    found = check_duplicates(known_of(fleet))
    assert [each.status for findings in found.values() for each in findings] == statuses
    if "error" in statuses:
        assert found["node2"][0].observed == "10.1.0.1 is on eno1 of node1 (where Ansible reaches it), on lo of node2"
        assert found["node2"][0].remedy.startswith("1. Run `ip addr del 10.1.0.1/PREFIX dev lo` on node2. ")


def test_addresses_of_lo_that_are_not_each_host_s_own_are_compared() -> None:
    facts = lab_facts()
    facts["interfaces"]["lo"]["ipv4"] = ["127.0.0.1/8", "192.168.100.1/32"]
    assert comparable(facts)["interfaces"]["lo"] == {"ipv4": ["192.168.100.1/32"]}


def test_addresses_that_were_not_read_are_unknown() -> None:
    fleet = addresses(node1=RAILS[1], node2=RAILS[2])
    fleet["node2"]["facts"]["interfaces"] = {}
    found = check_duplicates(known_of(fleet))
    assert [each.status for each in found["node2"]] == ["unknown"]


def test_a_host_without_devices_is_not_compared_by_its_driver() -> None:
    """driver.module reports the module that is not loaded; that its versions are missing is no second cause."""
    hosts = fleet(3)
    facts = hosts["node3"]["facts"]
    facts["devices"] = {}
    del facts["stack"]["modules"]["mlx5_core"]
    by_host = check_alike(known_of(hosts), "driver")
    (finding,) = (each for each in by_host["node3"] if each.check == "alike.driver")
    assert (finding.status, finding.observed) == ("not_applicable", "no rail has a device, or no RDMA module is loaded")
    assert {each.status for each in by_host["node1"] if each.check == "alike.driver"} == {"ok"}
