# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `nvidia-smi -q` prints (drivers 515 to 610): everything that the driver tells of its GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi import LOST, parse_bus_id, told

_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_COUNT = re.compile(r"[0-9]{1,20}")
_WIDTH = re.compile(r"([0-9]{1,3})x?")
_MEMORY = re.compile(r"([0-9]{1,15}) MiB")
# Sections within sections; nvidia-smi has four.
_DEPTH = 8

_Path = tuple[str, ...]


@dataclass(frozen=True)
class GpuLink:
    """The PCIe link of a GPU: generations (5: 32 GT/s) and lanes. An idle GPU lowers its current generation.

    max_generation is what GPU and slot can do together; what either can do alone: device_max_generation, host_max_generation.
    """

    generation: int | None
    max_generation: int | None
    device_max_generation: int | None
    host_max_generation: int | None
    width: int | None
    max_width: int | None


@dataclass(frozen=True)
class NvidiaGpu:
    """One GPU; None for what the GPU does not tell ("N/A") and for sections that were not asked for (`-d`).

    addressing_mode: "None" | "HMM" | "ATS"; virtualization_mode: "None" | "Pass-Through" | …
    ecc_errors: by its words ("Volatile, DRAM Uncorrectable"), those that are counted. Pages are retired before Ampere, rows remapped since;
    what is pending needs a reset. fabric_state, fabric_status: of NVSwitch systems ("Completed", "Success").
    """

    bus_id: str
    name: str | None
    architecture: str | None
    uuid: str | None
    serial: str | None
    minor_number: int | None
    vbios_version: str | None
    gsp_firmware_version: str | None
    persistence_mode: bool | None
    addressing_mode: str | None
    virtualization_mode: str | None
    mig_mode: bool | None
    ecc_mode: bool | None
    ecc_errors: dict[str, int]
    retired_pages_single_bit: int | None
    retired_pages_double_bit: int | None
    retirement_pending: bool | None
    remapped_rows_correctable: int | None
    remapped_rows_uncorrectable: int | None
    remapping_pending: bool | None
    remapping_failed: bool | None
    bar1_bytes: int | None
    link: GpuLink
    reset_required: bool | None
    recovery_action: str | None
    fabric_state: str | None
    fabric_status: str | None


@dataclass(frozen=True)
class NvidiaSmi:
    """The whole of `nvidia-smi -q`. cuda_version is the newest CUDA that the driver serves."""

    driver_version: str | None
    cuda_version: str | None
    attached_gpus: int
    gpus: list[NvidiaGpu]


def parse_nvidia_smi_q(text: str) -> NvidiaSmi:
    """`nvidia-smi -q`, of one section too (`-d PAGE_RETIREMENT`).

    Raises ParseError, quoting the line, for text of another kind and for output that was cut off: fewer GPUs than are attached,
    or a last one without the sections of the others.
    """
    lines = text.splitlines()
    lost = next((line for line in lines if LOST in line), None)
    head, gpus = _sections(lines)
    attached = head.get(("Attached GPUs",), "")
    if not _COUNT.fullmatch(attached):
        raise ParseError(f"no number of attached GPUs in the output of `nvidia-smi -q`: {(lost or text)[:200]!r}")
    last = next(line for line in reversed(lines) if line.strip()).strip()
    if len(gpus) != int(attached):
        raise ParseError(f"{len(gpus)} of {attached} GPUs in the output of `nvidia-smi -q`: {(lost or last)[:200]!r}")
    if len({bus_id for bus_id, _values in gpus}) != len(gpus):
        raise ParseError(f"a GPU twice in the output of `nvidia-smi -q`, which ends {last[:200]!r}")
    if _is_cut_off([values for _bus_id, values in gpus]):
        raise ParseError(f"the last GPU in the output of `nvidia-smi -q` is not whole: {last[:200]!r}")
    return NvidiaSmi(
        driver_version=told(head.get(("KMD Version",), head.get(("Driver Version",)))),
        cuda_version=told(head.get(("CUDA UMD Version",), head.get(("CUDA Version",)))),
        attached_gpus=int(attached),
        gpus=[_gpu(bus_id, values) for bus_id, values in gpus],
    )


