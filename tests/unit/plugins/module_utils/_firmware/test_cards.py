# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings as facts: which tool answers, and what is known of a setting that it does not list."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import card_of, cards_of, read_firmware
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import read_devices
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.firmware import CARD, ROWS, listing, query
from tests.unit.builders.trees import mlx5_machine, soft_roce_machine

NAMES = ["LINK_TYPE_P1", "LINK_TYPE_P2", "ATS_ENABLED"]


def setting(*values: str) -> dict[str, object]:
    return {"default": values[0], "current": values[1], "next_boot": values[2], "read_only": False}


def test_each_setting_that_is_asked_for() -> None:
    runner = FakeRunner([(query(), 0, listing(ROWS), "")])
    settings = {
        "LINK_TYPE_P1": setting("IB(1)", "IB(1)", "IB(1)"),
        "LINK_TYPE_P2": setting("IB(1)", "ETH(2)", "ETH(2)"),
        "ATS_ENABLED": None,
    }
    assert read_firmware(runner, [CARD], NAMES) == {CARD: {"tool": "mstconfig", "settings": settings, "error": None}}


def test_mlxconfig_where_there_is_no_mstconfig() -> None:
    runner = Without(["mstconfig"], [(query("mlxconfig"), 0, listing(ROWS), "")])
    assert read_firmware(runner, [CARD], NAMES)[CARD]["tool"] == "mlxconfig"


def test_no_tool() -> None:
    found = read_firmware(Without(["mstconfig", "mlxconfig"], []), [CARD], NAMES)
    assert found == {CARD: {"tool": None, "settings": {}, "error": "neither mstconfig nor mlxconfig is installed"}}


def test_an_error_of_the_tool_is_quoted_and_nothing_is_known() -> None:
    runner = Without(["mlxconfig"], [(query(), 3, "-E- Failed to open the device\n", "")])
    entry = read_firmware(runner, [CARD], NAMES)[CARD]
    assert (entry["tool"], entry["settings"]) == ("mstconfig", {})
    assert "Failed to open the device" in entry["error"]
    assert entry["error"].endswith("(`mstconfig -d 0000:3d:00.0 -e q`)")


def test_a_complaint_beside_the_output_is_quoted() -> None:
    runner = Without(["mlxconfig"], [(query(), 3, "-E- Failed to open the device\n", "No such device or address\n")])
    assert read_firmware(runner, [CARD], NAMES)[CARD]["error"].endswith("(`mstconfig -d 0000:3d:00.0 -e q`: No such device or address)")


def test_a_card_that_is_too_new_for_mstconfig_is_asked_with_mlxconfig() -> None:
    runner = FakeRunner([(query(), 3, "-E- Unsupported device\n", ""), (query("mlxconfig"), 0, listing(ROWS), "")])
    entry = read_firmware(runner, [CARD], NAMES)[CARD]
    assert (entry["tool"], entry["error"]) == ("mlxconfig", None)


def test_what_is_not_listed_is_unknown_where_something_could_not_be_read() -> None:
    runner = FakeRunner([(query(), 3, listing(ROWS, failed="nv_pci_conf"), "")])
    entry = read_firmware(runner, [CARD], NAMES)[CARD]
    assert list(entry["settings"]) == ["LINK_TYPE_P1", "LINK_TYPE_P2"]
    assert entry["error"] == "mstconfig could not read all settings of 0000:3d:00.0: nv_pci_conf"


def test_an_element_of_an_array_is_reported_as_the_array() -> None:
    runner = FakeRunner([(query(), 0, listing(ROWS), "")])
    name = "ESWITCH_HAIRPIN_DESCRIPTORS[0]"
    assert read_firmware(runner, [CARD], [name])[CARD]["settings"][name]["next_boot"] == "Array[0..7]"


def cards(root: Path) -> list[str]:
    sys = SysRoot(str(root))
    return cards_of(read_devices(sys, read_netdevs(sys), PciReader(sys), counters=False))


def test_a_card_is_its_function_0_and_stands_once(tmp_path: Path) -> None:
    assert card_of("0000:3d:00.1") == "0000:3d:00.0"
    assert cards(mlx5_machine(tmp_path)) == ["0000:3d:00.0"]


def test_software_devices_are_no_cards(tmp_path: Path) -> None:
    assert cards(soft_roce_machine(tmp_path)) == []
