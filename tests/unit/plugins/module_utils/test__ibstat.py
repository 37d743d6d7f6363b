# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outputs of ibstat and ibstatus: what they say, in the words of sysfs, and what is refused as cut off."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils import _infiniband
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ibstat import (
    IbstatDevice,
    IbstatPort,
    IbstatusPort,
    parse_ibstat,
    parse_ibstatus,
)
from tests.unit.garbled import garbled, read_or_refused

DEVICE = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 2
\tFirmware version: 28.39.1002
\tHardware version: 0
\tNode GUID: 0x0002c90300f9bfa0
\tSystem image GUID: 0x0002c90300f9bfa3
"""
PORT_1 = """\
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 932
\t\tLMC: 1
\t\tSM lid: 1
\t\tCapability mask: 0xa751e848
\t\tPort GUID: 0x0002c90300f9bfa1
\t\tLink layer: InfiniBand
"""
PORT_2 = """\
\tPort 2:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 40
\t\tEffective speed: 40
\t\tBase lid: 0
\t\tLMC: 0
\t\tSM lid: 65535
\t\tCapability mask: 0x00010000
\t\tPort GUID: 0x0000000000000000
\t\tLink layer: Ethernet
"""
IBSTAT = DEVICE + PORT_1 + PORT_2
UP = IbstatPort("ACTIVE", "LinkUp", 400.0, 932, 1, 1, 0xA751E848, "0002:c903:00f9:bfa1", "InfiniBand")
DOWN = IbstatPort("DOWN", "Disabled", 40.0, None, 0, None, 0x00010000, None, "Ethernet")
IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0002:c903:00f9:bfa1
\tbase lid:\t 0x3a4
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_0' port 2 status:
\tdefault gid:\t unknown
\tbase lid:\t 0x0
\tsm lid:\t\t unknown
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
\trate:\t\t 40 Gb/sec (4X QDR)
\tlink_layer:\t Ethernet

"""


def test_a_device_with_two_ports() -> None:
    assert parse_ibstat(IBSTAT) == {
        "mlx5_0": IbstatDevice(
            hca_type="MT4129",
            number_of_ports=2,
            firmware="28.39.1002",
            hardware_version="0",
            node_guid="0002:c903:00f9:bfa0",
            sys_image_guid="0002:c903:00f9:bfa3",
            ports={"1": UP, "2": DOWN},
        )
    }


@pytest.mark.parametrize(
    "text",
    [
        IBSTAT.replace("\n", "\r\n"),
        IBSTAT.replace("\t", ""),
        IBSTAT.replace("\n", "\n\n"),
        IBSTAT.replace("\n", "\n> > "),
        IBSTAT.replace("\t", "\u00a0 \u00a0 "),
        "root@node1:~# ibstat\n" + IBSTAT + "root@node1:~# \n",
        IBSTAT.replace("\tPort 1", "\tNode description: a: b\n\tPort 1"),
        IBSTAT.rstrip(),
    ],
    ids=[
        "CRLF",
        "indentation lost",
        "blank lines",
        "quoted in a mail",
        "mail indentation",
        "prompts",
        "an unknown line",
        "no newline at the end",
    ],
)
def test_the_form_may_suffer_on_the_way(text: str) -> None:
    assert parse_ibstat(text) == parse_ibstat(IBSTAT)


def test_a_port_below_the_last_may_be_missing() -> None:
    assert parse_ibstat(DEVICE + PORT_2)["mlx5_0"].ports == {"2": DOWN}


def test_one_port_asked_for_alone() -> None:
    assert parse_ibstat("CA: 'mlx5_0'\n" + PORT_1.replace("\t", "")) == {
        "mlx5_0": IbstatDevice(None, None, None, None, None, None, {"1": UP})
    }


def test_a_device_without_ports() -> None:
    assert parse_ibstat(DEVICE.replace("ports: 2", "ports: 0"))["mlx5_0"].ports == {}


@pytest.mark.parametrize("kind", ["CA", "Switch", "Router", "iWARP RNIC", "???"])
def test_every_type_of_node(kind: str) -> None:
    text = f"{kind} 'cxgb4_0'\n\t{kind} type: T62100\n{PORT_1}"
    assert parse_ibstat(text)["cxgb4_0"].hca_type == "T62100"


def test_a_software_device_tells_little() -> None:
    device = DEVICE.replace("MT4129", "").replace("28.39.1002", "").replace("Hardware version: 0", "Hardware version: ")
    parsed = parse_ibstat(device + PORT_2)["mlx5_0"]
    assert (parsed.hca_type, parsed.firmware, parsed.hardware_version) == (None, None, None)


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("State: Active", "State: Initializing", "state", "INIT"),
        ("State: Active", "State: Armed", "state", "ARMED"),
        ("State: Active", "State: ???", "state", None),
        ("LinkUp", "Polling", "physical_state", "Polling"),
        ("LinkUp", "PhyTest", "physical_state", "Phy Test"),
        ("LinkUp", "No state change", "physical_state", None),
        ("LinkUp", "???", "physical_state", None),
        ("Rate: 400", "Rate: 2.5", "rate_gbps", 2.5),
        ("Rate: 400", "Rate: 40 (FDR10)", "rate_gbps", 40.0),
        ("Rate: 400", "Rate: 0", "rate_gbps", 0.0),
        ("layer: InfiniBand", "layer: IB", "link_layer", "InfiniBand"),
        ("layer: InfiniBand", "layer: Unknown", "link_layer", None),
        ("\t\tLMC: 1\n", "", "lmc", None),
    ],
)
def test_a_value(old: str, new: str, field: str, value: object) -> None:
    assert old in PORT_1
    assert getattr(parse_ibstat(DEVICE + PORT_1.replace(old, new) + PORT_2)["mlx5_0"].ports["1"], field) == value


