# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile on both stacks: asked of the machines' own tools, not of our facts."""

from __future__ import annotations

import json

from tests.verify.driver import Hosts
from tests.verify.site import Site

ONLY_3 = [priority == 3 for priority in range(8)]


def test_the_build_ends_well(site: Site) -> None:
    done = site.run()
    assert done.returncode == 0, done.stdout
    backends = {line["host"]: line["observed"].split(":")[0] for line in site.lines("findings.jsonl") if line["check"] == "qos.backend"}
    assert backends == {"node1": "mlnx_qos", "node2": "dcb"}


def test_again_it_changes_nothing_and_a_check_finds_nothing(site: Site) -> None:
    again = site.run()
    assert again.returncode == 0, again.stdout
    assert site.lines("changes.jsonl") == []
    assert site.drift() == []


def test_dcb_says_so_on_both(hosts: Hosts) -> None:
    for name in ("node1", "node2"):
        for nic in ("ens1", "ens2"):
            assert json.loads(hosts.run(name, f"dcb -j -N pfc show dev {nic}"))["prio_pfc"] == ONLY_3
            apps = json.loads(hosts.run(name, f"dcb -j -N app show dev {nic}"))["dscp_prio"]
            assert [26, 3] in apps
            assert [48, 6] in apps
            ets = json.loads(hosts.run(name, f"dcb -j -N ets show dev {nic}"))
            assert (ets["prio_tc"][3], ets["prio_tc"][6], ets["tc_bw"][3], ets["tc_tsa"][6]) == (3, 6, 50, "strict")
            assert "RX:\t\toff" in hosts.run(name, f"ethtool -a {nic}")


def test_ofed_says_so_where_it_is(hosts: Hosts) -> None:
    answer = hosts.run("node1", "mlnx_qos -i ens1")
    assert "Priority trust state: dscp" in answer
    assert "\tenabled     0   0   0   1   0   0   0   0" in answer
    assert hosts.run("node1", "cat /sys/class/infiniband/rxe_rail0/tc/1/traffic_class") == "Global tclass=106"


def test_rdma_cm_gives_the_type_of_service(hosts: Hosts) -> None:
    for name in ("node1", "node2"):
        folder = "/sys/kernel/config/rdma_cm/rxe_rail1"
        read = f"mkdir -p {folder}; cat {folder}/ports/1/default_roce_tos {folder}/ports/1/default_roce_mode"
        assert hosts.run(name, read).split("\n")[0] == "106"
