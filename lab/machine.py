# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a QEMU machine: own kernel, modules and verbs; two NUMA nodes; each rail's NIC behind its own PCIe root port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from lab import kvm, namespace, process, saved
from lab.errors import LabError
from lab.image import Image
from lab.plan import MTU_BYTES, PCI_BUSES, Node, Plan, Rail
from lab.qmp import Monitor
from lab.saved import State
from lab.shell import log, run

MEMORY_MIB = 768
#: Room for translated code. Left to itself QEMU takes up to 1 GiB of it for each machine; docs/measurements.md has what this one costs.
TRANSLATION_MIB = 64
#: One processor, and a place for a second one that never comes. Where there can be no second, QEMU emulates an instruction with a
#: LOCK prefix without one: the guest's memory barrier is then none to the thread of its devices, and now and then a NIC is not
#: notified of a packet and stops sending until it is reset (QEMU 7.2; virtio's event index). The kernel is limited to one
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
    """`kvm` where the CPU has it and /dev/kvm opens, else `tcg`; RDMA_LAB_ACCEL overrides."""
    return os.environ.get("RDMA_LAB_ACCEL") or ("kvm" if kvm.usable() else "tcg")


def prepare(plan: Plan, _folder: Path, image: Image) -> None:
    """Once a lab, before its machines: the state that they start from, made if it is not there yet. Where the machines are emulated and
    something can be done about it, log a remark.
    """
    if not os.environ.get("RDMA_LAB_ACCEL") and (remark := kvm.remark()):
        log(f"nodes     {remark}")
    if (state := _state(plan, image)) and not state.path.exists():
        saved.make(state, lambda kept: _start_template(kept, image), stop)


def _state(plan: Plan, image: Image) -> State | None:
    """What the machines of a lab start from; None where each boots: with arguments of its own for the kernel, and by KVM, in seconds."""
    if plan.kernel_arguments or acceleration() != "tcg":
        return None
    return saved.of(image.path, [sys.modules[__name__], saved])


def create(plan: Plan, node: Node, folder: Path, image: Image) -> None:
    """The node's folder, disk overlay, SSH host key and cables; nothing runs yet."""
    folder.mkdir()
    if state := _state(plan, image):
        _overlay(folder, state.disk, "qcow2")
        saved.make_host_key(folder)
    else:
        _overlay(folder, image.disk, "raw")
    for rail in node.rails:
        namespace.add_tap(plan, rail)


def _overlay(folder: Path, disk: Path, kind: str) -> None:
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", disk, folder / "disk.qcow2"])


def host_key(folder: Path, image: Image) -> str:
    """The SSH host key by which the machine is known: its own, or the image's where it boots by itself."""
    own = folder / "host_key.pub"
    return " ".join(own.read_text().split()[:2]) if own.exists() else image.host_key


def qemu_arguments(
    node: Node, folder: Path, image: Image, taps: list[int], kernel_arguments: str = "", *, state: State | None = None
) -> list[str]:
    """The whole command line of a node; `taps` are open descriptors, one a rail; `kernel_arguments` come after our own.

    With a state, QEMU waits to be given it, and the rails' NICs are to be plugged in then (`rail_devices`).
    """
    arguments = [
        *_board(node, folder, image, kernel_arguments),
        *(word for i in range(len(PCI_BUSES)) for word in _memory(i, state.memory(i) if state else None)),
        "-netdev", f"user,id=management,hostfwd=tcp:127.0.0.1:{node.ssh_port}-:22",
    ]  # fmt: skip
    for rail, descriptor in zip(node.rails, taps, strict=True):
        arguments += ["-netdev", f"tap,id=rail{rail.index},fd={descriptor}"]
    if state:
        return [*arguments, "-incoming", "defer", "-S"]
    for device in rail_devices(node):
        arguments += ["-device", ",".join([f"{device['driver']}", *(_property(*item) for item in device.items() if item[0] != "driver")])]
    return arguments


def _property(key: str, value: object) -> str:
    return f"{key}={'on' if value is True else value}"


