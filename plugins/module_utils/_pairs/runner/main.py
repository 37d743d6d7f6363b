# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that measures one host's share of a sweep. It needs only Python 3.9 and Linux; docs/pairs.md shows how to start it."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.meeting import Rounds
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import load_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.rail import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.reception import Reception
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.results import Results
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.sweep import Sweep

TOKEN_VARIABLE = "RDMA_PAIRS_TOKEN"  # noqa: S105


def own_names() -> list[str]:
    """Return the names that a plan may use for this host: Slurm's, the kernel's, and its first label."""
    name = socket.gethostname()
    return [found for found in (os.environ.get("SLURMD_NODENAME"), name, name.split(".")[0]) if found]


def load_token(path: Path | None) -> bytes:
    """Return the secret of the sweep from a file, or else from the environment, which then loses it. Raises OSError, ValueError."""
    kept = os.environ.pop(TOKEN_VARIABLE, "")
    token = kept.encode() if path is None else path.read_bytes()
    if not token.strip():
        raise ValueError(f"{path or TOKEN_VARIABLE}: the token is empty" if path or kept else f"no --token-file, no {TOKEN_VARIABLE}")
    return token.strip()


def results_path(given: Path, host: str) -> Path:
    """Return the file of results: the given file, or the host's file in a given folder, never outside it. Raises ValueError."""
    if not given.is_dir():
        return given
    if "/" in host or "\0" in host:
        raise ValueError(f"{host!r} of the plan cannot be the name of a file in {given}: name a file with --results")
    return given / f"{host}.jsonl"


def run(sweep: Sweep) -> int:
    """Work through all rails in parallel, and return the exit code."""
    rails = [Rail(sweep, number) for number, rail in enumerate(sweep.plan["rails"]) if rail["addresses"][sweep.index] is not None]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, sweep.stop)
    for rail in rails:
        rail.open()
    reception = Reception(rails)
    gc.freeze()  # do not scan a plan of thousands of hosts again and again
    reception.start()
    threads = [Rounds(rail) for rail in rails]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(1.0)
    reception.close()
    for rail in rails:
        rail.close()
    try:
        sweep.finish()
    except OSError as exc:
        sys.stderr.write(f"pair runner: {exc}\n")
        return 1
    if sweep.stopping:
        return 128 + sweep.signal_number
    return 1 if sweep.failures else 0


def leave(code: int) -> NoReturn:
    """End the process at once, without the exit handlers of Python and of C libraries.

    join() of Python 3.9 to 3.12 returns before the thread has ended for the kernel. OpenSSL, which signs the messages, frees the data of a
    thread both at the end of that thread and in its own exit handler, without a lock: a double free if the two coincide
    (https://github.com/openssl/openssl/issues/17469). Nothing is lost: results are written without a buffer, errors line by line.
    """
    os._exit(code)


def main() -> NoReturn:
    """Run one host's share of a sweep, and end the process. Exit code 0: every round was recorded, whatever its result.

    1: the recording failed; 2: plan, token or results file cannot be used; 128 + n: stopped by signal n.
    """
    parser = argparse.ArgumentParser(description="Run one host's share of a sweep of pairwise RDMA measurements.")
    parser.add_argument("--plan", type=Path, required=True, help="the plan, the same on every host (JSON, maybe gzipped)")
    parser.add_argument("--token-file", type=Path, help=f"a file with the secret of this sweep; else it is in {TOKEN_VARIABLE}")
    parser.add_argument("--host", help="this host's name in the plan; else Slurm's or the kernel's name, or its first label")
    parser.add_argument("--results", type=Path, required=True, help="the file to write, a JSON object a line, or a folder for HOST.jsonl")
    parser.add_argument("--resume", action="store_true", help="go on with the results that are there")
    arguments = parser.parse_args()
    try:
        plan = load_plan(arguments.plan, [arguments.host] if arguments.host else own_names())
        token = load_token(arguments.token_file)
        path = results_path(arguments.results, plan.content["hosts"][plan.host])
        results = Results(path, plan.content["sweep"], arguments.resume)
        code = run(Sweep(plan, token, results))
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"pair runner: {exc}\n")
        code = 2
    leave(code)
