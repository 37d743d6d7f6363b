# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NCCL makes of values, and which are not what they seem."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import DeviceList, Entry, parse_list, used_ports
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import (
    Selection,
    Trouble,
    parse_selections,
    read_level,
    read_number,
    value_trouble,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import VARIABLES
from tests.unit.builders.hosts import FIXTURES

READ = json.loads((FIXTURES / "nccl/read-by-nccl.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("106", 106),
        ("0x6a", 106),
        ("0152", 106),
        ("-1", -1),
        (" 7", 7),
        ("3abc", 3),
        ("yes", None),
        ("08", 0),
        ("0x", 0),
        ("", None),
        (None, None),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", None),
        ("1" * 200, None),
        ("\0", None),
    ],
)
def test_numbers_are_read_as_by_strtoll_and_none_without_a_digit(value: str | None, number: int | None) -> None:
    assert read_number(value) == number


@pytest.mark.parametrize("case", range(len(READ["numbers"])))
def test_numbers_are_read_as_nccl_itself_has_read_them(case: int) -> None:
    seen = READ["numbers"][case]
    assert {version: read_number(seen["value"], version) for version in seen["took"]} == seen["took"]


@pytest.mark.parametrize(
    ("value", "level"),
    [("PXB", "PXB"), ("0", "LOC"), ("3", "PHB"), ("5", "SYS"), ("12", "SYS"), ("PH", None), ("pxb", None), ("", None), (None, None)],
)
def test_levels_have_names_and_old_numbers(value: str | None, level: str | None) -> None:
    assert read_level(value) == level


def test_algorithms_by_collective() -> None:
    assert parse_selections("Ring,tree;allreduce:^tree;;") == [
        Selection("", False, ("ring", "tree")),
        Selection("allreduce", True, ("tree",)),
    ]
    assert parse_selections("") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_IB_TC", "106"),
        ("NCCL_IB_TC", "0x6A"),
        ("NCCL_IB_TC", "0"),
        ("NCCL_IB_TC", "-1"),
        ("NCCL_DEBUG", "info"),
        ("NCCL_DEBUG_SUBSYS", "^init,NET"),
        ("NCCL_SOCKET_FAMILY", "AF_INET6"),
        ("NCCL_NTHREADS", "256"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_IB_ADDR_RANGE", "192.168.100.0/24"),
        ("NCCL_IB_ADDR_RANGE", "fd00::/8"),
        ("NCCL_IB_HCA", "^=mlx5_0:1,mlx5_1::0:1"),
        ("NCCL_SOCKET_IFNAME", "=eth0"),
        ("NCCL_NETDEVS_POLICY", "max:2"),
        ("NCCL_CTA_POLICY", "EFFICIENCY|ZERO"),
        ("NCCL_ALGO", "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring"),
        ("NCCL_PROTO", "^LL128"),
        ("NCCL_TOPO_FILE", "/etc/topo.xml"),
        ("NCCL_SET_THREAD_NAME", "1"),
        ("NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T] "),
        ("NCCL_THREAD_THRESHOLDS", "1 2 3 4 5 6"),
        ("NCCL_NET_MERGE_LEVEL", "PORT"),
    ],
)
def test_good_values(name: str, value: str) -> None:
    assert value_trouble(VARIABLES[name], value) is None


