# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import SUBSETS, Asked, families_of, gather, parse_subset, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import SeenBond, SeenMember
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import IpAddresses
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import SeenVlan
from tests.unit.builders.fakes import Call, FakeRunner, SilentPort
from tests.unit.builders.hosts import FIXTURES
from tests.unit.builders.trees import mlx5_machine, soft_roce_machine, write_tree


def read(root: Path) -> dict[str, Any]:
    return to_dict(gather(SysRoot(str(root))))


NO_LOGINS = {"*": None, "root": None}
NO_LIMITS = {
    **dict.fromkeys(("service_memlock", "service_open_files", "remove_ipc", "logind")),
    **dict.fromkeys(("login_memlock", "login_open_files"), NO_LOGINS),
    "running": {},
    "service_sources": {"memlock": None, "nofile": None},
}
NO_TIME = {
    "synchronized": None,
    "chrony": None,
    "hardware_clocks": {},
    "chrony_unread": None,
    "clock_seconds": None,
    "clocksource": None,
    "programs": [],
    "ptp": None,
    "ptp_unread": None,
}
IP = ["ip", "-json", "-details", "address", "show"]
SERVICE_LIMITS = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits"]
UNITS = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", "rdma-soft-links.service", "rdma-pcie.service"]
UNITS += ["rdma-recorder.timer"]
UNITS += ["systemd-networkd.service", "NetworkManager.service", "firewalld.service", "ufw.service", "nftables.service"]
UNITS += ["nvidia-fabricmanager.service"]
UNITS += ["rdma-cpu.service", "irqbalance.service", "chrony.service", "chronyd.service"]
UNITS += ["rdma-qos@eth1.service", "rdma-qos@eth2.service"]
DEVINFO = ["ibv_devinfo"]
QPS = ["rdma", "-j", "resource", "show", "qp"]
RULES = ["ip", "-json", "-4", "rule", "show"]
NO_DCB: list[Call] = [
    (["dcb", "-N", "-j", "pfc", "show", "dev", name], 1, "\n", "Attribute read: Operation not supported\n") for name in ("eth1", "eth2")
]
MODINFO = ["modinfo", "ib_core", "ib_uverbs", "rdma_rxe"]
ARP_IGNORE, RMEM, ABSENT = "net.ipv4.conf.all.arp_ignore", "net/ipv4/tcp_rmem", "net.ipv4.conf.eth9.rp_filter"


def test_an_empty_tree_has_nothing(tmp_path: Path) -> None:
    facts = read(tmp_path)

    parts = {"schema", "subset", "boot", "stack", "nccl", "limits", "sysctl", "iommu", "load", "time", "cpu", "session"}
    assert {name for name, part in facts.items() if part} == parts
    assert (facts["devices"], facts["netdevs"], facts["gpus"], facts["files"], facts["nccl_files"]) == ({}, {}, None, {}, {})
    assert facts["interfaces"] is None
    assert (facts["stack"]["kind"], facts["stack"]["kernel"], facts["stack"]["modules"]) == (None, None, {})
    assert facts["nics"] == {}
    assert facts["boot"] == {"boot_id": None, "machine_id": None, "hostname": None, "uptime_seconds": None}
    assert facts["limits"] == NO_LIMITS
    assert facts["load"] == {"gpu_processes": None, "jobs": [], "qps": None, "qps_error": "a captured tree has no queue pairs"}
    assert (facts["time"], facts["session"], facts["units"]) == (NO_TIME, {"address": None, "netdev": None}, None)


def test_the_stack_and_the_boot(tmp_path: Path) -> None:
    facts = read(soft_roce_machine(tmp_path))

    assert (facts["stack"]["kernel"], list(facts["stack"]["modules"])) == ("6.1.0-28-amd64", ["ib_core", "ib_uverbs", "rdma_rxe"])
    assert facts["boot"] == {
        "boot_id": "6f2f6d0e-4d6f-4d2a-9a43-0d2c3e3f5a11",
        "machine_id": "0123456789abcdef0123456789abcdef",
        "hostname": None,
        "uptime_seconds": None,
    }


