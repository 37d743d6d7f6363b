# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plain form sets what the collection sets on a lab machine, and is frozen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN, PACKAGES
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import boot_files
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import UNITS
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import files as limit_files
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import FILE
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, Running
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import Difference
from ansible_collections.rdma.cluster.plugins.module_utils._qos.service import PROGRAM
from ansible_collections.rdma.cluster.plugins.module_utils._qos.service import service_files as qos_files
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, Places, traffic_class_file
from ansible_collections.rdma.cluster.plugins.module_utils._qos.writes import Command, FileText, Target, writes
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import rdma_cm_folder
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links import PROGRAM as SOFT_LINKS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links import service_files as soft_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import boot_modules, needed_modules, soft_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import nccl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.differences import network_rails
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import limits_request, sysctl_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.differs import qos_nics
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from tests.unit.builders import dcb_texts, mlnx_qos_texts
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.test_inventories import load

PLAIN = Path(__file__).parent / "plain"
VARIABLES: dict[str, Any] = yaml.safe_load((PLAIN / "variables.yml").read_text())
#: The lab's own, and what rerun_figures.MARKED gives it.
INTENT, FACTS = {**load("lab")["node1"], "roce": lab_intent(roce={})["roce"]}, lab_facts()
PROFILE = roce_profile(INTENT) or {}
NETDEV, DEVICE, PCI = "ens1", "rxe_rail0", "0000:21:00.0"
#: What no file of a task has: how a task is run, and not what.
WORDS = {"name", "loop", "loop_control", "register", "changed_when", "failed_when", "when", "notify"}


def tasks(file: str) -> list[dict[str, Any]]:
    """Of tasks/FILE.yml, or those of the play itself."""
    read = yaml.safe_load((PLAIN / (f"tasks/{file}.yml" if file != "site" else "site.yml")).read_text())
    return [*read[0]["tasks"], *read[0]["handlers"]] if file == "site" else list(read)


def module(task: Mapping[str, Any]) -> str:
    (name,) = task.keys() - WORDS
    return name


def every_task() -> Iterator[dict[str, Any]]:
    for file in ("site", *sorted(path.stem for path in (PLAIN / "tasks").glob("*.yml"))):
        yield from tasks(file)


def template(text: str, **variables: Any) -> Any:
    return Templar(loader=DataLoader(), variables={**VARIABLES, **variables}).template(trust_as_template(text))


def holds(condition: str, **variables: Any) -> bool:
    """What a `when` comes to."""
    return template("{{ " + condition + " }}", **variables) is True


def ours() -> dict[str, ManagedFile]:
    """Every file of the collection on a lab machine, by path."""
    rails = [NetworkRail(**rail) for rail in network_rails(INTENT, from_dict(FACTS))]
    found = [
        *boot_files(boot_modules(INTENT)),
        *soft_files(soft_links(INTENT)),
        *limit_files(limits_request(INTENT)),
        *choice.files("networkd", rails, [], [], Running(networkd=True, networkmanager=False)),
        *qos_files(PROFILE, qos_nics(INTENT)),
    ]
    return {file.path: file for file in found if file.content is not None}


def test_it_is_frozen() -> None:
    """One task for each thing: who takes one away, or has one ask for less, makes the comparison another one."""
    assert Counter(module(task).rpartition(".")[2] for task in every_task()) == {
        "apt": 1,
        "command": 38,
        "copy": 9,
        "file": 8,
        "find": 1,
        "import_tasks": 7,
        "include_tasks": 3,
        "lineinfile": 2,
        "meta": 1,
        "modprobe": 1,
        "stat": 1,
        "sysctl": 1,
        "systemd_service": 7,
        "template": 1,
    }


def test_it_asks_stock_modules_only() -> None:
    asked = {module(task).rpartition(".")[0] for task in every_task()}
    assert asked == {"ansible.builtin", "ansible.posix", "community.general"}


