# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stock driver on disk, and an older add-on that is still loaded: one error, which advises against a reload."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import some
from tests.unit.plugins.plugin_utils._checks.driver.test_modules import all_of, check, facts, module

STILL = {"version": "24.10-1.1.4", "srcversion": "OLD", "file_version": None, "file_srcversion": "NEW"}
FAILURE = {"meaning": "the installation failed", "lines": ["mlx5_core.c:12:5: error: expected ';'"]}


def test_an_old_add_on_over_a_failed_installation_is_one_error_that_advises_no_reload() -> None:
    found = check(facts(all_of("kernel", **STILL), last_build=FAILURE), "mlnx_ofed")
    (finding,) = found["driver.stack"]
    assert finding.status == "error"
    assert finding.observed.startswith("mlx5_core (and ib_core, ")
    assert (
        "of OFED 24.10-1.1.4 is still loaded, but the stock mlx5_core is on disk: the installation failed; mlx5_core.c" in finding.observed
    )
    assert finding.remedy.startswith("Do not reload the driver of node1 and do not reboot it")
    assert [(each.status, each.observed) for each in found["driver.loaded"]] == [("not_applicable", "see driver.stack")]


def test_what_differs_for_another_cause_is_still_reported() -> None:
    modules = {**all_of("kernel", **STILL), "gdrdrv": module("gdrdrv", "dkms", srcversion="A")}
    found = check(facts(modules, last_build=FAILURE), "mlnx_ofed")["driver.loaded"]
    assert [(each.subject, each.status) for each in found] == [("kernel module gdrdrv", "error")]


def test_how_many_are_named() -> None:
    assert some("abc") == "a, b, c"
    assert some("abcdefgh") == "a, b, c, d, e, f and 2 more"
