# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""partitions.conf: one bad line would put everybody together, so its form is pinned."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    FabricPort,
    Loss,
    Partition,
    PartitionPort,
    everybody,
    keys_of,
    losses,
    parse_partitions,
    parse_settings,
    render_partitions,
    setting_changes,
    table_key,
    with_default_of,
    with_limited_default,
)

A, B = "0x0002c9030002fb05", "0x0002c9030002fb06"
TENANT = Partition("training", 0x0101, [PartitionPort(A, "full", "n1 mlx5_0"), PartitionPort(B, "limited", "n2 mlx5_0")])


def test_a_default_partition_is_limited_only_where_that_is_given() -> None:
    assert "\nDefault=0x7fff, ipoib, mtu=4 :\n    ALL=full ;\n" in render_partitions("a", [TENANT])
    assert render_partitions("a", [TENANT], "limited") == (
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


def test_a_default_partition_that_is_given_wins() -> None:
    answer = Partition("Ground", 0x7FFF, everybody("full"))
    text = render_partitions("a", [TENANT, answer])
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


def keys(text: str | None, guid: str, **more: object) -> dict[int, str]:
    return keys_of(None if text is None else parse_partitions(text), FabricPort(guid, **more))  # type: ignore[arg-type]


def test_a_rendered_file_is_parsed_into_the_same_members() -> None:
    text = render_partitions("a", [TENANT], "limited")
    assert [keys(text, guid) for guid in (A, B, "0x9")] == [
        {0x7FFF: "limited", 0x101: "full"},
        {0x7FFF: "limited", 0x101: "limited"},
        {0x7FFF: "limited"},
    ]
    assert keys(text, "0x9", is_manager=True) == {0x7FFF: "full"}


def test_opensm_s_own_words() -> None:
    """The last word on a port counts; a file that does not name the default partition leaves everybody limited in it."""
    text = (
        "# x\nstore = 0x8002, defmember=full : ALL_CAS, SELF=limited, 0x2c9030002fb05=limited,\n mgid=ff12::1, sl=3 ; "
        "0x3 : ALL_SWITCHES=both;"
    )
    assert keys(text, A) == {0x7FFF: "limited", 2: "limited"}
    assert keys(text, B) == {0x7FFF: "limited", 2: "full"}
    assert keys(text, B, is_manager=True) == {0x7FFF: "full", 2: "limited"}
    assert keys(text, "0x9", kind="switch") == {0x7FFF: "limited", 3: "full"}
    assert keys(None, A) == {0x7FFF: "full"}


@pytest.mark.parametrize(
    "text",
    ["a=0x1", "a : ALL ;", "a=0x8000 : ALL ;", "a=0x1 : ALL=half ;", "a=0x1 : node3 ;", "a=0x1, defmember=x : ALL ;"],
    ids=["no-colon", "no-key", "key-0", "membership", "port", "defmember"],
)
def test_what_opensm_would_not_read_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match=r"partitions\.conf"):
        parse_partitions(text)


@pytest.mark.parametrize(
    ("number", "key"), [("0101", 0o101), ("101", 101), ("0x101", 0x101), ("0x8101", 0x101), ("00000", 0), ("09", 0), ("99999", 0)]
)
def test_a_key_is_read_as_c_reads_numbers(number: str, key: int) -> None:
    text = f"a={number} : ALL=full ;\n"
    if key:
        assert (parse_partitions(text)[0][0], list(parse_settings(text))) == (key, [key])
        return
    for parse in (parse_partitions, parse_settings):
        with pytest.raises(ParseError, match="no key of a partition"):
            parse(text)


def test_what_a_port_loses() -> None:
    before = {0x7FFF: "full", 0x101: "full", 0x102: "limited"}
    assert losses(A, before, {**before, 0x103: "full"}) == []
    assert losses(A, before, {0x7FFF: "limited", 0x102: "full"}) == [Loss(A, 0x101, "full", None), Loss(A, 0x7FFF, "full", "limited")]
    assert [str(each) for each in losses(A, before, {0x7FFF: "limited", 0x102: "full"})] == ["loses 0x0101 (full)", "0x7fff full → limited"]


def test_a_limited_default_partition_stays_where_nothing_is_given() -> None:
    limited, full = (render_partitions("a", [TENANT], each) for each in ("limited", "full"))
    assert with_default_of(full, limited) == limited
    assert with_default_of(full, full) == full
    assert with_default_of(full, "") == full
    assert with_limited_default(full) == with_limited_default(limited) == limited


def changes(before: str, after: str) -> dict[int, str]:
    return setting_changes(parse_settings(before), parse_settings(after))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (Partition("t", 7, index0=True), "index 0 no → yes"),
        (Partition("t", 7, ipoib=True), "IP over InfiniBand no → yes"),
        (Partition("t", 7, ipoib=True, mtu_bytes=4096), "IP over InfiniBand no → yes, MTU 2048 bytes → 4096 bytes"),
        (Partition("t", 7, sl=3), "service level 0 → 3"),
    ],
    ids=["index", "ipoib", "mtu", "sl"],
)
def test_settings_of_a_partition_that_change(after: Partition, words: str) -> None:
    """Its members keep the P_Key, and lose their index, their address group, or their lane."""
    plain, then = (render_partitions("a", [each]) for each in (Partition("t", 7), after))
    assert changes(plain, then) == {7: words}
    assert list(changes(then, plain)) == [7]
    assert changes(then, then) == {}


def test_settings_in_opensm_s_own_words_and_values() -> None:
    """A value of its own is the same as none; without IPoIB nothing has an MTU; a new partition changes nothing."""
    assert changes("t=7 : ALL ;", "t=0x8007, sl=0, mtu=5, rate=7, defmember=full : ALL ; new=8, indx0 : ALL ;") == {}
    assert changes("t=7, ipoib : ALL ;", "t=7, ipoib, mtu=0x4, rate=3 : ALL ;") == {}
    assert changes("t=7, ipoib, rate=7, scope=5 : ALL ;", "t=7, ipoib : ALL ;") == {7: "rate code 7 → 3, scope 5 → 2"}
    assert changes("t=7, ipoib, mtu=9 : ALL ;", "t=7, ipoib, mtu=x : ALL ;") == {7: "MTU code 9 → code x"}
