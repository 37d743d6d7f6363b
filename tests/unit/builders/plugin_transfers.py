# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two hosts on loopback addresses that run the packed transfer program with a stand-in for a network plugin."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer import main as program
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import (
    HostPlan,
    Meeting,
    TransferPlan,
    TransferResult,
    parse_transfer_results,
)

STANDIN = Path(__file__).parents[1] / "standins/net_plugin.c"
SECONDS = 20.0


def build_standin(path: Path, version: int, *more: str) -> Path:
    """Compile the stand-in for an interface version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", f"-DVERSION={version}", *more, "-o", str(path), str(STANDIN)]
    subprocess.run(argv, check=True, timeout=60)
    return path


class Loopback:
    """Two hosts, node1 and node2, each of which sends to the other. folder: open to nobody."""

    def __init__(self, folder: Path, library: Path, interface: int, *, seconds: float = SECONDS) -> None:
        self.folder = folder
        prefix = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250) + 1}"
        self.addresses = {"node1": f"{prefix}.1", "node2": f"{prefix}.2"}
        devices = {"node1": "mlx5_0", "node2": "mlx5_0"}
        meetings = tuple(
            Meeting(one, other, "rail0", devices[one], devices[other], self.addresses[other])
            for one, other in (("node1", "node2"), ("node2", "node1"))
        )
        hosts = {host: HostPlan(str(library), interface, {}) for host in self.addresses}
        self.plan = TransferPlan("20261126T200000-1", 18590, 10.0, seconds, hosts, meetings)
        self.program = folder / "plugin_transfer.pyz"
        self.program.write_bytes(program_of(program.main))
        self.tokens = dict.fromkeys(self.addresses, "secret")

    def one_way(self) -> Loopback:
        """Only node1 sends."""
        self.plan = replace(self.plan, meetings=self.plan.meetings[:1])
        return self

    def with_variables(self, host: str, variables: Mapping[str, str]) -> Loopback:
        own = replace(self.plan.hosts[host], variables=variables)
        self.plan = replace(self.plan, hosts={**self.plan.hosts, host: own})
        return self

    def start(self, host: str) -> subprocess.Popen[str]:
        plan, token = self.folder / f"{host}.plan.json", self.folder / f"{host}.token"
        plan.write_text(self.plan.to_text())
        token.write_text(self.tokens[host])
        argv = [sys.executable, "-I", str(self.program), str(plan), host, str(token), str(self.folder / f"{host}.results.json")]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C"})

    def run(self, *hosts: str) -> dict[tuple[str, str], TransferResult]:
        """Return (host, role) → the result. hosts: those that run; without any, both."""
        started = {host: self.start(host) for host in hosts or self.addresses}
        results = {}
        for host, process in started.items():
            text, _errors = process.communicate(timeout=3 * SECONDS)
            assert process.returncode == 0, text + (self.folder / f"{host}.results.json").read_text()
            for each in parse_transfer_results((self.folder / f"{host}.results.json").read_text()):
                results[host, each.role] = each
        return results
