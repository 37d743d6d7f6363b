# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kernel the image gets: the newest but one of the same flavor, by number and not by letter."""

from __future__ import annotations

import pytest

from lab import kernels
from lab.errors import LabError

NEWEST = "linux-image-6.1.0-10-amd64"
FOUND = """\
linux-image-6.1.0-10-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.1.0-8-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.1.0-9-amd64 - Linux 6.1 for 64-bit PCs (signed)
"""
DEPENDS = """\
linux-image-amd64
  Depends: linux-image-6.1.0-10-amd64
"""


def test_the_newest_but_one_is_taken() -> None:
    assert kernels.second_newest(NEWEST, FOUND) == "linux-image-6.1.0-9-amd64"


def test_a_kernel_that_is_known_to_be_broken_is_passed_over() -> None:
    found = "".join(f"linux-image-6.1.0-{abi}-amd64 - Linux 6.1 for 64-bit PCs (signed)\n" for abi in (54, 55, 56))
    assert kernels.second_newest("linux-image-6.1.0-56-amd64", found) == "linux-image-6.1.0-54-amd64"


@pytest.mark.parametrize("found", ["", "linux-image-6.1.0-10-amd64 - Linux\n", "linux-image-6.12.0-3-amd64 - a backport\n"])
def test_a_kernel_alone_is_taken_itself(found: str) -> None:
    assert kernels.second_newest(NEWEST, found) == NEWEST


TRIXIE = """\
linux-image-6.12.107+deb13-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.115+deb13.1-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.115+deb13-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.117+deb13-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.117+deb13-amd64-dbg - Debug symbols for linux-image-6.12.117+deb13-amd64
linux-image-6.12.117+deb13-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.117+bpo-amd64 - a backport
linux-image-6.12.118+deb13-amd64 - Linux 6.12 for 64-bit PCs (signed)
"""


def test_names_of_debian_13_have_the_release_in_them() -> None:
    assert kernels.second_newest("linux-image-6.12.118+deb13-amd64", TRIXIE) == "linux-image-6.12.115+deb13.1-amd64"


@pytest.mark.parametrize("name", ["linux-image-6.1.0-10-cloud-amd64", "linux-image-amd64", "linux-headers-6.1.0-10-amd64"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(LabError, match="is not the name of a kernel's package"):
        kernels.second_newest(name, FOUND)


ASKED = {
    "debian": ("linux-image-amd64", r"^linux-image-6\.1\.[0-9].*-amd64$", DEPENDS, FOUND),
    "ubuntu": (
        "linux-image-generic",
        r"^linux-image-6\.8\.[0-9].*-generic$",
        "linux-image-generic\n  Depends: linux-image-6.8.0-90-generic\n  Depends: linux-modules-extra-6.8.0-90-generic\n",
        "linux-image-6.8.0-90-generic - Signed kernel image generic\nlinux-image-6.8.0-88-generic - Signed kernel image generic\n",
    ),
}
CHOSEN = [
    ("debian", ["linux-image-6.1.0-9-amd64"]),
    # rdma_rxe is in Ubuntu's second package.
    ("ubuntu", ["linux-image-6.8.0-88-generic", "linux-modules-extra-6.8.0-88-generic"]),
]


@pytest.mark.parametrize(("distribution", "packages"), CHOSEN)
def test_apt_is_asked_for_what_the_meta_package_stands_for(distribution: str, packages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    meta, pattern, depends, found = ASKED[distribution]
    answers = {
        ("apt-cache", "depends", "--important", meta): depends,
        ("apt-cache", "search", "--names-only", pattern): found,
    }
    monkeypatch.setattr(kernels, "run", lambda argv: answers[tuple(argv)])
    assert kernels.image_packages(distribution) == packages


def test_without_package_lists_it_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "run", lambda argv: "")
    with pytest.raises(LabError, match="apt-get update"):
        kernels.image_packages("ubuntu")
