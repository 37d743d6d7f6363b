# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outputs of ibv_devinfo, plain and with -v: what they say, in the words of sysfs, and what is refused as cut off."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.ibv_devinfo import Devinfo, DevinfoGid, DevinfoPort, parse_ibv_devinfo
from tests.unit.builders.garbled import garbled, no_time, read_or_refused

DEVICE = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.39.1002
\tnode_guid:\t\t\t0002:c903:00f9:bfa0
\tsys_image_guid:\t\t\t0002:c903:00f9:bfa3
\tvendor_id:\t\t\t0x02C9
\tvendor_part_id:\t\t\t4129
\thw_ver:\t\t\t\t0x0
\tboard_id:\t\t\tMT_0000000838
\tphys_port_cnt:\t\t\t2
"""
VERBOSE = """\
\tmax_mr_size:\t\t\t0xffffffffffffffff
\tdevice_cap_flags:\t\t0x25361c36
\t\t\t\t\tBAD_PKEY_CNTR
\t\t\t\t\tUnknown flags: 0x8000
\tgeneral_odp_caps:
\t\t\t\t\tODP_SUPPORT
\trc_odp_caps:
\t\t\t\t\tNO SUPPORT
\tcompletion_timestamp_mask not supported
\ttso_caps:
\t\tmax_tso:\t\t\t262144
\t\tsupported_qp:
\t\t\t\t\tSUPPORT_RAW_PACKET

\tcq moderation caps:
\t\tmax_cq_count:\t65535
\t\tmax_cq_period:\t4095 us

"""
PORT_1 = """\
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t1024 (3)
\t\t\tsm_lid:\t\t\t0
\t\t\tport_lid:\t\t0
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tEthernet
"""
VERBOSE_1 = """\
\t\t\tmax_msg_sz:\t\t0x40000000
\t\t\tport_cap_flags:\t\t0x04010000
\t\t\tmax_vl_num:\t\tinvalid value (0)
\t\t\tgid_tbl_len:\t\t255
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t100.0 Gbps (128)
\t\t\teffective_speed:\t400.0 Gbps
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0202:c9ff:fef9:bfa0, RoCE v1
\t\t\tGID[  1]:\t\tfe80::202:c9ff:fef9:bfa0, RoCE v2
\t\t\tGID[ 12]:\t\t::ffff:192.168.1.1, RoCE v2

"""
PORT_2 = """\
\t\tport:\t2
\t\t\tstate:\t\t\tPORT_INIT (2)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t8
\t\t\tport_lid:\t\t65535
\t\t\tport_lmc:\t\t0x01
\t\t\tlink_layer:\t\tInfiniBand
"""
VERBOSE_2 = """\
\t\t\tmax_msg_sz:\t\t0x40000000
\t\t\tactive_width:\t\tinvalid widthX (0)
\t\t\tactive_speed:\t\tinvalid speed (0)
\t\t\tphys_state:\t\tPORT_CONFIGURATION TRAINNING (4)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0002:c903:00f9:bfa1

