# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage says of PCIe: a planned value that is not there is an error."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import PROGRAM, UNIT, service_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.pcie_tuning import (
    boot_request,
    check_pcie_tuning,
    kept_effects,
    pcie_request,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import mark_symptoms
from tests.unit.builders.cards import HOST, card_facts, card_rails, first_pci
from tests.unit.builders.hosts import on_host

BRIDGE = "0000:3c:00.0"


ALLOWED = {"pcie_mrrs": True, "pcie_acs_write": True}


def intent(mrrs_bytes: int | str = 4096, acs: str = "auto", allowed: dict[str, bool] | None = None, **rails: Any) -> dict[str, Any]:
    pcie = {"mrrs_bytes": mrrs_bytes, "acs": acs}
    return {"rails": card_rails(**rails), "host": {"pcie": pcie}, "allowed": ALLOWED if allowed is None else allowed}


def converged(requested: dict[str, Any], *, model: str | None = "H100", virtual: bool = False) -> dict[str, Any]:
    """The facts of an idle host with a GPU on which the role has run."""
    facts = card_facts()
    facts["gpus"] = [{"address": "0000:3f:00.0", "model": model, "pci": {"hops": []}}]
    facts["iommu"] = {"virtual_machine": virtual}
    facts["nics"] = {"0000:3d:00.1": {**first_pci(facts), "address": "0000:3d:00.1"}}
    facts["units"] = {UNIT: {"active": True, "enabled": True}}
    facts["load"] = {"gpu_processes": [], "jobs": []}
    may = requested["allowed"]
    made = pcie_request(requested, from_dict(facts), acs_allowed=may.get("pcie_acs_write", False), mrrs_allowed=may.get("pcie_mrrs", False))
    facts["files"] = on_host(service_files(made))
    return facts


def check(requested: dict[str, Any], facts: dict[str, Any]) -> dict[str, Finding]:
    """By the first word of the subject: rail 0, rail 1, ACS, PCIe."""
    found = check_pcie_tuning(HOST, requested, from_dict(facts))
    assert {(finding.stage, finding.check) for finding in found} == {("host", "host.pcie")}
    return {finding.subject[:6].strip() if finding.subject.startswith("rail") else finding.subject.split()[0]: finding for finding in found}


def statuses(found: dict[str, Finding]) -> dict[str, str]:
    return {subject: finding.status for subject, finding in found.items()}


def test_a_converged_host_passes() -> None:
    found = check(intent(), converged(intent()))
    assert statuses(found) == {"rail 0": "ok", "rail 1": "ok", "ACS": "ok", "PCIe": "ok"}
    assert found["rail 0"].observed == "0000:3d:00.0 4096 bytes, 0000:3d:00.1 4096 bytes"
    assert {finding.remedy for finding in found.values()} == {""}


def test_one_function_of_a_card_with_other_read_requests_is_an_error() -> None:
    facts = converged(intent())
    facts["nics"]["0000:3d:00.1"]["mrrs_bytes"] = 512
    found = check(intent(), facts)
    assert statuses(found) == {"rail 0": "error", "rail 1": "ok", "ACS": "ok", "PCIe": "ok"}
    assert found["rail 0"].observed == "0000:3d:00.0 4096 bytes, 0000:3d:00.1 512 bytes"
    facts["nics"]["0000:3d:00.1"]["mrrs_bytes"] = None
    assert check(intent(), facts)["rail 0"].status == "unknown"


NOT_TUNED = [
    ({"soft": True}, {}, "a software device has no PCIe path"),
    ({}, {"function": "vf"}, "a virtual function: what its physical function has set holds"),
    ({}, {"driver": "bnxt_en"}, "checked for mlx5 only; the driver here is bnxt_en"),
]


