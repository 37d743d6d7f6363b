# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a role has something to do: nothing on a converged host, and the role that fixes it for each single drift."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, Running, make_rail
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.openings import openings
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan.plan import PERMITS, host_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.differences import network_differs, network_rails
from tests.unit.builders.cards import card_facts, first_port
from tests.unit.builders.hosts import lab_facts, lab_intent, lab_rails, on_host

Facts = dict[str, Any]
MODULES, LINKS, NETWORK = "modules", "soft_links", "network"
MEMLOCK, SYSCTL, NCCL = "limits", "sysctl", "nccl"
RINGS, CPU, PCIE, GPUDIRECT = "rings", "cpu", "pcie", "gpudirect"
#: The concerns that look at files of ours.
WITH_FILES = {MODULES, LINKS, NETWORK, MEMLOCK, SYSCTL, NCCL, RINGS, CPU, PCIE, GPUDIRECT}
CONCERNS = {*WITH_FILES, "firmware", "links", "recorder", "subnet_manager", "irqbalance", "time", "ptp", "qos", "nccl_install", "firewall"}
COLLECTION = Path(__file__).parents[5]
ASKING = [*COLLECTION.glob("roles/*/*/*.yml"), *COLLECTION.glob("playbooks/**/*.yml")]
BOOT_FILE = "/etc/modules-load.d/rdma-cluster.conf"
SCRIPT = "/usr/local/lib/rdma-cluster/soft_links.pyz"
RAIL0 = "/etc/systemd/network/60-rdma-rail0.network"
SOFT_UNIT, NETWORKD = "rdma-soft-links.service", "systemd-networkd.service"
ARP_IGNORE = "net.ipv4.conf.all.arp_ignore"


