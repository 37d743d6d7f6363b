# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neighbors through real cables (veth pairs) and a real bridge between network namespaces, and what is refused as an answer."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import (
    LinkPeers,
    Nic,
    PortPeers,
    _Asker,
    ask_ports,
    find_link_peers,
    read_carrier,
)

#: Functions of a shell in which each host is a network namespace. The script of a test calls them, and the namespaces end with it.
NETWORK = """
ns() { unshare -n sleep 60 & eval "$1=$!"; pids="$pids $!"
       until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done; }
in_ns() { local of=$1; shift; nsenter -t "$of" -n "$@"; }
trap 'kill $pids' EXIT
cable() { # cable PID PORT MAC PID PORT MAC
    ip link add $2 address $3 netns $1 type veth peer name $5 address $6 netns $4
    in_ns $1 ip link set $2 up; in_ns $4 ip link set $5 up
}
ask() { # ask NAME PID PORT...: writes the neighbors of a host
    local name=$1 pid=$2; shift 2
    in_ns $pid "$PYTHON" -c "$ASK" "$OUT/$name.json" "$@"
}
# The kernel publishes changes of links at most once a second (net/core/link_watch.c).
settle() { sleep 1.5; for pid in $pids; do
    until ! in_ns $pid ip -6 address show tentative | grep -q inet6; do sleep 0.1; done; done; }
"""
ASK = """
import json, sys
from dataclasses import asdict
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import ask_ports
open(sys.argv[1], "w").write(json.dumps({name: asdict(port) for name, port in ask_ports(sys.argv[2:]).items()}))
"""
HERE = subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0


def mac(host: int, port: int) -> str:
    return f"52:54:00:00:{host:02x}:{port:02x}"


def answers(folder: Path, script: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Host → port → what it found. Each host asks after the script has laid the cables."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHON": sys.executable, "ASK": ASK, "OUT": str(folder)}
    argv = ["unshare", "-rn", "bash", "-e", "-c", NETWORK + script]
    subprocess.run(argv, check=True, timeout=90, stdin=subprocess.DEVNULL, env=environment)
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def neighbors(found: dict[str, dict[str, dict[str, Any]]]) -> dict[str, list[list[str]]]:
    assert not [port for ports in found.values() for port in ports.values() if port["error"]]
    return {host: [port["neighbors"] for port in ports.values()] for host, ports in found.items()}


@pytest.mark.skipif(not HERE, reason="no namespaces here")
def test_a_triangle(tmp_path: Path) -> None:
    script = f"""
    ns a; ns b; ns c
    cable $a p1 {mac(1, 1)} $b p1 {mac(2, 1)}
    cable $a p2 {mac(1, 2)} $c p1 {mac(3, 1)}
    cable $b p2 {mac(2, 2)} $c p2 {mac(3, 2)}
    settle
    ask a $a p1 p2; ask b $b p1 p2; ask c $c p1 p2
    """
    assert neighbors(answers(tmp_path, script)) == {
        "a": [[mac(2, 1)], [mac(3, 1)]],
        "b": [[mac(1, 1)], [mac(3, 2)]],
        "c": [[mac(1, 2)], [mac(2, 2)]],
    }


@pytest.mark.skipif(not HERE, reason="no namespaces here")
def test_a_ring_of_four_with_a_double_cable_and_two_swapped_cables(tmp_path: Path) -> None:
    """Planned is port 1 to the next host and port 2 to the previous one. At host c, the cables of both ports are exchanged."""
    script = f"""
    ns a; ns b; ns c; ns d
    cable $a p1 {mac(1, 1)} $b p2 {mac(2, 2)}
    cable $b p1 {mac(2, 1)} $c p1 {mac(3, 1)}
    cable $c p2 {mac(3, 2)} $d p2 {mac(4, 2)}
    cable $d p1 {mac(4, 1)} $a p2 {mac(1, 2)}
    cable $a p3 {mac(1, 3)} $b p3 {mac(2, 3)}
    settle
    ask a $a p1 p2 p3; ask b $b p1 p2 p3; ask c $c p1 p2; ask d $d p1 p2
    """
    assert neighbors(answers(tmp_path, script)) == {
        "a": [[mac(2, 2)], [mac(4, 1)], [mac(2, 3)]],
        "b": [[mac(3, 1)], [mac(1, 1)], [mac(1, 3)]],
        "c": [[mac(2, 1)], [mac(4, 2)]],
        "d": [[mac(1, 2)], [mac(3, 2)]],
    }


