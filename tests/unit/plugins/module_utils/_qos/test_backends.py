# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking mlnx_qos or dcb."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.backends import DcbSettings, read_dcb_settings
from tests.unit.builders import dcb_texts
from tests.unit.builders.fakes import Call, Without
from tests.unit.builders.mlnx_qos_texts import DSCP, PCP, WARNING

QOS = ("mlnx_qos", "-i", "eth1")
PFC, APP = ("dcb", "-N", "-j", "pfc", "show", "dev", "eth1"), ("dcb", "-N", "-j", "app", "show", "dev", "eth1", "dscp-prio")
ETS, DCBX, BUFFER = (("dcb", "-N", "-j", kind, "show", "dev", "eth1") for kind in ("ets", "dcbx", "buffer"))
DCB: list[Call] = [(PFC, 0, dcb_texts.PFC, ""), (ETS, 0, dcb_texts.ETS, ""), (APP, 0, dcb_texts.APP, ""), (DCBX, 0, dcb_texts.DCBX, "")]
DCB_BUFFER: Call = (BUFFER, 0, dcb_texts.BUFFER, "")
BY_DCB = DcbSettings(
    backend="dcb",
    why="mlnx_qos is not installed",
    dcbx="os",
    trust="dscp",
    dscp_to_priority={26: 3, 48: 6},
    pfc=[False, False, False, True, False, False, False, False],
    priority_to_tc=[0, 0, 0, 3, 0, 0, 6, 0],
    tsa=["ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets"],
    bandwidth_percent=[50, 0, 0, 50, 0, 0, 0, 0],
    cable_length_m=7,
    priority_to_buffer=[0, 0, 0, 1, 0, 0, 0, 0],
    buffer_bytes=[130944, 262016, 0, 0, 0, 0, 0, 0],
)


def read(*calls: Call, missing: tuple[str, ...] = (), is_mlx5: bool = True) -> tuple[DcbSettings, list[str]]:
    """What is reported, and the warnings, where exactly these commands run."""
    runner, warnings = Without(missing, list(calls)), list[str]()
    settings = read_dcb_settings(runner, "eth1", warnings, is_mlx5=is_mlx5)
    assert len(runner.ran) <= 5
    return settings, warnings


def test_mlnx_qos_answers_alone() -> None:
    settings, warnings = read((QOS, 0, WARNING + DSCP, ""))

    assert settings == replace(
        BY_DCB,
        backend="mlnx_qos",
        why="it is installed and works for this interface",
        dscp_to_priority={code: code // 8 for code in range(64)} | {26: 5},
        tsa=["ets", None, None, "ets", None, None, "strict", None],
        bandwidth_percent=[50, None, None, 50, None, None, 0, None],
    )
    assert warnings == ["WARNING: lldpad service is running and may overwrite your settings"]


def test_mlnx_qos_of_an_interface_that_nobody_has_set() -> None:
    settings, _warnings = read((QOS, 0, PCP, ""))

    assert (settings.dcbx, settings.trust, settings.dscp_to_priority, settings.pfc) == ("firmware", "pcp", {}, [False] * 8)
    assert (settings.priority_to_tc, settings.bandwidth_percent) == ([1, 0, 2, 3, 4, 5, 6, 7], [0] * 8)


def test_dcb_answers_where_there_is_no_mlnx_qos() -> None:
    assert read(*DCB, DCB_BUFFER, missing=("mlnx_qos",)) == (BY_DCB, [])


def test_dcb_answers_for_other_cards_whose_delay_is_no_length() -> None:
    settings, warnings = read(*DCB, DCB_BUFFER, is_mlx5=False)

    assert settings == replace(BY_DCB, why="mlnx_qos supports only mlx5 interfaces", cable_length_m=None)
    assert warnings == []


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        ((QOS, 1, "Netlink error\n", ""), "`mlnx_qos -i eth1` fails: Netlink error"),
        ((QOS, 1, "", "Traceback\nImportError: No module named 'netlink'\n"), "`mlnx_qos -i eth1` fails: ImportError: No module named"),
        ((QOS, 0, "", ""), "no PFC in the output of mlnx_qos"),
    ],
    ids=["error", "traceback", "empty"],
)
def test_dcb_answers_without_buffers_where_mlnx_qos_fails(failed: Call, why: str) -> None:
    settings, warnings = read(failed, *DCB)

    assert settings.why.startswith(why)
    assert replace(settings, why="") == replace(BY_DCB, why="", priority_to_buffer=None, buffer_bytes=None)
    assert warnings == []


