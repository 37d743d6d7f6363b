# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the sources of NCCL's variables on a host: environments of services and processes, and the files, with their readers' permissions.

A user's file may be a link to anything; it is reported only if that user may read its target.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.environment_file import (
    PROPERTIES,
    parse_environ,
    parse_environment_file,
    parse_service_environment,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import ConfLine, parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import (
    CONF_FILE,
    ENVIRONMENT,
    NAMED_FILE,
    SITE_FILE,
    USER_FILE,
    Source,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_interfaces, read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import read_devices

SITE = "/etc/nccl.conf"
USERS_FILE = ".nccl.conf"
#: The maximum size of a file that is read.
MAX_BYTES = 1 << 20
_ROOT = 0
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.@\\-]{0,255}\$?")


@dataclass(frozen=True)
class Asked:
    """The owners of the sources to read. users: by name; services: units; processes: their ids; files: environment files of launchers."""

    users: Sequence[str] = ()
    services: Sequence[str] = ()
    processes: Sequence[int] = ()
    files: Sequence[str] = ()


@dataclass(frozen=True)
class _Reader:
    """The reader of files. root: the reader's root folder on this host ("/proc/4711/root"); home: None without $HOME."""

    owner: str
    uid: int
    home: str | None
    root: str = ""


def read_sources(sys: SysRoot, runner: Runner, asked: Asked) -> list[Source]:
    """Return every existing source. Raises ParseError for a missing user, service or process, ApplyError, CommandError and OSError."""
    sources = [_file(sys, SITE_FILE, SITE, _Reader("", _ROOT, None))]
    for user in dict.fromkeys(asked.users):
        sources.append(_file(sys, USER_FILE, None, _user(runner, user)))
    for path in dict.fromkeys(asked.files):
        sources += _started_with(sys, path)
    for unit in dict.fromkeys(asked.services):
        sources += _service(sys, runner, unit)
    for pid in dict.fromkeys(asked.processes):
        sources += _process(sys, pid, f"process {pid}")
    return [source for source in sources if source is not None]


def _user(runner: Runner, name: str) -> _Reader:
    """Return the reader of a user, from the name service, so that users of a directory are found too (getent(1))."""
    if not _USER.fullmatch(name):
        raise ParseError(f"{name!r} is not a user name")
    done = runner.run(["getent", "passwd", name])
    fields = done.stdout.split("\n", maxsplit=1)[0].split(":")
    if done.rc or len(fields) != 7 or not fields[2].isdecimal():
        raise ParseError(f"there is no user {name!r}")
    return _Reader(fields[0], int(fields[2]), fields[5])


def _file(sys: SysRoot, kind: str, path: str | None, reader: _Reader) -> Source | None:
    """Return a file in the form of nccl.conf; None if it does not exist. path: None for that in the reader's home."""
    place = f"{(reader.home or '').rstrip('/')}/{USERS_FILE}" if path is None else path
    if path is None and not reader.home:
        return None
    text, why = _text(sys, f"{reader.root}{place}", reader)
    if text is None:
        return Source(kind, place, reader.owner, {}, (ConfLine(0, "", why),)) if why else None
    conf = parse_nccl_conf(text)
    notes = [ConfLine(0, "", why)] if why else []
    lines = sorted((line for line in (*conf.ignored, *conf.altered) if _is_reportable(line.text)), key=lambda line: line.number)
    return Source(kind, place, reader.owner, _ours(conf.variables), (*notes, *lines))


def _text(sys: SysRoot, path: str, reader: _Reader) -> tuple[str | None, str]:
    """Return a file's text and a note on it; None for a missing file or one that the reader may not read."""
    try:
        found = sys.read_regular(path, MAX_BYTES)
    except OSError as exc:
        return None, f"it cannot be read: {exc.strerror}"
    if found is None:
        return None, ""
    data, status = found
    if not _may_read(status, reader.uid):
        words = f"{status.st_uid}:{status.st_gid}, mode {stat.S_IMODE(status.st_mode):04o}"
        return None, f"{reader.owner} may not read it, unless by a group ({words})"
    text = data.decode("utf-8", "replace")
    if status.st_size > MAX_BYTES:
        return text, f"it is larger than {MAX_BYTES} bytes; the rest was not read"
    if reader.uid == _ROOT and not reader.owner and not status.st_mode & stat.S_IROTH:
        return text, f"its mode {stat.S_IMODE(status.st_mode):04o} hides it from jobs of other users, and NCCL does not report that"
    return text, ""


