# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of mlxconfig and mstconfig. Their forms are those of mlxconfig/mlxcfg_ui.cpp of mstflint (2014 to 2026)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Mlxconfig, Setting, Value, parse_mlxconfig
from tests.unit.builders.garbled import garbled, read_or_refused

PLAIN = """
Device #1:
----------

Device type:        ConnectX7
Name:               MCX75310AAS-NEA_Ax
Description:        NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP; PCIe 5.0 x16
Device:             /dev/mst/mt4129_pciconf0

Configurations:                                          Next Boot
        MEMIC_SIZE_LIMIT                            _256KB(1)
        ESWITCH_HAIRPIN_DESCRIPTORS                 Array[0..7]
 RO     INTERNAL_CPU_MODEL                          N/A
        NUM_OF_VFS                                  16
        LINK_TYPE_P1                                IB(1)
"""
HEAD = """
Device #2:
----------

Device type:        ConnectX6DX
Name:               N/A
Description:        N/A
Device:             0000:c1:00.0

Configurations:                                     Default              Current              Next Boot
"""
ROWS = """        NUM_OF_PF                                   2                    2                    2
*       NUM_OF_VFS                                  8                    8                    16
*       SRIOV_EN                                    False(0)             True(1)              True(1)
*RO     QOS_TRUST_STATE_P1                          TRUST_PCP(1)         N/A                  TRUST_DSCP(2)
        EXP_ROM_UEFI_x86_ENABLE                     False(0)             False(0)             False(0)
*       PCI_ATOMIC_MODE                             PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0) PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0) X(1)
"""
LEGEND = """The '*' shows parameters with next value different from default/current value.

The 'RO' shows parameters which are for read only and cannot be changed
"""
VERBOSE = HEAD + ROWS + LEGEND
LACKING = """
Device #1:
----------

Device type:        ConnectX6DX
Name:               N/A
Description:        N/A
Device:             0000:c1:00.0

Configurations:                                          Next Boot
-E- The Device doesn't support LINK_TYPE_P1 parameter
"""


def next_boot(text: str, number: int | None, **more: bool) -> Setting:
    return Setting(None, None, Value(text, number), **{"marked": False, "read_only": False, **more})


def test_a_query_reports_what_the_next_boot_brings() -> None:
    assert parse_mlxconfig(PLAIN) == {
        "/dev/mst/mt4129_pciconf0": Mlxconfig(
            device="/dev/mst/mt4129_pciconf0",
            device_type="ConnectX7",
            name="MCX75310AAS-NEA_Ax",
            description="NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP; PCIe 5.0 x16",
            settings={
                "MEMIC_SIZE_LIMIT": next_boot("_256KB", 1),
                "ESWITCH_HAIRPIN_DESCRIPTORS": next_boot("Array[0..7]", None),
                "INTERNAL_CPU_MODEL": Setting(None, None, None, marked=False, read_only=True),
                "NUM_OF_VFS": next_boot("16", 16),
                "LINK_TYPE_P1": next_boot("IB", 1),
            },
            failed_tlvs=[],
        )
    }


def test_a_verbose_query_has_three_columns_and_marks() -> None:
    adapter = parse_mlxconfig(VERBOSE)["0000:c1:00.0"]
    atomic = Value("PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED", 0)
    assert (adapter.device_type, adapter.name, adapter.description) == ("ConnectX6DX", None, None)
    assert adapter.settings == {
        "NUM_OF_PF": Setting(Value("2", 2), Value("2", 2), Value("2", 2), marked=False, read_only=False),
        "NUM_OF_VFS": Setting(Value("8", 8), Value("8", 8), Value("16", 16), marked=True, read_only=False),
        "SRIOV_EN": Setting(Value("False", 0), Value("True", 1), Value("True", 1), marked=True, read_only=False),
        "QOS_TRUST_STATE_P1": Setting(Value("TRUST_PCP", 1), None, Value("TRUST_DSCP", 2), marked=True, read_only=True),
        "EXP_ROM_UEFI_x86_ENABLE": Setting(Value("False", 0), Value("False", 0), Value("False", 0), marked=False, read_only=False),
        "PCI_ATOMIC_MODE": Setting(atomic, atomic, Value("X", 1), marked=True, read_only=False),
    }


@pytest.mark.parametrize(
    ("name", "pending"), [("NUM_OF_PF", False), ("NUM_OF_VFS", True), ("SRIOV_EN", False), ("QOS_TRUST_STATE_P1", None)]
)
def test_a_reboot_is_pending_where_the_next_value_differs_from_the_current_one(name: str, pending: bool | None) -> None:
    assert parse_mlxconfig(VERBOSE)["0000:c1:00.0"].settings[name].reboot_pending is pending


def test_the_elements_of_an_array_are_not_reported() -> None:
    row = "        FLEX_PARSER                                 Array[0..7]          Array[0..7]          Array[0..7]         \n"
    assert parse_mlxconfig(HEAD + row)["0000:c1:00.0"].settings["FLEX_PARSER"].reboot_pending is None


def test_what_an_adapter_lacks_is_no_key() -> None:
    assert parse_mlxconfig(VERBOSE)["0000:c1:00.0"].settings.get("LINK_TYPE_P1") is None


