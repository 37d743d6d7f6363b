# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCIe service: one file, applied by the module and at boot by the same code; what is done, reported, and refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import boot_service
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import ConfigPort, SysfsPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import service
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import (
    PcieRequest,
    make_request,
    parse_request,
    write_request,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import UNIT, PcieResult, ensure_pcie, service_files
from tests.unit.builders.fakes import Call, FakeRunner
from tests.unit.builders.pcie_host import ABOVE_NIC, CONTROL, NIC, OTHER, SECOND, DeafPort, LockedPort, config_of, pcie_host

SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", UNIT]
NEW: Call = (SHOW, 0, f"Id={UNIT}\nActiveState=inactive\nUnitFileState=\n", "")
RUNNING: Call = (SHOW, 0, f"Id={UNIT}\nActiveState=active\nUnitFileState=enabled\n", "")
REQUEST = PcieRequest((NIC,), 4096, "auto")


def systemctl(*words: str, rc: int = 0, stderr: str = "") -> Call:
    return (["systemctl", *words], rc, "", stderr)


class Host:
    """A tree that pcie_host made, with the service's files beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = pcie_host(folder / "host")
        self.files = folder / "files"

    def ensure(
        self,
        *calls: Call,
        requested: PcieRequest = REQUEST,
        port: ConfigPort | None = None,
        check_mode: bool = False,
        kept: Sequence[str] = (),
    ) -> PcieResult:
        runner = FakeRunner(calls)
        port = port or SysfsPort(str(self.root))
        return ensure_pcie(requested, sys=SysRoot(str(self.root)), port=port, runner=runner, check_mode=check_mode, kept=kept)

    def lock(self, state: str = "integrity") -> None:
        """Put the kernel into lockdown, or make it one that has none ("none")."""
        file = self.root / "sys/kernel/security/lockdown"
        file.parent.mkdir(parents=True, exist_ok=True)
        words = ("none", "integrity", "confidentiality")
        file.write_text(" ".join(f"[{word}]" if word == state else word for word in words) + "\n")

    def run_job(self) -> None:
        """A step of a Slurm job."""
        (self.root / "proc/4711").mkdir(parents=True)
        (self.root / "proc/4711/comm").write_text("slurmstepd\n")

    def boot(self) -> subprocess.CompletedProcess[str]:
        """What the unit runs, with nothing of this clone in reach."""
        command = [sys.executable, "-I", str(self.files / "pcie_tuning.pyz"), "--config", str(self.files / "pcie.json")]
        alone = {"PATH": os.environ["PATH"]}
        return subprocess.run([*command, "--root", str(self.root)], cwd=self.root, env=alone, capture_output=True, text=True, check=False)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host(tmp_path)
    own = {"config": str(found.files / "pcie.json"), "program": str(found.files / "pcie_tuning.pyz")}
    monkeypatch.setattr(service, "BOOT", replace(service.BOOT, **own))
    monkeypatch.setattr(boot_service, "UNITS", str(found.files))
    return found


def test_the_first_run_writes_files_and_settings_and_runs_the_unit(host: Host) -> None:
    result = host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    assert result.changed
    # What auto was found to be is what the boot applies.
    assert json.loads((host.files / "pcie.json").read_text()) == {"nics": [NIC], "mrrs_bytes": 4096, "acs": "bare_metal"}
    assert [(diff["before"], diff["after"]) for diff in result.diffs if diff["after_header"] == UNIT] == [("", "enabled\nstarted\n")]
    settings = [(diff["after_header"], diff["before"], diff["after"]) for diff in result.diffs if " of " in diff["after_header"]]
    assert settings[:2] == [(f"MRRS of {address}", "MRRS of 512 bytes\n", "MRRS of 4096 bytes\n") for address in (NIC, SECOND)]
    assert (settings[3][0], settings[3][2]) == (f"ACS of {ABOVE_NIC}", "ACS TransBlk\n")
    reported = result.to_dict()
    assert (reported["acs"], reported["payload_bytes"], len(reported["functions"])) == ("bare_metal", {NIC: 256, SECOND: 256}, 5)
    again = host.ensure(RUNNING)
    assert (again.changed, again.diffs) == (False, [])


def test_the_boot_applies_the_same_file_with_the_same_code(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    tuned = {address: config_of(host.root, address) for address in (NIC, SECOND, ABOVE_NIC)}
    pcie_host(host.root)
    assert config_of(host.root, NIC) != tuned[NIC]
    first = host.boot()
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines()[0] == f"{NIC} MRRS of 4096 bytes"
    assert {address: config_of(host.root, address) for address in tuned} == tuned
    assert host.boot().stdout == ""


def test_the_boot_fails_where_a_card_is_gone_and_does_the_others(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    pcie_host(host.root)
    (host.files / "pcie.json").write_text(write_request(PcieRequest((NIC, "0000:99:00.0"), 4096, "leave")))
    done = host.boot()
    assert (done.returncode, done.stderr) == (1, "there is no PCI function 0000:99:00.0\n")
    assert f"{NIC} MRRS of 4096 bytes" in done.stdout
    (host.files / "pcie.json").write_text("{}")
    done = host.boot()
    assert done.returncode == 1
    assert "not the PCIe settings of a host" in done.stderr


def test_drift_is_fixed_without_touching_the_service(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    SysfsPort(str(host.root)).write_word(SECOND, 0x68, CONTROL)
    result = host.ensure(RUNNING)
    assert [setting.address for setting in result.found.different] == [SECOND]
    assert [diff["after_header"] for diff in result.diffs] == [f"MRRS of {SECOND}"]


def test_another_request_runs_the_unit_with_its_new_file(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    result = host.ensure(RUNNING, systemctl("restart", UNIT), requested=PcieRequest((NIC,), 2048, "auto"))
    assert [change.path for change in result.service.files] == [str(host.files / "pcie.json")]


def test_check_mode_writes_and_runs_nothing(host: Host) -> None:
    before = {address: config_of(host.root, address) for address in (NIC, SECOND, ABOVE_NIC)}
    result = host.ensure(NEW, check_mode=True)
    assert result.changed
    assert len(result.diffs) == 3 + 1 + 5
    assert not host.files.exists()
    assert {address: config_of(host.root, address) for address in before} == before


def test_settings_that_do_not_stick_fail_with_all_that_did_not(host: Host) -> None:
    with pytest.raises(ApplyError, match=rf"{NIC} MRRS of 4096 bytes was written.*; {SECOND} MRRS.*QEMU"):
        host.ensure(port=DeafPort(str(host.root)))
    # A unit that is known to fail is not installed.
    assert not host.files.exists()
    assert host.ensure(NEW, port=DeafPort(str(host.root)), check_mode=True).changed


def test_a_card_that_is_gone_is_an_error_and_the_others_are_done(host: Host) -> None:
    with pytest.raises(ApplyError, match=r"^there is no PCI function 0000:99:00.0$"):
        host.ensure(requested=PcieRequest((NIC, "0000:99:00.0"), 4096, "leave"))
    assert int.from_bytes(config_of(host.root, NIC)[0x68:0x6A], "little") == 0x593F


def test_a_unit_that_fails_is_quoted(host: Host) -> None:
    failed = systemctl("restart", UNIT, rc=1, stderr="Job for rdma-pcie.service failed.")
    with pytest.raises(ApplyError, match=r"Job for rdma-pcie.service failed"):
        host.ensure(NEW, systemctl("enable", UNIT), failed)


@pytest.mark.parametrize("requested", [PcieRequest((), 4096, "auto"), PcieRequest((NIC,), None, "leave"), PcieRequest((NIC,), None, "vm")])
def test_a_request_for_nothing_removes_the_service_and_leaves_the_settings(host: Host, requested: PcieRequest) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    tuned = config_of(host.root, NIC)
    removed = host.ensure(RUNNING, systemctl("disable", "--now", UNIT), systemctl("daemon-reload"), requested=requested)
    assert removed.changed
    assert list(host.files.iterdir()) == []
    assert config_of(host.root, NIC) == tuned
    assert not host.ensure(NEW, requested=requested).changed


LOCKED_REASON = "kernel lockdown (integrity) forbids writes to PCI configuration space"
REMOVED = (systemctl("disable", "--now", UNIT), systemctl("daemon-reload"))


def test_in_lockdown_nothing_is_written_and_no_unit_is_left(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    pcie_host(host.root)
    host.lock()
    before = {address: config_of(host.root, address) for address in (NIC, SECOND, ABOVE_NIC)}
    result = host.ensure(RUNNING, *REMOVED, port=LockedPort(str(host.root)))
    assert result.changed
    assert list(host.files.iterdir()) == []
    assert result.withheld["mrrs"] == (
        f"{NIC} MRRS of 512 bytes → MRRS of 4096 bytes, {SECOND} MRRS of 512 bytes → MRRS of 4096 bytes; {LOCKED_REASON}"
    )
    assert result.withheld["acs_write"].endswith(LOCKED_REASON)
    assert {diff["after_header"] for diff in result.diffs} == {*(each.path for each in result.service.files), UNIT}
    again = host.ensure(NEW, port=LockedPort(str(host.root)))
    assert (again.changed, again.withheld) == (False, result.withheld)
    assert {address: config_of(host.root, address) for address in before} == before


def test_a_refused_write_counts_as_lockdown_where_its_state_cannot_be_read(host: Host) -> None:
    result = host.ensure(NEW, port=LockedPort(str(host.root)))
    assert (result.changed, host.files.exists()) == (False, False)
    assert "the kernel refuses the write" in result.withheld["mrrs"]
    host.lock("none")
    with pytest.raises(ApplyError, match=rf"{NIC}: the kernel refuses the write"):
        host.ensure(port=LockedPort(str(host.root)))
    assert not host.files.exists()


@pytest.mark.parametrize("check_mode", [True, False])
def test_nothing_is_written_while_a_job_is_there(host: Host, check_mode: bool) -> None:
    host.run_job()
    before = {address: config_of(host.root, address) for address in (NIC, SECOND, ABOVE_NIC)}
    result = host.ensure(check_mode=check_mode)
    assert (result.changed, result.diffs, host.files.exists()) == (False, [], False)
    assert set(result.to_dict()["withheld"]) == {"mrrs", "acs_write"}
    assert result.withheld["mrrs"].endswith("; job process 4711 (slurmstepd)")
    assert {address: config_of(host.root, address) for address in before} == before


def test_a_job_does_not_keep_the_service_from_a_host_that_has_the_settings(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    host.run_job()
    (host.files / UNIT).unlink()
    result = host.ensure(RUNNING, systemctl("daemon-reload"), systemctl("restart", UNIT))
    assert (result.withheld, [change.path for change in result.service.files]) == ({}, [str(host.files / UNIT)])


def test_nothing_is_written_while_a_job_without_gpus_holds_queue_pairs(host: Host) -> None:
    device = host.root / "sys/class/infiniband/mlx5_0/node_type"
    device.parent.mkdir(parents=True, exist_ok=True)
    device.write_text("1: CA\n")
    qp = {"ifname": "mlx5_0", "port": 1, "lqpn": 17, "type": "RC", "state": "RTS", "pid": 4711, "comm": "mpi_job"}
    before = config_of(host.root, NIC)
    result = host.ensure((["rdma", "-j", "resource", "show", "qp"], 0, json.dumps([qp]), ""))
    assert result.withheld["mrrs"].endswith("; 1 queue pair of mpi_job (pid 4711) on mlx5_0/1")
    assert (config_of(host.root, NIC), host.files.exists()) == (before, False)


@pytest.mark.parametrize("kept", [["mrrs"], ["acs_write"], ["mrrs", "acs_write"]])
def test_a_permission_that_is_withdrawn_leaves_the_service_of_settings_that_are_there(host: Host, kept: list[str]) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    again = host.ensure(RUNNING, kept=kept, requested=PcieRequest((NIC,), 4096, "bare_metal"))
    assert (again.changed, again.withheld) == (False, {})


def test_what_is_not_allowed_any_more_is_not_written_again_and_the_service_stays(host: Host) -> None:
    """What is still allowed is written."""
    requested = PcieRequest((NIC,), 4096, "bare_metal")
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT), requested=requested)
    files = {path.name: path.read_text(errors="replace") for path in host.files.iterdir()}
    pcie_host(host.root)
    before = config_of(host.root, NIC)
    result = host.ensure(requested=requested, kept=["mrrs"])
    assert list(result.withheld) == ["mrrs"]
    assert result.withheld["mrrs"].endswith("; pcie_mrrs_allowed is false")
    assert {each.effect for each in result.written} == {"acs_write"}
    assert config_of(host.root, NIC) == before
    assert host.ensure(requested=requested, kept=["mrrs"]).written == []
    assert {path.name: path.read_text(errors="replace") for path in host.files.iterdir()} == files


def test_a_service_gets_no_setting_that_was_never_allowed(host: Host) -> None:
    """Its value is there by chance."""
    both = PcieRequest((NIC,), 4096, "bare_metal")
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT), requested=PcieRequest((NIC,), None, "bare_metal"))
    for address in (NIC, SECOND):
        SysfsPort(str(host.root)).write_word(address, 0x68, CONTROL & 0x8FFF | 5 << 12)
    assert not host.ensure(RUNNING, requested=both, kept=["mrrs"]).changed
    assert parse_request((host.files / "pcie.json").read_text()).mrrs_bytes is None


def test_lockdown_that_is_enabled_later_does_not_fail_the_boot(host: Host) -> None:
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    pcie_host(host.root)
    host.lock("confidentiality")
    before = config_of(host.root, NIC)
    done = host.boot()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == (
        f"{NIC} keeps MRRS of 512 bytes instead of MRRS of 4096 bytes: "
        "kernel lockdown (confidentiality) forbids writes to PCI configuration space"
    )
    assert config_of(host.root, NIC) == before
    # Another failure still is one.
    (host.files / "pcie.json").write_text(write_request(PcieRequest((NIC, "0000:99:00.0"), 4096, "leave")))
    assert host.boot().returncode == 1


def test_mrrs_of_some_cards_is_kept_in_the_file(host: Host) -> None:
    requested = PcieRequest((NIC, OTHER), 4096, "leave", (OTHER,))
    host.ensure(NEW, systemctl("enable", UNIT), systemctl("restart", UNIT), requested=requested)
    assert parse_request((host.files / "pcie.json").read_text()) == requested
    assert int.from_bytes(config_of(host.root, NIC)[0x68:0x6A], "little") == CONTROL
    assert int.from_bytes(config_of(host.root, OTHER)[0x68:0x6A], "little") == CONTROL & 0x8FFF | 5 << 12
    with pytest.raises(ParseError, match=rf"mrrs_nics: {OTHER} is not in nics"):
        make_request([NIC], 4096, "leave", [OTHER])


def test_the_unit_runs_what_is_installed() -> None:
    config, program, unit = service_files(REQUEST)
    assert isinstance(unit.content, str)
    assert f"ExecStart=/usr/bin/python3 {program.path} --config {config.path}\n" in unit.content
    assert (config.path, program.mode) == ("/etc/rdma-cluster/pcie.json", 0o755)
    assert parse_request(config.text) == REQUEST


WRONG = [
    ({"nics": ["0000:3d:00"]}, "not a PCI address: '0000:3d:00'"),
    ({"mrrs_bytes": 300}, "no size of a read request: 300, expected one of 128, 256, 512, 1024, 2048, 4096"),
    ({"acs": "off"}, "acs: 'off' is none of auto, bare_metal, vm, datadirect, leave"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[next(iter(change)) for change, _message in WRONG])
def test_a_request_that_is_none_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ParseError, match=message):
        make_request(**{"nics": [NIC], "mrrs_bytes": 512, "acs": "leave", **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"nics": 1, "mrrs_bytes": null, "acs": "leave"}', '{"more": 1}'])
def test_a_file_that_says_no_request_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="not the PCIe settings of a host"):
        parse_request(text)