"""
PLAIN = DEVICE + PORT_1 + PORT_2 + "\n"
DETAILED = DEVICE + VERBOSE + PORT_1 + VERBOSE_1 + PORT_2 + VERBOSE_2
GIDS = [
    DevinfoGid(0, "fe80:0000:0000:0000:0202:c9ff:fef9:bfa0", "IB/RoCE v1"),
    DevinfoGid(1, "fe80:0000:0000:0000:0202:c9ff:fef9:bfa0", "RoCE v2"),
    DevinfoGid(12, "0000:0000:0000:0000:0000:ffff:c0a8:0101", "RoCE v2"),
]


def test_plain() -> None:
    assert parse_ibv_devinfo(PLAIN) == {
        "mlx5_0": Devinfo(
            transport="InfiniBand",
            fw_ver="28.39.1002",
            node_guid="0002:c903:00f9:bfa0",
            sys_image_guid="0002:c903:00f9:bfa3",
            vendor_id="0x02c9",
            vendor_part_id=4129,
            hw_ver="0x0",
            board_id="MT_0000000838",
            phys_port_cnt=2,
            ports={
                "1": DevinfoPort("ACTIVE", 4096, 1024, None, None, 0, "Ethernet", None, None, None, None),
                "2": DevinfoPort("INIT", 4096, 4096, 8, None, 1, "InfiniBand", None, None, None, None),
            },
            unnumbered_port=None,
        )
    }


def test_verbose() -> None:
    assert parse_ibv_devinfo(DETAILED)["mlx5_0"].ports == {
        "1": DevinfoPort("ACTIVE", 4096, 1024, None, None, 0, "Ethernet", 4, 100.0, "LinkUp", GIDS),
        "2": DevinfoPort(
            "INIT", 4096, 4096, 8, None, 1, "InfiniBand", None, None, "PortConfigurationTraining",
            [DevinfoGid(0, "fe80:0000:0000:0000:0002:c903:00f9:bfa1", None)],
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        DETAILED.replace("\n", "\r\n"),
        DETAILED.replace("\t", ""),
        DETAILED.replace("\n", "\n\n"),
        DETAILED.replace("\n", "\n> > "),
        DETAILED.replace("\t", " \u00a0 "),
        DETAILED.replace("2\n\t\tport", "2\n\tDevice ports:\n\t\tport"),
        "root@node1:~# ibv_devinfo -v\n" + DETAILED + "root@node1:~# \n",
        DETAILED.replace("GID[  1]:\t\t", "GID[  1]:\n"),
        DETAILED.replace("RoCE", "\nRoCE"),
        DETAILED.replace("RoCE ", "RoCE\n"),
        DETAILED.replace(" (", "\n("),
        DETAILED.replace("PORT_CONFIGURATION ", "PORT_CONFIGURATION\n\t"),
    ],
    ids=[
        "CRLF", "indentation lost", "blank lines", "quoted in a mail", "mail indentation", "old layout", "prompts",
        "wrapped before the GID",
        "wrapped before the type", "wrapped in the type", "wrapped before a number", "wrapped in a state",
    ],
)  # fmt: skip
def test_the_form_may_suffer_on_the_way(text: str) -> None:
    assert parse_ibv_devinfo(text) == parse_ibv_devinfo(DETAILED)


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("PORT_INIT (2)", "PORT_DOWN (1)", "state", "DOWN"),
        ("PORT_INIT (2)", "PORT_ARMED (3)", "state", "ARMED"),
        ("PORT_INIT (2)", "invalid state (5)", "state", "ACTIVE_DEFER"),
        ("PORT_INIT (2)", "invalid state (17)", "state", None),
        ("active_mtu:\t\t4096 (5)", "active_mtu:\t\tinvalid MTU (0)", "active_mtu_bytes", None),
        ("invalid widthX (0)", "2X (16)", "active_width", 2),
        ("invalid widthX (0)", "12X (8)", "active_width", 12),
        ("invalid speed (0)", "2.5 Gbps (1)", "active_speed_gbps", 2.5),
        ("invalid speed (0)", "200.0 Gbps (256)", "active_speed_gbps", 200.0),
        ("PORT_CONFIGURATION TRAINNING (4)", "POLLING (2)", "physical_state", "Polling"),
        ("PORT_CONFIGURATION TRAINNING (4)", "PHY TEST (7)", "physical_state", "Phy Test"),
        ("PORT_CONFIGURATION TRAINNING (4)", "invalid physical state (0)", "physical_state", None),
        ("layer:\t\tInfiniBand", "layer:\t\tUnspecified", "link_layer", None),
        ("bfa1\n", "bfa1, IB/RoCE v1\n", "gids", [DevinfoGid(0, "fe80:0000:0000:0000:0002:c903:00f9:bfa1", "IB/RoCE v1")]),
        ("\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0002:c903:00f9:bfa1\n", "", "gids", []),
    ],
)
def test_a_value_of_a_port(old: str, new: str, field: str, value: object) -> None:
    assert old in PORT_2 + VERBOSE_2
    text = DEVICE + VERBOSE + PORT_1 + VERBOSE_1 + (PORT_2 + VERBOSE_2).replace(old, new)
    assert getattr(parse_ibv_devinfo(text)["mlx5_0"].ports["2"], field) == value


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("InfiniBand (0)", "iWARP (1)", "transport", "iWARP"),
        ("InfiniBand (0)", "usNIC UDP (3)", "transport", "usNIC UDP"),
        ("InfiniBand (0)", "invalid transport (-1)", "transport", None),
        ("\tfw_ver:\t\t\t\t28.39.1002\n", "", "fw_ver", None),
        ("\tboard_id:\t\t\tMT_0000000838\n", "", "board_id", None),
        ("MT_0000000838", "I40IW Board ID", "board_id", "I40IW Board ID"),
        ("0002:c903:00f9:bfa0", "0000:0000:0000:0000", "node_guid", None),
        ("4129", "-1", "vendor_part_id", -1),
    ],
)
def test_a_value_of_a_device(old: str, new: str, field: str, value: object) -> None:
    assert old in DEVICE
    assert getattr(parse_ibv_devinfo(PLAIN.replace(old, new, 1))["mlx5_0"], field) == value


def test_one_port_asked_for_alone() -> None:
    device = parse_ibv_devinfo(DEVICE + PORT_2)["mlx5_0"]
    assert (device.phys_port_cnt, list(device.ports)) == (2, ["2"])


def test_a_device_without_ports() -> None:
    assert parse_ibv_devinfo(DEVICE.replace("cnt:\t\t\t2", "cnt:\t\t\t0"))["mlx5_0"].ports == {}


def test_several_devices() -> None:
    assert list(parse_ibv_devinfo(DETAILED + DETAILED.replace("mlx5_0", "rocep1s0f0"))) == ["mlx5_0", "rocep1s0f0"]


@pytest.mark.parametrize("dots", ["....", ".\n .\n .", "…", ". . ."])
def test_dots_for_lines_left_out(dots: str) -> None:
    whole = parse_ibv_devinfo(DETAILED)["mlx5_0"].ports["1"]
    excerpt = f"hca_id: rxe0\n{dots}\n{VERBOSE_1.rstrip()}\n GID[ 13]:\n"
    port = parse_ibv_devinfo(excerpt)["rxe0"].unnumbered_port
    assert port == DevinfoPort(None, None, None, None, None, None, None, 4, 100.0, "LinkUp", whole.gids)


def test_old_versions_name_no_link_layer() -> None:
    old = "".join(line for line in PLAIN.splitlines(keepends=True) if "link_layer" not in line)
    assert [port.link_layer for port in parse_ibv_devinfo(old)["mlx5_0"].ports.values()] == [None, None]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("No IB devices found", "No IB devices found"),
        ("2 HCAs found:\n\tmlx5_0\n\tmlx5_1\n", "2 HCAs found"),
        ("hca_id:\tmlx5_0\nhca_id:\tmlx5_1\n", "hca_id: mlx5_0"),
        ("hca_id:\tmlx5_0\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n", "state: PORT_ACTIVE (4)"),
        (DEVICE, "phys_port_cnt: 2"),
        (DEVICE + VERBOSE, "phys_port_cnt: 2"),
        (DEVICE + "\t\tport:\t1\n", "port: 1"),
        (PLAIN.rpartition("\t\t\tport_lmc")[0], "port_lid: 65535"),
        (PLAIN.rpartition("\t\t\tlink_layer")[0], "port_lmc: 0x01"),
        (PLAIN.rpartition("1\n\t\t\tlink_layer")[0], "port_lmc: 0x0"),
        (PLAIN.rstrip()[:-3], "link_layer: InfiniB"),
        (DETAILED.rpartition("\t\t\tactive_speed")[0], "active_width: invalid widthX (0)"),
        (DETAILED.rpartition("TRAINNING")[0], "phys_state: PORT_CONFIGURATION"),
        (DETAILED.rpartition("\t\tfe80")[0], "GID[ 0]:"),
        (DETAILED.rpartition(":bfa1")[0], "fe80:0000:0000:0000:0002:c903:00f9"),
        (DETAILED.partition(" v2\n")[0], "GID[ 1]: fe80::202:c9ff:fef9:bfa0, RoCE"),
        (DETAILED.partition("fa0, RoCE v1\n")[0], "GID[ 0]: fe80:0000:0000:0000:0202:c9ff:fef9:b"),
        (DETAILED.replace("\t\tfe80::202", "\t\tfe80:0000:0000:0000:0202").partition(", RoCE v2\n")[0], "0202:c9ff:fef9:bfa0"),
        (DETAILED.partition(", RoCE v2\n")[0], "GID[ 1]: fe80::202:c9ff:fef9:bfa0"),
        (PLAIN + PLAIN, "hca_id: mlx5_0"),
        (DEVICE + PORT_1 + PORT_1, "port: 1"),
        (PLAIN.replace("\t\tport:\t2\n", ""), "state: PORT_INIT (2)"),
        (PLAIN.replace("PORT_INIT (2)", "PORT_INIT (²)"), "state: PORT_INIT (²)"),
        (PLAIN.replace("4096 (5)", "many (5)"), "many (5)"),
        (PLAIN.replace("4129", "9" * 5000), "vendor_part_id: 9999"),
    ],
)
def test_anything_else_is_refused_and_the_line_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ibv_devinfo(text)
    assert quoted in str(caught.value)


@given(garbled(PLAIN) | garbled(DETAILED))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_ibv_devinfo, text)


@given(st.integers(0, len(DETAILED)))
def test_a_cut_output_is_refused_or_reports_nothing_wrong(end: int) -> None:
    with contextlib.suppress(ParseError):
        cut, whole = parse_ibv_devinfo(DETAILED[:end])["mlx5_0"], parse_ibv_devinfo(DETAILED)["mlx5_0"]
        assert dataclasses.replace(cut, ports=whole.ports) == whole
        for number, port in cut.ports.items():
            reported = {key: value for key, value in dataclasses.asdict(port).items() if value is not None and key != "gids"}
            assert reported.items() <= dataclasses.asdict(whole.ports[number]).items()
            # Where the text ends behind a GID, its type is not reported, as older versions never do.
            for gid, known in zip(port.gids or [], whole.ports[number].gids or []):
                assert gid in (known, dataclasses.replace(known, type=None))


def test_a_text_that_ends_behind_a_gid_does_not_report_its_type() -> None:
    end = DETAILED.index("fe80:0000:0000:0000:0202:c9ff:fef9:bfa0") + len("fe80:0000:0000:0000:0202:c9ff:fef9:bfa0")
    gids = parse_ibv_devinfo(DETAILED[:end])["mlx5_0"].ports["1"].gids or []
    assert [(gid.gid, gid.type) for gid in gids] == [("fe80:0000:0000:0000:0202:c9ff:fef9:bfa0", None)]


@pytest.mark.parametrize("line", ["state: x", "GID[0]:", "." * 20000 + "x", "phys_state: " + "(" * 20000])
def test_long_outputs_are_read_in_linear_time(line: str) -> None:
    with no_time():
        assert read_or_refused(parse_ibv_devinfo, "hca_id: mlx5_0\n" + line + "\nRESIZE_MAX_WR" * 20000)
