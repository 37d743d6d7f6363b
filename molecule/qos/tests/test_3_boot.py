# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a reboot, and after the driver was loaded anew, the units have set everything again before anyone asks."""

from __future__ import annotations

from tests.verify.driver import Hosts
from tests.verify.site import Site


def test_after_a_reboot_nothing_differs(hosts: Hosts, site: Site) -> None:
    hosts.reboot("node1")
    assert hosts.run("node1", "systemctl is-system-running --wait || true") == "running"
    assert site.drift() == []


def test_after_the_driver_was_loaded_anew_nothing_differs(hosts: Hosts, site: Site) -> None:
    # The stand-in's settings go with it; virtio_net itself carries the interfaces, which come anew with it.
    hosts.run("node2", "modprobe -r standin_qos; modprobe standin_qos; for n in ens1 ens2; do systemctl restart rdma-qos@$n; done")
    assert site.drift() == []


def test_a_failure_at_boot_is_told_to_systemd(hosts: Hosts) -> None:
    hosts.run("node2", "modprobe -r standin_qos; modprobe standin_qos refuse=1")
    said = hosts.run(
        "node2", "systemctl restart rdma-qos@ens1; systemctl is-failed rdma-qos@ens1; journalctl -q -o cat -n 5 -u rdma-qos@ens1"
    )
    assert said.splitlines()[0] == "failed"
    assert "ens1" in said
    hosts.run("node2", "modprobe -r standin_qos; modprobe standin_qos; systemctl restart rdma-qos@ens1 rdma-qos@ens2")