def test_what_it_reads_and_may_differ_is_written_by_a_later_task() -> None:
    """A read is never called unchanged only to look idempotent: what it finds is compared, there or by a task after it."""
    for file in sorted((PLAIN / "tasks").glob("*.yml")):
        listed = tasks(file.stem)
        for number, task in enumerate(listed):
            if task.get("changed_when") is False:
                later = [str(each.get("loop")) + str(each.get("when")) for each in listed[number + 1 :]]
                assert "failed_when" in task or any(task["register"] in words for words in later), task["name"]


def written() -> dict[str, tuple[bytes, str]]:
    """What its tasks copy and template: path → content and mode, for node1."""
    found = {}
    for task in every_task():
        kind = module(task)
        given = task[kind]
        if kind == "ansible.builtin.copy":
            path = Path(template(given["src"], playbook_dir=str(PLAIN)))
            found[given["dest"]] = ((path if path.is_absolute() else PLAIN / "files" / path).read_bytes(), given["mode"])
        if kind == "ansible.builtin.template":
            for rail in INTENT["rails"]:
                text = template((PLAIN / "templates" / given["src"]).read_text(), item=rail)
                found[template(given["dest"], item=rail)] = (text.rstrip("\n").encode() + b"\n", given["mode"])
    return found


def test_its_files_are_ours() -> None:
    wanted = {
        path: (file.content if isinstance(file.content, bytes) else file.text.encode(), f"{file.mode:04o}") for path, file in ours().items()
    }
    looked_at = {
        task["ansible.builtin.file"]["path"]
        for each in ("driver", "qos")
        for task in tasks(each)
        if task.get("ansible.builtin.file", {}).get("state") == "file"
    }
    # Archives: their content is not looked at.
    assert looked_at == {PROGRAM, SOFT_LINKS}
    for path in looked_at:
        del wanted[path]
    assert written() == wanted


def test_its_values_are_ours() -> None:
    assert sorted(VARIABLES["plain_packages"]) == sorted(PACKAGES[DEBIAN])
    assert VARIABLES["plain_modules"] == needed_modules(INTENT, from_dict(FACTS))
    assert VARIABLES["plain_sysctl"] == sysctl_settings(INTENT)
    assert tasks("sysctl")[0]["ansible.posix.sysctl"]["sysctl_file"] == FILE
    assert VARIABLES["plain_netdevs"] == {rail["name"]: rail["netdev"] for rail in network_rails(INTENT, from_dict(FACTS))}
    names = [link["name"] for link in soft_links(INTENT)]
    assert VARIABLES["plain_devices"] == dict(zip([rail["name"] for rail in INTENT["rails"]], names, strict=True))
    assert set(VARIABLES["plain_firewalls"]) < set(UNITS)
    assert (VARIABLES["plain_rdma_cm_mode"], VARIABLES["plain_rdma_cm_tos"]) == (
        PROFILE["rdma_cm"]["mode"],
        str(PROFILE["rdma_cm"]["tos"]),
    )
    folders = {task["ansible.builtin.command"]["argv"][1].rpartition("/")[0] for task in tasks("qos") if "ansible.builtin.command" in task}
    assert {template(folder, item={"name": "rail0", "item": {"name": "rail0"}}) for folder in folders} == {rdma_cm_folder(DEVICE, 1)}


def test_ours_of_nccl_has_its_lines() -> None:
    files = {file.path: file.text for file in nccl_files(INTENT, from_dict(FACTS))}
    assert {task["ansible.builtin.lineinfile"]["path"] for task in tasks("nccl")} == set(files)
    for text in files.values():
        assert parse_nccl_conf(text).variables == VARIABLES["plain_nccl"]
        for name, value in VARIABLES["plain_nccl"].items():
            assert f"{name}={value}\n" in text


TARGET = Target(
    NETDEV,
    DEVICE,
    "1",
    None,
    Places(
        "sysfs",
        {name: f"/sys/class/net/{NETDEV}/ecn/roce_np/{name}" for name in NP_PARAMETERS},
        {},
        [f"/sys/class/net/{NETDEV}/ecn/roce_np/enable/{priority}" for priority in range(8)],
        [f"/sys/class/net/{NETDEV}/ecn/roce_rp/enable/{priority}" for priority in range(8)],
    ),
)


