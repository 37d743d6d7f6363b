# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's network plugins: their place on a host, the versions of the interface that NCCL reads, and the state of a host's plugin."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys as python
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.elf import MAX_BYTES, read_elf
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.unprivileged import as_nobody
from ansible_collections.rdma.cluster.plugins.module_utils._nccl import plugin_probe
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import shown
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older

#: The kinds of rdma_nccl.plugin: none, nccl-mesh-plugin, and the library of any other plugin.
NONE, MESH, FILE = "none", "mesh", "file"
#: Each plugin has a folder below this one.
FOLDER = "/opt/rdma-cluster/nccl"
#: The first NCCL that accepts a path in NCCL_NET_PLUGIN. Older versions only open "libnccl-net-VALUE.so" (src/net.cc of v2.20.5-1 and
#: v2.21.5-1).
PATH_SINCE = "2.21.5"
#: The version of NCCL → the versions N of the symbol ncclNetPlugin_vN that it and later ones look for, from the newest on: the names in
#: src/net.cc and src/plugin/net/ of every tag from v2.13.4-1 to v2.30.7-1.
INTERFACES = (
    ("2.30.3", (12, 11, 10, 9, 8, 7, 6)),
    ("2.28.3", (11, 10, 9, 8, 7, 6)),
    ("2.26.2", (10, 9, 8, 7, 6)),
    ("2.24.3", (9, 8, 7, 6, 5)),
    ("2.20.3", (8, 7, 6, 5)),
    ("2.19.1", (7, 6, 5)),
    ("2.13.4", (6, 5, 4)),
)


def interfaces(version: str | None) -> tuple[int, ...]:
    """Return the interface versions that an NCCL ("2.30.7") reads, the preferred one first; None means a recent NCCL, () is unknown."""
    return next((numbers for since, numbers in INTERFACES if not is_older(version, since)), ())


def library_path(name: str) -> str:
    """Return the path of a plugin's library on a host; name: "mesh"."""
    return f"{FOLDER}/{name}/libnccl-net-{name}.so"


#: The parts of a request that decide whether an installed plugin is the requested one.
PARTS = ("name", "checksum", "build", "verbs")
_PROBE_SECONDS = 30.0
_PYTHON = "/usr/bin/python3"
_SYMBOL = re.compile(r"ncclNetPlugin_v([0-9]{1,3})")
_VERBS = "ibv_"


@dataclass(frozen=True)
class PluginStamp:
    """The record of an installation: the requested version, "" without one; the id of the request; the SHA-256 of the library."""

    version: str
    order: str
    sha256: str


@dataclass(frozen=True)
class PluginLibrary:
    """A library as its file shows it. machine: as in `uname -m`; interfaces: the N of each ncclNetPlugin_vN, from the newest on.

    verbs: whether it calls functions of libibverbs.
    """

    sha256: str
    machine: str
    interfaces: list[int]
    verbs: bool


@dataclass(frozen=True)
class PluginDevice:
    """A device as the plugin describes it to NCCL; result: NCCL's code, 0 with a description. memory: "host", "cuda", "dmabuf"."""

    name: str | None
    pci_path: str | None
    speed_mbps: int | None
    port: int | None
    memory: list[str]
    max_receives: int | None
    result: int


@dataclass(frozen=True)
class PluginProbe:
    """The answers of the plugin. init: NCCL's code, 0 is success; devices: None if it reported none; log: its messages, as formats.

    failed: how the plugin failed: it crashed, or cannot be loaded. unread: why there is no answer, for any other reason.
    """

    interface: int
    name: str | None = None
    init: int | None = None
    devices: list[PluginDevice] | None = None
    log: list[str] | None = None
    failed: str | None = None
    unread: str | None = None


@dataclass(frozen=True)
class NcclPlugin:
    """The requested plugin on a host. library: None if its file does not exist; stamp: None if the collection did not install it.

    machine: of the host. probe: None if it was not loaded. unread: why library or stamp are unknown.
    """

    path: str
    machine: str
    library: PluginLibrary | None = None
    stamp: PluginStamp | None = None
    probe: PluginProbe | None = None
    unread: str | None = None


@dataclass(frozen=True)
class PluginQuery:
    """The plugin to read. variables: for its process. nccl: the version of NCCL in use; None: that of the host."""

    name: str
    variables: Mapping[str, str]
    nccl: str | None = None


def stamp_path(name: str) -> str:
    """Return the path of the record beside a plugin's library."""
    return f"{FOLDER}/{name}/plugin.json"


