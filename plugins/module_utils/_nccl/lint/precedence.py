# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine the effective source of each variable for each owner's jobs: the first source with a name wins.

Order (NCCL src/misc/param.cc): the process's environment; the file that NCCL_CONF_FILE of that environment names (since 2.23), or without
it .nccl.conf in $HOME; /etc/nccl.conf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import ConfLine
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older

#: Kinds of sources, in NCCL's order.
ENVIRONMENT, NAMED_FILE, USER_FILE, SITE_FILE = ("environment", "conf_file", "user_file", "site_file")
CONF_FILE = "NCCL_CONF_FILE"
NAMED_SINCE = "2.23.4"
#: From this version on NCCL removes a carriage return at the end of a line.
CR_SINCE = "2.30.3"
EVERYBODY = "every other job"


@dataclass(frozen=True)
class Source:
    """A source of variables.

    path: of the file; of an environment, in words ("environment of slurmd.service"). owner: the owner of the jobs ("slurmd.service",
    "alice", "process 4711"), "" for all. lines: those with another effect than they seem to have; number 0: a note on the whole file.
    in_container: a container has this instead of the host's file. origins: the origin of variables that another program writes here
    ("rdma_nccl.variables"); they are corrected there.
    """

    kind: str
    path: str
    owner: str
    variables: Mapping[str, str]
    lines: tuple[ConfLine, ...] = ()
    in_container: bool = False
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return its place, for the end of a sentence."""
        if self.kind == ENVIRONMENT:
            return f"the {self.path}"
        return f"{self.path} in the container of {self.owner}" if self.in_container else self.path

    def place_of(self, name: str) -> str:
        """Return where one of its variables is corrected, for the end of a sentence."""
        return self.origins.get(name, self.place)


@dataclass(frozen=True)
class Setting:
    """The effective value of a variable, and the hidden ones, in NCCL's order."""

    name: str
    value: str
    source: Source
    hidden: tuple[tuple[Source, str], ...] = ()


@dataclass(frozen=True)
class Job:
    """Jobs that read their variables from the same sources."""

    owner: str
    sources: tuple[Source, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict)


def as_read(source: Source, version: str | None) -> Source:
    """Return a file's variables as this version of NCCL reads them: recent ones remove a carriage return at the end of a line."""
    if source.kind == ENVIRONMENT or is_older(version, CR_SINCE):
        return source
    return replace(source, variables={name: value[:-1] if value.endswith("\r") else value for name, value in source.variables.items()})


def jobs(sources: Sequence[Source], version: str | None) -> list[Job]:
    """Return the jobs of each owner of a source, in their order, and of all others. version: of NCCL, None for a recent one."""
    owners = dict.fromkeys(source.owner for source in sources if source.owner)
    return [_job(owner, sources, version) for owner in (*owners, "")]


def _job(owner: str, sources: Sequence[Source], version: str | None) -> Job:
    own = [source for source in sources if source.owner == owner]
    environment = [source for source in own if source.kind == ENVIRONMENT]
    named = any(source.variables.get(CONF_FILE) for source in environment) and not is_older(version, NAMED_SINCE)
    second = [source for source in own if source.kind == (NAMED_FILE if named else USER_FILE)]
    site = [source for source in own if source.kind == SITE_FILE]
    if not any(source.in_container for source in site):
        site = [source for source in sources if source.kind == SITE_FILE and not source.owner]
    read = (*environment, *second, *site)
    return Job(owner or EVERYBODY, read, _settings(read))


def _settings(sources: Sequence[Source]) -> dict[str, Setting]:
    names = sorted({name for source in sources for name in source.variables})
    return {name: _setting(name, [source for source in sources if name in source.variables]) for name in names}


def _setting(name: str, setters: Sequence[Source]) -> Setting:
    first, *others = setters
    return Setting(name, first.variables[name], first, tuple((source, source.variables[name]) for source in others))
