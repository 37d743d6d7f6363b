# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables on a host: the effective value, its file, its meaning, and differences from the intent."""

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

#: Always listed, in this order.
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
#: Names in guides and scripts that no current version of NCCL reads: name → the reason, and what to use.
DEAD = {
    **NEVER,
    **{
        name: f"removed in NCCL {variable.until}" + (f", replaced by {variable.instead}" if variable.instead else "")
        for name, variable in VARIABLES.items()
        if variable.kind == GONE
    },
}
#: The names of DEAD that are always listed, because the scripts that this replaces print them.
NEVER_THERE = ("NCCL_NCHUNKS_COARSE", "NCCL_SHARP_ENABLE")
_DIGITS = re.compile(r"[0-9]{1,9}")
#: Variables whose value is a distance; case matters.
WITH_LEVEL = tuple(name for name, variable in VARIABLES.items() if variable.kind == LEVEL)
#: The similarity from which a name counts as a typing error of another.
_LIKE = 0.9


def default(name: str) -> str:
    """The value of a variable that is not set."""
    return VARIABLES[name].default if name in VARIABLES else "not set"


def meaning(name: str) -> str:
    """The meaning of a variable, in a few words."""
    if name in DEAD:
        return "nothing"
    if name in VARIABLES:
        return VARIABLES[name].meaning
    return "not known here; no effect if NCCL does not know it either" if name.startswith(PREFIX) else "not a variable of NCCL"


def name_trouble(name: str) -> str:
    """Why a set variable has no effect; "" if it has one, or if it is unknown and similar to no other."""
    if name in DEAD:
        return DEAD[name]
    near = nearest(name, VARIABLES, _LIKE) if name.startswith(PREFIX) else None
    return f"did you mean {near}?" if near and near != name else ""


def value_trouble(name: str, value: str) -> str:
    """Why a value has no effect; "" if it has one, or is not checked."""
    if name not in WITH_LEVEL or value in LEVELS or not value or _DIGITS.fullmatch(value):
        return ""
    return f"NCCL does not know this level and uses its default; levels are {', '.join(LEVELS)}"


def value_words(name: str, value: str) -> str:
    """The meaning of a value in the old spelling; "" for any other."""
    if name not in WITH_LEVEL or not _DIGITS.fullmatch(value):
        return ""
    return f"{value} is the old spelling of {read_level(value)}"


Files = Mapping[str, Mapping[str, str]]
#: The intent's variables, name → value; None for one that cannot be derived now.
Wanted = Mapping[str, "str | None"]
SITE, ROOT_FILE = NCCL_FILES
#: Kind of source → the processes that read it.
LABELS = {
    ENVIRONMENT: "environment of what is started with it",
    NAMED_FILE: f"{CONF_FILE} of that",
    USER_FILE: "jobs of root; others have their own",
    SITE_FILE: "every job",
}
DEFAULT = "NCCL's default"
TITLE = "NCCL"


def nccl(intent: Intent | None, facts: RunFacts) -> str:
    """The table of all relevant variables."""
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
    """The intent's variables; None for the list of devices while a rail has no device, because it would be incomplete."""
    derived: dict[str, str | None] = {**nccl_variables(intent, facts)}
    compute = [rail for rail in resolve(intent["rails"], facts) if rail.rail["role"] == "compute"]
    if any(rail.device is None for rail in compute) and HCA not in intent["nccl"]["variables"]:
        derived[HCA] = None
    return derived


def _precedence(version: str | None) -> str:
    named = f"; the intent names NCCL {version}" if version else ""
    return f"The first of these files that sets a variable is used, else NCCL's default (2.30{named}). Containers see only mounted files."


def _environment_file(intent: Intent | None) -> str:
    keys = SECTIONS["rdma_nccl"].key.keys or {}
    return str(intent["nccl"]["environment_file"] if intent else keys["environment_file"].default)


def started_with(environment_file: str, files: Files, version: str | None) -> Job:
    """A job of root with this environment, and its sources. files: path of each existing file → its variables."""
    named = files.get(environment_file, {}).get(CONF_FILE, "")
    places = ((ENVIRONMENT, environment_file, "root"), (NAMED_FILE, named, "root"), (USER_FILE, ROOT_FILE, "root"), (SITE_FILE, SITE, ""))
    return jobs([Source(kind, path, owner, files.get(path, {})) for kind, path, owner in places if path], version)[0]


def _count(variables: Mapping[str, str] | None) -> str:
    return "not there" if variables is None else f"{len(variables)} variable{'' if len(variables) == 1 else 's'}"


def _left_over(files: Files, sources: Sequence[Source]) -> list[str]:
    """Lines on existing files with variables that NCCL does not read."""
    read = {source.path for source in sources}
    return [
        line
        for path in sorted(path for path, variables in files.items() if variables and path not in read)
        for line in text_lines(f"{path} exists, but NCCL does not read it unless {CONF_FILE} names it.", marked=True)
    ]


def _names(wanted: Wanted, settings: Mapping[str, Setting]) -> list[str]:
    """The relevant variables: those of the intent and those set in a file, then the main ones."""
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
        troubles.append("it takes effect only in the environment")
    words = filter(None, [value_words(name, value)])
    hidden = [f"this hides {hidden_value} of {source.path}" for source, hidden_value in setting.hidden if hidden_value != value]
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
    """The difference of a value from the intent; "" without an intent."""
    if wanted is None or wanted.get(name, "") is None or wanted.get(name) == value:
        return ""
    return f"the intent has {wanted[name]}" if name in wanted else "the intent does not set it"
