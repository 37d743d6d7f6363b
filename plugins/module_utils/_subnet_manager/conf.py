# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""opensm.conf: the intent's settings of a plane's subnet manager, as `opensm -c` (3.3.23) spells them.

Every key of the intent is always written, even with opensm's own default: when opensm reads the file again, a removed key
keeps its old value. Settings of one host (port, priority, log) are not in the file but on the command line, so that the file is the
same on all hosts of a plane.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NONE = "(null)"
#: Secrets, with opensm's defaults.
KEYS = {"m_key": "0x0000000000000000", "sm_key": "0x0000000000000001", "sa_key": "0x0000000000000001"}
#: Settings that opensm takes from the file in a heavy sweep (can_update of opt_tbl, osm_subnet.c of 3.3.24). part_enforce is left out:
#: opensm rereads its text, but computes its meaning only at the start.
UPDATABLE = frozenset(
    {
        *KEYS, "m_key_lease_period", "m_key_protection_level", "sweep_interval", "qos", "qos_max_vls", "qos_high_limit", "qos_vlarb_high",
        "qos_vlarb_low", "qos_sl2vl", "log_flags", "log_max_size", "force_log_flush",
    }
)  # fmt: skip

#: Those of UPDATABLE that touch no port: all others change the ports' keys, virtual lanes or arbitration at the signal.
_QUIET = frozenset({"sweep_interval", "log_flags", "log_max_size", "force_log_flush"})
PORT_SETTINGS = UPDATABLE - _QUIET


def render_conf(plane: str, manager: Mapping[str, Any], keys: Mapping[str, str | None], partitions_path: str) -> str:
    """Return the file. manager: planes.NAME.subnet_manager of the normalized intent; keys: any of KEYS, in hexadecimal."""
    lines = [f"# Managed by rdma.cluster: the subnet manager of plane {plane}, the same on all hosts that run it."]
    values = settings(manager, keys, partitions_path)
    return "\n".join([*lines, *(f"{name} {value}" for name, value in values.items())]) + "\n"


def settings(manager: Mapping[str, Any], keys: Mapping[str, str | None], partitions_path: str) -> dict[str, str]:
    """Return each of our keys of opensm.conf with its value as text."""
    qos, log = manager["qos"], manager["log"]
    found = {
        "subnet_prefix": manager["subnet_prefix"],
        **{name: keys.get(name) or default for name, default in KEYS.items()},
        "m_key_lease_period": manager["m_key_lease_seconds"],
        "m_key_protection_level": manager["m_key_protection_level"],
        "lmc": manager["lmc"],
        "sweep_interval": manager["sweep_interval_seconds"],
        "partition_config_file": partitions_path,
        "part_enforce": manager["partition_enforcement"],
        "routing_engine": manager["routing"],
        "qos": qos["enabled"],
        **{f"qos_{name}": qos[name] for name in ("max_vls", "high_limit", "vlarb_high", "vlarb_low", "sl2vl")},
        "log_flags": f"0x{log['flags']:02x}",
        "log_max_size": log["max_size_mb"],
        "force_log_flush": log["flush"],
        # Only NVIDIA's opensm has it; 2 means "on all switches that can".
        **({"sharp_enabled": 2} if manager["sharp"] else {}),
    }
    return {name: _text(value) for name, value in found.items()}


def _text(value: str | int | bool | None) -> str:
    """Return a value as text. For booleans opensm knows only TRUE; all else is false."""
    if value is None:
        return NONE
    return str(value).upper() if isinstance(value, bool) else str(value)


def parse_conf(text: str) -> dict[str, str]:
    """Return key → value of an opensm.conf, read as opensm does: a comment begins anywhere, the last line of a key wins."""
    found = {}
    for line in text.splitlines():
        words = line.split("#", maxsplit=1)[0].split(maxsplit=1)
        if words:
            found[words[0]] = words[1].strip().strip("\"'") if len(words) > 1 else ""
    return found


def restart_reasons(before: str, after: str) -> list[str]:
    """Return the keys that differ between two files and that a running opensm does not apply, with both values."""
    old, new = parse_conf(before), parse_conf(after)
    names = [*new, *(name for name in old if name not in new)]
    return [
        f"{name} {old.get(name, 'absent')} → {new.get(name, 'absent')}"
        for name in names
        if old.get(name) != new.get(name) and (name not in UPDATABLE or name not in new)
    ]


def port_changes(before: str, after: str) -> list[str]:
    """Return the differences of PORT_SETTINGS between two files, with both values except for secrets."""
    old, new = parse_conf(before), parse_conf(after)
    return [
        f"{name} changes" if name in KEYS else f"{name} {old.get(name, 'absent')} → {value}"
        for name, value in new.items()
        if name in PORT_SETTINGS and old.get(name) != value
    ]


def with_port_settings_of(text: str, present: str) -> str:
    """Return a rendered file with the PORT_SETTINGS of the present file."""
    kept = parse_conf(present)
    lines = []
    for line in text.splitlines():
        name = line.partition(" ")[0]
        if name not in PORT_SETTINGS:
            lines.append(line)
        elif name in kept:
            lines.append(f"{name} {kept[name]}")
    return "\n".join(lines) + "\n"


def redacted(text: str, word: str) -> str:
    """Return a file for display: secrets that are not opensm's defaults are replaced by a word in brackets."""
    return "".join(_redacted_line(line, word) for line in text.splitlines(keepends=True))


def _redacted_line(line: str, word: str) -> str:
    name, _space, value = line.strip().partition(" ")
    return f"{name} ({word})\n" if name in KEYS and value != KEYS[name] else line
