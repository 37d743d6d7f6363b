# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows only between the keys of rdma_driver: what each stack needs, and what only another one reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: By stack: what it cannot do without, as paths of keys.
NEEDED = {
    "keep": (),
    "inbox": (),
    "doca": ("version", "repository.key", "repository.key_checksum"),
    "mlnx_ofed": ("version", "source", "checksum"),
}
#: Keys whose value would do nothing with any other stack.
OF_ONE = {"source": "mlnx_ofed", "checksum": "mlnx_ofed", "flags": "mlnx_ofed", "repository.url": "doca", "repository.key": "doca"}
WORDS = {
    "version": "'24.10-1.1.4.0' of MLNX_OFED, or the release '3.2.0' of DOCA",
    "source": "file, host_file or url",
    "checksum": "'sha256:…', as `sha256sum` prints it",
    "repository.key": "file or url",
    "repository.key_checksum": "'sha256:…' of the key's file",
}


def driver_problems(driver: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key's path below rdma_driver, what is wrong with it, what is expected) of a driver section that is sound by itself."""
    stack = driver["stack"]
    for path in NEEDED[stack]:
        if _at(driver, path) is None:
            yield path, f"is missing: {stack} needs it", WORDS[path]
    for path, only in OF_ONE.items():
        if stack != only and _at(driver, path):
            yield path, f"is given, but only the stack {only} reads it", f"nothing, or stack: {only}"
    yield from _version(stack, driver["version"])
    if driver["hold_kernel"] and stack == "inbox":
        yield "hold_kernel", "is true, but the inbox stack is built for no kernel", "false, or another stack"


def _version(stack: str, version: str | None) -> Iterator[tuple[str, str, str]]:
    if version is None:
        return
    if stack == "keep":
        yield "version", "is given, but `stack: keep` takes the installed version", "nothing, or the stack of that version"
    elif stack == "inbox":
        yield "version", "is given, but the inbox stack is whatever the distribution has", "nothing, or another stack"
    elif (stack == "mlnx_ofed") != ("-" in version):
        yield "version", f"is {version}, which is no version of {stack}", WORDS["version"]


def _at(driver: Mapping[str, Any], path: str) -> Any:
    value: Any = driver
    for key in path.split("."):
        value = value[key]
    return value
