# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the values of variables. NCCL rejects hardly any: it uses another value, or its default."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import MAX_DEVICES, parse_list
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import (
    ALGORITHMS,
    BOOL,
    CHOICE,
    DEVICES,
    DEVPOLICY,
    INTEGER,
    INTERFACES,
    LEVEL,
    NUMBERS,
    PATH,
    POLICIES,
    PROTOCOLS,
    SUBNET,
    SWITCH,
    TEXT,
    WORDS,
    Variable,
    is_older,
)

#: The maximum distance of NIC and GPU, or of two GPUs; case counts (src/graph/topo.cc).
LEVELS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
#: By their former numbers; a larger one is the last (src/graph/paths.cc).
OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
COLLECTIVES = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHM_NAMES = ("ring", "tree", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
PROTOCOL_NAMES = ("ll", "ll128", "simple")
#: From this version on NCCL uses its default for a number without digits (tested with 2.30.7, 2.31.2 and 2.32.3).
DIGITS_SINCE = "2.32.3"
_LEADING = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]{1,64}|[0-9]{1,64})")
_LIMIT = 2**63


@dataclass(frozen=True)
class Selection:
    """A part of NCCL_ALGO or NCCL_PROTO. collective: in lower case, "" for all; excluded: all except these; names: in lower case."""

    collective: str
    excluded: bool
    names: tuple[str, ...]


def read_number(value: str | None, version: str | None = None) -> int | None:
    """Return the number that NCCL reads from a value; None if it uses its default: nothing set, too large, or, since 2.32, no digit."""
    if not value:
        return None
    found = _LEADING.match(value)
    if found is None:
        return 0 if is_older(version, DIGITS_SINCE) else None
    sign, digits = found.groups()
    if digits[:2] in ("0x", "0X"):
        number = int(digits, 16)
    elif digits.startswith("0"):
        octal = re.match(r"[0-7]+", digits)
        number = int(octal[0], 8) if octal else 0
    else:
        number = int(digits)
    number = -number if sign == "-" else number
    return number if -_LIMIT <= number < _LIMIT else None


def read_level(value: str | None) -> str | None:
    """Return the name of the distance for a value of NCCL_NET_GDR_LEVEL or NCCL_P2P_LEVEL; None if NCCL uses its default."""
    if value in LEVELS:
        return value
    if not value or not "0" <= value[0] <= "9":
        return None
    return OLD_LEVELS[min(read_number(value) or 0, len(OLD_LEVELS) - 1)]


def parse_selections(value: str) -> list[Selection]:
    """Parse NCCL_ALGO or NCCL_PROTO: "ring,tree;allreduce:^tree". Empty parts are skipped, like strtok (src/graph/tuning.cc, parseList)."""
    selections = []
    for part in filter(None, value.split(";")):
        fields = [field for field in part.split(":") if field]
        collective, names = (fields[0], fields[1]) if len(fields) > 1 else ("", fields[0] if fields else "")
        excluded = names.startswith("^")
        words = (names[1:] if excluded else names).lower().split(",")
        selections.append(Selection(collective.lower(), excluded, tuple(filter(None, words))))
    return selections


#: A version that reads 0 from a number without digits.
OLDEST_READ = "2.30.7"
_POLICY_NAMES = ("default", "efficiency", "zero")
_PLAIN = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,18}|0)")
_OCTAL = re.compile(r"[+-]?0[0-7]{1,21}")
_DIGITS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Trouble:
    """A problem of a value. rule: "value_…"; takes: NCCL's result, in words; expected: the valid values, in words."""

    rule: str
    severity: str
    takes: str
    expected: str


def value_trouble(variable: Variable, value: str) -> Trouble | None:
    """Return the problem of a value; None without one, or if any value is valid."""
    if not value:
        return Trouble("value_empty", WARNING, "nothing, and it hides the value in a later file", "a value, or no line")
    return _form(variable, value) or _KINDS.get(variable.kind, _any)(variable, value)


def _form(variable: Variable, value: str) -> Trouble | None:
    """Return a problem of form. NCCL and its files have no quotes, no comments after a value, and no blanks that are not part of it."""
    meant = literal_meaning(value)
    if _is_quoted(value) or (variable.kind in (DEVICES, INTERFACES) and set("\"'") & set(value)):
        return Trouble("value_form", ERROR, "the quotes as part of the value", f"{meant or 'a value'}, without quotes")
    if re.search(r"\s#", value):
        expected = f"{meant or 'a value'}, and the comment on a separate line"
        return Trouble("value_form", ERROR, "the comment as part of the value", expected)
    if value.strip() != value and variable.kind != TEXT:
        return Trouble("value_form", ERROR, "the blanks as part of the value", "no blanks around it")
    return None


def literal_meaning(value: str) -> str:
    """Return the intended value: without a comment after it, and without blanks and quotes, also those after the signs of a list."""
    return re.split(r"\s#", value, maxsplit=1)[0].replace('"', "").replace("'", "").strip()


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"


def _any(_variable: Variable, _value: str) -> None:
    """Return no problem for any value."""


def _integer(variable: Variable, value: str) -> Trouble | None:
    expected = _range_words(variable)
    if _OCTAL.fullmatch(value):
        return Trouble("value_type", WARNING, f"{read_number(value)}, as an octal number", f"{expected}, without a leading 0")
    number = read_number(value)
    if number is None and read_number(value, OLDEST_READ) == 0:
        return Trouble("value_type", ERROR, "its default since NCCL 2.32, and 0 before", expected)
    if number is None or not _PLAIN.fullmatch(value):
        return Trouble("value_type", ERROR, "its default" if number is None else str(number), expected)
    if (variable.low is not None and number < variable.low) or (variable.high is not None and number > variable.high):
        return Trouble("value_range", ERROR, f"{number}, which is out of range", expected)
    return None


