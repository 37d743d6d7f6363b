# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One port, put together from what its driver and its module say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import (
    DriverInfo,
    Ethtool,
    LinkSettings,
    Pause,
    Rings,
    Timestamping,
    is_per_queue,
    read_ethtool,
)
from tests.unit.builders.fakes import FakeRunner

ASK = ["ethtool", "-m", "eth1"]
MODULE = "\tIdentifier                                : 0x11 (QSFP28)\n\tVendor name                               : Acme\n"
CX7 = DriverInfo("mlx5_core", "6.8.0", "28.39.1002 (MT_0000000838)", "0000:18:00.0", None, {"statistics": True})
STAMPS = Timestamping(hardware=True, software=True, clock=3)
LINK = LinkSettings(400000, "full", True, "FIBRE", [100000, 200000, 400000])


class FakePort:
    """The driver of eth1; any other interface is one too many."""

    def __init__(
        self,
        driver: DriverInfo | None = CX7,
        *,
        link: LinkSettings | None = LINK,
        rings: Rings | None = None,
        pause: Pause | None = None,
        statistics: dict[str, int] | None = None,
        module: bool = False,
        failed: dict[str, str] | None = None,
    ) -> None:
        self._answers = {"drvinfo": driver, "link": link, "rings": rings, "pause": pause, "statistics": statistics}
        self._module, self._failed = module, failed or {}

    def _answer(self, what: str, name: str):
        assert name == "eth1"
        return self._answers[what]

    def drvinfo(self, name: str) -> DriverInfo | None:
        return self._answer("drvinfo", name)

    def link(self, name: str) -> LinkSettings | None:
        return self._answer("link", name)

    def rings(self, name: str) -> Rings | None:
        return self._answer("rings", name)

    def pause(self, name: str) -> Pause | None:
        return self._answer("pause", name)

    def statistics(self, name: str) -> dict[str, int] | None:
        return self._answer("statistics", name)

    def timestamping(self, name: str) -> Timestamping | None:
        assert name == "eth1"
        return STAMPS

    def has_module(self, name: str) -> bool:
        assert name == "eth1"
        return self._module

    def failed(self, name: str) -> dict[str, str]:
        assert name == "eth1"
        return self._failed


class NoEthtool:
    """A system without the program."""

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        raise CommandError(f"command not found: {argv[0]}")


@pytest.mark.parametrize(
    "name",
    [
        *("rx0_packets", "tx12_xmit_more", "ch3_poll", "rx7_xdp_tx_xmit", "ptp_tx0_cqe_err", "ptp_cq1_cqe", "qos_tx2_bytes"),
        *("rx_queue_0_packets", "tx_queue_11_bytes", "rx_queue_0_csum_err", "queue_0_tx_cnt", "rx_0_packets", "tx_63_bytes"),
        *("rx-0.packets", "tx-17.tx_packets", "rxq0: rx_bytes", "txq#0_pktnum", "rx_q-0_pkts", "txq_3_desc", "q0_tx_pkt_n"),
        *("[3]: rx_ucast_packets", "rx_bytes[0]", "Queue[0] InPackets", "2: rcv_pkts", "cpu0_rx_packets", "rvec_0_rx_pkts"),
    ],
)
def test_counters_of_one_queue_are_reported(name: str) -> None:
    assert is_per_queue(name)


@pytest.mark.parametrize(
    "name",
    [
        *("rx_packets", "tx_queue_stopped", "tx_queue_wake", "rx_xsk_packets", "ch_poll", "ch_arm", "ptp_ch_poll"),
        *("rx_prio3_pause", "rx_prio0_bytes", "tx_prio7_pause_transition", "tx_prio_0_packets", "rx_bytes_pri3", "port.tx_priority_3_xon"),
        *("rx_vport_rdma_unicast_bytes", "rx_discards_phy", "rx_err_lane_0_phy", "rx_pcs_symbol_err_phy", "rx_out_of_buffer"),
        *("rx_64_bytes_phy", "rx_65_to_127_bytes_phy", "rx_8192_to_10239_bytes_phy", "rx_64_byte_packets", "rx_64_or_less_octet_packets"),
        *("rx_1519_to_max_bytes", "veb.tc_0_tx_packets", "tx_pause_storm_warning_events", "link_down_events_phy", "duplicate metric"),
        *("rx0", "peer_ifindex", "os2bmc_tx_by_host", "rx_cqe_compress_blks", "tx_tso_inner_bytes", "rx_steer_missed_packets"),
    ],
)
def test_all_other_counters_stay(name: str) -> None:
    assert not is_per_queue(name)


