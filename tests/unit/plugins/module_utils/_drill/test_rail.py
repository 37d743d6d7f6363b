# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The faults of a rail on a host that keeps its state in files: their commands, what is refused, and that all is as before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._drill import fault, rail
from ansible_collections.rdma.cluster.plugins.module_utils._drill.rail import ADDRESS_LOST, GID_MOVED, MTU_1500, RAIL_DOWN, RAIL_KINDS
from ansible_collections.rdma.cluster.plugins.module_utils._host.sockets import parse_established

FIXTURES = Path(__file__).parents[3] / "fixtures"
TOKEN = "00112233aabbccdd"
ADDRESS = "10.1.0.67/31"
ROUTES = "10.1.0.66/31 dev ens1 proto kernel scope link src 10.1.0.67\n10.9.0.0/16 via 10.1.0.66 dev ens1 proto static\n"
OTHERS = "default via 192.0.2.254 dev eth0\nlocal 10.1.0.67 dev ens1 table local proto kernel scope host src 10.1.0.67\n"
TCP_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = "   0: 4300010A:0801 4300010A:0802 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 00000000 20 4 30 10 -1\n"


class Host:
    """A Runner whose interface ens1 has an MTU, addresses, routes and GIDs. Any other command fails the test."""

    def __init__(self, root: Path) -> None:
        self.root, self.ran = root, list[str]()
        self.mtu, self.addresses, self.armed, self.obeys = 9000, [ADDRESS], False, True
        self.routes, self.others = ROUTES, OTHERS
        self.gids = ["fe80:0000:0000:0000:0200:00ff:fe00:0001", "0000:0000:0000:0000:0000:ffff:0a01:0043", ""]
        self.write("proc/net/tcp", TCP_HEAD)
        self.flag(up=True)
        self.show()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def flag(self, *, up: bool) -> None:
        self.write("sys/class/net/ens1/flags", "0x1003\n" if up else "0x1002\n")
        self.write("sys/class/net/ens1/carrier", "1\n" if up else "0\n")

    def show(self) -> None:
        """Write the GID table."""
        base = "sys/class/infiniband/mlx5_0/ports/1"
        for index, gid in enumerate(self.gids):
            self.write(f"{base}/gids/{index}", f"{gid or '0000:0000:0000:0000:0000:0000:0000:0000'}\n")
            self.write(f"{base}/gid_attrs/ndevs/{index}", "ens1\n" if gid else "\n")
            self.write(f"{base}/gid_attrs/types/{index}", "RoCE v2\n" if gid else "\n")

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        self.ran.append(" ".join(words))
        rc, text = self.answer(words)
        return Completed(words, rc, text, "")

    def answer(self, words: tuple[str, ...]) -> tuple[int, str]:
        if words == ("ip", "-json", "address", "show", "dev", "ens1"):
            infos = [{"local": a.partition("/")[0], "prefixlen": a.partition("/")[2], "scope": "global"} for a in self.addresses]
            return 0, json.dumps([{"mtu": self.mtu, "addr_info": infos}])
        if words[2:] == ("route", "show", "table", "all"):
            return 0, self.routes + self.others if words[1] == "-4" else ""
        if words[0] == "systemctl" and words[1] == "show":
            return 0, f"Id={words[-1]}\nActiveState={'active' if self.armed else 'inactive'}\nUnitFileState=transient\n"
        if words[0] == "systemd-run":
            self.armed = True
        elif words[:2] == ("systemctl", "stop"):
            self.armed = False
        elif words[:4] == ("ip", "link", "set", "dev") and self.obeys:
            self.flag(up=words[5] != "down") if words[5] in ("up", "down") else setattr(self, "mtu", int(words[6]))
        elif words[:2] == ("ip", "address") and self.obeys:
            return self.change(words[2], words[3])
        elif words[2:4] == ("route", "replace"):
            assert " ".join(words[4:]) in self.routes, words
        elif self.obeys:
            raise AssertionError(f"not expected: {words}")
        return 0, ""

    def change(self, verb: str, address: str) -> tuple[int, str]:
        gid = "0000:0000:0000:0000:0000:ffff:" + ("0a01:0043" if address == ADDRESS else "a9fe:d54d")
        if verb == "del":
            if address not in self.addresses:
                return 2, ""
            self.addresses.remove(address)
            self.gids[self.gids.index(gid)] = ""
        elif address not in self.addresses:
            self.addresses.append(address)
            self.gids[self.gids.index("")] = gid
        self.show()
        return 0, ""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(fault, "BACK_SECONDS", 0.01)
    monkeypatch.setattr(fault, "LOOK_SECONDS", 0.01)
    return Host(tmp_path / "host")


def sys_of(host: Host) -> SysRoot:
    return SysRoot(str(host.root))


