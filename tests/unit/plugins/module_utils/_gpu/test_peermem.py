# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nvidia_peermem without a GPU: modprobe, dkms and dmesg are scripted; what they say is what kmod 30 and dkms 2.8 and 3.0 print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu import peermem
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.peermem import PeermemResult, boot_files, ensure_loaded, ensure_not_at_boot
from tests.unit.builders.fakes import Call, FakeRunner
from tests.unit.builders.trees import write_tree

KERNEL, VERSION = "5.15.0-101-generic", "550.54.15"
LOAD = ["modprobe", "nvidia_peermem"]
OK: Call = (LOAD, 0, "", "")
EINVAL: Call = (LOAD, 1, "", "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument")
ENOENT: Call = (
    LOAD,
    1,
    "",
    "modprobe: ERROR: could not insert 'nvidia_peermem': Unknown symbol in module, or unknown parameter (see dmesg)",
)
QUIET: Call = (["dmesg"], 0, "[1.0] eth0: up", "")
CRC: Call = (["dmesg"], 0, "[9.0] nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client", "")
MODULE = ["-m", "nvidia", "-v", VERSION, "-k", KERNEL]


def version(text: str) -> Call:
    return (["dkms", "--version"], 0, text, "")


def dkms(*words: str) -> Call:
    return (["dkms", words[0], *MODULE, *words[1:]], 0, "", "")


class Host(FakeRunner):
    """A modprobe that says 0 leaves the module loaded."""

    def __init__(self, root: Path, *calls: Call) -> None:
        super().__init__(calls)
        self.root = root

    def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> Completed:
        done = super().run(argv, timeout_seconds=timeout_seconds)
        if list(argv) == LOAD and done.rc == 0:
            write_tree(self.root, "/sys/module/nvidia_peermem/refcnt: 0")
        return done


@pytest.fixture(autouse=True)
def boot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "modules-load.d/rdma-cluster-gpudirect.conf"
    monkeypatch.setattr(peermem, "BOOT_FILE", str(path))
    return path


def host(root: Path, *, in_dkms: str | None = VERSION, driver: str = VERSION, name: str = "nvidia") -> SysRoot:
    text = (
        f"/proc/sys/kernel/osrelease: {KERNEL}\n/proc/driver/nvidia/version: NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  x\n"
    )
    if in_dkms is not None:
        tree = f"/var/lib/dkms/{name}"
        text += f"""
        {tree}/{in_dkms}/source -> /usr/src/{name}-{in_dkms}
        {tree}/{in_dkms}/{KERNEL}/x86_64/module/nvidia-peermem.ko: x
        {tree}/kernel-{KERNEL}-x86_64 -> {in_dkms}/{KERNEL}/x86_64
        """
    return SysRoot(str(write_tree(root, text)))


def ensure(sys: SysRoot, runner: FakeRunner, *, check_mode: bool = False, refused: str = "") -> PeermemResult:
    return ensure_loaded(build_seconds=1200, refused=lambda: refused, runner=runner, sys=sys, check_mode=check_mode)


def test_loads_it_and_only_then_at_boot(tmp_path: Path, boot_file: Path) -> None:
    sys = host(tmp_path)
    result = ensure(sys, Host(tmp_path, OK))
    assert (result.loaded, result.rebuilt, result.changed) == (True, None, True)
    assert boot_file.read_text().splitlines()[1:] == ["nvidia_peermem"]
    assert [diff["after"].splitlines()[-1] for diff in result.diffs] == ["nvidia_peermem", "nvidia_peermem"]
    assert not ensure(sys, FakeRunner([])).changed


def test_check_mode_runs_nothing_and_writes_nothing(tmp_path: Path, boot_file: Path) -> None:
    result = ensure(host(tmp_path), FakeRunner([]), check_mode=True)
    assert (result.loaded, len(result.files), boot_file.exists()) == (True, 1, False)


@pytest.mark.parametrize("refused", [(EINVAL, QUIET), (ENOENT, QUIET), (EINVAL, CRC)], ids=["EINVAL", "unknown symbol", "CRC"])
@pytest.mark.parametrize("answer", ["dkms-3.0.11", "dkms-3.2.2", "dkms-3.0.7"])
def test_one_built_against_another_stack_is_built_again(tmp_path: Path, boot_file: Path, refused: tuple[Call, ...], answer: str) -> None:
    runner = Host(tmp_path, *refused, version(answer), dkms("build", "--force"), dkms("install", "--force"), OK)
    result = ensure(host(tmp_path), runner)
    assert (result.loaded, result.rebuilt, boot_file.exists()) == (True, f"nvidia/{VERSION}", True)
    assert runner.timeouts_seconds[3:5] == [1200, 1200]


