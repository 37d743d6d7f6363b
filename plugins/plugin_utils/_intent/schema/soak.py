# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for the soak: how long it measures, with how much load, and which rate of errors is too high."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Section, integer, keys, number

SOAK = Section(
    keys(
        "How the playbook `soak` looks for intermittent errors ([the soak](soak.md)). Set it for all hosts of the play.",
        hours=number("How long it measures, without the time between two runs that continue the same soak.", 0.01, 720, default=24),
        slice_seconds=integer(
            "Length of a slice, in s. In each slice a port has one partner, and its counters are compared.", 10, 3600, default=300
        ),
        duty_percent=integer("Share of a slice in which each pair transfers data at its full rate, in %.", 1, 50, default=10),
        errors_per_billion_packets=number(
            "The highest allowed rate of errors of a port, per 10^9 packets that it has sent and received.", 0.001, 1e9, default=1
        ),
        stop_at_errors=integer("Stop when a port has so many errors. Without it, only the time ends the soak.", 1, 10**9),
    ),
    ("soak",),
)
