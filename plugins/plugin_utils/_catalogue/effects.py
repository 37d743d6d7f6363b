# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The effects of each role on a live host or fabric, and their guards. tests/tools/docs.py renders docs/effects.md from them.

tests/unit/test_effects.py compares every row with the roles: it fails for a module without a row and for a row without its guard.
"""

from __future__ import annotations

from dataclasses import dataclass

#: The guards of effects.
ADDS = "adds"
REQUESTED = "requested"
IDLE = "idle"
ALLOWED = "allowed"
LOAD = "load"
GUARDS = {
    ADDS: "Interrupts nothing that runs, so it needs no permission.",
    REQUESTED: "Happens only if the intent requests it explicitly.",
    IDLE: "Happens on an idle host. On a host in use it happens only with the variable.",
    LOAD: "Happens on idle hosts without a valid proof, never in check mode. With the variable it also happens on hosts in use.",
    ALLOWED: "Never happens without the variable, and is refused on a host in use.",
}


@dataclass(frozen=True)
class Effect:
    """One effect of one role.

    does: its effect on the host or the fabric, and on jobs; modules: the modules in the role's tasks that have the effect;
    guard: one of GUARDS; allowed_by: the role's variable (IDLE, ALLOWED) or the key of the intent (REQUESTED), "" for ADDS;
    refused_by: the conditions that refuse it although it is allowed, "" if there are none.
    """

    role: str
    does: str
    modules: tuple[str, ...]
    guard: str
    allowed_by: str = ""
    refused_by: str = ""

    @property
    def name(self) -> str:
        """The effect's name in EFFECT_required and EFFECT_reason: the variable without `_allowed`."""
        return self.allowed_by.removesuffix("_allowed")


IN_USE = "a GPU process or a job on the host, or processes that cannot be read"
PLANE_IN_USE = f"{IN_USE}; the same on any host of the play that has a rail on the plane"
STACK_IN_USE = f"{IN_USE}; storage over RDMA; modules that others hold"
QUEUE_PAIRS = f"{IN_USE}; queue pairs of a user"
SYSTEMD = "ansible.builtin.systemd_service"
INSTALLERS = ("ansible.builtin.apt", "ansible.builtin.dnf")

