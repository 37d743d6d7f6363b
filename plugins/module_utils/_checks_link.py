# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the link stage asks of a host: every planned port up, of the right kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts, Rail, ResolvedRail, resolve

STAGE = "link"
#: The kernel's name of a port's link layer (sysfs ports/N/link_layer) for the intent's.
LINK_LAYERS = {"roce": "Ethernet", "infiniband": "InfiniBand"}


def check_link(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Findings `link.state` and `link.layer` for each planned rail of one host."""
    return [finding for rail in resolve(rails, facts) for finding in _rail(host, rail, facts)]


def _rail(host: str, rail: ResolvedRail, facts: Facts) -> Iterator[Finding]:
    if rail.device is None or rail.port is None:
        yield Finding(
            STAGE, "link.state", host, rail.subject, UNKNOWN, "no RDMA device, so no port to look at", "ACTIVE, LinkUp",
            f"Run the driver stage for {host}; its gate says what is missing.",
        )  # fmt: skip
        return
    port = facts["devices"][rail.device]["ports"][rail.port]
    netdev = facts["netdevs"].get(rail.netdev, {}) if rail.netdev else {}
    yield _state(host, rail, port, netdev)
    yield _layer(host, rail, port)


def _state(host: str, rail: ResolvedRail, port: Mapping[str, Any], netdev: Mapping[str, Any]) -> Finding:
    good = port["state"] == "ACTIVE" and port["physical_state"] == "LinkUp"
    observed = f"{rail.device}/{rail.port} is {port['state']}, {port['physical_state']}"
    if not good and netdev:
        observed += f"; {rail.netdev} is {_netdev_words(netdev)}"
    return Finding(
        STAGE, "link.state", host, rail.subject, OK if good else ERROR, observed, "ACTIVE, LinkUp",
        "" if good else _state_remedy(host, rail, port, netdev),
    )  # fmt: skip


def _netdev_words(netdev: Mapping[str, Any]) -> str:
    if not netdev["admin_up"]:
        return "administratively down"
    carrier = {True: "up, with carrier", False: "up, without carrier", None: "up, carrier unknown"}
    return carrier[netdev["carrier"]]


def _state_remedy(host: str, rail: ResolvedRail, port: Mapping[str, Any], netdev: Mapping[str, Any]) -> str:
    if port["link_layer"] == "InfiniBand" and port["state"] == "INIT":
        return f"The link is up and no subnet manager has configured it: start one for the fabric of {rail.name}."
    if netdev and not netdev["admin_up"]:
        return f"Something has set {rail.netdev} down on {host}: run the site again, and find what manages it."
    return f"Check the cable of rail {rail.index} on {host}: seated at both ends, switch port enabled, optic lit; then run again."


def _layer(host: str, rail: ResolvedRail, port: Mapping[str, Any]) -> Finding:
    expected = LINK_LAYERS[rail.rail["link_layer"]]
    good = port["link_layer"] == expected
    return Finding(
        STAGE, "link.layer", host, rail.subject, OK if good else ERROR, str(port["link_layer"]), expected,
        "" if good else f"Set LINK_TYPE of {rail.nic} with mstconfig and reboot {host}, or correct link_layer of {rail.name}.",
    )  # fmt: skip
