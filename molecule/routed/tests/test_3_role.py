# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook that configures switches and hosts that speak BGP, with the real Ansible and FRR, to its end: what it shows, what it
refuses, and that it keeps sessions.

The nodes are reached by a program that runs Python inside their namespaces. systemd is missing there, so FRR runs already. The NICs of the
hosts are stand-ins (tests/verify/clos_site.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from lab import clos
from lab.clos import Clos
from lab.clos_hosts import NEW_CONF
from lab.clos_plan import ClosShape
from tests.verify.clos import address_hosts, findings, is_clean, plan_of, summary, texts, until
from tests.verify.clos_site import run_playbook, write_inventory
from tests.verify.clos_start import start

#: All but leaf2 may be configured at first, as by `frr_allowed: true` in the inventory.
ALLOWED = ("leaf1", "spine1", "spine2", "host1", "host2")


@pytest.fixture
def bed() -> Iterator[Clos]:
    """A network whose switches are as planned without BGP on the hosts. FRR of the hosts runs as after its installation."""
    network = clos.up("mrole", ClosShape(2, 2, 1))
    try:
        before = plan_of(network)
        start(network, {**texts(before), **dict.fromkeys(network.shape.host_names, NEW_CONF)})
        until(lambda: is_clean(findings(network, before)), 20, 0.3)
        yield network
    finally:
        clos.down("mrole")


@pytest.fixture
def plane(bed: Clos) -> RoutedPlane:
    plane = plan_of(bed, hosts_peer=True)
    address_hosts(bed, plane)
    return plane


@pytest.fixture
def site(bed: Clos, plane: RoutedPlane, tmp_path: Path) -> Path:
    write_inventory(bed, plane, tmp_path, nics=True)
    (tmp_path / "host_vars").mkdir()
    for name in ALLOWED:
        (tmp_path / "host_vars" / f"{name}.yml").write_text(yaml.safe_dump({"frr_allowed": True}))
    return tmp_path


def play(site: Path, *words: str) -> tuple[str, dict[str, str]]:
    """Run the playbook to its end. Returns its output, and node → the number of its changes."""
    done = run_playbook(site, "routed.yml", "-e", "rdma_serial=4", *words)
    assert done.returncode == 0, done.stdout
    return done.stdout, dict(re.findall(r"^(\w+) +: ok=.*? changed=(\d+)", done.stdout, re.MULTILINE))


def sessions(network: Clos, node: str) -> dict[str, int]:
    """Return the uplinks of a leaf → how often their session ended."""
    return {port: peer["connectionsDropped"] for port, peer in summary(network, node).items() if port in ("swp1", "swp2")}


def test_the_playbook_ends_with_bgp_on_the_hosts_and_refuses_another_asn_and_a_foreign_file(
    bed: Clos, plane: RoutedPlane, site: Path
) -> None:
    """All differ in one run: a leaf and the hosts are configured, a leaf is not allowed, two spines are refused."""
    planned = {name: (bed.folder.node(name) / "etc/frr.conf").read_text() for name in ("spine1", "spine2")}
    foreign = bed.folder.node("spine2") / "etc/frr.conf"
    start(bed, {"spine1": planned["spine1"].replace("4200000001", "4200000099")})
    foreign.write_text("router bgp 65000\n")
    for leaf, asn in (("leaf1", 4200000101), ("leaf2", 4200000102)):
        without = (f"router bgp {asn}", "no bgp bestpath as-path multipath-relax")
        bed.run(leaf, "vtysh", *(word for line in ("configure terminal", *without) for word in ("-c", line)))
    until(lambda: all(peer["state"] == "Established" for peer in summary(bed, "spine1").values()), 20)
    dropped = sessions(bed, "leaf1")

    done, changed = play(site)
    # Without frr_allowed, every difference is shown and nothing is changed.
    assert "frr_required" in done
    assert "add: router bgp 4200000102" in done
    assert "multipath-relax" not in bed.run("leaf2", "vtysh", "-c", "show running-config")
    assert "the plan has ASN 4200000001 and FRR 4200000099" in done
    assert "/etc/frr/frr.conf has lines of others (router bgp 65000" in done
    assert foreign.read_text() == "router bgp 65000\n"
    assert changed == {"host1": "1", "host2": "1", "leaf1": "1", "leaf2": "0", "spine1": "0", "spine2": "0"}
    assert sessions(bed, "leaf1") == dropped
    for host in plane.hosts:
        assert (bed.folder.node(host) / "etc/frr.conf").read_text() == texts(plane)[host]

    foreign.write_text(planned["spine2"])
    start(bed, {"spine1": planned["spine1"]})
    again, changed = play(site, "-e", "frr_allowed=true")
    # What the first run has done is done; what it refused is done now that the causes are gone.
    assert changed == {"host1": "0", "host2": "0", "leaf1": "0", "leaf2": "1", "spine1": "1", "spine2": "1"}
    assert "frr_required" not in again
    until(lambda: is_clean(findings(bed, plane)), 20, 0.3)
