# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What rpm says is installed. The sample is in the form that rpm 4.18 prints."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import parse_rpm_packages, read_rpm_packages
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, read_or_refused

QUERY = ["rpm", "-qa", "--queryformat", "%{NAME} %{EVR}\\n"]
SAMPLE = """\
rdma-core 48.0-1.el9
gpg-pubkey 8483c65d-5ccc5b19
gpg-pubkey 6275f250-5e26cb2e
libibverbs-utils 48.0-1.el9
mlnx-ofa_kernel 24.10-OFED.24.10.1.1.4.1.rhel9u4
openssl 1:3.0.7-27.el9
"""


def test_packages() -> None:
    assert parse_rpm_packages(SAMPLE) == {
        "rdma-core": "48.0-1.el9",
        "gpg-pubkey": "8483c65d-5ccc5b19",
        "libibverbs-utils": "48.0-1.el9",
        "mlnx-ofa_kernel": "24.10-OFED.24.10.1.1.4.1.rhel9u4",
        "openssl": "1:3.0.7-27.el9",
    }


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "names no package"),
        ("rdma-core 48.0-1.el9\nperftest", "'perftest'"),
        ("rdma-core\n", "'rdma-core'"),
        ("error: cannot open Packages database\n", "'error: cannot open Packages database'"),
        ("rdma-core 48.0-1.el9\n\n", "''"),
    ],
)
def test_another_output_is_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_rpm_packages(text)
    assert quoted in str(caught.value)


@given(text=garbled(SAMPLE))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_rpm_packages, text)


def test_the_running_system_is_asked_once() -> None:
    runner = FakeRunner([(QUERY, 0, SAMPLE, "warning: Found bdb database\n")])
    assert len(read_rpm_packages(runner) or {}) == 5


def test_a_database_that_cannot_be_read_is_not_known() -> None:
    assert read_rpm_packages(FakeRunner([(QUERY, 1, "", "error: cannot open Packages database in /var/lib/rpm\n")])) is None


def test_a_host_without_rpm_is_not_known() -> None:
    class NoRpm:
        def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
            raise CommandError(f"command not found: {argv[0]}")

    assert read_rpm_packages(NoRpm()) is None
