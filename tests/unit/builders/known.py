# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of hosts, made of trees that a test may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict


def known_of(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Known]:
    """hosts: host → {"intent", "facts"}, each None or empty where there is none."""
    return {host: Known(each["intent"], from_dict(each["facts"]) if each["facts"] else None) for host, each in hosts.items()}
