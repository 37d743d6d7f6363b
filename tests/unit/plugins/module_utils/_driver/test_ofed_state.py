# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which OFED is installed, built and loaded."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import bare_version, has_version, ofed_state
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from tests.unit.builders.driver_hosts import stack_of
from tests.unit.builders.hosts import lab_facts

KERNEL = "6.1.0-10-amd64"
OFED_VERSION = "MLNX_OFED_LINUX-24.10-1.1.4.0"
LOADED = {
    "version": "24.10-1.1.4",
    "srcversion": "A",
    "file_version": "24.10-1.1.4",
    "file_srcversion": "A",
    "provenance": "dkms",
    "file": "/x.ko",
}
ENTRY = {"name": "mlnx-ofed-kernel", "version": "24.10", "kernel": KERNEL, "arch": "x86_64", "state": "installed"}


def stack(answer: str | None = OFED_VERSION, driver: dict[str, Any] | None = None, **more: Any) -> Stack:
    modules = {} if driver is None else {"mlx5_core": driver}
    return stack_of({"kernel": KERNEL, "ofed_version": answer, "modules": modules, **more})


def test_all_is_well() -> None:
    state = ofed_state(stack(driver=LOADED))
    assert (state.stack, state.version, state.built, state.loaded, state.why) == ("mlnx_ofed", "24.10-1.1.4.0", True, True, [])


def test_a_real_host_without_ofed() -> None:
    state = ofed_state(stack_of(lab_facts()["stack"]))
    assert (state.stack, state.version, state.built, state.loaded) == (None, None, False, False)
    assert state.why == ["neither MLNX_OFED nor DOCA-OFED is installed", "mlx5_core is not loaded"]


@pytest.mark.parametrize(
    ("answer", "vendor", "expected"),
    [
        (OFED_VERSION, {}, ("mlnx_ofed", "24.10-1.1.4.0")),
        ("OFED-internal-25.10-1.7.1", None, ("doca", "25.10-1.7.1")),
        ("OFED-internal-25.10-1.7.1", {"doca-host": "3.2.0-125000-25.10"}, ("doca", "25.10-1.7.1")),
        ("OFED-internal-25.10-1.7.1", {"doca-ofed": "1:3.2.0-125000"}, ("doca", "3.2.0-125000")),
        (None, {"doca-roce": "2.9.5-0.1.8"}, ("doca", "2.9.5-0.1.8")),
        (None, {"doca-host": "3.2.0-125000-25.10"}, (None, None)),
        (None, None, (None, None)),
    ],
)
def test_what_is_installed(answer: str | None, vendor: dict[str, str] | None, expected: tuple[str | None, str | None]) -> None:
    state = ofed_state(stack(answer, distribution={"vendor": vendor}))
    assert (state.stack, state.version) == expected


STATES = [
    pytest.param(LOADED, [], True, True, [], id="loaded"),
    pytest.param({**LOADED, "provenance": "extra"}, [], True, True, [], id="of a package"),
    pytest.param({**LOADED, "srcversion": "B"}, [], True, False, ["the loaded mlx5_core differs from the one on disk"], id="another"),
    pytest.param(
        {**LOADED, "provenance": "kernel"}, [ENTRY], False, True, ["modprobe loads the kernel's own mlx5_core (/x.ko)"], id="the stock one"
    ),
    pytest.param(None, [ENTRY], True, False, ["mlx5_core is not loaded"], id="built"),
    pytest.param(
        None, [{**ENTRY, "state": "added", "kernel": None}], False, False,
        [f"DKMS has mlnx-ofed-kernel/24.10 not installed for {KERNEL}", "mlx5_core is not loaded"], id="not built",
    ),
    pytest.param(
        None, [{**ENTRY, "kernel": "6.1.0-9-amd64"}], False, False,
        [f"DKMS has mlnx-ofed-kernel/24.10 not installed for {KERNEL}", "mlx5_core is not loaded"], id="for another kernel",
    ),
    pytest.param(
        None, [{**ENTRY, "name": "knem"}], None, False,
        [f"whether it is built for {KERNEL} is unknown: DKMS does not have it", "mlx5_core is not loaded"], id="not of DKMS",
    ),
    pytest.param(
        {"version": "1", "srcversion": "A"}, [ENTRY], True, None,
        ["whether the loaded mlx5_core is the one on disk is unknown"], id="files not read",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("driver", "dkms", "built", "loaded", "why"), STATES)
def test_built_and_loaded(driver: Any, dkms: list[Any], built: bool | None, loaded: bool | None, why: list[str]) -> None:
    state = ofed_state(stack(driver=driver, dkms=dkms))
    assert (state.built, state.loaded, state.why) == (built, loaded, why)


def test_docas_packages_begin_with_the_release() -> None:
    state = ofed_state(stack(None, distribution={"vendor": {"doca-ofed": "3.2.0-125000"}}))
    assert [has_version(state, "doca", requested) for requested in ("3.2.0", "3.2", "3.2.1", None)] == [True, False, False, True]
    assert has_version(state, "mlnx_ofed", "3.2.0") is False


def test_an_ofed_of_doca_does_not_report_the_release() -> None:
    assert has_version(ofed_state(stack("OFED-internal-25.10-1.7.1")), "doca", "3.2.0") is None
    assert has_version(ofed_state(stack(None)), "doca", "3.2.0") is None


def test_an_epoch_is_no_part_of_a_version() -> None:
    assert [bare_version(each) for each in ("1:3.2.0-1", "3.2.0-1")] == ["3.2.0-1"] * 2
