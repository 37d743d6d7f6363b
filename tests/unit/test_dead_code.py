# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing is kept that nothing uses: no file of plugins, no definition. What only tests use counts as dead."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import vulture

ROOT = Path(__file__).parents[2]
COLLECTION = "ansible_collections.rdma.cluster."
PRODUCTION = ("plugins", "playbooks", "roles")
#: Makes the documentation.
TOOLS = "tests/tools"
LAB = "lab"
UTILS = ("plugins/module_utils/", "plugins/plugin_utils/")


class Allowed(NamedTuple):
    """Names that something uses which vulture does not see. paths: a pattern, of which * also stands for folders."""

    paths: str
    names: str
    reason: str


ALLOWED = (
    Allowed("plugins/modules/*", "DOCUMENTATION|EXAMPLES|RETURN", "ansible-doc reads them"),
    Allowed("plugins/doc_fragments/*", "ModuleDocFragment|DOCUMENTATION|FACTS", "modules extend them by name"),
    Allowed("plugins/filter/*", "FilterModule|filters", "Ansible looks for them"),
    Allowed("plugins/lookup/*", "LookupModule|run|terms|kwargs|DOCUMENTATION|EXAMPLES|RETURN", "Ansible looks for them"),
    Allowed("plugins/*", "TRANSFERS_FILES", "Ansible reads it of an action"),
    Allowed("playbooks/callback_plugins/*", "DOCUMENTATION|CallbackModule|CALLBACK_[A-Z]+", "Ansible reads them of a callback"),
    Allowed("playbooks/callback_plugins/*", "v2_[a-z_]+|playbook|is_conditional", "Ansible calls them, with arguments of these names"),
    Allowed("plugins/plugin_utils/*", "ignore_aliases|indentless", "PyYAML calls its dumper so"),
    Allowed("*", "gname|create_system|external_attr", "tarfile and zipfile write them into archives"),
    Allowed("plugins/module_utils/*", "not_applicable", "to_dict() reads it by its name"),
    Allowed("plugins/module_utils/_base/intent.py", "[a-z0-9_]+", "keys of dictionaries, read as text"),
    Allowed("lab/*", "add_slurm|add_openmpi5|python_path", "scenarios of molecule call them"),
    Allowed("roles/*", "calibrate", "training loops of users call it"),
)  # fmt: skip


