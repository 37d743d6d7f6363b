# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every check that the code makes is in the catalogue, and the page is made of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import CHECKS, STAGES, all_checks, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.docs import render

ROOT = Path(__file__).parents[5]
#: A check's id, as code names it; "nccl.conf" and "fabric.json" are files, "mesh.cables" is a key of the intent.
PARTS = "preflight|intent|host|driver|firmware|link|pcie|alike|fabric|mesh|network|planes|qos|gpu|nccl|pair|collective|soak|stage"
DECLARED = re.compile(r"^declare\($.*?^\)$", re.MULTILINE | re.DOTALL)
ID = re.compile(rf'"((?:{PARTS})\.(?!conf"|json"|cables")[a-z_]+)"')


def test_the_code_makes_these_checks_and_no_others() -> None:
    files = [path for house in ("module_utils", "plugin_utils") for path in (ROOT / "plugins" / house).rglob("*.py")]
    # What a job's log says, and why, is named in the same way and is no check.
    others = ("_catalogue/checks.py", "_report/drift.py", "_intent/schema/table.py")
    texts = [DECLARED.sub("", file.read_text()) for file in files if not str(file).endswith(others) and "_diagnose" not in file.parts]
    assert {found for text in texts for found in ID.findall(text)} == set(all_checks())


def test_each_stands_at_a_stage_that_is_there() -> None:
    assert {stage for check in all_checks().values() for stage in check.stage.split(", ")} <= {*STAGES, "every"}


def test_no_two_modules_declare_the_same_check() -> None:
    with pytest.raises(ValueError, match=r"declared twice: host\.cpu"):
        declare({"host.cpu": all_checks()["host.cpu"]})


def test_the_gate_has_imported_every_check_that_follows_from_another_one() -> None:
    """It folds such findings, and does not look for modules that declare checks."""
    package = "ansible_collections.rdma.cluster.plugins"
    code = f"from {package}.plugin_utils._catalogue.checks import CHECKS; import {package}.action.gate; print(*sorted(CHECKS))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    following = {name for name, check in all_checks().items() if check.follows or check.repeats}
    assert following
    assert following <= {*done.stdout.split()} <= {*all_checks()} == {*CHECKS}


def test_the_page_is_what_is_generated() -> None:
    assert (ROOT / "docs/checks.md").read_text(encoding="utf-8") == render(), "run `python tests/tools/docs.py`"
