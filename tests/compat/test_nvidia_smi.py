# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi of real machines, read where it lies; skipped where it is not. The values were read in the captures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi import (
    ListedGpu,
    parse_nvidia_smi_list,
    parse_nvidia_smi_query_csv,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi_q import GpuLink, NvidiaGpu, NvidiaSmi, parse_nvidia_smi_q

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "nvidia-smi"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


NO_LINK = GpuLink(None, None, None, None, None, None)
NOTHING = NvidiaGpu(
    bus_id="",
    name=None,
    architecture=None,
    uuid=None,
    serial=None,
    minor_number=None,
    vbios_version=None,
    gsp_firmware_version=None,
    persistence_mode=None,
    addressing_mode=None,
    virtualization_mode=None,
    mig_mode=None,
    ecc_mode=None,
    ecc_errors={},
    retired_pages_single_bit=None,
    retired_pages_double_bit=None,
    retirement_pending=None,
    remapped_rows_correctable=None,
    remapped_rows_uncorrectable=None,
    remapping_pending=None,
    remapping_failed=None,
    bar1_bytes=None,
    link=NO_LINK,
    reset_required=None,
    recovery_action=None,
    fabric_state=None,
    fabric_status=None,
)
A10 = replace(
    NOTHING,
    bus_id="0000:07:00.0",
    name="NVIDIA A10",
    architecture="Ampere",
    uuid="GPU-73d12ef7-f589-f867-4259-c7090ab44736",
    serial="1324521052681",
    minor_number=0,
    vbios_version="94.02.5C.00.04",
    gsp_firmware_version="535.129.03",
    persistence_mode=True,
    addressing_mode="None",
    virtualization_mode="Pass-Through",
    ecc_mode=True,
    ecc_errors={
        f"{since}, {memory} {kind}": 0
        for since in ("Volatile", "Aggregate")
        for memory in ("SRAM", "DRAM")
        for kind in ("Correctable", "Uncorrectable")
    },
    remapped_rows_correctable=0,
    remapped_rows_uncorrectable=4,
    remapping_pending=True,
    remapping_failed=False,
    bar1_bytes=32 * 2**30,
    link=GpuLink(generation=4, max_generation=4, device_max_generation=4, host_max_generation=None, width=16, max_width=16),
    reset_required=False,
)
TITAN = replace(
    NOTHING,
    bus_id="0000:01:00.0",
    name="NVIDIA TITAN V",
    architecture="Volta",
    uuid="GPU-f4c353ff-b56c-c1de-bcb9-7dad861b589a",
    serial="0334517001520",
    minor_number=0,
    vbios_version="88.00.36.00.01",
    persistence_mode=False,
    virtualization_mode="None",
    bar1_bytes=256 * 2**20,
    link=GpuLink(generation=1, max_generation=3, device_max_generation=3, host_max_generation=3, width=16, max_width=16),
    reset_required=False,
)
RTX4090 = replace(
    NOTHING,
    name="NVIDIA GeForce RTX 4090",
    architecture="Ada Lovelace",
    vbios_version="95.02.18.C0.09",
    persistence_mode=True,
    addressing_mode="None",
    virtualization_mode="None",
    ecc_mode=False,
    remapped_rows_correctable=0,
    remapped_rows_uncorrectable=0,
    remapping_pending=False,
    remapping_failed=False,
    bar1_bytes=256 * 2**20,
    reset_required=False,
)
H100 = replace(
    RTX4090,
    name="NVIDIA H100 80GB HBM3",
    architecture="Hopper",
    vbios_version="96.00.74.00.0D",
    gsp_firmware_version="535.161.08",
    mig_mode=False,
    ecc_mode=True,
    ecc_errors=dict.fromkeys(
        [
            "Volatile, SRAM Correctable",
            "Volatile, SRAM Uncorrectable Parity",
            "Volatile, SRAM Uncorrectable SEC-DED",
            "Volatile, DRAM Correctable",
            "Volatile, DRAM Uncorrectable",
            "Aggregate, SRAM Correctable",
            "Aggregate, SRAM Uncorrectable Parity",
            "Aggregate, SRAM Uncorrectable SEC-DED",
            "Aggregate, DRAM Correctable",
            "Aggregate, DRAM Uncorrectable",
            "Aggregate Uncorrectable SRAM Sources, SRAM L2",
            "Aggregate Uncorrectable SRAM Sources, SRAM SM",
            "Aggregate Uncorrectable SRAM Sources, SRAM Microcontroller",
            "Aggregate Uncorrectable SRAM Sources, SRAM PCIE",
            "Aggregate Uncorrectable SRAM Sources, SRAM Other",
        ],
        0,
    ),
    bar1_bytes=128 * 2**30,
    link=GpuLink(5, 5, 5, 5, 16, 16),
    fabric_state="Completed",
    fabric_status="Success",
)


