# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses a host: GPU processes and jobs in trees of /proc, and in the running system's."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import (
    Load,
    Process,
    QpUser,
    busy_words,
    host_users,
    idle_refusal,
    rail_users,
    read_load,
    refusal,
)
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.hosts import FIXTURES
from tests.unit.builders.trees import write_tree

DRIVER = "/proc/driver/nvidia/version: NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03\n"
INIT = "/proc/1/comm: systemd\n/proc/1/fd/0 -> /dev/null\n"


def process(pid: int, comm: str, *files: str, arguments: tuple[str, ...] = ()) -> str:
    """The lines of a process in a tree; files: what it has open."""
    lines = [f"/proc/{pid}/comm: {comm}", f"/proc/{pid}/cmdline: " + "\0".join([comm, *arguments, ""])]
    return "\n".join([*lines, *(f"/proc/{pid}/fd/{number} -> {file}" for number, file in enumerate(files))]) + "\n"


def idle(gpu: list[Process] | None, jobs: list[Process]) -> Load:
    """Without users of queue pairs."""
    return Load(gpu, jobs, qps=[])


def load(root: Path, text: str) -> Load:
    """Of a host without RDMA devices, which has no queue pairs."""
    return read_load(SysRoot(str(write_tree(root, text))), FakeRunner([]))


@pytest.mark.parametrize(
    ("file", "uses_gpu"),
    [
        ("/dev/nvidia0", True),
        ("/dev/nvidia15", True),
        ("/run/enroot/overlay/rootfs/dev/nvidia3", True),
        ("/dev/nvidia0 (deleted)", True),
        ("/dev/nvidiactl", False),
        ("/dev/nvidia-uvm", False),
        ("/dev/nvidia-caps/nvidia-cap1", False),
        ("/dev/nvidia-modeset", False),
        ("/home/user/nvidia0", False),
        ("socket:[12345]", False),
    ],
)
def test_a_gpu_process_is_one_that_has_a_gpu_open(tmp_path: Path, file: str, uses_gpu: bool) -> None:
    text = DRIVER + INIT + process(4711, "python3", "/dev/null", file)
    assert load(tmp_path, text).gpu_processes == ([Process(4711, "python3")] if uses_gpu else [])


@pytest.mark.parametrize(
    "comm",
    [
        *("nvidia-persiste", "nv-hostengine", "dcgm-exporter", "nv-fabricmanage", "nvidia-smi", "Xorg"),
        *("nvsm_core", "nvidia-device-p", "gnome-shell", "Xwayland"),
    ],
)
def test_daemons_that_hold_gpus_put_no_load_on_them(tmp_path: Path, comm: str) -> None:
    assert load(tmp_path, DRIVER + INIT + process(900, comm, "/dev/nvidia0")) == idle([], [])


def test_processes_come_by_number(tmp_path: Path) -> None:
    text = DRIVER + INIT + process(9, "b", "/dev/nvidia0") + process(100, "a", "/dev/nvidia0") + process(20, "c", "/dev/nvidia1")
    assert [seen.pid for seen in load(tmp_path, text).gpu_processes or []] == [9, 20, 100]


def test_the_device_file_shows_the_driver_too(tmp_path: Path) -> None:
    text = INIT + process(4711, "python3", "/dev/nvidia0")
    assert load(tmp_path, text + "/dev/nvidia0:\n").gpu_processes == [Process(4711, "python3")]


@pytest.mark.parametrize("text", ["", "/dev/nvidiactl:\n", "/dev/null:\n"])
def test_without_the_driver_no_open_file_is_looked_at(tmp_path: Path, text: str) -> None:
    class NoFiles(SysRoot):
        def list_dir(self, path: str) -> list[str]:
            assert not path.endswith("/fd")
            return super().list_dir(path)

    write_tree(tmp_path, text + INIT + process(4711, "python3", "/dev/nvidia0"))
    assert read_load(NoFiles(str(tmp_path)), FakeRunner([])) == idle([], [])