def request_id(options: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that differ if PARTS differ."""
    return hashlib.sha256(json.dumps({name: options[name] for name in PARTS}, sort_keys=True).encode()).hexdigest()[:16]


def render_plugin_stamp(stamp: PluginStamp) -> str:
    """Return the stamp's file text, which parse_plugin_stamp reads."""
    return json.dumps(asdict(stamp), indent=1, sort_keys=True) + "\n"


def parse_plugin_stamp(text: str) -> PluginStamp:
    """Parse the text of render_plugin_stamp. Raises ParseError for any other text."""
    expected = 'expected {"version": …, "order": …, "sha256": …}'
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"plugin.json: {exc} in {quoted(text)}, {expected}") from exc
    if (
        not isinstance(values, dict)
        or set(values) != {"version", "order", "sha256"}
        or not all(isinstance(v, str) for v in values.values())
    ):
        raise ParseError(f"plugin.json: {quoted(text)}, {expected}")
    return PluginStamp(**values)


def describe_library(data: bytes) -> PluginLibrary:
    """Return a library's properties from its bytes. Raises ParseError if it is no shared library."""
    symbols = read_elf(data)
    numbers = sorted((int(found[1]) for name in symbols.defined if (found := _SYMBOL.fullmatch(name))), reverse=True)
    verbs = any(name.startswith(_VERBS) for name in symbols.undefined)
    return PluginLibrary(hashlib.sha256(data).hexdigest(), symbols.machine, numbers, verbs)


def read_plugin(sys: SysRoot, runner: Runner | None, query: PluginQuery, nccl: str | None) -> NcclPlugin:
    """Read the library and its record, and load it in a process of its own. nccl: the version of the host's NCCL.

    The library is loaded only on the running system (runner), only if it is built for it, and with the interface that NCCL prefers.
    """
    path, machine = library_path(query.name), os.uname().machine
    try:
        stamp = sys.value(stamp_path(query.name), parse_plugin_stamp)
        found = sys.read_regular(path, MAX_BYTES)
        library = describe_library(found[0]) if found is not None else None
    except (ParseError, OSError) as error:
        return NcclPlugin(path, machine, unread=str(error))
    number = preferred_interface(library, query.nccl or nccl) if library is not None and library.machine == machine else None
    probe = _probe(runner, path, number, query.variables) if runner is not None and number is not None else None
    return NcclPlugin(path, machine, library, stamp, probe)


def preferred_interface(library: PluginLibrary, nccl: str | None) -> int | None:
    """Return the interface version through which an NCCL uses a library; None without a common one."""
    return next((number for number in interfaces(nccl) if number in library.interfaces), None)


def _probe(runner: Runner, path: str, number: int, variables: Mapping[str, str]) -> PluginProbe | None:
    if not plugin_probe.OLDEST <= number <= plugin_probe.NEWEST:
        return None
    with tempfile.TemporaryDirectory(prefix="rdma-cluster-") as folder:
        # The process runs as nobody.
        Path(folder).chmod(0o755)
        program = Path(folder) / "plugin_probe.pyz"
        program.write_bytes(program_of(plugin_probe.main))
        program.chmod(0o644)
        given = [f"{name}={value}" for name, value in sorted(variables.items())]
        # Nobody may not be able to use a Python of root's own.
        interpreter = _PYTHON if Path(_PYTHON).exists() else python.executable
        argv = as_nobody(interpreter, "-I", str(program), path, str(number), *given)
        try:
            done = runner.run(argv, timeout_seconds=_PROBE_SECONDS)
        except CommandError as error:
            return PluginProbe(number, unread=str(error))
    if done.rc < 0:
        return PluginProbe(number, failed=f"it crashed: its process ended by signal {-done.rc}")
    if done.rc or not done.stdout.strip():
        last = "".join(f"; its last line is {shown(line)!r}" for line in done.stderr.strip().splitlines()[-1:])
        return PluginProbe(number, unread=f"its process ended with exit code {done.rc} and without an answer{last}")
    try:
        return parse_plugin_probe(done.stdout)
    except ParseError as error:
        return PluginProbe(number, unread=str(error))


def parse_plugin_probe(text: str) -> PluginProbe:
    """Parse the answer of the probe, {interface} with {error} or {name, init, devices, log}. Raises ParseError for any other text."""
    try:
        answer = json.loads(text)
        number = int(answer["interface"])
        if "error" in answer:
            return PluginProbe(number, failed=f"it cannot be loaded: {answer['error']}")
        devices = answer["devices"]
        return PluginProbe(
            number,
            name=answer["name"],
            init=answer["init"],
            devices=None if devices is None else [PluginDevice(**each) for each in devices],
            log=answer["log"],
        )
    except (ValueError, OverflowError, RecursionError, TypeError, KeyError) as exc:
        raise ParseError(f"the probe of a plugin: {quoted(text)}, expected {{interface, name, init, devices, log}}") from exc
