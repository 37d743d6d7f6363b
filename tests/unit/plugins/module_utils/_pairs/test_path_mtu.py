# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The probe of the path MTU through a real bridge between network namespaces, and what it takes as an answer."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.path_mtu import (
    Peer,
    between,
    is_stable,
    probe_rail,
    quoted_destination,
)

#: Host a (here), a switch, hosts b, c, d, e. The switch drops large frames to b, from c, and in both directions of e; d is well.
NETWORK = """
ns() { unshare -n sleep 120 & eval "$1=$!"; pids="$pids $!"
       until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done; }
in_ns() { local of=$1; shift; nsenter -t "$of" -n "$@"; }
trap 'kill $pids' EXIT
ns switch
in_ns $switch ip link add br0 type bridge
in_ns $switch ip link set br0 mtu 9000 up
plug() { # plug NAME NUMBER PID|here
    in_ns $switch ip link add p$1 mtu 9000 type veth peer name $1"0" mtu 9000
    in_ns $switch ip link set p$1 master br0 up
    if [ $3 = here ]; then in_ns $switch ip link set $1"0" netns $$; run=; else in_ns $switch ip link set $1"0" netns $3; run="in_ns $3"; fi
    $run ip addr add $PREFIX$2/$LENGTH dev $1"0" $NODAD
    $run ip link set $1"0" up
}
plug a 1 here
for host in b:2 c:3 d:4 e:5; do ns $(echo $host | cut -c1); eval "pid=\\$$(echo $host | cut -c1)"; plug $(echo $host | tr : ' ') $pid; done
in_ns $e sh -c 'nft "add table inet t; add chain inet t i { type filter hook input priority 0; }; add rule inet t i udp dport 33434 drop"'
in_ns $switch nft -f - <<RULES
table bridge t {
    chain f {
        type filter hook forward priority 0;
        oifname "pb" meta length > 4000 drop
        iifname "pc" meta length > 1500 drop
        oifname "pe" meta length > 2000 drop
    }
}
RULES
exec 3<&0; "$@" <&3
"""
ASK = """
import json
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.path_mtu import Peer, probe_rail
peers = [Peer(name, PREFIX + number, 9000) for name, number in (("b", "2"), ("c", "3"), ("d", "4"), ("e", "5"), ("gone", "9"))]
print(json.dumps(probe_rail("a0", PREFIX + "1", peers).to_dict()))
"""
HERE = subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0 and shutil.which("nft") is not None


@pytest.mark.skipif(not HERE, reason="no namespaces or no nft here")
@pytest.mark.parametrize(("prefix", "length"), [("10.9.0.", "24"), ("fd00:9::", "64")], ids=["IPv4", "IPv6"])
def test_sizes_and_directions_through_a_switch_that_drops_large_frames(tmp_path: Path, prefix: str, length: str) -> None:
    script = tmp_path / "ask.py"
    script.write_text(ASK.replace("PREFIX", repr(prefix)), encoding="utf-8")
    environment = {
        **os.environ,
        "PREFIX": prefix,
        "LENGTH": length,
        "NODAD": "nodad" if ":" in prefix else "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    argv = ["unshare", "-rn", "bash", "-e", "-c", NETWORK, "network", sys.executable, str(script)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=90, stdin=subprocess.DEVNULL, env=environment)
    result: dict[str, Any] = json.loads(done.stdout)
    assert result == {
        "peers": 5,
        "error": "",
        "unstable": [],
        "bad": {
            "b": {"bytes": 4000, "sent": False, "hop": None},
            "c": {"bytes": 1500, "sent": True, "hop": None},
            # It answers no UDP, so the direction is not known.
            "e": {"bytes": 2000, "sent": None, "hop": None},
            "gone": {"bytes": 0, "sent": None, "hop": None},
        },
    }


def test_an_interface_without_the_address_is_an_error() -> None:
    found = probe_rail("nosuch0", "192.0.2.1", [Peer("b", "192.0.2.2", 9000)])
    assert (found.peers, found.bad) == (1, {})
    assert found.error.startswith("cannot send from 192.0.2.1 on nosuch0: ")


class LossyPath:
    """A stand-in for a Prober: sizes up to `limit` pass, but not the attempts whose numbers are in `lost`; those in `lucky` all pass."""

    def __init__(self, limit: int, lost: frozenset[int] = frozenset(), lucky: frozenset[int] = frozenset()) -> None:
        self.limit, self.lost, self.lucky, self.attempt = limit, lost, lucky, 0

    def answering(self, requests: list[tuple[str, int]]) -> set[tuple[str, int]]:
        self.attempt += 1
        passes = [] if self.attempt in self.lost else [each for each in requests if each[1] <= self.limit or self.attempt in self.lucky]
        return set(passes)


@pytest.mark.parametrize(
    ("path", "stable"),
    [
        (LossyPath(4000), {"b"}),
        (LossyPath(4000, lost=frozenset({2})), set()),
        (LossyPath(4000, lucky=frozenset({3})), set()),
        (LossyPath(3000), set()),
    ],
    ids=["a limit", "a small packet is lost", "a large one passes", "another limit"],
)
def test_a_size_is_reported_only_if_it_always_passes_and_a_larger_one_never_does(path: Any, stable: set[str]) -> None:
    assert is_stable(path, {"b": 4000}) == stable


def test_a_peer_without_any_answer_has_no_size() -> None:
    path: Any = LossyPath(0)
    assert is_stable(path, {"b": 0}) == set()


@pytest.mark.parametrize(
    ("low", "high", "sizes"), [(68, 69, []), (68, 70, [69]), (68, 84, list(range(69, 84))), (1500, 1510, list(range(1501, 1510)))]
)
def test_sizes_between(low: int, high: int, sizes: list[int]) -> None:
    assert between(low, high) == sizes


def test_sizes_between_far_ends_are_evenly_spaced() -> None:
    found = between(68, 9000)
    assert (len(found), found[0], found[-1]) == (15, 626, 8442)


REQUEST = struct.pack("!BBHHH", 8, 0, 0, 7, 0)
IP_HEADER = bytes([0x45]) + bytes(15) + socket.inet_aton("192.0.2.9")


@pytest.mark.parametrize(
    ("quoted", "expected"),
    [
        (IP_HEADER + REQUEST, "192.0.2.9"),
        (IP_HEADER + struct.pack("!BBHHH", 8, 0, 0, 8, 0), None),
        (IP_HEADER + struct.pack("!BBHHH", 0, 0, 0, 7, 0), None),
        (IP_HEADER + REQUEST[:7], None),
        (b"", None),
        (bytes([0x41]) + bytes(40), None),
    ],
    ids=["ours", "another program's", "a reply", "cut off", "nothing", "a header of 4 bytes"],
)
def test_an_error_counts_only_if_it_quotes_our_request(quoted: bytes, expected: str | None) -> None:
    assert quoted_destination(quoted, socket.AF_INET, 7) == expected
