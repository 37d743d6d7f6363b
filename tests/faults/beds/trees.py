# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Injectors of a host: what is changed in its tree of files, in the answers of its commands, drivers and kernel, before it is read.

The tree is a stand-in (tests/unit/builders/blind_trees.py). What reads it is the real code of rdma_facts.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts import host_state
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import STA_UNSYNC, read_synchronized
from ansible_collections.rdma.cluster.plugins.module_utils._net import ethtool_ioctl as ioctl
from ansible_collections.rdma.cluster.plugins.module_utils._net import kernel_routes
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import VARIABLE
from tests.unit.builders.blind_hosts import NOW_SECONDS, REQUESTS, STATISTICS, Drivers, Host, HurtRoot, TableRunner, own_process
from tests.unit.builders.config_space import config_space

Inject = Mapping[str, Any]
#: What can be changed in a host before it is read. `intent` and `facts` are changed by the bed.
TREE = ("write", "remove", "replace", "link", "config", "mode")
ANSWERS = ("output", "ethtool", "kernel")


class NothingChangedError(ValueError):
    """An injector that changes nothing is a mistake of the catalogue."""


def damaged(host: Host, inject: Inject, folder: Path) -> Host:
    """The host with changed files and answers. folder: an empty place for its tree."""
    root = host.root
    if any(key in inject for key in TREE):
        root = folder / "root"
        shutil.copytree(host.root, root, symlinks=True)
        for key in TREE:
            for path, value in (inject.get(key) or {}).items():
                _change(root, key, path, value)
    answers = dict(host.answers)
    for words, change in (inject.get("output") or {}).items():
        _answer(answers, words, change)
    known = {words[0] for words in answers}
    named = {command.split(" ")[0] for command in inject.get("output") or {}}
    return replace(host, root=root, answers=answers, lacks=tuple(({*host.lacks, *named}) - known))


def _answer(answers: dict[Any, str], command: str, change: Any) -> None:
    """change: {old: new} in what it prints, a new text, {"fixture": file}, or None for a command that is not installed."""
    words = tuple(command.split(" "))
    if change is None:
        if answers.pop(words, None) is None:
            raise NothingChangedError(f"{command} has no answer")
    elif isinstance(change, str):
        answers[words] = change
    else:
        answers[words] = _replaced(command, answers[words], change)


def _replaced(where: str, text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        if str(old) not in text or old == new:
            raise NothingChangedError(f"{where} does not contain {old!r}, or it stays: {text[:2000]}")
        text = text.replace(str(old), str(new))
    return text


def _change(root: Path, key: str, path: str, value: Any) -> None:
    """Change one path of a tree; links on the way are followed inside it, as by the readers."""
    parent, _slash, name = path.rpartition("/")
    place = Path(SysRoot(str(root))._host(parent)) / name
    if key == "remove":
        _remove(place, path)
    elif key == "replace":
        target = Path(SysRoot(str(root))._host(path))
        target.write_text(_replaced(path, target.read_text(encoding="utf-8"), value), encoding="utf-8")
    elif key == "mode":
        Path(SysRoot(str(root))._host(path)).chmod(int(value, 8))
    elif key == "config":
        place.write_bytes(config_space(**value))
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        if key == "write" and place.is_file() and place.read_text(encoding="utf-8").strip() == str(value).strip():
            raise NothingChangedError(f"{path} has this content already")
        if place.is_symlink() or (key == "link" and place.exists()):
            place.unlink()
        if key == "link":
            place.symlink_to(value)
        else:
            place.write_text(f"{value}\n" if value != "" and not str(value).endswith("\0") else str(value), encoding="utf-8")


def _remove(place: Path, path: str) -> None:
    if not (place.exists() or place.is_symlink()):
        raise NothingChangedError(f"{path} is not there")
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


@dataclass(frozen=True)
class Kernel:
    """What the kernel and the run say of a host that no file says.

    ahead_seconds: its clock before that of the control node; synchronized: what adjtimex says; space: path → free and all bytes;
    ways: address → the interface by which the kernel reaches it, eno1 for the others; default6: the interfaces of default routes of IPv6.
    """

    ahead_seconds: float = 0.0
    synchronized: bool = True
    session: str = "192.0.2.9 50022 192.0.2.1 22"
    space: Mapping[str, Any] = field(default_factory=dict)
    ways: Mapping[str, str] = field(default_factory=dict)
    default6: tuple[str, ...] = ()


class _Root(HurtRoot):
    """A tree with file systems of given sizes."""

    def __init__(self, path: str, space: Mapping[str, Any]) -> None:
        super().__init__(path)
        self._space = space

    def space(self, path: str) -> tuple[int, int, int, int] | None:
        known = super().space(path)
        changed = self._space.get(path)
        return known if changed is None or known is None else (*changed, *known[len(changed) :])


class _Drivers(Drivers):
    """Drivers of which some interfaces answer something else. changes: interface → request → its values."""

    def __init__(self, changes: Mapping[str, Any]) -> None:
        super().__init__()
        object.__setattr__(self, "changes", changes)

    changes: Mapping[str, Any]

    def exchange(self, name: str, message: bytearray) -> None:
        super().exchange(name, message)
        command = int.from_bytes(message[:4], "little")
        changed = self.changes.get(name, {}).get(REQUESTS.get(command))
        if changed is None:
            return
        if changed == "refused":
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), name)
        _PATCHES[command](message, changed)


