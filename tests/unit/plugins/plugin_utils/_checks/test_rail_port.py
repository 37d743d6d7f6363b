# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all checks on links, counters, PCIe and modules have in common, and that facts which report less do not upset them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.counters import check_counters
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.link import check_link
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.optic import check_optic
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie import check_pcie
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import rail_ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, card_facts, card_rails, infiniband_rails

#: What facts have always had; resolve() of _rails reads it as well.
ALWAYS = {("devices",), ("netdevs",), ("devices", "*"), ("netdevs", "*"), ("devices", "*", "ports"), ("devices", "*", "ports", "*")}
ALWAYS |= {("devices", "*", "ports", "*", "netdev")}
#: A bridge is what has an address, a narrowest link what has all three.
PARTS = ("address", "speed_gtps", "width")


def whole(link_layer: str) -> dict[str, Any]:
    """Facts with every part of the tree that these checks read."""
    facts = card_facts(link_layer)
    facts["gpus"] = [{"address": "0000:3f:00.0", "model": None}]
    facts["distances"] = {"0000:3f:00.0": {"mlx5_0": "PIX", "mlx5_1": "SYS"}}
    facts["iommu"] = {"present": True, "mode": "off", "virtual_machine": False}
    facts["since"] = {"run": "r", "seconds": 60.0, "devices": {"mlx5_0": {"1": {"symbol_error": 3}}}, "netdevs": {"ens1np0": {}}}
    power = {"value": 0.5, "low_alarm": 0.1, "low_warning": 0.2, "high_warning": 2.0, "high_alarm": 3.0}
    facts["netdevs"]["ens1np0"]["ethtool"]["optic"] = {
        "identifier": "QSFP56",
        "vendor": "ACME",
        "part_number": "Q1",
        "serial": "S1",
        "length_m": None,
        "temperature_celsius": {"value": 40.0},
        "voltage_volt": None,
        "lanes": [{"rx_power_mw": power, "tx_power_mw": power, "tx_bias_ma": None}],
        "alarms": [],
    }
    return facts


def paths(tree: Any, here: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield (*here, key)
            yield from paths(value, (*here, key))


def is_needed(path: tuple[str, ...]) -> bool:
    if path[0] == "since" or (path[0] == "distances" and len(path) == 2):
        return len(path) > 1
    general = tuple("*" if index in (1, 3) and path[0] in ("devices", "netdevs") else part for index, part in enumerate(path))
    return (
        general in ALWAYS or path[-2:] in {("narrowest", part) for part in PARTS} or path[-2:] == ("pci", "address") or "optic" in path[:-1]
    )


def changed(facts: dict[str, Any], path: tuple[str, ...], *, null: bool) -> dict[str, Any]:
    """The facts without one key, or with null for it."""
    tree = copy.deepcopy(facts)
    inner = tree
    for part in path[:-1]:
        inner = inner[part]
    if null:
        inner[path[-1]] = None
    else:
        del inner[path[-1]]
    return tree


def everything(facts: dict[str, Any], rails: list[dict[str, Any]]) -> list[Finding]:
    checks, reported = (check_link, check_counters, check_optic), from_dict(facts)
    of_rails = [finding for check in checks for finding in check(HOST, rails, reported)]
    return [*of_rails, *(finding for stage in ("preflight", "link") for finding in check_pcie(HOST, rails, reported, stage))]


@pytest.mark.parametrize("null", [True, False], ids=["null", "missing"])
@pytest.mark.parametrize("link_layer", ["Ethernet", "InfiniBand"])
def test_no_part_of_the_facts_is_indispensable(link_layer: str, *, null: bool) -> None:
    facts = whole(link_layer)
    tried = [path for path in paths(facts) if not is_needed(path)]
    assert len(tried) > 100
    for path in tried:
        for planned in (None, 400):
            rails = card_rails(planned) if link_layer == "Ethernet" else infiniband_rails(planned)
            found = everything(changed(facts, path, null=null), rails)
            assert found, path
            assert all(finding.observed and finding.expected for finding in found), path
            assert [
                finding.remedy for finding in found if finding.status in ("error", "warning", "unknown") and not finding.remedy
            ] == [], path


def test_no_rail_is_no_finding_but_on_the_host() -> None:
    assert [finding.check for finding in everything(card_facts(), [])] == ["host.iommu"]


def test_every_remedy_names_the_host() -> None:
    facts = whole("Ethernet")
    facts["devices"]["mlx5_0"]["ports"]["1"].update(rate_gbps=100.0, speed="EDR")
    facts["netdevs"]["ens1np0"]["ethtool"]["speed_mbps"] = 100000
    facts["devices"]["mlx5_0"]["pci"].update(speed_gtps=16.0, mrrs_bytes=512, mps_bytes=128)
    facts["devices"]["mlx5_0"]["pci"]["hops"][0]["acs"] = ["ReqRedir"]
    facts["iommu"]["mode"] = "translated"
    found = [finding for finding in everything(facts, card_rails()) if finding.remedy]
    assert len(found) > 6
    assert [finding.check for finding in found if HOST not in finding.remedy] == []


def test_rails_in_the_order_of_the_plan() -> None:
    assert [port.name for port in rail_ports("link", HOST, card_rails(), from_dict(card_facts()))] == ["mlx5_0/1", "mlx5_1/1"]


def test_what_is_software() -> None:
    facts = card_facts()
    facts["devices"]["mlx5_1"]["software"] = True
    assert [port.software for port in rail_ports("link", HOST, card_rails(), from_dict(facts))] == [False, True]
    assert [port.software for port in rail_ports("link", HOST, card_rails(soft=True), from_dict(card_facts()))] == [True, True]


def test_the_command_that_reports_most() -> None:
    looks = {kind: rail_ports("link", HOST, rails, from_dict(card_facts(kind)))[0].look for kind, rails in
             (("Ethernet", card_rails()), ("InfiniBand", infiniband_rails()))}  # fmt: skip
    assert looks == {"Ethernet": "`ethtool ens1np0` and `ethtool -m ens1np0`", "InfiniBand": "`mstlink -d 0000:3d:00.0 -m -c`"}


def test_of_a_rail_that_was_found_nowhere_there_is_nothing() -> None:
    rails = card_rails(nic={"mac": "00:00:00:00:00:01"})
    (port, _other) = rail_ports("link", HOST, rails, from_dict(card_facts()))
    assert (port.device, port.port, port.netdev, port.address) == (None, None, None, "00:00:00:00:00:01")
