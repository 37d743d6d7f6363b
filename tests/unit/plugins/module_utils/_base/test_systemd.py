# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd says of units."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import (
    UnitState,
    enabled_instances,
    parse_show,
    unit_state,
    unit_states,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree

SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState"]
NETWORKD, LINKS = "systemd-networkd.service", "rdma-soft-links.service"
RUNS = UnitState(active=True, enabled=True)


def block(unit: str, active: str = "active", enabled: str = "enabled") -> str:
    return f"Id={unit}\nActiveState={active}\nUnitFileState={enabled}\n"


BOTH = f"{block(NETWORKD)}\n{block(LINKS, 'inactive', '')}"

STATES = [
    ("active", "enabled", True, True),
    ("inactive", "enabled", False, True),
    ("failed", "enabled", False, True),
    ("activating", "enabled", False, True),
    ("active", "disabled", True, False),
    ("active", "static", True, False),
    # Until the next boot only.
    ("active", "enabled-runtime", True, False),
    ("inactive", "masked", False, False),
    # A unit that is not there.
    ("inactive", "", False, False),
]


@pytest.mark.parametrize(("active_state", "file_state", "active", "enabled"), STATES)
def test_what_counts_as_active_and_enabled(active_state: str, file_state: str, active: bool, enabled: bool) -> None:
    assert parse_show(block(NETWORKD, active_state, file_state)) == {NETWORKD: UnitState(active=active, enabled=enabled)}


def test_several_units_are_apart_by_an_empty_line() -> None:
    assert parse_show(BOTH) == {NETWORKD: RUNS, LINKS: UnitState(active=False, enabled=False)}


@pytest.mark.parametrize("text", ["", "ActiveState=active\nUnitFileState=enabled\n", f"{block(NETWORKD)}\nActiveState=active\n"])
def test_a_block_without_a_name_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match=r"names no unit in '(ActiveState=active.*)?'"):
        parse_show(text)


def test_all_units_are_asked_for_at_once() -> None:
    runner = FakeRunner([([*SHOW, NETWORKD, LINKS], 0, BOTH, "")])
    assert unit_states(runner, NETWORKD, LINKS) == parse_show(BOTH)


def test_one_unit() -> None:
    runner = FakeRunner([([*SHOW, NETWORKD], 0, block(NETWORKD), "")])
    assert unit_state(runner, NETWORKD) == RUNS


def test_a_systemd_that_does_not_answer_is_quoted() -> None:
    answer = "System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus: Host is down"
    with pytest.raises(ApplyError, match=r"`systemctl show .* systemd-networkd.service` failed: System has not been booted with systemd"):
        unit_states(FakeRunner([([*SHOW, NETWORKD], 1, "", answer)]), NETWORKD)


def test_units_made_of_a_template_are_known_by_their_links(tmp_path: Path) -> None:
    base = "/etc/systemd/system"
    tree = f"""
        {base}/rdma-x@.service: [Unit]
        {base}/sys-subsystem-net-devices-ens1.device.wants/rdma-x@ens1.service -> ../rdma-x@.service
        {base}/multi-user.target.wants/rdma-x@ens2.service -> ../rdma-x@.service
        {base}/multi-user.target.wants/rdma-x@ens1.service -> ../rdma-x@.service
        {base}/multi-user.target.wants/rdma-xy@ens3.service -> ../rdma-xy@.service
        {base}/multi-user.target.wants/rdma-x.service -> ../rdma-x.service
    """
    sys = SysRoot(str(write_tree(tmp_path, tree)))
    assert enabled_instances(sys, "rdma-x@.service") == ["rdma-x@ens1.service", "rdma-x@ens2.service"]
    assert enabled_instances(SysRoot(str(tmp_path / "sys")), "rdma-x@.service") == []