def _range_words(variable: Variable) -> str:
    if variable.kind == SWITCH:
        return "0 or 1"
    if variable.low is None:
        return "a number"
    return f"a number of {variable.low} or more" if variable.high is None else f"a number from {variable.low} to {variable.high}"


def _bool(_variable: Variable, value: str) -> Trouble | None:
    if value in ("0", "1"):
        return None
    if value.lower() in ("t", "f", "true", "false"):
        return Trouble("value_type", WARNING, "0 before NCCL 2.30", "0 or 1")
    return Trouble("value_type", ERROR, f"its default since NCCL 2.30, and {read_number(value, OLDEST_READ) or 0} before", "0 or 1")


def _choice(variable: Variable, value: str) -> Trouble | None:
    known = value in variable.choices if variable.exact else value.upper() in variable.choices
    return None if known else _not_one_of(variable.choices, exact=variable.exact)


def _not_one_of(choices: Sequence[str], *, exact: bool = False) -> Trouble:
    case = ", in this case" if exact else ""
    return Trouble("value_choice", ERROR, "its default", f"one of {', '.join(choices)}{case}")


def _words(variable: Variable, value: str) -> Trouble | None:
    names = (value[1:] if value.startswith("^") else value).split(",")
    wrong = [name for name in names if name and name.upper() not in variable.choices]
    if not wrong:
        return None
    takes = f"its default since NCCL 2.30, and the list without {', '.join(wrong)} before"
    return Trouble("value_choice", ERROR, takes, f"{', '.join(variable.choices)}, separated by commas; after a ^, all others")


def _numbers(variable: Variable, value: str) -> Trouble | None:
    known = str(read_number(value)) in variable.choices and _PLAIN.fullmatch(value)
    return None if known else Trouble("value_choice", ERROR, "another number", f"one of {', '.join(variable.choices)}")


def _level(_variable: Variable, value: str) -> Trouble | None:
    if value in LEVELS:
        return None
    expected = f"one of {', '.join(LEVELS)}, in this case"
    if _DIGITS.fullmatch(value):
        return Trouble("value_old", WARNING, f"{read_level(value)}: numbers are the old spelling", expected)
    return Trouble("value_choice", ERROR, read_level(value) or "its default", expected)


def _subnet(_variable: Variable, value: str) -> Trouble | None:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return Trouble("value_type", ERROR, "no subnet", "a subnet such as 192.168.100.0/24")
    return (
        None if "/" in value else Trouble("value_type", ERROR, "no subnet, because the / is missing", "a subnet such as 192.168.100.0/24")
    )


def _path(_variable: Variable, value: str) -> Trouble | None:
    return Trouble("value_type", ERROR, "a folder called ~", "a full path") if value.startswith("~") else None


def _devices(variable: Variable, value: str) -> Trouble | None:
    listed = parse_list(value)
    form = "[^][=]device[:port[:rail[:plane]]], separated by commas" if variable.kind == DEVICES else "[^][=]interface, separated by commas"
    if not listed.entries:
        return Trouble("value_type", ERROR, "no device at all" if listed.excluded else "every device", form)
    if not all(entry.well_formed for entry in listed.entries):
        return Trouble("value_type", ERROR, "0 for text that is not a number", form)
    if len(listed.entries) > MAX_DEVICES:
        return Trouble("value_range", ERROR, f"the first {MAX_DEVICES}", f"at most {MAX_DEVICES}")
    return None


def _devpolicy(_variable: Variable, value: str) -> Trouble | None:
    good = value.upper() in ("AUTO", "ALL") or (value.upper().startswith("MAX:") and (read_number(value[4:]) or 0) > 0)
    return None if good else Trouble("value_choice", ERROR, "AUTO", "AUTO, ALL, or MAX:n with a number of 1 or more")


def _policies(_variable: Variable, value: str) -> Trouble | None:
    if value in ("0", "1", "2"):
        return Trouble(
            "value_old", WARNING, f"{_POLICY_NAMES[int(value)].upper()}: numbers are the old spelling", "DEFAULT, EFFICIENCY, ZERO"
        )
    good = all(word.lower() in _POLICY_NAMES for word in value.split("|"))
    return None if good else Trouble("value_choice", ERROR, "its default", "DEFAULT, EFFICIENCY, ZERO, joined by |")


def _selections(names: tuple[str, ...]) -> Callable[[Variable, str], Trouble | None]:
    def judge(_variable: Variable, value: str) -> Trouble | None:
        parts = parse_selections(value)
        wrong = [name for part in parts for name in part.names if name not in names]
        wrong += [part.collective for part in parts if part.collective and part.collective not in COLLECTIVES]
        wrong += [";" for part in parts[1:] if not part.collective]
        if parts and all(part.names for part in parts) and not wrong:
            return None
        expected = f"{', '.join(names)}, separated by commas; or collective:names, separated by ;, with {', '.join(COLLECTIVES)}"
        return Trouble("value_choice", ERROR, "an error since NCCL 2.24, and only the known parts before", expected)

    return judge


_KINDS: dict[str, Callable[[Variable, str], Trouble | None]] = {
    SWITCH: _integer,
    INTEGER: _integer,
    BOOL: _bool,
    CHOICE: _choice,
    WORDS: _words,
    NUMBERS: _numbers,
    LEVEL: _level,
    SUBNET: _subnet,
    PATH: _path,
    DEVICES: _devices,
    INTERFACES: _devices,
    DEVPOLICY: _devpolicy,
    POLICIES: _policies,
    ALGORITHMS: _selections(ALGORITHM_NAMES),
    PROTOCOLS: _selections(PROTOCOL_NAMES),
}
