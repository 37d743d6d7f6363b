# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rdma tool of iproute2, as JSON and as text. The forms are those of rdma/dev.c, link.c and stat.c of 4.14 to 6.15."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_tool import (
    RdmaDevice,
    RdmaLink,
    RdmaStatistic,
    parse_rdma_dev,
    parse_rdma_link,
    parse_rdma_statistic,
)
from tests.unit.garbled import garbled, read_or_refused

MLX5 = RdmaDevice(
    name="mlx5_0",
    ifindex=0,
    node_type="ca",
    protocol=None,
    firmware="28.39.1002",
    node_guid="0002:c903:00f9:bfa0",
    sys_image_guid="0002:c903:00f9:bfa3",
    type=None,
    parent=None,
)
RXE = RdmaDevice("rxe0", 7, "ca", "roce", None, "5054:00ff:fe12:3456", "5054:00ff:fe12:3456", None, None)
SMI = RdmaDevice("smi1", 2, "ca", None, "40.44.1036", "9803:9b03:009f:d20f", "9803:9b03:009f:d20e", "smi", "mlx5_0")
DEVICES_JSON = """[ {
        "ifindex": 0,
        "ifname": "mlx5_0",
        "node_type": "ca",
        "fw": "28.39.1002",
        "node_guid": "0002:c903:00f9:bfa0",
        "sys_image_guid": "0002:c903:00f9:bfa3",
        "adaptive-moderation": "on",
        "caps": [ "BAD_PKEY_CNTR","XRC" ]
    },{
        "ifindex": 7,
        "ifname": "rxe0",
        "node_type": "ca",
        "protocol": "roce",
        "node_guid": "5054:00ff:fe12:3456",
        "sys_image_guid": "5054:00ff:fe12:3456"
    },{
        "ifindex": 2,
        "ifname": "smi1",
        "node_type": "ca",
        "fw": "40.44.1036",
        "node_guid": "9803:9b03:009f:d20f",
        "sys_image_guid": "9803:9b03:009f:d20e",
        "type": "smi",
        "parent": "mlx5_0"
    } ]
"""
DEVICES = """0: mlx5_0: node_type ca fw 28.39.1002 node_guid 0002:c903:00f9:bfa0 sys_image_guid 0002:c903:00f9:bfa3 adaptive-moderation on
    caps: <BAD_PKEY_CNTR, XRC>
7: rxe0: node_type ca protocol roce node_guid 5054:00ff:fe12:3456 sys_image_guid 5054:00ff:fe12:3456
2: smi1: node_type ca fw 40.44.1036 node_guid 9803:9b03:009f:d20f sys_image_guid 9803:9b03:009f:d20e type smi parent mlx5_0
"""
ROCE = RdmaLink("mlx5_0", 1, 0, "ACTIVE", "LINK_UP", "ens1np0", 4, None, None, None, None)
IB = RdmaLink("ibp8s0f0", 2, 1, "DOWN", "DISABLED", None, None, "fe80:0000:0000:0000", 65535, 0, 0)
LINKS_JSON = """[{"ifindex":0,"ifname":"mlx5_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"ens1np0","netdev_index":4},
{"ifindex":1,"ifname":"ibp8s0f0","port":2,"subnet_prefix":"fe80:0000:0000:0000","lid":65535,"sm_lid":0,"lmc":0,"state":"DOWN",
"physical_state":"DISABLED","caps":["AUTO_MIGR"]}]
"""
LINKS = """link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1np0 netdev_index 4
link ibp8s0f0/2 subnet_prefix fe80:0000:0000:0000 lid 65535 sm_lid 0 lmc 0 state DOWN physical_state DISABLED
    caps: <AUTO_MIGR>
"""
OLD_LINKS = LINKS.replace("link mlx5_0/1", "0/1: mlx5_0/1:").replace("link ibp8s0f0/2", "1/2: ibp8s0f0/2:")
STATISTICS_JSON = """[{"ifname":"mlx5_0","port":1,"rx_write_requests":18446744073709551615,"out_of_sequence":0},
{"ifindex":1,"ifname":"mlx5_1","port":2,"rx_write_requests":5}]
"""
STATISTICS = "link mlx5_0/1 rx_write_requests 18446744073709551615 out_of_sequence 0\nlink mlx5_1/2 rx_write_requests 5\n"
COUNTERS = [
    RdmaStatistic("mlx5_0", 1, {"rx_write_requests": 2**64 - 1, "out_of_sequence": 0}),
    RdmaStatistic("mlx5_1", 2, {"rx_write_requests": 5}),
]


@pytest.mark.parametrize("text", [DEVICES, DEVICES_JSON, json.dumps(json.loads(DEVICES_JSON))], ids=["text", "pretty", "json"])
def test_devices(text: str) -> None:
    assert parse_rdma_dev(text) == [MLX5, RXE, SMI]


def test_links_as_json_and_in_old_text() -> None:
    assert parse_rdma_link(LINKS_JSON) == [ROCE, IB]
    assert parse_rdma_link(OLD_LINKS) == [ROCE, IB]


def test_newer_text_says_nothing_of_the_number_of_a_device() -> None:
    assert parse_rdma_link(LINKS) == [replace(ROCE, ifindex=None), replace(IB, ifindex=None)]


def test_old_json_has_the_port_in_the_name() -> None:
    assert parse_rdma_link(LINKS_JSON.replace('"mlx5_0"', '"mlx5_0/1"').replace('"ibp8s0f0","port":2', '"ibp8s0f0/2"')) == [ROCE, IB]


