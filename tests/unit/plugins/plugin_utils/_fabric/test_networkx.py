# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control node without networkx."""

from __future__ import annotations

import importlib
import sys

import networkx
import pytest
from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric import gate
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric import networkx as fabric_networkx


def test_where_it_is_there_it_is_itself() -> None:
    assert fabric_networkx.nx is networkx


def test_without_it_the_gate_can_be_imported_and_its_first_use_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    try:
        without = importlib.reload(fabric_networkx).nx
        importlib.reload(gate)
        with pytest.raises(AnsibleError, match=r"-m pip install networkx`"):
            without.Graph()
    finally:
        monkeypatch.undo()
        importlib.reload(fabric_networkx)
        importlib.reload(gate)
