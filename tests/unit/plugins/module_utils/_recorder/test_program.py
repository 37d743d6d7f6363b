# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real program of the recorder: killed while it writes, and beside a real cable between two interfaces that is cut."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.program import Recorder, Waker, main, parse_config
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import Ring, moment_now, read_alive, read_events
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import Reader
from tests.child import environment
from tests.unit.builders.trees import mlx5_machine, write_tree

NIC = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0/net/ens1f0np0"
NAMESPACES = subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "recorder.pyz"
    file.write_bytes(program_of(main))
    return file


def command(program: Path, folder: Path, root: Path, *words: str) -> list[str]:
    return [sys.executable, str(program), "--config", str(folder) + ".none", "--folder", str(folder), "--root", str(root), *words]


def test_a_writer_that_is_killed_again_and_again_leaves_a_record_that_is_read_to_its_end(program: Path, tmp_path: Path) -> None:
    """SIGKILL at ten different moments while a value changes all the time; then a normal run."""
    root, folder = mlx5_machine(tmp_path / "host"), tmp_path / "record"
    mtu = root / NIC.lstrip("/") / "mtu"
    number = 2000
    for attempt in range(10):
        begun = time.monotonic()
        process = subprocess.Popen(command(program, folder, root, "--quick-seconds", "0.01", "--slow-seconds", "0"))
        until = 0.0
        while not until or time.monotonic() < until:
            number += 1
            write_tree(root, f"{NIC}/mtu: {number}")
            time.sleep(0.001)
            alive = read_alive(folder)
            if not until and alive is not None and alive.mono > begun:
                until = time.monotonic() + 0.2 + attempt * 0.037
            assert time.monotonic() < begun + 60
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    mtu.write_text("9999\n")
    subprocess.run(command(program, folder, root, "--seconds", "0"), check=True, timeout=60)
    events, damaged = read_events(str(folder))
    assert damaged <= 10
    assert len(events) > 10
    numbers = [int(event["now"]) for event in events if event["kind"] == "mtu" and event["now"]]
    assert numbers[-1] == 9999
    monos = [event["mono"] for event in events]
    assert monos == sorted(monos)


def test_a_second_recorder_refuses_the_folder_of_the_first(program: Path, tmp_path: Path) -> None:
    root, folder = mlx5_machine(tmp_path / "host"), tmp_path / "record"
    first = subprocess.Popen(command(program, folder, root, "--seconds", "60"))
    try:
        deadline = time.monotonic() + 20
        while read_alive(folder) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        second = subprocess.run(command(program, folder, root, "--seconds", "0"), capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 1
        assert "Resource temporarily unavailable" in second.stderr
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=20) == 0


@pytest.mark.skipif(not NAMESPACES, reason="no namespaces here")
def test_a_cable_that_is_cut_is_found_within_two_seconds_and_a_flap_too(program: Path, tmp_path: Path) -> None:
    """A pair of veths in a network namespace: the peer is set down, up, and down and up within a tenth of a second."""
    folder = tmp_path / "record"
    (tmp_path / "config.json").write_text(json.dumps({"interfaces": ["rail1"]}))
    script = """
        mount -t sysfs none /sys
        ip link add rail1 type veth peer name port1; ip link set rail1 up; ip link set port1 up
        "$1" "$2" --config "$3" --folder "$4" --seconds 30 & recorder=$!
        until [ -e "$4/alive" ]; do sleep 0.1; done; sleep 3
        date +%s.%N; ip link set port1 down; sleep 5
        date +%s.%N; ip link set port1 up; sleep 5
        date +%s.%N; ip link set port1 down; sleep 0.1; ip link set port1 up; sleep 4
        kill "$recorder"; wait "$recorder"
    """
    words = [sys.executable, str(program), str(tmp_path / "config.json"), str(folder)]
    argv = ["unshare", "-rnm", "bash", "-ec", script, "cut", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    cut, restored, flapped = map(float, done.stdout.split())
    events = [event for event in read_events(str(folder))[0] if event["kind"] == "carrier"]
    down, up = events[:2]
    assert [event["now"] for event in events[:2]] == ["no carrier", "up"]
    assert 0 <= down["at"] - cut < 2, events
    assert 0 <= up["at"] - restored < 2, events
    # The event names the time of the reading before it: the change lies in between.
    assert down["at"] - down["mono"] + down["after"] <= cut + 0.05
    assert any(0 <= event["at"] - flapped < 2 for event in events[2:]), events


def test_settings_of_another_form_are_refused() -> None:
    assert parse_config('{"interfaces": ["bond0.7"], "size_bytes": 65536}') == (["bond0.7"], 65536)
    assert parse_config("{}") == ([], 16 * 2**20)
    assert parse_config('{"size_bytes": 1073741824}') == ([], 2**30)
    for text in ("", "[]", '{"interfaces": "bond0"}', '{"size_bytes": 5}', '{"size_bytes": "16"}', '{"size_bytes": 1073741825}'):
        with pytest.raises(ParseError):
            parse_config(text)


WAKE = """
import subprocess, sys, time
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.program import Waker

waker = Waker()
def timed(*words):
    begun = time.monotonic()
    subprocess.run(["ip", *words], check=True)
    return waker.wait(20), time.monotonic() - begun

print(timed("link", "add", "rail1", "type", "veth"))
print(timed("address", "add", "192.0.2.1/24", "dev", "rail1"))
print(timed("address", "del", "192.0.2.1/24", "dev", "rail1"))
"""


@pytest.mark.skipif(not NAMESPACES, reason="no namespaces here")
def test_messages_of_the_kernel_on_links_and_addresses_wake_the_recorder() -> None:
    """In a network namespace: a new link wakes it, an address also makes it read the GIDs. It would sleep for 20 s."""
    argv = ["unshare", "-rn", sys.executable, "-c", WAKE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    woken = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    assert [addresses for addresses, _seconds in woken] == [False, True, True]
    assert max(seconds for _addresses, seconds in woken) < 2


def test_after_sigterm_the_recorder_does_not_wait() -> None:
    waker = Waker(netlink=False)
    begun = time.monotonic()
    assert waker.wait(0.2) is False
    assert time.monotonic() - begun > 0.15
    waker.stop(signal.SIGTERM, None)
    begun = time.monotonic()
    assert waker.wait(60) is False
    assert time.monotonic() - begun < 5


def test_the_recorder_uses_less_than_a_thousandth_of_a_core(tmp_path: Path) -> None:
    """CPU seconds of a minute without a change: 30 quick passes and a complete one. docs/measurements.md has those of eight cards."""
    (tmp_path / "record").mkdir()
    reader, ring = Reader(str(mlx5_machine(tmp_path / "host"))), Ring(str(tmp_path / "record"))
    recorder = Recorder(reader, ring, "b")
    recorder.record([reader.quick(), reader.slow()], moment_now("b"))
    begun = time.process_time()
    for _pass in range(30):
        recorder.record([reader.quick()], moment_now("b"))
        recorder.alive(moment_now("b"))
    recorder.record([reader.slow()], moment_now("b"))
    assert time.process_time() - begun < 0.001 * 60
    assert read_events(str(tmp_path / "record")) == ([], 0)
