# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module: it wires, and a host without the tools is a graph that is not complete and no failure."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from tests.unit.builders.fabric_texts import LEAF1, fabric_text

MODULE = Path(__file__).parents[4] / "plugins/modules/fabric_facts.py"


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, Any]:
    """Run the module as Ansible does: options in, JSON out."""
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode(), raising=False)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(MODULE), run_name="__main__")
    answer = json.loads(capsys.readouterr().out)
    assert caught.value.code == 0, answer
    assert isinstance(answer, dict)
    return answer


ALONE = "IsSM ports\nPortInfoRecord dump:\n\t\tEndPortLid..............1\n\nIsSMdisabled ports\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH that has stand-ins of the tools, and nothing else that is theirs."""
    monkeypatch.setattr("os.environ", {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    monkeypatch.setattr("ansible_collections.rdma.cluster.plugins.module_utils._base.command.SYSTEM_DIRECTORIES", ())
    return tmp_path


def lay(tools: Path, name: str, text: str, arguments: str) -> None:
    (tools / f"{name}.txt").write_text(text, encoding="utf-8")
    script = tools / name
    script.write_text(f'#!/bin/sh\n[ "$*" = "{arguments}" ] || exit 77\nexec /bin/cat "$0.txt"\n', encoding="utf-8")
    script.chmod(0o755)


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_graph_of_a_plane(tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, check_mode: bool) -> None:
    where = "-C mlx5_0 -P 1"
    lay(tools, "ibnetdiscover", fabric_text("ibnetdiscover"), where)
    lay(tools, "iblinkinfo", fabric_text("iblinkinfo-l"), f"-l {where}")
    lay(tools, "ibqueryerrors", fabric_text("ibqueryerrors"), f"--threshold-file /dev/null {where}")
    lay(tools, "sminfo", fabric_text("sminfo"), where)
    lay(tools, "saquery", ALONE, f"-s {where}")
    answer = run(capsys, monkeypatch, plane="rail0", device="mlx5_0", port=1, _ansible_check_mode=check_mode)
    graph = Graph.from_dict(answer["graph"])
    assert (graph.plane, graph.complete, graph.problems, len(graph.links)) == ("rail0", True, [], 9)
    assert (answer["subnet_manager"]["state"], answer["no_subnet_manager"], answer.get("changed", False)) == ("MASTER", None, False)
    assert graph.nodes[LEAF1].ports[5].counters["SymbolErrorCounter"] == 0
    assert answer["subnet_managers"] == [answer["subnet_manager"]]
    assert answer["read_at"] > 1.7e9


def test_the_subnet_managers_alone(tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tools, "sminfo", fabric_text("sminfo"), "")
    lay(tools, "saquery", ALONE, "-s")
    answer = run(capsys, monkeypatch, graph=False)
    assert (answer["graph"], answer["no_subnet_manager"], [each["state"] for each in answer["subnet_managers"]]) == (None, None, ["MASTER"])


def test_a_host_without_the_tools(tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run(capsys, monkeypatch)
    assert (answer["graph"]["complete"], answer["graph"]["nodes"], answer["subnet_manager"]) == (False, {}, None)
    assert answer["graph"]["problems"] == ["ibnetdiscover is not installed on this host: install infiniband-diags"]


def test_lldp(tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tools, "lldpcli", '{"lldp": [{}]}', "show neighbors -f json0")
    answer = run(capsys, monkeypatch, source="lldp", plane="eth", name="node1")
    assert (answer["graph"]["complete"], answer["graph"]["source"], answer["graph"]["links"]) == (True, "lldp", [])
