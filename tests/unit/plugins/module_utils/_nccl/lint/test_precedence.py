# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which source of NCCL's variables counts for which user."""

from __future__ import annotations

import json

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import (
    ENVIRONMENT,
    NAMED_FILE,
    SITE_FILE,
    USER_FILE,
    Job,
    Setting,
    Source,
    as_read,
    jobs,
)
from tests.unit.builders.hosts import FIXTURES

SITE = Source(SITE_FILE, "/etc/nccl.conf", "", {"NCCL_DEBUG": "WARN", "NCCL_IB_TC": "106"})
ALICE = Source(USER_FILE, "/home/alice/.nccl.conf", "alice", {"NCCL_DEBUG": "INFO"})
SLURM = Source(ENVIRONMENT, "environment of slurmd.service", "slurmd.service", {"NCCL_CONF_FILE": "/opt/nccl.conf", "NCCL_DEBUG": "TRACE"})
NAMED = Source(NAMED_FILE, "/opt/nccl.conf", "slurmd.service", {"NCCL_IB_TC": "104"})
HOME = Source(USER_FILE, "/root/.nccl.conf", "slurmd.service", {"NCCL_IB_SL": "3"})
ALL = [SITE, ALICE, NAMED, HOME, SLURM]


def order(version: str | None, *sources: Source) -> dict[str, list[str]]:
    return {job.owner: [source.kind for source in job.sources] for job in jobs(sources or ALL, version)}


def test_the_order_of_each_owner() -> None:
    assert order(None) == {
        "alice": [USER_FILE, SITE_FILE],
        "slurmd.service": [ENVIRONMENT, NAMED_FILE, SITE_FILE],
        "every other job": [SITE_FILE],
    }


@pytest.mark.parametrize(("version", "second"), [("2.22.3", USER_FILE), ("2.23.4", NAMED_FILE), ("2.23", NAMED_FILE), (None, NAMED_FILE)])
def test_the_file_that_the_environment_names_is_read_since_2_23(version: str | None, second: str) -> None:
    assert order(version)["slurmd.service"] == [ENVIRONMENT, second, SITE_FILE]


def test_an_empty_name_of_a_file_is_none() -> None:
    empty = Source(ENVIRONMENT, SLURM.path, SLURM.owner, {"NCCL_CONF_FILE": ""})
    assert order(None, SITE, empty, HOME)["slurmd.service"] == [ENVIRONMENT, USER_FILE, SITE_FILE]


def test_the_first_that_sets_a_variable_counts_and_hides_the_others() -> None:
    alice, slurm, others = jobs(ALL, None)
    assert alice == Job(
        "alice",
        (ALICE, SITE),
        {"NCCL_DEBUG": Setting("NCCL_DEBUG", "INFO", ALICE, ((SITE, "WARN"),)), "NCCL_IB_TC": Setting("NCCL_IB_TC", "106", SITE)},
    )
    assert slurm.settings["NCCL_IB_TC"] == Setting("NCCL_IB_TC", "104", NAMED, ((SITE, "106"),))
    assert "NCCL_IB_SL" not in slurm.settings
    assert others.settings["NCCL_DEBUG"] == Setting("NCCL_DEBUG", "WARN", SITE)


def test_an_empty_value_hides_as_any_other() -> None:
    empty = Source(USER_FILE, ALICE.path, "alice", {"NCCL_IB_TC": ""})
    assert jobs([SITE, empty], None)[0].settings["NCCL_IB_TC"] == Setting("NCCL_IB_TC", "", empty, ((SITE, "106"),))


def test_a_container_has_its_own_file_in_the_place_of_the_hosts() -> None:
    inside = Source(SITE_FILE, "/etc/nccl.conf", "process 7", {}, in_container=True)
    process = Source(ENVIRONMENT, "environment of process 7", "process 7", {})
    job = jobs([SITE, process, inside], None)[0]
    assert job.sources == (process, inside)
    assert [source.place for source in job.sources] == ["the environment of process 7", "/etc/nccl.conf in the container of process 7"]


READ = json.loads((FIXTURES / "nccl/read-by-nccl.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", range(len(READ["files"])))
@pytest.mark.parametrize("version", ["2.30.7", "2.31.2", "2.32.3", None])
def test_the_source_that_counts_is_the_one_that_nccl_itself_has_taken(case: int, version: str | None) -> None:
    seen = READ["files"][case]
    texts = {USER_FILE: seen["user_file"], NAMED_FILE: seen["named_file"]}
    files = [Source(kind, kind, "alice", parse_nccl_conf(text).variables) for kind, text in texts.items() if text is not None]
    sources = [Source(ENVIRONMENT, "environment of alice", "alice", seen["environment"]), *files]
    setting = jobs([as_read(source, version) for source in sources], version)[0].settings.get("NCCL_SOCKET_IFNAME")
    assert (setting.value if setting else None) == seen["took"]


def test_nothing_at_all() -> None:
    assert jobs([], None) == [Job("every other job", ())]