@pytest.mark.parametrize(("rail", "device", "reason"), NOT_TUNED, ids=["software", "virtual", "another driver"])
def test_rails_that_are_not_tuned(rail: dict[str, Any], device: dict[str, Any], reason: str) -> None:
    requested = intent(**rail)
    facts = converged(intent())
    for each in facts["devices"].values():
        each.update(device)
    facts["files"] = {}
    found = check(requested, facts)
    assert set(statuses(found).values()) == {"not_applicable"}
    assert found["rail 0"].observed == reason


def test_nothing_requested_asks_nothing_and_leaves_nothing() -> None:
    requested = intent("leave", "leave")
    assert set(statuses(check(requested, converged(requested))).values()) == {"not_applicable"}
    found = check(requested, converged(intent()))["PCIe"]
    assert found.status == "error"
    assert found.observed == "/etc/rdma-cluster/pcie.json exists and applies settings that the plan does not allow"


def guarded(requested: dict[str, Any], **host: Any) -> dict[str, Any]:
    facts = converged(requested, **host)
    first_pci(facts)["hops"][0]["acs"] = ["SrcValid", "ReqRedir"]
    return facts


ACS = [
    pytest.param(intent(), {}, "error", "Run the host stage", id="allowed"),
    pytest.param(intent(allowed={"pcie_mrrs": True}), {}, "warning", "pcie_acs_write_allowed: true", id="not allowed"),
    pytest.param(intent(acs="bare_metal", allowed={"pcie_mrrs": True}), {}, "error", "pcie_acs_write_allowed: true", id="planned"),
    pytest.param(intent(acs="leave"), {}, "not_applicable", "", id="left"),
    pytest.param(intent(), {"virtual": True}, "not_applicable", "", id="virtual"),
    pytest.param(intent(), {"model": "NVIDIA GB200"}, "not_applicable", "", id="Grace"),
    pytest.param(
        intent(acs="bare_metal"), {"model": "NVIDIA GB200"}, "error", "rdma_host.pcie.acs of node1 to auto", id="planned on Grace"
    ),
    pytest.param(intent(), {"model": None}, "unknown", "Set rdma_host.pcie.acs", id="unknown platform"),
]


@pytest.mark.parametrize(("requested", "host", "status", "remedy"), ACS)
def test_bridges_that_redirect(requested: dict[str, Any], host: dict[str, Any], status: str, remedy: str) -> None:
    found = check(requested, guarded(requested, **host))
    assert found["ACS"].status == status
    assert remedy in found["ACS"].remedy
    assert bool(found["ACS"].remedy) == (status != "not_applicable")
    assert {found[subject].status for subject in ("rail 0", "rail 1", "PCIe")} == {"ok"}
    if status == "warning":
        assert found["ACS"].observed == f"{BRIDGE} redirect; withheld: pcie_acs_write_allowed is false"


LOCKED = {"stack": {"lockdown": "integrity"}}
JOB = {"load": {"gpu_processes": [], "jobs": [{"pid": 4711, "name": "slurmstepd"}]}}
IDLE: dict[str, Any] = {}
LOCKED_WHY = "kernel lockdown (integrity) forbids writes to PCI configuration space"
#: The setting, whether it is allowed, the host, the status, and why it is withheld.
WITHHELD = [
    pytest.param("auto", False, IDLE, "warning", "pcie_mrrs_allowed is false", id="our default, not allowed"),
    pytest.param("auto", True, LOCKED, "warning", LOCKED_WHY, id="our default, lockdown"),
    pytest.param("auto", False, LOCKED, "warning", LOCKED_WHY, id="our default, both"),
    pytest.param("auto", True, JOB, "warning", "job process 4711 (slurmstepd)", id="our default, a job"),
    pytest.param(4096, False, IDLE, "error", "pcie_mrrs_allowed is false", id="planned, not allowed"),
    pytest.param(4096, True, LOCKED, "error", LOCKED_WHY, id="planned, lockdown"),
    pytest.param(4096, True, JOB, "warning", "job process 4711 (slurmstepd)", id="planned, a job"),
]


