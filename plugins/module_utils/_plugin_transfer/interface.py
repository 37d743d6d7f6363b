# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The functions of a network plugin as NCCL calls them to move data from one host to another.

Arguments: src/include/plugin/net/net_v6.h to net_v12.h of NCCL v2.30.7-1. A connection is not made at once: connect and accept are called
until they return one, and so are isend and irecv until they return a request.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_probe import BY_CONTEXT, RESULTS, PluginTable

#: NCCL_NET_HANDLE_MAXSIZE: the size of the handle that a listening host gives to its partner.
HANDLE_BYTES = 128
_IN_PROGRESS = 7
_HOST_MEMORY = 1
#: NCCL_NET_TRAFFIC_CLASS_UNDEF
_NO_TRAFFIC_CLASS = -1
_TAG = 7
#: Space behind the handle. A plugin that writes into it needs more than NCCL offers.
_SPARE = b"\xa5" * 128
_PAUSE_SECONDS = 0.0002
#: The versions since which a function has an argument, or another type of it.
_DEVICE_HANDLE, _WIDE_REGISTER, _WIDE_SIZES, _PROFILED, _CONFIG = 7, 8, 9, 10, 10

_int = ctypes.c_int
_size = ctypes.c_size_t
_pointer = ctypes.c_void_p


class TransferError(Exception):
    """The plugin did not do what NCCL needs; the message says which function, and what it returned."""