@pytest.mark.skipif(not HERE, reason="no namespaces here")
def test_a_silent_port_a_switch_and_ports_without_a_link(tmp_path: Path) -> None:
    script = f"""
    ns a; ns b; ns c; ns switch
    cable $a p1 {mac(1, 1)} $b p1 {mac(2, 1)}
    in_ns $b sysctl -qw net.ipv6.conf.p1.disable_ipv6=1
    in_ns $switch ip link add br0 type bridge
    in_ns $switch ip link set br0 up
    for host in a:1 b:2 c:3; do
        name=${{host%:*}}
        cable ${{!name}} p2 52:54:00:00:0${{host#*:}}:02 $switch s$name 02:00:00:00:00:0${{host#*:}}
        in_ns $switch ip link set s$name master br0
    done
    in_ns $switch sysctl -qw net.ipv6.conf.br0.disable_ipv6=1
    cable $a p3 {mac(1, 3)} $c p3 {mac(3, 3)}
    in_ns $c ip link set p3 down
    cable $a p4 {mac(1, 4)} $c p4 {mac(3, 4)}
    in_ns $a sysctl -qw net.ipv6.conf.p4.disable_ipv6=1
    settle
    ask a $a p1 p2 p3 p4 p9; ask b $b p1 p2; ask c $c p2 p3
    """
    found = answers(tmp_path, script)
    a, b, c = found["a"], found["b"], found["c"]
    assert [(port["carrier"], port["neighbors"]) for port in a.values()] == [
        (True, []),
        (True, [mac(2, 2), mac(3, 2)]),
        (False, []),
        (True, []),
        (None, []),
    ]
    assert [port["error"] for port in a.values()] == [
        "", "", "", "p4 has no link-local IPv6 address: IPv6 is disabled there", "cannot send on p9: No such device",
    ]  # fmt: skip
    assert b["p1"]["error"] == "p1 has no link-local IPv6 address: IPv6 is disabled there"
    assert b["p2"]["neighbors"] == [mac(1, 2), mac(3, 2)]
    assert (c["p3"]["carrier"], c["p3"]["error"]) == (None, "the interface is down")


@pytest.mark.skipif(not HERE, reason="no namespaces here")
def test_no_other_interface_carries_a_packet(tmp_path: Path) -> None:
    """Requests are counted at the other ends: three on the port that was named, none on the other one."""
    script = f"""
    ns a; ns b
    cable $a p1 {mac(1, 1)} $b p1 {mac(2, 1)}
    cable $a p2 {mac(1, 2)} $b p2 {mac(2, 2)}
    settle
    in_ns $b nft -f - <<'RULES'
    table ip6 t {{
        chain i {{
            type filter hook input priority 0
            iifname "p1" icmpv6 type echo-request counter
            iifname "p2" icmpv6 type echo-request counter
        }}
    }}
RULES
    ask a $a p1
    in_ns $b nft list table ip6 t > "$OUT/counters"
    """
    assert neighbors(answers(tmp_path, script)) == {"a": [[mac(2, 1)]]}
    counters = [line.split("packets ")[1].split()[0] for line in (tmp_path / "counters").read_text().splitlines() if "packets" in line]
    assert counters == ["3", "0"]


def test_an_interface_that_is_not_there() -> None:
    with pytest.raises(OSError, match="No such device"):
        read_carrier("nosuch0")
    assert ask_ports(["nosuch0"]) == {"nosuch0": PortPeers("nosuch0", error="cannot send on nosuch0: No such device")}
    assert ask_ports([]) == {}


