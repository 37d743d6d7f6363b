# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage decides."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver_plan import ENDED, plan
from tests.unit.driver_hosts import KERNEL, NEWER, SAID, add_on, built, driver, host, installed, module, stock
from tests.unit.hosts import lab_facts, lab_intent

DOCA = {"ofed_version": "OFED-internal-25.10-1.7.1", "modules": add_on(), "dkms": [built()], "vendor": {"doca-ofed": "3.2.0-125000"}}
KEYS = {
    *("stack", "version", "kernel", "installed", "change", "why", "refused", "remove", "distribution_packages", "flags", "doca"),
    *("reload", "reboot", "hold", "hook", "hook_dkms", "installer", "dkms_build", "busy"),
}
QUIET = {"needed": False, "first": False, "why": "nothing asks for it", "withheld": None, "drainable": False, "build_first": None}
BUSY = {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}
OLD = {name: {**each, "srcversion": "OLD"} for name, each in add_on().items()}
KO2IBLND = {
    "ib_core": {**OLD["ib_core"], "holders": [*OLD["ib_core"]["holders"], "ko2iblnd"]}, "ko2iblnd": module("ko2iblnd"),
}  # fmt: skip


def decide(intent: dict[str, Any], tree: dict[str, Any], *, reboot_allowed: bool = False) -> dict[str, Any]:
    found = plan(intent, tree, reboot_allowed=reboot_allowed)
    assert set(found) == KEYS
    return found


def test_a_real_host_that_has_all_for_inbox() -> None:
    found = decide(lab_intent(), lab_facts())
    assert (found["change"], found["refused"], found["remove"], found["distribution_packages"]) == ("none", None, None, [])
    assert found["installed"] == {"stack": "inbox", "version": None}
    assert (found["hook"], found["reload"]["needed"], found["reboot"]["needed"]) == (False, False, False)
    assert found["flags"] == []
    assert found["doca"] is None


def test_a_real_host_that_lacks_a_package_of_inbox() -> None:
    tree = lab_facts()
    tree["stack"]["distribution"]["packages"]["perftest"] = None
    found = decide(lab_intent(), tree)
    assert (found["change"], found["distribution_packages"]) == ("install", ["perftest"])
    assert "perftest" in found["why"]
    assert not found["reload"]["needed"]


def test_an_installation() -> None:
    found = decide(driver(), host(headers={}))
    assert (found["change"], found["refused"], found["remove"]) == ("install", None, None)
    assert (found["stack"], found["version"], found["kernel"]) == ("mlnx_ofed", "24.10-1.1.4.0", KERNEL)
    assert found["distribution_packages"] == [f"linux-headers-{KERNEL}", "dkms", "gcc", "make"]
    assert found["flags"] == ["--add-kernel-support", "--without-fw-update", "--force"]
    assert found["why"].endswith(ENDED)
    assert (found["hook"], found["hook_dkms"], found["installer"], found["dkms_build"]) == (True, False, True, None)
    assert found["reload"]["live"] is True


