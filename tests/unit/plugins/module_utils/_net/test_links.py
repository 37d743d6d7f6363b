# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VLAN interfaces: what the kernel and iproute2 print, and the steps to the planned state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import (
    NO_LINK,
    Link,
    LiveLink,
    SeenVlan,
    Vlan,
    egress_text,
    link_steps,
    made_names,
    parse_link,
    parse_vlan,
    read_vlans,
    removal_steps,
    vlan_name,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree

#: In the form of vlandev_seq_show of net/8021q/vlanproc.c.
PROC = """\
ens1.100  VID: 100\t REORDER_HDR: 1  dev->priv_flags: 1021
         total frames received            0
          total bytes received            0
      Broadcast/Multicast Rcvd            0

      total frames transmitted           13
       total bytes transmitted         1086
Device: ens1
INGRESS priority mappings: 0:0  1:0  2:0  3:0  4:0  5:0  6:0 7:0
 EGRESS priority mappings: 0:3 2:3 4:0 \n"""
VLAN = Link(vlan=Vlan("ens1", 100))
MARKED = Link(vlan=Vlan("ens1", 100, 3))
LINK_SHOW = ["ip", "-j", "-d", "link", "show", "dev", "ens1.100"]
ADDRESS_SHOW = ["ip", "-j", "address", "show", "dev", "ens1.100"]
MAP = ("egress-qos-map", *(f"{priority}:3" for priority in range(8)))


def entry(**changes: Any) -> dict[str, Any]:
    """One element of `ip -j -d link show dev ens1.100`, in the form of iproute2 6.1."""
    data = {"protocol": "802.1Q", "id": 100, "flags": ["REORDER_HDR"]}
    return {
        "ifindex": 7, "link": "ens1", "ifname": "ens1.100", "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"], "mtu": 9000,
        "linkinfo": {"info_kind": "vlan", "info_data": data}, **changes,
    }  # fmt: skip


def egress(*pairs: tuple[int, int]) -> dict[str, Any]:
    data = {"protocol": "802.1Q", "id": 100, "egress_qos": [{"from": priority, "to": pcp} for priority, pcp in pairs]}
    return {"linkinfo": {"info_kind": "vlan", "info_data": data}}


def shows(**changes: Any) -> tuple[list[str], int, str, str]:
    return LINK_SHOW, 0, json.dumps([entry(**changes)]), ""


MISSING = (LINK_SHOW, 1, "", 'Device "ens1.100" does not exist.\n')


def test_a_vlan_of_the_kernel() -> None:
    assert parse_vlan(PROC) == SeenVlan("ens1", 100, {"0": 3, "2": 3})


@pytest.mark.parametrize("cut", ["VID: 100", "Device: ens1", " EGRESS priority mappings"])
def test_a_file_without_one_of_the_three_lines_is_no_vlan(cut: str) -> None:
    with pytest.raises(ParseError, match="not a VLAN"):
        parse_vlan(PROC.replace(cut, ""))


def test_the_vlans_of_a_host(tmp_path: Path) -> None:
    assert read_vlans(SysRoot(str(tmp_path))) == {}
    write_tree(tmp_path, "/proc/net/vlan/config: VLAN Dev name | VLAN ID")
    (tmp_path / "proc/net/vlan/ens1.100").write_text(PROC)
    assert read_vlans(SysRoot(str(tmp_path))) == {"ens1.100": SeenVlan("ens1", 100, {"0": 3, "2": 3})}


