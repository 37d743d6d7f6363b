# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables as text: nccl.conf, in NCCL's own format, and an environment file for other readers.

nccl.conf (NCCL src/misc/param.cc): one NAME=VALUE per line; a comment has its # in column 0; blanks are not trimmed, and there are no
quotes and no comments after a value: they would become part of it. The first "=" splits: NCCL_IB_HCA==mlx5_0:1 gives the value "=mlx5_0:1".
Of two lines for one name the first counts, and the environment has priority over the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_LINE_BYTES = 4095
#: Of a name, and of a value; NCCL truncates longer ones.
MAX_PART_BYTES = 1023

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Characters without a special meaning in a shell or systemd: such values have no quotes, as `docker --env-file` requires.
_BARE = re.compile(r"[A-Za-z0-9_.,:/@%+^=-]+")
# Characters with a special meaning for a shell within double quotes; systemd unescapes the same four (env-file.c, SHELL_NEED_ESCAPE).
_ESCAPED = re.compile(r'(["\\$`])')


@dataclass(frozen=True)
class ConfLine:
    """A line of nccl.conf with another effect than it seems to have. number: from 1; why: the reason, in words."""

    number: int
    text: str
    why: str


@dataclass(frozen=True)
class NcclConf:
    """The variables that NCCL reads from a file; ignored: lines without any effect; altered: lines whose value NCCL changes."""

    variables: dict[str, str]
    ignored: list[ConfLine]
    altered: list[ConfLine]


def parse_nccl_conf(text: str) -> NcclConf:
    """Parse nccl.conf as NCCL reads it. It raises nothing, because NCCL rejects nothing. Comments and empty lines are not listed."""
    conf = NcclConf({}, [], [])
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.startswith("#"):
            _parse_line(number, line, conf)
    return conf


def _parse_line(number: int, line: str, conf: NcclConf) -> None:
    name, equals, value = _cut(line.partition("\0")[0], MAX_LINE_BYTES).partition("=")
    why = _why_ignored(_cut(name, MAX_PART_BYTES), equals, conf)
    if why:
        conf.ignored.append(ConfLine(number, line, why))
        return
    conf.variables[_cut(name, MAX_PART_BYTES)] = _cut(value, MAX_PART_BYTES)
    if f"{_cut(name, MAX_PART_BYTES)}={_cut(value, MAX_PART_BYTES)}" != line:
        conf.altered.append(
            ConfLine(number, line, f"NCCL reads at most {MAX_PART_BYTES} bytes of a name and of a value, and nothing after a NUL")
        )
    elif line.endswith("\r"):
        conf.altered.append(ConfLine(number, line, "only recent versions of NCCL remove a carriage return"))


def _why_ignored(name: str, equals: str, conf: NcclConf) -> str:
    if not equals:
        return "it has no ="
    if not name:
        return "it has no name before the ="
    return f"{name} is already set above, and the first one counts" if name in conf.variables else ""


def _cut(text: str, size_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:size_bytes].decode("utf-8", "replace")


def render_nccl_conf(variables: Mapping[str, str]) -> str:
    """Return the variables as lines of nccl.conf, in the order of their names.

    Raises ValueError, with all invalid ones, for a name or a value that the file would change.
    """
    _refuse(variables)
    return "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))


def render_environment(variables: Mapping[str, str]) -> str:
    """Return the variables as lines of a file that both systemd (EnvironmentFile=) and a POSIX shell (`set -a; . file`) read.

    Both process double quotes in the same way (systemd.exec(5), sh(1)). A plain value has no quotes, so that container runtimes, which do
    not process quotes, read it too. Raises ValueError as render_nccl_conf does.
    """
    _refuse(variables)
    return "".join(f"{name}={_quoted(value)}\n" for name, value in sorted(variables.items()))


def _quoted(value: str) -> str:
    return value if _BARE.fullmatch(value) else '"' + _ESCAPED.sub(r"\\\1", value) + '"'


def _refuse(variables: Mapping[str, str]) -> None:
    wrong = [words for name, value in sorted(variables.items()) for words in (_wrong_name(name), _wrong_value(name, value)) if words]
    if wrong:
        raise ValueError("These NCCL variables cannot be written to a file: " + "; ".join(wrong))


def _wrong_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        return f"the name {name!r} is not made of letters, digits and _"
    return f"the name {name[:32]}… is longer than {MAX_PART_BYTES} bytes" if len(name) > MAX_PART_BYTES else ""


def _wrong_value(name: str, value: str) -> str:
    """Return why a value cannot be written, else "".

    Control characters are rejected: a line break ends the line, and systemd drops a variable with any other except a tab.
    """
    if any(char < " " or char == "\x7f" for char in value):
        return f"the value of {name} has a line break or another control character: {value!r}"
    if any("\ud800" <= char <= "\udfff" for char in value):
        return f"the value of {name} is not valid text: {value!r}"
    return f"the value of {name} is longer than {MAX_PART_BYTES} bytes" if len(value.encode()) > MAX_PART_BYTES else ""
