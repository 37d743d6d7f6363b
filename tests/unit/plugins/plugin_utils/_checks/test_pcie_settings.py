# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How PCIe is set up: payload, read requests, ACS, IOMMU and the nearest GPU."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie import check_pcie
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, bad, card_facts, card_rails, first_pci

SETTINGS = ["pcie.payload", "pcie.mrrs", "pcie.acs", "pcie.distance"]
FIRST_BRIDGE = "0000:3c:00.0"


def gpu_facts(**iommu: Any) -> dict[str, Any]:
    """The facts of card_facts with two GPUs, each below the switch of a card, on bare metal."""
    facts = card_facts()
    facts["gpus"] = [{"address": "0000:3f:00.0", "model": "NVIDIA H100 80GB HBM3"}, {"address": "0000:60:00.0", "model": None}]
    facts["distances"] = {"0000:3f:00.0": {"mlx5_0": "PIX", "mlx5_1": "SYS"}, "0000:60:00.0": {"mlx5_0": "SYS", "mlx5_1": "PXB"}}
    facts["iommu"] = {"present": True, "mode": "passthrough", "virtual_machine": False, **iommu}
    return facts


def found_in(facts: dict[str, Any], **rails: Any) -> dict[str, Finding]:
    """The findings on rail 0 and on the host, by check."""
    found = check_pcie(HOST, card_rails(**rails), from_dict(facts), "preflight")
    return {finding.check: finding for finding in found if not finding.subject.startswith("rail 1 ")}


def warned(found: dict[str, Finding]) -> list[tuple[str, str]]:
    return bad(list(found.values()))


def test_a_good_host_with_gpus_passes() -> None:
    found = found_in(gpu_facts())
    assert {check: found[check].status for check in [*SETTINGS, "host.iommu"]} == dict.fromkeys([*SETTINGS, "host.iommu"], "ok")
    assert found["pcie.distance"].observed == "PIX to the nearest GPU"
    assert found["pcie.mrrs"].observed == "4096 bytes"
    assert found["pcie.payload"].observed == "256 bytes"
    assert {finding.remedy for finding in found.values()} == {""}


def test_a_host_without_gpus_is_not_asked_about_their_way() -> None:
    found = found_in(card_facts())
    for check in ("pcie.acs", "pcie.distance", "host.iommu"):
        assert (found[check].status, found[check].observed) == ("not_applicable", "this host has no GPU")
    assert found["pcie.mrrs"].status == "ok"


def test_in_a_virtual_machine_acs_and_iommu_are_the_hypervisors() -> None:
    facts = gpu_facts(mode="translated", virtual_machine=True)
    first_pci(facts)["hops"][0]["acs"] = ["ReqRedir"]
    found = found_in(facts)
    assert {found[check].observed for check in ("pcie.acs", "host.iommu")} == {"in a virtual machine this is the hypervisor's"}


def test_payloads_that_differ_on_the_way() -> None:
    facts = card_facts()
    first_pci(facts)["hops"][2]["mps_bytes"] = 512
    found = found_in(facts)
    assert warned(found) == [("pcie.payload", "warning")]
    assert found["pcie.payload"].observed == (
        "0000:3d:00.0 256 bytes, 0000:3c:00.0 256 bytes, 0000:3b:00.0 256 bytes, 0000:3a:01.0 512 bytes"
    )
    assert "pci=pcie_bus_safe" in found["pcie.payload"].remedy


def test_a_payload_above_what_a_bridge_takes() -> None:
    facts = card_facts()
    first_pci(facts)["hops"][1]["mps_max_bytes"] = 128
    found = found_in(facts)
    assert warned(found) == [("pcie.payload", "warning")]
    assert found["pcie.payload"].observed.endswith("; 0000:3b:00.0 supports less")


def test_a_bridge_that_reports_no_payload_is_left_out() -> None:
    facts = card_facts()
    first_pci(facts)["hops"][0].update(mps_bytes=None, mps_max_bytes=None)
    assert found_in(facts)["pcie.payload"].status == "ok"


