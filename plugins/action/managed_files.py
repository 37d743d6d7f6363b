# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.managed_files, and with meta/runtime.yml of all modules without their own action."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import SpokenModule


class ActionModule(SpokenModule):
    """Runs the module and cleans its result."""