CHANGES = [
    pytest.param(driver(), installed(), "none", None, id="all is there"),
    pytest.param(driver(), installed(modules={}), "none", None, id="not loaded, and nothing else is"),
    pytest.param(driver(version="24.10-2.1.8.0"), installed(), "upgrade", None, id="upgrade"),
    pytest.param(driver(version="23.10-3.2.2.0"), installed(), "downgrade", None, id="downgrade"),
    pytest.param(driver(version="24.10-2.1.8.0", force=False), installed(), "upgrade", "mlnx_ofed", id="an installer that would ask"),
    pytest.param(driver(), installed(modules=stock(), dkms=[built(None, "added")]), "rebuild", None, id="the stock modules run"),
    pytest.param(driver(), installed(modules={}, dkms=[built(NEWER)]), "rebuild", None, id="built for another kernel"),
    pytest.param(driver("doca", "3.2.0"), installed(), "switch", "mlnx_ofed", id="MLNX_OFED to DOCA"),
    pytest.param(driver(), host(**DOCA), "switch", "doca", id="DOCA to MLNX_OFED"),
    pytest.param(driver("inbox", None), installed(), "switch", "mlnx_ofed", id="MLNX_OFED to inbox"),
    pytest.param(driver("inbox", None), host(**DOCA), "switch", "doca", id="DOCA to inbox"),
    pytest.param(driver("doca", "3.2.0"), host(**DOCA), "none", None, id="DOCA is there"),
    pytest.param(driver("doca", "3.2.1"), host(**DOCA), "upgrade", "doca", id="DOCA's upgrade"),
    pytest.param(driver("doca", "3.10.0"), host(**DOCA), "upgrade", "doca", id="DOCA's upgrade by number"),
    pytest.param(driver("doca", "2.9.5"), host(**DOCA), "downgrade", "doca", id="DOCA's downgrade"),
    pytest.param(driver("doca", "3.2.0", profile="doca-all"), host(**DOCA), "install", None, id="another profile"),
    pytest.param(
        driver("doca", "3.2.0"), host(**{**DOCA, "vendor": {"doca-host": "3.2.0-1"}}), "install", None,
        id="DOCA's release not known",
    ),
    pytest.param(driver("doca", "3.2.0"), host(**{**DOCA, "dkms": [built(NEWER)], "modules": {}}), "rebuild", None, id="DOCA not built"),
    pytest.param(
        driver("doca", "3.2.0", profile="doca-ofed-userspace"),
        host(ofed_version="OFED-internal-25.10-1.7.1", vendor={"doca-ofed-userspace": "3.2.0-125000"}),
        "none", None, id="userspace is there",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("intent", "tree", "change", "remove"), CHANGES)
def test_what_changes(intent: dict[str, Any], tree: dict[str, Any], change: str, remove: str | None) -> None:
    found = decide(intent, tree)
    assert (found["change"], found["remove"], found["refused"]) == (change, remove, None)
    assert found["why"]


def test_what_is_there_is_left_alone() -> None:
    found = decide(driver(), installed())
    assert found["distribution_packages"] == []
    assert found["why"] == f"mlnx_ofed 24.10-1.1.4.0 is installed, built and loaded. {ENDED}"
    assert (found["reload"]["needed"], found["reboot"]) == (False, QUIET)


def test_nothing_is_refused_where_nothing_changes() -> None:
    tree = installed(secure_boot=True, kernels=[KERNEL, NEWER], newest=NEWER)
    found = decide(driver(), tree)
    assert (found["change"], found["refused"]) == ("none", None)
    assert (found["reboot"]["needed"], found["reboot"]["first"], found["reboot"]["build_first"]) == (True, False, None)
    assert f"without its headers nothing can be built for it: install linux-headers-{NEWER}" in found["reboot"]["withheld"]
    assert found["reboot"]["drainable"] is False
    assert found["distribution_packages"] == [f"linux-headers-{NEWER}"]


def test_installed_and_not_loaded_yet_is_a_reload() -> None:
    found = decide(driver(), installed(modules=OLD))
    assert (found["change"], found["reload"]["needed"], found["reload"]["live"], found["reboot"]["needed"]) == ("none", True, True, False)
    assert "another mlx5_core is loaded than is on disk" in found["why"]


def test_obstacles_refuse_no_installation_and_ask_for_a_reboot_after_it() -> None:
    tree = host(
        modules=stock(ib_core=module("ib_core", holders=["ib_uverbs", "mlx5_ib", "rdma_cm", "ko2iblnd"]), ko2iblnd=module("ko2iblnd"))
    )
    found = decide(driver(), tree)
    assert (found["change"], found["refused"]) == ("install", None)
    assert "ko2iblnd holds ib_core" in found["reload"]["obstacles"][0]
    found = decide(driver(), installed(modules={**OLD, **KO2IBLND}))
    assert (found["reload"]["live"], found["reboot"]["needed"], found["reboot"]["withheld"]) == (False, True, None)
    assert "ko2iblnd holds ib_core" in found["reboot"]["why"]


FAILED = {
    "install": (driver(), host(modules=OLD)),
    "upgrade": (driver(version="24.10-2.1.8.0"), installed(modules={**OLD, **KO2IBLND})),
    "switch": (driver("inbox", None), installed(modules=OLD)),
    "rebuild": (driver(), installed(modules=stock(), dkms=[built(None, "added")])),
}


@pytest.mark.parametrize("change", FAILED)
def test_a_host_on_which_something_is_still_to_be_installed_is_neither_reloaded_nor_rebooted(change: str) -> None:
    found = decide(*FAILED[change], reboot_allowed=True)
    assert found["change"] == change
    assert (found["reload"]["needed"], found["reload"]["always"], found["reboot"]) == (False, False, QUIET)
    assert found["reload"]["modules"]
    assert found["reload"]["why"].startswith("after the installation: ")


def test_a_switch_to_inbox_installs_all_of_it() -> None:
    assert decide(driver("inbox", None), installed())["distribution_packages"] == [
        *("ibverbs-utils", "infiniband-diags", "mstflint", "perftest", "rdma-core")
    ]


ADDED = [built(None, "added")]


def failed(source: str) -> dict[str, Any]:
    return {"meaning": "it failed", "lines": [], "source": source}


AGAIN = [
    pytest.param(driver(), installed(modules=stock(), dkms=ADDED), KERNEL, id="MLNX_OFED"),
    pytest.param(driver("doca", "3.2.0"), host(**{**DOCA, "modules": {}, "dkms": ADDED}), KERNEL, id="DOCA"),
    pytest.param(driver("doca", "3.2.0"), host(**{**DOCA, "modules": {}, "dkms": ADDED, "headers": {}}), KERNEL, id="headers to come"),
    pytest.param(driver(), installed(modules=stock(), dkms=[]), None, id="DKMS does not have it"),
    pytest.param(driver(), installed(modules=stock(), dkms=[built(None, "broken")]), None, id="its source is gone"),
    pytest.param(driver(), installed(modules=stock()), None, id="built, and not preferred"),
    pytest.param(driver(), installed(modules=stock(), dkms=ADDED, last_build=failed("bundle")), None, id="its installer failed"),
    pytest.param(driver(), installed(modules=stock(), dkms=ADDED, last_build=failed("dkms")), KERNEL, id="DKMS failed"),
    pytest.param(
        driver("doca", "3.2.0"), host(**{**DOCA, "modules": {}, "dkms": ADDED, "last_build": failed("doca")}), KERNEL, id="DOCA failed"
    ),
]


@pytest.mark.parametrize(("intent", "tree", "kernel"), AGAIN)
def test_what_dkms_has_is_built_again_without_the_installer(intent: dict[str, Any], tree: dict[str, Any], kernel: str | None) -> None:
    found = decide(intent, tree)
    assert (found["change"], found["dkms_build"], found["installer"]) == ("rebuild", kernel, kernel is None)


USERSPACE = {"vendor": {"doca-ofed-userspace": "3.2.0-125000"}, "modules": stock()}


@pytest.mark.parametrize("intent", [driver("inbox", None), driver("doca", "3.2.1", profile="doca-ofed-userspace")])
def test_docas_userspace_has_no_uninstaller(intent: dict[str, Any]) -> None:
    found = decide(intent, host(**USERSPACE))
    assert found["remove"] is None
    assert "`apt purge --autoremove doca-ofed-userspace`" in found["refused"]
    assert decide(driver("doca", "3.2.0", profile="doca-ofed-userspace"), host(**USERSPACE))["change"] == "none"


def test_kmods_are_not_built_by_dkms() -> None:
    rocky = {"id": "rocky", "version_id": "9.4", "like": ["rhel"], "family": "rpm"}
    found = decide(driver(add_kernel_support=None), host(system=rocky))
    assert (found["hook"], found["hook_dkms"]) == (True, False)
    assert decide(driver(add_kernel_support=None), host())["hook_dkms"] is True


def test_an_older_kernel_is_refused_or_rebooted_first() -> None:
    tree = host(kernels=[KERNEL, NEWER], newest=NEWER, headers={KERNEL: True})
    assert f"Reboot node1 into {NEWER}" in decide(driver(), tree)["refused"]
    found = decide(driver(), tree, reboot_allowed=True)
    assert (found["refused"], found["reboot"]["needed"], found["reboot"]["first"]) == (None, True, True)
    assert decide(driver(), {**tree, "load": BUSY}, reboot_allowed=True)["reboot"]["drainable"] is True
    assert found["distribution_packages"][0] == f"linux-headers-{NEWER}"
    assert decide(driver("inbox", None), tree)["reboot"]["needed"] is False


def test_all_refusals_are_told() -> None:
    refused = decide(driver(), host(system={"version_id": "13"}, secure_boot=True, kernels=[KERNEL, NEWER], newest=NEWER))["refused"]
    assert all(word in refused for word in ("debian 13", "Secure Boot", f"Reboot node1 into {NEWER}"))


def test_held_packages_refuse_an_upgrade_and_not_a_rebuild() -> None:
    held = {"held": ["mlnx-ofed-kernel-dkms"]}
    assert "apt-mark unhold" in decide(driver(version="24.10-2.1.8.0"), installed(**held))["refused"]
    assert decide(driver(), installed(modules={}, dkms=[], **held))["refused"] is None
    assert decide(driver(), installed(modules={}, dkms=[built(NEWER)], **held))["refused"] is None


def test_modules_of_packages_that_are_not_loaded_are_left_alone() -> None:
    found = decide(driver(), host(ofed_version=SAID, modules={}))
    assert (found["change"], found["refused"]) == ("none", None)
    assert "it is not known whether it is built" in found["why"]