def test_a_holder_of_ib_core_counts_as_a_module_for_rdma(tmp_path: Path) -> None:
    write_tree(tmp_path, "/sys/module/ib_core/holders/qedr -> ../../qedr\n/sys/module/qedr/version: 8.37.0.20")

    assert list(read(tmp_path)["stack"]["modules"]) == ["ib_core", "qedr"]


def running(root: Path) -> Path:
    """A machine that is up: a name, a first process, kernel settings, and a file of ours."""
    return write_tree(
        soft_roce_machine(root),
        """
        /proc/sys/kernel/hostname: node1
        /proc/uptime: 4711.08 1234.50
        /proc/1/comm: systemd
        /proc/sys/net/ipv4/conf/all/arp_ignore: 1
        /proc/sys/net/ipv4/tcp_rmem: 4096\t131072\t6291456
        /etc/sysctl.d/99-zz-rdma-cluster.conf: net.ipv4.conf.all.arp_ignore = 1
        /etc/nccl.conf: NCCL_DEBUG=WARN
        """,
    )


def script(*changes: Call, first: int | None = None, then: Sequence[Call] = ()) -> FakeRunner:
    """What a machine answers, in the order in which it is asked; of changes, each replaces the answer to its command.

    first: how many of the commands are asked; then: what is asked after them.
    """
    shown = (FIXTURES / "ip/details-address-6.1.json").read_text(encoding="utf-8")
    limits = (FIXTURES / "proc/limits-6.18.txt").read_text(encoding="utf-8")
    states = "Id=rdma-soft-links.service\nActiveState=inactive\nUnitFileState=\n\n"
    states += "Id=systemd-networkd.service\nActiveState=active\nUnitFileState=enabled\n"
    modules = "".join(f"filename:       /lib/modules/6.1.0-28-amd64/kernel/{name}.ko\nname:           {name}\n" for name in MODINFO[1:])
    calls: list[Call] = [(IP, 0, shown, ""), (DEVINFO, 255, "", "No IB devices found"), *NO_DCB]
    calls += [(MODINFO, 0, modules, ""), (SERVICE_LIMITS, 0, limits, ""), (UNITS, 0, states, ""), (QPS, 0, "[]", ""), (RULES, 0, "[]", "")]
    changed = {tuple(call[0]): call for call in changes}
    return FakeRunner([*(changed.get(tuple(call[0]), call) for call in calls[:first]), *then])


def ask(root: Path, runner: FakeRunner, *sysctl_keys: str) -> dict[str, Any]:
    return to_dict(gather(SysRoot(str(root)), runner, Asked(sysctl=sysctl_keys), SilentPort()))


def test_a_running_system_is_asked_for_what_files_do_not_report(tmp_path: Path) -> None:
    facts = ask(running(tmp_path), script())

    assert [facts["netdevs"]["eth0"][key] for key in ("max_mtu_bytes", "ipv4", "mtu_bytes")] == [65535, ["192.0.2.2/24"], 1500]
    # ip has not named this one: not known, which is not the same as no address.
    assert [facts["netdevs"]["eth1"][key] for key in ("max_mtu_bytes", "ipv4")] == [None, None]
    assert facts["interfaces"]["eth0"] == {"admin_up": True, "ipv4": ["192.0.2.2/24"], "ipv6": ["fd00::2/64"]}
    assert facts["limits"] == {**NO_LIMITS, "service_memlock": {"unlimited": False, "bytes": 8388608}, "service_open_files": 20000}
    assert facts["units"] == {
        "rdma-soft-links.service": {"active": False, "enabled": False},
        "systemd-networkd.service": {"active": True, "enabled": True},
    }
    assert (facts["boot"]["hostname"], facts["boot"]["uptime_seconds"]) == ("node1", 4711.08)
    assert facts["stack"]["modules"]["rdma_rxe"]["provenance"] == "kernel"
    assert facts["nccl_files"] == {"/etc/nccl.conf": {"NCCL_DEBUG": "WARN"}}
    assert facts["load"] == {"gpu_processes": [], "jobs": [], "qps": [], "qps_error": None}


