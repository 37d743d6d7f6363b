# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links below a card: what caps a rail, where, and which of the findings on it is the error."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie import check_pcie, link_words, needed_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, bad, card_facts, card_rails, first_pci, first_port, of_first
from tests.unit.builders.hosts import lab_facts, lab_rails

OWN, DOWNSTREAM, UPSTREAM, ROOT = "0000:3d:00.0", "0000:3c:00.0", "0000:3b:00.0", "0000:3a:01.0"
LINKS = ("pcie.link", "pcie.path")


def links(facts: dict[str, Any], rate_gbps: float | None = 400, stage: str = "preflight") -> dict[str, Finding]:
    return {
        check: finding
        for check, finding in of_first(check_pcie(HOST, card_rails(rate_gbps), from_dict(facts), stage)).items()
        if check in LINKS
    }


def card(speed_gtps: float, width: int, slot: tuple[float, int] | None = None) -> dict[str, Any]:
    """Facts with a card of Gen5 x16 whose own link is this; slot: the most that the port above it can do."""
    facts = card_facts()
    pci = first_pci(facts)
    pci.update(speed_gtps=speed_gtps, width=width, narrowest={"address": OWN, "speed_gtps": speed_gtps, "width": width})
    pci["hops"][0].update(speed_gtps=speed_gtps, width=width)
    if slot is not None:
        pci["hops"][0].update(max_speed_gtps=slot[0], max_width=slot[1])
    return facts


def uplink(address: str, speed_gtps: float, width: int) -> dict[str, Any]:
    """Facts with a good card below a bridge whose link is narrower than it could be."""
    facts = card_facts()
    (hop,) = [hop for hop in first_pci(facts)["hops"] if hop["address"] == address]
    hop.update(speed_gtps=speed_gtps, width=width)
    first_pci(facts)["narrowest"] = {"address": address, "speed_gtps": speed_gtps, "width": width}
    return facts


def test_a_good_card_passes() -> None:
    found = links(card_facts())
    assert {check: finding.status for check, finding in found.items()} == dict.fromkeys(LINKS, "ok")
    assert found["pcie.link"].observed == "Gen5 x16"
    assert found["pcie.path"].observed == f"Gen5 x16 at {OWN} (the card's own link) is the slowest and carries 459 Gb/s"
    assert {finding.stage for finding in check_pcie(HOST, card_rails(), from_dict(card_facts()), "preflight")} == {"preflight"}


def test_what_software_does_not_have_is_not_asked_of_it() -> None:
    found = check_pcie("node1", lab_rails(), from_dict(lab_facts()), "preflight")
    assert {finding.status for finding in found} == {"not_applicable"}
    assert {finding.observed for finding in found if finding.check == "pcie.link"} == {"a software device has no PCIe path"}
    assert {finding.check for finding in check_pcie("node1", lab_rails(), from_dict(lab_facts()), "link")} == {"pcie.path"}


@pytest.mark.parametrize(
    ("speed_gtps", "width", "rate_gbps", "words", "carried_gbps"),
    [
        (16.0, 16, 400, "Gen4 x16", 229),
        (16.0, 8, 200, "Gen4 x8", 115),
        (8.0, 16, 200, "Gen3 x16", 115),
        (32.0, 8, 400, "Gen5 x8", 229),
        (8.0, 8, 100, "Gen3 x8", 57),
    ],
)
def test_a_card_whose_own_link_caps_its_rate_is_one_error(
    speed_gtps: float, width: int, rate_gbps: float, words: str, carried_gbps: int
) -> None:
    found = links(card(speed_gtps, width), rate_gbps)
    assert bad(list(found.values())) == [("pcie.link", "warning"), ("pcie.path", "error")]
    assert found["pcie.path"].observed == f"{words} at {OWN} (the card's own link) limits this {rate_gbps} Gb/s port to {carried_gbps} Gb/s"
    assert found["pcie.path"].remedy.startswith(f"1. Reseat card {OWN} of node1. 2. Run `lspci -vv -s {OWN}` there")
    assert found["pcie.link"].observed == f"{words} of Gen5 x16: see pcie.path for the effect"


@pytest.mark.parametrize(("speed_gtps", "width", "rate_gbps"), [(16.0, 16, 200), (8.0, 16, 100), (16.0, 8, 100), (8.0, 8, 50)])
def test_a_card_below_its_best_that_still_carries_its_rate_is_a_warning(speed_gtps: float, width: int, rate_gbps: float) -> None:
    found = links(card(speed_gtps, width), rate_gbps)
    assert bad(list(found.values())) == [("pcie.link", "warning")]
    assert found["pcie.link"].observed == f"{link_words(speed_gtps, width)} of Gen5 x16"


