# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""perftest's command line, its process and its output."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import JsonDict, MeetingError

LISTEN_TIMEOUT_SECONDS = 20.0
POLL_SECONDS = (0.001, 0.02)
"""Polling interval for events without a notification: it grows from the first of these times to the second."""
ENDING_SECONDS = 5.0
"""How long a perftest may continue after its partner has ended well."""
PERFTEST_OVERHEAD_SECONDS = 30.0
"""How long perftest may take in addition to its measuring time, unless the plan's test sets deadline_seconds."""
KILL_SECONDS = 5.0
"""How long a perftest may take to end after SIGKILL. One that takes longer hangs in the kernel (state D), and its rail is given up."""
SHOWN_CHARACTERS = 160
LOST_CLOCK = "Correlation coefficient r^2"
"""What perftest prints on standard error if it could not measure how fast its CPU counts: its measurement is lost (get_clock.c)."""
HANDSHAKE_LOST = (
    "Couldn't connect to",
    "Unable to init the socket connection",
    "Unable to open file descriptor for socket connection",
    "Failed to exchange data",
    "Couldn't read remote address",
    "Couldn't send local address",
)
"""What perftest prints if something other than its partner answers, or nothing accepts its connection."""
OUTPUT_HEAD_BYTES = 16 * 1024
OUTPUT_TAIL_BYTES = 48 * 1024
COMMANDS = ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat")


def allowed_seconds(test: JsonDict) -> float:
    """Return how long perftest may take for a test."""
    if test.get("deadline_seconds") is not None:
        return float(test["deadline_seconds"])
    return float(test.get("duration_seconds") or 0) + PERFTEST_OVERHEAD_SECONDS


def meeting_seconds(tests: Sequence[JsonDict]) -> float:
    """Return how long one meeting may take. Every test may be repeated until its time is used up once, and then takes it once more."""
    return sum(2 * (allowed_seconds(test) + LISTEN_TIMEOUT_SECONDS + 2 * ENDING_SECONDS + KILL_SECONDS) for test in tests)


def perftest_argv(test: JsonDict, profile: JsonDict, tcp_port: int, server_address: str | None) -> list[str]:
    """Return perftest's command line; the client's if server_address is given.

    Raises ValueError for a command that is not in COMMANDS, MeetingError if GPU memory is requested and there is none.
    """
    command = test["command"]
    if command not in COMMANDS:
        raise ValueError(f"no such command: {command!r}")
    bandwidth = command.endswith("_bw")
    argv = [command, "-d", profile["device"], "-i", str(profile["port"])]
    if profile.get("gid_index") is not None:
        argv += ["-x", str(profile["gid_index"])]
    if profile.get("pkey_index"):
        argv.append(f"--pkey_index={profile['pkey_index']}")
    argv += ["--ipv6-addr"] if profile.get("ipv6") else []
    argv += ["-s", str(test["size_bytes"])]
    if bandwidth:
        argv += ["-q", str(test["queue_pairs"])]
    amount = ("-D", "duration_seconds") if test.get("iterations") is None else ("-n", "iterations")
    argv += [amount[0], str(test[amount[1]])]
    argv += [*(["--report_gbits"] if bandwidth else []), "-F", "-p", str(tcp_port)]
    argv += ["-b"] if bandwidth and test.get("bidirectional") else []
    for option, key in (("-m", "mtu_bytes"), ("-u", "qp_timeout")):
        argv += [option, str(test[key])] if test.get(key) is not None else []
    if test.get("traffic_class") is not None:
        argv.append(f"--tclass={test['traffic_class']}")
    argv += [f"--sl={test['service_level']}"] if test.get("service_level") is not None else []
    argv += _memory_options(test, profile)
    return argv if server_address is None else [*argv, server_address]


def _memory_options(test: JsonDict, profile: JsonDict) -> list[str]:
    if test.get("memory", "host") == "host":
        return []
    gpu = profile.get("gpu")
    if gpu is None:
        raise MeetingError("start", f"{test['name']} wants a GPU's memory, and the plan names no GPU for {profile['device']}")
    return [f"--use_cuda_bus_id={gpu['bus_id']}", *(["--use_cuda_dmabuf"] if gpu.get("dmabuf") else [])]


def node_cpus(node: int | None, nodes: Path = Path("/sys/devices/system/node")) -> set[int]:
    """Return the CPUs of a NUMA node; none if the NIC has no node, or its node has no CPUs."""
    if node is None or node < 0:
        return set()
    try:
        text = (nodes / f"node{node}" / "cpulist").read_text(encoding="ascii").strip()
    except OSError:
        return set()
    spans = [span.partition("-") for span in text.split(",") if span]
    return {cpu for first, _dash, last in spans for cpu in range(int(first), int(last or first) + 1)}


