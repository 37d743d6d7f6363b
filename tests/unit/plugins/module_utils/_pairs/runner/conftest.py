# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packed pair runner, and hosts that run it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.folder import PROGRAM
from tests.unit.builders.pair_runners import Fleet, eventually


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that hosts get."""
    path = tmp_path_factory.mktemp("program") / PROGRAM
    path.write_bytes(host_program("_pairs.runner.main"))
    return path


@pytest.fixture
def fleet(tmp_path: Path, program: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    made = Fleet(tmp_path, program, *getattr(request, "param", (2, 1)))
    yield made
    for process in made.started.values():
        process.kill()
        process.communicate()
    eventually(lambda: not made.left_behind(), 5)