@pytest.mark.parametrize(("subset", "asked", "addresses"), [({"netdevs"}, 2, ["127.0.0.1/8"]), (set(), 0, None)])
def test_all_interfaces_are_reported_by_what_is_asked_anyway(
    tmp_path: Path, subset: set[str], asked: int, addresses: list[str] | None
) -> None:
    sys = SysRoot(str(write_tree(running(tmp_path), "/sys/class/net/lo/flags: 0x9\n/sys/class/net/bond0/flags: 0x1402")))
    facts = to_dict(gather(sys, script(first=asked), Asked(subset=frozenset(subset)), SilentPort()))
    assert sorted(facts["interfaces"]) == ["bond0", "eth0", "eth1", "eth2", "lo"]
    assert (facts["interfaces"]["lo"], facts["interfaces"]["bond0"]) == (
        {"admin_up": True, "ipv4": addresses, "ipv6": None if addresses is None else []},
        {"admin_up": False, "ipv4": None, "ipv6": None},
    )
    assert "lo" not in facts["netdevs"]


@pytest.mark.parametrize(
    ("ipv6", "dad_failed", "netdev", "families"),
    [
        ([], [], "eth1", (4,)),
        (["fd00::2/64"], [], "eth0", (4,)),
        (["fd00::2/64"], [], "eth1", (4, 6)),
        ([], ["fd00::2/64"], "eth1", (4, 6)),
    ],
)
def test_routes_of_ipv6_are_read_where_an_rdma_port_has_an_address(
    tmp_path: Path, ipv6: list[str], dad_failed: list[str], netdev: str, families: tuple[int, ...]
) -> None:
    devices = gather(SysRoot(str(soft_roce_machine(tmp_path)))).devices
    assert families_of(devices, {netdev: IpAddresses(None, ["10.0.0.1/8"], ipv6, dad_failed)}) == families


def test_routes_of_ipv6_are_read_for_the_vlan_of_a_bond(tmp_path: Path) -> None:
    devices = gather(SysRoot(str(soft_roce_machine(tmp_path)))).devices
    addresses = {"storage": IpAddresses(None, [], ["fd00::2/64"], [])}
    bonds = {"bond0": SeenBond("802.3ad", members={"eth1": SeenMember(up=True)})}
    assert families_of(devices, addresses, {"storage": SeenVlan("bond0", 7)}, bonds) == (4, 6)
    assert families_of(devices, addresses, {"storage": SeenVlan("bond1", 7)}, bonds) == (4,)


def test_units_that_are_enabled_for_an_interface_are_asked_about_also_without_it(tmp_path: Path) -> None:
    """By this a host of which rdma_roce has gone is known to have units of ours."""
    unit = "rdma-qos@ens9.service"
    link = f"/etc/systemd/system/sys-subsystem-net-devices-ens9.device.wants/{unit} -> ../rdma-qos@.service"
    answer = f"Id={unit}\nActiveState=inactive\nUnitFileState=enabled\n"
    answers = [([*UNITS[:-2], unit], 0, answer, ""), (QPS, 0, "[]", ""), (RULES, 1, "", "")]
    runner = FakeRunner([(IP, 255, "", ""), (SERVICE_LIMITS, 1, "", ""), *answers])
    sys = SysRoot(str(write_tree(running(tmp_path), link)))
    facts = to_dict(gather(sys, runner, Asked(subset=frozenset({"host"})), SilentPort()))
    assert facts["units"] == {unit: {"active": False, "enabled": True}}


def test_of_a_captured_tree_nobody_is_asked(tmp_path: Path) -> None:
    facts = read(running(tmp_path))

    assert (facts["limits"], facts["units"]) == (NO_LIMITS, None)
    assert {(netdev["max_mtu_bytes"], netdev["ipv4"]) for netdev in facts["netdevs"].values()} == {(None, None)}
    assert (facts["boot"]["hostname"], sorted(facts["files"])) == ("node1", ["/etc/nccl.conf", "/etc/sysctl.d/99-zz-rdma-cluster.conf"])


