# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings written: only what differs, in one call, read back, and what then waits for a reboot."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.ensure import DeviceResult, MlxconfigResult, ensure_settings
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.firmware import CARD, ROWS, listing, query

DONE = "\n Apply new Configuration? (y/n) [n] : y\nApplying... Done!\n-I- Please reboot machine to load new configurations.\n"
ETHERNET = {**ROWS, "LINK_TYPE_P1": ("IB(1)", "IB(1)", "ETH(2)")}


def write(*words: str) -> tuple[str, ...]:
    return ("mstconfig", "-y", "-d", CARD, "set", *words)


def ensure(settings: dict[str, Any], *calls: tuple[tuple[str, ...], int, str, str], check_mode: bool = False) -> MlxconfigResult:
    runner = FakeRunner(calls)
    return ensure_settings([{"device": CARD, "settings": settings}], runner=runner, check_mode=check_mode)


def only(result: MlxconfigResult) -> DeviceResult:
    assert len(result.devices) == 1
    return result.devices[0]


def test_only_what_differs_is_written_in_one_call_and_read_back() -> None:
    after = {**ETHERNET, "SRIOV_EN": ("False(0)", "False(0)", "True(1)"), "ROCE_CC_MASK": ("0x0(0)", "0x0(0)", "0xff(255)")}
    settings = {"LINK_TYPE_P1": "ETH(2)", "LINK_TYPE_P2": 2, "NUM_OF_VFS": "8", "SRIOV_EN": True, "ROCE_CC_MASK": 255, "ATS_ENABLED": 1}
    calls = [(query(), 0, listing(ROWS), ""), (write("LINK_TYPE_P1=2", "SRIOV_EN=1", "ROCE_CC_MASK=0xff"), 0, DONE, "")]
    result = ensure(settings, *calls, (query(), 0, listing(after), ""))
    device = only(result)
    assert result.changed
    assert device.written == {
        "LINK_TYPE_P1": {"before": "IB(1)", "after": "ETH(2)"},
        "SRIOV_EN": {"before": "False(0)", "after": "True(1)"},
        "ROCE_CC_MASK": {"before": "0x0(0)", "after": "0xff(255)"},
    }
    assert device.not_applicable == ["ATS_ENABLED"]
    assert device.pending["LINK_TYPE_P1"] == {"current": "IB(1)", "next_boot": "ETH(2)"}
    assert set(device.pending) == set(device.written)
    assert device.error is None
    assert result.reset_commands == [f"mstfwreset -d {CARD} -y reset"]


def test_nothing_is_written_where_nothing_differs() -> None:
    result = ensure({"LINK_TYPE_P1": "ib", "NUM_OF_VFS": 8}, (query(), 0, listing(ROWS), ""))
    assert (result.changed, result.errors, result.reboot_required, result.reset_commands, result.diffs) == (False, [], False, [], [])


def test_what_was_written_before_still_waits_for_a_reboot() -> None:
    device = only(ensure({"LINK_TYPE_P1": 2}, (query(), 0, listing(ETHERNET), "")))
    assert device.written == {}
    assert device.reboot_required
    assert device.why == f"{CARD} waits for a reboot or a reset: LINK_TYPE_P1 is IB(1) until then, and ETH(2) after it"


def test_what_others_have_set_is_listed_separately() -> None:
    device = only(ensure({"NUM_OF_VFS": 8}, (query(), 0, listing(ETHERNET), "")))
    assert device.pending == {}
    assert device.pending_others == {"LINK_TYPE_P1": {"current": "IB(1)", "next_boot": "ETH(2)"}}
    assert not device.reboot_required


def test_taking_back_what_another_has_set_needs_no_reboot() -> None:
    calls = [(query(), 0, listing(ETHERNET), ""), (write("LINK_TYPE_P1=1"), 0, DONE, ""), (query(), 0, listing(ROWS), "")]
    result = ensure({"LINK_TYPE_P1": 1}, *calls)
    assert (result.changed, result.reboot_required) == (True, False)


def test_a_check_run_reports_the_same_and_writes_nothing() -> None:
    result = ensure({"LINK_TYPE_P1": "ETH(2)"}, (query(), 0, listing(ROWS), ""), check_mode=True)
    assert result.changed
    assert only(result).pending == {"LINK_TYPE_P1": {"current": "IB(1)", "next_boot": "ETH(2)"}}
    assert [(diff["before"], diff["after"]) for diff in result.diffs] == [("LINK_TYPE_P1 = IB(1)\n", "LINK_TYPE_P1 = ETH(2)\n")]
    assert result.differences == [f"{CARD}: LINK_TYPE_P1 is IB(1) at the next boot, requested ETH(2)"]


