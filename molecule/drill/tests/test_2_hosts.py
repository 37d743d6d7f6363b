# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drill of hosts with the real kernel, systemd and Prometheus: what it refuses, what it sees and when, and that nothing stays.

The hosts are network namespaces, each with its own systemd. Their rails are veth pairs with stand-ins for the NIC below them and for the
RDMA device on them, whose port state and GID table follow the interface.
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

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET
from lab.clos import Clos
from tests.verify.clos import plan_of, until
from tests.verify.clos_site import environment, playbook_argv, run_playbook, write_inventory
from tests.verify.prometheus import Prometheus
from tests.verify.rdma_standin import install, path_of

DOWN = {"host": "host1", "rail": "rail0", "fault": "rail_down"}
GID = {"host": "host1", "rail": "rail0", "fault": "gid_moved"}
MTU = {"host": "host1", "rail": "rail0", "fault": "mtu_1500"}
ADDRESS = {"host": "host2", "rail": "rail0", "fault": "address_lost"}
#: The timer ends a fault so long after the longest drill, in seconds (record.py, TIMER_EXTRA_SECONDS).
TIMER_SECONDS = 60
#: What the faults change on a host, and what an interrupted drill leaves there.
STATE = (
    "ip address show dev rail0 | grep -v valid_lft; ip -4 route show table all dev rail0; ip -6 route show table all dev rail0; "
    "grep . /sys/class/infiniband/rxe_rail0/ports/1/state /sys/class/infiniband/rxe_rail0/ports/1/gids/*"
)
LEFT = "systemctl list-timers --no-legend 'rdma-drill-*'; ls /run/rdma-cluster/drill 2>/dev/null || true"