@pytest.mark.parametrize("text", [STATISTICS, STATISTICS_JSON], ids=["text", "json"])
def test_counters(text: str) -> None:
    assert parse_rdma_statistic(text) == COUNTERS


def test_a_system_without_devices() -> None:
    assert (parse_rdma_dev("[ ]\n"), parse_rdma_link("[]"), parse_rdma_statistic("[{},{}]")) == ([], [], [])


def test_one_object_alone() -> None:
    assert parse_rdma_dev(json.dumps(json.loads(DEVICES_JSON)[0])) == [MLX5]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: "    " + text.replace("\n", "\n    "),
        lambda text: text.replace(" sys_image_guid", "\nsys_image_guid").replace(" physical_state", "\nphysical_state"),
        lambda text: text.replace("node_guid ", "node_guid\n").replace(" state ", " state\n\n").replace("_requests ", "_requests\n"),
        lambda text: "[root@node1 ~]# rdma\n" + text + "[root@node1 ~]# rdma\n" + text + "...\n",
        lambda text: text.replace(" ", "  ").replace(":  ", ": "),
    ],
    ids=["crlf", "blank-lines", "indented", "wrapped", "wrapped-before-a-value", "twice", "blanks"],
)
def test_blanks_and_other_lines_do_not_matter(spoil: Callable[[str], str]) -> None:
    assert parse_rdma_dev(spoil(DEVICES)) == parse_rdma_dev(DEVICES)
    assert parse_rdma_link(spoil(LINKS)) == parse_rdma_link(LINKS)
    assert parse_rdma_link(spoil(OLD_LINKS)) == parse_rdma_link(OLD_LINKS)
    assert parse_rdma_statistic(spoil(STATISTICS)) == COUNTERS


NOTHING = [
    "",
    "bash: rdma: command not found\n",
    'Object "dev" is unknown, try "rdma help".\n',
    "null",
    "[1]",
    "{" * 5000,
    '[{"a":' + "[" * 100000,
]


@pytest.mark.parametrize("parse", [parse_rdma_dev, parse_rdma_link, parse_rdma_statistic])
@pytest.mark.parametrize("text", NOTHING, ids=range(len(NOTHING)))
def test_another_text_is_quoted(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert text[:150].strip() in str(caught.value) or text[-150:] in str(caught.value)


@pytest.mark.parametrize(
    ("parse", "text", "quoted"),
    [
        (parse_rdma_dev, DEVICES_JSON[:-20], "9803:9b03:009f:d20e"),
        (parse_rdma_dev, DEVICES.rpartition(" 9803:9b03:009f:d20e")[0], "sys_image_guid"),
        (parse_rdma_dev, DEVICES.rpartition(":d20e")[0], "9803:9b03:009f"),
        (parse_rdma_dev, DEVICES.rpartition(" node_guid 9803")[0], "smi1"),
        (parse_rdma_dev, DEVICES + DEVICES.replace("28.39.1002", "28.40.1000"), "mlx5_0"),
        (parse_rdma_dev, "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue\n", "LOOPBACK"),
        (parse_rdma_dev, '[{"ifname": "mlx5_0"}]', "mlx5_0"),
        (parse_rdma_dev, '[{"ifname": 5, "node_guid": "0002:c903:00f9:bfa0"}]', "ifname"),
        (parse_rdma_dev, DEVICES_JSON.replace('"fw": "28.39.1002"', '"fw": 28'), "28"),
        (parse_rdma_link, LINKS.rpartition(" DISABLED")[0], "physical_state"),
        (parse_rdma_link, "link siw0/1\n", "siw0/1"),
        (parse_rdma_link, LINKS_JSON.replace('"port":1,', ""), "ens1np0"),
        (parse_rdma_link, LINKS_JSON.replace("65535", "true"), "ibp8s0f0"),
        (parse_rdma_link, LINKS_JSON.replace("65535", '"²"'), "ibp8s0f0"),
        (parse_rdma_link, LINKS.replace("lid 65535", "lid x"), "ibp8s0f0"),
        (parse_rdma_statistic, STATISTICS.rpartition(" 5")[0], "rx_write_requests"),
        (parse_rdma_statistic, LINKS, "ACTIVE"),
        (parse_rdma_statistic, STATISTICS_JSON.replace(":5}", ":5.5}"), "5.5"),
        (parse_rdma_statistic, STATISTICS_JSON.replace(":5}", ":-5}"), "-5"),
        (parse_rdma_statistic, STATISTICS_JSON.replace(":5}", ":" + "9" * 5000 + "}"), "999"),
        (parse_rdma_statistic, STATISTICS_JSON.replace('"port":2,', ""), "mlx5_1"),
    ],
    ids=range(21),
)
def test_what_was_cut_off_or_is_of_another_kind_is_quoted(parse: Callable[[str], object], text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert quoted in str(caught.value)


@pytest.mark.parametrize("parse", [parse_rdma_dev, parse_rdma_link, parse_rdma_statistic])
@given(
    text=garbled(DEVICES) | garbled(DEVICES_JSON) | garbled(LINKS) | garbled(LINKS_JSON) | garbled(STATISTICS) | garbled(STATISTICS_JSON)
)
def test_nothing_but_a_parse_error_escapes(parse: Callable[[str], object], text: str) -> None:
    assert read_or_refused(parse, text)
