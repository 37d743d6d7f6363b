# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Swapping modules in a tree of /sys: a scripted modprobe that, as the real one does, changes what is loaded."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.swap import SwapResult, reload_driver, unload_order
from tests.unit.builders.fakes import Call, FakeRunner
from tests.unit.builders.trees import write_tree

OLD, NEW = "AAAA0000", "BBBB1111"
DMESG = "[1.0] mlx5_core: firmware\n[2.0] eth0: up\n[3.0] mlx5_ib: Unknown symbol ib_x (err -22)\n"
KERNEL_LOG = (["dmesg"], 0, DMESG, "")


def modinfo(**srcversions: str) -> Call:
    files = {name: f"/lib/modules/6.1.0/updates/dkms/{name}.ko" for name in srcversions}
    lines = [
        f"filename:       {files[name]}\nversion:        24.10\nsrcversion:     {srcversion}\nname:           {name}\n"
        for name, srcversion in srcversions.items()
    ]
    return (["modinfo", *srcversions], 0, "".join(lines), "")


def unload(name: str) -> Call:
    return (["modprobe", "-r", name], 0, "", "")


def load(name: str) -> Call:
    return (["modprobe", name], 0, "", "")


class Kernel(FakeRunner):
    """modprobe -r takes the folder away, modprobe and openibd bring those on disk."""

    def __init__(self, root: Path, calls: list[Call], brings: str = NEW) -> None:
        super().__init__(calls)
        self.root, self.brings = root, brings

    def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> Completed:
        done = super().run(argv, timeout_seconds=timeout_seconds)
        if done.rc == 0 and (argv[:2] == ["modprobe", "-r"] or argv[0] == "rmmod"):
            shutil.rmtree(self.root / "sys/module" / argv[-1])
            for holders in (self.root / "sys/module").glob(f"*/holders/{argv[-1]}"):
                holders.unlink()
        elif done.rc == 0 and argv[0] == "modprobe":
            self.bring(argv[1])
        elif argv[0] == "systemctl":
            for name in ("mlx5_core", "mlx5_ib"):
                self.bring(name)
        return done

    def bring(self, name: str) -> None:
        write_tree(
            self.root, f"/sys/module/{name}/version: 24.10\n/sys/module/{name}/srcversion: {self.brings}\n/sys/module/{name}/refcnt: 0"
        )


def host(root: Path, text: str = "") -> SysRoot:
    """mlx5_ib holds mlx5_core, nvidia_peermem holds ib_core; all are the old ones, and nobody uses the host."""
    lines = "/proc/1/comm: systemd\n"
    for name, references in (("mlx5_core", 1), ("mlx5_ib", 0), ("ib_core", 1), ("nvidia_peermem", 0)):
        lines += f"/sys/module/{name}/refcnt: {references}\n/sys/module/{name}/version: 24.10\n/sys/module/{name}/srcversion: {OLD}\n"
    lines += "/sys/module/mlx5_core/holders/mlx5_ib -> ../../mlx5_ib\n/sys/module/ib_core/holders/nvidia_peermem -> ../../nvidia_peermem\n"
    return SysRoot(str(write_tree(root, lines + text)))


def swap(sys: SysRoot, runner: FakeRunner, modules: list[str], wanted: list[str], **options: Any) -> SwapResult:
    given_ = {"service": "none", "always": False, "check_mode": False, **options}
    return reload_driver(modules, wanted, runner=runner, sys=sys, **given_)


def test_unloads_top_first_loads_lowest_first_and_looks(tmp_path: Path) -> None:
    sys = host(tmp_path)
    calls = [modinfo(mlx5_core=NEW, mlx5_ib=NEW), unload("mlx5_ib"), unload("mlx5_core"), load("mlx5_core"), load("mlx5_ib")]
    runner = Kernel(tmp_path, [*calls, modinfo(mlx5_core=NEW, mlx5_ib=NEW)])
    result = swap(sys, runner, ["siw", "mlx5_ib", "mlx5_core"], ["mlx5_core", "mlx5_ib"])
    assert result == SwapResult(["mlx5_ib", "mlx5_core"], None, ["mlx5_core", "mlx5_ib"])
    assert [diff["after"] for diff in result.diffs] == ["mlx5_ib\nmlx5_core\n", "mlx5_core\nmlx5_ib\n"]


def test_nothing_is_done_where_the_modules_are_those_on_disk(tmp_path: Path) -> None:
    result = swap(host(tmp_path), FakeRunner([modinfo(mlx5_core=OLD, mlx5_ib=OLD)]), ["mlx5_ib", "mlx5_core"], ["mlx5_core"])
    assert not result.changed
    assert result.diffs == []


def test_one_that_is_replaced_and_not_needed_any_more_goes(tmp_path: Path) -> None:
    calls = [modinfo(ib_core=OLD, mlx5_ib=OLD, mlx5_core=NEW), unload("mlx5_ib"), unload("mlx5_core"), modinfo(ib_core=OLD)]
    result = swap(host(tmp_path), Kernel(tmp_path, calls), ["mlx5_ib", "mlx5_core"], ["ib_core"])
    assert result == SwapResult(["mlx5_ib", "mlx5_core"], None, [])


