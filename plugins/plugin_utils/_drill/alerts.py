# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The alerts that fire now, from the API of Prometheus or Alertmanager.

Sources: Prometheus' HTTP API (/api/v1/alerts), Alertmanager's (/api/v2/alerts: openapi.yaml).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import Alert

#: Alertmanager, Prometheus. The other one of each pair answers 404.
PATHS = ("/api/v2/alerts", "/api/v1/alerts")
LONGEST_ANSWER_BYTES = 16 * 2**20
MOST_ALERTS = 50_000
LONGEST_LABEL = 200
#: The state of an alert that fires: Prometheus' own, and Alertmanager's with and without a silence or an inhibition.
FIRING = ("firing", "active")

#: Returns the body of a URL; None if the server answers 404. Raises OSError.
Fetch = Callable[[str], "bytes | None"]


def read_alerts(url: str, fetch: Fetch) -> list[Alert]:
    """Return the alerts that fire and have a label `host`. url: of the server. Raises OSError and ParseError.

    Silenced alerts of Alertmanager are left out: they reach nobody.
    """
    for path in PATHS:
        body = fetch(url.rstrip("/") + path)
        if body is not None:
            return parse_alerts(body.decode("utf-8", "replace"))
    raise ParseError(f"{url} has neither {' nor '.join(PATHS)}: is it the URL of Prometheus or Alertmanager?")


def parse_alerts(text: str) -> list[Alert]:
    """Parse the JSON of either API. Raises ParseError for another form."""
    try:
        answer = json.loads(text)
        listed = answer if isinstance(answer, list) else answer["data"]["alerts"]
        if not isinstance(listed, list) or len(listed) > MOST_ALERTS:
            raise ValueError(f"expected a list of at most {MOST_ALERTS} alerts")
        found = [_alert(each["labels"]) for each in listed if _state(each) in FIRING and "host" in each["labels"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(f"not the alerts of Prometheus or Alertmanager ({error!r:.100}): {clean(text[:200])!r}") from error
    return list(dict.fromkeys(found))


def _state(each: Any) -> str:
    state = each["state"] if "state" in each else each["status"]["state"]
    return str(state)


def _alert(labels: Any) -> Alert:
    name, host, rail = (clean(str(labels.get(key, "")), LONGEST_LABEL) for key in ("alertname", "host", "rail"))
    return Alert(name, host, rail or None)
