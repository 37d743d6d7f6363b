# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the preflight stage on one host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preflight import (
    GIB_BYTES,
    SUPPORTED_WORDS,
    check_firewall,
    check_preflight,
    check_space,
    check_ssh,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import PERFTEST_PORT, RENDEZVOUS_PORT
from tests.unit.builders.hosts import lab_facts, lab_rails


def check(distribution: tuple[str | None, str | None] = ("debian", "12"), kernel: str | None = "6.1.0-56-amd64") -> list[Finding]:
    facts = lab_facts()
    facts["stack"]["distribution"].update(id=distribution[0], version_id=distribution[1])
    facts["stack"]["kernel"] = kernel
    return check_preflight("node1", from_dict(facts))


def test_a_lab_machine_passes() -> None:
    assert check_preflight("node1", from_dict(lab_facts())) == [
        Finding("preflight", "preflight.os", "node1", "distribution", "ok", "debian 12", SUPPORTED_WORDS),
        Finding("preflight", "preflight.kernel", "node1", "running kernel", "ok", "6.1.0-56-amd64", "5.4 or newer"),
    ]


DISTRIBUTIONS = [
    ("debian", "12", "ok"),
    ("debian", "13", "ok"),
    ("debian", "11", "error"),
    # Debian's testing has no number.
    ("debian", None, "error"),
    ("ubuntu", "22.04", "ok"),
    ("ubuntu", "24.04", "ok"),
    ("ubuntu", "20.04", "error"),
    ("ubuntu", "12", "error"),
    ("rhel", "9.4", "ok"),
    ("rhel", "9", "ok"),
    ("rocky", "9.6", "ok"),
    ("rhel", "8.10", "error"),
    ("rocky", "8.9", "error"),
    ("rhel", "10.0", "error"),
    ("rhel", "90", "error"),
    ("rhel", None, "error"),
    ("debian", "12.1", "error"),
    ("fedora", "9", "error"),
    ("opensuse-leap", "15.6", "error"),
    (None, None, "unknown"),
]


@pytest.mark.parametrize(("name", "version", "status"), DISTRIBUTIONS)
def test_the_distribution(name: str | None, version: str | None, status: str) -> None:
    found = check((name, version))[0]
    assert (found.check, found.status) == ("preflight.os", status)
    assert bool(found.remedy) is (status != "ok")


def test_a_distribution_that_is_not_supported_is_named_with_what_is() -> None:
    found = check(("opensuse-leap", "15.6"))[0]
    assert (found.observed, found.expected) == ("opensuse-leap 15.6", "Debian 12 or 13, Ubuntu 22.04 or 24.04, RHEL or Rocky 9")
    assert found.remedy == "Install a supported distribution on node1, or exclude it from the play: `--limit 'all:!node1'`."


@pytest.mark.parametrize(
    ("name", "version", "reason"),
    [("ubuntu", "20.04", "support ended"), ("rhel", "8.10", "ansible-core"), ("rocky", "8.9", "ansible-core"), ("rhel", "8", "3.6")],
)
def test_a_distribution_that_is_refused_has_its_reason(name: str, version: str, reason: str) -> None:
    found = check((name, version))[0]
    assert (found.status, found.observed.startswith(f"{name} {version}: ")) == ("error", True)
    assert reason in found.observed


KERNELS = [
    ("6.1.0-56-amd64", "ok"),
    ("5.4.0-200-generic", "ok"),
    ("5.15.0-25-generic", "ok"),
    ("10.0", "ok"),
    ("5.3.18-150300.59", "error"),
    ("4.19.0-27-amd64", "error"),
    ("", "unknown"),
    ("linux", "unknown"),
    ("linux-6.1", "unknown"),
    (None, "unknown"),
]


@pytest.mark.parametrize(("release", "status"), KERNELS)
def test_the_kernel(release: str | None, status: str) -> None:
    found = check(kernel=release)[1]
    assert (found.check, found.status, found.expected) == ("preflight.kernel", status, "5.4 or newer")
    assert ("node1" in found.remedy) is (status != "ok")


