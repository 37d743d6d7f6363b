# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ethtool's outputs on real systems, read where they lie; skipped where they are not. The values are written down by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool import DriverInfo, LinkSettings, Rings, is_per_queue
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool_text import (
    Feature,
    Modes,
    RingParameters,
    Settings,
    parse_ethtool_coalesce,
    parse_ethtool_driver,
    parse_ethtool_features,
    parse_ethtool_private_flags,
    parse_ethtool_rings,
    parse_ethtool_settings,
    parse_ethtool_statistics,
)

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "ethtool"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")

NO_LINK = LinkSettings(None, None, None, None, [])
NO_MODES = Modes(None, None, None, None)


def features(words: str, **said: bool | None) -> dict[str, Feature]:
    return {word: Feature(**{"on": False, "fixed": False, "requested": None, **said}) for word in words.split()}


WHOLE: dict[str, tuple[Any, Any]] = {
    "insights-g-eth2": (
        parse_ethtool_rings,
        RingParameters(
            interface="eth2",
            maximum={"rx": 2047, "rx mini": 0, "rx jumbo": 0, "tx": 511},
            current={"rx": 200, "rx mini": 0, "rx jumbo": 0, "tx": 511},
        ),
    ),
    "insights-g-na": (
        parse_ethtool_rings,
        RingParameters(
            interface="ens3",
            maximum={"rx": 256, "rx mini": None, "rx jumbo": None, "tx": 256},
            current={"rx": 256, "rx mini": None, "rx jumbo": None, "tx": 256},
        ),
    ),
    "insights-i-missing": (
        parse_ethtool_driver,
        DriverInfo(
            driver="virtio_net",
            version=None,
            firmware=None,
            bus_info="0000:00:03.0",
            expansion_rom=None,
            supports={"statistics": False, "test": False, "eeprom-access": False, "register-dump": False, "priv-flags": False},
        ),
    ),
    "ml-i-cx5-vf-doublespaced": (
        parse_ethtool_driver,
        DriverInfo(
            driver="mlx5_core",
            version="5.0-0",
            firmware="16.27.2008 (MT_0000000013)",
            bus_info="0000:00:08.0",
            expansion_rom=None,
            supports={"statistics": True, "test": True, "eeprom-access": False, "register-dump": False, "priv-flags": True},
        ),
    ),
    "insights-k": (
        parse_ethtool_features,
        {
            **features("tx-checksumming scatter-gather tcp-segmentation-offload generic-receive-offload large-receive-offload", on=True),
            **features("rx-vlan-offload tx-vlan-offload", on=True),
            **features("tx-checksum-unneeded tx-scatter-gather tx-tcp-segmentation tx-tcp-ecn-segmentation", on=True, fixed=True),
            **features("tx-tcp6-segmentation highdma rx-vlan-filter tx-lockless tx-gre-segmentation", on=True, fixed=True),
            **features("tx-udp_tnl-segmentation", on=True, fixed=True),
            **features("rx-checksumming tx-checksum-ipv4 tx-checksum-ip-generic tx-checksum-ipv6 tx-checksum-fcoe-crc", fixed=True),
            **features("tx-checksum-sctp tx-scatter-gather-fraglist udp-fragmentation-offload vlan-challenged netns-local", fixed=True),
            **features("tx-gso-robust tx-fcoe-segmentation fcoe-mtu loopback", fixed=True),
            **features("ntuple-filters receive-hashing"),
            **features("generic-segmentation-offload", requested=True),
        },
    ),
    "insights-priv-flags": (
        parse_ethtool_private_flags,
        {
            "legacy-rx": False,
            "vf-true-promisc-support": False,
            "vf-vlan-pruning": True,
            "flow-director-atr": True,
            "veb-stats": False,
            "hw-atr-eviction": True,
            "link-down-on-close": False,
        },
    ),
    "insights-settings-2": (
        parse_ethtool_settings,
        Settings(
            interface="eth1",
            link=NO_LINK,
            ports=None,
            supported=Modes(link_modes=None, pause="Symmetric", autoneg=True, fec=None),
            advertised=NO_MODES,
            partner=NO_MODES,
            link_detected=None,
            link_reason=None,
        ),
    ),
    "node_exporter-eth0-settings": (
        parse_ethtool_settings,
        Settings(
            interface="eth0",
            link=LinkSettings(1000, "full", True, "Twisted Pair", [10, 100, 1000, 10000]),
            ports=["TP", "MII"],
            supported=Modes(
                link_modes=["10baseT/Half", "10baseT/Full", "100baseT/Half", "100baseT/Full", "1000baseT/Full", "10000baseT/Full"],
                pause="Symmetric",
                autoneg=True,
                fec=[],
            ),
            advertised=Modes(
                link_modes=["10baseT/Half", "10baseT/Full", "100baseT/Half", "100baseT/Full", "1000baseT/Full"],
                pause="Symmetric",
                autoneg=True,
                fec=[],
            ),
            partner=NO_MODES,
            link_detected=True,
            link_reason=None,
        ),
    ),
    "node_exporter-eth0-S": (
        parse_ethtool_statistics,
        {
            "tx_packets": 961500,
            "rx_packets": 1260062,
            "tx_errors": 0,
            "rx_errors": 0,
            "port.rx_dropped": 12028,
            "rx_missed": 401,
            "align_errors": 0,
            "tx_single_collisions": 0,
            "tx_multi_collisions": 0,
            "rx_unicast": 1230297,
            "rx_broadcast": 5792,
            "rx_multicast": 23973,
            "tx_aborted": 0,
            "tx_underrun": 0,
            "duplicate metric": 1,
            "duplicate_metric": 2,
        },
    ),
}
REFUSED = {
    "insights-S-notsupported": (parse_ethtool_statistics, "Cannot get stats strings information: Operation not supported"),
    "insights-c-cannot": (parse_ethtool_coalesce, "Cannot get device coalesce settings: Operation not supported"),
    "insights-g-badargs": (parse_ethtool_rings, "ethtool: bad command line argument(s)"),
    "insights-g-nodevice": (parse_ethtool_rings, "Cannot get device ring settings: No such device"),
    "insights-priv-flags-err": (parse_ethtool_private_flags, "netlink error Operation not supported"),
    "insights-settings-bad1": (parse_ethtool_settings, "No data available"),
    "insights-settings-bad2": (parse_ethtool_settings, "No data available"),
    "insights-settings-bad3": (parse_ethtool_settings, "Supported ports"),
}
LARGE = {"insights-S-generic"}


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def test_every_capture_is_looked_at() -> None:
    assert {path.name for path in CAPTURES.iterdir()} == {f"{name}.txt" for name in {*WHOLE, *REFUSED, *LARGE}}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_values(name: str) -> None:
    parser, expected = WHOLE[name]
    assert parser(capture(name)) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_complaints_are_quoted(name: str) -> None:
    parser, line = REFUSED[name]
    with pytest.raises(ParseError) as caught:
        parser(capture(name))
    assert repr(line) in str(caught.value)


