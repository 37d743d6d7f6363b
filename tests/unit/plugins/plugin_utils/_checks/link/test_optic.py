# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the link stage on the modules of rails."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.optic import check_optic
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, card_facts, card_rails, first_netdev, first_port, infiniband_rails
from tests.unit.builders.hosts import lab_facts, lab_rails

POWER_LIMITS = {"low_alarm": 0.05, "low_warning": 0.1, "high_warning": 2.0, "high_alarm": 3.0}
HEAT_LIMITS = {"low_alarm": -5.0, "low_warning": 0.0, "high_warning": 70.0, "high_alarm": 75.0}


def lane(rx_power_mw: float) -> dict[str, Any]:
    return {
        "rx_power_mw": {"value": rx_power_mw, **POWER_LIMITS},
        "tx_power_mw": {"value": 1.0, **POWER_LIMITS},
        "tx_bias_ma": {"value": 7.5},
    }


def optic(**changes: Any) -> dict[str, Any]:
    good = {
        "identifier": "QSFP56",
        "vendor": "ACME",
        "part_number": "SR4",
        "serial": "A17",
        "length_m": None,
        "temperature_celsius": {"value": 45.0, **HEAT_LIMITS},
        "voltage_volt": {"value": 3.3},
        "lanes": [lane(1.0), lane(1.0)],
        "alarms": [],
    }
    return {**good, **changes}


def judged(module: dict[str, Any] | None, **port: Any) -> Finding:
    """The finding on rail 0 with this module."""
    facts = card_facts()
    first_netdev(facts)["ethtool"]["optic"] = module
    first_port(facts).update(port)
    finding, _other = check_optic(HOST, card_rails(), from_dict(facts))
    assert (finding.check, finding.stage) == ("link.optic", "link")
    assert bool(finding.remedy) == (finding.status in ("error", "warning"))
    return finding


def test_a_module_inside_its_limits() -> None:
    finding = judged(optic())
    assert (finding.status, finding.observed) == ("ok", "ACME SR4 serial A17 is within its limits")


@pytest.mark.parametrize(
    ("rx_power_mw", "status", "grade"), [(0.01, "error", "alarm"), (0.08, "warning", "warning"), (3.5, "error", "alarm")]
)
def test_a_lane_beyond_its_limits(rx_power_mw: float, status: str, grade: str) -> None:
    finding = judged(optic(lanes=[lane(1.0), lane(rx_power_mw)]))
    assert finding.status == status
    assert finding.observed.startswith(f"ACME SR4 serial A17: rx power of lane 2 is {rx_power_mw:g}, ")
    assert grade in finding.observed
    assert finding.remedy.startswith("1. Clean both ends of the cable of rail 0 on node1")
    assert "On node1, run `ethtool -m ens1np0`" in finding.remedy


def test_a_hot_module_asks_for_cooling() -> None:
    finding = judged(optic(temperature_celsius={"value": 76.0, **HEAT_LIMITS}))
    assert finding.status == "error"
    assert finding.remedy.startswith("1. Check the cooling of node1 and its card 0000:3d:00.0")


def test_a_voltage_beyond_its_limits_takes_another_module() -> None:
    finding = judged(optic(voltage_volt={"value": 2.9, "low_alarm": 3.0, "high_alarm": 3.6}))
    assert finding.status == "error"
    assert finding.remedy.endswith("2. Replace the module of rail 0.")


def test_alarms_stand_before_warnings_and_make_it_an_error() -> None:
    finding = judged(optic(lanes=[lane(0.08), lane(0.01)]))
    assert finding.status == "error"
    assert finding.observed.index("lane 2") < finding.observed.index("lane 1")


def test_a_flag_of_the_past_is_a_warning() -> None:
    finding = judged(optic(alarms=["Laser rx power low alarm (Channel 1)"]))
    assert finding.status == "warning"
    assert "'Laser rx power low alarm (Channel 1)' was raised since the last reading" in finding.observed


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (None, "no module: the port's driver reports none"),
        (optic(temperature_celsius=None, voltage_volt=None, lanes=[]), "ACME SR4 serial A17 reports no readings"),
        (optic(temperature_celsius=None, voltage_volt=None, lanes=[dict.fromkeys(lane(1))], vendor=None, part_number=None, serial=None),
         "the module reports no readings"),
    ],
    ids=["no module", "copper cable", "copper cable without a name"],
)  # fmt: skip
def test_what_has_no_readings_is_not_judged(module: dict[str, Any] | None, reason: str) -> None:
    finding = judged(module)
    assert finding.status == "not_applicable"
    assert finding.observed.startswith(reason)


