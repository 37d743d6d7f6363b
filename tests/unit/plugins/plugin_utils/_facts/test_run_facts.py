# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the control node adds to a host's facts comes back with them."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict


def test_what_the_control_node_adds_is_kept() -> None:
    since = {"run": "r", "seconds": 60.0, "devices": {}, "netdevs": {}}
    facts = from_dict({"since": since, "reached_at": "127.0.0.1", "time": {"between_seconds": [1.0, 2.0]}})
    assert facts.time is not None
    assert (facts.since, facts.reached_at, facts.time.between_seconds) == (since, "127.0.0.1", [1.0, 2.0])
    assert (from_dict({}).since, from_dict({}).reached_at, from_dict({}).time) == (None, None, None)
