# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Environment files, the environment of a process, and what systemd says of a service's."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.environment_file import (
    ServiceEnvironment,
    parse_environ,
    parse_environment_file,
    parse_service_environment,
    unquoted,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import render_environment


def test_what_we_write_comes_out_as_it_went_in() -> None:
    variables = {"NCCL_IB_HCA": "=mlx5_0:1", "NCCL_DEBUG_FILE": 'a "b" $c `d` \\e', "NCCL_X": "two words"}
    assert parse_environment_file(render_environment(variables)) == variables


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("# NCCL_A=1\n; NCCL_B=1\n\nNCCL_C=1\n", {"NCCL_C": "1"}),
        ("NCCL_A=1\nNCCL_A=2\n", {"NCCL_A": "2"}),
        ("export NCCL_A='two words'\r\n", {"NCCL_A": "two words"}),
        ('NCCL_A="=mlx5_0"\n', {"NCCL_A": "=mlx5_0"}),
        ("hello\n=1\n1A=2\n", {}),
        ("NCCL_A=\n", {"NCCL_A": ""}),
        ('NCCL_A="\n', {"NCCL_A": '"'}),
    ],
)
def test_environment_files(text: str, variables: dict[str, str]) -> None:
    assert parse_environment_file(text) == variables


def test_the_environment_of_a_process() -> None:
    assert parse_environ(b"NCCL_IB_HCA==mlx5_0\0HOME=/root\0nothing\0=x\0B=\xff\0\0") == {
        "NCCL_IB_HCA": "=mlx5_0",
        "HOME": "/root",
        "B": "\ufffd",
    }
    assert parse_environ(b"") == {}


#: Shortened to the properties that are asked for, of systemd 252 on Debian 12.
RUNNING = """MainPID=4711
EnvironmentFiles=/etc/default/slurmd (ignore_errors=yes)
EnvironmentFiles=/etc/rdma-cluster/nccl.env (ignore_errors=no)
Environment=NCCL_DEBUG=INFO "NCCL_X=two words"
User=slurm
Id=slurmd.service
LoadState=loaded
"""


def test_a_service() -> None:
    assert parse_service_environment(RUNNING) == ServiceEnvironment(
        "slurmd.service",
        4711,
        "slurm",
        {"NCCL_DEBUG": "INFO", "NCCL_X": "two words"},
        ["/etc/default/slurmd", "/etc/rdma-cluster/nccl.env"],
    )
    bare = "MainPID=0\nId=x.service\nLoadState=loaded\n"
    assert parse_service_environment(bare) == ServiceEnvironment("x.service", None, "", {}, [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no unit in ''"),
        ("Id=x.service\nLoadState=not-found\nMainPID=0\n", "systemd has no unit x.service"),
        ("Id=x.service\nLoadState=loaded\nMainPID=many\n", "MainPID is 'many', expected a number"),
        ('Id=x.service\nLoadState=loaded\nEnvironment="A=1\n', "No closing quotation in Environment="),
    ],
)
def test_what_is_no_service(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_service_environment(text)


@pytest.mark.parametrize(
    ("value", "text"), [("''", ""), ('""', ""), ("'", "'"), ('"', '"'), ("", ""), ("'a\"", "'a\""), ('"a\\"b"', 'a"b')]
)
def test_quotes_around_a_value(value: str, text: str) -> None:
    assert unquoted(value) == text