def _sections(lines: list[str]) -> tuple[Mapping[_Path, str], list[tuple[str, Mapping[_Path, str]]]]:
    """What stands above the GPUs, and each GPU's bus id and values by the names of their sections, outermost first."""
    head: dict[_Path, str] = {}
    gpus: list[tuple[str, Mapping[_Path, str]]] = []
    outer: list[tuple[int, str]] = []
    values = head
    for line in filter(str.strip, lines):
        name, value = _split(line.strip())
        indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        while outer and outer[-1][0] >= indent:
            outer.pop()
        gpu = _GPU.fullmatch(name)
        if gpu:
            values, outer = {}, []
            gpus.append((parse_bus_id(gpu.group(1)), values))
        elif value is not None:
            values.setdefault((name,) if values is head else (*(section for _indent, section in outer), name), value)
        elif len(outer) < _DEPTH:
            outer.append((indent, name))
    return head, gpus


def _split(line: str) -> tuple[str, str | None]:
    """The name of a value and what is told of it, or the title of a section."""
    name, colon, value = line.partition(":")
    return (name.strip(), value.strip()) if colon and value[:1] in ("", " ", "\t") else (line, None)


def _is_cut_off(gpus: list[Mapping[_Path, str]]) -> bool:
    """Whether the last GPU ends earlier than the first one: a driver has the same sections for all. Not all have MIG devices."""
    if not gpus:
        return False
    first, last = ([name for name in dict.fromkeys(path[0] for path in gpu) if name != "MIG Device"] for gpu in (gpus[0], gpus[-1]))
    return len(last) < len(first) and first[: len(last)] == last


def _number(values: Mapping[_Path, str], *path: str, form: re.Pattern[str] = _COUNT) -> int | None:
    match = form.fullmatch(values.get(path, ""))
    return int(match.group(match.lastindex or 0)) if match else None


def _flag(values: Mapping[_Path, str], *path: str) -> bool | None:
    return {"Enabled": True, "Yes": True, "Disabled": False, "No": False}.get(values.get(path, ""))


def _gpu(bus_id: str, values: Mapping[_Path, str]) -> NvidiaGpu:
    bar1_mib = _number(values, "BAR1 Memory Usage", "Total", form=_MEMORY)
    return NvidiaGpu(
        bus_id=bus_id,
        name=told(values.get(("Product Name",))),
        architecture=told(values.get(("Product Architecture",))),
        uuid=told(values.get(("GPU UUID",))),
        serial=told(values.get(("Serial Number",))),
        minor_number=_number(values, "Minor Number"),
        vbios_version=told(values.get(("VBIOS Version",))),
        gsp_firmware_version=told(values.get(("GSP Firmware Version",))),
        persistence_mode=_flag(values, "Persistence Mode"),
        addressing_mode=told(values.get(("Addressing Mode",))),
        virtualization_mode=told(values.get(("GPU Virtualization Mode", "Virtualization Mode"))),
        mig_mode=_flag(values, "MIG Mode", "Current"),
        ecc_mode=_flag(values, "ECC Mode", "Current"),
        ecc_errors={
            ", ".join(path[1:]): int(value) for path, value in values.items() if path[0] == "ECC Errors" and _COUNT.fullmatch(value)
        },
        retired_pages_single_bit=_number(values, "Retired Pages", "Single Bit ECC"),
        retired_pages_double_bit=_number(values, "Retired Pages", "Double Bit ECC"),
        retirement_pending=_flag(values, "Retired Pages", "Pending Page Blacklist"),
        remapped_rows_correctable=_number(values, "Remapped Rows", "Correctable Error"),
        remapped_rows_uncorrectable=_number(values, "Remapped Rows", "Uncorrectable Error"),
        remapping_pending=_flag(values, "Remapped Rows", "Pending"),
        remapping_failed=_flag(values, "Remapped Rows", "Remapping Failure Occurred"),
        bar1_bytes=bar1_mib * 2**20 if bar1_mib is not None else None,
        link=_link(values),
        reset_required=_flag(values, "GPU Reset Status", "Reset Required"),
        recovery_action=told(values.get(("GPU Recovery Action",))),
        fabric_state=told(values.get(("Fabric", "State"))),
        fabric_status=told(values.get(("Fabric", "Status"))),
    )


def _link(values: Mapping[_Path, str]) -> GpuLink:
    generation, width = ("PCI", "GPU Link Info", "PCIe Generation"), ("PCI", "GPU Link Info", "Link Width")
    return GpuLink(
        generation=_number(values, *generation, "Current"),
        max_generation=_number(values, *generation, "Max"),
        device_max_generation=_number(values, *generation, "Device Max"),
        host_max_generation=_number(values, *generation, "Host Max"),
        width=_number(values, *width, "Current", form=_WIDTH),
        max_width=_number(values, *width, "Max", form=_WIDTH),
    )
