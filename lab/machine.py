# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a QEMU machine: own kernel, modules and verbs; two NUMA nodes; each rail's NIC behind its own PCIe root port."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from lab import namespace, process
from lab.errors import LabError
from lab.image import Image
from lab.plan import MTU_BYTES, PCI_BUSES, Node, Plan, Rail
from lab.shell import run

MEMORY_MIB = 768
#: One processor, and a place for a second one that never comes. Where there can be no second, QEMU emulates an instruction with a
#: LOCK prefix without one: the guest's memory barrier is then none to the thread of its devices, and now and then a NIC is not
#: told of a packet and sends no more, until it is reset (QEMU 7.2; virtio's event index). The kernel is told that there is one
#: (nr_cpus): for two it would take HPET's clock, which is emulated slowly, and perftest loses its own.
#: On a loaded computer the watchdog of clock sources finds the emulated counter of the CPU (TSC) late and marks it unstable for good:
#: perftest could then never calibrate again. So the watchdog is off, and the counter is trusted from the beginning: two words, as the
#: kernel takes one value from each `tsc=` (arch/x86/kernel/tsc.c).
PROCESSORS = "1,maxcpus=2"
KERNEL_ARGUMENTS = (
    "root=/dev/vda rw rootflags=noatime,barrier=0 console=ttyS0 quiet loglevel=4 systemd.show_status=0 mitigations=off nowatchdog "
    "nr_cpus=1 tsc=nowatchdog tsc=reliable systemd.hostname={name} systemd.machine_id={machine_id}"
)


def acceleration() -> str:
    """`kvm` where /dev/kvm is usable and the CPU says so itself, else `tcg`; RDMA_LAB_ACCEL overrides."""
    chosen = os.environ.get("RDMA_LAB_ACCEL")
    if chosen:
        return chosen
    flags = set(Path("/proc/cpuinfo").read_text().split())
    usable = os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(flags & {"vmx", "svm"})
    return "kvm" if usable else "tcg"


def prepare(_plan: Plan, _folder: Path) -> None:
    """Nothing to do once a lab: each machine brings its own."""


def create(plan: Plan, node: Node, folder: Path, image: Image) -> None:
    """The node's folder, disk overlay and cables; nothing runs yet."""
    folder.mkdir()
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", image.disk, folder / "disk.qcow2"])
    for rail in node.rails:
        namespace.add_tap(plan.namespace, rail)


def qemu_arguments(node: Node, folder: Path, image: Image, taps: list[int], kernel_arguments: str = "") -> list[str]:
    """The whole command line of a node; `taps` are open descriptors, one a rail; `kernel_arguments` come after our own."""
    half_mib = MEMORY_MIB // 2
    kernel = f"{KERNEL_ARGUMENTS.format(name=node.name, machine_id=node.machine_id)} {kernel_arguments}".strip()
    accel = acceleration()
    # Emulated, an instruction for whole strings goes byte by byte: without them the kernel clears memory six times as fast.
    cpu = "host" if accel == "kvm" else "max,la57=off,erms=off,fsrm=off"
    arguments = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
        "-name", node.name, "-machine", f"q35,accel={accel}", "-cpu", cpu,
        "-smp", PROCESSORS, "-m", f"{MEMORY_MIB}M",
        "-object", f"memory-backend-ram,id=memory0,size={half_mib}M", "-numa", "node,nodeid=0,cpus=0,memdev=memory0",
        "-object", f"memory-backend-ram,id=memory1,size={half_mib}M", "-numa", "node,nodeid=1,cpus=1,memdev=memory1",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", kernel,
        "-drive", f"file={folder / 'disk.qcow2'},if=none,id=disk,cache=unsafe,discard=unmap",
        "-device", "virtio-blk-pci,drive=disk,addr=03.0",
        "-device", "virtio-rng-pci,addr=04.0",
        "-netdev", f"user,id=management,hostfwd=tcp:127.0.0.1:{node.ssh_port}-:22",
        "-device", f"virtio-net-pci,netdev=management,mac={node.management_mac},addr=02.0,romfile=",
        "-serial", f"file:{folder / 'console.log'}",
        "-qmp", f"unix:{folder / 'qmp.sock'},server=on,wait=off",
        "-pidfile", str(folder / "pid"), "-daemonize",
    ]  # fmt: skip
    for rail, descriptor in zip(node.rails, taps, strict=True):
        arguments += _rail_arguments(rail, descriptor)
    return arguments


def _rail_arguments(rail: Rail, descriptor: int) -> list[str]:
    i = rail.index
    return [
        "-device", f"pxb-pcie,id=pxb{i},bus_nr={PCI_BUSES[i]},numa_node={i},bus=pcie.0",
        "-device", f"pcie-root-port,id=port{i},bus=pxb{i},chassis={i + 1},slot={i + 1}",
        "-netdev", f"tap,id=rail{i},fd={descriptor}",
        "-device", f"virtio-net-pci,id=nic{i},netdev=rail{i},bus=port{i},mac={rail.mac},host_mtu={MTU_BYTES},romfile=",
    ]  # fmt: skip


def start(plan: Plan, node: Node, folder: Path, image: Image) -> None:
    """Power the machine on; returns when QEMU runs, long before the machine answers."""
    taps = [namespace.open_tap(plan.namespace, rail.cable) for rail in node.rails]
    try:
        done = subprocess.run(
            qemu_arguments(node, folder, image, taps, plan.kernel_arguments),
            pass_fds=taps,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        for descriptor in taps:
            os.close(descriptor)
    if done.returncode:
        raise LabError(f"{node.name} does not start: {(done.stderr.strip() or 'QEMU said nothing').splitlines()[-1]}")


def is_running(folder: Path) -> bool:
    return process.is_ours(folder / "pid", str(folder))


def stop(folder: Path) -> None:
    """Power the machine off, as pulling the plug does."""
    process.end(folder / "pid", str(folder))


def set_carrier(folder: Path, rail: Rail, *, up: bool) -> None:
    """Make the machine's NIC see light on its cable, or none."""
    if is_running(folder):
        _qmp(folder / "qmp.sock", "set_link", {"name": f"nic{rail.index}", "up": up})


def _qmp(path: Path, command: str, arguments: dict[str, Any]) -> None:
    """One QMP command (qemu-qmp-ref): greeting, capabilities, command, answer; events in between are passed over."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        lines = connection.makefile("rw")
        lines.readline()
        for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            answer = json.loads(lines.readline())
            while "event" in answer:
                answer = json.loads(lines.readline())
            if "error" in answer:
                raise LabError(f"QEMU refuses {command}: {answer['error'].get('desc')}")


def has_booted(folder: Path) -> bool:
    """True once the serial console asks for a login: before that, asking over SSH only costs the machine time."""
    file = folder / "console.log"
    return file.exists() and "login:" in file.read_text(errors="replace")
