# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The live view: rates, what is odd, silent hosts, and real readers over pipes whose recording shows the same again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.hosts import Readers, Target, target_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.rates import HostRates, PortRates, parse_reading
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.screen import as_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.view import END, LINE, Entry, View, headline, parse_recording, recorded
from tests.child import environment
from tests.unit.builders.trees import mlx5_machine, write_tree

PORT = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0/infiniband/mlx5_0/ports/1"
MODULE = "ansible_collections.rdma.cluster.plugins.plugin_utils._watch"


def line(mono: float, counters: dict[str, int], state: str = "4: ACTIVE", boot: str = "b", slow: dict[str, Any] | None = None) -> str:
    port = {"state": state, "rate": "400 Gb/sec (4X NDR)", "netdev": "ens1", "counters": counters}
    return json.dumps({"mono": mono, "boot": boot, "ports": {"mlx5_0/1": port}, **({"slow": slow} if slow else {})})


def rates(*lines: str) -> PortRates:
    host = HostRates("node1")
    for each in lines:
        host.add(parse_reading(each))
    return host.ports[0]


def test_rates_of_a_port() -> None:
    before = {
        "port_rcv_data": 1000,
        "port_xmit_data": 0,
        "port_rcv_packets": 0,
        "np_cnp_sent": 0,
        "symbol_error": 1,
        "local_ack_timeout_err": 5,
    }
    after = {
        "port_rcv_data": 1000 + 125 * 10**8,
        "port_xmit_data": 250,
        "port_rcv_packets": 2 * 10**6,
        "np_cnp_sent": 20,
        "symbol_error": 1,
    }
    port = rates(line(100.0, before), line(102.0, {**after, "local_ack_timeout_err": 9}))
    assert (port.state, port.line_gbps) == ("ACTIVE", 400.0)
    # 12.5 * 10^9 words of four bytes in two seconds.
    assert port.in_gbps == 200.0
    assert port.out_gbps == 250 * 32 / 2 / 1e9
    assert (port.in_packets, port.cnps, port.errors, port.retransmissions) == (10**6, 10, 0, 2)
    assert (port.out_packets, port.pauses, port.marks, port.discards, port.processes) == (None,) * 5
    assert port.moves is True


@pytest.mark.parametrize(
    "lines",
    [
        [line(100.0, {"port_rcv_data": 5})],
        [line(100.0, {"port_rcv_data": 5}), line(101.0, {"port_rcv_data": 4})],
        [line(100.0, {"port_rcv_data": 2**64 - 1}), line(101.0, {"port_rcv_data": 7})],
        [line(100.0, {"port_rcv_data": 5}), line(101.0, {"port_rcv_data": 9}, boot="c")],
        [line(100.0, {"port_rcv_data": 5}), line(100.0, {"port_rcv_data": 9})],
        [line(100.0, {}), line(101.0, {"port_rcv_data": 9})],
    ],
    ids=["the first reading", "reset", "wrapped", "booted", "no time", "new"],
)
def test_a_counter_that_cannot_be_compared_is_unknown_and_no_rate(lines: list[str]) -> None:
    port = rates(*lines)
    assert (port.in_gbps, port.moves) == (None, None)


def test_one_counter_that_was_reset_makes_its_sum_unknown() -> None:
    port = rates(line(1.0, {"symbol_error": 9, "link_downed": 1}), line(2.0, {"symbol_error": 0, "link_downed": 2}))
    assert port.errors is None


def test_counters_of_the_driver_have_their_own_time() -> None:
    def slow(mono: float, **counters: int) -> dict[str, Any]:
        return {"mono": mono, "netdevs": {"ens1": counters}, "qps": {"mlx5_0/1": {"77 python3": 8}}}

    first = line(10.0, {}, slow=slow(10.0, rx_pause=0, rx_discards_phy=0))
    second = line(15.0, {}, slow=slow(15.0, rx_pause=50, rx_discards_phy=5))
    port = rates(first, line(14.0, {}), second, line(16.0, {}))
    assert (port.pauses, port.discards, port.processes) == (10.0, 1.0, {"77 python3": 8})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"ports": {}}',
        line(1.0, {"a": -1}),
        line(float("nan"), {}),
        line(1.0, {"a": 2**64}),
        line(1e13, {}),
        line(-1e13, {}),
        "x" * 99,
    ],
)
def test_a_line_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_reading(text)


def view_of(*entries: Entry) -> View:
    view = View(["node1", "node2", "node3"], 1.0)
    for entry in entries:
        view.add(entry)
    return view


def two(host: str, state: str = "4: ACTIVE", got: float = 1.0, **moved: int) -> list[Entry]:
    return [
        Entry(got, host, LINE, line(100.0, dict.fromkeys(moved, 0), state)),
        Entry(got + 1, host, LINE, line(101.0, moved, state)),
    ]


