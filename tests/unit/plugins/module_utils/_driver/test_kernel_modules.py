# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: order, boot file, and the look afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver import kernel_modules
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import boot_files, ensure_modules, is_loaded, option_files
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree


class Kernel(FakeRunner):
    """A scripted modprobe that, as the real one does, leaves a folder in /sys/module."""

    def __init__(self, root: Path, names: list[str]) -> None:
        super().__init__([(["modprobe", name], 0, "", "") for name in names])
        self.root = root

    def run(self, argv, *, timeout_seconds: float = 30.0) -> Completed:  # type: ignore[no-untyped-def]
        done = super().run(argv, timeout_seconds=timeout_seconds)
        (self.root / "sys/module" / argv[1]).mkdir(parents=True)
        return done


@pytest.fixture(autouse=True)
def boot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "modules-load.d/rdma-cluster.conf"
    monkeypatch.setattr(kernel_modules, "LOAD_FILE", str(path))
    monkeypatch.setattr(kernel_modules, "OPTIONS_FILE", str(tmp_path / "modprobe.d/rdma-cluster.conf"))
    return path


def test_loads_what_is_missing_in_order_and_writes_the_boot_file(tmp_path: Path, boot_file: Path) -> None:
    write_tree(tmp_path, "/sys/module/ib_core/srcversion: A")
    runner = Kernel(tmp_path, ["ib_uverbs", "rdma_rxe"])
    names = ["ib_core", "ib_uverbs", "rdma_rxe"]
    result = ensure_modules(names, ["rdma_rxe"], {}, runner=runner, sys=SysRoot(str(tmp_path)), check_mode=False)
    assert result.loaded == ["ib_uverbs", "rdma_rxe"]
    assert boot_file.read_text().splitlines()[1:] == ["rdma_rxe"]
    again = ensure_modules(names, ["rdma_rxe"], {}, runner=FakeRunner([]), sys=SysRoot(str(tmp_path)), check_mode=False)
    assert not again.changed


def test_the_boot_file_names_a_module_a_line(boot_file: Path) -> None:
    header = "# Managed by rdma.cluster: what nothing else loads at boot.\n"
    assert boot_files(["rdma_rxe", "siw"]) == [ManagedFile(str(boot_file), f"{header}rdma_rxe\nsiw\n", 0o644)]
    assert boot_files([]) == [ManagedFile(str(boot_file), None)]


def test_the_boot_file_goes_with_the_last_module(tmp_path: Path, boot_file: Path) -> None:
    write_tree(tmp_path, "/sys/module/rdma_rxe/srcversion: A")
    for at_boot in (["rdma_rxe"], []):
        result = ensure_modules(["rdma_rxe"], at_boot, {}, runner=FakeRunner([]), sys=SysRoot(str(tmp_path)), check_mode=False)
        assert (result.loaded, len(result.files), boot_file.exists()) == ([], 1, bool(at_boot))


def test_check_mode_runs_nothing(tmp_path: Path, boot_file: Path) -> None:
    result = ensure_modules(["ib_core"], ["ib_core"], {}, runner=FakeRunner([]), sys=SysRoot(str(tmp_path)), check_mode=True)
    assert (result.loaded, result.changed) == (["ib_core"], True)
    assert not boot_file.exists()


def test_modprobe_that_fails_is_quoted(tmp_path: Path) -> None:
    answer = "modprobe: FATAL: Module rdma_rxe not found in directory /lib/modules/6.1.0-56-amd64"
    runner = FakeRunner([(["modprobe", "rdma_rxe"], 1, "", answer)])
    with pytest.raises(ApplyError, match=r"rdma_rxe.*FATAL"):
        ensure_modules(["rdma_rxe"], [], {}, runner=runner, sys=SysRoot(str(tmp_path)), check_mode=False)


def test_modprobe_that_claims_success_without_effect_is_an_error(tmp_path: Path) -> None:
    runner = FakeRunner([(["modprobe", "rdma_rxe"], 0, "", "")])
    with pytest.raises(ApplyError, match="it is not in the kernel"):
        ensure_modules(["rdma_rxe"], [], {}, runner=runner, sys=SysRoot(str(tmp_path)), check_mode=False)


def test_a_module_that_is_built_in_counts_as_loaded(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        """
        /proc/sys/kernel/osrelease: 6.1.0-56-amd64
        /lib/modules/6.1.0-56-amd64/modules.builtin: kernel/drivers/infiniband/core/ib_core.ko
        """,
    )
    assert is_loaded("ib_core", SysRoot(str(tmp_path)))
    assert not is_loaded("ib_cor", SysRoot(str(tmp_path)))


def test_options_are_written_before_anything_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "modprobe.d/rdma-cluster.conf"

    class Looking(Kernel):
        def run(self, argv, *, timeout_seconds: float = 30.0) -> Completed:  # type: ignore[no-untyped-def]
            assert file.read_text().splitlines()[1:] == ["options mlx5_core prof_sel=2 debug_mask=1"]
            return super().run(argv, timeout_seconds=timeout_seconds)

    sys, options = SysRoot(str(tmp_path)), {"mlx5_core": " prof_sel=2 debug_mask=1"}
    result = ensure_modules(["mlx5_core"], [], options, runner=Looking(tmp_path, ["mlx5_core"]), sys=sys, check_mode=False)
    assert [change.path for change in result.files] == [str(file)]
    assert not ensure_modules(["mlx5_core"], [], options, runner=FakeRunner([]), sys=sys, check_mode=False).changed
    assert ensure_modules(["mlx5_core"], [], {}, runner=FakeRunner([]), sys=sys, check_mode=True).changed
    ensure_modules(["mlx5_core"], [], {}, runner=FakeRunner([]), sys=sys, check_mode=False)
    assert not file.exists()


def test_options_are_a_line_for_each_module_and_nothing_else() -> None:
    (file,) = option_files({"mlx5_core": "prof_sel=2", "ib_ipoib": "recv_queue_size=512", "ib_umad": " "})
    assert str(file.content).splitlines()[1:] == ["options ib_ipoib recv_queue_size=512", "options mlx5_core prof_sel=2"]
    with pytest.raises(ParseError, match="no option of a kernel module"):
        option_files({"mlx5_core": "prof_sel=2\ninstall x /bin/sh"})
