# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is master and what ports would lose, as far as the tools answer; what they do not say is never a reason to go on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager import guard as subnet_manager_guard
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.guard import Fleet, Guard, MasterReading, host_ports
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    Partition,
    PartitionPort,
    render_partitions,
)
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import Instance
from tests.unit.builders.fakes import Call, FakeRunner, Without

OURS, OTHER, FAR = "0x00000000000000a1", "0x00000000000000b1", "0x00000000000000c1"
WHERE = ("-C", "mlx5_0", "-P", "1")
#: Two switches; ours and n2's HCA are on the first one, an HCA that the inventory does not have is on the second one.
FABRIC = """# Initiated from node 00000000000000a0 port 00000000000000a1

vendid=0x2c9
devid=0xcf08
sysimgguid=0x10
switchguid=0x10(10)
Switch	4 "S-0000000000000010"		# "sw1" enhanced port 0 lid 5 lmc 0
[1]	"H-00000000000000a0"[1](a1) 		# "n1 mlx5_0" lid 1 4xHDR
[2]	"H-00000000000000b0"[1](b1) 		# "n2 mlx5_0" lid 2 4xHDR
[3]	"S-0000000000000020"[4]		# "sw2" lid 6 4xHDR

vendid=0x2c9
devid=0xcf08
sysimgguid=0x20
switchguid=0x20(20)
Switch	4 "S-0000000000000020"		# "sw2" enhanced port 0 lid 6 lmc 0
[2]	"H-00000000000000c0"[1](c1) 		# "stranger mlx5_0" lid 3 4xHDR
[4]	"S-0000000000000010"[3]		# "sw1" lid 5 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xc0
caguid=0xc0
Ca	1 "H-00000000000000c0"		# "stranger mlx5_0"
[1](c1) 	"S-0000000000000020"[2]		# lid 3 lmc 0 "sw2" lid 6 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xb0
caguid=0xb0
Ca	1 "H-00000000000000b0"		# "n2 mlx5_0"
[1](b1) 	"S-0000000000000010"[2]		# lid 2 lmc 0 "sw1" lid 5 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xa0
caguid=0xa0
Ca	1 "H-00000000000000a0"		# "n1 mlx5_0"
[1](a1) 	"S-0000000000000010"[1]		# lid 1 lmc 0 "sw1" lid 5 4xHDR
"""
DISCOVER: Call = (("ibnetdiscover", *WHERE), 0, FABRIC, "")
#: The same before any subnet manager has run.
NEW = re.sub(r"lid [0-9]+", "lid 0", FABRIC)
PORTINFO = (Path(__file__).parents[3] / "fixtures/fabric/smpquery-portinfo-switch.txt").read_text()
PLAIN = render_partitions("a", [])


def sysfs(folder: Path, state: str = "4: ACTIVE", lid: str = "0x1", sm_lid: str = "0x9") -> SysRoot:
    base = folder / "sys/class/infiniband/mlx5_0/ports/1"
    base.mkdir(parents=True)
    for name, text in (("state", state), ("lid", lid), ("sm_lid", sm_lid)):
        (base / name).write_text(f"{text}\n")
    return SysRoot(str(folder))


def guard(runner: FakeRunner, sys: SysRoot, partitions: str = PLAIN, lids: tuple[str, ...] = ()) -> Guard:
    instance = Instance("a", OURS, "mlx5_0", "1", 14, "", partitions, managers={OURS: "n1"}, lids=lids)
    return Guard(instance, Fleet({OURS: "n1 mlx5_0", OTHER: "n2 mlx5_0"}), runner, sys)


def table(path: str, *keys: str) -> Call:
    row = " ".join([*keys, *["0x0000"] * (8 - len(keys))])
    return (("smpquery", "-D", "pkeys", path, "1", *WHERE), 0, f"   0: {row}\n8 pkeys capacity for this port\n", "")


def sminfo(rc: int, out: str, err: str = "") -> Call:
    return (("sminfo", *WHERE), rc, out, err)


def discover(text: str = NEW, err: str = "") -> Call:
    return (DISCOVER[0], 0, text, err)


def switch_port(sm_lid: int, rc: int = 0) -> Call:
    """What the switch that our port is linked to says of its own port 0."""
    answer = re.sub(r"(?m)^(SMLid:\.*)0$", rf"\g<1>{sm_lid}", PORTINFO)
    return (("smpquery", "-D", "portinfo", "0,1", "0", *WHERE), rc, "" if rc else answer, "")


def records(*lids: int) -> Call:
    """`saquery -s`."""
    answer = "".join(f"PortInfoRecord dump:\n\t\tEndPortLid..............{lid}\n" for lid in lids)
    return (("saquery", "-s", *WHERE), 0, f"IsSM ports\n{answer}\nIsSMdisabled ports\n", "")


