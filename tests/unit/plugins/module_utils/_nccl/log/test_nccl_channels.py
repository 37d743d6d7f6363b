# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Channels as NCCL 2.4 to 2.30 name them; the forms are those of its source (src/transport), version by version."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import DIRECTION, OTHER, Way, read_way


def tail(line: str) -> str:
    return line[line.index(" via ") - DIRECTION :]


NET_IB = Way("NET", "IB", "send", 0, False, True)


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n", NET_IB),
        ("Channel 00/1 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA(PCI)/Shared", NET_IB),
        ("Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/3", Way("NET", "IB", "receive", 3, False, False)),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/3(5)/GDRDMA/Shared", Way("NET", "IB", "send", 3, True, True)),
        ("Channel 00 : 0[b1000] -> 8[1b000] [send] via NET/IB/0/GDRDMA", NET_IB),
        ("Ring 00 : 0 -> 8 [send] via NET/IB/0/GDRDMA", NET_IB),
        ("Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", Way("NET", "Socket", "send", 0, False, False)),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/2/GDRDMA", Way("NET", "AWS Libfabric", "send", 2, False, True)),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IBext_v8/1/GDRDMA", Way("NET", "IBext_v8", "send", 1, False, True)),
        ("CollNet 00/0 : 0 [receive] via COLLNET/SHARP/0/GDRDMA", Way("COLLNET", "SHARP", "receive", 0, False, True)),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", Way("P2P", "direct pointer", None, None, False, None)),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", Way("P2P", "direct pointer", None, None, False, None)),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read/CE", Way("P2P", "CUMEM", None, None, False, None)),
        ("Channel 00/0 : 0[0] -> 72[0] via P2P/MNNVL", Way("P2P", "MNNVL", None, None, False, None)),
        ("Channel 00 : 0[dd] -> 1[cd] via P2P/IPC", Way("P2P", "IPC", None, None, False, None)),
        ("Channel 00/0 : 0[0] -> 5[5] via P2P/indirect/3[3]/read", Way("P2P", "indirect", None, None, False, None)),
        ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", Way("SHM", "direct", None, None, False, None)),
        ("Ring 00 : 0[0] -> 1[1] via direct shared memory", Way("SHM", "direct", None, None, False, None)),
        ("Channel 00/0 : 0[0] -> 1[1] via CE/copy engine/0", Way(OTHER, "CE/copy engine/0", None, None, False, None)),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMAgpu2:1:2 [3]", None),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/", None),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via ", None),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/", None),
    ],
    ids=lambda value: value.partition(" : ")[2].strip() or value[:7] if isinstance(value, str) else "",
)
def test_ways(line: str, way: Way | None) -> None:
    assert read_way(tail(line)) == way