def rdma_host_plan(intent: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """As observe makes it."""
    return host_plan("node1", intent, from_dict(facts), dict.fromkeys(PERMITS, False))


def roles_with_work(intent: dict[str, Any], facts: Facts) -> set[str]:
    return {name for name, work in rdma_host_plan(intent, facts).items() if work is True}


def test_a_converged_host_has_no_work_for_any_role() -> None:
    plan = rdma_host_plan(lab_intent(), lab_facts())
    assert {name: work for name, work in plan.items() if name != "settings"} == dict.fromkeys(CONCERNS, False)


def test_each_concern_that_a_role_or_playbook_asks_for_is_in_the_plan() -> None:
    plan = rdma_host_plan(lab_intent(), lab_facts())
    asked = {word for file in ASKING for word in re.findall(r"\brdma_host_plan((?:\.\w+)+)", file.read_text())}
    assert {path.split(".")[1] for path in asked} == {*CONCERNS, "settings"}
    for path in asked:
        value: Any = plan
        for word in path.split(".")[1:]:
            assert word in value or word == "kept", path
            value = value.get(word, ())


def changed(path: str, **to: Any) -> Callable[[Facts], None]:
    return lambda facts: facts["files"][path].update(to)


def without(*keys: str) -> Callable[[Facts], None]:
    def take_out(facts: Facts) -> None:
        for key in keys[:-1]:
            facts = facts[key]
        del facts[keys[-1]]

    return take_out


def with_file(path: str) -> Callable[[Facts], None]:
    return lambda facts: facts["files"].update({path: {"sha256": "0" * 64, "mode": 0o644, "owner": None}})


def unit(name: str, **to: bool) -> Callable[[Facts], None]:
    return lambda facts: facts["units"][name].update(to)


def on_another_netdev(facts: Facts) -> None:
    facts["devices"]["rxe_rail0"]["ports"]["1"]["netdev"] = "ens2"


def of_another_name(facts: Facts) -> None:
    facts["devices"]["rxe0"] = facts["devices"].pop("rxe_rail0")


def boot_value(value: Any) -> Callable[[Facts], None]:
    return lambda facts: facts["sysctl"]["boot"].update({ARP_IGNORE: value})


DRIFTS = [
    ("a module is not loaded", without("stack", "modules", "rdma_ucm"), {MODULES}),
    ("the soft module is not loaded", without("stack", "modules", "rdma_rxe"), {MODULES}),
    ("the boot file is another", changed(BOOT_FILE, sha256="00"), {MODULES}),
    ("the boot file's mode is another", changed(BOOT_FILE, mode=0o600), {MODULES}),
    ("the boot file is missing", without("files", BOOT_FILE), {MODULES}),
    ("the soft links' service is disabled", unit(SOFT_UNIT, enabled=False), {LINKS}),
    ("the soft links' service is not active", unit(SOFT_UNIT, active=False), {LINKS}),
    ("the soft links' service is not there", without("units", SOFT_UNIT), {LINKS}),
    ("a soft device is missing", without("devices", "rxe_rail1"), {LINKS}),
    ("a soft device is on another interface", on_another_netdev, {LINKS}),
    ("a soft device has another name", of_another_name, {LINKS, NCCL}),
    ("the soft links' program is another", changed(SCRIPT, sha256="00"), {LINKS}),
    ("the soft links' program cannot be executed", changed(SCRIPT, mode=0o644), {LINKS}),
    ("the soft links' list is missing", without("files", "/etc/rdma-cluster/soft-links.json"), {LINKS}),
    ("the soft links' unit is another", changed(f"/etc/systemd/system/{SOFT_UNIT}", sha256="00"), {LINKS}),
    ("a rail's network file is missing", without("files", RAIL0), {NETWORK}),
    ("a rail's network file is another", changed(RAIL0, sha256="00"), {NETWORK}),
    ("a network file of no rail is left", with_file("/etc/systemd/network/60-rdma-old.network"), {NETWORK}),
    ("the MTU is another", lambda facts: facts["netdevs"]["ens2"].update(mtu_bytes=1500), {NETWORK}),
    ("the MTU is not known", lambda facts: facts["netdevs"]["ens2"].update(mtu_bytes=None), {NETWORK}),
    ("the address is missing", lambda facts: facts["netdevs"]["ens2"].update(ipv4=[]), {NETWORK}),
    ("the address has another prefix length", lambda facts: facts["netdevs"]["ens2"].update(ipv4=["192.168.101.1/16"]), {NETWORK}),
    ("the addresses are not known", lambda facts: facts["netdevs"]["ens2"].update(ipv4=None), {NETWORK}),
    ("the network manager is disabled", unit(NETWORKD, enabled=False), {NETWORK}),
    ("the network manager is not active", unit(NETWORKD, active=False), {NETWORK}),
    ("no files are known", lambda facts: facts.update(files=None), WITH_FILES),
    ("no units are known", lambda facts: facts.update(units=None), {LINKS, NETWORK}),
    ("services are limited", lambda facts: facts["limits"]["service_memlock"].update(unlimited=False, bytes=8388608), {MEMLOCK}),
    ("the limit of services is not known", lambda facts: facts["limits"].update(service_memlock=None), {MEMLOCK}),
    ("a file of limits is missing", without("files", "/etc/systemd/system.conf.d/90-rdma-cluster.conf"), {MEMLOCK}),
    ("services may open few files", lambda facts: facts["limits"].update(service_open_files=1024), {MEMLOCK}),
    ("logind removes shared memory", lambda facts: facts["limits"].update(remove_ipc=True), {MEMLOCK}),
    ("a file of rings that nobody wants is left", with_file("/etc/udev/rules.d/90-rdma-cluster-rings.rules"), {RINGS}),
    ("a file of CPUs that nobody wants is left", with_file("/etc/rdma-cluster/cpu.json"), {CPU}),
    ("a kernel setting is another", lambda facts: facts["sysctl"]["live"].update({ARP_IGNORE: "0"}), {SYSCTL}),
    ("a kernel setting was not read", without("sysctl", "live", ARP_IGNORE), {SYSCTL}),
    ("a kernel setting is overridden at boot", boot_value({"value": "0", "file": "/usr/lib/sysctl.d/zz.conf"}), {SYSCTL}),
    ("a kernel setting is not set at boot", boot_value(None), {SYSCTL}),
    ("no kernel setting is known", lambda facts: facts.update(sysctl=None), {SYSCTL}),
    ("nccl.conf is another", changed("/etc/nccl.conf", block="00"), {NCCL}),
    ("NCCL's environment is missing", without("files", "/etc/rdma-cluster/nccl.env"), {NCCL}),
]


@pytest.mark.parametrize(("change", "expected"), [case[1:] for case in DRIFTS], ids=[case[0] for case in DRIFTS])
def test_each_drift_is_work_for_the_role_that_fixes_it(change: Callable[[Facts], None], expected: set[str]) -> None:
    facts = lab_facts()
    change(facts)
    assert roles_with_work(lab_intent(), facts) == expected


def test_what_the_drivers_bring_of_themselves_is_no_drift() -> None:
    facts = lab_facts()
    facts["stack"]["modules"]["irdma"] = {"version": None, "srcversion": None, "holders": []}
    facts["netdevs"]["ens1"]["ipv4"].append("10.0.0.1/8")
    facts["units"]["ssh.service"] = {"active": False, "enabled": False}
    with_file("/etc/systemd/system/rdma-ndd.service")(facts)
    assert roles_with_work(lab_intent(), facts) == set()


def hard_intent() -> dict[str, Any]:
    """The same rails without Soft-RoCE."""
    return normalize({"rdma_rails": [{**rail, "soft": False} for rail in lab_rails()]})


def test_a_host_without_soft_rails_has_no_service_and_no_boot_file() -> None:
    facts = lab_facts()
    assert rdma_host_plan(hard_intent(), facts)[LINKS] is True
    for path in (SCRIPT, f"/etc/systemd/system/{SOFT_UNIT}", "/etc/rdma-cluster/soft-links.json"):
        assert rdma_host_plan(hard_intent(), facts)[LINKS] is True
        del facts["files"][path]
    facts["units"] = None
    assert rdma_host_plan(hard_intent(), facts)[LINKS] is False
    facts["stack"]["modules"].update(mlx5_core={}, mlx5_ib={})
    assert rdma_host_plan(hard_intent(), facts)[MODULES] is True
    del facts["files"][BOOT_FILE]
    assert rdma_host_plan(hard_intent(), facts)[MODULES] is False


def test_a_rail_of_another_intent_is_work() -> None:
    rails = [{**lab_rails()[0], "address": "192.168.100.77/24"}, lab_rails()[1]]
    assert roles_with_work(normalize({"rdma_rails": rails}), lab_facts()) == {NETWORK}


NFT_OPENED = [f"ens{number} 192.168.10{number - 1}.0/24 {kind}" for number in (1, 2) for kind in ("tcp", "udp", "icmp")]


@pytest.mark.parametrize(
    ("seen", "differs"),
    [
        pytest.param({"backend": None, "opened": []}, False, id="none runs"),
        pytest.param({"backend": "nftables", "opened": []}, True, id="closed"),
        pytest.param({"backend": "nftables", "opened": NFT_OPENED}, False, id="opened"),
        pytest.param({"backend": "nftables", "opened": ["*"]}, False, id="drops nothing"),
        pytest.param({"backend": "ufw", "opened": NFT_OPENED[1:]}, True, id="one is missing"),
        pytest.param({"backend": "ufw", "opened": [*NFT_OPENED, "ens9 10.0.0.0/8 tcp"]}, True, id="one too many"),
        pytest.param({"backend": "firewalld", "opened": [], "unread": "it does not answer"}, False, id="not read"),
    ],
)
def test_whether_the_firewall_is_to_be_opened(seen: dict[str, Any], differs: bool) -> None:
    facts = lab_facts()
    facts["firewall"] = seen
    plan = rdma_host_plan(lab_intent(), facts)
    assert plan["firewall"] is differs
    assert plan["settings"]["firewall"]["openings"][0] == {"netdev": "ens1", "subnet": "192.168.100.0/24", "kinds": ["tcp", "udp", "icmp"]}


def test_the_reason_to_open_the_firewall_names_what_does_not_pass() -> None:
    facts = lab_facts()
    facts["firewall"] = {"backend": "ufw", "opened": NFT_OPENED[1:]}
    reason = rdma_host_plan(lab_intent(), facts)["settings"]["firewall"]["reason"]
    assert reason == "ufw has no rules for TCP ports 1024 to 65535 from 192.168.100.0/24 on ens1"


def test_the_rails_of_the_network_are_those_with_an_interface() -> None:
    facts = lab_facts()
    del facts["netdevs"]["ens1"]
    rail1 = {"name": "rail1", "nic": {"pci": "0000:41:00.0"}, "netdev": "ens2", "device": "rxe_rail1", "port": 1}
    more = {"mac": facts["netdevs"]["ens2"]["mac"], "link_layer": "roce", "address": "192.168.101.1/24", "mtu_bytes": 9000, "ipoib": None}
    more |= {"table": None, "gateway": None, "routes": [], "addresses": []}
    assert network_rails(lab_intent(), from_dict(facts)) == [{**rail1, **more}]


def test_the_boot_files_of_a_rail_by_guid_name_its_pci_function() -> None:
    facts = card_facts("InfiniBand")
    first_port(facts)["gids"] = [{"index": 0, "gid": "fe80:0000:0000:0000:a088:c203:0000:0000"}]
    variables = {"rdma_rails": [{"name": "rail0", "nic": {"guid": "a088:c203:0000:0000"}, "link_layer": "infiniband"}]}
    [rail] = network_rails(normalize(variables), from_dict(facts))
    assert (rail["nic"], rail["netdev"]) == ({"pci": "0000:3d:00.0"}, "ens1np0")
    first_port(facts)["netdev"] = None
    assert network_rails(normalize(variables), from_dict(facts)) == []


def test_the_firewall_is_opened_for_every_subnet_of_a_rail() -> None:
    intent = lab_intent()
    intent["rails"][0].update(address="2001:db8:100::1/64", addresses=["192.168.100.1/24", "2001:db8:100::2/64"])
    found = openings(intent["rails"][:1], from_dict(lab_facts()))
    assert [(each.netdev, each.subnet) for each in found] == [("ens1", "2001:db8:100::/64"), ("ens1", "192.168.100.0/24")]


def test_a_missing_further_address_makes_the_network_role_run() -> None:
    intent, facts = lab_intent(), lab_facts()
    intent["rails"][0]["addresses"] = ["2001:db8:100::1/64"]
    given = network_rails(intent, from_dict(facts))
    assert given[0]["addresses"] == ["2001:db8:100::1/64"]
    running = Running(networkd=True, networkmanager=False)
    facts["files"] |= on_host(choice.files("networkd", [make_rail(rail) for rail in given], [], [], running))
    assert network_differs(intent, from_dict(facts))
    facts["netdevs"]["ens1"]["ipv6"] = ["2001:db8:100::1/64"]
    assert not network_differs(intent, from_dict(facts))


def test_two_rails_on_one_nic_make_the_network_role_run_which_refuses_them() -> None:
    intent, facts = lab_intent(), lab_facts()
    intent["rails"][1]["nic"] = {"mac": facts["netdevs"]["ens1"]["mac"]}
    assert [rail["netdev"] for rail in network_rails(intent, from_dict(facts))] == ["ens1", "ens1"]
    assert network_differs(intent, from_dict(facts))


def test_a_rail_without_address_asks_for_none() -> None:
    rails = [{**rail, "address": None, "link_layer": "infiniband", "soft": False, "mtu_bytes": 2044} for rail in lab_rails()]
    intent, facts = normalize({"rdma_rails": rails}), lab_facts()
    for netdev in ("ens1", "ens2"):
        facts["netdevs"][netdev].update(ipv4=None, mtu_bytes=2044)
    network = rdma_host_plan(intent, facts)["settings"]["network"]
    assert [rail["address"] for rail in network] == [None, None]

    running = Running(networkd=True, networkmanager=False)
    facts["files"] = on_host(choice.files("networkd", [NetworkRail(**rail) for rail in network], [], [], running))
    assert rdma_host_plan(intent, facts)[NETWORK] is False
