# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes and rules in our files on a host: of these alone they are known to be ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.records import read_recorded, recorded_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import places
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import PolicyRule, Recorded, TableRoute

NETWORKD = """\
[Match]
Name=ens1

[Network]
Address=192.168.100.1/24

[RoutingPolicyRule]
From=192.168.100.1/32
Table=1000
Priority=1000

[Route]
Destination=192.168.0.0/16
Gateway=192.168.100.254
Table=1000
"""
RAIL0 = Recorded(
    "rail0",
    [PolicyRule(1000, "192.168.100.1/32", 1000)],
    [TableRoute("192.168.0.0/16", "192.168.100.254", "", 1000, None)],
)
PLACES = places()


def root(path: Path, **files: str) -> SysRoot:
    """A host with these files; a name is the number of its place and the end of its path."""
    for name, text in files.items():
        place, _line, rest = name.partition("_")
        start, suffixes = PLACES[int(place[1:])]
        suffix = ".network" if ".network" in suffixes else suffixes[0]
        file = path / f"{start}{rest}{suffix}".lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return SysRoot(str(path))


def test_each_owner_has_the_routes_of_its_files(tmp_path: Path) -> None:
    assert read_recorded(root(tmp_path, p0_rail0=NETWORKD, p0_rail1="[Match]\nName=ens2\n")) == [RAIL0]
    assert recorded_addresses(NETWORKD) == ["192.168.100.1/24"]


def test_routes_in_files_of_others_are_not_ours(tmp_path: Path) -> None:
    sys = root(tmp_path)
    folder = tmp_path / PLACES[0][0].lstrip("/")
    folder.parent.mkdir(parents=True)
    for name in ("10-site.network", f"{folder.name}rail0.network.dpkg-old", f"{folder.name}rail0~"):
        (folder.parent / name).write_text(NETWORKD)
    assert read_recorded(sys) == []


def test_all_files_of_an_owner_count(tmp_path: Path) -> None:
    """A host that has changed its network manager may still have both."""
    profile = "[ipv4]\naddress1=192.168.100.1/24\nroute1=10.0.0.0/8,192.168.100.253\n"
    [found] = read_recorded(root(tmp_path, p0_rail0=NETWORKD, p1_rail0=profile)) or []
    assert (found.owner, found.rules) == ("rail0", RAIL0.rules)
    assert [(each.network, each.gateway) for each in found.routes] == [
        ("192.168.0.0/16", "192.168.100.254"),
        ("10.0.0.0/8", "192.168.100.253"),
    ]


class Closed(SysRoot):
    """A stand-in for a host whose files only root may read."""

    def read(self, path: str) -> str | None:
        raise PermissionError(13, "Permission denied", path)


def test_files_that_may_not_be_read_are_not_none(tmp_path: Path) -> None:
    root(tmp_path, p0_rail0=NETWORKD)
    assert read_recorded(Closed(str(tmp_path))) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Table=1000\nPriority=1000", "Table=1000\nPriority=999"),
        ("Table=1000\nPriority=1000", "Table=7\nPriority=7"),
        ("From=192.168.100.1/32", "From=all"),
    ],
)
def test_a_rule_of_another_form_is_left_out(tmp_path: Path, old: str, new: str) -> None:
    [found] = read_recorded(root(tmp_path, p0_rail0=NETWORKD.replace(old, new))) or []
    assert (found.rules, found.routes) == ([], RAIL0.routes)
