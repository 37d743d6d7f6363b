# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the driver gate: packages, kernel modules, NICs, RDMA devices and device nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import RDMA_CM
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, no_nic_words, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

_NO_NIC = "the NIC is missing, which is an error unless its RDMA device exists"
declare(
    {
        "driver.package": Check(
            "driver",
            "each RDMA package",
            "`/var/lib/dpkg/status`, `rpm -qa`",
            "run the driver stage and read the error of apt or dnf on the host; with a vendor's stack, install it from that stack",
            sources=(reads.PACKAGES_OF, reads.DPKG, reads.RPM),
        ),
        "driver.module": Check(
            "driver",
            "each kernel module that the rails need",
            "`/sys/module`",
            "`modprobe NAME`; `dmesg` shows the reason",
            sources=(reads.MODULES,),
        ),
        "driver.nic": Check(
            "driver",
            "each planned rail's NIC",
            "`/sys/class/net/*/device`, `…/address`",
            "correct `nic`, or check the card; the finding lists the NICs of the host",
            repeats=("intent.nic",),
            sources=(
                reads.folder("/sys/class/net", absent_means=_NO_NIC),
                reads.link(f"{reads.NET}/device", absent_means=_NO_NIC),
            ),
        ),
        "driver.device": Check(
            "driver",
            "the RDMA device on that NIC",
            "`/sys/class/infiniband`",
            "`journalctl -u rdma-soft-links.service` or `dmesg`",
            sources=(reads.but(reads.DEVICES, absent_means="the device is missing, which is an error"),),
        ),
        "driver.node": Check(
            "driver",
            "the device node of each planned rail's RDMA device and its mode (0666), and that of `rdma_cm`",
            "`/sys/class/infiniband_verbs`, `/dev/infiniband`",
            "`modprobe ib_uverbs`; pass `/dev/infiniband` to a container; remove the udev rule that sets another mode",
            sources=(
                reads.folder("/dev/infiniband", absent_means="the node is missing, which is an error"),
                reads.file("/sys/class/infiniband_verbs/*/ibdev", absent_means="the device has no node, which is an error"),
                reads.but(reads.MODULES, absent_means="a module that is not loaded has no node; driver.module reports it"),
            ),
        ),
    }
)

STAGE = "driver"
NODE = "/dev/infiniband/uverbsN"
#: The mode with which every user can open a node, as the kernel sets it.
OPEN_TO_ALL = 0o666


def check_driver(host: str, rails: Sequence[Rail], facts: Facts, modules: Sequence[str]) -> list[Finding]:
    """Findings `driver.package`, `driver.module`, `driver.nic` and `driver.device` for one host.

    modules: names of the kernel modules that must be loaded.
    """
    stack = stack_of(facts)
    findings = _packages(host, stack.distribution)
    findings += [_module(host, name, stack.modules) for name in modules]
    for rail in resolve(rails, facts):
        findings += _rail(host, rail, facts)
    return findings


def _packages(host: str, distribution: Distribution) -> list[Finding]:
    # The driver stage does not mix packages of the distribution into a vendor's stack.
    help_words = (
        f"Install it on {host} from the repository or bundle of the installed driver stack. The driver stage does not add to that stack."
        if distribution.vendor
        else f"Run the driver stage for {host}. If that fails, read the error of apt or dnf in its output."
    )
    if distribution.packages is None:
        return [
            Finding(
                STAGE,
                "driver.package",
                host,
                "RDMA packages",
                UNKNOWN,
                "the package database cannot be read",
                "installed",
                f"Use a supported distribution on {host}.",
            )
        ]
    return [
        Finding(
            STAGE,
            "driver.package",
            host,
            f"package {name}",
            OK if version else ERROR,
            observed=version or "not installed",
            expected="installed",
            remedy="" if version else help_words,
        )
        for name, version in distribution.packages.items()
    ]


def _module(host: str, name: str, loaded: Collection[str]) -> Finding:
    there = name in loaded
    return Finding(
        STAGE, "driver.module", host, f"kernel module {name}", OK if there else ERROR,
        observed="loaded" if there else "not loaded",
        expected="loaded",
        remedy="" if there else f"On {host}, run `modprobe {name}`. If it fails, `dmesg` shows the reason.",
    )  # fmt: skip


def _rail(host: str, rail: ResolvedRail, facts: Facts) -> Iterator[Finding]:
    if rail.netdev is None and rail.device is None:
        yield _no_nic(host, rail, facts)
        return
    yield Finding(STAGE, "driver.nic", host, rail.subject, OK, "present", "present")
    if rail.device is not None and not rail.rail["soft"] and facts.devices[rail.device].software:
        yield _software(host, rail)
        return
    master = facts.netdevs[rail.netdev].master if rail.netdev is not None else None
    if rail.device is None and master is not None:
        yield _bonded(host, rail, master)
        return
    wanted = "a Soft-RoCE device on it" if rail.rail["soft"] else "an RDMA device on it"
    yield Finding(
        STAGE, "driver.device", host, rail.subject, OK if rail.device else ERROR,
        observed=f"RDMA device {rail.device}" if rail.device else "no RDMA device",
        expected=wanted,
        remedy="" if rail.device else _device_remedy(host, rail),
    )  # fmt: skip


