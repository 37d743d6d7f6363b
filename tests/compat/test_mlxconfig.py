# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mlxconfig and mstconfig of real adapters, read where they lie. The values were read in the captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Mlxconfig, Setting, Value, parse_mlxconfig

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "mlxconfig"


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def row(default: Value | None, current: Value | None, next_boot: Value | None, *, marked: bool = False) -> Setting:
    return Setting(default, current, next_boot, marked=marked, read_only=False)


def same(text: str, number: int | None) -> Setting:
    return row(Value(text, number), Value(text, number), Value(text, number))


OFF, ON = Value("False", 0), Value("True", 1)

WHOLE = {
    "ml-mstconfig-cx7-verbosity-3col": Mlxconfig(
        device="01:00.0",
        device_type="ConnectX7",
        name="CX71143DMC-CDAE_FB_Ax",
        description="ConnectX-7 Ethernet adapter card; 100 GbE OCP3.0; Single-port QSFP; Multi Host; 2 Host; PCIe 4.0 x16; "
        "Crypto and Secure Boot",
        settings={"SWP_L4_CHECKSUM_MODE": same("DEVICE_DEFAULT", 0)},
        failed_tlvs=[],
    ),
    "nicop-mlxconfig-q-array-elements": Mlxconfig(
        None, None, None, None, {f"ESWITCH_HAIRPIN_DESCRIPTORS[{index}]": same("128", 128) for index in range(8)}, []
    ),
    "nicop-mlxconfig-q-array-row": Mlxconfig(
        device=None,
        device_type="ConnectX4",
        name=None,
        description=None,
        settings={
            "KEEP_IB_LINK_UP_P2": row(OFF, ON, ON, marked=True),
            "KEEP_LINK_UP_ON_BOOT_P2": same("False", 0),
            "ESWITCH_HAIRPIN_DESCRIPTORS": same("Array[0..7]", None),
            "MEMIC_SIZE_LIMIT": row(Value("_256KB", 1), Value("_256KB", 1), Value("DISABLED", 0), marked=True),
        },
        failed_tlvs=[],
    ),
}
PARTS = {
    "ml-mstconfig-cx4lx": (
        115,
        {
            "MEMIC_BAR_SIZE": row(None, None, Value("0", 0)),
            "MEMIC_SIZE_LIMIT": row(None, None, Value("_256KB", 1)),
            "NUM_OF_VFS": row(None, None, Value("8", 8)),
            "SRIOV_EN": row(None, None, ON),
            "ROCE_CC_ALGORITHM_P1": row(None, None, Value("ECN", 0)),
            "CNP_DSCP_P1": row(None, None, Value("48", 48)),
            "MIN_TIME_BETWEEN_CNPS_P2": row(None, None, Value("0", 0)),
            "DCBX_WILLING_P1": row(None, None, ON),
            "NUM_OF_VL_P1": row(None, None, Value("_4_VLs", 3)),
            "PCI_WR_ORDERING": row(None, None, Value("per_mkey", 0)),
            "IP_VER": row(None, None, Value("IPv4", 0)),
            "EXP_ROM_UEFI_x86_ENABLE": row(None, None, OFF),
            "ADVANCED_PCI_SETTINGS": row(None, None, OFF),
        },
    ),
    "sriov-operator-mstconfig-cx4lx-3col-template": (
        155,
        {
            "MEMIC_BAR_SIZE": same("0", 0),
            # The placeholders of a template are text like any other.
            "NUM_OF_VFS": row(Value("8", 8), Value("%d", None), Value("%d", None), marked=True),
            "SRIOV_EN": row(Value("%s", 0), Value("%s", 1), Value("%s", 1), marked=True),
            "PCI_DOWNSTREAM_PORT_OWNER": same("Array[0..15]", None),
            "PCI_ATOMIC_MODE": same("PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED", 0),
            "DCR_LIFO_SIZE": same("16384", 16384),
            "ROCE_CC_PRIO_MASK_P1": same("255", 255),
            "CNP_DSCP_P2": same("48", 48),
            "LLDP_NB_RX_MODE_P1": same("ALL", 2),
            "ROCE_CONTROL": row(Value("ROCE_ENABLE", 2), Value("DEVICE_DEFAULT", 0), Value("ROCE_ENABLE", 2), marked=True),
            "LEGACY_BOOT_PROTOCOL": row(Value("PXE", 1), Value("PXE", 1), Value("NONE", 0), marked=True),
            "SAFE_MODE_THRESHOLD": same("10", 10),
            "SAFE_MODE_ENABLE": same("True", 1),
        },
    ),
}
#: What `mlxfwmanager --query-format XML` says, whatever its name.
OTHER = "carbide-mlxconfig.out"


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_of_short_ones(name: str) -> None:
    assert parse_mlxconfig(capture(name)) == {WHOLE[name].device: WHOLE[name]}


def only(adapters: dict[str | None, Mlxconfig]) -> Mlxconfig:
    assert len(adapters) == 1
    return next(iter(adapters.values()))


@pytest.mark.parametrize("name", PARTS)
def test_the_first_the_last_and_the_odd_rows_of_long_ones(name: str) -> None:
    count, rows = PARTS[name]
    adapter = only(parse_mlxconfig(capture(name)))
    assert len(adapter.settings) == count
    assert {setting: adapter.settings[setting] for setting in rows} == rows
    (first, *_middle, last), (first_row, *_rows, last_row) = adapter.settings, rows
    assert (first, last) == (first_row, last_row)
    assert [setting for setting, row in adapter.settings.items() if row.marked] == [setting for setting, row in rows.items() if row.marked]
    assert "LINK_TYPE_P1" not in adapter.settings
    assert adapter.failed_tlvs == []


@pytest.mark.parametrize(
    ("name", "device", "device_type", "board", "description"),
    [
        ("ml-mstconfig-cx4lx", "01:00.1", "ConnectX4LX", None, None),
        (
            "sriov-operator-mstconfig-cx4lx-3col-template",
            "19:00.0",
            "ConnectX4LX",
            "0R887V",
            "MCX422A-ACAA ConnectX-4 Lx EN Dual Port SFP28; 25GbE for Dell rack NDC",
        ),
    ],
)
def test_the_adapters(name: str, device: str, device_type: str, board: str | None, description: str | None) -> None:
    adapter = parse_mlxconfig(capture(name))[device]
    assert (adapter.device, adapter.device_type, adapter.name, adapter.description) == (device, device_type, board, description)


def test_a_mark_alone_does_not_mean_that_a_reboot_is_pending() -> None:
    adapter = only(parse_mlxconfig(capture("sriov-operator-mstconfig-cx4lx-3col-template")))
    pending = [name for name, setting in adapter.settings.items() if setting.reboot_pending]
    assert pending == ["ROCE_CONTROL", "LEGACY_BOOT_PROTOCOL"]
    adapter = only(parse_mlxconfig(capture("nicop-mlxconfig-q-array-row")))
    assert [adapter.settings[name].reboot_pending for name in ("KEEP_IB_LINK_UP_P2", "MEMIC_SIZE_LIMIT")] == [False, True]


def test_another_tool_is_refused() -> None:
    with pytest.raises(ParseError, match="</Devices>"):
        parse_mlxconfig(capture(OTHER))


def test_no_capture_is_left_out() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == {*WHOLE, *PARTS, OTHER}
