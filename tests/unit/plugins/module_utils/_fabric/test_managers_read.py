# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All subnet managers of a plane, or why they are not known."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import Managers, read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools
from tests.unit.builders.fabric_texts import fabric_text
from tests.unit.builders.fakes import Call, FakeRunner

MASTER: Call = (("sminfo", "-C", "mlx5_0"), 0, fabric_text("sminfo"), "")
PORTS: Call = (("saquery", "-s", "-C", "mlx5_0"), 0, fabric_text("saquery-s"), "")
OTHER = "sminfo: sm lid 4 sm guid 0xa088c20300000021, activity count 409 priority 0 state 2 SMINFO_STANDBY\n"
STANDBY: Call = (("sminfo", "4", "-C", "mlx5_0"), 0, OTHER, "")


SWITCH = fabric_text("smpquery-nodeinfo").replace("Channel Adapter", "Switch")


def ask(*calls: Call) -> Managers:
    runner = FakeRunner(calls)
    return read_managers(Tools(runner, SysRoot("/nowhere"), Asked(device="mlx5_0")))


def test_one_stands_by() -> None:
    found = ask(MASTER, PORTS, STANDBY)
    assert [(each.lid, each.state) for each in found.known or ()] == [(1, "MASTER"), (4, "STANDBY")]
    assert (found.master, found.why_not) == ((found.known or [None])[0], None)


def smpquery(what: str, lid: int, rc: int, text: str) -> Call:
    return (("smpquery", what, str(lid), "-C", "mlx5_0"), rc, text, "")


def test_each_is_identified_by_its_node() -> None:
    """A node that does not answer leaves its kind unknown, and is no reason to doubt the managers."""
    calls = [
        MASTER, PORTS, STANDBY,
        smpquery("nodeinfo", 1, 0, SWITCH), smpquery("nodedesc", 1, 0, "Node Description:....................MF0;sw1:MQM8700/U1\n"),
        smpquery("nodeinfo", 4, 1, ""), smpquery("nodedesc", 4, 1, ""),
    ]  # fmt: skip
    runner = FakeRunner(calls)
    found = read_managers(Tools(runner, SysRoot("/nowhere"), Asked(device="mlx5_0")), identify=True)
    assert [(each.kind, each.description) for each in found.known or ()] == [("switch", "MF0;sw1:MQM8700/U1"), (None, None)]
    assert found.why_not is None


def test_one_that_does_not_answer_leaves_it_unknown() -> None:
    found = ask(MASTER, PORTS, (STANDBY[0], 255, "sminfo: iberror: failed: query\n", ""))
    assert found.master is not None
    assert (found.known, found.why_not) == (None, "sminfo complains: sminfo: iberror: failed: query")


def test_without_a_master_nobody_else_is_looked_for() -> None:
    found = ask((MASTER[0], 255, "sminfo: iberror: failed: query\n", ""))
    assert (found.master, found.known) == (None, None)


def test_no_administration_to_ask() -> None:
    assert ask(MASTER, (PORTS[0], 1, "", ""), MASTER).why_not == "saquery exited with status 1 and no message"


#: What the real ones print where opensm was killed (infiniband-diags 44 over ibsim).
GONE: Call = (MASTER[0], 255, "sminfo: iberror: failed: query\n", "ibwarn: [27] mad_rpc: _do_madrpc failed; dport (Lid 1)\n")
UNANSWERED: Call = (PORTS[0], 110, "", "Query SA failed: Connection timed out\n")
SILENT = "the subnet administrator, a part of the subnet manager, does not answer saquery: Query SA failed: Connection timed out"


def test_a_master_that_is_dead_is_reported_by_its_lid() -> None:
    assert ask(GONE).why_not == "no subnet manager answers at LID 1"


def test_a_master_that_dies_while_it_is_asked() -> None:
    assert ask(MASTER, UNANSWERED, GONE).why_not == f"{SILENT}; no subnet manager answers at LID 1"


def test_another_that_takes_over_while_it_is_asked() -> None:
    other: Call = (MASTER[0], 0, OTHER.replace("state 2 SMINFO_STANDBY", "state 3 SMINFO_MASTER"), "")
    found = ask(MASTER, UNANSWERED, other)
    assert found.why_not == f"{SILENT}; the master was at LID 1 and is now at LID 4: another one took over in between"
    assert found.known is None


def test_a_master_that_is_too_busy_for_records() -> None:
    assert ask(MASTER, UNANSWERED, MASTER).why_not == SILENT
