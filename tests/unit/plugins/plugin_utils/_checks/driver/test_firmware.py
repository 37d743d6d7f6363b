# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver gate reports of firmware: settings that are not in force, and versions that are not the requested ones."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.firmware import check_firmware
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import ADDRESSES, HOST, card_facts, card_rails, of_first
from tests.unit.builders.firmware import dual_port, entry, intent, setting_facts

PSID = "MT_0000000838"


def setting(firmware: dict[str, Any] | None, settings: dict[str, Any] | None = None, link_layer: str = "Ethernet") -> Finding:
    facts = {**card_facts(link_layer), "firmware": {ADDRESSES[0]: firmware} if firmware is not None else None}
    return of_first(check_firmware(HOST, intent(card_rails(), settings), from_dict(facts)))["firmware.setting"]


@pytest.mark.parametrize(
    ("seen", "status", "words"),
    [
        (setting_facts("ETH(2)"), "ok", "LINK_TYPE_P1 is ETH(2)"),
        (setting_facts("IB(1)"), "error", "LINK_TYPE_P1 is IB(1) at the next boot, requested is ETH(2)"),
        (setting_facts("IB(1)", "ETH(2)"), "error", "LINK_TYPE_P1 is IB(1) at the next boot, requested is ETH(2)"),
        (setting_facts("ETH(2)", "IB(1)"), "error", "LINK_TYPE_P1 is pending: IB(1) now, ETH(2) at the next boot"),
        (setting_facts("ETH(2)", None), "unknown", "its current value is not reported"),
        (setting_facts(None), "unknown", "LINK_TYPE_P1 is not reported (N/A)"),
        (setting_facts("Array[0..7]"), "unknown", "LINK_TYPE_P1 is Array[0..7], which cannot be compared"),
        (None, "not_applicable", f"{ADDRESSES[0]} has no LINK_TYPE_P1"),
    ],
)
def test_one_setting(seen: dict[str, Any] | None, status: str, words: str) -> None:
    found = setting(entry(LINK_TYPE_P1=seen))
    assert found.status == status
    assert words in found.observed
    assert (found.remedy == "") == (status in ("ok", "not_applicable"))


def test_remedies() -> None:
    write = setting(entry(LINK_TYPE_P1=setting_facts("IB(1)"))).remedy
    assert "firmware_write_allowed=true" in write
    assert f"`mstconfig -y -d {ADDRESSES[0]} set LINK_TYPE_P1=2` there" in write
    reboot = setting(entry(LINK_TYPE_P1=setting_facts("ETH(2)", "IB(1)"))).remedy
    assert reboot == f"Reboot {HOST}, or run `mstfwreset -d {ADDRESSES[0]} -y reset` there (takes its links down)."
    assert "Remove the setting from rdma_firmware of node1" in setting(entry(LINK_TYPE_P1=setting_facts("IB(1)", read_only=True))).remedy


def test_all_that_is_wrong_is_named_and_the_error_comes_first() -> None:
    firmware = entry("could not read all", LINK_TYPE_P1=setting_facts("ETH(2)", "IB(1)"), SRIOV_EN=setting_facts("True(1)"))
    found = setting(firmware, {"ATS_ENABLED": 1, "SRIOV_EN": 0})
    assert found.status == "error"
    assert found.observed == (
        f"{ADDRESSES[0]}: LINK_TYPE_P1 is pending: IB(1) now, ETH(2) at the next boot; SRIOV_EN is True(1) at the next boot, requested "
        "is 0; "
        "ATS_ENABLED could not be read: could not read all"
    )
    assert "set SRIOV_EN=0`" in found.remedy


def test_what_the_card_lacks_does_not_hide_what_is_well() -> None:
    assert setting(entry(LINK_TYPE_P1=None, SRIOV_EN=setting_facts("False(0)")), {"SRIOV_EN": False}).status == "ok"


def test_nothing_known_is_unknown() -> None:
    found = setting(None, link_layer="InfiniBand")
    assert (found.status, found.observed) == ("unknown", f"{ADDRESSES[0]}: LINK_TYPE_P1 could not be read: the card was not read")
    found = setting({"tool": None, "settings": {}, "error": "neither mstconfig nor mlxconfig is installed"}, {"SRIOV_EN": 0})
    assert "neither mstconfig nor mlxconfig is installed" in found.observed
    assert "mstflint" in found.remedy


def test_no_request_and_no_card() -> None:
    found = setting(None)
    assert (found.status, found.observed) == ("not_applicable", "no setting is requested")
    soft = check_firmware(HOST, intent(card_rails(soft=True), {"SRIOV_EN": 0}), from_dict(card_facts()))
    assert {(each.check, each.status, each.observed) for each in soft if each.subject.startswith("rail 0")} == {
        ("firmware.setting", "not_applicable", "a software device has no firmware"),
        ("firmware.version", "not_applicable", "a software device has no firmware"),
    }


def test_two_ports_of_one_card_are_one_error() -> None:
    rails, facts = dual_port()
    ethernet, enabled = setting_facts("ETH(2)"), setting_facts("True(1)")
    facts["firmware"] = {ADDRESSES[0]: entry(LINK_TYPE_P1=ethernet, LINK_TYPE_P2=ethernet, SRIOV_EN=enabled)}
    found = [
        each.status for each in check_firmware(HOST, intent(rails, {"SRIOV_EN": 0}), from_dict(facts)) if each.check == "firmware.setting"
    ]
    assert found == ["error", "ok"]


def version(versions: dict[str, str], **device: Any) -> Finding:
    facts = card_facts()
    facts["devices"]["mlx5_0"].update({"firmware": "28.39.1002", "board_id": PSID, **device})
    return of_first(check_firmware(HOST, intent(card_rails(), **versions), from_dict(facts)))["firmware.version"]


@pytest.mark.parametrize(
    ("versions", "device", "status", "words"),
    [
        ({}, {}, "not_applicable", "no version is requested"),
        ({PSID: "28.39.1002"}, {}, "ok", f"28.39.1002 ({PSID})"),
        ({PSID: "28.42.1000"}, {}, "warning", f"28.39.1002 ({PSID})"),
        ({"MT_0000000001": "28.42.1000"}, {}, "not_applicable", f"no version is requested for {PSID}"),
        ({PSID: "28.42.1000"}, {"firmware": None}, "unknown", "its version is not known"),
        ({PSID: "28.42.1000"}, {"board_id": None}, "unknown", "its PSID is not known"),
    ],
)
def test_versions(versions: dict[str, str], device: dict[str, Any], status: str, words: str) -> None:
    found = version(versions, **device)
    assert (found.status, found.observed) == (status, words)


def test_firmware_is_burned_by_hand() -> None:
    found = version({PSID: "28.42.1000"})
    assert found.expected == "28.42.1000"
    assert f"`mstflint -d {ADDRESSES[0]} -i IMAGE burn`" in found.remedy
    assert HOST in found.remedy


def test_the_version_of_a_card_is_reported_once() -> None:
    rails, facts = dual_port()
    for device in facts["devices"].values():
        device.update(firmware="28.39.1002", board_id=PSID)
    judged = check_firmware(HOST, intent(rails, **{PSID: "28.42.1000"}), from_dict(facts))
    found = [each.status for each in judged if each.check == "firmware.version"]
    assert found == ["warning", "not_applicable"]
