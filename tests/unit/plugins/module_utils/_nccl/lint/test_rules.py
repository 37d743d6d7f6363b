# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each rule over NCCL's variables: a case in which it speaks, with every word, and cases in which it is silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.lint import ALL_RULES, lint
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import SITE_FILE, Source
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import Plan, Problem

SITE = "/etc/nccl.conf"


def port(state: str = "ACTIVE", link_layer: str = "Ethernet", gids: tuple[int, ...] = (3,)) -> dict[str, Any]:
    return {"state": state, "link_layer": link_layer, "rocev2": {f"10.0.{index}.1": index for index in gids}}


def device(**ports: Any) -> dict[str, Any]:
    return {"ports": {"1": port(**ports)}}


ROCE = {"mlx5_0": device(), "mlx5_1": device()}
FACTS: dict[str, Any] = {"devices": ROCE, "interfaces": ["eth0", "lo"], "modules": []}
INSIDE = {**FACTS, "interfaces": ["docker0", "eth0", "lo"]}
INFINIBAND = {**FACTS, "devices": {"mlx5_0": device(link_layer="InfiniBand")}}
MANY = {**FACTS, "devices": {**ROCE, "mlx5_10": device()}}


def problems(rule: str, variables: Mapping[str, str], facts: Mapping[str, Any] | None = None, **more: Any) -> list[Problem]:
    """What a rule says of a host whose /etc/nccl.conf has these variables. more: the plan's, and version."""
    version = more.pop("version", None)
    problems = lint([Source(SITE_FILE, SITE, "", variables)], FACTS if facts is None else facts, version, Plan(**more))
    return [problem for problem in problems if problem.rule == rule]


