# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook that configures switches, with the real Ansible and FRR: what it shows, what it refuses, and that it keeps sessions.

The switches are reached by a program that runs Python inside their namespaces. systemd is missing there, so FRR runs already.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import clos
from lab.clos import Clos
from tests.verify.clos import MANAGEMENT, ROOT, SETTINGS, are_established, findings, is_clean, plan_of, summary, until


@pytest.fixture
def site(routed: Clos, tmp_path: Path) -> Path:
    """An inventory of the hosts, with the intent of our plan, and of the switches."""
    plane = plan_of(routed)
    keys = ("spine_asn", "loopbacks", "host_subnets")
    routing = {key: value for key, value in SETTINGS.items() if key in keys}
    fabric = {"planes": {"fab": {"plan": str(routed.folder.cabling), "routing": routing}}, "management": {"subnet": MANAGEMENT}}
    hosts: dict[str, Any] = {}
    for router in plane.routers.values():
        for port in router.host_ports:
            gateway = port.address.partition("/")[0]
            rail = {"name": port.device, "nic": {"mac": "52:54:00:00:00:01"}, "link_layer": "roce", "plane": "fab", "mtu_bytes": 9000}
            rails = [{**rail, "address": port.host_address, "gateway": gateway}]
            hosts[port.host] = {
                "rdma_rails": rails,
                "rdma_fabric": fabric,
                "rdma_driver": {"stack": "inbox"},
                **_access(routed, port.host, tmp_path),
            }
    switches = {name: _access(routed, name, tmp_path) for name in plane.routers}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "children": {"rdma_switches": {"hosts": switches}}}}))
    return tmp_path


def _access(network: Clos, node: str, folder: Path) -> dict[str, str]:
    program = folder / f"python-{node}"
    words = " ".join(network.argv(node, [sys.executable]))
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return {"ansible_connection": "local", "ansible_python_interpreter": str(program)}


def play(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    program = str(Path(sys.executable).parent / "ansible-playbook")
    argv = [program, "-i", "hosts.yml", str(ROOT / "playbooks/routed.yml"), "-e", "rdma_serial=4", *words]
    return subprocess.run(argv, cwd=site, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_the_role_repairs_a_switch_and_keeps_its_sessions(routed: Clos, site: Path) -> None:
    plane = plan_of(routed)
    dropped = {port: peer["connectionsDropped"] for port, peer in summary(routed, "leaf1").items()}
    routed.run("leaf1", "vtysh", "-c", "configure terminal", "-c", "router bgp 4200000101", "-c", "no bgp bestpath as-path multipath-relax")
    without = play(site)
    assert without.returncode == 0, without.stdout + without.stderr
    assert "frr_required" in without.stdout
    assert "add: router bgp 4200000101" in without.stdout
    assert not is_clean(findings(routed, plane))
    done = play(site, "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: is_clean(findings(routed, plane)), 10, 0.5)
    assert {port: peer["connectionsDropped"] for port, peer in summary(routed, "leaf1").items()} == dropped
    again = play(site, "-e", "frr_allowed=true")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "changed=1" not in again.stdout


def test_another_asn_and_a_foreign_file_are_refused(routed: Clos, site: Path) -> None:
    conf = routed.folder.node("leaf1") / "etc/frr.conf"
    planned = conf.read_text()
    clos.route(routed, {"leaf1": planned.replace("4200000101", "4200000199")})
    until(lambda: all(peer["state"] == "Established" for peer in summary(routed, "leaf1").values()), 20)
    foreign = routed.folder.node("leaf2") / "etc/frr.conf"
    foreign.write_text("router bgp 65000\n")
    done = play(site, "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the plan has ASN 4200000101 and the switch 4200000199" in done.stdout
    assert "/etc/frr/frr.conf has lines of others (router bgp 65000" in done.stdout
    assert foreign.read_text() == "router bgp 65000\n"
    clos.route(routed, {"leaf1": planned})
    until(lambda: are_established(routed, plan_of(routed)), 20)
