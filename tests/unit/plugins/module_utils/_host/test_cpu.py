# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Governor and idle states: read, set by a file's program, and kept by a unit or by tuned. Trees have the files of Linux 6.1."""

from __future__ import annotations

import json
import subprocess
import sys as python
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import boot_service
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host import cpu_ensure, cpu_runner
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Cpu, IdleState, Tuned, read_cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuRequest, cpu_files, deep_states, ensure_cpu
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree

CPUS = "/sys/devices/system/cpu"
STATES = {"POLL": 0, "C1": 1, "C6": 133}
REQUEST = CpuRequest("performance", 10)
UNIT = "rdma-cpu.service"
SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", UNIT]
NEW = (SHOW, 0, f"Id={UNIT}\nActiveState=inactive\nUnitFileState=\n", "")
RUNNING = (SHOW, 0, f"Id={UNIT}\nActiveState=active\nUnitFileState=enabled\n", "")
TUNED = "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs: 800"


def systemctl(*words: str) -> tuple[list[str], int, str, str]:
    return (["systemctl", *words], 0, "", "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    text = ""
    for number in range(2):
        policy = f"{CPUS}/cpufreq/policy{number}"
        text += f"{policy}/scaling_driver: intel_pstate\n{policy}/scaling_governor: powersave\n"
        text += f"{policy}/scaling_available_governors: performance powersave\n"
        for index, (name, latency_us) in enumerate(STATES.items()):
            state = f"{CPUS}/cpu{number}/cpuidle/state{index}"
            text += f"{state}/name: {name}\n{state}/latency: {latency_us}\n{state}/disable: 0\n"
    write_tree(tmp_path, text + f"{CPUS}/cpuidle/current_driver: intel_idle\n{CPUS}/cpufreq/boost: 1\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/cpu_dma_latency").write_bytes((2_000_000_000).to_bytes(4, "little"))
    return tmp_path


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"config": f"{tmp_path}/ours/cpu.json", "program": f"{tmp_path}/ours/cpu.pyz"}
    monkeypatch.setattr(cpu_ensure, "BOOT", replace(cpu_ensure.BOOT, **own))
    monkeypatch.setattr(boot_service, "UNITS", f"{tmp_path}/ours")
    monkeypatch.setattr(cpu_ensure, "PROFILE_FILE", f"{tmp_path}/ours/PROFILE_FILE")


def look(root: Path) -> Callable[[], Cpu]:
    return lambda: read_cpu(SysRoot(str(root)), running=True)


def test_what_is_read(root: Path) -> None:
    assert look(root)() == Cpu(
        driver="intel_pstate",
        governors={"powersave": 2},
        available=["performance", "powersave"],
        idle_states={name: IdleState(latency_us, 2, 0) for name, latency_us in STATES.items()},
        latency_us=None,
        tuned=None,
    )
    write_tree(root, f"{CPUS}/cpu1/cpuidle/state2/disable: 1\n{CPUS}/cpufreq/policy1/scaling_governor: performance")
    (root / "dev/cpu_dma_latency").write_bytes((20).to_bytes(4, "little"))
    found = look(root)()
    assert (found.governors, found.idle_states["C6"], found.latency_us) == ({"performance": 1, "powersave": 1}, IdleState(133, 2, 1), 20)
    assert read_cpu(SysRoot(str(root)), running=False).latency_us is None


def test_a_virtual_machine_has_nothing(tmp_path: Path) -> None:
    assert read_cpu(SysRoot(str(tmp_path)), running=True) == Cpu(None, {}, [], {}, None, None)


def test_a_number_of_another_form_is_quoted_with_its_file(root: Path) -> None:
    with pytest.raises(ParseError, match=f"{CPUS}/cpu0/cpuidle/state0/latency: not a number: 'short'"):
        read_cpu(SysRoot(str(write_tree(root, f"{CPUS}/cpu0/cpuidle/state0/latency: short"))), running=True)


def test_tuned_counts_where_it_runs(root: Path) -> None:
    write_tree(root, "/etc/tuned/active_profile: balanced")
    assert look(root)().tuned is None
    assert look(write_tree(root, TUNED))().tuned == Tuned("balanced", "balanced")
    write_tree(root, "/etc/tuned/active_profile: rdma-cluster\n/etc/tuned/rdma-cluster/tuned.conf: [main]\\ninclude=hpc-compute\\n[cpu]")
    assert look(root)().tuned == Tuned("rdma-cluster", "hpc-compute")


