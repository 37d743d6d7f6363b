# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the dashboard of the role exporter: python -m tests.tools.dashboard. A test compares the file with what this makes.

Every query takes its metric from the catalogue, or is a recording rule of the role.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef

from ansible_collections.rdma.cluster.plugins.module_utils._metrics import catalogue
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.catalogue import HW_METRICS

FILE = Path(__file__).parents[2] / "roles/exporter/files/grafana/rdma_cluster.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
#: The hosts and rails that the user has chosen.
CHOSEN = 'host=~"$host",rail=~"$rail"'
HOSTS = 'host=~"$host"'
#: Row → its panels: title, kind, unit, and (query, legend) each.
Panel = tuple[str, str, str, Sequence[tuple[str, str]]]
ROWS: dict[str, Sequence[Panel]] = {
    "Fleet": [
        ("Ports down", "stat", "none", [(f"count(min by (host, rail) ({catalogue.PORT_UP.name}{{{HOSTS}}}) == 0) or vector(0)", "ports")]),
        ("Ports below the planned rate", "stat", "none", [(f"count(host_rail:rdma_port_rate:ratio{{{HOSTS}}} < 1) or vector(0)", "ports")]),
        (
            "Hosts that do not pass a gate",
            "stat",
            "none",
            [
                (
                    f'count(max by (host) ({catalogue.GATE.name}{{{HOSTS},status=~"error|unknown"}}) == 1) or vector(0)',
                    "hosts",
                )
            ],
        ),
        (
            "Settings that differ",
            "stat",
            "none",
            [(f"sum(max by (host, stage) ({catalogue.DRIFT.name}{{{HOSTS}}})) or vector(0)", "drift")],
        ),
        ("Oldest proof", "stat", "s", [(f"max(host_rail:rdma_cluster_proof_age:seconds{{{HOSTS}}})", "age")]),
        (
            "Findings by host and check",
            "table",
            "none",
            [(f"max by (host, check, status) ({catalogue.FINDINGS.name}{{{HOSTS}}})", "")],
        ),
        (
            "Gates that are not ok",
            "table",
            "none",
            [(f'max by (host, stage, status) ({catalogue.GATE.name}{{{HOSTS},status=~"warning|error|unknown"}}) == 1', "")],
        ),
    ],
    "Host": [
        ("Ports", "states", "none", [(f"min by (host, rail) ({catalogue.PORT_UP.name}{{{CHOSEN}}})", "{{host}} {{rail}}")]),
        (
            "Received data",
            "lines",
            "Bps",
            [
                (
                    f'rate({catalogue.PRIORITY_BYTES.name}{{{CHOSEN},direction="receive"}}[5m])',
                    "{{host}} {{rail}} priority {{priority}}",
                )
            ],
        ),
        (
            "Retransmissions",
            "lines",
            "ops",
            [(f"host_rail:rdma_port_retransmissions:rate5m{{{CHOSEN}}}", "{{host}} {{rail}}")],
        ),
        (
            "Packets out of order",
            "lines",
            "pps",
            [(f"rate({HW_METRICS['out_of_sequence'].name}{{{CHOSEN}}}[5m])", "{{host}} {{rail}}")],
        ),
        (
            "Module temperature",
            "lines",
            "celsius",
            [(f"{catalogue.OPTIC_TEMPERATURE.name}{{{CHOSEN}}}", "{{host}} {{rail}}")],
        ),
        ("Received optical power", "lines", "watt", [(f"{catalogue.OPTIC_RECEIVE.name}{{{CHOSEN}}}", "{{host}} {{rail}} lane {{lane}}")]),
        ("GPUs and their nearest rails", "table", "none", [(f"{catalogue.GPU_PATH.name}{{{HOSTS}}}", "")]),
        ("Ports and firmware", "table", "none", [(f"{catalogue.PORT_INFO.name}{{{CHOSEN}}}", "")]),
        (
            "Unread sources",
            "table",
            "none",
            [(f"max by (host, source, rail) ({catalogue.SCRAPE_ERROR.name}{{{HOSTS}}}) == 1", "")],
        ),
    ],
    "Fabric": [
        (
            "Share of time paused by the switch",
            "lines",
            "percentunit",
            [(f"host_rail_priority:rdma_port_paused:ratio_rate5m{{{CHOSEN}}}", "{{host}} {{rail}} priority {{priority}}")],
        ),
        (
            "Pause frames sent",
            "lines",
            "pps",
            [
                (
                    f'rate({catalogue.PAUSE_FRAMES.name}{{{CHOSEN},direction="transmit"}}[5m])',
                    "{{host}} {{rail}} priority {{priority}}",
                )
            ],
        ),
        ("Discards", "lines", "pps", [(f"host_rail:rdma_port_discards:rate5m{{{CHOSEN}}}", "{{host}} {{rail}}")]),
        (
            "Congestion: ECN marks and CNPs",
            "lines",
            "pps",
            [
                (f"rate({HW_METRICS['np_ecn_marked_roce_packets'].name}{{{CHOSEN}}}[5m])", "marked packets {{host}} {{rail}}"),
                (f"host_rail:rdma_port_cnps_handled:rate5m{{{CHOSEN}}}", "CNPs handled {{host}} {{rail}}"),
            ],
        ),
        (
            "QoS settings that differ",
            "lines",
            "none",
            [(f"max by (host, rail) ({catalogue.QOS_DRIFT.name}{{{CHOSEN}}})", "{{host}} {{rail}}")],
        ),
        (
            "Expected and negotiated rate",
            "lines",
            "Bps",
            [
                (f"sum by (rail) (max by (host, rail) ({catalogue.PORT_RATE.name}{{{CHOSEN}}}))", "negotiated {{rail}}"),
                (f"sum by (rail) (max by (host, rail) ({catalogue.PORT_EXPECTED_RATE.name}{{{CHOSEN}}}))", "planned {{rail}}"),
            ],
        ),
    ],
}
KINDS = {"stat": stat.Panel, "table": table.Panel, "lines": timeseries.Panel, "states": statetimeline.Panel}
#: Columns of 24, and rows, that a panel of a kind takes.
SIZES = {"stat": (4, 4), "table": (12, 8), "lines": (12, 8), "states": (24, 8)}


