# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to the kernel and to real interfaces."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import (
    Listeners,
    arp_answer,
    arp_request,
    ask_arp,
    listens,
    rail_netdev,
)
from tests.unit.builders.pair_runners import PACKAGE

NETWORKS = """
ip link add a0 type veth peer name $1 && ip link add a1 type veth peer name $2
unshare -n sleep 60 & other=$!
trap "kill $other" EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link set b0 netns $other; ip link set b1 netns $other
there() { nsenter -t $other -n "$@"; }
for rail in 0 1; do
    ip addr add 192.168.10$rail.1/24 dev a$rail; ip link set a$rail up
    there ip addr add 192.168.10$rail.2/24 dev b$rail; there ip link set b$rail up
done
there sh -c "echo $3 > /proc/sys/net/ipv4/conf/all/arp_ignore; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter"
there ip -json link show
exec 3<&0; "$4" -ISB "$5" <&3
"""
ASK = """
import json, sys
sys.path.insert(0, PROGRAM)
from PACKAGE.probes import ask_arp, ask_echo
rails = {"rail0": "a0", "rail1": "a1"}
answers = {rail: ask_arp(rails, f"192.168.10{rail[-1]}.2") for rail in rails}
echo = [ask_echo(rails[rail], f"192.168.10{rail[-1]}.2") for rail in rails]
print(json.dumps([answers, echo]))
"""


@pytest.mark.skipif(subprocess.run(["unshare", "-rn", "true"], check=False).returncode != 0, reason="no namespaces here")
@pytest.mark.parametrize("arp_ignore", [0, 1])
@pytest.mark.parametrize("ends", [("b0", "b1"), ("b1", "b0")], ids=["as planned", "exchanged"])
def test_an_address_answers_on_the_rail_where_its_cable_ends(tmp_path: Path, program: Path, ends: tuple[str, str], arp_ignore: int) -> None:
    """Real interfaces of two network namespaces; the kernel answers, with and without arp_ignore."""
    script = tmp_path / "ask.py"
    script.write_text(ASK.replace("PROGRAM", repr(str(program))).replace("PACKAGE", PACKAGE), encoding="utf-8")
    argv = ["unshare", "-rn", "bash", "-e", "-c", NETWORKS, "networks", *ends, str(arp_ignore), sys.executable, str(script)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=60, stdin=subprocess.DEVNULL)
    links, answers = done.stdout.strip().splitlines()
    macs = {link["ifname"]: link["address"] for link in json.loads(links)}
    arp, echo = json.loads(answers)
    straight = ends == ("b0", "b1")
    for rail, other, nic in (("rail0", "rail1", "b0"), ("rail1", "rail0", "b1")):
        where, elsewhere = (rail, other) if straight else (other, rail)
        assert arp[rail][where] == macs[nic]
        assert arp[rail][elsewhere] == (None if arp_ignore else macs["b1" if nic == "b0" else "b0"])
    assert echo == [straight, straight]


def test_an_interface_that_is_not_there_is_not_asked() -> None:
    assert ask_arp({"rail0": "nosuch0"}, "192.0.2.1") == {}
    assert ask_arp({"rail0": "lo"}, "192.0.2.1") == {}


@pytest.mark.parametrize(
    ("packet", "mac"),
    [
        (b"", None),
        (arp_request(b"\2\0\0\0\0\1", "192.0.2.1"), None),
        (struct.pack("!HHBBH", 1, 0x800, 6, 4, 2) + b"\2\0\0\0\0\1" + socket.inet_aton("192.0.2.1") + bytes(10), "02:00:00:00:00:01"),
        (struct.pack("!HHBBH", 1, 0x800, 6, 4, 2) + b"\2\0\0\0\0\1" + socket.inet_aton("192.0.2.2") + bytes(10), None),
    ],
    ids=["nothing", "a request", "an answer", "of another address"],
)
def test_answers_to_arp(packet: bytes, mac: str | None) -> None:
    assert arp_answer(packet, "192.0.2.1") == mac


def test_a_probe_by_arp_gives_nobody_an_address_of_its_sender() -> None:
    packet = arp_request(b"\2\0\0\0\0\1", "192.0.2.1")
    assert packet[8:18] == b"\2\0\0\0\0\1" + bytes(4)


def test_the_interface_of_a_gid(tmp_path: Path) -> None:
    ndevs = tmp_path / "mlx5_0/ports/1/gid_attrs/ndevs"
    ndevs.mkdir(parents=True)
    (ndevs / "3").write_text("ens1np0\n")
    profile = {"device": "mlx5_0", "port": 1, "gid_index": 3}
    assert rail_netdev(profile, tmp_path) == "ens1np0"
    assert rail_netdev({**profile, "gid_index": 4}, tmp_path) is None
    assert rail_netdev({**profile, "gid_index": None}, tmp_path) is None


def test_who_listens_is_asked_of_the_kernel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as other:
        port, another = listener.getsockname()[1], other.getsockname()[1]
        asked, read = Listeners(), Listeners()
        asked.prove(port, "127.0.0.1")
        other.close()
        for listeners in (asked, read):
            assert listeners.on(port, "127.0.0.1")
            assert not listeners.on(port, "127.0.0.2")
            assert not listeners.on(another, "127.0.0.1")
            with socket.create_server(("0.0.0.0", another)):
                assert listeners.on(another, "127.0.0.2")


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18210 1 0000000000000000 100 0 0 10 0
   1: 0164A8C0:4853 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18211 1 0000000000000000 100 0 0 10 0
   2: 0164A8C0:4854 0264A8C0:9C40 01 00000000:00000000 00:00000000 00000000     0        0 18212 1 0000000000000000 20 4 30 10 -1
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 00000000000000000000000000000000:4855 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   1: 0000000000000000FFFF00000164A8C0:4856 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   2: B80D0120000000000000000001000000:4857 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
"""


@pytest.mark.skipif(sys.byteorder == "big", reason="the captured tables are of a little-endian machine")
@pytest.mark.parametrize(
    ("port", "address", "expected"),
    [
        (22, "192.168.100.1", True),  # on any address
        (18515, "192.168.100.1", True),
        (18515, "192.168.100.2", False),  # another host's, on the same machine
        (18516, "192.168.100.1", False),  # a connection, not a listener
        (18517, "192.168.100.1", True),  # on any address of both families
        (18518, "192.168.100.1", True),
        (18518, "192.168.100.2", False),
        (18519, "2001:db8::1", True),
        (18519, "2001:db8::2", False),
        (18517, "2001:db8::1", True),
        (22, "2001:db8::1", False),
    ],
)
def test_who_listens_is_read_from_the_kernels_tables(port: int, address: str, expected: bool) -> None:
    assert listens(TCP + TCP6, port, address) is expected
