# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in the way of swapping the driver in a running host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import check_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.blockers import differing, reload_plan, with_holders, with_obstacles
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import add_on, driver, host, module, stack_of, stock
from tests.unit.builders.hosts import lab_facts, lab_intent

NEW = {"srcversion": "OLD", "version": None}
ORDER = ["mlx5_ib", "rdma_cm", "ib_uverbs", "ib_core", "mlx5_core"]


def pending(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A stack that is installed, and not loaded yet."""
    names = stock()
    return {**{name: module(name, "dkms", **NEW) for name in names}, **changes}


def reload(tree: dict[str, Any], *, changes: bool = False, stack: str = "mlnx_ofed") -> dict[str, Any]:
    return reload_plan(driver(stack), from_dict(tree), changes=changes)


def test_nothing_to_reload() -> None:
    found = reload(host(modules=add_on()))
    assert found == {
        "needed": False, "always": False, "why": "the loaded modules are those on disk", "live": False, "obstacles": [], "modules": [],
    }  # fmt: skip


def test_what_is_loaded_and_differs_is_swapped_with_all_that_stand_on_it() -> None:
    found = reload(host(modules=pending()))
    assert (found["needed"], found["live"], found["obstacles"]) == (True, True, [])
    assert sorted(found["modules"]) == sorted(ORDER)
    for below, above in (("ib_core", "ib_uverbs"), ("ib_uverbs", "mlx5_ib"), ("mlx5_core", "mlx5_ib"), ("ib_core", "rdma_cm")):
        assert found["modules"].index(above) < found["modules"].index(below)


def test_only_what_differs_and_what_is_above_it() -> None:
    tree = host(modules=add_on(mlx5_core=module("mlx5_core", "dkms", srcversion="OLD")))
    assert reload(tree)["modules"] == ["mlx5_ib", "mlx5_core"]
    assert reload(tree)["why"] == "mlx5_core differs from the file on disk"


def test_holders_of_holders() -> None:
    modules = {"a": {"holders": ["b"]}, "b": {"holders": ["c", "a"]}}
    assert with_holders(["a"], stack_of({"modules": modules}).modules) == {"a", "b", "c"}


EXPECTED = [
    pytest.param("mlnx_ofed", stock(), ORDER, id="stock, all replaced"),
    pytest.param(
        "mlnx_ofed", {"ib_core": module("ib_core", holders=["rdma_rxe"]), "rdma_rxe": module("rdma_rxe")}, [],
        id="no driver loaded",
    ),
    pytest.param("mlnx_ofed", add_on(), [*ORDER, "mlx_compat"], id="add-on, all replaced"),
    pytest.param("inbox", add_on(), [*ORDER, "mlx_compat"], id="add-on, removed"),
    pytest.param("inbox", stock(), [], id="stock stays"),
    pytest.param(
        "mlnx_ofed",
        {
            "mlx_compat": module("mlx_compat", "dkms", holders=["mlx5_core"]), "mlx5_core": module("mlx5_core", "dkms", holders=[]),
            "ib_core": module("ib_core", holders=["rdma_rxe"]), "rdma_rxe": module("rdma_rxe"),
        },
        ["mlx5_core", "mlx_compat"], id="the core is the kernel's and stays",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("stack", "modules", "names"), EXPECTED)
def test_what_an_installation_will_replace(stack: str, modules: dict[str, Any], names: list[str]) -> None:
    found = reload(host(modules=modules), changes=True, stack=stack)
    assert sorted(found["modules"]) == sorted(names)
    assert found["needed"] is bool(names)
    assert found["obstacles"] == []


def above(name: str, refcount: int | None = 0, *, on: str = "ib_core", count: int = 4) -> dict[str, Any]:
    """One more module above another."""
    base = module(on, "dkms", **NEW)
    return pending(
        **{name: module(name, refcount=refcount, holders=[]), on: {**base, "holders": [*base["holders"], name], "refcount": count}}
    )


HOLDING = [
    pytest.param(above("standin_ulp"), "standin_ulp holds ib_core (refcount 0), and is not part of the stack", id="a third party's"),
    pytest.param(above("ko2iblnd", 3), "ko2iblnd holds ib_core (refcount 3), and is not part of the stack", id="Lustre"),
    pytest.param(above("nvme_rdma", None), "nvme_rdma holds ib_core (refcount unknown), and is not part of the stack", id="NVMe"),
    pytest.param(above("rpcrdma", 1), "rpcrdma is in use (refcount 1)", id="NFS"),
    pytest.param(above("ib_iser", 0), None, id="loaded by rdma-core and unused"),
    pytest.param(above("nvidia_peermem", 0), None, id="peermem"),
    pytest.param(above("nvidia_peermem", 2), "nvidia_peermem is in use (refcount 2)", id="peermem in use"),
    pytest.param(above("ib_ipoib", 0), None, id="part of the stack"),
    pytest.param(above("ib_ipoib", None), "whether ib_ipoib is in use is unknown", id="refcount not read"),
    pytest.param(above("ib_ipoib", 0, count=6), "ib_core is in use (refcount 6)", id="used by more than its holders"),
]


@pytest.mark.parametrize(("modules", "obstacle"), HOLDING)
def test_modules_in_the_way(modules: dict[str, Any], obstacle: str | None) -> None:
    found = reload(host(modules=modules))
    assert found["obstacles"] == ([] if obstacle is None else [obstacle])
    assert found["live"] is (obstacle is None)


BOND = {
    "eno1": {"driver": "igb", "master": None},
    "ens1": {"driver": "mlx5_core", "master": "bond0"},
    "ens2": {"driver": "igb", "master": "bond0"},
}
#: The same in facts that have the bond itself, with a VLAN and a bridge on it.
READ_BOND = {**BOND, "bond0": {"driver": None, "master": "br0"}, "bond0.7": {"driver": None, "master": None}}
BONDS = {"bond0": {"mode": "802.3ad", "members": {"ens1": {"up": True}, "ens2": {"up": True}}}}
MADE = {"ens1": {"driver": "mlx5_core", "master": None}, "admin": {"driver": None, "master": None}}
ELSEWHERE = [
    pytest.param({"session": {"netdev": "ens1"}}, ["Ansible's session uses ens1, a device of mlx5_core"], id="on the driver"),
    pytest.param({"session": {"netdev": "ens1.100"}}, ["Ansible's session uses ens1, a device of mlx5_core"], id="on a VLAN of it"),
    pytest.param(
        {"session": {"netdev": "admin"}, "netdevs": MADE, "vlans": {"admin": {"parent": "ens1", "id": 7}}},
        ["Ansible's session uses ens1, a device of mlx5_core"], id="on a VLAN of another name",
    ),
    pytest.param(
        {"session": {"netdev": "bond0"}, "netdevs": BOND}, ["Ansible's session uses ens1, a device of mlx5_core"], id="on a bond of it"
    ),
    pytest.param(
        {"session": {"netdev": "bond0.7"}, "netdevs": BOND}, ["Ansible's session uses ens1, a device of mlx5_core"], id="VLAN of a bond"
    ),
    *(
        pytest.param(
            {"session": {"netdev": name}, "netdevs": READ_BOND, "bonds": BONDS, "vlans": {"bond0.7": {"parent": "bond0", "id": 7}}},
            ["Ansible's session uses ens1, a device of mlx5_core"], id=f"on {name} of a bond that is read",
        )
        for name in ("bond0", "bond0.7", "br0")
    ),
    pytest.param(
        {"session": {"netdev": "ens1"}, "netdevs": {"ens1": {"driver": "mlx5_core.sf"}}},
        ["Ansible's session uses ens1, a device of mlx5_core"], id="on a subfunction",
    ),
    pytest.param(
        {"session": {"netdev": "vlan7"}}, ["Ansible's session uses vlan7, whose lower interfaces are unknown"], id="on something"
    ),
    pytest.param(
        {"session": {"netdev": "eno1"}, "netdevs": {"eno1": {"driver": None}}},
        ["Ansible's session uses eno1, whose driver is unknown"], id="on an unknown driver",
    ),
    pytest.param({"session": None}, ["the interface of Ansible's session is unknown"], id="session not read"),
    pytest.param(
        {"session": {"address": None, "netdev": None}}, ["the interface of Ansible's session is unknown"], id="none found"
    ),
    pytest.param({"load": {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}}, ["GPU process 4711 (python3)"], id="a GPU"),
    pytest.param({"load": None}, ["whether it is in use is unknown"], id="load not read"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "obstacles"), ELSEWHERE)
def test_what_else_is_in_the_way(changes: dict[str, Any], obstacles: list[str]) -> None:
    assert reload({**host(modules=pending()), **changes})["obstacles"] == obstacles


def test_storage_over_rdma_is_in_the_way() -> None:
    uses = [{"kind": "mount", "what": "/data from 10.0.0.1:/export by NFS over RDMA"}, {"kind": "nvme", "what": "nvme0 at 10.0.0.2"}]
    assert reload(host(modules=pending(), uses=uses))["obstacles"] == [
        "mounted: /data from 10.0.0.1:/export by NFS over RDMA",
        "NVMe over RDMA: nvme0 at 10.0.0.2",
    ]
    assert reload(host(modules=pending(), uses=None))["obstacles"] == ["whether storage uses RDMA is unknown"]


def test_facts_of_a_real_host_that_report_less() -> None:
    """Read before there were counts of references: nothing is taken for unused."""
    tree = lab_facts()
    for seen in tree["stack"]["modules"].values():
        seen["file_srcversion"] = "NEW"
    found = reload_plan(lab_intent(), from_dict(tree), changes=False)
    assert not found["live"]
    assert "whether ib_core is in use is unknown" in found["obstacles"]
    assert found["modules"].index("rpcrdma") < found["modules"].index("rdma_cm") < found["modules"].index("ib_core")


RAIL = {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": "roce", "address": "10.0.0.1/24", "soft": False}
RAIL_PORT = {"driver": "mlx5_core", "pci": "0000:21:00.0", "master": None, "admin_up": True, "ipv4": ["10.0.0.1/24"]}
OTHER = {"driver": "mlx5_core", "pci": "0000:41:00.1", "master": None, "admin_up": True, "ipv4": ["10.1.2.3/16"]}
OTHERS = [
    pytest.param({"ens5f1": OTHER}, ["ens5f1 (mlx5_core) carries 10.1.2.3: storage or other services may use it"], id="an address"),
    pytest.param({"ens5f1": {**OTHER, "driver": "igb"}}, [], id="another driver"),
    pytest.param({"ens5f1": {**OTHER, "admin_up": False}}, [], id="down"),
    pytest.param({"ens5f1": {**OTHER, "ipv4": []}}, [], id="no address"),
    pytest.param({"ens5f1": {**OTHER, "ipv4": None}}, ["whether ens5f1 (mlx5_core) carries an address is unknown"], id="not read"),
    pytest.param(
        {"ens5f1": {**OTHER, "ipv4": [], "master": "bond0"}, "bond0": {"driver": None, "ipv4": ["10.1.2.4/16"]}},
        ["ens5f1 (mlx5_core) carries 10.1.2.4: storage or other services may use it"], id="below a bond",
    ),
    pytest.param(
        {"ens5f1": {**OTHER, "ipv4": [], "master": "bond0"}},
        ["ens5f1 (mlx5_core) is part of bond0: storage or other services may use it"], id="below a bond that was not read",
    ),
    pytest.param(
        {"ens5f1": {**OTHER, "ipv4": []}, "ens5f1.7": {"driver": None, "ipv4": ["10.1.2.5/16"]}},
        ["ens5f1 (mlx5_core) carries 10.1.2.5: storage or other services may use it"], id="below a VLAN",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("netdevs", "obstacles"), OTHERS)
def test_interfaces_of_the_driver_that_are_no_rails(netdevs: dict[str, Any], obstacles: list[str]) -> None:
    tree = host(modules=pending())
    tree["netdevs"] = {"eno1": {"driver": "igb", "master": None, "ipv4": ["192.0.2.1/24"]}, "ens1": RAIL_PORT, **netdevs}
    found = reload_plan({**driver(), "rails": [RAIL]}, from_dict(tree), changes=False)
    assert found["obstacles"] == obstacles


@pytest.mark.parametrize(
    ("secure_boot", "signer", "reported"), [(True, None, True), (True, "node1 Secure Boot key", False), (False, None, False)]
)
def test_modules_on_disk_that_nobody_has_signed(secure_boot: bool, signer: str | None, reported: bool) -> None:
    modules = {name: {**each, "signer": signer} for name, each in pending().items()}
    found = reload(host(modules=modules, secure_boot=secure_boot))
    words = "Secure Boot is on; unsigned modules: ib_core, ib_uverbs, mlx5_core, mlx5_ib, rdma_cm on disk"
    assert found["obstacles"] == ([words] if reported else [])
    assert found["live"] is not reported
    assert reload(host(modules=modules, secure_boot=secure_boot), changes=True)["obstacles"] == [], "the installation replaces them"


def test_options_that_are_not_taken_reload_their_module_and_what_is_above_it() -> None:
    intent = driver(module_options={"mlx5-core": "prof_sel=3 debug_mask=0", "knem": "x=1"})
    tree = {**host(modules=add_on()), "module_parameters": {"mlx5_core": {"prof_sel": "2", "debug_mask": "0"}, "knem": {"x": "0"}}}
    found = reload_plan(intent, from_dict(tree), changes=False)
    assert (found["needed"], found["always"], found["live"]) == (True, True, True)
    assert found["modules"] == ["mlx5_ib", "mlx5_core"]
    assert found["why"] == "mlx5_core.prof_sel is 2, expected 3"
    tree["module_parameters"]["mlx5_core"]["prof_sel"] = "3"
    assert reload_plan(intent, from_dict(tree), changes=False)["needed"] is False


def test_the_gate_names_what_is_in_the_way() -> None:
    modules = pending()
    modules["third_party"] = {**module("third_party", "extra", holders=[]), "refcount": 0}
    modules["ib_core"] = {**modules["ib_core"], "holders": [*modules["ib_core"]["holders"], "third_party"]}
    tree = host(modules=modules)
    intent = {**driver(), "rails": []}
    held = from_dict(tree)
    (answer,) = [each for each in with_obstacles(check_modules("node1", intent, held), intent, held) if each.check == "driver.loaded"]
    assert answer.status == "error"
    assert "It cannot be reloaded on the running host: " in answer.remedy
    assert "third_party" in answer.remedy.partition("running host: ")[2]
    free = from_dict(host(modules=pending()))
    assert with_obstacles(check_modules("node1", intent, free), intent, free) == check_modules("node1", intent, free)


def others(**modules: dict[str, Any]) -> list[str]:
    return differing(stack_of({"modules": modules}).modules)


def test_the_base_of_a_stack_that_is_gone_goes_too() -> None:
    gone = {"version": "24.10", "srcversion": "AAAA", "file": None, "file_version": None, "file_srcversion": None, "holders": []}
    ib_core = {**gone, "file": "/lib/modules/x/ib_core.ko", "file_srcversion": "AAAA"}
    assert others(mlx_compat=gone, ib_core=ib_core) == ["mlx_compat", "ib_core"]
    assert others(other=gone) == []
    above = {**gone, "holders": ["mlx5_core"]}
    assert others(mlx_compat=above, mlx5_core=gone) == [], "the kernel's whole folder may be gone"
    replaced = {**gone, "file": "/lib/modules/x/mlx5_core.ko", "file_srcversion": "BBBB"}
    assert others(mlx_compat=above, mlx5_core=replaced) == ["mlx_compat", "mlx5_core"]
