# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading a fabric: each reason for which it is not whole is reported by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import ERROR_COUNTERS, read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools, keys_text
from tests.unit.builders.fabric_texts import LEAF1, SPINE1, fabric_text
from tests.unit.builders.fakes import Call, FakeRunner, Without

WHERE = ("-C", "mlx5_0", "-P", "1")
DISCOVER, LINKS = ("ibnetdiscover", *WHERE), ("iblinkinfo", "-l", *WHERE)
ERRORS, DATA = ("ibqueryerrors", "--threshold-file", "/dev/null", *WHERE), ("ibqueryerrors", "--counters", *WHERE)
SMINFO = ("sminfo", *WHERE)
ASKED = Asked("rail0", "mlx5_0", 1)

FOUND: Call = (DISCOVER, 0, fabric_text("cut-ibnetdiscover"), "")
LINKED: Call = (LINKS, 0, fabric_text("cut-iblinkinfo-l"), "")
COUNTED: Call = (ERRORS, 1, fabric_text("cut-ibqueryerrors"), "")
MASTER: Call = (SMINFO, 0, fabric_text("sminfo"), "")
ALONE = "IsSM ports\nPortInfoRecord dump:\n\t\tEndPortLid..............1\n\nIsSMdisabled ports\n"
PORTS: Call = (("saquery", "-s", *WHERE), 0, ALONE, "")


@pytest.fixture
def sys(tmp_path: Path) -> SysRoot:
    for port, layer in (("1", "InfiniBand"), ("2", "Ethernet")):
        folder = tmp_path / f"sys/class/infiniband/mlx5_0/ports/{port}"
        folder.mkdir(parents=True)
        (folder / "link_layer").write_text(f"{layer}\n")
    (tmp_path / "map").write_text(f'{LEAF1} "the first leaf"\n')
    (tmp_path / "bad").write_text("leaf1\n")
    return SysRoot(str(tmp_path))


def test_a_whole_fabric(sys: SysRoot) -> None:
    runner = FakeRunner([FOUND, LINKED, COUNTED, (DATA, 0, fabric_text("ibqueryerrors-counters"), ""), MASTER, PORTS])
    facts = read_fabric(runner, sys, Asked("rail0", "mlx5_0", 1, data=True, node_name_map="/map", timeout_seconds=7))
    graph = facts.graph
    assert (graph.plane, graph.complete, graph.problems, len(graph.links)) == ("rail0", True, [], 8)
    assert set(runner.timeouts_seconds) == {7}
    assert facts.managers.master is not None
    assert (facts.managers.master.state, facts.managers.why_not) == ("MASTER", None)
    assert graph.nodes[LEAF1].name == "the first leaf"
    leaf, spine = graph.nodes[LEAF1].ports[5].counters, graph.nodes[SPINE1].ports[1].counters
    assert (leaf["SymbolErrorCounter"], leaf["LinkErrorRecoveryCounter"], leaf["PortXmitPkts"] > 0) == (7, 0, True)
    assert {spine[name] for name in ERROR_COUNTERS} == {0}
    assert "PortXmitWait" not in spine
    assert graph.nodes[LEAF1].ports[3].state == "DOWN"


def test_the_tools_take_keys_from_the_file_of_the_plane(sys: SysRoot, tmp_path: Path) -> None:
    assert keys_text(None, None) is None
    assert (keys_text("0x1", "0x2") or "").splitlines()[1:] == ["m_key=0x1", "sa_key=0x2"]
    (tmp_path / "etc/rdma-cluster").mkdir(parents=True)
    (tmp_path / "etc/rdma-cluster/diags-rail0.conf").write_text(keys_text("0x1", None) or "")
    assert Tools(FakeRunner([]), sys, ASKED).where == [*WHERE, "-z", "/etc/rdma-cluster/diags-rail0.conf"]
    assert Tools(FakeRunner([]), sys, Asked("rail1", "mlx5_0", 1)).where == [*WHERE]


def problems(sys: SysRoot, *calls: Call, asked: Asked = ASKED) -> list[str]:
    runner = FakeRunner(calls)
    facts = read_fabric(runner, sys, asked)
    assert not facts.graph.complete
    return facts.graph.problems


CLOSED = "ibwarn: [7] mad_rpc_open_port: can't open UMAD port (mlx5_0:1)\n"
NO_MODULE = "ibwarn: [7] get_abi_version: can't read ABI version from /sys/class/infiniband_mad/abi_version: is ib_umad module loaded?\n"


@pytest.mark.parametrize(
    ("device", "port", "stderr", "why"),
    [
        ("mlx5_0", 1, CLOSED, "it may not open /dev/infiniband/umad* for mlx5_0 port 1 (permission denied: become root)"),
        ("mlx5_0", 2, CLOSED, "mlx5_0 port 2 is an Ethernet port"),
        ("mlx5_0", 3, CLOSED, "mlx5_0 has no port 3"),
        ("mlx5_9", 1, CLOSED, "there is no RDMA device mlx5_9"),
        ("mlx5_0", 1, NO_MODULE + CLOSED, "the kernel module ib_umad is not loaded"),
    ],
    ids=["permission", "Ethernet", "port", "device", "module"],
)
def test_a_port_that_cannot_be_asked_from(sys: SysRoot, device: str, port: int, stderr: str, why: str) -> None:
    argv = ("ibnetdiscover", "-C", device, "-P", str(port))
    call = (argv, 255, "ibnetdiscover: iberror: failed: discover failed\n\n", stderr)
    answer = problems(sys, call, asked=Asked("rail0", device, port))
    assert len(answer) == 1
    assert answer[0].startswith("ibnetdiscover cannot query: ")
    assert why in answer[0]


