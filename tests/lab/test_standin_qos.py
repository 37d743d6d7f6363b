# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for an mlx5 NIC's quality of service, in a lab of two machines that is up: RDMA_TEST_LAB=NAME pytest tests/lab.

What asks is real: `dcb`, `ethtool`, `ping`, the kernel's own files.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import cluster, remote
from lab.standins import qos

NIC = "ens1"
DCB = f"dev {NIC}"
Run = Callable[[str], str]

pytestmark = pytest.mark.skipif("RDMA_TEST_LAB" not in os.environ, reason="RDMA_TEST_LAB names no lab that is up")


def shell(number: int) -> Run:
    """A machine's shell; a command that fails is an AssertionError with what it said."""
    lab = cluster.load(os.environ["RDMA_TEST_LAB"])

    def run(command: str) -> str:
        answer = remote.execute(lab.plan.nodes[number], lab.folder, command, timeout_seconds=60)
        assert answer.status == 0, f"{command}: {answer.stdout}{answer.stderr}"
        return answer.stdout

    return run


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Both machines, with the package, an address on the first rail, and an RDMA device."""
    package = base64.b64encode(qos.make(tmp_path_factory.mktemp("package"), stack="ofed").read_bytes()).decode()
    machines = (shell(0), shell(1))
    for number, run in enumerate(machines, start=1):
        run(f"echo {package} | base64 -d > /tmp/qos.deb; modprobe -r standin_qos 2>/dev/null; dpkg -i /tmp/qos.deb")
        run("apt-get install --yes --quiet --no-install-recommends rdma-core ibverbs-utils perftest >/dev/null")
        run(f"ip link set {NIC} up; ip address replace 192.168.100.{number}/24 {DCB}; modprobe rdma_rxe")
        run(f"rdma link show rxe_{NIC}/1 2>/dev/null || rdma link add rxe_{NIC} type rxe netdev {NIC}")
    return machines


@pytest.fixture
def run(installed: tuple[Run, Run]) -> Run:
    """The first machine, its NIC as after a reload of the driver."""
    reload(installed[0])
    return installed[0]


def reload(run: Run, options: str = "") -> None:
    run(f"modprobe -r standin_qos; modprobe standin_qos {options}")


def shown(run: Run, what: str) -> Any:
    return json.loads(run(f"dcb -j -N {what} show {DCB}"))


def statistics(run: Run) -> dict[str, int]:
    pairs = (line.split(":") for line in run(f"ethtool -S {NIC}").splitlines()[1:])
    return {name.strip(): int(value) for name, value in pairs}


def carrier(run: Run) -> bool:
    return run(f"cat /sys/class/net/{NIC}/carrier").strip() == "1"


def wait_for_link(run: Run) -> None:
    for _attempt in range(20):
        if carrier(run):
            return
        time.sleep(0.2)
    raise AssertionError("the link stays down")


def only(priority: int) -> list[bool]:
    return [number == priority for number in range(8)]


def test_a_change_of_pfc_takes_the_link_down_for_a_while(run: Run) -> None:
    assert shown(run, "pfc")["prio_pfc"] == [False] * 8
    state = run(f"dcb pfc set {DCB} prio-pfc 3:on; cat /sys/class/net/{NIC}/carrier")
    assert state.strip() == "0"
    wait_for_link(run)
    assert shown(run, "pfc")["prio_pfc"] == only(3)
    assert shown(run, "buffer")["prio_buffer"] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert run(f"dcb pfc set {DCB} prio-pfc 3:on; cat /sys/class/net/{NIC}/carrier").strip() == "1"


def test_the_first_dscp_switches_trust_and_the_last_one_back(run: Run) -> None:
    assert "Priority trust state: pcp" in run(f"mlnx_qos -i {NIC}")
    run(f"dcb app replace {DCB} dscp-prio 26:5 48:6; dcb app replace {DCB} dscp-prio 26:3")
    assert shown(run, "app") == {"dscp_prio": [[26, 3], [48, 6]]}
    assert "\tprio:3 dscp:26,\n\tprio:6 dscp:48,\n" in run(f"mlnx_qos -i {NIC}")
    run(f"dcb app del {DCB} dscp-prio 26:3 48:6")
    assert "Priority trust state: pcp" in run(f"mlnx_qos -i {NIC}")


def test_shares_that_are_not_a_whole_are_refused(run: Run) -> None:
    run(f"mlnx_qos -i {NIC} -s ets,ets,ets,ets,ets,ets,strict,ets -t 50,0,0,50,0,0,0,0 -p 0,0,0,3,0,0,6,0")
    assert shown(run, "ets")["tc_bw"] == [50, 0, 0, 50, 0, 0, 100, 0]
    words = run(f"mlnx_qos -i {NIC} -t 50,0,0,40,0,0,0,0; echo $?").splitlines()
    assert words == ["Netlink error: Bad value. see dmesg.", "1"]


def test_a_reload_forgets(run: Run) -> None:
    run(f"mlnx_qos -i {NIC} --trust dscp; mlnx_qos -i {NIC} --pfc 0,0,0,1,0,0,0,0")
    wait_for_link(run)
    assert len(shown(run, "app")["dscp_prio"]) == 64
    reload(run)
    assert shown(run, "app") == {}
    assert shown(run, "pfc")["prio_pfc"] == [False] * 8


def test_the_files_of_ofed(run: Run) -> None:
    ecn = f"/sys/class/net/{NIC}/ecn"
    assert run(f"ls {ecn}/roce_np/enable").split() == [str(priority) for priority in range(8)]
    assert run(f"cat {ecn}/roce_rp/enable/3; (echo 1 > {ecn}/roce_rp/enable/3) 2>/dev/null || echo refused").split() == ["1", "refused"]
    assert run(f"echo 0 > {ecn}/roce_rp/enable/3; echo 1 > {ecn}/roce_rp/enable/3; cat {ecn}/roce_rp/enable/3").strip() == "1"
    assert (
        run(f"echo 40 > {ecn}/roce_np/cnp_dscp; echo 5 > {ecn}/roce_rp/rpg_threshold; cat {ecn}/*/cnp_dscp {ecn}/*/rpg_threshold")
        == "40\n5\n"
    )
    path = f"/sys/class/infiniband/rxe_{NIC}/tc/1/traffic_class"
    assert run(f"cat {path}; echo 106 > {path}; cat {path}; echo tclass=-1 > {path}; cat {path}") == "Global tclass=106\n"


def test_the_files_of_the_kernels_own_driver(run: Run) -> None:
    reload(run, "ofed=0")
    folder = "/sys/kernel/debug/mlx5/0000:21:00.0/cc_params"
    assert run(f"cat {folder}/np_cnp_dscp; echo 40 > {folder}/np_cnp_dscp; cat {folder}/np_cnp_dscp {folder}/rp_gd") == "48\n40\n11\n"
    assert run(f"ls -d /sys/class/net/{NIC}/ecn /sys/class/net/{NIC}/qos 2>/dev/null || true") == ""


def test_packets_are_counted_in_the_priority_of_their_dscp(run: Run, installed: tuple[Run, Run]) -> None:
    other = installed[1]
    reload(other)
    run(f"dcb app add {DCB} dscp-prio 26:3 48:6")
    before, there = statistics(run), statistics(other)
    run("ping -q -c 20 -i 0.05 -s 1000 -Q 106 192.168.100.2")
    after, then = statistics(run), statistics(other)
    assert after["tx_prio3_packets"] - before["tx_prio3_packets"] == 20
    assert after["tx_prio3_bytes"] - before["tx_prio3_bytes"] == 20 * (14 + 20 + 8 + 1000)
    assert after["rx_prio3_bytes"] - before["rx_prio3_bytes"] == 20 * (14 + 20 + 8 + 1000)
    # The other machine trusts PCP: without a VLAN tag everything is priority 0.
    assert then["rx_prio3_packets"] == there["rx_prio3_packets"]
    assert then["rx_prio0_packets"] - there["rx_prio0_packets"] >= 20


def test_what_the_switch_marks_is_answered(run: Run, installed: tuple[Run, Run]) -> None:
    """RDMA traffic over a cable that marks: each mark is a CNP of the receiver, in the CNP's priority, and a count at the sender."""
    name, other = os.environ["RDMA_TEST_LAB"], installed[1]
    reload(other)
    for machine in installed:
        machine(f"dcb app add {DCB} dscp-prio 26:3 48:6; echo 106 > /sys/class/infiniband/rxe_{NIC}/tc/1/traffic_class")
    cluster.cable(name, "node2", 0, {"mark": 32})
    test = f"timeout 50 ib_write_bw -d rxe_{NIC} -x 1 -n 300 -s 65536"
    other(f"setsid {test} > /dev/null 2>&1 < /dev/null & sleep 4")
    run(f"{test} 192.168.100.2")
    cluster.cable(name, "node2", 0, {"mark": 0})
    folder = f"/sys/class/infiniband/rxe_{NIC}/ports/1/hw_counters"
    marked, sent = (int(word) for word in other(f"cat {folder}/np_ecn_marked_roce_packets {folder}/np_cnp_sent").split())
    assert marked >= sent > 0
    assert int(run(f"cat {folder}/rp_cnp_handled")) == sent
    here, there = statistics(run), statistics(other)
    assert here["rx_prio6_packets"] == there["tx_prio6_packets"] == sent
    assert here["tx_prio3_bytes"] == there["rx_prio3_bytes"] > 300 * 65536


