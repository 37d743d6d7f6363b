# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of one host that the host stage names: its clock, its shared memory, a foreign limit; and a loaded computer that is none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.verify.driver import Driver, Hosts
from tests.verify.site import Site

SOURCE = "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"
#: Long enough for the watchdog of clock sources, which looks twice a second, to find a late counter.
HOG_SECONDS = 60.0
SITE_FILE = "/etc/security/limits.d/zz-site.conf"


@contextmanager
def busy() -> Iterator[None]:
    """Every core of this computer at work."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _core in range(os.cpu_count() or 2)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def test_on_a_loaded_computer_the_machines_keep_their_clock_source(hosts: Hosts) -> None:
    with busy():
        time.sleep(HOG_SECONDS)
        for node in ("node1", "node2"):
            assert hosts.run(node, SOURCE) == "tsc"
    for node in ("node1", "node2"):
        assert hosts.run(node, "dmesg | grep -ic 'marking clocksource' || true") == "0"


@dataclass(frozen=True)
class Fault:
    """A fault of node2 and the finding on it. undo: the command that removes it; observed, remedy: words of the finding."""

    command: str
    undo: str
    check: str
    observed: str
    remedy: str


FAULTS = [
    pytest.param(
        Fault("date --set '+3 hours'", "date --set '-3 hours'", "host.clock", "the other hosts", "`chronyc tracking`"), id="a wrong clock"
    ),
    pytest.param(
        Fault("dd if=/dev/zero of=/dev/shm/job bs=1M 2> /dev/null || true", "rm /dev/shm/job", "host.shm", " free", "du -ah /dev/shm"),
        id="no shared memory",
    ),
    pytest.param(
        Fault(
            f"printf '# site\\n* - memlock 64\\n' > {SITE_FILE}", f"rm {SITE_FILE}", "host.memlock",
            f"64 KiB by line 2 of {SITE_FILE}", f"remove line 2 of {SITE_FILE}",
        ),
        id="a foreign limit",
    ),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_host_is_named_on_it_alone(site: Site, runs: Driver, hosts: Hosts, fault: Fault) -> None:
    hosts.run("node2", fault.command)
    try:
        done = site.run("host")
    finally:
        hosts.run("node2", fault.undo)
    assert done.returncode == 2, done.stdout
    assert (runs.bad("node1"), runs.bad("node2")) == ([], [fault.check])
    finding = runs.findings(fault.check, "error")["node2"]
    assert fault.observed in finding["observed"]
    assert fault.remedy in finding["remedy"]
