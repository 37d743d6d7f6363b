# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules in the kernel at the driver gate: of the planned stack, the same as on disk, and one error for one cause."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import with_kept_stack
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import check_dkms
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import causes, check_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.kernel import check_kernels
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import stack_of
from tests.unit.builders.hosts import lab_facts, lab_rails

KERNEL = "5.15.0-25-generic"
HOLDERS = {
    "mlx_compat": ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "rdma_cm"],
    "ib_core": ["ib_uverbs", "mlx5_ib", "rdma_cm"],
    "ib_uverbs": ["mlx5_ib"],
    "mlx5_core": ["mlx5_ib"],
    "mlx5_ib": [],
    "rdma_cm": [],
}
RAIL = {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": "roce", "address": "10.0.0.1/24", "soft": False}
FOLDER = {"dkms": "updates/dkms", "extra": "extra", "kernel": "kernel/drivers"}


def module(name: str, provenance: str | None = "kernel", **changes: Any) -> dict[str, Any]:
    """A module that is loaded as it is on disk: an add-on has a version, the kernel's own has none."""
    version = (
        {"version": "24.10-1.1.4", "srcversion": f"ADD{len(name)}"} if provenance != "kernel" else {"version": None, "srcversion": None}
    )
    file = {"file": f"/lib/modules/{KERNEL}/{FOLDER.get(provenance or '', 'x')}/{name}.ko"}
    on_disk = {f"file_{key}": value for key, value in version.items()}
    return {"holders": HOLDERS.get(name, []), "provenance": provenance, "signer": None, **version, **file, **on_disk, **changes}


def facts(modules: dict[str, Any], **stack: Any) -> dict[str, Any]:
    """A host with one ConnectX."""
    return {
        "devices": {"mlx5_0": {"driver": "mlx5_core", "ports": {"1": {"netdev": "ens1"}}}},
        "netdevs": {"ens1": {"pci": "0000:21:00.0"}},
        "stack": {"kind": None, "kernel": KERNEL, "modules": modules, **stack},
    }


def intent(stack: str = "inbox", **rail: Any) -> dict[str, Any]:
    return {"driver": {"stack": stack, "profile": "doca-ofed"}, "rails": [{**RAIL, **rail}]}


def all_of(provenance: str, names: Any = tuple(name for name in HOLDERS if name != "mlx_compat"), **changes: Any) -> dict[str, Any]:
    return {name: module(name, provenance, **changes) for name in names}


def check(tree: dict[str, Any], stack: str = "inbox", **rail: Any) -> dict[str, list[Finding]]:
    found = check_modules("node1", intent(stack, **rail), from_dict(tree))
    assert {(finding.stage, finding.host) for finding in found} == {("driver", "node1")}
    return {name: [finding for finding in found if finding.check == name] for name in ("driver.stack", "driver.loaded")}


@pytest.mark.parametrize(("stack", "provenance"), [("inbox", "kernel"), ("doca", "dkms"), ("mlnx_ofed", "extra")])
def test_a_good_host(stack: str, provenance: str) -> None:
    found = check(facts(all_of(provenance)), stack)
    assert [(finding.check, finding.status) for each in found.values() for finding in each] == [
        ("driver.stack", "ok"),
        ("driver.loaded", "ok"),
    ]
    assert found["driver.loaded"][0].observed == "5 modules, the same as on disk"


def test_a_rail_on_a_subfunction_is_judged_by_the_same_driver() -> None:
    tree = facts({**all_of("kernel"), "mlx5_core": module("mlx5_core", "extra")})
    tree["devices"]["mlx5_0"]["driver"] = "mlx5_core.sf"
    assert [finding.status for finding in check(tree)["driver.stack"]] == ["error"]


def test_an_installed_stack_where_inbox_is_planned_is_an_error() -> None:
    (finding,) = check(facts(all_of("dkms"), ofed_version="MLNX_OFED_LINUX-24.10-1.1.4.0"))["driver.stack"]
    assert (finding.status, finding.observed) == ("error", "mlnx_ofed 24.10-1.1.4.0 is installed")
    assert finding.remedy.startswith("1. To keep the stack of node1, set `rdma_driver: {stack: keep}`.")
    assert "`-e driver_switch_allowed=true`" in finding.remedy


def test_an_add_on_of_another_kind_where_inbox_is_planned_is_an_error() -> None:
    (finding,) = check(facts(all_of("dkms")))["driver.stack"]
    assert finding.status == "error"
    assert finding.observed.startswith("ib_core, ib_uverbs, rdma_cm, mlx5_core, mlx5_ib of an add-on (/lib/modules/")


KEPT = [
    pytest.param(facts(all_of("dkms"), ofed_version="MLNX_OFED_LINUX-24.10-1.1.4.0"), "ok", "mlnx_ofed 24.10-1.1.4.0", id="MLNX_OFED"),
    pytest.param(facts(all_of("dkms"), kind="ofed"), "ok", "add-on modules", id="of another kind"),
    pytest.param(facts(all_of("kernel")), "ok", "the kernel's own modules", id="inbox"),
    pytest.param(
        facts(all_of("kernel"), ofed_version="MLNX_OFED_LINUX-24.10-1.1.4.0"),
        "error",
        "mlnx_ofed 24.10-1.1.4.0",
        id="not what is installed",
    ),
]


@pytest.mark.parametrize(("tree", "status", "seen"), KEPT)
def test_a_kept_stack_is_judged_by_itself(tree: dict[str, Any], status: str, seen: str) -> None:
    known = from_dict(tree)
    found = check_modules("node1", with_kept_stack(intent("keep"), known.stack), known)
    (finding,) = [each for each in found if each.check == "driver.stack"]
    assert (finding.status, finding.expected) == (status, f"the installed stack (kept): {seen}"), finding


def test_another_vendor_s_driver_is_no_other_stack() -> None:
    tree = facts({**all_of("kernel"), "bnxt_re": module("bnxt_re", "dkms")})
    tree["devices"]["mlx5_0"]["driver"] = "bnxt_re"
    assert [each.status for each in check(tree)["driver.stack"]] == ["warning"]
    kept = check_modules("node1", with_kept_stack(intent("keep"), stack_of(tree["stack"])), from_dict(tree))
    assert [each.status for each in kept if each.check == "driver.stack"] == ["ok"]


def test_ofed_s_compatibility_layer_alone_reports_as_well() -> None:
    (finding,) = check(facts(all_of("kernel"), kind="ofed"))["driver.stack"]
    assert (finding.status, finding.observed) == ("error", "mlx_compat of an add-on instead of the kernel's own")


def test_the_kernel_s_own_in_the_place_of_the_planned() -> None:
    (finding,) = stopping(check_modules("node1", intent("doca"), from_dict(facts(all_of("kernel", ["mlx5_core"])))))
    assert (finding.check, finding.status) == ("driver.stack", "error")
    assert finding.observed == "the stock mlx5_core is running, not the installed one"
    assert "`modinfo -F filename mlx5_core`" in finding.remedy


def test_one_of_them_is_enough() -> None:
    mixed = {**all_of("dkms"), "mlx5_ib": module("mlx5_ib", "kernel")}
    (finding,) = stopping(check_modules("node1", intent("doca"), from_dict(facts(mixed))))
    assert finding.observed == "the stock mlx5_ib is running, not the installed one"


def test_the_driver_is_named_first() -> None:
    (finding,) = check(facts(all_of("kernel")), "doca")["driver.stack"]
    assert finding.observed.startswith("the stock mlx5_core is running, not the installed one; likewise ")


def test_which_file_version_and_srcversion_is_loaded() -> None:
    (finding,) = check(facts(all_of("dkms")), "doca")["driver.stack"]
    assert finding.observed == f"mlx5_core from /lib/modules/{KERNEL}/updates/dkms/mlx5_core.ko, version 24.10-1.1.4, srcversion ADD9"


def planned(stack: str, version: str, **rail: Any) -> dict[str, Any]:
    return {**intent(stack, **rail), "driver": {"stack": stack, "version": version}}


VERSIONS = [
    ("mlnx_ofed", "24.10-1.1.4.0", {"ofed_version": "MLNX_OFED_LINUX-24.10-1.1.4.0"}, "ok"),
    ("mlnx_ofed", "24.10-2.1.8.0", {"ofed_version": "MLNX_OFED_LINUX-24.10-1.1.4.0"}, "error"),
    ("mlnx_ofed", "24.10-1.1.4.0", {"ofed_version": "OFED-internal-24.10-1.1.4.0"}, "error"),
    ("mlnx_ofed", "24.10-1.1.4.0", {"ofed_version": None}, "unknown"),
    ("doca", "3.2.0", {"ofed_version": "OFED-internal-25.10-1.7.1", "distribution": {"vendor": {"doca-ofed": "3.2.0-125000"}}}, "ok"),
    ("doca", "3.2.1", {"ofed_version": "OFED-internal-25.10-1.7.1", "distribution": {"vendor": {"doca-ofed": "3.2.0-125000"}}}, "error"),
    ("doca", "3.2.0", {"ofed_version": "OFED-internal-25.10-1.7.1", "distribution": {"vendor": None}}, "unknown"),
]


@pytest.mark.parametrize(("stack", "version", "installed", "status"), VERSIONS)
def test_the_requested_version_is_a_part_of_the_stack(stack: str, version: str, installed: dict[str, Any], status: str) -> None:
    found = check_modules("node1", planned(stack, version), from_dict(facts(all_of("dkms"), **installed)))
    assert [(finding.check, finding.status) for finding in found] == [("driver.stack", status), ("driver.loaded", "ok")]
    assert found[0].expected == f"the modules of {stack} {version}"
    assert (f"{stack} {version}" in found[0].observed) is (status in ("error", "unknown"))
    assert ("node1" in found[0].remedy) is (status != "ok")


@pytest.mark.parametrize(("provenance", "status"), [("dkms", "ok"), ("kernel", "error")])
def test_an_add_on_is_judged_by_its_driver_where_all_rails_are_soft(provenance: str, status: str) -> None:
    """Soft-RoCE stands on the kernel's own core."""
    tree = facts({**all_of("kernel", ["ib_core", "ib_uverbs", "rdma_cm"]), "mlx5_core": module("mlx5_core", provenance)})
    assert check(tree, "doca", soft=True)["driver.stack"][0].status == status
    del tree["stack"]["modules"]["mlx5_core"]
    assert check(tree, "doca", soft=True)["driver.stack"][0].status == "not_applicable"


def test_docas_userspace_stands_on_the_kernels_own_modules() -> None:
    requested = {**intent("doca"), "driver": {"stack": "doca", "version": "3.2.0", "profile": "doca-ofed-userspace"}}
    assert check_modules("node1", requested, from_dict(facts(all_of("kernel"))))[0].status == "ok"


def test_the_driver_of_another_vendor_s_nic_is_not_ofed_s() -> None:
    tree = facts({**all_of("dkms", ["ib_core", "ib_uverbs"]), "bnxt_en": module("bnxt_en"), "bnxt_re": module("bnxt_re")})
    tree["devices"] = {"bnxt_re0": {"driver": "bnxt_en", "ports": {"1": {"netdev": "ens1"}}}}
    assert check(tree, "doca")["driver.stack"][0].status == "ok"
    assert check(tree, "inbox")["driver.stack"][0].observed.startswith("ib_core, ib_uverbs of an add-on")


def test_the_drivers_of_soft_rails_are_not_the_nic_s() -> None:
    tree = facts({**all_of("kernel", ["ib_core"]), "mlx5_core": module("mlx5_core", "dkms")})
    assert check(tree, "inbox", soft=True)["driver.stack"][0].status == "ok"
    assert check(tree, "inbox")["driver.stack"][0].status == "error"


@pytest.mark.parametrize("stack", ["inbox", "doca"])
def test_modules_of_which_it_is_not_known_where_they_come_from(stack: str) -> None:
    modules = {name: {**each, "provenance": None} for name, each in all_of("kernel").items()}
    assert [finding.status for finding in check(facts(modules), stack)["driver.stack"]] == ["unknown"]


def test_no_module_at_all_is_the_finding_of_another_check() -> None:
    found = check(facts({}), "doca")
    assert [finding.status for each in found.values() for finding in each] == ["not_applicable"] * 2
    assert "driver.module" in found["driver.stack"][0].observed


NEW = {"file_version": "24.10-1.1.4", "file_srcversion": "NEW", "version": None, "srcversion": "OLD"}


def test_an_installed_driver_that_is_not_loaded_yet_is_one_error() -> None:
    (finding,) = stopping(check_modules("node1", intent("doca"), from_dict(facts(all_of("dkms", **NEW)))))
    assert (finding.check, finding.status, finding.subject) == ("driver.loaded", "error", "kernel module ib_core")
    assert finding.observed == (
        "24.10-1.1.4 (srcversion NEW) is installed, 5.15.0-25-generic's own (srcversion OLD) is loaded; likewise mlx5_core, ib_uverbs, "
        "mlx5_ib, rdma_cm"
    )
    assert "openibd" in finding.remedy
    assert "node1" in finding.remedy


def test_a_removed_add_on_that_is_still_loaded_is_one_error() -> None:
    still = {"version": "24.10-1.1.4", "srcversion": "OLD", "file_version": None, "file_srcversion": "NEW"}
    for planned in ("inbox", "doca"):
        (finding,) = stopping(check_modules("node1", intent(planned), from_dict(facts(all_of("kernel", **still)))))
        assert finding.observed.startswith("5.15.0-25-generic's own (srcversion NEW) is installed, 24.10-1.1.4 (srcversion OLD) is loaded")


def test_modules_that_have_nothing_to_do_with_each_other_are_an_error_each() -> None:
    modules = {**all_of("dkms"), "gdrdrv": module("gdrdrv", "dkms", srcversion="A"), "mlx5_ib": module("mlx5_ib", "dkms", version="24.07")}
    found = check(facts(modules), "doca")["driver.loaded"]
    assert [(finding.subject, finding.status) for finding in found] == [
        ("kernel module mlx5_ib", "error"),
        ("kernel module gdrdrv", "error"),
    ]


NONE = {"version": None, "srcversion": None, "file_version": None, "file_srcversion": None}


def test_modules_that_cannot_be_compared_are_one_unknown() -> None:
    unknown = {**all_of("kernel"), "gdrdrv": module("gdrdrv", "dkms", **NONE), "knem": module("knem", "extra", **NONE)}
    (finding,) = stopping(check(facts(unknown))["driver.loaded"])
    assert (finding.status, finding.observed) == ("unknown", "cannot be compared: gdrdrv, knem")


def test_causes_are_the_modules_that_are_upon_each_other() -> None:
    modules = {
        "a": {"holders": ["b"]},
        "b": {"holders": ["c", "x"]},
        "c": {"holders": []},
        "d": {"holders": ["b"]},
        "e": {"holders": []},
        "x": {},
    }
    loaded = stack_of({"modules": modules}).modules
    assert causes(["c", "b", "a"], loaded) == [["a", "b", "c"]]
    assert causes(["a", "c"], loaded) == [["a"], ["c"]]
    assert causes(["a", "d", "b", "e"], loaded) == [["a", "d", "b"], ["e"]]


def test_holders_that_hold_each_other_come_to_an_end() -> None:
    assert causes(["a", "b"], stack_of({"modules": {"a": {"holders": ["b"]}, "b": {"holders": ["a"]}}}).modules) == [["a", "b"]]


def everything(tree: dict[str, Any]) -> list[str]:
    """What all checks on the driver stack find wrong."""
    doca, known = intent("doca"), from_dict(tree)
    found = [*check_kernels("node1", doca, known), *check_dkms("node1", known, stack_judged=True), *check_modules("node1", doca, known)]
    return [finding.check for finding in stopping(found)]


ENTRY = {"name": "mlnx-ofed-kernel", "version": "24.10", "kernel": KERNEL, "arch": "x86_64", "state": "installed"}
BUILT = {"kernels": [KERNEL], "newest": KERNEL, "headers": {KERNEL: True}, "dkms": [ENTRY], "secure_boot": False, "distribution": {}}
NEXT = "5.15.0-91-generic"


def test_one_cause_is_one_error() -> None:
    good = facts(all_of("dkms"), **BUILT)
    assert everything(good) == []
    not_built = {**BUILT, "dkms": [{**ENTRY, "state": "added", "kernel": None, "arch": None}]}
    assert everything(facts(all_of("kernel"), **not_built)) == ["driver.stack"]
    others = [*not_built["dkms"], {**ENTRY, "name": "knem", "state": "built"}]
    assert everything(facts(all_of("kernel"), **{**not_built, "dkms": others})) == ["driver.dkms", "driver.stack"]
    assert everything(facts(all_of("kernel"), **{**BUILT, "dkms": []})) == ["driver.stack"]
    assert everything(facts(all_of("dkms", **NEW), **BUILT)) == ["driver.loaded"]
    assert everything(facts(all_of("dkms"), **{**BUILT, "headers": {KERNEL: False}})) == []
    assert everything(facts(all_of("dkms"), **{**BUILT, "secure_boot": True})) == ["preflight.secure_boot"]
    assert everything(facts(all_of("dkms"), **{**BUILT, "kernels": [KERNEL, NEXT], "newest": NEXT})) == ["preflight.newest"]


def test_a_stock_driver_is_reported_with_the_line_of_the_compiler() -> None:
    """And not by a line of driver.dkms as well."""
    failure = {"meaning": "the installation failed", "lines": ["mlx5_core.c:12:5: error: expected ';'", "b", "c", "d", "e"]}
    not_built = {**BUILT, "dkms": [{**ENTRY, "state": "added", "kernel": None, "arch": None}], "last_build": failure}
    found = stopping(check_modules("node1", intent("doca"), from_dict(facts(all_of("kernel"), **not_built))))
    assert [finding.check for finding in found] == ["driver.stack"]
    assert "the stock mlx5_core is running" in found[0].observed
    why = "mlnx-ofed-kernel/24.10 is added, but not built for any kernel; the installation failed; mlx5_core.c:12:5: error"
    assert why in found[0].observed
    assert found[0].observed.endswith("; b; c; d")


def test_that_nothing_was_built_for_want_of_headers_stops_the_driver_gate_too() -> None:
    """Each gate stops on its own: preflight.headers, a warning, does not let the kernel's own modules pass for the planned ones."""
    stack = {**BUILT, "headers": {KERNEL: False}, "dkms": [{**ENTRY, "state": "added", "kernel": None}]}
    assert everything(facts(all_of("kernel"), **stack)) == ["driver.stack"]


def test_facts_that_do_not_report_the_files_of_modules_are_unknown() -> None:
    tree = lab_facts()
    for seen in tree["stack"]["modules"].values():
        for key in [key for key in seen if key not in ("version", "srcversion", "holders")]:
            del seen[key]
    found = check_modules("node1", {"driver": {"stack": "inbox"}, "rails": lab_rails()}, from_dict(tree))
    assert [(finding.check, finding.status) for finding in found] == [
        ("driver.stack", "unknown"),
        ("driver.loaded", "unknown"),
    ]


@pytest.mark.parametrize(
    ("below", "status"),
    [({}, "ok"), ({"provenance": "kernel"}, "unknown"), ({"holders": []}, "unknown"), ({"file_srcversion": "B"}, "error")],
)
def test_modules_that_declare_nothing_stand_on_one_that_does(below: dict[str, Any], status: str) -> None:
    """Debian's kernels give no srcversion, and of OFED's modules ib_core and ib_uverbs have no version."""
    nameless = {"version": None, "srcversion": None, "file_version": None, "file_srcversion": None}
    modules = {
        **all_of("dkms", ("ib_core", "ib_uverbs"), **nameless),
        "mlx_compat": module("mlx_compat", **{"provenance": "dkms", **below}),
    }
    found = check(facts(modules), "doca")["driver.loaded"]
    assert found[0].status == status