def test_a_port_that_is_not_up_points_to_link_state_and_adds_what_its_module_says() -> None:
    finding = judged(optic(lanes=[lane(0.0)]), state="DOWN", physical_state="Polling")
    assert finding.status == "not_applicable"
    assert finding.observed.startswith("the port is not up: see link.state (ACME SR4 serial A17: rx power of lane 1 is 0, below")
    assert judged(optic(), state="DOWN").observed == "the port is not up: see link.state"
    assert judged(None, state="DOWN").observed == "the port is not up: see link.state"


def test_a_module_that_could_not_be_read_is_unknown_in_the_words_of_the_tool() -> None:
    facts, why = card_facts(), "`ethtool -m ens1np0` fails: netlink error: Input/output error"
    first_netdev(facts)["ethtool"]["unread"] = {"module": why}
    finding, _other = check_optic(HOST, card_rails(), from_dict(facts))
    assert (finding.status, finding.observed) == ("unknown", f"the module could not be read: {why}")
    assert finding.remedy == "Run `ethtool ens1np0` and `ethtool -m ens1np0` on node1 as root, which may show more of the cause."
    first_port(facts)["state"] = "DOWN"
    assert check_optic(HOST, card_rails(), from_dict(facts))[0].status == "not_applicable"


def test_the_module_of_an_infiniband_port_that_could_not_be_read() -> None:
    facts, why = card_facts("InfiniBand"), "`mstlink -d 0000:3d:00.0 -m` fails: -E- No supported devices were found"
    first_port(facts)["optic_unread"] = why
    finding, other = check_optic(HOST, infiniband_rails(), from_dict(facts))
    assert (finding.status, finding.observed) == ("unknown", f"the module could not be read: {why}")
    assert other.status == "not_applicable"


@pytest.mark.parametrize(("link_layer", "tool", "package"), [("Ethernet", "ethtool", "ethtool"), ("InfiniBand", "mstlink", "mstflint")])
def test_without_its_tool_a_module_is_not_judged(link_layer: str, tool: str, package: str) -> None:
    facts, why = card_facts(link_layer), f"command not found: {tool} (wanted to run {tool} -m)"
    first_netdev(facts)["ethtool"]["unread"] = {"module": why}
    first_port(facts)["optic_unread"] = why
    rails = infiniband_rails() if link_layer == "InfiniBand" else card_rails()
    finding, _other = check_optic(HOST, rails, from_dict(facts))
    assert (finding.status, finding.observed) == ("not_applicable", f"{tool}, which reads the module, is not installed")
    assert finding.remedy.startswith(f"1. Install the package {package} on node1. 2. Run `ansible-playbook rdma.cluster.link")
    first_port(facts)["state"] = "DOWN"
    assert check_optic(HOST, rails, from_dict(facts))[0].observed.startswith("the port is not up")


def test_a_virtual_function_has_no_cage() -> None:
    facts = card_facts()
    facts["devices"]["mlx5_0"]["function"] = "vf"
    first_netdev(facts)["ethtool"]["unread"] = {"module": "Input/output error"}
    finding = check_optic(HOST, card_rails(), from_dict(facts))[0]
    assert (finding.status, finding.observed) == ("not_applicable", "no module of its own: a virtual function")


def test_a_lab_machine_has_no_modules() -> None:
    assert {finding.observed for finding in check_optic("node1", lab_rails(), from_dict(lab_facts()))} == {
        "no module of its own: a software device"
    }


def test_facts_of_before_do_not_raise() -> None:
    facts = card_facts()
    for netdev in facts["netdevs"].values():
        del netdev["ethtool"]
    assert {finding.status for finding in check_optic(HOST, card_rails(), from_dict(facts))} == {"not_applicable"}


@pytest.mark.parametrize(
    ("powers_mw", "width", "status"),
    [
        ((1.0, 1.0, 0.0, 0.0), 2, "ok"),
        ((1.0, 0.0, 0.0, 0.0), 2, "error"),
        ((1.0, 1.0, 1.0, 0.0), 4, "error"),
        ((0.01, 1.0, 0.0, 0.0), 2, "error"),
    ],
    ids=["split", "one of two", "one of four", "weak"],
)
def test_lanes_that_a_splitter_cable_leaves_dark(powers_mw: tuple[float, ...], width: int, status: str) -> None:
    assert judged(optic(lanes=[lane(power) for power in powers_mw]), width=width).status == status
