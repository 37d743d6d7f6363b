# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules in the kernel at the driver gate: of the planned stack, the same as on disk, and one error for one cause."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._checks_dkms import check_dkms
from ansible_collections.rdma.cluster.plugins.module_utils._checks_kernel import check_kernels
from ansible_collections.rdma.cluster.plugins.module_utils._checks_modules import causes, check_modules, compare
from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping
from tests.unit.hosts import lab_facts, lab_rails

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
    return {"driver": {"stack": stack}, "rails": [{**RAIL, **rail}]}


def all_of(provenance: str, names: Any = tuple(name for name in HOLDERS if name != "mlx_compat"), **changes: Any) -> dict[str, Any]:
    return {name: module(name, provenance, **changes) for name in names}


def check(tree: dict[str, Any], stack: str = "inbox", **rail: Any) -> dict[str, list[Finding]]:
    found = check_modules("node1", intent(stack, **rail), tree)
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


def test_an_add_on_where_inbox_is_planned_is_a_warning() -> None:
    (finding,) = check(facts(all_of("dkms"), ofed_version="MLNX_OFED_LINUX-24.10-1.1.4.0"))["driver.stack"]
    assert finding.status == "warning"
    assert finding.observed.startswith("ib_core, ib_uverbs, rdma_cm, mlx5_core, mlx5_ib of MLNX_OFED_LINUX-24.10-1.1.4.0 (/lib/modules/")
    assert "ofed_uninstall.sh" in finding.remedy


def test_ofed_s_compatibility_layer_alone_tells_as_well() -> None:
    (finding,) = check(facts(all_of("kernel"), kind="ofed"))["driver.stack"]
    assert (finding.status, finding.observed) == ("warning", "mlx_compat of an add-on in the place of the kernel's own")


def test_the_kernel_s_own_in_the_place_of_the_planned() -> None:
    (finding,) = stopping(check_modules("node1", intent("doca"), facts(all_of("kernel", ["mlx5_core"]))))
    assert (finding.check, finding.status) == ("driver.stack", "error")
    assert finding.observed == "the kernel's own mlx5_core runs, not the installed one"
    assert "`modinfo -F filename mlx5_core`" in finding.remedy


def test_one_of_them_is_enough() -> None:
    mixed = {**all_of("dkms"), "mlx5_ib": module("mlx5_ib", "kernel")}
    (finding,) = stopping(check_modules("node1", intent("doca"), facts(mixed)))
    assert finding.observed == "the kernel's own mlx5_ib runs, not the installed one"


def test_the_driver_of_another_vendor_s_nic_is_not_ofed_s() -> None:
    tree = facts({**all_of("dkms", ["ib_core", "ib_uverbs"]), "bnxt_en": module("bnxt_en"), "bnxt_re": module("bnxt_re")})
    tree["devices"] = {"bnxt_re0": {"driver": "bnxt_en", "ports": {"1": {"netdev": "ens1"}}}}
    assert check(tree, "doca")["driver.stack"][0].status == "ok"
    assert check(tree, "inbox")["driver.stack"][0].observed.startswith("ib_core, ib_uverbs of an add-on")


def test_the_drivers_of_soft_rails_are_not_the_nic_s() -> None:
    tree = facts({**all_of("kernel", ["ib_core"]), "mlx5_core": module("mlx5_core", "dkms")})
    assert check(tree, "inbox", soft=True)["driver.stack"][0].status == "ok"
    assert check(tree, "inbox")["driver.stack"][0].status == "warning"


@pytest.mark.parametrize(("stack", "status"), [("inbox", "not_applicable"), ("doca", "unknown")])
def test_modules_of_which_it_is_not_known_where_they_come_from(stack: str, status: str) -> None:
    modules = {name: {**each, "provenance": None} for name, each in all_of("kernel").items()}
    assert [finding.status for finding in check(facts(modules), stack)["driver.stack"]] == [status]


def test_no_module_at_all_is_the_finding_of_another_check() -> None:
    found = check(facts({}), "doca")
    assert [finding.status for each in found.values() for finding in each] == ["not_applicable"] * 2
    assert "driver.module" in found["driver.stack"][0].observed


NEW = {"file_version": "24.10-1.1.4", "file_srcversion": "NEW", "version": None, "srcversion": "OLD"}


def test_an_installed_driver_that_is_not_loaded_yet_is_one_error() -> None:
    (finding,) = stopping(check_modules("node1", intent("doca"), facts(all_of("dkms", **NEW))))
    assert (finding.check, finding.status, finding.subject) == ("driver.loaded", "error", "kernel module ib_core")
    assert finding.observed == (
        "24.10-1.1.4 (srcversion NEW) is installed, 5.15.0-25-generic's own (srcversion OLD) is loaded; "
        "the same is true of mlx5_core, ib_uverbs, mlx5_ib, rdma_cm"
    )
    assert "openibd" in finding.remedy
    assert "node1" in finding.remedy


def test_a_removed_add_on_that_is_still_loaded_is_one_error() -> None:
    still = {"version": "24.10-1.1.4", "srcversion": "OLD", "file_version": None, "file_srcversion": "NEW"}
    for planned in ("inbox", "doca"):
        (finding,) = stopping(check_modules("node1", intent(planned), facts(all_of("kernel", **still))))
        assert finding.observed.startswith("5.15.0-25-generic's own (srcversion NEW) is installed, 24.10-1.1.4 (srcversion OLD) is loaded")