def test_the_odd_ports_come_first() -> None:
    view = view_of(*two("node1", port_rcv_data=10**9), *two("node2", symbol_error=3, port_rcv_data=1), *two("node3", "1: DOWN"))
    assert [port.host for port in view.ports()] == ["node3", "node2", "node1"]
    assert headline(view) == "RDMA moves on mlx5_0/1 (2 hosts, at least 32.0 Gb/s). Unknown: mlx5_0/1."
    rows = as_text(view).splitlines()
    assert [row.split()[0] for row in rows[2:]] == ["node3", "node2", "node1"]
    assert rows[2].split()[:7] == ["node3", "mlx5_0/1", "ens1", "DOWN", "?", "?", "400"]


def test_a_host_that_does_not_answer_is_silent_and_not_still() -> None:
    view = view_of(*two("node1", port_rcv_data=0), Entry(1.0, "node2", END, "Connection refused"))
    view.now = 10.0
    assert view.silent() == {"node1": "silent for 8 s", "node2": "ended: Connection refused", "node3": "no reading yet"}
    assert view.ports() == []
    assert headline(view) == "No rate is known yet."
    view.add(Entry(10.5, "node1", LINE, "garbage\x1b[2J"))
    assert view.silent()["node1"].startswith("not read: not JSON")
    assert "\x1b" not in as_text(view)


def test_a_line_rate_keeps_its_fraction() -> None:
    fast = two("node1", sent_pkts=1)
    slow = [Entry(each.got, each.host, LINE, each.text.replace("400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)")) for each in fast]
    row = next(row for row in as_text(view_of(*slow)).splitlines() if row.startswith("node1"))
    assert row.split()[6] == "2.5"


def test_without_counters_of_data_the_headline_has_packets() -> None:
    soft_roce = view_of(*two("node1", sent_pkts=2000, rcvd_pkts=150))
    assert headline(soft_roce) == "RDMA moves on mlx5_0/1 (1 host, 2150 packets/s)."
    assert headline(view_of(*two("node1", port_rcv_data=10**9, port_xmit_data=0))) == "RDMA moves on mlx5_0/1 (1 host, 32.0 Gb/s)."


@pytest.mark.parametrize("width", range(30, 210, 10))
def test_no_name_or_number_is_cut_off_however_narrow_the_terminal(width: int) -> None:
    view = view_of(*two("node1", port_rcv_data=10**9, port_xmit_data=0, port_xmit_packets=1234, symbol_error=3))
    whole = [row.rstrip() for row in as_text(view, width=500).splitlines() if row.startswith(("host  ", "node1"))]
    shown = [row.rstrip() for row in as_text(view, width=width).splitlines() if row.startswith(("host  ", "node1"))]
    assert len(shown) == 2
    for wide, narrow in zip(whole, shown, strict=True):
        assert wide.startswith(narrow)
        assert wide[len(narrow) :][:1] in ("", " ")
    words = " ".join(as_text(view, width=width).split())
    left_out = whole[0].count("/s") - shown[0].count("/s")
    assert ("A wider terminal also shows" in words) == (left_out > 0 or "queue pairs" not in shown[0])


def test_nothing_moves() -> None:
    assert headline(view_of(*two("node1", port_rcv_data=0))) == "RDMA moves on no port."


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return write_tree(mlx5_machine(tmp_path / "host"), f"{PORT}/counters/port_rcv_data: 1000\n{PORT}/counters/port_xmit_data: 1000")


def local(name: str) -> Target:
    return Target(name, (), sys.executable, is_remote=False)


def test_real_readers_over_pipes_and_their_recording_shows_the_same(host: Path) -> None:
    """Two readers of one tree whose counters move, and one whose Python does not exist as it should."""
    broken = Target("node3", ("false",), sys.executable, is_remote=True)
    readers = Readers([local("node1"), local("node2"), broken], ["--root", str(host), "--interval", "0.5", "--count", "6"])
    view, entries, value = View(["node1", "node2", "node3"], 0.5), list[Entry](), 1000
    try:
        while not all(reason.startswith("ended") for reason in view.silent().values()) or len(view.silent()) < 3:
            assert readers.seconds < 60
            value += 10**8
            write_tree(host, f"{PORT}/counters/port_rcv_data: {value}")
            for entry in readers.entries(0.2):
                entries.append(entry)
                view.add(entry)
                if len([each for each in entries if each.host == "node1" and each.kind == LINE]) == 5:
                    ports = [port for port in view.ports() if port.host == "node1" and port.port == "mlx5_0/1"]
                    assert ports[0].in_gbps is not None
                    assert ports[0].in_gbps > 0
    finally:
        readers.close()
    assert {entry.host: entry.text for entry in entries if entry.kind == END} == {"node1": "", "node2": "", "node3": "exit status 1"}
    lines = [f"{each}\n" for each in recorded(["node1", "node2", "node3"], 0.5, entries)]
    for _again in range(2):
        replayed, again = parse_recording(lines)
        for entry in again:
            replayed.add(entry)
        replayed.now = view.now
        assert as_text(replayed) == as_text(view)
    # A recording that was cut off is shown as far as it goes.
    cut, rest = parse_recording([*lines[:-1], lines[-1][:20]])
    assert len(list(rest)) == len(entries) - 1
    assert cut.hosts == ["node1", "node2", "node3"]