class Failing:
    """A stand-in for a socket of the kernel: its calls fail with these errors, one after the other; None succeeds."""

    def __init__(self, *errors: OSError | None) -> None:
        self.errors = list(errors)

    def sendto(self, _data: bytes, address: tuple[str, int, int, int]) -> None:
        assert address == ("ff02::1", 0, 0, 1)
        self._next()

    def recvfrom(self, size: int) -> None:
        assert size == 256
        self._next()

    def _next(self) -> None:
        error = self.errors.pop(0)
        if error is not None:
            raise error


def asker(sender: Any, listener: Any) -> Any:
    """An asker with these sockets."""
    found: Any = object.__new__(_Asker)
    found.netdev, found.error, found._sent, found.neighbors = "ens1", "", False, set()
    found._mark, found._ident, found._index, found._sender, found._listener = b"m" * 8, b"id", 1, sender, listener
    return found


def test_a_request_that_was_sent_in_a_later_attempt_counts() -> None:
    answers = [OSError(errno.ENOBUFS, "No buffer space available"), None, OSError(errno.ENOBUFS, "No buffer space available")]
    one = asker(Failing(*answers), None)
    seen = []
    for _attempt in answers:
        one.send()
        seen.append(one.error)
    assert seen == ["cannot send on ens1: No buffer space available", "", ""]


def test_an_interface_that_goes_down_while_one_waits_does_not_end_the_others() -> None:
    one = asker(None, Failing(OSError(errno.ENETDOWN, "Network is down")))
    one.read()
    assert one.neighbors == set()


def tree(folder: Path, **macs: str) -> SysRoot:
    """A tree of interfaces, each with a device on PCI."""
    for number, (name, address) in enumerate(macs.items()):
        device = folder / f"sys/devices/pci0000:00/0000:0{number}:00.0"
        (device / "net" / name).mkdir(parents=True)
        (device / "net" / name / "device").symlink_to("../..")
        (device / "net" / name / "address").write_text(f"{address}\n")
        for file, text in (("vendor", "0x15b3"), ("class", "0x020000")):
            (device / file).write_text(f"{text}\n")
        (folder / "sys/class/net").mkdir(parents=True, exist_ok=True)
        (folder / "sys/class/net" / name).symlink_to(f"../../devices/pci0000:00/0000:0{number}:00.0/net/{name}")
    return SysRoot(str(folder))


def test_nics_are_found_by_pci_and_mac_address(tmp_path: Path) -> None:
    found = find_link_peers(tree(tmp_path, nosuch0=mac(1, 0), nosuch1=mac(1, 1).upper()), ["0000:00:00.0", mac(1, 1), "0000:99:00.0"])
    assert found.ports == {
        "0000:00:00.0": PortPeers("nosuch0", error="cannot send on nosuch0: No such device"),
        mac(1, 1): PortPeers("nosuch1", error="cannot send on nosuch1: No such device"),
        "0000:99:00.0": PortPeers(None, error="no interface has this NIC"),
    }
    assert found.nics == {"nosuch0": Nic(mac(1, 0), "0000:00:00.0"), "nosuch1": Nic(mac(1, 1), "0000:01:00.0")}
    assert LinkPeers.from_dict({**json.loads(json.dumps(found.to_dict())), "changed": False}) == found


PORT = {"netdev": "ens1", "carrier": True, "neighbors": [mac(1, 1)], "error": ""}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"ports": {}},
        {"ports": {"0000:00:00.0": None}, "nics": {}},
        {"ports": {"0000:00:00.0": {**PORT, "carrier": 1}}, "nics": {}},
        {"ports": {"0000:00:00.0": {**PORT, "neighbors": ["52:54"]}}, "nics": {}},
        {"ports": {"0000:00:00.0": {**PORT, "neighbors": [mac(1, n) for n in range(17)]}}, "nics": {}},
        {"ports": {"0000:00:00.0": {**PORT, "netdev": 5}}, "nics": {}},
        {"ports": {}, "nics": {"ens1": {"mac": mac(1, 1)}}},
        {"ports": {}, "nics": {f"ens{n}": {"mac": None, "pci": None} for n in range(257)}},
    ],
    ids=str,
)
def test_other_answers_are_refused(answer: Any) -> None:
    with pytest.raises(ParseError, match="not the neighbors of a host"):
        LinkPeers.from_dict(answer)
