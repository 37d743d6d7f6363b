# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host sees of an Ethernet fabric: its neighbours, asked of lldpd through lldpcli."""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_lldp import SOURCE, lldp_graph
from ansible_collections.rdma.cluster.plugins.module_utils._lldpcli import parse_lldpcli

_SHOW = ("lldpcli", "show", "neighbors", "-f")
#: json0 names everything in the same way always; lldpd before 1.0 has json alone.
_FORMS = ("json0", "json")


def read_lldp(runner: Runner, plane: str, system: str, timeout_seconds: float, interfaces: Collection[str] | None = None) -> Graph:
    """The host's own part of the graph; _fabric_build.merged joins those of all hosts. system: what to call this host.

    interfaces: those that count, None for all.
    """
    why = ""
    for form in _FORMS:
        try:
            done = runner.run([*_SHOW, form], timeout_seconds=timeout_seconds)
            if done.rc == 0:
                seen = parse_lldpcli(done.stdout)
                return lldp_graph(plane, {system: [near for near in seen if interfaces is None or near.interface in interfaces]})
            why = f"lldpcli failed: {(done.stderr or done.stdout).strip()[:300] or done.rc} (is lldpd running?)"
        except CommandError as exc:
            missing = str(exc).startswith("command not found")
            why = "lldpcli is not installed on this host: install lldpd" if missing else str(exc)
            break
        except ParseError as exc:
            why = str(exc)
            break
    return Graph(plane, {}, [], SOURCE, False, [why])
