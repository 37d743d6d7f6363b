# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage does not begin."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.refusals import refusals
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import KERNEL, NEWER, driver, host

UBUNTU = {"id": "ubuntu", "version_id": "24.04", "like": ["debian"]}
ROCKY = {"id": "rocky", "version_id": "9.4", "like": ["rhel"], "family": "rpm"}
EL9 = "5.14.0-427.13.1.el9_4.x86_64"
BUNDLE = "/srv/MLNX_OFED_LINUX-24.10-1.1.4.0-debian12.5-x86_64.tgz"
KEY = {"key": "/var/lib/dkms/mok.pub", "enrolled": True}


def refused(intent: dict[str, Any], tree: dict[str, Any], *, reboot_allowed: bool = False, **touched: str) -> list[str]:
    packages = {name.replace("_", "-"): version for name, version in touched.items()}
    return refusals(intent, from_dict(tree), touched=packages, reboot_allowed=reboot_allowed)


GOOD = [
    pytest.param(driver(), host(), id="MLNX_OFED on Debian"),
    pytest.param(driver(), host(system=UBUNTU), id="on Ubuntu"),
    pytest.param(driver(), host(system=ROCKY, kernel=EL9, kernels=[EL9], newest=EL9), id="on Rocky"),
    pytest.param(driver(source={"file": BUNDLE}), host(), id="by a bundle for it"),
    pytest.param(driver(source={"url": "https://example.org/ofed.tgz"}), host(), id="by a bundle of another name"),
    pytest.param(driver("doca", "3.2.0"), host(system={"version_id": "13"}), id="DOCA"),
    pytest.param(
        driver("doca", "3.2.0", repository={"url": "https://example.org/"}), host(system={"id": "azurelinux"}),
        id="DOCA by a URL",
    ),
    pytest.param(driver("inbox", None), host(secure_boot=True, kernels=[]), id="inbox"),
    pytest.param(driver(add_kernel_support=None), host(secure_boot=True, mok=KEY), id="Secure Boot with an enrolled key"),
    pytest.param(driver(), host(secure_boot=False), id="Secure Boot off"),
    pytest.param(driver("doca", "3.2.0", profile="doca-ofed-userspace"), host(secure_boot=True, kernels=[]), id="userspace in a container"),
    pytest.param(
        driver("doca", "2.9.1", add_kernel_support=False), host(system=ROCKY, kernel=EL9, kernels=[EL9], newest=EL9, secure_boot=True),
        id="signed packages",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("intent", "tree"), GOOD)
def test_what_may_be_done(intent: dict[str, Any], tree: dict[str, Any]) -> None:
    assert refused(intent, tree) == []


BAD = [
    pytest.param(
        driver(), host(system={"version_id": "13"}), ["does not support debian 13", "plan doca for node1"],
        id="MLNX_OFED on Debian 13",
    ),
    pytest.param(driver(), host(system={**UBUNTU, "version_id": "20.04"}), ["does not support ubuntu 20.04"], id="on Ubuntu 20.04"),
    pytest.param(driver(), host(system={**ROCKY, "version_id": "8.10"}), ["does not support rocky 8.10"], id="on Rocky 8"),
    pytest.param(driver(), host(arch="ppc64le"), ["no driver stack for ppc64le", "node1"], id="another architecture"),
    pytest.param(
        driver("doca", "3.2.0"), host(system=UBUNTU, kernel="6.8.0-45-generic", kernels=["6.8.0-45-generic"], newest="6.8.0-45-generic"),
        ["an unknown architecture", "rdma_driver.repository.url"], id="architecture not known",
    ),
    pytest.param(driver("doca", "2.9.1"), host(system={"version_id": "13"}), ["DOCA 2.9.1 for debian 13"], id="DOCA before Debian 13"),
    pytest.param(
        driver(), host(kernel="4.18.0-1.amd64", kernels=["4.18.0-1.amd64"], newest="4.18.0-1.amd64"),
        ["Linux 4.18.0-1.amd64 is older than 5.4"],
        id="an old kernel",
    ),
    pytest.param(driver(), host(kernel=None), ["`uname -r`"], id="kernel not known"),
    pytest.param(driver(), host(kernels=[], newest=None), ["like a container"], id="a container"),
    pytest.param(
        driver(version="24.10-2.1.8.0", source={"host_file": BUNDLE}), host(),
        ["is 24.10-1.1.4.0, but rdma_driver.version is 24.10-2.1.8.0"],
        id="another bundle",
    ),
    pytest.param(
        driver(source={"file": BUNDLE}), host(system=UBUNTU), ["is for debian, but node1 runs ubuntu"],
        id="bundle of another system",
    ),
    pytest.param(
        driver(source={"file": BUNDLE}), host(arch="aarch64"), ["is for x86_64, but node1 is aarch64"],
        id="bundle for another machine",
    ),
    pytest.param(
        driver(), host(kernels=[KERNEL, NEWER], newest=NEWER),
        [f"{KERNEL} is running, but {NEWER} is installed", f"Reboot node1 into {NEWER}", f"or remove {NEWER}"], id="an older kernel runs",
    ),
    pytest.param(
        driver(), host(kernels=["6.1.0-9-rt-amd64"], newest=None), ["is running but not installed", "6.1.0-9-rt-amd64"],
        id="a removed kernel",
    ),
    pytest.param(
        driver(add_kernel_support=None), host(secure_boot=True, mok={**KEY, "enrolled": False}),
        ["is not enrolled", "`mokutil --import /var/lib/dkms/mok.pub`", "node1", "disable Secure Boot", "DOCA before 3.2"],
        id="not enrolled",
    ),
    pytest.param(
        driver("doca", "3.2.0"), host(secure_boot=True, mok={**KEY, "enrolled": None}), ["not known whether"],
        id="not known to be enrolled",
    ),
    pytest.param(driver(add_kernel_support=False), host(secure_boot=True), ["no signing key yet", "dkms generate_mok"], id="no key"),
    pytest.param(driver(), host(secure_boot=True, mok=KEY), ["unsigned", "add_kernel_support for node1"], id="past DKMS"),
    pytest.param(
        driver(add_kernel_support=None), host(system=ROCKY, kernel=EL9, kernels=[EL9], newest=EL9, secure_boot=True, mok=KEY),
        ["are unsigned", "to false for node1", "disable Secure Boot"], id="RPMs past DKMS",
    ),
    pytest.param(driver("doca", "2.9.1"), host(secure_boot=True, mok=KEY), ["are unsigned", "plan doca 3.2"], id="DOCA's packages"),
]  # fmt: skip


@pytest.mark.parametrize(("intent", "tree", "words"), BAD)
def test_what_may_not_be_done(intent: dict[str, Any], tree: dict[str, Any], words: list[str]) -> None:
    (sentence,) = refused(intent, tree)
    assert all(word in sentence for word in words), sentence


def test_a_reboot_that_is_allowed_makes_the_newest_kernel_run() -> None:
    assert refused(driver(), host(kernels=[KERNEL, NEWER], newest=NEWER), reboot_allowed=True) == []


def test_packages_that_are_held_are_not_replaced() -> None:
    tree = host(vendor={"mlnx-ofed-kernel-dkms": "24.10"}, held=["mlnx-ofed-kernel-dkms", "vim"])
    for intent in (driver(), driver("inbox", None)):
        (sentence,) = refused(intent, tree, mlnx_ofed_kernel_dkms="24.10")
        assert "On node1, run `apt-mark unhold mlnx-ofed-kernel-dkms`" in sentence
    assert refused(driver(), tree) == []


def test_a_stack_without_an_uninstaller_is_removed_by_hand() -> None:
    tree = host(vendor={"doca-ofed-userspace": "3.2.0-125000", "doca-host": "3.2.0"})
    (sentence,) = refusals(driver("inbox", None), from_dict(tree), touched={}, reboot_allowed=False, removes="doca")
    assert "On node1, run `apt purge --autoremove doca-ofed-userspace`" in sentence
    tree["stack"]["distribution"].update(ROCKY)
    (sentence,) = refusals(driver("inbox", None), from_dict(tree), touched={}, reboot_allowed=False, removes="doca")
    assert "`dnf remove doca-ofed-userspace`" in sentence
    tree["stack"]["ofed_version"] = "OFED-internal-25.10-1.7.1"
    assert refusals(driver("inbox", None), from_dict(tree), touched={}, reboot_allowed=False, removes="doca") == []


def test_what_dkms_builds_again_needs_neither_a_bundle_nor_its_signing() -> None:
    tree = host(system={"version_id": "13"}, secure_boot=True, mok=KEY)
    assert refusals(driver(), from_dict(tree), touched={}, reboot_allowed=False, by_dkms=True) == []
    assert len(refusals(driver(), from_dict(tree), touched={}, reboot_allowed=False)) == 2
