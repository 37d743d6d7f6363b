# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a reboot, and after the driver was loaded again, the units have set everything again before anyone asks."""

from __future__ import annotations

import time

from tests.verify.driver import Hosts
from tests.verify.site import Site

#: The driver lets go of the NIC and takes it again, and the interface is another one with the same name.
PLUG = """\
set -e
nic=$(basename "$(readlink -f /sys/class/net/ens1/device)")
cd /sys/bus/virtio/drivers/virtio_net
echo "$nic" > unbind
sleep 2
echo "$nic" > bind
for _ in $(seq 30); do [ ! -e /sys/class/net/ens1 ] || exit 0; sleep 1; done
exit 1"""


def test_after_a_reboot_nothing_differs(hosts: Hosts, site: Site) -> None:
    hosts.reboot("node1")
    assert hosts.run("node1", "systemctl is-system-running --wait || true") == "running"
    assert site.drift() == []


def test_after_the_driver_was_loaded_again_nothing_differs(hosts: Hosts, site: Site) -> None:
    # The stand-in's settings go with it; virtio_net itself carries the interfaces, which come back with it.
    hosts.run("node2", "modprobe -r standin_qos; modprobe standin_qos; for n in ens1 ens2; do systemctl restart rdma-qos@$n; done")
    assert site.drift() == []


def test_a_nic_that_is_plugged_in_again_is_set_by_its_unit_alone(hosts: Hosts, site: Site) -> None:
    entered = "systemctl show --property ActiveEnterTimestampMonotonic --value rdma-qos@ens1"
    before = hosts.run("node1", entered)
    hosts.run("node1", PLUG)
    # Soft-RoCE is no hardware: nobody makes its device again but its own unit, and that of the profile waits for it.
    hosts.run("node1", "systemctl restart rdma-soft-links")
    for _second in range(60):
        if hosts.run("node1", "systemctl is-active rdma-qos@ens1 || true") == "active" and hosts.run("node1", entered) != before:
            break
        time.sleep(1)
    assert hosts.run("node1", entered) != before
    assert site.drift() == []


def test_a_failure_at_boot_is_reported_to_systemd(hosts: Hosts) -> None:
    hosts.run("node2", "modprobe -r standin_qos; modprobe standin_qos refuse=1")
    answer = hosts.run(
        "node2", "systemctl restart rdma-qos@ens1; systemctl is-failed rdma-qos@ens1; journalctl -q -o cat -n 5 -u rdma-qos@ens1"
    )
    assert answer.splitlines()[0] == "failed"
    assert "ens1" in answer
    hosts.run("node2", "modprobe -r standin_qos; modprobe standin_qos; systemctl restart rdma-qos@ens1 rdma-qos@ens2")
