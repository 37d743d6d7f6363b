# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rooms of both houses: every file lies in one, and an import goes to a lower floor. CONTRIBUTING.md has the floors."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"
PACKAGE = "ansible_collections.rdma.cluster.plugins."
HOUSES = ("module_utils", "plugin_utils")
MOST_FILES = 20
#: One row of the table of floors: number, rooms of module_utils, rooms of plugin_utils.
ROW = re.compile(r"\| (\d+) \| ([`_a-z, ]*) \| ([`_a-z, ]*) \|")
FILES = sorted(path for house in HOUSES for path in (PLUGINS / house).rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})

Import = tuple[str, str]


def module_of(path: Path) -> str:
    """Path → dotted name below plugins."""
    parts = path.relative_to(PLUGINS).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in FILES}


def room_of(module: str) -> tuple[str, str]:
    """The house and the room of a module."""
    house, room = module.split(".")[:2]
    return house, room


@functools.cache
def floors() -> dict[tuple[str, str], int]:
    """(house, room) → floor."""
    found = {}
    for row in ROW.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        for house, rooms in zip(HOUSES, row.groups()[1:], strict=True):
            found |= {(house, room): int(row[1]) for room in re.findall(r"`(_\w+)`", rooms)}
    return found


def imports_of(importer: str, text: str, modules: Iterable[str] = MODULES) -> list[Import]:
    """What of both houses a text imports."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            name = str(node.module)[len(PACKAGE) :]
            for alias in node.names:
                member = f"{name}.{alias.name}"
                found.append((importer, member if member in modules else name))
        if isinstance(node, ast.Import):
            found += [(importer, alias.name[len(PACKAGE) :]) for alias in node.names if alias.name.startswith(PACKAGE)]
    return found


@functools.cache
def imports() -> tuple[Import, ...]:
    return tuple(found for path in FILES for found in imports_of(module_of(path), path.read_text(encoding="utf-8")))


def forbidden(found: Iterable[Import]) -> list[Import]:
    """The imports that leave their room and do not go down, or go from the hosts' house to the control node's."""
    wrong = []
    for importer, imported in found:
        here, there = room_of(importer), room_of(imported)
        upstairs = here != there and floors()[there] >= floors()[here]
        if upstairs or (here[0] == "module_utils" and there[0] == "plugin_utils"):
            wrong.append((importer, imported))
    return wrong


def test_every_room_has_a_floor_and_every_floor_its_rooms() -> None:
    there = {(path.parent.name, path.name) for path in FOLDERS if path.parent.name in HOUSES}
    assert floors().keys() == there


def test_an_import_goes_down() -> None:
    assert forbidden(imports()) == []


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("module_utils._base.errors", "from {}module_utils._pci.functions import PciFunction"),
        ("module_utils._pci.functions", "from {}module_utils._host import clock"),
        ("module_utils._pairs.unit", "from {}plugin_utils._catalogue.checks import CHECKS"),
        ("plugin_utils._run.folder", "import {}plugin_utils._gate.host_checks"),
    ],
    ids=["up", "sideways", "into the other house", "by its name"],
)
def test_a_planted_import_is_found(importer: str, line: str) -> None:
    assert len(forbidden(imports_of(importer, line.format(PACKAGE)))) == 1


def test_files_import_each_other_in_no_circle() -> None:
    graph = nx.DiGraph(imports())
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_no_file_lies_in_the_corridor() -> None:
    assert [path.name for house in HOUSES for path in (PLUGINS / house).glob("*.py") if path.name != "__init__.py"] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PLUGINS)))
def test_a_room_is_small_and_says_what_it_is_for(folder: Path) -> None:
    assert sum(path.name != "__init__.py" for path in folder.glob("*.py")) <= MOST_FILES
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert text is not None
    assert text.count("\n") == 0
    assert text.endswith(".")
