# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The normalized intent of a host, as plugin_utils/_intent/read.py makes it from an inventory: docs/intent.md explains each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class IpoibChild(TypedDict):
    address: str | None
    mtu_bytes: int | None


class Ipoib(TypedDict):
    mode: str
    children: dict[str, IpoibChild]


class VlanIntent(TypedDict):
    """The key `vlan` of a rail."""

    id: int
    pcp: int | None


class BondIntent(TypedDict):
    """The key `bond` of a rail."""

    members: list[dict[str, str]]
    mode: str
    lacp_rate: str
    hash: str


class Rail(TypedDict):
    name: str
    nic: dict[str, str]
    link_layer: str
    rate_gbps: float | None
    plane: str
    role: str
    address: str | None
    addresses: list[str]
    gateway: str | None
    routes: list[str]
    mtu_bytes: int | None
    soft: bool
    ipoib: Ipoib | None
    vlan: VlanIntent | None
    bond: BondIntent | None


class ManagerQos(TypedDict):
    enabled: bool
    max_vls: int
    high_limit: int
    vlarb_high: str | None
    vlarb_low: str | None
    sl2vl: str | None


class ManagerLog(TypedDict):
    flags: int
    max_size_mb: int
    flush: bool


class SubnetManager(TypedDict):
    kind: str
    hosts: list[str]
    routing: str | None
    lmc: int
    sweep_interval_seconds: int
    subnet_prefix: str
    m_key_protection_level: int
    m_key_lease_seconds: int
    default_membership: str | None
    switch: str | None
    partition_enforcement: str
    qos: ManagerQos
    log: ManagerLog
    sharp: bool


class RoutedSwitch(TypedDict):
    """A switch of a routed plane that differs from the plane."""

    syntax: str | None
    port_prefix: str | None
    port_lanes: int | None


class RoutingIntent(TypedDict):
    """The key `routing` of a plane. loopbacks, host_subnets: IPv4 networks."""

    kind: str
    asn_base: int
    spine_asn: str
    loopbacks: str
    host_subnets: str
    leaf_prefix_length: int
    port_prefix: str
    port_lanes: int | None
    syntax: str
    switches: dict[str, RoutedSwitch]
    hosts_peer: bool
    bfd: bool
    maximum_paths: int
    hash_policy: str


class Plane(TypedDict):
    subnet_manager: SubnetManager | None
    ratio: float | None
    plan: str | None
    routing: RoutingIntent | None


class MeshIntent(TypedDict):
    """cables: "discover", or the two ends of each cable, "spark1/0000:01:00.0"."""

    pool: str
    prefix_length: int
    cables: str | list[list[str]]


class FabricIntent(TypedDict):
    topology: str
    planes: dict[str, Plane]
    management: dict[str, str] | None
    shared_subnet: bool
    mesh: MeshIntent | None
    max_outage_ms: int | None


class Repository(TypedDict):
    url: str | None
    key: dict[str, str] | None
    key_checksum: str | None


class _Kept(TypedDict, total=False):
    kept: bool


class DriverIntent(_Kept):
    """kept: whether `stack: keep` was replaced by the host's current stack."""

    stack: str
    version: str | None
    source: dict[str, str] | None
    checksum: str | None
    add_kernel_support: bool | None
    with_nvmf: bool
    without_fw_update: bool
    force: bool
    flags: list[str]
    profile: str
    repository: Repository
    module_options: dict[str, str]
    hold_kernel: bool
    build_minutes: int


class FirmwareIntent(TypedDict):
    settings: dict[str, str | int]
    link_type: bool
    versions: dict[str, str]


class GpudirectIntent(TypedDict):
    path: str
    driver_version: str | None


class RingsIntent(TypedDict):
    rx: int | None
    tx: int | None


class CpuIntent(TypedDict):
    governor: str | None
    max_cstate_latency_us: int | None
    irqbalance: str | None


class PcieIntent(TypedDict):
    mrrs_bytes: int | str
    acs: str


class PtpIntent(TypedDict):
    rail: str | None
    interface: str | None
    domain: int
    transport: str
    timestamping: str
    max_offset_ns: int | None
    grandmaster: str | None


class TimeIntent(TypedDict):
    manage: bool
    servers: list[str]
    ptp: PtpIntent | None


class NetworkIntent(TypedDict):
    backend: str


class HostIntent(TypedDict):
    memlock_unlimited: bool
    open_files: int
    keep_ipc: bool
    sysctl: dict[str, str | int]
    rings: RingsIntent
    cpu: CpuIntent
    pcie: PcieIntent
    time: TimeIntent
    network: NetworkIntent


class DcqcnIntent(TypedDict):
    min_time_between_cnps: int | None
    clamp_tgt_rate: int | None
    clamp_tgt_rate_after_time_inc: int | None
    rpg_time_reset: int | None
    rpg_byte_reset: int | None
    rpg_threshold: int | None
    rpg_max_rate: int | None
    rpg_ai_rate: int | None
    rpg_hai_rate: int | None
    rpg_gd: int | None
    rpg_min_dec_fac: int | None
    rpg_min_rate: int | None
    rate_to_set_on_first_cnp: int | None
    dce_tcp_g: int | None
    dce_tcp_rtt: int | None
    rate_reduce_monitor_period: int | None
    initial_alpha_value: int | None