@pytest.fixture(scope="module", autouse=True)
def rdma(network: Clos, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The stand-ins for the RDMA devices."""
    install(network, tmp_path_factory.mktemp("standin"))


def drill(network: Clos, folder: Path, *allow: dict[str, str], hold: int = 30, **settings: str) -> Path:
    """Write an inventory with these permissions."""
    variables = {"allow": list(allow), "hold_seconds": hold, **settings}
    write_inventory(network, plan_of(network), folder, nics=True, rdma_drill=variables)
    return folder


def respond(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_playbook(folder, "drill.yml", "--tags", "respond", *words, PATH=path(folder), **more)


def path(folder: Path) -> str:
    return f"{path_of(folder / 'bin')}:{os.environ['PATH']}"


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the name of each step → its record in the run folder."""
    record = json.loads((folder / "artifacts/latest/drill/results.json").read_text())
    return {step["name"]: step for step in record["hosts"]}


def state(network: Clos) -> dict[str, str]:
    return {host: network.run(host, "sh", "-c", STATE) for host in network.shape.host_names}


def left(network: Clos) -> str:
    """Return timers and files of a drill on any host, none if nothing is left."""
    return "".join(network.run(host, "sh", "-c", LEFT) for host in network.shape.host_names).strip()


def mtu(network: Clos, host: str) -> int:
    return int(network.run(host, "cat", "/sys/class/net/rail0/mtu"))


def test_check_mode_lists_each_step_and_changes_nothing(network: Clos, tmp_path: Path) -> None:
    before = state(network)
    wrong = [{**MTU, "host": "hosd1"}, {**MTU, "rail": "rail7"}, {**MTU, "fault": "cut"}]
    done = respond(drill(network, tmp_path, MTU, ADDRESS, *wrong), "--check", "--diff")
    assert done.returncode == 0, done.stdout
    for words in (
        "1. mtu_1500 host1 rail0: set the MTU of rail0 of host1 to 1500 bytes; network.mtu or alike.mtu must see it.",
        "2. address_lost host2 rail0: remove 10.1.1.67/31 from rail0 of host2; network.gid or network.address must see it.",
        "rdma_drill.allow[2]: hosd1 is not a host of this run; did you mean host1?",
        "rdma_drill.allow[3]: host1 has no rail rail7; it has rail0",
        "rdma_drill.allow[4]: cut is a fault of a switch; on a host use one of rail_down, mtu_1500, address_lost, gid_moved",
        "Alerts are not judged, because rdma_drill.alerts_url is not set.",
        "+ip link set dev rail0 mtu 1500",
        "+ip address del 10.1.1.67/31 dev rail0",
    ):
        assert words in done.stdout, done.stdout
    assert (state(network), left(network)) == (before, "")


def test_a_check_that_is_not_ok_before_the_fault_refuses_it(network: Clos, tmp_path: Path) -> None:
    folder = drill(network, tmp_path, MTU)
    network.run("host1", "ip", "link", "set", "dev", "rail0", "mtu", "4200")
    try:
        done = respond(folder)
        assert (mtu(network, "host1"), left(network)) == (4200, "")
    finally:
        network.run("host1", "ip", "link", "set", "dev", "rail0", "mtu", "9000")
    assert done.returncode != 0
    assert "network.mtu of host1 is error already: rail 0 (rail0, " in done.stdout, done.stdout


def test_what_is_not_allowed_does_nothing(network: Clos, tmp_path: Path) -> None:
    before = state(network)
    done = respond(drill(network, tmp_path))
    assert done.returncode == 0, done.stdout
    assert "The drill has no step: rdma_drill.allow permits no fault of a host." in done.stdout
    assert "No fault was made." in done.stdout
    assert (state(network), left(network)) == (before, "")


def test_a_job_on_the_host_refuses_the_drill(network: Clos, tmp_path: Path) -> None:
    before, job = state(network), tmp_path / "slurmstepd"
    shutil.copy(str(shutil.which("sleep")), job)
    with subprocess.Popen(network.argv("host1", [job, "300"])) as running:
        try:
            until(lambda: "slurmstepd" in network.run("host1", "sh", "-c", "cat /proc/[0-9]*/comm"), 5)
            done = respond(drill(network, tmp_path, MTU))
        finally:
            network.run("host1", "pkill", "-x", "slurmstepd")
            running.wait(timeout=10)
    assert done.returncode != 0
    assert "The drill is refused, and nothing was changed" in done.stdout
    assert "host1 is in use: job process" in done.stdout
    assert (state(network), left(network)) == (before, "")


def test_the_interfaces_of_the_session_and_of_tcp_connections_are_refused(network: Clos, tmp_path: Path) -> None:
    before, folder = state(network), drill(network, tmp_path, MTU)
    done = respond(folder, SSH_CONNECTION="fe80::9%rail0 50022 fe80::1%rail0 22")
    assert done.returncode != 0
    assert "Ansible's SSH session uses rail0: this fault would cut it." in done.stdout, done.stdout
    serve = "import socket; s = socket.create_server(('', 2049)); c = s.accept(); c[0].recv(1)"
    client = "import socket, time; s = socket.create_connection(('10.1.0.67', 2049)); time.sleep(300)"
    with subprocess.Popen(network.argv("host1", ["python3", "-c", serve])) as server:
        until(lambda: "2049" in network.run("host1", "ss", "-tln"), 5)
        with subprocess.Popen(network.argv("host2", ["python3", "-c", client])) as mount:
            try:
                until(lambda: "2049" in network.run("host1", "ss", "-tn"), 5)
                done = respond(folder)
            finally:
                network.run("host2", "pkill", "-f", "create_connection")
                network.run("host1", "pkill", "-f", "create_server", check=False)
                mount.wait(timeout=10)
                server.wait(timeout=10)
    assert done.returncode != 0
    assert "TCP connections use rail0, for example storage or a login: 10.1.0.67 to 10.1.1.67. End them first." in done.stdout, done.stdout
    assert (state(network), left(network)) == (before, "")


def test_each_fault_is_seen_by_its_check_and_gone_afterwards(network: Clos, tmp_path: Path) -> None:
    before = state(network)
    done = respond(drill(network, tmp_path, DOWN, MTU, ADDRESS, GID))
    assert done.returncode == 0, done.stdout
    print(done.stdout[done.stdout.index("TASK [Count the answers") :])
    steps = results(tmp_path)
    assert list(steps) == ["rail_down host1 rail0", "mtu_1500 host1 rail0", "address_lost host2 rail0", "gid_moved host1 rail0"]
    seen = (("link.state", "error"), ("network.mtu", "error"), ("network.gid", "error"), ("alike.gid_index", "warning"))
    for step, check in zip(steps.values(), seen, strict=True):
        # Of two hosts whose GID index differs, neither is in the majority: the finding is that of the fleet, and accuses neither.
        where = FLEET if check[0] == "alike.gid_index" else step["host"]
        assert (step["gate"]["check"], step["gate"]["status"], step["gate"]["host"]) == (*check, where)
        assert 0 < step["gate"]["seconds"] <= step["lasted_seconds"] + 1
        assert step["quiet_after_seconds"] > 0
        assert (step["not_restored"], step["ended_by_timer"]) == ([], False)
        assert (step["alerts_asked"], step["alert"], step["drain"]) == (False, None, "not asked")
        assert step["false"] == []
    assert "4 of 4 faults were seen by a gate, the slowest after " in done.stdout
    assert "; alerts were not asked; none false. Draining was not asked." in done.stdout
    assert (state(network), left(network)) == (before, "")


def test_a_check_that_the_site_has_silenced_does_not_see_the_fault(network: Clos, tmp_path: Path) -> None:
    """And the fault lasts until hold_seconds, because nothing answers."""
    folder = drill(network, tmp_path, MTU, hold=6)
    silence = {"silenced_by": "ops", "reason": "a test", "until": time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))}
    done = respond(folder, "-e", json.dumps({"rdma_checks": {"network.mtu": silence}}))
    assert done.returncode == 0, done.stdout
    step = results(folder)["mtu_1500 host1 rail0"]
    assert step["gate"] is None
    assert step["lasted_seconds"] >= 6
    assert "mtu_1500 host1 rail0: NOT SEEN by a gate (network.mtu or alike.mtu); alert not asked" in done.stdout
    assert "0 of 1 faults were seen by a gate" in done.stdout
    assert mtu(network, "host1") == 9000