@pytest.mark.parametrize("state", ["DOWN", "INIT", "ARMED", "ACTIVE"])
def test_the_states_are_those_of_sysfs(state: str) -> None:
    word = {"INIT": "Initializing"}.get(state, state.capitalize())
    text = DEVICE + PORT_1 + PORT_2.replace("State: Down", f"State: {word}")
    assert parse_ibstat(text)["mlx5_0"].ports["2"].state == _infiniband.parse_state(f"4: {state}")


def test_old_versions_name_no_link_layer() -> None:
    old = "".join(line for line in IBSTAT.splitlines(keepends=True) if "Link layer" not in line)
    assert [port.link_layer for port in parse_ibstat(old)["mlx5_0"].ports.values()] == [None, None]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("ibstat: command not found", "command not found"),
        ("$ ibstat | grep mlx5\nCA 'mlx5_0'\nCA 'mlx5_1'\n", "CA 'mlx5_0'"),
        (DEVICE, "System image GUID: 0x0002c90300f9bfa3"),
        (DEVICE + PORT_1, "Link layer: InfiniBand"),
        (DEVICE + PORT_2.partition("Port GUID")[0], "Capability mask: 0x00010000"),
        (IBSTAT.rpartition("\t\tLink")[0], "Port GUID: 0x0000000000000000"),
        (IBSTAT.rstrip()[:-2], "Link layer: Ethern"),
        (DEVICE + PORT_2.partition("00000\n")[0], "Port GUID: 0x00000000000"),
        (DEVICE + "\tPort 2:\n", "Port 2:"),
        (IBSTAT + IBSTAT, "CA 'mlx5_0'"),
        (DEVICE + PORT_2 + PORT_2, "Port 2:"),
        (IBSTAT.replace("\tPort 2:\n", ""), "State: Down"),
        (IBSTAT.replace("Rate: 400", "Rate: fast"), "Rate: fast"),
        (IBSTAT.replace("Rate: 400", "Rate: ٤"), "Rate: ٤"),
        (IBSTAT.replace("Base lid: 932", "Base lid: ²"), "Base lid: ²"),
        (IBSTAT.replace("State: Active", "State: Splendid"), "State: Splendid"),
        (IBSTAT.replace("ports: 2", "ports: " + "9" * 5000), "Number of ports: 9999"),
    ],
)
def test_anything_else_is_refused_and_the_line_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ibstat(text)
    assert quoted in str(caught.value)


def test_ibstatus() -> None:
    assert parse_ibstatus(IBSTATUS) == {
        "mlx5_0": {
            "1": IbstatusPort(
                default_gid="fe80:0000:0000:0000:0002:c903:00f9:bfa1",
                base_lid=932,
                sm_lid=1,
                state="ACTIVE",
                physical_state="LinkUp",
                rate=_infiniband.Rate(400.0, 4, "NDR"),
                link_layer="InfiniBand",
            ),
            "2": IbstatusPort(None, None, None, "DOWN", "Disabled", _infiniband.Rate(40.0, 4, "QDR"), "Ethernet"),
        }
    }


def test_ibstatus_of_a_kernel_without_link_layer() -> None:
    assert parse_ibstatus(IBSTATUS.replace(" Ethernet", " IB"))["mlx5_0"]["2"].link_layer == "InfiniBand"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("Fatal error:  No devices", "No devices"),
        (IBSTATUS.rpartition("\trate")[0], "phys state: 3: Disabled"),
        (IBSTATUS.rpartition("\tlink_layer")[0], "rate: 40 Gb/sec (4X QDR)"),
        (IBSTATUS + IBSTATUS, "port 1 status"),
        (IBSTATUS.replace("4: ACTIVE", "ACTIVE"), "state: ACTIVE"),
        (IBSTATUS.replace("0x3a4", "0x"), "base lid: 0x"),
    ],
)
def test_another_text_is_not_ibstatus(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ibstatus(text)
    assert quoted in str(caught.value)


@given(garbled(IBSTAT))
def test_nothing_but_a_parse_error_escapes_from_ibstat(text: str) -> None:
    assert read_or_refused(parse_ibstat, text)


@given(garbled(IBSTATUS))
def test_nothing_but_a_parse_error_escapes_from_ibstatus(text: str) -> None:
    assert read_or_refused(parse_ibstatus, text)


@given(st.integers(0, len(IBSTAT)))
def test_a_cut_output_is_refused_or_whole(end: int) -> None:
    with contextlib.suppress(ParseError):
        assert parse_ibstat(IBSTAT[:end]) == parse_ibstat(IBSTAT)
