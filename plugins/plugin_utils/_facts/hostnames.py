# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names by which logs call the hosts of the inventory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts


def names_in_logs(hosts: Mapping[str, RunFacts | None], names: Mapping[str, str]) -> dict[str, str]:
    """Return name in a log → host: the given names, then the inventory's names, then the kernels' host names, with and without domain.

    hosts: host → its facts, None if there are none. A kernel's name that several hosts have is omitted.
    """
    return {**_hostnames(hosts), **{short(host): host for host in hosts}, **{host: host for host in hosts}, **names}


def short(name: str) -> str:
    """Return a host name without its domain; an IPv4 address as it is."""
    return name if name.replace(".", "").isdigit() else name.partition(".")[0]


def _hostnames(hosts: Mapping[str, RunFacts | None]) -> dict[str, str]:
    reported = [(facts.boot.hostname, host) for host, facts in hosts.items() if facts and facts.boot.hostname]
    names = [(each, host) for name, host in reported for each in sorted({name, short(name)})]
    uses = Counter(name for name, _host in names)
    return {name: host for name, host in names if uses[name] == 1}
