# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stream of a drill as a transient unit of a host: start it, collect its result. It ends by itself if nobody collects it."""

from __future__ import annotations

import json
import sys as python
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import HARDENING
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.restore_timer import write_private
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import read_unit, transient_command
from ansible_collections.rdma.cluster.plugins.module_utils._drill.stream import main as stream_program

#: The token of the step is part of the name, because systemd may keep an ended unit, and its name, for a while.
UNIT = "rdma-drill-stream-{token}.service"
FOLDER = Path("/run/rdma-cluster/drill")
PROGRAM, TOKEN, RESULT = "stream.pyz", "stream.token", "stream.json"
#: Within this time a program that cannot bind its address has ended.
START_SECONDS, END_SECONDS, LOOK_SECONDS = 0.5, 15.0, 0.1
#: It opens UDP sockets and writes into its folder. Homes stay readable, because Python may be in one.
SANDBOX = (
    "ProtectHome=read-only",
    "ProtectKernelTunables=yes",
    "PrivateDevices=yes",
    "CapabilityBoundingSet=",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
)


@dataclass(frozen=True)
class Stream:
    """One end of a stream. address: of this host's rail, peer: of the other one, without prefix length. seconds: the longest duration."""

    address: str
    peer: str
    port: int
    flows: int
    interval_ms: int
    seconds: int
    token: str


def start(stream: Stream, runner: Runner, folder: Path = FOLDER) -> None:
    """Start the stream. Raises ApplyError if one runs already, or if the program does not start."""
    before = _unit(folder)
    if before is not None and read_unit(runner, before).running:
        raise ApplyError(f"{before} runs already: another drill measures here. To end it: systemctl stop {before}")
    unit = UNIT.format(token=stream.token)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / RESULT).unlink(missing_ok=True)
    program = folder / PROGRAM
    program.write_bytes(program_of(stream_program))
    write_private(folder / TOKEN, stream.token)
    words = [python.executable, str(program), "--address", stream.address, "--peer", stream.peer]
    for name, value in (("port", stream.port), ("flows", stream.flows), ("interval-ms", stream.interval_ms), ("seconds", stream.seconds)):
        words += [f"--{name}", str(value)]
    words += ["--token-file", str(folder / TOKEN), "--result", str(folder / RESULT)]
    properties = (f"RuntimeMaxSec={stream.seconds + 30}", f"ReadWritePaths={folder}", *HARDENING, *SANDBOX)
    run_checked(runner, *transient_command(unit, properties, words, options=["--collect"]))
    time.sleep(START_SECONDS)
    if not read_unit(runner, unit).running:
        raise ApplyError(
            f"{unit} has ended at once: is {stream.address} an address of this host? `journalctl --unit {unit}` has the reason."
        )


def _unit(folder: Path) -> str | None:
    """Return the unit of the stream that was started here and not collected."""
    try:
        return UNIT.format(token=(folder / TOKEN).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None


def collect(runner: Runner, folder: Path = FOLDER) -> dict[str, Any]:
    """Stop the stream, return its result, and remove its files. Raises ApplyError without a result, ParseError for another form."""
    unit = _unit(folder)
    if unit is None:
        raise ApplyError(f"No stream was started on this host: there is no {folder / TOKEN}.")
    if read_unit(runner, unit).running:
        run_checked(runner, "systemctl", "stop", unit)
    deadline = time.monotonic() + END_SECONDS
    while not (folder / RESULT).exists() and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    try:
        text = (folder / RESULT).read_text(encoding="utf-8")
        found = json.loads(text)
    except FileNotFoundError as error:
        raise ApplyError(f"The stream has no result: `journalctl --unit {unit}` may have the reason.") from error
    except ValueError as error:
        raise ParseError(f"the result of the stream is not JSON: {quoted(text)}") from error
    if not isinstance(found, dict):
        raise ParseError(f"the result of the stream is not an object: {quoted(text)}")
    _forget(folder)
    return found


def stop(runner: Runner, folder: Path = FOLDER) -> bool:
    """Stop a stream that nobody has collected, and remove its files. Returns whether there was one."""
    unit = _unit(folder)
    if unit is None:
        return False
    if read_unit(runner, unit).running:
        run_checked(runner, "systemctl", "stop", unit)
    _forget(folder)
    return True


def _forget(folder: Path) -> None:
    for name in (PROGRAM, TOKEN, RESULT):
        if (folder / name).exists():
            (folder / name).unlink()
