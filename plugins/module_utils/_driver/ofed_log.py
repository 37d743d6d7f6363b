# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the lines of a driver's installation or build that show why it failed, and the one that shows its progress.

Of mlnxofedinstall and install.pl (4.5 to 24.10), dkms (2.8 to 3.2), dpkg, apt, rpm, dnf, gcc, kbuild and modprobe. Text in, lines out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MOST_LINES = 12
MOST_CHARACTERS = 300
#: The maximum number of lines of one kind: a compiler and rpm's scripts repeat themselves.
_OF_A_KIND = 3

_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\([A-Z0-9]")
# Rank (the smaller, the nearer to the cause), kind and pattern.
_SIGNS: tuple[tuple[int, str, re.Pattern[str]], ...] = tuple(
    (rank, kind, re.compile(pattern, re.ASCII))
    for rank, kind, pattern in (
        (0, "space", r"No space left on device"),
        (0, "compiler", r"^\S{1,400}:[0-9]{1,7}:(?:[0-9]{1,7}:)? (?:fatal )?error: "),
        (0, "symbols", r"Unknown symbol|disagrees about version of symbol|^ERROR: modpost: |Invalid module format"),
        (0, "key", r"Required key not available|Key was rejected by service|unsigned module is rejected"),
        (0, "headers", r"[Kk]ernel headers for kernel .{1,200} cannot be found"),
        (
            0,
            "tool",
            r"(?:^|: )(?:gcc|make|cc|ld|perl|python3?|dkms|createrepo)\S{0,20}: (?:command )?not found|^ERROR: '.{1,60}' is not installed",
        ),
        (0, "option", r"^Unsupported installation option"),
        (0, "distribution", r"^Error: The current .{1,80} is intended for "),
        (1, "packages", r"^(?:yum|dnf|apt-get|apt|zypper) (?:-y )?install \S"),
        (1, "dkms", r"^Error! (?!echo$)"),
        (1, "dependency", r"^error: Failed dependencies|^\s{0,9}\S.{0,200} is needed by |^\s{0,9}(?:file )?\S.{0,200} conflicts with "),
        (1, "installer", r"^(?:ERROR|Error): (?!See )|^-E- |^Failed to |installation failed!|^Command execution failed"),
        (2, "dpkg", r"^dpkg: (?:error|dependency problems)|subprocess returned error exit status|^E: "),
        (2, "rpm", r"^error: |^\s{0,9}Bad exit status from |^\*\*\* ERROR: "),
        (3, "make", r"^(?:g?make)(?:\[[0-9]{1,3}\])?: \*\*\* "),
    )
)
_BUILD_FAILED = re.compile(
    r"Error! Bad return status for module build"
    r"|kernel headers for kernel .{1,200} cannot be found"
    r"|Error! One or more modules failed to install during autoinstall",
    re.ASCII,
)
_PATH = re.compile(r"(?:^|[\s'\"=(:])(/[^\s'\"():,;*?]{1,1000}\.log)\b(?![/.\w])", re.ASCII)
_STEP = re.compile(
    r"^(?:Installing |Uninstalling |Removing |Building |Build \S|Checking |Creating |Created |Starting |Setting up |Unpacking "
    r"|Preparing to |Loading new |Running |Attempting to |Verifying |Configuring |Updating |Autoinstall|depmod|Processing triggers)",
    re.ASCII,
)


def _lines(text: str) -> list[str]:
    """Return the lines as a terminal finally shows them, without colors and without white space at the end."""
    return [line.rsplit("\r", 1)[-1].rstrip() for line in _ESCAPES.sub("", text.replace("\r\n", "\n")).split("\n")]


def decisive(text: str) -> list[str]:
    """Return the lines that show why it failed: at most MOST_LINES of at most MOST_CHARACTERS, in their order, none twice.

    If there are more, those that are nearest to the cause. None for a text without a sign of a failure.
    """
    found: list[tuple[int, int, str]] = []
    seen: set[str] = set()
    kinds: Counter[str] = Counter()
    for number, line in enumerate(_lines(text)):
        sign = _sign(line[: 4 * MOST_CHARACTERS])
        excerpt = _cut(line.strip())
        if sign is None or excerpt in seen or kinds[sign[1]] >= _OF_A_KIND:
            continue
        kinds[sign[1]] += 1
        seen.add(excerpt)
        found.append((sign[0], number, excerpt))
    best = sorted(found)[:MOST_LINES]
    return [excerpt for _rank, _number, excerpt in sorted(best, key=lambda each: each[1])]


def _sign(line: str) -> tuple[int, str] | None:
    return next(((rank, kind) for rank, kind, pattern in _SIGNS if pattern.search(line)), None)


def _cut(line: str) -> str:
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 2]} …"


def build_failed(text: str) -> list[str]:
    """Return the lines by which DKMS reports a failed build, with any exit status."""
    return list(dict.fromkeys(_cut(line.strip()) for line in _lines(text) if _BUILD_FAILED.search(line[: 4 * MOST_CHARACTERS])))[
        :MOST_LINES
    ]


def log_paths(text: str) -> list[str]:
    """Return the logs that the text names ("See /tmp/….log", "Consult /var/lib/dkms/…/make.log"), the last one named first, none twice."""
    named = [match for line in _lines(text) for match in _PATH.findall(line[:2000])]
    return list(dict.fromkeys(reversed(named)))


def progress(text: str) -> str | None:
    """Return the last line that shows the progress; without one, the last line at all, and None without a line."""
    lines = [line.strip() for line in _lines(text)]
    return next(
        (_cut(line) for line in reversed(lines) if _STEP.match(line)),
        next((_cut(line) for line in reversed(lines) if line), None),
    )


def tail(text: str, most: int) -> list[str]:
    """Return the last lines, as a terminal shows them."""
    lines: Sequence[str] = _lines(text.rstrip("\n")) if text.strip() else []
    return [_cut(line) for line in lines[-most:]]