def node(lid: int, description: str) -> list[Call]:
    words = f"Node Description:....{description}\n"
    return [(("smpquery", "nodeinfo", str(lid), *WHERE), 1, "", ""), (("smpquery", "nodedesc", str(lid), *WHERE), 0, words, "")]


SILENT = sminfo(255, "sminfo: iberror: failed: query\n", "ibwarn: [1] mad_rpc: _do_madrpc failed; dport (Lid 9)\n")
MASTER = "sminfo: sm lid 9 sm guid 0xc1, activity count 7 priority 3 state 3 SMINFO_MASTER\n"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subnet_manager_guard, "NO_MASTER_SECONDS", 0.0)
    monkeypatch.setattr(subnet_manager_guard, "MANAGER_SECONDS", 0.0)


def test_routes_to_the_ports_of_hosts() -> None:
    found = {port.guid: (port.path, port.lid, port.description) for port in host_ports(parse_ibnetdiscover(FABRIC), 1)}
    assert found == {
        OURS: ((0,), 1, "n1 mlx5_0"), OTHER: ((0, 1, 2), 2, "n2 mlx5_0"), FAR: ((0, 1, 3, 2), 3, "stranger mlx5_0"),
    }  # fmt: skip


def test_a_fabric_in_init_without_a_lid_has_no_master(tmp_path: Path) -> None:
    runner = FakeRunner([discover(), switch_port(0)])
    assert guard(runner, sysfs(tmp_path, "2: INIT", "0x0", "0x0")).read_master() == MasterReading(None)


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([discover(FABRIC)], "this port has no LID, but 'sw1' has LID 5: a subnet manager has configured the fabric"),
        ([discover(NEW.replace("# lid 0 lmc", "# lid 3 lmc", 1))], "this port has no LID, but 'stranger mlx5_0' has LID 3"),
        ([discover(), switch_port(9)], "'sw1', to which this port is linked, has a master at LID 9"),
        ([discover(), switch_port(0, rc=1)], "the port of 'sw1', to which this port is linked, could not be read: smpquery exited"),
        ([(DISCOVER[0], 1, "", "")], "the fabric could not be read: ibnetdiscover exited with status 1"),
        ([discover(err="ibwarn: [1] mad_rpc: Connection timed out\n")], "the fabric could not be read: 1 queries of ibnetdiscover"),
        ([discover(NEW.replace('"S-0000000000000010"[1]', "garbled"))], "the fabric could not be read: "),
        ([discover(NEW[: NEW.index("caguid=0xa0")])], "ibnetdiscover shows no link of port mlx5_0/1"),
    ],
    ids=["switch", "host", "neighbor", "neighbor-silent", "discovery", "timeout", "garbled", "no-link"],
)
def test_a_new_port_on_a_live_fabric_does_not_say_that_there_is_no_master(tmp_path: Path, calls: list[Call], why: str) -> None:
    """The sweep of a large fabric takes longer than we wait, so that the new port stays in INIT beside a real master."""
    runner = FakeRunner(calls)
    ours = guard(runner, sysfs(tmp_path, "2: INIT", "0x0", "0x0"))
    reading = ours.read_master()
    assert (reading.master, str(reading.why_unknown)[: len(why)]) == (None, why)
    assert ours.takeover_reasons(reading, active=False, ours=False)


@pytest.mark.parametrize(
    ("state", "sm_lid", "runner", "why"),
    [
        ("1: DOWN", "0x0", FakeRunner([]), "port mlx5_0/1 is DOWN"),
        ("4: ACTIVE", "0x9", Without(["sminfo"], []), "sminfo is not installed on this host: install infiniband-diags"),
        ("4: ACTIVE", "0x9", FakeRunner([SILENT]), "no subnet manager answers at LID 9"),
        ("4: ACTIVE", "garbled", FakeRunner([SILENT]), "no subnet manager answers at LID 9"),
        ("2: INIT", "garbled", FakeRunner([SILENT]), "no subnet manager answers at LID 9"),
        ("4: ACTIVE", "0x9", FakeRunner([sminfo(0, "what?\n")]), "not the output of sminfo: 'what?\\n'"),
    ],
    ids=["down", "missing", "silent", "no-lid", "init-no-lid", "garbled"],
)
def test_what_cannot_be_read_is_unknown_and_withholds(tmp_path: Path, state: str, sm_lid: str, runner: FakeRunner, why: str) -> None:
    ours = guard(runner, sysfs(tmp_path, state, "0x1", sm_lid))
    reading = ours.read_master()
    assert reading.master is None
    assert str(reading.why_unknown).startswith(why)
    assert ours.takeover_reasons(reading, active=False, ours=False)[0].startswith("the master of the plane could not be read: ")