def test_a_system_that_answers_nothing_is_still_read(tmp_path: Path) -> None:
    runner = script((IP, 255, "", "unknown"), (SERVICE_LIMITS, 1, "", "Host is down"), (UNITS, 1, "", "Host is down"), (MODINFO, 1, "", ""))

    facts = ask(running(tmp_path), runner)

    assert (facts["limits"], facts["units"]) == (NO_LIMITS, None)
    assert facts["netdevs"]["eth0"]["ipv4"] is None
    assert list(facts["devices"]) == ["rxe0", "rxe1"]


def test_kernel_settings_are_those_that_are_asked_for(tmp_path: Path) -> None:
    facts = ask(running(tmp_path), script(), ARP_IGNORE, RMEM, ABSENT)

    assert facts["sysctl"] == {
        "live": {ARP_IGNORE: "1", RMEM: "4096 131072 6291456", ABSENT: None},
        "boot": {ARP_IGNORE: {"value": "1", "file": "/etc/sysctl.d/99-zz-rdma-cluster.conf", "line": 1}, RMEM: None, ABSENT: None},
    }


def test_a_file_of_ours_has_a_hash_and_a_mode(tmp_path: Path) -> None:
    (running(tmp_path) / "etc/nccl.conf").chmod(0o600)

    assert read(tmp_path)["files"]["/etc/nccl.conf"] == {
        "sha256": hashlib.sha256(b"NCCL_DEBUG=WARN\n").hexdigest(),
        "mode": 0o600,
        "owner": "0:0",
        "block": None,
        "others": {"NCCL_DEBUG": "WARN"},
    }


def test_files_in_other_places_are_those_that_are_asked_for(tmp_path: Path) -> None:
    write_tree(tmp_path, "/opt/site/nccl.conf: NCCL_DEBUG=WARN\n/opt/site/other: x")

    facts = to_dict(gather(SysRoot(str(tmp_path)), asked=Asked(files=["/opt/site/nccl.conf", "/opt/site/absent"])))

    assert list(facts["files"]) == ["/opt/site/nccl.conf"]


@pytest.mark.parametrize(
    ("words", "subset"),
    [
        (["all"], set(SUBSETS)),
        (["min"], set()),
        (["stack", "gpus"], {"stack", "gpus"}),
        (["!optics"], set(SUBSETS) - {"optics"}),
        (["all", "!optics", "!stack"], set(SUBSETS) - {"optics", "stack"}),
        (["!all"], set()),
        ([], set(SUBSETS)),
    ],
)
def test_a_subset(words: list[str], subset: set[str]) -> None:
    assert parse_subset(words) == subset


@pytest.mark.parametrize("word", ["everything", "!everything", ""])
def test_a_subset_that_is_none_names_those_that_are(word: str) -> None:
    with pytest.raises(ParseError, match=f"{word!r} is none of all, min, counters, gpus"):
        parse_subset([word])


@pytest.mark.parametrize("subset", sorted(SUBSETS))
def test_what_is_not_asked_for_is_none(tmp_path: Path, subset: str) -> None:
    everything = read(running(tmp_path))
    facts = to_dict(gather(SysRoot(str(tmp_path)), asked=Asked(frozenset({subset}))))
    parts = {"stack": ["stack"], "gpus": ["gpus", "gpudirect", "distances", "iommu"]}
    parts["host"] = ["limits", "sysctl", "files", "nccl_files", "load", "time", "cpu", "filesystems", "session"]

    for name, keys in parts.items():
        for key in keys:
            assert facts[key] == (everything[key] if name == subset else None), key
    assert facts["boot"] == everything["boot"]


