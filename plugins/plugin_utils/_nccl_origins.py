# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where NCCL's variables in the files that the nccl stage writes come from: what is wrong with them is corrected there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_nccl import HCA, SOCKET_IFNAME
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import GID_INDEX, TRAFFIC_CLASS, nccl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl_fabric import COLLNET, CROSS_NIC, PKEY
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl_profiles import TOPOLOGY, profile_settings

Intent = Mapping[str, Any]
Facts = Mapping[str, Any]
#: What of the intent the variables follow from that neither somebody asks for nor a profile sets.
FOLLOWS_FROM = {
    HCA: "rdma_rails",
    GID_INDEX: "rdma_rails",
    PKEY: "rdma_partitions",
    COLLNET: "rdma_fabric",
    CROSS_NIC: "rdma_fabric",
    TRAFFIC_CLASS: "rdma_roce",
    SOCKET_IFNAME: "rdma_nccl.socket_ifname",
}


def origins(intent: Intent, facts: Facts) -> dict[str, str]:
    """Each variable that the intent may set → the part of the intent that says so."""
    nccl = intent["nccl"]
    by_profile = {setting.name: "rdma_nccl.profile" for setting, _value in profile_settings(intent, facts)}
    asked_for = dict.fromkeys(nccl["variables"], "rdma_nccl.variables")
    return {**FOLLOWS_FROM, **by_profile, TOPOLOGY: "rdma_nccl.topology_file", **asked_for}


def written(intent: Intent, facts: Facts) -> dict[str, Mapping[str, str]]:
    """The variables that the nccl stage writes, as facts would tell of them: nccl.conf and the environment file, each by its path."""
    ours = (intent["nccl"]["conf_file"], intent["nccl"]["environment_file"])
    return {file.path: parse_nccl_conf(file.text).variables for file in nccl_files(intent, facts) if file.path in ours and file.content}
