# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for mstconfig prints what real adapters printed, byte for byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import spelled
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Mlxconfig, parse_mlxconfig

ROOT = Path(__file__).parents[2]
STANDIN = ROOT / "lab/standins/mstconfig"
CAPTURES = ROOT.parent / "shared" / "fixtures" / "mlxconfig"
#: What the repository of one capture has put in the place of values.
PLACEHOLDER = re.compile(r"^.*%[sd].*\n", re.MULTILINE)


def capture(name: str) -> tuple[str, Mlxconfig]:
    text = PLACEHOLDER.sub("", (CAPTURES / f"{name}.txt").read_text(encoding="utf-8"))
    return text, next(iter(parse_mlxconfig(text).values()))


def replay(path: Path, adapter: Mlxconfig, form: str, *words: str) -> str:
    """What the stand-in says of an adapter that has these settings, asked under the name that the real one had."""
    settings = {}
    for name, setting in adapter.settings.items():
        reported = {"default": setting.default, "current": setting.current, "next_boot": setting.next_boot}
        settings[name] = {key: spelled(value) or "N/A" for key, value in reported.items() if value is not None or key == "next_boot"}
    labels = {"type": adapter.device_type, "name": adapter.name or "N/A", "description": adapter.description or "N/A"}
    card = {"addresses": [f"0000:{adapter.device}"], "form": form, "settings": settings, **labels}
    path.write_text(json.dumps({"cards": [card]}), encoding="utf-8")
    done = subprocess.run(
        [str(STANDIN), "-d", str(adapter.device), *words],
        env={**os.environ, "MSTCONFIG_STATE": str(path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_three_columns(tmp_path: Path) -> None:
    """ConnectX-4 Lx, mstconfig -e q. The capture begins with the second line, and ends before the note on the marks."""
    text, adapter = capture("sriov-operator-mstconfig-cx4lx-3col-template")
    assert len(adapter.settings) == 153
    note = "The '*' shows parameters with next value different from default/current value.\n"
    assert replay(tmp_path / "state.json", adapter, "wide", "-e", "q") == f"\n{text}{note}"


def test_one_column_of_an_old_version(tmp_path: Path) -> None:
    """ConnectX-4 Lx, mstconfig q. The mail that it comes from has lost blanks at its end."""
    text, adapter = capture("ml-mstconfig-cx4lx")
    assert len(adapter.settings) == 115
    assert replay(tmp_path / "state.json", adapter, "narrow", "q").rstrip() == text.rstrip()
