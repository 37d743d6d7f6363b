# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""partitions.conf: one bad line would put everybody together, so its form is pinned."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._partitions_conf import (
    Partition,
    PartitionPort,
    everybody,
    render_partitions,
    table_key,
)

A, B = "0x0002c9030002fb05", "0x0002c9030002fb06"
TENANT = Partition("training", 0x0101, [PartitionPort(A, "full", "n1 mlx5_0"), PartitionPort(B, "limited", "n2 mlx5_0")])


def test_a_tenant_makes_the_default_partition_limited() -> None:
    assert render_partitions("a", [TENANT]) == (
        "# Managed by rdma.cluster: the partitions of plane a.\n"
        "\n"
        "Default=0x7fff, ipoib, mtu=4 :\n"
        "    ALL=limited,\n"
        "    SELF=full ;\n"
        "\n"
        "training=0x0101 :\n"
        f"    {A}=full,  # n1 mlx5_0\n"
        f"    {B}=limited ;  # n2 mlx5_0\n"
    )


def test_without_tenants_everybody_is_full_as_without_a_file() -> None:
    assert render_partitions("a", []).endswith("\nDefault=0x7fff, ipoib, mtu=4 :\n    ALL=full ;\n")


def test_a_default_partition_that_is_said_wins() -> None:
    said = Partition("Ground", 0x7FFF, everybody("full"))
    text = render_partitions("a", [TENANT, said])
    assert text.count("0x7fff") == 1
    assert text.index("Ground=0x7fff :\n    ALL=full ;") < text.index("training")


def test_flags_are_in_opensm_s_words() -> None:
    partition = Partition("t", 0x7, [PartitionPort(A, "full")], ipoib=True, mtu_bytes=4096, sl=3, index0=True)
    assert "\nt=0x0007, indx0, ipoib, mtu=5, sl=3 :\n" in render_partitions("a", [partition])


def test_no_line_is_longer_than_opensm_reads() -> None:
    ports = [PartitionPort(f"0x{0x2C90300000000 + index:016x}", "full", f"node{index} mlx5_0") for index in range(4096)]
    lines = render_partitions("a", [Partition("big", 1, ports)]).splitlines()
    assert max(map(len, lines)) < 100
    assert sum(line.count(";") for line in lines) == 2


def test_a_label_cannot_be_more_than_a_comment() -> None:
    text = render_partitions("a", [Partition("t", 1, [PartitionPort(A, "full", "n1\nevil=0x2 : ALL=full ;")])])
    assert "\nevil" not in text
    assert text.splitlines()[-1].startswith(f"    {A}=full ;  # n1?evil")


@pytest.mark.parametrize("partition", [Partition("a", 0), Partition("a", 0x8001), Partition("a", 1, ipoib=True, mtu_bytes=1500)], ids=str)
def test_what_is_no_key_or_no_mtu_is_refused(partition: Partition) -> None:
    with pytest.raises(ValueError, match="partition a"):
        render_partitions("a", [partition])


def test_the_bit_of_full_members() -> None:
    assert (table_key(0x101, "full"), table_key(0x101, "limited")) == (0x8101, 0x0101)
