# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replace the driver of a running host: the modules to unload, their order, and the obstacles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import ADD_ONS, Module, compare
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import INBOX, planned_modules
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import (
    COMPAT,
    holders_of,
    module_uses,
    storage_uses,
    with_holders,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.swap import unload_order
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import interfaces_below
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import OFED_DRIVERS, module_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import check_options
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

Modules = Mapping[str, Module]


def reload_plan(intent: Intent, facts: Facts, *, changes: bool) -> dict[str, Any]:
    """Return the reload of the driver: needed, why, live (no obstacles), obstacles in words, modules (top first).

    changes: whether modules are about to be installed or removed. Then the loaded modules decide until facts are read again. always: an
    option of a module differs, so it is reloaded although it is the one on disk.
    """
    stack = stack_of(facts)
    modules = stack.modules
    swapped = _replaced(intent, modules) if changes else differing(modules)
    options = {} if changes else options_that_differ(intent, facts)
    found = {"needed": False, "always": bool(options), "live": False, "obstacles": [], "modules": []}
    if not swapped and not options:
        return {**found, "why": "the loaded modules are those on disk"}
    touched = with_holders({*swapped, *options}, modules)
    order = unload_order({name: holders_of(name, modules) for name in touched})
    unsigned = [] if changes else unsigned_replacements(stack)
    obstacles = [*unsigned, *_obstacles(order, intent, facts)]
    verb = "will be replaced" if changes else f"{'differs' if len(swapped) == 1 else 'differ'} from the file on disk"
    why = [*([f"{', '.join(sorted(swapped))} {verb}"] if swapped else []), *(words for each in options.values() for words in each)]
    return {**found, "needed": True, "why": "; ".join(why), "live": not obstacles, "obstacles": obstacles, "modules": order}


def with_obstacles(findings: Sequence[Finding], intent: Intent, facts: Facts) -> list[Finding]:
    """Return the findings. The remedy of each error that requires a reload (driver.loaded) also has the obstacles."""
    obstacles = reload_plan(intent, facts, changes=False)["obstacles"]
    words = f" It cannot be reloaded on the running host: {'; '.join(obstacles)}."
    asks = [bool(obstacles) and finding.check == "driver.loaded" and finding.status == ERROR for finding in findings]
    return [replace(finding, remedy=finding.remedy + words) if ask else finding for finding, ask in zip(findings, asks, strict=True)]


def differing(modules: Modules) -> list[str]:
    """Return the loaded modules that differ from the ones on disk, and OFED's base if its file is gone.

    The base stays if a module on it has no file either, because that could not be loaded again.
    """
    others = {name for name, module in modules.items() if compare(module) == ERROR}
    base = modules.get(COMPAT)
    gone = base is not None and base.file is None and others.issuperset(base.holders)
    return [name for name in modules if name in others or (name == COMPAT and gone)]


def options_that_differ(intent: Intent, facts: Facts) -> dict[str, list[str]]:
    """Return the loaded modules without the options of the intent: name → words, "mlx5_core.prof_sel is 2, expected 3"."""
    modules = stack_of(facts).modules
    found: dict[str, list[str]] = {}
    for each in check_options("", intent, facts):
        name, dot, _option = each.subject.partition(".")
        if each.status == ERROR and dot and name in modules:
            found.setdefault(name, []).append(f"{each.subject} is {each.observed}, expected {each.expected}")
    return found


def unsigned_replacements(stack: Stack) -> list[str]:
    """Return a sentence, or none, on modules on disk that would replace loaded ones but that Secure Boot would reject."""
    if not stack.secure_boot:
        return []
    modules = stack.modules
    names = [each for each in differing(modules) if modules[each].provenance in ADD_ONS and modules[each].signer is None]
    return [f"Secure Boot is on; unsigned modules: {', '.join(sorted(names))} on disk"] if names else []


def _replaced(intent: Intent, modules: Modules) -> list[str]:
    """Return the loaded modules that an installation or a removal will replace, as far as it is known in advance.

    OFED's core needs mlx_compat. Without it, the core is the kernel's, Soft-RoCE uses it, and it stays.
    """
    drivers = [name for name in (*OFED_DRIVERS, COMPAT) if name in modules]
    core_stays = COMPAT in modules and "ib_core" not in modules[COMPAT].holders
    core = [] if core_stays or "ib_core" not in modules else ["ib_core"]
    if planned_modules(intent) == INBOX:
        return [name for name in (*drivers, *core) if modules[name].provenance in ADD_ONS]
    return [*drivers, *core] if drivers else []


def _obstacles(order: Sequence[str], intent: Intent, facts: Facts) -> Iterator[str]:
    stack = stack_of(facts)
    for name in order:
        yield from module_uses(name, order, stack.modules)
    yield from storage_uses(stack)
    yield from filter(None, [busy_words(facts.load)])
    yield from _session(facts, set(order))
    yield from _others(intent, facts, set(order))


def _session(facts: Facts, swapped: Collection[str]) -> Iterator[str]:
    """Yield whether Ansible's session would be cut: its interface, or one below its bond, bridge or VLAN, uses a replaced driver."""
    name = _session_netdev(facts)
    if name is None:
        yield "the interface of Ansible's session is unknown"
        return
    below = _below_session(facts)
    if not below:
        yield f"Ansible's session uses {name}, whose lower interfaces are unknown"
    for each in below:
        driver = _driver(facts.netdevs[each])
        if not driver:
            yield f"Ansible's session uses {each}, whose driver is unknown"
        elif driver in swapped:
            yield f"Ansible's session uses {each}, a device of {driver}"


def _session_netdev(facts: Facts) -> str | None:
    return facts.session.netdev if facts.session is not None else None


def _below_session(facts: Facts) -> list[str]:
    """Return the NICs that carry Ansible's session: its interface, those below its VLAN or bond, or the ports of its bridge."""
    below = _below(_session_netdev(facts) or "", facts)
    nics = _nics(below, facts)
    return nics or _nics([name for each, netdev in facts.netdevs.items() if netdev.master in below for name in _below(each, facts)], facts)


def _below(name: str, facts: Facts) -> list[str]:
    return interfaces_below(name, facts.vlans, facts.bonds)


def _nics(names: Iterable[str], facts: Facts) -> list[str]:
    """Return which of these interfaces are neither a VLAN nor a bond, each once."""
    made = {*(facts.vlans or ()), *(facts.bonds or ())}
    return [name for name in dict.fromkeys(names) if name in facts.netdevs and name not in made]


def _driver(netdev: Netdev) -> str:
    """Return the module of an interface."""
    return module_of(netdev.driver or "")


def _others(intent: Intent, facts: Facts, swapped: Collection[str]) -> Iterator[str]:
    """Yield other interfaces of a replaced driver that are up and carry an address, except rails and those of Ansible's session."""
    known = {*_below_session(facts), *(name for rail in resolve(intent.get("rails") or [], facts) for name in rail.netdevs)}
    for name, netdev in facts.netdevs.items():
        if name not in known and _driver(netdev) in swapped and netdev.admin_up is not False:
            yield from _carried(name, netdev, facts)


def _carried(name: str, netdev: Netdev, facts: Facts) -> Iterator[str]:
    """Yield the use of one interface. A bond or bridge is in the facts only if it is read."""
    what, master, netdevs = f"{name} ({_driver(netdev)})", netdev.master, facts.netdevs
    above = [other for other in netdevs if other == master or (other != name and name in _below(other, facts))]
    addresses = [ip_of(each) for other in (name, *above) for each in netdevs[other].addresses or ()]
    if addresses:
        yield f"{what} carries {', '.join(addresses)}: storage or other services may use it"
    elif master is not None and master not in netdevs:
        yield f"{what} is part of {master}: storage or other services may use it"
    elif netdev.addresses is None:
        yield f"whether {what} carries an address is unknown"
