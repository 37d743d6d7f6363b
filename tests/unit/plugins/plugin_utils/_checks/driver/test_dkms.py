# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DKMS at the driver gate: what is registered is installed for the kernel that runs, and each cause is named once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import is_relevant
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import Missing, check_dkms, missing
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import stack_of
from tests.unit.builders.hosts import lab_facts

HERE, THERE = "5.15.0-91-generic", "5.15.0-88-generic"
OFED = "24.10.OFED.24.10.1.1.4.1"


def entry(name: str, state: str = "installed", kernel: str | None = HERE, version: str = "1.0") -> dict[str, Any]:
    return {"name": name, "version": version, "kernel": kernel, "arch": "x86_64" if kernel else None, "state": state}


def facts(*dkms: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"stack": {"kernel": HERE, "headers": {HERE: True}, "modules": {}, "dkms": list(dkms), **changes}}


def check(*dkms: dict[str, Any], **changes: Any) -> list[Finding]:
    found = check_dkms("node1", from_dict(facts(*dkms, **changes)))
    assert {(finding.stage, finding.check, finding.host) for finding in found} == {("driver", "driver.dkms", "node1")}
    return found


def test_all_installed_is_one_finding() -> None:
    (finding,) = check(entry("mlnx-ofed-kernel", version=OFED), entry("knem"), entry("virtualbox", "added", None))
    assert (finding.status, finding.observed, finding.expected) == ("ok", "knem, mlnx-ofed-kernel installed", f"installed for {HERE}")


def test_an_older_version_or_kernel_beside_it_does_no_harm() -> None:
    (finding,) = check(entry("nvidia", version="550.1"), entry("nvidia", "added", None, "535.2"), entry("nvidia", kernel=THERE))
    assert finding.status == "ok"


@pytest.mark.parametrize(
    "dkms", [[], None, [entry("virtualbox", "added", None), entry("zfs", "built")]], ids=["none", "not read", "of others"]
)
def test_nothing_relevant_is_not_applicable(dkms: list[Any] | None) -> None:
    (finding,) = check_dkms("node1", from_dict({"stack": {"kernel": HERE, "dkms": dkms}}))
    assert (finding.status, finding.observed) == ("not_applicable", "no module that RDMA or a GPU needs is registered")


BAD = [
    pytest.param(
        [entry("mlnx-ofed-kernel", "added", None, OFED)], f"mlnx-ofed-kernel/{OFED} is added, but not built for any kernel", id="added"
    ),
    pytest.param([entry("mlnx-ofed-kernel", "built", HERE, OFED)], f"mlnx-ofed-kernel/{OFED} is only built", id="built"),
    pytest.param(
        [entry("mlnx-ofed-kernel", "installed", THERE, OFED)], f"mlnx-ofed-kernel/{OFED} is installed only for {THERE}", id="elsewhere"
    ),
]


@pytest.mark.parametrize(("dkms", "observed"), BAD)
def test_what_is_not_installed_for_the_running_kernel(dkms: list[Any], observed: str) -> None:
    (finding,) = check(*dkms)
    assert (finding.status, finding.subject, finding.observed) == ("error", "DKMS module mlnx-ofed-kernel", observed)
    assert f"On node1, run `dkms install mlnx-ofed-kernel/{OFED} -k {HERE}`" in finding.remedy
    assert f"/var/lib/dkms/mlnx-ofed-kernel/{OFED}/build/make.log" in finding.remedy


def test_a_module_whose_source_is_gone() -> None:
    # A host sends its facts as JSON.
    (finding,) = check(json.loads(json.dumps(entry("gdrdrv", "broken", None))))
    assert (finding.status, finding.observed) == ("error", "gdrdrv/1.0 is broken: its source is missing")
    assert finding.remedy.startswith("Install the package of gdrdrv again. On node1, run `dkms install gdrdrv/1.0")


def test_a_module_in_weak_updates_is_installed() -> None:
    assert [finding.status for finding in check(entry("mlnx-ofa_kernel", "installed-weak"))] == ["ok"]


def test_what_is_built_on_ofed_is_named_with_it() -> None:
    found = check(
        entry("iser", "added", None), entry("mlnx-ofa_kernel", "built"), entry("srp", "built"), entry("gdrdrv", "built"), entry("knem")
    )
    assert [(finding.subject, finding.status) for finding in found] == [
        ("DKMS module mlnx-ofa_kernel", "error"),
        ("DKMS module gdrdrv", "error"),
    ]
    assert found[0].observed == "mlnx-ofa_kernel/1.0 is only built; likewise iser, srp"


def test_without_ofed_s_own_fault_each_is_its_own() -> None:
    found = check(entry("iser", "added", None), entry("mlnx-ofed-kernel"), entry("isert", "built"))
    assert [finding.subject for finding in found] == ["DKMS module iser", "DKMS module isert"]


def test_a_new_kernel_that_nothing_was_built_for_is_one_error() -> None:
    (finding,) = check(*(entry(name, kernel=THERE) for name in ("nvidia", "mlnx-ofed-kernel", "iser")))
    assert finding.subject == "DKMS module mlnx-ofed-kernel"
    assert finding.observed == f"mlnx-ofed-kernel/1.0 is installed only for {THERE}; likewise iser, nvidia"
    assert f"`dkms autoinstall -k {HERE}`" in finding.remedy


@pytest.mark.parametrize("headers", [{HERE: False}, {THERE: True}, {}])
def test_missing_headers_are_not_reported_twice(headers: dict[str, bool]) -> None:
    (finding,) = check(entry("mlnx-ofed-kernel", "added", None), headers=headers)
    assert finding.status == "not_applicable"
    assert "preflight.headers" in finding.observed


def test_modules_that_are_installed_need_no_headers() -> None:
    assert [finding.status for finding in check(entry("nvidia"), headers={HERE: False})] == ["ok"]


def test_a_kernel_that_is_not_known_is_the_finding_of_another_check() -> None:
    (finding,) = check(entry("nvidia", "added", None), kernel=None)
    assert finding.status == "not_applicable"
    assert "preflight.kernel" in finding.observed


@pytest.mark.parametrize("name", ["nvidia", "nvidia-srv", "kernel-mft-dkms", "mlnx-nvme", "iser", "nvidia-fs", "nv_peer_mem", "gdrdrv"])
def test_modules_of_rdma_and_gpus(name: str) -> None:
    assert is_relevant(name)


@pytest.mark.parametrize("name", ["virtualbox", "zfs", "iserver", "srpd", "r8168", "v4l2loopback", "spl", ""])
def test_modules_of_others(name: str) -> None:
    assert not is_relevant(name)


def test_what_is_missing_says_how_far_it_came() -> None:
    stack = facts(entry("nvidia", "built"), entry("nvidia", kernel=THERE), entry("knem"))["stack"]
    assert missing(stack_of(stack)) == [Missing("nvidia", "1.0", "built", (THERE,))]


def test_facts_of_before_stop_nobody() -> None:
    tree = lab_facts()
    tree["stack"].pop("dkms", None)
    assert [finding.status for finding in check_dkms("node1", from_dict(tree))] == ["not_applicable"]
