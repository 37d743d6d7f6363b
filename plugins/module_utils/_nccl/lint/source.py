# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find problems within one source of NCCL's variables: lines without effect, names that are not read, and unusable values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import nearest
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import CONF_FILE, ENVIRONMENT, SITE_FILE, Source
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import INFO, Problem, shown
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import value_trouble
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.mesh import PREFIX as MESH
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import GONE, Variable, is_at_least, is_older
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import (
    BUILD,
    NEVER,
    NEWEST,
    PLUGIN_VARIABLES,
    PREFIX,
    PYTORCH,
    VARIABLES,
    reader,
)

#: The maximum number of lines and unknown names of a source that are reported separately; finding the nearest name takes time.
MOST = 20
#: From this similarity on, a name is considered a typing error of another one.
_LIKE = 0.8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def source_problems(source: Source, version: str | None, asked_for: Collection[str] = ()) -> Iterator[Problem]:
    """Yield the problems, first of lines, then of names.

    version: of NCCL ("2.21.5"); None: a recent one, for which no name is too new. asked_for: as in Plan.
    """
    yield from _lines(source)
    unknown = [name for name in sorted(source.variables) if not _known(name)]
    for name in unknown[:MOST]:
        yield from _unknown(source, name)
    if len(unknown) > MOST:
        observed = f"{len(unknown) - MOST} more names unknown to NCCL"
        yield _problem(source, ("name_unknown", WARNING, ""), observed, "NCCL's variables", "Check the file.")
    for name, value in sorted(source.variables.items()):
        if name in VARIABLES:
            yield from _name(source, VARIABLES[name], version)
            yield from _for_tests(source, VARIABLES[name], name in asked_for)
            yield from _value(source, VARIABLES[name], value)


def _problem(source: Source, kind: tuple[str, str, str], observed: str, expected: str, remedy: str) -> Problem:
    """Return the problem. kind: rule, severity, variable."""
    rule, severity, name = kind
    return Problem(rule, severity, name, source.place_of(name), observed, expected, remedy)


def _lines(source: Source) -> Iterator[Problem]:
    for line in islice(source.lines, MOST):
        what = f"line {line.number}, '{shown(line.text)}': {line.why}" if line.number else line.why
        remedy = f"Correct line {line.number} of {source.place}." if line.number else f"Check {source.place}."
        expected = "NAME=VALUE, and nothing else" if line.number else "a file that NCCL reads"
        yield _problem(source, ("line", WARNING if line.number else ERROR, ""), what, expected, remedy)
    if len(source.lines) > MOST:
        yield _problem(source, ("line", WARNING, ""), f"{len(source.lines) - MOST} more such lines", "NAME=VALUE", "Check the file.")


def _known(name: str) -> bool:
    """Return whether a name is known: NCCL's own, those of builds, and those of other programs, which a file may set as well."""
    if not _NAME.fullmatch(name):
        return False
    return name in VARIABLES or name in BUILD or (name[:2].upper() != PREFIX[:2] and PREFIX not in name.upper()[:8])


def _unknown(source: Source, name: str) -> Iterator[Problem]:
    whose = reader(name)
    place = source.place_of(name)
    take_out = f"Remove {shown(name)} from {place}."
    if name in NEVER:
        yield _problem(source, ("name_never", ERROR, name), f"{name}: {NEVER[name]}", "one of NCCL's variables", take_out)
    elif name in PYTORCH:
        observed = f"{name} belongs to PyTorch; NCCL does not read it"
        yield _problem(source, ("name_of_others", WARNING, name), observed, f"TORCH_{name}", f"Write TORCH_{name} in {place}.")
    elif name.startswith(MESH) and name not in PLUGIN_VARIABLES:
        yield _nobodys(source, name, PLUGIN_VARIABLES, "one of the mesh plugin's variables")
    elif whose is not None:
        needs = f", which needs {whose.needs}" if whose.needs else ""
        yield _problem(source, ("name_of_others", INFO, name), f"{name} is read by {whose.name}{needs}", "the plugin is used", take_out)
        value = source.variables[name]
        trouble = value_trouble(PLUGIN_VARIABLES[name], value) if name in PLUGIN_VARIABLES else None
        if trouble is not None:
            observed = f"{name}={shown(value)}: the plugin does not accept it"
            yield _problem(source, (trouble.rule, trouble.severity, name), observed, trouble.expected, f"Correct {name} in {place}.")
    elif not name.startswith("OFI_NCCL_") and not name.startswith("TORCH_NCCL_"):
        yield _nobodys(source, name, VARIABLES, "one of NCCL's variables")


