# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The distribution and its RDMA packages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import (
    DPKG_STATUS,
    Dpkg,
    family_of,
    parse_dpkg_status,
    parse_os_release,
    read_distribution,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree

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


@given(garbled(OS_RELEASE))
def test_os_release_raises_nothing_but_parse_error(text: str) -> None:
    assert read_or_refused(parse_os_release, text)


def machine(root: Path, os_release: str, status: str | None = None) -> SysRoot:
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text(os_release)
    if status is not None:
        (root / "var/lib/dpkg").mkdir(parents=True)
        (root / "var/lib/dpkg/status").write_text(status)
    return SysRoot(str(root))


def test_dpkg_status() -> None:
    assert parse_dpkg_status(STATUS) == Dpkg({"rdma-core": "44.0-2", "mstflint": "4.21.0-1", "rdma-core-extra": "1"}, ["mstflint"])


def test_a_package_of_two_architectures_counts_once() -> None:
    other = "\nPackage: mstflint\nStatus: hold ok installed\nArchitecture: i386\nVersion: 4.21.0-1\n"
    assert parse_dpkg_status(STATUS + other) == parse_dpkg_status(STATUS)


@pytest.mark.parametrize("text", ["", "\n\n\n", "Package: perftest\nStatus: install ok installed\n"])
def test_a_status_without_anything_installed(text: str) -> None:
    assert parse_dpkg_status(text) == Dpkg({}, [])


def test_a_text_without_a_package_is_no_status() -> None:
    with pytest.raises(ParseError, match=r"not dpkg's status file: 'Version: 1\\n'"):
        parse_dpkg_status("Version: 1\n")


@given(garbled(STATUS))
def test_any_status_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_dpkg_status, text)
    if "Package: " in text:
        return
    assert not text.strip() or _refuses(text)


def _refuses(text: str) -> bool:
    try:
        parse_dpkg_status(text)
    except ParseError:
        return True
    return False


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="this system has no dpkg to compare with")
def test_as_dpkg_says_it() -> None:
    command = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\\n"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    answer = [line.split(" ") for line in lines if line.endswith((" install installed", " hold installed"))]
    dpkg = parse_dpkg_status(SysRoot().read(DPKG_STATUS) or "")
    assert dpkg.versions == {name: version for name, version, *_want in answer}
    assert dpkg.held == sorted(name for name, _version, want, _status in answer if want == "hold")


OFED = """
Package: mlnx-ofed-kernel-dkms
Status: install ok installed
Version: 24.10.OFED.24.10.1.1.4.1-1

Package: ofed-scripts
Status: hold ok installed
Version: 24.10.OFED.24.10.1.1.4

Package: doca-ofed
Status: install ok installed
Version: 3.2.0-125000

Package: doca-sdk-common
Status: install ok installed
Version: 3.2.0125-1

Package: libmlnx-dev
Status: install ok installed
Version: 1

Package: mlnx-tools
Status: deinstall ok config-files
Version: 24.10.0.2410068

Package: linux-image-amd64
Status: hold ok installed
Version: 6.1.123-1
"""


def test_a_host_with_dpkg(tmp_path: Path) -> None:
    """No process is started."""
    found = read_distribution(machine(tmp_path, OS_RELEASE, STATUS + OFED), FakeRunner([]))
    assert (found.id, found.version_id, found.family) == ("debian", "12", "debian")
    assert found.packages == {
        "ibverbs-utils": None,
        "infiniband-diags": None,
        "mstflint": "4.21.0-1",
        "perftest": None,
        "rdma-core": "44.0-2",
    }
    assert found.vendor == {
        "doca-ofed": "3.2.0-125000",
        "mlnx-ofed-kernel-dkms": "24.10.OFED.24.10.1.1.4.1-1",
        "ofed-scripts": "24.10.OFED.24.10.1.1.4",
    }
    assert found.held == ["linux-image-amd64", "mstflint", "ofed-scripts"]


