# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program that loads a network plugin as NCCL does, and asks it for its devices. It needs no GPU, CUDA or NCCL.

A plugin is foreign code: it may crash, hang, print and exit. So the program is a process of its own, whose caller limits its time.
Layouts and arguments: src/include/plugin/net/net_v*.h of NCCL v2.30.7-1, and ext-net/example/nccl/net_v{6,7}.h of v2.20.5-1.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from collections.abc import Sequence
from typing import Any

#: The versions of ncclNetPlugin_vN that the program knows.
OLDEST, NEWEST = 6, 12
MAX_DEVICES, MAX_LINES, MAX_TEXT = 64, 40, 300
#: ncclResult_t (nccl.h).
RESULTS = {
    1: "CUDA error",
    2: "system error",
    3: "internal error",
    4: "invalid argument",
    5: "invalid usage",
    6: "remote error",
    7: "in progress",
}
#: Bits of ptrSupport.
MEMORY = {1: "host", 2: "cuda", 4: "dmabuf"}
_SECONDS_OF_CPU = 10
#: Space behind each structure, for a plugin that was built with a larger one.
_SPARE_BYTES = 512
LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
PROFILER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
BY_CONTEXT, WITH_PROFILER, _WITH_FLUSH, _WITH_GLOBAL = 11, 10, 9, 8


def properties_type(version: int) -> type[ctypes.Structure]:
    """Return the start of ncclNetProperties_vN: all that this program reads."""
    whole = ctypes.c_int
    flags = [("reg_is_global", whole)] * (version >= _WITH_GLOBAL) + [("force_flush", whole)] * (version >= _WITH_FLUSH)
    head = [("name", ctypes.c_char_p), ("pci_path", ctypes.c_char_p), ("guid", ctypes.c_uint64), ("memory", whole)]
    tail = [("speed", whole), ("port", whole), ("latency", ctypes.c_float), ("max_comms", whole), ("max_receives", whole)]
    return type(f"Properties{version}", (ctypes.Structure,), {"_fields_": [*head, *flags, *tail]})


class PluginTable(ctypes.Structure):
    """The start of ncclNet_vN: the same functions in all versions, with other arguments."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *("init", "devices", "properties", "listen", "connect", "accept", "register", "register_dmabuf", "deregister"),
                *("send", "receive", "flush", "test", "close_send", "close_receive", "close_listen"),
            )
        ),
    ]


def probe(path: str, version: int) -> dict[str, Any]:
    """Return {name, init, devices, log}. init, result: NCCL's result codes, 0 is success; devices: None if init or devices failed.

    Raises OSError if the library cannot be loaded, ValueError if it has no such table.
    """
    log: list[str] = []

    def write(level: int, _flags: int, _file: bytes, _line: int, text: bytes) -> None:
        # The arguments of the format are not available to Python.
        if len(log) < MAX_LINES:
            log.append(f"{level}: {_text(text)}")

    logger, profiler = LOGGER(write), PROFILER(lambda *_arguments: 0)
    table = load_table(path, version)
    code, _context = init_plugin(table, version, logger, profiler)
    devices = plugin_devices(table, version) if code == 0 else None
    return {"name": _text(table.name), "init": code, "devices": devices, "log": log}


def load_table(path: str, version: int) -> PluginTable:
    """Return the table of a library. Raises OSError if it cannot be loaded, ValueError if it has no such table."""
    return PluginTable.in_dll(ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL), f"ncclNetPlugin_v{version}")


def init_plugin(table: PluginTable, version: int, logger: Any, profiler: Any) -> tuple[int, ctypes.c_void_p]:
    """Call init. Return NCCL's code, 0 is success, and the context that later functions take since v11."""
    context, config = ctypes.c_void_p(), ctypes.c_int(-1)
    if version >= BY_CONTEXT:
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, LOGGER, PROFILER)
        return int(kind(table.init)(ctypes.byref(context), 1, ctypes.byref(config), logger, profiler)), context
    if version >= WITH_PROFILER:
        return int(ctypes.CFUNCTYPE(ctypes.c_int, LOGGER, PROFILER)(table.init)(logger, profiler)), context
    return int(ctypes.CFUNCTYPE(ctypes.c_int, LOGGER)(table.init)(logger)), context


def plugin_devices(table: PluginTable, version: int) -> list[dict[str, Any]] | None:
    """Return the devices that a plugin offers after init; None if the function fails."""
    count = ctypes.c_int(-1)
    if ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(table.devices)(ctypes.byref(count)):
        return None
    return [_device(table, version, number) for number in range(min(max(count.value, 0), MAX_DEVICES))]


def _device(table: PluginTable, version: int, number: int) -> dict[str, Any]:
    layout = properties_type(version)
    buffer = ctypes.create_string_buffer(ctypes.sizeof(layout) + _SPARE_BYTES)
    result = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(table.properties)(number, ctypes.addressof(buffer))
    seen: Any = layout.from_buffer(buffer)
    if result:
        return {"name": None, "pci_path": None, "speed_mbps": None, "port": None, "memory": [], "max_receives": None, "result": result}
    memory = [name for bit, name in MEMORY.items() if seen.memory & bit]
    return {
        "name": _text(seen.name), "pci_path": _text(seen.pci_path), "speed_mbps": seen.speed, "port": seen.port, "memory": memory,
        "max_receives": seen.max_receives, "result": 0,
    }  # fmt: skip


def _text(value: bytes | None) -> str | None:
    return None if value is None else value[:MAX_TEXT].decode("utf-8", "replace")


def run(arguments: Sequence[str], output: int) -> None:
    """Probe and write the answer. arguments: path, version, and variables as NAME=VALUE; output: an open file."""
    path, version, *variables = arguments
    for name, _equals, value in (each.partition("=") for each in variables):
        os.environ[name] = value
    try:
        answer = probe(path, int(version))
    except (OSError, ValueError) as error:
        answer = {"error": str(error)[:MAX_TEXT]}
    os.write(output, (json.dumps({"interface": int(version), **answer}) + "\n").encode())


def main() -> int:
    """Answer on standard output, where the plugin cannot write. Ends without the plugin's own exit functions and threads."""
    output = os.dup(1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS_OF_CPU, _SECONDS_OF_CPU))
    run(sys.argv[1:], output)
    os._exit(0)
