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
    [found, other] = check_boot("node1", lab_rails(), from_dict(facts))
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
    ({"boot": None}, "unknown", "the .network files were not read", "networkctl status ens1"),
    ({"files": {PENDING: {}}}, "warning", "has not loaded the file yet", "rdma.cluster.network"),
]


@pytest.mark.parametrize(("changes", "status", "observed", "remedy"), FINDINGS)
def test_the_finding(changes: dict[str, Any], status: str, observed: str, remedy: str) -> None:
    found = finding(**changes)
    assert found.status == status
    assert observed in found.observed
    assert remedy in found.remedy