class SwitchIntent(TypedDict):
    syntax: str
    ports: list[str]
    mtu_bytes: int
    cable_length_m: int | None
    rate_gbps: float | None


class RoceIntent(TypedDict):
    priority: int
    dscp: int
    pfc: bool
    ecn: bool
    cnp_dscp: int
    cnp_priority: int
    rdma_percent: int
    dcbx: str
    cable_length_m: int | None
    dcqcn: DcqcnIntent
    switches: dict[str, SwitchIntent]


class Member(TypedDict):
    host: str | None
    guid: str | None
    membership: str | None


class Partition(TypedDict):
    """members: "all", or hosts and members."""

    key: int
    members: str | list[str | Member]
    membership: str
    shared: bool
    index0: bool
    ipoib: bool
    mtu: int
    sl: int


class PackageIntent(TypedDict):
    version: str | None
    source: dict[str, str] | None
    checksum: str | None


class NcclTestsIntent(TypedDict):
    version: str
    source: dict[str, str] | None
    checksum: str
    built: bool
    folder: str
    cuda_home: str
    mpi_home: str | None
    nccl_home: str | None
    architectures: list[int]
    build_minutes: int


class InstallIntent(TypedDict):
    kind: str
    packages: dict[str, PackageIntent]
    tests: NcclTestsIntent | None


class PluginIntent(TypedDict):
    kind: str
    name: str | None
    version: str | None
    source: dict[str, str] | None
    file: dict[str, str] | None
    checksum: str | None
    variables: dict[str, str | int]
    build_minutes: int
    transfer_seconds: int


class NcclIntent(TypedDict):
    conf_file: str
    environment_file: str
    version: str | None
    profile: str
    launchers: list[str]
    socket_ifname: str | None
    topology_file: str | None
    variables: dict[str, str | int]
    install: InstallIntent
    plugin: PluginIntent


class PairsIntent(TypedDict):
    command: str
    bidirectional: bool
    latency_command: str
    schedule: str
    partners: int
    seed: int | None
    size_bytes: int
    queue_pairs: int
    duration_seconds: int
    iterations: int | None
    deadline_seconds: int
    mtu_bytes: int | None
    qp_timeout: int | None
    gpu_memory: bool
    gpu_fail_below: float
    floor_gbps: float
    software_fail_below: float
    fail_below: float
    warn_below: float


class CollectivesIntent(TypedDict):
    operation: str
    also: list[str]
    gpus: int | None
    launcher: str
    launcher_program: str | None
    launcher_arguments: list[str]
    allow_root: bool
    address: str | None
    interface: str | None
    folder: str | None
    environment: dict[str, str | int]
    min_bytes: int
    max_bytes: int
    iterations: int
    timeout_seconds: int
    repeats: int
    min_busbw_gbps: float | None
    nvlink_busbw_gbps: float | None
    fail_below: float
    warn_below: float


class DrillFault(TypedDict):
    switch: str | None
    port: str | None
    host: str | None
    rail: str | None
    fault: str


class DrillIntent(TypedDict):
    allow: list[DrillFault]
    hold_seconds: int
    alerts_url: str | None


class SoakIntent(TypedDict):
    hours: float
    slice_seconds: int
    duty_percent: int
    errors_per_billion_packets: float
    stop_at_errors: int | None


class RecorderIntent(TypedDict):
    manage: bool
    state: str
    interfaces: list[str]
    size_mib: int


class GateIntent(TypedDict):
    policy: str
    max_failed_percent: float | None


class Rule(TypedDict):
    severity: str | None
    threshold: float | None
    silenced_by: str | None
    reason: str | None
    until: str | None


class SchedulerIntent(TypedDict):
    slurm_name: str | None
    kubernetes_name: str | None
    plane: str | None
    unproven: str
    kubernetes_labels: str


class MeasuredOutage(TypedDict):
    """What a drill has measured: the outage of one fault of a plane ("silence leaf1 swp1"), and the day, "2026-11-26"."""

    seconds: float
    fault: str
    day: str


class MetricsIntent(TypedDict):
    manage: bool
    textfile_dir: str | None
    interval_seconds: int
    hw_counters: bool
    infiniband_optics: bool
    labels: dict[str, str]


class _Added(TypedDict, total=False):
    allowed: Mapping[str, bool]
    outage: MeasuredOutage


class Intent(_Added):
    """allowed and outage are added by a gate.

    allowed: the effects of roles that the run allows ("reboot", "pcie_mrrs", …). outage: the longest one that a drill has measured on a
    plane of the host's compute rails.
    """

    preset: str | None
    rails: list[Rail]
    fabric: FabricIntent
    driver: DriverIntent
    firmware: FirmwareIntent
    gpudirect: GpudirectIntent
    host: HostIntent
    roce: RoceIntent | None
    partitions: dict[str, Partition]
    nccl: NcclIntent
    pairs: PairsIntent
    collectives: CollectivesIntent
    scheduler: SchedulerIntent
    recorder: RecorderIntent
    drill: DrillIntent
    soak: SoakIntent
    metrics: MetricsIntent
    gate: GateIntent
    checks: dict[str, Rule]


def subnet_manager_of(intent: Intent, plane: str) -> SubnetManager | None:
    """Return the subnet manager of a plane; None if the intent does not set it."""
    of = intent["fabric"]["planes"].get(plane)
    return of["subnet_manager"] if of is not None else None
