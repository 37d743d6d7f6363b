# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of possible causes of error lines: how each is checked, and its remedy.

A remedy contains the host ({host}) and fields of the line ({device}, {file}, {peer}).
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.devices import DEVICES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.fabric import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.gpus import GPUS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.jobs import JOBS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.memory import MEMORY
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.past import PAST
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.plugins import PLUGINS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.programs import PROGRAMS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.sockets import SOCKETS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause

CAUSES: dict[str, Cause] = {**DEVICES, **FABRIC, **GPUS, **JOBS, **MEMORY, **PAST, **PLUGINS, **PROGRAMS, **SOCKETS}
