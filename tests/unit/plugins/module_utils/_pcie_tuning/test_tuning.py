# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read requests and ACS of a tree with real registers: which words change, which do not, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import SysfsPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import ACS, MRRS, PcieRequest
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.tuning import (
    Applied,
    apply,
    bridges_between,
    card_functions,
    survey,
)
from tests.unit.builders.config_space import ACS as ACS_AT
from tests.unit.builders.config_space import PCIE, decoded_config
from tests.unit.builders.pcie_host import (
    ABOVE_GPU,
    ABOVE_NIC,
    CONTROL,
    GPU,
    NIC,
    OTHER,
    PATHS,
    ROOT_PORT,
    SECOND,
    SPACES,
    UPSTREAM,
    VIRTUAL,
    DeafPort,
    LockedPort,
    config_of,
    pcie_host,
)

DEVICE_CONTROL, ACS_CONTROL = PCIE + 8, ACS_AT + 6


def changed_bytes(root: Path, before: dict[str, bytes]) -> dict[str, dict[int, tuple[int, int]]]:
    """By function and offset, each byte that is another one than before."""
    found = {}
    for address, old in before.items():
        new = config_of(root, address)
        assert len(new) == len(old)
        found[address] = {at: (old[at], new[at]) for at in range(len(old)) if old[at] != new[at]}
    return {address: changes for address, changes in found.items() if changes}


def spaces(root: Path) -> dict[str, bytes]:
    return {address: config_of(root, address) for address in SPACES}


