# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is rebooted has everything back by itself."""

from __future__ import annotations

from lab.cluster import Lab
from tests.verify.driver import Hosts
from tests.verify.nodes import assert_modules, assert_rails, say


def test_after_a_reboot_everything_is_back_by_itself(lab: Lab) -> None:
    node = lab.plan.node("node2")
    Hosts(lab).reboot("node2")
    assert say(lab, node, "systemctl is-system-running").strip() == "running"
    assert_rails(lab, node)
    assert_modules(lab, node)
