# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running opensm has read, and what makes it read its files again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.state import (
    NOTHING,
    RELOAD,
    RESTART,
    START,
    Service,
    Texts,
    memory_text,
    needed_paths,
    next_step,
    parse_service,
    read_sums,
    running_guid,
)

SHOWN = """Id=opensm@0x0002c9030002fb05.service
ActiveState=active
UnitFileState=static
MainPID=312
InvocationID=5f0e6ac1f2a5449d9a7ab0b2d6a51c6f
ExecMainStartTimestampMonotonic=81500000
"""
RUNS = parse_service(SHOWN)
THERE = Texts("lmc 0\nsweep_interval 10\n", "Default=0x7fff : ALL=full ;\n", "[Service]\n")


def test_a_service_that_runs() -> None:
    assert Service(True, False, "5f0e6ac1f2a5449d9a7ab0b2d6a51c6f", 81.5, main_pid=312) == RUNS
    assert parse_service("Id=opensm.service\nActiveState=inactive\nMainPID=0\nInvocationID=\n") == Service(False, False, None, None, True)
    assert parse_service(SHOWN.replace("static", "generated")).enabled
    states = {"activating": False, "failed": True, "deactivating": False}
    assert {state: parse_service(SHOWN.replace("=active", f"={state}")).ended for state in states} == states


def test_what_a_unit_needs() -> None:
    """Debian's of opensm 3.3.23, and forms that are met in other ways."""
    text = "[Unit]\nConditionPathExists=!/a\n#ConditionPathExists=/b\nConditionPathExists=/sys/class/infiniband_mad/abi_version\n"
    assert needed_paths(text) == ["/sys/class/infiniband_mad/abi_version"]


GUID = "0x0002c9030002fb05"


@pytest.mark.parametrize(
    ("argv", "config", "guid"),
    [
        (["/usr/sbin/opensm", "-g", "0x2c9030002fb05"], None, GUID),
        (["opensm", "-B", f"-g{GUID}"], None, GUID),
        (["opensm", f"--guid={GUID.upper().replace('X', 'x')}", "-F", "/x"], "guid 0x1\n", GUID),
        (["opensm", "--config", "/x"], f"guid {GUID}\n", GUID),
        (["opensm", "-F", "/x"], "guid 0x0000000000000000\n", None),
        (["opensm", "-F", "/x"], None, None),
        (["opensm", "-g", "0"], None, None),
        (["opensm", "-g"], None, None),
        (["/bin/sh", "-g", GUID], None, None),
    ],
    ids=["short", "joined", "long", "file", "first-port", "no-file", "asks", "cut", "shell"],
)
def test_the_port_of_an_opensm_that_runs(tmp_path: Path, argv: list[str], config: str | None, guid: str | None) -> None:
    (tmp_path / "proc/312").mkdir(parents=True)
    (tmp_path / "proc/312/cmdline").write_text("\0".join([*argv, ""]))
    if config is not None:
        (tmp_path / "x").write_text(config)
    assert running_guid(RUNS, SysRoot(str(tmp_path))) == guid
    assert running_guid(replace(RUNS, main_pid=None), SysRoot(str(tmp_path))) is None
    assert running_guid(replace(RUNS, main_pid=9), SysRoot(str(tmp_path))) is None


@pytest.mark.parametrize("text", ["", "ActiveState=active\n", SHOWN.replace("81500000", "soon")])
def test_what_systemctl_does_not_say(text: str) -> None:
    with pytest.raises(ParseError):
        parse_service(text)


def test_one_that_was_started_after_its_files_has_read_them() -> None:
    assert read_sums(RUNS, None, THERE, 81.0) == THERE.sums
    assert read_sums(RUNS, None, THERE, 82.0) is None
    assert read_sums(RUNS, None, THERE, None) is None


def test_what_is_remembered_counts_for_that_start_only() -> None:
    other = replace(THERE, partitions="x")
    memory = memory_text(RUNS, other)
    assert read_sums(RUNS, memory, THERE, 99.0) == other.sums
    assert read_sums(replace(RUNS, invocation="another"), memory, THERE, 99.0) is None
    assert read_sums(RUNS, "{broken", THERE, 99.0) is None
    assert read_sums(RUNS, json.dumps([1]), THERE, 99.0) is None


STEPS = [
    (replace(RUNS, active=False), THERE, THERE, START, []),
    (RUNS, THERE, THERE, NOTHING, []),
    (RUNS, THERE, replace(THERE, partitions="other"), RELOAD, []),
    (RUNS, THERE, replace(THERE, config="lmc 0\nsweep_interval 5\n"), RELOAD, []),
    (RUNS, THERE, replace(THERE, config="lmc 1\nsweep_interval 10\n"), RESTART, ["lmc 0 → 1"]),
    (RUNS, THERE, replace(THERE, drop_in="other"), RESTART, ["its command line"]),
]


@pytest.mark.parametrize(
    ("service", "there", "requested", "step", "reasons"), STEPS, ids=[f"{index}-{row[3]}" for index, row in enumerate(STEPS)]
)
def test_the_least_that_is_enough(service: Service, there: Texts, requested: Texts, step: str, reasons: list[str]) -> None:
    assert next_step(service, THERE.sums, there, requested) == (step, reasons)


def test_a_run_that_died_between_file_and_signal_is_made_good() -> None:
    requested = replace(THERE, partitions="other")
    assert next_step(RUNS, THERE.sums, requested, requested) == (RELOAD, [])
    requested = replace(THERE, config="lmc 0\n")
    assert next_step(RUNS, THERE.sums, requested, requested) == (RESTART, ["opensm.conf is another than it has read"])
    assert next_step(RUNS, None, requested, requested) == (RESTART, ["the files that it has read are not known"])
