# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines whose kernel refuses writes to PCI configuration space: the site passes, and no unit is left that fails."""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import as_bytes
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import PcieRequest
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import PROGRAM, UNIT, service_files
from tests.verify.driver import Driver, Hosts
from tests.verify.site import ROOT, Site

NODES = ("node1", "node2")
LOCKED = "kernel lockdown (integrity) forbids writes to PCI configuration space"
FAILED = "systemctl list-units --failed --plain --no-legend"
UNIT_STATE = f"systemctl show --property=UnitFileState --value {UNIT}"


@pytest.fixture(scope="module")
def nic(hosts: Hosts) -> str:
    """The PCI address of a NIC of node1 that has MRRS."""
    return hosts.lab.plan.node("node1").rails[0].pci


def module(site: Site, host: str, name: str, **options: object) -> dict[str, object]:
    """The result of a module of ours on a host."""
    words = ["ansible", host, "-i", str(site.inventory), "-m", f"rdma.cluster.{name}", "-a", json.dumps(options), "-o"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, object] = json.loads(done.stdout.partition("=> ")[2])
    return result


def test_the_kernels_are_in_lockdown(hosts: Hosts) -> None:
    for node in NODES:
        assert "[integrity]" in hosts.run(node, "cat /sys/kernel/security/lockdown")


def test_the_site_passes_and_reports_lockdown(site: Site, runs: Driver, hosts: Hosts) -> None:
    done = site.run("site")
    assert done.returncode == 0, done.stdout
    for node in NODES:
        assert runs.bad(node) == []
        finding = runs.findings("preflight.lockdown")[node]
        assert finding["status"] == "ok"
        assert finding["observed"].startswith(
            "integrity (set by the kernel command line or configuration): the kernel refuses writes to PCI"
        )
        assert hosts.run(node, FAILED) == ""
        assert hosts.run(node, UNIT_STATE) in ("", "disabled")


def test_a_write_is_withheld_with_its_reason_and_no_service_is_installed(site: Site, hosts: Hosts, nic: str) -> None:
    before = hosts.run("node1", f"setpci -s {nic} CAP_EXP+8.w")
    result = module(site, "node1", "pcie_tuning", nics=[nic], mrrs_bytes=4096)
    assert result["changed"] is False
    assert result["withheld"]["mrrs"].endswith(LOCKED)  # type: ignore[index]
    assert hosts.run("node1", f"setpci -s {nic} CAP_EXP+8.w") == before
    assert hosts.run("node1", UNIT_STATE) in ("", "disabled")
    assert hosts.run("node1", FAILED) == ""


def test_a_service_from_before_lockdown_does_not_fail_and_the_host_stage_removes_it(site: Site, hosts: Hosts, nic: str) -> None:
    for file in service_files(PcieRequest((nic,), 4096, "leave")):
        hosts.write("node1", file.path, as_bytes(file.content or ""), file.mode)
    hosts.run("node1", f"systemctl daemon-reload; systemctl enable --quiet {UNIT}; systemctl restart {UNIT}")
    assert hosts.run("node1", f"systemctl is-active {UNIT}") == "active"
    assert hosts.run("node1", FAILED) == ""
    journal = hosts.run("node1", f"journalctl --output=cat --unit {UNIT}")
    assert f"{nic} keeps MRRS of" in journal
    assert LOCKED in journal
    done = site.run("host")
    assert done.returncode == 0, done.stdout
    assert hosts.run("node1", f"ls {PROGRAM} 2>&1 || true").endswith("No such file or directory")
    assert hosts.run("node1", UNIT_STATE) in ("", "disabled")
