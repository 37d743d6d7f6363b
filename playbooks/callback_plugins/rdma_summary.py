# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run's summary. It stands beside the playbooks, so Ansible loads it with them, also from an installed collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

from ansible_collections.rdma.cluster.plugins.plugin_utils._gate import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._summary import render

DOCUMENTATION = r"""
name: rdma_summary
type: aggregate
version_added: 0.1.0
short_description: The summary of a run, for a person
description:
  - After the last play, also one that stopped at a gate, prints hosts × stages, what the pairs measured, what is to be
    mended and how, and where the evidence is.
author: the rdma.cluster authors (@rdma-cluster)
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "rdma_summary"

    def __init__(self) -> None:
        super().__init__()
        self._folder: RunFolder | None = None

    def _remember(self, result: Any) -> None:
        """Every action of ours says where the run's folder is."""
        path = result.result.get("run_folder")
        if path:
            self._folder = RunFolder(Path(path))

    def v2_runner_on_ok(self, result: Any) -> None:
        self._remember(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._remember(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self._folder is None:
            return
        findings = self._folder.all_findings()
        pairs = self._folder.read_json("pairs/results.json") if (self._folder.path / "pairs/results.json").exists() else []
        text = render(self._folder.path.name, STAGES, findings, pairs, str(self._folder.path))
        self._folder.write("summary.txt", text + "\n")
        self._display.banner("RDMA SUMMARY")
        self._display.display(text)
