# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The distribution and its RDMA packages."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._distribution import (
    PACKAGES,
    parse_dpkg_status,
    parse_os_release,
    read_distribution,
)
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

# cat /etc/os-release on Debian 12
OS_RELEASE = """\
PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
HOME_URL="https://www.debian.org/"
"""
# From /var/lib/dpkg/status on a lab machine, shortened; perftest was removed, its configuration stayed.
STATUS = """\
Package: rdma-core
Status: install ok installed
Priority: optional
Section: net
Architecture: amd64
Version: 44.0-2
Depends: libc6 (>= 2.34), udev
Description: RDMA core userspace infrastructure and documentation
 This is the userspace infrastructure to use the Linux kernel's RDMA
 subsystem.

Package: perftest
Status: deinstall ok config-files
Architecture: amd64
Version: 4.5+0.17-1

Package: mstflint
Status: hold ok installed
Version: 4.21.0-1

Package: rdma-core-extra
Status: install ok installed
Version: 1
"""


def test_os_release() -> None:
    values = parse_os_release(OS_RELEASE)
    assert (values["ID"], values["VERSION_ID"], values["PRETTY_NAME"]) == ("debian", "12", "Debian GNU/Linux 12 (bookworm)")


@pytest.mark.parametrize("line", ["ID", 'NAME="Debian', "NAME=two words"])
def test_a_line_that_is_no_assignment_is_quoted(line: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_os_release(f"ID=debian\n{line}\n")
    assert repr(line) in str(caught.value)


@given(st.text())
def test_os_release_raises_nothing_but_parse_error(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert isinstance(parse_os_release(text), dict)


def test_dpkg_status() -> None:
    assert parse_dpkg_status(STATUS, PACKAGES) == {
        "ibverbs-utils": None,
        "infiniband-diags": None,
        "mstflint": "4.21.0-1",
        "perftest": None,
        "rdma-core": "44.0-2",
    }


def test_a_host_without_dpkg_does_not_know_its_packages(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n')
    found = read_distribution(SysRoot(str(tmp_path)))
    assert (found.id, found.version_id, found.like, found.packages) == ("rocky", "9.4", ["rhel", "centos", "fedora"], None)
