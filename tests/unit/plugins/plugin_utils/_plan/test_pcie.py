# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role asks of a host, and that it is left alone only if its facts prove that nothing differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import make_request
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import pcie_differs, pcie_settings, pcie_withheld
from tests.unit.builders.cards import ADDRESSES, card_facts, card_rails, first_pci
from tests.unit.builders.hosts import on_host

ROOT = Path(__file__).parents[5]


def intent(mrrs_bytes: int | str = 4096, acs: str = "auto", **rails: Any) -> dict[str, Any]:
    return {"rails": card_rails(**rails), "host": {"pcie": {"mrrs_bytes": mrrs_bytes, "acs": acs}}}


def host(*, guarded: bool = False, model: str | None = "NVIDIA H100", sibling_bytes: int = 4096) -> dict[str, Any]:
    """A host before any service is there."""
    facts = card_facts()
    gpu = {
        "address": "0000:3f:00.0",
        "model": model,
        "pci": {"hops": [{"address": "0000:3c:01.0", "acs": ["ReqRedir"] if guarded else []}]},
    }
    facts.update(gpus=[gpu], iommu={"virtual_machine": False}, nics={"0000:3d:00.1": {"mrrs_bytes": sibling_bytes}})
    first_pci(facts)["hops"][0]["acs"] = ["SrcValid"] if guarded else []
    return {**facts, "files": {}, "units": {}}


def converged(requested: dict[str, Any], acs_allowed: bool = True, **of: Any) -> dict[str, Any]:
    facts = host(**of)
    facts["files"] = on_host(service_files(make_request(**pcie_settings(requested, from_dict(facts), acs_allowed, True))))
    facts["units"] = {UNIT: {"active": True, "enabled": True}}
    return facts


def test_what_is_asked_of_the_module() -> None:
    both = {"nics": list(ADDRESSES), "mrrs_nics": None}
    assert pcie_settings(intent(), from_dict(host())) == {**both, "mrrs_bytes": None, "acs": "leave"}
    assert pcie_settings(intent(), from_dict(host()), False, True) == {**both, "mrrs_bytes": 4096, "acs": "leave"}
    assert pcie_settings(intent(), from_dict(host()), True) == {**both, "mrrs_bytes": None, "acs": "bare_metal"}
    assert pcie_settings(intent("leave", "bare_metal"), from_dict(host()), False, True) == {**both, "mrrs_bytes": None, "acs": "leave"}
    assert pcie_settings(intent(), from_dict(host(model="NVIDIA GB200")), True)["acs"] == "datadirect"
    assert pcie_settings(intent(), from_dict(host(model=None)), True)["acs"] == "leave"
    assert pcie_settings(intent(acs="vm"), from_dict(host()), True)["acs"] == "vm"


def with_rates(*rates_gbps: float | None, state: str = "ACTIVE") -> dict[str, Any]:
    facts = host()
    for device, rate_gbps in zip(facts["devices"].values(), rates_gbps, strict=True):
        device["ports"]["1"].update(rate_gbps=rate_gbps, state=state)
    return facts


FAST = [
    pytest.param(400, with_rates(25, 25), (None, 4096), id="planned"),
    pytest.param(None, with_rates(100, 400), (None, 4096), id="both are fast"),
    pytest.param(None, with_rates(25, 200), ([ADDRESSES[1]], 4096), id="one is fast"),
    pytest.param(None, with_rates(25, 40), (None, None), id="none is fast"),
    pytest.param(50, with_rates(400, 400), (None, None), id="planned slow"),
    pytest.param(None, with_rates(400, 400, state="DOWN"), (None, None), id="down"),
    pytest.param(None, with_rates(None, 200), ([ADDRESSES[1]], 4096), id="no rate"),
]


@pytest.mark.parametrize(("planned_gbps", "facts", "expected"), FAST)
def test_auto_sets_mrrs_of_fast_cards_only(planned_gbps: float | None, facts: dict[str, Any], expected: tuple[Any, Any]) -> None:
    settings = pcie_settings(intent("auto", rate_gbps=planned_gbps), from_dict(facts), False, True)
    assert (settings["mrrs_nics"], settings["mrrs_bytes"]) == expected
    assert pcie_settings(intent(2048, rate_gbps=planned_gbps), from_dict(facts), False, True)["mrrs_nics"] is None
    make_request(**settings)


@pytest.mark.parametrize(
    "change",
    [{"software": True}, {"driver": "bnxt_en"}, {"function": "vf"}, {"pci": None}],
    ids=["software", "driver", "virtual", "no pci"],
)
def test_cards_that_are_left_out(change: dict[str, Any]) -> None:
    facts = host()
    facts["devices"]["mlx5_0"].update(change)
    assert pcie_settings(intent(), from_dict(facts))["nics"] == [ADDRESSES[1]]
    assert pcie_settings(intent(soft=True), from_dict(facts))["nics"] == []


@pytest.mark.parametrize("acs_allowed", [True, False])
def test_a_converged_host_is_left_alone(acs_allowed: bool) -> None:
    for requested in (intent(), intent(2048, "leave"), intent("leave", "leave"), intent(soft=True)):
        facts = converged(requested, acs_allowed)
        if requested["host"]["pcie"]["mrrs_bytes"] == 2048:
            for pci in (*(device["pci"] for device in facts["devices"].values()), *facts["nics"].values()):
                pci["mrrs_bytes"] = 2048
        assert pcie_differs(requested, from_dict(facts), acs_allowed, True) is False