def test_the_rings_of_both_captures() -> None:
    assert parse_ethtool_rings(capture("insights-g-eth2")).rings == Rings(rx=200, tx=511, rx_max=2047, tx_max=511)
    assert parse_ethtool_rings(capture("insights-g-na")).rings == Rings(rx=256, tx=256, rx_max=256, tx_max=256)


def test_many_counters() -> None:
    counters = parse_ethtool_statistics(capture("insights-S-generic"))
    # `grep -c` and `awk '{sum += $2}'` of the capture
    assert (len(counters), sum(counters.values())) == (82, 666491756)
    assert list(counters.items())[:3] == [("rx_packets", 912398), ("tx_packets", 965449), ("rx_bytes", 96506134)]
    assert list(counters.items())[-2:] == [("rx_queue_3_csum_err", 0), ("rx_queue_3_alloc_failed", 0)]
    not_zero = {
        "tx_bytes": 190360255,
        "rx_broadcast": 4246,
        "tx_broadcast": 4248,
        "rx_multicast": 18,
        "tx_multicast": 20,
        "multicast": 18,
        "rx_long_byte_count": 96506134,
        "tx_queue_1_packets": 935473,
        "tx_queue_3_bytes": 4358198,
        "rx_queue_0_bytes": 92856542,
    }
    assert {name: counters[name] for name in not_zero} == not_zero
    assert sum(map(is_per_queue, counters)) == 4 * 3 + 4 * 5
