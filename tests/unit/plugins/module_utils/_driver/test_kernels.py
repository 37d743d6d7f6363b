# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Installed kernels: their order, their flavors, and their headers."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernels import flavor, newest, read_headers, read_kernels, version_key
from tests.unit.builders.trees import write_tree

#: Each the oldest first.
ORDERS = {
    "Debian 12": ["6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-31-amd64", "6.10.11+bpo-amd64"],
    "Debian 13": ["6.1.0-31-amd64", "6.12.9+bpo-amd64", "6.12.12+deb13-amd64", "6.12.41+deb13-amd64"],
    "release candidates": ["6.12-rc6-amd64", "6.12.0-rc1", "6.12.0-1-amd64", "6.12.3-amd64"],
    "Ubuntu": ["5.15.0-105-generic", "6.5.0-9-generic", "6.5.0-44-generic", "6.8.0-51-generic", "6.8.0-1013-aws"],
    "RHEL": [
        "5.14.0-70.el9.x86_64",
        "5.14.0-70.13.1.el9_0.x86_64",
        "5.14.0-362.8.1.el9_3.x86_64",
        "5.14.0-362.18.1.el9_3.x86_64",
        "5.14.0-427.13.1.el9_4.x86_64",
        "5.14.0-503.el9.x86_64",
    ],
    "aarch64": ["5.14.0-70.el9.aarch64", "5.14.0-70.13.1.el9_0.aarch64", "5.14.0-427.13.1.el9_4.aarch64"],
    "elrepo": ["5.4.278-1.el9.elrepo.x86_64", "6.9.7-1.el9.elrepo.x86_64", "6.10.3-1.el9.elrepo.x86_64"],
    "tilde": ["6.1~rc1", "6.1", "6.1.1"],
    "leading zeros": ["6.8.0-0009-generic", "6.8.0-10-generic", "6.8.0-060800rc3-generic", "6.8.0-060800-generic", "6.8.0-060801-generic"],
}
FLAVORS = {
    ("amd64",): ["6.1.0-9-amd64", "6.1.0-0.deb11.5-amd64", "6.10.11+bpo-amd64", "6.12.41+deb13+1-amd64", "6.12-rc6-amd64"],
    ("cloud", "amd64"): ["6.1.0-9-cloud-amd64", "6.12.41+deb13-cloud-amd64"],
    ("rt", "amd64"): ["6.1.0-9-rt-amd64"],
    ("generic",): ["5.15.0-105-generic", "6.8.0-060800rc3-generic"],
    ("aws",): ["6.8.0-1013-aws"],
    ("nvidia", "64k"): ["6.8.0-1013-nvidia-64k"],
    ("azure", "fde"): ["6.8.0-1013-azure-fde"],
    ("x86",): ["5.14.0-70.el9.x86_64", "5.14.0-70.13.1.el9_0.x86_64", "6.5.6-300.fc39.x86_64"],
    ("x86", "rt"): ["5.14.0-427.13.1.el9_4.x86_64+rt"],
    ("rt", "x86"): ["5.14.0-162.6.1.rt21.168.el9_1.x86_64", "5.14.0-162.18.1.rt21.181.el9_1.x86_64"],
    ("elrepo", "x86"): ["6.10.3-1.el9.elrepo.x86_64"],
    ("default",): ["6.4.0-150600.21-default"],
    (): ["6.1", ""],
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_of_releases(name: str) -> None:
    for older, newer in itertools.combinations(ORDERS[name], 2):
        assert version_key(older) < version_key(newer)


@pytest.mark.parametrize(("words", "release"), [(words, release) for words, releases in FLAVORS.items() for release in releases])
def test_flavor(words: tuple[str, ...], release: str) -> None:
    assert flavor(release) == words


@given(text=st.text(st.sampled_from("0123456789.-+_~²٣aelrt") | st.characters(), max_size=40))
def test_any_name_has_a_place_and_a_flavor(text: str) -> None:
    assert version_key(text) == version_key(text) != version_key(f"{text}1")
    assert isinstance(flavor(text), tuple)


def test_a_number_may_be_long() -> None:
    assert version_key("6." + "9" * 10_000) < version_key("6.1" + "0" * 10_000)


@pytest.mark.parametrize(
    ("kernels", "running", "expected"),
    [
        pytest.param(ORDERS["Debian 12"], "6.1.0-9-amd64", "6.10.11+bpo-amd64", id="an older one runs"),
        pytest.param(["6.1.0-9-amd64", "6.1.0-10-cloud-amd64", "6.1.0-10-rt-amd64"], "6.1.0-9-amd64", "6.1.0-9-amd64", id="other flavors"),
        pytest.param(["6.1.0-9-amd64"], "6.1.0-8-amd64", "6.1.0-9-amd64", id="one that was removed runs"),
        pytest.param(["6.8.0-51-generic"], "6.8.0-1013-aws", None, id="none of its flavor"),
        pytest.param(["6.8.0-51-generic"], None, None, id="not known which runs"),
        pytest.param([], "6.8.0-51-generic", None, id="none installed"),
    ],
)
def test_newest(kernels: list[str], running: str | None, expected: str | None) -> None:
    assert newest(kernels, running) == newest(kernels[::-1], running) == expected


MACHINE = """
    /lib/modules/6.1.0-11-amd64/modules.dep: x
    /lib/modules/6.1.0-11-amd64/modules.builtin: x
    /lib/modules/6.1.0-11-amd64/modules.order: x
    /lib/modules/6.1.0-10-amd64/modules.dep: x
    /lib/modules/6.1.0-10-amd64/kernel/net/x.ko: x
    /lib/modules/6.1.0-10-amd64/build -> /usr/src/linux-headers-6.1.0-10-amd64
    /usr/src/linux-headers-6.1.0-10-amd64/Makefile: x
    /lib/modules/6.1.0-9-amd64/kernel/net/x.ko: x
    /lib/modules/6.1.0-9-amd64/build -> /usr/src/linux-headers-6.1.0-9-amd64
    /lib/modules/6.1.0-8-amd64/build -> /usr/src/linux-headers-6.1.0-8-amd64
    /usr/src/linux-headers-6.1.0-8-amd64/include/generated/autoconf.h: x
    /lib/modules/6.1.0-7-amd64/updates/dkms/x.ko: x
"""


def test_what_has_modules_is_installed(tmp_path: Path) -> None:
    assert read_kernels(SysRoot(str(write_tree(tmp_path, MACHINE)))) == ["6.1.0-9-amd64", "6.1.0-10-amd64"]


@pytest.mark.parametrize("link", ["/lib -> usr/lib", ""])
def test_they_may_be_below_usr(tmp_path: Path, link: str) -> None:
    tree = MACHINE.replace("/lib/modules/", "/usr/lib/modules/") + link
    assert read_kernels(SysRoot(str(write_tree(tmp_path, tree)))) == ["6.1.0-9-amd64", "6.1.0-10-amd64"]


def test_no_kernel(tmp_path: Path) -> None:
    assert read_kernels(SysRoot(str(tmp_path))) == []


def test_headers_are_where_the_link_leads_to(tmp_path: Path) -> None:
    releases = ["6.1.0-8-amd64", "6.1.0-9-amd64", "6.1.0-10-amd64", "6.2"]
    assert list(read_headers(SysRoot(str(write_tree(tmp_path, MACHINE))), releases).items()) == [
        ("6.1.0-8-amd64", True),
        ("6.1.0-9-amd64", False),
        ("6.1.0-10-amd64", True),
        ("6.2", False),
    ]
