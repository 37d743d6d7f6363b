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
#: Bits of ptrSupport.
MEMORY = {1: "host", 2: "cuda", 4: "dmabuf"}
_SECONDS_OF_CPU = 10
#: Space behind each structure, for a plugin that was built with a larger one.
_SPARE_BYTES = 512
_LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
_PROFILER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_BY_CONTEXT, _WITH_PROFILER, _WITH_FLUSH, _WITH_GLOBAL = 11, 10, 9, 8


def properties_type(version: int) -> type[ctypes.Structure]:
    """Return the start of ncclNetProperties_vN: all that this program reads."""
    whole = ctypes.c_int
    flags = [("reg_is_global", whole)] * (version >= _WITH_GLOBAL) + [("force_flush", whole)] * (version >= _WITH_FLUSH)
    head = [("name", ctypes.c_char_p), ("pci_path", ctypes.c_char_p), ("guid", ctypes.c_uint64), ("memory", whole)]
    tail = [("speed", whole), ("port", whole), ("latency", ctypes.c_float), ("max_comms", whole), ("max_receives", whole)]
    return type(f"Properties{version}", (ctypes.Structure,), {"_fields_": [*head, *flags, *tail]})


class _Table(ctypes.Structure):
    """The start of ncclNet_vN, which is the same in all versions but for the arguments of init."""

    _fields_ = [("name", ctypes.c_char_p), ("init", ctypes.c_void_p), ("devices", ctypes.c_void_p), ("properties", ctypes.c_void_p)]


def probe(path: str, version: int) -> dict[str, Any]:
    """Return {name, init, devices, log}. init, result: NCCL's result codes, 0 is success; devices: None if init or devices failed.

    Raises OSError if the library cannot be loaded, ValueError if it has no such table.
    """
    log: list[str] = []

    def write(level: int, _flags: int, _file: bytes, _line: int, text: bytes) -> None:
        # The arguments of the format are not available to Python.
        if len(log) < MAX_LINES:
            log.append(f"{level}: {_text(text)}")

    logger, profiler = _LOGGER(write), _PROFILER(lambda *_arguments: 0)
    table = _Table.in_dll(ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL), f"ncclNetPlugin_v{version}")
    result: dict[str, Any] = {"name": _text(table.name), "init": _init(table, version, logger, profiler), "devices": None, "log": log}
    count = ctypes.c_int(-1)
    if result["init"] == 0:
        done = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(table.devices)(ctypes.byref(count))
        if done == 0:
            result["devices"] = [_device(table, version, number) for number in range(min(max(count.value, 0), MAX_DEVICES))]
    return result


def _init(table: _Table, version: int, logger: Any, profiler: Any) -> int:
    if version >= _BY_CONTEXT:
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, _LOGGER, _PROFILER)
        context, config = ctypes.c_void_p(), ctypes.c_int(-1)
        return int(kind(table.init)(ctypes.byref(context), 1, ctypes.byref(config), logger, profiler))
    if version >= _WITH_PROFILER:
        return int(ctypes.CFUNCTYPE(ctypes.c_int, _LOGGER, _PROFILER)(table.init)(logger, profiler))
    return int(ctypes.CFUNCTYPE(ctypes.c_int, _LOGGER)(table.init)(logger))


def _device(table: _Table, version: int, number: int) -> dict[str, Any]:
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