@pytest.mark.parametrize(("conf", "active"), [("ENABLED=yes", True), ("ENABLED=no", False), ("# ENABLED=yes", False), ("", False)])
def test_ufw_is_active_where_it_filters(tmp_path: Path, conf: str, active: bool) -> None:
    write_tree(running(tmp_path), f"/etc/ufw/ufw.conf: {conf}")
    states = "Id=ufw.service\nActiveState=active\nUnitFileState=enabled\n"

    added = [(["ufw", "show", "added"], 0, "Added user rules (see 'ufw status' for running firewall):\n(None)\n", "")]
    facts = ask(tmp_path, script((UNITS, 0, states, ""), then=added if active else ()))

    assert facts["units"] == {"ufw.service": {"active": active, "enabled": True}}
    assert facts["firewall"]["backend"] == ("ufw" if active else None)


def test_a_file_of_root_s_own_is_left_out_where_it_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_tree(running(tmp_path), "/root/.nccl.conf: NCCL_DEBUG=INFO")
    assert read(root)["nccl_files"]["/root/.nccl.conf"] == {"NCCL_DEBUG": "INFO"}
    read_bytes = SysRoot.read_bytes

    def refuse(sys: SysRoot, path: str) -> bytes | None:
        if path.startswith("/root/"):
            raise PermissionError(13, "Permission denied", path)
        return read_bytes(sys, path)

    monkeypatch.setattr(SysRoot, "read_bytes", refuse)
    assert list(read(root)["nccl_files"]) == ["/etc/nccl.conf"]


def test_parameters_of_modules_and_the_modes_of_nodes(tmp_path: Path) -> None:
    write_tree(running(tmp_path), "/sys/module/ib_core/parameters/netns_mode: Y\\n\n/dev/infiniband/rdma_cm: x")
    (tmp_path / "dev/infiniband/rdma_cm").chmod(0o600)

    facts = ask(tmp_path, script())

    assert facts["module_parameters"] == {"ib_core": {"netns_mode": "Y"}, "ib_uverbs": {}, "rdma_rxe": {}}
    assert facts["nodes"] == {"/dev/infiniband/rdma_cm": 0o600}
    assert read(tmp_path)["nodes"] is None
    assert facts["gpu_support"] is None


def test_a_gpu_brings_what_belongs_to_its_driver(tmp_path: Path) -> None:
    gpu = "pci:v000010DEd00002335sv000010DEsd000018BEbc03sc02i00"
    write_tree(running(tmp_path), f"/sys/bus/pci/devices/0000:1b:00.0/modalias: {gpu}\n/usr/lib64/libcuda.so.1 -> libcuda.so.580.159.04")

    assert ask(tmp_path, script())["gpu_support"] == {
        "cuda": "580.159.04",
        "nvswitches": 0,
        "fabric_manager": None,
        "nvswitch_bridges": 0,
    }


def test_qos_is_asked_of_interfaces_with_roce_and_of_the_running_system_alone(tmp_path: Path) -> None:
    everything = ask(running(tmp_path), script())["qos"]

    assert {name: (state["backend"], state["device"]) for name, state in everything.items()} == {
        "eth1": (None, "rxe0"),
        "eth2": (None, "rxe1"),
    }
    runner = FakeRunner(NO_DCB)
    facts = gather(SysRoot(str(tmp_path)), runner, Asked(frozenset({"qos"})), SilentPort())
    assert (facts.qos, facts.subset) == (everything, ["qos"])
    captured = gather(SysRoot(str(tmp_path)), None, Asked(frozenset({"qos"})))
    assert (captured.qos, captured.subset) == (None, [])


def test_a_host_without_roce_starts_no_process_for_qos(tmp_path: Path) -> None:
    tree = write_tree(mlx5_machine(tmp_path), "/sys/class/infiniband/mlx5_0/ports/1/link_layer: InfiniBand")
    write_tree(tree, "/sys/class/infiniband/mlx5_1/ports/1/link_layer: InfiniBand")

    assert gather(SysRoot(str(tree)), FakeRunner([]), Asked(frozenset({"qos"})), SilentPort()).qos == {}