def state(host: Host) -> rail.RailState:
    return rail.read_rail("ens1", host, sys_of(host))


def make(host: Host, kind: str) -> None:
    folder = host.root / "drill"
    fault.refuse_state(kind, ["ens1"], sys_of(host), host, folder)
    fault.make(kind, ["ens1"], 80, TOKEN, runner=host, sys=sys_of(host), folder=folder, address=ADDRESS)


def end(host: Host) -> fault.Ended | None:
    return fault.end(runner=host, sys=sys_of(host), folder=host.root / "drill")


MADE = {
    RAIL_DOWN: ["ip link set dev ens1 down"],
    MTU_1500: ["ip link set dev ens1 mtu 1500"],
    ADDRESS_LOST: [f"ip address del {ADDRESS} dev ens1"],
    GID_MOVED: [
        f"ip address del {ADDRESS} dev ens1",
        "ip address add 169.254.213.77/32 dev ens1",
        "ip link set dev ens1 mtu 9000",
        "ip link set dev ens1 up",
        f"ip address replace {ADDRESS} dev ens1",
        "ip -4 route replace 10.1.0.66/31 dev ens1 proto kernel scope link src 10.1.0.67",
        "ip -4 route replace 10.9.0.0/16 via 10.1.0.66 dev ens1 proto static",
    ],
}


@pytest.mark.parametrize("kind", RAIL_KINDS)
def test_a_fault_is_made_after_the_timer_and_all_is_as_before(host: Host, kind: str) -> None:
    before = state(host)
    assert fault.preview(kind, ["ens1"], runner=host, sys=sys_of(host), address=ADDRESS) == MADE[kind]
    assert state(host) == before, "a preview changes nothing"
    host.ran.clear()
    make(host, kind)
    assert state(host) != before
    armed = next(at for at, each in enumerate(host.ran) if each.startswith("systemd-run"))
    assert armed < host.ran.index(MADE[kind][0])
    assert end(host) == fault.Ended([], by_timer=False)
    assert (state(host), host.armed, list((host.root / "drill").iterdir())) == (before, False, [])


@pytest.mark.parametrize("kind", RAIL_KINDS)
def test_the_script_of_the_timer_alone_restores_all(host: Host, kind: str) -> None:
    """It runs all commands twice."""
    before = state(host)
    make(host, kind)
    lines = (host.root / "drill/restore.sh").read_text().splitlines()
    commands = [line.split() for line in lines if line.startswith("ip ")]
    assert len(commands) >= 2 * 4
    for command in commands:
        host.run(command)
    assert state(host) == before
    host.armed = False
    assert end(host) == fault.Ended([], by_timer=True)
    assert state(host) == before


def test_the_gid_of_the_rail_gets_a_later_index_and_its_own_again(host: Host) -> None:
    make(host, GID_MOVED)
    assert host.gids[1:] == ["0000:0000:0000:0000:0000:ffff:a9fe:d54d", "0000:0000:0000:0000:0000:ffff:0a01:0043"]
    end(host)
    assert host.gids[1:] == ["0000:0000:0000:0000:0000:ffff:0a01:0043", ""]


def test_a_gid_that_stays_elsewhere_is_named_and_the_timer_stays(host: Host) -> None:
    make(host, ADDRESS_LOST)
    host.gids[1] = "0000:0000:0000:0000:0000:ffff:c000:0201"
    host.show()
    ended = end(host)
    assert ended is not None
    assert "ens1 has lost its GID mlx5_0/1 index 1: 0000:0000:0000:0000:0000:ffff:0a01:0043 RoCE v2" in ended.left
    assert "ens1 has a new GID mlx5_0/1 index 2: 0000:0000:0000:0000:0000:ffff:0a01:0043 RoCE v2" in ended.left
    assert host.armed