@pytest.fixture
def prometheus(network: Clos, tmp_path: Path) -> Any:
    """Prometheus with one rule, and a stand-in for the exporter that serves the MTU of host1."""
    with Prometheus(
        tmp_path / "prometheus", lambda: f'interface_mtu_bytes{{host="host1",rail="rail0"}} {mtu(network, "host1")}\n'
    ) as server:
        server.start({"alert": "MtuLow", "expr": "interface_mtu_bytes < 9000", "for": "2s"})
        yield server


def test_an_alert_is_timed_until_it_fires_and_until_it_ends(network: Clos, tmp_path: Path, prometheus: Prometheus) -> None:
    done = respond(drill(network, tmp_path, MTU, hold=60, alerts_url=prometheus.url))
    assert done.returncode == 0, done.stdout
    print(done.stdout[done.stdout.index("TASK [Count the answers") :])
    step = results(tmp_path)["mtu_1500 host1 rail0"]
    assert (step["alert"]["name"], step["alert"]["host"], step["alert"]["rail"]) == ("MtuLow", "host1", "rail0")
    # The rule waits for 2 s.
    assert 2 <= step["alert"]["seconds"] <= 60
    assert step["alert_ended_after_seconds"] > 0
    assert "1 of 1 faults were seen by a gate" in done.stdout
    assert "1 of 1 by an alert, the slowest after" in done.stdout
    assert prometheus.firing() == []


def test_a_server_that_does_not_answer_is_unknown_and_not_silence(network: Clos, tmp_path: Path) -> None:
    done = respond(drill(network, tmp_path, MTU, hold=6, alerts_url="http://127.0.0.1:9"))
    assert done.returncode == 0, done.stdout
    step = results(tmp_path)["mtu_1500 host1 rail0"]
    assert step["alerts_asked"]
    assert "refused" in step["alerts_problem"]
    assert "alert unknown: " in done.stdout
    assert mtu(network, "host1") == 9000


def test_the_timer_ends_the_fault_of_a_killed_control_node(network: Clos, tmp_path: Path) -> None:
    folder, hold, before = drill(network, tmp_path, MTU, hold=5, alerts_url="http://127.0.0.1:9"), 5, state(network)
    with subprocess.Popen(
        playbook_argv("drill.yml", "--tags", "respond"),
        cwd=folder,
        env=environment(PATH=path(folder)),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as control:
        until(lambda: mtu(network, "host1") == 1500, 120, 0.1)
        made = time.monotonic()
        os.killpg(control.pid, signal.SIGKILL)
    refused = respond(folder)
    assert refused.returncode != 0
    assert "network.mtu of host1 is error already" in refused.stdout, refused.stdout
    assert mtu(network, "host1") == 1500
    until(lambda: mtu(network, "host1") == 9000, hold + TIMER_SECONDS + 10, 0.5)
    print(f"the timer ended the fault after {time.monotonic() - made:.0f} s")
    assert time.monotonic() - made >= hold
    left_over = respond(folder)
    assert left_over.returncode != 0
    assert "Another drill is under way here, or was interrupted: mtu_1500 of rail0." in left_over.stdout, left_over.stdout
    restored = run_playbook(folder, "drill.yml", "--tags", "restore")
    assert restored.returncode == 0, restored.stdout
    assert (state(network), left(network)) == (before, "")
    again = respond(drill(network, tmp_path, MTU))
    assert again.returncode == 0, again.stdout
