# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long NCCL retries, and how long the fabric needs."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.outage import check_outage, detection_seconds, give_up_seconds
from tests.unit.builders.hosts import lab_intent


@pytest.mark.parametrize(("timeout", "retries", "seconds"), [(14, 7, 0.47), (18, 7, 7.516), (20, 7, 30.06), (22, 7, 120.26), (20, 0, 0)])
def test_when_a_queue_pair_gives_up(timeout: int, retries: int, seconds: float) -> None:
    assert give_up_seconds(timeout, retries) == pytest.approx(seconds, rel=0.001)


def test_a_timeout_of_zero_never_ends() -> None:
    assert give_up_seconds(0, 7) is None


@pytest.mark.parametrize(("timeout", "retries"), [(32, 7), (-1, 7), (18, 8), (18, -1)])
def test_other_numbers_are_refused(timeout: int, retries: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to 31 and 0 to 7"):
        give_up_seconds(timeout, retries)


def test_how_long_a_fabric_needs_to_notice() -> None:
    assert detection_seconds(carrier_lost=True, bfd=False) == 0.43
    assert detection_seconds(carrier_lost=False, bfd=True) == pytest.approx(0.9)
    assert detection_seconds(carrier_lost=False, bfd=True, interval_ms=50, multiplier=3) == pytest.approx(0.15)
    assert detection_seconds(carrier_lost=False, bfd=False) == 9
    assert detection_seconds(carrier_lost=False, bfd=False, hold_seconds=180) == 180


def judged(most_ms: int | None, version: str | None = None, **variables: str) -> list[Finding]:
    intent = lab_intent()
    intent["fabric"]["max_outage_ms"] = most_ms
    intent["nccl"]["version"] = version
    return check_outage("node1", intent, variables)


def test_without_the_key_nothing_is_said() -> None:
    assert judged(None) == []


def test_an_outage_that_nccl_does_not_survive() -> None:
    [finding] = judged(12600, NCCL_IB_TIMEOUT="18")
    assert finding.status == ERROR
    assert finding.observed == (
        "the fabric needs 12.6 s; NCCL gives up after 7.5 s (NCCL_IB_TIMEOUT=18, NCCL_IB_RETRY_CNT=7; NICs may take longer)"
    )
    assert finding.remedy.startswith(
        "1. Set NCCL_IB_TIMEOUT: 19 and NCCL_IB_RETRY_CNT: 7 in rdma_nccl.variables of all hosts: NCCL then gives up after 15.0 s. "
        "2. Or shorten the outage: with BFD (300 ms × 3) a routed fabric notices a silent cut after 0.9 s, "
        "without it after BGP's hold time (9 s)."
    )


@pytest.mark.parametrize(
    ("version", "status"), [("2.13.4", ERROR), ("2.14.3", ERROR), ("2.22.3", ERROR), ("2.23.4", OK), ("2.30.7", OK), (None, UNKNOWN)]
)
def test_the_default_of_each_version(version: str | None, status: str) -> None:
    assert [each.status for each in judged(12600, version)] == [status]


@pytest.mark.parametrize(("most_ms", "status"), [(400, OK), (500, UNKNOWN), (30000, UNKNOWN), (31000, ERROR)])
def test_without_a_version_the_defaults_of_all_versions_count(most_ms: int, status: str) -> None:
    [finding] = judged(most_ms)
    assert finding.status == status
    if status == UNKNOWN:
        assert finding.observed == "NCCL_IB_TIMEOUT is not set, and its default depends on NCCL's version: 14, 18, 20"
        assert finding.remedy == "Set NCCL_IB_TIMEOUT in rdma_nccl.variables of all hosts, or rdma_nccl.version."


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({"NCCL_IB_TIMEOUT": "0"}, OK),
        ({"NCCL_IB_RETRY_CNT": "1"}, ERROR),
        ({"NCCL_IB_TIMEOUT": "soon"}, UNKNOWN),
        ({"NCCL_IB_TIMEOUT": "40"}, UNKNOWN),
    ],
)
def test_each_value(variables: dict[str, str], status: str) -> None:
    [finding] = judged(12600, **variables)
    assert (finding.status, bool(finding.remedy)) == (status, status != OK)


def test_a_host_without_compute_rails_is_not_judged() -> None:
    intent = lab_intent()
    intent["fabric"]["max_outage_ms"], intent["rails"] = 1000, []
    assert [each.status for each in check_outage("node1", intent, {})] == [NOT_APPLICABLE]
