# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.report; documented in plugins/modules/report.py.

It has no run folder of its own: its result has no run_folder, so the end of the playbook writes no summary over that of an old run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report import report_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import CleanAnswers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import DEFAULT_FOLDER, RunFolderError

ARGUMENTS = {"folder": {"type": "str"}, "run": {"type": "str", "default": "latest"}, "compare": {"type": "str", "default": ""}}


class ActionModule(CleanAnswers):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write the page for Ansible."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(ARGUMENTS)  # type: ignore[no-untyped-call]
        base = Path(options["folder"] or DEFAULT_FOLDER).absolute()
        try:
            path = report_of(base, options["run"], options["compare"])
        except (ReportError, RunFolderError) as error:
            return {**result, "changed": False, "failed": True, "msg": str(error)}
        return {**result, "changed": False, "stored": [str(path)], "explained": f"Report: {path}"}
