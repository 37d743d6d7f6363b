# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.fabric_facts: runs the module of this name and drops facts that it must not set."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import HostModule


class ActionModule(HostModule):
    """Runs the module and drops its facts."""
