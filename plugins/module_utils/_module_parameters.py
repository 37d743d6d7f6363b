# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of kernel modules: as modprobe.d(5) takes them, and as the kernel shows them in /sys/module/NAME/parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

# prof_sel=2 debug_mask, name="a b"
_OPTION = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:=(\"[^\"]*\"|[^\s\"]*))?(?:[ ]+|$)")
_READABLE = 0o444
# The first characters that kstrtobool() of Linux goes by; "on" and "off" by their second.
_TRUE, _FALSE = re.compile(r"[yYtT1]|[oO][nN]"), re.compile(r"[nNfF0]|[oO][fF]")
_NUMBER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]{1,16})|([0-9]{1,20}))")


def parse_options(text: str) -> dict[str, str | None]:
    """ "prof_sel=2 name=\"a b\" quiet" → {"prof_sel": "2", "name": "a b", "quiet": None}; of one that is named twice the last holds.

    Raises ParseError for what the kernel would not take as options.
    """
    found: dict[str, str | None] = {}
    position, stripped = 0, text.strip(" ")
    while position < len(stripped):
        match = _OPTION.match(stripped, position)
        if match is None:
            raise ParseError(f"no option of a kernel module: {stripped[position:][:200]!r}, expected the form 'name=value other=1'")
        found[match[1].replace("-", "_")] = match[2].strip('"') if match[2] is not None else None
        position = match.end()
    return found


def read_parameters(sys: SysRoot, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The parameters of each module that is loaded, by name, as the kernel shows them ("Y", "2", "a,b"), without the line break.

    Those that nobody may read are left out, as the kernel leaves out those that a module does not show.
    """
    return {name: _read(sys, f"/sys/module/{name}/parameters") for name in names if sys.exists(f"/sys/module/{name}")}


def _read(sys: SysRoot, folder: str) -> dict[str, str]:
    paths = {name: f"{folder}/{name}" for name in sys.list_dir(folder)}
    texts = {name: sys.read(path) for name, path in paths.items() if (sys.mode(path) or 0) & _READABLE}
    return {name: text.rstrip("\n") for name, text in texts.items() if text is not None}


def same_value(wished: str | None, shown: str) -> bool:
    """Whether a value that was given to the kernel is the one that it shows: 1 and Y of a switch, 0x10 and 16 of a number.

    An option without a value switches something on.
    """
    if shown in ("Y", "N"):
        return (_TRUE if shown == "Y" else _FALSE).match("Y" if wished is None else wished) is not None
    numbers = _number(wished), _number(shown)
    return wished == shown or (numbers[0] is not None and numbers[0] == numbers[1])


def _number(text: str | None) -> int | None:
    """As kstrtoll(text, 0, …) reads it: a leading 0 is octal."""
    match = _NUMBER.fullmatch(text or "")
    if match is None:
        return None
    sign, hexadecimal, digits = match.groups()
    try:
        size = int(hexadecimal, 16) if hexadecimal else int(digits, 8 if digits.startswith("0") else 10)
    except ValueError:
        return None
    return -size if sign == "-" else size
