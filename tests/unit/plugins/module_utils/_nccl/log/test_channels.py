# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of adapters as NCCL and its plugins print them."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import read_network, read_virtual
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Adapter


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_bond_0:2/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            ("IB", (Adapter(0, "mlx5_0", 1, "IB"), Adapter(1, "mlx5_bond_0", 2, "RoCE")), "eth0"),
        ),
        ("NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.0.0.1<0>", ("IB", (Adapter(0, "mlx5_0", 1, "IB"),), "ib0")),
        ("NET/IB : Using [RO]; OOB eth0:192.0.2.2<0>", ("IB", (), "eth0")),
        (
            "NET/IB : Using [0]mlx5_0:1/IB/SHARP [RO]; OOB eth0:fe80::1%eth0<0>",
            ("IB", (Adapter(0, "mlx5_0", 1, "IB", sharp=True),), "eth0"),
        ),
        (
            "NET/IB : Using [0]mlx5_0_dma:1:3:1/IB [1]mlx5_1:1::2/RoCE [2]mlx5_2:1:4/IB [RO]; OOB eth0:10.0.0.1<0>",
            (
                "IB",
                (
                    Adapter(0, "mlx5_0_dma", 1, "IB", rail=3, plane=1),
                    Adapter(1, "mlx5_1", 1, "RoCE", plane=2),
                    Adapter(2, "mlx5_2", 1, "IB", rail=4),
                ),
                "eth0",
            ),
        ),
        (
            "NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:fe80::2%eth1<0>",
            ("Socket", (Adapter(0, "eth0", address="10.0.0.1"), Adapter(1, "eth1", address="fe80::2%eth1")), None),
        ),
        (
            "NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [2]mlx5_2:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            ("IB", (Adapter(0, "mlx5_0+mlx5_1", layer="RoCE"), Adapter(1, "mlx5_2", 1, "RoCE")), "eth0"),
        ),
        ("NET/FastSocket : Using [0]ibs108:10.0.19.12<0>", ("FastSocket", (Adapter(0, "ibs108", address="10.0.19.12"),), None)),
        ("NET/Socket: Using 2 threads and 8 sockets per thread", None),
        ("NET/OFI Using Libfabric version 1.22", None),
        ("NET/IB : No device found.", None),
    ],
    ids=["RoCE and IB", "old", "none", "SHARP", "rails and planes", "sockets", "merged", "another", "threads", "OFI", "no list"],
)
def test_lists(message: str, expected: object) -> None:
    assert read_network(message) == expected


def test_a_device_made_of_several() -> None:
    message = "NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2"
    assert read_virtual(message) == ("IB", Adapter(4, "mlx5_0+mlx5_1"))
    assert read_virtual("NET/IB : No device found.") is None