def run_as_the_unit_does(root: Path) -> subprocess.CompletedProcess[str]:
    """The installed program in a process of its own, below a root."""
    code = (
        f"import json, pathlib, sys; sys.path.insert(0, sys.argv[1]); from {cpu_runner.__name__} import apply; "
        "print(apply(json.loads(pathlib.Path(sys.argv[2]).read_text()), pathlib.Path(sys.argv[3])))"
    )
    argv = [python.executable, "-I", "-c", code, cpu_ensure.BOOT.program, cpu_ensure.BOOT.config, str(root)]
    return subprocess.run(argv, capture_output=True, text=True, check=True)


class Systemd(FakeRunner):
    """A scripted systemctl of which a restart of the unit does what the unit does."""

    def __init__(self, root: Path, *calls: tuple[list[str], int, str, str], works: bool = True) -> None:
        super().__init__(calls)
        self.root, self.works = root, works

    def run(self, argv, *, timeout_seconds=30.0):  # type: ignore[no-untyped-def]
        done = super().run(argv, timeout_seconds=timeout_seconds)
        if tuple(argv) == ("systemctl", "restart", UNIT) and self.works:
            assert run_as_the_unit_does(self.root).stdout == "[]\n"
        return done


def test_the_unit_sets_what_differs_and_stays(root: Path) -> None:
    runner = Systemd(root, NEW, systemctl("enable", UNIT), systemctl("restart", UNIT))
    result = ensure_cpu(REQUEST, runner=runner, look=look(root), check_mode=False)
    assert result.live == [
        ("governor of the CPUs", "powersave", "performance"),
        ("idle states of the CPUs", "C6 entered", "at most 10 µs to wake up"),
    ]
    found = look(root)()
    assert (found.governors, [state.disabled for state in found.idle_states.values()]) == ({"performance": 2}, [0, 0, 2])
    again = FakeRunner([RUNNING])
    assert not ensure_cpu(REQUEST, runner=again, look=look(root), check_mode=False).changed


def test_a_drift_runs_the_unit_again(root: Path) -> None:
    ensure_cpu(REQUEST, runner=Systemd(root, NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)), look=look(root), check_mode=False)
    write_tree(root, f"{CPUS}/cpufreq/policy1/scaling_governor: powersave")
    runner = Systemd(root, RUNNING, systemctl("restart", UNIT))
    assert ensure_cpu(REQUEST, runner=runner, look=look(root), check_mode=False).live == [
        ("governor of the CPUs", "performance, powersave", "performance")
    ]


def test_check_mode_shows_all_and_changes_nothing(root: Path) -> None:
    runner = FakeRunner([NEW])
    result = ensure_cpu(REQUEST, runner=runner, look=look(root), check_mode=True)
    assert [diff["after_header"] for diff in result.diffs][-3:] == [UNIT, "governor of the CPUs", "idle states of the CPUs"]
    assert not (root / "ours").exists()


def test_values_that_do_not_stick_are_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_ensure, "SETTLE_SECONDS", 0.0)
    runner = Systemd(root, NEW, systemctl("enable", UNIT), systemctl("restart", UNIT), works=False)
    with pytest.raises(ApplyError, match="governor of the CPUs: powersave instead of performance; idle states of the CPUs: C6 entered"):
        ensure_cpu(REQUEST, runner=runner, look=look(root), check_mode=False)


def test_a_host_in_use_is_not_changed_and_the_difference_is_reported(root: Path) -> None:
    refused = ensure_cpu(REQUEST, runner=FakeRunner([NEW]), look=look(root), check_mode=False, refused="GPU process 4711 (python3)")
    assert (refused.changed, refused.diffs) == (False, [])
    assert [words.partition(":")[0] for words in refused.withheld] == ["governor of the CPUs", "idle states of the CPUs"]
    assert not any(Path(path).exists() for path in cpu_ensure.BOOT.paths)
    shown = ensure_cpu(REQUEST, runner=FakeRunner([NEW]), look=look(root), check_mode=True, refused="GPU process 4711 (python3)")
    assert (shown.changed, shown.withheld) == (True, refused.withheld)
    assert {diff["after_header"] for diff in shown.diffs} >= {"governor of the CPUs", "idle states of the CPUs"}


