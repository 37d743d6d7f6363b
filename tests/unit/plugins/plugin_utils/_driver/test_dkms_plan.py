# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What DKMS builds before a kernel is booted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import before_reboot, can_build
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.plan import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import KERNEL, NEWER, built, driver, installed, stack_of

NEXT = {"kernels": [KERNEL, NEWER], "newest": NEWER, "headers": {KERNEL: True, NEWER: True}}
STOCK_NEXT = {KERNEL: "updates/dkms/mlx5_core.ko", NEWER: "kernel/drivers/mlx5_core.ko"}
BOOTS = [
    pytest.param({}, NEWER, None, id="DKMS builds for it"),
    pytest.param({"dkms": [built(), built(NEWER)]}, None, None, id="it has the driver"),
    pytest.param({"driver_files": {**STOCK_NEXT, NEWER: "updates/dkms/mlx5_core.ko"}}, None, None, id="it has it by depmod"),
    pytest.param({"driver_files": STOCK_NEXT}, NEWER, None, id="it has not by depmod"),
    pytest.param({"dkms": [built(), {**built(NEWER), "version": "23.10"}]}, NEWER, None, id="it has an older one"),
    pytest.param({"headers": {KERNEL: True}}, None, f"install linux-headers-{NEWER}", id="no headers"),
    pytest.param({"driver_files": STOCK_NEXT, "dkms": [built(), built(NEWER)]}, None, f"depmod -a {NEWER}", id="depmod prefers its own"),
    pytest.param({"driver_files": STOCK_NEXT, "dkms": []}, None, "DKMS does not have it", id="no DKMS"),
    pytest.param({"dkms": []}, None, "which mlx5_core", id="unknown"),
]


@pytest.mark.parametrize(("stack", "build_first", "withheld"), BOOTS)
def test_a_newer_kernel_gets_its_driver_before_it_is_booted(stack: dict[str, Any], build_first: str | None, withheld: str | None) -> None:
    tree = installed(**{**NEXT, **stack})
    release, trouble = before_reboot(stack_of(tree["stack"]), NEWER)
    assert release == build_first
    assert (trouble is None) is (withheld is None)
    assert (withheld or "") in (trouble or "")
    found = plan(driver(), from_dict(tree), reboot_allowed=True)
    assert (found["change"], found["reboot"]["needed"], found["reboot"]["first"]) == ("none", True, False)
    assert (found["reboot"]["build_first"], found["reboot"]["withheld"]) == (build_first, trouble)
    assert found["distribution_packages"] == ([f"linux-headers-{NEWER}"] if "headers" in stack else [])


@pytest.mark.parametrize(
    ("dkms", "can"),
    [([], False), ([built(None, "added")], True), ([built(NEWER)], True), ([built()], False), ([built(None, "broken")], False)],
)
def test_whether_dkms_can_build(dkms: list[dict[str, Any]], can: bool) -> None:
    assert can_build(stack_of(installed(dkms=dkms)["stack"]), KERNEL) is can
