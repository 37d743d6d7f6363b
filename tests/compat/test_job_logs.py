# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The diagnosis of logs of real machines: kernel, NCCL, nccl-tests, perftest and pingpong, read where they lie."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import JobLog, read_job_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import ERROR, SYMPTOM

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
FOLDERS = ("dmesg", "nccl-log", "nccl-tests", "perftest", "pingpong")
FAULT = re.compile(r"^\| (?P<folder>[\w-]+) \| (?P<name>\S+) \|.*\bFAULT: ")
#: Capture → the kind of line of its fault, and the first cause, which differs if another fault came before.
FAULTS: dict[str, tuple[str, str | None]] = {
    "dmesg/gpud-dmesg-peermem.log": ("kernel.peermem", "kernel.peermem"),
    "dmesg/gpud-kmsg-peermem.log": ("kernel.peermem", "kernel.peermem"),
    "dmesg/gpud-nccl-dmesg-segfault.log": ("kernel.segfault", "kernel.segfault"),
    "dmesg/ml-bnxt-too-many-tc.txt": ("kernel.qos", "kernel.qos"),
    "dmesg/ml-bnxt_re-create-mad-cq.txt": ("kernel.probe", "kernel.command"),
    "dmesg/ml-hfi1-could-not-allocate-unit.txt": ("kernel.probe", "kernel.probe"),
    "dmesg/ml-hfi1-ipoib-oops.txt": ("kernel.oops", "kernel.oops"),
    "dmesg/ml-mlx4-pcie-x2-limited.txt": ("kernel.pcie_slow", None),
    "dmesg/ml-mlx5-async-reg-mr-failed.txt": ("kernel.timeout", "kernel.timeout"),
    "dmesg/ml-mlx5-boot-hang-a.txt": ("kernel.oops", "kernel.oops"),
    "dmesg/ml-mlx5-cq-error-syndrome1.txt": ("kernel.queue", "kernel.queue"),
    "dmesg/ml-mlx5-create_qp-dump_command.txt": ("kernel.resources", "kernel.resources"),
    "dmesg/ml-mlx5-dpc-containment-recovery-failed.txt": ("kernel.pcie", "kernel.pcie"),
    "dmesg/ml-mlx5-invalid-vpd-tag.txt": ("kernel.vpd", None),
    "dmesg/ml-mlx5-iommu-cqe-local-protection.txt": ("iommu.fault", "iommu.fault"),
    "dmesg/ml-mlx5-irq_alloc-failed-nospace.txt": ("kernel.interrupts", "kernel.interrupts"),
    "dmesg/ml-mlx5-load-failed-eqs.txt": ("kernel.probe", "kernel.probe"),
    "dmesg/ml-mthca-old-fw.txt": ("kernel.oops", "kernel.oops"),
    "dmesg/ml-nvme-symbol-disagrees-ofed.txt": ("kernel.modules", "kernel.modules"),
    "perftest/ml-read_bw-hns-with-kernel-bug.txt": ("kernel.oops", "kernel.oops"),
    "perftest/ml-write_bw-couldnt-get-device-attributes.txt": ("ib.query", "ib.query"),
    "pingpong/ml-qperf-failed-rtr.txt": ("qp.connect", "qp.connect"),
    "pingpong/ml-rc_pingpong-rtr-fail-rxe.txt": ("qp.connect", "qp.connect"),
    "pingpong/ml-rc_pingpong-rtr-two-lines.txt": ("qp.connect", "qp.connect"),
    "pingpong/ml-rc_pingpong-siw-rts-fail.txt": ("qp.connect", "qp.connect"),
}
#: Faults that are no line of the log: a low rate.
SILENT = ("perftest/ml-read_bw-rxe-drops.txt",)
#: Failures that the index does not mark.
UNMARKED = {"dmesg/ml-mlx5-boot-journal.txt": "kernel.oops", "nccl-log/meshplugin-modify-qp-110-unroutable-gid.txt": "qp.timeout"}
CAPTURES = [f"{folder}/{path.name}" for folder in FOLDERS for path in sorted((FIXTURES / folder).iterdir())] if FIXTURES.is_dir() else []


def read(capture: str) -> JobLog:
    return read_job_log((FIXTURES / capture).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True))


def marked() -> list[str]:
    """The captures of these folders that the index marks as faults."""
    rows = [FAULT.match(line) for line in (FIXTURES / "INDEX.md").read_text(encoding="utf-8").splitlines()]
    return [f"{row['folder']}/{row['name']}" for row in rows if row is not None and row["folder"] in FOLDERS]


@pytest.mark.parametrize("capture", FAULTS)
def test_a_fault(capture: str) -> None:
    kind, first = FAULTS[capture]
    log = read(capture)
    assert kind in [each.name for each in log.occurrences]
    assert log.cause == first


@pytest.mark.parametrize("capture", [capture for capture in CAPTURES if capture not in FAULTS])
def test_a_capture_without_a_fault(capture: str) -> None:
    log = read(capture)
    assert log.cause == UNMARKED.get(capture)
    if capture not in UNMARKED:
        assert [each.name for each in log.occurrences if each.kind in (ERROR, SYMPTOM)] == []


def test_how_many_marked_faults_are_named() -> None:
    faults = marked()
    right = [capture for capture in faults if capture in FAULTS and FAULTS[capture][0] in [each.name for each in read(capture).occurrences]]
    print(f"{len(right)} of {len(faults)} marked faults have the right kind")
    assert sorted(set(faults) - set(right)) == sorted(SILENT)