class Text:
    """What one file says, without its tree: those of all files at once make Python slow."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.froms: list[ast.ImportFrom] = []
        self.modules: set[str] = set()
        self.programs: set[str] = set()
        self.attributes: set[str] = set()
        self.loaded: set[str] = set()
        self.defined = list(_defined(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.loaded.add(node.id)
            elif isinstance(node, ast.Attribute):
                self.attributes.add(node.attr)
            elif isinstance(node, ast.Call):
                if node.args and isinstance(node.args[0], ast.Constant) and _name(node.func) == "host_program":
                    self.programs.add(f"plugins.module_utils.{node.args[0].value}")
            elif isinstance(node, ast.ImportFrom):
                self.froms.append(node)
            elif isinstance(node, ast.Import):
                self.modules |= {alias.name.removeprefix(COLLECTION) for alias in node.names}


class Sources:
    """The Python files below a folder, by their dotted path, and what they import of each other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {self._dotted(path): path for place in (*PRODUCTION, TOOLS) for path in sorted((root / place).rglob("*.py"))}
        self.texts = {dotted: Text(path) for dotted, path in self.files.items()}
        #: File → other files, and the names that it takes from each of them; all attributes where it has the file itself.
        self.imports = {dotted: self._imports(dotted) for dotted in self.files}

    def _dotted(self, path: Path) -> str:
        return ".".join(path.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")

    def _imports(self, dotted: str) -> dict[str, set[str]]:
        text, found = self.texts[dotted], defaultdict[str, set[str]](set)
        for node in text.froms:
            folder = self.files[dotted].relative_to(self.root).parts[: -node.level] if node.level else ()
            module = ".".join((*folder, *filter(None, [node.module]))).removeprefix(COLLECTION)
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                found[whole if whole in self.files else module] |= text.attributes if whole in self.files else {alias.name}
        for module in text.modules:
            found[module] |= text.attributes
        for module in text.programs:
            found[module].add("main")
        return {module: names for module, names in found.items() if module in self.files}

    def reached(self) -> set[str]:
        """What Ansible, a tool or `python -m` starts with, what that imports, and so on; and the folders that it lies in."""
        seen = {dotted for dotted, path in self.files.items() if not self._place(path).startswith(UTILS) or path.name == "__main__.py"}
        todo = [*seen]
        while todo:
            dotted = todo.pop()
            new = {*self.imports[dotted], *([dotted.rpartition(".")[0]] if dotted.rpartition(".")[0] in self.files else [])} - seen
            seen |= new
            todo += new
        return seen

    def unreached(self) -> list[str]:
        reached = self.reached()
        return sorted(self._place(path) for dotted, path in self.files.items() if dotted not in reached)

    def unused(self) -> list[str]:
        """Names at the top of a file in plugins' utils that neither it nor another file takes.

        vulture asks whether any file has such a name: "HOST", "read" and "parse" are in many.
        """
        taken: dict[str, set[str]] = defaultdict(set)
        for imports in self.imports.values():
            for dotted, names in imports.items():
                taken[dotted] |= names
        found = []
        for dotted, path in self.files.items():
            if self._place(path).startswith(UTILS):
                text, used = self.texts[dotted], taken[dotted] | self.texts[dotted].loaded
                found += [f"{self._place(path)}:{line}: {name}" for name, line in text.defined if name not in used]
        return found

    def dead(self) -> list[tuple[str, str, int]]:
        """Path, name and line of what vulture finds, but for fields of records: those are shown, compared and stored as a whole."""
        finder = vulture.Vulture()
        finder.scavenge([str(self.root / place) for place in (*PRODUCTION, LAB) if (self.root / place).is_dir()])
        found = [(item.filename, str(item.name), int(item.first_lineno)) for item in finder.get_unused_code()]
        return [(self._place(path), name, line) for path, name, line in found if line not in _field_lines(path)]

    def _place(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _defined(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for name in ast.walk(node):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.id != "__all__":
                    yield name.id, node.lineno


@cache
def _field_lines(path: Path) -> set[int]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    records = [node for node in classes if "dataclass" in "".join(map(ast.unparse, node.decorator_list)) or _is_tuple(node)]
    return {line.lineno for record in records for line in record.body if isinstance(line, ast.AnnAssign)}


def _is_tuple(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) == "NamedTuple" for base in node.bases)


def allows(entry: Allowed, path: str, name: str) -> bool:
    return fnmatchcase(path, entry.paths) and re.fullmatch(entry.names, name) is not None


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(ROOT)


def test_every_file_is_in_use(sources: Sources) -> None:
    assert len(sources.reached()) > 300
    assert sources.unreached() == []


def test_every_name_at_the_top_of_a_file_is_in_use(sources: Sources) -> None:
    assert sources.unused() == []


def test_every_definition_is_in_use_or_has_a_reason(sources: Sources) -> None:
    dead = sources.dead()
    assert [f"{path}:{line}: {name}" for path, name, line in dead if not any(allows(entry, path, name) for entry in ALLOWED)] == []
    assert [entry for entry in ALLOWED if not any(allows(entry, path, name) for path, name, _line in dead)] == []


BASE, FILES = f"{COLLECTION}plugins.module_utils._base", f"{COLLECTION}plugins.module_utils._files"
START = "plugins/module_utils/_base/start.py"
PLANTED = {
    "plugins/modules/probe.py": f"from {BASE} import errors\n\nerrors.fail(errors.__name__)\n",
    "plugins/action/probe.py": f"from {BASE}.start import PROGRAM\n\nprint(PROGRAM)\n",
    "plugins/module_utils/_base/__init__.py": "",
    "plugins/module_utils/_base/errors.py": "def fail(words: str) -> None:\n    raise ValueError(words)\n",
    START: f"from {FILES}.pack import host_program\n\nPROGRAM = host_program('_qos.runner')\n",
    "plugins/module_utils/_files/pack.py": "def host_program(name: str) -> str:\n    return name\n",
    "plugins/module_utils/_qos/runner.py": "def main() -> None:\n    print()\n",
}


def planted(root: Path, **more: str) -> Sources:
    for place, text in {**PLANTED, **more}.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")
    return Sources(root)


def test_files_in_rooms_are_found_by_their_whole_path(tmp_path: Path) -> None:
    found = planted(tmp_path)
    assert (found.unreached(), found.unused()) == ([], [])
    assert [name for _path, name, _line in found.dead()] == ["main"]


def test_a_dead_file_and_its_dead_room_are_named(tmp_path: Path) -> None:
    more = {f"plugins/module_utils/{name}.py": "" for name in ("_old/errors", "_old/__init__", "errors")}
    tests = {"tests/unit/test_old.py": f"from {COLLECTION}plugins.module_utils._old import errors\n"}
    assert planted(tmp_path, **more, **tests).unreached() == sorted(more)


def test_a_dead_name_is_named_although_another_file_has_it_too(tmp_path: Path) -> None:
    text = f"from {COLLECTION}plugins.module_utils._qos import runner\n\n\ndef fail() -> None:\n    runner.main()\n"
    found = planted(tmp_path, **{START: PLANTED[START] + text})
    assert found.unused() == [f"{START}:7: fail"]
    assert found.dead() == []


def test_a_dead_method_is_found_and_a_field_of_a_record_is_not(tmp_path: Path) -> None:
    text = "\n\n@dataclass(frozen=True)\nclass Seen:\n    speed: int\n\n    def rate(self) -> int:\n        return 1\n\n\nprint(Seen(1))\n"
    found = planted(tmp_path, **{"plugins/action/probe.py": PLANTED["plugins/action/probe.py"] + text})
    names = [name for _path, name, _line in found.dead()]
    assert "rate" in names
    assert "speed" not in names


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))
OTHERS = sorted(path for folder in ("tests", "lab", "molecule") for path in (ROOT / folder).rglob("*.py") if "output" not in path.parts)


@pytest.mark.parametrize("path", [*PLUGINS, *OTHERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_variable_has_a_name_that_python_3_12_or_sanity_refuses(path: Path) -> None:
    """Python 3.12 inlines comprehensions: in plugins, one with a variable of a function's name fails if another one calls the function.

    `ansible-test sanity` refuses the name _, after minutes.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [each.lineno for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == "_"] == []
    functions = {each.name for each in tree.body if isinstance(each, (ast.FunctionDef, ast.ClassDef))} if path in PLUGINS else ()
    loops = [loop for each in ast.walk(tree) if isinstance(each, COMPREHENSIONS) for loop in each.generators]
    named = [name.id for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)]
    assert [name for name in named if name in functions] == []
