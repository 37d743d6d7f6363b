# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of rdma_fabric.management: found by name or subnet, refused if it is a rail, and an error if the host has none."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import check_management, management_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import SOCKET_IFNAME, check_socket, nccl_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.lint import origins
from tests.unit.builders.hosts import all_interfaces, lab_facts, lab_intent


def given(management: dict[str, str], others: dict[str, list[str]] | None = None, **sections: Any) -> tuple[Any, Any]:
    """Intent and facts of a lab machine with these further interfaces; enp0s2 has 10.0.2.15, ens1 is rail0."""
    facts = lab_facts()
    more = {name: {"admin_up": True, "ipv4": ipv4} for name, ipv4 in (others or {}).items()}
    facts["interfaces"] = all_interfaces(facts, **more)
    return lab_intent(fabric={"management": management}, **sections), from_dict(facts)


@pytest.mark.parametrize("management", [{"interface": "enp0s2"}, {"subnet": "10.0.2.0/24"}])
def test_it_is_found_by_name_or_subnet_and_is_nccls(management: dict[str, str]) -> None:
    intent, facts = given(management)
    (found,) = check_management("node1", intent, facts)
    assert (found.status, found.observed) == (OK, "enp0s2")
    assert nccl_variables(intent, facts)[SOCKET_IFNAME] == "=enp0s2", "the session of the lab comes through a forwarded port"
    assert check_socket("node1", intent, facts)[0].observed == "=enp0s2, the interface of rdma_fabric.management"
    assert origins(intent, facts)[SOCKET_IFNAME] == "rdma_fabric.management"


def test_the_users_own_interface_comes_first() -> None:
    intent, facts = given({"interface": "enp0s2"}, nccl={"socket_ifname": "eno7"})
    assert nccl_variables(intent, facts)[SOCKET_IFNAME] == "=eno7"
    assert origins(intent, facts)[SOCKET_IFNAME] == "rdma_nccl.socket_ifname"


BAD = [
    ({"interface": "eno9"}, {}, "no interface eno9; the host has enp0s2 (10.0.2.15/24), ens1 (192.168.100.1/24)"),
    ({"subnet": "10.7.0.0/16"}, {}, "no interface with an address in 10.7.0.0/16; the host has enp0s2 (10.0.2.15/24)"),
    ({"interface": "ens1"}, {}, "ens1 is rail0; the host has"),
    ({"interface": "ens1.7"}, {"ens1.7": ["10.7.0.1/24"]}, "ens1.7 is rail0"),
    (
        {"subnet": "10.4.0.0/14"},
        {"eno3": ["10.7.0.1/24"], "eno4": ["10.6.0.1/24"]},
        "more than one interface with an address in 10.4.0.0/14",
    ),
    ({"interface": "eno3"}, {"eno3": []}, "eno3 has no address"),
]


@pytest.mark.parametrize(("management", "others", "words"), BAD)
def test_a_host_without_one_is_an_error_that_names_its_interfaces(
    management: dict[str, str], others: dict[str, list[str]], words: str
) -> None:
    intent, facts = given(management, others)
    (found,) = check_management("node1", intent, facts)
    assert (found.status, found.observed.startswith(words), "the host has" in found.observed) == (ERROR, True, True), found.observed
    assert SOCKET_IFNAME not in nccl_variables(intent, facts)
    assert check_socket("node1", intent, facts)[0].status == ERROR


def test_of_several_in_the_subnet_the_sessions_interface_counts() -> None:
    intent, facts = given({"subnet": "10.0.0.0/8"}, {"eno3": ["10.7.0.1/24"]})
    seen = management_of(intent, facts)
    assert seen is not None
    assert seen.netdev == "enp0s2"
    tree = lab_facts()
    tree["interfaces"] = all_interfaces(tree, eno3={"admin_up": True, "ipv4": ["10.7.0.1/24"]})
    tree["session"] = {"address": "10.7.0.1", "netdev": "eno3"}
    found = management_of(intent, from_dict(tree))
    assert found is not None
    assert found.netdev == "eno3"


def test_addresses_that_were_not_read_are_unknown() -> None:
    facts = lab_facts()
    facts["interfaces"] = None
    intent = lab_intent(fabric={"management": {"interface": "enp0s2"}})
    assert [each.status for each in check_management("node1", intent, from_dict(facts))] == [UNKNOWN]
    assert check_socket("node1", intent, from_dict(facts))[0].status == UNKNOWN


def test_without_the_key_nothing_is_said_of_a_host_with_two_networks() -> None:
    assert check_management("node1", lab_intent(), from_dict(lab_facts())) == []


@pytest.mark.parametrize(
    ("management", "words"),
    [
        ({}, "one of interface, subnet"),
        ({"interface": "eno1", "subnet": "10.0.0.0/24"}, "one of interface, subnet"),
        ({"subnets": "10.0.0.0/24"}, "did you mean 'subnet'"),
        ({"subnet": "192.168.0.0/16"}, "is 192.168.0.0/16, which overlaps 192.168.100.0/24 of rail0"),
    ],
)
def test_bad_input_is_refused(management: dict[str, str], words: str) -> None:
    with pytest.raises(IntentError) as error:
        lab_intent(fabric={"management": management})
    assert words in "\n".join(str(problem) for problem in error.value.problems)
