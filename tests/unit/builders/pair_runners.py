# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on loopback addresses that run the packed pair runner, with a stand-in for perftest."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import listens

PACKAGE = "ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner"
"""Where the packed program has its files."""
STANDIN = Path(__file__).parents[1] / "standins" / "ib_write_bw"
FLEET_VARIABLE = "TEST_FLEET"
STANDIN_SECONDS = 0.05
BANDWIDTH = {"name": "bandwidth", "command": "ib_write_bw", "size_bytes": 65536, "queue_pairs": 1, "duration_seconds": 1}
LATENCY = {"name": "latency", "command": "ib_send_lat", "size_bytes": 2, "duration_seconds": 1}


class Fleet:
    """Hosts on loopback addresses of their own, the same for each rail but in the third byte."""

    def __init__(self, folder: Path, program: Path, hosts: int, rails: int = 1) -> None:
        self.folder, self.program = folder, program
        self.name = uuid.uuid4().hex
        self.hosts = [f"node{number + 1}" for number in range(hosts)]
        self.prefix = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250) + 1}"
        self.started: dict[str, subprocess.Popen[str]] = {}
        self.arguments: tuple[str, ...] = ()
        self.environment: dict[str, str] = {}
        every = [[f"{self.prefix}.{rail * 20 + number + 1}" for number in range(hosts)] for rail in range(rails)]
        self.plan: dict[str, Any] = {
            "schema": 2,
            "sweep": "20261120T120000-123",
            "rendezvous_port": 18500,
            "perftest_port": 18515,
            "start_deadline_seconds": 20,
            "tests": [dict(BANDWIDTH)],
            "hosts": self.hosts,
            "schedule": {"kind": "full"} if hosts > 2 else {"kind": "meetings", "rails": [[[[1, 0]]]] * rails},
            "profiles": [self.profile(address) for addresses in every for address in addresses],
            "rails": [
                {"name": f"rail{rail}", "addresses": addresses, "profiles": [rail * hosts + number for number in range(hosts)]}
                for rail, addresses in enumerate(every)
            ],
        }
        self.install("ib_write_bw", "ib_send_lat")

    def install(self, *commands: str) -> None:
        (self.folder / "bin").mkdir(exist_ok=True)
        for command in commands:
            program = self.folder / "bin" / command
            program.write_text(f"#!{sys.executable} -ISB\n" + STANDIN.read_text(encoding="utf-8"), encoding="utf-8")
            program.chmod(0o755)

    @staticmethod
    def profile(address: str) -> dict[str, Any]:
        return {"device": f"standin_{address}", "port": 1, "gid_index": 1, "numa_node": 0, "gpu": None}

    def endpoint(self, host: str, rail: int = 0) -> dict[str, Any]:
        profile: dict[str, Any] = self.plan["profiles"][self.plan["rails"][rail]["profiles"][self.hosts.index(host)]]
        return profile

    def behave(self, host: str, behavior: str, rail: int = 0) -> None:
        self.endpoint(host, rail)["device"] += f"_{behavior}"

    def move(self, host: str, address: str | None, rail: int = 0) -> None:
        self.plan["rails"][rail]["addresses"][self.hosts.index(host)] = address

    def start(self, host: str, token: str = "secret", plan: Any = None, how: tuple[str, ...] = (), **more: Any) -> subprocess.Popen[str]:
        plan_file, token_file = self.folder / f"{host}.plan", self.folder / f"{host}.token"
        plan_file.write_text(json.dumps(self.plan if plan is None else plan), encoding="utf-8")
        token_file.write_text(token + "\n", encoding="utf-8")
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        argv = [sys.executable, "-ISB", *how, str(self.program), "--plan", str(plan_file), "--token-file", str(token_file)]
        self.started[host] = subprocess.Popen(
            [*argv, "--host", host, "--results", str(self.results_file(host)), *self.arguments],
            env={**os.environ, "PATH": path, "STANDIN_SECONDS": str(STANDIN_SECONDS), FLEET_VARIABLE: self.name, **self.environment},
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )
        return self.started[host]

    def hang(self) -> None:
        """Start everything with a perftest that does not end, and wait until it runs."""
        for host in self.hosts:
            self.behave(host, "hang")
        for host in self.hosts:
            self.start(host)
        eventually(lambda: sum("standin" in line for line in self.left_behind()) >= 2)

    def results_file(self, host: str) -> Path:
        return self.folder / f"{host}.jsonl"

    def end(self, host: str) -> int:
        _stdout, stderr = self.started[host].communicate(timeout=30)
        assert not stderr, stderr
        return self.started[host].returncode

    def run(self) -> None:
        for host in self.hosts:
            self.start(host)
        assert [self.end(host) for host in self.hosts] == [0] * len(self.hosts)

    def lines(self, host: str) -> list[dict[str, Any]]:
        file = self.results_file(host)
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def records(self, host: str) -> list[dict[str, Any]]:
        *records, last = self.lines(host)
        assert last["finished"] is True
        assert last["records"] == len(records)
        return records

    def errors(self, host: str) -> dict[tuple[str, str], str | None]:
        """The class of each error, by rail and partner."""
        return {
            (record["rail"], next(name for name in (record["server"], record["client"]) if name != host)): record["error"]
            and record["error"]["class"]
            for record in self.records(host)
        }

    def left_behind(self) -> list[str]:
        mark, found = f"{FLEET_VARIABLE}={self.name}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text(encoding="utf-8"))
            except OSError:
                continue
        listening = Path("/proc/net/tcp").read_text(encoding="ascii")
        rails = self.plan["rails"] or []
        ports = [first + number for first in (18500, 18515) for number in range(len(rails))]
        places = [(address, port) for rail in rails for address in rail.get("addresses", []) for port in ports]
        found += [f"{address}:{port}" for address, port in places if address and listens(listening, port, address)]
        return found


def eventually(condition: Any, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
