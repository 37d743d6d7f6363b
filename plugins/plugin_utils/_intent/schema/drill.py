# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for the fire drill: the faults that it may make, each by name."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._drill.fault import KINDS
from ansible_collections.rdma.cluster.plugins.module_utils._drill.rail import RAIL_KINDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST, Key, Section, integer, keys, matching, text

SITE = matching(
    r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~/-]*)?", "http:// or https://, a host, and no password (http://prometheus:9090)"
)
ALLOWED = keys(
    "A fault that the drill may make: on a `switch`, or on a `rail` of a `host`.",
    switch=text("The switch, by its name in the cabling plan and in the group `rdma_switches`.", HOST),
    port=text(
        "The interface of an uplink, for `cut` and `silence`.",
        matching(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", "the name of an interface (swp1)"),
    ),
    host=text("The host, by its name in the inventory.", HOST),
    rail=text("The rail of the host, by its name in `rdma_rails`. RoCE rails on a single interface only."),
    fault=Key(
        (str,),
        "On a switch, `cut`: set the port down, so that both ends lose their carrier; `silence`: drop every packet of the port and keep "
        "its carrier; "
        "`stop_frr`: stop and start `frr.service` of a spine; `ports_down`: set all uplinks of a spine down. On a host, `rail_down`: set "
        "the rail's interface down; `mtu_1500`: set its MTU to 1500; `address_lost`: remove its address; `gid_moved`: move the GID of its "
        "address to a later index.",
        required=True,
        choices=(*KINDS, *RAIL_KINDS),
    ),
)
DRILL = Section(
    keys(
        "The faults that the playbook `drill` may make ([the drill](drill.md)). Set it for all hosts of the play. Without `allow`, the "
        "drill does nothing.",
        allow=Key((list,), "The faults, in the order in which they are made.", each=ALLOWED),
        hold_seconds=integer(
            "How long a fault lasts, in s; on a host at most, because it ends as soon as all have answered. It must be longer than the "
            "outage: without BFD, BGP notices a silent cable after 9 s. With `alerts_url`, it must be longer than an alert takes.",
            5,
            300,
            default=20,
        ),
        alerts_url=text(
            "URL of Prometheus or Alertmanager, as the control node reaches it. The drill of hosts reads alerts there. Without it, alerts "
            "are not judged.",
            SITE,
        ),
    ),
    ("drill",),
)
