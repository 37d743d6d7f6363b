# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every check that the code makes is in the catalogue, and the page is made of it."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.docs import render
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import STAGES

ROOT = Path(__file__).parents[5]
#: A check's id, as code names it; "nccl.conf" and "fabric.json" are files.
PARTS = "preflight|intent|host|driver|firmware|link|pcie|alike|fabric|network|qos|gpu|nccl|pair|collective|stage"
ID = re.compile(rf'"((?:{PARTS})\.(?!conf"|json")[a-z_]+)"')


def test_the_code_makes_these_checks_and_no_others() -> None:
    files = [path for house in ("module_utils", "plugin_utils") for path in (ROOT / "plugins" / house).rglob("*.py")]
    # What a job's log says, and why, is named in the same way and is no check.
    others = ("_catalogue/checks.py", "_report/drift.py", "_intent/schema/table.py")
    texts = [file.read_text() for file in files if not str(file).endswith(others) and file.parent.name != "_diagnose"]
    assert {found for text in texts for found in ID.findall(text)} == set(CHECKS)


def test_each_stands_at_a_stage_that_is_there() -> None:
    assert {stage for check in CHECKS.values() for stage in check.stage.split(", ")} <= {*STAGES, "every"}


def test_the_page_is_what_is_generated() -> None:
    assert (ROOT / "docs/checks.md").read_text(encoding="utf-8") == render(), "run `python tests/tools/docs.py`"
