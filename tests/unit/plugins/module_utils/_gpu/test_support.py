# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""libcuda, NVSwitches and Fabric Manager, without a GPU: the PCI ids are those of an A100 host's lspci."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.support import (
    GpuSupport,
    parse_fabric_manager,
    parse_fabric_manager_package,
    read_cuda_version,
    read_gpu_support,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree

ASKED = ["/usr/bin/nv-fabricmanager", "--version"]
ANSWER = "\n\n\n\tFabric Manager version is : 535.161.08\n\n"
SWITCH = "pci:v000010DEd00001AF1sv000010DEsd00000000bc06sc80i00"
GPU = "pci:v000010DEd000020B5sv000010DEsd00001533bc03sc02i00"
NIC = "pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00"
STANZA = "Package: nvidia-fabricmanager-550\nStatus: {status}\nVersion: {version}\n\nPackage: zlib1g\nVersion: 1.3\n"


def host(root: Path, text: str = "") -> SysRoot:
    devices = "".join(f"/sys/bus/pci/devices/000{number}:00:00.0/modalias: {SWITCH}\n" for number in (5, 6))
    return SysRoot(str(write_tree(root, f"{devices}/sys/bus/pci/devices/0001:00:00.0/modalias: {GPU}\n{text}")))


def test_the_version_is_asked_where_no_package_database_reports_it(tmp_path: Path) -> None:
    runner = FakeRunner([(ASKED, 0, ANSWER, "")])
    assert read_gpu_support(host(tmp_path, "/usr/bin/nv-fabricmanager: x"), runner) == GpuSupport(None, 2, "535.161.08")


def test_a_package_answers_without_a_process(tmp_path: Path) -> None:
    sys = host(tmp_path, "/usr/bin/nv-fabricmanager: x")
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(STANZA.format(status="install ok installed", version="550.54.15-1"))
    assert read_gpu_support(sys, FakeRunner([])).fabric_manager == "550.54.15"


@pytest.mark.parametrize("answer", [(ASKED, 127, "", "error while loading shared libraries"), (ASKED, 0, "", "")])
def test_one_that_does_not_report_is_unknown(tmp_path: Path, answer: tuple[list[str], int, str, str]) -> None:
    assert read_gpu_support(host(tmp_path, "/usr/bin/nv-fabricmanager: x"), FakeRunner([answer])).fabric_manager is None


BRIDGES = {
    "two of the four NICs lead to NVSwitches": (["SMDL=SW_MNG", "SMDL=SW_MNG", "SMDL=MCX75310AAS", ""], 2),
    "NICs alone": (["SMDL=MCX75310AAS"], 0),
}


@pytest.mark.parametrize("name", BRIDGES)
def test_nvswitches_that_are_not_on_the_bus_are_reported_by_the_nics_that_lead_to_them(tmp_path: Path, name: str) -> None:
    products, bridges = BRIDGES[name]
    base = "/sys/bus/pci/devices"
    nics = "".join(f"{base}/0000:0{at}:00.0/modalias: {NIC}\n{base}/0000:0{at}:00.0/vpd: {text}\n" for at, text in enumerate(products))
    ethernet = f"{base}/0000:0a:00.0/modalias: {NIC.replace('sc07', 'sc00')}\n{base}/0000:0a:00.0/vpd: SW_MNG\n"
    text = f"{nics}{ethernet}{base}/0001:00:00.0/modalias: {GPU}\n/usr/bin/nv-fabricmanager: x"
    runner = FakeRunner([(ASKED, 0, ANSWER, "")] if bridges else [])
    found = read_gpu_support(SysRoot(str(write_tree(tmp_path, text))), runner)
    assert found == GpuSupport(None, 0, "535.161.08" if bridges else None, bridges)


def test_product_data_that_cannot_be_read_reports_no_nvswitch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sys = SysRoot(str(write_tree(tmp_path, f"/sys/bus/pci/devices/0000:01:00.0/modalias: {NIC}")))
    read_bytes = SysRoot.read_bytes

    def refuse(sys: SysRoot, path: str) -> bytes | None:
        if path.endswith("/vpd"):
            raise OSError(5, "Input/output error", path)
        return read_bytes(sys, path)

    monkeypatch.setattr(SysRoot, "read_bytes", refuse)
    assert read_gpu_support(sys, FakeRunner([])) == GpuSupport(None, 0, None)


def test_without_nvswitch_nobody_is_asked(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, f"/usr/bin/nv-fabricmanager: x\n/sys/bus/pci/devices/0001:00:00.0/modalias: {GPU}")))
    assert read_gpu_support(sys, FakeRunner([])) == GpuSupport(None, 0, None)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("550.54.15-1", "550.54.15"),
        ("1:580.159.03-0ubuntu0.24.04.1", "580.159.03"),
        ("535.161.08", "535.161.08"),
        ("unknown", None),
    ],
)
def test_the_package_s_version_loses_epoch_and_revision(version: str, expected: str | None) -> None:
    for name in ("nvidia-fabricmanager-550", "nvidia-fabricmanager"):
        text = STANZA.format(status="hold ok installed", version=version).replace("nvidia-fabricmanager-550", name)
        assert parse_fabric_manager_package(text) == expected


def test_a_package_that_was_removed_or_is_another_does_not_count() -> None:
    assert parse_fabric_manager_package(STANZA.format(status="deinstall ok config-files", version="550.54.15-1")) is None
    installed = STANZA.format(status="install ok installed", version="550.54.15-1")
    assert parse_fabric_manager_package(installed.replace("manager-550", "manager-dev-550")) is None


@pytest.mark.parametrize(
    "tree",
    [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1 -> libcuda.so.580.159.04",
        "/usr/lib64/libcuda.so.1 -> libcuda.so.580.159.04\n/usr/lib64/libcuda.so.580.159.04: x",
        """
        /usr/lib/x86_64-linux-gnu/libcuda.so.1 -> /etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu
        /etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu -> /usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1
        /usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1 -> libcuda.so.580.159.04
        """,
    ],
    ids=["Ubuntu", "RHEL", "Debian's alternatives"],
)
def test_libcuda_by_the_file_that_its_link_leads_to(tmp_path: Path, tree: str) -> None:
    assert read_cuda_version(SysRoot(str(write_tree(tmp_path, tree)))) == "580.159.04"


@pytest.mark.parametrize("tree", ["", "/usr/lib64/libcuda.so.1: x", "/usr/lib64/libcuda.so.1 -> /opt/stub/libcuda.so"])
def test_a_libcuda_that_reports_no_version(tmp_path: Path, tree: str) -> None:
    assert read_cuda_version(SysRoot(str(write_tree(tmp_path, tree)))) is None


def test_what_is_no_answer_is_quoted() -> None:
    assert parse_fabric_manager(ANSWER.replace("\n", "\r\n")) == "535.161.08"
    with pytest.raises(ParseError, match="no version of Fabric Manager: 'usage'"):
        parse_fabric_manager("usage")


@given(garbled(ANSWER))
def test_any_other_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_fabric_manager, text)
