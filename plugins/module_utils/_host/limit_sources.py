# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the line of systemd's configuration that sets a limit of services: the manager's default, a unit, or a drop-in.

Sources: systemd-system.conf(5), systemd.unit(5): files with one name hide each other in the order of the folders, the others apply in the
order of their names, and the last one wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

MANAGER_FOLDERS = tuple(f"{folder}/systemd" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
UNIT_FOLDERS = tuple(f"{folder}/systemd/system" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
#: The drop-ins of every service, and those of a transient one (`systemd-run`).
EVERY_SERVICE, TRANSIENT = "service.d", "run-.service.d"


@dataclass(frozen=True)
class LimitSource:
    """The line that sets a limit. line: its number, from 1; value: as written ("64M", "infinity")."""

    file: str
    line: int
    value: str


def parse_setting(text: str, section: str, key: str) -> tuple[int, str] | None:
    """Return the line number and the value of the last setting of a key in a section ("[Manager]") of a systemd configuration file."""
    current, found = "", None
    for number, line in enumerate((line.strip() for line in text.splitlines()), start=1):
        if line.startswith("["):
            current = line
        name, equals, value = line.partition("=")
        if equals and current == section and name.strip() == key:
            found = (number, value.strip())
    return found


def manager_source(sys: SysRoot, item: str) -> LimitSource | None:
    """Return the line that sets the manager's default of an item ("MEMLOCK"); None if no file sets it."""
    main = _first(sys, (f"{folder}/system.conf" for folder in MANAGER_FOLDERS))
    paths = [main, *_drop_ins(sys, [f"{folder}/system.conf.d" for folder in MANAGER_FOLDERS])]
    return _last(sys, paths, "[Manager]", f"DefaultLimit{item}")


def unit_source(sys: SysRoot, unit: str, item: str) -> LimitSource | None:
    """Return the line that sets an item for a service in its unit, its drop-in or one for every service; None if no file sets it."""
    main = _first(sys, (f"{folder}/{unit}" for folder in UNIT_FOLDERS))
    folders = [f"{folder}/{name}" for name in (f"{unit}.d", EVERY_SERVICE) for folder in UNIT_FOLDERS]
    return _last(sys, [main, *_drop_ins(sys, folders)], "[Service]", f"Limit{item}")


def service_source(sys: SysRoot, item: str) -> LimitSource | None:
    """Return the line that sets an item for a service without its own setting, as a transient service has it."""
    folders = [f"{folder}/{name}" for name in (TRANSIENT, EVERY_SERVICE) for folder in UNIT_FOLDERS]
    return _last(sys, _drop_ins(sys, folders), "[Service]", f"Limit{item}") or manager_source(sys, item)


def _first(sys: SysRoot, paths: Iterable[str]) -> str:
    return next((path for path in paths if sys.exists(path)), "")


def _drop_ins(sys: SysRoot, folders: Iterable[str]) -> list[str]:
    chosen: dict[str, str] = {}
    for folder in folders:
        for name in sys.list_dir(folder):
            chosen.setdefault(name, f"{folder}/{name}")
    return [chosen[name] for name in sorted(chosen) if name.endswith(".conf")]


def _last(sys: SysRoot, paths: Iterable[str], section: str, key: str) -> LimitSource | None:
    found = None
    for path in filter(None, paths):
        setting = parse_setting(_readable(sys, path), section, key)
        found = LimitSource(path, *setting) if setting is not None else found
    return found


def _readable(sys: SysRoot, path: str) -> str:
    """Return the text of a file; "" if it may not be read: then the limit is known, but not the line that sets it."""
    try:
        return sys.read(path) or ""
    except PermissionError:
        return ""
