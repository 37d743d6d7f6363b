# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The key of DKMS: which it is, and whether it is enrolled. The answers are those of mokutil 0.6.0, run on variables made for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import (
    DKMS_KEY,
    UBUNTU_KEY,
    Mok,
    key_of,
    parse_framework,
    parse_test_key,
    read_mok,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree

KERNEL = "6.8.0-51-generic"
DEBIAN = Distribution("debian", "12", [], None)
UBUNTU = Distribution("ubuntu", "24.04", ["debian"], None)
ROCKY = Distribution("rocky", "9.4", ["rhel", "centos", "fedora"], None)
ANSWERS = [
    ("mok.pub is already enrolled", True),
    ("mok.pub is already in db", True),
    ("mok.pub is already in the built-in trusted keyring", True),
    ("mok.pub is not enrolled", False),
    ("mok.pub is already in the enrollment request", False),
    ("mok.pub is blocked in dbx", False),
    ("mok.pub is blocked in MokListX", False),
    ("mok.pub is blocked in MokListXRT", False),
]
#: Of dkms 3.2, shortened.
FRAMEWORK = """\
## This configuration file modifies the behavior of
## DKMS (Dynamic Kernel Module Support) and is sourced
# dkms_tree="/var/lib/dkms"
# mok_certificate=/var/lib/dkms/mok.pub
mok_signing_key="/root/mok/MOK.priv"
mok_certificate="/root/mok/MOK.der" # ours
"""


@pytest.mark.parametrize(("answer", "enrolled"), ANSWERS)
def test_an_answer_of_mokutil(answer: str, enrolled: bool) -> None:
    assert parse_test_key(f"{answer}\n") is enrolled


@pytest.mark.parametrize(
    "text",
    ["", "EFI variables are not supported on this system\n", "Not a valid x509 certificate\n", "Failed to open /var/lib/dkms/mok.pub\n"],
)
def test_an_answer_that_reports_nothing_is_quoted(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_test_key(text)
    assert repr(text) in str(caught.value)


@given(text=garbled(ANSWERS[0][0]))
def test_of_an_answer_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_test_key, text)


def test_the_configuration_of_dkms() -> None:
    assert parse_framework(FRAMEWORK) == {"mok_signing_key": "/root/mok/MOK.priv", "mok_certificate": "/root/mok/MOK.der"}
    assert parse_framework("  export mok_certificate=/a\nmok_certificate=\nmy_mok_certificate=/b\n") == {"mok_certificate": ""}


@pytest.mark.parametrize("line", ["mok_certificate=$(find_it here)", 'mok_certificate="/a'])
def test_a_setting_that_is_no_word_is_quoted(line: str) -> None:
    with pytest.raises(ParseError, match=r"^mok_certificate: ") as caught:
        parse_framework(f"{line}\n")
    assert repr(line.partition("=")[2]) in str(caught.value)


@given(text=garbled(FRAMEWORK))
def test_of_a_configuration_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_framework, text)


OWN = {"mok_signing_key": "/k", "mok_certificate": "/keys/${kernelver}.der"}


@pytest.mark.parametrize(
    ("distribution", "settings", "key"),
    [
        pytest.param(DEBIAN, {}, DKMS_KEY, id="dkms's own"),
        pytest.param(ROCKY, {}, DKMS_KEY, id="dkms's own on RHEL"),
        pytest.param(UBUNTU, {}, UBUNTU_KEY, id="Ubuntu's"),
        pytest.param(Distribution("linuxmint", "22", ["ubuntu", "debian"], None), {}, UBUNTU_KEY, id="made from Ubuntu"),
        pytest.param(UBUNTU, OWN, f"/keys/{KERNEL}.der", id="set on Ubuntu"),
        pytest.param(DEBIAN, {**OWN, "mok_certificate": "/keys/$kernelver.der"}, f"/keys/{KERNEL}.der", id="without braces"),
        pytest.param(UBUNTU, {"mok_certificate": "/c"}, UBUNTU_KEY, id="Ubuntu heeds no certificate without its key"),
        pytest.param(DEBIAN, {"mok_certificate": "/c"}, "/c", id="Debian does"),
        pytest.param(DEBIAN, {"mok_signing_key": "/k"}, DKMS_KEY, id="a key without its certificate"),
    ],
)
def test_which_key_dkms_signs_with(distribution: Distribution, settings: dict[str, str], key: str) -> None:
    assert key_of(settings, distribution, KERNEL) == key


