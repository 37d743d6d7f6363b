# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules and the dashboard of the role exporter, with Prometheus' own tools, and a real Prometheus that scrapes node_exporter."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, ensure_files
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.catalogue import METRICS
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.collect import Host, collect
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import FILE, Config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import Gate, HostResults
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from tests.tools import dashboard
from tests.unit.builders.fakes import SilentPort
from tests.unit.builders.trees import mlx5_machine, write_tree
from tests.verify.prometheus import free_port

ROLE = Path(__file__).parents[4] / "roles/exporter/files"
RULES = ROLE / "prometheus/rdma_cluster.rules.yml"
TESTS = Path(__file__).with_name("rules_test.yml")
NAME = re.compile(r"\b(?:rdma|host_rail|node)\w*(?::\w+)*\b(?=[{\[) ]|$)")
NAMES = {metric.name for metric in METRICS}
STATE = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0/infiniband/mlx5_0/ports/1/state"
RAIL: Any = {"name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "link_layer": "roce", "rate_gbps": 200.0, "address": "192.168.100.1/24"}


def tool(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name}: install the packages of tests/packages.txt"
    return path


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def queries() -> list[str]:
    return [target["expr"] for panel in json.loads(dashboard.build())["panels"] for target in panel.get("targets", ())]


# The rules


def test_the_rules_are_valid() -> None:
    done = subprocess.run([tool("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout


def test_each_alert_is_silent_fires_and_ends() -> None:
    done = subprocess.run([tool("promtool"), "test", "rules", str(TESTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = {case["name"]: [each["exp_alerts"] for each in case["alert_rule_test"]] for case in yaml.safe_load(TESTS.read_text())["tests"]}
    assert tested.keys() == alerts().keys()
    assert all([bool(expected) for expected in each] == [False, True, False] for each in tested.values())


def test_a_broken_rule_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(RULES.read_text().replace("(rdma_port_up) == 0", "(rdma_port_up) == 2"))
    test = TESTS.read_text()
    (tmp_path / "test.yml").write_text(re.sub(r"- \S+rules\.yml", "- rules.yml", test))
    done = subprocess.run([tool("promtool"), "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "name: RdmaPortDown" in done.stdout + done.stderr


@pytest.mark.parametrize("name", alerts())
def test_an_alert_waits_and_names_a_check(name: str) -> None:
    alert = alerts()[name]
    assert alert["for"]
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"].keys() == {"summary", "description", "remedy", "runbook"}
    assert alert["annotations"]["remedy"].startswith("1. "), "a remedy is a list of steps"
    page, _hash, check = alert["annotations"]["runbook"].partition("#")
    assert page == "docs/checks.md"
    assert check in all_checks()
    assert f'<a id="{check}"></a>' in (ROLE.parents[2] / page).read_text(encoding="utf-8")


def test_the_example_of_alertmanager_names_alerts_that_there_are() -> None:
    example = yaml.safe_load((RULES.parent / "alertmanager.yml").read_text(encoding="utf-8"))
    matchers = [text for rule in example["inhibit_rules"] for key in ("source_matchers", "target_matchers") for text in rule[key]]
    named = {name for text in matchers for name in re.findall(r"Rdma\w+", text)}
    assert len(named) >= 2
    assert named <= alerts().keys()
    assert example["route"]["receiver"] in {each["name"] for each in example["receivers"]}


def test_rules_and_dashboard_use_metrics_that_there_are() -> None:
    texts = [*(rule["expr"] for rule in rules()), *queries()]
    used = {name for text in texts for name in NAME.findall(re.sub(r'"[^"]*"', "", text))} - {"host_rail"}
    assert used <= NAMES | recorded() | {"rail"}, used - NAMES - recorded()
    assert recorded() <= used


# The dashboard


def test_the_dashboard_is_what_the_code_makes() -> None:
    assert dashboard.FILE.read_text(encoding="utf-8") == dashboard.build(), "run: python -m tests.tools.dashboard"


# A real Prometheus, which scrapes a real node_exporter on 127.0.0.1


@contextmanager
def running(log: Path, *argv: str) -> Iterator[None]:
    with log.open("w") as stream, subprocess.Popen(argv, stdout=stream, stderr=stream) as process:
        try:
            yield
        finally:
            process.terminate()


class Monitored:
    """A machine of files whose collector runs when it is told to, node_exporter and Prometheus."""

    def __init__(self, folder: Path) -> None:
        self.root = mlx5_machine(folder / "root")
        self.textfiles = folder / "textfiles"
        self.textfiles.mkdir()
        self.exporter, self.prometheus = free_port(), free_port()
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{self.exporter}"]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))

    def collect(self) -> None:
        results = HostResults({"link": Gate("error", 1.5)}, {"link.state": {"error": 1}}, {"rail0": time.time() - 3600}, {"qos": 2})
        config = Config("node1", {}, str(self.textfiles), True, [RAIL], results)
        text = collect(config, Host(SysRoot(str(self.root)), SubprocessRunner(), SilentPort()))
        ensure_files([ManagedFile(f"{self.textfiles}/{FILE}", text)], check_mode=False)

    def get(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def states(self, alert: str) -> list[str]:
        return [each["state"] for each in self.get("alerts")["alerts"] if each["labels"]["alertname"] == alert]

    def wait(self, alert: str, states: list[str]) -> float:
        """Collect each second until the alert has these states; return the seconds that it took."""
        began = time.monotonic()
        while time.monotonic() < began + 90:
            self.collect()
            try:
                if self.states(alert) == states:
                    return time.monotonic() - began
            except OSError:
                pass
            time.sleep(1)
        raise AssertionError(f"{alert} is {self.states(alert)}, expected {states}")


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    folder = tmp_path_factory.mktemp("monitored")
    made = Monitored(folder)
    made.collect()
    exporter = (
        tool("prometheus-node-exporter"),
        f"--web.listen-address=127.0.0.1:{made.exporter}",
        f"--collector.textfile.directory={made.textfiles}",
    )
    prometheus = (
        tool("prometheus"),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{made.prometheus}",
    )
    with running(folder / "exporter.log", *exporter), running(folder / "prometheus.log", *prometheus):
        made.wait("RdmaPortDown", [])
        yield made


def test_node_exporter_takes_the_file_and_has_no_name_of_ours(monitored: Monitored) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{monitored.exporter}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert 'rdma_port_up{host="node1",rail="rail0"} 1' in text
    assert "node_textfile_scrape_error 0" in text
    foreign = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")} - NAMES
    assert not [name for name in foreign if name.startswith("rdma_")]


def test_an_alert_fires_for_a_cut_cable_and_ends_after_it_is_restored(monitored: Monitored) -> None:
    assert monitored.states("RdmaPortDown") == []
    write_tree(monitored.root, f"{STATE}: 1: DOWN")
    assert 10 <= monitored.wait("RdmaPortDown", ["firing"]) <= 90
    write_tree(monitored.root, f"{STATE}: 4: ACTIVE")
    monitored.wait("RdmaPortDown", [])


def test_the_queries_of_the_dashboard_are_answered(monitored: Monitored) -> None:
    for query in queries():
        chosen = query.replace("$host", ".*").replace("$rail", ".*")
        assert monitored.get("query", query=chosen)["resultType"] == "vector", query
    drift = next(query for query in queries() if "rdma_cluster_drift" in query).replace("$host", ".*")
    assert [each["value"][1] for each in monitored.get("query", query=drift)["result"]] == ["2"]