@pytest.mark.parametrize(("setting", "allowed", "host", "status", "why"), WITHHELD)
def test_mrrs_that_is_withheld(setting: int | str, allowed: bool, host: dict[str, Any], status: str, why: str) -> None:
    requested = intent(setting, "leave", {"pcie_mrrs": allowed})
    facts = {**converged(requested), **host, "files": {}, "units": {}}
    first_pci(facts)["mrrs_bytes"] = 512
    found = check(requested, facts)
    assert (found["rail 0"].status, found["rail 1"].status) == (status, "ok")
    assert found["rail 0"].observed.endswith(f"512 bytes, 0000:3d:00.1 4096 bytes; withheld: {why}")
    todo = {LOCKED_WHY: "1. If node1 passes the pairs stage", "pcie_mrrs_allowed is false": "1. In the inventory"}
    assert found["rail 0"].remedy.startswith(todo.get(why, "Run the host stage when node1 is idle."))
    # The boot is judged by what may be done: nothing is installed, or a job delays it.
    assert found["PCIe"].status == ("warning" if host is JOB else "not_applicable")
    assert why in found["PCIe"].observed


def test_mrrs_that_is_allowed_and_not_set_is_an_error() -> None:
    requested = intent("auto", "leave")
    facts = converged(requested)
    first_pci(facts)["mrrs_bytes"] = 512
    found = check(requested, facts)["rail 0"]
    assert (found.status, found.remedy[:35]) == ("error", "1. Run the host stage for node1. 2.")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"pci": None}, "the PCI function of mlx5_0"),
        ({"function": None}, "the kind of PCI function of mlx5_0"),
        ({"pci": None, "function": None}, "the PCI function and the kind of PCI function of mlx5_0"),
        ({"driver": None}, "the driver of mlx5_0"),
    ],
)
def test_a_card_of_which_too_little_is_known_is_unknown(change: dict[str, Any], what: str) -> None:
    for setting in (4096, "auto"):
        requested = intent(setting, "leave")
        facts = converged(requested)
        facts["devices"]["mlx5_0"].update(change)
        found = check(requested, facts)["rail 0"]
        assert (found.status, found.observed) == ("unknown", f"{what} could not be read")
        assert "`lspci -vvv -s" in found.remedy
    assert check(intent("leave", "leave"), facts)["rail 0"].status == "not_applicable"


def test_auto_cannot_judge_a_card_without_a_rate() -> None:
    requested = intent("auto", "leave", rate_gbps=None)
    facts = converged(requested)
    facts["devices"]["mlx5_0"]["ports"]["1"]["rate_gbps"] = None
    found = check(requested, facts)["rail 0"]
    assert (found.status, found.observed) == ("unknown", "mlx5_0/1 reports no rate, and none is planned")


def test_auto_does_not_judge_slow_cards() -> None:
    requested = intent("auto", "leave", rate_gbps=25)
    facts = converged(requested)
    first_pci(facts)["mrrs_bytes"] = 512
    found = check(requested, facts)
    assert set(statuses(found).values()) == {"not_applicable"}
    assert found["rail 0"].observed == "25 Gb/s: MRRS does not limit cards below 100 Gb/s"
    requested = intent("auto", "leave", rate_gbps=None)
    facts["devices"]["mlx5_0"]["ports"]["1"]["state"] = "DOWN"
    assert check(requested, facts)["rail 0"].observed == "the port is not up: see link.state"


def test_a_service_from_before_lockdown_is_an_error_until_the_host_stage_removes_it() -> None:
    requested = intent("auto", "leave")
    found = check(requested, {**converged(requested), **LOCKED})["PCIe"]
    assert (found.status, found.observed[:27]) == ("error", "/etc/rdma-cluster/pcie.json")


BOOT = [
    pytest.param({"units": {UNIT: {"active": True, "enabled": False}}}, "error", "not enabled", id="not enabled"),
    pytest.param({"units": {UNIT: {"active": False, "enabled": True}}}, "error", "did not run or failed", id="failed"),
    pytest.param({"units": {}}, "error", "not enabled; did not run or failed", id="no unit"),
    pytest.param({"units": None}, "unknown", "systemd or the files could not be read", id="not asked"),
    pytest.param({"files": None}, "unknown", "systemd or the files could not be read", id="no files reported"),
]