class NetPlugin:
    """A loaded plugin after init. version: of the interface; context: of init. Every wait ends at the deadline (time.monotonic()).

    at: the function that was called last.
    """

    def __init__(self, table: PluginTable, version: int, context: ctypes.c_void_p, deadline: float, called: Callable[[str], None]) -> None:
        self._table, self._version, self._context, self._deadline, self._called = table, version, context, deadline, called
        self._kept: list[Any] = []

    def listen(self, device: int) -> tuple[_pointer, bytes]:
        """Return the listening object and the handle for the partner."""
        buffer = ctypes.create_string_buffer(bytes(HANDLE_BYTES) + _SPARE, HANDLE_BYTES + len(_SPARE))
        listener = _pointer()
        given = self._by_context((_int, device), (_pointer, ctypes.addressof(buffer)), (_pointer, ctypes.addressof(listener)))
        self._call("listen", *given)
        if buffer.raw[HANDLE_BYTES:] != _SPARE:
            raise TransferError(f"listen wrote a handle of more than {HANDLE_BYTES} bytes, the size of NCCL's")
        if not listener:
            raise TransferError("listen returned no object")
        return listener, buffer.raw[:HANDLE_BYTES]

    def connect(self, device: int, handle: bytes) -> _pointer:
        """Return the sending end of a connection to the host that has listened."""
        buffer = ctypes.create_string_buffer(handle + _SPARE, HANDLE_BYTES + len(_SPARE))
        config, of_device, sender = _int(_NO_TRAFFIC_CLASS), _pointer(), _pointer()
        self._kept += [buffer, config]
        head: list[tuple[Any, Any]] = [(_int, device)]
        if self._version >= _CONFIG and self._version < BY_CONTEXT:
            head.append((_pointer, ctypes.addressof(config)))
        tail = [(_pointer, ctypes.addressof(buffer)), (_pointer, ctypes.addressof(sender))]
        return self._until("connect", sender, self._by_context(*head, *tail, *self._device_handle(of_device)))

    def accept(self, listener: _pointer) -> _pointer:
        """Return the receiving end of the connection that the partner has made."""
        of_device, receiver = _pointer(), _pointer()
        return self._until(
            "accept", receiver, [(_pointer, listener), (_pointer, ctypes.addressof(receiver)), *self._device_handle(of_device)]
        )

    def register(self, comm: _pointer, address: int, size_bytes: int) -> _pointer:
        """Return the handle of registered host memory."""
        found = _pointer()
        size = _size if self._version >= _WIDE_REGISTER else _int
        self._call(
            "regMr",
            (_pointer, comm), (_pointer, address), (size, size_bytes), (_int, _HOST_MEMORY), (_pointer, ctypes.addressof(found)),
        )  # fmt: skip
        return found

    def deregister(self, comm: _pointer, memory: _pointer) -> None:
        """Undo register."""
        self._call("deregMr", (_pointer, comm), (_pointer, memory))

    def send(self, comm: _pointer, address: int, size_bytes: int, memory: _pointer) -> _pointer:
        """Return the request of a message that is being sent."""
        size = _size if self._version >= _WIDE_SIZES else _int
        request = _pointer()
        given = [(_pointer, comm), (_pointer, address), (size, size_bytes), (_int, _TAG), (_pointer, memory)]
        return self._until("isend", request, [*given, *self._profiled(), (_pointer, ctypes.addressof(request))])

    def receive(self, comm: _pointer, address: int, size_bytes: int, memory: _pointer) -> _pointer:
        """Return the request of a message that is being received."""
        size = _size if self._version >= _WIDE_SIZES else _int
        request, data, sizes, tags = _pointer(), (_pointer * 1)(address), (size * 1)(size_bytes), (_int * 1)(_TAG)
        memories, profiles = (_pointer * 1)(memory), (_pointer * 1)()
        self._kept += [data, sizes, tags, memories, profiles]
        given = [(_pointer, comm), (_int, 1), *((_pointer, ctypes.addressof(each)) for each in (data, sizes, tags, memories))]
        last = [(_pointer, ctypes.addressof(profiles))] if self._version >= _PROFILED else []
        return self._until("irecv", request, [*given, *last, (_pointer, ctypes.addressof(request))])

    def wait(self, request: _pointer) -> int:
        """Wait for the end of a request and return the size that the plugin reports, in bytes."""
        done, sizes = _int(0), (_int * 8)()
        given = [(_pointer, request), (_pointer, ctypes.addressof(done)), (_pointer, ctypes.addressof(sizes))]
        while True:
            self._call("test", *given)
            if done.value:
                return int(sizes[0])
            self._pause("test")

    def close(self, kind: str, comm: _pointer) -> None:
        """Close an end. kind: "Send", "Recv" or "Listen"."""
        self._call(f"close{kind}", (_pointer, comm))

    def _by_context(self, *given: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        return [*([(_pointer, self._context)] if self._version >= BY_CONTEXT else []), *given]

    def _device_handle(self, place: ctypes.c_void_p) -> list[tuple[Any, Any]]:
        self._kept.append(place)
        return [(_pointer, ctypes.addressof(place))] if self._version >= _DEVICE_HANDLE else []

    def _profiled(self) -> list[tuple[Any, Any]]:
        return [(_pointer, None)] if self._version >= _PROFILED else []

    def _until(self, name: str, result: _pointer, given: list[tuple[Any, Any]]) -> _pointer:
        """Call a function until it has set its result."""
        while True:
            self._call(name, *given, may_wait=True)
            if result:
                return result
            self._pause(name)

    def _pause(self, name: str) -> None:
        if time.monotonic() > self._deadline:
            raise TransferError(f"{name} was called again and again, and did not finish")
        time.sleep(_PAUSE_SECONDS)

    def _call(self, name: str, *given: tuple[Any, Any], may_wait: bool = False) -> None:
        """Call a function of the table. given: (type, value) of each argument. Raises TransferError if it is missing or fails."""
        pointer = getattr(self._table, _FIELDS[name])
        if not pointer:
            raise TransferError(f"{name} is NULL in the table ncclNetPlugin_v{self._version}")
        self._called(name)
        code = int(ctypes.CFUNCTYPE(_int, *(kind for kind, _value in given))(pointer)(*(value for _kind, value in given)))
        if code and not (may_wait and code == _IN_PROGRESS):
            raise TransferError(f"{name} failed with {code} ({RESULTS.get(code, 'unknown')})")


#: The names of NCCL's functions → their fields of PluginTable.
_FIELDS = {
    "listen": "listen",
    "connect": "connect",
    "accept": "accept",
    "regMr": "register",
    "deregMr": "deregister",
    "isend": "send",
    "irecv": "receive",
    "test": "test",
    "closeSend": "close_send",
    "closeRecv": "close_receive",
    "closeListen": "close_listen",
}