def test_everything_that_a_driver_reports() -> None:
    port = FakePort(rings=Rings(1024, 1024, 8192, 8192), pause=Pause(False, True, False), statistics={"rx_prio3_pause": 5, "rx0_bytes": 9})
    assert read_ethtool(port, None, "eth1") == Ethtool(
        driver="mlx5_core",
        version="6.8.0",
        firmware="28.39.1002 (MT_0000000838)",
        bus_info="0000:18:00.0",
        speed_mbps=400000,
        duplex="full",
        autoneg=True,
        port="FIBRE",
        supported_speeds_mbps=[100000, 200000, 400000],
        rings=Rings(1024, 1024, 8192, 8192),
        pause=Pause(False, True, False),
        counters={"rx_prio3_pause": 5},
        optic=None,
        timestamping=STAMPS,
    )


def test_an_interface_that_is_not_there() -> None:
    assert read_ethtool(FakePort(None, link=None), FakeRunner([]), "eth1") is None


def test_a_driver_that_reports_only_its_counters() -> None:
    read = read_ethtool(FakePort(None, link=None, statistics={"rx_packets": 1}), None, "eth1")
    assert read is not None
    reported = {key: value for key, value in asdict(read).items() if value is not None}
    assert reported == {"supported_speeds_mbps": [], "counters": {"rx_packets": 1}, "unread": {}, "timestamping": asdict(STAMPS)}


def test_the_module_is_asked_where_there_is_one() -> None:
    runner = FakeRunner([(ASK, 0, MODULE, "")])
    read = read_ethtool(FakePort(module=True), runner, "eth1")
    assert read is not None
    assert read.optic is not None
    assert (read.optic.identifier, read.optic.vendor) == ("QSFP28", "Acme")


def test_nothing_is_run_without_a_module() -> None:
    read = read_ethtool(FakePort(), FakeRunner([]), "eth1")
    assert read is not None
    assert read.optic is None


def test_nothing_is_run_on_a_captured_tree() -> None:
    read = read_ethtool(FakePort(module=True), None, "eth1")
    assert read is not None
    assert read.optic is None


def test_bnxt_en_denies_the_modules_that_it_does_not_know() -> None:
    runner = FakeRunner([(ASK, 0, MODULE, "")])
    read = read_ethtool(FakePort(replace(CX7, driver="bnxt_en")), runner, "eth1")
    assert read is not None
    assert read.optic is not None


@pytest.mark.parametrize(
    ("runner", "why"),
    [
        pytest.param(FakeRunner([(ASK, 1, "", "netlink error: Input/output error")]), "netlink error: Input/output error", id="error"),
        pytest.param(FakeRunner([(ASK, 1, MODULE, "Failed to read Page A2h.")]), "Failed to read Page A2h.", id="half-a-module"),
        pytest.param(
            FakeRunner([(ASK, 0, "Offset\t\tValues\n------\t\t------\n0x0000:\t\t19 00 00 00\n", "")]),
            "not the whole output",
            id="hex-dump",
        ),
        pytest.param(NoEthtool(), "command not found", id="no-ethtool"),
    ],
)
def test_a_module_that_cannot_be_read_is_unknown(runner, why: str) -> None:
    read = read_ethtool(FakePort(module=True), runner, "eth1")
    assert read is not None
    assert read.optic is None
    assert why in read.unread["module"]
    assert read.driver == "mlx5_core"


@pytest.mark.parametrize("answer", ["netlink error: Operation not supported", "Cannot get module EEPROM information: No such device"])
def test_a_tool_that_says_that_there_is_no_module(answer: str) -> None:
    read = read_ethtool(FakePort(module=True), FakeRunner([(ASK, 1, "", answer)]), "eth1")
    assert read is not None
    assert (read.optic, read.unread) == (None, {})


def test_a_cage_that_does_not_answer_is_empty_unless_the_link_reports_a_connector() -> None:
    """mlx5 says EIO of an empty cage."""
    failed = {"module": "Input/output error"}
    for link, unread in ((LINK, failed), (replace(LINK, port="None"), {}), (None, {})):
        read = read_ethtool(FakePort(link=link, failed=failed), FakeRunner([]), "eth1")
        assert read is not None
        assert (read.optic, read.unread) == (None, unread)


def test_what_a_driver_could_not_answer_is_reported() -> None:
    read = read_ethtool(FakePort(failed={"statistics": "Connection timed out"}), None, "eth1")
    assert read is not None
    assert (read.counters, read.unread) == ({}, {"statistics": "Connection timed out"})
