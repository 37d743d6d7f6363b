# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lint of a host's sources as a whole, and of one source by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.lint import lint, winners
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import (
    ENVIRONMENT,
    NAMED_FILE,
    SITE_FILE,
    USER_FILE,
    Source,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import Problem
from tests.unit.builders.hosts import lab_facts

SITE = "/etc/nccl.conf"
GOOD = {"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1", "NCCL_SOCKET_IFNAME": "=enp0s2", "NCCL_IB_TC": "106"}


def site(variables: Mapping[str, str]) -> Source:
    return Source(SITE_FILE, SITE, "", variables)


def written(text: str) -> Source:
    conf = parse_nccl_conf(text)
    return Source(SITE_FILE, SITE, "", conf.variables, (*conf.ignored, *conf.altered))


def problems(*sources: Source, version: str | None = None, facts: dict[str, Any] | None = None) -> list[tuple[str, str, str]]:
    """Severity, rule and variable of each problem."""
    problems = lint(sources, lab_facts() if facts is None else facts, version)
    return [(problem.severity, problem.rule, problem.variable) for problem in problems]


def test_the_variables_of_the_lab_are_good() -> None:
    assert lint([site(GOOD)], lab_facts(), "2.27.7") == []


def test_nothing_set_is_good() -> None:
    assert lint([], lab_facts(), None) == []


@pytest.mark.parametrize(
    ("name", "version", "severity", "rule", "observed", "expected"),
    [
        ("NCCL_SHARP_ENABLE", None, "error", "name_never", "NCCL_SHARP_ENABLE: no version of NCCL has ever had it: SHARP takes "
         "NCCL_COLLNET_ENABLE=1 and its network plugin", "one of NCCL's variables"),
        (
            "NCCL_IB_TIMOUT", None, "error", "name_unknown",
            "NCCL_IB_TIMOUT does not exist: did you mean NCCL_IB_TIMEOUT?", "NCCL_IB_TIMEOUT",
        ),
        ("nccl_debug", None, "error", "name_unknown", "nccl_debug does not exist: did you mean NCCL_DEBUG?", "NCCL_DEBUG"),
        ("NCLL_DEBUG", None, "error", "name_unknown", "NCLL_DEBUG does not exist: did you mean NCCL_DEBUG?", "NCCL_DEBUG"),
        (
            "NCCL_QQQQ", None, "warning", "name_unknown",
            "NCCL_QQQQ does not exist: NCCL ignores it unless a plugin reads it", "one of NCCL's variables",
        ),
        ("export NCCL_DEBUG", None, "error", "name_form", "the name 'export NCCL_DEBUG' is not made of letters, digits and _; did you mean "
         "NCCL_DEBUG?", "NCCL_DEBUG"),
        ("NCCL_DEBUG ", None, "error", "name_form", "the name 'NCCL_DEBUG ' is not made of letters, digits and _; did you mean NCCL_DEBUG?",
         "NCCL_DEBUG"),
        ("NCCL_MESH_DEBUG", None, "info", "name_of_others", "NCCL_MESH_DEBUG is read by the mesh plugin (nccl-mesh-plugin), which needs "
         "NCCL_NET_PLUGIN=mesh", "the plugin is used"),
        ("NCCL_MESH_MAX_HOPS", None, "error", "name_never", "NCCL_MESH_MAX_HOPS: the README of nccl-mesh-plugin has this name, but its "
         "code reads NCCL_MESH_MAX_RELAY_HOPS", "one of NCCL's variables"),
        ("NCCL_MESH_GID_INDX", None, "error", "name_unknown", "NCCL_MESH_GID_INDX does not exist: did you mean NCCL_MESH_GID_INDEX?",
         "NCCL_MESH_GID_INDEX"),
        ("NCCL_BLOCKING_WAIT", None, "warning", "name_of_others", "NCCL_BLOCKING_WAIT belongs to PyTorch; NCCL does not read it",
         "TORCH_NCCL_BLOCKING_WAIT"),
        ("NCCL_IB_CUDA_SUPPORT", None, "error", "name_gone", "NCCL_IB_CUDA_SUPPORT: no longer read since NCCL 2.4.2", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_WORK_FIFO_DEPTH", "2.22.3", "error", "name_gone", "NCCL_WORK_FIFO_DEPTH: no longer read since NCCL 2.22.3",
         "NCCL_WORK_FIFO_BYTES"),
        ("NCCL_IB_FIFO_TC", "2.21.5", "error", "name_too_new", "NCCL_IB_FIFO_TC: read since NCCL 2.22.3, but this is 2.21.5",
         "NCCL 2.22.3, or no NCCL_IB_FIFO_TC"),
        ("NCCL_MAX_NCHANNELS", None, "warning", "name_old", "NCCL_MAX_NCHANNELS is deprecated", "NCCL_MAX_CTAS"),
        ("NCCL_IB_QPS_PER_CONNECTION", None, "warning", "for_tests_only", "NCCL_IB_QPS_PER_CONNECTION is for tests, but /etc/nccl.conf "
         "applies to every job", "set for the job that needs it"),
    ],
)  # fmt: skip
def test_names(name: str, version: str | None, severity: str, rule: str, observed: str, expected: str) -> None:  # noqa: PLR0917
    (problem,) = lint([site({name: "1"})], lab_facts(), version)
    assert (problem.severity, problem.rule, problem.where) == (severity, rule, SITE)
    assert (problem.observed, problem.expected) == (observed, expected)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("NCCL_WORK_FIFO_DEPTH", "2.21.5"),
        ("NCCL_IB_FIFO_TC", "2.22.3"),
        ("NCCL_IB_FIFO_TC", "2.22"),
        ("NCCL_MAX_NCHANNELS", "2.16.5"),
        ("NCCL_IB_QPS_PER_CONNECTION", None),
        ("NCCL_VERSION", None),
        ("OFI_NCCL_PROTOCOL", None),
        ("TORCH_NCCL_BLOCKING_WAIT", None),
        ("UCX_TLS", None),
        ("PATH", None),
    ],
)
def test_names_that_are_good_or_nobodys_business(name: str, version: str | None) -> None:
    problems = lint([Source(USER_FILE, "/root/.nccl.conf", "root", {name: "1"})], lab_facts(), version)
    assert problems == []


