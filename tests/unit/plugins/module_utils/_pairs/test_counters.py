# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters of a sweep's ports, in captured trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.counters import Place, places_of, read_live, read_snapshot, risen
from tests.unit.builders.fakes import SilentPort
from tests.unit.builders.trees import mlx5_machine, write_tree

PLACES = [Place("rail0", "mlx5_0", "1"), Place("rail1", "mlx5_1", "1"), Place("rail2", "mlx5_9", "1")]
#: Error counters that both readings of the two ports have.
COUNTED = {"rail0": 3, "rail1": 0}
PORT = "/sys/class/infiniband/mlx5_0/ports/1"


class Port(SilentPort):
    """The driver of ens1f0np0 reports damaged symbols, of packets, which are no error, and maybe of more."""

    def __init__(self, symbols: int, more: dict[str, int] | None = None) -> None:
        self._statistics = {"rx_symbol_err_phy": symbols, "rx_packets": 10**6 * symbols, **(more or {})}

    def statistics(self, name: str) -> Any:
        return self._statistics if name == "ens1f0np0" else None


def snapshot(root: Path, symbols: int = 1, *, more: dict[str, int] | None = None, **files: str) -> dict[str, Any]:
    """What is kept of a machine: written to a file and read again."""
    mlx5_machine(root)
    write_tree(root, f"/proc/uptime: {files.pop('uptime', '100.00 1.0')}\n{PORT}/counters/symbol_error: 5\n")
    write_tree(root, "".join(f"{PORT}/{path.replace('__', '/')}: {content}\n" for path, content in files.items()))
    found: dict[str, Any] = json.loads(json.dumps(read_snapshot(PLACES, SysRoot(str(root)), Port(symbols, more))))
    return found


