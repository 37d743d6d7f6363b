# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nccl.conf by NCCL's rules, and the environment file by those of a shell and of systemd."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import (
    ConfLine,
    parse_nccl_conf,
    render_environment,
    render_nccl_conf,
)

AWKWARD = {
    "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    "NCCL_SOCKET_IFNAME": "^docker,lo",
    "NCCL_DEBUG_FILE": "/var/log/nccl files/%h.%p",
    "NCCL_TOPO_FILE": "~/topo.xml",
    "NCCL_A": "",
    "NCCL_B": " both ends ",
    "NCCL_C": '$HOME `id` "quoted" it\'s \\ $(id) ! # ; & | \\n',
    "NCCL_D": "# no comment",
    "NCCL_E": "a;b",
    "NCCL_F": "größer",
    "NCCL_G": "a\\",
    "NCCL_H": "'",
    "NCCL_I": "*",
}
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,40}", fullmatch=True)
# What may be written: no control characters, no surrogates.
VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("=#\"'\\$` ~;"), max_size=200)
VARIABLES = st.dictionaries(NAMES, VALUES, max_size=5)

LINES = [
    ("NCCL_DEBUG=WARN\n", {"NCCL_DEBUG": "WARN"}),
    ("NCCL_DEBUG=WARN", {"NCCL_DEBUG": "WARN"}),
    ("NCCL_SOCKET_IFNAME==eth0\n", {"NCCL_SOCKET_IFNAME": "=eth0"}),
    ("NCCL_DEBUG=INFO # for now\n", {"NCCL_DEBUG": "INFO # for now"}),
    ("NCCL_DEBUG = WARN \n", {"NCCL_DEBUG ": " WARN "}),
    ('NCCL_DEBUG="WARN"\n', {"NCCL_DEBUG": '"WARN"'}),
    ("export NCCL_DEBUG=WARN\n", {"export NCCL_DEBUG": "WARN"}),
    (" # NCCL_DEBUG=WARN\n", {" # NCCL_DEBUG": "WARN"}),
    ("# NCCL_DEBUG=WARN\n#\n\n", {}),
    ("NCCL_A=\n", {"NCCL_A": ""}),
    ("UCX_TLS=rc\n", {"UCX_TLS": "rc"}),
    # Not what str.splitlines takes for a line.
    ("NCCL_A=1\x0b2\u2028NCCL_B=3\n", {"NCCL_A": "1\x0b2\u2028NCCL_B=3"}),
]
IGNORED = [
    ("NCCL_DEBUG WARN", "it has no ="),
    (" ", "it has no ="),
    ("=1", "it has no name before the ="),
]
ALTERED = [
    ("NCCL_A=" + "x" * 1024, "x" * 1023, "NCCL reads at most 1023 bytes"),
    ("NCCL_A=" + "ä" * 512, "ä" * 511 + "\ufffd", "NCCL reads at most 1023 bytes"),
    ("NCCL_A=" + "x" * 5000, "x" * 1023, "NCCL reads at most 1023 bytes"),
    ("NCCL_A=1\x002", "1", "nothing after a NUL"),
    ("NCCL_A=1\r", "1\r", "only recent versions of NCCL"),
]
REFUSED = [
    ({"NCCL_A": "1\n2"}, r"the value of NCCL_A has a line break or another control character: '1\\n2'"),
    ({"NCCL_A": "1\r"}, "the value of NCCL_A has a line break"),
    ({"NCCL_A": "1\0"}, "the value of NCCL_A has a line break"),
    ({"NCCL_A": "\x7f"}, "the value of NCCL_A has a line break"),
    ({"NCCL_A": "\ud800"}, "the value of NCCL_A is not valid text"),
    ({"NCCL_A": "x" * 1024}, "the value of NCCL_A is longer than 1023 bytes"),
    ({"NCCL_A": "ä" * 512}, "the value of NCCL_A is longer than 1023 bytes"),
    ({"N" * 1024: "1"}, "is longer than 1023 bytes"),
    ({"": "1"}, "the name '' is not made of letters"),
    ({"#NCCL_A": "1"}, "the name '#NCCL_A' is not made of letters"),
    ({"NCCL_A=1\nNCCL_B": "1"}, "is not made of letters"),
    ({"NCCL_A\n": "1"}, "is not made of letters"),
    ({"1NCCL": "1"}, "the name '1NCCL' is not made of letters"),
]


@pytest.mark.parametrize(("text", "variables"), LINES)
def test_a_line_is_read_as_nccl_reads_it(text: str, variables: dict[str, str]) -> None:
    conf = parse_nccl_conf(text)
    assert (conf.variables, conf.ignored, conf.altered) == (variables, [], [])


@pytest.mark.parametrize(("line", "why"), IGNORED)
def test_a_line_without_effect_is_listed(line: str, why: str) -> None:
    conf = parse_nccl_conf(f"# comment\n{line}\nNCCL_A=1\n")
    assert conf.variables == {"NCCL_A": "1"}
    assert conf.ignored == [ConfLine(2, line, why)]


def test_of_two_lines_for_one_name_the_first_counts() -> None:
    conf = parse_nccl_conf("NCCL_A=1\nNCCL_B=1\nNCCL_A=2\n")
    assert conf.variables == {"NCCL_A": "1", "NCCL_B": "1"}
    assert conf.ignored == [ConfLine(3, "NCCL_A=2", "NCCL_A is already set above, and the first one counts")]


@pytest.mark.parametrize(("line", "value", "why"), ALTERED)
def test_a_value_that_is_not_the_one_written_is_listed(line: str, value: str, why: str) -> None:
    conf = parse_nccl_conf(line + "\n")
    assert conf.variables == {"NCCL_A": value}
    assert [(altered.number, altered.text) for altered in conf.altered] == [(1, line)]
    assert why in conf.altered[0].why


