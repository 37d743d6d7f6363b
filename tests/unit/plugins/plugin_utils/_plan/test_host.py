# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host stage asks for, and that a host is left alone only if its facts prove that nothing differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, described
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits as host_limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import FILE, sysctl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import limits_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import (
    MULTI_RAIL,
    limits_differ,
    neighbor_settings,
    sysctl_differs,
    sysctl_settings,
)
from tests.unit.builders.hosts import lab_rails

ROOT = Path(__file__).parents[5]
DOTTED = "net/ipv4/conf/eth0.100/rp_filter"


def intent(
    rails: int = 2,
    *,
    shared_subnet: bool = False,
    memlock: bool = True,
    open_files: int = 0,
    keep_ipc: bool = False,
    sysctl: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "rails": lab_rails()[:rails],
        "fabric": {"shared_subnet": shared_subnet},
        "host": {"memlock_unlimited": memlock, "open_files": open_files, "keep_ipc": keep_ipc, "sysctl": sysctl or {}},
    }


def on_host(files: Sequence[ManagedFile]) -> dict[str, Any]:
    """What rdma_facts says of a host that has these files."""
    return {file.path: described(file.content, file.mode) for file in files if file.content is not None}


def converged(requested: dict[str, Any]) -> dict[str, Any]:
    """The facts of a host that is as it should be."""
    settings = sysctl_settings(requested)
    return {
        "files": on_host([*sysctl_files(settings), *host_limits.files(limits_request(requested))]),
        "sysctl": {"live": dict(settings), "boot": {key: {"value": value, "file": FILE} for key, value in settings.items()}},
        "limits": {"service_memlock": {"unlimited": True, "bytes": None}, "service_open_files": 131072, "remove_ipc": False},
    }


def infiniband() -> dict[str, Any]:
    requested = intent()
    for rail in requested["rails"]:
        rail["link_layer"] = "infiniband"
    return requested


SETTINGS = [
    pytest.param(intent(), MULTI_RAIL, id="two rails"),
    pytest.param(intent(1), {}, id="one rail"),
    pytest.param(intent(1, shared_subnet=True), MULTI_RAIL, id="a shared subnet"),
    pytest.param(infiniband(), {}, id="InfiniBand"),
    pytest.param(intent(1, sysctl={"net.core.rmem_max": 4194304}), {"net.core.rmem_max": "4194304"}, id="a number"),
    pytest.param(intent(1, sysctl={"net/ipv4/tcp_rmem": "4096  87380 1"}), {"net.ipv4.tcp_rmem": "4096 87380 1"}, id="one spelling"),
    pytest.param(intent(1, sysctl={DOTTED: 2}), {DOTTED: "2"}, id="a dot in an interface's name"),
    pytest.param(
        intent(sysctl={"net/ipv4/conf/all/rp_filter": 0}), {**MULTI_RAIL, "net.ipv4.conf.all.rp_filter": "0"}, id="the user's value wins"
    ),
]


@pytest.mark.parametrize(("requested", "expected"), SETTINGS)
def test_sysctl_settings(requested: dict[str, Any], expected: dict[str, str]) -> None:
    assert sysctl_settings(requested) == expected


def test_the_values_for_several_rails() -> None:
    assert MULTI_RAIL == {
        "net.ipv4.conf.all.arp_ignore": "1",
        "net.ipv4.conf.all.arp_announce": "2",
        "net.ipv4.conf.all.rp_filter": "2",
    }


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(ParseError, match=r"'net.ipv4.conf.\*.rp_filter'"):
        sysctl_settings(intent(sysctl={"net.ipv4.conf.*.rp_filter": 1}))


@pytest.mark.parametrize(
    "requested", [intent(), intent(1), intent(memlock=False), intent(sysctl={DOTTED: 2, "net.ipv4.tcp_rmem": "1 2 3"})]
)
def test_a_converged_host_is_left_alone(requested: dict[str, Any]) -> None:
    assert sysctl_differs(requested, from_dict(converged(requested))) is False
    assert limits_differ(requested, from_dict(converged(requested))) is False


def test_the_file_of_a_module_whose_settings_came_in_another_order_is_the_planned_one() -> None:
    """Ansible hands a module its arguments in the order of their names."""
    requested = intent()
    facts = converged(requested)
    ordered = dict(sorted(sysctl_settings(requested).items()))
    assert list(ordered) != list(sysctl_settings(requested))
    facts["files"].update(on_host(sysctl_files(ordered)))
    assert sysctl_differs(requested, from_dict(facts)) is False


@pytest.mark.parametrize("facts", [None, {}, {"files": None, "sysctl": None, "limits": None}])
def test_facts_that_do_not_report_prove_nothing(facts: dict[str, Any] | None) -> None:
    assert sysctl_differs(intent(1), from_dict(facts)) is True
    assert limits_differ(intent(memlock=False), from_dict(facts)) is True


IGNORE = "net.ipv4.conf.all.arp_ignore"
SYSCTL_FAULTS = [
    pytest.param({"live": {IGNORE: "0"}}, id="live"),
    pytest.param({"live": {IGNORE: None}}, id="no such key"),
    pytest.param({"boot": {IGNORE: None}}, id="not at boot"),
    pytest.param({"boot": {IGNORE: {"value": "0", "file": "/usr/lib/sysctl.d/zz.conf"}}}, id="overridden at boot"),
]


