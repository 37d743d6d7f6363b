# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secure Boot and lockdown, as efivarfs and securityfs report them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import (
    parse_lockdown,
    parse_secure_boot,
    parse_shim_insecure,
    read_lockdown,
    read_secure_boot,
    read_unread,
)
from tests.unit.builders.garbled import read_or_refused

SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM = "sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
ON = b"\x06\0\0\0\x01"


def machine(root: Path, variables: dict[str, bytes]) -> SysRoot:
    for path, data in variables.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return SysRoot(str(root))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({SECURE_BOOT: b"\x06\0\0\0\x01"}, True, id="on"),
        pytest.param({SECURE_BOOT: b"\x06\0\0\0\0"}, False, id="off"),
        pytest.param({SECURE_BOOT: ON, SHIM: ON}, False, id="shim validates nothing"),
        pytest.param({SECURE_BOOT: ON, SHIM: b"\x06\0\0\0\0"}, True, id="shim validates"),
        pytest.param({SECURE_BOOT: ON, SHIM: b"\x07\0\0\0\x01"}, True, id="not shim's own word"),
        pytest.param({"sys/firmware/efi/efivars/Boot0000-8be4df61-93ca-11d2-aa0d-00e098032b8c": b"x"}, False, id="no such variable"),
        pytest.param({"sys/firmware/efi/fw_platform_size": b"64\n"}, None, id="variables not mounted"),
        pytest.param({"sys/firmware/dmi/tables/DMI": b"x"}, None, id="no EFI"),
    ],
)
def test_secure_boot(tmp_path: Path, variables: dict[str, bytes], expected: bool | None) -> None:
    assert read_secure_boot(machine(tmp_path, variables)) is expected


class Locked(SysRoot):
    """A tree of which nothing may be read."""

    def read_bytes(self, path: str) -> bytes | None:
        raise PermissionError(13, "Permission denied", path)


def test_what_may_not_be_read_is_not_known(tmp_path: Path) -> None:
    machine(tmp_path, {SECURE_BOOT: b"\x06\0\0\0\x01"})
    assert read_secure_boot(Locked(str(tmp_path))) is None
    assert read_lockdown(Locked(str(tmp_path))) is None


LOCKDOWN = "sys/kernel/security/lockdown"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, [], id="BIOS, and a kernel without securityfs"),
        pytest.param({SECURE_BOOT: b"\x06\0\0\0\x01", LOCKDOWN: b"[none] integrity\n"}, [], id="both are reported"),
        pytest.param({"sys/firmware/efi/fw_platform_size": b"64\n"}, ["secure_boot"], id="variables not mounted"),
        pytest.param({"sys/kernel/security/lsm": b"capability\n"}, [], id="a kernel without lockdown"),
        pytest.param({"sys/kernel/security": None}, ["lockdown"], id="securityfs not mounted"),
        pytest.param(
            {"sys/kernel/security": None, "sys/firmware/efi": None, "run/systemd/container": b"systemd-nspawn\n"}, [], id="container"
        ),
    ],
)
def test_what_does_not_apply_is_distinguished_from_what_was_not_read(
    tmp_path: Path, files: dict[str, bytes | None], expected: list[str]
) -> None:
    for folder in (path for path, data in files.items() if data is None):
        (tmp_path / folder).mkdir(parents=True)
    sys = machine(tmp_path, {path: data for path, data in files.items() if data is not None})
    assert read_unread(sys, read_secure_boot(sys), read_lockdown(sys)) == expected


def test_a_file_that_may_not_be_read_is_unread(tmp_path: Path) -> None:
    machine(tmp_path, {SECURE_BOOT: b"\x06\0\0\0\x01", LOCKDOWN: b"[none]\n"})
    assert read_unread(Locked(str(tmp_path)), None, None) == ["secure_boot", "lockdown"]


def test_another_form_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=rf"^/{SECURE_BOOT}: not the variable SecureBoot: b'\\x01'"):
        read_secure_boot(machine(tmp_path, {SECURE_BOOT: b"\x01"}))


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x06\0\0\0", b"\x06\0\0\0\x02", b"\x06\0\0\0\x01\0"])
def test_another_variable_is_quoted(data: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        parse_secure_boot(data)
    assert repr(data) in str(caught.value)


@given(st.binary(max_size=8))
def test_only_shim_s_own_word_counts(data: bytes) -> None:
    assert parse_shim_insecure(data) is (len(data) == 5 and data[4] == 1 and data[0] % 2 == 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[none] integrity confidentiality\n", "none"),
        ("none [integrity] confidentiality\n", "integrity"),
        ("none integrity [confidentiality]", "confidentiality"),
    ],
)
def test_lockdown(text: str, expected: str) -> None:
    assert parse_lockdown(text) == expected


@pytest.mark.parametrize("text", ["none", "", "[none] [integrity]", "[]"])
def test_another_lockdown_is_quoted(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_lockdown(text)
    assert repr(text) in str(caught.value)


def test_lockdown_is_read(tmp_path: Path) -> None:
    sys = machine(tmp_path, {"sys/kernel/security/lockdown": b"none [integrity] confidentiality\n"})
    assert read_lockdown(sys) == "integrity"


def test_a_kernel_without_lockdown(tmp_path: Path) -> None:
    assert read_lockdown(SysRoot(str(tmp_path))) is None


#: Its attributes and its value.
VARIABLES = st.tuples(st.binary(min_size=4, max_size=4), st.sampled_from([b"", b"\0", b"\1", b"\2"])).map(b"".join)
LOCKDOWNS = st.lists(st.sampled_from(["[", "]", "none", "[none]", " ", "²"])).map("".join)


@given(data=st.binary(max_size=20) | VARIABLES, text=st.text() | LOCKDOWNS)
def test_nothing_but_a_parse_error_escapes(data: bytes, text: str) -> None:
    assert read_or_refused(parse_secure_boot, data)
    assert read_or_refused(parse_lockdown, text)
