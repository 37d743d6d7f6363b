# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Readings of trees of /sys, and the events that their changes make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import MOST_MERGED, differences
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import KINDS, Reader, Reading, bounded
from tests.unit.builders.trees import mlx5_machine, soft_roce_machine, write_tree

NIC = "ens1f0np0"
FUNCTION = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0"
GID = "0000:0000:0000:0000:0000:ffff:0a0a:{} RoCE v2 ens1f0np0"
PORT = f"{FUNCTION}/infiniband/mlx5_0/ports/1"


def all_of(reader: Reader) -> Reading:
    quick, slow = reader.quick(), reader.slow()
    assert (quick.unread, slow.unread) == ({}, {})
    return Reading({**quick.values, **slow.values}, {}, quick.pci)


def changed(root: Path, change: str, **options: Any) -> list[dict[str, Any]]:
    """The events of a change of a tree."""
    reader = Reader(str(root), **options)
    before = all_of(reader).values
    assert differences(before, all_of(reader)) == []
    write_tree(root, change)
    return differences(before, all_of(reader))


def test_a_reading_has_every_kind(tmp_path: Path) -> None:
    reading = all_of(Reader(str(mlx5_machine(tmp_path))))
    assert set(reading.values) == set(KINDS)
    assert reading.values["gid"]["mlx5_0/1 11"] == "0000:0000:0000:0000:0000:ffff:0a0a:0102 RoCE v2 ens1f0np0"
    assert "mlx5_0/1 2" not in reading.values["gid"]
    assert reading.values["driver"]["mlx5_core"] == "24.10-1.1.4 MLX5_CORE0123"
    assert reading.values["kernel"] == {"kernel": "6.8.0-51-generic"}
    assert reading.values["carrier"] == {NIC: "up", "ens1f1np1": "down"}


@pytest.mark.parametrize(
    ("change", "kind", "of", "values"),
    [
        (f"{FUNCTION}/net/{NIC}/carrier: 0", "carrier", NIC, ("up", "no carrier")),
        (f"{FUNCTION}/net/{NIC}/mtu: 1500", "mtu", NIC, ("9000", "1500")),
        (f"{PORT}/state: 1: DOWN", "state", "mlx5_0/1", ("4: ACTIVE", "1: DOWN")),
        (f"{PORT}/rate: 100 Gb/sec (4X EDR)", "rate", "mlx5_0/1", ("200 Gb/sec (2X NDR)", "100 Gb/sec (4X EDR)")),
        ("/sys/module/nvidia/version: 1", "module", "nvidia", (None, "loaded")),
        ("/sys/module/mlx5_core/version: 25.01", "driver", "mlx5_core", ("24.10-1.1.4 MLX5_CORE0123", "25.01 MLX5_CORE0123")),
        ("/proc/sys/kernel/osrelease: 6.8.0-60-generic", "kernel", "kernel", ("6.8.0-51-generic", "6.8.0-60-generic")),
        (f"{PORT}/hw_counters/out_of_sequence: 12", "counters", "mlx5_0/1", ({"out_of_sequence": 7}, {"out_of_sequence": 12})),
        (
            f"{PORT}/gids/11: 0000:0000:0000:0000:0000:ffff:0a0a:0203",
            "gid",
            "mlx5_0/1",
            ({"11": GID.format("0102")}, {"11": GID.format("0203")}),
        ),
    ],
)
def test_a_change_is_one_event(tmp_path: Path, change: str, kind: str, of: str, values: tuple[Any, Any]) -> None:
    (event,) = changed(mlx5_machine(tmp_path), change)
    place = {"pci": "0000:3d:00.0"} if of in (NIC, "mlx5_0/1") else {}
    assert event == {"kind": kind, "of": of, "was": values[0], "now": values[1], **place}