def test_a_slot_that_can_do_no_more_is_named() -> None:
    found = links(card(16.0, 16, slot=(16.0, 16)))
    assert found["pcie.path"].remedy == (f"Move card {OWN} of node1 to a faster slot: this one ({DOWNSTREAM}) supports at most Gen4 x16.")
    assert links(card(16.0, 8, slot=(16.0, 16)))["pcie.path"].remedy.startswith("1. Reseat card")


def test_a_card_at_its_best_that_is_too_slow_takes_another_card() -> None:
    facts = card(16.0, 16)
    first_pci(facts).update(max_speed_gtps=16.0)
    found = links(facts)
    assert bad(list(found.values())) == [("pcie.path", "error")]
    assert "is at its maximum" in found["pcie.path"].remedy


@pytest.mark.parametrize(
    ("address", "place"),
    [(UPSTREAM, "the uplink of a PCIe switch"), (ROOT, "the root port"), (DOWNSTREAM, "the link of the card's slot")],
)
def test_a_hop_that_caps_a_rail_is_named(address: str, place: str) -> None:
    found = links(uplink(address, 16.0, 8))
    assert bad(list(found.values())) == [("pcie.path", "error")]
    assert found["pcie.path"].observed == f"Gen4 x8 at {address} ({place}) limits this 400 Gb/s port to 115 Gb/s"
    if address != DOWNSTREAM:
        assert found["pcie.path"].remedy.startswith(f"1. Run `lspci -vv -s {address}` on node1")


def test_an_uplink_at_its_best_takes_another_slot() -> None:
    facts = uplink(UPSTREAM, 16.0, 8)
    first_pci(facts)["hops"][1].update(max_speed_gtps=16.0, max_width=8)
    assert f"Move card {OWN} to a slot with a faster path" in links(facts)["pcie.path"].remedy


def test_two_causes_are_two_errors() -> None:
    facts = card(16.0, 16)
    hop = first_pci(facts)["hops"][1]
    hop.update(speed_gtps=16.0, width=8)
    first_pci(facts)["narrowest"] = {"address": UPSTREAM, "speed_gtps": 16.0, "width": 8}
    found = links(facts)
    assert bad(list(found.values())) == [("pcie.link", "error"), ("pcie.path", "error")]
    assert UPSTREAM in found["pcie.path"].observed


def test_without_a_planned_rate_the_path_is_the_link_stages() -> None:
    facts = card(16.0, 16)
    assert bad(list(links(facts, None).values())) == [("pcie.link", "warning")]
    assert "pcie.path" not in links(facts, None)
    found = links(facts, None, "link")
    assert [(finding.check, finding.stage, finding.status) for finding in found.values()] == [("pcie.path", "link", "error")]
    assert "limits this 400 Gb/s port to 229 Gb/s" in found["pcie.path"].observed
    assert links(facts, 400, "link") == {}


def test_a_port_that_is_not_up_has_no_rate_for_its_path() -> None:
    facts = card(16.0, 16)
    first_port(facts).update(state="DOWN", rate_gbps=10.0)
    assert links(facts, None, "link")["pcie.path"].observed == "the port is not up: see link.state"
    facts = card(16.0, 16)
    first_port(facts)["rate_gbps"] = None
    facts["netdevs"]["ens1np0"]["ethtool"] = None
    assert links(facts, None, "link")["pcie.path"].observed == "mlx5_0/1 reports no rate, and none is planned"


def test_a_virtual_function_has_a_path_and_no_link_of_its_own() -> None:
    facts = uplink(DOWNSTREAM, 16.0, 8)
    facts["devices"]["mlx5_0"]["function"] = "vf"
    first_pci(facts).update(speed_gtps=None, width=None, max_speed_gtps=None, max_width=None)
    found = links(facts)
    assert found["pcie.link"].observed == "a virtual function has no link of its own"
    assert bad(list(found.values())) == [("pcie.path", "error")]


def test_a_function_that_reports_no_link_is_not_judged() -> None:
    facts = card_facts()
    first_pci(facts).update(speed_gtps=None, width=None, max_speed_gtps=None, max_width=None, narrowest=None, hops=[])
    assert {finding.status for finding in links(facts).values()} == {"not_applicable"}


def test_a_card_is_judged_before_it_has_an_rdma_device() -> None:
    facts = card_facts()
    card = facts["devices"].pop("mlx5_0")["pci"]
    link = {"speed_gtps": 16.0, "width": 8}
    facts["nics"] = {card["address"]: {**card, **link, "narrowest": {**card["narrowest"], **link}}}
    found = check_pcie(HOST, card_rails(400)[:1], from_dict(facts), "preflight")
    (path,) = [finding for finding in found if finding.check == "pcie.path" and "rail" in finding.subject]
    assert (path.status, "Gen4 x8" in path.observed) == ("error", True), path


def test_a_nic_without_an_rdma_device_reports_no_path() -> None:
    facts = card_facts()
    del facts["devices"]["mlx5_0"]
    assert {finding.observed for finding in links(facts).values()} == {"no PCI function is known for this NIC"}