@pytest.mark.parametrize(("change", "status", "observed"), BOOT)
def test_the_next_boot(change: dict[str, Any], status: str, observed: str) -> None:
    found = check(intent(), {**converged(intent()), **change})
    assert (found["PCIe"].status, found["PCIe"].observed) == (status, observed)
    assert "`journalctl --unit rdma-pcie.service`" in found["PCIe"].remedy


def test_a_service_whose_permission_is_withdrawn_is_good_while_the_intent_requests_it() -> None:
    facts = converged(intent())
    assert statuses(check(intent(allowed={}), facts)) == {"rail 0": "ok", "rail 1": "ok", "ACS": "ok", "PCIe": "ok"}
    assert check(intent("leave", "leave", allowed={}), facts)["PCIe"].status == "error"


def without_device(facts: dict[str, Any], device: str) -> dict[str, Any]:
    """The facts after the RDMA device of a NIC has gone; the file for the next boot still has its card."""
    return {**facts, "devices": {name: each for name, each in facts["devices"].items() if name != device}}


def test_a_missing_device_explains_a_file_that_has_its_card() -> None:
    facts = without_device(converged(intent()), "mlx5_1")
    found = check(intent(), facts)
    assert (found["PCIe"].status, found["PCIe"].observed) == (
        "unknown",
        "/etc/rdma-cluster/pcie.json cannot be compared with the plan while a card is missing: no RDMA device for rail1",
    )
    assert found["PCIe"].remedy.startswith("1. Fix the RDMA device of rail1 on node1: see driver.device. ")
    gone = Finding("driver", "driver.device", "node1", found["rail 1"].subject, "error", "no RDMA device", "an RDMA device on it")
    assert [each.caused_by for each in mark_symptoms([found["PCIe"]], [gone])] == [f"driver.device on {gone.subject}"]


@pytest.mark.parametrize("unit", [{"active": True, "enabled": False}, {"active": False, "enabled": True}])
def test_a_missing_device_explains_no_service_that_is_off(unit: dict[str, bool]) -> None:
    facts = without_device(converged(intent()), "mlx5_1")
    assert check(intent(), {**facts, "units": {UNIT: unit}})["PCIe"].status == "error"


def test_without_any_device_no_service_is_compared_with_the_plan() -> None:
    facts = {**converged(intent()), "devices": {}}
    found = check(intent(), facts)["PCIe"]
    assert (found.status, found.observed.split(": ")[-1]) == ("unknown", "no RDMA device for rail0, rail1")


def test_a_program_that_is_another_one() -> None:
    facts = converged(intent())
    facts["files"][PROGRAM]["sha256"] = "0"
    found = check(intent(), facts)["PCIe"]
    assert (found.status, found.observed) == ("error", f"{PROGRAM} differs from the plan")


def test_without_a_card_a_withdrawn_permission_keeps_no_setting() -> None:
    """The file of the service is there, but the intent has no rail any more: nothing is applied, and nothing is reported as kept."""
    wanted = intent(acs="bare_metal")
    facts = from_dict(converged(wanted))
    gone: dict[str, Any] = {**wanted, "rails": []}
    made = pcie_request(gone, facts, acs_allowed=False, mrrs_allowed=True)
    boot = boot_request(gone, facts, acs_allowed=False, mrrs_allowed=True)
    assert (bool(boot), boot) == (False, made)
    assert kept_effects(boot, made) == []
    # With its rails, the service keeps ACS at boot.
    made = pcie_request(wanted, facts, acs_allowed=False, mrrs_allowed=True)
    boot = boot_request(wanted, facts, acs_allowed=False, mrrs_allowed=True)
    assert (boot.acs, kept_effects(boot, made)) == ("bare_metal", ["acs_write"])
