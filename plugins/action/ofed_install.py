# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.ofed_install; documented in plugins/modules/ofed_install.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.build_action import BuildAction


class ActionModule(BuildAction):
    MODULE = "ofed_install"
    WHAT = "the OFED installer is running"
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        **BuildAction.COMMON,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "archive": {"type": "str"},
        "checksum": {"type": "str"},
        "version": {"type": "str"},
        "flags": {"type": "list", "elements": "str"},
        "tmpdir": {"type": "str"},
        "uninstaller": {"type": "list", "elements": "str"},
        "may_remove": {"type": "list", "elements": "str"},
    }
