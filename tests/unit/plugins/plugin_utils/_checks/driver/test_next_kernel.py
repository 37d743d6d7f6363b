# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernels that a reboot may bring, at the driver gate."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import build_steps
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.next_kernel import check_next_kernel, next_kernels
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import stack_of

OLD, RUNNING, NEXT, CLOUD = "6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-11-amd64", "6.1.0-12-cloud-amd64"
OFED: dict[str, Any] = {"driver": {"stack": "mlnx_ofed", "version": "24.10-1.1.4.0"}}


def built(kernel: str | None, version: str = "24.10.OFED.24.10.1.1.4.1", **changes: Any) -> dict[str, Any]:
    return {"name": "mlnx-ofed-kernel", "version": version, "kernel": kernel, "arch": "x86_64", "state": "installed", **changes}


def facts(*dkms: dict[str, Any], **changes: Any) -> dict[str, Any]:
    stack = {
        "kernel": RUNNING,
        "kernels": [OLD, RUNNING, NEXT, CLOUD],
        "newest": NEXT,
        "headers": {RUNNING: True, NEXT: True},
        "distribution": {"id": "debian", "like": []},
        "ofed_version": "MLNX_OFED_LINUX-24.10-1.1.4.0",
        "dkms": list(dkms),
    }
    return {"stack": {**stack, **changes}}


@pytest.mark.parametrize(
    ("file", "status"),
    [
        ("updates/dkms/mlx5_core.ko", "ok"),
        ("updates/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko", "ok"),
        ("extra/mlnx-ofa_kernel/mlx5_core.ko.xz", "ok"),
        ("kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko", "error"),
        (None, "error"),
    ],
)
def test_modules_that_dkms_did_not_build_are_reported_by_what_modprobe_would_load(file: str | None, status: str) -> None:
    """mlnxofedinstall --add-kernel-support makes packages of modules on Debian, without DKMS."""
    found = check(OFED, facts(driver_files={RUNNING: "updates/dkms/mlx5_core.ko", NEXT: file}))
    assert found[0] == status
    if status == "error":
        assert found[1] == f"a reboot into {NEXT} would load the stock mlx5_core"


def test_what_is_reported_counts_more_than_what_dkms_says() -> None:
    both = (built(RUNNING), built(NEXT))
    assert check(OFED, facts(*both, driver_files={NEXT: "kernel/drivers/mlx5_core.ko"}))[0] == "error"


def test_what_is_expected() -> None:
    (ofed,) = check_next_kernel("node1", OFED, from_dict(facts(built(RUNNING), built(NEXT))))
    assert ofed.expected == "the modules of mlnx_ofed installed for each newer kernel"
    (inbox,) = check_next_kernel("node1", {"driver": {"stack": "inbox", "version": None}}, from_dict(facts()))
    assert inbox.expected == "no module to build for them"


def check(intent: dict[str, Any], tree: dict[str, Any]) -> tuple[str, str, str]:
    (finding,) = check_next_kernel("node1", intent, from_dict(tree))
    assert (finding.stage, finding.check, finding.host) == ("driver", "driver.next_kernel", "node1")
    return finding.status, finding.observed, finding.remedy


def test_the_stack_is_built_for_the_next_kernel_too() -> None:
    assert check(OFED, facts(built(RUNNING), built(NEXT)))[:2] == ("ok", f"also installed for {NEXT}")


def test_a_reboot_would_take_the_stock_driver() -> None:
    for entry in (built(OLD), built(NEXT, state="built"), built(NEXT, name="knem")):
        status, observed, remedy = check(OFED, facts(built(RUNNING), entry))
        assert (status, observed) == ("error", f"a reboot into {NEXT} would load the stock mlx5_core")
        assert remedy == (
            f"1. On node1, run `dkms autoinstall -k {NEXT}`. 2. Only then reboot node1 into {NEXT}. 3. Or remove {NEXT} instead."
        )


def test_missing_headers_are_named() -> None:
    _status, _observed, remedy = check(OFED, facts(built(RUNNING), headers={RUNNING: True}))
    assert remedy.startswith(f"1. On node1, install linux-headers-{NEXT}, then run `dkms autoinstall -k {NEXT}`")


def test_a_reboot_would_take_an_older_ofed() -> None:
    status, observed, _remedy = check(OFED, facts(built(RUNNING, "2"), built(NEXT, "1")))
    assert (status, observed) == ("error", f"a reboot into {NEXT} would load mlx5_core 1, not 2")


OTHERS = [
    pytest.param({"driver": {"stack": "inbox"}}, {}, "not_applicable", "each kernel has its own modules", id="inbox"),
    pytest.param(OFED, {"newest": RUNNING, "kernels": [OLD, RUNNING]}, "ok", f"none is newer than {RUNNING}", id="the newest runs"),
    pytest.param(OFED, {"kernels": []}, "not_applicable", "no bootable kernel is installed here", id="a container"),
    pytest.param(OFED, {"kernel": None}, "not_applicable", "no bootable kernel is installed here", id="kernel not known"),
    pytest.param(OFED, {"ofed_version": None}, "not_applicable", "mlnx_ofed is not installed: see driver.stack", id="not installed"),
    pytest.param(
        OFED, {"dkms": []}, "unknown", f"not in DKMS, so it is not known which driver {NEXT} would load", id="packages of modules"
    ),
]


@pytest.mark.parametrize(("intent", "changes", "status", "observed"), OTHERS)
def test_where_it_is_not_an_error(intent: dict[str, Any], changes: dict[str, Any], status: str, observed: str) -> None:
    assert check(intent, facts(built(RUNNING), **changes))[:2] == (status, observed)


def test_kernels_of_another_flavor_only_stand_beside() -> None:
    assert next_kernels(stack_of(facts()["stack"])) == [NEXT]
    assert next_kernels(stack_of({"kernel": NEXT, "kernels": [OLD, RUNNING], "newest": RUNNING})) == [RUNNING]


def test_the_steps_for_several_kernels_name_all_of_them() -> None:
    stack = {"newest": CLOUD, "kernels": [RUNNING, NEXT, CLOUD], "headers": {}}
    remedy = build_steps("node1", [NEXT, CLOUD], stack_of(facts(built(RUNNING), **stack)["stack"]))
    assert remedy == (
        f"1. On node1, install linux-headers-{NEXT} and linux-headers-{CLOUD}, then run `dkms autoinstall -k {NEXT}` and "
        f"`dkms autoinstall -k {CLOUD}`. 2. Only then reboot node1 into {CLOUD}. 3. Or remove them instead."
    )
    without = build_steps("node1", [NEXT, CLOUD], stack_of(facts(**stack)["stack"]))
    assert without == (f"1. On node1, install the stack's packages for {NEXT} and {CLOUD}, or remove them. 2. Only then reboot node1.")