EFFECTS = (
    Effect(
        "cpu", "changes the frequency governor, idle states or the tuned profile", ("rdma.cluster.cpu_power",), IDLE, "cpu_change_allowed"
    ),
    Effect("cpu", "starts or stops irqbalance, which moves interrupts between CPUs", (SYSTEMD,), IDLE, "cpu_change_allowed"),
    Effect(
        "recorder",
        "installs, restarts or removes the recorder, which only reads the host",
        ("rdma.cluster.recorder",),
        REQUESTED,
        "rdma_recorder",
    ),
    Effect(
        "driver",
        "installs user space or a driver on a host without a stack; keeps what is installed if `rdma_driver` is absent",
        (
            *INSTALLERS,
            *("rdma.cluster.driver_build", "rdma.cluster.ofed_install", "rdma.cluster.driver_files"),
            *("ansible.builtin.file", "rdma.cluster.send_file", "ansible.builtin.get_url"),
        ),
        REQUESTED,
        "rdma_driver",
        f"for `mlnx_ofed` and `doca`: {STACK_IN_USE}",
    ),
    Effect(
        "driver",
        "removes or replaces a stack or add-on modules, or with `force` packages that depend on the distribution's libraries",
        ("rdma.cluster.ofed_install", *INSTALLERS),
        ALLOWED,
        "driver_switch_allowed",
        STACK_IN_USE,
    ),
    Effect(
        "driver",
        "reloads the driver, which takes all its ports down",
        ("rdma.cluster.driver_reload",),
        ALLOWED,
        "driver_reload_allowed",
        f"{STACK_IN_USE}; the SSH session on that driver",
    ),
    Effect(
        "driver",
        "puts the distribution's kernels on hold",
        ("ansible.builtin.dpkg_selections", "community.general.dnf_versionlock"),
        REQUESTED,
        "rdma_driver.hold_kernel",
    ),
    Effect(
        "exporter",
        "installs a timer that reads the host and writes a file of metrics",
        ("rdma.cluster.exporter",),
        REQUESTED,
        "rdma_metrics.manage",
    ),
    Effect(
        "exporter",
        "installs Debian's node_exporter, which listens on TCP port 9100 of all addresses; not with `rdma_metrics.textfile_dir`",
        ("ansible.builtin.apt",),
        REQUESTED,
        "rdma_metrics.manage",
    ),
    Effect("link", "sets rails up that are down", ("rdma.cluster.rail_links",), ADDS),
    Effect(
        "nccl",
        "writes its own block of `nccl.conf`, the environment file and the launchers' files; jobs read them at their next start",
        ("rdma.cluster.managed_files",),
        ADDS,
    ),
    Effect(
        "nccl",
        "replaces lines in `nccl.conf` outside its own block",
        ("rdma.cluster.managed_files",),
        ALLOWED,
        "nccl_conf_replace_allowed",
        "nothing: a running job has read the file",
    ),
    Effect(
        "nccl",
        "installs NCCL, Open MPI and nccl-tests as in `rdma_nccl.install`, also versions older than the installed ones, and the network "
        "plugin of `rdma_nccl.plugin`",
        (
            *INSTALLERS,
            *("ansible.builtin.file", "ansible.builtin.copy", "ansible.builtin.get_url"),
            *("rdma.cluster.send_file", "rdma.cluster.nccl_tests_install", "rdma.cluster.nccl_plugin"),
        ),
        IDLE,
        "nccl_install_allowed",
    ),
    Effect(
        "nccl",
        "moves 4 MiB between pairs of hosts through the network plugin of `rdma_nccl.plugin`, which it loads as `nobody`",
        ("rdma.cluster.plugin_transfer",),
        LOAD,
        "rdma_load_allowed",
        IN_USE,
    ),
    Effect(
        "collectives",
        "runs nccl-tests, which loads GPUs, hosts and fabric",
        ("rdma.cluster.collectives",),
        LOAD,
        "rdma_load_allowed",
        IN_USE,
    ),
    Effect(
        "network",
        "adds a missing address, rule or route to a rail and writes its files for the network manager",
        ("rdma.cluster.rail_network",),
        ADDS,
    ),
    Effect(
        "network",
        "changes the MTU, removes an address, a rule or a route of its former plan, makes the network manager load files, or takes the "
        "interface over from another one",
        ("rdma.cluster.rail_network",),
        IDLE,
        "network_change_allowed",
        "Ansible's SSH session on the interface",
    ),
    Effect(
        "planes",
        "sets all rails of a host down for a few seconds, one host after the other, then up again with their addresses and routes",
        ("rdma.cluster.planes_proof",),
        ALLOWED,
        "planes_proof_allowed",
        f"{QUEUE_PAIRS}; Ansible's SSH session on a rail; a timer of systemd that cannot be armed",
    ),
    Effect(
        "pairs",
        "measures with perftest, which loads hosts and fabric",
        ("rdma.cluster.pair_start", "rdma.cluster.perftest_rounds"),
        LOAD,
        "rdma_load_allowed",
        IN_USE,
    ),
    Effect(
        "pairs_fabric_load",
        "measures all pairs across the spines at once, pairs across rails if requested, and tries to reach ports of other partitions, "
        "which loads a whole plane",
        ("rdma.cluster.pair_start", "rdma.cluster.perftest_rounds"),
        LOAD,
        "rdma_load_allowed",
        PLANE_IN_USE,
    ),
    Effect(
        "pairs_qos_load",
        "makes many hosts send to one at once, which loads a whole plane",
        ("rdma.cluster.pair_start", "rdma.cluster.perftest_rounds"),
        LOAD,
        "rdma_load_allowed",
        PLANE_IN_USE,
    ),
    Effect(
        "pcie",
        "writes the maximum read request size (MRRS) of live NICs",
        ("rdma.cluster.pcie_tuning",),
        ALLOWED,
        "pcie_mrrs_allowed",
        QUEUE_PAIRS,
    ),
    Effect(
        "firewall",
        "adds rules to the firewall that runs, and removes those of the role",
        ("rdma.cluster.firewall",),
        ALLOWED,
        "firewall_allowed",
        f"{QUEUE_PAIRS}; a second firewall that runs",
    ),
    Effect(
        "frr",
        "installs FRR on a switch of the group `rdma_switches` or on a host of a plane with `hosts_peer`, writes its configuration and "
        "kernel settings, and reloads or starts it",
        ("ansible.builtin.package", "rdma.cluster.router_config"),
        ALLOWED,
        "frr_allowed",
        f"{QUEUE_PAIRS}; hosts of the plane in use, if lines are removed; another ASN than that of the running sessions; a `frr.conf` of "
        "others, unless `frr_replace_allowed`",
    ),
    Effect("pcie", "disables ACS redirection of bridges", ("rdma.cluster.pcie_tuning",), ALLOWED, "pcie_acs_write_allowed", QUEUE_PAIRS),
    Effect(
        "subnet_manager",
        "installs opensm and starts it on a plane without a master, with the keys of `subnet_manager_keys`",
        ("ansible.builtin.copy", "ansible.builtin.package", "rdma.cluster.subnet_manager"),
        REQUESTED,
        "rdma_fabric.planes",
        "a master that the intent does not name, or one that cannot be read",
    ),
    Effect(
        "subnet_manager",
        "starts or changes opensm on a plane whose master the intent does not name, or this role did not configure",
        ("rdma.cluster.subnet_manager",),
        ALLOWED,
        "subnet_manager_takeover_allowed",
        "a GPU process or a job on a host of the plane; a single unit of opensm that runs on another port",
    ),
    Effect(
        "subnet_manager",
        "restarts opensm for settings that it reads only at startup; all routes are computed again",
        ("rdma.cluster.subnet_manager",),
        ALLOWED,
        "subnet_manager_restart_allowed",
        "a GPU process or a job on a host of the plane",
    ),
    Effect(
        "subnet_manager",
        "removes a P_Key or full membership from ports of the fabric, or changes its index, service level, MTU or IPoIB",
        ("rdma.cluster.subnet_manager",),
        ALLOWED,
        "subnet_manager_partition_change_allowed",
        "a GPU process or a job on a host that loses a key or membership; unknown losses",
    ),
    Effect(
        "subnet_manager",
        "changes keys, M_Key protection or QoS settings of a running opensm, which it writes to the ports of the fabric",
        ("rdma.cluster.subnet_manager",),
        ALLOWED,
        "subnet_manager_settings_change_allowed",
        "a GPU process or a job on a host of the plane",
    ),
    Effect(
        "subnet_manager",
        "stops an opensm of this role that the intent no longer has",
        ("rdma.cluster.subnet_manager",),
        ALLOWED,
        "subnet_manager_stop_allowed",
        "a GPU process or a job on a host of the plane",
    ),
    Effect(
        "firmware",
        "writes NIC firmware settings, which the NIC reads at its next boot",
        ("rdma.cluster.mlxconfig",),
        ALLOWED,
        "firmware_write_allowed",
        "nothing: a running job does not notice it",
    ),
    Effect("gpudirect", "loads nvidia_peermem, or stops it from loading at boot", ("rdma.cluster.peermem",), ADDS),
    Effect(
        "gpudirect",
        "builds the NVIDIA driver again by DKMS and replaces its installed modules",
        ("rdma.cluster.peermem",),
        ALLOWED,
        "gpudirect_rebuild_allowed",
        IN_USE,
    ),
    Effect("limits", "raises memlock and open files for new logins and services; re-executes systemd", ("rdma.cluster.limits",), ADDS),
    Effect(
        "nic_rings",
        "sets ring sizes, which resets the interface and takes its link down for about a second",
        ("rdma.cluster.nic_rings",),
        ALLOWED,
        "nic_rings_reset_allowed",
        QUEUE_PAIRS,
    ),
    Effect("rdma_modules", "loads kernel modules and writes their options for the next load", ("rdma.cluster.kernel_modules",), ADDS),
    Effect(
        "reboot",
        "reboots the host",
        ("ansible.builtin.reboot",),
        ALLOWED,
        "reboot_allowed",
        f"{QUEUE_PAIRS}; all after `reboot_before` has run",
    ),
    Effect(
        "roce_qos",
        "changes trust, DSCP, ECN, classes and RDMA-CM's ToS of a RoCE rail; traffic moves to another priority",
        ("rdma.cluster.roce_qos",),
        IDLE,
        "roce_qos_change_allowed",
        "a withheld change of PFC or global pause of the interface",
    ),
    Effect(
        "roce_qos",
        "changes PFC or global pause, which takes the link down for about a second",
        ("rdma.cluster.roce_qos",),
        ALLOWED,
        "roce_qos_link_toggle_allowed",
        QUEUE_PAIRS,
    ),
    Effect("soft_roce", "creates Soft-RoCE devices on rails with `soft: true`", ("rdma.cluster.soft_links",), REQUESTED, "rdma_rails"),
    Effect(
        "soft_roce",
        "deletes a Soft-RoCE device that is on another NIC or has a former name, and creates it again, which ends its queue pairs",
        ("rdma.cluster.soft_links",),
        IDLE,
        "soft_roce_replace_allowed",
    ),
    Effect(
        "sysctl",
        "sets kernel parameters for several rails and those of `rdma_host.sysctl`, if no other file sets another value",
        ("rdma.cluster.sysctl_settings",),
        ADDS,
    ),
    Effect(
        "sysctl",
        "changes the live value of a kernel parameter that another file in /etc or /run sets to another value",
        ("rdma.cluster.sysctl_settings",),
        IDLE,
        "sysctl_replace_allowed",
    ),
    Effect(
        "sysctl",
        "comments out lines in later files of /etc that set another value",
        ("rdma.cluster.sysctl_settings",),
        ALLOWED,
        "sysctl_replace_allowed",
        "nothing: a running job does not read the file",
    ),
    Effect(
        "time_sync",
        "installs chrony, which replaces the distribution's other time daemon, only if the intent requests it",
        ("ansible.builtin.package", "rdma.cluster.managed_files", "ansible.builtin.lineinfile"),
        REQUESTED,
        "rdma_host.time.manage",
    ),
    Effect("time_sync", "restarts chrony, which may step the clock", (SYSTEMD,), IDLE, "time_sync_restart_allowed"),
    Effect(
        "time_sync",
        "installs linuxptp, starts ptp4l on the interface of `rdma_host.time.ptp`, and restarts chrony, which then corrects the clock to "
        "PTP without a step",
        (
            *("ansible.builtin.package", "rdma.cluster.managed_files", "ansible.builtin.lineinfile", "ansible.builtin.command"),
            SYSTEMD,
        ),
        ALLOWED,
        "time_sync_ptp_allowed",
        f"{IN_USE}; another program that adjusts a clock",
    ),
)