def test_a_name_is_cut_off_too() -> None:
    conf = parse_nccl_conf("N" * 1030 + "=1\n")
    assert (conf.variables, len(conf.altered)) == ({"N" * 1023: "1"}, 1)


def test_lines_are_plain_and_in_the_order_of_their_names() -> None:
    text = render_nccl_conf({"NCCL_SOCKET_IFNAME": "=eth0", "NCCL_IB_HCA": "=mlx5_0:1", "NCCL_IB_TC": "106"})
    assert text == "NCCL_IB_HCA==mlx5_0:1\nNCCL_IB_TC=106\nNCCL_SOCKET_IFNAME==eth0\n"


def test_the_limits_themselves_are_allowed() -> None:
    variables = {"N" * 1023: "x" * 1023}
    assert parse_nccl_conf(render_nccl_conf(variables)).variables == variables


@pytest.mark.parametrize(("variables", "words"), REFUSED)
def test_what_would_not_come_out_as_it_went_in_is_refused(variables: dict[str, str], words: str) -> None:
    for render in (render_nccl_conf, render_environment):
        with pytest.raises(ValueError, match=words):
            render(variables)


def test_all_offenders_are_named() -> None:
    with pytest.raises(ValueError, match=r"NCCL_A.*; .*NCCL_B"):
        render_nccl_conf({"NCCL_A": "\n", "NCCL_B": "\n", "NCCL_C": "1"})


@given(VARIABLES)
def test_nccl_reads_what_was_written(variables: dict[str, str]) -> None:
    conf = parse_nccl_conf("# header\n" + render_nccl_conf(variables))
    assert (conf.variables, conf.ignored, conf.altered) == (variables, [], [])


@given(st.text())
def test_nccl_refuses_nothing(text: str) -> None:
    conf = parse_nccl_conf(text)
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    assert len(conf.variables) + len(conf.ignored) == len(lines)


def test_a_plain_value_stands_without_quotes() -> None:
    text = render_environment({"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1", "NCCL_A": "x y"})
    assert text == 'NCCL_A="x y"\nNCCL_IB_HCA==rxe_rail0:1,rxe_rail1:1\n'


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_a_shell_reads_what_was_written(tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "nccl.env").write_text("# header\n" + render_environment(AWKWARD), encoding="utf-8")
    # NUL-separated, so that no value can be taken for two.
    done = subprocess.run(
        [program, "-c", "set -aeu; . ./nccl.env; exec env -0"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True
    )
    seen = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    assert {name: seen.get(name) for name in AWKWARD} == AWKWARD
    assert done.stderr == b""


def test_systemd_reads_what_was_written() -> None:
    assert systemd_reads("# header\n" + render_environment(AWKWARD)) == AWKWARD


@given(VARIABLES)
def test_systemd_reads_anything_that_was_written(variables: dict[str, str]) -> None:
    assert systemd_reads("# header\n" + render_environment(variables)) == variables


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=x\\\ny\n", {"A": "xy"}),
        ("A= x y \n", {"A": "x y"}),
        ("A='x\"'\n", {"A": 'x"'}),
        ('A="x\\y\\$"\n', {"A": "x\\y$"}),
        ("# c\n; d\n\nA=x # y\n", {"A": "x # y"}),
    ],
)
def test_the_rules_of_systemd_as_its_manual_has_them(text: str, variables: dict[str, str]) -> None:
    """systemd.exec(5), EnvironmentFile=; the function below stands for systemd, so it is tested as well."""
    assert systemd_reads(text) == variables


def systemd_reads(text: str) -> dict[str, str]:
    """An environment file as systemd reads it, by systemd.exec(5) and the order of states in its src/basic/env-file.c."""
    variables: dict[str, str] = {}
    rest = text
    while rest:
        rest = rest.lstrip(" \t\n\r")
        if rest[:1] in ("#", ";"):
            rest = rest.partition("\n")[2]
        elif rest:
            name, _equals, rest = rest.partition("=")
            variables[name.rstrip()], rest = systemd_value(rest)
    return variables


def systemd_value(text: str) -> tuple[str, str]:
    """A value and what follows its line. Blanks at the ends count only within quotes; a backslash before a line break joins lines."""
    value, kept, position = "", 0, 0
    fresh = True
    while position < len(text) and text[position] not in "\n\r":
        char = text[position]
        if fresh and char in "\"'":
            quoted, position = systemd_quoted(text, position + 1, char)
            value += quoted
            kept = len(value)
        elif char == "\\":
            value += "" if text[position + 1] == "\n" else text[position + 1]
            kept, fresh = len(value), False
            position += 2
        else:
            if not (fresh and char in " \t"):
                value, fresh = value + char, False
            kept = kept if char in " \t" else len(value)
            position += 1
    return value[:kept], text[position + 1 :]


def systemd_quoted(text: str, position: int, quote: str) -> tuple[str, int]:
    """What stands in quotes, and the position behind the closing one."""
    value = ""
    while text[position] != quote:
        char, following = text[position], text[position + 1]
        if quote == '"' and char == "\\":
            value += following if following in '"\\`$' else "" if following == "\n" else char + following
            position += 2
        else:
            value += char
            position += 1
    return value, position + 1


def test_nccl_reads_4095_bytes_of_a_line() -> None:
    """A longer line loses its = if that comes later."""
    assert parse_nccl_conf("N" * 4094 + "=1").variables == {"N" * 1023: ""}
    late = parse_nccl_conf("N" * 4095 + "=1")
    assert (late.variables, [each.why for each in late.ignored]) == ({}, ["it has no ="])