def build() -> str:
    """Return the dashboard as JSON."""
    made = (
        dashboard.Dashboard("RDMA cluster")
        .uid("rdma-cluster")
        .tags(["rdma"])
        .readonly()
        .refresh("1m")
        .time("now-6h", "now")
        .with_variable(dashboard.DatasourceVariable("source").label("Data source").type("prometheus"))
        .with_variable(_variable("host", f"label_values({catalogue.PORT_UP.name}, host)"))
        .with_variable(_variable("rail", f'label_values({catalogue.PORT_UP.name}{{host=~"$host"}}, rail)'))
    )
    for title, panels in ROWS.items():
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(_panel(*panel))
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"


def _variable(name: str, query: str) -> dashboard.QueryVariable:
    return dashboard.QueryVariable(name).query(query).datasource(SOURCE).multi(True).include_all(True).refresh(2).sort(7)


def _panel(
    title: str, kind: str, unit: str, queries: Sequence[tuple[str, str]]
) -> stat.Panel | table.Panel | timeseries.Panel | statetimeline.Panel:
    width, height = SIZES[kind]
    panel = KINDS[kind]().title(title).unit(unit).datasource(SOURCE).span(width).height(height)
    for letter, (query, legend) in zip("AB", queries, strict=False):
        target = prometheus.Dataquery().ref_id(letter).expr(query).legend_format(legend)
        panel = panel.with_target(target.instant().format("table") if kind == "table" else target)
    return panel


if __name__ == "__main__":
    FILE.write_text(build(), encoding="utf-8")
