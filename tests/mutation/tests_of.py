# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests are run on a changed file: those of its name, then those that import it, then those that import what imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.mutation.sample import HOUSES, ROOT

PREFIX = "ansible_collections.rdma.cluster."
#: At most so many files of the second and the third group, the smallest first: each takes seconds.
NEAR, FAR = 12, 6
#: It runs the gates over whole hosts, and takes longest.
GATES = ("tests/unit/plugins/plugin_utils/_catalogue/test_sources.py",)


def tests_of(file: str) -> list[str]:
    """The test files of a file of plugins, in the order in which they are run."""
    path = Path(file)
    own = Path("tests/unit", path.parent, f"test_{path.stem}.py")
    module = ".".join(path.with_suffix("").parts)
    near, far = (sorted(_importing(each), key=_size) for each in ({module}, _users(module)))
    found = dict.fromkeys([*([str(own)] if (ROOT / own).exists() else []), *near[:NEAR]])
    found |= dict.fromkeys([each for each in far if each not in found][:FAR])
    return [*(each for each in found if each not in GATES), *(GATES if path.parts[2] == "_checks" else ())]


def _size(file: str) -> tuple[int, str]:
    return (ROOT / file).stat().st_size, file


def _importing(modules: set[str]) -> set[str]:
    return {file for file, imported in _tests().items() if modules & imported}


@cache
def _tests() -> Mapping[str, frozenset[str]]:
    """Test file → the modules of plugins that it imports."""
    return {str(path.relative_to(ROOT)): _imports(path) for path in sorted((ROOT / "tests/unit").rglob("test_*.py"))}


@cache
def _plugins() -> Mapping[str, frozenset[str]]:
    """Module of plugins → the modules of plugins that it imports."""
    paths = (path for house in HOUSES for path in sorted((ROOT / house).rglob("*.py")))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): _imports(path) for path in paths}


def _users(module: str) -> set[str]:
    return {user for user, imported in _plugins().items() if module in imported}


def _imports(path: Path) -> frozenset[str]:
    return frozenset(_imported(ast.parse(path.read_text(encoding="utf-8"))))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX):
            module = str(node.module).removeprefix(PREFIX)
            yield module
            yield from (f"{module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name.removeprefix(PREFIX) for each in node.names if each.name.startswith(PREFIX))
