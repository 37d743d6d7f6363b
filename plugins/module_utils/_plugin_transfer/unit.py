# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfer program as a transient systemd unit of a host: start it, and collect its results.

The program stays root, because it starts the process with the plugin as another user and ends it. It keeps only the capabilities for that.
The process runs as nobody: the kernel gives /dev/infiniband/uverbs* mode 0666, which driver.node checks. It may lock memory for verbs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import HARDENING
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import alone, read_unit, transient_command
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.unit import parse_list_units
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.main import main as transfer_program
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import (
    TransferPlan,
    TransferResult,
    parse_transfer_plan,
    parse_transfer_results,
)

FOLDER = Path("/run/rdma-cluster/plugin-transfer")
_PREFIX, _SUFFIX = "rdma-plugin-transfer-", ".service"
_PROGRAM, _RESULTS = "plugin_transfer.pyz", "results.json"
_LOOK_SECONDS, _GRACE_SECONDS = 0.5, 20.0
#: The memory and the locked memory of the program with its processes, two of which have the plugin.
LIMITS = ("MemoryMax=1G", "MemorySwapMax=0", "LimitMEMLOCK=256M", "TasksMax=256", "LimitCORE=0")
SANDBOX = (
    "ProtectHome=read-only",
    "ProtectKernelTunables=yes",
    "CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_SETPCAP CAP_KILL",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
)


class TransferUnit:
    """The transfers of one run on this host. run: the id of the run."""

    def __init__(
        self,
        run: str,
        runner: Runner,
        *,
        folder: Path = FOLDER,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if re.fullmatch(r"[A-Za-z0-9-]+", run) is None:
            raise ApplyError(f"the id of a run has letters, digits and hyphens, got {run!r}")
        self.unit, self.folder = f"{_PREFIX}{run}{_SUFFIX}", folder / run
        self._run, self._runner, self._sleep, self._clock = run, runner, sleep, clock

    def start(self, text: str, token: str, host: str, *, python: str, check_mode: bool) -> bool:
        """Start the program unless it runs or has run here. Returns whether it was (or would be) started.

        text: the plan. Raises ApplyError if the program of another run works here, or the unit does not start; ParseError for another text.
        """
        plan = parse_transfer_plan(text)
        if plan.run != self._run or host not in plan.hosts:
            raise ParseError(f"the plan is of run {plan.run!r} and has to be of {self._run!r}, with the host {host!r}")
        if check_mode:
            return not self.folder.exists()
        with alone(self.folder.parent):
            if self.folder.exists():
                return False
            self._refuse_others()
            try:
                self._launch(plan, text, token, host, python)
            except BaseException:
                shutil.rmtree(self.folder, ignore_errors=True)
                raise
        return True

    def collect(self, wait_seconds: float) -> list[TransferResult]:
        """Wait for the results, remove the files, and return the results.

        Raises ApplyError if the program was not started here, ended without results, or reports why it could not work.
        """
        path, deadline = self.folder / _RESULTS, self._clock() + wait_seconds
        if not self.folder.is_dir():
            raise ApplyError(f"the transfers of run {self._run} were not started on this host, or are collected already")
        while not path.exists() and read_unit(self._runner, self.unit).running and self._clock() < deadline:
            self._sleep(_LOOK_SECONDS)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._stop()
            words = f"the transfer program ended without results; `journalctl --unit {self.unit}` on this host may say why"
            raise ApplyError(words) from None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(ValueError, RecursionError):
            answer = json.loads(text)
            if isinstance(answer, dict) and "error" in answer:
                raise ApplyError(f"the transfer program: {answer['error']}")
        return parse_transfer_results(text)

    def _refuse_others(self) -> None:
        """Raise ApplyError while the program of another run works; remove the files of earlier runs."""
        argv = ["systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", f"{_PREFIX}*{_SUFFIX}"]
        units = parse_list_units(run_checked(self._runner, *argv))
        running = [unit for unit, state in units.items() if state in ("active", "activating", "reloading", "deactivating")]
        if running:
            raise ApplyError(f"transfers of another run work on this host: {', '.join(running)}. They end by themselves within minutes.")
        for path in self.folder.parent.iterdir():
            shutil.rmtree(path)

    def _launch(self, plan: TransferPlan, text: str, token: str, host: str, python: str) -> None:
        self.folder.mkdir(mode=0o700)
        files = {_PROGRAM: program_of(transfer_program), "plan.json": text.encode(), "token": token.encode()}
        for name, content in files.items():
            with open(os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
        limit = f"RuntimeMaxSec={plan.limit_seconds(host) + _GRACE_SECONDS:.0f}"
        program, given, secret, results = (str(self.folder / name) for name in (_PROGRAM, "plan.json", "token", _RESULTS))
        properties = (limit, f"ReadWritePaths={self.folder}", *LIMITS, *HARDENING, *SANDBOX)
        argv = transient_command(self.unit, properties, [python, program, given, host, secret, results], options=["--collect"])
        run_checked(self._runner, *argv)

    def _stop(self) -> None:
        with contextlib.suppress(ApplyError):
            run_checked(self._runner, "systemctl", "stop", self.unit)
