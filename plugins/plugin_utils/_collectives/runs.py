# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runs of a ladder: their results for sets of hosts, and the set to run next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Hosts = tuple[str, ...]
#: The result of a run. SETUP_FAULT: it shows nothing about its hosts, but a launch fault that no other set of hosts avoids.
WELL, SLOW, FAILED, SETUP_FAULT = "well", "slow", "failed", "setup"


@dataclass(frozen=True)
class Result:
    """One run. gbytes_per_s: busbw of its large sizes. named: hosts that its own output accuses (sockets, wrong devices). why: in words."""

    hosts: Hosts
    status: str
    gbytes_per_s: float | None = None
    named: frozenset[str] = frozenset()
    why: str = ""


class MissingResultError(Exception):
    """This set must be run first."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(", ".join(hosts))
        self.hosts = hosts


class SetupFaultError(Exception):
    """A run that shows nothing about its hosts."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(", ".join(hosts))
        self.hosts = hosts


class TooManyRunsError(Exception):
    """The ladder would exceed its maximum number of runs."""


class Runs:
    """The previous runs. order: of all hosts. most: the maximum number of runs."""

    def __init__(self, results: Sequence[Result], order: Hosts, most: int) -> None:
        self._of: dict[frozenset[str], list[Result]] = {}
        for result in results:
            self._of.setdefault(frozenset(result.hosts), []).append(result)
        self._place = {host: place for place, host in enumerate(order)}
        self._left = most - len(results)

    def is_well(self, hosts: Hosts) -> bool:
        """Return whether a set was good in any of its runs. Raises MissingResultError."""
        return any(result.status == WELL for result in self.of(hosts))

    def rung(self, hosts: Hosts) -> bool:
        """Return the same for a decisive set: a bad one is run twice, because once may be chance."""
        return self.is_well(hosts) or any(result.status == WELL for result in self.repeated(hosts, 2))

    def repeated(self, hosts: Hosts, times: int) -> list[Result]:
        """Return the results of a set that is run this many times. Raises MissingResultError."""
        of_set = self.of(hosts)
        if len(of_set) < times:
            self._need(hosts)
        return of_set

    def of(self, hosts: Hosts) -> list[Result]:
        """Return the results of a set, at least one. Raises MissingResultError, or SetupFaultError for a run that shows nothing."""
        of_set = self._of.get(frozenset(hosts))
        if not of_set:
            self._need(hosts)
            return []
        if any(result.status == SETUP_FAULT for result in of_set):
            raise SetupFaultError(hosts)
        return of_set

    def named(self, hosts: Hosts, among: Hosts) -> Hosts:
        """Return those of `among` that the run of a set accuses itself; none if it accuses all of the set."""
        accused = {host for result in self.of(hosts) for host in result.named}
        return tuple(host for host in among if host in accused) if set(hosts) - accused else ()

    def _need(self, hosts: Hosts) -> None:
        if self._left <= 0:
            raise TooManyRunsError
        raise MissingResultError(tuple(sorted(hosts, key=self._place.__getitem__)))
