# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modinfo says of modules' files. The samples are in the form of kmod 30 (Debian 12), with values of real modules."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import (
    ModuleFile,
    module_name,
    parse_modinfo,
    provenance,
    read_modinfo,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, no_time

LIB = "/lib/modules/6.1.0-31-amd64"
VERMAGIC = "6.1.0-31-amd64 SMP preempt mod_unload modversions"
MLX5_CORE = f"""\
filename:       {LIB}/updates/dkms/mlx5_core.ko
alias:          auxiliary:mlx5_core.eth
basedon:        Korg 6.8-rc4
version:        24.10-2.1.8
license:        Dual BSD/GPL
description:    Mellanox 5th generation network adapters (ConnectX series) core driver
author:         Eli Cohen <eli@mellanox.com>
srcversion:     78352976D87E8F24553D352
alias:          pci:v000015B3d00001021sv*sd*bc*sc*i*
depends:        mlxdevm,tls,psample,mlx_compat,mlxfw
retpoline:      Y
name:           mlx5_core
vermagic:       {VERMAGIC}\x20
sig_id:         PKCS#7
signer:         DKMS module signing key
sig_key:        10:01:90:3A:01:4E:E9:88:D1:0B:EA:95:C0:BB:43:83:58:BC:8B:6E
sig_hashalgo:   sha256
signature:      AA:59:90:34:C8:22:BB:F8:35:64:F4:FB:86:B4:78:50:B3:8A:EE:8C:
\t\tDB:23:1F:9C:EA:85:71:5A:D2:1D:C8:2E:47:A8:64:DE:60:3B:19:AE:
\t\tF6:64:C5
parm:           prof_sel:profile selector. Valid range 0 - 2 (uint)
"""
IB_CORE = f"""\
filename:       {LIB}/kernel/drivers/infiniband/core/ib_core.ko.xz
license:        Dual BSD/GPL
description:    core kernel InfiniBand API
depends:        \x20
intree:         Y
name:           ib_core
vermagic:       {VERMAGIC}\x20
parm:           netns_mode:Share device among net namespaces; default=1 (shared) (bool)
"""
I2C_CORE = """\
name:           i2c_core
filename:       (builtin)
license:        GPL
file:           drivers/i2c/i2c-core
description:    I2C-Bus main module
"""
MLX5_CORE_FILE = ModuleFile(
    f"{LIB}/updates/dkms/mlx5_core.ko", "24.10-2.1.8", "78352976D87E8F24553D352", "DKMS module signing key", VERMAGIC
)
IB_CORE_FILE = ModuleFile(f"{LIB}/kernel/drivers/infiniband/core/ib_core.ko.xz", None, None, None, VERMAGIC)
BUILT_IN_FILE = ModuleFile("(builtin)", None, None, None, None)
ALL = MLX5_CORE + IB_CORE + I2C_CORE
ALL_FILES = {"mlx5_core": MLX5_CORE_FILE, "ib_core": IB_CORE_FILE, "i2c_core": BUILT_IN_FILE}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(ALL, ALL_FILES, id="three"),
        pytest.param(
            I2C_CORE + MLX5_CORE + I2C_CORE.replace("i2c_core", "8250") + IB_CORE,
            {**ALL_FILES, "8250": BUILT_IN_FILE},
            id="a part of the kernel between",
        ),
        pytest.param(MLX5_CORE * 2, {"mlx5_core": MLX5_CORE_FILE}, id="twice"),
        pytest.param(ALL.replace("\n", "\r\n"), ALL_FILES, id="CRLF"),
        pytest.param(ALL.replace("\n", "\n\n"), ALL_FILES, id="blank lines"),
        pytest.param(ALL.rstrip("\n"), ALL_FILES, id="no line break at the end"),
        pytest.param("".join(f"    {line}\n" for line in ALL.splitlines()), ALL_FILES, id="indented by a mail"),
        pytest.param("".join(f"> {line}\n" for line in ALL.splitlines()), ALL_FILES, id="quoted by a mail"),
        pytest.param(
            "".join(f"> {line}\n__version:        9\n" for line in IB_CORE.splitlines()),
            {"ib_core": IB_CORE_FILE},
            id="answered between the lines",
        ),
        pytest.param(ALL.replace("  ", "").replace(": ", ":"), ALL_FILES, id="blanks taken out"),
        pytest.param("# modinfo mlx5_core ib_core\n" + ALL + "#\n", ALL_FILES, id="with the prompt"),
        pytest.param(ALL.replace("name:           mlx5_core\n", "").replace("name:           ib_core\n", ""), ALL_FILES, id="no names"),
        pytest.param(ALL.replace("filename:       /", "filename:      \n/"), ALL_FILES, id="wrapped"),
    ],
)
def test_modules_by_name(text: str, expected: dict[str, ModuleFile]) -> None:
    assert parse_modinfo(text) == expected


def test_a_name_in_the_kernel_has_no_dash() -> None:
    text = f"filename:       {LIB}/updates/dkms/nvidia-peermem.ko\nname:           nvidia-peermem\n"
    assert list(parse_modinfo(text)) == list(parse_modinfo(text.splitlines()[0])) == ["nvidia_peermem"]


def test_the_first_of_two_with_one_name_counts() -> None:
    assert parse_modinfo(IB_CORE.replace(".ko.xz", ".ko") + IB_CORE)["ib_core"].file.endswith("ib_core.ko")


def test_lines_of_a_description_are_no_fields() -> None:
    """A module of our own had these, and kmod 30 printed them so."""
    text = MLX5_CORE.replace(
        "version:        24",
        "description:    two\nlines: of text\nversion: 9\nfilename: x\n\tsrcversion:     1\nversion:        24",
    ).replace("Valid range", "range\nsigner: me\n\tvermagic: x")
    assert parse_modinfo(text) == {"mlx5_core": MLX5_CORE_FILE}


