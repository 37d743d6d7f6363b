# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program of a host: it meets its partners over TCP, starts a process with the plugin for each transfer, and reads the counters.

It owns the secret and the counters. The plugin runs in a process without rights (child.py). A host sends to its partners one after another,
and receives at the same time, also one after another: what the counters of one direction count belongs to one transfer.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import CONNECT_TIMEOUT_SECONDS, MeetingError, Wire
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer import child
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.counters import Counters, read_counters
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.interface import HANDLE_BYTES
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import (
    MESSAGE_BYTES,
    MESSAGES,
    RECEIVES,
    SENDS,
    Meeting,
    TransferPlan,
    TransferResult,
    parse_transfer_plan,
)
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.process import (
    GRACE_SECONDS,
    EndedError,
    Process,
    child_program,
)

_RETRY_SECONDS, _BACKLOG = 0.5, 64


@dataclass(frozen=True)
class Work:
    """What a host needs for all of its transfers. program: that of child.py, which nobody can read. deadline: of the whole program."""

    plan: TransferPlan
    host: str
    token: bytes
    program: Path
    deadline: float

    def transfer(self, meeting: Meeting, role: str, wire: Wire) -> TransferResult:
        """Make one transfer with a partner that is connected. Every failure is a result."""
        started = time.monotonic()
        run = _Transfer(self, meeting, role, wire, min(started + self.plan.seconds, self.deadline))
        try:
            run.work()
            failed = ""
        except (EndedError, MeetingError) as error:
            failed = str(error)
        except (OSError, ParseError) as error:
            failed = f"{type(error).__name__}: {error}"
        finally:
            run.stop()
        return replace(run.result(), failed=failed, seconds=round(time.monotonic() - started, 2))


class _Transfer:
    def __init__(self, work: Work, meeting: Meeting, role: str, wire: Wire, deadline: float) -> None:
        self._work, self._meeting, self._role, self._wire, self._deadline = work, meeting, role, wire, deadline
        self._process: Process | None = None
        self._heard: list[Mapping[str, Any]] = []
        self._moved: Counters | None = None
        self._partner = meeting.receiver if role == SENDS else meeting.sender

    def work(self) -> None:
        """Move the data. The partner hears of a failure here, and this host of one there."""
        try:
            (self._send if self._role == SENDS else self._receive)()
        except EndedError as error:
            with contextlib.suppress(MeetingError):
                self._wire.send({"kind": "failed", "detail": str(error)[:500]})
            raise

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def result(self) -> TransferResult:
        said = self._process.words if self._process is not None else {}
        size = said.get("sent" if self._role == SENDS else "received")
        counted = self._moved.to_dict() if self._moved is not None else {}
        words: dict[str, Any] = {
            key: str(said.get(name) or "")[:500] for key, name in (("device", "device"), ("mismatch", "wrong"), ("at", "at"))
        }
        size = size if isinstance(size, int) else 0
        return TransferResult(self._partner, self._meeting.rail, self._role, bytes=size, **words, **counted)

    def _receive(self) -> None:
        self._wire.send({"kind": "turn"})
        process = self._start(self._meeting.receiver_device)
        self._hear("ready")
        process.tell()
        handle = process.hear("handle")
        before = read_counters(SysRoot(), "received")
        self._wire.send({"kind": "handle", "handle": handle})
        process.hear("received")
        self._finish(process, before, "received")

    def _send(self) -> None:
        self._hear("turn")
        process = self._start(self._meeting.sender_device)
        self._wire.send({"kind": "ready"})
        handle = self._hear("handle").get("handle")
        if not isinstance(handle, str) or len(handle) != 2 * HANDLE_BYTES or not set(handle) <= set("0123456789abcdef"):
            raise EndedError(f"{self._partner} sent a handle of another form: {quoted(handle)}")
        before = read_counters(SysRoot(), "sent")
        process.tell(handle)
        process.hear("sent")
        self._finish(process, before, "sent")

    def _finish(self, process: Process, before: Counters, direction: str) -> None:
        """Wait until the partner has its data too, read the counters, and close the connection."""
        self._wire.send({"kind": "done"})
        self._hear("done")
        self._moved = read_counters(SysRoot(), direction).since(before)
        process.let_close()

    def _start(self, device: str) -> Process:
        """Return the process when its plugin is loaded: it can take longer than the time that a plugin gives to its partner."""
        own = self._work.plan.hosts[self._work.host]
        left = self._deadline - time.monotonic()
        order = child.Order(
            library=own.library,
            interface=own.interface,
            device=device,
            message_bytes=MESSAGE_BYTES,
            messages=MESSAGES,
            seed=zlib.crc32(repr((self._work.plan.run, self._meeting)).encode()),
            seconds=left,
            variables=dict(own.variables),
            sends=self._role == SENDS,
        )
        self._process = Process(self._work.program, order, self._deadline + GRACE_SECONDS, self._look)
        self._process.hear("ready")
        return self._process

    def _look(self) -> list[socket.socket]:
        """Read the partner's message while the plugin works. Raises EndedError if the partner has failed. Returns the socket to watch."""
        while not self._heard and (self._wire.has_message or select.select([self._wire.sock], [], [], 0)[0]):
            self._take()
        return [] if self._heard else [self._wire.sock]

    def _hear(self, kind: str) -> Mapping[str, Any]:
        """Return the partner's next message. Raises EndedError if the partner has failed, or says something else."""
        if not self._heard:
            left = self._deadline + 2 * GRACE_SECONDS - time.monotonic()
            if not self._wire.has_message and not select.select([self._wire.sock], [], [], max(0.0, left))[0]:
                raise EndedError(f"{self._partner} gave no answer in time")
            self._take()
        message = self._heard.pop(0)
        if message.get("kind") != kind:
            raise EndedError(f"{self._partner} sent {quoted(message.get('kind'))} in place of {kind!r}")
        return message

    def _take(self) -> None:
        """Read one message. Raises EndedError if the partner has failed."""
        message, authentic = self._wire.receive()
        if not authentic:
            raise EndedError(f"the answer of {self._partner} is not signed with the secret of this run")
        if message.get("kind") == "failed":
            raise EndedError(f"{self._partner} failed: {str(message.get('detail'))[:500]}")
        self._heard.append(message)