def test_the_name_of_a_file_in_a_file() -> None:
    source = site({"NCCL_CONF_FILE": "/opt/nccl.conf"})
    assert problems(source) == [("error", "conf_file_in_file", "NCCL_CONF_FILE")]
    environment = Source(ENVIRONMENT, "environment of slurmd.service", "slurmd.service", source.variables)
    assert problems(environment) == []


def test_lines_that_do_not_do_what_they_say() -> None:
    text = "# fine\n\nNCCL_IB_TC=106\nNCCL_IB_TC=104\nhello\n=x\nNCCL_DEBUG=WARN\r\n"
    problems = lint([written(text)], {}, "2.29.7")
    expected = "NAME=VALUE, and nothing else"
    assert problems == [
        Problem("value_form", "error", "NCCL_DEBUG", SITE, r"NCCL_DEBUG=WARN\r: NCCL reads the blanks as part of the value",
                "no blanks around it", f"Correct NCCL_DEBUG in {SITE}."),
        Problem("line", "warning", "", SITE, "line 4, 'NCCL_IB_TC=104': NCCL_IB_TC is already set above, and the first one counts",
                expected, f"Correct line 4 of {SITE}."),
        Problem("line", "warning", "", SITE, "line 5, 'hello': it has no =", expected, f"Correct line 5 of {SITE}."),
        Problem("line", "warning", "", SITE, "line 6, '=x': it has no name before the =", expected, f"Correct line 6 of {SITE}."),
        Problem("line", "warning", "", SITE, r"line 7, 'NCCL_DEBUG=WARN\r': only recent versions of NCCL remove a carriage return",
                expected, f"Correct line 7 of {SITE}."),
    ]  # fmt: skip


def test_a_carriage_return_is_part_of_the_value_until_2_30() -> None:
    source = written("NCCL_IB_TC=106\r\n")
    assert problems(source, version="2.29.7") == [("error", "value_form", "NCCL_IB_TC"), ("warning", "line", "")]
    assert problems(source, version="2.30.3") == problems(source) == [("warning", "line", "")]
    assert winners([source], "2.30.3")[0]["variables"]["NCCL_IB_TC"]["value"] == "106"


def test_what_hides_what() -> None:
    alice = Source(USER_FILE, "/home/alice/.nccl.conf", "alice", {"NCCL_IB_TC": "104", "NCCL_SOCKET_IFNAME": "=enp0s2"})
    assert lint([site(GOOD), alice], lab_facts(), None) == [
        Problem(
            "shadowed", "warning", "NCCL_IB_TC", SITE,
            "NCCL_IB_TC=106 has no effect for alice: /home/alice/.nccl.conf has 104",
            "one value",
            "Remove NCCL_IB_TC from /home/alice/.nccl.conf, or set the same value in both.",
        )
    ]  # fmt: skip


def test_a_file_that_is_not_read_because_the_environment_names_another() -> None:
    environment = Source(ENVIRONMENT, "environment of slurmd.service", "slurmd.service", {"NCCL_CONF_FILE": "/opt/nccl.conf"})
    named = Source(NAMED_FILE, "/opt/nccl.conf", "slurmd.service", {})
    home = Source(USER_FILE, "/root/.nccl.conf", "slurmd.service", {"NCCL_IB_TC": "106"})
    assert lint([environment, named, home], lab_facts(), None) == [
        Problem(
            "not_read", "warning", "NCCL_IB_TC", "/root/.nccl.conf",
            "slurmd.service does not read it: NCCL_IB_TC has no effect",
            "one file",
            "Merge /root/.nccl.conf into the file that is read.",
        )
    ]  # fmt: skip


