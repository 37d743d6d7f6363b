# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import parse_options, read_parameters, same_value
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("prof_sel=2", {"prof_sel": "2"}),
        (" prof_sel=2  debug-mask=0x1 ", {"prof_sel": "2", "debug_mask": "0x1"}),
        ('name="a b" quiet', {"name": "a b", "quiet": None}),
        ("a=1,2 a=3", {"a": "3"}),
        ("path=", {"path": ""}),
    ],
)
def test_options(text: str, options: dict[str, str | None]) -> None:
    assert parse_options(text) == options


@pytest.mark.parametrize("text", ["=2", "a=1\noptions b c=1", 'a="b', "a=b;c d$e", "install x /bin/sh", "2a=1"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="no option of a kernel module"):
        parse_options(text)


@given(garbled('prof_sel=2 name="a b" quiet'))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_options, text)


def test_what_the_kernel_shows(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        """
        /sys/module/mlx5_core/parameters/prof_sel: 2\\n
        /sys/module/mlx5_core/parameters/secret: 1
        /sys/module/ib_core/srcversion: A
        """,
    )
    (tmp_path / "sys/module/mlx5_core/parameters/secret").chmod(0o200)
    found = read_parameters(SysRoot(str(tmp_path)), ["mlx5_core", "ib_core", "mlx5_ib"])
    assert found == {"mlx5_core": {"prof_sel": "2"}, "ib_core": {}}


@pytest.mark.parametrize(
    ("requested", "shown"),
    [("1", "Y"), ("y", "Y"), ("on", "Y"), (None, "Y"), ("0", "N"), ("off", "N"), ("0x10", "16"), ("010", "8"), ("2", "2"), ("a,b", "a,b")],
)
def test_the_same_value(requested: str | None, shown: str) -> None:
    assert same_value(requested, shown)


@pytest.mark.parametrize(
    ("requested", "shown"),
    [("0", "Y"), (None, "N"), ("1", "2"), ("10", "8"), ("08", "8"), ("a", "b"), ("", "0"), (None, "0"), ("off", "Y")],
)
def test_another_value(requested: str | None, shown: str) -> None:
    assert not same_value(requested, shown)