def test_no_request_takes_the_unit_out(root: Path) -> None:
    ensure_cpu(REQUEST, runner=Systemd(root, NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)), look=look(root), check_mode=False)
    runner = FakeRunner([RUNNING, systemctl("disable", "--now", UNIT), systemctl("daemon-reload")])
    result = ensure_cpu(CpuRequest(None, None), runner=runner, look=look(root), check_mode=False)
    assert (result.service.removed, len(result.service.files), list((root / "ours").iterdir())) == (("enabled", "started"), 3, [])
    assert not ensure_cpu(CpuRequest(None, None), runner=FakeRunner([NEW]), look=look(root), check_mode=False).changed


def test_where_tuned_runs_it_is_reported(root: Path) -> None:
    write_tree(root, f"{TUNED}\n/etc/tuned/active_profile: balanced")

    class TunedAdm(FakeRunner):
        def run(self, argv, *, timeout_seconds=30.0):  # type: ignore[no-untyped-def]
            if argv[0] == "tuned-adm":
                text = "\n".join(f"{CPUS}/cpufreq/policy{number}/scaling_governor: performance" for number in range(2))
                write_tree(root, f"{text}\n/etc/tuned/active_profile: rdma-cluster")
                (root / "dev/cpu_dma_latency").write_bytes((10).to_bytes(4, "little"))
            return super().run(argv, timeout_seconds=timeout_seconds)

    runner = TunedAdm([NEW, (["tuned-adm", "profile", "rdma-cluster"], 0, "", "")])
    result = ensure_cpu(REQUEST, runner=runner, look=look(root), check_mode=False)
    assert (result.taken, bool(result.service)) == ("rdma-cluster", False)
    text = (root / "ours/PROFILE_FILE").read_text()
    assert text.splitlines()[3:] == ["include=balanced", "", "[cpu]", "governor=performance", "force_latency=10"]
    assert not (root / "ours" / UNIT).exists()


def test_with_no_request_tuned_takes_what_it_had_before_its_profile_goes(root: Path) -> None:
    write_tree(root, f"{TUNED}\n/etc/tuned/active_profile: rdma-cluster\n/etc/tuned/rdma-cluster/tuned.conf: include=balanced")
    file = root / "ours/PROFILE_FILE"
    file.parent.mkdir()
    file.write_text("include=balanced\n")

    class TunedAdm(FakeRunner):
        def run(self, argv, *, timeout_seconds=30.0):  # type: ignore[no-untyped-def]
            assert argv[0] != "tuned-adm" or file.exists()
            return super().run(argv, timeout_seconds=timeout_seconds)

    runner = TunedAdm([(["tuned-adm", "profile", "balanced"], 0, "", ""), NEW])
    result = ensure_cpu(CpuRequest(None, None), runner=runner, look=look(root), check_mode=False)
    assert (result.taken, file.exists()) == ("balanced", False)
    assert [diff["after_header"] for diff in result.diffs] == [str(file), "profile of tuned"]


def test_what_the_kernel_does_not_have_differs_from_nothing(tmp_path: Path) -> None:
    runner = FakeRunner([NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    assert ensure_cpu(REQUEST, runner=runner, look=look(tmp_path), check_mode=False).live == []


def test_a_governor_that_the_kernel_refuses_is_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _text: str) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(Path, "write_text", refuse)
    answer = cpu_runner.apply({"governor": "turbo", "max_cstate_latency_us": None}, root)
    assert answer[0].endswith("policy0/scaling_governor is powersave, expected turbo (Invalid argument)")
    assert len(answer) == 2


def test_the_files_are_the_units_or_tuneds(root: Path) -> None:
    there = [[file.path.rsplit("/", 1)[1] for file in cpu_files(REQUEST, tuned) if file.content] for tuned in (None, Tuned("a", "a"))]
    assert there == [["cpu.json", "cpu.pyz", UNIT], ["PROFILE_FILE"]]
    config = next(file for file in cpu_files(REQUEST, None) if file.path.endswith("cpu.json"))
    assert json.loads(config.content or "") == {"governor": "performance", "max_cstate_latency_us": 10}


@pytest.mark.parametrize(("disabled", "deep"), [(0, ["C6"]), (1, ["C6"]), (2, [])])
def test_a_state_counts_until_no_cpu_may_enter_it(root: Path, disabled: int, deep: list[str]) -> None:
    write_tree(root, "\n".join(f"{CPUS}/cpu{number}/cpuidle/state2/disable: 1" for number in range(disabled)))
    assert deep_states(CpuRequest(None, 10), look(root)()) == deep
