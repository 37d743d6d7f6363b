# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record on disk: whole lines after a kill and on a full disk, two files of bounded size, and one time axis."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.program import Recorder
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import (
    CURRENT,
    EARLIER,
    LEAST_BYTES,
    Moment,
    Ring,
    on_wall_clock,
    parse_event,
    parse_moment,
    parse_state,
    read_events,
)
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import Reader, Reading
from tests.child import environment
from tests.unit.builders.trees import mlx5_machine, write_tree

BOOT = "6f2f6d0e-4d6f-4d2a-9a43-0d2c3e3f5a11"
NIC = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0/net/ens1f0np0"


def event(number: int, boot: str = BOOT, at: float | None = None, **more: object) -> dict[str, object]:
    time = float(number) if at is None else at
    return {"kind": "mtu", "of": "eth1", "was": None, "now": str(number), "after": None, "at": time, "mono": number, "boot": boot, **more}


def carrier(value: str) -> Reading:
    return Reading({"carrier": {"eth1": value}})


def test_a_line_that_a_kill_cut_off_is_skipped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path))
    ring.append([event(1), event(2)])
    path = tmp_path / CURRENT
    path.write_bytes(path.read_bytes()[:-20])
    ring.append([event(3)])
    events, damaged = read_events(str(tmp_path))
    assert ([each["mono"] for each in events], damaged) == ([1, 3], 1)


def test_two_files_replace_each_other_within_the_size(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path), LEAST_BYTES)
    for number in range(2000):
        ring.append([event(number)])
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= LEAST_BYTES
    events, damaged = read_events(str(tmp_path))
    numbers = [each["mono"] for each in events]
    assert numbers == list(range(numbers[0], 2000))
    assert damaged == 0
    assert (tmp_path / EARLIER).stat().st_size > LEAST_BYTES / 2 - 200


FULL = """
import json, os, sys
from pathlib import Path
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.program import Recorder
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import Moment, Ring, read_events
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import Reading

folder = Path(sys.argv[1])
recorder = Recorder(None, Ring(str(folder)), "b")
read = lambda value: Reading({"carrier": {"eth1": value}})
recorder.record([read("up")], Moment(1000.0, 0.0, "b"))
recorder.alive(Moment(1000.0, 0.0, "b"))
recorder.record([read("no carrier")], Moment(1002.0, 2.0, "b"))
fill = os.open(folder / "fill", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(fill, b"x" * 4096)
except OSError as error:
    assert error.errno == 28, error
# The last page of the record has space for some events, then the disk is full.
values = ["up", "no carrier"]
counts = [recorder.record([read(values[number % 2])], Moment(1004.0 + 2 * number, 4.0 + 2 * number, "b")) for number in range(100)]
assert 0 in counts, counts
recorder.alive(Moment(1204.0, 204.0, "b"))
events, damaged = read_events(str(folder))
os.close(fill)
(folder / "fill").unlink()
after = recorder.record([read("down")], Moment(1300.0, 300.0, "b"))
later, damaged_later = read_events(str(folder))
print(json.dumps({"during": len(events), "damaged": damaged + damaged_later, "after": after, "new": later[len(events):],
                  "alive": json.loads((folder / "alive").read_text())}))
"""