def test_without_permission_nothing_is_known_of_vlans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_tree(tmp_path, "/proc/net/vlan/ens1.100: secret")

    def refuse(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(SysRoot, "value", refuse)
    assert read_vlans(SysRoot(str(tmp_path))) is None


def test_a_vlan_as_iproute2_prints_it() -> None:
    assert parse_link(json.dumps([entry(**egress((0, 3), (1, 0)))])) == LiveLink("vlan", "ens1", 100, {"0": 3}, up=True)
    assert parse_link(json.dumps([{"ifname": "ens1", "flags": ["BROADCAST"]}])) == LiveLink(None, None, None, {}, up=False)


@pytest.mark.parametrize("text", ["", "[]", "[{}]", "null", '[{"ifname": "ens1"}]'])
def test_other_output_is_no_interface(text: str) -> None:
    with pytest.raises(ParseError, match="not an interface"):
        parse_link(text)


def test_a_nic_needs_no_step_and_no_command() -> None:
    assert link_steps("ens1", NO_LINK, FakeRunner([]), planned="") == []
    assert link_steps("ens1", Link(vlans=("ens1.100",)), FakeRunner([]), planned="") == []


def test_a_missing_vlan_is_added_to_its_nic_and_set_up() -> None:
    steps = link_steps("ens1.100", MARKED, FakeRunner([MISSING]), planned=", MTU 9000 bytes")
    assert [(step.was, step.planned, step.harm) for step in steps] == [
        ("no ens1.100", "VLAN 100 on ens1 with PCP 3, MTU 9000 bytes", ""),
        ("ens1.100 is down", "ens1.100 is up", ""),
    ]
    assert steps[0].argv == ("ip", "link", "add", "link", "ens1", "name", "ens1.100", "type", "vlan", "id", "100", *MAP)
    assert link_steps("ens1.100", VLAN, FakeRunner([MISSING]), planned="")[0].argv[-2:] == ("id", "100")


def test_a_vlan_as_planned_needs_no_step() -> None:
    assert link_steps("ens1.100", VLAN, FakeRunner([shows(**egress((0, 5)))]), planned="") == []
    every = egress(*((priority, 3) for priority in range(8)))
    assert link_steps("ens1.100", MARKED, FakeRunner([shows(**every)]), planned="") == []


def test_a_wrong_priority_and_a_link_that_is_down_are_corrected() -> None:
    steps = link_steps("ens1.100", MARKED, FakeRunner([shows(flags=["BROADCAST"], **egress((0, 5)))]), planned="")
    assert [step.argv for step in steps] == [
        ("ip", "link", "set", "dev", "ens1.100", "type", "vlan", *MAP),
        ("ip", "link", "set", "dev", "ens1.100", "up"),
    ]
    assert (steps[0].was, steps[0].planned) == ("PCP 5 for the priorities 0", "PCP 3")


@pytest.mark.parametrize("other", [{"link": "ens2"}, {"linkinfo": {"info_kind": "macvlan"}}, {"linkinfo": {}}])
def test_another_interface_of_that_name_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ApplyError, match=r"ens1\.100 exists, but it is not VLAN 100 on ens1"):
        link_steps("ens1.100", VLAN, FakeRunner([shows(**other)]), planned="")


def test_an_interface_of_ours_goes_and_one_with_another_address_stays() -> None:
    def has(*texts: str) -> tuple[list[str], int, str, str]:
        parts = [text.split("/") for text in texts]
        entries = [{"family": "inet", "local": ip, "prefixlen": int(bits)} for ip, bits in parts]
        return ADDRESS_SHOW, 0, json.dumps([{"addr_info": [*entries, {"family": "inet6", "local": "fe80::1", "prefixlen": 64}]}]), ""

    steps, stay = removal_steps(["ens1.100"], ["10.0.0.1/24"], FakeRunner([has("10.0.0.1/24")]))
    assert ([step.argv for step in steps], stay) == ([("ip", "link", "delete", "dev", "ens1.100")], {})
    assert steps[0].harm
    steps, stay = removal_steps(["ens1.100"], ["10.0.0.1/24"], FakeRunner([has("10.0.0.1/24", "10.9.0.1/24")]))
    assert (steps, stay) == ([], {"ens1.100": ["10.9.0.1/24"]})
    assert removal_steps(["ens1.100"], [], FakeRunner([(ADDRESS_SHOW, 1, "", "no such device")])) == ([], {})


def test_names_and_words() -> None:
    assert vlan_name("ens1", "rail0", 100) == "ens1.100"
    assert vlan_name("enp193s0f0", "rail0", 4094) == "enp193s0f0.4094"
    assert vlan_name("enp193s0f0np", "rail0", 4094) == "rail0.4094"
    assert egress_text({}) == "PCP 0"
    assert egress_text({"0": 3, "2": 3, "1": 4}) == "PCP 3 for the priorities 0, 2, PCP 4 for the priorities 1"


def test_the_interfaces_in_a_file_of_ours() -> None:
    assert made_names("# Managed.\n[NetDev]\nName=ens1.100\nKind=vlan\n") == ["ens1.100"]
    assert made_names("[connection]\ntype=vlan\ninterface-name=ens1.100\n") == ["ens1.100"]
    assert made_names("network:\n  version: 2\n  vlans:\n    ens1.100:\n      id: 100\n") == ["ens1.100"]
    assert made_names("[Match]\nName=ens1.100\n[Network]\nVLAN=ens1.100\n") == []
