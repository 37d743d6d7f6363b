# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is to blame for a set of hosts that is not well, when a part of it is: a host, or a connection between two parts."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import Hosts, Runs

#: A host; the connection between two parts that are each well; two hosts of which one is, or what lies between them, where there is no
#: third one to tell; all that was tried; how it is launched; what was not found out within the number of runs.
HOST, CONNECTION, UNCLEAR, EVERYWHERE, SETUP, NO_MORE = "host", "connection", "unclear", "everywhere", "setup", "no_more"


@dataclass(frozen=True)
class Blame:
    """kind: see above; hosts: to blame, or the one side of a connection, whose other side is `others`.

    left_out: hosts that the ladder goes on without. by_itself: the output of a run names them, no other run had to.
    """

    kind: str
    hosts: Hosts
    others: Hosts = ()
    left_out: Hosts = ()
    by_itself: bool = False

    @property
    def words(self) -> str:
        """In a sentence."""
        hosts, others = _some(self.hosts), _some(self.others)
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


def _some(hosts: Hosts) -> str:
    return ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")


def convict(runs: Runs, host: str, well: Hosts) -> Blame | None:
    """Hold one host against two that are well together; nobody is convicted on one partner. None if it is well with both."""
    bad = [partner for partner in well[:2] if not runs.is_well((partner, host))]
    if len(bad) == len(well[:2]):
        return Blame(HOST, (host,), left_out=(host,))
    return Blame(CONNECTION, tuple(bad), (host,), left_out=(host,)) if bad else None


def find(runs: Runs, well: Hosts, added: Hosts) -> Blame:
    """Who is to blame that `well`, two hosts at least, is well, and is no longer so with `added`."""
    accused = runs.named((*well, *added), added)
    if accused:
        return Blame(HOST, accused, left_out=accused, by_itself=True)
    if len(added) > 1 and not runs.is_well(added):
        return _within(runs, well, added)
    blame = convict(runs, added[0], well) if len(added) == 1 else None
    return blame or _between(runs, well, added)


def _within(runs: Runs, well: Hosts, slow: Hosts) -> Blame:
    """Who is to blame in a set that is not well by itself.

    Where one half is well it is taken that the other is not, which saves a run in each step and is looked at where it turns out wrong.
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
    """Both are well, and not well together: the smallest parts of them of which that is so, or all of both if any two show it."""
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
    """The smallest part that is not well with the others; a part whose halves both are is left as it is."""
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