def test_one_whose_file_has_gone_goes_all_the_same(tmp_path: Path) -> None:
    # What kmod 30 of Debian 12 says.
    no_file = (["modprobe", "-r", "mlx5_ib"], 1, "", "modprobe: FATAL: Module mlx5_ib not found.\n")
    calls = [modinfo(ib_core=OLD, mlx5_ib=NEW), no_file, (["rmmod", "mlx5_ib"], 0, "", ""), modinfo(ib_core=OLD)]
    assert swap(host(tmp_path), Kernel(tmp_path, calls), ["mlx5_ib"], ["ib_core"]).unloaded == ["mlx5_ib"]


def test_after_a_change_of_options_they_are_reloaded_all_the_same(tmp_path: Path) -> None:
    calls = [unload("mlx5_ib"), load("mlx5_ib"), modinfo(mlx5_ib=OLD)]
    assert swap(host(tmp_path), Kernel(tmp_path, calls, OLD), ["mlx5_ib"], ["mlx5_ib"], always=True).changed


def test_without_modules_to_load_it_only_unloads(tmp_path: Path) -> None:
    sys = host(tmp_path)
    assert swap(sys, Kernel(tmp_path, [unload("nvidia_peermem")]), ["nvidia_peermem"], []).unloaded == ["nvidia_peermem"]
    assert not swap(sys, FakeRunner([]), ["nvidia_peermem"], []).changed


def test_check_mode_changes_nothing(tmp_path: Path) -> None:
    sys = host(tmp_path, "/lib/systemd/system/openibd.service: x")
    result = swap(
        sys, FakeRunner([modinfo(mlx5_core=NEW, nvidia_peermem=OLD)]), ["nvidia_peermem"], ["mlx5_core"], service="auto", check_mode=True
    )
    assert result == SwapResult(["nvidia_peermem"], "openibd.service", [])
    assert sys.exists("/sys/module/nvidia_peermem")


def test_openibd_swaps_its_own_and_others_are_taken_out_before(tmp_path: Path) -> None:
    sys = host(tmp_path, "/lib/systemd/system/openibd.service: x")
    calls = [modinfo(mlx5_core=NEW, nvidia_peermem=OLD), unload("nvidia_peermem"), (["systemctl", "restart", "openibd.service"], 0, "", "")]
    runner = Kernel(tmp_path, [*calls, modinfo(mlx5_core=NEW)])
    assert swap(sys, runner, ["nvidia_peermem"], ["mlx5_core"], service="auto").restarted == "openibd.service"
    assert runner.timeouts_seconds[2] >= 300


def test_without_openibd_auto_restarts_nothing(tmp_path: Path) -> None:
    runner = Kernel(tmp_path, [modinfo(mlx5_ib=NEW), unload("mlx5_ib"), load("mlx5_ib"), modinfo(mlx5_ib=NEW)])
    assert swap(host(tmp_path), runner, ["mlx5_ib"], ["mlx5_ib"], service="auto").restarted is None


@pytest.mark.parametrize(
    ("modules", "text", "answer"),
    [
        (["mlx5_core"], "", "mlx5_core is held by mlx5_ib"),
        (["mlx5_core", "mlx5_ib"], "", "mlx5_core is held by mlx5_ib"),
        (["mlx5_ib"], "/sys/module/mlx5_ib/refcnt: 3", "mlx5_ib is in use 3 times (an open device"),
        (["mlx5_ib", "mlx5_core"], "/sys/module/mlx5_core/refcnt: 2", "mlx5_core is in use 1 times (an open device"),
        (["ib_uverbs"], "/sys/module/ib_uverbs/parameters/x: 1", "ib_uverbs is part of the kernel, or cannot be unloaded"),
    ],
)
def test_what_is_in_the_way_is_named_before_anything_is_changed(tmp_path: Path, modules: list[str], text: str, answer: str) -> None:
    runner = FakeRunner([])
    with pytest.raises(ApplyError, match=f"^Nothing was unloaded: {re.escape(answer)}"):
        swap(host(tmp_path, text), runner, modules, [], always=True)
    assert runner.ran == []


BUSY = {
    "a job": ("/proc/815/comm: slurmstepd\n/proc/815/cmdline: slurmstepd", r"job process 815 \(slurmstepd\)"),
    "a GPU process": (
        "/proc/driver/nvidia/version: x\n/proc/4711/comm: python3\n/proc/4711/fd/3 -> /dev/nvidia0",
        r"GPU process 4711 \(python3\)",
    ),
    "unreadable": ("", "GPU processes cannot be seen"),
}


