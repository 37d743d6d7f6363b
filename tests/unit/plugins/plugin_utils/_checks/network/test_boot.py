# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is found of the next boot of a rail's interface."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import PENDING
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.boot import check_boot
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_rails

OURS = "etc/systemd/network/60-rdma-rail0.network"


def finding(**changes: Any) -> Finding:
    """network.boot of rail 0 of a lab machine with changes of what was read of it."""
    facts = lab_facts()
    facts["files"].update(changes.pop("files", {}))
    facts["units"]["systemd-networkd.service"].update(changes.pop("unit", {}))
    if changes.get("boot", ()) is None:
        facts["netdevs"]["ens1"]["boot"] = None
    else:
        facts["netdevs"]["ens1"]["boot"].update(changes)
    [found, other] = check_boot("node1", lab_rails(), from_dict(facts), "auto")
    assert (found.stage, found.check, found.host, found.subject) == (
        "network",
        "network.boot",
        "node1",
        "rail 0 (rail0, 0000:21:00.0, ens1)",
    )
    assert other.status == (
        "ok" if facts["units"]["systemd-networkd.service"]["enabled"] and PENDING not in facts["files"] else other.status
    )
    return found


FINDINGS: list[tuple[dict[str, Any], str, str, str]] = [
    ({}, "ok", f"as planned, from /{OURS}", ""),
    ({"mtu": {"value": "1500", "where": "/run/x.conf:2"}}, "error", "MTUBytes=1500 (/run/x.conf:2)", "remove /run/x.conf:2"),
    ({"mtu": None}, "error", f"/{OURS} has no MTUBytes=", "rdma.cluster.network --limit node1"),
    ({"addresses": []}, "error", f"/{OURS} with its drop-ins has no Address=192.168.100.1/24", "rdma.cluster.network"),
    ({"others": [{"value": "DHCP=yes", "where": "/etc/y.conf:3"}]}, "error", "DHCP=yes (/etc/y.conf:3)", "remove /etc/y.conf:3"),
    ({"file": "/etc/systemd/network/50-a.network"}, "error", "50-a.network applies to ens1", "remove ens1 from [Match] of /etc/"),
    ({"file": "/run/systemd/network/10-netplan-ens1.network"}, "error", "applies to ens1", "remove ens1 from /etc/netplan"),
    ({"file": None}, "error", f"/{OURS} is missing", "rdma.cluster.network"),
    ({"undecided": [{"value": "[Match] Host=a", "where": "/etc/a"}]}, "unknown", "/etc/a ([Match] Host=a)", "networkctl status ens1"),
    ({"unit": {"enabled": False}}, "error", "systemd-networkd.service is not enabled", "rdma.cluster.network"),
    ({"boot": None}, "unknown", "the files of systemd-networkd.service were not read", "networkctl status ens1"),
    ({"files": {PENDING: {}}}, "warning", "has not loaded the file yet", "rdma.cluster.network"),
]


SIX = "2001:db8:100::1/64"


@pytest.mark.parametrize(
    ("addresses", "advertisements", "status", "observed"),
    [
        (["2001:DB8:100:0::1/64", "192.168.100.1/24"], None, "ok", "as planned"),
        ([SIX], None, "error", f"/{OURS} with its drop-ins has no Address=192.168.100.1/24"),
        ([SIX, "192.168.100.1/24", "2001:db8::9/64"], None, "error", "Address=2001:db8::9/64 (/x:1)"),
        ([SIX, "192.168.100.1/24"], {"value": "IPv6AcceptRA=yes", "where": "/x:2"}, "error", "IPv6AcceptRA=yes (/x:2)"),
    ],
)
def test_all_addresses_of_a_rail_are_compared(
    addresses: list[str], advertisements: dict[str, str] | None, status: str, observed: str
) -> None:
    facts = lab_facts()
    lines = [{"value": each, "where": "/x:1"} for each in addresses]
    facts["netdevs"]["ens1"]["boot"].update(addresses=lines, advertisements=advertisements)
    rails = [{**lab_rails()[0], "address": SIX, "addresses": ["192.168.100.1/24"]}, lab_rails()[1]]
    found = check_boot("node1", rails, from_dict(facts), "auto")[0]
    assert (found.status, found.observed[: len(observed)]) == (status, observed)
    assert f"address {SIX}, 192.168.100.1/24" in found.expected


def test_advertisements_do_not_matter_on_a_rail_of_ipv4() -> None:
    assert finding(advertisements={"value": "IPv6AcceptRA=yes", "where": "/x:2"}).status == "ok"


@pytest.mark.parametrize(("changes", "status", "observed", "remedy"), FINDINGS)
def test_the_finding(changes: dict[str, Any], status: str, observed: str, remedy: str) -> None:
    found = finding(**changes)
    assert found.status == status
    assert observed in found.observed
    assert remedy in found.remedy


