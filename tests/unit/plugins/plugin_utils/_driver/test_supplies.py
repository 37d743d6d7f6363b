# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.supplies import (
    architecture,
    distribution_packages,
    doca,
    flags,
    hold,
    kernel_packages,
)
from tests.unit.builders.driver_hosts import KERNEL, driver, host, stack_of

UBUNTU = {"id": "ubuntu", "version_id": "24.04", "like": ["debian"], "family": "debian"}
ROCKY = {"id": "rocky", "version_id": "9.4", "like": ["rhel", "centos", "fedora"], "family": "rpm"}
EL9 = "5.14.0-427.13.1.el9_4.x86_64"


def here(**changes: Any) -> Stack:
    return stack_of(host(**changes)["stack"])


@pytest.mark.parametrize(
    ("stack", "machine"),
    [
        ({"kernel": "6.1.0-10-amd64"}, "x86_64"),
        ({"kernel": "6.1.0-10-cloud-arm64"}, "aarch64"),
        ({"kernel": EL9}, "x86_64"),
        ({"kernel": "5.14.0-427.el9.aarch64+64k"}, "aarch64"),
        ({"kernel": "6.8.0-45-generic"}, None),
        ({"kernel": "6.8.0-45-generic", "dkms": [{"arch": "x86_64"}]}, "x86_64"),
        ({"kernel": "6.8.0-45-generic", "arch": "aarch64"}, "aarch64"),
        ({"kernel": "6.8.0-45-generic", "arch": "ppc64le"}, None),
        ({"kernel": None}, None),
    ],
)
def test_the_architecture(stack: dict[str, Any], machine: str | None) -> None:
    assert architecture(stack_of(stack)) == machine


def test_the_installers_options_are_in_order_and_none_twice() -> None:
    assert flags(driver()["driver"], rpm=False) == ["--add-kernel-support", "--without-fw-update", "--force"]
    own = driver(with_nvmf=True, force=False, add_kernel_support=False, flags=["--without-dkms", "--with-nvmf", "--without-dkms"])
    assert flags(own["driver"], rpm=True) == ["--with-nvmf", "--without-fw-update", "--without-dkms"]


REPOSITORIES = [
    ("3.2.0", {}, {}, "3.2.0/debian12/x86_64/"),
    ("3.2.0", {"version_id": "13"}, {}, "3.2.0/debian13/x86_64/"),
    ("2.9.1", {}, {}, "2.9.1/debian12.5/x86_64/"),
    ("2.9.1", {"version_id": "13"}, {}, None),
    ("3.2.0", UBUNTU, {"arch": "aarch64"}, "3.2.0/ubuntu24.04/arm64-sbsa/"),
    ("3.2.0", UBUNTU, {"kernel": "6.8.0-45-generic"}, None),
    ("3.2.0", {**UBUNTU, "version_id": "20.04"}, {}, None),
    ("3.2.0", ROCKY, {"kernel": EL9}, "3.2.0/rhel9/x86_64/"),
    ("2.9.1", ROCKY, {"kernel": EL9}, "2.9.1/rhel9.4/x86_64/"),
    ("3.2.0", {**ROCKY, "version_id": "8.10"}, {"kernel": EL9}, None),
]


@pytest.mark.parametrize(("version", "system", "stack", "folder"), REPOSITORIES)
def test_where_doca_is(version: str, system: dict[str, Any], stack: dict[str, Any], folder: str | None) -> None:
    found = doca(driver("doca", version), here(system=system, **stack))
    assert found is not None
    assert found["repository"] == (f"https://linux.mellanox.com/public/repo/doca/{folder}" if folder else None)


def test_docas_generations() -> None:
    stack = here()
    assert doca(driver("doca", "3.2.0"), stack) == {
        "packages": ["doca-ofed"],
        "generation": "dkms",
        "repository": "https://linux.mellanox.com/public/repo/doca/3.2.0/debian12/x86_64/",
        "kernel_support": False,
    }
    own = driver("doca", "3.1.0", profile="doca-roce", repository={"url": "https://example.org/doca/"})
    assert doca(own, stack) == {
        "packages": ["doca-roce"],
        "generation": "packages",
        "repository": "https://example.org/doca/",
        "kernel_support": True,
    }
    assert (doca(driver("doca", "3.1.0", profile="doca-roce-userspace"), stack) or {})["kernel_support"] is False
    assert doca(driver(), stack) is None