ROCKY = 'ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n'
RPM_QUERY = ["rpm", "-qa", "--queryformat", "%{NAME} %{EVR}\\n"]
RPMS = """\
bash 5.1.8-9.el9
kmod-mlnx-ofa_kernel 24.10-OFED.24.10.1.1.4.1.rhel9u4
mlnx-ofa_kernel 24.10-OFED.24.10.1.1.4.1.rhel9u4
rdma-core 2410mlnx54-1.2410068
libibverbs-utils 2410mlnx54-1.2410068
kmod-iser 24.10-OFED.24.10.1.1.4.1.rhel9u4
kmod 28-9.el9
"""


def test_a_host_with_rpm(tmp_path: Path) -> None:
    """dpkg can be installed there, too, but keeps nothing."""
    runner = FakeRunner([(RPM_QUERY, 0, RPMS, "")])
    found = read_distribution(machine(tmp_path, ROCKY, ""), runner)
    version = "24.10-OFED.24.10.1.1.4.1.rhel9u4"
    assert (found.family, found.held) == ("rpm", [])
    assert found.packages == {
        "infiniband-diags": None,
        "libibverbs-utils": "2410mlnx54-1.2410068",
        "mstflint": None,
        "perftest": None,
        "rdma-core": "2410mlnx54-1.2410068",
    }
    assert found.vendor == {"kmod-iser": version, "kmod-mlnx-ofa_kernel": version, "mlnx-ofa_kernel": version}


def test_a_captured_host_with_rpm_does_not_know_its_packages(tmp_path: Path) -> None:
    found = read_distribution(machine(tmp_path, ROCKY))
    assert (found.id, found.version_id, found.like, found.packages) == ("rocky", "9.4", ["rhel", "centos", "fedora"], None)
    assert (found.vendor, found.held, found.family) == (None, [], "rpm")


def test_an_rpm_that_does_not_answer_leaves_the_packages_unknown(tmp_path: Path) -> None:
    found = read_distribution(machine(tmp_path, ROCKY), FakeRunner([(RPM_QUERY, 1, "", "error: cannot open Packages database")]))
    assert (found.packages, found.vendor) == (None, None)


def test_a_debian_without_its_database_does_not_know_its_packages(tmp_path: Path) -> None:
    found = read_distribution(machine(tmp_path, OS_RELEASE), FakeRunner([]))
    assert (found.packages, found.vendor, found.held, found.family) == (None, None, None, "debian")


@pytest.mark.parametrize(
    ("ids", "family"),
    [
        (["debian"], "debian"),
        (["ubuntu", "debian"], "debian"),
        (["linuxmint", "ubuntu", "debian"], "debian"),
        (["rhel", "fedora"], "rpm"),
        (["rocky", "rhel", "centos", "fedora"], "rpm"),
        (["sles", "suse"], "rpm"),
        (["arch"], None),
        ([""], None),
    ],
)
def test_the_family(ids: list[str], family: str | None) -> None:
    assert family_of(ids) == family


def test_an_unknown_distribution_with_dpkg_is_of_debians_family(tmp_path: Path) -> None:
    found = read_distribution(machine(tmp_path, "ID=own\n", STATUS))
    assert (found.family, (found.packages or {})["rdma-core"]) == ("debian", "44.0-2")


@pytest.mark.parametrize(
    ("name", "brings"),
    [
        ("linux-image-amd64", True),
        ("linux-headers-cloud-arm64", True),
        ("linux-generic", True),
        ("linux-image-generic-hwe-24.04", True),
        ("linux-virtual", True),
        ("kernel", True),
        ("kernel-core", True),
        ("kernel-devel", True),
        ("linux-image-6.1.0-10-amd64", False),
        ("linux-headers-6.8.0-45-generic", False),
        ("linux-base", False),
        ("linux-libc-dev", False),
        ("linux-firmware", False),
        ("kernel-headers", False),
        ("kernel-tools-libs", False),
    ],
)
def test_what_brings_the_next_kernel(tmp_path: Path, name: str, brings: bool) -> None:
    status = f"Package: {name}\nStatus: install ok installed\nVersion: 1\n\n"
    write_tree(tmp_path, "/etc/os-release: ID=debian")
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(status)
    assert read_distribution(SysRoot(str(tmp_path))).kernels == ([name] if brings else [])