def test_a_query_of_what_an_adapter_lacks_is_an_error_that_quotes_it() -> None:
    with pytest.raises(ParseError, match="-E- The Device doesn't support LINK_TYPE_P1 parameter"):
        parse_mlxconfig(LACKING)
    with pytest.raises(ParseError, match="LINK_TYPE_P1"):
        parse_mlxconfig(PLAIN + LACKING)


def test_every_adapter_of_a_query_without_device() -> None:
    adapters = parse_mlxconfig(PLAIN + VERBOSE)
    assert list(adapters) == ["/dev/mst/mt4129_pciconf0", "0000:c1:00.0"]
    assert [len(adapter.settings) for adapter in adapters.values()] == [5, 6]


def test_the_same_adapter_twice_is_read_once_and_must_be_the_same() -> None:
    assert parse_mlxconfig(PLAIN + PLAIN) == parse_mlxconfig(PLAIN)
    with pytest.raises(ParseError, match="/dev/mst/mt4129_pciconf0"):
        parse_mlxconfig(PLAIN + PLAIN.replace("IB(1)", "ETH(2)"))


def test_the_oldest_form() -> None:
    text = (
        "\nDevice #1:\n----------\n\nDevice type:    ConnectX3Pro    \nPCI device:     0000:08:00.0    \n\n"
        "Configurations:                              Current\n         SRIOV_EN                            1\n"
    )
    adapter = parse_mlxconfig(text)["0000:08:00.0"]
    assert adapter.settings == {"SRIOV_EN": Setting(None, Value("1", 1), None, marked=False, read_only=False)}


def test_the_column_of_a_change_that_is_asked_for_is_left_out() -> None:
    text = HEAD.replace("Next Boot", "Next Boot            New").replace("Default              Current", "")
    text += "        SRIOV_EN                                    False(0)             True(1)             \n"
    assert parse_mlxconfig(text)["0000:c1:00.0"].settings == {"SRIOV_EN": next_boot("False", 0)}


def test_a_mail_client_wraps_rows_titles_and_descriptions() -> None:
    wrapped = (
        PLAIN.replace("HHHL Adapter card; ", "HHHL Adapter card;\n")
        .replace("Next Boot", "Next\n Boot")
        .replace("Array[0..7]", "\n\nArray[0..7]")
        .replace("IB(1)", "\r\nIB(1)")
    )
    assert parse_mlxconfig(wrapped) == parse_mlxconfig(PLAIN)
    verbose = VERBOSE.replace("Current              Next Boot", "Current\nNext Boot").replace("True(1)\n", "\nTrue(1)\n")
    assert parse_mlxconfig(verbose) == parse_mlxconfig(VERBOSE)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "\n    "),
        lambda text: text.replace("    ", "\t"),
        lambda text: text.replace("    ", "\u00a0   "),
        lambda text: text.replace("\n", "             \n"),
        lambda text: "# mlxconfig -e query\n" + text + "root@node1:~# \n",
        lambda text: text.replace("        NUM_OF_PF", "       (...)\n        NUM_OF_PF"),
    ],
    ids=["crlf", "blank-lines", "indented", "tabs", "no-break-spaces", "padded", "prompts", "elided"],
)
def test_blanks_and_other_lines_do_not_matter(spoil: Callable[[str], str]) -> None:
    assert parse_mlxconfig(spoil(VERBOSE)) == parse_mlxconfig(VERBOSE)


def test_tlvs_that_could_not_be_read_are_reported() -> None:
    failed = (
        "-E- Failed to query some of the TLVs:\n    Failed to query the current values of the following TLVs:\n"
        "    nv_roce_cc_P1_M0 nv_sw_offload_P0_M0 \n    Failed to query the next values of the following TLVs:\n    nv_x_P0_M0 \n"
    )
    adapters = parse_mlxconfig(PLAIN + failed + VERBOSE)
    assert adapters["/dev/mst/mt4129_pciconf0"].failed_tlvs == ["nv_roce_cc_P1_M0", "nv_sw_offload_P0_M0", "nv_x_P0_M0"]
    assert len(adapters["/dev/mst/mt4129_pciconf0"].settings) == 5
    assert adapters["0000:c1:00.0"].failed_tlvs == []


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("-E- No devices found, mst might be stopped.", "mst might be stopped"),
        ("bash: mlxconfig: command not found", "command not found"),
        ("        LINK_TYPE_P1                                IB(1)\n", "LINK_TYPE_P1"),
        (HEAD, "Next Boot"),
        (HEAD.partition("Configurations")[0], "0000:c1:00.0"),
        (HEAD.replace("Default              Current              Next Boot", "Value"), "Value"),
        (VERBOSE.partition("True(1)")[0], "SRIOV_EN False(0)"),
        (VERBOSE.partition("rue(1)")[0], "SRIOV_EN False(0) T"),
        (VERBOSE.replace("False(0)             True(1)              True(1)", "False(0)             True(1)"), "SRIOV_EN"),
        (VERBOSE.replace("False(0)             True(1) ", "False(0)  True(1) False(0)  "), "SRIOV_EN"),
        (HEAD + "        NUM_OF_PF                     2      2      TRUE(", "TRUE("),
    ],
    ids=range(12),
)
def test_what_is_no_table_is_an_error_that_quotes_it(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mlxconfig(text)
    assert quoted in str(caught.value)


@given(garbled(PLAIN) | garbled(VERBOSE) | garbled(PLAIN + VERBOSE))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_mlxconfig, text)