def test_our_kernel_parameters_are_recorded_and_no_others(tmp_path: Path) -> None:
    root = write_tree(
        mlx5_machine(tmp_path),
        """
        /etc/sysctl.d/99-zz-rdma-cluster.conf: net.ipv4.conf.all.arp_ignore = 1
        /proc/sys/net/ipv4/conf/all/arp_ignore: 1
        /proc/sys/net/ipv4/conf/all/rp_filter: 2
        """,
    )
    events = changed(root, "/proc/sys/net/ipv4/conf/all/arp_ignore: 0\n/proc/sys/net/ipv4/conf/all/rp_filter: 0")
    assert events == [{"kind": "sysctl", "of": "net.ipv4.conf.all.arp_ignore", "was": "1", "now": "0"}]


def test_a_flap_between_two_readings_shows_in_its_count(tmp_path: Path) -> None:
    root = write_tree(mlx5_machine(tmp_path), f"{FUNCTION}/net/{NIC}/carrier_down_count: 3")
    (event,) = changed(root, f"{FUNCTION}/net/{NIC}/carrier_down_count: 5")
    assert (event["of"], event["was"], event["now"]) == (f"{NIC} losses", 3, 5)
    both = changed(root, f"{FUNCTION}/net/{NIC}/carrier_down_count: 6\n{FUNCTION}/net/{NIC}/carrier: 0")
    assert [event["now"] for event in both] == ["no carrier"]


def test_a_device_that_vanishes_is_one_event_without_its_counters_and_gids(tmp_path: Path) -> None:
    root = mlx5_machine(tmp_path)
    reader = Reader(str(root))
    before = all_of(reader).values
    (root / "sys/class/infiniband/mlx5_0").unlink()
    assert [(event["kind"], event["of"], event["now"]) for event in differences(before, all_of(reader))] == [
        ("device", "mlx5_0", None),
        ("firmware", "mlx5_0", None),
    ]


def test_counters_are_compared_within_a_boot_and_only_upward(tmp_path: Path) -> None:
    root = mlx5_machine(tmp_path)
    reader = Reader(str(root))
    before = all_of(reader).values
    write_tree(root, f"{PORT}/hw_counters/out_of_sequence: 3")
    assert differences(before, all_of(reader)) == []
    write_tree(root, f"{PORT}/hw_counters/out_of_sequence: 30")
    assert differences(before, all_of(reader), same_boot=False) == []
    assert len(differences(before, all_of(reader))) == 1


def test_what_could_not_be_read_is_no_change(tmp_path: Path) -> None:
    """A file that answers with an error is not a file that is gone."""
    root = mlx5_machine(tmp_path)

    def broken(_name: str) -> dict[str, int]:
        raise OSError(5, "Input/output error")

    before = all_of(Reader(str(root))).values
    reading = Reader(str(root), statistics=broken).slow()
    assert reading.unread == {"counters": "[Errno 5] Input/output error"}
    assert differences(before, reading) == []


def test_virtual_interfaces_are_recorded_only_by_name(tmp_path: Path) -> None:
    root = write_tree(soft_roce_machine(tmp_path), "/sys/class/net/veth7/carrier: 1")
    assert "veth7" not in Reader(str(root)).quick().values["carrier"]
    assert Reader(str(root), interfaces=["veth7"]).quick().values["carrier"]["veth7"] == "up"


def test_counters_of_a_driver_are_recorded_if_they_are_of_errors(tmp_path: Path) -> None:
    counts = {"rx_crc_errors_phy": 5, "rx_bytes_phy": 10**12}
    reader = Reader(str(mlx5_machine(tmp_path)), statistics=lambda _name: counts)
    before = all_of(reader).values
    counts.update(rx_crc_errors_phy=9, rx_bytes_phy=10**13)
    events = differences(before, all_of(reader))
    assert {event["of"]: event["now"] for event in events} == {name: {"rx_crc_errors_phy": 9} for name in (NIC, "ens1f1np1")}


def test_events_and_values_are_bounded() -> None:
    many = {f"mlx5_0/1 {index}": "fe80::1" for index in range(300)}
    (event,) = differences({"gid": {}}, Reading({"gid": many}))
    assert (len(event["now"]), event["more"]) == (MOST_MERGED, 300 - MOST_MERGED)
    long = bounded({"x" * 5000: "y" * 5000, **{str(number): number for number in range(50_000)}})
    assert len(long) == 20_000
    assert max(map(len, long)) == 200