def test_a_named_master_that_is_silent_is_none(tmp_path: Path) -> None:
    calls = [SILENT, DISCOVER, switch_port(9)]
    assert guard(FakeRunner(calls), sysfs(tmp_path), lids=("9",)).read_master() == MasterReading(None)


def test_a_named_master_that_is_silent_is_unknown_where_the_switch_has_another(tmp_path: Path) -> None:
    calls = [SILENT, DISCOVER, switch_port(3)]
    reading = guard(FakeRunner(calls), sysfs(tmp_path), lids=("9",)).read_master()
    assert reading == MasterReading(None, "'sw1', to which this port is linked, has a master at LID 3")


def test_our_own_lid_of_before_is_none(tmp_path: Path) -> None:
    calls = [SILENT, DISCOVER, switch_port(9)]
    assert guard(FakeRunner(calls), sysfs(tmp_path, lid="0x9")).read_master() == MasterReading(None)


def test_a_master_is_identified(tmp_path: Path) -> None:
    calls = [sminfo(0, MASTER), records(9), *node(9, "stranger mlx5_0")]
    ours = guard(FakeRunner(calls), sysfs(tmp_path))
    (reason,) = ours.takeover_reasons(ours.read_master(), active=False, ours=False)
    assert f"node 'stranger mlx5_0', GUID {FAR}, LID 9, priority 3, MASTER" in reason


NAMED = f"sminfo: sm lid 9 sm guid {OTHER}, activity count 7 priority 13 state 3 SMINFO_MASTER\n"
RIVAL = (("sminfo", "3", *WHERE), 0, MASTER.replace("lid 9", "lid 3"), "")


def reasons(folder: Path, calls: list[Call], *, unconfigured: tuple[str, ...] = ()) -> list[str]:
    """What speaks against a start beside n2, which the intent names as well."""
    runner = FakeRunner(calls)
    ours = guard(runner, sysfs(folder))
    ours.instance = replace(ours.instance, managers={OURS: "n1", OTHER: "n2"}, unconfigured=unconfigured)
    return ours.takeover_reasons(ours.read_master(), active=False, ours=False)


def test_a_named_master_is_no_reason_if_this_role_configured_it(tmp_path: Path) -> None:
    assert reasons(tmp_path, [sminfo(0, NAMED), records(9), *node(9, "n2 mlx5_0")]) == []


def test_a_named_master_that_was_started_by_hand_is_foreign(tmp_path: Path) -> None:
    (reason,) = reasons(tmp_path, [sminfo(0, NAMED), records(9), *node(9, "n2 mlx5_0")], unconfigured=("n2",))
    assert reason.startswith("n2 runs an opensm that this role did not configure: node 'n2 mlx5_0'")


def test_a_named_manager_that_is_not_the_master_does_not_hide_who_is(tmp_path: Path) -> None:
    standby = NAMED.replace("state 3 SMINFO_MASTER", "state 2 SMINFO_STANDBY")
    found = reasons(tmp_path, [sminfo(0, standby), records(3, 9), RIVAL, *node(9, "n2 mlx5_0"), *node(3, "stranger mlx5_0")])
    assert [each.partition(":")[0] for each in found] == [
        "the subnet manager that the port has as its master is not the master",
        "another subnet manager is master of the plane",
    ]
    assert ("'n2 mlx5_0'" in found[0], "'stranger mlx5_0'" in found[1]) == (True, True)


def test_a_second_master_is_a_reason(tmp_path: Path) -> None:
    (reason,) = reasons(tmp_path, [sminfo(0, NAMED), records(3, 9), RIVAL, *node(9, "n2 mlx5_0"), *node(3, "stranger mlx5_0")])
    assert reason.startswith("another subnet manager is master of the plane: node 'stranger mlx5_0'")


def test_managers_that_cannot_all_be_read_are_a_reason(tmp_path: Path) -> None:
    broken = (records()[0], 1, "", "Query SA failed: x\n")
    once = [sminfo(0, NAMED), broken, sminfo(0, NAMED), *node(9, "n2 mlx5_0")]
    (reason,) = reasons(tmp_path, once * 3)
    assert reason.startswith("the master of the plane could not be read: the subnet administrator")
    assert reasons(tmp_path / "again", [*once, sminfo(0, NAMED), records(9), *node(9, "n2 mlx5_0")]) == []


def test_what_the_tables_of_the_fabric_have_and_ours_have_not(tmp_path: Path) -> None:
    """The inventory does not have the third port."""
    calls = [DISCOVER, table("0", "0xffff"), table("0,1,2", "0xffff", "0x8202"), table("0,1,3,2", "0x7fff", "0x8202")]
    found = guard(FakeRunner(calls), sysfs(tmp_path)).losses_from_tables(MasterReading(None, "unknown"))
    assert found.words == [
        f"n2 mlx5_0 ({OTHER}): loses 0x0202 (full)",
        f"{FAR} ('stranger mlx5_0', not in the inventory): loses 0x0202 (full)",
    ]
    assert (found.hosts, found.unknown) == (["n2"], [])


