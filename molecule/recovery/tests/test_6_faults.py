# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of which each has one cause: validate names that one, once, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab import remote
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.drifts import RESET_SERVICE_LIMIT
from tests.verify.site import Site

NETDEV = "netdev=$(basename $(dirname $(grep -li {mac} /sys/class/net/*/address)))"
#: What `dkms add` of a module leaves (dkms 3.0): to install DKMS itself takes minutes on an emulated machine.
DKMS_ADD = "mkdir -p /usr/src/knem-1.1.4 /var/lib/dkms/knem/1.1.4; ln -s /usr/src/knem-1.1.4 /var/lib/dkms/knem/1.1.4/source"
OTHER = NETDEV.replace("{mac}", "{mac1}").replace("netdev=", "other=")
ROUTABLE = "timeout 60 sh -c 'until networkctl status '$other' | grep -q routable; do sleep 1; done'"
HEADERS = "linux-headers-$(uname -r)"


@dataclass(frozen=True)
class Fault:
    """prepare, cause, fix: run by the node's shell, in which netdev is the interface of its first rail; finding: check and subject."""

    node: str
    cause: str
    fix: str
    finding: tuple[str, str]
    observed: str
    prepare: str = "true"


#: One a node, but for the last two, which meet the same gate on different rails.
FAULTS = (
    Fault("node1", "ip link set dev $netdev down", "ip link set dev $netdev up", ("link.state", "rail 0"), "administratively down"),
    Fault(
        "node2",
        f"dpkg --remove {HEADERS}",
        "rm -r /usr/src/knem-1.1.4 /var/lib/dkms",
        ("preflight.headers", "headers of the running kernel"),
        "/lib/modules",
        prepare=f"dpkg --force-depends --install /srv/packages/{HEADERS}_*.deb; {DKMS_ADD}",
    ),
    Fault("node3", RESET_SERVICE_LIMIT, "systemctl daemon-reexec", ("host.memlock", "memory that a service may lock"), "67108864 bytes"),
    Fault(
        "node4",
        "ip address add 192.168.101.250/24 dev $netdev",
        "ip address del 192.168.101.250/24 dev $netdev",
        ("network.address", "rail 0"),
        "192.168.101.250",
    ),
    Fault(
        "node4",
        f"apt-get -qq -y --no-install-recommends install ifupdown; {OTHER}; "
        'echo "iface $other inet manual" > /etc/network/interfaces; ifup $other',
        # ifdown sets it down: its rightful manager takes it up again.
        f"{OTHER}; ifdown --force $other; apt-get -qq -y purge ifupdown; networkctl reconfigure $other; {ROUTABLE}",
        ("network.manager", "rail 1"),
        "ifupdown",
    ),
)


def run(lab: Lab, node: Node, command: str) -> None:
    words = command.replace("{mac1}", node.rails[1].mac)
    done = remote.execute(node, lab.folder, f"set -e; {NETDEV.format(mac=node.rails[0].mac)}; {words}", timeout_seconds=300)
    assert done.status == 0, f"{node.name}: {words}: {done.stderr}"


@pytest.fixture
def faults(lab: Lab) -> Iterator[tuple[Fault, ...]]:
    for fault in FAULTS:
        run(lab, lab.plan.node(fault.node), fault.prepare)
        run(lab, lab.plan.node(fault.node), fault.cause)
    yield FAULTS
    for fault in FAULTS:
        run(lab, lab.plan.node(fault.node), fault.fix)


@pytest.mark.fault("second-manager-of-an-interface")
def test_each_cause_is_one_error(site: Site, faults: tuple[Fault, ...]) -> None:
    done = site.run("validate", "-e", json.dumps({"rdma_gate": {"policy": "quarantine", "max_failed_percent": 100}}))

    errors = stopping(site)
    seen = {(line["host"], line["check"]): line for line in errors}
    assert set(seen) == {(fault.node, fault.finding[0]) for fault in faults}, done.stdout
    assert len(errors) == len(faults), done.stdout
    for fault in faults:
        line = seen[fault.node, fault.finding[0]]
        assert line["subject"].startswith(fault.finding[1]), line
        assert fault.observed in line["observed"], line
        assert line["remedy"], line


def test_a_fixed_cluster_validates(lab: Lab, site: Site) -> None:
    done = site.run("validate")
    assert stopping(site) == [], done.stdout
    # A host that left before would have none.
    judged = {line["host"] for line in site.lines("findings.jsonl") if (line["stage"], line["status"]) == ("network", "ok")}
    assert judged == {node.name for node in lab.plan.nodes}, done.stdout


def stopping(site: Site) -> list[dict[str, str]]:
    """What stops a gate, but for pairs: a host that left at an earlier gate has none."""
    return [line for line in site.lines("findings.jsonl") if line["status"] in ("error", "unknown") and line["stage"] != "pairs"]
