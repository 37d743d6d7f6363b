# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration spaces of real machines, read where they lie.

The expected values are lspci's own decoding: for three of the captures it stands beside the bytes, for the fourth
it was made of them with lspci 3.9.0.
"""

from __future__ import annotations

import functools
import re
import tarfile
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.config import PciConfig, PcieCapability, read_config
from ansible_collections.rdma.cluster.plugins.module_utils._pci.control import (
    decode_acs,
    decode_mps,
    decode_mrrs,
    find_control_words,
)
from tests.unit.builders.config_space import decoded_config

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
CAPTURES, TREES = FIXTURES / "lspci", FIXTURES / "sysfs"
#: What the trees hold of PCI; the rest is large.
PART = re.compile(r"/bus/pci/devices/[^/]+$|pci.*/(class|config)$")

#: How many functions a capture shows the bytes of; 0 for those with text alone.
FUNCTIONS = {
    "gpud-lspci-vvv": 0,
    "gpud-lspci.gb200": 0,
    "gpud-lspci.nn.a10": 0,
    "gpud-lspci.nn.a100": 0,
    "ml-cx7-downgraded-pf-and-vf": 0,
    "ml-cx7-tree": 0,
    "ml-dell-c620-cx-full-vvv": 0,
    "ml-lnksta-list": 0,
    "pciutils-cap-dev3": 1,
    "pciutils-cap-exp-lnkcap2": 4,
    "pciutils-cap-ide": 1,
    "pciutils-tree-asus-p6t6": 53,
}
HEADING = re.compile(r"((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \S")
ROW = re.compile(r"([0-9a-f]{2,3}):((?: [0-9a-f]{2}){16})")


@functools.cache
def blocks(name: str) -> dict[str, str]:
    """What a capture prints of each function, by its address."""
    found: dict[str, str] = {}
    address = ""
    for line in (CAPTURES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        heading = HEADING.match(line)
        address = heading[1] if heading else address
        found[address] = found.get(address, "") + line + "\n"
    return found


def dumped(block: str) -> bytes:
    data = b""
    for row in filter(None, map(ROW.fullmatch, block.splitlines())):
        assert int(row[1], 16) == len(data)
        data += bytes.fromhex(row[2])
    return data


def dumps(name: str) -> dict[str, bytes]:
    return {address: data for address, block in blocks(name).items() if (data := dumped(block))}


def config(header_type: int, pcie: PcieCapability | None, extended: list[int] | None, acs: list[str] | None = None) -> PciConfig:
    return PciConfig(gone=False, header_type=header_type, pcie=pcie, extended=extended, acs=acs)


def test_every_capture_is_known() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functions_of_a_capture(name: str) -> None:
    assert len(dumps(name)) == FUNCTIONS[name]


DECODED = {
    "pciutils-cap-dev3": {
        "01:00.0": config(0, PcieCapability("endpoint", 128, 128, 512, 8.0, 4, 8.0, 4), [0x01, 0x19, 0x18, 0x1E, 0x2F]),
    },
    "pciutils-cap-exp-lnkcap2": {
        "00:1c.0": config(1, PcieCapability("root port", 256, 256, 128, 8.0, 4, 8.0, 4), [0x01, 0x0D, 0x1E, 0x19], []),
        "02:00.0": config(0, PcieCapability("endpoint", 256, 256, 512, 8.0, 4, 8.0, 4), [0x02, 0x18, 0x1E, 0x04, 0x01, 0x0B, 0x19]),
        "08:00.0": config(1, PcieCapability("downstream port", 128, 128, 512, 2.5, 4, 2.5, 4), [0x03, 0x01, 0x02, 0x04, 0x0B, 0x19]),
        "09:00.0": config(0, PcieCapability("endpoint", 128, 128, 512, 2.5, 4, 2.5, 4), [0x03, 0x01, 0x02, 0x04, 0x0B, 0x18]),
    },
    "pciutils-cap-ide": {
        "e1:00.0": config(
            0,
            PcieCapability("endpoint", 1024, 512, 512, 32.0, 16, 32.0, 16),
            [0x01, 0x10, 0x0E, 0x19, 0x26, 0x27, 0x0D, 0x2A, 0x1B, 0x30, 0x2E],
            [],
        ),
    },
}
INTEGRATED = PcieCapability("integrated endpoint", 128, 128, 128, None, None, None, None)
GUARDED = [0x01, 0x0D, 0x0B]
#: Those of the board that are on PCI Express. A slot without a card has a link without lanes.
ASUS = {
    "00:00.0": config(0, PcieCapability("root port", 128, 128, 128, 2.5, 4, 2.5, 4), GUARDED, []),
    "00:01.0": config(1, PcieCapability("root port", 256, 128, 128, 5.0, 4, 2.5, None), GUARDED, []),
    "00:03.0": config(1, PcieCapability("root port", 256, 128, 128, 5.0, 16, 5.0, 16), GUARDED, []),
    "00:07.0": config(1, PcieCapability("root port", 256, 128, 128, 5.0, 16, 2.5, 16), GUARDED, []),
    "00:14.0": config(0, INTEGRATED, []),
    "00:14.1": config(0, INTEGRATED, []),
    "00:14.2": config(0, INTEGRATED, []),
    "00:1b.0": config(0, INTEGRATED, [0x02, 0x05]),
    "00:1c.0": config(1, PcieCapability("root port", 128, 128, 128, 2.5, 1, 2.5, None), [0x02, 0x05]),
    "00:1c.1": config(1, PcieCapability("root port", 128, 128, 128, 2.5, 1, 2.5, 1), [0x02, 0x05]),
    "00:1c.2": config(1, PcieCapability("root port", 128, 128, 128, 2.5, 1, 2.5, 1), [0x02, 0x05]),
    "02:00.0": config(1, PcieCapability("upstream port", 128, 128, 128, 5.0, 16, 5.0, 16), []),
    "03:00.0": config(1, PcieCapability("downstream port", 128, 128, 128, 5.0, 16, 5.0, 8), []),
    "03:02.0": config(1, PcieCapability("downstream port", 128, 128, 128, 5.0, 16, 2.5, 16), []),
    "04:00.0": config(0, PcieCapability("endpoint", 4096, 128, 512, 5.0, 8, 5.0, 8), [0x01, 0x04]),
    "06:00.0": config(0, PcieCapability("endpoint", 128, 128, 512, 2.5, 16, 2.5, 16), [0x02, 0x04, 0x0B]),
    "06:00.1": config(0, PcieCapability("endpoint", 128, 128, 512, 2.5, 16, 2.5, 16), []),
    "07:00.0": config(0, PcieCapability("endpoint", 256, 128, 4096, 2.5, 1, 2.5, 1), [0x01, 0x02, 0x03]),
    "08:00.0": config(0, PcieCapability("endpoint", 256, 128, 4096, 2.5, 1, 2.5, 1), [0x01, 0x02, 0x03]),
}


@pytest.mark.parametrize("name", DECODED)
def test_whole_functions(name: str) -> None:
    assert {address: decoded_config(data) for address, data in dumps(name).items()} == DECODED[name]


def test_a_whole_board() -> None:
    found = {address: decoded_config(data) for address, data in dumps("pciutils-tree-asus-p6t6").items()}
    assert {address: decoded for address, decoded in found.items() if decoded.pcie is not None} == ASUS
    rest = {address: decoded for address, decoded in found.items() if address not in ASUS}
    # The bridge of the old kind, to slots for PCI.
    assert {address for address, decoded in rest.items() if decoded != config(0, None, None)} == {"00:1e.0"}
    assert rest["00:1e.0"] == config(1, None, None)


PORT_TYPES = {"Endpoint": "endpoint", "Root Port": "root port", "Downstream Port": "downstream port"}
EXPRESS = re.compile(r"Express \(v\d\) (\w[\w ]+?)(?: \(|,)")
SIZES = re.compile(r"DevCap:\tMaxPayload (\d+) bytes.*?MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes", re.DOTALL)
LINK = r"Lnk{}:.*?Speed ([\d.]+)GT/s[^,]*, Width x(\d+)"
ACS = re.compile(r"ACSCtl:\t(.*)")


@pytest.mark.parametrize(("name", "address"), [(name, address) for name, found in DECODED.items() for address in found])
def test_what_lspci_prints_beside_the_bytes(name: str, address: str) -> None:
    block = blocks(name)[address]
    decoded = decoded_config(dumped(block))
    express, sizes, controls = EXPRESS.search(block), SIZES.search(block), ACS.search(block)
    links = [re.search(LINK.format(register), block) for register in ("Cap", "Sta")]
    assert express is not None
    assert sizes is not None
    speeds_and_widths = [(float(link[1]), int(link[2])) for link in links if link is not None]
    assert decoded.pcie == PcieCapability(
        PORT_TYPES[express[1]],
        *map(int, sizes.groups()),
        *(value for pair in speeds_and_widths for value in pair),
    )
    printed = re.findall(r"Capabilities: \[[0-9a-f]{3} v\d\]", block)
    assert decoded.extended is not None
    # lspci of that time did not know Device 3, the last one of its capture.
    assert len(decoded.extended) == len(printed) + (name == "pciutils-cap-dev3")
    assert decoded.acs == ([word[:-1] for word in controls[1].split() if word.endswith("+")] if controls else None)


@pytest.mark.parametrize("name", [name for name, count in FUNCTIONS.items() if count])
def test_the_words_that_are_tuned_are_those_that_are_read(name: str) -> None:
    tuned = 0
    for data in dumps(name).values():
        decoded = decoded_config(data)
        words = find_control_words(lambda offset, length, data=data: data[offset : offset + length])  # type: ignore[misc]
        assert words is not None
        assert (words.device is None, words.acs is None) == (decoded.pcie is None, decoded.acs is None)
        if words.device is not None and decoded.pcie is not None:
            control = int.from_bytes(data[words.device : words.device + 2], "little")
            assert (decode_mrrs(control), decode_mps(control)) == (decoded.pcie.mrrs_bytes, decoded.pcie.mps_bytes)
            tuned += 1
        if words.acs is not None:
            assert decode_acs(int.from_bytes(data[words.acs : words.acs + 2], "little")) == decoded.acs
    assert tuned == len(DECODED.get(name, ASUS))


#: Captured by a user without privileges: 64 bytes a function, enough to recognize bridges.
HEADERS = {
    "hwloc-2pa-pcidomain32bits.tar.bz2": (9, 0),
    "hwloc-32em64t-mlx4-mic-nvme-dax.tar.bz2": (137, 9),
    "hwloc-40intel64-qib-pcilocality.tar.bz2": (37, 14),
    "hwloc-nvidiagpunumanodes.tar.bz2": (0, 0),
}


def test_every_tree_is_known() -> None:
    assert {path.name for path in TREES.glob("*.tar.bz2")} == set(HEADERS)


@pytest.mark.parametrize("name", HEADERS)
def test_headers_alone(name: str, tmp_path: Path) -> None:
    with tarfile.open(TREES / name) as archive:
        top = archive.getnames()[0]
        members = [member for member in archive if PART.search(member.name)]
        archive.extractall(tmp_path, members, filter="data")
    sys = SysRoot(str(tmp_path / top))
    folder = "/sys/bus/pci/devices"
    found = {address: read_config(sys, f"{folder}/{address}") for address in sys.list_dir(folder)}
    decoded = {address: item for address, item in found.items() if item is not None}
    bridges = {address for address, item in decoded.items() if item.header_type == 1}
    assert (len(decoded), len(bridges)) == HEADERS[name]
    assert bridges == {address for address in decoded if (sys.text(f"{folder}/{address}/class") or "").startswith("0x0604")}
    assert all(item == config(item.header_type or 0, None, None) for item in decoded.values())
