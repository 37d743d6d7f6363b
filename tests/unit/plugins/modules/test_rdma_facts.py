# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather, to_dict
from tests.unit.builders.trees import mlx5_machine, write_tree

MODULE = Path(__file__).parents[4] / "plugins/modules/rdma_facts.py"


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[int, dict[str, Any]]:
    """Run the module as Ansible does: options in, exit status and JSON out."""
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode()
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", arguments, raising=False)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(MODULE), run_name="__main__")
    code = caught.value.code
    assert isinstance(code, int)
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("check_mode", [False, True])
def test_returns_the_whole_tree(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    check_mode: bool,
) -> None:
    mlx5_machine(tmp_path)

    code, result = run(capsys, monkeypatch, root=str(tmp_path), _ansible_check_mode=check_mode)

    assert code == 0
    assert result.get("changed", False) is False
    assert result["ansible_facts"] == {"rdma": to_dict(gather(SysRoot(str(tmp_path))))}
    assert result["ansible_facts"]["rdma"]["devices"]["mlx5_0"]["ports"]["1"]["hw_counters"] == {"out_of_sequence": 7}


def test_reads_the_running_system_unless_requested_otherwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = run(capsys, monkeypatch)

    assert code == 0
    assert result["ansible_facts"]["rdma"]["stack"]["kernel"] == SysRoot().text("/proc/sys/kernel/osrelease")


def test_a_root_that_is_no_folder_is_an_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, result = run(capsys, monkeypatch, root=str(tmp_path / "none"))

    assert code == 1
    assert result["msg"].startswith(f"root is not a folder: {tmp_path}/none.")


def test_a_file_that_makes_no_sense_is_an_error_that_names_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_tree(mlx5_machine(tmp_path), "/sys/class/infiniband/mlx5_0/ports/1/rate: fast")

    code, result = run(capsys, monkeypatch, root=str(tmp_path))

    assert code == 1
    assert result["msg"] == (
        f"cannot read the RDMA facts below {tmp_path}: /sys/class/infiniband/mlx5_0/ports/1/rate: "
        "not a rate: 'fast', expected the form '100 Gb/sec (4X EDR)'"
    )
