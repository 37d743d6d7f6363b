# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables and files, from intent and facts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import check_nccl, check_others
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import (
    check_gid_index,
    check_socket,
    effective_variables,
    files_to_write,
    kept_variables,
    kept_words,
    nccl_differs,
    nccl_files,
    nccl_variables,
    session_interface,
)
from tests.unit.builders.hosts import described_file, lab_facts, lab_rails
from tests.unit.builders.hosts import lab_intent as whole_intent

CONF_FILE, ENVIRONMENT_FILE = "/etc/nccl.conf", "/etc/rdma-cluster/nccl.env"
LAB_HCA = "=rxe_rail0:1,rxe_rail1:1"


def lab_intent(**nccl: Any) -> dict[str, Any]:
    """A lab machine's normalized intent; nccl: keys of rdma_nccl as they are, also such as the schema refuses."""
    intent = whole_intent()
    intent["nccl"].update(nccl)
    return intent


def mlx5_host(indexes: tuple[int | None, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Intent and facts of a host with a ConnectX for each index; index: of the RoCE v2 GID of the rail's address, if it has one."""
    rails, facts = [], {"devices": {}, "netdevs": {}}
    for number, index in enumerate(indexes):
        pci, address = f"0000:{number:02x}:00.0", f"192.168.{number}.1"
        rails.append({**lab_rails()[0], "name": f"rail{number}", "nic": {"pci": pci}, "address": f"{address}/24", "soft": False})
        port = {"state": "ACTIVE", "netdev": f"eth{number}", "rocev2": {} if index is None else {address: index}}
        facts["netdevs"][f"eth{number}"] = {"pci": pci, "dev_port": 0}
        # The kernel's numbering need not be the plan's.
        facts["devices"][f"mlx5_{len(indexes) - 1 - number}"] = {"pci": {"address": pci}, "ports": {"1": port}}
    return {**lab_intent(), "rails": rails}, facts


def with_files(facts: dict[str, Any], intent: dict[str, Any]) -> dict[str, Any]:
    """The facts after the role has run."""
    files = nccl_files(intent, from_dict(facts))
    seen = {file.path: described_file(file) for file in files}
    return {**facts, "files": seen}


def test_software_devices_are_listed_like_any_other() -> None:
    assert nccl_variables(lab_intent(), from_dict(lab_facts())) == {"NCCL_IB_HCA": LAB_HCA}


def test_devices_come_in_the_order_of_the_rails_and_not_of_their_names() -> None:
    intent, facts = mlx5_host((3, 3, 3))
    assert nccl_variables(intent, from_dict(facts))["NCCL_IB_HCA"] == "=mlx5_2:1,mlx5_1:1,mlx5_0:1"


@pytest.mark.parametrize(
    ("roce", "value"), [({}, "106"), ({"ecn": False}, "104"), ({"dscp": 46, "priority": 5}, "186"), (None, None)], ids=str
)
def test_the_traffic_class_is_that_of_the_profile_where_there_is_one(roce: dict[str, Any] | None, value: str | None) -> None:
    """Without facts too: it follows from the intent alone. NCCL_IB_SL means nothing where DSCP is trusted."""
    intent = whole_intent(roce=roce)
    for facts in (lab_facts(), None):
        assert nccl_variables(intent, from_dict(facts)).get("NCCL_IB_TC") == value
        assert "NCCL_IB_SL" not in nccl_variables(intent, from_dict(facts))


@pytest.mark.parametrize(("compute", "storage", "value"), [("infiniband", "roce", None), ("roce", "infiniband", "106")])
def test_storage_s_rails_make_no_traffic_class_for_nccl(compute: str, storage: str, value: str | None) -> None:
    intent = whole_intent(roce={})
    intent["rails"][0].update(link_layer=compute)
    intent["rails"][1].update(link_layer=storage, role="storage")
    assert nccl_variables(intent, from_dict(lab_facts())).get("NCCL_IB_TC") == value


def with_addresses(*rails: list[str], **changes: Any) -> dict[str, str]:
    """The variables for GIDs of a lab machine whose rails have these addresses, the one of RDMA first."""
    intent = lab_intent(**changes)
    for rail, (first, *further) in zip(intent["rails"], rails, strict=True):
        rail.update(address=first, addresses=further)
    found = nccl_variables(intent, from_dict(lab_facts()))
    return {name.removeprefix("NCCL_IB_ADDR_"): value for name, value in found.items() if name.startswith("NCCL_IB_ADDR_")}


def test_the_family_is_named_for_ipv6_alone() -> None:
    assert with_addresses(["192.168.100.1/24"], ["192.168.101.1/24"]) == {}
    six = (["2001:db8:100::1/64", "192.168.100.1/24"], ["2001:db8:101::1/64"])
    assert with_addresses(*six) == {"FAMILY": "AF_INET6"}
    assert with_addresses(*six, version="2.20.5") == {}
    assert "NCCL_SOCKET_FAMILY" not in nccl_variables(lab_intent(), from_dict(lab_facts()))


def test_a_range_only_where_a_rail_has_several_addresses_of_the_family() -> None:
    assert with_addresses(["2001:db8:100::1/64", "fd00::1/64"], ["2001:db8:101::1/64"]) == {
        "FAMILY": "AF_INET6",
        "RANGE": "2001:db8:100::/47",
    }
    assert with_addresses(["192.168.100.1/24", "10.7.0.1/16"], ["192.168.101.1/24"]) == {"RANGE": "192.168.100.0/23"}
    # No single network has all addresses of RDMA and none of the others.
    assert with_addresses(["192.168.100.1/24", "192.168.101.9/24"], ["192.168.102.1/24"]) == {}


def test_storage_is_left_out() -> None:
    intent = lab_intent()
    intent["rails"][0]["role"] = "storage"
    assert nccl_variables(intent, from_dict(lab_facts())) == {"NCCL_IB_HCA": "=rxe_rail1:1"}


@pytest.mark.parametrize("facts", [None, {}, {"devices": {}, "netdevs": {}}])
def test_without_a_device_there_is_no_list_of_them(facts: dict[str, Any] | None) -> None:
    assert nccl_variables(lab_intent(), from_dict(facts)) == {}


def test_a_rail_without_device_is_left_out() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail0"]
    assert nccl_variables(lab_intent(), from_dict(facts)) == {"NCCL_IB_HCA": "=rxe_rail1:1"}


@pytest.mark.parametrize(
    ("version", "index"), [("2.20.5", "1"), ("2.9.8", "1"), ("2.21.5", None), ("2.30.7", None), ("3.0", None), (None, None)]
)
def test_the_gid_index_is_for_old_nccl_only(version: str | None, index: str | None) -> None:
    assert nccl_variables(lab_intent(version=version), from_dict(lab_facts())).get("NCCL_IB_GID_INDEX") == index


@pytest.mark.parametrize(
    ("indexes", "value", "status", "observed"),
    [
        ((3, 3), "3", "ok", "rail0: 3, rail1: 3"),
        ((0, 0), "0", "ok", "rail0: 0, rail1: 0"),
        ((3, 5), None, "error", "rail0: 3, rail1: 5"),
        ((3, None), None, "error", "rail0: 3, rail1: none"),
        ((None, None), None, "error", "rail0: none, rail1: none"),
        ((), None, "not_applicable", "no RDMA device: see nccl.hca"),
    ],
)
def test_old_nccl_takes_one_index_for_all_rails(indexes: tuple[int | None, ...], value: str | None, status: str, observed: str) -> None:
    intent, facts = mlx5_host(indexes)
    intent["nccl"]["version"] = "2.20.5"
    # A rail without device, so that there is a rail at all.
    intent["rails"].append({**lab_rails()[0], "name": "rail9"})
    assert nccl_variables(intent, from_dict(facts)).get("NCCL_IB_GID_INDEX") == value
    (finding,) = check_gid_index("node1", intent, from_dict(facts))
    assert (finding.stage, finding.check, finding.status, finding.observed) == ("nccl", "nccl.gid_index", status, observed)
    assert ("On node1, use NCCL 2.21 or newer instead of 2.20.5" in finding.remedy) == (status == "error")


@pytest.mark.parametrize(
    ("nccl", "link_layer", "why"),
    [
        ({"version": "2.22.3"}, "roce", "NCCL 2.22.3 finds the GID by itself"),
        ({"version": None}, "roce", "NCCL (assumed to be 2.21 or newer) finds the GID by itself"),
        ({"version": "2.20.5", "variables": {"NCCL_IB_GID_INDEX": 3}}, "roce", "rdma_nccl.variables sets it"),
        ({"version": "2.20.5"}, "infiniband", "no compute rail is RoCE"),
    ],
)
def test_where_no_gid_index_is_asked_for(nccl: dict[str, Any], link_layer: str, why: str) -> None:
    intent = lab_intent(**nccl)
    for rail in intent["rails"]:
        rail["link_layer"] = link_layer
    (finding,) = check_gid_index("node1", intent, from_dict(lab_facts()))
    assert (finding.status, finding.observed) == ("not_applicable", why)


def test_the_gid_index_of_storage_does_not_matter() -> None:
    intent, facts = mlx5_host((3, 3, 7))
    intent["rails"][2]["role"] = "storage"
    intent["nccl"]["version"] = "2.20.5"
    assert nccl_variables(intent, from_dict(facts))["NCCL_IB_GID_INDEX"] == "3"


def test_the_interface_of_sockets_is_exact_and_only_on_request() -> None:
    assert nccl_variables(lab_intent(socket_ifname="eth0"), from_dict(lab_facts()))["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert "NCCL_SOCKET_IFNAME" not in nccl_variables(lab_intent(), from_dict(lab_facts()))


@pytest.mark.parametrize(
    ("planes", "topology", "value"),
    [(("a", "b"), "switched", "0"), (("a", "a"), "switched", None), (("a", "b"), "mesh", None)],
    ids=["two planes", "one plane", "cables of a mesh"],
)
def test_rings_stay_on_a_rail_where_no_network_joins_the_rails(planes: tuple[str, str], topology: str, value: str | None) -> None:
    intent = lab_intent()
    intent["fabric"]["topology"] = topology
    for rail, plane in zip(intent["rails"], planes, strict=True):
        rail["plane"] = plane
    assert nccl_variables(intent, from_dict(lab_facts())).get("NCCL_CROSS_NIC") == value
    intent["rails"][1]["role"] = "storage"
    assert "NCCL_CROSS_NIC" not in nccl_variables(intent, from_dict(lab_facts()))


def test_the_user_s_variables_win() -> None:
    mine = {"NCCL_IB_HCA": "^mlx5_4", "NCCL_SOCKET_IFNAME": "^lo", "NCCL_IB_GID_INDEX": 5, "NCCL_IB_QPS_PER_CONNECTION": 4, "UCX_TLS": "rc"}
    intent = lab_intent(version="2.20.5", socket_ifname="eth0", variables=mine)
    assert nccl_variables(intent, from_dict(lab_facts())) == {name: str(value) for name, value in mine.items()}


def test_both_files_begin_with_whose_they_are() -> None:
    conf, environment = nccl_files(lab_intent(variables={"NCCL_DEBUG_FILE": "/tmp/my log"}), from_dict(lab_facts()))
    assert (conf.path, conf.mode) == (CONF_FILE, 0o644)
    assert (conf.block, conf.content) == (True, f"NCCL_DEBUG_FILE=/tmp/my log\nNCCL_IB_HCA={LAB_HCA}\n")
    assert (environment.path, environment.mode) == (ENVIRONMENT_FILE, 0o644)
    assert environment.content == f'# Managed by rdma.cluster\nNCCL_DEBUG_FILE="/tmp/my log"\nNCCL_IB_HCA={LAB_HCA}\n'


def test_nccl_reads_from_the_file_what_was_derived() -> None:
    intent = lab_intent(version="2.20.5", socket_ifname="eth0")
    conf = parse_nccl_conf(nccl_files(intent, from_dict(lab_facts()))[0].content or "")
    assert (conf.variables, conf.ignored, conf.altered) == (nccl_variables(intent, from_dict(lab_facts())), [], [])


def test_the_order_of_the_inventory_does_not_change_a_file() -> None:
    one, other = ({"NCCL_A": 1, "NCCL_B": 2}, {"NCCL_B": 2, "NCCL_A": 1})
    assert nccl_files(lab_intent(variables=one), from_dict(lab_facts())) == nccl_files(lab_intent(variables=other), from_dict(lab_facts()))


def test_a_host_whose_rails_are_all_storage_gets_no_file() -> None:
    intent = lab_intent()
    for rail in intent["rails"]:
        rail["role"] = "storage"
    assert nccl_files(intent, from_dict(lab_facts())) == []
    assert nccl_differs(intent, from_dict(lab_facts())) is False
    intent["nccl"]["variables"] = {"NCCL_DEBUG": "WARN"}
    assert [file.path for file in nccl_files(intent, from_dict(lab_facts()))] == [CONF_FILE, ENVIRONMENT_FILE]


def test_a_host_that_misses_a_device_keeps_its_files() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail1"]
    assert nccl_files(lab_intent(), from_dict(facts))[0].content != nccl_files(lab_intent(), from_dict(lab_facts()))[0].content
    assert nccl_differs(lab_intent(), from_dict(facts)) is False


def test_a_value_that_breaks_the_line_is_refused() -> None:
    with pytest.raises(ValueError, match="NCCL_A has a line break"):
        nccl_files(lab_intent(variables={"NCCL_A": "1\nLD_PRELOAD=/tmp/x"}), from_dict(lab_facts()))


@pytest.mark.parametrize("files", [None, {}])
def test_what_is_not_known_differs(files: dict[str, Any] | None) -> None:
    facts = from_dict({**lab_facts(), "files": files})
    assert nccl_differs(lab_intent(), facts) is True
    assert [file["path"] for file in files_to_write(lab_intent(), facts)] == [CONF_FILE, ENVIRONMENT_FILE]


def test_on_a_converged_host_there_is_nothing_to_do() -> None:
    facts = with_files(lab_facts(), lab_intent())
    assert nccl_differs(lab_intent(), from_dict(facts)) is False
    assert files_to_write(lab_intent(), from_dict(facts)) == []
    assert {finding.status for finding in check_nccl("node1", nccl_files(lab_intent(), from_dict(facts)), from_dict(facts))} == {"ok"}


def test_only_what_differs_is_written() -> None:
    facts = with_files(lab_facts(), lab_intent())
    facts["files"][ENVIRONMENT_FILE]["mode"] = 0o600
    (file,) = files_to_write(lab_intent(), from_dict(facts))
    assert file == {"path": ENVIRONMENT_FILE, "content": f"# Managed by rdma.cluster\nNCCL_IB_HCA={LAB_HCA}\n", "mode": "0644"}
    facts = with_files(lab_facts(), lab_intent())
    facts["files"][CONF_FILE]["block"] = "0" * 64
    (file,) = files_to_write(lab_intent(), from_dict(facts))
    assert file == {"path": CONF_FILE, "content": f"NCCL_IB_HCA={LAB_HCA}\n", "mode": "0644", "block": True, "replaced": []}


def with_others(**variables: str) -> dict[str, Any]:
    """Facts of a host on which the role has run, whose nccl.conf has lines of others."""
    facts = with_files(lab_facts(), lab_intent())
    facts["files"][CONF_FILE]["others"] = variables
    return facts


def test_a_line_of_others_holds_in_all_files_until_its_replacement_is_allowed() -> None:
    intent = lab_intent(variables={"NCCL_IB_TIMEOUT": 20, "NCCL_IB_RETRY_CNT": 7}, launchers=["slurm", "profile_d"])
    facts = with_others(NCCL_IB_HCA="mlx5", NCCL_IB_TIMEOUT="23", NCCL_IB_RETRY_CNT="7", NCCL_BUFFSIZE="8388608")
    assert kept_words(intent, from_dict(facts)) == [
        f"{CONF_FILE} sets NCCL_IB_HCA=mlx5, the intent NCCL_IB_HCA={LAB_HCA}",
        f"{CONF_FILE} sets NCCL_IB_TIMEOUT=23, the intent NCCL_IB_TIMEOUT=20",
    ]
    kept = nccl_files(intent, from_dict(facts))
    assert kept[0].text == "NCCL_IB_RETRY_CNT=7\n"
    assert not any("NCCL_IB_HCA" in file.text or "NCCL_IB_TIMEOUT" in file.text for file in kept)
    assert effective_variables(intent, from_dict(facts)) == {"NCCL_IB_HCA": "mlx5", "NCCL_IB_TIMEOUT": "23", "NCCL_IB_RETRY_CNT": "7"}
    replaced = nccl_files(intent, from_dict(facts), replace_allowed=True)
    assert replaced[0].text == f"NCCL_IB_HCA={LAB_HCA}\nNCCL_IB_RETRY_CNT=7\nNCCL_IB_TIMEOUT=20\n"
    assert list(replaced[0].replaced) == ["NCCL_IB_HCA", "NCCL_IB_TIMEOUT"]
    assert all("NCCL_IB_TIMEOUT" in file.text for file in replaced)


def test_a_kept_line_is_converged_and_one_to_be_replaced_is_not() -> None:
    facts = with_others(NCCL_IB_HCA="mlx5")
    facts = {
        **facts,
        "files": {**facts["files"], **{file.path: described_file(file) for file in nccl_files(lab_intent(), from_dict(facts))}},
    }
    facts["files"][CONF_FILE]["others"] = {"NCCL_IB_HCA": "mlx5"}
    assert not nccl_differs(lab_intent(), from_dict(facts))
    assert nccl_differs(lab_intent(), from_dict(facts), replace_allowed=True)
    assert kept_words(lab_intent(), from_dict(facts))


def test_the_gate_says_which_lines_are_kept() -> None:
    path, facts = CONF_FILE, with_others(NCCL_IB_HCA="mlx5", NCCL_BUFFSIZE="1")
    kept = kept_variables(lab_intent(), from_dict(facts))
    [warning] = check_others("node1", path, kept, (), from_dict(facts))
    assert (warning.status, warning.subject) == ("warning", f"NCCL_IB_HCA in {path}")
    assert (warning.observed[:17], warning.expected[: len(LAB_HCA) + 12]) == ("NCCL_IB_HCA=mlx5,", f"NCCL_IB_HCA={LAB_HCA}")
    assert [each.status for each in check_others("node1", path, kept, ["NCCL_IB_HCA"], from_dict(facts))] == ["error"]
    assert [each.status for each in check_others("node1", path, {}, (), from_dict(facts))] == ["ok"]
    assert [each.status for each in check_others("node1", path, {}, (), from_dict(lab_facts()))] == ["not_applicable"]
    assert [each.status for each in check_others("node1", path, {}, (), from_dict({}))] == ["unknown"]


def test_an_environment_file_elsewhere_is_shared_too() -> None:
    intent = lab_intent(environment_file="/etc/environment", variables={"NCCL_IB_TIMEOUT": 20})
    facts = {**lab_facts(), "files": {"/etc/environment": {"sha256": "1", "mode": 0o644, "others": {"NCCL_IB_TIMEOUT": "23"}}}}
    environment = nccl_files(intent, from_dict(facts))[1]
    assert (environment.block, environment.text) == (True, f"NCCL_IB_HCA={LAB_HCA}\n")


def test_a_file_that_only_root_can_read_is_a_warning() -> None:
    facts = with_files(lab_facts(), lab_intent())
    facts["files"][CONF_FILE]["mode"] = 0o600
    found = check_nccl("node1", nccl_files(lab_intent(), from_dict(facts)), from_dict(facts))
    assert [(each.status, each.remedy) for each in found if each.subject == CONF_FILE] == [
        ("warning", f"Run `chmod a+r {CONF_FILE}` on node1.")
    ]


def test_the_files_that_are_not_there_are_written() -> None:
    assert nccl_differs(lab_intent(), from_dict({**lab_facts(), "files": {}})) is True
    assert [file["path"] for file in files_to_write(lab_intent(), from_dict({**lab_facts(), "files": {}}))] == [CONF_FILE, ENVIRONMENT_FILE]


SESSION = {"address": "10.0.0.7", "netdev": "eno1"}


@pytest.mark.parametrize(
    ("changes", "name", "why"),
    [
        ({}, "eno1", "eno1, the interface of Ansible's session"),
        ({"session": {"address": "10.0.0.7", "netdev": "bond0.100"}}, "bond0.100", "bond0.100, the interface of Ansible's session"),
        ({"session": None}, None, "Ansible's connection to the host is not SSH"),
        ({"session": {"address": "127.0.0.1", "netdev": "lo"}}, None, "Ansible's session uses 127.0.0.1, a loopback address"),
        ({"reached_at": "127.0.0.1"}, None, "Ansible reaches the host at 127.0.0.1, through a forwarded port"),
        ({"session": {"address": "10.0.0.7", "netdev": None}}, None, "no interface, or more than one, has 10.0.0.7"),
        ({"session": {"address": "192.168.100.1", "netdev": "ens1"}}, None, "Ansible's session uses ens1, which is rail0"),
        ({"session": {"address": "172.17.0.2", "netdev": "docker0"}}, None, "Ansible's session uses docker0, which does not lead to other"),
    ],
)
def test_nccl_s_sockets_use_the_interface_of_ansible_s_session(changes: dict[str, Any], name: str | None, why: str) -> None:
    facts = {**lab_facts(), "reached_at": "node1.example", "session": SESSION, **changes}
    assert nccl_variables(lab_intent(), from_dict(facts)).get("NCCL_SOCKET_IFNAME") == (f"={name}" if name else None)
    [found] = check_socket("node1", lab_intent(), from_dict(facts))
    assert found.status == ("ok" if name else "not_applicable")
    assert why in found.observed


def test_what_hosts_are_compared_by_says_where_the_session_comes_in() -> None:
    facts = {**lab_facts(), "reached_at": "10.0.0.7", "session": SESSION}
    assert nccl_variables(lab_intent(), from_dict(comparable(facts)))["NCCL_SOCKET_IFNAME"] == "=eno1"


def test_the_intent_names_the_interface_before_the_session_does() -> None:
    facts = {**lab_facts(), "reached_at": "node1", "session": SESSION}
    assert nccl_variables(lab_intent(socket_ifname="bond0"), from_dict(facts))["NCCL_SOCKET_IFNAME"] == "=bond0"
    assert nccl_variables(lab_intent(variables={"NCCL_SOCKET_IFNAME": "^lo"}), from_dict(facts))["NCCL_SOCKET_IFNAME"] == "^lo"
    intent = lab_intent()
    for rail in intent["rails"]:
        rail["role"] = "storage"
    assert nccl_files(intent, from_dict(facts)) == []


@pytest.mark.parametrize(("pcp", "role", "value"), [(None, "compute", None), (3, "compute", "3"), (3, "storage", None)])
def test_the_service_level_is_the_priority_in_the_tag_of_compute_rails(pcp: int | None, role: str, value: str | None) -> None:
    intent = whole_intent(roce={})
    intent["rails"][0].update(role=role, vlan={"id": 100, "pcp": pcp})
    assert nccl_variables(intent, from_dict(lab_facts())).get("NCCL_IB_SL") == value


def test_a_session_on_the_vlan_of_a_rail_is_not_for_sockets() -> None:
    intent = whole_intent()
    intent["rails"][0]["vlan"] = {"id": 100, "pcp": None}
    facts = {**lab_facts(), "reached_at": "10.0.0.7", "session": {"address": "10.0.0.7", "netdev": "ens1.100"}}
    assert session_interface(intent, from_dict(facts))[0] is None