@pytest.mark.parametrize(
    ("comm", "arguments", "is_job"),
    [
        ("slurmstepd", (), True),
        # As Slurm names a running step: "slurmstepd: [614.0]".
        ("slurmstepd", ("[614.0]",), True),
        ("slurmstepd", ("infinity",), False),
        ("slurmstepd", ("infinity", "614"), True),
        ("sge_shepherd", ("-bg",), True),
        ("slurmd", (), False),
        ("sge_execd", (), False),
        ("pbs_mom", (), False),
    ],
)
def test_a_job_shows_by_its_keeper_and_not_by_the_daemon(tmp_path: Path, comm: str, arguments: tuple[str, ...], is_job: bool) -> None:
    found = load(tmp_path, INIT + process(812, comm, arguments=arguments))
    assert found == idle([], [Process(812, comm)] if is_job else [])


@pytest.mark.parametrize("path", ["/proc/4711/comm", "/proc/4711/fd", "/proc/4711/fd/0", "/proc/4711/cmdline"])
@pytest.mark.parametrize("number", [errno.ESRCH, errno.ENOENT])
def test_a_process_that_ends_meanwhile_is_no_error(tmp_path: Path, path: str, number: int) -> None:
    text = DRIVER + INIT + process(4711, "slurmstepd", "/dev/nvidia0", arguments=("infinity",)) + process(4712, "python3", "/dev/nvidia0")
    sys = Failing(write_tree(tmp_path, text), path, number)
    found = read_load(sys, FakeRunner([])).gpu_processes or []
    assert sys.failed
    assert found[-1] == Process(4712, "python3")


def test_what_may_not_be_seen_is_not_idle(tmp_path: Path) -> None:
    text = DRIVER + INIT + process(4711, "python3", "/dev/nvidia0")
    found = read_load(Failing(write_tree(tmp_path, text), "/proc/4711/fd", errno.EACCES), FakeRunner([]))
    assert found == idle(None, [])
    assert busy_words(found) == "GPU processes cannot be seen"


def test_the_first_process_may_be_closed_to_root(tmp_path: Path) -> None:
    # Seen on a virtual machine with an H200: permission denied for /proc/1/fd.
    found = read_load(Failing(write_tree(tmp_path, DRIVER + INIT), "/proc/1/fd", errno.EACCES), FakeRunner([]))
    assert found == idle([], [])


def test_what_is_seen_beside_it_is_reported(tmp_path: Path) -> None:
    text = DRIVER + INIT + process(4711, "python3", "/dev/nvidia0") + process(4712, "python3", "/dev/nvidia0")
    found = read_load(Failing(write_tree(tmp_path, text), "/proc/4711/fd", errno.EACCES), FakeRunner([]))
    assert found.gpu_processes == [Process(4712, "python3")]


@pytest.mark.parametrize("text", ["", "/sys/class/net/eth0/mtu: 1500\n", process(300, "bash")])
def test_without_process_1_there_may_be_others(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == idle(None, [])


def test_a_name_is_reported_without_what_a_terminal_would_obey(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    text = DRIVER + INIT + process(7, "x", "/dev/nvidia0")
    write_tree(tmp_path, text)
    (tmp_path / "proc/7/comm").write_bytes(b"a\x1b[2J\nb\xff\n")
    assert load(tmp_path, "").gpu_processes == [Process(7, "a?[2J?b\ufffd")]


def test_the_running_system(tmp_path: Path) -> None:
    """This very process opens a file named like a GPU; of the others' files only what they are is real."""

    class Own(SysRoot):
        def list_dir(self, path: str) -> list[str]:
            return ["1", str(os.getpid())] if path == "/proc" else [] if path == "/proc/1/fd" else super().list_dir(path)

        def exists(self, path: str) -> bool:
            return path == "/proc/driver/nvidia"

    device = tmp_path / "dev/nvidia0"
    device.parent.mkdir()
    assert read_load(Own(), FakeRunner([])) == idle([], [])
    with device.open("w"):
        comm = Path("/proc/self/comm").read_text().strip()
        assert read_load(Own(), FakeRunner([])) == idle([Process(os.getpid(), comm)], [])
    assert read_load(Own(), FakeRunner([])) == idle([], [])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Load([], []), ""),
        (Load([Process(4711, "python3")], []), "GPU process 4711 (python3)"),
        (Load([], [Process(812, "slurmstepd")]), "job process 812 (slurmstepd)"),
        (
            Load([Process(pid, "python3") for pid in range(1, 9)], [Process(812, "slurmstepd"), Process(813, "slurmstepd")]),
            "GPU processes 1 (python3), 2 (python3), 3 (python3) and 5 more; job processes 812 (slurmstepd), 813 (slurmstepd)",
        ),
        (Load(None, [Process(812, "slurmstepd")]), "GPU processes cannot be seen; job process 812 (slurmstepd)"),
    ],
)
def test_busy_in_words(found: Load, words: str) -> None:
    assert busy_words(found) == words


