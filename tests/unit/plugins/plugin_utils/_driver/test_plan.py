# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage decides."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.plan import ENDED, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import KERNEL, NEWER, OFED_VERSION, add_on, built, driver, host, installed, module, stock
from tests.unit.builders.hosts import lab_facts, lab_intent

DOCA = {"ofed_version": "OFED-internal-25.10-1.7.1", "modules": add_on(), "dkms": [built()], "vendor": {"doca-ofed": "3.2.0-125000"}}
KEYS = {
    *("stack", "version", "kernel", "installed", "change", "why", "refused", "remove", "distribution_packages", "flags", "doca"),
    *("reload", "reboot", "hold", "hook", "hook_dkms", "installer", "dkms_build", "busy", "switch", "files"),
}
QUIET = {"needed": False, "first": False, "why": "no reason", "withheld": None, "drainable": False, "build_first": None}
IDLE: dict[str, Any] = {"gpu_processes": [], "jobs": []}
BUSY = {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}
OLD = {name: {**each, "srcversion": "OLD"} for name, each in add_on().items()}
KO2IBLND = {
    "ib_core": {**OLD["ib_core"], "holders": [*OLD["ib_core"]["holders"], "ko2iblnd"]}, "ko2iblnd": module("ko2iblnd"),
}  # fmt: skip


#: What an idle host says of its stack before a change.
REMOVAL = MappingProxyType({"packages": {"ofed-scripts": "24.10"}, "dependants": {}, "in_use": [], "unread": None})


def decide(
    intent: dict[str, Any],
    tree: dict[str, Any],
    *,
    reboot_allowed: bool = False,
    switch_allowed: bool = True,
    removal: Mapping[str, Any] | None = REMOVAL,
) -> dict[str, Any]:
    found = plan(intent, from_dict(tree), reboot_allowed=reboot_allowed, switch_allowed=switch_allowed, removal=removal)
    assert set(found) == KEYS
    return found


def test_a_real_host_that_has_all_for_inbox() -> None:
    found = decide(lab_intent(), lab_facts())
    assert (found["change"], found["refused"], found["remove"], found["distribution_packages"]) == ("none", None, None, [])
    assert found["installed"] == {"stack": "inbox", "version": None, "packages": {}}
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
    pytest.param(driver(version="24.10-2.1.8.0", force=False), installed(), "upgrade", None, id="upgrade, not by force"),
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
    assert f"its headers are missing: install linux-headers-{NEWER}" in found["reboot"]["withheld"]
    assert found["reboot"]["drainable"] is False
    assert found["distribution_packages"] == [f"linux-headers-{NEWER}"]


def test_installed_and_not_loaded_yet_is_a_reload() -> None:
    found = decide(driver(), installed(modules=OLD))
    assert (found["change"], found["reload"]["needed"], found["reload"]["live"], found["reboot"]["needed"]) == ("none", True, True, False)
    assert "the loaded mlx5_core differs from the one on disk" in found["why"]


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
    for intent in (driver(), driver(force=False)):
        busy = decide(intent, {**tree, "load": BUSY}, reboot_allowed=True)
        assert (busy["reboot"]["first"], busy["reboot"]["drainable"], busy["switch"]["withheld"]) == (True, True, None)
    assert found["distribution_packages"][0] == f"linux-headers-{NEWER}"
    assert decide(driver("inbox", None), tree)["reboot"]["needed"] is False


def test_all_refusals_are_reported() -> None:
    refused = decide(driver(), host(system={"version_id": "13"}, secure_boot=True, kernels=[KERNEL, NEWER], newest=NEWER))["refused"]
    assert all(word in refused for word in ("debian 13", "Secure Boot", f"Reboot node1 into {NEWER}"))


def test_held_packages_refuse_an_upgrade_and_not_a_rebuild() -> None:
    held = {"held": ["mlnx-ofed-kernel-dkms"]}
    assert "apt-mark unhold" in decide(driver(version="24.10-2.1.8.0"), installed(**held))["refused"]
    assert decide(driver(), installed(modules={}, dkms=[], **held))["refused"] is None
    assert decide(driver(), installed(modules={}, dkms=[built(NEWER)], **held))["refused"] is None


def test_modules_of_packages_that_are_not_loaded_are_left_alone() -> None:
    found = decide(driver(), host(ofed_version=OFED_VERSION, modules={}))
    assert (found["change"], found["refused"]) == ("none", None)
    assert "whether it is built for" in found["why"]