@pytest.mark.parametrize(
    ("stderr", "why"),
    [
        (dcb_texts.NO_DCB, "the driver of eth1 has no DCB (Attribute read: Operation not supported)"),
        (dcb_texts.NO_DEVICE, "`dcb -N -j pfc show dev eth1` fails: Attribute read: No such device"),
        ("", "`dcb -N -j pfc show dev eth1` fails: no output"),
    ],
)
def test_a_driver_without_dcb_is_asked_once(stderr: str, why: str) -> None:
    settings, warnings = read((PFC, 1, "\n", stderr), is_mlx5=False)

    assert (settings, warnings) == (DcbSettings(None, f"mlnx_qos supports only mlx5 interfaces; {why}"), [])


def test_a_host_without_either_tool() -> None:
    settings, warnings = read(missing=("mlnx_qos", "dcb"))

    assert (settings, warnings) == (DcbSettings(None, "mlnx_qos is not installed; dcb is not installed"), [])


def test_a_dcb_that_prints_something_else_does_not_answer() -> None:
    settings, warnings = read((PFC, 0, "prio-pfc 0:off\n", ""), is_mlx5=False)

    assert (settings.backend, warnings) == (None, [])
    assert settings.why.endswith("; not the output of `dcb -j pfc show`: 'prio-pfc 0:off\\n'")


def test_what_a_driver_or_a_version_lacks_is_none_and_no_warning() -> None:
    calls: list[Call] = [(ETS, 1, "\n", dcb_texts.LEFT_OUT), (APP, 1, "\n", 'Object "app" is unknown, try "dcb help".\n')]
    settings, warnings = read(DCB[0], *calls, (DCBX, 1, "\n", dcb_texts.UNKNOWN_OBJECT), (BUFFER, 1, "\n", dcb_texts.NO_DCB), is_mlx5=False)

    assert settings == DcbSettings("dcb", "mlnx_qos supports only mlx5 interfaces", pfc=BY_DCB.pfc)
    assert warnings == []


def test_what_fails_is_none_and_a_warning() -> None:
    refused = "Attribute read: Operation not permitted\n"
    settings, warnings = read(DCB[0], (ETS, 0, "", ""), (APP, 1, "\n", refused), DCB[3], DCB_BUFFER, is_mlx5=False)

    assert (settings.tsa, settings.trust, settings.dscp_to_priority, settings.dcbx) == (None, None, None, "os")
    assert warnings == [
        "not the output of `dcb -j ets show`: ''",
        "`dcb -N -j app show dev eth1 dscp-prio` fails: Attribute read: Operation not permitted",
    ]


def test_no_entry_is_trust_in_pcp_and_no_host_is_the_firmware() -> None:
    settings, _warnings = read(
        DCB[0], DCB[1], (APP, 0, dcb_texts.NO_APP, ""), (DCBX, 0, dcb_texts.FIRMWARE_DCBX, ""), DCB_BUFFER, is_mlx5=False
    )

    assert (settings.trust, settings.dscp_to_priority, settings.dcbx) == ("pcp", {}, "firmware")


def test_a_tool_that_hangs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(self: Without, argv: tuple[str, ...], **kwargs: float) -> None:
        raise CommandError(f"{argv[0]} did not end within 30 seconds")

    monkeypatch.setattr(Without, "run", hang)
    settings = read_dcb_settings(Without((), []), "eth1", [], is_mlx5=True)

    assert settings == DcbSettings(None, "mlnx_qos did not end within 30 seconds; dcb did not end within 30 seconds")


def test_the_share_of_a_class_that_is_not_ets_is_none_of_its_own() -> None:
    text = dcb_texts.ETS.replace('"tc_bw":[50,0,0,50,0,0,0,0]', '"tc_bw":[50,0,0,50,0,0,100,0]')
    settings, _warnings = read(DCB[0], (ETS, 0, text, ""), *DCB[2:], DCB_BUFFER, is_mlx5=False)

    assert settings.bandwidth_percent == BY_DCB.bandwidth_percent
