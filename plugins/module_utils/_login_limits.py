# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a login may lock of memory and have open of files, by the files that pam_limits reads: the last one that says something wins.

Source: limits.conf(5), pam_limits(8): limits.conf first, then limits.d/*.conf in the order of the C locale. Lines for single
users and groups, which win over `*`, are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

FIRST = "/etc/security/limits.conf"
FOLDER = "/etc/security/limits.d"
#: `*` is everybody but root.
DOMAINS = ("*", "root")
UNLIMITED = ("-1", "infinity", "unlimited")
#: What a line's type sets.
TYPES = {"-": ("soft", "hard"), "soft": ("soft",), "hard": ("hard",)}


@dataclass(frozen=True)
class Rule:
    """One line. types: "soft", "hard" or both; item: "memlock", "nofile", …; value as it is written; line: its number, from 1."""

    domain: str
    types: tuple[str, ...]
    item: str
    value: str
    line: int = 1


@dataclass(frozen=True)
class LoginLimit:
    """The limit of a login, and the line that sets it; where that is not unlimited, the value as it is written there (memlock: KiB)."""

    unlimited: bool
    value: str
    file: str
    line: int | None = None


def parse_limits_conf(text: str) -> list[Rule]:
    """The lines for everybody and for root, in order; pam_limits leaves out what it does not understand, and so does this."""
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if len(words) == 4 and words[0] in DOMAINS and words[1] in TYPES:
            rules.append(Rule(words[0], TYPES[words[1]], words[2], words[3], number))
    return rules


def read_login_limits(sys: SysRoot, item: str) -> dict[str, LoginLimit | None]:
    """What everybody ("*") and root get of an item; None where no file says anything, so that the kernel's default holds."""
    names = [f"{FOLDER}/{name}" for name in sys.list_dir(FOLDER) if name.endswith(".conf")]
    last: dict[tuple[str, str], LoginLimit] = {}
    for path in (FIRST, *names):
        for rule in parse_limits_conf(sys.read(path) or ""):
            for kind in rule.types if rule.item == item else ():
                last[rule.domain, kind] = LoginLimit(rule.value in UNLIMITED, rule.value, path, rule.line)
    return {domain: _least([last.get((domain, kind)) for kind in ("soft", "hard")]) for domain in DOMAINS}


def _least(both: list[LoginLimit | None]) -> LoginLimit | None:
    """Of soft and hard limit the one that binds; None if either is not said."""
    said = [limit for limit in both if limit is not None]
    return min(said, key=_height) if len(said) == len(both) else None


def _height(limit: LoginLimit) -> tuple[bool, int]:
    """What is no number counts as the least: nobody can rely on it."""
    return limit.unlimited, int(limit.value) if limit.value.isdecimal() else 0
