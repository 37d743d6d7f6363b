# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nan and inf as C prints them, where a value of JSON should be."""

from __future__ import annotations

import json
import math

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import words_of_json


def test_only_values_are_changed() -> None:
    text = '{"a": nan, "b":-inf, "c": "nan", "d": "x: nan", "e": [1]}'
    values = json.loads(words_of_json(text))
    assert math.isnan(values.pop("a"))
    assert values == {"b": math.inf, "c": "nan", "d": "x: nan", "e": [1]}
