# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the control node that an intent names, and that may therefore be sent."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.action.send_file import named_files
from tests.unit.builders.hosts import lab_intent
from tests.unit.builders.transfer_runs import MESH, SUM

DIGITS = SUM.removeprefix("sha256:")


def test_the_library_and_the_source_of_a_plugin_are_named() -> None:
    assert list(named_files(lab_intent(nccl={"plugin": MESH}))) == [("mesh.so", DIGITS)]
    built = {"kind": "mesh", "source": {"file": "mesh.tar.gz"}, "checksum": SUM}
    assert list(named_files(lab_intent(nccl={"plugin": built}))) == [("mesh.tar.gz", DIGITS)]


def test_a_file_without_a_checksum_is_not_named() -> None:
    assert list(named_files({"file": {"file": "x"}, "source": {"file": "y"}, "checksum": None})) == []
    assert list(named_files([{"file": "name", "checksum": SUM}])) == []
