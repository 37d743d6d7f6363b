# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many pair runners on this machine, each on a loopback address of its own, with a stand-in perftest that only waits.

What is measured is what the runners add to perftest's own time: on two cores that also carry all stand-ins.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import io
import json
import marshal
import os
import secrets
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import perftest_argv
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import SCHEMA, load_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import listens
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import plan_rounds

SOURCE = Path(__file__).with_name("standin_perftest.c")
PERFTEST_SECONDS = 1.0
RENDEZVOUS_PORT, PERFTEST_PORT = 18500, 18515
NO_HOST = -1
DEAD, KILLED = 17, 40
START_DEADLINE_SECONDS = 15.0
"""For the sweep with a dead host: the interpreters of 64 runners need a while on two cores."""


@dataclass(frozen=True)
class Measured:
    """One sweep. seconds: from the first runner's start to the last one's end; failed: records by error class."""

    seconds: float
    rounds: int
    records: int
    failed: dict[str, int]
    connect_timeouts_seconds: float

    @property
    def overhead(self) -> float:
        """Wall time, less the connect timeouts, over what the stand-ins take one after another."""
        return (self.seconds - self.connect_timeouts_seconds) / (self.rounds * PERFTEST_SECONDS)


def compile_standin(folder: Path) -> Path:
    """Return the folder with ib_write_bw, the stand-in; linked statically where that is possible, for it starts faster."""
    program = folder / "bin" / "ib_write_bw"
    program.parent.mkdir(parents=True, exist_ok=True)
    for options in (["-static"], []):
        done = subprocess.run(["gcc", "-O2", *options, "-o", str(program), str(SOURCE)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return program.parent
    raise RuntimeError(f"the stand-in cannot be compiled: {done.stderr[-500:]}")


def make_plan(hosts: int, start_deadline_seconds: float, schedule: dict[str, Any] | None = None) -> dict[str, Any]:
    """A plan of one rail on loopback addresses that nobody else has."""
    prefix = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250) + 1}"
    addresses = [f"{prefix}.{number + 1}" for number in range(hosts)]
    return {
        "schema": SCHEMA,
        "sweep": "20261121T223000-17",
        "rendezvous_port": RENDEZVOUS_PORT,
        "perftest_port": PERFTEST_PORT,
        "start_deadline_seconds": start_deadline_seconds,
        "tests": [{"name": "bandwidth", "command": "ib_write_bw", "size_bytes": 65536, "queue_pairs": 1, "duration_seconds": 1}],
        "hosts": [f"node{number + 1}" for number in range(hosts)],
        "schedule": schedule or {"kind": "full"},
        "profiles": [{"device": f"standin_{address}", "port": 1, "gid_index": 1, "numa_node": None, "gpu": None} for address in addresses],
        "rails": [{"name": "rail0", "addresses": addresses, "profiles": list(range(hosts))}],
    }


