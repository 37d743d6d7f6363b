# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image's recipe: every file counts for its hash, and sources are this machine's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab import image
from lab.errors import LabError
from lab.machine import qemu_arguments
from lab.plan import make_plan


def test_a_change_of_any_recipe_file_makes_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "distribution", lambda: ("debian", "bookworm"))
    monkeypatch.setattr(image, "RECIPE", tmp_path)
    (tmp_path / "packages.txt").write_text("systemd\n")
    first = image.recipe_hash()
    assert image.recipe_hash() == first
    (tmp_path / "packages.txt").write_text("systemd\nudev\n")
    second = image.recipe_hash()
    (tmp_path / "packages.txt").chmod(0o755)
    assert len({first, second, image.recipe_hash()}) == 3


LISTED = """\
Debian|deb {options}http://deb.example.org/debian/ bookworm main
Debian|deb {options}http://deb.example.org/debian/ bookworm main
Other vendor|deb {options}http://other.example.org/ stable main
"""


def test_only_the_distribution_s_own_sources_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def apt(listed: str) -> Callable[[list[str]], str]:
        def run(argv: list[str]) -> str:
            assert argv[:4] == ["apt-get", "indextargets", "Created-By: Packages", "--format"]
            return listed

        return run

    monkeypatch.setattr(image, "run", apt(LISTED))
    (entry,) = image.sources("debian")
    assert entry.endswith("http://deb.example.org/debian/ bookworm main")
    monkeypatch.setattr(image, "run", apt(""))
    with pytest.raises(LabError, match="apt-get update"):
        image.sources("debian")


def test_each_rail_of_a_machine_has_its_own_numa_node_and_root_port() -> None:
    plan = make_plan("lab", "machine", 2, 22000)
    words = qemu_arguments(plan.nodes[1], Path("/labs/lab/node2"), image.Image(Path("/images/x")), [7, 8])
    assert "pxb-pcie,id=pxb0,bus_nr=32,numa_node=0,bus=pcie.0" in words
    assert "pxb-pcie,id=pxb1,bus_nr=64,numa_node=1,bus=pcie.0" in words
    assert "tap,id=rail1,fd=8" in words
    assert "virtio-net-pci,id=nic1,netdev=rail1,bus=port1,mac=52:54:00:1a:01:02,host_mtu=9000,romfile=" in words
    assert "user,id=management,hostfwd=tcp:127.0.0.1:22002-:22" in words


@pytest.mark.parametrize(("chosen", "accel", "cpu"), [("kvm", "kvm", "host"), ("tcg", "tcg,tb-size=64", "max,la57=off,erms=off,fsrm=off")])
def test_an_emulated_cpu_gets_little_room_for_translated_code(chosen: str, accel: str, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU's default is 1 GiB a machine: four would not fit into 4 GiB."""
    monkeypatch.setenv("RDMA_LAB_ACCEL", chosen)
    words = qemu_arguments(make_plan("lab", "machine", 1, 22000).nodes[0], Path("/labs/lab/node1"), image.Image(Path("/images/x")), [7, 8])
    assert (words[words.index("-accel") + 1], words[words.index("-cpu") + 1]) == (accel, cpu)


def test_a_barrier_of_the_guest_is_one_for_its_devices() -> None:
    """An emulated processor keeps LOCK prefixes only where a second processor can come."""
    words = qemu_arguments(make_plan("lab", "machine", 1, 22000).nodes[0], Path("/labs/lab/node1"), image.Image(Path("/images/x")), [7, 8])
    assert words[words.index("-smp") + 1] == "1,maxcpus=2"
    assert "nr_cpus=1" in words[words.index("-append") + 1].split()
    assert [word.split(",")[1:3] for word in words if word.startswith("node,nodeid")] == [["nodeid=0", "cpus=0"], ["nodeid=1", "cpus=1"]]


def test_the_kernel_trusts_the_counter_of_the_cpu_and_takes_arguments_of_ours() -> None:
    node = make_plan("lab", "machine", 1, 22000).nodes[0]
    kernels = [
        words[words.index("-append") + 1].split()
        for words in (
            qemu_arguments(node, Path("/labs/lab/node1"), image.Image(Path("/images/x")), [7, 8], *more)
            for more in ((), ("lockdown=integrity",))
        )
    ]
    # Not "tsc=nowatchdog,reliable": the kernel compares the whole value of each.
    assert [word for word in kernels[0] if word.startswith("tsc=")] == ["tsc=nowatchdog", "tsc=reliable"]
    assert kernels[1] == [*kernels[0], "lockdown=integrity"]