def _rings(message: bytearray, changed: Mapping[str, int]) -> None:
    struct.pack_into("=I", message, 4 * 5, changed["rx"])


def _pause(message: bytearray, changed: Mapping[str, int]) -> None:
    struct.pack_into("=2I", message, 8, changed.get("rx", 0), changed.get("tx", 0))


def _counters(message: bytearray, changed: Mapping[str, int]) -> None:
    for at, counter in enumerate(STATISTICS):
        struct.pack_into("=Q", message, 8 + 8 * at, changed.get(counter, 0))


def _link(message: bytearray, changed: Mapping[str, int]) -> None:
    struct.pack_into("=I", message, 4, changed["speed_mbps"])


def _nothing(_message: bytearray, _changed: Any) -> None:
    """The names of counters are those of all interfaces."""


_PATCHES: dict[int, Callable[[bytearray, Any], None]] = {
    ioctl.GRINGPARAM: _rings,
    ioctl.GPAUSEPARAM: _pause,
    ioctl.GSTATS: _counters,
    ioctl.GLINKSETTINGS: _link,
    ioctl.GSTRINGS: _nothing,
    ioctl.GSSET_INFO: _nothing,
}


@contextlib.contextmanager
def _process(kernel: Kernel) -> Iterator[None]:
    def way(address: str) -> str | None:
        return kernel.ways.get(address, "eno1")

    def default6() -> list[tuple[str, str | None, int]]:
        return [(netdev, "fe80::1", 100) for netdev in kernel.default6]

    def synchronized(runner: Any) -> bool | None:
        status = 0x2001 & ~STA_UNSYNC | (0 if kernel.synchronized else STA_UNSYNC)
        return read_synchronized(runner, lambda: status)

    clock = SimpleNamespace(time=lambda: NOW_SECONDS + kernel.ahead_seconds)
    with (
        own_process(None),
        mock.patch.dict(os.environ, {VARIABLE: kernel.session}),
        mock.patch.object(host_state, "read_synchronized", synchronized),
        mock.patch.object(kernel_routes, "kernel_way", way),
        mock.patch.object(kernel_routes, "kernel_default_routes6", default6),
        mock.patch.object(host_state, "time", clock),
    ):
        yield


def read(host: Host, inject: Inject) -> dict[str, Any]:
    """The facts of a host, by the real gathering. Raises what that raises."""
    kernel, drivers = Kernel(**(inject.get("kernel") or {})), _Drivers(inject.get("ethtool") or {})
    root, runner = _Root(str(host.root), kernel.space), TableRunner(host.answers, host.lacks)
    with _process(kernel):
        facts = to_dict(gather(root, runner, host.asked, ioctl.IoctlPort(drivers.exchange)))
    if facts["time"]["clock_seconds"] is not None:
        facts["time"]["between_seconds"] = [NOW_SECONDS - 0.5, NOW_SECONDS + 0.5]
    plain: dict[str, Any] = json.loads(json.dumps(facts))
    return plain


def put(tree: Any, path: str, value: Any) -> None:
    """Set a value of nested mappings and lists by its path, "a.b.0" or, if names have dots, "a/b.c/0"; "~" removes it."""
    *parents, last = path.split("/" if "/" in path else ".")
    for name in parents:
        if isinstance(tree, dict) and not isinstance(tree.get(name), (dict, list)):
            tree[name] = {}
        tree = tree[int(name)] if isinstance(tree, list) else tree[name]
    key: Any = int(last) if isinstance(tree, list) else last
    if value == "~":
        del tree[key]
    else:
        tree[key] = value