def test_a_reader_ends_when_its_input_ends(host: Path) -> None:
    readers = Readers([local("node1")], ["--root", str(host), "--interval", "60"])
    (process,) = readers._processes.values()
    assert next(readers.entries(30)).kind == LINE
    begun = time.monotonic()
    readers.close()
    assert process.returncode == 0
    assert time.monotonic() - begun < 4


def test_the_words_of_the_program_survive_the_shell_of_a_remote_host(host: Path) -> None:
    """`sh -c` is a stand-in for SSH, which passes one text to the user's shell."""
    readers = Readers([Target("node1", ("sh", "-c"), sys.executable, is_remote=True)], ["--root", str(host), "--count", "1"])
    found = [entry.kind for entry in readers.entries(10)]
    readers.close()
    assert found == [LINE, END]


def test_a_reader_ends_after_its_time(host: Path) -> None:
    readers = Readers([local("node1")], ["--root", str(host), "--interval", "0.2", "--seconds", "1"])
    found = []
    for entry in readers.entries(60):
        found.append(entry)
        if entry.kind == END:
            break
    readers.close()
    assert found[-1].kind == END
    assert 2 <= len(found) <= 8


def test_how_a_host_is_reached() -> None:
    ssh = target_of(
        "node1", {"ansible_host": "10.0.0.1", "ansible_port": 2222, "ansible_user": "admin", "ansible_ssh_common_args": "-J 'a b'"}
    )
    assert ssh.command[0] == "ssh"
    assert ssh.command[-8:] == ("-p", "2222", "-J", "a b", "-l", "admin", "--", "10.0.0.1")
    assert "BatchMode=yes" in ssh.command
    assert target_of("node1", {"ansible_connection": "local", "ansible_python_interpreter": "auto"}) == Target(
        "node1", (), "python3", is_remote=False
    )


def test_how_a_reader_becomes_root() -> None:
    sudo = ("sudo", "-n", "-H", "-u", "root", "--")
    assert target_of("node1", {"ansible_become": True}).become == ()
    assert target_of("node1", {"ansible_become_method": "ansible.builtin.sudo"}, become=True).become == sudo
    assert target_of("node1", {"ansible_connection": "local", "ansible_become_user": "rdma"}, become=True).become[4] == "rdma"
    with pytest.raises(ParseError, match="node1 has ansible_become_method 'doas', and --become uses only sudo"):
        target_of("node1", {"ansible_become_method": "doas"}, become=True)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", MODULE, *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment())


def test_the_program_with_an_inventory_a_recording_and_its_replay(tmp_path: Path) -> None:
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    groups = {"children": {"rdma_switches": {"hosts": {"leaf1": {}}}, "nodes": {"hosts": {"here": variables}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": groups}))
    live = run(tmp_path, "-i", "hosts.yml", "--once", "--interval", "0.3", "--record", "seen.jsonl")
    assert live.returncode == 0, live.stderr
    assert "leaf1" not in live.stdout
    replay = run(tmp_path, "--replay", "seen.jsonl", "--once")
    assert (replay.returncode, replay.stdout) == (0, live.stdout)
    shown = json.loads(run(tmp_path, "--replay", "seen.jsonl", "--once", "--json").stdout)
    assert (shown["schema"], shown["silent"]) == (1, {})
    # It overwrites no file, and refuses what is no recording.
    again = run(tmp_path, "-i", "hosts.yml", "--once", "--record", "seen.jsonl")
    assert (again.returncode, "seen.jsonl" in again.stderr) == (1, True)
    assert run(tmp_path, "--replay", "hosts.yml").returncode == 1
    nobody = run(tmp_path, "-i", "hosts.yml", "-l", "nobody", "--once")
    assert nobody.returncode == 1
    assert "names no host" in nobody.stderr


def test_the_clock_of_a_host_is_bounded() -> None:
    assert parse_reading(line(1e12, {})).mono == 1e12


def test_without_rich_the_screen_says_what_to_install_and_json_works(tmp_path: Path) -> None:
    entries = [Entry(0.5, "here", LINE, line(1.0, {}))]
    (tmp_path / "seen.jsonl").write_text("".join(f"{text}\n" for text in recorded(["here"], 1.0, entries)))
    program = f"import runpy, sys; sys.modules['rich'] = None; sys.argv[0] = 'watch'; runpy.run_module('{MODULE}', run_name='__main__')"

    def without_rich(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", program, *words]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment())

    # A missing inventory would be another error: no host is looked for.
    for words in (("--replay", "seen.jsonl", "--once"), ("-i", "nowhere.yml")):
        screen = without_rich(*words)
        assert (screen.returncode, screen.stdout) == (1, "")
        what = f"The live view needs rich on the control node. Run `{sys.executable} -m pip install rich`"
        # Ansible adds the error of the import.
        assert screen.stderr.startswith(what), screen.stderr
        assert screen.stderr.count("\n") == 1
    lines = without_rich("--replay", "seen.jsonl", "--once", "--json")
    assert lines.returncode == 0, lines.stderr
    assert [port["host"] for port in json.loads(lines.stdout)["ports"]] == ["here"]
