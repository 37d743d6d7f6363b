# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the files of ours on a host record: the addresses, rules and routes that a former run gave its rails.

Only what such a file has is known to be ours. The forms are those of networkd.py, nm_profiles.py and netplan.py beside this file.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import owner_of, places
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import MAIN, TABLES, PolicyRule, Recorded, TableRoute

_ADDRESS = re.compile(r"^(?:Address=|address[0-9]+=|[ ]+- )\"?([0-9a-f.:]+/[0-9]+)\"?[ \t]*$", re.MULTILINE)
_RULES = (
    re.compile(
        r"^\[RoutingPolicyRule\]\nFrom=(?P<source>\S+)\nTable=(?P<table>[0-9]{1,9})\nPriority=(?P<priority>[0-9]{1,9})(?=\n\n|\n*\Z)",
        re.MULTILINE,
    ),
    re.compile(r"^routing-rule[0-9]+=priority (?P<priority>[0-9]{1,9}) from (?P<source>\S+) table (?P<table>[0-9]{1,9})$", re.MULTILINE),
    re.compile(
        r"^ +- from: (?P<source>\S+)\n +table: (?P<table>[0-9]{1,9})\n +priority: (?P<priority>[0-9]{1,9})$(?!\n {10})", re.MULTILINE
    ),
)
_ROUTES = (
    re.compile(
        r"^\[Route\]\nDestination=(?P<network>\S+)(?:\nGateway=(?P<gateway>\S+))?(?:\nScope=link)?"
        r"(?:\nPreferredSource=(?P<source>\S+))?(?:\nTable=(?P<table>[0-9]{1,9}))?(?=\n\n|\n*\Z)",
        re.MULTILINE,
    ),
    re.compile(
        r"^route(?P<number>[0-9]{1,9})=(?P<network>[^,\s]+)(?:,(?P<gateway>[^,\s]+))?"
        r"(?:\nroute(?P=number)_options=(?:scope=[0-9]+,?)?(?:src=(?P<source>[^,\s]+),?)?(?:table=(?P<table>[0-9]{1,9}))?)?$(?!\nroute(?P=number)_)",
        re.MULTILINE,
    ),
    re.compile(
        r"^ +- to: (?P<network>\S+)(?:\n +via: (?P<gateway>\S+))?(?:\n +scope: link)?"
        r"(?:\n +from: (?P<source>\S+))?(?:\n +table: (?P<table>[0-9]{1,9}))?$(?!\n {10})",
        re.MULTILINE,
    ),
)


def former_texts(paths: Sequence[str]) -> dict[str, str]:
    """Return owner → the text of our files for it, which a former run wrote."""
    found: dict[str, str] = {}
    for path in paths:
        owner = owner_of(path)
        found[owner] = f"{found.get(owner, '')}{read_text(path)}\n"
    return found


def present_files() -> list[str]:
    """Return the paths of our files on this host."""
    return [str(path) for start, suffixes in places() for suffix in suffixes for path in _glob(start, suffix)]


def _glob(start: str, suffix: str) -> list[Path]:
    folder, _slash, prefix = start.rpartition("/")
    return sorted(Path(folder).glob(f"{prefix}*{suffix}"))


def read_text(path: str) -> str:
    """Return the text of a file of ours; "" if it does not exist."""
    return Path(path).read_text(encoding="utf-8", errors="replace") if Path(path).exists() else ""


def recorded_addresses(text: str) -> list[str]:
    """Return the addresses in files of ours, "192.168.100.1/24"."""
    return _ADDRESS.findall(text)


def recorded_routing(owner: str, text: str) -> Recorded:
    """Return the rules of rails' tables and the routes in files of ours. A line of another form is not ours, and is left out."""
    rules = [
        PolicyRule(int(each["priority"]), source, int(each["table"]))
        for pattern in _RULES
        for each in pattern.finditer(text)
        if int(each["table"]) in TABLES and each["priority"] == each["table"] and (source := _network(each["source"]))
    ]
    routes = [route for pattern in _ROUTES for each in pattern.finditer(text) for route in _routes(each.groupdict())]
    return Recorded(owner, rules, routes)


def _routes(each: Mapping[str, str | None]) -> Iterator[TableRoute]:
    network, table = _network(each["network"] or ""), int(each["table"] or MAIN)
    gateway, source = ((each[name] or "").strip('"') or None for name in ("gateway", "source"))
    if network and (table in TABLES or (table == MAIN and gateway is not None)):
        yield TableRoute(network, gateway, "", table, source)


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text.strip('"')))
    except ValueError:
        return ""


def read_recorded(sys: SysRoot) -> list[Recorded] | None:
    """Return what our files on a host record, one for each owner with a rule or a route; None if they may not be read."""
    texts: dict[str, str] = {}
    try:
        for start, suffixes in places():
            folder, _slash, prefix = start.rpartition("/")
            for name in sys.list_dir(folder):
                if name.startswith(prefix) and name.endswith(suffixes):
                    owner = owner_of(f"{folder}/{name}")
                    texts[owner] = f"{texts.get(owner, '')}{sys.read(f'{folder}/{name}') or ''}\n"
    except PermissionError:
        return None
    found = [recorded_routing(owner, text) for owner, text in sorted(texts.items())]
    return [each for each in found if each.rules or each.routes]
