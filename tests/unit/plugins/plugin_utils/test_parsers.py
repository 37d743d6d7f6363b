# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every parser of the control node, found by its name: endless lines take no time, and nothing but a refusal escapes."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins import plugin_utils
from tests.unit.builders.endless import parsers, read_endless_lines, read_endless_values

PARSERS = parsers(plugin_utils)


def test_there_are_parsers() -> None:
    assert {"_fabric.cabling.plan.parse_plan", "_pairs.verdict.probes.parse_probes", "_intent.keys.parse_address"} <= set(PARSERS)


@pytest.mark.parametrize("name", PARSERS)
def test_a_line_without_an_end_takes_no_time(name: str) -> None:
    assert read_endless_lines(name, PARSERS[name])


@pytest.mark.parametrize("name", PARSERS)
def test_depth_and_endless_numbers_are_refused(name: str) -> None:
    assert read_endless_values(name, PARSERS[name])
