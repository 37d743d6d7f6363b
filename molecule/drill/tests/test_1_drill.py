# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The convergence drill with the real FRR, kernel, nftables and systemd: what it refuses, what it measures, and that nothing stays.

The nodes are network namespaces, each with its own systemd. Only the switch hardware and the NICs are missing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from lab import clos
from lab.clos import Clos
from tests.verify.clos import findings, is_clean, plan_of, texts, until
from tests.verify.clos_site import environment, playbook_argv, run_playbook, write_inventory

CUT, SILENCE = {"switch": "leaf1", "port": "swp1", "fault": "cut"}, {"switch": "leaf1", "port": "swp1", "fault": "silence"}
STOP, DOWN = {"switch": "spine1", "fault": "stop_frr"}, {"switch": "spine2", "fault": "ports_down"}
#: The timer ends a fault so long after the drill should have, in seconds (drill.py, TIMER_EXTRA_SECONDS).
TIMER_SECONDS = 60


def drill(network: Clos, folder: Path, *allow: dict[str, str], hold: int = 6, timeout: int = 14, bfd: bool = True) -> Path:
    """Write an inventory with these permissions. timeout: NCCL_IB_TIMEOUT."""
    settings = {"allow": list(allow), "hold_seconds": hold}
    write_inventory(
        network, plan_of(network, bfd=bfd), folder, rdma_drill=settings, rdma_nccl={"variables": {"NCCL_IB_TIMEOUT": str(timeout)}}
    )
    return folder


def with_an_unreachable_host(folder: Path) -> Path:
    """Add host9, a copy of host2 that does not answer."""
    inventory = yaml.safe_load((folder / "hosts.yml").read_text())
    hosts = inventory["all"]["hosts"]
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    hosts["host9"] = {**hosts["host2"], **away}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return folder