def test_not_read_is_not_idle() -> None:
    assert busy_words(None) == "whether it is in use is unknown"


def test_an_effect_is_refused_unless_it_is_allowed_on_an_idle_host(tmp_path: Path) -> None:
    idle = SysRoot(str(write_tree(tmp_path / "idle", INIT)))
    busy = SysRoot(str(write_tree(tmp_path / "busy", INIT + process(812, "slurmstepd"))))
    unreadable = Failing(tmp_path / "idle", "/proc", errno.EACCES)
    job = "job process 812 (slurmstepd)"
    assert [refusal(idle, allowed=allowed) for allowed in (True, False)] == ["", "not allowed"]
    assert [refusal(busy, allowed=allowed) for allowed in (True, False)] == [job, "not allowed"]
    assert [idle_refusal(busy, allowed=allowed) for allowed in (True, False)] == ["", job]
    assert idle_refusal(idle, allowed=False) == ""
    assert refusal(unreadable, allowed=True).startswith("whether the host is in use is unknown: ")


class Failing(SysRoot):
    """A tree in which whatever reads one path fails, as the kernel makes it fail."""

    def __init__(self, root: Path, path: str, number: int) -> None:
        super().__init__(str(root))
        self._path = path
        self._number = number
        self.failed = False

    def read(self, path: str) -> str | None:
        return None if self._fails(path) else super().read(path)

    def list_dir(self, path: str) -> list[str]:
        return [] if self._fails(path) else super().list_dir(path)

    def link_target(self, path: str) -> str | None:
        return None if self._fails(path) else super().link_target(path)

    def _fails(self, path: str) -> bool:
        """Whether it is the path, and absent; raises what SysRoot raises if it fails for another reason."""
        if path != self._path:
            return False
        self.failed = True
        if self._number != errno.ENOENT:
            raise OSError(self._number, os.strerror(self._number), path)
        return True


QPS = ["rdma", "-j", "resource", "show", "qp"]
DEVICE = "/sys/class/infiniband/mlx5_0/node_type: 1: CA\n"
#: As rdma of iproute2 6.1 prints them. Of a kernel's resource it knows no pid.
QP = {"ifindex": 2, "ifname": "mlx5_0", "port": 1, "lqpn": 7, "type": "RC", "state": "RTS", "sq-psn": 0}


def qps_of(root: Path, answer: tuple[int, str, str], *, text: str = DEVICE + INIT) -> Load:
    return read_load(SysRoot(str(write_tree(root, text))), FakeRunner([(QPS, *answer)]))


def test_what_a_lab_machine_prints_while_perftest_receives(tmp_path: Path) -> None:
    """iproute2 6.1 on Linux 6.1, two Soft-RoCE devices."""
    text = (FIXTURES / "rdma/resource-qp-6.1.json").read_text(encoding="utf-8")
    assert qps_of(tmp_path, (0, text, "")).qps == [QpUser("rxe_rail0", 1, 833, "ib_send_bw", 1)]