def test_a_command_without_an_effect_ends_the_fault(host: Host) -> None:
    host.obeys = False
    with pytest.raises(ApplyError, match="could not be made, and was ended again: nothing has changed after `ip link set dev ens1 down`"):
        make(host, RAIL_DOWN)
    assert not host.armed


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (RAIL_DOWN, {"tcp": TCP}, "TCP connections use ens1, for example storage or a login: 10.1.0.67 to 10.1.0.67. End them first"),
        (RAIL_DOWN, {"routes": "default via 10.1.0.66 dev ens1\n"}, r"default route is through ens1 \(-4 default via 10.1.0.66 dev ens1\)"),
        (RAIL_DOWN, {"upper": "upper_bond0"}, r"ens1 is part of a bond, a VLAN or a bridge \(bond0\)"),
        (RAIL_DOWN, {"upper": "master"}, r"ens1 is part of a bond, a VLAN or a bridge \(master\)"),
        (
            RAIL_DOWN,
            {"routes": "10.8.0.0/16 proto static\n\tnexthop via 10.1.0.66 dev ens1 weight 1\n\tnexthop via 10.2.0.66 dev ens2 weight 1\n"},
            r"ens1 is a next hop of a route with several \(10.8.0.0/16 proto static\)",
        ),
        (MTU_1500, {"mtu": 1500}, "MTU of 1500 bytes already, so this fault would change nothing"),
        (ADDRESS_LOST, {"addresses": [ADDRESS, "10.1.0.99/31"]}, r"several IPv4 addresses \(10.1.0.67/31, 10.1.0.99/31\)"),
        (ADDRESS_LOST, {"addresses": []}, "ens1 has no static address"),
        (GID_MOVED, {"addresses": ["10.1.0.69/31"]}, "does not have the rail's address 10.1.0.67/31 as a static address"),
        (GID_MOVED, {"gids": ["", "", ""]}, "no GID of an IPv4 address, so no GID can be moved"),
    ],
)
def test_what_else_depends_on_the_interface_refuses_the_fault(host: Host, kind: str, changes: dict[str, str], words: str) -> None:
    for name, value in changes.items():
        if name == "tcp":
            host.write("proc/net/tcp", TCP_HEAD + value)
        elif name == "upper":
            host.write(f"sys/class/net/ens1/{value}", "")
        else:
            setattr(host, name, value)
    host.show()
    with pytest.raises(ApplyError, match=words):
        make(host, kind)
    assert not host.armed
    assert not [each for each in host.ran if each.startswith(("ip link set", "ip address del"))]


def test_a_default_route_of_a_rail_in_a_table_of_its_own_is_none_of_the_host(host: Host) -> None:
    host.routes += "default via 10.1.0.66 dev ens1 table 1000 proto static\n"
    make(host, RAIL_DOWN)
    assert host.armed


def test_connections_that_cannot_be_read_are_not_none(host: Host) -> None:
    (host.root / "proc/net/tcp").unlink()
    with pytest.raises(ApplyError, match="The TCP connections of this host are unknown: there is no /proc/net/tcp"):
        make(host, RAIL_DOWN)


def test_the_interface_of_a_veth_pair() -> None:
    text = (FIXTURES / "ip/address-veth.json").read_text()
    assert rail.parse_interface(text, "rail0") == (9000, [["10.1.0.67/31"]])


def test_the_words_of_an_address_with_all_its_attributes() -> None:
    info = {"local": "10.0.0.1", "prefixlen": 24, "scope": "global", "broadcast": "10.0.0.255", "metric": 100, "noprefixroute": True}
    skipped = [{**info, "dynamic": True}, {**info, "scope": "link"}]
    text = json.dumps([{"mtu": 1500, "addr_info": [{**info, "label": "ens1:1"}, {**info, "label": "ens1"}, *skipped]}])
    words = ["10.0.0.1/24", "brd", "10.0.0.255", "metric", "100"]
    assert rail.parse_interface(text, "ens1") == (1500, [[*words, "label", "ens1:1", "noprefixroute"], [*words, "noprefixroute"]])


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"mtu": "x", "addr_info": []}]', '[{"mtu": 1}]'])
def test_another_form_of_an_interface_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="not the JSON of `ip -json address show dev ens1`"):
        rail.parse_interface(text, "ens1")


def test_routes_of_other_interfaces_and_of_the_kernels_own_table_are_left_out() -> None:
    text = (
        ROUTES + OTHERS + "fe80::/64 dev ens1 proto kernel metric 256 pref medium\n2001:db8::/64 dev ens1 proto ra metric 1 expires 9sec\n"
    )
    assert rail.parse_routes(text, "ens1") == [*ROUTES.splitlines(), "fe80::/64 dev ens1 proto kernel metric 256"]


def test_established_connections_of_both_families() -> None:
    mapped = (
        TCP_HEAD
        + "   0: 0000000000000000FFFF00004300010A:0016 0000000000000000FFFF00000100010A:C350 01 0:0 0:0 0 0 0 1 1 0 20 4 30 10 -1\n"
    )
    assert parse_established(mapped) == [("10.1.0.67", "10.1.0.1")]
    assert parse_established(TCP_HEAD + TCP.replace(" 01 ", " 06 ")) == []
    with pytest.raises(ParseError, match="not a socket"):
        parse_established(TCP_HEAD + "0: x\n")


def test_a_link_that_was_without_carrier_need_not_have_one(host: Host) -> None:
    now = state(host)
    assert rail.rail_differences("ens1", replace(now, carrier=False), now) == []
    assert rail.rail_differences("ens1", now, replace(now, carrier=False)) == [
        "ens1 has no carrier or is disabled: ip link set dev ens1 up"
    ]
    assert rail.rail_differences("ens1", now, replace(now, mtu_bytes=1500)) == ["the MTU of ens1 is 1500 bytes, before it was 9000"]
