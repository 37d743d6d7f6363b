# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles recorder and exporter under systemd, scraped by Prometheus: a cut cable is an alert at the webhook and an event of the record.

The HCAs are stand-ins that follow the ports of a simulated fabric (docs/lab.md). eth2 is a real veth pair, whose carrier is lost with the
cable. The other programs are those of Debian.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import cluster, fabric, fabric_faults
from tests.tools import dashboard
from tests.verify.driver import Hosts
from tests.verify.monitor import MONITORED, STAND_IN, Monitor
from tests.verify.patience import until
from tests.verify.site import Site

LAB = "metrics"
INTERVAL_SECONDS = 10
#: The bar of docs/metrics.md: collector, scrape, evaluation, and the wait of the rule; then Alertmanager's group_wait.
ALERT_SECONDS, DELIVERY_SECONDS = 90, 30
#: group_interval of the example, and what the alert takes.
RESOLVED_SECONDS = 150
#: systemd-analyze's exposure: "OK" is below 5.0.
MOST_EXPOSED = 3.0
#: The files of the stand-in of an HCA (lab/fabric_hosts.py).
HCA = "var/lib/lab-fabric/live/mlx5_1"
#: The recorder reads states every 2 s; the clocks of the containers are the same.
LATE_SECONDS = 3.0
DOWN = {"host": "node2", "rail": "rail1"}
JOB_LOG = (
    "node1:4711:4750 [0] NCCL INFO Bootstrap : Using eth1:192.168.100.1<0>\n"
    "node2:4712:4751 [0] NCCL INFO Bootstrap : Using eth1:192.168.100.2<0>\n"
    "node1:4711:4750 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 192.168.100.2<33892> with status=12 opcode=0 "
    "len=0 vendor err 129 (Send)\n"
)
RECORDER = "molecule/metrics/recorder.yml"
TIMERS = {"rdma-recorder": "active", "rdma-exporter": "inactive"}
#: /etc and the timers of a host.
STATE = "find /etc /usr/local -type f -exec sha256sum {} + | sort; systemctl list-timers --all 'rdma-*' --no-legend | awk '{print $NF}'"


@dataclass
class Outage:
    """When the cable was cut and plugged in again, by the clock of this machine.

    down: when the stand-in of the HCA followed; run_before: the run that ended before; seen: seconds until something was seen.
    """

    cut: float = 0.0
    down: float = 0.0
    restored: float = 0.0
    run_before: str = ""
    seen: dict[str, float] = field(default_factory=dict)


@pytest.fixture(scope="module")
def hosts() -> Hosts:
    return Hosts(cluster.load(LAB))