@pytest.mark.parametrize(("change", "status"), [({"mps_bytes": None}, "unknown"), ({"hops": []}, "not_applicable")])
def test_no_configuration_space_is_no_payload_to_judge(change: dict[str, Any], status: str) -> None:
    facts = card_facts()
    first_pci(facts).update(change)
    assert found_in(facts)["pcie.payload"].status == status


@pytest.mark.parametrize("check", ["pcie.link", "pcie.path", "pcie.payload", "pcie.mrrs", "pcie.acs", "pcie.distance"])
def test_a_nic_that_is_there_and_whose_pci_function_is_not_known_is_unknown(check: str) -> None:
    facts = gpu_facts()
    facts["devices"]["mlx5_0"]["pci"] = None
    found = found_in(facts)[check]
    assert (found.status, found.observed) == ("unknown", "no PCI function is known for this NIC")
    assert "`lspci -vvv -s" in found.remedy


def test_small_read_requests_of_mlx5() -> None:
    facts = card_facts()
    first_pci(facts)["mrrs_bytes"] = 512
    found = found_in(facts)
    assert warned(found) == [("pcie.mrrs", "warning")]
    assert "`lspci -vvv -s 0000:3d:00.0`" in found["pcie.mrrs"].remedy
    assert found_in(facts, rate_gbps=50)["pcie.mrrs"].observed == "512 bytes, enough for 50 Gb/s"
    planned = check_pcie(HOST, card_rails(), from_dict(facts), "preflight", mrrs_planned=True)
    assert {finding.status for finding in planned if finding.check == "pcie.mrrs"} == {"not_applicable"}


@pytest.mark.parametrize(
    ("device", "pci", "reason"),
    [
        ({"driver": "bnxt_en"}, {}, "the driver here is bnxt_en"),
        ({"function": "vf"}, {}, "the physical function, which is not on this host"),
    ],
)
def test_read_requests_that_are_not_judged(device: dict[str, Any], pci: dict[str, Any], reason: str) -> None:
    facts = card_facts()
    first_pci(facts).update({"mrrs_bytes": 512, **pci})
    facts["devices"]["mlx5_0"].update(device)
    finding = found_in(facts)["pcie.mrrs"]
    assert finding.status == "not_applicable"
    assert reason in finding.observed


def test_read_requests_that_could_not_be_read_are_unknown() -> None:
    facts = card_facts()
    first_pci(facts)["mrrs_bytes"] = None
    found = found_in(facts)["pcie.mrrs"]
    assert (found.status, found.observed) == ("unknown", "the configuration space of 0000:3d:00.0 could not be read")


def test_the_read_requests_of_a_virtual_function_are_set_on_its_physical_one() -> None:
    facts = card_facts()
    first_pci(facts)["mrrs_bytes"] = 512
    facts["devices"]["mlx5_0"].update(function="vf", parent_pci="0000:3d:00.1")
    assert "-s 0000:3d:00.1`" in found_in(facts)["pcie.mrrs"].remedy


