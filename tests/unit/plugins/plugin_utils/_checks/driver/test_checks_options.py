# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import check_options, module_options
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict

SHOWN = {"mlx5_core": {"prof_sel": "2", "node_guid": "(null)"}, "ib_ipoib": {"recv_queue_size": "512"}}
MODULES: dict[str, Any] = {"mlx5_core": {}, "ib_ipoib": {}}


def check(shown: Any = None, **options: str) -> list[tuple[str, str, str, str]]:
    facts = {"stack": {"modules": MODULES}, "module_parameters": SHOWN if shown is None else shown}
    found = check_options("node1", {"driver": {"module_options": options}}, from_dict(facts))
    assert {(finding.stage, finding.check, finding.host) for finding in found} <= {("driver", "driver.option", "node1")}
    assert all(bool(finding.remedy) is (finding.status == "error") for finding in found)
    return [(finding.subject, finding.status, finding.observed, finding.expected) for finding in found]


def test_what_holds_and_what_does_not() -> None:
    assert check(mlx5_core="prof_sel=2", ib_ipoib="recv_queue_size=1024") == [
        ("ib_ipoib.recv_queue_size", "error", "512", "1024"),
        ("mlx5_core.prof_sel", "ok", "2", "2"),
    ]


def test_none_is_planned() -> None:
    assert check() == []
    assert check_options("node1", {"driver": {"stack": "inbox"}}, from_dict({"stack": {"modules": {}}})) == []


def test_what_cannot_be_seen_is_reported_and_not_taken_for_right() -> None:
    assert check(mlx5_core="hidden=1") == [
        ("mlx5_core.hidden", "not_applicable", "mlx5_core does not show hidden: `modinfo -p mlx5_core` lists its parameters", "1")
    ]
    assert check(mlx4_core="debug_level") == [
        ("mlx4_core.debug_level", "not_applicable", "mlx4_core is not loaded, or is not among the checked modules", "on")
    ]
    facts: dict[str, Any] = {"stack": {"modules": MODULES}}
    (finding,) = check_options("node1", {"driver": {"module_options": {"mlx5_core": "prof_sel=2"}}}, from_dict(facts))
    assert (finding.status, finding.observed) == ("unknown", "the facts do not contain module parameters")


def test_options_that_are_none() -> None:
    ((subject, status, observed, _expected),) = check(mlx5_core="=2")
    assert (subject, status) == ("kernel module mlx5_core", "error")
    assert "'=2'" in observed


def test_a_module_is_named_as_the_kernel_does() -> None:
    assert module_options({"driver": {"module_options": {"nvidia-peermem": "a=1"}}}) == {"nvidia_peermem": "a=1"}
    assert module_options({"driver": {"module_options": None}}) == {}