def our_writes(backend: str) -> set[tuple[str, ...]]:
    """Each command by which ours would set the profile through a backend, in single words."""
    ets = {key: PROFILE[key] for key in ("priority_to_tc", "tsa", "bandwidth_percent")}
    requested = [
        ("dcbx", "", "os"),
        ("trust", "", "dscp"),
        ("pfc", "", PROFILE["pfc"]),
        ("ets", "", ets),
        *(("dscp", code, priority) for code, priority in PROFILE["dscp_to_priority"].items()),
    ]
    target = Target(NETDEV, DEVICE, "1", backend, TARGET.places)
    found = [write for setting, subject, value in requested for write in writes(Difference(setting, subject, None, value), target)]
    return {write.argv for write in found if isinstance(write, Command)}


def plain_writes(file: str) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each command of a file that writes, for rail0, with its task."""
    found = []
    item = {"item": {"name": "rail0"}}
    for task in tasks(file):
        if task["changed_when"] is True:
            given = task["ansible.builtin.command"]
            words = [template(word, item=item) for word in given["argv"]] if "argv" in given else template(given["cmd"], item=item).split()
            found.append((tuple(words), task))
    return found


def test_mlnx_qos_gets_the_same_commands_as_from_ours() -> None:
    assert {argv for argv, _task in plain_writes("mlnx_qos")} == our_writes("mlnx_qos")


def test_dcb_gets_the_same_commands_as_from_ours() -> None:
    def answer(argv: tuple[str, ...]) -> tuple[str, ...]:
        full = "0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off"
        return tuple(" ".join(argv).replace("all:off 3:on", full).split())

    assert {answer(argv) for argv, _task in plain_writes("dcb")} == our_writes("dcb")


CONVERGED = mlnx_qos_texts.DSCP.replace("30,29,28,27,25", "30,29,28,27,26,25").replace("prio:5 dscp:26,47", "prio:5 dscp:47")
NO_HOST = dcb_texts.FIRMWARE_DCBX
STATES = {
    "mlnx_qos": {"plain_told": (CONVERGED, mlnx_qos_texts.PCP)},
    "dcb": {
        "plain_dcbx": (dcb_texts.DCBX, NO_HOST),
        "plain_codes": (dcb_texts.APP, dcb_texts.NO_APP),
        "plain_pfc": (dcb_texts.PFC, dcb_texts.PFC.replace("true", "false")),
        "plain_ets": (dcb_texts.ETS, dcb_texts.ETS.replace("[50,0,0,50,", "[50,0,0,40,")),
    },
}


@pytest.mark.parametrize("backend", ["mlnx_qos", "dcb"])
def test_a_backend_is_written_only_where_it_reports_something_else(backend: str) -> None:
    assert plain_writes(backend)
    for _argv, task in plain_writes(backend):
        register = task["loop"].removeprefix("{{ ").partition(".")[0]
        right, wrong = STATES[backend][register]
        assert not holds(task["when"], item={"stdout": right}), task["name"]
        assert holds(task["when"], item={"stdout": wrong}), task["name"]


def test_a_newer_dcb_with_its_own_form_of_codes_is_understood() -> None:
    for _argv, task in plain_writes("dcb"):
        if "plain_codes" in task["loop"]:
            assert not holds(task["when"], item={"stdout": dcb_texts.APP_6_5})


def files_of(backend: str) -> dict[str, tuple[str, str]]:
    read = tasks("congestion")[2]["ansible.builtin.command"]["argv"][1]
    rail = {"name": "rail0", "nic": {"pci": PCI}}
    return {template(read, item=[rail, file]): (file["reads"], file["writes"]) for file in VARIABLES["plain_congestion"][backend]}


def test_congestion_control_by_files_of_ofed() -> None:
    requested: list[tuple[str, str, Any]] = [("ecn_np", "3", True), ("ecn_rp", "3", True), ("traffic_class", "", PROFILE["traffic_class"])]
    requested += [("np", name, value) for name, value in PROFILE["np"].items()]
    found = [write for setting, subject, value in requested for write in writes(Difference(setting, subject, None, value), TARGET)]
    texts = {write.path: write.text for write in found if isinstance(write, FileText)}
    assert {path: write for path, (_read, write) in files_of("mlnx_qos").items()} == texts
    assert PROFILE["rp"] == {}
    assert files_of("mlnx_qos")[traffic_class_file(DEVICE, "1")][0] == "Global tclass=106"


def test_congestion_control_by_files_of_the_kernel() -> None:
    folder = f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
    wanted = {f"{folder}/{NP_PARAMETERS[name]}": (str(value), str(value)) for name, value in PROFILE["np"].items()}
    assert files_of("dcb") == wanted


@pytest.mark.parametrize(
    ("mtu", "addresses", "differs"),
    [
        ("9000", "ens1 UP 192.168.100.1/24", False),
        ("1500", "ens1 UP 192.168.100.1/24", True),
        ("9000", "ens1 UP 192.168.100.1/16", True),
        ("9000", "", True),
    ],
    ids=["right", "mtu", "prefix", "no address"],
)
def test_a_rail_is_configured_again_where_it_differs(mtu: str, addresses: str, differs: bool) -> None:
    (task,) = (task for task in tasks("network") if task.get("changed_when") is True)
    rail = {"name": "rail0", "mtu_bytes": 9000, "address": "192.168.100.1/24"}
    assert holds(task["when"], item=[{"item": rail, "stdout": mtu}, {"stdout": addresses}]) is differs


PORT = "\tstate:\t\t\tPORT_{state} (4)\n\tactive_mtu:\t\t4096 (5)\n\t\tGID[  1]:\t\t::ffff:192.168.100.1, RoCE v2\n"
LIMITS = (
    "Max locked memory         {lock}            unlimited            bytes\n"
    "Max open files            131072               1048576              files\n"
)
COUNTERS = json.dumps([{"ifname": "rxe_rail0", "port": 1, "sent_pkts": 1}, {"ifname": "rxe_rail1", "port": 1, "sent_pkts": 1}])
LINK = "link rxe_rail0/1 state ACTIVE physical_state LINK_UP netdev ens1\n"
MODINFO = "/lib/modules/6.1.0-56-amd64/{folder}/infiniband/sw/rxe/rdma_rxe.ko"


@pytest.mark.parametrize(
    ("register", "right", "wrong"),
    [
        ("plain_modinfo", {"stdout": MODINFO.format(folder="kernel/drivers")}, {"stdout": MODINFO.format(folder="updates/dkms")}),
        ("plain_ports", {"stdout": 2 * PORT.format(state="ACTIVE")}, {"stdout": PORT.format(state="ACTIVE") + PORT.format(state="DOWN")}),
        ("plain_links", {"stdout": 2 * LINK}, {"stdout": LINK}),
        ("plain_counters", {"stdout": COUNTERS}, {"stdout": "[]"}),
        ("plain_ethtool", {"stdout": "\tLink detected: yes"}, {"stdout": "\tLink detected: no"}),
        ("plain_pci", {"stdout": f"{PCI} Ethernet controller: Red Hat"}, {"stdout": ""}),
        ("plain_node", {"stat": {"exists": True, "mode": "0666"}}, {"stat": {"exists": False}}),
        ("plain_nodes", {"files": [{"mode": "0666"}, {"mode": "0666"}]}, {"files": [{"mode": "0666"}, {"mode": "0600"}]}),
        ("plain_firewall", {"status": {}}, {"status": {"ActiveState": "active"}}),
        ("plain_limits", {"stdout": LIMITS.format(lock="unlimited")}, {"stdout": LIMITS.format(lock="8388608  ")}),
        ("plain_remove_ipc", {"stdout": "b false"}, {"stdout": "b true"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_looked_at_is_compared(register: str, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    (task,) = (task for task in tasks("look") if task.get("register") == register)
    given = {"item": INTENT["rails"][0], "rdma_rails": INTENT["rails"]}
    assert not holds(task["failed_when"], **given, **{register: right})
    assert holds(task["failed_when"], **given, **{register: wrong})


def test_everything_that_is_looked_at_is_tested() -> None:
    assert len(tasks("look")) == 11
    assert all("failed_when" in task for task in tasks("look"))
