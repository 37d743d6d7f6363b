# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The alerts of both APIs: only those that fire and name a host count, and another form is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.alerts import MOST_ALERTS, parse_alerts, read_alerts
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import Alert

LABELS = {"alertname": "RdmaPortDown", "host": "node2", "rail": "rail1", "severity": "critical"}
DOWN = Alert("RdmaPortDown", "node2", "rail1")


def prometheus(*alerts: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"alerts": list(alerts)}})


def test_prometheus_has_pending_alerts_and_those_without_a_host() -> None:
    of_host = {key: LABELS[key] for key in ("alertname", "host")}
    text = prometheus(
        {"labels": LABELS, "state": "firing", "activeAt": "2026-11-27T09:00:00Z", "value": "1e+00"},
        {"labels": {**LABELS, "severity": "warning"}, "state": "firing"},
        {"labels": {**LABELS, "host": "node3"}, "state": "pending"},
        {"labels": {"alertname": "Watchdog"}, "state": "firing"},
        {"labels": of_host, "state": "firing"},
    )
    assert parse_alerts(text) == [DOWN, Alert("RdmaPortDown", "node2", None)]


def test_alertmanager_has_suppressed_alerts() -> None:
    text = json.dumps([
        {"labels": LABELS, "status": {"state": "active", "silencedBy": [], "inhibitedBy": []}},
        {"labels": {**LABELS, "host": "node3"}, "status": {"state": "suppressed", "silencedBy": ["x"], "inhibitedBy": []}},
    ])  # fmt: skip
    assert parse_alerts(text) == [DOWN]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"data": {"alerts": 1}}',
        '[{"labels": 1, "status": {"state": "active"}}]',
        "[" * 100_000,
        json.dumps([0] * (MOST_ALERTS + 1)),
    ],
)
def test_another_form_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="not the alerts of Prometheus or Alertmanager"):
        parse_alerts(text)


def test_the_server_is_found_by_its_path() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes | None:
        asked.append(url)
        return prometheus({"labels": LABELS, "state": "firing"}).encode() if "/v1/" in url else None

    assert read_alerts("http://prometheus:9090/", fetch) == [DOWN]
    assert asked == ["http://prometheus:9090/api/v2/alerts", "http://prometheus:9090/api/v1/alerts"]
    with pytest.raises(ParseError, match="http://x has neither /api/v2/alerts nor /api/v1/alerts"):
        read_alerts("http://x", lambda _url: None)
