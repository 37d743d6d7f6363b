# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a module in the kernel is the one on disk."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import Module, compare
from tests.unit.builders.driver_hosts import part

NONE = {"version": None, "srcversion": None, "file_version": None, "file_srcversion": None}
SAME = {"version": "1", "srcversion": "A", "file_version": "1", "file_srcversion": "A", "file": "/x.ko"}
COMPARED = [
    pytest.param(SAME, "ok", id="the same"),
    pytest.param({**SAME, "version": "2"}, "error", id="another version"),
    pytest.param({**SAME, "srcversion": "B"}, "error", id="another srcversion"),
    pytest.param({**SAME, "version": None}, "error", id="version of the file only"),
    pytest.param({**SAME, "file_srcversion": None}, "error", id="srcversion of what is loaded only"),
    pytest.param({**SAME, "version": None, "file_version": None}, "ok", id="srcversion alone"),
    pytest.param({**NONE, "file": "/x.ko", "provenance": "kernel"}, "ok", id="the kernel's own declares nothing"),
    pytest.param({**NONE, "file": "/x.ko", "provenance": "dkms"}, "unknown", id="an add-on declares nothing"),
    pytest.param({**NONE, "file": "(builtin)"}, "ok", id="part of the kernel"),
    pytest.param({**NONE, "srcversion": "A", "file": "(builtin)"}, "ok", id="part of the kernel, with a srcversion"),
    pytest.param({**NONE, "file": None, "srcversion": "A"}, "unknown", id="no file was found"),
    pytest.param(
        {**NONE, "file": "/x.ko", "srcversion": "A", "provenance": "kernel"}, "error", id="only what is loaded declares something"
    ),
]


@pytest.mark.parametrize(("seen", "status"), COMPARED)
def test_a_module_against_its_file(seen: dict[str, Any], status: str) -> None:
    assert compare(part(Module, seen)) == status
