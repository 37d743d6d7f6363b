# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A newer kernel, with headers and without: what its boot would take, and a reboot into it."""

from __future__ import annotations

from tests.verify.driver import NEWER, Driver, Hosts

INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install --yes"


def test_the_bundle_is_installed(driver: Driver, hosts: Hosts) -> None:
    done = driver.run(hosts.bundle("newer", NEWER), driver_reload_allowed=True, driver_switch_allowed=True)
    assert done.returncode == 0, done.stdout
    for host in ("node1", "node2"):
        now = hosts.driver(host)
        assert now["loaded"] == now["on_disk"] != ""


def test_a_kernel_without_headers_is_reported_before_it_is_booted_and_gets_them(driver: Driver, hosts: Hosts) -> None:
    answer = hosts.run("node2", f"{INSTALL} --no-install-recommends linux-image-amd64 2>&1", timeout_seconds=900)
    assert "has no RDMA driver but the stock one, which its boot would take: its headers are not installed" in answer, answer
    done = driver.run(hosts.bundle("newer", NEWER), "site", limit="node2")
    assert done.returncode == 2, done.stdout
    assert driver.bad("node2") == ["preflight.newest"]
    done = driver.site.run("driver", *driver.words(hosts.bundle("newer", NEWER), "node2"), "--check")
    assert done.returncode == 0, done.stdout
    assert driver.bad("node2") == ["driver.next_kernel"]
    assert "headers" in driver.findings("driver.next_kernel")["node2"]["remedy"]
    done = driver.run(hosts.bundle("newer", NEWER), limit="node2")
    assert done.returncode == 0, done.stdout
    assert driver.findings("driver.next_kernel")["node2"]["status"] == "ok"
    newest = hosts.run("node2", "ls /lib/modules | sort -V | tail -1")
    assert "/updates/dkms/" in hosts.run("node2", f"modinfo -k {newest} -F filename mlx5_core")


def test_with_headers_it_is_built_before_it_is_booted(driver: Driver, hosts: Hosts) -> None:
    hosts.run("node1", f"{INSTALL} --no-install-recommends linux-image-amd64 linux-headers-amd64 2>&1", timeout_seconds=1200)
    newest = hosts.run("node1", "ls /lib/modules | sort -V | tail -1")
    assert "/updates/dkms/" in hosts.run("node1", f"modinfo -k {newest} -F filename mlx5_core")
    done = driver.run(hosts.bundle("newer", NEWER), limit="node1")
    assert done.returncode == 0, done.stdout
    assert driver.findings("driver.next_kernel")["node1"]["status"] == "ok"


def test_a_reboot_that_is_allowed_leads_into_it(driver: Driver, hosts: Hosts) -> None:
    before, newest = hosts.run("node1", "uname -r"), hosts.run("node1", "ls /lib/modules | sort -V | tail -1")
    assert before != newest
    done = driver.run(hosts.bundle("newer", NEWER), "site", limit="node1", reboot_allowed=True, rdma_measure="false")
    assert hosts.run("node1", "uname -r") == newest, done.stdout
    now = hosts.driver("node1")
    assert newest in now["file"]
    assert now["loaded"] == now["on_disk"] != ""
    assert driver.findings("driver.stack")["node1"]["status"] == "ok"
