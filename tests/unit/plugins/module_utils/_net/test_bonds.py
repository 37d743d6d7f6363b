# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bonds: what the kernel prints, and the steps that make one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import (
    TAKES_DOWN,
    Bond,
    SeenBond,
    SeenMember,
    bond_differences,
    bond_name,
    bond_steps,
    find_bond,
    member_steps,
    parse_bond,
    read_bonds,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_netdev
from tests.unit.builders.trees import write_tree

#: In the form of bond_procfs.c of Linux 6.1, with LACP.
PROC = """\
Ethernet Channel Bonding Driver: v6.1.0-13-amd64

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 100
Up Delay (ms): 0
Down Delay (ms): 0
Peer Notification Delay (ms): 0

802.3ad info
LACP active: on
LACP rate: fast
Min links: 0
Aggregator selection policy (ad_select): stable
System priority: 65535
System MAC address: 52:54:00:1a:00:01
Active Aggregator Info:
\tAggregator ID: 1
\tNumber of ports: 2
\tActor Key: 15
\tPartner Key: 15
\tPartner Mac Address: 52:54:00:1a:00:02

Slave Interface: ens1
MII Status: up
Speed: 10000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: 52:54:00:1A:00:01
Slave queue ID: 0
Aggregator ID: 1
Actor Churn State: none
Partner Churn State: none
details actor lacp pdu:
    system priority: 65535
    system mac address: 52:54:00:1a:00:01
    port key: 15
details partner lacp pdu:
    system priority: 65535
    system mac address: 52:54:00:1a:00:02
    oper key: 15
    port state: 63

Slave Interface: ens2
MII Status: down
Speed: Unknown
Duplex: Unknown
Link Failure Count: 1
Permanent HW addr: 52:54:00:1a:01:01
Slave queue ID: 0
Aggregator ID: 2
details actor lacp pdu:
    system mac address: 52:54:00:1a:00:01
details partner lacp pdu:
    system mac address: 00:00:00:00:00:00
    port state: 1
"""
LACP = Bond("802.3ad", "fast", "layer3+4", ("ens1", "ens2"))
SEEN = SeenBond(
    "802.3ad",
    "layer3+4",
    "fast",
    {
        "ens1": SeenMember(up=True, mac="52:54:00:1a:00:01", aggregator=1, partner="52:54:00:1a:00:02"),
        "ens2": SeenMember(up=False, mac="52:54:00:1a:01:01", aggregator=2, partner="00:00:00:00:00:00"),
    },
)


def test_a_bond_with_lacp() -> None:
    assert parse_bond(PROC) == SEEN


def test_a_bond_without_lacp_and_members() -> None:
    text = "Ethernet Channel Bonding Driver: v6.1\n\nBonding Mode: fault-tolerance (active-backup)\nPrimary Slave: None\nMII Status: down\n"
    assert parse_bond(text) == SeenBond("active-backup")
    assert parse_bond(text.replace("(active-backup)", "(active-backup) (fail_over_mac active)")).mode == "active-backup"


@pytest.mark.parametrize("text", ["", "Bonding Mode: something new\n", PROC.replace("MII Status: down", "")])
def test_another_text_is_no_bond(text: str) -> None:
    with pytest.raises(ParseError, match="not a"):
        parse_bond(text)


def test_the_bonds_of_a_host(tmp_path: Path) -> None:
    assert read_bonds(SysRoot(str(tmp_path))) == {}
    (tmp_path / "proc/net/bonding").mkdir(parents=True)
    (tmp_path / "proc/net/bonding/bond0").write_text(PROC)
    assert read_bonds(SysRoot(str(tmp_path))) == {"bond0": SEEN}


def test_a_bond_is_found_by_exactly_its_members() -> None:
    assert find_bond(["ens2", "ens1"], {"bond0": SEEN}) == "bond0"
    assert find_bond(["ens1"], {"bond0": SEEN}) is None
    assert find_bond(["ens1", "ens2", "ens3"], {"bond0": SEEN}) is None
    assert find_bond([], {"bond0": SeenBond("802.3ad")}) is None
    assert find_bond(["ens1"], None) is None


def test_a_member_keeps_its_own_mac(tmp_path: Path) -> None:
    text = "/sys/class/net/ens2/address: 52:54:00:1a:00:01\n/sys/class/net/ens2/bonding_slave/perm_hwaddr: 52:54:00:1a:01:01"
    write_tree(tmp_path, text)
    assert read_netdev(SysRoot(str(tmp_path)), "ens2").mac == "52:54:00:1a:01:01"


def test_differences_of_options() -> None:
    assert bond_differences(LACP, SEEN) == []
    assert bond_differences(LACP, SeenBond("802.3ad", "layer2", "slow")) == [
        ("hash layer2", "hash layer3+4"),
        ("LACP rate slow", "LACP rate fast"),
    ]
    assert bond_differences(LACP, SeenBond("active-backup")) == [("mode active-backup", "mode 802.3ad")]
    assert bond_differences(Bond("active-backup", "fast", "layer3+4"), SeenBond("active-backup")) == []


def test_the_commands_that_make_a_bond() -> None:
    [step] = bond_steps("bond-rail0", LACP, None)
    argv = "ip link add name bond-rail0 type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4"
    assert (step.argv, step.harm) == (tuple(argv.split()), TAKES_DOWN)
    assert bond_steps("bond-rail0", LACP, SEEN) == []
    backup = bond_steps("bond-rail0", Bond("active-backup", "fast", "layer3+4"), None)[0]
    assert backup.argv == ("ip", "link", "add", "name", "bond-rail0", "type", "bond", "mode", "active-backup", "miimon", "100")
    assert [step.argv[5:] for step in member_steps("ens3", "bond-rail0", SEEN)] == [("down",), ("master", "bond-rail0")]
    assert {step.harm for step in member_steps("ens1", "bond-rail0", None)} == {TAKES_DOWN}
    assert member_steps("ens1", "bond-rail0", SEEN) == []
    assert bond_name("rail0") == "bond-rail0"
