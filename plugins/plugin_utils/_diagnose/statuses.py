# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The statuses of a completion of RDMA, by the numbers of enum ibv_wc_status and by the words of libibverbs and UCX."""

from __future__ import annotations

#: Kind of line, number or pattern of numbers; the pattern for all others comes last.
STATUS_KINDS = (
    ("ib.retry", "12"),
    ("ib.receiver_not_ready", "13"),
    ("ib.remote_access", "10"),
    ("ib.remote_operation", "11"),
    ("ib.remote_request", "9"),
    ("ib.local_protection", "4"),
    ("ib.local_length", "1"),
    ("ib.local_operation", "(?:2|3|6)"),
    ("ib.bad_response", "7"),
    ("ib.local_access", "8"),
    ("ib.aborted", "(?:15|16)"),
    ("ib.broken", "(?:19|21)"),
    ("ib.flushed", "5"),
    ("ib.completion", "[0-9]+"),
)
#: Kind of line, words: those of ibv_wc_status_str.
WORDS = (
    ("ib.retry", "transport retry counter exceeded"),
    ("ib.receiver_not_ready", "RNR retry counter exceeded"),
    ("ib.remote_access", "remote access error"),
    ("ib.remote_operation", "remote operation error"),
    ("ib.remote_request", "remote invalid request error"),
    ("ib.local_protection", "local protection error"),
    ("ib.local_length", "local length error"),
    ("ib.local_operation", "local QP operation error"),
    ("ib.local_operation", "memory bind operation error"),
    ("ib.local_access", "local access error"),
    ("ib.bad_response", "bad response error"),
    ("ib.aborted", "remote aborted error"),
    ("ib.flushed", "Work Request Flushed Error"),
)
#: Kind of line, words: those of UCX (src/uct/ib/mlx5/ib_mlx5_log.c).
UCX_WORDS = (
    ("ib.retry", "Transport retry count exceeded"),
    ("ib.receiver_not_ready", "Receive-no-ready retry count exceeded"),
    ("ib.remote_access", "Remote access error"),
    ("ib.remote_operation", "Remote operation error"),
    ("ib.remote_request", "Invalid request"),
    ("ib.local_protection", "Local protection"),
    ("ib.local_length", "Local length error"),
    ("ib.local_operation", "Local QP operation error"),
    ("ib.local_operation", "Memory window bind error"),
    ("ib.local_access", "Local access error"),
    ("ib.bad_response", "Bad response"),
    ("ib.aborted", "Remote side aborted"),
    ("ib.flushed", "WR flushed because QP in error state"),
)