def test_what_rose_at_a_port_and_its_interface_is_reported_of_the_rail(tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    after = snapshot(tmp_path, 4, uptime="161.25 1.0", counters__symbol_error="17", hw_counters__out_of_sequence="9")
    risen_of_rail0 = {"out_of_sequence": 2, "rx_symbol_err_phy": 3, "symbol_error": 12}
    more = {"priorities": {}, "cnps": {}, "packets": {"sent": None, "received": None}, "uncounted": []}
    found = risen(PLACES, before, after)
    assert {rail: each.pop("counted") for rail, each in found.items()} == COUNTED
    assert found == {
        "rail0": {"seconds": 61.25, "risen": risen_of_rail0, "netdev": "ens1f0np0", **more},
        "rail1": {"seconds": 61.25, "risen": {}, "netdev": "ens1f1np1", **more},
    }


def test_packets_are_counted_and_a_counter_that_was_cleared_or_is_full_is_named(tmp_path: Path) -> None:
    packets = {"counters__port_xmit_packets": "100", "counters__port_rcv_packets": "90"}
    before = snapshot(tmp_path, 5, **packets, counters__link_downed="255", hw_counters__out_of_sequence="7")
    moved = {"counters__port_xmit_packets": "350", "counters__port_rcv_packets": "80"}
    after = snapshot(tmp_path, 2, uptime="161.25 1.0", **moved, counters__link_downed="255", hw_counters__out_of_sequence="3")
    found = risen(PLACES, before, after)["rail0"]
    assert found["packets"] == {"sent": 250, "received": None}
    # Cleared in the port, cleared in the driver, and at its maximum of 8 bits.
    assert found["uncounted"] == ["link_downed", "out_of_sequence", "rx_symbol_err_phy"]
    assert found["risen"] == {}


def test_counters_of_an_interface_that_cannot_be_compared_are_named(tmp_path: Path) -> None:
    before, after = snapshot(tmp_path), snapshot(tmp_path, uptime="161.25 1.0")
    before["netdevs"]["ens1f0np0"]["mac"] = "another"
    assert "rx_symbol_err_phy" in risen(PLACES, before, after)["rail0"]["uncounted"]


def test_the_packets_of_rxe_have_other_names(tmp_path: Path) -> None:
    before = snapshot(tmp_path, hw_counters__sent_pkts="5", hw_counters__rcvd_pkts="6")
    after = snapshot(tmp_path, uptime="161.25 1.0", hw_counters__sent_pkts="15", hw_counters__rcvd_pkts="36")
    assert risen(PLACES, before, after)["rail0"]["packets"] == {"sent": 10, "received": 30}


def mlx5(priority: int, **counted: int) -> dict[str, int]:
    """Statistics of a priority under mlx5's names (en_stats.c of Linux 6.18)."""
    return {f"{name.partition('_')[0]}_prio{priority}_{name.partition('_')[2]}": value for name, value in counted.items()}


def test_what_was_counted_in_each_priority_is_reported_and_what_the_driver_does_not_report_is_none(tmp_path: Path) -> None:
    still = mlx5(0, rx_bytes=5, tx_bytes=6)
    before = snapshot(tmp_path, more={**still, **mlx5(3, rx_bytes=100, tx_bytes=200, rx_pause=0, tx_pause=1, rx_discards=2)})
    now = mlx5(3, rx_bytes=1100, tx_bytes=2200, rx_pause=0, tx_pause=8, rx_discards=2)
    after = snapshot(tmp_path, uptime="161.25 1.0", more={**still, **now})
    none = dict.fromkeys(("rx_pause", "tx_pause", "rx_discards", "rx_buffer_discards", "rx_congestion_discards"))
    assert risen(PLACES, before, after)["rail0"]["priorities"] == {
        "0": {**none, "rx_bytes": 0, "tx_bytes": 0},
        "3": {**none, "rx_bytes": 1000, "tx_bytes": 2000, "rx_pause": 0, "tx_pause": 7, "rx_discards": 0},
    }


def test_a_counter_that_went_down_or_came_late_is_not_reported(tmp_path: Path) -> None:
    before = snapshot(tmp_path, more=mlx5(3, rx_bytes=100, tx_bytes=200))
    after = snapshot(tmp_path, uptime="161.25 1.0", more=mlx5(3, rx_bytes=99, tx_bytes=250, rx_pause=4))
    reported = risen(PLACES, before, after)["rail0"]["priorities"]["3"]
    assert (reported["rx_bytes"], reported["tx_bytes"], reported["rx_pause"]) == (None, 50, None)


def test_an_interface_that_cannot_be_compared_has_no_priorities_and_neither_has_a_snapshot_of_an_earlier_version(tmp_path: Path) -> None:
    more = mlx5(3, rx_bytes=1)
    before, after = snapshot(tmp_path, more=more), snapshot(tmp_path, uptime="161.25 1.0", more=more)
    assert risen(PLACES, before, after)["rail0"]["priorities"]
    earlier = before["netdevs"]["ens1f0np0"]
    before["netdevs"]["ens1f0np0"] = {**earlier, "mac": "another"}
    assert risen(PLACES, before, after)["rail0"]["priorities"] is None
    before["netdevs"]["ens1f0np0"] = {name: value for name, value in earlier.items() if name != "priorities"}
    assert risen(PLACES, before, after)["rail0"]["priorities"] is None


def test_congestion_notifications_are_reported_and_are_no_errors(tmp_path: Path) -> None:
    before = snapshot(tmp_path, hw_counters__np_cnp_sent="3", hw_counters__rp_cnp_handled="0")
    after = snapshot(tmp_path, uptime="161.25 1.0", hw_counters__np_cnp_sent="10", hw_counters__rp_cnp_handled="0")
    found = risen(PLACES, before, after)["rail0"]
    assert (found["cnps"], found["risen"]) == ({"np_cnp_sent": 7, "rp_cnp_handled": 0}, {})


def test_two_rails_of_one_port_are_both_reported_of_it(tmp_path: Path) -> None:
    places = [Place("rail0", "mlx5_0", "1"), Place("rail9", "mlx5_0", "1")]
    before, after = snapshot(tmp_path, more=mlx5(3, rx_bytes=1)), snapshot(tmp_path, uptime="161.25 1.0", more=mlx5(3, rx_bytes=5))
    found = risen(places, before, after)
    assert found["rail0"] == found["rail9"]
    assert found["rail9"]["priorities"]["3"]["rx_bytes"] == 4


def test_only_what_the_sweep_uses_is_kept(tmp_path: Path) -> None:
    mlx5_machine(tmp_path)
    kept = read_snapshot(PLACES[:1], SysRoot(str(tmp_path)), Port(1))
    assert (list(kept["devices"]), list(kept["netdevs"])) == (["mlx5_0"], ["ens1f0np0"])
    assert kept["devices"]["mlx5_0"]["ports"]["1"]["counters"] == {"out_of_sequence": 7}
    assert kept["netdevs"]["ens1f0np0"]["ethtool"]["counters"] == {"rx_symbol_err_phy": 1}


def test_another_boot_or_another_card_cannot_be_compared(tmp_path: Path) -> None:
    before, after = snapshot(tmp_path), snapshot(tmp_path, uptime="200.0 1.0")
    assert risen(PLACES, before, after)
    assert risen(PLACES, {**before, "boot": {**before["boot"], "boot_id": "another"}}, after) == {}
    after["devices"]["mlx5_0"]["node_guid"] = "another"
    assert list(risen(PLACES, before, after)) == ["rail1"]


def test_a_host_without_these_devices_has_no_counters(tmp_path: Path) -> None:
    write_tree(tmp_path, "/proc/uptime: 1.0 1.0\n")
    kept = read_snapshot(PLACES, SysRoot(str(tmp_path)), SilentPort())
    assert (kept["devices"], kept["netdevs"], risen(PLACES, kept, kept)) == ({}, {}, {})


def test_the_running_system_is_read_unless_requested_otherwise() -> None:
    assert read_live([])["boot"]["boot_id"] == SysRoot().text("/proc/sys/kernel/random/boot_id")


PLAN = {
    "hosts": ["node1", "node2"],
    "profiles": [{"device": "mlx5_0", "port": 1}, {"device": "mlx5_4", "port": 2}],
    "rails": [{"name": "rail0", "profiles": [0, 1]}, {"name": "rail1", "profiles": [1, None]}],
}


@pytest.mark.parametrize(
    ("host", "expected"),
    [("node1", [Place("rail0", "mlx5_0", "1"), Place("rail1", "mlx5_4", "2")]), ("node2", [Place("rail0", "mlx5_4", "2")])],
)
def test_the_places_of_a_host(host: str, expected: list[Place]) -> None:
    assert places_of(PLAN, host) == expected


@pytest.mark.parametrize("changes", [{"hosts": []}, {"rails": None}, {"profiles": []}, {"rails": [{"name": "rail0", "profiles": []}]}])
def test_a_plan_that_does_not_say_where_a_host_is(changes: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match="the plan does not say where node1 is"):
        places_of({**PLAN, **changes}, "node1")
