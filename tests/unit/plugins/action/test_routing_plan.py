# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that plans the routing of switches, with real Ansible and hosts that nobody can reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from lab.clos_plan import ClosShape, cabling

ROOT = Path(__file__).parents[4]
ROUTING = {"loopbacks": "10.0.0.0/24", "host_subnets": "10.1.0.0/16"}


def plan(folder: Path, **hosts: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (folder / "cabling.yml").write_text(cabling(ClosShape()))
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    words = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "1"}
    program = str(Path(sys.executable).parent / "ansible-playbook")
    argv = [program, "-i", "hosts.yml", str(ROOT / "playbooks/plan.yml"), "--tags", "routing", "-e", "ansible_host=192.0.2.1"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **words})


def host(address: str, gateway: str, **routing: Any) -> dict[str, Any]:
    rail = {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "plane": "fab", "link_layer": "roce", "address": address, "gateway": gateway}
    return {"rdma_rails": [rail], "rdma_fabric": {"planes": {"fab": {"plan": "cabling.yml", "routing": {**ROUTING, **routing}}}}}


HOST1, HOST2 = host("10.1.0.67/31", "10.1.0.66"), host("10.1.1.67/31", "10.1.1.66")


def test_each_switch_gets_its_files(tmp_path: Path) -> None:
    done = plan(tmp_path, host1=HOST1, host2=HOST2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed=0") == 2
    folder = tmp_path / "artifacts/latest/plan"
    switches = ("leaf1", "leaf2", "spine1", "spine2")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"switch-{name}.{end}" for name in switches for end in ("frr.conf", "daemons", "sysctl", "sheet.txt", "ports.csv")
    )
    assert "router bgp 4200000102\n" in (folder / "switch-leaf2.frr.conf").read_text()
    assert "host2 rail0: address 10.1.1.67/31, gateway 10.1.1.66 (leaf2 swp33)" in done.stdout
    assert "ASN       4200000102\n" in (folder / "switch-leaf2.sheet.txt").read_text()


def test_a_switch_with_another_system_gets_files_of_its_own(tmp_path: Path) -> None:
    switches = {"leaf1": {"syntax": "nvue"}, "spine1": {"syntax": "sonic", "port_prefix": "Ethernet", "port_lanes": 8}}
    one, two = (host(f"10.1.{n}.67/31", f"10.1.{n}.66", switches=switches, bfd=False) for n in (0, 1))
    done = plan(tmp_path, host1=one, host2=two)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "artifacts/latest/plan"
    ends = {
        name: sorted(path.name.removeprefix(f"switch-{name}.") for path in folder.glob(f"switch-{name}.*")) for name in ("leaf1", "spine1")
    }
    assert ends == {"leaf1": ["ports.csv", "routing.nv", "sheet.txt"], "spine1": ["config_db.json", "frr.conf", "ports.csv", "sheet.txt"]}
    assert "leaf1   nvue    4200000101" in done.stdout


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    done = plan(tmp_path, host1=host("10.1.0.5/24", "10.1.0.1"), host2=host("10.1.1.67/31", "10.1.1.68"))
    assert done.returncode == 2
    assert "host1 rail0 has address 10.1.0.5/24" in done.stdout
    assert not (tmp_path / "artifacts/latest/plan").exists()


def test_hosts_that_disagree_are_refused(tmp_path: Path) -> None:
    done = plan(tmp_path, host1=HOST1, host2=host("10.1.1.67/31", "10.1.1.66", asn_base=64512))
    assert done.returncode == 2
    assert "plane fab: host2 and host1 have different routing or plans: a plane has one" in done.stdout