def test_a_check_run_goes_on_where_the_tool_is_not_installed_yet() -> None:
    requests = [{"device": CARD, "settings": {"LINK_TYPE_P1": 2}}]
    result = ensure_settings(requests, runner=Without(["mstconfig", "mlxconfig"], []), check_mode=True)
    assert (result.changed, result.errors) == (True, [])
    result = ensure_settings(requests, runner=Without(["mstconfig", "mlxconfig"], []), check_mode=False)
    assert (result.changed, result.errors) == (False, [f"{CARD}: neither mstconfig nor mlxconfig is installed"])


def test_a_write_that_does_not_stick_is_an_error_and_a_change() -> None:
    calls = [(query(), 0, listing(ROWS), ""), (write("LINK_TYPE_P1=2"), 0, DONE, ""), (query(), 0, listing(ROWS), "")]
    result = ensure({"LINK_TYPE_P1": 2}, *calls)
    assert result.errors == [f"{CARD}: did not stick: LINK_TYPE_P1 is IB(1) after it was set to 2"]
    assert result.changed


def test_a_write_that_is_refused_is_quoted() -> None:
    output = "Applying... Failed!\n-E- Failed to set configuration: The device is busy\n"
    result = ensure({"LINK_TYPE_P1": 2}, (query(), 0, listing(ROWS), ""), (write("LINK_TYPE_P1=2"), 3, output, ""))
    assert (
        "`mstconfig -y -d 0000:3d:00.0 set LINK_TYPE_P1=2` failed: -E- Failed to set configuration: The device is busy" in result.errors[0]
    )
    assert not result.changed


def test_a_power_cycle_is_more_than_a_reboot() -> None:
    output = DONE.replace("reboot", "power cycle")
    calls = [(query(), 0, listing(ROWS), ""), (write("LINK_TYPE_P1=2"), 0, output, ""), (query(), 0, listing(ETHERNET), "")]
    assert only(ensure({"LINK_TYPE_P1": 2}, *calls)).why.endswith(f"{CARD} wants a power cycle, a reboot is not enough")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ESWITCH_HAIRPIN_DESCRIPTORS": 64}, "ESWITCH_HAIRPIN_DESCRIPTORS is an array (Array[0..7])"),
        ({"ESWITCH_HAIRPIN_DESCRIPTORS[0]": 64}, "ESWITCH_HAIRPIN_DESCRIPTORS[0] is an array"),
        ({"NUM_OF_VFS": 16}, "NUM_OF_VFS is read-only: it is 8, and cannot be made 16"),
        ({"SRIOV_EN": True}, "SRIOV_EN: mstconfig does not report its value (N/A)"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_else_is_written_there(settings: dict[str, Any], words: str) -> None:
    rows = {**ROWS, "SRIOV_EN": ("N/A", "N/A", "N/A")}
    result = ensure({**settings, "LINK_TYPE_P1": 2}, (query(), 0, listing(rows, read_only=["NUM_OF_VFS"]), ""))
    assert words in result.errors[0]
    assert not result.changed


def test_a_read_only_setting_that_is_as_requested_is_no_error() -> None:
    assert ensure({"NUM_OF_VFS": 8}, (query(), 0, listing(ROWS, read_only=["NUM_OF_VFS"]), "")).errors == []


def test_a_setting_that_could_not_be_read_is_no_lack() -> None:
    result = ensure({"ATS_ENABLED": 1}, (query(), 3, listing(ROWS, failed="nv_pci_conf"), ""))
    assert "ATS_ENABLED could not be read" in result.errors[0]
    assert only(result).not_applicable == []


def test_one_device_does_not_hide_another() -> None:
    other = "0000:5e:00.0"
    calls = [
        (query(), 3, "-E- Failed to open the device\n", ""),
        (query("mlxconfig"), 3, "-E- Failed to open the device\n", ""),
        (query(device=other), 0, listing(ROWS, device=other), ""),
    ]
    runner = FakeRunner(calls)
    requests = [{"device": device, "settings": {"LINK_TYPE_P1": 1}} for device in (CARD, other)]
    result = ensure_settings(requests, runner=runner, check_mode=False)
    assert [device.error is None for device in result.devices] == [False, True]


def test_requests_that_make_no_sense() -> None:
    with pytest.raises(ApplyError, match=f"named twice.*{CARD}"):
        ensure_settings([{"device": CARD, "settings": {}}] * 2, runner=FakeRunner([]), check_mode=False)
    with pytest.raises(ApplyError, match="not a number, a text or a boolean: LINK_TYPE_P1 of"):
        ensure_settings([{"device": CARD, "settings": {"LINK_TYPE_P1": None}}], runner=FakeRunner([]), check_mode=False)
