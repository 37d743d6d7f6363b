# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook that configures switches, with the real Ansible and FRR: what it shows, what it refuses, and that it keeps sessions.

The switches are reached by a program that runs Python inside their namespaces. systemd is missing there, so FRR runs already.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab import clos
from lab.clos import Clos
from tests.verify.clos import plan_of, settle, summary, until
from tests.verify.clos_site import run_playbook, write_inventory


@pytest.fixture
def site(routed: Clos, tmp_path: Path) -> Path:
    write_inventory(routed, plan_of(routed), tmp_path)
    return tmp_path


def play(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_playbook(site, "routed.yml", "-e", "rdma_serial=4", *words)


def test_the_role_repairs_a_switch_keeps_its_sessions_and_refuses_another_asn_and_a_foreign_file(routed: Clos, site: Path) -> None:
    """Three switches differ in one run: one is repaired, two are refused."""
    planned = {name: (routed.folder.node(name) / "etc/frr.conf").read_text() for name in ("spine1", "spine2")}
    foreign = routed.folder.node("spine2") / "etc/frr.conf"
    clos.route(routed, {"spine1": planned["spine1"].replace("4200000001", "4200000099")})
    foreign.write_text("router bgp 65000\n")
    routed.run("leaf1", "vtysh", "-c", "configure terminal", "-c", "router bgp 4200000101", "-c", "no bgp bestpath as-path multipath-relax")
    until(lambda: all(peer["state"] == "Established" for peer in summary(routed, "spine1").values()), 20)
    dropped = {port: peer["connectionsDropped"] for port, peer in summary(routed, "leaf1").items()}
    without = play(site)
    assert without.returncode == 0, without.stdout
    assert "frr_required" in without.stdout
    assert "add: router bgp 4200000101" in without.stdout
    assert "multipath-relax" not in routed.run("leaf1", "vtysh", "-c", "show running-config")
    done = play(site, "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout
    assert "the plan has ASN 4200000001 and FRR 4200000099" in done.stdout
    assert "/etc/frr/frr.conf has lines of others (router bgp 65000" in done.stdout
    assert foreign.read_text() == "router bgp 65000\n"
    assert {port: peer["connectionsDropped"] for port, peer in summary(routed, "leaf1").items()} == dropped
    foreign.write_text(planned["spine2"])
    clos.route(routed, {"spine1": planned["spine1"]})
    settle(routed)
    again = play(site, "-e", "frr_allowed=true")
    assert again.returncode == 0, again.stdout
    # What the second run has done is done; what it refused is done now that the causes are gone.
    changed = dict(re.findall(r"^(\w+) +: ok=.*? changed=(\d+)", again.stdout, re.MULTILINE))
    assert changed == {"host1": "0", "host2": "0", "leaf1": "0", "leaf2": "0", "spine1": "1", "spine2": "1"}
    assert "frr_required" not in again.stdout
    settle(routed)
