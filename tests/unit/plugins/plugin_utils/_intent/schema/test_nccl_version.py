# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Since which version NCCL knows a thing."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import knows


@pytest.mark.parametrize(
    ("version", "since", "known"),
    [
        ("2.30.7", (2, 30, 7), True),
        ("2.30.8", (2, 30, 7), True),
        ("2.31.0", (2, 30, 7), True),
        ("2.30.6", (2, 30, 7), False),
        ("2.9.8", (2, 30, 7), False),
        ("2.30", (2, 30, 7), True),
        ("2.29", (2, 30, 7), False),
        ("3.0", (2, 30, 7), True),
        ("2.20.5", (2, 21), False),
        ("2.21.5", (2, 21), True),
        ("2.1.2", (), True),
        (None, (2, 30, 7), True),
    ],
)
def test_a_version_knows_what_came_before_it(version: str | None, since: tuple[int, ...], known: bool) -> None:
    assert knows(version, since) is known