def test_acs_that_redirects_names_bridge_and_controls() -> None:
    facts = gpu_facts()
    hops = first_pci(facts)["hops"]
    hops[0]["acs"] = ["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    hops[2]["acs"] = ["DirectTrans"]
    found = found_in(facts)
    assert warned(found) == [("pcie.acs", "warning")]
    assert found["pcie.acs"].observed == f"{FIRST_BRIDGE} has SrcValid, ReqRedir, CmpltRedir, UpstreamFwd"
    assert f"`setpci -s {FIRST_BRIDGE} ECAP_ACS+0x6.w=0000`" in found["pcie.acs"].remedy


def test_bridges_without_acs_do_not_redirect_and_unread_ones_are_unknown() -> None:
    facts = gpu_facts()
    for hop in first_pci(facts)["hops"]:
        hop["acs"] = None
    assert found_in(facts)["pcie.acs"].status == "ok"
    for hop in first_pci(facts)["hops"]:
        hop["mps_bytes"] = None
    assert found_in(facts)["pcie.acs"].status == "unknown"


@pytest.mark.parametrize(
    ("device_id", "model"), [("0x1023", "NVIDIA H100"), ("0x1025", None), ("0x1021", "NVIDIA GB200"), ("0x1021", "NVIDIA GH200 480GB")]
)
def test_platforms_that_need_acs_have_nothing_to_switch_off(device_id: str, model: str | None) -> None:
    facts = gpu_facts()
    facts["gpus"][0]["model"] = model
    first_pci(facts)["device_id"] = device_id
    first_pci(facts)["hops"][0]["acs"] = ["ReqRedir"]
    finding = found_in(facts)["pcie.acs"]
    assert finding.status == "not_applicable"
    assert "`rdma_topo check`" in finding.observed


@pytest.mark.parametrize(
    ("mode", "status"),
    [("off", "ok"), ("passthrough", "ok"), ("translated", "warning"), ("mixed", "warning"), (None, "unknown")],
)
def test_the_iommu(mode: str | None, status: str) -> None:
    found = found_in(gpu_facts(mode=mode))
    assert found["host.iommu"].status == status
    words = ("iommu=pt" in found["host.iommu"].remedy, "iommu.passthrough=1" in found["host.iommu"].remedy)
    assert words == ((True, True) if status == "warning" else (False, False))


def test_a_machine_that_does_not_report_whether_it_is_virtual_is_looked_at() -> None:
    assert warned(found_in(gpu_facts(mode="translated", virtual_machine=None))) == [("host.iommu", "warning")]


def test_a_rail_on_the_other_socket_names_nics_that_are_nearer() -> None:
    facts = gpu_facts()
    facts["distances"] = {"0000:3f:00.0": {"mlx5_0": "SYS", "mlx5_1": "PIX", "mlx5_2": None}}
    found = found_in(facts)
    assert warned(found) == [("pcie.distance", "warning")]
    assert found["pcie.distance"].observed == "every GPU is on another NUMA node (SYS)"
    assert found["pcie.distance"].remedy.endswith("Or plan a nearer NIC (mlx5_1).")


def test_all_rails_on_the_other_socket_have_no_nearer_nic() -> None:
    facts = gpu_facts()
    facts["distances"] = {"0000:3f:00.0": {"mlx5_0": "SYS", "mlx5_1": "SYS"}}
    assert found_in(facts)["pcie.distance"].remedy.endswith("traffic of mlx5_0 crosses sockets.")


def test_distances_that_are_not_judged() -> None:
    assert "a storage rail" in found_in(gpu_facts(), role="storage")["pcie.distance"].observed
    facts = gpu_facts()
    facts["distances"] = {"0000:3f:00.0": {"mlx5_0": None}}
    assert found_in(facts)["pcie.distance"].status == "not_applicable"
    assert found_in(facts)["pcie.distance"].observed.startswith("the firmware reports no distance between any GPU and any NIC")
    facts["distances"] = {"0000:3f:00.0": {"mlx5_0": None, "mlx5_1": "PIX"}}
    assert found_in(facts)["pcie.distance"].status == "unknown"
    assert found_in(facts)["pcie.distance"].observed == "the distance to a GPU is not known"
    del facts["distances"], facts["iommu"]
    assert found_in(facts)["pcie.distance"].status == "unknown"
    assert (found_in(facts)["host.iommu"].status, found_in(facts)["host.iommu"].observed) == ("unknown", "the facts do not contain it")


def test_a_nic_without_an_rdma_device_has_no_distance_of_its_own() -> None:
    facts = gpu_facts()
    pci = facts["devices"].pop("mlx5_0")["pci"]
    facts["nics"] = {pci["address"]: pci}
    facts["distances"] = {"0000:3f:00.0": {"mlx5_1": "PIX"}}
    found = found_in(facts)["pcie.distance"]
    assert (found.status, found.observed) == ("not_applicable", "no RDMA device, so no distance is known: see driver.device")


def test_facts_of_before_do_not_raise() -> None:
    facts = card_facts()
    pci = first_pci(facts)
    facts["devices"]["mlx5_0"]["pci"] = {
        key: pci[key] for key in ("address", "speed_gtps", "width", "max_speed_gtps", "max_width", "narrowest")
    }
    facts["gpus"] = [{"address": "0000:3f:00.0"}]
    found = found_in(facts)
    unread = ("pcie.payload", "pcie.mrrs", "pcie.distance", "host.iommu")
    assert warned(found) == [(check, "unknown") for check in unread]
    assert found["host.iommu"].observed == "the facts do not contain it"
