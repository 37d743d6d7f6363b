# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.unit.builders.fakes import FakeRunner

# The same examples each time, so that a check fails for what was changed and not by chance; `make test-all` draws new ones.
# No deadline: the machines that run this have other work.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None)
settings.load_profile(os.environ.get("RDMA_TEST_EXAMPLES", "same"))


# As tests/tools/env.sh has it, also where a test is run without it.
os.environ.setdefault("ANSIBLE_INJECT_FACT_VARS", "false")


@pytest.fixture(autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that tests start leave their locks among the tests' own files."""
    monkeypatch.setenv("RDMA_LOCK_DIR", str(tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True)
def all_commands_are_run() -> Iterator[None]:
    """A test that expects a command which the code does not run fails."""
    FakeRunner.made.clear()
    yield
    for runner in FakeRunner.made:
        runner.assert_done()