def test_a_priority_without_pfc_has_no_pause_counters(run: Run) -> None:
    names = statistics(run)
    assert "rx_prio3_pause" not in names
    assert "rx_global_pause" in names
    run(f"dcb pfc set {DCB} prio-pfc 3:on")
    wait_for_link(run)
    names = statistics(run)
    assert names["rx_prio3_pause"] == 0
    assert "rx_prio4_pause" not in names
    assert "rx_global_pause" not in names
    assert "RX:\t\toff" in run(f"ethtool -a {NIC}")


def test_sabotage(run: Run) -> None:
    folder = Path("/sys/module/standin_qos/parameters")
    run(f"echo 1 > {folder}/refuse")
    assert run(f"mlnx_qos -i {NIC} --pfc 0,0,0,1,0,0,0,0; echo $?") == "Netlink error: Bad value. see dmesg.\n1\n"
    assert run(f"dcb app add {DCB} dscp-prio 26:3 2>/dev/null; echo $?") == "1\n"
    # What reads before it writes (pfc, ets, buffer) says nothing of a refusal and ends with 0 in iproute2 6.1 (fixed in 6.2).
    assert run(f"dcb pfc set {DCB} prio-pfc 3:on; echo $?") == "0\n"
    assert shown(run, "pfc")["prio_pfc"] == [False] * 8
    run(f"echo 0 > {folder}/refuse")
    run(f"echo 1 > {folder}/ignore; dcb pfc set {DCB} prio-pfc 3:on; mlnx_qos -i {NIC} --trust dscp; echo 0 > {folder}/ignore")
    assert shown(run, "pfc")["prio_pfc"] == [False] * 8
    assert shown(run, "app") == {}
    run(f"echo 200 > {folder}/flap_ms; dcb pfc set {DCB} prio-pfc 3:on; echo 300 > {folder}/overwrite_ms")
    run(f"sleep 1; echo 0 > {folder}/overwrite_ms")
    assert shown(run, "pfc")["prio_pfc"] == [False] * 8
    assert carrier(run)