def shared(facts: dict[str, Any], rate_gbps: float | None = 400, stage: str = "preflight") -> list[Finding]:
    found = check_pcie(HOST, card_rails(rate_gbps), from_dict(facts), stage)
    return [finding for finding in found if finding.subject.startswith("PCIe link")]


def one_switch(speed_gtps: float, width: int) -> dict[str, Any]:
    """Facts with both cards below one switch, whose upstream port and root port have this link."""
    facts = card_facts()
    first, second = (facts["devices"][name]["pci"] for name in ("mlx5_0", "mlx5_1"))
    for hop in first["hops"][1:]:
        hop.update(speed_gtps=speed_gtps, width=width)
    second["hops"][1:] = first["hops"][1:]
    return facts


def test_an_uplink_that_two_rails_share_is_a_warning_once() -> None:
    facts = one_switch(32.0, 16)
    assert bad(check_pcie(HOST, card_rails(), from_dict(facts), "preflight")) == [("pcie.path", "warning")]
    (finding,) = shared(facts)
    assert finding.subject == f"PCIe link at {UPSTREAM}"
    assert finding.observed == "it carries 459 Gb/s, but rail0, rail1 together need 800 Gb/s"
    assert shared(facts, 200) == []
    assert len(shared(facts, None, "link")) == 1


def test_a_link_that_caps_a_rail_alone_is_not_reported_again_as_shared() -> None:
    facts = one_switch(16.0, 8)
    for name in ("mlx5_0", "mlx5_1"):
        facts["devices"][name]["pci"]["narrowest"] = {"address": UPSTREAM, "speed_gtps": 16.0, "width": 8}
    assert shared(facts) == []
    assert bad(check_pcie(HOST, card_rails(), from_dict(facts), "preflight")) == [("pcie.path", "error")] * 2


def test_two_ports_of_one_card_share_its_slot() -> None:
    facts = card(16.0, 16)
    facts["devices"]["mlx5_1"]["pci"]["hops"] = first_pci(facts)["hops"]
    (finding,) = shared(facts, 200)
    assert (finding.status, finding.observed) == ("warning", "it carries 229 Gb/s, but rail0, rail1 together need 400 Gb/s")


def test_only_rails_with_a_card_and_a_rate_share_a_link_and_only_links_that_report_theirs() -> None:
    facts = one_switch(32.0, 16)
    first_pci(facts)["hops"][1]["width"] = None
    assert [finding.subject for finding in shared(facts)] == [f"PCIe link at {ROOT}"]
    first_port(facts)["state"] = "DOWN"
    assert shared(facts, None, "link") == []
    facts = one_switch(32.0, 16)
    facts["devices"]["mlx5_0"]["software"] = True
    assert shared(facts) == []


def test_what_a_path_must_carry() -> None:
    assert needed_gbps(400) == pytest.approx(372.4)


@pytest.mark.parametrize(("speed_gtps", "words"), [(2.5, "Gen1 x4"), (64.0, "Gen6 x4"), (12.0, "12 GT/s x4")])
def test_links_in_words(speed_gtps: float, words: str) -> None:
    assert link_words(speed_gtps, 4) == words


@pytest.mark.parametrize("stage", ["preflight", "link"])
@pytest.mark.parametrize("own", [None, 32.0], ids=["VF", "PF"])
def test_bridges_of_a_virtual_machine_are_not_judged(stage: str, own: float | None) -> None:
    """Above a VF, which reports no link, QEMU's root port says 2.5 GT/s x1."""
    facts = uplink(DOWNSTREAM, 2.5, 1)
    first_pci(facts).update(speed_gtps=own, width=own and 16)
    rate_gbps = 400 if stage == "preflight" else None
    assert ("pcie.path", "error") in bad(list(links(facts, rate_gbps, stage).values()))
    facts["iommu"] = {"present": False, "mode": "off", "virtual_machine": True}
    assert links(facts, rate_gbps, stage)["pcie.path"].status == ("not_applicable" if own is None else "ok")


def test_a_nic_that_is_absent_in_a_virtual_machine_is_the_error_of_another_check() -> None:
    """intent.nic says that it is absent: nothing about its path is unknown."""
    facts = {**card(16.0, 8), "devices": {}, "netdevs": {}, "nics": {}}
    facts["iommu"] = {"present": False, "mode": "off", "virtual_machine": True}
    assert {check: each.status for check, each in links(facts).items()} == dict.fromkeys(("pcie.link", "pcie.path"), "not_applicable")


def test_the_own_link_of_a_card_is_judged_in_a_virtual_machine() -> None:
    facts = {**card(16.0, 8), "iommu": {"present": False, "mode": "off", "virtual_machine": True}}
    assert links(facts)["pcie.path"].status == "error"