def _no_nic(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    return Finding(
        STAGE, "driver.nic", host, rail.subject, ERROR,
        observed=no_nic_words(rail, facts),
        expected="present",
        remedy=f"1. Correct `nic` of {rail.name} in rdma_rails of {host}. 2. If it is right, check the card: run `lspci` on {host}.",
    )  # fmt: skip


def _bonded(host: str, rail: ResolvedRail, master: str) -> Finding:
    """Finding `driver.device` of a NIC in a bond, whose RDMA device belongs to the bond."""
    return Finding(
        STAGE, "driver.device", host, rail.subject, ERROR, f"no RDMA device of its own: {rail.netdev} is part of {master}",
        "a NIC outside any bond",
        f"Remove {rail.netdev} from {master} on {host}, or plan other NICs as rails. To use the bond as a rail, set `bond` of {rail.name}.",
    )  # fmt: skip


def _software(host: str, rail: ResolvedRail) -> Finding:
    return Finding(
        STAGE, "driver.device", host, rail.subject, ERROR, f"only {rail.device}, a software device", "the RDMA device of the NIC",
        f"1. On {host}, check `dmesg` for the driver of {rail.nic}. 2. Remove the software device: `rdma link delete {rail.device}`. "
        f"3. If you want Soft-RoCE, set `soft: true` for {rail.name}.",
    )  # fmt: skip


def _device_remedy(host: str, rail: ResolvedRail) -> str:
    if rail.rail["soft"]:
        return f"Read `journalctl -u rdma-soft-links.service` on {host}."
    return f"On {host}, check `dmesg` for errors of the driver of {rail.nic}."


def check_nodes(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `driver.node` for each planned rail that has an RDMA device, and for RDMA-CM: every user can open the node.

    If all nodes are missing, as in a container without /dev/infiniband, there is one finding for all. If ib_uverbs is not loaded,
    `driver.module` reports it.
    """
    nodes = [(rail, facts.devices[rail.device].uverbs) for rail in resolve(rails, facts) if rail.device is not None]
    if nodes and not any(node for _found, node in nodes):
        return [_no_nodes(host, [rail for rail, _uverbs in nodes], facts)]
    modes = facts.nodes
    found = [_node(host, rail.subject, node, f"none for {rail.device}", modes) for rail, node in nodes]
    if nodes and modes is not None and "rdma_ucm" in stack_of(facts).modules:
        found.append(_node(host, "RDMA-CM", RDMA_CM if RDMA_CM in modes else None, f"no {RDMA_CM}", modes))
    return found


def _node(host: str, subject: str, node: str | None, absent: str, modes: Mapping[str, int] | None) -> Finding:
    expected = RDMA_CM if subject == "RDMA-CM" else NODE
    if node is None:
        name = expected.rpartition("/")[2].rstrip("N")
        remedy = f"On {host}, run `ls /sys/class/infiniband_verbs` and `udevadm info --export-db | grep {name}`."
        return Finding(STAGE, "driver.node", host, subject, ERROR, absent, expected, remedy)
    mode = (modes or {}).get(node)
    if mode is None or mode & OPEN_TO_ALL == OPEN_TO_ALL:
        return Finding(STAGE, "driver.node", host, subject, OK, node, expected)
    name = node.rpartition("/")[2].rstrip("0123456789")
    return Finding(
        STAGE, "driver.node", host, subject, ERROR, f"{node} has mode {mode:04o}: not all users may open it",
        f"{expected}, mode {OPEN_TO_ALL:04o}",
        f"1. On {host}, find the rule that changes the mode: "
        f"`grep -rn {name} /etc/udev/rules.d /run/udev/rules.d /usr/lib/udev/rules.d`. 2. Remove it. "
        f"3. Run `udevadm trigger --action=change {node}`.",
    )  # fmt: skip


def _no_nodes(host: str, rails: Sequence[ResolvedRail], facts: Facts) -> Finding:
    subject = rails[0].subject if len(rails) == 1 else "every rail"
    if "ib_uverbs" not in stack_of(facts).modules:
        return Finding(STAGE, "driver.node", host, subject, NOT_APPLICABLE, "ib_uverbs is not loaded: see driver.module", NODE)
    remedy = f"1. If {host} is a container, pass /dev/infiniband to it. 2. Else run `ls -l /dev/infiniband` and `modprobe ib_uverbs` there."
    names = ", ".join(str(rail.device) for rail in rails)
    return Finding(STAGE, "driver.node", host, subject, ERROR, f"none for {names}", NODE, remedy)
