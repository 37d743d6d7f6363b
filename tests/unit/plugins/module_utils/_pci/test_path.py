# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import (
    function_paths,
    generation,
    host_bridge,
    parse_address,
    payload_gbps,
)
from tests.unit.builders.garbled import read_or_refused

ROOT = "/sys/devices/pci0000:00/0000:00:0e.0"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("00000000:1B:00.0\n", "0000:1b:00.0"),
        ("0000000F:1B:00.7", "000f:1b:00.7"),
        ("00010000:E1:00.0", "10000:e1:00.0"),
        ("0000:01.00.0", "0000:01:00.0"),
    ],
)
def test_address(text: str, address: str) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "1b:00.0", "0000:1b:00.8", "0000:1b:00", "N/A", "0000:1b:00.0.0", "²000:1b:00.0"])
def test_what_is_no_address_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not a PCI address") as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


@given(text=st.text() | st.from_regex(r"[0-9a-fA-F]*:?[0-9A-F٣]*[:.][0-9]*\.[0-9]"))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_address, text)


@pytest.mark.parametrize(
    ("path", "functions"),
    [
        (f"{ROOT}/0000:01:00.0", [f"{ROOT}/0000:01:00.0", ROOT]),
        (f"{ROOT}/0000:01:00.0/mlx5_core.sf.4", [f"{ROOT}/0000:01:00.0", ROOT]),
        (f"{ROOT}/pci10000:e0/10000:e0:01.0", [f"{ROOT}/pci10000:e0/10000:e0:01.0", ROOT]),
        ("/sys/devices/pci0000:00", []),
        ("", []),
    ],
)
def test_the_functions_on_a_path(path: str, functions: list[str]) -> None:
    assert function_paths(path) == functions


@pytest.mark.parametrize(
    ("path", "bridge"),
    [
        (ROOT, "pci0000:00"),
        ("/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001/pci0001:00/0001:00:00.0", "pci0001:00"),
        ("/sys/devices/platform/soc/ethernet", None),
    ],
)
def test_the_host_bridge_of_a_path(path: str, bridge: str | None) -> None:
    assert host_bridge(path) == bridge


# The table of what a link can carry: Gen3 to Gen5.
PAYLOADS = [(8.0, 8, 57), (8.0, 16, 115), (16.0, 8, 115), (16.0, 16, 229), (32.0, 4, 115), (32.0, 8, 229), (32.0, 16, 459)]


@pytest.mark.parametrize(("speed_gtps", "width", "gbps"), PAYLOADS)
def test_payload_of_a_link(speed_gtps: float, width: int, gbps: float) -> None:
    assert payload_gbps(speed_gtps, width) == pytest.approx(gbps, rel=0.01)


def test_payload_follows_the_line_coding() -> None:
    assert payload_gbps(5.0, 8) == pytest.approx(40 * 0.8 * 0.91)
    assert payload_gbps(64.0, 16) == pytest.approx(1024 * 242 / 256 * 0.91)


def test_generations() -> None:
    assert [generation(speed) for speed in (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)] == [1, 2, 3, 4, 5, 6]
    assert generation(10.0) is None