def first_line(*outputs: str) -> str:
    """Return the first line with text of perftest's outputs, printable and at most SHOWN_CHARACTERS long; "" if there is none."""
    for line in chain.from_iterable(output.splitlines() for output in outputs):
        text = " ".join("".join(letter if letter.isprintable() else " " for letter in line).split())
        if text and text[0] not in "-*" and not text.startswith(("WARNING", "Conflicting CPU frequency")):
            return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
    return ""


def poll_intervals() -> Iterator[float]:
    seconds = POLL_SECONDS[0]
    while True:
        yield seconds
        seconds = min(2 * seconds, POLL_SECONDS[1])


class Captured:
    """The head and the tail of an output that may be long."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Append; only the first 16 and the last 48 KiB are kept."""
        room = OUTPUT_HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(0, len(self._tail) - OUTPUT_TAIL_BYTES)
        del self._tail[:excess]
        self._left_out += excess

    def take(self, pipe: int) -> bool:
        """Read the data available on a non-blocking pipe; False at its end."""
        try:
            piece = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        self.add(piece)
        return bool(piece)

    def text(self) -> str:
        """Return what was kept, with a line in the gap if there is one."""
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "replace")


class Group:
    """A process group for perftest. The kernel kills it when this process ends, however it ends.

    Its leader is a process that has ended and stays unreaped, so that the group has its number before its first member.
    Members' standard input is a pipe whose other end only this process holds; when that closes, the pipe sends SIGKILL
    to the group (F_SETSIG of fcntl(2)). So nothing runs between fork and exec, and perftest can be spawned without a copy
    of this process. Create it before the first thread, because it forks.
    """

    def __init__(self) -> None:
        self.number = os.fork()
        if self.number == 0:
            os.setpgid(0, 0)
            os._exit(0)
        os.waitid(os.P_PID, self.number, os.WEXITED | os.WNOWAIT)
        self.stdin, self._held = os.pipe()
        fcntl.fcntl(self.stdin, fcntl.F_SETOWN, -self.number)
        fcntl.fcntl(self.stdin, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(self.stdin, fcntl.F_SETFL, fcntl.fcntl(self.stdin, fcntl.F_GETFL) | os.O_ASYNC)

    def kill(self) -> None:
        """Kill all members."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)


class Perftest:
    """One running perftest in a group of its own."""

    def __init__(self, argv: list[str], group: Group, environment: dict[str, str]) -> None:
        self.stdout, self.stderr = Captured(), Captured()
        self._group = group
        self._exit_code: int | None = None
        self.stuck = False
        ends = [os.pipe(), os.pipe()]
        sources = (group.stdin, ends[0][1], ends[1][1])
        try:
            self.pid = os.posix_spawnp(  # pylint: disable=ansible-bad-function
                argv[0],
                argv,
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(sources)],
                setpgroup=group.number,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        except (OSError, ValueError) as exc:
            for reader, _writer in ends:
                os.close(reader)
            raise MeetingError("start", f"cannot start {argv[0]}: {exc}") from exc
        finally:
            for _reader, writer in ends:
                os.close(writer)
        self.streams = {ends[0][0]: self.stdout, ends[1][0]: self.stderr}
        for pipe in self.streams:
            os.set_blocking(pipe, False)

    def ended(self) -> bool:
        """Return whether the process has ended."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self._exit_code is not None or os.waitid(os.P_PID, self.pid, flags) is not None

    def end(self) -> int | None:
        """Kill the rest of the group, keep the output so far, and return its exit code.

        Returns None and sets stuck if it does not end within KILL_SECONDS: it hangs in the kernel, and nothing here can end it.
        """
        if self._exit_code is None and not self.stuck:
            self._group.kill()
            self._reap(time.monotonic() + KILL_SECONDS)
            for pipe, captured in self.streams.items():
                captured.take(pipe)
                os.close(pipe)
        return self._exit_code

    def _reap(self, deadline: float) -> None:
        for seconds in poll_intervals():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
                return
            if time.monotonic() > deadline:
                self.stuck = True
                return
            time.sleep(seconds)

    @property
    def lost_its_handshake(self) -> bool:
        """Return whether it failed because something other than its partner answered, or nothing did."""
        if not self.ended() or self.end() == 0:
            return False
        printed = self.stderr.text() + self.stdout.text()
        return any(sign in printed for sign in HANDSHAKE_LOST)
