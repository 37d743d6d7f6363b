# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of the subnet managers of a plane: the LIDs that the ports of its hosts report, and the answers of sminfo and saquery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE


@dataclass(frozen=True)
class View:
    """A rail of a host on the plane, and its port."""

    host: str
    rail: ResolvedRail
    port: Port

    @property
    def up(self) -> bool:
        return self.port.state == "ACTIVE"


@dataclass(frozen=True)
class Seen:
    """The subnet managers of a plane as a host has read them. managers: all of them, None if unknown; why_not is then the reason."""

    managers: Sequence[SmInfo] | None
    why_not: str | None = None


NOT_ASKED = Seen(None, "sminfo was not run")


@dataclass(frozen=True)
class Plane:
    """A plane with a planned subnet manager. views: the rails on it that have a port.

    planned: host of this run with intent and facts → the names of its InfiniBand rails on the plane.
    """

    name: str
    manager: Mapping[str, Any]
    views: Sequence[View]
    seen: Seen
    planned: Mapping[str, Sequence[str]]

    @property
    def subject(self) -> str:
        return f"plane {self.name}"

    @property
    def wanted(self) -> str | None:
        """The host that must be the master; None if that is a switch."""
        return next(iter(self.manager["hosts"]), None)

    @property
    def about(self) -> str:
        """The host of the findings on the whole plane: its planned master, or the plane itself, because no other host is at fault."""
        return self.wanted if self.wanted is not None and self.wanted in self.planned else f"{PLANE}{self.name}"

    @property
    def up(self) -> list[str]:
        """The hosts with an active port on it."""
        return list(dict.fromkeys(view.host for view in self.views if view.up))

    @property
    def asker(self) -> str:
        """A host that can ask the subnet managers: a planned one if possible."""
        return next((host for host in self.manager["hosts"] if host in self.up), self.up[0])

    @cached_property
    def usual(self) -> int | None:
        """The LID of the master that most ports have."""
        lids = Counter(view.port.sm_lid for view in self.views if view.up and view.port.sm_lid)
        return lids.most_common(1)[0][0] if lids else None

    def of_lid(self, lid: int | None) -> str | None:
        """The host that has a LID."""
        return next((view.host for view in self.views if view.port.lid == lid), None)

    @property
    def unseen(self) -> str:
        """Why the planned master may have another LID than those of its ports in this run; "" if it cannot."""
        if self.wanted is None or not self.is_partly_seen(self.wanted):
            return ""
        down = self._down(self.wanted) if self.wanted in self.planned else []
        why = f"has no active InfiniBand port on {some(down)}" if down else "is not in this run"
        return f"{self.wanted}, the planned one, {why}"

    def _down(self, host: str) -> list[str]:
        """The rails of a host on the plane without an active port."""
        up = {view.rail.name for view in self.views if view.host == host and view.up}
        return [name for name in self.planned[host] if name not in up]

    def is_partly_seen(self, host: str) -> bool:
        """Whether a host is not in this run, or one of its rails on the plane has no active port: its LID is then unknown."""
        return host not in self.planned or bool(self._down(host))

    def host_of(self, its: SmInfo | None) -> str | None:
        """The host of a subnet manager: that with its LID, else the planned host that its node description names and is partly seen.

        Node descriptions begin with the host's name: "node1 HCA-1", "node1 mlx5_0".
        """
        if its is None or (known := self.of_lid(its.lid)) is not None:
            return None if its is None else known
        words = (its.description or "").lower().split()
        named = (host for host in self.manager["hosts"] if words[:1] == [host.split(".")[0].lower()])
        return next((host for host in named if self.is_partly_seen(host)), None)


def views_of(host: str, known: Known, plane: str) -> Iterator[View]:
    """Yield the InfiniBand rails of a host on a plane, each with its port."""
    if not known.intent or not known.facts:
        return
    for rail in resolve(known.intent["rails"], known.facts):
        if rail.rail["plane"] != plane or rail.rail["link_layer"] != "infiniband" or rail.device is None or rail.port is None:
            continue
        port = known.facts.devices[rail.device].ports[rail.port]
        # An Ethernet port has no subnet manager: link.layer reports it.
        if port.link_layer != "Ethernet":
            yield View(host, rail, port)


def planned_on(hosts: Mapping[str, Known], plane: str) -> dict[str, list[str]]:
    """Return host → the names of its InfiniBand rails on a plane, for each host with intent and facts."""
    return {
        host: [rail["name"] for rail in known.intent["rails"] if (rail["plane"], rail["link_layer"]) == (plane, "infiniband")]
        for host, known in hosts.items()
        if known.intent and known.facts
    }
