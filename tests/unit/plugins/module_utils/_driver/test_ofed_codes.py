# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each exit status has a meaning and a remedy that names the host."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_codes import explain_end, explain_installer


@pytest.mark.parametrize(
    ("rc", "words"),
    [
        (1, "the installer exited with 1: the installation failed"),
        (2, "2: no firmware was found"),
        (22, "22: a parameter is not valid"),
        (28, "28: there is not enough free space"),
        (171, "171: it does not apply to this system"),
        (172, "172: a requirement is missing"),
        (173, "173: the mst driver could not be started"),
        (174, "174: other packages depend on the installed stack"),
        (99, "exited with 99, an unknown exit code of mlnxofedinstall"),
        (-9, "SIGKILL killed it"),
        (-250, "signal 250 killed it"),
        (None, "it could not be started (exec-condition)"),
    ],
)
def test_codes_of_the_installer(rc: int | None, words: str) -> None:
    meaning = explain_installer(rc, "exec-condition" if rc is None else "exit-code", 3600, "node7")
    assert words in meaning.text
    assert "node7" in meaning.remedy
    assert "{" not in meaning.remedy


def test_good_ends_need_no_remedy() -> None:
    assert explain_installer(0, "success", 3600, "node7").remedy == ""
    assert explain_end(0, "success", 3600, "node7").remedy == ""


def test_a_limit_goes_before_the_signal_that_it_came_by() -> None:
    for explain in (explain_end, explain_installer):
        timeout = explain(-15, "timeout", 3600, "node7")
        assert timeout.text == "it did not finish within 60 minutes and was stopped"
        assert "driver.build_minutes" in timeout.remedy
        assert "memory ran out" in explain(-9, "oom-kill", 3600, "node7").text
    assert "within 90 seconds" in explain_end(-15, "timeout", 90, "node7").text


def test_another_program_has_no_meanings_of_its_own() -> None:
    assert explain_end(28, "exit-code", 60, "node7").text == "it failed with exit code 28"