def test_a_container_that_hides_the_hosts_file() -> None:
    process = Source(ENVIRONMENT, "environment of process 7", "process 7", {"NCCL_IB_TC": "106"})
    inside = Source(SITE_FILE, SITE, "process 7", {}, in_container=True)
    assert lint([site(GOOD), process, inside], lab_facts(), None) == [
        Problem(
            "not_read", "warning", "NCCL_IB_HCA, NCCL_SOCKET_IFNAME", SITE,
            "process 7 does not read it: NCCL_IB_HCA, NCCL_SOCKET_IFNAME has no effect",
            "the same in the container",
            "Mount /etc/nccl.conf into the container of process 7.",
        )
    ]  # fmt: skip


def test_an_environment_that_turns_rdma_off_is_named() -> None:
    slurm = Source(ENVIRONMENT, "environment of slurmd.service", "slurmd.service", {"NCCL_IB_DISABLE": "1"})
    (problem,) = [each for each in lint([site(GOOD), slurm], lab_facts(), None) if each.rule == "sockets_forced"]
    assert (problem.where, problem.remedy) == (
        "the environment of slurmd.service",
        "Remove NCCL_IB_DISABLE from the environment of slurmd.service.",
    )


def test_a_file_of_several_owners_is_judged_once() -> None:
    home = [Source(USER_FILE, "/root/.nccl.conf", owner, {"NCCL_DEBUG": "WARNING"}) for owner in ("root", "slurmd.service")]
    assert problems(*home) == [("error", "value_choice", "NCCL_DEBUG")]


def test_files_of_one_path_and_different_contents_are_judged_each() -> None:
    """A container may have another file at the same place."""
    home = [Source(USER_FILE, "/root/.nccl.conf", owner, {name: "1"}) for owner, name in (("root", "NCCL_FO"), ("process 7", "NCCL_QQQQ"))]
    assert sorted(name for _severity, _rule, name in problems(*home)) == ["NCCL_FO", "NCCL_QQQQ"]


def test_the_worst_comes_first() -> None:
    found = problems(site({"NCCL_DEBUG_SUBSYS": "NET", "NCCL_IB_TC": "", "NCCL_IB_SL": "99", "NCCL_DMABUF_ENABLE": "0"}), facts={})
    assert [severity for severity, _rule, _name in found] == ["error", "unknown", "warning", "warning", "info"]


def test_who_takes_what_from_where() -> None:
    alice = Source(USER_FILE, "/home/alice/.nccl.conf", "alice", {"NCCL_IB_TC": "104"})
    everybody = {"owner": "every other job", "sources": [SITE], "variables": {"NCCL_IB_TC": {"value": "106", "from": SITE, "hides": []}}}
    assert winners([site({"NCCL_IB_TC": "106"}), alice], None) == [
        {
            "owner": "alice",
            "sources": ["/home/alice/.nccl.conf", SITE],
            "variables": {"NCCL_IB_TC": {"value": "104", "from": "/home/alice/.nccl.conf", "hides": [{"value": "106", "in": SITE}]}},
        },
        everybody,
    ]


HOSTILE = {
    "NUL": "NCCL_IB_TC=1\00006\nNCCL\0_DEBUG=INFO\n",
    "CR": "NCCL_IB_TC=106\r\nNCCL_DEBUG=INFO\r\n\r\n",
    "line": "NCCL_IB_HCA=" + "mlx5_0," * 150_000 + "\n",
    "name": "N" * 1_000_000 + "=1\n",
    "names": "".join(f"NCCL_X{number}=1\n" for number in range(50_000)),
    "lines": "NCCL_IB_TC=1\n" * 50_000,
    "not UTF-8": b"NCCL_IB_TC=\xff\xfe\nNCCL_\xc3=1\n".decode("utf-8", "replace"),
    "escapes": "NCCL_IB_HCA=\x1b[31m\x07\nNCCL_\u202eDEBUG=1\n",
    "lone surrogate": "NCCL_IB_TC=\udcff\n",
}


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_hostile_text(what: str) -> None:
    start = time.process_time()
    problems = lint([written(HOSTILE[what])], lab_facts(), "2.27.7")
    assert time.process_time() - start < 20
    assert problems
    assert len(problems) < 50
    for problem in problems:
        answer = " ".join(problem.to_dict().values())
        assert answer.isprintable(), answer
        assert len(answer) < 3000


def test_a_nul_ends_the_value_and_the_rest_is_reported() -> None:
    assert problems(written("NCCL_IB_TC=1\00006\n"), facts={}) == [("warning", "line", "")]
