# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of routers, against golden ones that were read by hand beside NVIDIA's NVUE reference and SONiC's YANG models.

None of those for NVUE and SONiC was applied to a switch. To write them again after a change that is meant: RDMA_TEST_GOLDEN=write.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.render import RENDERERS, router_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import plan_suffixes
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.routing import SYNTAXES
from lab.clos_plan import ClosShape, cabling
from tests.unit.builders.clos import podded, routed, settings

GOLDEN = Path(__file__).parent / "golden"
SONIC = {"syntax": "sonic", "port_prefix": "Ethernet", "port_lanes": 8, "bfd": False}
SHAPE = ClosShape(2, 2, 1, 2, 2)
#: The form → the settings, and the switches with golden files.
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "frr": ({}, ("spine1", "core1")),
    "nvue": ({"syntax": "nvue"}, ("leaf1", "spine1")),
    "sonic": (SONIC, ("leaf1", "spine1")),
}
BGP = r"vrf default router bgp"
GROUP = rf"{BGP} peer-group (FABRIC|CORES)"
PREFIX = r"\d+\.\d+\.\d+\.\d+/\d+"
#: The forms of NVUE's commands that may be in a file, as the NVUE reference has them.
FORMS = [
    rf"interface (lo|swp\d+) ip address {PREFIX}",
    r"interface swp\d+ description [A-Za-z0-9_.:-]+",
    rf"router policy prefix-list (OWN|POOLS) rule \d+ (action permit|match {PREFIX}( (min|max)-prefix-len \d+)?)",
    r"router policy community-list FROM-CORES rule 5 (action permit|community 64512:1)",
    r"router policy route-map [A-Z-]+ rule \d+ (action (permit|deny)|set community 64512:1|match type ipv4)",
    r"router policy route-map [A-Z-]+ rule \d+ match (ip-prefix-list (OWN|POOLS)|community-list FROM-CORES)",
    r"router bgp (autonomous-system \d+|router-id \d+\.\d+\.\d+\.\d+)",
    rf"{BGP} path-selection multipath aspath-ignore on",
    rf"{BGP} address-family ipv4-unicast (redistribute connected (enable on|route-map OWN)|multipaths ebgp \d+)",
    rf"{GROUP} (remote-as external|timers connection-retry 1|bfd enable on)",
    rf"{GROUP} address-family ipv4-unicast (policy (in|out)bound route-map [A-Z-]+|prefix-limits inbound maximum \d+)",
    rf"{BGP} neighbor swp\d+ (type unnumbered|peer-group (FABRIC|CORES))",
]
#: The keys of SONiC's tables that may be in a file, as its YANG models have them.
KEYS = {
    "DEVICE_METADATA": {"bgp_asn", "docker_routing_config_mode", "hostname"},
    "LOOPBACK_INTERFACE": set(),
    "INTERFACE": {"ipv6_use_link_local_only"},
    "PORT": {"admin_status", "description"},
}


def texts(syntax: str) -> dict[str, str]:
    """Return file → text of the switches of a form that have golden files."""
    changes, switches = CASES[syntax]
    plane = podded(SHAPE, **changes)
    return {
        f"{syntax}-{switch}{suffix}": text
        for switch in switches
        for suffix, text in router_files(plane, plane.routers[switch]).items()
        if suffix not in (".daemons", ".sysctl")
    }


@pytest.mark.parametrize("syntax", CASES)
def test_the_files_of_a_switch_are_the_golden_ones(syntax: str) -> None:
    for name, text in texts(syntax).items():
        if os.environ.get("RDMA_TEST_GOLDEN") == "write":
            (GOLDEN / name).write_text(text, encoding="utf-8")
        assert text == (GOLDEN / name).read_text(encoding="utf-8"), name


def test_no_golden_file_is_left_over() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(name for syntax in CASES for name in texts(syntax))


def test_each_syntax_of_the_intent_has_a_renderer() -> None:
    assert tuple(RENDERERS) == SYNTAXES
    assert set(CASES) == set(SYNTAXES)


