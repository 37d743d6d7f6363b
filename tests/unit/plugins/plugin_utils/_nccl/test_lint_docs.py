# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module nccl_lint names what it takes and returns."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import SEVERITIES
from tests.unit.builders.nccl_lint_call import MODULE, nccl_lint


def test_the_documentation_names_every_option_and_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = runpy.run_path(str(MODULE))
    options = yaml.safe_load(module["DOCUMENTATION"])["options"]
    assert set(options) == {*module["ASKED"], "version", "plan"}
    assert set(options["plan"]["suboptions"]) == set(module["PLAN"])
    returned = yaml.safe_load(module["RETURN"])
    path = tmp_path / "nccl.env"
    path.write_text("NCCL_DEBUG=WARNING\n")
    answer = nccl_lint(capsys, monkeypatch, files=[str(path)], users=[])
    assert set(answer["problems"][0]) == set(returned["problems"]["contains"]) == set(returned["problems"]["sample"][0])
    assert set(answer["jobs"][0]) == set(returned["jobs"]["contains"])
    assert all(severity in returned["problems"]["contains"]["severity"]["description"] for severity in SEVERITIES)
