# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for network plugins of NCCL: real libraries, compiled from C, with NCCL's own layout of the table; and ELF files from bytes."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

HAS_GCC = Path("/usr/bin/gcc").exists()
#: What a plugin does in init.
GOOD, FAILS, CRASHES, EXITS, HANGS, PRINTS = "return 0;", "return 2;", "*(volatile int *)0 = 1;", "exit(0);", "for (;;) pause();", ""
VERBS = "extern void **ibv_get_device_list(int *);\nvoid *calls_verbs(int *n) { return ibv_get_device_list(n); }\n"
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <stdint.h>
typedef void (*logger)(int, unsigned long, const char *, int, const char *, ...);
struct properties {{
    char *name, *pci; uint64_t guid; int memory;{flags} int speed, port; float latency; int comms, receives; char rest[64];
}};
static int init({arguments}) {{
    log(3, 0, __FILE__, __LINE__, "gid=%s", "3");
    printf("a plugin that prints, gid %s\\n", getenv("NCCL_MESH_GID_INDEX") ? getenv("NCCL_MESH_GID_INDEX") : "none");
    fflush(stdout);
    {init}
    return 0;
}}
static int devices(int *n) {{ *n = {count}; return 0; }}
static int properties(int dev, struct properties *p) {{
    static char name[2][64];
    snprintf(name[dev], sizeof name[dev], "mlx5_%d", dev);
    p->name = name[dev]; p->pci = 0; p->guid = 7; p->memory = 3; p->speed = 400000; p->port = 1; p->latency = 1.0f; p->receives = 8;
    return 0;
}}
struct table {{
    const char *name; int (*init)({arguments}); int (*devices)(int *); int (*properties)(int, struct properties *); void *rest[20];
}};
const struct table ncclNetPlugin_v{version} = {{"stand-in", init, devices, properties, {{0}}}};
{verbs}
"""
ARGUMENTS = {11: "void **c, uint64_t i, void *f, logger log, void *p", 10: "logger log, void *p"}


def source(version: int = 9, *, init: str = GOOD, count: int = 2, verbs: bool = True) -> str:
    """Return the C text of a plugin with one version of the interface."""
    flags = (" int global;" if version >= 8 else "") + (" int flush;" if version >= 9 else "")
    arguments = next((text for since, text in ARGUMENTS.items() if version >= since), "logger log")
    return SOURCE.format(version=version, flags=flags, arguments=arguments, init=init, count=count, verbs=VERBS if verbs else "")


def build(path: Path, version: int = 9, *, init: str = GOOD, count: int = 2, verbs: bool = True) -> bytes:
    """Compile a plugin, beside a stand-in for libibverbs, and return its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "verbs.c").write_text("void **ibv_get_device_list(int *n) { *n = 0; return 0; }\n")
    (path.parent / "plugin.c").write_text(source(version, init=init, count=count, verbs=verbs))
    _gcc(path.parent, "verbs.c", "libfakeverbs.so")
    _gcc(path.parent, "plugin.c", path.name, *(["-L.", "-lfakeverbs", "-Wl,-rpath,$ORIGIN"] if verbs else []))
    return path.read_bytes()


def _gcc(folder: Path, text: str, library: str, *more: str) -> None:
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, text, *more], cwd=folder, check=True, timeout=60)


def elf(defined: Sequence[str] = (), undefined: Sequence[str] = (), machine: int = 62) -> bytes:
    """Return a shared library of these dynamic symbols, as far as elf(5) needs it to be read; it cannot be loaded."""
    names, symbols = b"\0", bytes(24)
    for name, section in [*((each, 1) for each in defined), *((each, 0) for each in undefined)]:
        symbols += struct.pack("<IBBHQQ", len(names), 0x11, 0, section, 0, 0)
        names += name.encode() + b"\0"
    start = 64
    sections = [(0,) * 10, _section(11, start, len(symbols), 2), _section(3, start + len(symbols), len(names), 0)]
    offset = start + len(symbols) + len(names)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), 3, machine, 1, 0, 0, offset, 0, 64, 56, 0, 64, 3, 2)
    return header + symbols + names + b"".join(struct.pack("<IIQQQQIIQQ", *each) for each in sections)


def _section(kind: int, offset: int, size: int, link: int) -> tuple[int, ...]:
    return (0, kind, 0, 0, offset, size, link, 0, 8, 24)
