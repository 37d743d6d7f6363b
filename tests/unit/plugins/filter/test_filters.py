# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every filter of intent and facts says the same of them as Ansible hands them over, and as plain containers."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins import filter as filters
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.cards import card_facts, card_rails, infiniband_rails
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.lazy import lazy

Filter = Callable[..., Any]
PARTITIONS = {"tenant": {"key": 1, "members": ["node1"]}}
#: Of the filters that ask for more than intent and facts.
MORE = {"switch_config": {"name": "leaf1"}}


def all_filters() -> dict[str, Filter]:
    modules = [importlib.import_module(f"{filters.__name__}.{found.name}") for found in pkgutil.iter_modules(filters.__path__)]
    return {name: each for module in modules for name, each in module.FilterModule().filters().items()}


FILTERS = {name: each for name, each in all_filters().items() if "intent" in inspect.signature(each).parameters}


def partitioned() -> tuple[dict[str, Any], dict[str, Any]]:
    facts = {**lab_facts(), **card_facts("InfiniBand")}
    for device in facts["devices"].values():
        device["ports"]["1"]["pkeys"] = {"0": 0x7FFF, "1": 0x8001, "2": 0x8001}
    return normalize({"rdma_rails": infiniband_rails(), "rdma_partitions": PARTITIONS}), facts


HOSTS = {
    "lab": lambda: (lab_intent(roce={}), lab_facts()),
    "roce": lambda: (normalize({"rdma_rails": card_rails(), "rdma_roce": {}}), {**lab_facts(), **card_facts()}),
    "infiniband, partitions": partitioned,
}


def applied(each: Filter, name: str, intent: Any, facts: Any) -> Any:
    known = {"intent": intent, "facts": facts, **MORE.get(name, {})}
    try:
        return each(**{word: known[word] for word in inspect.signature(each).parameters if word in known})
    except ValueError as refusal:
        return str(refusal)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_says_the_same_of_what_ansible_hands_over(name: str, host: str) -> None:
    intent, facts = HOSTS[host]()
    assert applied(FILTERS[name], name, lazy(intent), lazy(facts)) == applied(FILTERS[name], name, intent, facts)


def test_each_filter_is_documented() -> None:
    """A filter is for playbooks of users: what the roles ask of a host is in rdma_host_plan."""
    folder = Path(filters.__path__[0])
    documented = {path.stem: yaml.safe_load(path.read_text())["DOCUMENTATION"]["name"] for path in folder.glob("*.yml")}
    assert documented == {name: name for name in all_filters()}


def test_hardly_a_filter_is_left_out() -> None:
    assert sorted(set(all_filters()) - set(FILTERS)) == ["in_use", "nccl_lint", "pair_rounds"]