def _nobodys(source: Source, name: str, table: Mapping[str, Variable], others: str) -> Problem:
    likely = nearest((name.split() or [name])[-1].upper(), table, _LIKE)
    words = f"did you mean {likely}?" if likely else "NCCL ignores it unless a plugin reads it"
    expected = likely or others
    if not _NAME.fullmatch(name):
        observed = f"the name '{shown(name)}' is not made of letters, digits and _; {words}"
        return _problem(source, ("name_form", ERROR, shown(name)), observed, expected, f"Correct the line in {source.place}.")
    remedy = f"Write {likely} in {source.place_of(name)}." if likely else f"Remove {shown(name)} from {source.place_of(name)}."
    return _problem(
        source, ("name_unknown", ERROR if likely else WARNING, shown(name)), f"{shown(name)} does not exist: {words}", expected, remedy
    )


def _name(source: Source, variable: Variable, version: str | None) -> Iterator[Problem]:
    name, place = variable.name, source.place_of(variable.name)
    take_out = f"Remove {name} from {place}."
    instead = f"{variable.instead}" if variable.instead else f"no {name}"
    if variable.until and is_at_least(version or NEWEST, variable.until):
        observed = f"{name}: no longer read since NCCL {variable.until}"
        yield _problem(source, ("name_gone", ERROR, name), observed, instead, take_out)
    elif variable.since and is_older(version, variable.since):
        observed = f"{name}: read since NCCL {variable.since}, but this is {version}"
        yield _problem(source, ("name_too_new", ERROR, name), observed, f"NCCL {variable.since}, or no {name}", take_out)
    elif variable.deprecated and _replaced(variable, version):
        yield _problem(source, ("name_old", WARNING, name), f"{name} is deprecated", instead, f"Write {instead} in {place}.")
    if name == CONF_FILE and source.kind != ENVIRONMENT:
        observed = f"{name} has an effect only in the environment"
        yield _problem(source, ("conf_file_in_file", ERROR, name), observed, f"{name} in the environment", take_out)


def _for_tests(source: Source, variable: Variable, asked_for: bool) -> Iterator[Problem]:
    if variable.debugging and not variable.deprecated and source.kind == SITE_FILE:
        name, expected = variable.name, "set for the job that needs it"
        why = ", as requested in rdma_nccl.variables" if asked_for else ""
        observed = f"{name} is for tests, but {source.path} applies to every job{why}"
        kind = ("for_tests_only", INFO if asked_for else WARNING, name)
        yield _problem(source, kind, observed, expected, f"Remove {name} from {source.place_of(name)}.")


def _replaced(variable: Variable, version: str | None) -> bool:
    """Return whether its replacement exists in this version."""
    instead = VARIABLES.get(variable.instead.partition("=")[0])
    return instead is None or not is_older(version, instead.since or "0.0.0")


def _value(source: Source, variable: Variable, value: str) -> Iterator[Problem]:
    if variable.kind == GONE:
        return
    trouble = value_trouble(variable, value)
    if trouble is not None:
        name = variable.name
        observed = f"{name}={shown(value)}: NCCL reads {trouble.takes}"
        yield _problem(
            source, (trouble.rule, trouble.severity, name), observed, trouble.expected, f"Correct {name} in {source.place_of(name)}."
        )


def unique(sources: Sequence[Source]) -> list[Source]:
    """Return the sources, one of each content and place: a user's file may belong to several services, and a container has its own."""
    return list({(source.place, frozenset(source.variables.items()), source.lines): source for source in sources}.values())