@pytest.mark.parametrize(
    ("fields", "signer"),
    [
        pytest.param("sig_id:         PKCS#7\nsigner:         \nsig_key:        \nsig_hashalgo:   unknown\n", "unknown", id="no name"),
        pytest.param("signat:         PKCS#7\nsigner:         \nsig_key:        \nsig_hashalgo:   md4\n", "unknown", id="kmod before 26"),
        pytest.param("signer:         Debian Secure Boot CA\nsig_key:        01\n", "Debian Secure Boot CA", id="a name"),
        pytest.param("signer:\n", None, id="an empty name alone"),
        pytest.param("", None, id="not signed"),
    ],
)
def test_who_signed(fields: str, signer: str | None) -> None:
    assert parse_modinfo(IB_CORE + fields)["ib_core"].signer == signer


def test_before_kmod_27_a_part_of_the_kernel_has_no_name() -> None:
    assert parse_modinfo("filename:       (null)\n" + IB_CORE) == {"ib_core": IB_CORE_FILE}


NO_MODINFO = [
    "",
    "\n",
    "modinfo: ERROR: Module mlx5_core not found.\n",
    "bash: modinfo: command not found",
    "mlx5_core 2441216 1 mlx5_ib\n",
    "filename:       (builtin)\n",
]


@pytest.mark.parametrize("text", NO_MODINFO)
def test_another_text_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not the output of modinfo") as caught:
        parse_modinfo(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("end", ["src", "vermagic", "filen", "si"])
def test_a_line_cut_off_is_quoted(end: str) -> None:
    with pytest.raises(ParseError, match=f"cut off: '{end}'"):
        parse_modinfo(IB_CORE + end)


@pytest.mark.parametrize("path", ["", "/lib", f"{LIB}/kernel/drivers/infiniband/core/ib_co", f"{LIB}/x.ko.x"])
def test_a_path_cut_off_is_quoted(path: str) -> None:
    with pytest.raises(ParseError, match="not the path of a module") as caught:
        parse_modinfo(f"{MLX5_CORE}filename:       {path}")
    assert repr(f"filename:       {path}") in str(caught.value)


@given(text=garbled(ALL))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert parse_modinfo(text)


@pytest.mark.parametrize(
    "text", ["filename:" + " " * 100_000, "\t" * 100_000, ">" * 100_000 + "\n", "a" * 100_000 + ":", "filename:\n" * 9000]
)
def test_long_lines_take_no_time(text: str) -> None:
    with no_time(), pytest.raises(ParseError):
        parse_modinfo(text)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (f"{LIB}/updates/dkms/mlx5_core.ko", "mlx5_core"),
        (f"{LIB}/updates/dkms/nvidia-peermem.ko.zst", "nvidia_peermem"),
        ("rdma_cm.ko.xz", "rdma_cm"),
        ("a/b-c.ko.gz", "b_c"),
    ],
)
def test_module_name(file: str, name: str) -> None:
    assert module_name(file) == name


@pytest.mark.parametrize(
    ("file", "dkms", "expected"),
    [
        ("(builtin)", [], "kernel"),
        ("/lib/modules/6.8.0-51-generic/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst", ["mlx5_core"], "kernel"),
        ("/usr/lib/modules/5.14.0-427.13.1.el9_4.x86_64/kernel/drivers/infiniband/core/ib_core.ko.xz", [], "kernel"),
        ("/lib/modules/6.8.0-51-generic/updates/dkms/mlx5_core.ko", [], "dkms"),
        ("/lib/modules/6.8.0-51-generic/updates/mlx5_core.ko", [], "extra"),
        ("/lib/modules/5.14.0-427.el9.x86_64/extra/mlnx-ofa_kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko", [], "extra"),
        ("/lib/modules/5.14.0-427.el9.x86_64/extra/mlx5_core.ko.xz", ["ib_core", "mlx5_core"], "dkms"),
        ("/lib/modules/5.14.0-427.el9.x86_64/extra/nvidia-peermem.ko.xz", ["nvidia_peermem"], "dkms"),
        ("/lib/modules/5.14.0-427.el9.x86_64/weak-updates/mlx5_core.ko", ["ib_core"], "extra"),
        ("/root/mlx5_core.ko", ["mlx5_core"], None),
        ("/lib/modules/mlx5_core.ko", [], None),
    ],
)
def test_provenance(file: str, dkms: list[str], expected: str | None) -> None:
    assert provenance(file, dkms) == expected


def test_all_modules_are_asked_for_at_once_and_some_may_be_missing() -> None:
    answer = "modinfo: ERROR: Module siw not found.\n"
    runner = FakeRunner([(["modinfo", "mlx5_core", "siw", "ib_core", "i2c_core"], 1, ALL, answer)])
    assert read_modinfo(runner, ["mlx5_core", "siw", "ib_core", "i2c_core"]) == ALL_FILES


def test_where_there_is_nothing_to_ask_for_nothing_is_run() -> None:
    assert read_modinfo(FakeRunner([]), []) == {}


def test_no_file_at_all() -> None:
    assert read_modinfo(FakeRunner([(["modinfo", "siw"], 1, "", "modinfo: ERROR: Module siw not found.\n")]), ["siw"]) == {}


def test_a_system_without_modinfo_reports_nothing() -> None:
    class NoModinfo:
        def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
            raise CommandError(f"command not found: {argv[0]}")

    assert read_modinfo(NoModinfo(), ["siw"]) == {}
