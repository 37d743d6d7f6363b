# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a lab needs of its computer: all that is missing is named at once, each with what to do; root comes through sudo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cli, cluster, container, image, kvm, namespace, preflight
from lab.errors import LabError
from lab.image import Image
from lab.paths import LabFolder
from lab.plan import Plan, make_plan

MACHINES = make_plan("lab", "machine", 4, 22000)
CONTAINERS = make_plan("lab", "container", 1, 22000)
#: What a computer says that can carry a lab: /proc/meminfo's own form, and apt's lists.
ENOUGH = "MemTotal:       16300000 kB\nMemFree:         100000 kB\nMemAvailable:   3670016 kB\n"


#: What is tried in namespaces of its own, and works; an overlay's words depend on a temporary folder.
TRIALS = [
    *(["true"], ["mount", "-t", "tmpfs", "lab", "/run"], ["ip", "link", "add", "lab0", "type", "bridge"]),
    *(["ip", "tuntap", "add", "lab1", "mode", "tap"], ["ip", "link", "add", "lab1", "type", "veth"]),
]


def works(argv: list[str]) -> str:
    assert argv[:3] == ["unshare", "--mount", "--net"]
    assert argv[3:] in TRIALS or argv[3:8] == ["mount", "-t", "overlay", "lab", "-o"]
    return ""


