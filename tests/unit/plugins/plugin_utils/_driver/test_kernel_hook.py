# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel hook, run by a real shell over commands that it finds on its PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.files import DEBIAN, HOOK_PATHS, RPM, hook_files

STOCK, ADD_ON = "/lib/modules/6.1.0-9/kernel/drivers/mlx5_core.ko", "/lib/modules/6.1.0-9/updates/dkms/mlx5_core.ko"


def commands(folder: Path, *, before: str, after: str) -> Path:
    """Stand-ins on a PATH: modinfo reports another file once dkms has run; all note how they were called."""
    for name, body in {
        "modinfo": f"[ -e {folder}/built ] && echo {after} || echo {before}",
        "dkms": f"touch {folder}/built",
        "logger": "true",
    }.items():
        file = folder / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/called\n{body}\n')
        file.chmod(0o755)
    return folder


def run(
    tmp_path: Path, family: str, *arguments: str, before: str, after: str, headers: bool = True, dkms: bool = True
) -> tuple[str, list[str]]:
    text = next(file.content for file in hook_files(family, planned=True, dkms=dkms) if file.content)
    build = tmp_path / "modules/6.1.0-9/build"
    if headers:
        build.mkdir(parents=True)
        (build / "Makefile").touch()
    script = tmp_path / "hook"
    script.write_text(text.replace("/lib/modules/$kernel", f"{tmp_path}/modules/$kernel"))
    (tmp_path / "called").touch()
    environment = {"PATH": f"{commands(tmp_path, before=before, after=after)}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-u", script, *arguments], env=environment, capture_output=True, text=True, timeout=30, check=True)
    return done.stderr, (tmp_path / "called").read_text().splitlines()


def test_what_dkms_has_built_already_is_left_alone(tmp_path: Path) -> None:
    answer, called = run(tmp_path, "debian", "6.1.0-9", "/boot/vmlinuz-6.1.0-9", before=ADD_ON, after=ADD_ON)
    assert (answer, called) == ("", ["modinfo -k 6.1.0-9 -F filename mlx5_core"])


def test_it_builds_what_is_missing(tmp_path: Path) -> None:
    answer, called = run(tmp_path, "rpm", "add", "6.1.0-9", "/boot/6.1.0-9", before=STOCK, after=ADD_ON)
    assert answer == ""
    assert "dkms autoinstall -k 6.1.0-9" in called


def test_a_build_that_fails_is_reported_and_fails_nothing(tmp_path: Path) -> None:
    answer, called = run(tmp_path, "debian", "6.1.0-9", before=STOCK, after=STOCK)
    assert "kernel 6.1.0-9 has no RDMA driver but the stock one" in answer
    assert "make.log" in answer
    assert any(line.startswith("logger --priority kern.err") for line in called)


def test_without_headers_nothing_is_tried(tmp_path: Path) -> None:
    answer, called = run(tmp_path, "debian", "6.1.0-9", before=STOCK, after=STOCK, headers=False)
    assert "its headers are not installed" in answer
    assert not any(line.startswith("dkms") for line in called)


def test_without_dkms_nothing_is_tried_and_the_warning_says_what_to_do(tmp_path: Path) -> None:
    answer, called = run(tmp_path, "rpm", "add", "6.1.0-9", before=STOCK, after=ADD_ON, dkms=False)
    assert "kernel 6.1.0-9 has no RDMA driver but the stock one" in answer
    assert "run the driver stage after the reboot, or hold the kernel" in answer
    assert not any(line.startswith("dkms") for line in called)
    assert any(line.startswith("logger --priority kern.err") for line in called)


def test_a_kernel_that_is_removed_is_none_of_its_business(tmp_path: Path) -> None:
    assert run(tmp_path, "rpm", "remove", "6.1.0-9", before=STOCK, after=STOCK) == ("", [])


@pytest.mark.parametrize(
    ("family", "requested", "there"), [("debian", True, DEBIAN), ("rpm", True, RPM), ("debian", False, ()), (None, True, ())]
)
def test_a_family_has_its_own_hook_and_no_other(family: str | None, requested: bool, there: tuple[str, ...]) -> None:
    files = hook_files(family, planned=requested)
    assert [file.path for file in files] == list(HOOK_PATHS)
    assert tuple(file.path for file in files if file.content is not None) == there
    assert {file.mode for file in files} == {0o755}