def space(free_gib: float, size_gib: float = 100) -> dict[str, int]:
    return {"free_bytes": int(free_gib * GIB_BYTES), "size_bytes": int(size_gib * GIB_BYTES)}


def spaces(filesystems: Any, threshold: float | None = None) -> list[tuple[str, str, str, str]]:
    found = check_space("node1", from_dict({"filesystems": filesystems}), threshold)
    assert {(finding.stage, finding.check, finding.host) for finding in found} == {("preflight", "preflight.disk", "node1")}
    assert all(bool(finding.remedy) is (finding.status != "ok") for finding in found)
    return [(finding.subject, finding.status, finding.observed, finding.expected) for finding in found]


def test_each_file_system_has_room_of_its_own() -> None:
    assert spaces({"/": space(20), "/boot": space(0.09, 1), "/var": space(0.5, 50)}) == [
        ("space in /", "ok", "20.00 GiB free", "1 GiB free"),
        ("space in /var", "error", "0.50 GiB free", "1 GiB free"),
        ("space in /boot", "error", "0.09 GiB free", "0.1 GiB free"),
    ]


def test_one_full_file_system_under_several_paths_is_one_error() -> None:
    nearly = {"free_bytes": int(0.4 * GIB_BYTES) - 4096, "size_bytes": 100 * GIB_BYTES}
    assert spaces({"/": space(0.4), "/boot": nearly, "/var": nearly}) == [
        ("space in /, /var, /boot", "error", "0.40 GiB free", "1 GiB free")
    ]


def test_a_threshold_replaces_the_limit_but_not_that_of_boot() -> None:
    seen = {"/": space(3), "/boot": space(0.2, 1)}
    assert [status for _subject, status, _observed, _expected in spaces(seen, 5)] == ["error", "ok"]
    assert [status for _subject, status, _observed, _expected in spaces(seen, 2.5)] == ["ok", "ok"]
    assert [status for _subject, status, _observed, _expected in spaces({"/": space(0)}, 0)] == ["ok"]


@pytest.mark.parametrize("filesystems", [None, {}])
def test_space_that_was_not_read_is_unknown(filesystems: Any) -> None:
    assert spaces(filesystems) == [("space in /", "unknown", "not read", "known")]


@pytest.mark.parametrize(
    ("path", "words"), [("/boot", "remove old kernels"), ("/var", "journalctl --vacuum-size"), ("/", "journalctl --vacuum-size")]
)
def test_how_to_make_room(path: str, words: str) -> None:
    (finding,) = stopping(check_space("node1", from_dict({"filesystems": {"/": space(9), path: space(0.01, 7)}})))
    assert words in finding.remedy
    assert f"`df -h {path}`" in finding.remedy


def ssh(session: Any, **netdevs: Any) -> Finding:
    facts = {**lab_facts(), "session": session}
    for name, changes in netdevs.items():
        facts["netdevs"].setdefault(name, {}).update(changes)
    (finding,) = check_ssh("node1", lab_rails(), from_dict(facts))
    assert (finding.stage, finding.check, finding.host) == ("preflight", "preflight.ssh", "node1")
    return finding


def test_a_session_on_the_management_interface() -> None:
    finding = ssh({"address": "10.0.2.15", "netdev": "enp0s2"})
    assert (finding.status, finding.observed) == ("ok", "enp0s2")


@pytest.mark.parametrize(
    ("session", "netdevs"),
    [
        ({"address": "192.168.100.1", "netdev": "ens1"}, {}),
        ({"address": "192.168.100.1", "netdev": None}, {}),
        ({"address": "10.9.0.1", "netdev": "ens1.9"}, {}),
        ({"address": "10.9.0.1", "netdev": "bond0"}, {"ens1": {"master": "bond0"}}),
    ],
    ids=["interface", "address", "VLAN", "bond"],
)
def test_a_session_on_a_rail(session: dict[str, Any], netdevs: dict[str, Any]) -> None:
    finding = ssh(session, **netdevs)
    assert finding.status == "error"
    assert "rail 0 (rail0, 0000:21:00.0, ens1)" in finding.observed
    assert "ansible_host" in finding.remedy


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (None, "does not use SSH"),
        ({}, "does not use SSH"),
        ({"address": None, "netdev": None}, "does not use SSH"),
        ({"address": "10.7.7.7", "netdev": None}, "no interface has its address 10.7.7.7"),
    ],
)
def test_a_session_that_cannot_be_placed_says_so_and_stops_nobody(session: Any, words: str) -> None:
    finding = ssh(session)
    assert finding.status == "not_applicable"
    assert words in finding.observed