def _board(node: Node, folder: Path, image: Image, kernel_arguments: str) -> list[str]:
    """What is the same in a machine that boots, in the template, and in a machine that starts from the template's state."""
    kernel = f"{KERNEL_ARGUMENTS.format(name=node.name, machine_id=node.machine_id)} {kernel_arguments}".strip()
    accel = "kvm" if acceleration() == "kvm" else f"tcg,tb-size={TRANSLATION_MIB}"
    # Emulated, an instruction for whole strings goes byte by byte: without them the kernel clears memory six times as fast.
    cpu = "host" if accel == "kvm" else "max,la57=off,erms=off,fsrm=off"
    arguments = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
        "-name", node.name, "-machine", "q35", "-accel", accel, "-cpu", cpu,
        "-smp", PROCESSORS, "-m", f"{MEMORY_MIB}M",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", kernel,
        "-drive", f"file={folder / 'disk.qcow2'},if=none,id=disk,cache=unsafe,discard=unmap",
        "-device", "virtio-blk-pci,drive=disk,addr=03.0",
        "-device", "virtio-rng-pci,addr=04.0",
        # Makes the kernel of a machine that starts from a state reseed its random numbers.
        "-device", "vmgenid,guid=auto",
        "-device", f"virtio-net-pci,netdev=management,mac={node.management_mac},addr=02.0,romfile=",
        "-serial", f"file:{folder / 'console.log'}",
        "-serial", f"unix:{folder / 'identity.sock'},server=on,wait=off",
        "-qmp", f"unix:{folder / 'qmp.sock'},server=on,wait=off",
        "-pidfile", str(folder / "pid"), "-daemonize",
    ]  # fmt: skip
    for i, bus in enumerate(PCI_BUSES):
        arguments += [
            "-device", f"pxb-pcie,id=pxb{i},bus_nr={bus},numa_node={i},bus=pcie.0",
            "-device", f"pcie-root-port,id=port{i},bus=pxb{i},chassis={i + 1},slot={i + 1}",
        ]  # fmt: skip
    return arguments


def _memory(i: int, file: Path | None, *, share: bool = False) -> list[str]:
    """A NUMA node and its memory: of its own, or what a file holds, shared with others until it is written or for good."""
    size_mib = MEMORY_MIB // len(PCI_BUSES)
    backend = f"memory-backend-file,mem-path={file},share={'on' if share else 'off'}" if file else "memory-backend-ram"
    return ["-object", f"{backend},id=memory{i},size={size_mib}M", "-numa", f"node,nodeid={i},cpus={i},memdev=memory{i}"]


def rail_devices(node: Node) -> list[dict[str, object]]:
    """The NICs of the rails, each by the properties of its device.

    The later functions of a device come first: a running machine looks for all of them when it gets the first one.
    """
    counts = Counter(rail.index % len(PCI_BUSES) for rail in node.rails)
    return [_rail_device(rail, counts[rail.index % len(PCI_BUSES)]) for rail in sorted(node.rails, key=_plugging_order)]


def _plugging_order(rail: Rail) -> tuple[int, int]:
    return -(rail.index // len(PCI_BUSES)), rail.index


def _rail_device(rail: Rail, functions: int) -> dict[str, object]:
    """The NIC of a rail, on a device with this many functions."""
    place = {"addr": f"00.{rail.index // len(PCI_BUSES)}", "multifunction": True} if functions > 1 else {}
    return {
        "driver": "virtio-net-pci", "id": f"nic{rail.index}", "netdev": f"rail{rail.index}", "bus": f"port{rail.index % len(PCI_BUSES)}",
        **place, "mac": rail.mac, "host_mtu": MTU_BYTES, "romfile": "",
    }  # fmt: skip


def _start_template(state: State, image: Image) -> None:
    """Power on the machine that is to be kept: its memory is in files, and its management NIC leads nowhere."""
    _overlay(state.path, image.disk, "raw")
    memory = [word for i in range(len(PCI_BUSES)) for word in _memory(i, state.memory(i), share=True)]
    board = _board(saved.TEMPLATE, state.path, image, saved.TEMPLATE_ARGUMENT)
    _power_on(saved.TEMPLATE.name, [*board, *memory, "-netdev", "hubport,id=management,hubid=0"], [])


def start(plan: Plan, node: Node, folder: Path, image: Image) -> None:
    """Power the machine on; returns when QEMU runs, long before the machine answers. The first time it starts from the state."""
    state = None if (folder / "console.log").exists() else _state(plan, image)
    (folder / "resumed").unlink(missing_ok=True)
    taps = [namespace.open_tap(plan.namespace, rail.cable) for rail in node.rails]
    try:
        _power_on(node.name, qemu_arguments(node, folder, image, taps, plan.kernel_arguments, state=state), taps)
    finally:
        for descriptor in taps:
            os.close(descriptor)
    if state:
        saved.resume(state, folder, node, rail_devices(node))
        (folder / "resumed").touch()


def _power_on(name: str, arguments: list[str], descriptors: list[int]) -> None:
    done = subprocess.run(arguments, pass_fds=descriptors, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise LabError(f"{name} does not start: {(done.stderr.strip() or 'no message from QEMU').splitlines()[-1]}")


def is_running(folder: Path) -> bool:
    return process.is_ours(folder / "pid", str(folder))


def stop(folder: Path) -> None:
    """Power the machine off, as pulling the plug does."""
    process.end(folder / "pid", str(folder))


def set_carrier(folder: Path, rail: Rail, *, up: bool) -> None:
    """Make the machine's NIC see light on its cable, or none."""
    if is_running(folder):
        with Monitor(folder / "qmp.sock") as monitor:
            monitor.execute("set_link", name=f"nic{rail.index}", up=up)


def has_booted(folder: Path) -> bool:
    """True once the serial console asks for a login, and from the start where the state had booted: SSH before that only costs time."""
    file = folder / "console.log"
    return (folder / "resumed").exists() or (file.exists() and "login:" in file.read_text(errors="replace"))
