# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for mlnx_qos prints what real adapters' mlnx_qos printed, byte for byte.

A capture from a page or a mail has blanks where the tool has tabs: both are compared with blanks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.builders.mlnx_qos_state import state_of

ROOT = Path(__file__).parents[2]
STANDIN = ROOT / "lab/standins/qos/mlnx_qos"
CAPTURES = ROOT.parent / "shared" / "fixtures" / "mlnx_qos"


@pytest.mark.parametrize("name", sorted(path.name for path in CAPTURES.glob("*.txt")))
def test_replay(name: str, tmp_path: Path) -> None:
    text = (CAPTURES / name).read_text(encoding="utf-8")
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state_of(text)), encoding="utf-8")
    environment = {**os.environ, "MLNX_QOS_STATE": str(path)}
    done = subprocess.run([sys.executable, str(STANDIN), "-i", "ens1"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.expandtabs() == text.expandtabs()
