# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for the metrics of hosts."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ABSOLUTE,
    LABEL,
    LABEL_VALUE,
    Section,
    flag,
    integer,
    keys,
    named,
    text,
)

METRICS = Section(
    keys(
        "Metrics of this host for Prometheus ([metrics](metrics.md)). Without `manage`, the playbook `exporter` leaves the host as it is.",
        manage=flag("Install the collector and its timer and, without `textfile_dir`, node_exporter of the distribution.", False),
        textfile_dir=text(
            "The folder of node_exporter's textfile collector, for a node_exporter that you installed yourself. Without it, Debian's: "
            "`/var/lib/prometheus/node-exporter`.",
            ABSOLUTE,
        ),
        interval_seconds=integer("Time between two runs of the collector, in s.", 10, 3600, default=60),
        hw_counters=flag("Write the hardware counters of RDMA ports too (`hw_counters`).", True),
        infiniband_optics=flag(
            "Read the modules of InfiniBand rails too, with `mstlink` of mstflint. It writes to the PCI configuration space of the card, "
            "so the sandbox of the collector then leaves `/sys` writable.",
            False,
        ),
        labels=named("Further labels of every sample. They may not replace its own ones.", LABEL, text("Its value.", LABEL_VALUE)),
    ),
    ("exporter",),
)