Case = tuple[dict[str, str], dict[str, Any], tuple[str, str, str, str, str]]
#: By rule: variables, the rest of the case, and severity, variable, observed, expected and remedy.
SPEAKS: dict[str, Case] = {
    "gid_index_dead": (
        {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_ADDR_RANGE": "10.0.0.0/8"},
        {},
        (
            "warning",
            "NCCL_IB_GID_INDEX, NCCL_IB_ADDR_RANGE",
            "NCCL_IB_GID_INDEX=3 disables NCCL_IB_ADDR_RANGE=10.0.0.0/8",
            "a single method to select the GID",
            f"Remove NCCL_IB_GID_INDEX from {SITE}.",
        ),
    ),
    "gid_index_fixed": (
        {"NCCL_IB_GID_INDEX": "3"},
        {"version": "2.21.5"},
        (
            "warning",
            "NCCL_IB_GID_INDEX",
            "NCCL_IB_GID_INDEX=3, for every port",
            "not set: NCCL 2.21 and newer finds each port's GID",
            f"Remove NCCL_IB_GID_INDEX from {SITE}.",
        ),
    ),
    "ib_disabled_dead": (
        {"NCCL_IB_DISABLE": "1", "NCCL_IB_TIMEOUT": "22"},
        {},
        (
            "warning",
            "NCCL_IB_DISABLE, NCCL_IB_TIMEOUT",
            "NCCL_IB_DISABLE=1 disables NCCL_IB_TIMEOUT=22",
            "NCCL uses RDMA",
            f"Remove NCCL_IB_DISABLE from {SITE}.",
        ),
    ),
    "p2p_level_dead": (
        {"NCCL_P2P_DISABLE": "1", "NCCL_P2P_LEVEL": "NVL"},
        {},
        (
            "warning",
            "NCCL_P2P_DISABLE, NCCL_P2P_LEVEL",
            "NCCL_P2P_DISABLE=1, NCCL_P2P_LEVEL=NVL: the level has no effect",
            "neither, outside of tests",
            f"Remove NCCL_P2P_DISABLE and NCCL_P2P_LEVEL from {SITE}.",
        ),
    ),
    "nrings_dead": (
        {"NCCL_MAX_NRINGS": "16", "NCCL_MAX_NCHANNELS": "8"},
        {},
        (
            "warning",
            "NCCL_MAX_NRINGS, NCCL_MAX_NCHANNELS",
            "NCCL_MAX_NRINGS=16, NCCL_MAX_NCHANNELS=8: NCCL_MAX_NRINGS has no effect or is superseded",
            "NCCL_MAX_NCHANNELS",
            f"Remove NCCL_MAX_NRINGS from {SITE}.",
        ),
    ),
    "min_over_max": (
        {"NCCL_MIN_CTAS": "32", "NCCL_MAX_CTAS": "16"},
        {},
        (
            "error",
            "NCCL_MIN_CTAS, NCCL_MAX_CTAS",
            "NCCL_MIN_CTAS=32, NCCL_MAX_CTAS=16",
            "NCCL_MIN_CTAS is not above NCCL_MAX_CTAS",
            "Set NCCL_MIN_CTAS to 16 or less, or neither.",
        ),
    ),
    "split_without_qps": (
        {"NCCL_IB_SPLIT_DATA_ON_QPS": "1"},
        {},
        (
            "warning",
            "NCCL_IB_SPLIT_DATA_ON_QPS, NCCL_IB_QPS_PER_CONNECTION",
            "NCCL_IB_SPLIT_DATA_ON_QPS=1 with one queue pair per connection",
            "NCCL_IB_QPS_PER_CONNECTION of 2 or more, or no NCCL_IB_SPLIT_DATA_ON_QPS",
            f"Remove NCCL_IB_SPLIT_DATA_ON_QPS from {SITE}.",
        ),
    ),
    "ar_threshold_dead": (
        {"NCCL_IB_AR_THRESHOLD": "0", "NCCL_IB_OOO_RQ": "1"},
        {},
        (
            "warning",
            "NCCL_IB_AR_THRESHOLD, NCCL_IB_OOO_RQ",
            "NCCL_IB_AR_THRESHOLD=0, NCCL_IB_OOO_RQ=1: the threshold has no effect",
            "one of them",
            f"Remove NCCL_IB_AR_THRESHOLD from {SITE}.",
        ),
    ),
    "too_many_sockets": (
        {"NCCL_SOCKET_NTHREADS": "8", "NCCL_NSOCKS_PERTHREAD": "9"},
        {},
        (
            "error",
            "NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD",
            "NCCL_SOCKET_NTHREADS=8, NCCL_NSOCKS_PERTHREAD=9: 72 connections",
            "at most 64 connections",
            "Set NCCL_NSOCKS_PERTHREAD to 8 or less.",
        ),
    ),
    "algo_without_ring": (
        {"NCCL_ALGO": "Tree"},
        {"version": "2.24.3"},
        (
            "error",
            "NCCL_ALGO",
            "NCCL_ALGO=Tree: a collective without these algorithms fails",
            "a list with ring, or a collective before the colon, such as allreduce:tree",
            f"Remove NCCL_ALGO from {SITE}.",
        ),
    ),
    "nvls_with_shared_gpus": (
        {"NCCL_NVLS_ENABLE": "1", "NCCL_MULTI_RANK_GPU_ENABLE": "1"},
        {},
        (
            "error",
            "NCCL_NVLS_ENABLE, NCCL_MULTI_RANK_GPU_ENABLE",
            "NCCL_NVLS_ENABLE=1, NCCL_MULTI_RANK_GPU_ENABLE=1: ranks that share a GPU fail",
            "NCCL_NVLS_ENABLE of 0 or 2",
            f"Remove NCCL_NVLS_ENABLE from {SITE}.",
        ),
    ),
    "range_of_other_family": (
        {"NCCL_IB_ADDR_RANGE": "fd00::/8"},
        {},
        (
            "error",
            "NCCL_IB_ADDR_RANGE, NCCL_IB_ADDR_FAMILY",
            "NCCL_IB_ADDR_RANGE=fd00::/8: the family is AF_INET",
            "NCCL_IB_ADDR_FAMILY=AF_INET6",
            "Set NCCL_IB_ADDR_FAMILY=AF_INET6.",
        ),
    ),
    "prefix_length_dead": (
        {"NCCL_IB_SUBNET_PREFIX_LEN": "24"},
        {},
        (
            "warning",
            "NCCL_IB_SUBNET_PREFIX_LEN, NCCL_IB_SUBNET_AWARE_ROUTING",
            "NCCL_IB_SUBNET_PREFIX_LEN=24: the length has no effect without NCCL_IB_SUBNET_AWARE_ROUTING=1",
            "NCCL_IB_SUBNET_AWARE_ROUTING=1 for a mesh",
            f"Remove NCCL_IB_SUBNET_PREFIX_LEN from {SITE}.",
        ),
    ),
    "debug_dead": (
        {"NCCL_DEBUG_SUBSYS": "NET", "NCCL_DEBUG": "WARN"},
        {},
        (
            "info",
            "NCCL_DEBUG_SUBSYS, NCCL_DEBUG",
            "NCCL_DEBUG_SUBSYS=NET, NCCL_DEBUG=WARN: subsystems apply to the level INFO only",
            "NCCL_DEBUG=INFO for a check, or no NCCL_DEBUG_SUBSYS",
            f"Remove NCCL_DEBUG_SUBSYS from {SITE}.",
        ),
    ),
    "pkey_is_no_index": (
        {"NCCL_IB_PKEY": "0x8001"},
        {},
        (
            "error",
            "NCCL_IB_PKEY",
            "NCCL_IB_PKEY=0x8001 looks like a P_Key",
            "the index of the key in the port's table",
            "Find the key in /sys/class/infiniband/DEVICE/ports/1/pkeys, and set its index.",
        ),
    ),
    "pkey_index_dead": (
        {"NCCL_IB_PKEY": "1", "NCCL_IB_PKEY_VALUE": "0x8001"},
        {"version": "2.31.2"},
        (
            "warning",
            "NCCL_IB_PKEY_VALUE, NCCL_IB_PKEY",
            "NCCL_IB_PKEY_VALUE=0x8001, NCCL_IB_PKEY=1: the index has no effect",
            "one of them",
            f"Remove NCCL_IB_PKEY from {SITE}.",
        ),
    ),
    "devices_not_known": (
        {"NCCL_IB_HCA": "=mlx5_0"},
        {"facts": {}},
        (
            "unknown",
            "NCCL_IB_HCA",
            "the facts have no devices",
            "devices to compare with",
            "Read the host with rdma.cluster.rdma_facts.",
        ),
    ),
    "hca_missing": (
        {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_7:1,mlx5_1:2"},
        {},
        (
            "error",
            "NCCL_IB_HCA",
            "NCCL_IB_HCA==mlx5_0:1,mlx5_7:1,mlx5_1:2: mlx5_7:1, mlx5_1:2 not found; the host has mlx5_0, mlx5_1",
            "existing devices and ports",
            f"Correct NCCL_IB_HCA in {SITE}.",
        ),
    ),
    "hca_prefix": (
        {"NCCL_IB_HCA": "mlx5_0,mlx5_1:1"},
        {"facts": MANY},
        (
            "error",
            "NCCL_IB_HCA",
            "NCCL_IB_HCA=mlx5_0,mlx5_1:1: mlx5_1 also means mlx5_10",
            "whole names, after a =",
            f"Write NCCL_IB_HCA==mlx5_0,mlx5_1:1 in {SITE}.",
        ),
    ),
    "hca_unused": (
        {"NCCL_IB_HCA": "=mlx5_0"},
        {"facts": {**FACTS, "devices": {"mlx5_0": device(state="DOWN"), "mlx5_1": device()}}},
        (
            "error",
            "NCCL_IB_HCA",
            "NCCL_IB_HCA==mlx5_0 leaves no ACTIVE port: mlx5_0/1 is DOWN, mlx5_1/1 is ACTIVE",
            "an ACTIVE port",
            "Run the link stage. Its gate shows why a port is not ACTIVE.",
        ),
    ),
    "hca_left_out": (
        {"NCCL_IB_HCA": "mlx5"},
        {"leave_out": {"mlx5_1": "storage, rail s0"}},
        (
            "error",
            "NCCL_IB_HCA",
            "NCCL_IB_HCA=mlx5: NCCL uses mlx5_1 (storage, rail s0)",
            "devices of compute rails only",
            "List the devices of the compute rails in NCCL_IB_HCA, after a =.",
        ),
    ),
    "hca_mixed": (
        {"NCCL_IB_HCA": "mlx5"},
        {"facts": {**FACTS, "devices": {"mlx5_0": device(), "mlx5_1": device(link_layer="InfiniBand")}}},
        (
            "error",
            "NCCL_IB_HCA",
            "NCCL_IB_HCA=mlx5: Ethernet: mlx5_0/1; InfiniBand: mlx5_1/1",
            "ports of one link layer",
            "List the ports of one link layer in NCCL_IB_HCA, after a =.",
        ),
    ),
    "gid_index_missing": (
        {"NCCL_IB_GID_INDEX": "3"},
        {"facts": {**FACTS, "devices": {"mlx5_0": device(), "mlx5_1": device(gids=(1, 2))}}},
        (
            "error",
            "NCCL_IB_GID_INDEX",
            "NCCL_IB_GID_INDEX=3: mlx5_1/1 has no RoCE v2 GID of an IP address there",
            "such a GID on every port",
            "Find it with `show_gids` or `rdma link show`, or use NCCL 2.21 or newer.",
        ),
    ),
    "interface_missing": (
        {"NCCL_SOCKET_IFNAME": "=ens1"},
        {},
        (
            "error",
            "NCCL_SOCKET_IFNAME",
            "NCCL_SOCKET_IFNAME==ens1: not found; the host has eth0, lo",
            "an existing interface",
            f"Correct NCCL_SOCKET_IFNAME in {SITE}.",
        ),
    ),
    "interface_inside": (
        {"NCCL_SOCKET_IFNAME": "docker"},
        {"facts": INSIDE},
        (
            "error",
            "NCCL_SOCKET_IFNAME",
            "NCCL_SOCKET_IFNAME=docker: docker0 does not lead to other hosts",
            "an interface that leads to the other hosts",
            f"Set an interface that the other hosts can reach in {SITE}; `ip -br address` lists them.",
        ),
    ),
    "interface_of_rail": (
        {"NCCL_SOCKET_IFNAME": "eth"},
        {"rail_interfaces": {"eth0": "rail0"}},
        (
            "warning",
            "NCCL_SOCKET_IFNAME",
            "NCCL_SOCKET_IFNAME=eth: job setup traffic uses the data plane, eth0 (rail0)",
            "an interface that is not a rail",
            f"Set NCCL_SOCKET_IFNAME to the management interface in {SITE}, if the other hosts can reach it.",
        ),
    ),
    "collnet_on_roce": (
        {"NCCL_COLLNET_ENABLE": "1"},
        {},
        (
            "error",
            "NCCL_COLLNET_ENABLE",
            "NCCL_COLLNET_ENABLE=1, and every port is RoCE",
            "InfiniBand, whose switches reduce (SHARP)",
            f"Remove NCCL_COLLNET_ENABLE from {SITE}.",
        ),
    ),
    "sockets_forced": (
        {"NCCL_IB_DISABLE": "1"},
        {},
        ("error", "NCCL_IB_DISABLE", "NCCL_IB_DISABLE=1: all traffic uses TCP", "RDMA", f"Remove NCCL_IB_DISABLE from {SITE}."),
    ),
    "gpudirect_off": (
        {"NCCL_NET_GDR_LEVEL": "LOC"},
        {"gpudirect": "dmabuf"},
        (
            "error",
            "NCCL_NET_GDR_LEVEL",
            "NCCL_NET_GDR_LEVEL=LOC: no GPUDirect RDMA, but dmabuf is planned",
            "GPUDirect RDMA",
            f"Remove NCCL_NET_GDR_LEVEL from {SITE}.",
        ),
    ),
    "dmabuf_off": (
        {"NCCL_DMABUF_ENABLE": "0"},
        {},
        (
            "error",
            "NCCL_DMABUF_ENABLE",
            "NCCL_DMABUF_ENABLE=0, but nvidia_peermem is not loaded: no GPUDirect RDMA",
            "DMA-BUF, or nvidia_peermem",
            f"Remove NCCL_DMABUF_ENABLE from {SITE}.",
        ),
    ),
    "traffic_class_differs": (
        {"NCCL_IB_TC": "104"},
        {"traffic_class": 106},
        ("error", "NCCL_IB_TC", "NCCL_IB_TC=104", "106, as in the RoCE profile", f"Set NCCL_IB_TC=106 in {SITE}."),
    ),
    "service_level_with_dscp": (
        {"NCCL_IB_SL": "3"},
        {"trust": "dscp"},
        (
            "warning",
            "NCCL_IB_SL",
            "NCCL_IB_SL=3, but switches and NICs use DSCP",
            "NCCL_IB_TC, and no NCCL_IB_SL",
            f"Remove NCCL_IB_SL from {SITE}.",
        ),
    ),
    "rails_crossed": (
        {"NCCL_CROSS_NIC": "1"},
        {"rails_apart": True},
        (
            "error",
            "NCCL_CROSS_NIC",
            "NCCL_CROSS_NIC=1, but no network connects the rails",
            "NCCL_CROSS_NIC=0",
            f"Set NCCL_CROSS_NIC=0 in {SITE}.",
        ),
    ),
}
#: By rule: cases that differ from the one above by what makes them good.
SILENT: dict[str, list[tuple[dict[str, str], dict[str, Any]]]] = {
    "gid_index_dead": [
        ({"NCCL_IB_GID_INDEX": "-1", "NCCL_IB_ADDR_RANGE": "10.0.0.0/8"}, {}),
        ({"NCCL_IB_GID_INDEX": "3"}, {}),
        ({"NCCL_IB_GID_INDEX": "", "NCCL_IB_ADDR_RANGE": "10.0.0.0/8"}, {}),
    ],
    "gid_index_fixed": [({"NCCL_IB_GID_INDEX": "3"}, {"version": "2.20.5"}), ({"NCCL_IB_GID_INDEX": "-1"}, {"version": "2.21.5"})],
    "ib_disabled_dead": [({"NCCL_IB_DISABLE": "0", "NCCL_IB_TIMEOUT": "22"}, {}), ({"NCCL_IB_DISABLE": "1", "NCCL_NET": "IB"}, {})],
    "p2p_level_dead": [({"NCCL_P2P_DISABLE": "0", "NCCL_P2P_LEVEL": "NVL"}, {}), ({"NCCL_P2P_DISABLE": "1"}, {})],
    "nrings_dead": [({"NCCL_MAX_NRINGS": "16", "NCCL_MIN_NCHANNELS": "8"}, {})],
    "min_over_max": [({"NCCL_MIN_CTAS": "16", "NCCL_MAX_CTAS": "16"}, {}), ({"NCCL_MIN_CTAS": "32", "NCCL_MAX_NCHANNELS": "16"}, {})],
    "split_without_qps": [
        ({"NCCL_IB_SPLIT_DATA_ON_QPS": "1", "NCCL_IB_QPS_PER_CONNECTION": "4"}, {}),
        ({"NCCL_IB_SPLIT_DATA_ON_QPS": "0"}, {}),
    ],
    "ar_threshold_dead": [({"NCCL_IB_AR_THRESHOLD": "0", "NCCL_IB_OOO_RQ": "0"}, {})],
    "too_many_sockets": [({"NCCL_SOCKET_NTHREADS": "8", "NCCL_NSOCKS_PERTHREAD": "8"}, {}), ({"NCCL_NSOCKS_PERTHREAD": "64"}, {})],
    "algo_without_ring": [
        ({"NCCL_ALGO": "Tree"}, {"version": "2.23.4"}),
        ({"NCCL_ALGO": "Tree,Ring"}, {}),
        ({"NCCL_ALGO": "allreduce:tree"}, {}),
        ({"NCCL_ALGO": "^tree"}, {}),
    ],
    "nvls_with_shared_gpus": [({"NCCL_NVLS_ENABLE": "2", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}, {})],
    "range_of_other_family": [
        ({"NCCL_IB_ADDR_RANGE": "fd00::/8", "NCCL_IB_ADDR_FAMILY": "AF_INET6"}, {}),
        ({"NCCL_IB_ADDR_RANGE": "10.0.0.0/8"}, {}),
        ({"NCCL_IB_ADDR_RANGE": "nowhere/8"}, {}),
    ],
    "prefix_length_dead": [({"NCCL_IB_SUBNET_PREFIX_LEN": "24", "NCCL_IB_SUBNET_AWARE_ROUTING": "1"}, {})],
    "debug_dead": [({"NCCL_DEBUG_SUBSYS": "NET", "NCCL_DEBUG": "info"}, {}), ({"NCCL_DEBUG": "WARN"}, {})],
    "pkey_is_no_index": [({"NCCL_IB_PKEY": "1"}, {})],
    "pkey_index_dead": [
        ({"NCCL_IB_PKEY": "1", "NCCL_IB_PKEY_VALUE": "-1"}, {}),
        ({"NCCL_IB_PKEY": "1", "NCCL_IB_PKEY_VALUE": "0x8001"}, {"version": "2.30.7"}),
        ({"NCCL_IB_PKEY_VALUE": "0x8001"}, {}),
    ],
    "devices_not_known": [({}, {"facts": {}}), ({"NCCL_IB_HCA": "=mlx5_0"}, {})],
    "hca_missing": [({"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1"}, {}), ({"NCCL_IB_HCA": "mlx5"}, {}), ({"NCCL_IB_HCA": "="}, {})],
    "hca_prefix": [
        ({"NCCL_IB_HCA": "=mlx5_0,mlx5_1:1"}, {"facts": MANY}),
        ({"NCCL_IB_HCA": "mlx5_1,mlx5_10"}, {"facts": MANY}),
        ({"NCCL_IB_HCA": "mlx5"}, {"facts": MANY}),
        ({"NCCL_IB_HCA": "mlx5_1"}, {}),
    ],
    "hca_unused": [({"NCCL_IB_HCA": "=mlx5_0"}, {}), ({"NCCL_IB_HCA": "=mlx5_9"}, {})],
    "hca_left_out": [({"NCCL_IB_HCA": "=mlx5_0"}, {"leave_out": {"mlx5_1": "storage"}}), ({"NCCL_IB_HCA": "mlx5"}, {})],
    "hca_mixed": [
        ({"NCCL_IB_HCA": "=mlx5_0"}, {"facts": {**FACTS, "devices": {"mlx5_0": device(), "mlx5_1": device(link_layer="InfiniBand")}}}),
        ({}, {"facts": {**FACTS, "devices": {"mlx5_0": device(), "mlx5_1": device(link_layer="InfiniBand", state="DOWN")}}}),
    ],
    "gid_index_missing": [({"NCCL_IB_GID_INDEX": "3"}, {}), ({"NCCL_IB_GID_INDEX": "9"}, {"facts": INFINIBAND})],
    "interface_missing": [
        ({"NCCL_SOCKET_IFNAME": "=eth0"}, {}),
        ({"NCCL_SOCKET_IFNAME": "eth"}, {}),
        ({"NCCL_SOCKET_IFNAME": "^lo"}, {}),
        ({"NCCL_SOCKET_IFNAME": "=eth0:1"}, {}),
        ({"NCCL_SOCKET_IFNAME": "e"}, {"facts": {}}),
    ],
    "interface_inside": [
        ({"NCCL_SOCKET_IFNAME": "=eth0"}, {}),
        ({"NCCL_SOCKET_IFNAME": "^docker0"}, {"facts": INSIDE}),
        ({"NCCL_SOCKET_IFNAME": "=eth0,docker0"}, {"facts": INSIDE}),
        ({"NCCL_SOCKET_IFNAME": "=lo"}, {"facts": {}}),
    ],
    "interface_of_rail": [
        ({"NCCL_SOCKET_IFNAME": "=eth0"}, {}),
        ({"NCCL_SOCKET_IFNAME": "^eth0"}, {"rail_interfaces": {"eth0": "rail0"}}),
        ({"NCCL_SOCKET_IFNAME": "=eth1"}, {"rail_interfaces": {"eth0": "rail0"}}),
    ],
    "collnet_on_roce": [({"NCCL_COLLNET_ENABLE": "1"}, {"facts": INFINIBAND}), ({"NCCL_COLLNET_ENABLE": "0"}, {})],
    "sockets_forced": [
        ({"NCCL_IB_DISABLE": "0"}, {}),
        ({"NCCL_IB_DISABLE": "1"}, {"facts": {"devices": {}}}),
        ({"NCCL_IB_DISABLE": "1", "NCCL_NET_PLUGIN": "mesh"}, {}),
        ({"NCCL_NET": "IB"}, {}),
    ],
    "gpudirect_off": [({"NCCL_NET_GDR_LEVEL": "LOC"}, {"gpudirect": "none"}), ({"NCCL_NET_GDR_LEVEL": "PHB"}, {"gpudirect": "dmabuf"})],
    "dmabuf_off": [
        ({"NCCL_DMABUF_ENABLE": "0"}, {"facts": {**FACTS, "modules": ["nvidia_peermem"]}}),
        ({"NCCL_DMABUF_ENABLE": "0"}, {"gpudirect": "none"}),
        ({"NCCL_DMABUF_ENABLE": "1"}, {}),
    ],
    "traffic_class_differs": [({"NCCL_IB_TC": "0x6a"}, {"traffic_class": 106}), ({"NCCL_IB_TC": "104"}, {})],
    "service_level_with_dscp": [
        ({"NCCL_IB_SL": "0"}, {"trust": "dscp"}),
        ({"NCCL_IB_SL": "3"}, {"trust": "pcp"}),
        ({"NCCL_IB_SL": "3"}, {"trust": "dscp", "service_level": 3}),
    ],
    "rails_crossed": [({"NCCL_CROSS_NIC": "0"}, {"rails_apart": True}), ({"NCCL_CROSS_NIC": "1"}, {"rails_apart": False}), ({}, {})],
}


def test_every_rule_has_a_case_in_which_it_speaks_and_one_in_which_it_does_not() -> None:
    assert set(SPEAKS) == set(SILENT) == set(ALL_RULES)
    assert all(SILENT.values())


@pytest.mark.parametrize("rule", sorted(SPEAKS))
def test_a_rule_speaks(rule: str) -> None:
    variables, more, words = SPEAKS[rule]
    severity, variable, observed, expected, remedy = words
    assert problems(rule, variables, **more) == [Problem(rule, severity, variable, SITE, observed, expected, remedy)]


@pytest.mark.parametrize(("rule", "number"), [(rule, number) for rule in sorted(SILENT) for number in range(len(SILENT[rule]))])
def test_a_rule_is_silent(rule: str, number: int) -> None:
    variables, more = SILENT[rule][number]
    assert problems(rule, variables, **more) == []


def test_a_network_of_tcp_and_what_needs_gpudirect_without_a_plan() -> None:
    assert [problem.observed for problem in problems("sockets_forced", {"NCCL_NET": "socket"})] == ["NCCL_NET=socket: all traffic uses TCP"]
    (problem,) = problems("gpudirect_off", {"NCCL_NET_GDR_LEVEL": "0", "NCCL_DMABUF_ENABLE": "1"})
    assert problem.observed == "NCCL_NET_GDR_LEVEL=0, NCCL_DMABUF_ENABLE=1: no GPUDirect RDMA"


@pytest.mark.parametrize(
    ("rule", "plan", "words"),
    [
        ("traffic_class_differs", {"traffic_class": 106}, "NCCL_IB_TC is not set"),
        ("rails_crossed", {"rails_apart": True}, "NCCL_CROSS_NIC is not set, but no network connects the rails"),
    ],
)
def test_what_should_be_set_and_is_not_is_a_warning_about_every_job(rule: str, plan: dict[str, Any], words: str) -> None:
    (problem,) = problems(rule, {}, **plan)
    assert (problem.severity, problem.where, problem.observed) == ("warning", "every other job", words)


def test_the_devices_of_all_rails_are_judged_without_a_list_of_them_too() -> None:
    (problem,) = problems("hca_left_out", {}, leave_out={"mlx5_1": "management"})
    assert (problem.severity, problem.observed) == ("error", "NCCL_IB_HCA is not set: NCCL uses mlx5_1 (management)")


@pytest.mark.parametrize("known", [None, {}])
def test_a_port_without_a_gid_of_roce_v2(known: dict[str, int] | None) -> None:
    devices = {"mlx5_0": device()}
    devices["mlx5_0"]["ports"]["1"]["rocev2"] = known
    (problem,) = problems("gid_index_missing", {"NCCL_IB_GID_INDEX": "3"}, {**FACTS, "devices": devices})
    assert problem.severity == "error"


def test_what_an_exclusion_does_not_find_is_a_warning() -> None:
    (problem,) = problems("hca_missing", {"NCCL_IB_HCA": "^=mlx5_7"})
    assert problem.severity == "warning"


@pytest.mark.parametrize("facts", [{"netdevs": {"eth0": {}}}, {"netdevs": {"eth0": {}}, "interfaces": None}, {}])
def test_an_interface_is_not_looked_for_among_nics(facts: dict[str, Any]) -> None:
    """Bonds, VLANs and bridges are none of them."""
    assert problems("interface_missing", {"NCCL_SOCKET_IFNAME": "=bond0"}, facts) == []


def test_facts_that_do_not_report_are_unknown() -> None:
    (modules,) = problems("dmabuf_off", {"NCCL_DMABUF_ENABLE": "0"}, {})
    assert modules.severity == "unknown"
    assert problems("dmabuf_off", {"NCCL_DMABUF_ENABLE": "0"}, {"stack": {"modules": {"nvidia_peermem": {}}}}) == []
