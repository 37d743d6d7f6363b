# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""perftest's output (ib_write_bw, ib_read_bw, ib_send_bw, ib_write_lat, ib_read_lat, ib_send_lat; versions 6.06 to 6.29).

Whoever reads it imports from here; the tables, JSON and failures stand in modules of their own.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import (
    GBPS_PER_UNIT,
    BandwidthResult,
    BandwidthRow,
    parse_bandwidth,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.failure import (
    Failure,
    classify_failure,
    find_failure,
    find_sign,
    parse_result,
    values_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.latency import LatencyResult, LatencyRow, parse_latency

__all__ = [
    "GBPS_PER_UNIT",
    "BandwidthResult",
    "BandwidthRow",
    "Failure",
    "LatencyResult",
    "LatencyRow",
    "classify_failure",
    "find_failure",
    "find_sign",
    "parse_bandwidth",
    "parse_latency",
    "parse_result",
    "values_of",
]
