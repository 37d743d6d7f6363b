# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The monitoring host: Debian's Prometheus and Alertmanager under systemd in a container, and a webhook that keeps what it gets."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._metrics import catalogue
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.exposition import exposition
from lab import container, namespace
from tests.verify.driver import Hosts

ROLE = Path(__file__).parents[2] / "roles/exporter/files"
MONITOR = "node3"
MONITORED = ("node1", "node2")
PACKAGES = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")
REPOSITORY = "srv/monitoring"
TEXTFILES = "/var/lib/prometheus/node-exporter"
#: Keeps each message of Alertmanager as a line of JSON.
WEBHOOK = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open("/srv/alerts.jsonl", "a") as file:
            file.write(json.dumps(json.loads(text)) + "\\n")
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 9095), Handler).serve_forever()
"""
#: The host whose samples are written by hand: what no container has. Its counters rise from one writing to the next.
STAND_IN = "standin"
Result = TypeVar("Result")


class Monitor:
    """The containers, and the services of the monitoring host."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.writings = 0

    def root(self, name: str) -> Path:
        return self.hosts.lab.folder.node(name) / "root"

    def offer_packages(self, folder: Path) -> None:
        """A repository of Debian's packages in each container, which has no network of its own. They are fetched by this machine's apt."""
        status = self.root(MONITOR) / "var/lib/dpkg/status"
        (folder / "partial").mkdir(parents=True)
        # Debian's user _apt may not read the folder; the packages are checked all the same.
        options = {
            "APT::Sandbox::User": "root",
            "Dir::State::status": status,
            "Dir::Cache::archives": folder,
            "Dir::Cache::pkgcache": "",
            "Debug::NoLocking": "1",
        }
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        fetch = ["apt-get", *words, "-qq", "--yes", "--no-install-recommends", "--download-only", "install", *PACKAGES]
        subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL)
        (folder / "partial").rmdir()
        index = subprocess.run(["dpkg-scanpackages", "."], cwd=folder, check=True, capture_output=True, text=True).stdout
        (folder / "Packages").write_text(index)
        for name in (MONITOR, *MONITORED):
            shutil.copytree(folder, self.root(name) / REPOSITORY)
            (self.root(name) / "etc/apt/sources.list.d/monitoring.list").write_text(f"deb [trusted=yes] file:/{REPOSITORY} ./\n")
            self.hosts.run(name, "apt-get update --quiet")

    def connect(self) -> None:
        """An address for each container on the network of its first rail, over which Prometheus reads."""
        for node in self.hosts.lab.plan.nodes:
            self.hosts.run(node.name, f"ip link set eth1 up; ip link set eth2 up; ip address replace {node.rails[0].address} dev eth1")

    def address(self, name: str) -> str:
        return self.hosts.lab.plan.node(name).rails[0].address.partition("/")[0]

    def start(self) -> None:
        """Install Prometheus with the rules of the role, Alertmanager with its example, and the webhook."""
        self.hosts.run(MONITOR, "apt-get install --yes --quiet --no-install-recommends prometheus prometheus-alertmanager")
        root = self.root(MONITOR)
        targets = [f"{self.address(name)}:9100" for name in MONITORED]
        settings = {
            "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
            "rule_files": ["/etc/prometheus/rdma_cluster.rules.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]},
            "scrape_configs": [{"job_name": "node", "static_configs": [{"targets": targets}]}],
        }
        (root / "etc/prometheus/prometheus.yml").write_text(yaml.safe_dump(settings))
        for name in ("rdma_cluster.rules.yml", "alertmanager.yml"):
            shutil.copy(ROLE / "prometheus" / name, root / "etc/prometheus" / name)
        # It sends alerts on its own; without this it looks for other Alertmanagers.
        (root / "etc/default/prometheus-alertmanager").write_text('ARGS="--cluster.listen-address="\n')
        (root / "srv/webhook.py").write_text(WEBHOOK)
        self.hosts.run(MONITOR, "systemd-run --quiet --unit=webhook python3 /srv/webhook.py")
        self.hosts.run(
            MONITOR, "amtool check-config /etc/prometheus/alertmanager.yml && systemctl restart prometheus prometheus-alertmanager"
        )

    def inside(self, work: Callable[[], Result]) -> Result:
        """The result of some work in the network of the monitoring host."""
        return namespace.inside(container.node_namespace(self.hosts.lab.plan.name, MONITOR), work)

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer of Prometheus' API."""
        url = f"http://127.0.0.1:9090/api/v1/{path}?{urllib.parse.urlencode(query)}"

        def ask() -> Any:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]

        return self.inside(ask)

    def query(self, text: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        found: list[dict[str, Any]] = self.get("query", query=text)["result"]
        return found

    def states(self, alert: str, **labels: str) -> list[str]:
        """The states of an alert with these labels: pending or firing."""
        alerts = self.get("alerts")["alerts"]
        return [each["state"] for each in alerts if {"alertname": alert, **labels}.items() <= each["labels"].items()]

    def delivered(self, alert: str, **labels: str) -> list[dict[str, Any]]:
        """The alerts of this name and labels that the webhook got, in their order."""
        file = self.root(MONITOR) / "srv/alerts.jsonl"
        messages = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        found = [each for message in messages for each in message["alerts"]]
        return [each for each in found if {"alertname": alert, **labels}.items() <= each["labels"].items()]

    def textfile(self, name: str, of: str = "rdma_cluster.prom") -> Path:
        return self.root(name) / TEXTFILES.lstrip("/") / of

    def write_stand_in(self) -> None:
        """Samples of a card with priorities, a module, a GPU, and of runs, for node_exporter of the first host."""
        self.writings += 1
        count = 1000.0 * self.writings
        where = {"host": STAND_IN, "rail": "rail0"}
        priority = {**where, "interface": "ens1", "priority": "3"}
        both = [({**priority, "direction": way}, count) for way in ("receive", "transmit")]
        families = [
            *((metric, both) for metric in (catalogue.PRIORITY_BYTES, catalogue.PAUSE_FRAMES, catalogue.PAUSE_SECONDS)),
            (catalogue.DISCARDS, [({**priority, "reason": "buffer"}, count)]),
            *((metric, [(where, count)]) for metric in catalogue.HW_METRICS.values()),
            (catalogue.QOS_DRIFT, [(where, 2.0)]),
            (catalogue.OPTIC_TEMPERATURE, [(where, 45.0)]),
            (catalogue.OPTIC_RECEIVE, [({**where, "lane": "1"}, 0.001)]),
            (catalogue.GPU_PATH, [({**where, "gpu": "0000:1b:00.0", "path": "PIX"}, 1.0)]),
            (catalogue.DRIFT, [({"host": STAND_IN, "stage": "qos"}, 2.0)]),
            (catalogue.PROOF_TIME, [(where, 1.0)]),
            (catalogue.SCRAPE_ERROR, [({**where, "source": "optics"}, 1.0)]),
        ]
        text = "".join(exposition(metric, samples) for metric, samples in families)
        new = self.textfile(MONITORED[0], ".standin")
        new.write_text(text)
        new.rename(self.textfile(MONITORED[0], "standin.prom"))
