# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection's own systemd units can do on a host, as systemd-analyze rates it. That they still work, a lab machine shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._host import cpu_ensure
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import PtpRequest
from ansible_collections.rdma.cluster.plugins.module_utils._metrics import service as metrics_service
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import Config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import HostResults
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.unit import PAIRS_FOLDER, PairUnit
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import service
from ansible_collections.rdma.cluster.plugins.module_utils._qos import service as qos_service
from ansible_collections.rdma.cluster.plugins.module_utils._rdma import soft_links
from ansible_collections.rdma.cluster.plugins.module_utils._recorder import service as recorder_service

MOST = 4.0
MODULE_UTILS = Path(cpu_ensure.__file__).parents[1]


class Started:
    """Takes one systemd-run, and keeps its command."""

    argv: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        assert argv[0] == "systemd-run"
        assert not self.argv
        self.argv = tuple(argv)
        return Completed(self.argv, 0, "", "")


def pair_runner() -> str:
    """The transient unit, written as the unit file that systemd-run makes of its command."""
    started = Started()
    PairUnit("S-1", started)._launch("node1", "/usr/bin/python3", 60, resume=True)
    properties = [word.partition("=")[2] for word in started.argv if word.startswith("--property=")]
    command = started.argv[started.argv.index("/usr/bin/python3") :]
    return "\n".join(["[Service]", *properties, f"ExecStart={' '.join(command)}"]) + "\n"


def exporter() -> str:
    config = Config("node1", {}, "/var/lib/prometheus/node-exporter", True, [], HostResults())
    return next(file.text for file in metrics_service.exporter_files(config, 60) if file.path.endswith(metrics_service.UNIT))


UNITS = {
    metrics_service.UNIT: exporter(),
    recorder_service.SERVICE: recorder_service.SERVICE_TEXT,
    cpu_ensure.CPU_UNIT: cpu_ensure.UNIT_TEXT,
    service.UNIT: service.UNIT_TEXT,
    soft_links.UNIT: soft_links.UNIT_TEXT,
    "rdma-qos@ens1.service": qos_service.UNIT_TEXT,
    "rdma-ptp@ens1.service": PtpRequest("ens1", None, 0, "UDPv4", False, False, "chrony.service").unit_text,
    "rdma-ptp@ens2.service": PtpRequest("ens2", None, 0, "UDPv4", True, False, "chrony.service").unit_text,
    "rdma-pairs-S-1.service": pair_runner(),
}


def exposure(folder: Path, name: str, text: str) -> float:
    (folder / name).write_text(text, encoding="utf-8")
    argv = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(folder / name)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert not re.search("Unknown key|Failed to parse|Invalid|ignoring", done.stderr), done.stderr
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return float(found[1])


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed: tests/packages.txt names its package"
)
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_can_do_little_more_than_its_work(tmp_path: Path, name: str) -> None:
    assert exposure(tmp_path, name, UNITS[name]) <= MOST


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed: tests/packages.txt names its package"
)
def test_a_unit_without_restrictions_is_rated_unsafe(tmp_path: Path) -> None:
    """The rating can fail: this is what the units were."""
    text = "\n".join(line for line in UNITS["rdma-pcie.service"].splitlines() if re.match(r"\[|Type|Exec", line))
    assert exposure(tmp_path, "rdma-pcie.service", f"{text}\n") > 9


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_gives_up_what_no_unit_needs(name: str) -> None:
    lines = UNITS[name].splitlines()
    for wanted in ("NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes", "SystemCallFilter=@system-service"):
        assert wanted in lines
    assert sum(line.startswith(("CapabilityBoundingSet=", "RestrictAddressFamilies=", "ProtectHome=")) for line in lines) == 3


def test_the_pair_runner_writes_in_its_own_folder_only() -> None:
    assert [line for line in UNITS["rdma-pairs-S-1.service"].splitlines() if line.startswith("ReadWritePaths")] == [
        f"ReadWritePaths={PAIRS_FOLDER}/S-1"
    ]


def test_every_unit_file_that_a_module_writes_is_rated_here() -> None:
    """A unit of opensm is the distribution's, with a drop-in of ours."""
    found = {
        str(path.relative_to(MODULE_UTILS))
        for path in MODULE_UTILS.rglob("*.py")
        if re.search(r"^ExecStart=/", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found == {
        "_host/cpu_ensure.py",
        "_host/ptp_files.py",
        "_metrics/service.py",
        "_pcie_tuning/service.py",
        "_rdma/soft_links.py",
        "_qos/service.py",
        "_recorder/service.py",
    }