@pytest.mark.parametrize("answer", ["dkms: 2.8.7", "dkms-3.0.6", "no version"])
def test_an_old_dkms_builds_in_a_tree_of_its_own_before_it_takes_the_module_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Before 3.0.7 `dkms build --force` does not build what is built."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setattr(peermem.tempfile, "mkdtemp", lambda **_options: str(own))
    tried = dkms("build", "--dkmstree", str(own))
    ensure(host(tmp_path), Host(tmp_path, EINVAL, QUIET, version(answer), tried, dkms("unbuild"), dkms("install"), OK))
    assert not own.exists()

    own.mkdir()
    (tmp_path / "sys/module/nvidia_peermem/refcnt").unlink()
    (tmp_path / "sys/module/nvidia_peermem").rmdir()
    fails: Call = (tried[0], 10, "", "Error! Bad return status for module build on kernel")
    runner = Host(tmp_path, EINVAL, QUIET, version(answer), fails)
    with pytest.raises(ApplyError, match=f"Bad return status.*Read {own}/nvidia/{VERSION}/build/make.log"):
        ensure(host(tmp_path), runner)
    assert own.exists()
    assert not any("unbuild" in call for call in runner.ran)


@pytest.mark.parametrize("reason", ["not allowed", "GPU process 4711 (python3)"])
def test_the_driver_is_not_built_again_where_that_is_refused(tmp_path: Path, boot_file: Path, reason: str) -> None:
    boot_file.parent.mkdir()
    boot_file.write_text("nvidia_peermem\n")
    result = ensure(host(tmp_path), Host(tmp_path, EINVAL, QUIET), refused=reason)
    assert (result.loaded, result.rebuilt) == (False, None)
    assert result.withheld == f"nvidia/{VERSION} has to be built again by DKMS for the loaded RDMA stack: {reason}"
    # A module that cannot be loaded would degrade the next boot.
    assert not boot_file.exists()
    # A module that loads as it is needs no permission.
    assert ensure(host(tmp_path), Host(tmp_path, OK), refused=reason).withheld == ""


def test_it_is_built_again_once_and_then_the_reason_is_reported(tmp_path: Path, boot_file: Path) -> None:
    boot_file.parent.mkdir()
    boot_file.write_text("nvidia_peermem\n")
    runner = Host(tmp_path, EINVAL, QUIET, version("dkms-3.0.11"), dkms("build", "--force"), dkms("install", "--force"), EINVAL, CRC)
    with pytest.raises(ApplyError, match=rf"nvidia/{VERSION} was built again, and .*disagrees about version.*/usr/src/ofa_kernel"):
        ensure(host(tmp_path), runner)
    # Else the next boot would be degraded.
    assert not boot_file.exists()


def test_a_build_that_fails_says_where_its_log_is(tmp_path: Path) -> None:
    failed: Call = (["dkms", "build", *MODULE, "--force"], 10, "", "Error! Bad return status for module build on kernel: x\nConsult it.")
    runner = Host(tmp_path, EINVAL, QUIET, version("dkms-3.0.11"), failed)
    with pytest.raises(ApplyError, match=rf"Bad return status.*Read /var/lib/dkms/nvidia/{VERSION}/build/make.log"):
        ensure(host(tmp_path), runner)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"in_dkms": None}, f"DKMS has no NVIDIA driver for {KERNEL}"),
        ({"name": "nvidia-peer-memory"}, f"DKMS has no NVIDIA driver for {KERNEL}"),
        ({"driver": "535.161.08"}, f"NVIDIA driver 535.161.08 is loaded while DKMS has {VERSION}: reboot"),
    ],
)
def test_what_cannot_be_built_again_is_reported(tmp_path: Path, options: dict[str, Any], answer: str) -> None:
    with pytest.raises(ApplyError, match=answer):
        ensure(host(tmp_path, **options), Host(tmp_path, EINVAL, QUIET))


@pytest.mark.parametrize(
    ("stderr", "answer"),
    [
        (f"modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/{KERNEL}", "comes with NVIDIA's driver since 470"),
        ("modprobe: ERROR: could not insert 'nvidia_peermem': Key was rejected by service", "enroll the key"),
        ("modprobe: ERROR: could not insert 'nvidia_peermem': No such device", "use DMA-BUF"),
    ],
)
def test_another_failure_builds_nothing(tmp_path: Path, stderr: str, answer: str) -> None:
    with pytest.raises(ApplyError, match=answer):
        ensure(host(tmp_path), Host(tmp_path, (LOAD, 1, "", stderr), QUIET))


def test_success_without_effect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match="it is not in the kernel"):
        ensure(host(tmp_path), FakeRunner([OK, QUIET]))


def test_the_older_module_is_enough_and_has_a_service_of_its_own(tmp_path: Path, boot_file: Path) -> None:
    write_tree(tmp_path, "/sys/module/nv_peer_mem/refcnt: 0")
    assert not ensure(host(tmp_path), FakeRunner([])).changed
    assert not boot_file.exists()


def test_without_it_the_boot_file_goes_and_the_module_stays(tmp_path: Path, boot_file: Path) -> None:
    ensure(host(tmp_path), Host(tmp_path, OK))
    assert ensure_not_at_boot(check_mode=True).changed
    assert boot_file.exists()
    assert ensure_not_at_boot(check_mode=False).changed
    assert (boot_file.exists(), (tmp_path / "sys/module/nvidia_peermem").exists()) == (False, True)
    assert not ensure_not_at_boot(check_mode=False).changed
    assert boot_files(at_boot=False)[0].content is None