def read(root: Path, text: str, *calls: tuple[Sequence[str], int, str, str], distribution: Distribution = DEBIAN) -> Mok:
    runner = FakeRunner(calls)
    return read_mok(SysRoot(str(write_tree(root, text))), runner, distribution, KERNEL)


def asked(key: str, rc: int, out: str, err: str = "") -> tuple[Sequence[str], int, str, str]:
    return (["mokutil", "--test-key", key], rc, out, err)


def test_an_enrolled_key(tmp_path: Path) -> None:
    """Up to mokutil 0.7.2 the exit status of an enrolled key is 1, and afterwards 0."""
    output = f"{DKMS_KEY} is already enrolled"
    for rc in (1, 0):
        assert read(tmp_path, f"{DKMS_KEY}: x", asked(DKMS_KEY, rc, f"{output}\n")) == Mok(DKMS_KEY, enrolled=True, said=output)


def test_a_key_that_is_not_enrolled(tmp_path: Path) -> None:
    output = f"{UBUNTU_KEY} is not enrolled"
    found = read(tmp_path, f"{UBUNTU_KEY}: x\n{DKMS_KEY}: x", asked(UBUNTU_KEY, 0, f"{output}\n"), distribution=UBUNTU)
    assert found == Mok(UBUNTU_KEY, enrolled=False, said=output)


def test_a_key_that_the_kernel_has_built_in_is_reported_on_standard_error(tmp_path: Path) -> None:
    output = f"{DKMS_KEY} is already in the built-in trusted keyring"
    assert read(tmp_path, f"{DKMS_KEY}: x", asked(DKMS_KEY, 255, "", f"{output}\n")).enrolled is True


def test_no_key_is_there_yet(tmp_path: Path) -> None:
    """The other distribution's key is none that dkms would sign with here."""
    assert read(tmp_path, f"{UBUNTU_KEY}: x") == Mok(key=None, enrolled=None)


def test_the_last_file_of_the_configuration_wins(tmp_path: Path) -> None:
    text = """
        /etc/dkms/framework.conf: mok_certificate=/a.der
        /etc/dkms/framework.conf.d/10.conf: mok_certificate=/b.der
        /etc/dkms/framework.conf.d/20.conf.bak: mok_certificate=/c.der
        /a.der: x
        /b.der: x
        /c.der: x
    """
    assert read(tmp_path, text, asked("/b.der", 0, "/b.der is not enrolled\n")).key == "/b.der"


def test_a_configuration_that_is_computed_leaves_the_key_unknown(tmp_path: Path) -> None:
    found = read(tmp_path, f"/etc/dkms/framework.conf: mok_certificate=$(find it)\n{DKMS_KEY}: x")
    assert (found.key, found.enrolled) == (None, None)
    assert found.said == "/etc/dkms/framework.conf: mok_certificate: not one word: '$(find it)'"


def test_mokutil_does_not_report(tmp_path: Path) -> None:
    err = "EFI variables are not supported on this system"
    assert read(tmp_path, f"{DKMS_KEY}: x", asked(DKMS_KEY, 1, "", f"{err}\n")) == Mok(DKMS_KEY, enrolled=None, said=err)


def test_mokutil_is_not_installed(tmp_path: Path) -> None:
    class NoMokutil:
        def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
            raise CommandError(f"command not found: {argv[0]}")

    sys = SysRoot(str(write_tree(tmp_path, f"{DKMS_KEY}: x")))
    assert read_mok(sys, NoMokutil(), DEBIAN, KERNEL) == Mok(DKMS_KEY, enrolled=None)