class Sender(threading.Thread):
    """Calls the partners one after another."""

    def __init__(self, work: Work, meetings: list[Meeting]) -> None:
        super().__init__(daemon=True)
        self._work, self._meetings = work, meetings
        self.results: list[TransferResult] = []

    def run(self) -> None:
        late_until = time.monotonic() + self._work.plan.start_seconds
        for meeting in self._meetings:
            try:
                with contextlib.closing(self._call(meeting, late_until)) as wire:
                    self.results.append(self._work.transfer(meeting, SENDS, wire))
            except (OSError, MeetingError, EndedError) as error:
                failed = f"{meeting.receiver} cannot be reached at {meeting.address} port {self._work.plan.port}: {error}"
                self.results.append(TransferResult(meeting.receiver, meeting.rail, SENDS, failed=failed))

    def _call(self, meeting: Meeting, late_until: float) -> Wire:
        """Return a connection on which the partner is ready to receive."""
        place = meeting.address, self._work.plan.port
        while True:
            try:
                sock = socket.create_connection(place, timeout=CONNECT_TIMEOUT_SECONDS)
                break
            except OSError:
                if time.monotonic() > min(late_until, self._work.deadline):
                    raise
                time.sleep(_RETRY_SECONDS)
        wire = Wire(sock, self._work.token)
        wire.nonce = os.urandom(16).hex()
        wire.keep_alive()
        wire.send({"kind": "hello", "run": self._work.plan.run, "sender": self._work.host, "rail": meeting.rail})
        # The receiver serves one sender after another.
        if not select.select([sock], [], [], max(0.0, self._work.deadline - time.monotonic()))[0]:
            wire.close()
            raise EndedError("it did not get round to this transfer in time")
        return wire


class Receiver(threading.Thread):
    """Serves the partners that call, one after another."""

    def __init__(self, work: Work, meetings: list[Meeting]) -> None:
        super().__init__(daemon=True)
        self._work, self._open = work, {(each.sender, each.rail): each for each in meetings}
        self._listening: list[socket.socket] = []
        self.results: list[TransferResult] = []

    def listen(self) -> None:
        """Open the addresses of this host. Raises OSError."""
        for address in sorted({each.address for each in self._open.values()}):
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
            self._listening.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, self._work.plan.port))
            sock.listen(_BACKLOG)

    def run(self) -> None:
        while self._open:
            left = self._work.deadline - time.monotonic()
            ready = select.select(self._listening, [], [], max(0.0, left))[0]
            if not ready:
                break
            with contextlib.suppress(OSError, MeetingError), contextlib.closing(Wire(ready[0].accept()[0], self._work.token)) as wire:
                self._serve(wire)
        for meeting in self._open.values():
            failed = f"{meeting.sender} did not call {meeting.address} port {self._work.plan.port} in time"
            self.results.append(TransferResult(meeting.sender, meeting.rail, RECEIVES, failed=failed))

    def _serve(self, wire: Wire) -> None:
        message, authentic = wire.receive()
        key = (str(message.get("sender")), str(message.get("rail")))
        if not authentic or message.get("kind") != "hello" or message.get("run") != self._work.plan.run or key not in self._open:
            return
        wire.nonce = str(message.get("nonce"))
        wire.keep_alive()
        self.results.append(self._work.transfer(self._open.pop(key), RECEIVES, wire))

    def close(self) -> None:
        for sock in self._listening:
            sock.close()


def run(plan: TransferPlan, host: str, token: bytes, program: Path) -> list[TransferResult]:
    """Make all transfers of a host. Raises OSError if it cannot listen."""
    sends, receives = plan.of(host)
    work = Work(plan, host, token, program, time.monotonic() + plan.limit_seconds(host))
    sender, receiver = Sender(work, sends), Receiver(work, receives)
    try:
        receiver.listen()
        for thread in (sender, receiver):
            thread.start()
        for thread in (sender, receiver):
            thread.join()
    finally:
        receiver.close()
    return [*sender.results, *receiver.results]


def main() -> int:
    """Make the transfers of a host. Arguments: the plan's file, the host's name in it, the file of the secret, the file for the results.

    Exit code 2: the input cannot be used, or the port is taken.
    """
    plan_path, host, token_path, results_path = sys.argv[1:]
    try:
        plan, token = parse_transfer_plan(Path(plan_path).read_text(encoding="utf-8")), Path(token_path).read_bytes().strip()
        if not token or host not in plan.hosts:
            raise ParseError("the secret is empty" if not token else f"{host} is not in the plan")
        with child_program() as program:
            results = run(plan, host, token, program)
        text, code = json.dumps([asdict(each) for each in results]), 0
    except (OSError, ParseError) as error:
        text, code = json.dumps({"error": str(error)}), 2
    partial = f"{results_path}.partial"
    Path(partial).write_text(text, encoding="utf-8")
    os.replace(partial, results_path)
    return code
