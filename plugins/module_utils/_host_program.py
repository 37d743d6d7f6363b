# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program of ours for a host without Ansible: one file with all of our module_utils that it imports.

What a unit runs at boot is thereby the very code that the module ran. The file is a zip that `python3 FILE ARGUMENTS` executes (zipapp).
Its bytes are the same wherever and whenever it is made, so that the control node can compare it with what a host has: times are fixed,
names sorted, and nothing is compressed, for versions of zlib differ in what they make of a text.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import io
import zipfile
from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

PACKAGE = "ansible_collections.rdma.cluster.plugins.module_utils"
_SHEBANG = b"#!/usr/bin/python3\n"
_MAIN = "from {package}.{name} import main\n\nraise SystemExit(main())\n"
#: The first that a zip can tell.
_TIME = (1980, 1, 1, 0, 0, 0)


@functools.cache
def host_program(name: str) -> bytes:
    """The program whose main() is that of one of our module_utils (`_pcie_tuning_runner`): int, taking its arguments from sys.argv.

    Raises ParseError if it imports something that a host without Ansible lacks.
    """
    sources = {f"{PACKAGE.replace('.', '/')}/{module}.py": source for module, source in _sources(name).items()}
    packages = PACKAGE.split(".")
    folders = {f"{'/'.join(packages[: end + 1])}/__init__.py": b"" for end in range(len(packages))}
    main = {"__main__.py": _MAIN.format(package=PACKAGE, name=name).encode()}
    archive = io.BytesIO()
    archive.write(_SHEBANG)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
        for path, source in sorted({**sources, **folders, **main}.items()):
            packed.writestr(_entry(path), source)
    return archive.getvalue()


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _TIME)
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    return entry


def _sources(name: str) -> dict[str, bytes]:
    """The texts of a module of ours and of those that it imports, and so on."""
    found: dict[str, bytes] = {}
    pending = [name]
    while pending:
        module = pending.pop()
        if module not in found:
            found[module] = _source(module)
            pending += _imported(module, found[module])
    return found


def _source(module: str) -> bytes:
    """The text of one of ours; also from within the archive in which Ansible sends a module, which has no files."""
    spec = importlib.util.find_spec(f"{PACKAGE}.{module}")
    read = getattr(spec.loader, "get_source", None) if spec is not None else None
    text = read(f"{PACKAGE}.{module}") if read is not None else None
    if text is None:
        raise ParseError(f"the source of {PACKAGE}.{module} is not to be had")
    # Ansible's own loader, on the control node, gives bytes.
    return text.encode() if isinstance(text, str) else bytes(text)


def _imported(module: str, source: bytes) -> Iterator[str]:
    """Which of ours a text imports. Of all else only what Python brings may be there, which is not looked into."""
    for node in ast.walk(ast.parse(source)):
        for dotted in _dotted(node):
            if dotted.startswith(f"{PACKAGE}."):
                yield dotted[len(PACKAGE) + 1 :].partition(".")[0]
            elif dotted.partition(".")[0] in ("ansible", "ansible_collections"):
                raise ParseError(f"{PACKAGE}.{module} imports {dotted}, which a host without Ansible lacks")


def _dotted(node: ast.AST) -> list[str]:
    """The modules that a statement imports; with `from PACKAGE import x` each x is one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    if node.module == PACKAGE:
        return [f"{PACKAGE}.{alias.name}" for alias in node.names]
    return [node.module or ""]