def test_a_session_is_unknown_if_the_addresses_were_not_read() -> None:
    facts = lab_facts()
    netdevs = {name: {**each, "ipv4": None} for name, each in facts["netdevs"].items()}
    for address, status in (("10.7.7.7", "unknown"), ("fe80::7", "not_applicable")):
        session = {"address": address, "netdev": None}
        (finding,) = check_ssh("node1", lab_rails(), from_dict({**facts, "session": session, "netdevs": netdevs}))
        assert finding.status == status


@pytest.mark.parametrize(("count", "words"), [(4, "eth0, eth1, eth2, eth3"), (6, "eth0, eth1, eth2, eth3 and 2 more")])
def test_of_many_interfaces_without_addresses_four_are_named(count: int, words: str) -> None:
    netdevs = {f"eth{number}": {"ipv4": None} for number in range(count)}
    (finding,) = check_ssh("node1", [], from_dict({"session": {"address": "10.7.7.7", "netdev": None}, "netdevs": netdevs}))
    assert finding.observed == f"its address is 10.7.7.7; the addresses of {words} were not read"


def firewall(units: Any, **rail: Any) -> Finding:
    (finding,) = check_firewall("node1", [{**each, **rail} for each in lab_rails()], from_dict({"units": units}))
    assert (finding.stage, finding.check, finding.host) == ("preflight", "preflight.firewall", "node1")
    return finding


@pytest.mark.parametrize("units", [None, {}, {"systemd-networkd.service": {"active": True, "enabled": True}}])
def test_a_firewall_that_nobody_asked_about(units: Any) -> None:
    assert firewall(units).status == "unknown"
    assert firewall(units).remedy.startswith("Run `systemctl is-active ")


def test_no_active_firewall() -> None:
    finding = firewall({"ufw.service": {"active": False, "enabled": True}, "firewalld.service": {"active": False, "enabled": False}})
    assert (finding.status, finding.observed) == ("ok", "none of firewalld.service, ufw.service is active")


def test_an_active_firewall_is_reported_with_what_must_pass() -> None:
    finding = firewall({"firewalld.service": {"active": True, "enabled": True}}, soft=True)
    assert (finding.status, finding.observed) == ("warning", "firewalld.service active")
    for words in (
        "UDP 4791",
        f"TCP {RENDEZVOUS_PORT} and up",
        f"{PERFTEST_PORT} and up",
        "ip_local_port_range",
        "`firewall-cmd --list-all`",
    ):
        assert words in finding.remedy


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        ({"backend": "nftables", "opened": ["*"]}, "ok"),
        ({"backend": "nftables", "opened": []}, "warning"),
        ({"backend": "nftables", "opened": ["*"], "others": ["ufw"]}, "warning"),
        ({"backend": "nftables", "opened": [], "unread": "nft fails"}, "unknown"),
        (None, "warning"),
    ],
)
def test_an_active_firewall_that_our_rules_open(seen: Any, status: str) -> None:
    facts = lab_facts()
    facts["units"]["nftables.service"] = {"active": True, "enabled": True}
    facts["firewall"] = seen
    [finding] = check_firewall("node1", normalize({"rdma_rails": lab_rails()})["rails"], from_dict(facts))
    assert finding.status == status
    if status == "ok":
        assert finding.observed == "nftables.service active, and open for the rails"
    elif status == "unknown":
        assert finding.observed == "nftables.service active; its rules were not read: nft fails"
    else:
        assert "rdma.cluster.network --limit node1 -e firewall_allowed=true" in finding.remedy


def test_roce_of_a_nic_is_not_filtered() -> None:
    finding = firewall({"ufw.service": {"active": True, "enabled": True}}, soft=False)
    assert "4791" not in finding.remedy
    assert "`ufw status`" in finding.remedy