@pytest.mark.parametrize("use", BUSY)
@pytest.mark.parametrize("always", [True, False])
def test_a_host_in_use_is_not_touched(tmp_path: Path, use: str, always: bool) -> None:
    """A job holds no module before it opens its first device."""
    sys = host(tmp_path, BUSY[use][0])
    if use == "unreadable":
        shutil.rmtree(tmp_path / "proc")
    runner = FakeRunner([] if always else [modinfo(mlx5_core=NEW, mlx5_ib=NEW)])
    with pytest.raises(ApplyError, match=f"Nothing was unloaded: the host is in use .{BUSY[use][1]}"):
        swap(sys, runner, ["mlx5_ib", "mlx5_core"], ["mlx5_core"], always=always)
    assert [call[0] for call in runner.ran] == ([] if always else ["modinfo"])


def test_a_module_that_went_along_with_another_is_not_unloaded_again(tmp_path: Path) -> None:
    class Greedy(Kernel):
        def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> Completed:
            done = super().run(argv, timeout_seconds=timeout_seconds)
            if argv == ["modprobe", "-r", "mlx5_ib"]:
                shutil.rmtree(self.root / "sys/module/mlx5_core")
            return done

    calls = [unload("mlx5_ib"), load("mlx5_core"), modinfo(mlx5_core=NEW)]
    runner = Greedy(tmp_path, calls)
    swap(host(tmp_path), runner, ["mlx5_ib", "mlx5_core"], ["mlx5_core"], always=True)
    assert runner.ran == [tuple(argv) for argv, *_answer in calls]


def test_one_that_does_not_load_is_the_end_and_the_kernel_is_quoted(tmp_path: Path) -> None:
    failed: Call = (["modprobe", "mlx5_ib"], 1, "", "modprobe: ERROR: could not insert 'mlx5_ib': Invalid argument")
    runner = Kernel(tmp_path, [unload("mlx5_ib"), failed, KERNEL_LOG])
    with pytest.raises(ApplyError) as caught:
        swap(host(tmp_path), runner, ["mlx5_ib"], ["mlx5_ib", "mlx5_core"], always=True)
    assert str(caught.value) == (
        "Cannot load mlx5_ib: modprobe: ERROR: could not insert 'mlx5_ib': Invalid argument. Loaded now: none of them. "
        "Kernel messages: [3.0] mlx5_ib: Unknown symbol ib_x (err -22)"
    )


def test_an_unload_without_effect_is_an_error(tmp_path: Path) -> None:
    runner = FakeRunner([unload("mlx5_ib"), KERNEL_LOG])
    with pytest.raises(ApplyError, match=r"Cannot unload mlx5_ib: modprobe reports no error.*Loaded now: mlx5_ib\."):
        swap(host(tmp_path), runner, ["mlx5_ib"], [], always=True)


def test_what_came_back_is_not_what_is_on_disk(tmp_path: Path) -> None:
    """The initramfs or another file was first."""
    runner = Kernel(tmp_path, [modinfo(mlx5_ib=NEW), unload("mlx5_ib"), load("mlx5_ib"), modinfo(mlx5_ib=NEW), KERNEL_LOG], OLD)
    with pytest.raises(
        ApplyError, match=rf"After the reload, mlx5_ib is 24.10 \(srcversion {OLD}\), .*mlx5_ib.ko is 24.10 \(srcversion {NEW}\)"
    ):
        swap(host(tmp_path), runner, ["mlx5_ib"], ["mlx5_ib"])


def test_without_modinfo_nothing_is_taken_for_right(tmp_path: Path) -> None:
    runner = Kernel(tmp_path, [unload("mlx5_ib"), load("mlx5_ib"), (["modinfo", "mlx5_ib"], 1, "", "not found"), KERNEL_LOG])
    with pytest.raises(ApplyError, match="modinfo finds no file for mlx5_ib"):
        swap(host(tmp_path), runner, ["mlx5_ib"], ["mlx5_ib"], always=True)


def test_the_order_is_that_of_the_holders() -> None:
    real = {"ib_core": ["mlx5_ib", "rdma_cm"], "mlx5_core": ["mlx5_ib"], "mlx5_ib": [], "rdma_cm": ["rpcrdma", "elsewhere"], "rpcrdma": []}
    assert unload_order(real) == ["mlx5_ib", "rpcrdma", "rdma_cm", "ib_core", "mlx5_core"]
    assert sorted(unload_order({"a": ["b"], "b": ["a"], "c": ["c"]})) == ["a", "b", "c"]


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.sets(NAMES), max_size=6))
def test_every_module_comes_once_and_after_its_holders(modules: dict[str, set[str]]) -> None:
    order = unload_order(modules)
    assert sorted(order) == sorted(modules)
    # Only what cannot be reached from its own holders has a place of its own.
    for name, holders in modules.items():
        for holder in holders & modules.keys():
            if not reaches(name, holder, modules):
                assert order.index(holder) < order.index(name)


def reaches(target: str, start: str, modules: dict[str, set[str]]) -> bool:
    """Whether target is among the holders of start, or of its holders: then the two hold each other."""
    seen: set[str] = set()
    left = [start]
    while left:
        name = left.pop()
        if name == target:
            return True
        if name not in seen:
            seen.add(name)
            left += modules.get(name, set())
    return False
