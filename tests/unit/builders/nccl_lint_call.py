# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module nccl_lint as Ansible runs it, on the machine of the tests."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

MODULE = Path(__file__).parents[3] / "plugins/modules/nccl_lint.py"


def nccl_lint(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, Any]:
    """What the module returns."""
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode(), raising=False)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit):
        runpy.run_path(str(MODULE), run_name="__main__")
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer
