# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collector on trees of recorded machines, its output checked by Prometheus' own parser (promtool)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._metrics import collect as collector
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.catalogue import METRICS
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.collect import Host, collect
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import RESERVED, Config, bad_labels, parse_config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import Gate, HostResults
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import DriverInfo
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import CONFIG, write_plan
from tests.unit.builders.fakes import FakeRunner, SilentPort
from tests.unit.builders.qos_hosts import profile
from tests.unit.builders.qos_nic import ALL, NAME, TREE, Dcb, Nic
from tests.unit.builders.trees import mlx5_machine, write_tree

SAMPLE = re.compile(r'([a-z][a-z0-9_]*)\{((?:[a-z_]+="[^"\n]*",?)*)\} (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="([^"]*)"')
PORT = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0/infiniband/mlx5_0/ports/1"
RAILS: list[dict[str, Any]] = [
    {"name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "link_layer": "roce", "rate_gbps": 400.0, "address": "192.168.100.1/24"},
    {"name": "rail1", "nic": {"pci": "0000:3d:00.1"}, "link_layer": "roce", "rate_gbps": None, "address": None},
]
STATISTICS = {
    **{f"rx_prio{priority}_bytes": 1000 + priority for priority in range(8)},
    **{f"tx_prio{priority}_bytes": 2000 + priority for priority in range(8)},
    "rx_prio3_pause": 5,
    "rx_prio3_pause_duration": 2_500_000,
    "tx_prio3_pause": 0,
    "tx_prio3_pause_duration": 0,
    "rx_prio0_discards": 0,
    "rx_prio5_buf_discard": 7,
    "rx_vport_rdma_unicast_bytes": 9,
}


class Driver(SilentPort):
    """A driver that counts priorities, as mlx5 does. failing: the requests that it refuses."""

    def __init__(self, **failing: str) -> None:
        self.failing = failing

    def drvinfo(self, name: str) -> DriverInfo:  # type: ignore[override]
        return DriverInfo("mlx5_core", "6.8", "28.41.1000", "0000:3d:00.0", None, {})

    def statistics(self, name: str) -> dict[str, int] | None:  # type: ignore[override]
        return None if "statistics" in self.failing else STATISTICS

    def failed(self, name: str) -> dict[str, str]:
        return self.failing


def config(rails: list[dict[str, Any]] | None = None, **how: Any) -> Config:
    return Config(
        **{
            "host": "node1",
            "labels": {"cluster": "a"},
            "folder": "/var/lib/prometheus/node-exporter",
            "hw_counters": True,
            "rails": RAILS if rails is None else rails,
            "results": HostResults({"link": Gate("error", 1.5)}, {"link.state": {"error": 2}}, {"rail0": 1000.0}, {}),
            **how,
        }
    )


def host(root: Path, **readers: Any) -> Host:
    return Host(**{"sys": SysRoot(str(root)), "runner": FakeRunner([]), "ethtool": SilentPort(), "now": lambda: 1795312345.25, **readers})


def read(text: str) -> dict[str, dict[str, float]]:
    """Family → labels but host and cluster → value. Refuses what is not in the catalogue, and a series that is there twice."""
    found: dict[str, dict[str, float]] = {}
    for line in filter(lambda line: not line.startswith("#"), text.splitlines()):
        match = SAMPLE.fullmatch(line)
        assert match, line
        labels = dict(LABEL.findall(match[2]))
        assert (labels.pop("host"), labels.pop("cluster")) == ("node1", "a")
        of = found.setdefault(match[1], {})
        key = ",".join(f"{name}={value}" for name, value in labels.items())
        assert key not in of, line
        of[key] = float(match[3])
    assert found.keys() <= {metric.name for metric in METRICS}
    return found


def promtool(text: str) -> None:
    tool = shutil.which("promtool")
    assert tool, "install the packages of tests/packages.txt"
    done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ports_rates_counters_and_results(tmp_path: Path) -> None:
    text = collect(config(), host(mlx5_machine(tmp_path)))
    found = read(text)
    promtool(text)
    assert found["rdma_port_up"] == {"rail=rail0": 1.0, "rail=rail1": 0.0}
    assert found["rdma_port_rate_bytes_per_second"]["rail=rail0"] == 25e9
    assert found["rdma_port_expected_rate_bytes_per_second"] == {"rail=rail0": 50e9}
    assert found["rdma_port_hw_out_of_sequence_total"] == {"rail=rail0": 7.0}
    assert "rdma_port_hw_lifespan_total" not in found
    assert found["rdma_cluster_gate"]["stage=link,status=error"] == 1.0
    assert found["rdma_cluster_findings"] == {"check=link.state,status=error": 2.0}
    assert found["rdma_cluster_proof_time_seconds"] == {"rail=rail0": 1000.0}
    assert found["rdma_cluster_drift"] == {"stage=": 0.0}
    assert found["rdma_scrape_time_seconds"] == {"": 1795312345.25}
    assert set(found["rdma_scrape_error"].values()) == {0.0}


def test_an_unplanned_or_missing_nic_is_down(tmp_path: Path) -> None:
    missing = [{**RAILS[0], "nic": {"mac": "02:00:00:00:00:99"}}]
    found = read(collect(config(missing), host(mlx5_machine(tmp_path))))
    assert found["rdma_port_up"] == {"rail=rail0": 0.0}
    assert "rdma_port_rate_bytes_per_second" not in found


@pytest.mark.parametrize(("text", "error"), [("12x", 1.0), ("", 1.0), ("N/A (no PMA)", 0.0)])
def test_one_unreadable_counter_costs_only_its_sample(tmp_path: Path, text: str, error: float) -> None:
    root = write_tree(mlx5_machine(tmp_path), f"{PORT}/hw_counters/np_cnp_sent: {text}\n{PORT}/hw_counters/rp_cnp_handled: 3")
    found = read(collect(config(), host(root)))
    assert "rdma_port_hw_np_cnp_sent_total" not in found
    assert found["rdma_port_hw_rp_cnp_handled_total"] == {"rail=rail0": 3.0}
    assert found["rdma_port_hw_out_of_sequence_total"] == {"rail=rail0": 7.0}
    assert found["rdma_scrape_error"]["source=hw_counters,rail=rail0"] == error


def test_without_hw_counters_there_are_none(tmp_path: Path) -> None:
    found = read(collect(config(hw_counters=False), host(mlx5_machine(tmp_path))))
    assert not [name for name in found if name.startswith("rdma_port_hw_")]


def test_a_port_whose_state_cannot_be_read_leaves_the_results(tmp_path: Path) -> None:
    root = write_tree(mlx5_machine(tmp_path), f"{PORT}/state: nonsense")
    found = read(collect(config(), host(root)))
    assert found["rdma_scrape_error"]["source=ports"] == 1.0
    assert found["rdma_cluster_findings"]
    assert "rdma_port_up" not in found


def test_priorities_with_pfc_or_events_are_counted(tmp_path: Path) -> None:
    root = write_tree(mlx5_machine(tmp_path), TREE)
    path = root / CONFIG.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text(write_plan(profile(), [{"pci": "0000:3d:00.0"}]))

    class Both(Driver, Nic):
        pass

    text = collect(config(RAILS[:1]), host(root, runner=Dcb(), ethtool=Both()))
    found = read(text)
    promtool(text)
    where = f"rail=rail0,interface={NAME},priority"
    assert found["rdma_port_priority_pause_seconds_total"] == {f"{where}=3,direction=receive": 2.5, f"{where}=3,direction=transmit": 0.0}
    assert found["rdma_port_priority_pause_frames_total"][f"{where}=3,direction=receive"] == 5.0
    assert found["rdma_port_priority_discards_total"] == {f"{where}=5,reason=buffer": 7.0}
    assert {key.split(",")[2] for key in found["rdma_port_priority_bytes_total"]} == {"priority=3", "priority=5"}
    assert found["rdma_qos_drift"] == {f"rail=rail0,interface={NAME}": float(len(ALL))}


def test_refused_statistics_and_modules_are_errors(tmp_path: Path) -> None:
    found = read(collect(config(RAILS[:1]), host(mlx5_machine(tmp_path), ethtool=Driver(statistics="Input/output error"))))
    assert found["rdma_scrape_error"]["source=statistics,rail=rail0"] == 1.0
    assert "rdma_port_priority_bytes_total" not in found


MSTLINK = ["mstlink", "-d", "0000:3d:00.0", "-m"]
#: The rows of mstlink -m with their brackets, as tests of the reader have them; see tests/compat/test_mlxlink.py for whole captures.
MODULE_INFO = """
Module Info
-----------
Identifier                                  : OSFP
Cable Type                                  : Optical Module (separated)
Temperature [C]                             : 91 [0..70]
Voltage [mV]                                : 3300 [3135..3465]
Rx Power Current [dBm]                      : 0,-40 [-10.2..7]
"""


def infiniband(folder: Path) -> Path:
    return write_tree(mlx5_machine(folder), f"{PORT}/link_layer: InfiniBand")


def test_modules_of_infiniband_rails_are_read_on_request(tmp_path: Path) -> None:
    rails = [{**RAILS[0], "link_layer": "infiniband", "address": None}]
    silent = read(collect(config(rails), host(infiniband(tmp_path))))
    assert not [name for name in silent if name.startswith("rdma_optic_")]
    runner = FakeRunner([(MSTLINK, 0, MODULE_INFO, "")])
    text = collect(config(rails, infiniband_optics=True), host(tmp_path, runner=runner))
    found = read(text)
    promtool(text)
    assert found["rdma_optic_temperature_celsius"] == {"rail=rail0,device=mlx5_0": 91.0}
    assert found["rdma_optic_voltage_volts"] == {"rail=rail0,device=mlx5_0": 3.3}
    assert found["rdma_optic_receive_power_watts"] == {
        "rail=rail0,device=mlx5_0,lane=1": 0.001,
        "rail=rail0,device=mlx5_0,lane=2": 1e-07,
    }
    assert found["rdma_optic_alarms"]["rail=rail0,device=mlx5_0"] >= 1
    assert found["rdma_scrape_error"]["source=optics,rail=rail0"] == 0


def test_an_infiniband_module_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    rails = [{**RAILS[0], "link_layer": "infiniband", "address": None}]
    runner = FakeRunner([(MSTLINK, 1, "", "-E- Cannot open device")])
    found = read(collect(config(rails, infiniband_optics=True), host(infiniband(tmp_path), runner=runner)))
    assert found["rdma_scrape_error"]["source=optics,rail=rail0"] == 1
    assert found["rdma_port_up"] == {"rail=rail0": 1.0}
    assert "rdma_optic_alarms" not in found


def test_series_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST_SERIES", 12)
    found = read(collect(config(), host(mlx5_machine(tmp_path))))
    assert found["rdma_scrape_error"]["source=series"] == 1.0
    assert sum(len(of) for name, of in found.items() if name != "rdma_scrape_error") <= 12


def test_a_full_host_stays_far_below_the_bound(tmp_path: Path) -> None:
    """Two rails; a host of eight has four times the series of its ports."""
    text = collect(config(), host(mlx5_machine(tmp_path), ethtool=Driver()))
    assert 8 / 2 * len(text.splitlines()) < collector.MOST_SERIES


def test_the_names_are_no_others() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("rdma_") for name in names)
    assert {metric.kind for metric in METRICS if metric.name.endswith("_total")} == {"counter"}
    assert {metric.kind for metric in METRICS if not metric.name.endswith("_total")} == {"gauge"}


def test_settings_are_read_back() -> None:
    assert parse_config(config().to_text()) == config()
    assert parse_config(config(infiniband_optics=True).to_text()).infiniband_optics is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        config().to_text().replace('"schema": 1', '"schema": 2'),
        config().to_text().replace('"nic"', '"nick"'),
        "[" * 9999,
    ],
)
def test_other_settings_are_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"collector|rail"):
        parse_config(text)


def test_a_label_of_the_collector_cannot_be_replaced() -> None:
    assert bad_labels({"cluster": "a", "host": "b", "__x": "c", "a-b": "d"}) == ["host", "__x", "a-b"]
    text = Path(collector.__file__).read_text(encoding="utf-8") + Path(collector.__file__).with_name("results.py").read_text(
        encoding="utf-8"
    )
    used = set(re.findall(r"\b(\w+)=", "".join(re.findall(r"samples\.add\([^\n]*", text)))) - {"sys"}
    assert used <= RESERVED
