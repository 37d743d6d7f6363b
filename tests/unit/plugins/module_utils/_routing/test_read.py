# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader of a router: its commands, and what becomes of a daemon that does not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._routing.kernel import KERNEL
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import BFD, COMMANDS, HASH, SUMMARY, read_router, router_state

LEAF: dict[str, Any] = json.loads((Path(__file__).parents[3] / "fixtures/frr/8.4.4-leaf1.json").read_text())


class Vtysh:
    """Answers as FRR did. others: command → another answer."""

    def __init__(self, others: dict[str, Completed] | None = None, missing: bool = False) -> None:
        self.others, self.missing, self.asked = others or {}, missing, []

    def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> Completed:
        if tuple(argv) == KERNEL:
            return self.others.get("ip") or Completed(tuple(argv), 0, LEAF["kernel"], "")
        program, *words = argv
        commands = words[1::2]
        assert (program, set(words[::2])) == ("vtysh", {"-c"})
        if self.missing:
            raise CommandError("command not found: vtysh")
        self.asked.append(commands)
        answers = []
        for command in commands:
            answers.append(self.others.get(command) or Completed(tuple(argv), 0, LEAF["texts"][command], ""))
            # vtysh ends with the first command that fails.
            if answers[-1].rc:
                break
        stdout, stderr = ("".join(parts) for parts in ((each.stdout for each in answers), (each.stderr for each in answers)))
        return Completed(tuple(argv), answers[-1].rc, stdout, stderr)


def sysroot(folder: Path) -> SysRoot:
    for name, text in LEAF["sysctls"].items():
        path = folder / f"proc/sys/{name.replace('.', '/')}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return SysRoot(str(folder))


def test_every_command_is_run_and_the_answer_is_the_capture(tmp_path: Path) -> None:
    runner = Vtysh()
    assert read_router(sysroot(tmp_path), runner) == LEAF
    assert runner.asked == [list(COMMANDS)], "vtysh starts once"
    state = router_state(LEAF)
    assert state.summary.asn == 4200000101
    assert state.sysctls[HASH] == 1


def test_a_router_without_frr_or_without_bgpd_is_not_read(tmp_path: Path) -> None:
    answer = read_router(sysroot(tmp_path), Vtysh(missing=True))
    assert answer["problem"] == "command not found: vtysh"
    stopped = Completed(("vtysh",), 1, "", "Exiting: failed to connect to any daemons.\n")
    answer = read_router(sysroot(tmp_path), Vtysh({SUMMARY: stopped}))
    assert answer["problem"] == f"`vtysh -c '{SUMMARY}'`: Exiting: failed to connect to any daemons."
    with pytest.raises(ParseError, match="failed to connect"):
        router_state(answer)


def test_a_router_without_bfdd_has_no_bfd(tmp_path: Path) -> None:
    stopped = Completed(("vtysh",), 0, "bfdd is not running\n", "")
    runner = Vtysh({BFD: stopped})
    assert router_state(read_router(sysroot(tmp_path), runner)).bfd is None
    assert runner.asked == [list(COMMANDS), *([command] for command in COMMANDS)], "each command alone, after one that answered with text"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {**LEAF, "texts": []},
        {**LEAF, "texts": {**LEAF["texts"], SUMMARY: None}},
        {**LEAF, "texts": {**LEAF["texts"], SUMMARY: "{"}},
        {**LEAF, "problem": 7},
    ],
)
def test_an_answer_of_another_form_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParseError):
        router_state(wrong)


def test_a_setting_of_the_kernel_that_is_no_number_is_unknown() -> None:
    assert HASH not in router_state({**LEAF, "sysctls": {HASH: "many"}}).sysctls


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Completed(KERNEL, 255, "", 'Option "-json" is unknown, try "ip -help".\n'), 'Option "-json" is unknown'),
        (Completed(KERNEL, 1, "", ""), "`ip -json -4 route show`: exit status 1"),
        (Completed(KERNEL, 0, "default via 10.0.2.2 dev eth0\n", ""), "not the JSON of `ip -json -4 route show`"),
    ],
    ids=["old iproute2", "silent", "text"],
)
def test_routes_of_the_kernel_that_cannot_be_read_are_not_known(tmp_path: Path, answer: Completed, why: str) -> None:
    state = router_state(read_router(sysroot(tmp_path), Vtysh({"ip": answer})))
    assert isinstance(state.kernel, str)
    assert why in state.kernel
    assert state.summary.asn == 4200000101


def test_an_answer_of_an_older_reader_has_no_routes_of_the_kernel() -> None:
    older = {key: value for key, value in LEAF.items() if not key.startswith("kernel")}
    assert router_state(older).kernel == "`ip -json -4 route show` was not read"