def nvue_lines(plane: RoutedPlane, switch: str) -> list[str]:
    (text,) = router_files(plane, plane.routers[switch]).values()
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("switch", ["leaf1", "spine1", "core1"])
def test_every_line_for_nvue_is_a_command_of_the_reference(switch: str) -> None:
    lines = nvue_lines(podded(SHAPE, syntax="nvue"), switch)
    assert [line for line in lines if not any(re.fullmatch(f"nv set {form}", line) for form in FORMS)] == []
    assert len(set(lines)) == len(lines)


def test_a_description_for_nvue_has_nothing_that_a_shell_reads() -> None:
    text = cabling(ClosShape(1, 1, 1)).replace("host1 rail0", "'host1 $(reboot); x'")
    plane = make_plan("fab", settings(syntax="nvue"), parse_plan(text))
    assert "nv set interface swp33 description host1_--reboot---x" in nvue_lines(plane, "leaf1")


@pytest.mark.parametrize("switch", ["leaf1", "spine1", "core1"])
def test_every_key_for_sonic_is_one_of_its_models(switch: str) -> None:
    plane = podded(SHAPE, **SONIC)
    tables = json.loads(router_files(plane, plane.routers[switch])[".config_db.json"])
    assert set(tables) == set(KEYS)
    for table, entries in tables.items():
        assert {key for entry in entries.values() for key in entry} <= KEYS[table]
        assert all(isinstance(value, str) for entry in entries.values() for value in entry.values())
    # An address needs the entry of its interface.
    for name in (*tables["INTERFACE"], *tables["LOOPBACK_INTERFACE"]):
        assert name.partition("|")[0] in {*tables["INTERFACE"], *tables["LOOPBACK_INTERFACE"]}
    assert {name.partition("|")[0] for name in tables["INTERFACE"]} <= set(tables["PORT"])


def test_sonic_names_a_port_by_its_first_lane() -> None:
    plane = podded(SHAPE, **SONIC)
    assert [each.port for each in plane.routers["spine1"].neighbors] == ["Ethernet0", "Ethernet256", "Ethernet264"]
    assert plane.routers["leaf1"].host_ports[0].port == "Ethernet256"
    assert plane.routers["leaf1"].neighbors[0].its_port == "Ethernet0"


def test_a_switch_may_differ_from_its_plane() -> None:
    own = {"syntax": "nvue", "port_prefix": None, "port_lanes": None}
    plane = routed(switches={"leaf2": {**own, "port_prefix": "eth"}, "spine1": own})
    assert {name: router.syntax for name, router in plane.routers.items()} == {
        "leaf1": "frr", "leaf2": "nvue", "spine1": "nvue", "spine2": "frr",
    }  # fmt: skip
    assert [each.port for each in plane.routers["leaf2"].neighbors] == ["eth1", "eth2"]
    assert [each.its_port for each in plane.routers["spine1"].neighbors] == ["swp1", "eth1"]
    assert plan_suffixes("nvue") == tuple(router_files(plane, plane.routers["leaf2"]))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({**SONIC, "bfd": True}, "leaf1 has syntax sonic and the plane has bfd"),
        (
            {**SONIC, "port_lanes": None},
            "leaf1 has port_prefix Ethernet and no port_lanes, but SONiC names a port Ethernet and its first lane",
        ),
        ({**SONIC, "port_prefix": "swp"}, "leaf1 has port_prefix swp and port_lanes 8, but SONiC"),
        ({"port_lanes": 4}, "leaf1 has port_lanes 4, but syntax frr: only SONiC names ports by their lanes"),
        ({"syntax": "nvue", "maximum_paths": 256}, "maximum_paths is 256, but NVUE (leaf1) has at most 128"),
        ({"switches": {"laef1": {}}}, "routing.switches has laef1, which is not in the cabling plan"),
    ],
)
def test_what_a_switch_cannot_do_is_named(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(RoutingError, match=re.escape(expected)):
        routed(**changes)
