# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the distribution's stack to a bundle: a build that fails, one that fails silently, one that works, and nothing to do."""

from __future__ import annotations

import pytest

from tests.verify.driver import GOOD, NEWER, Driver, Hosts


def test_a_build_that_fails_stops_at_the_gate_with_the_compiler_s_line(driver: Driver, hosts: Hosts) -> None:
    done = driver.run(hosts.bundle("build", NEWER), "site")
    assert done.returncode == 2, done.stdout
    for host in ("node1", "node2"):
        assert driver.bad(host) == ["driver.stack"]
        seen = driver.findings("driver.stack")[host]["observed"]
        assert seen.startswith("the stock mlx5_core is running"), seen
        assert "error:" in seen, seen
        assert "/kernel/drivers/" in hosts.driver(host)["file"]
    assert not (driver.site.evidence / "findings/link").exists(), "no stage may start after the driver gate"
    assert (driver.site.evidence / "driver/node1.log").read_text()


@pytest.mark.parametrize("way", ["silent", "headers"])
def test_an_installer_that_does_not_do_its_work_is_not_believed(driver: Driver, hosts: Hosts, way: str) -> None:
    # What the run before has left is installed; the installer removes it first.
    done = driver.run(hosts.bundle(way, NEWER), limit="node1", driver_switch_allowed=True)
    assert done.returncode == 2, done.stdout
    assert driver.bad("node1") == ["driver.stack"]
    assert "the stock mlx5_core is running" in driver.findings("driver.stack")["node1"]["observed"]


def test_a_good_one_is_installed_built_and_loaded_and_the_gate_says_which(driver: Driver, hosts: Hosts) -> None:
    done = driver.run(hosts.bundle("good", GOOD), "site", reboot_allowed=False, driver_switch_allowed=True)
    if done.returncode and driver.bad("node1") == ["driver.loaded"]:
        # The stock driver that the runs before have loaded is still there.
        done = driver.run(hosts.bundle("good", GOOD), "site", driver_reload_allowed=True, driver_switch_allowed=True)
    assert done.returncode == 0, done.stdout
    for host in ("node1", "node2"):
        there = hosts.driver(host)
        assert "/updates/dkms/mlx5_core.ko" in there["file"]
        assert there["loaded"] == there["on_disk"] != ""
        srcversion = hosts.run(host, "cat /sys/module/mlx5_core/srcversion")
        seen = driver.findings("driver.stack", "ok")[host]["observed"]
        assert seen == f"mlx5_core from {there['file']}, version {there['loaded']}, srcversion {srcversion}"
        assert hosts.run(host, "ofed_info -s") == f"MLNX_OFED_LINUX-{GOOD}:"


def test_again_nothing_is_done(driver: Driver, hosts: Hosts) -> None:
    log = hosts.run("node1", "stat -c %Y /var/lib/rdma-cluster/ofed/install.log")
    done = driver.run(hosts.bundle("good", GOOD))
    assert done.returncode == 0, done.stdout
    assert driver.changed() == []
    assert hosts.run("node1", "stat -c %Y /var/lib/rdma-cluster/ofed/install.log") == log
