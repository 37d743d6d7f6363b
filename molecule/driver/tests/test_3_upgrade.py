# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade, with a third party's module in the way; one that is cut off by a power failure."""

from __future__ import annotations

import time

from lab import cluster
from lab.cluster import Lab
from tests.verify.driver import NEWER, Driver, Hosts
from tests.verify.patience import until


def test_an_upgrade_that_is_not_allowed_lists_who_depends_on_the_stack(driver: Driver, hosts: Hosts) -> None:
    before = hosts.driver("node1")
    hosts.run("node1", "apt-get install --yes /srv/standins/ulp/*.deb && modprobe standin_ulp", timeout_seconds=600)
    done = driver.run(hosts.bundle("newer", NEWER), limit="node1")
    assert done.returncode == 2, done.stdout
    assert driver.bad("node1") == ["driver.stack"]
    assert "standin-ulp-dkms 1.0-1" in " ".join(done.stdout.split()), done.stdout
    assert hosts.driver("node1") == before


def test_nothing_is_removed_below_a_module_or_a_package_of_somebody_else(driver: Driver, hosts: Hosts) -> None:
    before = hosts.driver("node1")
    forced = {**hosts.bundle("newer", NEWER), "force": True}
    done = driver.run(forced, limit="node1", driver_switch_allowed=True)
    assert done.returncode == 2, done.stdout
    assert "standin_ulp holds mlx_compat" in " ".join(done.stdout.split()), done.stdout
    hosts.run("node1", "rmmod standin_ulp")
    done = driver.run(hosts.bundle("newer", NEWER), limit="node1", driver_switch_allowed=True)
    assert done.returncode == 2, done.stdout
    assert "rdma_driver.force is false" in " ".join(done.stdout.split()), done.stdout
    assert hosts.driver("node1") == before
    assert hosts.run("node1", "dpkg-query --show --showformat='${Version}' standin-ulp-dkms") == "1.0-1"


def test_an_upgrade_is_not_loaded_unasked(driver: Driver, hosts: Hosts) -> None:
    before = hosts.driver("node1")["loaded"]
    hosts.run("node1", "cp $(modinfo -F filename standin_ulp) /root/")
    done = driver.run({**hosts.bundle("newer", NEWER), "force": True}, limit="node1", driver_switch_allowed=True)
    assert done.returncode == 2, done.stdout
    assert driver.bad("node1") == ["driver.loaded"]
    # Its package went with the upgrade, as the list said; its module comes back by hand.
    hosts.run("node1", "insmod $(ls /root/standin_ulp.ko*)")
    now = hosts.driver("node1")
    assert now["loaded"] == before
    assert now["on_disk"] not in ("", before)


def test_a_holder_in_the_way_is_named_and_nothing_is_reloaded(driver: Driver, hosts: Hosts) -> None:
    before = hosts.driver("node1")["loaded"]
    done = driver.run(hosts.bundle("newer", NEWER), limit="node1", driver_reload_allowed=True)
    assert done.returncode == 2, done.stdout
    assert "standin_ulp" in done.stdout
    assert hosts.driver("node1")["loaded"] == before


def test_without_it_the_driver_is_reloaded(driver: Driver, hosts: Hosts) -> None:
    hosts.run("node1", "rmmod standin_ulp")
    done = driver.run(hosts.bundle("newer", NEWER), limit="node1", driver_reload_allowed=True)
    assert done.returncode == 0, done.stdout
    now = hosts.driver("node1")
    assert now["loaded"] == now["on_disk"] != ""
    again = driver.run(hosts.bundle("newer", NEWER), limit="node1")
    assert again.returncode == 0, again.stdout
    assert driver.changed() == []


def test_an_installation_that_was_cut_off_begins_again(driver: Driver, hosts: Hosts, lab: Lab) -> None:
    words = driver.words(hosts.bundle("slow", NEWER), "node2", driver_reload_allowed=True, driver_switch_allowed=True)
    with driver.site.start("driver", *words) as run:
        state = "systemctl is-active rdma-ofed-install.service || true"
        until(lambda: hosts.run("node2", state) == "active", 240, "the installer", pause=2)
        time.sleep(25)
        cluster.power(lab.plan.name, "node2", "cycle")
        driver.site.kill(run)
        run.communicate()
    done = driver.run(hosts.bundle("newer", NEWER), limit="node2", driver_reload_allowed=True, driver_switch_allowed=True)
    assert done.returncode == 0, done.stdout
    now = hosts.driver("node2")
    assert now["loaded"] == now["on_disk"] != ""
    assert hosts.run("node2", "ofed_info -s") == f"MLNX_OFED_LINUX-{NEWER}:"