@pytest.fixture(scope="module")
def monitor(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    found = Monitor(hosts)
    found.offer_packages(tmp_path_factory.mktemp("packages") / "archives")
    found.connect()
    return found


@pytest.fixture(scope="module")
def site(monitor: Monitor, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The fabric's inventory with metrics and the recorder, without the monitoring host."""
    folder = tmp_path_factory.mktemp("site")
    inventory = yaml.safe_load(fabric.load(LAB).folder.inventory.read_text())["all"]
    wanted = {"rdma_metrics": {"manage": True, "interval_seconds": INTERVAL_SECONDS, "labels": {"cluster": "lab"}}}
    inventory["vars"] |= {**wanted, "rdma_recorder": {"manage": True, "interfaces": ["eth2"]}, "rdma_gate": {"policy": "report"}}
    inventory["hosts"] = {name: inventory["hosts"][name] for name in MONITORED}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": inventory}))
    return Site(folder / "hosts.yml", folder)


@pytest.fixture(scope="module")
def outage() -> Outage:
    return Outage()


def changed(answer: str) -> list[int]:
    return [int(count) for count in re.findall(r"^node\d +: ok=\d+ +changed=(\d+)", answer, re.MULTILINE)]


def test_check_mode_shows_the_roles_and_installs_nothing(site: Site, hosts: Hosts) -> None:
    before = [hosts.run(name, STATE) for name in MONITORED]
    for playbook in (RECORDER, "exporter"):
        done = site.run(playbook, "--check", "--diff")
        assert done.returncode == 0, done.stdout
        assert min(changed(done.stdout)) >= 1, done.stdout
    assert [hosts.run(name, STATE) for name in MONITORED] == before


def test_a_second_run_of_the_roles_changes_nothing(site: Site, hosts: Hosts) -> None:
    for playbook in (RECORDER, "exporter"):
        first = site.run(playbook)
        assert first.returncode == 0, first.stdout
        assert min(changed(first.stdout)) >= 1
    before = [hosts.run(name, STATE) for name in MONITORED]
    for playbook in (RECORDER, "exporter"):
        second = site.run(playbook)
        assert (second.returncode, changed(second.stdout)) == (0, [0, 0]), second.stdout
    assert [hosts.run(name, STATE) for name in MONITORED] == before


@pytest.mark.parametrize("name", MONITORED)
def test_the_timers_run_and_no_unit_has_failed(hosts: Hosts, monitor: Monitor, name: str) -> None:
    for unit, state in TIMERS.items():
        assert hosts.run(name, f"systemctl is-active {unit}.timer") == "active"
        assert hosts.run(name, f"systemctl show --property=Result --value {unit}.service") == "success"
        shown = hosts.run(name, f"systemctl show --property=ActiveState --value {unit}.service")
        assert shown in (state, "activating"), shown
    assert hosts.run(name, "systemctl list-units --state=failed --no-legend") == ""
    written = monitor.textfile(name).stat().st_mtime
    until(lambda: monitor.textfile(name).stat().st_mtime > written, 3 * INTERVAL_SECONDS, "a second file of the timer")


@pytest.mark.parametrize("unit", TIMERS)
def test_the_sandboxes_are_ok(hosts: Hosts, unit: str) -> None:
    text = hosts.run("node1", f"systemd-analyze security --no-pager {unit}.service | tail -1")
    exposure = float(re.findall(r"[0-9]+\.[0-9]", text)[0])
    print(f"\n{text}")
    assert exposure <= MOST_EXPOSED, text


@pytest.mark.parametrize("name", MONITORED)
def test_promtool_finds_nothing_in_the_file(monitor: Monitor, name: str) -> None:
    text = monitor.textfile(name).read_text()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert f'rdma_port_up{{host="{name}",cluster="lab",rail="rail1"}} 1' in text
    assert 'rdma_scrape_error{host="' + name + '",cluster="lab",source="ports"} 0' in text


def test_prometheus_scrapes_both_hosts(monitor: Monitor) -> None:
    monitor.start()
    monitor.write_stand_in()

    def up() -> bool:
        try:
            return len(monitor.query("rdma_port_up == 1")) == 2 * len(MONITORED)
        except OSError:
            return False

    until(up, 60, "four ports that are up", pause=1)
    assert len(monitor.query("up == 1")) == len(MONITORED)
    assert {each["value"][1] for each in monitor.query("node_textfile_scrape_error")} == {"0"}
    assert [each["metric"]["host"] for each in monitor.query("rdma_scrape_error == 1")] == [STAND_IN]
    assert monitor.query("node_infiniband_info"), "node_exporter reads the ports beside the collector"
    assert monitor.states("RdmaPortDown") == []


def test_a_cut_cable_is_an_alert_at_the_webhook_and_ends(site: Site, monitor: Monitor, outage: Outage) -> None:
    outage.run_before = site.evidence.name
    time.sleep(2)
    outage.cut = time.time()
    cluster.cable(LAB, "node2", 1, {"cut": True})
    fabric_faults.cut(LAB, "node2 mlx5_1")
    try:
        until(lambda: monitor.states("RdmaPortDown", **DOWN) == ["firing"], ALERT_SECONDS, "an alert that fires", pause=1)
        outage.seen["fires"] = time.time() - outage.cut
        outage.down = (monitor.root("node2") / HCA / "ports/1/state").stat().st_mtime
        until(lambda: bool(monitor.delivered("RdmaPortDown", **DOWN)), DELIVERY_SECONDS, "an alert at the webhook", pause=1)
        outage.seen["delivered"] = time.time() - outage.cut
        # The gate of a run says it too, and so does the collector after the playbook.
        assert site.run("link").returncode == 0
        assert "node2" in site.json("gates/link.json")["out"]
        assert site.run("exporter").returncode == 0
        failed = 'rdma_cluster_gate{host="node2",stage="link",status="error"} == 1'
        until(lambda: bool(monitor.query(failed)), 60, "the gate of the link stage", pause=1)
    finally:
        fabric_faults.restore(LAB, "node2 mlx5_1")
        cluster.cable(LAB, "node2", 1, {"restore": True})
        outage.restored = time.time()
    monitor.write_stand_in()
    until(lambda: monitor.states("RdmaPortDown") == [], ALERT_SECONDS, "an alert that ends", pause=1)
    outage.seen["ends"] = time.time() - outage.restored

    def states() -> list[str]:
        return [each["status"] for each in monitor.delivered("RdmaPortDown", **DOWN)]

    until(lambda: "resolved" in states(), RESOLVED_SECONDS, "the end of the alert at the webhook", pause=1)
    outage.seen["resolved"] = time.time() - outage.restored
    print("\nseconds:", {name: round(seconds, 1) for name, seconds in outage.seen.items()})
    assert {each["labels"]["host"] for each in monitor.delivered("RdmaPortDown")} == {"node2"}
    alert = monitor.delivered("RdmaPortDown", **DOWN)[0]
    assert (alert["status"], alert["labels"]["severity"]) == ("firing", "critical")
    assert alert["annotations"]["summary"] == "rail1 of node2 is down"
    assert alert["annotations"]["remedy"].startswith("1. On node2, run `ip -brief link` and `rdma link`")
    assert alert["annotations"]["runbook"] == "docs/checks.md#link.state"


def test_each_rule_is_evaluated_without_an_error(monitor: Monitor) -> None:
    rules = [rule for group in monitor.get("rules")["groups"] for rule in group["rules"]]
    assert len(rules) > 15
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []


def test_each_query_of_the_dashboard_has_data(monitor: Monitor) -> None:
    monitor.write_stand_in()
    queries = [target["expr"] for panel in json.loads(dashboard.build())["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 20
    chosen = {query: query.replace("$host", ".*").replace("$rail", ".*") for query in queries}
    until(lambda: not [text for text in chosen.values() if not monitor.query(text)], 60, "data for each query", pause=2)
    ports = monitor.query(next(text for query, text in chosen.items() if query.startswith("min by (host, rail) (rdma_port_up")))
    assert {each["metric"]["host"] for each in ports} == set(MONITORED)


def events(site: Site, name: str) -> list[dict[str, Any]]:
    """The events of the outage that a host has recorded."""
    found: list[dict[str, Any]] = site.json("changed.json")["hosts"][name]["changes"]
    return [each for each in found if each["kind"] in ("carrier", "state")]


@pytest.mark.parametrize("since", ["a time", "a run"])
def test_changed_names_the_host_the_rail_and_the_time(site: Site, outage: Outage, since: str) -> None:
    value = f"@{outage.cut - 1:.0f}" if since == "a time" else outage.run_before
    done = site.run("changed", "-e", f"rdma_since={value}")
    assert done.returncode == 0, done.stdout
    assert events(site, "node1") == []
    state = [each for each in events(site, "node2") if each["of"] == "mlx5_1/1"]
    assert [each["now"].split()[-1] for each in state][:1] == ["DOWN"]
    assert state[-1]["now"] == "4: ACTIVE"
    carrier = [each for each in events(site, "node2") if each["of"] == "eth2" and each["kind"] == "carrier"]
    assert [each["now"] for each in carrier] == ["no carrier", "up"]
    assert abs(carrier[0]["time"] - outage.cut) <= LATE_SECONDS
    assert abs(state[0]["time"] - outage.down) <= LATE_SECONDS
    text = (site.evidence / "changed.txt").read_text()
    assert re.search(r"^  \d\d:\d\d:\d\d\.\d{3} .* node2 +.*rail1 \(.*mlx5_1", text, re.MULTILINE), text


def test_diagnose_says_that_the_rail_was_down_before_the_failure(site: Site, outage: Outage, tmp_path: Path) -> None:
    """The log is written for the test, in the words of NCCL."""
    (tmp_path / "job.log").write_text(JOB_LOG)
    seconds = 20
    done = site.run("diagnose", "-e", f"rdma_job_log={tmp_path}/job.log", "-e", f"rdma_job_time=@{outage.down + seconds:.3f}")
    assert done.returncode == 0, done.stdout
    text = " ".join((site.evidence / "diagnosis.txt").read_text().split())
    assert "confirmed a port was down before the error" in text, text
    found = re.search(r"rail1 \(mlx5_1/1\) of node2 (?:\(not in the log\) )?was down ([0-9.]+) s before the first error", text)
    assert found, text
    assert abs(float(found[1]) - seconds) <= LATE_SECONDS
