# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a unit does at boot, after a reload of the driver and at a hot-plug: the very file, on the one interface."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import QosHost
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import CONFIG, write_plan
from ansible_collections.rdma.cluster.plugins.module_utils._qos.runner import DEVICE_SECONDS, apply
from tests.unit.builders.qos_hosts import profile
from tests.unit.builders.qos_nic import ALL, NAME, OTHER, Dcb, qos_host

NICS = [{"pci": "0000:3d:00.0"}]


@pytest.fixture
def dcb() -> Dcb:
    return Dcb()


@pytest.fixture
def host(tmp_path: Path, dcb: Dcb) -> QosHost:
    found = qos_host(tmp_path, dcb)
    (tmp_path / "etc/rdma-cluster").mkdir()
    (tmp_path / CONFIG[1:]).write_text(write_plan(profile(), NICS))
    return found


def names(host: QosHost, interface: str = NAME) -> list[str]:
    return [each.name for each in apply(interface, CONFIG, host)]


def test_it_sets_what_a_boot_has_lost_and_nothing_twice(host: QosHost, dcb: Dcb) -> None:
    assert names(host) == ALL
    sets = len(dcb.sets)
    assert names(host) == []
    dcb.nics.clear()
    # Files of the kernel are still as they were.
    assert names(host) == ALL[:-2]
    assert len(dcb.sets) == 2 * sets


def test_an_interface_that_is_none_of_the_file_s_is_left(host: QosHost, dcb: Dcb) -> None:
    assert names(host, OTHER) == []
    assert names(host, "lo") == []
    assert dcb.sets == []


def test_a_device_that_comes_late_is_waited_for(host: QosHost, tmp_path: Path) -> None:
    link = tmp_path / "sys/class/infiniband/mlx5_0"
    target = os.readlink(link)
    link.unlink()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            link.symlink_to(target)

    assert names(replace(host, sleep=sleep)) == ALL
    assert slept[:3] == [1.0] * 3


def test_a_device_that_does_not_come_is_an_error(host: QosHost, dcb: Dcb, tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband/mlx5_0").unlink()
    slept: list[float] = []
    with pytest.raises(ApplyError, match=rf"^{NAME} has no RDMA device 30 s after it came: `rdma link` shows none"):
        apply(NAME, CONFIG, replace(host, sleep=slept.append))
    assert (sum(slept), dcb.sets) == (DEVICE_SECONDS, [])


def test_without_the_file_it_fails(host: QosHost, tmp_path: Path) -> None:
    (tmp_path / CONFIG[1:]).write_text("{}")
    with pytest.raises(ParseError, match=f"^{CONFIG}: not a plan of RoCE"):
        apply(NAME, CONFIG, host)
    (tmp_path / CONFIG[1:]).unlink()
    with pytest.raises(ApplyError, match=rf"^{CONFIG} is not there: .*`systemctl disable rdma-qos@{NAME}.service`"):
        apply(NAME, CONFIG, host)


def test_the_program_runs_without_ansible_and_this_clone(tmp_path: Path) -> None:
    """All that it imports is in it; it reads this machine, which has no such NIC."""
    program, config = tmp_path / "roce_qos.pyz", tmp_path / "roce.json"
    program.write_bytes(host_program("_qos.runner"))

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", str(program), NAME, "--config", str(config)]
        return subprocess.run(command, cwd=tmp_path, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)

    done = run()
    assert (done.returncode, done.stdout, done.stderr.partition(":")[0]) == (1, "", f"{config} is not there")
    config.write_text(write_plan(profile(), [{"mac": "02:00:00:00:00:99"}]))
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