def rtx4090s(host_generation: int, rows: str, vbios: str = "95.02.18.C0.09") -> list[NvidiaGpu]:
    """A row: bus, minor number, current generation, UUID."""
    gpus = []
    for row in rows.strip().splitlines():
        bus, minor, generation, uuid = row.split()
        link = GpuLink(int(generation), 4, 4, host_generation, 16, 16)
        gpu = replace(RTX4090, bus_id=f"0000:{bus}:00.0", minor_number=int(minor), uuid=f"GPU-{uuid}", link=link, vbios_version=vbios)
        gpus.append(gpu)
    return gpus


def h100s(rows: str) -> list[NvidiaGpu]:
    """A row: bus, serial number, UUID."""
    gpus = []
    for minor, row in enumerate(rows.strip().splitlines()):
        bus, serial, uuid = row.split()
        gpus.append(replace(H100, bus_id=f"0000:{bus}:00.0", minor_number=minor, serial=serial, uuid=f"GPU-{uuid}"))
    return gpus


def retired(number: int, single_bit: int, double_bit: int, *, pending: bool) -> NvidiaGpu:
    return replace(
        NOTHING,
        bus_id=f"{number:04x}:00:00.0",
        retired_pages_single_bit=single_bit,
        retired_pages_double_bit=double_bit,
        retirement_pending=pending,
    )


BUSY = """
01 3 1 370465f5-30e0-6877-b85c-16729f41b90f
23 2 4 8f4d1755-9c8a-3a19-b71e-c190b3801dec
41 1 1 2824147b-f0cc-0462-ce13-25cc09ad5f25
61 0 1 4387c558-c1f1-5370-3c65-e0135e9803f2
81 7 4 ad8f4544-e918-708f-cab7-69d179ebdd8a
a1 6 1 ff7fd1e7-6ad3-a7f7-30fc-d7d0bda6b911
c1 5 1 5dbe62cf-84b6-cfcb-1bc6-dc3c28b4fe25
e1 4 1 839379d5-33cc-2fae-2c64-a782cd63010e
"""
QUERIES = {
    "gpud-nvidia-smi-query.535.129.03.out.0.valid.a10.txt": NvidiaSmi("535.129.03", "12.2", 1, [A10]),
    "gpud-nvidia-smi-query.535.154.05.out.0.valid.4090.txt": NvidiaSmi(
        "535.154.05",
        "12.2",
        8,
        rtx4090s(
            5,
            """
            01 2 1 988008fc-0059-17f4-9001-0ab4143e0e63
            21 3 1 8a088451-845e-a9c1-07e1-c1e926f452f3
            41 1 1 f71df46d-7f71-ba7d-236f-4dc37ee27f74
            61 0 1 0f6b9cca-9bf0-6917-6381-7b2a5238664d
            81 6 1 228019e0-1924-11e3-0be8-13175614bea4
            a1 7 1 981e6212-2f59-0a5c-39c5-163c04f04e3f
            c1 5 1 457a5c04-0848-b074-549f-4294f3cfce65
            e1 4 1 78289b93-0248-1915-dc72-4427058400fa
            """,
            vbios="95.02.3C.00.02",
        ),
    ),
    "gpud-nvidia-smi-query.535.154.05.out.0.valid.txt": NvidiaSmi(
        "535.154.05",
        "12.2",
        8,
        rtx4090s(
            4,
            """
            01 3 4 313bbff0-b0a0-fd26-4820-0578bdef3a12
            23 2 4 1a287db8-89a4-4cd7-5933-ae53d0c4d4ad
            41 1 4 a4f36154-6f3f-303f-e098-dec1632fd43f
            61 0 4 025f6884-1162-3032-9aab-14e0d5622783
            81 7 1 751d1667-9d35-b4ef-90cf-a7bdff6aa964
            a1 6 1 63cdf48e-0e17-dc82-873d-e0af7f380d0b
            c1 5 4 52688fe6-e746-6dec-48ea-96cd464a0db1
            e1 4 1 94f6cd0f-cb66-91a9-a3b0-7253e9f9a0ba
            """,
        ),
    ),
    "gpud-nvidia-smi-query.535.154.05.out.1.valid.txt": NvidiaSmi("535.154.05", "12.2", 8, rtx4090s(4, BUSY)),
    "gpud-nvidia-smi-query.535.154.05.out.2.valid.txt": NvidiaSmi("535.154.05", "12.2", 8, rtx4090s(4, BUSY)),
    "gpud-nvidia-smi-query.535.161.08.out.0.valid.txt": NvidiaSmi(
        "535.161.08",
        "12.2",
        8,
        h100s("""
        19 1650124031592 ee7954ec-da95-fd7a-ddfd-c6b32cc2f8aa
        3b 1650124008135 47daa2ad-a218-6286-252b-af45f0dfaf00
        4c 1650124047722 167d8376-ee13-fca4-938a-a05167c43cdc
        5d 1650124032506 afe9f2ed-9dd0-572c-3cd8-b42b58b3bc99
        9b 1650124030635 2b6f61f9-8b00-3b57-d912-b62792120662
        bb 1650124048576 980ea11b-91dc-db7b-72ac-0685abc43658
        cb 1650124047010 4ef109e9-e925-4834-2b85-0771b4ef696c
        db 1650124007084 b0fe4996-1f7c-91f6-0ccd-08ae3b7e23c5
        """),
    ),
    "gpud-nvidia-smi-query.560.35.03.out.0.valid.txt": NvidiaSmi("560.35.03", "12.6", 1, [TITAN]),
    # -d PAGE_RETIREMENT: whole, and of one section
    "azhc-bad_nvsmi8.txt": NvidiaSmi(
        "535.86.10",
        "12.2",
        8,
        [
            retired(1, 60, 5, pending=False),
            retired(2, 2, 61, pending=True),
            retired(3, 0, 0, pending=False),
            retired(4, 6, 0, pending=True),
            retired(5, 0, 0, pending=False),
            retired(6, 20, 45, pending=True),
            retired(7, 0, 0, pending=False),
            retired(8, 8, 56, pending=True),
        ],
    ),
}
LISTS = {
    "insights-nvidia_smi_l_input_1.txt": [
        ListedGpu(0, "NVIDIA A100-PCIE-40GB", "GPU-63110aaa-3561-c8f5-e125-4ab40bbcf838", []),
        ListedGpu(1, "NVIDIA A100-PCIE-40GB", "GPU-c9bd25dc-c0c4-3ab6-8f7f-3ad16d6bde4a", []),
    ],
    "insights-nvidia_smi_l_input_3.txt": [
        ListedGpu(0, "Quadro RTX 8000", "GPU-6b201039-6477-dd9c-1edd-137c8c44f8d6", []),
        ListedGpu(1, "Quadro RTX 8000", "GPU-dbd81806-9040-9cc3-9eb9-87684fa2b7a4", []),
        ListedGpu(2, "Quadro RTX 8000", "GPU-b4524d9e-858d-1050-1b4d-4fe0c94e8ea8", []),
        ListedGpu(3, "Quadro RTX 8000", "GPU-51c72de5-fdc2-94b1-59e6-a12d4e961695", []),
        ListedGpu(4, "Quadro RTX 8000", "GPU-bf443bbf-8598-8e63-e10c-e23ca737da84", []),
        ListedGpu(5, "Quadro RTX 8000", "GPU-b20d26a5-5f6f-5c96-9d2e-ba6bfbb5d9a0", []),
        ListedGpu(6, "Quadro RTX 8000", "GPU-5a497672-18a9-95c7-5b61-74353dd9c9cb", []),
        ListedGpu(7, "Quadro RTX 8000", "GPU-9f690c37-bb84-1e1a-1e4a-3dbfd1b1015c", []),
    ],
}
CUT_OFF = "gpud-nvidia-smi-query.535.183.01.out.0.invalid.txt"
WITH_A_GAP = "insights-nvidia_smi_l_unparsable_2.txt"
#: `nvidia-smi nvlink --status` prints the list of GPUs with the links of each below it.
NVLINK = "gpud-nvidia-smi.nvlink.status.a100.txt"
#: The table of `nvidia-smi` alone, and `nvidia-smi -q -x`.
OTHERS = [
    "gpud-nvidia-smi.550.90.07.out.0.valid.txt",
    "telegraf-rtx-3080-v13.xml",
    "telegraf-rtx-3090-v12.xml",
    "telegraf-rtx-4000-sff-ada-v13.xml",
    "telegraf-tesla-t4.xml",
]
EVERY = sorted([*QUERIES, *LISTS, CUT_OFF, WITH_A_GAP, NVLINK, *OTHERS])


