# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collector's settings on a host: the planned rails, and what runs have found."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import HostResults

CONFIG = "/etc/rdma-cluster/exporter.json"
#: The file that the collector writes, in the folder of node_exporter's textfile collector.
FILE = "rdma_cluster.prom"
SCHEMA = 1
_LABEL = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
#: Labels of our own samples, which a site's label may not replace.
RESERVED = frozenset(
    {
        *("host", "rail", "stage", "status", "check", "source", "interface", "device", "port", "priority", "direction", "reason", "lane"),
        *("gpu", "path", "link_layer", "pci", "firmware", "kernel", "driver", "mode", "job", "instance"),
    }
)


@dataclass(frozen=True)
class Config:
    """host: its name in the inventory. labels: of every sample. folder: of node_exporter. hw_counters: whether to write them.

    infiniband_optics: whether to read the modules of InfiniBand rails with mstlink, which writes to the cards' PCI configuration space.
    """

    host: str
    labels: Mapping[str, str]
    folder: str
    hw_counters: bool
    rails: Sequence[Rail]
    results: HostResults
    infiniband_optics: bool = False

    def to_text(self) -> str:
        """Return the file's text."""
        data = {**vars(self), "schema": SCHEMA, "results": self.results.to_dict()}
        return json.dumps(data, indent=1, sort_keys=True) + "\n"


def parse_config(text: str) -> Config:
    """Parse what to_text has written. Raises ParseError."""
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ParseError(f"settings of the collector of schema {data['schema']!r}, expected {SCHEMA}: run the role exporter again")
        for rail in data["rails"]:
            if not isinstance(rail["name"], str) or not isinstance(rail["nic"], dict):
                raise ParseError(f"not a rail: {rail!r}")
        return Config(
            host=str(data["host"]),
            labels={str(name): str(value) for name, value in data["labels"].items()},
            folder=str(data["folder"]),
            hw_counters=bool(data["hw_counters"]),
            rails=cast("list[Rail]", data["rails"]),
            results=HostResults.from_dict(data["results"]),
            infiniband_optics=bool(data["infiniband_optics"]),
        )
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(f"not the settings of the collector: {type(error).__name__} {error}") from error


def bad_labels(labels: Mapping[str, str]) -> list[str]:
    """Return the names that Prometheus or our own samples do not allow as a label of a site."""
    return [name for name in labels if name in RESERVED or name.startswith("__") or _LABEL.fullmatch(name) is None]
