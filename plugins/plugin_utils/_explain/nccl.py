# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables on a host: which value holds, which file it comes from, what it means, and where the intent has another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import nearest
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import NCCL_FILES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import (
    CONF_FILE,
    ENVIRONMENT,
    NAMED_FILE,
    SITE_FILE,
    USER_FILE,
    Job,
    Setting,
    Source,
    jobs,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import LEVELS, read_level
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import GONE, LEVEL
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import NEVER, PREFIX, VARIABLES
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import HCA
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    NOT_READ,
    Item,
    Row,
    items,
    section,
    table,
    text_lines,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import nccl_variables

#: Always told of, in this order.
MAIN = (
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_SOCKET_IFNAME",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NTHREADS",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_BUFFSIZE",
    "NCCL_GRAPH_DUMP_FILE",
)
#: Names of guides and scripts that no version of NCCL reads, or none since long: name → why, and what to use.
DEAD = {
    **NEVER,
    **{
        name: f"removed in NCCL {variable.until}" + (f": {variable.instead} took its place" if variable.instead else "")
        for name, variable in VARIABLES.items()
        if variable.kind == GONE
    },
}
#: Those of DEAD that are always told of, because the scripts that this replaces print them.
NEVER_THERE = ("NCCL_NCHUNKS_COARSE", "NCCL_SHARP_ENABLE")
_DIGITS = re.compile(r"[0-9]{1,9}")
#: Variables that take a distance; case counts.
WITH_LEVEL = tuple(name for name, variable in VARIABLES.items() if variable.kind == LEVEL)
#: From here on a name is taken for another one that was not typed well.
_LIKE = 0.9


def default(name: str) -> str:
    """What holds if nobody sets a variable."""
    return VARIABLES[name].default if name in VARIABLES else "not set"


def meaning(name: str) -> str:
    """What a variable does, in a few words."""
    if name in DEAD:
        return "nothing"
    if name in VARIABLES:
        return VARIABLES[name].meaning
    return "not known here; what NCCL does not know either has no effect" if name.startswith(PREFIX) else "none of NCCL's variables"


def name_trouble(name: str) -> str:
    """Why a variable that somebody sets has no effect: "" for one that has, and for one that is not known here and like no other."""
    if name in DEAD:
        return DEAD[name]
    near = nearest(name, VARIABLES, _LIKE) if name.startswith(PREFIX) else None
    return f"is {near} meant?" if near and near != name else ""


def value_trouble(name: str, value: str) -> str:
    """Why a value has no effect; "" if it has, or is not looked at."""
    if name not in WITH_LEVEL or value in LEVELS or not value or _DIGITS.fullmatch(value):
        return ""
    return f"NCCL knows no such level and takes its default; levels are {', '.join(LEVELS)}"


def value_words(name: str, value: str) -> str:
    """What a value of the old spelling means; "" for any other."""
    if name not in WITH_LEVEL or not _DIGITS.fullmatch(value):
        return ""
    return f"{value} is the old spelling of {read_level(value)}"


Files = Mapping[str, Mapping[str, str]]
#: Variables by the intent, name → value; None for one that cannot be derived now.
Wanted = Mapping[str, "str | None"]
SITE, ROOT_FILE = NCCL_FILES
#: Whose files they are, by the kind of source.
LABELS = {
    ENVIRONMENT: "environment of what is started with it",
    NAMED_FILE: f"{CONF_FILE} of that",
    USER_FILE: "jobs of root; others have their own",
    SITE_FILE: "every job",
}
DEFAULT = "NCCL's default"
TITLE = "NCCL"


def nccl(intent: Intent | None, facts: RunFacts) -> str:
    """The table of every variable that counts."""
    wanted = _wanted(intent, facts) if intent is not None else None
    files = facts.nccl_files
    if files is None:
        rows = [_unread(name, wanted or {}) for name in _names(wanted or {}, {})]
        return section(TITLE, text_lines("The files of NCCL's variables were not read."), _table(rows))
    version = intent["nccl"]["version"] if intent else None
    job = started_with(_environment_file(intent), files, version)
    listing = items([Item(LABELS[source.kind], f"{source.path}, {_count(files.get(source.path))}") for source in job.sources], 4)
    rows = [_row(name, job.settings.get(name), wanted) for name in _names(wanted or {}, job.settings)]
    return section(TITLE, text_lines(_precedence(version)), listing, _left_over(files, job.sources), _table(rows))


def _wanted(intent: Intent, facts: RunFacts) -> Wanted:
    """The intent's variables; None for the list of devices while a rail has none: then it would be shorter than it shall be."""
    derived: dict[str, str | None] = {**nccl_variables(intent, facts)}
    compute = [rail for rail in resolve(intent["rails"], facts) if rail.rail["role"] == "compute"]
    if any(rail.device is None for rail in compute) and HCA not in intent["nccl"]["variables"]:
        derived[HCA] = None
    return derived


def _precedence(version: str | None) -> str:
    named = f"; the intent names NCCL {version}" if version else ""
    return (
        f"The first of these files that sets a variable counts, without one NCCL's default (that of 2.30{named}). "
        "Containers see none that is not mounted."
    )


def _environment_file(intent: Intent | None) -> str:
    keys = SECTIONS["rdma_nccl"].key.keys or {}
    return str(intent["nccl"]["environment_file"] if intent else keys["environment_file"].default)


def started_with(environment_file: str, files: Files, version: str | None) -> Job:
    """A job of root that has this environment, and what it takes from where. files: path → its variables, of those that are there."""
    named = files.get(environment_file, {}).get(CONF_FILE, "")
    places = ((ENVIRONMENT, environment_file, "root"), (NAMED_FILE, named, "root"), (USER_FILE, ROOT_FILE, "root"), (SITE_FILE, SITE, ""))
    return jobs([Source(kind, path, owner, files.get(path, {})) for kind, path, owner in places if path], version)[0]


def _count(variables: Mapping[str, str] | None) -> str:
    return "not there" if variables is None else f"{len(variables)} variable{'' if len(variables) == 1 else 's'}"


def _left_over(files: Files, sources: Sequence[Source]) -> list[str]:
    """Files with variables that are there and that NCCL does not look at."""
    read = {source.path for source in sources}
    return [
        line
        for path in sorted(path for path, variables in files.items() if variables and path not in read)
        for line in text_lines(f"{path} is there, and NCCL does not read it unless {CONF_FILE} names it.", marked=True)
    ]


def _names(wanted: Wanted, settings: Mapping[str, Setting]) -> list[str]:
    """The variables that count: those that the intent derives or somebody sets, then the main ones."""
    somewhere = {*wanted, *settings}
    return [*sorted(somewhere), *(name for name in (*MAIN, *NEVER_THERE) if name not in somewhere)]


def _table(rows: Sequence[Row]) -> list[str]:
    return table(("variable", "value", "from", "meaning"), rows, (33, 26, 26))


def _row(name: str, setting: Setting | None, wanted: Wanted | None) -> Row:
    if setting is None:
        return _unset(name, wanted or {})
    value = setting.value
    troubles = [each for each in (name_trouble(name), value_trouble(name, value), _difference(name, value, wanted)) if each]
    if name == CONF_FILE and setting.source.kind != ENVIRONMENT:
        troubles.append("it has an effect in the environment only")
    words = filter(None, [value_words(name, value)])
    hidden = [f"this hides {said} of {source.path}" for source, said in setting.hidden if said != value]
    return Row((name, value or "(empty)", setting.source.path, meaning(name)), bool(troubles), (*troubles, *words, *hidden))


def _unset(name: str, wanted: Wanted) -> Row:
    if name in DEAD and name not in wanted:
        return Row((name, "-", "-", DEAD[name]))
    return Row((name, default(name), DEFAULT, meaning(name)), wanted.get(name) is not None, _intent_words(name, wanted))


def _unread(name: str, wanted: Wanted) -> Row:
    return Row((name, NOT_READ, "-", DEAD.get(name) or meaning(name)), notes=_intent_words(name, wanted))


def _intent_words(name: str, wanted: Wanted) -> tuple[str, ...]:
    if name not in wanted:
        return ()
    value = wanted[name]
    return (f"the intent has {value}" if value is not None else "the intent derives it when every rail has its device",)


def _difference(name: str, value: str, wanted: Wanted | None) -> str:
    """How a value differs from the intent; "" without an intent."""
    if wanted is None or wanted.get(name, "") is None or wanted.get(name) == value:
        return ""
    return f"the intent has {wanted[name]}" if name in wanted else "the intent does not set it"
