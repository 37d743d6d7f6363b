# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of DOCA's repository, as apt and dnf read them."""

from __future__ import annotations

import configparser

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import files as doca

URL = "https://linux.mellanox.com/public/repo/doca/3.2.0/debian12/x86_64/"


def files(family: str, profile: str = "doca-ofed", key: str | None = "KEY\n", url: str = URL) -> dict[str, str | None]:
    return {file.path: file.content for file in doca.repository_files(family, url=url, version="3.2.0", profile=profile, key=key)}


def fields(text: str | None) -> dict[str, str]:
    """A stanza of deb822."""
    return dict(line.split(": ", 1) for line in (text or "").splitlines() if line and not line.startswith("#"))


def test_apt_takes_the_repository_with_this_key_alone() -> None:
    there = files("debian")
    assert there[doca.APT_KEY] == "KEY\n"
    assert fields(there[doca.APT_ENTRY]) == {"Types": "deb", "URIs": URL, "Suites": "./", "Signed-By": doca.APT_KEY}
    assert fields(there[doca.APT_PIN]) == {"Package": "dkms", "Pin": 'origin "linux.mellanox.com"', "Pin-Priority": "100"}


def test_dnf_verifies_packages_and_prefers_the_repository() -> None:
    reader = configparser.ConfigParser()
    reader.read_string(files("rpm")[doca.DNF_ENTRY] or "")
    assert dict(reader["rdma-cluster-doca"]) == {
        "name": "DOCA 3.2.0", "baseurl": URL, "enabled": "1", "gpgcheck": "1", "gpgkey": f"file://{doca.DNF_KEY}", "priority": "50",
        "excludepkgs": "dkms",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "verified"), [("http://linux.mellanox.com", "1"), ("https://linux.mellanox.com", None), ("file:", None)]
)
def test_dnf_verifies_the_lists_that_come_over_http(scheme: str, verified: str | None) -> None:
    reader = configparser.ConfigParser()
    reader.read_string(files("rpm", url=f"{scheme}/public/repo/doca/")[doca.DNF_ENTRY] or "")
    assert reader["rdma-cluster-doca"].get("repo_gpgcheck") == verified
    assert reader["rdma-cluster-doca"]["gpgkey"] == f"file://{doca.DNF_KEY}"


@pytest.mark.parametrize(("profile", "out"), [("doca-ofed", ["dkms"]), ("doca-roce", ["dkms", "openmpi"])])
def test_openmpi_is_kept_out_where_nothing_depends_on_it(profile: str, out: list[str]) -> None:
    assert doca.kept_out(profile) == out
    assert fields(files("debian", profile)[doca.APT_PIN])["Package"] == " ".join(out)


def test_a_repository_in_a_folder_has_no_name_to_pin_by() -> None:
    assert fields(files("debian", url="file:/srv/doca/")[doca.APT_PIN])["Pin"] == 'origin ""'


def test_a_key_that_is_there_is_not_written_again() -> None:
    assert doca.APT_KEY not in files("debian", key=None)


def test_without_doca_nothing_of_it_stays() -> None:
    assert {file.path: file.content for file in doca.no_repository()} == dict.fromkeys(doca.PATHS)
    assert {*files("debian"), *files("rpm")} <= set(doca.PATHS)