def test_users_of_queue_pairs_by_port_and_process(tmp_path: Path) -> None:
    """What an idle host has as well is left out: the kernel's own, and daemons of rdma-core."""
    entries = [
        {**QP, "comm": "ib_core"},
        {**QP, "comm": "mlx5_ib"},
        {**QP, "pid": 800, "comm": "ibacm"},
        *[{**QP, "lqpn": number, "pid": 4711, "comm": "python3"} for number in range(10, 13)],
        {**QP, "pid": 4711, "comm": "python3", "port": 2},
        {**QP, "comm": "nvme_rdma"},
        {key: value for key, value in QP.items() if key != "port"} | {"pid": 4712, "comm": "a\u0007b"},
        {**QP, "comm": ""},
        {},
    ]
    assert qps_of(tmp_path, (0, json.dumps(entries), "")).qps == [
        QpUser("mlx5_0", 1, 4711, "python3", 3),
        QpUser("mlx5_0", 2, 4711, "python3", 1),
        QpUser("mlx5_0", 1, None, "nvme_rdma", 1),
        QpUser("mlx5_0", None, 4712, "a?b", 1),
        QpUser("mlx5_0", 1, None, "a process that has ended", 1),
    ]


@pytest.mark.parametrize("text", ["[]", "[ ]\n", "[{}]"])
def test_no_queue_pairs(tmp_path: Path, text: str) -> None:
    assert qps_of(tmp_path, (0, text, "")) == idle([], [])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((1, "", "Error: Operation not supported"), "`rdma -j resource show qp` failed: Error: Operation not supported"),
        ((2, "", ""), "`rdma -j resource show qp` failed: exit status 2"),
        ((0, "", ""), "not the JSON of `rdma resource show qp`: ''"),
        ((0, "link mlx5_0/1 lqpn 7 type RC", ""), "not the JSON of `rdma resource show qp`"),
        ((0, '[{"ifname": "mlx5_0", "port": 1}]', ""), "not an entry of `rdma resource show qp`"),
        ((0, '[{"ifname": "mlx5_0", "port": 1, "lq', ""), "not the JSON of `rdma resource show qp`"),
    ],
)
def test_queue_pairs_that_cannot_be_read_are_not_none(tmp_path: Path, answer: tuple[int, str, str], why: str) -> None:
    found = qps_of(tmp_path, answer)
    assert found.qps is None
    assert str(found.qps_error).startswith(why)
    assert rail_users(found, "mlx5_0", 1) == f"queue pairs cannot be read ({found.qps_error})"


def test_no_tool_and_no_device(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path / "a", DEVICE + INIT)))
    assert "command not found: rdma" in str(read_load(sys, Without(["rdma"], [])).qps_error)
    none = read_load(SysRoot(str(write_tree(tmp_path / "b", INIT))), Without(["rdma"], []))
    assert (none.qps, host_users(none), rail_users(none, None, None)) == ([], "", "")
    assert read_load(sys).qps is None


def test_who_uses_a_rail_and_who_the_host() -> None:
    users = [QpUser("mlx5_0", 1, 4711, "python3", 3), QpUser("mlx5_1", None, 4712, "ucx", 1), QpUser("mlx5_2", 1, None, "nvme_rdma", 8)]
    load = Load([], [Process(812, "slurmstepd")], qps=users)
    job = "job process 812 (slurmstepd)"
    assert rail_users(load, "mlx5_0", "1") == f"{job}; 3 queue pairs of python3 (pid 4711) on mlx5_0/1"
    assert rail_users(load, "mlx5_0", 2) == job
    assert rail_users(load, "mlx5_1", 1) == f"{job}; 1 queue pair of ucx (pid 4712) on mlx5_1/-"
    assert rail_users(load, None, None) == job
    assert host_users(load).endswith("8 queue pairs of nvme_rdma (kernel) on mlx5_2/1")
    assert rail_users(None, "mlx5_0", 1) == "whether it is in use is unknown"