PROFILE = "/etc/NetworkManager/system-connections/60-rdma-rail0.nmconnection"
NM_ON = {"active": True, "enabled": True}
NM_PROFILE = {
    "file": PROFILE,
    "mtu": {"value": "9000", "where": f"{PROFILE}:12"},
    "addresses": [{"value": "192.168.100.1/24", "where": f"{PROFILE}:16"}],
    "others": [],
    "undecided": [],
    "source": None,
}
RELEASED = {"file": f"/{OURS}", "others": [{"value": "Unmanaged=yes", "where": f"/{OURS}:6"}], "mtu": None, "addresses": []}


def by_networkmanager(**changes: Any) -> Finding:
    """The same on a host with NetworkManager, where systemd-networkd runs as well and releases the rail."""
    facts = lab_facts()
    facts["network_backend"] = "networkmanager"
    facts["units"]["NetworkManager.service"] = changes.pop("unit", NM_ON)
    facts["files"][PROFILE] = {}
    if changes.pop("missing", False):
        del facts["files"][PROFILE]
    facts["netdevs"]["ens1"]["boot"].update(changes.pop("networkd", RELEASED))
    facts["netdevs"]["ens1"]["profile"] = {**NM_PROFILE, **changes} if changes.get("profile", ()) is not None else None
    return check_boot("node1", lab_rails(), from_dict(facts), "auto")[0]


BY_NM: list[tuple[dict[str, Any], str, str, str]] = [
    ({}, "ok", f"as planned, from {PROFILE}", ""),
    ({"mtu": None}, "error", f"{PROFILE} has no mtu=", "rdma.cluster.network --limit node1"),
    ({"addresses": []}, "error", f"{PROFILE} has no address1=192.168.100.1/24", "rdma.cluster.network"),
    ({"file": "/etc/lan.nmconnection"}, "error", "/etc/lan.nmconnection applies to ens1", "connection.autoconnect no"),
    ({"file": "/etc/lan.nmconnection", "missing": True}, "error", f"{PROFILE} is missing", "rdma.cluster.network"),
    ({"file": None}, "error", f"{PROFILE} is missing", "rdma.cluster.network"),
    (
        {"file": None, "others": [{"value": "managed=0", "where": "/etc/NetworkManager/conf.d/9.conf:3"}]},
        "error",
        "NetworkManager.service leaves ens1 alone: managed=0 (/etc/NetworkManager/conf.d/9.conf:3)",
        "1. On node1, remove /etc/NetworkManager/conf.d/9.conf:3. 2. Run",
    ),
    ({"undecided": [{"value": "mac", "where": "/etc/a"}]}, "unknown", "/etc/a (mac)", "nmcli device show ens1"),
    ({"unit": {"active": True, "enabled": False}}, "error", "is not enabled", "1. Run `systemctl enable NetworkManager.service` on node1"),
    ({"profile": None}, "unknown", "the files of NetworkManager.service were not read", "nmcli device show ens1"),
    ({"networkd": {"others": []}}, "error", f"systemd-networkd.service would configure ens1 as well, by /{OURS}", f"remove /{OURS}"),
    ({"networkd": {"file": None, "others": []}}, "ok", "as planned", ""),
]


@pytest.mark.parametrize(("changes", "status", "observed", "remedy"), BY_NM)
def test_the_finding_of_a_host_with_networkmanager(changes: dict[str, Any], status: str, observed: str, remedy: str) -> None:
    found = by_networkmanager(**changes)
    assert found.status == status
    assert observed in found.observed
    assert remedy in found.remedy


RENDERED, YAML = "/run/systemd/network/10-netplan-rdma-rail0.network", "/etc/netplan/90-rdma-rail0.yaml"


@pytest.mark.parametrize(
    ("boot", "status", "observed", "remedy"),
    [
        ({"file": RENDERED}, "ok", f"as planned, from {RENDERED}", ""),
        (
            {"file": "/run/systemd/network/10-netplan-ens1.network", "source": "/etc/netplan/50-cloud-init.yaml:7"},
            "error",
            "10-netplan-ens1.network applies to ens1, from /etc/netplan/50-cloud-init.yaml:7",
            "1. On node1, remove ens1 from /etc/netplan/50-cloud-init.yaml:7, then run `netplan generate`",
        ),
    ],
)
def test_the_finding_of_a_host_with_netplan(boot: dict[str, Any], status: str, observed: str, remedy: str) -> None:
    facts = lab_facts()
    facts["files"][YAML] = {}
    facts["netdevs"]["ens1"]["boot"].update(boot)
    found = check_boot("node1", lab_rails(), from_dict(facts), "netplan")[0]
    assert found.status == status
    assert observed in found.observed
    assert remedy in found.remedy
    assert found.expected.startswith(RENDERED)