def test_read_requests_of_all_functions_of_the_card_and_of_nothing_else(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    before = spaces(root)
    found = survey(PcieRequest((NIC,), 4096, "leave"), SysRoot(str(root)), SysfsPort(str(root)))
    assert [setting.to_dict() for setting in found.settings] == [
        {"address": address, "setting": MRRS, "old": 512, "new": 4096} for address in (NIC, SECOND)
    ]
    assert (found.payload, found.left, found.problems, found.acs) == ({NIC: 256, SECOND: 256}, [], [], "leave")
    assert spaces(root) == before
    assert apply(found.settings, SysfsPort(str(root))) == Applied()
    # 0x293f -> 0x593f: bits 14:12 alone, which the upper byte has.
    assert changed_bytes(root, before) == {address: {DEVICE_CONTROL + 1: (0x29, 0x59)} for address in (NIC, SECOND)}
    again = survey(PcieRequest((NIC,), 4096, "leave"), SysRoot(str(root)), SysfsPort(str(root)))
    assert again.different == []


@pytest.mark.parametrize(("size", "code"), [(128, 0), (256, 1), (512, 2), (1024, 3), (2048, 4), (4096, 5)])
def test_each_size_is_its_code(tmp_path: Path, size: int, code: int) -> None:
    root = pcie_host(tmp_path / "host")
    port = SysfsPort(str(root))
    assert apply(survey(PcieRequest((NIC,), size, "leave"), SysRoot(str(root)), port).settings, port) == Applied()
    assert int.from_bytes(port.read(NIC, DEVICE_CONTROL, 2), "little") == CONTROL & 0x8FFF | code << 12
    decoded = decoded_config(config_of(root, NIC)).pcie
    assert decoded is not None
    assert (decoded.mrrs_bytes, decoded.mps_bytes) == (size, 256)


def test_on_bare_metal_what_redirects_goes_and_the_rest_stays(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    before = spaces(root)
    found = survey(PcieRequest((NIC,), None, "auto"), SysRoot(str(root)), SysfsPort(str(root)))
    guarded = ["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    assert found.acs == "bare_metal"
    assert [setting.to_dict() for setting in found.settings] == [
        {"address": address, "setting": ACS, "old": guarded, "new": ["TransBlk"]} for address in (ROOT_PORT, ABOVE_NIC, ABOVE_GPU)
    ]
    assert apply(found.settings, SysfsPort(str(root))) == Applied()
    assert changed_bytes(root, before) == {address: {ACS_CONTROL: (0x1F, 0x02)} for address in (ROOT_PORT, ABOVE_NIC, ABOVE_GPU)}
    assert survey(PcieRequest((NIC,), None, "bare_metal"), SysRoot(str(root)), SysfsPort(str(root))).different == []


@pytest.mark.parametrize(
    ("host", "requested", "mode", "left"),
    [
        ({"virtual": True}, "auto", "vm", "in a virtual machine this is the hypervisor's"),
        ({}, "vm", "vm", "acs is vm"),
        ({"device": "0x1023"}, "auto", "datadirect", "this platform needs some of ACS"),
        ({"model": "NVIDIA GB200"}, "auto", "datadirect", "this platform needs some of ACS"),
        ({}, "datadirect", "datadirect", "acs is datadirect"),
    ],
    ids=["a virtual machine", "vm", "ConnectX-8", "Grace", "datadirect"],
)
def test_where_acs_is_needed_it_is_reported_and_left(tmp_path: Path, host: dict[str, str], requested: str, mode: str, left: str) -> None:
    root = pcie_host(tmp_path / "host", **host)  # type: ignore[arg-type]
    found = survey(PcieRequest((NIC,), None, requested), SysRoot(str(root)), SysfsPort(str(root)))
    assert (found.acs, found.settings, found.problems) == (mode, [], [])
    assert [subject for subject, _reason in found.left] == [ROOT_PORT, ABOVE_NIC, ABOVE_GPU]
    assert all("ACS SrcValid, TransBlk, ReqRedir" in reason and left in reason for _subject, reason in found.left)


def test_gpus_that_nothing_reports_the_model_of_are_left_alone(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host", model="")
    found = survey(PcieRequest((NIC,), None, "auto"), SysRoot(str(root)), SysfsPort(str(root)))
    assert (found.acs, found.settings) == ("leave", [])
    assert found.left == [(ACS, "no driver reports which GPUs these are, and boards with Grace need ACS")]


@pytest.mark.parametrize("host", [{"device": "0x1025"}, {"model": "NVIDIA GH200 480GB"}], ids=["ConnectX-9", "Grace"])
def test_bare_metal_is_refused_where_the_platform_needs_acs(tmp_path: Path, host: dict[str, str]) -> None:
    root = pcie_host(tmp_path / "host", **host)  # type: ignore[arg-type]
    found = survey(PcieRequest((NIC,), 4096, "bare_metal"), SysRoot(str(root)), SysfsPort(str(root)))
    assert [setting.name for setting in found.settings] == [MRRS, MRRS]
    (problem,) = found.problems
    assert problem.startswith("acs is bare_metal, but this platform needs some of ACS")


def test_which_functions_and_bridges_belong_to_a_card(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    sys = SysRoot(str(root))
    assert card_functions(sys, SECOND) == [NIC, SECOND]
    assert bridges_between(sys, [NIC]) == [ROOT_PORT, UPSTREAM, ABOVE_NIC, ABOVE_GPU]
    assert bridges_between(sys, []) == []
    (root / PATHS[GPU][1:] / "class").write_text("0x020000\n")
    assert bridges_between(SysRoot(str(root)), [NIC]) == []


def test_a_write_that_is_ignored_is_seen_at_the_read_back(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    port = DeafPort(str(root))
    done = apply(survey(PcieRequest((NIC,), 4096, "auto"), SysRoot(str(root)), port).settings, port)
    assert (len(done.failures), done.refused) == (5, [])
    assert done.failures[0] == (
        f"{NIC} MRRS of 4096 bytes was written, and MRRS of 512 bytes is read back: "
        "the device ignores the write, as devices that QEMU emulates do"
    )
    assert done.failures[2].startswith(f"{ROOT_PORT} ACS TransBlk was written, and ACS SrcValid, TransBlk, ReqRedir")


def test_a_write_that_the_kernel_refuses_is_distinguished_from_a_failure(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    port = LockedPort(str(root))
    done = apply(survey(PcieRequest((OTHER,), 4096, "leave"), SysRoot(str(root)), port).settings, port)
    assert ([setting.address for setting in done.refused], done.failures) == ([OTHER], [])


def test_mrrs_of_some_cards_only(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    found = survey(PcieRequest((NIC, OTHER), 4096, "leave", (OTHER,)), SysRoot(str(root)), SysfsPort(str(root)))
    assert [setting.address for setting in found.settings] == [OTHER]
    assert sorted(found.payload) == [NIC, SECOND, OTHER]


def test_what_is_not_there_or_has_no_settings_of_its_own(tmp_path: Path) -> None:
    root = pcie_host(tmp_path / "host")
    (root / PATHS[SECOND][1:] / "config").write_bytes(b"\xff" * 4096)
    (root / PATHS[OTHER][1:] / "config").write_bytes(config_of(root, OTHER)[:64])
    found = survey(PcieRequest((NIC, VIRTUAL, OTHER, "0000:99:00.0"), 4096, "leave"), SysRoot(str(root)), SysfsPort(str(root)))
    assert found.left == [(VIRTUAL, "a virtual function: what its physical function has set holds")]
    assert found.problems == [
        "there is no PCI function 0000:99:00.0",
        f"{SECOND}: nothing answers, as when a device fell off the bus",
        f"{OTHER}: no PCI Express capability can be read",
    ]
    assert [setting.address for setting in found.settings] == [NIC]
    assert survey(PcieRequest((OTHER,), None, "bare_metal"), SysRoot(str(root)), SysfsPort(str(root))).problems == []
