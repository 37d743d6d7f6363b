# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change a host's rails: differences are made live with `ip`, and the host's manager applies them at boot.

A live rail is never reconfigured as a whole while it is in use. This file has what all managers share.
Sources: ip-address(8).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState, unit_states
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, host_users, rail_users, read_load
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.records import (
    former_texts,
    present_files,
    read_text,
    recorded_addresses,
    recorded_routing,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import TAKES_DOWN, bond_steps, member_steps, read_bonds
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of, is_ipv6, is_within
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import delete_child, netdev_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import (
    MAKES,
    interfaces_below,
    link_steps,
    made_names,
    read_vlans,
    removal_steps,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import (
    NETWORKD_UNIT,
    NM_UNIT,
    NetworkRail,
    NetworkResult,
    Running,
    Withheld,
    is_of,
    owner_of,
    rail_of,
    running_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import (
    MAIN,
    Recorded,
    known_routing,
    left_over,
    rail_steps,
    removal,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import RECONFIGURES, Step, Target, keeping, read_interface, steps
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session, read_client

SESSION = "our SSH session"
_PASSES = 5
#: Errors of `ip` if what a step adds is there already, or the route, rule or address that it removes is gone.
_DONE = tuple(
    f"RTNETLINK answers: {words}"
    for words in ("File exists", "No such process", "No such file or directory", "Cannot assign requested address")
)


@dataclass(frozen=True)
class Loading:
    """What a manager has to do about changed files. put_off: not now; loads: load them; service: the unit to start or enable."""

    put_off: bool = False
    loads: bool = False
    service: str | None = None


class Change(ABC):
    """One call of `choice.ensure`: what all managers share. A manager's own part is in its subclass."""

    def __init__(
        self,
        rails: Sequence[NetworkRail],
        planned: Sequence[str],
        runner: Runner,
        sys: SysRoot,
        *,
        allowed: bool,
        session: Session,
        check_mode: bool,
    ) -> None:
        self.rails, self.planned, self.runner, self.sys, self.allowed = rails, planned, runner, sys, allowed
        self.session, self.check_mode = session, check_mode
        #: The rails, by their own names.
        self.carries_session: set[str] = set()
        #: The interface of our session, and those below it.
        self._session_netdevs = interfaces_below(session.netdev, read_vlans(sys), read_bonds(sys)) if session.netdev is not None else []
        self.withheld: list[Withheld] = []
        #: Rail → the addresses of others on its interface, which stay.
        self.keeps: dict[str, tuple[str, ...]] = {}
        self._load: Load | None = None
        self._routes = False
        #: The rails whose changes are withheld.
        self.held: set[str] = set()
        #: Of these, the rails that get or lose an interface.
        self.frozen: set[str] = set()
        #: Owner → the text of our files for it before the change.
        self.former_text: dict[str, str] = {}
        #: All addresses in these.
        self._former_addresses: frozenset[str] = frozenset()
        #: Owner → the rules and routes in these.
        self._recorded: dict[str, Recorded] = {}

    @staticmethod
    @abstractmethod
    def rail_files(rail: NetworkRail, running: Running) -> list[ManagedFile]:
        """Return the planned files of a rail."""

    @classmethod
    def files(cls, rails: Sequence[NetworkRail], present: Sequence[str], planned: Sequence[str], running: Running) -> list[ManagedFile]:
        """Return the planned files of these rails, and the removal of the present ones that are not planned.

        present: the files of ours on the host; planned: the names of all rails. The files of one whose NIC is missing now stay.
        """
        wanted = [file for rail in rails if rail.is_configured for file in cls.rail_files(rail, running)]
        names = [rail.name for rail in rails]
        absent = [name for name in planned if name not in names]
        kept = {file.path for file in wanted}
        gone = [path for path in sorted(present) if path not in kept and not is_of(owner_of(path), absent)]
        return [*wanted, *(ManagedFile(path, None) for path in gone)]

    @abstractmethod
    def plan(self, changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> Loading:
        """Decide how these changes are loaded, and record in self.withheld what is put off. Change nothing."""

    @abstractmethod
    def load(self, loading: Loading, changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> None:
        """Do what was planned."""

    def refusal(self, _units: Mapping[str, UnitState]) -> str:
        """Return why the manager cannot be used, with the remedy; "" if it can."""
        return ""

    def profile_steps(self, _rail: NetworkRail) -> list[Step]:
        """Return further steps of a rail's interface, which the manager takes."""
        return []

    def validate(self, wanted: Sequence[ManagedFile]) -> None:
        """Check the planned files before any is written. Raises ApplyError."""
        del wanted

    def hint(self, _rail: NetworkRail) -> str:
        """Return a sentence on what prevents the manager from configuring the rail; "" if nothing is known."""
        return ""

    def run(self) -> NetworkResult:
        units = unit_states(self.runner, NETWORKD_UNIT, NM_UNIT)
        refusal = self.refusal(units) if any(rail.is_configured for rail in self.rails) else ""
        if refusal:
            raise ApplyError(refusal)
        present = present_files()
        self.former_text = former_texts(present)
        self._former_addresses = frozenset(address for text in self.former_text.values() for address in recorded_addresses(text))
        self._recorded = {owner: recorded_routing(owner, text) for owner, text in self.former_text.items()}
        self._routes = any(each.routing.planned for each in self.rails) or any(
            each.rules or each.routes for each in self._recorded.values()
        )
        targets = {rail.name: self._target(rail) for rail in self.rails}
        self._check_client()
        todo = {rail.name: self._steps(rail, targets[rail.name]) for rail in self.rails}
        held = {rail_of(rail.name) for rail in self.rails if self._is_held(rail, todo[rail.name])}
        self.held = {rail.name for rail in self.rails if rail_of(rail.name) in held}
        wanted = self._wanted(self.files(self.rails, present, self.planned, running_of(units)))
        makes = {name for name, each in todo.items() if any(step.argv[:3] in MAKES or step.harm == TAKES_DOWN for step in each)}
        self.frozen = {rail_of(name) for name in self.held & makes}
        self.validate(wanted)
        changes = ensure_files(wanted, check_mode=self.check_mode)
        pending = Path(rail_network.PENDING).exists()
        loading = self.plan(changes, units, pending=pending)
        allowed = {name: [step for step in each if self._is_allowed(name, step, loading)] for name, each in todo.items()}
        shown = todo if self.check_mode else allowed
        live = {rail.netdev: [(step.was, step.planned) for step in shown[rail.name]] for rail in self.rails if shown[rail.name]}
        live.update({owner: [(step.was, step.planned) for step in each] for owner, each in self._removed_routing(changes).items()})
        if not self.check_mode:
            self.load(loading, changes, units, pending=pending)
            if loading.put_off:
                ensure_files(
                    [ManagedFile(rail_network.PENDING, "The network manager has not loaded the files of the rails.\n")], check_mode=False
                )
            elif loading.loads:
                Path(rail_network.PENDING).unlink(missing_ok=True)
            for name in [name for change in changes if change.after is None and (name := netdev_of(change))]:
                delete_child(name, self.runner)
            self._remove_links(changes)
            for step in [each for steps_of in self._removed_routing(changes).values() for each in steps_of]:
                self._take(step)
            for rail in sorted(self.rails, key=self._keeps_routes):
                if allowed[rail.name] or loading.loads:
                    self._apply(rail, targets[rail.name], loading)
        return NetworkResult(changes, live, loading.service, self.withheld, loading.loads)

    def users(self, rail: NetworkRail | None) -> str:
        """Return the current users of a rail, or of the whole host. Our own session counts even if changes are allowed."""
        if rail is not None and rail_of(rail.name) in self.carries_session:
            return SESSION
        if self.allowed:
            return ""
        return host_users(self._host_load()) if rail is None else rail_users(self._host_load(), rail.device, rail.port)

    def _bond_users(self) -> str:
        """Return why NICs may not be made members of a bond: that needs an idle host and permission."""
        return host_users(self._host_load()) or ("" if self.allowed else "network_change_allowed, which is not set")

    def _host_load(self) -> Load:
        """Return the users of the host; read once."""
        if self._load is None:
            self._load = read_load(self.sys, self.runner)
        return self._load

    def puts_off(self, affected: Sequence[NetworkRail], verb: str) -> bool:
        """Return whether loading the files of these rails must wait, because they are in use; record it."""
        users = {rail.netdev: (rail_of(rail.name), who) for rail in affected if (who := self.users(rail))}
        self.withheld += [Withheld(name, netdev, verb, who) for netdev, (name, who) in users.items()]
        return bool(users)

    def _target(self, rail: NetworkRail) -> Target:
        """Return the target with the interface's other addresses: those from our files are removed, those of others stay.

        If it has planned addresses, the file of any rail counts: this rail may have had another name, or another interface.
        """
        former = self._former_addresses if rail.planned else frozenset(recorded_addresses(self.former_text.get(rail.name, "")))
        target = Target(rail.netdev, rail.mtu_bytes, rail.address, former=former, further=rail.addresses)
        there = read_interface(target, self.runner, rail=rail.name, is_made=rail.link.is_made)[1]
        if rail.netdev in self._session_netdevs or _has_address(there, self.session):
            self.carries_session.add(rail_of(rail.name))
        kept = keeping(target, there)
        self.keeps[rail.name] = kept.keep
        return kept

    def _steps(self, rail: NetworkRail, target: Target) -> list[Step]:
        links = self._link_steps(rail)
        mtu_bytes, there = read_interface(target, self.runner, rail=rail.name, is_made=rail.link.is_made)
        if mtu_bytes is None:
            # What is still missing on a new interface is read when it exists.
            return [*links, *self.profile_steps(rail)]
        routing = self._routing_steps(rail, target, there) if self._routes else []
        return [*links, *steps(target, mtu_bytes, there), *routing, *self.profile_steps(rail)]

    def _link_steps(self, rail: NetworkRail) -> list[Step]:
        """Return the steps that remove interfaces which the rail no longer has, and create or correct the one that it has."""
        text = "".join(each for owner, each in self.former_text.items() if rail_of(owner) == rail.name)
        planned = {each.netdev for each in self.rails}
        former = [name for name in made_names(text) if name not in planned]
        removals, stay = removal_steps(former, recorded_addresses(text), self.runner)
        for name, others in stay.items():
            withheld = Withheld(rail_of(rail.name), name, f"removal of {name}", f"{', '.join(others)}, which no file of ours has")
            self.withheld += [] if withheld in self.withheld else [withheld]
        bonding = self._bond_steps(rail)
        later = [*([f"MTU {rail.mtu_bytes} bytes"] if rail.mtu_bytes else []), *(f"address {text}" for text in rail.planned)]
        return [*removals, *bonding, *link_steps(rail.netdev, rail.link, self.runner, planned="".join(f", {each}" for each in later))]

    def _bond_steps(self, rail: NetworkRail) -> list[Step]:
        """Return the steps by which an interface joins its bond, and the bond is made before its first member joins."""
        if rail.link.master is None:
            return []
        seen = (read_bonds(self.sys) or {}).get(rail.link.master)
        bond = next(each.link.bond for each in self.rails if each.netdev == rail.link.master and each.link.bond is not None)
        made = bond_steps(rail.link.master, bond, seen) if rail.name == rail_of(rail.name) else []
        return [*made, *member_steps(rail.netdev, rail.link.master, seen)]

    def _remove_links(self, changes: Sequence[FileChange]) -> None:
        """Delete the interfaces that our removed files had made, unless other rails have them, or others gave them addresses."""
        planned = {rail.netdev for rail in self.rails}
        for change in changes:
            names = [name for name in made_names(change.before or "") if name not in planned] if change.after is None else []
            for step in removal_steps(names, recorded_addresses(self.former_text.get(owner_of(change.path), "")), self.runner)[0]:
                self._take(step)

    def _routing_steps(self, rail: NetworkRail, target: Target, there: Sequence[str]) -> list[Step]:
        recorded = self._recorded.get(rail.name, Recorded(rail.name, [], []))
        seen = known_routing(self.runner, (4, 6) if target.has_ipv6 else (4,), [recorded])
        left = left_over(recorded, seen, [each.routing for each in self.rails], rail.netdev)
        former = recorded_addresses(self.former_text.get(rail.name, ""))
        return rail_steps(rail.routing, seen, former=former, live=rail.address in there, left=left)

    def _keeps_routes(self, rail: NetworkRail) -> bool:
        """Return whether a rail keeps all its former routes. The others come first: the main table has one route to a network."""
        former = self._recorded[rail.name].routes if rail.name in self._recorded else []
        planned = [replace(route, netdev="") for route in rail.routing.planned]
        return all(route in planned for route in former)

    def _removed_routing(self, changes: Sequence[FileChange]) -> dict[str, list[Step]]:
        """Return the steps that remove the rules and tables of owners whose files go: owner → steps. It has them only on an idle host."""
        gone = {owner_of(change.path) for change in changes if change.after is None} - {rail.name for rail in self.rails}
        records = [each for owner, each in sorted(self._recorded.items()) if owner in gone and (each.rules or each.routes)]
        if not records:
            return {}
        families = {6 if is_ipv6(each.source) else 4 for record in records for each in record.rules} | {4}
        seen, planned = known_routing(self.runner, sorted(families), records), [each.routing for each in self.rails]
        found = {each.owner: removal(each.owner, left_over(each, seen, planned, None)) for each in records}
        return {owner: each for owner, each in found.items() if each}

    def _check_client(self) -> None:
        """Refuse routes by which the answers to our own SSH session would leave through a rail, and keep those by which they do."""
        client = read_client(self.sys) if self.session.address is not None else None
        wrong = [(rail, route) for rail in self.rails for route in rail.routes if client is not None and is_within(client, route)]
        for rail, route in wrong:
            if rail_of(rail.name) not in self.carries_session:
                raise ApplyError(
                    f"{rail.name}: routes has {route}, which contains {client}, from where our SSH session comes: its answers would leave "
                    f"through {rail.netdev}. 1. In rdma_rails, give {rail.name} narrower routes. 2. Run the network stage again."
                )
        for owner, recorded in self._recorded.items():
            if client is not None and any(route.table == MAIN and is_within(client, route.network) for route in recorded.routes):
                self.carries_session.add(rail_of(owner))

    def _is_held(self, rail: NetworkRail, todo: Sequence[Step]) -> bool:
        harmful = [step.words for step in todo if step.harm]
        users = self.users(rail) if harmful else ""
        if not users and any(step.harm == TAKES_DOWN for step in todo):
            users = self._bond_users()
        if users:
            self.withheld.append(Withheld(rail_of(rail.name), rail.netdev, "; ".join(harmful), users))
        return bool(users)

    def _wanted(self, every: Sequence[ManagedFile]) -> list[ManagedFile]:
        """Return the files, without those of rails that keep theirs, and those to be removed while anything on the host is in use.

        A rail whose files of another manager cannot be removed now keeps all that it has: it must not have two managers.
        """
        kept = {file.path for file in every if is_of(owner_of(file.path), list(self.held))}
        gone = [file.path for file in every if file.content is None and file.path not in kept]
        users = self.users(None) if gone else ""
        if any(_has_address(recorded_addresses(read_text(path)), self.session) for path in gone):
            users = SESSION
        if users:
            change = f"removal of {', '.join(gone)} (the network manager removes the addresses that it has set)"
            owners = {owner_of(path) for path in gone}
            names = [rail.name for rail in self.rails if rail.name in owners] or ["rails that are no longer planned"]
            self.withheld.append(Withheld(", ".join(names), None, change, users))
            kept |= set(gone) | {file.path for file in every if owner_of(file.path) in owners}
            # A rail that keeps its VLAN keeps its address there.
            linked = {rail_of(owner) for owner in owners if made_names(self.former_text.get(owner, ""))}
            kept |= {file.path for file in every if rail_of(owner_of(file.path)) in linked}
            self.held |= {rail.name for rail in self.rails if rail_of(rail.name) in linked}
        return [file for file in every if file.path not in kept]

    def _is_allowed(self, rail: str, step: Step, loading: Loading) -> bool:
        """Return whether a step may be taken now. What reconfigures an interface needs files that are loaded.

        A rail in use that gets or loses an interface keeps all that it has, since its files do not change either.
        """
        if rail_of(rail) in self.frozen:
            return False
        return not step.harm or (rail not in self.held and not (loading.put_off and step.harm == RECONFIGURES))

    def _apply(self, rail: NetworkRail, target: Target, loading: Loading) -> None:
        """Run the steps that are allowed, and read back. A step that reconfigures the interface is taken once."""
        deadline, passes, reconfigured = time.monotonic() + rail_network.SETTLE_SECONDS, 0, False
        while todo := [step for step in self._steps(rail, target) if self._is_allowed(rail.name, step, loading)]:
            if time.monotonic() > deadline or passes > _PASSES:
                raise ApplyError(self._failed(rail, todo))
            whole = [step for step in todo if step.harm == RECONFIGURES]
            if whole and not reconfigured:
                run_checked(self.runner, *whole[0].argv)
                reconfigured = True
            else:
                for step in todo:
                    if step.harm != RECONFIGURES:
                        self._take(step)
            passes += not reconfigured
            if reconfigured:
                time.sleep(0.3)

    def _take(self, step: Step) -> None:
        """Run a step with `ip`. The manager, which works beside us, may have been faster; what is there is read next."""
        done = self.runner.run(list(step.argv))
        if done.rc and not any(words in done.stderr for words in _DONE):
            raise ApplyError(f"`{' '.join(step.argv)}` failed: {done.stderr.strip() or f'exit status {done.rc}'}")

    def _failed(self, rail: NetworkRail, todo: Sequence[Step]) -> str:
        words = "; ".join(f"{step.was} instead of {step.planned}" for step in todo)
        ipoib = f" {rail.ipoib.hint}" if rail.ipoib else ""
        return f"{rail.netdev} was configured, and still has {words}.{self.hint(rail)}{ipoib}"


def _has_address(texts: Sequence[str], session: Session) -> bool:
    """Return whether our session uses one of these addresses, "192.168.100.1/24"."""
    return session.address is not None and session.address in {ip_of(text) for text in texts}
