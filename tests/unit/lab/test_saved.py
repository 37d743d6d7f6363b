# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that start from a kept state. The QEMU is played here; scenario `default` starts real ones."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import machine, saved
from lab.errors import LabError
from lab.image import Image
from lab.plan import make_plan
from lab.qmp import Monitor

NODE = make_plan("lab", "machine", 1, 22000).nodes[0]


class Played:
    """The monitor and the second serial port of a QEMU, with the answers that it is given."""

    def __init__(self, folder: Path, answers: dict[str, list[object]], says: bytes = b"known\n") -> None:
        self.commands: list[tuple[str, dict[str, object]]] = []
        self.heard = b""
        self.answers = answers
        self.says = says
        self._serve(folder / "qmp.sock", self._monitor)
        self._serve(folder / "identity.sock", self._serial)

    def _serve(self, path: Path, play: Callable[[socket.socket], None]) -> None:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen(1)
        threading.Thread(target=lambda: play(listening.accept()[0]), daemon=True).start()

    def _monitor(self, connection: socket.socket) -> None:
        lines = connection.makefile("rw")
        lines.write('{"QMP": {}}\n')
        lines.flush()
        for line in lines:
            asked = json.loads(line)
            self.commands.append((asked["execute"], asked["arguments"]))
            answer = (self.answers.get(asked["execute"]) or [{"return": {}}])[0]
            if len(self.answers.get(asked["execute"], [])) > 1:
                self.answers[asked["execute"]].pop(0)
            lines.write('{"event": "RESUME"}\n' + json.dumps(answer) + "\n")
            lines.flush()

    def _serial(self, connection: socket.socket) -> None:
        while not self.heard.endswith(b"\n"):
            self.heard += connection.recv(100)
        connection.sendall(self.says)
        connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "host_key").write_bytes(b"-----BEGIN KEY-----\nabc\n")
    return tmp_path


COMPLETED: list[object] = [{"return": {}}, {"return": {"status": "active"}}, {"return": {"status": "completed"}}]


def test_a_machine_starts_from_the_state_gets_its_nics_and_reads_who_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved.time, "time", lambda: 1795649306.45)
    played = Played(folder, {"query-migrate": COMPLETED})
    saved.resume(saved.State(Path("/images/x/state-1")), folder, NODE, machine.rail_devices(NODE))
    names = [name for name, _arguments in played.commands]
    assert names == [
        "qmp_capabilities", "migrate-set-capabilities", "migrate-incoming", *["query-migrate"] * 3, "device_add", "device_add", "cont",
    ]  # fmt: skip
    assert played.commands[2][1] == {"uri": "exec:cat /images/x/state-1/devices"}
    assert [(arguments["id"], arguments["mac"], arguments["bus"]) for name, arguments in played.commands if name == "device_add"] == [
        ("nic0", "52:54:00:1a:00:01", "port0"),
        ("nic1", "52:54:00:1a:01:01", "port1"),
    ]
    key = base64.b64encode(b"-----BEGIN KEY-----\nabc\n").decode()
    assert played.heard.decode() == f"node1 {NODE.machine_id} 52:54:00:fe:00:01 {key} 1795649306.450\n"


def test_what_qemu_refuses_is_reported_in_its_words(folder: Path) -> None:
    Played(folder, {"migrate-incoming": [{"error": {"desc": "No such file"}}]})
    with pytest.raises(LabError, match=r"^QEMU refuses migrate-incoming: No such file$"):
        saved.resume(saved.State(Path("/images/x/state-1")), folder, NODE, [])


def test_a_state_that_does_not_load_is_reported(folder: Path) -> None:
    Played(folder, {"query-migrate": [{"return": {"status": "failed"}}]})
    with pytest.raises(LabError, match="could not move the machine's state: failed"), Monitor(folder / "qmp.sock") as monitor:
        monitor.wait_for_migration(5)


def test_a_machine_that_ends_before_it_knows_itself_is_named_with_its_last_words(folder: Path) -> None:
    (folder / "console.log").write_text("Linux\n\nKernel panic - not syncing\n")
    Played(folder, {"query-migrate": [{"return": {"status": "completed"}}]}, says=b"")
    with pytest.raises(
        LabError,
        match=f"{folder.name} has ended before it printed 'known'\\.\n  .*Linux\n  console of {folder.name}: Kernel panic - not syncing$",
    ):
        saved.resume(saved.State(Path("/images/x/state-1")), folder, NODE, [])


def test_a_failed_state_leaves_nothing_behind(folder: Path) -> None:
    stopped: list[Path] = []

    def start(_state: saved.State) -> None:
        raise LabError("no")

    with pytest.raises(LabError, match=r"^no$"):
        saved.make(saved.State(folder / "state-1"), start, stopped.append)
    assert stopped == [folder / ".state-1"]
    assert not list(folder.glob("*state*"))


def test_another_machine_or_qemu_has_another_state(monkeypatch: pytest.MonkeyPatch) -> None:
    output = {"now": "QEMU emulator version 7.2.22"}
    monkeypatch.setattr(saved, "run", lambda argv: output["now"] if argv == ["qemu-system-x86_64", "--version"] else pytest.fail(str(argv)))
    paths = {saved.of(Path("/images/x"), [machine, saved]).path, saved.of(Path("/images/x"), [saved]).path}
    output["now"] = "QEMU emulator version 10.0.0"
    paths.add(saved.of(Path("/images/x"), [machine, saved]).path)
    assert len(paths) == 3
    assert all(path.parent == Path("/images/x") for path in paths)


def test_only_an_emulated_machine_without_arguments_of_its_own_starts_from_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "run", lambda _argv: "QEMU")
    image = Image(Path("/images/x"))
    plain, locked = make_plan("lab", "machine", 1, 22000), make_plan("lab", "machine", 1, 22000, "lockdown=integrity")
    monkeypatch.setenv("RDMA_LAB_ACCEL", "tcg")
    assert machine._state(plain, image) is not None
    assert machine._state(locked, image) is None
    monkeypatch.setenv("RDMA_LAB_ACCEL", "kvm")
    assert machine._state(plain, image) is None


def test_a_started_machine_maps_the_state_s_memory_privately_and_waits() -> None:
    image, state = Image(Path("/images/x")), saved.State(Path("/images/x/state-1"))
    words = machine.qemu_arguments(NODE, Path("/labs/lab/node1"), image, [7, 8], state=state)
    assert "memory-backend-file,mem-path=/images/x/state-1/memory0,share=off,id=memory0,size=384M" in words
    assert words[-3:] == ["-incoming", "defer", "-S"]
    assert not [word for word in words if "id=nic" in word]
