# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA-CM's defaults in configfs: what the kernel does there is played by a class of this file, with its refusals."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import (
    Configfs,
    RdmaCm,
    apply_rdma_cm,
    parse_mode,
    parse_tos,
    read_rdma_cm,
)
from tests.unit.builders.trees import write_tree

FOLDER = "/sys/kernel/config/rdma_cm"
REQUESTED = RdmaCm("RoCE v2", 106)


class Kernel(Configfs):
    """A stand-in of cma_configfs.c: a folder brings files, a write is looked at, and values belong to the device, not to the folder."""

    def __init__(self, root: Path, devices: tuple[str, ...] = ("rxe0", "rxe1"), *, heeds: bool = True) -> None:
        super().__init__(str(root))
        self.root, self.heeds = root, heeds
        self.values = {(device, name): value for device in devices for name, value in (("mode", "RoCE v2"), ("tos", "0"))}
        self.writes: list[tuple[str, str]] = []

    def make(self, path: str) -> None:
        device = path.removeprefix(f"{FOLDER}/")
        if (device, "mode") not in self.values:
            raise OSError(errno.ENODEV, "No such device")
        self._show(device)

    def write(self, path: str, text: str) -> None:
        device, _ports, _port, name = path.removeprefix(f"{FOLDER}/").split("/")
        value, key = text.rstrip("\n"), name.removeprefix("default_roce_")
        if key == "tos" and int(value) > 255:
            raise OSError(errno.EINVAL, "Invalid argument")
        self.writes.append((path, value))
        if self.heeds:
            self.values[device, key] = value
        self._show(device)

    def _show(self, device: str) -> None:
        for key in ("mode", "tos"):
            write_tree(self.root, f"{FOLDER}/{device}/ports/1/default_roce_{key}: {self.values[device, key]}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / FOLDER[1:]).mkdir(parents=True)
    return tmp_path


def test_what_differs_is_written_and_looked_at(root: Path) -> None:
    kernel, sys = Kernel(root), SysRoot(str(root))
    found = apply_rdma_cm("rxe0", 1, REQUESTED, sys=sys, configfs=kernel, check_mode=False)
    assert found == ("mode RoCE v2, ToS 0", "mode RoCE v2, ToS 106")
    # The mode was right.
    assert kernel.writes == [(f"{FOLDER}/rxe0/ports/1/default_roce_tos", "106")]
    assert apply_rdma_cm("rxe0", 1, REQUESTED, sys=sys, configfs=kernel, check_mode=False) is None
    assert len(kernel.writes) == 1


def test_both_values_are_written_where_both_differ(root: Path) -> None:
    kernel = Kernel(root)
    kernel.values["rxe0", "mode"] = "IB/RoCE v1"
    apply_rdma_cm("rxe0", 1, REQUESTED, sys=SysRoot(str(root)), configfs=kernel, check_mode=False)
    assert [value for _path, value in kernel.writes] == ["RoCE v2", "106"]


def test_check_mode_and_a_reader_make_no_folder(root: Path) -> None:
    kernel, sys = Kernel(root), SysRoot(str(root))
    assert read_rdma_cm("rxe0", 1, sys) is None
    assert apply_rdma_cm("rxe0", 1, REQUESTED, sys=sys, configfs=kernel, check_mode=True) == ("not asked", REQUESTED.words)
    assert list((root / FOLDER[1:]).iterdir()) == []
    kernel.make(f"{FOLDER}/rxe0")
    assert read_rdma_cm("rxe0", 1, sys) == RdmaCm("RoCE v2", 0)
    assert apply_rdma_cm("rxe0", 1, REQUESTED, sys=sys, configfs=kernel, check_mode=True) == ("mode RoCE v2, ToS 0", REQUESTED.words)
    assert kernel.writes == []


def test_a_value_that_is_accepted_without_effect_is_an_error(root: Path) -> None:
    with pytest.raises(ApplyError, match="after writing it has mode RoCE v2, ToS 0"):
        apply_rdma_cm("rxe0", 1, REQUESTED, sys=SysRoot(str(root)), configfs=Kernel(root, heeds=False), check_mode=False)


def test_a_value_that_is_refused_is_an_error(root: Path) -> None:
    with pytest.raises(ApplyError, match="default_roce_tos does not take '300': Invalid argument"):
        apply_rdma_cm("rxe0", 1, RdmaCm("RoCE v2", 300), sys=SysRoot(str(root)), configfs=Kernel(root), check_mode=False)


def test_a_device_and_a_port_that_are_not_there(root: Path) -> None:
    sys = SysRoot(str(root))
    with pytest.raises(ApplyError, match="does not show mlx5_9: No such device"):
        apply_rdma_cm("mlx5_9", 1, REQUESTED, sys=sys, configfs=Kernel(root), check_mode=False)
    with pytest.raises(ApplyError, match="rxe0 has no port 2"):
        apply_rdma_cm("rxe0", 2, REQUESTED, sys=sys, configfs=Kernel(root), check_mode=False)


REASONS = [
    pytest.param("", "the module rdma_cm is not loaded", id="no module"),
    pytest.param("/sys/module/rdma_cm/refcnt: 1", "configfs is not mounted", id="no configfs"),
    pytest.param("/sys/module/rdma_cm/refcnt: 1\n/sys/kernel/config/nvmet/x: 1", "CONFIG_INFINIBAND_ADDR_TRANS_CONFIGFS", id="no support"),
]


@pytest.mark.parametrize(("tree", "why"), REASONS)
def test_why_nobody_can_be_asked(tmp_path: Path, tree: str, why: str) -> None:
    with pytest.raises(ApplyError, match=f"There is no {FOLDER}: .*{why}"):
        apply_rdma_cm("rxe0", 1, REQUESTED, sys=SysRoot(str(write_tree(tmp_path, tree))), configfs=Kernel(tmp_path), check_mode=False)
    assert not (tmp_path / FOLDER[1:]).exists()


def test_files_of_another_form_are_quoted() -> None:
    assert (parse_mode("IB/RoCE v1\n"), parse_tos("255\n")) == ("IB/RoCE v1", 255)
    with pytest.raises(ParseError, match="not a mode of RDMA-CM: 'RoCE v3'"):
        parse_mode("RoCE v3")
    for text in ("256", "-1", "", "0x6a"):
        with pytest.raises(ParseError, match="not a type of service"):
            parse_tos(text)


def test_the_real_writer_makes_and_writes(tmp_path: Path) -> None:
    configfs = Configfs(str(tmp_path))
    configfs.make(f"{FOLDER}/rxe0")
    configfs.make(f"{FOLDER}/rxe0")
    configfs.write(f"{FOLDER}/rxe0/x", "106\n")
    assert (tmp_path / FOLDER[1:] / "rxe0/x").read_text() == "106\n"
