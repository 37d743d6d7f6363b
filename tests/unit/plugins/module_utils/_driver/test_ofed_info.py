# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ofed_info prints: of MLNX_OFED 4.6 to 24.10 and of DOCA-OFED."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import OfedInfo, parse_ofed_info
from tests.unit.builders.garbled import garbled, read_or_refused

COMPONENTS = """MLNX_OFED_LINUX-23.10-1.1.9.0 (OFED-23.10-1.1.9):

clusterkit:
/release/SRPMS/clusterkit-1.11.442-1.2310055.src.rpm

mlnx-ofa_kernel:
mlnx_ofed/mlnx-ofa_kernel-4.0.git mlnx_ofed_23_10
commit 0123456789abcdef0123456789abcdef01234567
sharp:
mlnx_ofed_sharp/sharp-3.5.1.MLNX20231116.7fcef5af.tar.gz


"""
DPKG = (
    COMPONENTS
    + """Installed Packages:
-------------------
ii  dpcp                                  1.1.43-1.2310055                         amd64        Direct Packet Control Plane
ii  ibverbs-providers:amd64               2307mlnx47-1.2310119                     amd64        User space provider drivers
rc  knem                                  1.1.4.90mlnx3-OFED.23.10.0.2.1.1         amd64        userspace tools
hi  mlnx-ofed-kernel-dkms                 23.10.OFED.23.10.1.1.9.1-1               all          DKMS support
ii  perftest                              23.10.0-0.29.g0705c22.2310055            amd64        Infiniband verbs performance tests
"""
)
RPM = (
    COMPONENTS
    + """Installed Packages:
-------------------

kmod-mlnx-ofa_kernel
rdma-core-devel
infiniband-diags
ucx
"""
)
DPKG_PACKAGES = {
    "dpcp": "1.1.43-1.2310055",
    "ibverbs-providers": "2307mlnx47-1.2310119",
    "mlnx-ofed-kernel-dkms": "23.10.OFED.23.10.1.1.9.1-1",
    "perftest": "23.10.0-0.29.g0705c22.2310055",
}


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("MLNX_OFED_LINUX-24.10-1.1.4.0:\n", "MLNX_OFED_LINUX", "24.10-1.1.4.0"),
        ("MLNX_OFED_LINUX-5.9-0.5.6.0.127:\n", "MLNX_OFED_LINUX", "5.9-0.5.6.0.127"),
        ("OFED-internal-25.01-0.6.0:\n", "OFED-internal", "25.01-0.6.0"),
        ("OFED-internal-24.10-1.1.4.0.200:\r\n", "OFED-internal", "24.10-1.1.4.0.200"),
        ("mlnx-en-5.8-1.1.2.1:", "mlnx-en", "5.8-1.1.2.1"),
        ("$ ofed_info -s\n    OFED-internal-25.10-1.7.1:\n$", "OFED-internal", "25.10-1.7.1"),
    ],
)
def test_the_short_form(text: str, name: str, version: str) -> None:
    assert parse_ofed_info(text) == OfedInfo(name=name, version=version, packages=None)


def test_packages_of_debian_have_versions() -> None:
    assert parse_ofed_info(DPKG) == OfedInfo("MLNX_OFED_LINUX", "23.10-1.1.9.0", DPKG_PACKAGES)


def test_packages_of_red_hat_are_names() -> None:
    names = ["kmod-mlnx-ofa_kernel", "rdma-core-devel", "infiniband-diags", "ucx"]
    assert parse_ofed_info(RPM).packages == dict.fromkeys(names)


def test_packages_of_red_hat_with_versions() -> None:
    text = RPM.replace("ucx\n", "ucx-cma-1.16.0-1.2310119.x86_64\nmlnx-tools-23.10.0-1.2310119.noarch\nibacm-41mlnx1-OFED\n")
    packages = parse_ofed_info(text).packages
    assert packages is not None
    assert list(packages.items())[-3:] == [("ucx-cma", "1.16.0-1.2310119"), ("mlnx-tools", "23.10.0-1.2310119"), ("ibacm", "41mlnx1-OFED")]


def test_the_list_alone_and_the_head_alone() -> None:
    head, _components, packages = DPKG.partition("\n\nclusterkit")
    listed = head + "\nInstalled Packages:" + packages.partition("Installed Packages:")[2]
    assert parse_ofed_info(listed).packages == DPKG_PACKAGES
    assert parse_ofed_info(f"{head}\n\nlsmod | grep mlx\n").packages is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "\n    "),
        lambda text: "# ofed_info\n" + text + "\n[root@node1 ~]# uname -r\n5.14.0\n",
    ],
    ids=["crlf", "blank-lines", "indented", "prompts"],
)
def test_blanks_and_other_lines_do_not_matter(spoil: Callable[[str], str]) -> None:
    assert parse_ofed_info(spoil(DPKG)) == parse_ofed_info(DPKG)
    assert parse_ofed_info(spoil(RPM)) == parse_ofed_info(RPM)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", ""),
        ("bash: ofed_info: command not found\n", "command not found"),
        ("MLNX_OFED_LINUX-24.10-1.1", "MLNX_OFED_LINUX-24.10-1.1"),
        ("OFED-internal-24.10:\n", "OFED-internal-24.10:"),
        ("24.10-1.1.4.0\n", "24.10-1.1.4.0"),
        (COMPONENTS, "sharp-3.5.1"),
        (COMPONENTS + "Installed Packages:\n-------------------\n", "-------------------"),
        (DPKG.rpartition("ii  perftest")[0] + "ii  perf", "ii  perf"),
    ],
    ids=range(8),
)
def test_what_is_no_whole_output_is_an_error_that_quotes_it(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ofed_info(text)
    assert quoted in str(caught.value)


@given(garbled(DPKG) | garbled(RPM) | garbled("OFED-internal-25.01-0.6.0:\n"))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_ofed_info, text)
