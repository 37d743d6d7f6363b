# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program of ours for a host without Ansible: one file with all of our module_utils that it needs.

So a unit runs at boot exactly the code that the module ran. The file is a zip that `python3 FILE ARGUMENTS` executes (zipapp).
Its bytes do not depend on where and when it is made, so that the control node can compare it with the host's file: times are fixed,
names sorted, and nothing is compressed, because versions of zlib differ in their output.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.util
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError

PACKAGE = "ansible_collections.rdma.cluster.plugins.module_utils"
_SHEBANG = b"#!/usr/bin/python3\n"
_MAIN = "from {package}.{name} import main\n\nraise SystemExit(main())\n"
#: An import statement; names in parentheses may take several lines.
_IMPORT = re.compile(r"^[ \t]*((?:from[ \t]+\S+[ \t]+import|import)[ \t]+(?:\([^)]*\)|[^\n]*))", re.MULTILINE)
#: The earliest time that a zip can store.
_TIME = (1980, 1, 1, 0, 0, 0)


@functools.cache
def host_program(name: str) -> bytes:
    """Pack the program whose main() is in one of our module_utils (`_pcie_tuning.runner`); it returns int and reads sys.argv.

    Raises ParseError if it imports something that a host without Ansible lacks, or imports by a relative path.
    """
    root = PACKAGE.replace(".", "/")
    sources = {f"{root}/{path}": source for path, source in _sources(name).items()}
    packages = PACKAGE.split(".")
    folders = {f"{'/'.join(packages[: end + 1])}/__init__.py": b"" for end in range(len(packages))}
    main = {"__main__.py": _MAIN.format(package=PACKAGE, name=name).encode()}
    archive = io.BytesIO()
    archive.write(_SHEBANG)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
        for path, source in sorted({**folders, **sources, **main}.items()):
            packed.writestr(_entry(path), source)
    return archive.getvalue()


def program_of(main: Callable[[], int]) -> bytes:
    """Pack the program that starts with this function.

    A module that installs a program on a host packs it there, and Ansible sends with a module only the files that it imports. So a program
    is given as its imported function: if it were given by name alone, its file would be missing on the host.
    """
    return host_program(main.__module__[len(PACKAGE) + 1 :])


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _TIME)
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    return entry


def _sources(name: str) -> dict[str, bytes]:
    """Return path below module_utils → text, for a module of ours, its imports, their imports and so on; also the room of each."""
    found: dict[str, bytes] = {}
    pending, seen = [name], {name}
    while pending:
        module = pending.pop()
        path, source = _source(module)
        found[path] = source
        room = module.rpartition(".")[0]
        needed = {*_imported(module, source), *([room] if room else [])} - seen
        seen |= needed
        pending += sorted(needed)
    return found


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(f"{PACKAGE}.{module}")
    except ModuleNotFoundError:
        return None


def _source(module: str) -> tuple[str, bytes]:
    """Return path below module_utils and text of one of our modules. Also works in Ansible's archive of a module, which has no files."""
    spec = _spec(module)
    read = getattr(spec.loader, "get_source", None) if spec is not None else None
    text = read(f"{PACKAGE}.{module}") if read is not None else None
    if spec is None or text is None:
        raise ParseError(f"the source of {PACKAGE}.{module} cannot be read")
    is_room = spec.submodule_search_locations is not None
    path = module.replace(".", "/") + ("/__init__.py" if is_room else ".py")
    # Ansible's own loader, on the control node, gives bytes.
    return path, text.encode() if isinstance(text, str) else bytes(text)


def _imported(module: str, source: bytes) -> Iterator[str]:
    """Yield the modules of ours that a text imports. Other imports must be part of Python; they are not inspected."""
    for node in ast.walk(_statements(source)):
        for dotted in _dotted(module, node):
            if dotted.startswith(f"{PACKAGE}."):
                yield dotted[len(PACKAGE) + 1 :]
            elif dotted.partition(".")[0] in ("ansible", "ansible_collections"):
                raise ParseError(f"{PACKAGE}.{module} imports {dotted}, which a host without Ansible lacks")


def _statements(source: bytes) -> ast.Module:
    """Return the import statements of a text, also those inside functions. Parsing whole files would take most of the packing time."""
    text = source.decode()
    try:
        return ast.parse("\n".join(_IMPORT.findall(text)))
    except SyntaxError:  # a line of a docstring that begins with `import` or `from`
        return ast.parse(text)


def _dotted(module: str, node: ast.AST) -> list[str]:
    """Return the modules that a statement imports; with `from ROOM import x`, x is one if ROOM has such a file."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    if node.level:
        raise ParseError(f"{PACKAGE}.{module} imports by a relative path, which is not followed")
    name = node.module or ""
    if name == PACKAGE:
        return [f"{PACKAGE}.{alias.name}" for alias in node.names]
    if not name.startswith(f"{PACKAGE}."):
        return [name]
    spec = _spec(name[len(PACKAGE) + 1 :])
    if spec is None or spec.submodule_search_locations is None:
        return [name]
    members = [f"{name}.{alias.name}" for alias in node.names]
    return [name, *(member for member in members if _spec(member[len(PACKAGE) + 1 :]) is not None)]


if __name__ == "__main__":
    # python3 -m PACKAGE._base.host_program NAME > PROGRAM.pyz
    sys.stdout.buffer.write(host_program(sys.argv[1]))