@pytest.fixture(autouse=True)
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A computer that lacks nothing, whatever this one is: root, Debian, memory, lists, a TUN device, and no refusal."""
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path / "lab"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(image, "distribution", lambda: ("debian", "trixie"))
    monkeypatch.setattr(image, "sources", lambda _name: ["deb http://deb.debian.org/debian trixie main"])
    monkeypatch.setattr(image, "NEEDED_GIB", 0)
    monkeypatch.setattr(preflight, "COMMANDS", ())
    monkeypatch.setattr(preflight, "TUN", Path("/dev/null"))
    monkeypatch.setattr(preflight, "is_free", lambda _port: True)
    monkeypatch.setattr(container, "hierarchies", lambda: [tmp_path])
    monkeypatch.setattr(preflight, "run", works)
    memory(tmp_path, monkeypatch, ENOUGH)


def memory(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (folder / "meminfo").write_text(text)
    monkeypatch.setattr(preflight, "MEMINFO", folder / "meminfo")


def refused(plan: Plan = MACHINES) -> list[str]:
    """The lines of what `check` says is missing, none if it refuses nothing."""
    try:
        preflight.check(plan)
    except LabError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize("plan", [MACHINES, CONTAINERS], ids=["machines", "containers"])
def test_a_computer_that_lacks_nothing(plan: Plan) -> None:
    assert refused(plan) == []


def test_everything_is_named_at_once_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(image, "NEEDED_GIB", 10**9)
    monkeypatch.setattr(preflight, "COMMANDS", ("mke2fs", "no-such-command", "nor-this"))
    monkeypatch.setattr(preflight, "TUN", tmp_path / "tun")
    monkeypatch.setattr(preflight, "is_free", lambda port: port not in (22001, 22003))
    memory(tmp_path, monkeypatch, ENOUGH.replace("3670016", "2000000"))
    head, *lines = refused()
    assert head == "This machine lacks 6 things that a lab of 4 machines needs:"
    assert [line[:5] for line in lines] == [f"  {number}. " for number in range(1, 7)]
    wanted = [
        "no sudo here: apt-get install sudo as root",
        "1953 MiB of memory are available, and 4 machines need 3584 MiB: make lab NODES=2, or lab up --nodes 2.",
        "need 1000000000 GiB there: free some, or set RDMA_LAB_DIR",
        "tun is missing: modprobe tun as root",
        "Missing commands: no-such-command, nor-this. Run `make prepare`, or as root: apt-get update && apt-get install --no-install-rec",
        "other programs use: 22001, 22003. Choose others with --port-base.",
    ]
    for line, words in zip(lines, wanted, strict=True):
        assert words in line
    assert "qemu-system-x86" in lines[4]


def test_one_thing_that_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "is_free", lambda port: port != 22002)
    assert refused() == ["Ports of 127.0.0.1 that other programs use: 22002. Choose others with --port-base."]


def test_containers_need_neither_the_memory_nor_the_taps_of_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "TUN", tmp_path / "tun")
    memory(tmp_path, monkeypatch, ENOUGH.replace("3670016", "1000"))
    assert refused(CONTAINERS) == []


def test_a_port_that_another_program_listens_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert not preflight.is_free(port)
    assert preflight.is_free(port)


def test_another_distribution_is_sent_to_the_container_and_not_to_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    def other() -> tuple[str, str]:
        raise LabError("The lab is built from Debian or Ubuntu; this one is 'fedora'. Run it in a container.")

    monkeypatch.setattr(image, "distribution", other)
    monkeypatch.setattr(preflight, "COMMANDS", ("no-such-command",))
    assert refused() == ["The lab is built from Debian or Ubuntu; this one is 'fedora'. Run it in a container."]


def test_package_lists_that_apt_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_name: str) -> list[str]:
        raise LabError("apt knows no package lists of this distribution: run `apt-get update` first.")

    monkeypatch.setattr(image, "sources", none)
    assert refused() == ["apt knows no package lists of this distribution: run `apt-get update` first."]


REFUSED = [
    (MACHINES, ("true",), "Network and mount namespaces are refused to root (Operation not permitted): if this is a container"),
    (MACHINES, ("ip", "tuntap", "add", "lab1", "mode", "tap"), "start it with --privileged, or load the kernel module on the computer"),
    (CONTAINERS, ("ip", "link", "add", "lab1", "type", "veth"), "modprobe veth."),
]


@pytest.mark.parametrize(("plan", "command", "sentence"), REFUSED)
def test_what_a_container_refuses_to_root(plan: Plan, command: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[str]) -> str:
        if tuple(argv[3:]) == command:
            raise LabError(f"`{' '.join(argv)}` failed with exit status 1: unshare: unshare failed: Operation not permitted")
        return works(argv)

    monkeypatch.setattr(preflight, "run", run)
    lines = refused(plan)
    assert len(lines) == 1
    assert sentence in lines[0]


def test_a_folder_that_carries_no_overlay_and_control_groups_that_are_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[str]) -> str:
        if "overlay" in argv:
            raise LabError("`mount` failed with exit status 32: mount: /x/root: wrong fs type")
        return works(argv)

    monkeypatch.setattr(preflight, "run", run)
    monkeypatch.setattr(container, "hierarchies", lambda: [tmp_path / "read-only"])
    lines = refused(CONTAINERS)
    assert "read-only is read-only" in lines[1]
    assert f"{tmp_path}/lab carries no overlay file system (wrong fs type)" in lines[2]


def test_missing_tools_of_a_fabric_are_named_and_a_manager_of_the_machines_own_ports_is_kept_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(preflight.ENVIRONMENT, "PATH", "/nowhere")
    with pytest.raises(
        LabError, match=r"ibsim, opensm.*systemctl mask opensm.service && apt-get install ibsim-utils infiniband-diags opensm"
    ):
        preflight.check_fabric()


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_without_sudo_an_ordinary_user_gets_the_whole_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(preflight, "is_free", lambda _port: False)
    assert cli.main(["up"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "no sudo here" in lines[1]
    assert "22001, 22002, 22003, 22004" in lines[2]


@pytest.mark.parametrize("words", [["up", "--nodes", "2"], ["down"], ["power", "node1", "off"], ["cable", "node1", "0", "--cut"]])
def test_an_ordinary_users_command_starts_again_through_sudo(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def execv(path: Path, argv: list[str]) -> None:
        started.append((path, argv))
        raise SystemExit(0)

    program(tmp_path / "bin", "sudo", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(sys, "argv", ["lab", *words])
    with pytest.raises(SystemExit):
        cli.main(words)
    why = "to make network namespaces, mounts and control groups"
    assert started == [(preflight.AS_ROOT, [str(preflight.AS_ROOT), why, str(preflight.PROGRAM), *words])]


def as_root(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program as user 1000, as `id` in the folder says; other programs are the folder's or the system's own."""
    program(folder, "id", '[ "$1" = -u ] && echo 1000 || echo person')
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    return subprocess.run([preflight.AS_ROOT, *words], capture_output=True, text=True, check=False, env={**path, **environment})


def test_sudo_gets_the_command_and_the_two_variables_of_the_lab(tmp_path: Path) -> None:
    program(tmp_path / "bin", "sudo", 'printf "<%s>" "$@"')
    done = as_root(tmp_path / "bin", "to try", "lab", "up", "a b", RDMA_LAB_DIR="/data", HOME="/home/person")
    assert done.stdout == "<--preserve-env=RDMA_LAB_DIR><--><lab><up><a b>"
    assert done.stderr == "Root is needed to try. sudo runs this part; everything else runs as person.\n"
    assert as_root(tmp_path / "bin", "to try", "lab", "down").stdout == "<--><lab><down>"


