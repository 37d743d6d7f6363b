# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What rdma_driver asks for."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import (
    builds_planned,
    bypasses_dkms,
    is_dkms_release,
    is_rpm,
    planned_modules,
)
from tests.unit.builders.driver_hosts import stack_of

DEBIAN, RPM = {"id": "debian", "like": [], "family": "debian"}, {"id": "rocky", "like": ["rhel"], "family": "rpm"}


@pytest.mark.parametrize(
    ("driver", "distribution", "builds"),
    [
        ({"stack": "inbox"}, DEBIAN, False),
        ({"stack": "mlnx_ofed"}, DEBIAN, True),
        ({"stack": "mlnx_ofed", "add_kernel_support": False}, DEBIAN, True),
        ({"stack": "mlnx_ofed", "add_kernel_support": False}, RPM, False),
        ({"stack": "mlnx_ofed"}, RPM, True),
        ({"stack": "doca", "version": "3.2.0", "add_kernel_support": False}, RPM, True),
        ({"stack": "doca", "version": "2.9.1", "add_kernel_support": False}, RPM, False),
        ({"stack": "doca", "version": "2.9.1", "add_kernel_support": True}, RPM, True),
        ({"stack": "doca", "version": "3.2.0", "profile": "doca-ofed-userspace"}, DEBIAN, False),
    ],
)
def test_whether_modules_are_built(driver: dict[str, Any], distribution: dict[str, Any], builds: bool) -> None:
    assert builds_planned({"driver": driver}, stack_of({"distribution": distribution})) is builds


@pytest.mark.parametrize(
    ("driver", "distribution", "bypasses"),
    [
        ({"stack": "inbox"}, DEBIAN, False),
        ({"stack": "mlnx_ofed"}, DEBIAN, False),
        ({"stack": "mlnx_ofed", "add_kernel_support": True}, DEBIAN, True),
        ({"stack": "mlnx_ofed", "flags": ["--without-dkms"]}, DEBIAN, True),
        ({"stack": "mlnx_ofed"}, RPM, True),
        ({"stack": "mlnx_ofed", "add_kernel_support": False}, RPM, False),
        ({"stack": "doca", "version": "3.2.0", "add_kernel_support": True}, RPM, False),
        ({"stack": "doca", "version": "2.9.1"}, DEBIAN, True),
        ({"stack": "doca", "version": "2.9.1", "add_kernel_support": False}, DEBIAN, False),
    ],
)
def test_whether_dkms_is_passed_by(driver: dict[str, Any], distribution: dict[str, Any], bypasses: bool) -> None:
    assert bypasses_dkms({"driver": driver}, stack_of({"distribution": distribution})) is bypasses


def test_userspace_stands_on_the_kernels_own() -> None:
    assert planned_modules({"driver": {"stack": "doca", "profile": "doca-roce-userspace"}}) == "inbox"
    assert planned_modules({"driver": {"stack": "doca", "profile": "doca-roce"}}) == "doca"
    assert planned_modules({}) == "inbox"


@pytest.mark.parametrize(
    ("release", "dkms"), [("3.2.0", True), ("3.2", True), ("3.10.0", True), ("4.0", True), ("3.1.0", False), ("2.9.5", False), (None, True)]
)
def test_docas_generations(release: str | None, dkms: bool) -> None:
    assert is_dkms_release(release) is dkms


@pytest.mark.parametrize(
    ("distribution", "rpm"),
    [
        ({"family": "rpm", "id": "x"}, True),
        ({"family": "debian", "id": "rhel"}, False),
        ({"id": "almalinux"}, True),
        ({"id": "debian"}, False),
    ],
)
def test_how_packages_are_kept(distribution: dict[str, Any], rpm: bool) -> None:
    assert is_rpm(stack_of({"distribution": distribution}).distribution) is rpm