def test_why_a_port_cannot_be_opened_where_its_node_is_known(sys: SysRoot, tmp_path: Path) -> None:
    """libibumad says the same of a node that is missing and of one that it may not open."""
    for name, port in (("umad0", "2"), ("umad1", "1")):
        folder = tmp_path / f"sys/class/infiniband_mad/{name}"
        folder.mkdir(parents=True)
        (folder / "ibdev").write_text("mlx5_0\n")
        (folder / "port").write_text(f"{port}\n")
    closed: Call = (DISCOVER, 255, "", CLOSED)
    assert problems(sys, closed) == [
        "ibnetdiscover cannot query: there is no /dev/infiniband/umad1 to query mlx5_0 port 1: "
        "udev creates it, and a container needs it passed in"
    ]
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    (tmp_path / "dev/infiniband/umad1").touch()
    assert problems(sys, closed) == [
        "ibnetdiscover cannot query: it may not open /dev/infiniband/umad1 to query mlx5_0 port 1 (permission denied): become root"
    ]


def test_tools_that_are_not_there(sys: SysRoot) -> None:
    facts = read_fabric(Without(["ibnetdiscover"], []), sys, ASKED)
    assert facts.graph.problems == ["ibnetdiscover is not installed on this host: install infiniband-diags"]
    assert (facts.graph.nodes, facts.managers.master) == ({}, None)
    facts = read_fabric(Without(["ibqueryerrors", "iblinkinfo"], [FOUND, MASTER, PORTS]), sys, ASKED)
    assert [problem.split(" is ")[0] for problem in facts.graph.problems] == ["iblinkinfo", "ibqueryerrors"]
    assert len(facts.graph.links) == 8


def test_nodes_that_do_not_answer_while_the_tool_ends_well(sys: SysRoot) -> None:
    lossy = (DISCOVER, 0, fabric_text("lossy-ibnetdiscover"), fabric_text("lossy-ibnetdiscover.stderr"))
    answer = problems(sys, lossy, MASTER, PORTS, asked=Asked("rail0", "mlx5_0", 1, links=False, errors=False))
    assert answer[0].startswith("3 queries of ibnetdiscover were not answered, so nodes or ports are missing: ./libibnetdisc/")


def test_no_subnet_manager(sys: SysRoot) -> None:
    """ibqueryerrors ends with 0 and says nothing, which is not health."""
    calls: list[Call] = [
        FOUND,
        LINKED,
        (ERRORS, 0, "", "ibwarn: [7] sa_get_handle: No SM/SA found on port (null):0\n"),
        (SMINFO, 255, "sminfo: iberror: failed: query\n", "ibwarn: [7] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0)\n"),
    ]
    facts = read_fabric(FakeRunner(calls), sys, ASKED)
    assert facts.graph.problems == ["ibqueryerrors found no subnet manager on mlx5_0 port 1, and sent no query"]
    assert facts.managers.master is None
    assert facts.managers.why_not is not None
    assert facts.managers.why_not.startswith("sminfo complains: ibwarn: [7] mad_rpc: _do_madrpc failed")
    assert all(not port.counters for node in facts.graph.nodes.values() for port in node.ports.values())


@pytest.mark.parametrize(
    "queried",
    [
        fabric_text("ibqueryerrors").replace("## Suppressed:", "## Suppressed: SymbolErrorCounter"),
        fabric_text("ibqueryerrors").replace("Thresholds: ", "Thresholds: [SymbolErrorCounter = 10]"),
        fabric_text("ibqueryerrors").replace("## Suppressed:", "##          1 PMA query failures\n## Suppressed:"),
    ],
    ids=["suppressed", "threshold", "failure"],
)
def test_counters_that_were_filtered_are_not_zero(sys: SysRoot, queried: str) -> None:
    facts = read_fabric(FakeRunner([FOUND, LINKED, (ERRORS, 0, queried, ""), MASTER, PORTS]), sys, ASKED)
    assert facts.graph.nodes[SPINE1].ports[1].counters == {}


def test_counters_of_a_tool_that_complains_are_not_zero(sys: SysRoot) -> None:
    call = (ERRORS, 0, fabric_text("ibqueryerrors"), "ibwarn: [7] query_cap_mask: classportinfo query failed on spine1, Lid 4 port 0\n")
    facts = read_fabric(FakeRunner([FOUND, LINKED, call, MASTER, PORTS]), sys, ASKED)
    assert facts.graph.nodes[SPINE1].ports[1].counters == {}
    assert facts.graph.problems[0].startswith("ibqueryerrors complains: ibwarn: [7] query_cap_mask")


def test_other_failures(sys: SysRoot) -> None:
    class Slow(FakeRunner):
        def run(self, argv: object, *, timeout_seconds: float = 30.0) -> Completed:
            raise CommandError("ibnetdiscover did not end within 120 seconds")

    assert read_fabric(Slow([]), sys, ASKED).graph.problems == ["ibnetdiscover did not end within 120 seconds"]
    assert problems(sys, (DISCOVER, 0, "", "")) == ["not the output of ibnetdiscover: ''"]
    assert problems(sys, (DISCOVER, 9, "", "")) == ["ibnetdiscover exited with status 9 and no message"]
    assert (
        "at line 1: 'leaf1'"
        in problems(sys, FOUND, LINKED, COUNTED, MASTER, PORTS, asked=Asked("rail0", "mlx5_0", 1, node_name_map="/bad"))[0]
    )
    reported = problems(sys, FOUND, LINKED, COUNTED, MASTER, PORTS, asked=Asked("rail0", "mlx5_0", 1, node_name_map="/absent"))
    assert reported == ["there is no node-name map /absent on this host"]