def keeps(found: dict[str, Any]) -> None:
    """Nothing of the host is changed."""
    assert (found["remove"], found["installer"], found["dkms_build"], found["distribution_packages"]) == (None, False, None, [])
    assert (found["files"], found["reload"]["needed"], found["reboot"]["needed"], found["hold"]["differs"]) == (False, False, False, False)
    assert found["refused"] is None


KEPT = [
    pytest.param(installed(), "mlnx_ofed", id="MLNX_OFED"),
    pytest.param(installed(modules=stock(), dkms=[built(None, "added")]), "mlnx_ofed", id="MLNX_OFED, not built"),
    pytest.param(installed(load={"gpu_processes": [], "jobs": []}, headers={}), "mlnx_ofed", id="MLNX_OFED, no headers"),
    pytest.param(host(**DOCA), "doca", id="DOCA"),
    pytest.param(host(vendor={"doca-ofed-userspace": "3.2.0-1"}), "doca", id="DOCA's userspace"),
    pytest.param(host(modules=add_on(), system={"packages": {"perftest": None, "rdma-core": None}}), "add_on", id="of another kind"),
    pytest.param(host(dkms=[built()], system={"packages": {"perftest": None, "rdma-core": "44"}}), "add_on", id="its DKMS alone"),
    pytest.param(host(system={"packages": None, "vendor": None}), "inbox", id="packages that cannot be read"),
    pytest.param(host(), "inbox", id="inbox, all there"),
]


@pytest.mark.parametrize(("tree", "stack"), KEPT)
@pytest.mark.parametrize("allowed", [False, True])
def test_keep_changes_nothing_whatever_is_allowed(tree: dict[str, Any], stack: str, allowed: bool) -> None:
    found = decide(driver("keep", None), tree, switch_allowed=allowed, reboot_allowed=allowed)
    assert (found["stack"], found["change"], found["switch"]["needed"]) == (stack, "none", False)
    keeps(found)


def test_keep_installs_the_distribution_s_packages_where_there_is_no_stack() -> None:
    tree = host(system={"packages": {"perftest": None, "rdma-core": "44"}})
    found = decide(driver("keep", None), tree, switch_allowed=False)
    assert (found["change"], found["distribution_packages"], found["remove"]) == ("install", ["perftest"], None)


def test_a_kept_stack_is_not_rebooted_into_a_kernel_that_lacks_it() -> None:
    tree = installed(modules=OLD, kernels=[KERNEL, NEWER], newest=NEWER, headers={KERNEL: True, NEWER: True})
    found = decide(driver("keep", None), tree, reboot_allowed=True)
    assert found["reboot"]["build_first"] is None
    assert f"run `dkms autoinstall -k {NEWER}` first" in found["reboot"]["withheld"]
    there = decide(
        driver("keep", None), installed(kernels=[KERNEL, NEWER], newest=NEWER, dkms=[built(), built(NEWER)]), reboot_allowed=True
    )
    assert (there["reboot"]["needed"], there["reboot"]["withheld"]) == (False, None)


SWITCHES = [
    pytest.param(driver("inbox", None), installed(), id="to inbox"),
    pytest.param(driver("doca", "3.2.0"), installed(), id="to DOCA"),
    pytest.param(driver(version="24.10-2.1.8.0"), installed(), id="an upgrade that the installer does by force"),
    pytest.param(driver("doca", "2.9.5"), host(**DOCA), id="a downgrade"),
    pytest.param(driver(), installed(modules=stock(), last_build={"source": "mlnx_ofed"}), id="the installer once more"),
    pytest.param(driver("doca", "3.2.0"), host(ofed_version="OFED-internal-25.04-0.6.1", modules=add_on()), id="a DOCA without a profile"),
    pytest.param(driver("doca", "3.2.0"), host(vendor={"mlnx-ofed-kernel-dkms": "24.10"}), id="one package of a stack"),
    pytest.param(driver("doca", "3.2.0"), host(modules=add_on()), id="modules of an add-on without a package"),
    pytest.param(driver(force=False), host(vendor={"mlnx-ofed-kernel-dkms": "24.10"}), id="MLNX_OFED over one package of a stack"),
    pytest.param(driver("doca", "3.2.0", profile="doca-all"), host(**DOCA), id="another profile of DOCA"),
    pytest.param(driver(), host(), id="a first installation by force"),
]