def test_root_needs_no_sudo(tmp_path: Path) -> None:
    program(tmp_path, "id", "echo 0")
    done = subprocess.run(
        [preflight.AS_ROOT, "to try", "echo", "done"], capture_output=True, text=True, check=True, env={"PATH": f"{tmp_path}:/bin"}
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


def before(*words: str) -> None:
    """The preflight of `make lab`."""
    preflight.main(["--name", "lab", "--nodes", "4", "--python", "python3", *words])


def test_make_lab_leaves_out_what_it_installs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "COMMANDS", ("no-such-command",))
    assert preflight._missing(preflight.COMMANDS) == "no-such-command"
    before()


def test_make_lab_names_a_python_that_is_too_old_for_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "OLDEST_PYTHON", (99, 0))
    monkeypatch.setattr(preflight, "TUN", tmp_path / "tun")
    with pytest.raises(SystemExit) as caught:
        before()
    lines = str(caught.value.code).splitlines()
    assert lines[0] == "lab: This machine lacks 2 things that a lab of 4 machines needs:"
    assert "python3.11-venv as root, then make lab PYTHON=python3.11" in lines[2]
    with pytest.raises(SystemExit, match=r"^lab: .*tun is missing"):
        before("--python", "python3.12")


def test_a_lab_that_is_there_takes_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory(tmp_path, monkeypatch, ENOUGH.replace("3670016", "1000"))
    with pytest.raises(SystemExit, match="MiB of memory are available, and 4 machines need 3584 MiB: end other programs"):
        before()
    (tmp_path / "lab/labs/lab").mkdir(parents=True)
    before()


CPUS = [
    ("flags\t\t: fpu tsc", "kvm", ""),
    ("flags\t\t: fpu tsc", "none", ""),
    ("flags\t\t: fpu tsc svm", "kvm", ""),
    ("flags\t\t: fpu vmx", "none", "/none is missing, so the CPU is emulated, which is slow."),
    ("flags\t\t: fpu vmx", "folder", "/folder cannot be opened (Is a directory), so the CPU is emulated"),
]


@pytest.mark.parametrize(("cpu", "device", "remark"), CPUS)
def test_kvm(cpu: str, device: str, remark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something is said only where something can be done: a CPU without virtualization is emulated without a word."""
    (tmp_path / "cpuinfo").write_text(cpu)
    (tmp_path / "kvm").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(kvm, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(kvm, "DEVICE", tmp_path / device)
    assert kvm.usable() is ("svm" in cpu)
    assert remark in kvm.remark()
    assert bool(remark) == bool(kvm.remark())


def test_the_key_of_a_lab_belongs_to_the_person_behind_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = []
    made = Image(tmp_path / "image")
    made.path.mkdir()
    made.key.write_text("a key")
    (made.path / "host_key.pub").write_text("ssh-ed25519 AAAA lab host\n")
    folder = LabFolder(tmp_path / "lab")
    folder.path.mkdir()
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setattr(os, "chown", lambda path, user, group: owners.append((path, user, group)))
    cluster._write_access(cluster.Lab(MACHINES, folder, made))
    assert owners == [(folder.key, 1000, -1)]


def test_a_lab_takes_the_first_block_of_ports_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "is_free", lambda port: port != 22004)
    assert cluster._free_port_base(3) == 22000
    assert cluster._free_port_base(4) == 22256


@pytest.mark.parametrize(("there", "words"), [(True, "is up already: 1 containers"), (False, "ended with a restart of this computer")])
def test_a_lab_that_a_restart_of_the_computer_has_ended(
    there: bool, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its state file outlives a restart, and its network namespace does not."""
    folder = LabFolder.of("lab")
    folder.path.mkdir(parents=True)
    folder.state.write_text('{"phase": "up", "kind": "container", "nodes": 1, "port_base": 22000, "image": "x"}')
    monkeypatch.setattr(namespace, "exists", lambda name: there and name == "rdma-lab")
    monkeypatch.setattr(preflight, "is_free", lambda _port: False)
    status = cli.main(["up", "--kind", "container", "--nodes", "1", "--port-base", "22000"])
    answer = capsys.readouterr()
    assert words in answer.out
    assert (status, folder.path.exists()) == ((0, True) if there else (1, False))
