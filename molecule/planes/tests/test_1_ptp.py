# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PTP with software time stamps: node1 is the grandmaster, chrony of node2 follows it, and each fault is named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab import remote
from lab.cluster import Lab
from tests.verify.nodes import run_with_netdev as run
from tests.verify.nodes import say
from tests.verify.site import Site

#: Emulated machines stamp packets late: this bounds their jitter, and is below the 50 ms of the fault.
MAX_OFFSET_NS = 20_000_000
DOMAIN = 24
ALLOWED = ("-e", "time_sync_ptp_allowed=true", "-e", "time_sync_restart_allowed=true", "--limit", "node1,node2")
#: Until ptp4l has noticed a fault, and chrony has measured again.
SETTLE_SECONDS = 30.0
PTP = {"rail": "rail0", "domain": DOMAIN, "timestamping": "software", "grandmaster": "node1", "max_offset_ns": MAX_OFFSET_NS}
#: What an administrator may have, beside ours: a second program that adjusts the system clock.
PHC2SYS = "ln -sf /usr/bin/sleep /run/phc2sys; systemd-run --quiet --unit=lab-phc2sys /run/phc2sys 600"


@pytest.fixture(scope="module")
def timed(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The lab with PTP on rail0 of node1 and node2; afterwards without any."""
    inventory = yaml.safe_load(lab.folder.inventory.read_text())
    for name in ("node1", "node2"):
        host = inventory["all"]["hosts"][name]
        host["rdma_host"] = {**inventory["all"].get("vars", {}).get("rdma_host", {}), **host.get("rdma_host", {})}
        host["rdma_host"]["time"] = {"manage": True, "ptp": PTP}
    folder = tmp_path_factory.mktemp("timed")
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    yield Site(folder / "hosts.yml", folder)
    for name in ("node1", "node2"):
        node = lab.plan.node(name)
        units = "systemctl disable --quiet --now 'rdma-ptp@*'; rm -f /etc/chrony/rdma-cluster-ptp.conf /etc/rdma-cluster/ptp4l.conf"
        include = "sed -i '/rdma-cluster-ptp/d' /etc/chrony/chrony.conf"
        remote.execute(node, lab.folder, f"{units}; {include}; systemctl disable --quiet --now chrony; systemctl daemon-reload")


def findings(site: Site, check: str = "host.ptp") -> dict[str, tuple[Any, Any]]:
    """Host → status and text, as of a new reading."""
    site.run("validate", "--limit", "node1,node2", "-e", '{"rdma_gate": {"policy": "report"}}')
    return {line["host"]: (line["status"], line["observed"]) for line in site.lines("findings.jsonl") if line["check"] == check}


def unit(lab: Lab, name: str, verb: str) -> None:
    run(lab, lab.plan.node(name), f"systemctl {verb} rdma-ptp@$netdev")


def test_nothing_is_set_up_unasked(lab: Lab, timed: Site) -> None:
    timed.run("host", "--limit", "node1,node2")
    for name in ("node1", "node2"):
        assert remote.execute(lab.plan.node(name), lab.folder, "test -e /etc/rdma-cluster/ptp4l.conf").status != 0
    groups = timed.json("summary.json")["withheld"]
    assert {host for group in groups if group["effect"] == "time_sync_ptp" for host in group["hosts"]} == {"node1", "node2"}, groups


def test_chrony_follows_the_grandmaster_without_a_step(lab: Lab, timed: Site) -> None:
    before = {name: float(say(lab, lab.plan.node(name), "date +%s.%N")) - time.time() for name in ("node1", "node2")}
    done = timed.run("host", *ALLOWED)
    assert done.returncode == 0, done.stdout
    found = {line["host"]: (line["status"], line["observed"]) for line in timed.lines("findings.jsonl") if line["check"] == "host.ptp"}
    assert {host: status for host, (status, _observed) in found.items()} == {"node1": "ok", "node2": "ok"}, found
    alike = {line["status"] for line in timed.lines("findings.jsonl") if line["check"] == "alike.grandmaster"}
    assert alike == {"ok"}
    assert "#,*,PTP" in say(lab, lab.plan.node("node2"), "chronyc -N -c sources")
    pid = run(lab, lab.plan.node("node2"), "systemctl show --property=MainPID --value rdma-ptp@$netdev")
    capabilities = int(say(lab, lab.plan.node("node2"), f"grep CapEff /proc/{pid}/status").split()[1], 16)
    assert not capabilities >> 25 & 1, "ptp4l could set the clock: CAP_SYS_TIME is bit 25"
    for name, difference in before.items():
        now = float(say(lab, lab.plan.node(name), "date +%s.%N")) - time.time()
        assert abs(now - difference) < 1.0, f"{name}: {difference} → {now}"
        assert "System clock was stepped" not in say(lab, lab.plan.node(name), "journalctl --no-pager -b -u chrony")


def test_a_second_run_changes_nothing(timed: Site) -> None:
    assert timed.run("host", *ALLOWED).returncode == 0
    assert timed.lines("changes.jsonl") == []


@pytest.mark.fault("grandmaster-stops")
def test_a_stopped_grandmaster_is_named(lab: Lab, timed: Site) -> None:
    unit(lab, "node1", "stop")
    time.sleep(SETTLE_SECONDS)
    found = findings(timed)
    assert found["node1"] == ("error", "ptp4l does not run")
    assert found["node2"] == ("error", f"no grandmaster in domain {DOMAIN}: the port is LISTENING")
    # This run starts it again, and waits for node1's port. Its gate may be earlier than the first answer that node2 gets.
    timed.run("host", *ALLOWED)
    time.sleep(SETTLE_SECONDS)
    assert timed.run("host", *ALLOWED).returncode == 0


@pytest.mark.fault("wrong-ptp-domain")
def test_a_wrong_domain_is_named(lab: Lab, timed: Site) -> None:
    node = lab.plan.node("node2")
    run(lab, node, "sed -i 's/^domainNumber .*/domainNumber 7/' /etc/rdma-cluster/ptp4l.conf; systemctl restart rdma-ptp@$netdev")
    time.sleep(SETTLE_SECONDS)
    assert findings(timed)["node2"] == ("error", "ptp4l is in domain 7")
    assert timed.run("host", *ALLOWED).returncode == 0
    assert findings(timed)["node2"][0] == "ok"


@pytest.mark.fault("ptp-offset")
def test_an_offset_of_50_ms_is_named(lab: Lab, timed: Site) -> None:
    """The clock of node2 is moved while chrony does not run; it then comes back without a step."""
    node = lab.plan.node("node2")
    move = "import time; time.clock_settime(time.CLOCK_REALTIME, time.time() + 0.05)"
    say(lab, node, f"systemctl stop chrony; python3 -c '{move}'")
    time.sleep(SETTLE_SECONDS)
    status, observed = findings(timed)["node2"]
    say(lab, node, "systemctl start chrony")
    assert status == "error", observed
    assert "off by" in observed


@pytest.mark.fault("two-programs-for-a-clock")
def test_two_programs_that_adjust_one_clock_are_both_named(lab: Lab, timed: Site) -> None:
    """phc2sys needs a clock of a NIC, which a machine of the lab has not: a stand-in has its name and its command line."""
    node = lab.plan.node("node2")
    say(lab, node, PHC2SYS)
    try:
        status, observed = findings(timed)["node2"]
        assert status == "error"
        assert "chronyd (pid " in observed
        assert "phc2sys (pid " in observed
        assert observed.endswith("adjust the system clock at once")
    finally:
        say(lab, node, "systemctl stop lab-phc2sys; rm -f /run/phc2sys")
    # A ptp4l of the distribution, with software time stamps, would set the system clock as well.
    run(lab, node, "systemd-run --quiet --unit=lab-ptp4l ptp4l -S -s -i $netdev --domainNumber 9 --uds_address /run/lab-ptp4l")
    try:
        _status, observed = findings(timed)["node2"]
        assert "ptp4l (pid " in observed
    finally:
        say(lab, node, "systemctl stop lab-ptp4l")