INTRODUCTION = """\
# Effects

<!-- Generated by tests/tools/docs.py from plugins/plugin_utils/_catalogue/effects.py. -->

This page lists what each role does to a live host or fabric, and what guards it.
[Before you run this on a cluster with jobs](live_clusters.md) explains how to use it.

A host is **in use** if a process has a GPU open, or if Slurm or Grid Engine runs a job step on it. If the processes of a host cannot be
read, the host counts as in use. Modules read this on the host right before they act.

| guard | meaning |
|---|---|
"""


def render() -> str:
    """The text of docs/effects.md."""
    guards = "".join(f"| {name} | {meaning} |\n" for name, meaning in GUARDS.items())
    head = "\n| role | effect | guard | variable or key | refused by |\n|---|---|---|---|---|\n"
    rows = "".join(_row(each) for each in sorted(EFFECTS, key=lambda each: each.role))
    return f"{INTRODUCTION}{guards}{head}{rows}{WITHHELD}"


def _row(effect: Effect) -> str:
    variable = f"`{effect.allowed_by}`" if effect.allowed_by else ""
    return f"| {effect.role} | {effect.does} | {effect.guard} | {variable} | {effect.refused_by} |\n"


WITHHELD = """
Each variable is `false` by default. If an effect is withheld, the role does everything else. The summary at the end of the run then names
the effect, the hosts, the reason and the variable. In check mode the run shows what each effect would change.
"""