@pytest.mark.skipif(subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0, reason="no namespaces here")
def test_a_full_disk_leaves_whole_lines_and_the_change_is_found_afterwards(tmp_path: Path) -> None:
    """On a tmpfs of 64 KiB, in a namespace of mounts."""
    (tmp_path / "full.py").write_text(FULL)
    (tmp_path / "disk").mkdir()
    words = 'mount -t tmpfs -o size=64k none "$1" && exec "$2" "$3" "$1"'
    argv = ["unshare", "-rm", "bash", "-c", words, "full", str(tmp_path / "disk"), sys.executable, str(tmp_path / "full.py")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["damaged"] == 0
    assert found["after"] == 1
    lost, change = found["new"]
    assert lost["kind"] == "lost"
    assert "No space left on device" in lost["now"]
    assert (change["kind"], change["now"]) == ("carrier", "down")
    # It happened after the last reading that was written.
    assert change["after"] == lost["after"] - 2.0
    assert found["alive"]["mono"] == 204.0


def test_a_change_is_recorded_once_although_its_values_cannot_be_saved(tmp_path: Path) -> None:
    recorder = Recorder(Reader(str(tmp_path)), Ring(str(tmp_path)), BOOT)
    recorder.record([carrier("up")], Moment(1.0, 1.0, BOOT))
    (tmp_path / ".state.json").mkdir()
    for number in range(2, 6):
        recorder.record([carrier("no carrier")], Moment(float(number), float(number), BOOT))
    assert len(read_events(str(tmp_path))[0]) == 1
    assert parse_state((tmp_path / "state.json").read_text()) == {"carrier": {"eth1": "up"}}
    (tmp_path / ".state.json").rmdir()
    recorder.record([carrier("no carrier")], Moment(9.0, 9.0, BOOT))
    assert parse_state((tmp_path / "state.json").read_text()) == {"carrier": {"eth1": "no carrier"}}


def test_a_step_of_the_clock_is_an_event_and_moves_no_other(tmp_path: Path) -> None:
    recorder = Recorder(Reader(str(tmp_path)), Ring(str(tmp_path)), BOOT)
    recorder.record([carrier("up")], Moment(5000.0, 100.0, BOOT))
    recorder.record([carrier("no carrier")], Moment(5010.0, 110.0, BOOT))
    # ntpd steps the clock by an hour; afterwards the carrier is back.
    recorder.record([carrier("up")], Moment(8620.0, 120.0, BOOT))
    events, _damaged = read_events(str(tmp_path))
    assert [(each["kind"], each["now"]) for each in events] == [
        ("carrier", "no carrier"),
        ("clock_step", "+3600.000 s"),
        ("carrier", "up"),
    ]
    placed = on_wall_clock(events, Moment(8700.0, 200.0, BOOT))
    assert [(each["time"], each["earliest"]) for each in placed] == [(8610.0, 8600.0), (8620.0, None), (8620.0, 8610.0)]
    # Stepped once more after the last event: the clock as it is now counts.
    again = on_wall_clock(events, Moment(8750.0, 200.0, BOOT))
    assert [each["time"] for each in again] == [8660.0, 8670.0, 8670.0]


def test_a_clock_that_is_slewed_is_not_stepped(tmp_path: Path) -> None:
    recorder = Recorder(Reader(str(tmp_path)), Ring(str(tmp_path)), BOOT)
    for number in range(100):
        recorder.record([carrier("up")], Moment(5000.0 + number * 2.001, number * 2.0, BOOT))
    assert read_events(str(tmp_path)) == ([], 0)


def test_events_of_an_earlier_boot_are_before_those_of_this_one(tmp_path: Path) -> None:
    events = [event(900, "old", at=5900.0), event(901, "old", at=5901.0), event(3, at=6003.0)]
    placed = on_wall_clock(events, Moment(6100.0, 100.0, BOOT))
    assert [each["time"] for each in placed] == [5900.0, 5901.0, 6003.0]


def test_a_restart_compares_with_the_values_before_and_a_boot_is_an_event(tmp_path: Path) -> None:
    root, folder = mlx5_machine(tmp_path / "host"), tmp_path / "record"
    folder.mkdir()
    first = Recorder(Reader(str(root)), Ring(str(folder)), "old")
    first.start(Moment(1000.0, 50.0, "old"))
    reader = Reader(str(root))
    first.record([reader.quick(), reader.slow()], Moment(1000.0, 50.0, "old"))
    first.alive(Moment(1000.0, 50.0, "old"))
    # The host boots with another kernel; its counters begin again, and one is already higher.
    port = f"{NIC.rpartition('/net/')[0]}/infiniband/mlx5_0/ports/1"
    write_tree(root, f"/proc/sys/kernel/osrelease: 6.9\n{port}/hw_counters/out_of_sequence: 900\n{NIC}/carrier: 0")
    second = Recorder(Reader(str(root)), Ring(str(folder)), "new")
    second.start(Moment(1100.0, 20.0, "new"))
    second.record([second._reader.quick(), second._reader.slow()], Moment(1100.0, 20.0, "new"))
    write_tree(root, f"{port}/hw_counters/out_of_sequence: 901")
    second.record([second._reader.slow()], Moment(1160.0, 80.0, "new"))
    events, _damaged = read_events(str(folder))
    assert [(each["kind"], each["of"]) for each in events[1:]] == [
        ("boot", "recorder"),
        ("carrier", "ens1f0np0"),
        ("kernel", "kernel"),
        ("counters", "mlx5_0/1"),
    ]
    boot = events[1]
    assert (boot["was"], boot["now"], boot["mono"], boot["at"], boot["last_at"]) == ("old", "new", 0.0, 1080.0, 1000.0)
    # Nobody knows when the carrier was lost: in another boot, or before the first reading of this one.
    assert events[2]["after"] is None
    assert events[4]["after"] == 20.0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"at": 1}', '{"at": true, "mono": 1, "boot": "b"}', '{"at": 1e99, "mono": 1, "boot": "b"}']
)
def test_a_moment_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_moment(text)


@pytest.mark.parametrize(
    "change",
    [{"kind": 7}, {"of": "x" * 500}, {"after": "1"}, {"at": float("nan")}, {"mono": float("inf")}, {"boot": None}, {"boot": "b" * 65}],
)
def test_an_event_of_another_form_is_refused(change: dict[str, object]) -> None:
    assert parse_event(json.dumps(event(1)))["mono"] == 1
    with pytest.raises(ParseError):
        parse_event(json.dumps({**event(1), **change}))


@pytest.mark.parametrize("text", ["[]", '{"carrier": []}', '{"carrier": {"eth1": null}}', '{"carrier": {"eth1": true}}', "nan"])
def test_last_values_of_another_form_are_refused_and_count_as_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(ParseError):
        parse_state(text)
    (tmp_path / "state.json").write_text(text)
    assert Ring(str(tmp_path)).load() == {}
