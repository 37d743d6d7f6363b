# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that are files. The trees are written after the drivers' sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import (
    NP_PARAMETERS,
    RP_PARAMETERS,
    Careful,
    Places,
    RdmaCm,
    find_places,
    parse_number,
    parse_traffic_class,
    parse_trust,
    read_rdma_cm,
    read_switches,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import parse_mode
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree

PCI = "0000:3d:00.0"
ECN, PARAMS = "/sys/class/net/eth1/ecn", f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
RULES = "Global tclass=106\ntclass=96\tsrc_ip=10.0.0.1\n"


def careful(root: Path) -> Careful:
    return Careful(SysRoot(str(root)))


def test_ofed_s_driver_has_them_in_sysfs(tmp_path: Path) -> None:
    tree = "\n".join(f"{ECN}/roce_{side}/enable/{number}: {number % 2}" for side in ("np", "rp") for number in range(8))
    reader = careful(write_tree(tmp_path, f"{tree}\n{ECN}/roce_np/cnp_dscp: 48\n{ECN}/roce_rp/rpg_gd: 11\n{PARAMS}/np_cnp_dscp: 1"))

    places = find_places(reader, "eth1", PCI)

    assert (places.source, places.np, places.rp) == (
        "sysfs",
        {"cnp_dscp": f"{ECN}/roce_np/cnp_dscp"},
        {"rpg_gd": f"{ECN}/roce_rp/rpg_gd"},
    )
    assert reader.numbers(places.np) == {"cnp_dscp": 48}
    assert read_switches(reader, places.enable_np) == [False, True] * 4
    assert reader.warnings == []


def test_the_kernel_s_own_has_them_in_debugfs_by_names_of_its_own(tmp_path: Path) -> None:
    reader = careful(write_tree(tmp_path, f"{PARAMS}/np_cnp_prio: 6\n{PARAMS}/rp_clamp_tgt_rate_ati: 1\n{PARAMS}/rtt_resp_dscp: 0"))

    places = find_places(reader, "eth1", PCI)

    assert (reader.numbers(places.np), reader.numbers(places.rp)) == ({"cnp_802p_prio": 6}, {"clamp_tgt_rate_after_time_inc": 1})
    assert (places.source, read_switches(reader, places.enable_rp)) == ("debugfs", None)


@pytest.mark.parametrize("pci", [None, "0000:3e:00.0"])
def test_others_have_none(tmp_path: Path, pci: str | None) -> None:
    assert find_places(careful(write_tree(tmp_path, f"{PARAMS}/np_cnp_prio: 6")), "eth1", pci) == Places(None, {}, {}, [], [])


def test_a_switch_that_does_not_report_leaves_all_unknown(tmp_path: Path) -> None:
    reader = careful(write_tree(tmp_path, "\n".join(f"{ECN}/roce_np/enable/{number}: 1" for number in range(7))))

    assert read_switches(reader, find_places(reader, "eth1", None).enable_np) is None


def test_a_kernel_that_is_locked_down_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(f"{PARAMS}/{name}: 1" for name in (*NP_PARAMETERS.values(), *RP_PARAMETERS.values()))
    reader = careful(write_tree(tmp_path, text))
    places = find_places(reader, "eth1", PCI)

    def refuse(sys: SysRoot, path: str) -> bytes | None:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(SysRoot, "read_bytes", refuse)
    assert (reader.numbers(places.np), reader.numbers(places.rp)) == ({}, {})
    assert [warning.partition("'")[2] for warning in reader.warnings] == [
        f"{PARAMS}/np_min_time_between_cnps' (and 2 more beside it)",
        f"{PARAMS}/rp_clamp_tgt_rate' (and 15 more beside it)",
    ]


def test_a_file_that_makes_no_sense_is_reported_with_its_path(tmp_path: Path) -> None:
    reader = careful(write_tree(tmp_path, f"{PARAMS}/np_cnp_dscp: forty-eight"))

    assert reader.numbers({"cnp_dscp": f"{PARAMS}/np_cnp_dscp"}) == {}
    assert reader.warnings == [f"{PARAMS}/np_cnp_dscp: not a number: 'forty-eight'"]


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        ("", None),
        ("/sys/kernel/config/rdma_cm/mlx5_0/ports/2/default_roce_tos: 106", None),
        ("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode: RoCE v2", RdmaCm("RoCE v2", None)),
        (
            "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode: IB/RoCE v1\n"
            "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos: 0",
            RdmaCm("IB/RoCE v1", 0),
        ),
    ],
    ids=["nobody has asked", "another port", "Linux 4.10", "reported"],
)
def test_rdma_cm(tmp_path: Path, tree: str, found: RdmaCm | None) -> None:
    before = sorted(write_tree(tmp_path, tree).rglob("*"))

    assert read_rdma_cm(careful(tmp_path), "mlx5_0", "1") == found
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "value"),
    [("Global tclass=106\n", 106), (RULES, 106), ("Global tclass=0\n", 0), ("tclass=96\tsrc_ip=10.0.0.1\n", None)],
)
def test_a_traffic_class(text: str, value: int | None) -> None:
    assert parse_traffic_class(text) == value


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_traffic_class, "Global tclass=-1"),
        (parse_trust, "none"),
        (parse_mode, "RoCE v3"),
        (parse_number, "-1"),
        (parse_number, ""),
    ],
)
def test_another_form_is_refused(parser: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ParseError):
        parser(text)


@given(data=st.data())
@pytest.mark.parametrize(
    ("parser", "text"),
    [(parse_traffic_class, RULES), (parse_trust, "dscp\n"), (parse_mode, "IB/RoCE v1\n"), (parse_number, "32767\n")],
    ids=["traffic class", "trust", "mode", "number"],
)
def test_damaged_files_are_read_or_refused(parser: Callable[[str], Any], text: str, data: st.DataObject) -> None:
    assert read_or_refused(parser, data.draw(garbled(text)))
