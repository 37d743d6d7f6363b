# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rdma tool said of real devices, read where it lies; skipped where it is not. The values were read in the captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_tool import (
    RdmaDevice,
    RdmaLink,
    RdmaStatistic,
    parse_rdma_dev,
    parse_rdma_link,
    parse_rdma_statistic,
)

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "rdma-tool"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


def cx3pro(ifindex: int, name: str, node_guid: str, sys_image_guid: str) -> RdmaDevice:
    return RdmaDevice(name, ifindex, "ca", None, "2.42.5000", node_guid, sys_image_guid, None, None)


DEVICES = {
    # Two runs, under two kernels, that say the same.
    "ml-dev-cx3pro-two-kernels.txt": [
        cx3pro(0, "ibp8s0f0", "1c34:da03:0007:7950", "1c34:da03:0007:7953"),
        cx3pro(1, "ibp9s0f0", "1c34:da03:0007:7a60", "1c34:da03:0007:7a63"),
    ],
    "ml-dev-link-smi-multiplane.txt": [
        RdmaDevice("smi1", 2, "ca", None, "20.38.0458", "9803:9b03:009f:d20f", "9803:9b03:009f:d20e", "smi", "ibp8s0f1")
    ],
}
LINKS = {
    "ml-dev-link-smi-multiplane.txt": [
        RdmaLink("smi1", port, None, "INIT", "LINK_UP", None, None, None, None, None, None) for port in (1, 2, 3, 4)
    ],
    "ml-link-siw.txt": [RdmaLink("siw0", 1, None, "ACTIVE", "LINK_UP", "enp0s31f6", None, None, None, None, None)],
}
STATISTICS = "amd-statistic-j-ionic.json"
MLX5_COUNTERS = [
    "rx_write_requests",
    "rx_read_requests",
    "rx_atomic_requests",
    "rx_dct_connect",
    "out_of_buffer",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_retry_err",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "resp_local_length_error",
    "resp_cqe_error",
    "req_cqe_error",
    "req_remote_invalid_request",
    "req_remote_access_errors",
    "resp_remote_access_errors",
    "resp_cqe_flush_error",
    "req_cqe_flush_error",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_ignored",
    "rp_cnp_handled",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rx_icrc_encapsulated",
]


@pytest.mark.parametrize("name", DEVICES)
def test_devices(name: str) -> None:
    assert parse_rdma_dev(capture(name)) == DEVICES[name]


@pytest.mark.parametrize("name", LINKS)
def test_links(name: str) -> None:
    assert parse_rdma_link(capture(name)) == LINKS[name]


def test_statistics() -> None:
    statistics = parse_rdma_statistic(capture(STATISTICS))
    names = [*(f"ionic_{number}" for number in range(8)), *(f"mlx5_{number}" for number in range(4))]
    assert [(item.device, item.port) for item in statistics] == [(name, 1) for name in names]
    assert [len(item.counters) for item in statistics] == [54] * 8 + [29] * 4
    assert {value for item in statistics for value in item.counters.values()} == {0}
    first, *_middle, last = statistics[0].counters
    assert (first, last) == ("tx_rdma_ucast_bytes", "rx_rdma_mtu_discard_pkts")
    assert statistics[8] == RdmaStatistic("mlx5_0", 1, dict.fromkeys(MLX5_COUNTERS, 0))
    assert statistics[11] == RdmaStatistic("mlx5_3", 1, dict.fromkeys(MLX5_COUNTERS, 0))


@pytest.mark.parametrize("name", sorted({*DEVICES, *LINKS, STATISTICS}))
def test_no_parser_takes_the_output_of_another_command_for_its_own(name: str) -> None:
    text = capture(name)
    for parse, own in ((parse_rdma_dev, name in DEVICES), (parse_rdma_link, name in LINKS), (parse_rdma_statistic, name == STATISTICS)):
        if not own:
            with pytest.raises(ParseError):
                parse(text)


def test_no_capture_is_left_out() -> None:
    assert {path.name for path in CAPTURES.iterdir()} == {*DEVICES, *LINKS, STATISTICS}
