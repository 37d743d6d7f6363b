# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written about the intent is what the schema says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.modules import intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.docs import UNREAD, render
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RUN, SECTIONS

PAGE = Path(__file__).parents[5] / "docs/intent.md"

#: The type of a section → its name in the module's documentation.
TYPES = {list: "list", dict: "dict", str: "str"}


def test_the_page_is_what_is_generated() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `python tests/tools/docs.py`"


@pytest.mark.parametrize("name", SECTIONS)
def test_each_section_says_who_reads_it(name: str) -> None:
    first = render().split(f"## `{name}`")[1].split("|", maxsplit=1)[0]
    assert (UNREAD in first) == (not SECTIONS[name].stages)
    assert all(stage in first or stage == "every" for stage in SECTIONS[name].stages)


@pytest.mark.parametrize(
    "row",
    [
        "| `nic.pci` | text | none |",
        "| `mtu_bytes` | integer | none | The MTU of the interface, live and at boot.",
        "| `planes.NAME.ratio` | number | none |",
        "| `ID.until` | text or date | none |",
        "| `rdma_measure` | `auto`, `true`, `false` | `auto` |",
        "| `rdma_load_allowed` | boolean | `false` |",
        "| `variables.NAME` | text or integer | none |",
        "| `ID.members` | `all` or list | required |",
        "| `planes.NAME.subnet_manager.hosts` | list of texts | empty |",
    ],
)
def test_a_key_has_a_row(row: str) -> None:
    assert row in render()


@pytest.mark.parametrize("name", RUN)
def test_each_variable_of_a_run_has_a_row(name: str) -> None:
    assert f"| `{name}` |" in render().split("## Variables of a run")[1]


def test_the_module_returns_the_sections_that_there_are() -> None:
    returned = yaml.safe_load(intent.RETURN)["ansible_facts"]["contains"]["rdma_intent"]["contains"]
    assert list(returned) == [name.removeprefix("rdma_") for name in SECTIONS]
    assert {name: each["type"] for name, each in returned.items()} == {
        name.removeprefix("rdma_"): TYPES[section.key.types[0]] for name, section in SECTIONS.items()
    }
    rails = [{"name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "address": "192.168.1.1/24"}]
    assert list(normalize({"rdma_rails": rails})) == list(returned)


def test_the_module_takes_the_stages_that_there_are() -> None:
    assert yaml.safe_load(intent.DOCUMENTATION)["options"]["stage"]["choices"] == list(STAGES)
