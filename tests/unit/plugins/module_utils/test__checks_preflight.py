# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the preflight stage on one host."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._checks_preflight import SUPPORTED_WORDS, check_preflight
from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from tests.unit.hosts import lab_facts


def check(distribution: tuple[str | None, str | None] = ("debian", "12"), kernel: str | None = "6.1.0-56-amd64") -> list[Finding]:
    facts = lab_facts()
    facts["stack"]["distribution"].update(id=distribution[0], version_id=distribution[1])
    facts["stack"]["kernel"] = kernel
    return check_preflight("node1", facts)


def test_a_lab_machine_passes() -> None:
    assert check_preflight("node1", lab_facts()) == [
        Finding("preflight", "preflight.os", "node1", "distribution", "ok", "debian 12", SUPPORTED_WORDS),
        Finding("preflight", "preflight.kernel", "node1", "running kernel", "ok", "6.1.0-56-amd64", "5.4 or newer"),
    ]


DISTRIBUTIONS = [
    ("debian", "12", "ok"),
    ("debian", "13", "ok"),
    ("debian", "11", "error"),
    # Debian's testing has no number.
    ("debian", None, "error"),
    ("ubuntu", "22.04", "ok"),
    ("ubuntu", "24.04", "ok"),
    ("ubuntu", "20.04", "error"),
    ("ubuntu", "12", "error"),
    ("rhel", "8.10", "error"),
    ("opensuse-leap", "15.6", "error"),
    (None, None, "unknown"),
]


@pytest.mark.parametrize(("name", "version", "status"), DISTRIBUTIONS)
def test_the_distribution(name: str | None, version: str | None, status: str) -> None:
    found = check((name, version))[0]
    assert (found.check, found.status) == ("preflight.os", status)
    assert bool(found.remedy) is (status != "ok")


def test_a_distribution_that_is_not_supported_is_named_with_what_is() -> None:
    found = check(("ubuntu", "20.04"))[0]
    assert (found.observed, found.expected) == ("ubuntu 20.04", "Debian 12 or 13, Ubuntu 22.04 or 24.04")
    assert found.remedy == "Take node1 out of the play with --limit, or install a supported distribution on it."


KERNELS = [
    ("6.1.0-56-amd64", "ok"),
    ("5.4.0-200-generic", "ok"),
    ("5.15.0-25-generic", "ok"),
    ("10.0", "ok"),
    ("5.3.18-150300.59", "error"),
    ("4.19.0-27-amd64", "error"),
    ("", "unknown"),
    ("linux", "unknown"),
    ("linux-6.1", "unknown"),
    (None, "unknown"),
]


@pytest.mark.parametrize(("release", "status"), KERNELS)
def test_the_kernel(release: str | None, status: str) -> None:
    found = check(kernel=release)[1]
    assert (found.check, found.status, found.expected) == ("preflight.kernel", status, "5.4 or newer")
    assert ("node1" in found.remedy) is (status != "ok")