def test_modules_that_have_nothing_to_do_with_each_other_are_an_error_each() -> None:
    modules = {**all_of("dkms"), "gdrdrv": module("gdrdrv", "dkms", srcversion="A"), "mlx5_ib": module("mlx5_ib", "dkms", version="24.07")}
    found = check(facts(modules), "doca")["driver.loaded"]
    assert [(finding.subject, finding.status) for finding in found] == [
        ("kernel module mlx5_ib", "error"),
        ("kernel module gdrdrv", "error"),
    ]


NONE = {"version": None, "srcversion": None, "file_version": None, "file_srcversion": None}
SAME = {"version": "1", "srcversion": "A", "file_version": "1", "file_srcversion": "A", "file": "/x.ko"}
COMPARED = [
    pytest.param(SAME, "ok", id="the same"),
    pytest.param({**SAME, "version": "2"}, "error", id="another version"),
    pytest.param({**SAME, "srcversion": "B"}, "error", id="another srcversion"),
    pytest.param({**SAME, "version": None}, "error", id="version of the file only"),
    pytest.param({**SAME, "file_srcversion": None}, "error", id="srcversion of what is loaded only"),
    pytest.param({**SAME, "version": None, "file_version": None}, "ok", id="srcversion alone"),
    pytest.param({**NONE, "file": "/x.ko", "provenance": "kernel"}, "ok", id="the kernel's own declares nothing"),
    pytest.param({**NONE, "file": "/x.ko", "provenance": "dkms"}, "unknown", id="an add-on declares nothing"),
    pytest.param({**NONE, "file": "(builtin)"}, "ok", id="part of the kernel"),
    pytest.param({**NONE, "srcversion": "A", "file": "(builtin)"}, "ok", id="part of the kernel, with a srcversion"),
    pytest.param({**NONE, "file": None, "srcversion": "A"}, "unknown", id="no file was found"),
    pytest.param({**NONE, "srcversion": "A", "provenance": "kernel"}, "error", id="only what is loaded declares something"),
    pytest.param({"version": "1", "srcversion": "A", "holders": []}, "not_applicable", id="facts of before"),
]


@pytest.mark.parametrize(("seen", "status"), COMPARED)
def test_a_module_against_its_file(seen: dict[str, Any], status: str) -> None:
    assert compare(seen) == status


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
    assert causes(["c", "b", "a"], modules) == [["a", "b", "c"]]
    assert causes(["a", "c"], modules) == [["a"], ["c"]]
    assert causes(["a", "d", "b", "e"], modules) == [["a", "d", "b"], ["e"]]


def test_without_holders_all_are_one_cause() -> None:
    assert causes(["c", "a"], {"a": {}, "c": {}}) == [["a", "c"]]


def test_holders_that_hold_each_other_come_to_an_end() -> None:
    assert causes(["a", "b"], {"a": {"holders": ["b"]}, "b": {"holders": ["a"]}}) == [["a", "b"]]


def everything(tree: dict[str, Any]) -> list[str]:
    """What all checks on the driver stack find wrong."""
    found = [*check_kernels("node1", intent("doca"), tree), *check_dkms("node1", tree), *check_modules("node1", intent("doca"), tree)]
    return [finding.check for finding in stopping(found)]


ENTRY = {"name": "mlnx-ofed-kernel", "version": "24.10", "kernel": KERNEL, "arch": "x86_64", "state": "installed"}
BUILT = {"kernels": [KERNEL], "newest": KERNEL, "headers": {KERNEL: True}, "dkms": [ENTRY], "secure_boot": False, "distribution": {}}
NEXT = "5.15.0-91-generic"


def test_one_cause_is_one_error() -> None:
    good = facts(all_of("dkms"), **BUILT)
    assert everything(good) == []
    not_built = {**BUILT, "dkms": [{**ENTRY, "state": "added", "kernel": None, "arch": None}]}
    assert everything(facts(all_of("kernel"), **not_built)) == ["driver.dkms"]
    assert everything(facts(all_of("kernel"), **{**BUILT, "dkms": []})) == ["driver.stack"]
    assert everything(facts(all_of("dkms", **NEW), **BUILT)) == ["driver.loaded"]
    assert everything(facts(all_of("dkms"), **{**BUILT, "headers": {KERNEL: False}})) == ["preflight.headers"]
    assert everything(facts(all_of("dkms"), **{**BUILT, "secure_boot": True})) == ["preflight.secure_boot"]
    assert everything(facts(all_of("dkms"), **{**BUILT, "kernels": [KERNEL, NEXT], "newest": NEXT})) == ["preflight.newest"]


def test_that_nothing_was_built_for_want_of_headers_stops_the_driver_gate_too() -> None:
    """Each gate stops on its own: a silenced preflight.headers does not let the kernel's own modules pass for the planned ones."""
    stack = {**BUILT, "headers": {KERNEL: False}, "dkms": [{**ENTRY, "state": "added", "kernel": None}]}
    assert everything(facts(all_of("kernel"), **stack)) == ["preflight.headers", "driver.stack"]


def test_facts_of_before_stop_nobody() -> None:
    tree = lab_facts()
    for seen in tree["stack"]["modules"].values():
        for key in [key for key in seen if key not in ("version", "srcversion", "holders")]:
            del seen[key]
    found = check_modules("node1", {"driver": {"stack": "inbox"}, "rails": lab_rails()}, tree)
    assert [(finding.check, finding.status) for finding in found] == [
        ("driver.stack", "not_applicable"),
        ("driver.loaded", "not_applicable"),
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
