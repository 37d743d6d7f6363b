# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of NCCL's variables: what it says of some, and what must be true of all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import read_number
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import (
    BOOL,
    CHOICE,
    GONE,
    INTEGER,
    NUMBERS,
    SWITCH,
    WORDS,
    Variable,
    is_at_least,
    is_older,
    version_numbers,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import (
    BUILD,
    NEVER,
    NEWEST,
    PLUGIN_VARIABLES,
    PLUGINS,
    PYTORCH,
    VARIABLES,
    Reader,
    reader,
)

FIXTURES = Path(__file__).parents[4] / "fixtures"


def test_what_it_says_of_some() -> None:
    assert VARIABLES["NCCL_IB_TIMEOUT"] == Variable(
        "NCCL_IB_TIMEOUT", INTEGER, "20", "a queue pair waits 4.096 µs × 2^n before it sends again", low=0, high=31
    )
    assert VARIABLES["NCCL_IB_ADDR_FAMILY"].exact
    assert VARIABLES["NCCL_IB_SUBNET_AWARE_ROUTING"].since == "2.30.7"
    assert VARIABLES["NCCL_CONF_FILE"].since == "2.23.4"
    assert (VARIABLES["NCCL_IB_GDR_LEVEL"].until, VARIABLES["NCCL_IB_GDR_LEVEL"].instead) == ("2.4.2", "NCCL_NET_GDR_LEVEL")
    assert (VARIABLES["NCCL_MAX_NRINGS"].deprecated, VARIABLES["NCCL_MAX_NRINGS"].instead) == (True, "NCCL_MAX_CTAS")
    assert (VARIABLES["NCCL_IB_PKEY_VALUE"].since, VARIABLES["NCCL_TOPO_SCATTER_START_NET"].until) == ("2.31.2", "2.32.3")
    assert len(VARIABLES) == 306


def test_no_name_stands_in_two_places() -> None:
    names = [*VARIABLES, *NEVER, *BUILD, *PYTORCH]
    assert len(names) == len(set(names))
    assert not [name for name in VARIABLES if any(name.startswith(prefix) for prefix in PLUGINS)]
    assert not PLUGIN_VARIABLES.keys() & {*names}


def test_the_variables_of_the_mesh_plugin() -> None:
    assert len(PLUGIN_VARIABLES) == 13
    assert all(name.startswith("NCCL_MESH_") for name in PLUGIN_VARIABLES)
    assert (PLUGIN_VARIABLES["NCCL_MESH_MAX_RELAY_HOPS"].low, PLUGIN_VARIABLES["NCCL_MESH_MAX_RELAY_HOPS"].high) == (1, 8)
    assert "NCCL_MESH_MAX_RELAY_HOPS" in NEVER["NCCL_MESH_MAX_HOPS"]


def test_every_variable_has_its_own_meaning() -> None:
    meanings = [variable.meaning for variable in VARIABLES.values() if variable.kind != GONE]
    assert len(set(meanings)) == len(meanings)


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_what_must_be_true_of_all(name: str) -> None:
    variable = VARIABLES[name]
    assert variable.name == name
    assert re.fullmatch(r"NCCL_[A-Z0-9_]+", name)
    assert variable.default
    assert 4 < len(variable.meaning) < 120
    assert not variable.meaning.endswith(".")
    for version in filter(None, (variable.since, variable.until)):
        assert is_at_least(version, "2.3.5")
        assert is_at_least(NEWEST, version)
    if variable.since and variable.until:
        assert is_older(variable.since, variable.until)
    assert (variable.kind == GONE) == bool(variable.until)
    assert bool(variable.choices) == (variable.kind in (CHOICE, WORDS, NUMBERS))
    assert not variable.instead or variable.instead.partition("=")[0] in VARIABLES
    assert not variable.deprecated or variable.instead or name == "NCCL_LAUNCH_MODE"
    if variable.kind in (INTEGER, SWITCH):
        assert variable.high is None or (variable.low is not None and variable.low < variable.high)
        number = read_number(re.split("[;: ]", variable.default)[0])
        assert not re.match("-?[0-9]", variable.default) or variable.high is None or (number or 0) <= variable.high
    if variable.kind == BOOL:
        assert variable.default in ("0", "1", "TRUE", "FALSE")


def test_every_variable_that_nccl_was_seen_to_read_is_there() -> None:
    """NCCL says which of its variables somebody has set."""
    logs = sorted(FIXTURES.glob("h200/*debug_info*.txt"))
    assert logs
    seen = {name for log in logs for name in re.findall(r"(NCCL_[A-Z0-9_]+) set by environment to", log.read_text(errors="replace"))}
    assert seen
    assert seen <= set(VARIABLES)


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("NCCL_MESH_GID_INDEX", Reader("the mesh plugin (nccl-mesh-plugin)", "NCCL_NET_PLUGIN=mesh")),
        ("NCCL_IBEXT_DISABLE", Reader("NVIDIA's network plugin with SHARP (nccl-rdma-sharp-plugins)")),
        ("NCCL_ASYNC_ERROR_HANDLING", Reader("PyTorch")),
        ("NCCL_VERSION", Reader("builds and images")),
        ("NCCL_SHARP_ENABLE", None),
        ("NCCL_IB_HCA", None),
        ("NCCL_FOO", None),
    ],
)
def test_whose_a_name_is(name: str, whose: Reader | None) -> None:
    assert reader(name) == whose


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("2.20.5", "2.21.5", True),
        ("2.21.5", "2.21.5", False),
        ("2.21", "2.21.5", False),
        ("v2.4", "2.21.5", True),
        ("2.30.7", "2.4.2", False),
        (None, "2.21.5", False),
        ("newest", "2.21.5", False),
    ],
)
def test_versions_are_compared_by_number(version: str | None, than: str, older: bool) -> None:
    assert is_older(version, than) is older
    assert is_at_least(version, than) is (not older and version_numbers(version) is not None)