PACKAGES = [
    pytest.param(driver("inbox", None), {}, False, [], id="inbox, all there"),
    pytest.param(
        driver("inbox", None), {"system": {"packages": {"perftest": None, "rdma-core": "44"}}}, False, ["perftest"], id="inbox, one missing"
    ),
    pytest.param(
        driver("inbox", None), {"system": {**ROCKY, "packages": None}}, False, ["libibverbs-utils", "rdma-core"], id="inbox, not known"
    ),
    pytest.param(driver(), {}, False, [], id="nothing is built"),
    pytest.param(driver(), {"headers": {}}, False, [f"linux-headers-{KERNEL}"], id="headers missing"),
    pytest.param(driver(), {}, True, ["dkms", "gcc", "make"], id="built"),
    pytest.param(driver(), {"headers": {}}, True, [f"linux-headers-{KERNEL}", "dkms", "gcc", "make"], id="built, headers missing"),
    pytest.param(driver(), {"system": ROCKY, "kernel": EL9}, True, [f"kernel-devel-{EL9}", "gcc", "rpm-build"], id="RPMs of a bundle"),
    pytest.param(driver("doca", "3.2.0"), {"system": ROCKY, "kernel": EL9}, True, [f"kernel-devel-{EL9}", "gcc", "dkms"], id="DOCA's RPMs"),
    pytest.param(driver("doca", "3.2.0", profile="doca-ofed-userspace"), {"headers": {}}, True, [], id="userspace"),
    pytest.param(driver(add_kernel_support=False), {"system": ROCKY, "kernel": EL9}, True, [], id="ready-made modules"),
]


@pytest.mark.parametrize(("intent", "changes", "change", "packages"), PACKAGES)
def test_packages_of_the_distribution(intent: dict[str, Any], changes: dict[str, Any], change: bool, packages: list[str]) -> None:
    stack = here(**changes)
    found = distribution_packages(intent, stack, stack.kernel, changes=change)
    assert len(found) == len(set(found))
    if stack.distribution.family == "rpm":
        assert set(packages) <= set(found)
        assert bool(found) is bool(packages)
    else:
        assert found == packages


def test_kernels_are_held_where_that_is_requested() -> None:
    names = ["linux-image-amd64", "linux-headers-amd64"]
    assert hold(driver(hold_kernel=True), here()) == {"packages": names, "differs": True}
    assert hold(driver(hold_kernel=True), here(held=["linux-image-amd64"])) == {"packages": names, "differs": True}
    assert hold(driver(hold_kernel=True), here(held=names)) == {"packages": names, "differs": False}
    installed = here(held=["linux-image-amd64"], system={"kernels": ["linux-image-amd64"]})
    assert hold(driver(hold_kernel=True), installed) == {"packages": ["linux-image-amd64"], "differs": False}
    assert hold(driver(hold_kernel=True), here(held=["vim"]))["differs"] is True
    assert hold(driver(), here()) == hold(driver("inbox", None, hold_kernel=True), here()) == {"packages": [], "differs": False}


def test_where_dkms_builds_for_every_kernel_it_is_not_switched_off_unasked() -> None:
    by_default = driver(add_kernel_support=None)["driver"]
    assert "--add-kernel-support" not in flags(by_default, rpm=False)
    assert flags(by_default, rpm=True)[0] == "--add-kernel-support"


def test_the_packages_that_bring_the_next_kernel() -> None:
    assert kernel_packages(here(kernel="6.1.0-10-cloud-arm64")) == ["linux-image-cloud-arm64", "linux-headers-cloud-arm64"]
    ubuntu = kernel_packages(here(system=UBUNTU, kernel="6.8.0-45-generic"))
    assert {"linux-generic", "linux-image-generic", "linux-headers-generic-hwe-24.04"} <= set(ubuntu)
    assert "kernel-core" in kernel_packages(here(system=ROCKY, kernel=EL9))


def test_all_of_inbox_is_installed_where_another_stack_is_removed() -> None:
    """Which takes its own rdma-core and perftest along."""
    packages = {"perftest": "24.10", "rdma-core": "2410mlnx54", "mstflint": None}
    stack = here(system={"packages": packages})
    found = distribution_packages(driver("inbox", None), stack, KERNEL, changes=True, removes=True)
    assert found == ["ibverbs-utils", "infiniband-diags", "mstflint", "perftest", "rdma-core"]