@pytest.mark.parametrize("name", QUERIES)
def test_queries(name: str) -> None:
    assert parse_nvidia_smi_q(capture(name)) == QUERIES[name]


@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str) -> None:
    assert parse_nvidia_smi_list(capture(name)) == LISTS[name]


def test_a_query_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ParseError, match=r"1 of 8 GPUs .*Display Clock Setting"):
        parse_nvidia_smi_q(capture(CUT_OFF))


def test_a_list_with_a_gap_is_refused() -> None:
    with pytest.raises(ParseError, match=r"not GPU 1 .*GPU 2: NVIDIA A100-PCIE-40GB"):
        parse_nvidia_smi_list(capture(WITH_A_GAP))


def test_the_gpus_of_a_list_of_links() -> None:
    gpus = parse_nvidia_smi_list(capture(NVLINK))
    assert {(gpu.name, *gpu.mig_uuids) for gpu in gpus} == {("NVIDIA A100-SXM4-80GB",)}
    assert len(gpus) == 8
    assert gpus[2].uuid == "GPU-483e6bb6-bb11-8916-e22f-d1d69abbafaa"


@pytest.mark.parametrize("name", EVERY)
def test_no_parser_takes_another_form_for_its_own(name: str) -> None:
    text = capture(name)
    refusing: list[Callable[[str], object]] = [parse_nvidia_smi_query_csv]
    refusing += [parse_nvidia_smi_q] if name not in QUERIES else []
    refusing += [parse_nvidia_smi_list] if name not in LISTS and name != NVLINK else []
    for parse in refusing:
        with pytest.raises(ParseError):
            parse(text)


def test_no_capture_is_left_out() -> None:
    assert sorted(path.name for path in CAPTURES.iterdir()) == EVERY
