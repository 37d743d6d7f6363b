# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of names in one line."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of


@pytest.mark.parametrize(("names", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")])
def test_the_first_of_many_names(names: list[str], words: str) -> None:
    assert first_of(names, 2) == words


def test_a_list_has_its_own_separator() -> None:
    assert first_of(["a: 1", "b: 2", "c: 3"], 2, "; ") == "a: 1; b: 2 and 1 more"
