# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real Prometheus on this machine with one rule, beside a stand-in for an exporter: a server that returns one text."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from tests.verify.clos import until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Prometheus:
    """A server with its data in a folder. metrics: returns the text of the stand-in for the exporter."""

    def __init__(self, folder: Path, metrics: Callable[[], str]) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = metrics().encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
                pass

        self.exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> Prometheus:
        threading.Thread(target=self.exporter.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=20)
        self.exporter.shutdown()

    def start(self, rule: dict[str, str]) -> None:
        """Start it, and wait until it has evaluated the rule."""
        self.folder.mkdir()
        target = f"127.0.0.1:{self.exporter.server_port}"
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "hosts", "static_configs": [{"targets": [target]}]}],
        }
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        (self.folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "drill", "rules": [rule]}]}))
        words = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{self.port}"]
        log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        until(self._has_sample, 60, 0.5)

    def _has_sample(self) -> bool:
        try:
            return bool(self._get("query?query=interface_mtu_bytes")["result"])
        except OSError:
            return False

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=10) as answer:  # noqa: S310 (our own server)
            return json.load(answer)["data"]

    def firing(self) -> list[dict[str, Any]]:
        return [each for each in self._get("alerts")["alerts"] if each["state"] == "firing"]
