# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the cause if a set of hosts is bad but a part of it is good: a host, or a connection between two parts."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import Hosts, Runs

#: A host; the connection between two good parts; one of two hosts or their connection, without a third host to compare; everything tested;
#: the launch; nothing found within the allowed number of runs.
HOST, CONNECTION, UNCLEAR, EVERYWHERE, SETUP, NO_MORE = "host", "connection", "unclear", "everywhere", "setup", "no_more"
#: How many hosts are named.
NAMED = 4


@dataclass(frozen=True)
class Blame:
    """kind: see above. hosts: the blamed hosts, or one side of a connection; `others` is its other side.

    left_out: hosts that the ladder continues without. by_itself: the output of a run names them, without further runs.
    """

    kind: str
    hosts: Hosts
    others: Hosts = ()
    left_out: Hosts = ()
    by_itself: bool = False

    @property
    def words(self) -> str:
        """The blame as a sentence."""
        hosts, others = first_of(self.hosts, NAMED), first_of(self.others, NAMED)
        if self.kind == HOST:
            return f"{hosts}: its own output shows it" if self.by_itself else f"{hosts}: fails or is slow with each of two good hosts"
        if self.kind == CONNECTION:
            return f"the connection between {hosts} and {others}: each side is good without the other"
        return {
            UNCLEAR: f"one of {hosts}, or the connection between them: there is no third host to compare with",
            EVERYWHERE: f"none of the tested pairs of hosts is good ({hosts})",
            SETUP: f"the launch: the run on {hosts} shows nothing about its hosts",
            NO_MORE: f"not found within the allowed number of runs; unfinished hosts: {hosts}",
        }[self.kind]


def convict(runs: Runs, host: str, well: Hosts) -> Blame | None:
    """Compare one host with two hosts that are good together; one partner is not enough for blame. Return None if it is good with both."""
    bad = [partner for partner in well[:2] if not runs.is_well((partner, host))]
    if len(bad) == len(well[:2]):
        return Blame(HOST, (host,), left_out=(host,))
    return Blame(CONNECTION, tuple(bad), (host,), left_out=(host,)) if bad else None


def find(runs: Runs, well: Hosts, added: Hosts) -> Blame:
    """Return the blame if `well`, at least two hosts, is good, but is bad with `added`."""
    accused = runs.named((*well, *added), added)
    if accused:
        return Blame(HOST, accused, left_out=accused, by_itself=True)
    if len(added) > 1 and not runs.is_well(added):
        return _within(runs, well, added)
    blame = convict(runs, added[0], well) if len(added) == 1 else None
    return blame or _between(runs, well, added)


def _within(runs: Runs, well: Hosts, slow: Hosts) -> Blame:
    """Return the blame within a set that is bad by itself.

    If one half is good, the other is assumed to be bad. That saves a run in each step, and is checked if it turns out wrong.
    """
    path = [slow]
    while len(path[-1]) > 1:
        one, other = _halves(path[-1])
        path.append(one if _is_bad(runs, well, one) else other)
    blame = convict(runs, path[-1][0], well)
    if blame is not None:
        return blame
    whole = part = slow
    for part in path[1:]:
        if not _is_bad(runs, well, part):
            break
        whole = part
    return _between(runs, tuple(host for host in whole if host not in part), part)


def _is_bad(runs: Runs, well: Hosts, hosts: Hosts) -> bool:
    return not runs.is_well(hosts if len(hosts) > 1 else (well[0], *hosts))


def _between(runs: Runs, left: Hosts, right: Hosts) -> Blame:
    """Return the blame if both are good, but not together: their smallest parts with this fault, or all of both if any two show it."""
    one = _narrow(runs, left, right)
    other = _narrow(runs, right, one)
    if len(one) == len(other) == 1:
        beside_one = [host for host in left if host not in one][:1]
        beside_other = [host for host in right if host not in other][:1]
        wide_right = beside_other and not runs.is_well((*one, *beside_other))
        wide_left = beside_one and not runs.is_well((*beside_one, *other))
        one, other = left if wide_left else one, right if wide_right else other
    return Blame(CONNECTION, one, other, left_out=other)


def _narrow(runs: Runs, part: Hosts, against: Hosts) -> Hosts:
    """Return the smallest part that is bad with the others. A part with two good halves is returned unchanged."""
    while len(part) > 1:
        one, other = _halves(part)
        if not runs.is_well((*one, *against)):
            part = one
        elif not runs.is_well((*other, *against)):
            part = other
        else:
            break
    return part


def _halves(hosts: Hosts) -> tuple[Hosts, Hosts]:
    middle = (len(hosts) + 1) // 2
    return hosts[:middle], hosts[middle:]
