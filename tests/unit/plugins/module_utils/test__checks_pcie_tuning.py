# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage says of PCIe: a planned value that is not there is an error."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._checks_pcie_tuning import check_pcie_tuning
from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_plan import pcie_wish
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning_service import PROGRAM, UNIT, service_files
from tests.unit.cards import HOST, card_facts, card_rails, first_pci
from tests.unit.hosts import on_host

BRIDGE = "0000:3c:00.0"


def intent(mrrs_bytes: int | str = 4096, acs: str = "auto", **rails: Any) -> dict[str, Any]:
    return {"rails": card_rails(**rails), "host": {"pcie": {"mrrs_bytes": mrrs_bytes, "acs": acs}}}


def converged(wish: dict[str, Any], *, acs_allowed: bool = True, model: str | None = "H100", virtual: bool = False) -> dict[str, Any]:
    """The facts of a host with a GPU on which the role has run."""
    facts = card_facts()
    facts["gpus"] = [{"address": "0000:3f:00.0", "model": model, "pci": {"hops": []}}]
    facts["iommu"] = {"virtual_machine": virtual}
    facts["nics"] = {"0000:3d:00.1": {**first_pci(facts), "address": "0000:3d:00.1"}}
    facts["units"] = {UNIT: {"active": True, "enabled": True}}
    facts["files"] = on_host(service_files(pcie_wish(wish, facts, acs_allowed=acs_allowed)))
    return facts


def check(wish: dict[str, Any], facts: dict[str, Any]) -> dict[str, Finding]:
    """By the first word of the subject: rail 0, rail 1, ACS, PCIe."""
    found = check_pcie_tuning(HOST, wish, facts)
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
    ({}, {"driver": "bnxt_en"}, "asked of mlx5 only, this is bnxt_en"),
]


@pytest.mark.parametrize(("rail", "device", "reason"), NOT_TUNED, ids=["software", "virtual", "another driver"])
def test_rails_that_are_not_tuned(rail: dict[str, Any], device: dict[str, Any], reason: str) -> None:
    wish = intent(**rail)
    facts = converged(intent())
    for each in facts["devices"].values():
        each.update(device)
    facts["files"] = {}
    found = check(wish, facts)
    assert set(statuses(found).values()) == {"not_applicable"}
    assert found["rail 0"].observed == reason


def test_nothing_wished_asks_nothing_and_leaves_nothing() -> None:
    wish = intent("leave", "leave")
    assert set(statuses(check(wish, converged(wish))).values()) == {"not_applicable"}
    found = check(wish, converged(intent()))["PCIe"]
    assert (found.status, found.observed) == ("error", "there still is /etc/rdma-cluster/pcie.json")


def guarded(wish: dict[str, Any], **host: Any) -> dict[str, Any]:
    facts = converged(wish, **host)
    first_pci(facts)["hops"][0]["acs"] = ["SrcValid", "ReqRedir"]
    return facts


ACS = [
    pytest.param("auto", {"acs_allowed": True}, "error", "Run the host stage", id="allowed"),
    pytest.param("auto", {"acs_allowed": False}, "warning", "pcie_acs_write_allowed: true", id="waits for leave"),
    pytest.param("bare_metal", {"acs_allowed": False}, "error", "pcie_acs_write_allowed: true", id="planned"),
    pytest.param("leave", {}, "not_applicable", "", id="left"),
    pytest.param("auto", {"virtual": True}, "not_applicable", "", id="virtual"),
    pytest.param("auto", {"model": "NVIDIA GB200"}, "not_applicable", "", id="Grace"),
    pytest.param("bare_metal", {"model": "NVIDIA GB200"}, "error", "rdma_host.pcie.acs of node1 to auto", id="planned on Grace"),
    pytest.param("auto", {"model": None}, "unknown", "Say in rdma_host.pcie.acs", id="nothing tells"),
]


@pytest.mark.parametrize(("acs", "host", "status", "remedy"), ACS)
def test_bridges_that_redirect(acs: str, host: dict[str, Any], status: str, remedy: str) -> None:
    wish = intent(acs=acs)
    found = check(wish, guarded(wish, **host))
    assert found["ACS"].status == status
    assert remedy in found["ACS"].remedy
    assert bool(found["ACS"].remedy) == (status != "not_applicable")
    assert {found[subject].status for subject in ("rail 0", "rail 1", "PCIe")} == {"ok"}
    if status == "warning":
        assert found["ACS"].observed == f"{BRIDGE} redirect"


BOOT = [
    pytest.param({"units": {UNIT: {"active": True, "enabled": False}}}, "error", "not enabled", id="not enabled"),
    pytest.param({"units": {UNIT: {"active": False, "enabled": True}}}, "error", "did not run well", id="failed"),
    pytest.param({"units": {}}, "error", "not enabled; did not run well", id="no unit"),
    pytest.param({"units": None}, "unknown", "systemd or the files were not asked", id="not asked"),
    pytest.param({"files": None}, "unknown", "systemd or the files were not asked", id="no files told"),
]


@pytest.mark.parametrize(("change", "status", "observed"), BOOT)
def test_the_next_boot(change: dict[str, Any], status: str, observed: str) -> None:
    found = check(intent(), {**converged(intent()), **change})
    assert (found["PCIe"].status, found["PCIe"].observed) == (status, observed)
    assert "`journalctl --unit rdma-pcie.service`" in found["PCIe"].remedy


def test_a_program_that_is_another_one() -> None:
    facts = converged(intent())
    facts["files"][PROGRAM]["sha256"] = "0"
    found = check(intent(), facts)["PCIe"]
    assert (found.status, found.observed) == ("error", f"{PROGRAM} is another")