def test_a_table_that_cannot_be_read_withholds_where_there_is_a_master(tmp_path: Path) -> None:
    sys = sysfs(tmp_path)
    calls = [DISCOVER, table("0", "0xffff"), (table("0,1,2")[0], 1, "", ""), table("0,1,3,2", "0xffff")]
    found = guard(FakeRunner(calls), sys).losses_from_tables(MasterReading(None, "unknown"))
    assert found.unknown == [f"the P_Keys of n2 mlx5_0 ({OTHER}) could not be read"]
    alone = guard(FakeRunner(calls), sys).losses_from_tables(MasterReading(None))
    assert (alone.words, alone.unknown) == ([], [])
    limited = guard(FakeRunner(calls), sys, render_partitions("a", [], "limited")).losses_from_tables(MasterReading(None))
    assert len(limited.words) == 2
    blind = guard(FakeRunner([(DISCOVER[0], 1, "", "")]), sys).losses_from_tables(MasterReading(None, "unknown"))
    assert blind.unknown[0].startswith("the ports of the fabric could not be read: ")


def test_our_file_against_the_present_one(tmp_path: Path) -> None:
    red = render_partitions("a", [Partition("red", 0x101, [PartitionPort(OTHER, "full")])])
    sys = sysfs(tmp_path)
    assert guard(FakeRunner([]), sys, red).losses_between(PLAIN).words == ()
    assert guard(FakeRunner([DISCOVER]), sys, PLAIN).losses_between(red).words == [f"n2 mlx5_0 ({OTHER}): loses 0x0101 (full)"]
    limited = render_partitions("a", [], "limited")
    seen = guard(FakeRunner([DISCOVER]), sys, limited).losses_between(PLAIN)
    assert [each.split(" ")[0] for each in seen.words] == ["n2", FAR]
    blind = guard(FakeRunner([(DISCOVER[0], 1, "", "")]), sys, limited).losses_between(PLAIN)
    assert blind.words[-1].startswith("every other port of the fabric: ")
    assert guard(FakeRunner([]), sys, PLAIN).losses_between("broken").unknown[0].startswith("the present partitions could not be read")


def test_what_changes_in_a_partition_that_its_members_keep(tmp_path: Path) -> None:
    """A signal moves the index that NCCL and verbs use, or makes the group of IP over InfiniBand again."""
    members = [PartitionPort(OTHER, "full"), PartitionPort(FAR, "limited")]
    red, moved = (render_partitions("a", [Partition("red", 0x101, members, index0=each)]) for each in (False, True))
    found = guard(FakeRunner([DISCOVER]), sysfs(tmp_path), moved).losses_between(red)
    assert found.words == [
        f"n2 mlx5_0 ({OTHER}): 0x0101: index 0 no → yes",
        f"{FAR} ('stranger mlx5_0', not in the inventory): 0x0101: index 0 no → yes",
    ]
    assert (found.hosts, found.outside) == (["n2"], True)


def test_a_partition_that_comes_to_index_0_of_a_port_in_use(tmp_path: Path) -> None:
    text = render_partitions("a", [Partition("red", 0x101, [PartitionPort(OTHER, "full"), PartitionPort(FAR, "full")], index0=True)])
    calls = [DISCOVER, table("0", "0xffff"), table("0,1,2", "0xffff", "0x8101"), table("0,1,3,2", "0x8101", "0xffff")]
    found = guard(FakeRunner(calls), sysfs(tmp_path), text).losses_from_tables(MasterReading(None, "unknown"))
    assert found.words == [f"n2 mlx5_0 ({OTHER}): 0x0101: replaces 0x7fff at index 0"]


def test_who_is_a_limited_member_of_the_default_partition_now(tmp_path: Path) -> None:
    """A subnet manager's own port is a full one in any case."""
    calls = [DISCOVER, table("0", "0xffff"), table("0,1,2", "0xffff"), table("0,1,3,2", "0x7fff")]
    ours = guard(FakeRunner(calls), sysfs(tmp_path))
    ours.instance = replace(ours.instance, managers={OURS: "n1", OTHER: "n2"})
    found = ours.losses_from_tables(MasterReading(None, "unknown"))
    assert (found.limited, found.full) == ([f"{FAR} ('stranger mlx5_0', not in the inventory)"], [])
    other = guard(FakeRunner(calls), sysfs(tmp_path / "again")).losses_from_tables(MasterReading(None, "unknown"))
    assert other.full == [f"n2 mlx5_0 ({OTHER})"]
