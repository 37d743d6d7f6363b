# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters by priority. The names are those of the drivers' sources (Linux 6.18)."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import PriorityCounters, priority_counters

# mlx5 with PFC on for priority 3 alone.
MLX5 = {f"{way}_prio{priority}_{what}": 10 * priority for priority in range(8) for way in ("rx", "tx") for what in ("bytes", "packets")}
MLX5.update({f"rx_prio{priority}_{what}": 0 for priority in range(8) for what in ("discards", "buf_discard", "cong_discard", "marked")})
MLX5.update(rx_prio3_pause=0, rx_prio3_pause_duration=0, tx_prio3_pause=7, tx_prio3_pause_duration=21, rx_prio3_pause_transition=0)


def test_mlx5() -> None:
    found = priority_counters({**MLX5, "rx_packets": 1, "rx_prio8_bytes": 1, "rx3_bytes": 1, "tx_pause_storm_error_events": 0})

    assert list(found) == list(range(8))
    assert found[3] == PriorityCounters(
        rx_bytes=30,
        tx_bytes=30,
        rx_packets=30,
        tx_packets=30,
        rx_pause=0,
        tx_pause=7,
        rx_pause_usec=0,
        tx_pause_usec=21,
        rx_pause_transitions=0,
        rx_discards=0,
        rx_buffer_discards=0,
        rx_congestion_discards=0,
        rx_marked=0,
    )


def test_a_pause_counter_that_is_missing_says_that_pfc_is_off_and_one_that_is_zero_does_not() -> None:
    found = priority_counters(MLX5)

    assert [priority for priority, counters in found.items() if counters.says_pfc_is_off()] == [0, 1, 2, 4, 5, 6, 7]
    assert (found[3].rx_pause, found[4].rx_pause) == (0, None)
    assert not PriorityCounters().says_pfc_is_off()
    assert not PriorityCounters(rx_bytes=1, rx_pause=0, tx_pause=0).says_pfc_is_off()


def test_bnxt_en() -> None:
    statistics = {"rx_bytes_pri3": 1, "tx_packets_pri3": 2, "rx_pfc_ena_frames_pri3": 3, "rx_pfc_frames": 99, "rx_bytes_cos3": 99}
    statistics.update(pfc_pri3_rx_duration_us=4, pfc_pri3_tx_transitions=5)

    assert priority_counters(statistics) == {
        3: PriorityCounters(rx_bytes=1, tx_packets=2, rx_pause=3, rx_pause_usec=4, tx_pause_transitions=5)
    }


def test_ice_counts_pauses_alone() -> None:
    found = priority_counters({"rx_priority_3_xoff.nic": 1, "tx_priority_3_xoff.nic": 2, "rx_priority_3_xon.nic": 3})

    assert found == {3: PriorityCounters(rx_pause=1, tx_pause=2)}
    assert not found[3].says_pfc_is_off()


@pytest.mark.parametrize("statistics", [{}, {"rx_queue_0_packets": 1, "rx_drops": 0}, {"rx_prio3_": 1, "rx_prio3_None": 1}])
def test_a_driver_without_priorities_has_none(statistics: dict[str, int]) -> None:
    assert priority_counters(statistics) == {}