def _may_read(status: os.stat_result, uid: int) -> bool:
    return uid in (_ROOT, status.st_uid) or bool(status.st_mode & stat.S_IROTH)


def _ours(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if _is_ours(name)}


def _is_ours(name: str) -> bool:
    """Return whether a name is NCCL's or may be meant as such; other values are not read."""
    return name.upper().startswith("NC") or "NCCL" in name.upper()


def _is_reportable(line: str) -> bool:
    name, equals, _value = line.partition("=")
    return not equals or _is_ours(name)


def _started_with(sys: SysRoot, path: str) -> list[Source | None]:
    found = sys.read_regular(path, MAX_BYTES)
    if found is None:
        return []
    variables = parse_environment_file(found[0].decode("utf-8", "replace"))
    return _environment(sys, f"environment of programs started with {path}", variables, _Reader(path, _ROOT, None))


def _environment(sys: SysRoot, words: str, variables: Mapping[str, str], reader: _Reader) -> list[Source | None]:
    """Return an environment, the file that it names, and that of its home. NCCL's version decides which of the two is read."""
    named = variables.get(CONF_FILE)
    sources: list[Source | None] = [Source(ENVIRONMENT, words, reader.owner, _ours(variables))]
    if named:
        sources.append(_named(sys, named, reader))
    return [*sources, _file(sys, USER_FILE, None, reader)]


def _named(sys: SysRoot, path: str, reader: _Reader) -> Source:
    found = _file(sys, NAMED_FILE, path, reader) if path.startswith("/") else None
    why = f"{CONF_FILE} names it, but it {'does not exist' if path.startswith('/') else 'is not a full path and was not read'}"
    return found or Source(NAMED_FILE, path, reader.owner, {}, (ConfLine(0, "", why),))


def _service(sys: SysRoot, runner: Runner, unit: str) -> list[Source | None]:
    """Return the sources of a service: the environment of its main process if it runs, else that of its unit."""
    service = parse_service_environment(run_checked(runner, "systemctl", "show", f"--property={PROPERTIES}", "--", unit))
    if service.main_pid is not None:
        return _process(sys, service.main_pid, service.unit)
    user = _user(runner, service.user) if service.user else _Reader("root", _ROOT, None)
    variables = dict(service.variables)
    for path in service.files:
        found = sys.read_regular(path, MAX_BYTES)
        variables.update(parse_environment_file(found[0].decode("utf-8", "replace")) if found else {})
    reader = _Reader(service.unit, user.uid, user.home)
    return _environment(sys, f"environment of {service.unit}", variables, reader)


def _process(sys: SysRoot, pid: int, owner: str) -> list[Source | None]:
    data = sys.read_bytes(f"/proc/{pid}/environ")
    if data is None:
        raise ParseError(f"there is no process {pid}")
    variables = parse_environ(data)
    reader = _Reader(owner, _uid(sys.read(f"/proc/{pid}/status") or ""), variables.get("HOME"), f"/proc/{pid}/root")
    return [*_environment(sys, f"environment of {owner}", variables, reader), _site_in_container(sys, reader)]


def _site_in_container(sys: SysRoot, reader: _Reader) -> Source | None:
    """Return a process's file in place of the host's; None if it is the same."""
    inside = sys.read_regular(f"{reader.root}{SITE}", MAX_BYTES)
    outside = sys.read_regular(SITE, MAX_BYTES)
    if (inside and inside[0]) == (outside and outside[0]):
        return None
    source = _file(sys, SITE_FILE, SITE, reader)
    empty = Source(SITE_FILE, SITE, reader.owner, {})
    return replace(source or empty, in_container=True)


def _uid(status: str) -> int:
    """Return the user that files are opened as: the effective one, the second number of Uid: (proc_pid_status(5)). Raises ParseError."""
    for line in status.splitlines():
        fields = line.split()
        if line.startswith("Uid:") and len(fields) > 2 and fields[2].isdecimal():
            return int(fields[2])
    raise ParseError(f"no Uid: in the status of a process: {quoted(status)}")


def read_host(sys: SysRoot) -> dict[str, Any]:
    """Return the data to compare variables with: devices and NICs as in the facts, all interfaces, loaded modules. Starts no process."""
    netdevs = read_netdevs(sys)
    devices = read_devices(sys, netdevs, PciReader(sys), counters=False)
    interfaces = read_interfaces(sys)
    return {
        "devices": {name: asdict(device) for name, device in devices.items()},
        "netdevs": {name: asdict(netdev) for name, netdev in netdevs.items()},
        "interfaces": None if interfaces is None else sorted(interfaces),
        "modules": sys.list_dir("/sys/module"),
    }