@functools.cache
def compiled_program() -> bytes:
    """The program that hosts get, of which each file is compiled."""
    compiled = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(host_program("_pairs.runner.main"))) as program, zipfile.ZipFile(compiled, "w") as archive:
        for name in program.namelist():
            code = compile(program.read(name), name, "exec", dont_inherit=True)
            # The header of a file that no source belongs to: flags, and 8 bytes that say nothing.
            archive.writestr(f"{name}c", importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    return compiled.getvalue()


class Fleet:
    """The runners of a plan, as processes. They start from compiled code: hosts have a core each to compile it, these have not."""

    def __init__(
        self, folder: Path, plan: dict[str, Any], programs: Path, environment: Mapping[str, str] | None = None, how: Sequence[str] = ()
    ) -> None:
        self.folder, self.plan, self._how = folder, plan, how
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_bytes(gzip.compress(json.dumps(plan, separators=(",", ":")).encode(), mtime=0))
        (folder / "token").write_text(secrets.token_hex(16), encoding="ascii")
        (folder / "runner.pyz").write_bytes(compiled_program())
        self._environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", **(environment or {})}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, hosts: Iterable[int]) -> None:
        """Start the runners of some hosts, given by position."""
        for host in hosts:
            files = ["--plan", "plan.json", "--token-file", "token", "--results", f"{host}.jsonl"]
            argv = [sys.executable, "-ISB", *self._how, "runner.pyz", *files, "--host", self.plan["hosts"][host]]
            self.processes[host] = subprocess.Popen(argv, cwd=self.folder, env=self._environment)

    def wait(self, seconds: float) -> None:
        """Wait until all have ended. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + seconds
        for process in self.processes.values():
            process.wait(timeout=max(0.1, deadline - time.monotonic()))

    def kill(self) -> None:
        """Leave none behind."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def records(self) -> list[dict[str, Any]]:
        """All records of all hosts."""
        files = [self.folder / f"{host}.jsonl" for host in self.processes]
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [record for record in map(json.loads, lines) if "finished" not in record]


def sweep(
    folder: Path, hosts: int, dead: int = NO_HOST, killed: int = NO_HOST, start_deadline_seconds: float = START_DEADLINE_SECONDS
) -> Measured:
    """Sweep all pairs once. dead: a host that is never started; killed: one that is, in the middle of the sweep.

    A host that is not started costs its partner of the first round the wait until the start deadline, for it may be late.
    That, and what their partners waited for those two later on, are the connect timeouts of the sweep.
    """
    plan = make_plan(hosts, start_deadline_seconds)
    fleet, rounds = Fleet(folder, plan, compile_standin(folder)), plan_rounds(plan)
    begun = time.monotonic()
    try:
        fleet.start(host for host in range(hosts) if host != dead)
        if killed != NO_HOST:
            time.sleep(rounds * PERFTEST_SECONDS / 2)
            fleet.processes[killed].kill()
        fleet.wait(rounds * PERFTEST_SECONDS * 3 + start_deadline_seconds + 60)
    finally:
        fleet.kill()
    seconds = time.monotonic() - begun
    records = fleet.records()
    failed: dict[str, int] = {}
    for record in records:
        if record["error"] or record["exit_code"]:
            kind = record["error"]["class"] if record["error"] else "exit code"
            failed[kind] = failed.get(kind, 0) + 1
    return Measured(seconds, rounds, len(records), failed, connect_timeouts_seconds(plan, records, dead))


def connect_timeouts_seconds(plan: dict[str, Any], records: Sequence[dict[str, Any]], dead: int) -> float:
    """The longest that anybody waited for a host that was never started: less the round that it would have taken.

    Rounds go on side by side, so that it is lost once and not once a partner.
    """
    if dead == NO_HOST:
        return 0.0
    name = plan["hosts"][dead]
    waited = [float(record["waited_seconds"]) for record in records if name in (record["server"], record["client"])]
    return max(0.0, max(waited) - PERFTEST_SECONDS)


def sequential_seconds(folder: Path, pairs: int) -> float:
    """What one pair takes by the plainest means: start the server, wait until it listens, run the client, pair after pair.

    Both ends run on this machine and nothing is sent to hosts, which favours this way.
    """
    programs, plan = compile_standin(folder), make_plan(2, 0)
    addresses = plan["rails"][0]["addresses"]
    begun = time.monotonic()
    for _pair in range(pairs):
        argv = [perftest_argv(plan["tests"][0], plan["profiles"][end], PERFTEST_PORT, addresses[0] if end else None) for end in (0, 1)]
        server = subprocess.Popen([str(programs / argv[0][0]), *argv[0][1:]], stdout=subprocess.DEVNULL)
        while not listens(Path("/proc/net/tcp").read_text(encoding="ascii"), PERFTEST_PORT, addresses[0]):
            if server.poll() is not None:
                raise RuntimeError("the stand-in's server ended before it listened")
            time.sleep(0.005)
        subprocess.run([str(programs / argv[1][0]), *argv[1][1:]], stdout=subprocess.DEVNULL, check=True)
        server.wait(timeout=10)
    return (time.monotonic() - begun) / pairs


def schedule_ms(folder: Path, hosts: int = 4096, rails: int = 8, times: int = 9) -> float:
    """The CPU time, in ms, of reading a plan of many hosts and finding one's own meetings on all rails: the median."""
    plan = make_plan(2, 60)
    plan["hosts"] = [f"gpu{number:04d}" for number in range(hosts)]
    plan["profiles"] = [{"device": f"mlx5_{rail}", "port": 1, "gid_index": 3, "numa_node": rail // 4, "gpu": None} for rail in range(rails)]
    plan["rails"] = [
        {
            "name": f"rail{rail}",
            "addresses": [f"10.{rail}.{number >> 8}.{number & 255}" for number in range(hosts)],
            "profiles": [rail] * hosts,
        }
        for rail in range(rails)
    ]
    path = folder / "plan.json.gz"
    path.write_bytes(gzip.compress(json.dumps(plan, separators=(",", ":")).encode(), mtime=0))
    taken = []
    for number in range(times):
        begun = time.process_time()
        loaded = load_plan(path, [plan["hosts"][number * hosts // times]])
        taken.append((time.process_time() - begun) * 1000)
        if sum(map(len, loaded.meetings)) != rails * (hosts - 1):
            raise RuntimeError("the schedule is not whole")
    return sorted(taken)[times // 2]