@pytest.mark.parametrize(("intent", "tree"), SWITCHES)
def test_packages_of_an_installed_stack_are_not_removed_unless_allowed_idle_and_listed(
    intent: dict[str, Any], tree: dict[str, Any]
) -> None:
    stops = not intent["driver"]["force"] and intent["driver"]["stack"] == "mlnx_ofed"
    listed = {**REMOVAL, "dependants": {} if stops else {"beegfs-client-dkms": "7.4.2"}}
    found = decide(intent, tree, switch_allowed=False, removal=listed)
    keeps(found)
    assert found["switch"]["withheld"] == "driver_switch_allowed is false"
    assert found["installed"]["packages"] == tree["stack"]["distribution"]["vendor"]
    assert "Packages that would be removed: ofed-scripts 24.10." in found["switch"]["reason"]
    assert stops or "depend on them and would be removed too: beegfs-client-dkms 7.4.2." in found["switch"]["reason"]
    for busy, removal in ((BUSY, listed), (None, listed), (IDLE, {**listed, "in_use": ["job process 7 (slurmstepd)"]})):
        found = decide(intent, {**tree, "load": busy}, removal=removal)
        keeps(found)
        assert found["switch"]["withheld"].startswith("the host is in use: "), found["switch"]
    for removal in (None, {**listed, "unread": "dpkg says no"}):
        keeps(decide(intent, tree, removal=removal))
    found = decide(intent, tree, removal=listed)
    assert (found["switch"]["withheld"], found["switch"]["needed"], found["files"]) == (None, True, True)
    assert found["remove"] or found["installer"] or found["refused"]


def test_a_first_installation_needs_no_leave_to_switch() -> None:
    for intent in (driver(force=False), driver("doca", "3.2.0")):
        found = decide(intent, host(), switch_allowed=False, removal=None)
        assert (found["change"], found["installer"], found["switch"]["needed"]) == ("install", True, False)


@pytest.mark.parametrize("intent", [driver(force=False), driver("doca", "3.2.0"), driver()])
@pytest.mark.parametrize("allowed", [True, False])
def test_a_first_installation_waits_while_the_host_is_in_use(intent: dict[str, Any], allowed: bool) -> None:
    """It replaces the distribution's libraries under a job, an open device, storage, or what cannot be read."""
    opened = stock(ib_uverbs=module("ib_uverbs", refcount=3))
    for tree in ({**host(), "load": BUSY}, {**host(), "load": None}, host(modules=opened), host(uses=[{"kind": "nvme", "what": "nvme1"}])):
        found = decide(intent, tree, switch_allowed=allowed)
        keeps(found)
        assert "the host is in use: " in found["switch"]["withheld"]
        forced = intent["driver"]["force"] and intent["driver"]["stack"] == "mlnx_ofed"
        assert ("driver_switch_allowed" in found["switch"]["withheld"]) == (forced and not allowed)
    assert decide(driver("inbox", None), {**host(system={"packages": {"perftest": None}}), "load": BUSY})["switch"]["needed"] is False


def test_a_first_installation_by_force_lists_what_depends_on_the_distribution() -> None:
    found = decide(driver(), host(), switch_allowed=False, removal=None)
    assert {"rdma-core", "libibverbs1", "libibverbs"} <= set(found["switch"]["lists"])
    assert found["switch"]["allow"] == "driver_switch_allowed: true, on an idle host"
    typed = decide(driver(force=False, flags=["--force"]), host(), switch_allowed=False)
    assert typed["switch"]["withheld"] == "driver_switch_allowed is false"
    bare = {"packages": {}, "dependants": {}, "in_use": [], "unread": "no installed package of the stack is known"}
    assert decide(driver(), host(), removal=bare)["switch"]["withheld"] is None
    broken = {**bare, "unread": "the package database cannot be read"}
    assert "package database" in decide(driver(), host(), removal=broken)["switch"]["withheld"]


def test_add_on_modules_that_belong_to_no_package_may_be_replaced_when_that_is_allowed() -> None:
    bare = {"packages": {}, "dependants": {}, "in_use": [], "unread": "no installed package of the stack is known"}
    found = decide(driver("doca", "3.2.0"), host(modules=add_on()), removal=bare)
    assert (found["switch"]["needed"], found["switch"]["withheld"], found["installer"]) == (True, None, True)
    tree = host(vendor={"mlnx-ofed-kernel-dkms": "24.10"})
    assert "no installed package" in decide(driver("doca", "3.2.0"), tree, removal=bare)["switch"]["withheld"]


def test_an_installer_without_force_waits_for_packages_that_depend_on_the_stack() -> None:
    listed = {**REMOVAL, "dependants": {"beegfs-client-dkms": "7.4.2"}}
    found = decide(driver(version="24.10-2.1.8.0", force=False), installed(), removal=listed)
    keeps(found)
    assert found["switch"]["withheld"] == "other packages depend on the stack, and rdma_driver.force is false"
    found = decide(driver(version="24.10-2.1.8.0", force=False), installed())
    assert (found["switch"]["withheld"], found["installer"], found["remove"]) == (None, True, None)