@pytest.mark.parametrize("facts", [None, host()], ids=["no facts", "nothing there"])
def test_what_is_not_there_differs(facts: dict[str, Any] | None) -> None:
    assert pcie_differs(intent(), from_dict(facts), False, True) is True


def test_each_thing_that_differs_is_seen() -> None:
    def differs(requested: dict[str, Any], facts: dict[str, Any]) -> bool:
        return pcie_differs(requested, from_dict(facts), True, True)

    assert differs(intent(), converged(intent(), sibling_bytes=512)) is True
    assert differs(intent(), converged(intent(), guarded=True)) is True
    assert differs(intent("leave", "leave"), converged(intent())) is True
    for unit in ({}, {UNIT: {"active": False, "enabled": True}}, {UNIT: {"active": True, "enabled": False}}):
        assert differs(intent(), {**converged(intent()), "units": unit}) is True
    assert differs(intent(), {**converged(intent()), "units": None}) is True
    unread = converged(intent())
    first_pci(unread)["mrrs_bytes"] = None
    assert differs(intent(), unread) is True
    planned = intent(acs="bare_metal")
    assert differs(planned, converged(planned, model="NVIDIA GB200")) is True


BRIDGES = "0000:3c:00.0, 0000:3c:01.0 redirect traffic between GPUs and NICs to the root complex"
SMALL = "0000:3d:00.1 MRRS of 512 bytes → 4096 bytes"


def test_what_is_withheld_until_it_is_allowed() -> None:
    facts = host(guarded=True, sibling_bytes=512)
    assert pcie_withheld(intent("auto"), from_dict(facts)) == {
        "mrrs": f"{SMALL}; pcie_mrrs_allowed is false",
        "acs_write": f"{BRIDGES}; pcie_acs_write_allowed is false",
    }
    assert list(pcie_withheld(intent(), from_dict(facts), True)) == ["mrrs"]
    assert list(pcie_withheld(intent(), from_dict(facts), False, True)) == ["acs_write"]
    assert pcie_withheld(intent(), from_dict(facts), True, True) == {}
    assert pcie_withheld(intent(), from_dict(host())) == {}
    assert pcie_withheld(intent("leave", "leave"), from_dict(facts)) == {}
    assert "acs_write" not in pcie_withheld(intent(), from_dict(host(guarded=True, model="NVIDIA GB200")))
    assert pcie_withheld(intent(soft=True), from_dict(facts)) == {}
    # What may not be changed is no difference.
    assert pcie_differs(intent(), from_dict(host(guarded=True, sibling_bytes=512))) is False


@pytest.mark.parametrize(("permits", "kept"), [((False, False), ["mrrs", "acs_write"]), ((True, False), ["mrrs"])])
def test_a_permission_that_is_withdrawn_keeps_the_service(permits: tuple[bool, bool], kept: list[str]) -> None:
    """It is removed where nothing is requested any more."""
    facts, requested = converged(intent()), intent()
    assert pcie_settings(requested, from_dict(facts), *permits) == {**pcie_settings(requested, from_dict(facts), True, True), "kept": kept}
    assert pcie_differs(requested, from_dict(facts), *permits) is False
    drifted = {**converged(requested, sibling_bytes=512)}
    assert pcie_differs(requested, from_dict(drifted), *permits) is False
    assert pcie_withheld(requested, from_dict(drifted), *permits)["mrrs"] == f"{SMALL}; pcie_mrrs_allowed is false"
    assert pcie_settings(intent(2048), from_dict(facts), *permits)["mrrs_bytes"] == 2048
    nothing = intent("leave", "leave")
    assert "kept" not in pcie_settings(nothing, from_dict(facts), *permits)
    assert pcie_differs(nothing, from_dict(facts), *permits) is True


def test_a_setting_that_was_never_allowed_is_not_kept() -> None:
    requested = intent()
    only_acs = host()
    only_acs["files"] = on_host(service_files(make_request(**pcie_settings(requested, from_dict(only_acs), True, False))))
    only_acs["units"] = {UNIT: {"active": True, "enabled": True}}
    assert pcie_settings(requested, from_dict(only_acs), True, False)["mrrs_bytes"] is None
    assert pcie_settings(requested, from_dict(only_acs)) == {**pcie_settings(requested, from_dict(only_acs), True), "kept": ["acs_write"]}
    assert pcie_differs(requested, from_dict(only_acs)) is False


@pytest.mark.parametrize("state", ["integrity", "confidentiality"])
def test_lockdown_withholds_what_is_allowed(state: str) -> None:
    facts = {**host(guarded=True, sibling_bytes=512), "stack": {"lockdown": state}}
    reason = f"kernel lockdown ({state}) forbids writes to PCI configuration space"
    assert pcie_withheld(intent(), from_dict(facts), True, True) == {"mrrs": f"{SMALL}; {reason}", "acs_write": f"{BRIDGES}; {reason}"}
    assert pcie_settings(intent(), from_dict(facts), True, True) == {
        "nics": list(ADDRESSES),
        "mrrs_nics": None,
        "mrrs_bytes": None,
        "acs": "leave",
    }
    assert pcie_differs(intent(), from_dict(facts), True, True) is False
    # A service from before lockdown is removed.
    assert pcie_differs(intent(), from_dict({**converged(intent()), "stack": {"lockdown": state}}), True, True) is True
    assert pcie_withheld(intent(), from_dict({**facts, "stack": {"lockdown": "none"}}), True, True) == {}
