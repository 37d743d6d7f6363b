# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables on a host: which value holds, where it comes from, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.explain import explain
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.nccl import (
    MAIN,
    ROOT_FILE,
    SITE,
    meaning,
    name_trouble,
    nccl,
    started_with,
    value_trouble,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_intent

ENVIRONMENT = "/etc/rdma-cluster/nccl.env"
LAB_HCA = "=rxe_rail0:1,rxe_rail1:1"
#: What the script prints that this takes the place of.
SCRIPT = (
    *("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_NET_GDR_LEVEL", "NCCL_SOCKET_IFNAME", "NCCL_ALGO"),
    *("NCCL_PROTO", "NCCL_NTHREADS", "NCCL_NCHUNKS_COARSE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_SHARP_ENABLE"),
    *("NCCL_BUFFSIZE", "NCCL_GRAPH_DUMP_FILE"),
)
Files = dict[str, dict[str, str]]


def lab(files: Files | None, **section: Any) -> str:
    """The section of a lab machine with these files; section: rdma_nccl."""
    intent, facts = lab_intent(nccl=section), {**lab_facts(), "nccl_files": files}
    return "NCCL\n" + explain("node1", intent, facts).rpartition("\n\nNCCL\n")[2]


def rows(text: str) -> dict[str, list[str]]:
    """The lines of each variable, of single blanks and without mark: first the row, then what stands below it."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.split()[:2] == ["variable", "value"])
    found: dict[str, list[str]] = {}
    for line in lines[start + 1 :]:
        if line[2] != " ":
            name = line[2:].split()[0]
            found[name] = []
        if line.startswith(" " * 7):
            found[name][0] += " " + " ".join(line.split())
        else:
            found[name].append(" ".join(line[2:].split()))
    return found


def test_all_that_the_script_prints_is_there_with_default_and_meaning() -> None:
    found = rows(lab({}))
    assert set(SCRIPT) == set(found)
    assert found["NCCL_BUFFSIZE"] == [
        "NCCL_BUFFSIZE 4194304 NCCL's default bytes of the buffer of a channel and peer, a power of two; for tests"
    ]
    assert found["NCCL_NCHUNKS_COARSE"] == ["NCCL_NCHUNKS_COARSE - - no version of NCCL has ever had it"]


def test_the_environment_comes_before_the_user_s_file_and_that_before_the_host_s() -> None:
    mine = "NCCL_IB_TIMEOUT"
    files = {ENVIRONMENT: {mine: "22"}, ROOT_FILE: {mine: "21"}, SITE: {mine: "20"}}
    for path in (ENVIRONMENT, ROOT_FILE, SITE):
        row, *notes = rows(lab(files, variables={mine: files[path][mine]}))[mine]
        assert row.startswith(f"{mine} {files[path][mine]} {path} ")
        assert notes == [f"this hides {answer[mine]} of {hidden}" for hidden, answer in files.items() if hidden != path]
        del files[path]
    assert rows(lab(files))["NCCL_IB_DISABLE"][0].startswith("NCCL_IB_DISABLE 0 NCCL's default ")
    assert mine not in rows(lab(files))


def test_a_file_that_the_environment_names_takes_the_place_of_the_user_s_own() -> None:
    files = {ENVIRONMENT: {"NCCL_CONF_FILE": "/opt/nccl.conf"}, "/opt/nccl.conf": {"NCCL_DEBUG": "WARN"}, ROOT_FILE: {"NCCL_DEBUG": "INFO"}}
    read = [(source.path, dict(source.variables)) for source in started_with(ENVIRONMENT, files, None).sources]
    assert read == [(ENVIRONMENT, files[ENVIRONMENT]), ("/opt/nccl.conf", files["/opt/nccl.conf"]), (SITE, {})]
    text = lab(files)
    assert f"! {ROOT_FILE} exists, but NCCL does not read it unless NCCL_CONF_FILE names it." in text.splitlines()
    assert rows(text)["NCCL_DEBUG"][0].startswith("NCCL_DEBUG WARN /opt/nccl.conf ")
    assert "    NCCL_CONF_FILE of that                  /opt/nccl.conf, 1 variable" in text.splitlines()


def test_the_name_of_a_file_has_no_effect_within_a_file() -> None:
    files = {SITE: {"NCCL_CONF_FILE": "/opt/nccl.conf"}}
    assert "it takes effect only in the environment" in rows(lab(files))["NCCL_CONF_FILE"]
    assert started_with(ENVIRONMENT, files, None).sources[1].path == ROOT_FILE


def test_an_nccl_that_is_older_than_the_name_of_a_file_reads_the_user_s_own() -> None:
    files = {ENVIRONMENT: {"NCCL_CONF_FILE": "/opt/nccl.conf"}, "/opt/nccl.conf": {"NCCL_DEBUG": "WARN"}, ROOT_FILE: {"NCCL_DEBUG": "INFO"}}
    assert rows(lab(files, version="2.22.3"))["NCCL_DEBUG"][0].startswith(f"NCCL_DEBUG INFO {ROOT_FILE} ")


def test_a_file_of_the_intent_where_nccl_does_not_look() -> None:
    files = {"/opt/site/nccl.conf": {"NCCL_IB_HCA": LAB_HCA}}
    text = lab(files, conf_file="/opt/site/nccl.conf")
    assert "! /opt/site/nccl.conf exists, but NCCL does not read it unless NCCL_CONF_FILE names it." in text.splitlines()
    assert rows(text)["NCCL_IB_HCA"][1] == f"the intent has {LAB_HCA}"


def test_as_the_intent_has_it_nothing_is_marked() -> None:
    variables = {"NCCL_IB_HCA": LAB_HCA, "NCCL_IB_QPS_PER_CONNECTION": "4"}
    text = lab({SITE: variables, ENVIRONMENT: variables}, variables={"NCCL_IB_QPS_PER_CONNECTION": 4})
    assert not [line for line in text.splitlines() if line.startswith("!")]
    assert list(rows(text))[:2] == ["NCCL_IB_HCA", "NCCL_IB_QPS_PER_CONNECTION"]


@pytest.mark.parametrize(
    ("answer", "section", "note"),
    [
        ({"NCCL_IB_HCA": "mlx5_0"}, {}, f"the intent has {LAB_HCA}"),
        ({"NCCL_IB_HCA": LAB_HCA, "NCCL_DEBUG": "INFO"}, {}, "the intent does not set it"),
        ({"NCCL_IB_HCA": LAB_HCA}, {"socket_ifname": "eth0"}, "the intent has =eth0"),
        ({"NCCL_IB_HCA": LAB_HCA, "NCCL_IB_TC": ""}, {"variables": {"NCCL_IB_TC": 106}}, "the intent has 106"),
        (
            {"NCCL_IB_HCA": LAB_HCA, "NCCL_P2P_LEVEL": "PH"},
            {"variables": {"NCCL_P2P_LEVEL": "PH"}},
            "NCCL does not know this level and uses its default; levels are LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS",
        ),
        (
            {"NCCL_IB_HCA": LAB_HCA, "NCCL_SHARP_ENABLE": "1"},
            {"variables": {"NCCL_SHARP_ENABLE": 1}},
            "no version of NCCL has ever had it: SHARP takes NCCL_COLLNET_ENABLE=1 and its network plugin",
        ),
        (
            {"NCCL_IB_HCA": LAB_HCA, "NCCL_IB_CUDA_SUPPORT": "1"},
            {"variables": {"NCCL_IB_CUDA_SUPPORT": 1}},
            "removed in NCCL 2.4.2, replaced by NCCL_NET_GDR_LEVEL",
        ),
        (
            {"NCCL_IB_HCA": LAB_HCA, "NCCL_IB_GDI_INDEX": "3"},
            {"variables": {"NCCL_IB_GDI_INDEX": 3}},
            "did you mean NCCL_IB_GID_INDEX?",
        ),
    ],
)
def test_one_mark_for_one_thing(answer: dict[str, str], section: dict[str, Any], note: str) -> None:
    text = lab({SITE: answer}, **section)
    (line,) = [line for line in text.splitlines() if line.startswith("!")]
    assert rows(text)[line.split()[1]][1:] == [note]


def test_an_old_number_of_a_level_is_reported_in_words_and_not_marked() -> None:
    text = lab({SITE: {"NCCL_IB_HCA": LAB_HCA, "NCCL_P2P_LEVEL": "5"}}, variables={"NCCL_P2P_LEVEL": 5})
    assert rows(text)["NCCL_P2P_LEVEL"][1:] == ["5 is the old spelling of SYS"]
    assert not [line for line in text.splitlines() if line.startswith("!")]


@pytest.mark.parametrize(
    ("value", "wrong"), [("PIX", False), ("LOC", False), ("0", False), ("99", False), ("", False), ("pix", True), ("PH", True), ("٣", True)]
)
def test_levels_are_reported_by_their_case(value: str, wrong: bool) -> None:
    assert bool(value_trouble("NCCL_NET_GDR_LEVEL", value)) is wrong
    assert value_trouble("NCCL_DEBUG", value) == ""


@pytest.mark.parametrize("name", [*MAIN, "NCCL_IB_TC", "NCCL_LAUNCH_MODE", "NCCL_HOSTID", "UCX_TLS", "LD_PRELOAD", "NCCL_", ""])
def test_what_exists_or_may_exist_is_no_trouble(name: str) -> None:
    assert name_trouble(name) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NCCL_FOO", "not known here; no effect if NCCL does not know it either"),
        ("UCX_TLS", "not a variable of NCCL"),
        ("NCCL_IB_GDR_LEVEL", "nothing"),
    ],
)
def test_what_is_reported_of_a_name_that_is_not_known(name: str, words: str) -> None:
    assert meaning(name) == words


def test_files_that_were_not_read_are_not_taken_for_empty_ones() -> None:
    text = lab(None, socket_ifname="eth0")
    assert text.splitlines()[1] == "  The files of NCCL's variables were not read."
    assert "NCCL's default" not in text
    assert not [line for line in text.splitlines() if line.startswith("!")]
    assert rows(text)["NCCL_SOCKET_IFNAME"][1:] == ["the intent has =eth0"]


def test_without_an_intent_there_is_nothing_to_differ_from() -> None:
    text = nccl(None, from_dict({"nccl_files": {SITE: {"NCCL_DEBUG": "INFO"}, ENVIRONMENT: {"NCCL_ALGO": "Tree"}}}))
    assert not [line for line in text.splitlines() if line.startswith("!")]
    found = rows(text)
    assert found["NCCL_DEBUG"][0].startswith(f"NCCL_DEBUG INFO {SITE} ")
    assert found["NCCL_ALGO"][0].startswith(f"NCCL_ALGO Tree {ENVIRONMENT} ")


@pytest.mark.parametrize("files", [None, {}, {SITE: {"NCCL_IB_HCA": LAB_HCA}}])
def test_while_a_rail_has_no_device_the_list_of_devices_is_not_compared(files: Files | None) -> None:
    facts = {**lab_facts(), "nccl_files": files}
    del facts["devices"]["rxe_rail1"]
    text = "NCCL\n" + explain("node1", lab_intent(), facts).rpartition("\n\nNCCL\n")[2]
    assert not [line for line in text.splitlines() if line.startswith("!")]
    note = [] if files else ["the intent derives it when every rail has its device"]
    assert rows(text)["NCCL_IB_HCA"][1:] == note


@pytest.mark.parametrize(
    ("version", "words"),
    [(None, "NCCL's default (2.30). Containers"), ("2.20.5", "NCCL's default (2.30; the intent names NCCL 2.20.5).")],
)
def test_whose_defaults_these_are(version: str | None, words: str) -> None:
    assert words in " ".join(lab({}, version=version).split())


def test_old_nccl_wants_its_gid_index() -> None:
    facts = lab_facts()
    for rail in (0, 1):
        facts["devices"][f"rxe_rail{rail}"]["ports"]["1"]["rocev2"] = {f"192.168.{100 + rail}.1": 1}
    facts["nccl_files"] = {SITE: {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_HCA": LAB_HCA}}
    text = explain("node1", lab_intent(nccl={"version": "2.20.5"}), facts)
    assert rows(text)["NCCL_IB_GID_INDEX"][1:] == ["the intent has 1"]
