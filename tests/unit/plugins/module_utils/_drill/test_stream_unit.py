# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stream of a drill as a transient unit: its command, a second start, and how it is collected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._drill import stream_unit
from ansible_collections.rdma.cluster.plugins.module_utils._drill.stream_unit import PROGRAM, RESULT, TOKEN, Stream, collect, start, stop

STREAM = Stream("10.1.0.67", "10.1.1.67", 47100, 14, 10, 200, "00112233aabbccdd")
UNIT = "rdma-drill-stream-00112233aabbccdd.service"


class Host:
    """A Runner with systemd, on which the program writes its result when it is stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ran, self.running = folder, list[tuple[str, ...]](), False
        self.starts, self.result = True, '{"packets": 7}'

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        self.ran.append(words)
        text = ""
        if words[0] == "systemd-run":
            self.running = self.starts
        elif words == ("systemctl", "stop", UNIT):
            self.running = False
            (self.folder / RESULT).write_text(self.result)
        else:
            assert words[:2] == ("systemctl", "show")
            assert words[-1] == UNIT
            text = f"LoadState=loaded\nActiveState={'active' if self.running else 'inactive'}\nSubState=running\n"
        return Completed(words, 0, text, "")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    for name in ("START_SECONDS", "END_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(stream_unit, name, 0.01)
    return Host(tmp_path)


def test_it_is_started_and_collected_and_leaves_nothing(host: Host) -> None:
    start(STREAM, host, host.folder)
    words = next(each for each in host.ran if each[0] == "systemd-run")
    assert words[1:3] == (f"--unit={UNIT}", "--collect")
    assert {"--property=RuntimeMaxSec=230", f"--property=ReadWritePaths={host.folder}", "--property=CapabilityBoundingSet="} <= set(words)
    assert words[words.index("--address") :][:12] == (
        *("--address", "10.1.0.67", "--peer", "10.1.1.67", "--port", "47100"),
        *("--flows", "14", "--interval-ms", "10", "--seconds", "200"),
    )
    assert STREAM.token not in words, "other users can read command lines"
    assert (host.folder / TOKEN).stat().st_mode & 0o777 == 0o600
    assert (host.folder / PROGRAM).read_bytes().startswith(b"#!/usr/bin/python3")
    assert collect(host, host.folder) == {"packets": 7}
    assert list(host.folder.iterdir()) == []


def test_a_second_drill_is_refused(host: Host) -> None:
    start(STREAM, host, host.folder)
    with pytest.raises(ApplyError, match=f"{UNIT} runs already: another drill measures here. To end it: systemctl stop {UNIT}"):
        start(STREAM, host, host.folder)


def test_a_program_that_ends_at_once_is_an_error(host: Host) -> None:
    host.starts = False
    with pytest.raises(ApplyError, match=r"has ended at once: is 10\.1\.0\.67 an address of this host"):
        start(STREAM, host, host.folder)


@pytest.mark.parametrize("text", ["", "[1]", '{"packets": '])
def test_a_damaged_result_is_refused(host: Host, text: str) -> None:
    start(STREAM, host, host.folder)
    host.result = text
    with pytest.raises(ParseError, match="the result of the stream is not"):
        collect(host, host.folder)


def test_without_a_stream_there_is_nothing_to_collect(host: Host) -> None:
    with pytest.raises(ApplyError, match="No stream was started on this host"):
        collect(host, host.folder)
    assert stop(host, host.folder) is False


def test_a_stream_without_a_result(host: Host) -> None:
    start(STREAM, host, host.folder)
    host.running = False
    with pytest.raises(ApplyError, match="The stream has no result"):
        collect(host, host.folder)


def test_an_interrupted_stream_is_stopped(host: Host) -> None:
    start(STREAM, host, host.folder)
    assert stop(host, host.folder) is True
    assert (host.running, list(host.folder.iterdir())) == (False, [])
