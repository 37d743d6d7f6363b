# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator of a fabric: Debian's ibsim as a process, its console, and the environment that makes a real tool its client.

ibsim listens on abstract Unix sockets with the fabric's name, so fabrics run side by side, and nothing of them is visible on the network.
Source: ibsim 0.10 (ibsim/ibsim.c, ibsim/sim_cmd.c, umad2sim/sim_client.c).
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from lab import process
from lab.errors import LabError
from lab.fabric_plan import FabricPlan
from lab.paths import FabricFolder
from lab.shell import ENVIRONMENT

PROMPT = "sim> "
#: The console's buffer for a line has 128 bytes.
LONGEST_COMMAND = 126
LIBRARIES = Path("/usr/lib")
#: An answer of the console that refuses a command.
REFUSED = re.compile(r"^(?:# .*|set_guid: .*|.*unknown - skipped|disconnect client: .*)$", re.MULTILINE)
#: ibsim's word for a client that it does not have any more.
NO_CLIENT = "bad clientid"
CLIENT = re.compile(r"^Client (\d+): pid (\d+) connected", re.MULTILINE)
LINKED = re.compile(r'^[0-9a-f]+\t\[(\d+)\]\t"([^"]+)"\[(\d+)\]', re.MULTILINE)


def library() -> Path:
    """Return the path of Debian's libumad2sim.so, which is in the architecture's folder."""
    for path in sorted(LIBRARIES.glob("*/umad2sim/libumad2sim.so")):
        return path
    raise LabError("libumad2sim.so is not on this machine. Install it with: apt-get install ibsim-utils")


def environment(folder: FabricFolder, node: str) -> dict[str, str]:
    """Return the environment for a real tool on a node of the fabric. The tool must run in a folder that it may write to."""
    return {**ENVIRONMENT, "LD_PRELOAD": str(library()), "IBSIM_SOCKNAME": socket_name(folder), "SIM_HOST": node}


def socket_name(folder: FabricFolder) -> str:
    return f"rdma-fabric-{folder.path.name}"


def ask(folder: FabricFolder, node: str, words: Sequence[str]) -> str | None:
    """Return the output of a real tool on a node; None if it fails. Dead clients are not removed first."""
    argv = [*folder.enter, *words]
    done = subprocess.run(argv, cwd=folder.clients, env=environment(folder, node), capture_output=True, text=True, timeout=30, check=False)
    return done.stdout if done.returncode == 0 else None


def start(folder: FabricFolder, plan: FabricPlan, *, patience_seconds: float) -> None:
    """Start the simulator and wait for its prompt. Raises LabError with its last line if it ends."""
    home = folder.simulator
    home.mkdir()
    console = home / "console"
    os.mkfifo(console)
    # A FIFO opened for reading and writing never ends for its reader. Otherwise ibsim would spin once the first writer has closed it.
    stdin = os.open(console, os.O_RDWR)
    try:
        with (home / "out").open("wb") as out, (home / "log").open("wb") as log:
            started = subprocess.Popen(
                [*folder.enter, "nice", "-n", "10", *arguments(plan), str(folder.topology)], cwd=home, stdin=stdin, stdout=out, stderr=log,
                start_new_session=True, env={**ENVIRONMENT, "IBSIM_SOCKNAME": socket_name(folder)},
            )  # fmt: skip
    finally:
        os.close(stdin)
    (home / "pid").write_text(str(started.pid))
    deadline = time.monotonic() + patience_seconds
    while not _answer(home, 0).endswith(PROMPT):
        if started.poll() is not None:
            raise LabError(f"ibsim has ended while it was starting: {_last_word(home)}")
        if time.monotonic() > deadline:
            raise LabError(f"ibsim is not ready within {patience_seconds:.0f} s; see {home}/log.")
        time.sleep(0.02)


def arguments(plan: FabricPlan) -> list[str]:
    """Return ibsim's command line without the topology: it starts at once, with room for the plan's nodes and ports."""
    ports = len(plan.switches) * (plan.shape.ports + 1) + len(plan.hcas)
    return ["ibsim", "-s", "-N", str(len(plan.switches) + len(plan.hcas)), "-S", str(len(plan.switches)), "-P", str(ports)]


def is_running(folder: FabricFolder) -> bool:
    return process.is_ours(folder.simulator / "pid", str(folder.topology))


def stop(folder: FabricFolder) -> None:
    process.end(folder.simulator / "pid", str(folder.topology))


def say(folder: FabricFolder, command: str, *, patience_seconds: float = 20.0) -> str:
    """Send a command to the console, and return its answer. Only one caller at a time. Raises LabError if ibsim refuses the command."""
    home = folder.simulator
    if len(command.encode()) > LONGEST_COMMAND or "\n" in command:
        raise LabError(f"ibsim's console takes one line of {LONGEST_COMMAND} bytes at most; got '{command}'.")
    if not is_running(folder):
        raise LabError(f"The simulator of fabric '{folder.path.name}' does not run (its last word: {_last_word(home)}).")
    before = (home / "out").stat().st_size
    with (home / "console").open("w") as console:
        console.write(command + "\n")
    deadline = time.monotonic() + patience_seconds
    while not (answer := _answer(home, before)).endswith(PROMPT):
        if time.monotonic() > deadline or not is_running(folder):
            raise LabError(f"ibsim did not answer '{command}' within {patience_seconds:.0f} s; see {home}/log.")
        time.sleep(0.005)
    answer = answer[: -len(PROMPT)]
    if not command.lower().startswith("dump") and (refused := REFUSED.search(answer)):
        raise LabError(f"ibsim refused '{command}': {refused[0].lstrip('# ').strip()}.")
    return answer


def _answer(home: Path, since: int) -> str:
    with (home / "out").open("rb") as out:
        out.seek(since)
        return out.read().decode(errors="replace")


def _last_word(home: Path) -> str:
    lines = [line for line in (home / "log").read_text(errors="replace").splitlines() if line.strip()] if (home / "log").exists() else []
    return lines[-1] if lines else "none"


def forget_the_dead(folder: FabricFolder) -> None:
    """Remove clients that were killed: ibsim itself notices that only when it has a packet for them."""
    attached = CLIENT.findall(say(folder, "Attached"))
    sockets = Path(f"/proc/{process.read_pid(folder.simulator / 'pid')}/net/unix").read_text()
    for number, pid in attached:
        # The pid of a client in a container is that of its own namespace, so its socket shows whether it still runs.
        if not re.search(rf"@{socket_name(folder)}:ctl{pid}@?$", sockets, re.MULTILINE):
            _disconnect(folder, number)


def _disconnect(folder: FabricFolder, number: str) -> None:
    try:
        say(folder, f"X {number}")
    except LabError as error:
        # A client that ends by itself sends a last message: ibsim may have read it since it was asked for its clients.
        if NO_CLIENT not in str(error):
            raise


def rate(dump: str, port: int) -> tuple[int, str] | None:
    """Return width and speed of a lane ("25G", as ibsim prints it) of a port in a node's `Dump`; None if the port is down."""
    match = re.search(rf"^[0-9a-f]+\t\[{port}\]\t\"[^\n]*? (\d+)x +([\d.]+G) ", dump, re.MULTILINE)
    return (int(match[1]), match[2]) if match else None


def peers(dump: str) -> dict[int, tuple[str, int]]:
    """Return port → (node, port) at the other end from a node's `Dump`, without ports that are down."""
    return {int(port): (node, int(far)) for port, node, far in LINKED.findall(dump) if node != "Sma Port"}