@pytest.mark.parametrize(
    ("name", "value", "rule", "takes"),
    [
        ("NCCL_IB_TC", "", "value_empty", "nothing, and it hides the value in a later file"),
        ("NCCL_IB_TC", "yes", "value_type", "its default since NCCL 2.32, and 0 before"),
        ("NCCL_IB_TC", "106 # DSCP 26", "value_form", "the comment as part of the value"),
        ("NCCL_IB_TC", '"106"', "value_form", "the quotes as part of the value"),
        ("NCCL_IB_HCA", '="mlx5_0","mlx5_1"', "value_form", "the quotes as part of the value"),
        ("NCCL_SOCKET_IFNAME", "eth0 # management", "value_form", "the comment as part of the value"),
        ("NCCL_IB_TC", "106 ", "value_form", "the blanks as part of the value"),
        ("NCCL_IB_TC", "106.5", "value_type", "106"),
        ("NCCL_IB_TC", "0152", "value_type", "106, as an octal number"),
        ("NCCL_IB_TC", "300", "value_range", "300, which is out of range"),
        ("NCCL_IB_TIMEOUT", "32", "value_range", "32, which is out of range"),
        ("NCCL_IB_DISABLE", "2", "value_range", "2, which is out of range"),
        ("NCCL_IB_DISABLE", "true", "value_type", "its default since NCCL 2.32, and 0 before"),
        ("NCCL_BUFFSIZE", "9999999999999999999", "value_type", "its default"),
        ("NCCL_DEBUG", "WARNING", "value_choice", "its default"),
        ("NCCL_SOCKET_FAMILY", "af_inet", "value_choice", "its default"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NETWORK", "value_choice", "its default since NCCL 2.30, and the list without NETWORK before"),
        ("NCCL_NTHREADS", "100", "value_choice", "another number"),
        ("NCCL_P2P_LEVEL", "PH", "value_choice", "its default"),
        ("NCCL_P2P_LEVEL", "sys", "value_choice", "its default"),
        ("NCCL_P2P_LEVEL", "5", "value_old", "SYS: numbers are the old spelling"),
        ("NCCL_IB_ADDR_RANGE", "192.168.100.0", "value_type", "no subnet, because the / is missing"),
        ("NCCL_IB_ADDR_RANGE", "192.168.300.0/24", "value_type", "no subnet"),
        ("NCCL_IB_HCA", "mlx5_0:one", "value_type", "0 for text that is not a number"),
        ("NCCL_IB_HCA", "mlx5_0:1:2:3:4", "value_type", "0 for text that is not a number"),
        ("NCCL_IB_HCA", "=", "value_type", "every device"),
        ("NCCL_IB_HCA", "^", "value_type", "no device at all"),
        ("NCCL_IB_HCA", ",".join(f"mlx5_{number}" for number in range(33)), "value_range", "the first 32"),
        ("NCCL_NETDEVS_POLICY", "MAX:0", "value_choice", "AUTO"),
        ("NCCL_CTA_POLICY", "2", "value_old", "ZERO: numbers are the old spelling"),
        ("NCCL_CTA_POLICY", "FAST", "value_choice", "its default"),
        ("NCCL_ALGO", "Trees", "value_choice", "an error since NCCL 2.24, and only the known parts before"),
        ("NCCL_ALGO", "ring;tree", "value_choice", "an error since NCCL 2.24, and only the known parts before"),
        ("NCCL_ALGO", "alltoall:ring", "value_choice", "an error since NCCL 2.24, and only the known parts before"),
        ("NCCL_ALGO", "^", "value_choice", "an error since NCCL 2.24, and only the known parts before"),
        ("NCCL_CONF_FILE", "~/nccl.conf", "value_type", "a folder called ~"),
        ("NCCL_SET_THREAD_NAME", "yes", "value_type", "its default since NCCL 2.30, and 0 before"),
        ("NCCL_SET_THREAD_NAME", "TRUE", "value_type", "0 before NCCL 2.30"),
    ],
)
def test_values_that_are_not_what_they_seem(name: str, value: str, rule: str, takes: str) -> None:
    trouble = value_trouble(VARIABLES[name], value)
    assert trouble is not None
    assert (trouble.rule, trouble.takes) == (rule, takes)


def test_what_is_reported_of_a_value() -> None:
    assert value_trouble(VARIABLES["NCCL_IB_SL"], "16") == Trouble(
        "value_range", "error", "16, which is out of range", "a number from -1 to 15"
    )


#: A variable of each kind.
ONE_OF_EACH = {variable.kind: name for name, variable in VARIABLES.items()}


@pytest.mark.parametrize("kind", sorted(ONE_OF_EACH))
def test_any_value_is_judged_in_no_time(kind: str) -> None:
    """The environment of a process may have values of 128 KiB each (execve(2))."""
    hostile = ("0" * 100_000, ",".join("x" * 50_000), "=" * 100_000, "^:;," * 25_000, "\ufffd\0\r\x1b[31m", "٣", "²")
    start = time.process_time()
    for value in hostile:
        value_trouble(VARIABLES[ONE_OF_EACH[kind]], value)
    assert time.process_time() - start < 5


def test_lists_of_devices() -> None:
    assert parse_list("^=mlx5_0:1,,mlx5_1::0:1,:1") == DeviceList(True, True, (Entry("mlx5_0", 1), Entry("mlx5_1", None)))
    assert parse_list("mlx5_1:x") == DeviceList(False, False, (Entry("mlx5_1", 0, well_formed=False),))


@pytest.mark.parametrize(
    ("value", "used"),
    [
        ("mlx5_1", [("mlx5_1", "1"), ("mlx5_10", "1")]),
        ("=mlx5_1", [("mlx5_1", "1")]),
        ("^mlx5_1", [("mlx5_2", "1")]),
        ("^=mlx5_1", [("mlx5_10", "1"), ("mlx5_2", "1")]),
        ("=mlx5_2:2", []),
        ("=mlx5_2:1", [("mlx5_2", "1")]),
        ("=", [("mlx5_1", "1"), ("mlx5_10", "1"), ("mlx5_2", "1")]),
        ("^", []),
    ],
)
def test_which_ports_nccl_uses(value: str, used: list[tuple[str, str]]) -> None:
    states = {"mlx5_1": {"1": "ACTIVE"}, "mlx5_10": {"1": "ACTIVE"}, "mlx5_2": {"1": "ACTIVE", "2": "DOWN"}}
    devices = {name: {"ports": {number: {"state": state} for number, state in ports.items()}} for name, ports in states.items()}
    assert used_ports(devices, parse_list(value)) == used


def test_a_list_of_any_length_has_a_bounded_number_of_entries() -> None:
    """A user's file may have a list of any length."""
    found = parse_list(",".join(f"mlx5_{number}" for number in range(5000)))
    assert [entry.name for entry in found.entries] == [f"mlx5_{number}" for number in range(1024)]