def converge(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_playbook(folder, "drill.yml", "--tags", "converge", *words, **more)


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the name of each step → its record in the run folder."""
    record = json.loads((folder / "artifacts/latest/drill/results.json").read_text())
    return {step["name"]: step for step in record["steps"]}


def flags(network: Clos, switch: str) -> dict[str, bool]:
    """Return interface → whether it is enabled and has a carrier."""
    links = json.loads(network.run(switch, "ip", "-j", "link", "show"))
    return {link["ifname"]: {"UP", "LOWER_UP"} <= set(link["flags"]) for link in links if link["ifname"] != "lo"}


def is_untouched(network: Clos) -> bool:
    """Return whether no switch has a fault, a timer, rules or files of a drill."""
    for switch in network.shape.switches:
        timers = network.run(switch, "systemctl", "list-timers", "--no-legend", "rdma-drill-*").strip()
        rules = network.run(switch, "nft", "list", "tables").strip()
        files = network.run(switch, "sh", "-c", "ls /run/rdma-cluster/drill 2>/dev/null || true").strip()
        if timers or rules or files or not all(flags(network, switch).values()):
            return False
    return is_clean(findings(network, plan_of(network)))


def test_check_mode_lists_each_step_and_what_speaks_against_it(network: Clos, tmp_path: Path) -> None:
    wrong = [{**CUT, "switch": "leef1"}, {**CUT, "port": "swp33"}, {"switch": "leaf2", "fault": "stop_frr"}, {**SILENCE, "port": "swp9"}]
    done = converge(drill(network, tmp_path, CUT, STOP, *wrong), "--check", "--diff")
    assert done.returncode == 0, done.stdout
    for words in (
        "1. cut leaf1 swp1: set swp1 of leaf1 down (its carrier is lost at both ends), and measure between host1 (10.1.0.67) and host2",
        "2. stop_frr spine1: stop frr.service of spine1, and start it again",
        "rdma_drill.allow[2]: leef1 is not a switch of a routed plane; did you mean leaf1?",
        "rdma_drill.allow[3]: swp33 of leaf1 leads to a host, which has no other path. Name an uplink: swp1, swp2",
        "rdma_drill.allow[4]: stop_frr of leaf2 would cut its hosts off, because it is a leaf",
        "rdma_drill.allow[5]: silence needs the port of an uplink of leaf1: swp1, swp2; got swp9",
    ):
        assert words in done.stdout, done.stdout
    assert is_untouched(network)


def test_hosts_in_use_and_a_fabric_with_a_fault_refuse_the_drill(network: Clos, tmp_path: Path) -> None:
    job = tmp_path / "slurmstepd"
    shutil.copy(str(shutil.which("sleep")), job)
    clos.cut(network, "leaf2/2")
    with subprocess.Popen(network.argv("host2", [job, "300"])) as running:
        try:
            until(lambda: not is_clean(findings(network, plan_of(network))), 5)
            done = converge(with_an_unreachable_host(drill(network, tmp_path, CUT)))
        finally:
            network.run("host2", "pkill", "-x", "slurmstepd")
            running.wait(timeout=10)
            clos.restore(network, "leaf2/2")
    assert done.returncode != 0
    assert "The drill is refused, and nothing was changed" in done.stdout
    assert "host2 is in use: job process" in done.stdout
    assert "host9 was not read, or has failed in this run" in done.stdout
    assert "fabric.bgp of plane fab: leaf2 swp2 to spine2 swp2" in done.stdout
    assert not (tmp_path / "artifacts/latest/drill").exists()
    until(lambda: is_untouched(network), 20, 0.5)


def test_the_port_of_the_ssh_session_is_refused(network: Clos, tmp_path: Path) -> None:
    done = converge(drill(network, tmp_path, CUT), "--check", SSH_CONNECTION="fe80::9%swp1 50022 fe80::1%swp1 22")
    assert "Ansible's SSH session uses swp1: this fault would cut it." in done.stdout, done.stdout
    assert is_untouched(network)


def test_each_fault_is_measured_and_everything_is_as_before(network: Clos, tmp_path: Path) -> None:
    done = converge(drill(network, tmp_path, CUT, SILENCE, STOP, DOWN))
    print(done.stdout[done.stdout.index("TASK [Compare the outages") :])
    assert done.returncode == 0, done.stdout
    steps = results(tmp_path)
    assert list(steps) == ["cut leaf1 swp1", "silence leaf1 swp1", "stop_frr spine1", "ports_down spine2"]
    for name, step in steps.items():
        assert (step["problem"], step["healed"]) == ("", True), name
        assert min(step["flows"], step["lost"]) >= 1, name
    # BFD's 300 ms × 3, from the last packet that it received. A busy machine adds to each.
    assert 500 <= steps["silence leaf1 swp1"]["fault_ms"] <= 3000
    assert all(step["fault_ms"] <= 3000 for step in steps.values())
    assert steps["cut leaf1 swp1"]["fault_ms"] < steps["silence leaf1 swp1"]["fault_ms"]
    assert "s; NCCL gives up after 0.47 s (NCCL_IB_TIMEOUT=14, NCCL_IB_RETRY_CNT=7; NICs may take longer)" in done.stdout
    assert is_untouched(network)


def test_without_bfd_a_silent_cable_takes_as_long_as_the_hold_time(network: Clos, tmp_path: Path) -> None:
    def reload(*, bfd: bool) -> None:
        for name, text in texts(plan_of(network, bfd=bfd)).items():
            (network.folder.node(name) / "etc/frr.conf").write_text(text)
            network.run(name, "/usr/lib/frr/frr-reload.py", "--reload", "/etc/frr/frr.conf")
        until(lambda: is_clean(findings(network, plan_of(network, bfd=bfd))), 30, 0.5)

    reload(bfd=False)
    try:
        done = converge(drill(network, tmp_path, SILENCE, hold=20, timeout=18, bfd=False))
        print(done.stdout[done.stdout.index("TASK [Compare the outages") :])
        assert done.returncode == 0, done.stdout
        step = results(tmp_path)["silence leaf1 swp1"]
        assert (step["problem"], step["healed"], step["bfd"]) == ("", True, False)
        # BGP's hold time is 9 s, and the last keepalive was received up to 3 s before the fault.
        assert 5000 <= step["fault_ms"] <= 15000
    finally:
        reload(bfd=True)
    assert is_untouched(network)


def test_the_fault_of_a_killed_control_node_ends_by_the_timer(network: Clos, tmp_path: Path) -> None:
    folder, hold = drill(network, tmp_path, CUT, hold=5), 5
    with subprocess.Popen(
        playbook_argv("drill.yml", "--tags", "converge"), cwd=folder, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True
    ) as control:
        until(lambda: not flags(network, "leaf1")["swp1"], 60, 0.1)
        made = time.monotonic()
        os.killpg(control.pid, signal.SIGKILL)
    refused = converge(folder)
    assert refused.returncode != 0
    assert "fabric.bgp of plane fab: leaf1 swp1 to spine1 swp1" in refused.stdout
    assert not flags(network, "leaf1")["swp1"]
    until(lambda: flags(network, "leaf1")["swp1"], hold + TIMER_SECONDS + 10, 0.5)
    print(f"the timer ended the fault after {time.monotonic() - made:.0f} s")
    assert time.monotonic() - made >= hold
    until(lambda: is_clean(findings(network, plan_of(network))), 20, 0.5)
    left = converge(folder)
    assert left.returncode != 0
    assert "runs already: another drill measures here." in left.stdout, left.stdout
    assert "The fault is not made, because the streams of host1 and host2 do not run." in left.stdout
    restored = run_playbook(folder, "drill.yml", "--tags", "restore")
    assert restored.returncode == 0, restored.stdout
    assert is_untouched(network)
    again = converge(folder)
    assert again.returncode == 0, again.stdout