@pytest.mark.parametrize("fault", SYSCTL_FAULTS)
def test_a_setting_that_differs(fault: dict[str, Any]) -> None:
    facts = converged(intent())
    for part, values in fault.items():
        facts["sysctl"][part].update(values)
    assert sysctl_differs(intent(), from_dict(facts)) is True


@pytest.mark.parametrize("part", ["live", "boot"])
def test_a_setting_that_was_not_read(part: str) -> None:
    facts = converged(intent())
    del facts["sysctl"][part][IGNORE]
    assert sysctl_differs(intent(), from_dict(facts)) is True


def test_our_file_differs_although_the_values_are_right() -> None:
    facts = converged(intent())
    facts["files"][FILE]["mode"] = 0o600
    assert sysctl_differs(intent(), from_dict(facts)) is True
    del facts["files"][FILE]
    assert sysctl_differs(intent(), from_dict(facts)) is True


def test_our_file_of_settings_that_nobody_wants_any_more() -> None:
    assert sysctl_differs(intent(1), from_dict(converged(intent()))) is True


MEMLOCKS = [
    ({"service_memlock": {"unlimited": False, "bytes": 8388608}}, True),
    ({"service_memlock": None}, True),
    (None, True),
    ({"service_memlock": {"unlimited": True, "bytes": None}}, False),
]


@pytest.mark.parametrize(("limits", "expected"), MEMLOCKS)
def test_the_limit_of_services(limits: dict[str, Any] | None, expected: bool) -> None:
    assert limits_differ(intent(), from_dict({**converged(intent()), "limits": limits})) is expected
    unasked = intent(memlock=False)
    assert limits_differ(unasked, from_dict({**converged(unasked), "limits": limits})) is False


OPEN_FILES = [
    ({"service_open_files": 1024}, True),
    ({"service_open_files": None}, True),
    ({}, True),
    ({"service_open_files": 262144}, False),
]


@pytest.mark.parametrize(("limits", "expected"), OPEN_FILES)
def test_the_files_that_a_service_may_open(limits: dict[str, Any], expected: bool) -> None:
    requested = intent(memlock=False, open_files=131072)
    assert limits_differ(requested, from_dict({**converged(requested), "limits": limits})) is expected


@pytest.mark.parametrize(("removed", "expected"), [(True, True), (False, False), (None, False)])
def test_what_logind_removes(removed: bool | None, expected: bool) -> None:
    requested = intent(memlock=False, keep_ipc=True)
    assert limits_differ(requested, from_dict({**converged(requested), "limits": {"remove_ipc": removed}})) is expected


def in_subnets(*addresses: str) -> dict[str, Any]:
    return {**intent(0), "rails": [{**lab_rails()[0], "address": address} for address in addresses]}


NEIGHBORS = [
    pytest.param(in_subnets(), None, id="no rails"),
    pytest.param(in_subnets("10.0.0.1/24", "10.0.1.1/24"), None, id="508 fit"),
    pytest.param(in_subnets("10.0.0.1/31"), None, id="a cable"),
    pytest.param(in_subnets("10.0.0.1/23"), None, id="510 fit"),
    pytest.param(in_subnets("10.0.0.1/24", "10.0.1.1/24", "10.0.2.1/24"), ("1024", "2048", "4096"), id="762"),
    pytest.param(in_subnets(*(f"10.0.{rail}.1/24" for rail in range(8))), ("2048", "4096", "8192"), id="eight rails"),
    pytest.param(in_subnets("10.0.0.1/20"), ("4096", "8192", "16384"), id="a large flat subnet"),
    pytest.param(in_subnets("10.0.0.1/8"), ("65536", "131072", "262144"), id="more than any switch has"),
]


@pytest.mark.parametrize(("requested", "expected"), NEIGHBORS)
def test_the_table_of_neighbors(requested: dict[str, Any], expected: tuple[str, str, str] | None) -> None:
    keys = [f"net.ipv4.neigh.default.gc_thresh{number}" for number in (1, 2, 3)]
    assert neighbor_settings(requested) == (dict(zip(keys, expected, strict=True)) if expected else {})


def test_the_users_size_of_the_table_wins() -> None:
    requested = in_subnets("10.0.0.1/20")
    requested["host"]["sysctl"] = {"net.ipv4.neigh.default.gc_thresh3": 9000}
    found = sysctl_settings(requested)
    assert (found["net.ipv4.neigh.default.gc_thresh3"], found["net.ipv4.neigh.default.gc_thresh1"]) == ("9000", "4096")


@pytest.mark.parametrize("path", [host_limits.LOGIN_FILE, host_limits.SYSTEM_FILE, host_limits.USER_FILE])
def test_each_file_of_the_limit_counts(path: str) -> None:
    facts = converged(intent())
    assert limits_differ(intent(memlock=False), from_dict({**facts, "files": {path: facts["files"][path]}})) is True
    facts["files"][path]["sha256"] = "0"
    assert limits_differ(intent(), from_dict(facts)) is True
