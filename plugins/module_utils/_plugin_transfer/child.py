# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that loads the plugin: it sends data to the partner's process, or receives and compares it.

A plugin is foreign code, so this process has no rights, and its parent limits its time. Parent and process write lines of JSON to each
other. The process writes {"at": FUNCTION} before each function of the plugin that it calls for the first time. It writes {"ready": true}
when the plugin is loaded, and goes on when the parent has written a line: to send, the partner's handle. So the time that a plugin gives
its partner, from listen on, contains no start of a process.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_probe import (
    LOGGER,
    PROFILER,
    RESULTS,
    init_plugin,
    load_table,
    plugin_devices,
)
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.interface import NetPlugin, TransferError

MAX_TEXT = 300
#: NCCL's level of warnings.
_WARN = 2
#: How many messages are on their way at once.
_DEPTH = 2
_SECONDS_OF_CPU = 60
_DATA_BYTES = 2**30


@dataclass(frozen=True)
class Order:
    """What the process does. sends: or receives. device: the RDMA device of the rail.

    seed: determines the bytes. variables: of the plugin.
    """

    library: str
    interface: int
    device: str
    message_bytes: int
    messages: int
    seed: int
    seconds: float
    variables: Mapping[str, str]
    sends: bool


class Talk:
    """The lines between this process and its parent. output: an open file."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._called: set[str] = set()

    def say(self, **words: Any) -> None:
        """Write a line."""
        os.write(self._output, (json.dumps(words) + "\n").encode())

    def calls(self, name: str) -> None:
        """Report the first call of a function, so that the parent knows where the plugin hangs."""
        if name not in self._called:
            self._called.add(name)
            self.say(at=name)


def contents(order: Order) -> Iterable[bytes]:
    """Yield the bytes of each message."""
    source = random.Random(order.seed)  # noqa: S311 (a pattern, not a secret)
    for _number in range(order.messages):
        yield source.getrandbits(8 * order.message_bytes).to_bytes(order.message_bytes, "little")


def transfer(order: Order, talk: Talk) -> None:
    """Move the data. Raises TransferError if the plugin fails, OSError or ValueError if it cannot be loaded."""
    last: list[str] = []

    def write(level: int, _flags: int, _file: bytes, _line: int, text: bytes) -> None:
        if level <= _WARN:
            last[:] = [(text or b"")[:MAX_TEXT].decode("utf-8", "replace")]

    logger, profiler = LOGGER(write), PROFILER(lambda *_arguments: 0)
    try:
        _transfer(order, talk, logger, profiler)
    except TransferError as error:
        # The arguments of the format are not available to Python.
        raise TransferError(f"{error}; its last warning is {last[0]!r}" if last else str(error)) from error


def _transfer(order: Order, talk: Talk, logger: Any, profiler: Any) -> None:
    deadline = time.monotonic() + order.seconds
    table = load_table(order.library, order.interface)
    talk.calls("init")
    code, context = init_plugin(table, order.interface, logger, profiler)
    if code:
        raise TransferError(f"init failed with {code} ({RESULTS.get(code, 'unknown')})")
    talk.calls("devices")
    offered = plugin_devices(table, order.interface)
    if not offered:
        raise TransferError("it offers no device" if offered is not None else "devices failed")
    names = [device["name"] for device in offered]
    # nccl.plugin reports a missing device. A plugin that goes on with an interface must still show what it does.
    number = next((at for at, name in enumerate(names) if name and name.partition(":")[0] == order.device), 0)
    talk.say(device=names[number])
    net = NetPlugin(table, order.interface, context, deadline, talk.calls)
    whole = order.message_bytes * order.messages
    memory = ctypes.create_string_buffer(whole)
    (_send if order.sends else _receive)(order, talk, net, number, memory)


def _send(order: Order, talk: Talk, net: NetPlugin, number: int, memory: ctypes.Array[ctypes.c_char]) -> None:
    memory.raw = b"".join(contents(order))
    talk.say(ready=True)
    comm = net.connect(number, bytes.fromhex(_hear()))
    start = ctypes.addressof(memory)
    handle = net.register(comm, start, len(memory))
    waiting: list[ctypes.c_void_p] = []
    for message in range(order.messages):
        waiting.append(net.send(comm, start + message * order.message_bytes, order.message_bytes, handle))
        if len(waiting) >= _DEPTH:
            net.wait(waiting.pop(0))
    for request in waiting:
        net.wait(request)
    talk.say(sent=len(memory))
    _hear()
    net.deregister(comm, handle)
    net.close("Send", comm)
    talk.say(closed=True)


def _receive(order: Order, talk: Talk, net: NetPlugin, number: int, memory: ctypes.Array[ctypes.c_char]) -> None:
    talk.say(ready=True)
    _hear()
    listener, opaque = net.listen(number)
    talk.say(handle=opaque.hex())
    comm = net.accept(listener)
    start = ctypes.addressof(memory)
    handle = net.register(comm, start, len(memory))
    waiting: list[ctypes.c_void_p] = []
    sizes = []
    for message in range(order.messages):
        waiting.append(net.receive(comm, start + message * order.message_bytes, order.message_bytes, handle))
        if len(waiting) >= _DEPTH:
            sizes.append(net.wait(waiting.pop(0)))
    sizes += [net.wait(request) for request in waiting]
    talk.say(received=len(memory), **_compared(order, memory.raw, sizes))
    _hear()
    net.deregister(comm, handle)
    net.close("Recv", comm)
    net.close("Listen", listener)
    talk.say(closed=True)


def _compared(order: Order, found: bytes, sizes: list[int]) -> dict[str, Any]:
    """Return {"wrong": where the data differs}, or {} if it does not."""
    short = next((number for number, size in enumerate(sizes) if size != order.message_bytes), None)
    if short is not None:
        return {"wrong": f"test reported {sizes[short]} bytes for message {short}, which has {order.message_bytes} bytes"}
    expected = b"".join(contents(order))
    if found == expected:
        return {}
    at = next(place for place, (one, other) in enumerate(zip(found, expected)) if one != other)
    differing = sum(one != other for one, other in zip(found, expected))
    return {"wrong": f"{differing} of {len(expected)} bytes differ, the first at offset {at}"}


def _hear() -> str:
    """Return the parent's next line. The connection is closed when both partners have their data, or know of the failure."""
    return sys.stdin.readline().strip()


def main() -> int:
    """Work through the order in the first argument. Ends without the plugin's own exit functions and threads."""
    talk = Talk(os.dup(1))
    # The plugin may print.
    os.dup2(2, 1)
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, _SECONDS_OF_CPU), (resource.RLIMIT_DATA, _DATA_BYTES)):
        resource.setrlimit(limit, (value, value))
    order = Order(**json.loads(sys.argv[1]))
    os.environ.update(order.variables)
    try:
        transfer(order, talk)
    except (TransferError, OSError, ValueError) as error:
        talk.say(error=str(error)[:MAX_TEXT])
        # The partner hears of it from the parent, before its plugin notices that the connection is gone.
        _hear()
    os._exit(0)
