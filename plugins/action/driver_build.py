# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.driver_build; documented in plugins/modules/driver_build.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.build_action import BuildAction


class ActionModule(BuildAction):
    MODULE = "driver_build"
    WHAT = "the driver is being built"
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        **BuildAction.COMMON,
        "name": {"type": "str", "required": True},
        "argv": {"type": "list", "elements": "str", "required": True},
        "creates": {"type": "str"},
        "idle_only": {"type": "bool"},
        "log": {"type": "str"},
    }
