# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a router: what FRR's vtysh prints, the kernel's own routes, and the kernel settings of routing. Changes nothing.

The texts travel to the control node as they are, and are parsed there (router_state), so that one parser is the check of their form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import live_values
from ansible_collections.rdma.cluster.plugins.module_utils._routing.kernel import KERNEL, parse_ip_route_show
from ansible_collections.rdma.cluster.plugins.module_utils._routing.vtysh import (
    BgpNeighbor,
    BgpRoute,
    BgpSummary,
    Interface,
    Route,
    parse_show_bfd_peers,
    parse_show_bgp_ipv4_unicast,
    parse_show_bgp_neighbors,
    parse_show_bgp_summary,
    parse_show_interface,
    parse_show_ip_route,
)

SUMMARY, NEIGHBORS, TABLE = "show bgp summary json", "show bgp neighbors json", "show bgp ipv4 unicast json"
ROUTES, BFD, INTERFACES = "show ip route json", "show bfd peers json", "show interface json"
COMMANDS = (SUMMARY, NEIGHBORS, TABLE, ROUTES, BFD, INTERFACES)
#: The kernel settings, by sysctl name (Linux, Documentation/networking/ip-sysctl.rst).
FORWARD, FORWARD6, HASH = "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.fib_multipath_hash_policy"
LINKDOWN = "net.ipv4.conf.all.ignore_routes_with_linkdown"
SYSCTLS = (FORWARD, FORWARD6, HASH, LINKDOWN)
#: The longest text of a command that is accepted, in characters: the table of 30,000 prefixes with 32 paths.
LONGEST = 512 * 1024 * 1024
#: The next part of an output that is not white space.
_NEXT = re.compile(r"\S")
#: FRR prints this if the daemon of a command does not run.
NOT_RUNNING = ("is not running", "failed to connect to any daemons")


@dataclass(frozen=True)
class RouterState:
    """What was read of a router. bfd: interface → status, None if bfdd does not run. sysctls: name → value, without unreadable ones.

    kernel: prefix → the interfaces of the kernel's paths, or why they are not known.
    """

    summary: BgpSummary
    neighbors: dict[str, BgpNeighbor]
    table: list[BgpRoute]
    routes: list[Route]
    bfd: dict[str, str] | None
    interfaces: dict[str, Interface]
    sysctls: dict[str, int]
    kernel: dict[str, list[str]] | str


def read_router(sys: SysRoot, runner: Runner) -> dict[str, Any]:
    """Return what was read.

    "texts": command of vtysh → its output. "sysctls": name → text. "kernel": the kernel's routes as `ip` prints them, and
    "kernel_problem" why they could not be read. "problem": why FRR could not be read. A problem is None if there is none.
    """
    texts, problem = _read_together(runner), None
    if texts is None:
        texts, problem = _read_each(runner)
    known = {name: text for name, text in live_values(sys, SYSCTLS).items() if text is not None}
    return {"texts": texts, "sysctls": known, "problem": problem, **_read_kernel(runner)}


def _read_together(runner: Runner) -> dict[str, str] | None:
    """Return command → its output, by one start of vtysh; None if not each command has answered with JSON.

    vtysh loads the commands of all daemons when it starts, which takes longer than an answer.
    """
    try:
        done = runner.run(["vtysh", *(word for command in COMMANDS for word in ("-c", command))])
    except CommandError:
        return None
    parts = _split(done.stdout) if done.rc == 0 else []
    return dict(zip(COMMANDS, parts)) if len(parts) == len(COMMANDS) else None


def _split(text: str) -> list[str]:
    """Return the JSON texts that follow each other in an output; [] if there is anything else."""
    starts, decoder = [], json.JSONDecoder()
    found = _NEXT.search(text)
    while found is not None:
        starts.append(found.start())
        try:
            _value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            return []
        found = _NEXT.search(text, end)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]


def _read_each(runner: Runner) -> tuple[dict[str, str], str | None]:
    """Return command → its output, and why the next one could not be read, None if all were."""
    texts: dict[str, str] = {}
    for command in COMMANDS:
        try:
            done = runner.run(["vtysh", "-c", command])
        except CommandError as error:
            return texts, str(error)
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        if command != BFD and (done.rc or any(mark in done.stdout + done.stderr for mark in NOT_RUNNING)):
            return texts, f"`vtysh -c '{command}'`: {words[-1] if words else f'exit status {done.rc}'}"
        texts[command] = done.stdout
    return texts, None


def _read_kernel(runner: Runner) -> dict[str, Any]:
    try:
        done = runner.run(KERNEL)
    except CommandError as error:
        return {"kernel": None, "kernel_problem": str(error)}
    if done.rc:
        words = f"`{' '.join(KERNEL)}`: {done.stderr.strip()[:300] or f'exit status {done.rc}'}"
        return {"kernel": None, "kernel_problem": words}
    return {"kernel": done.stdout, "kernel_problem": None}


def router_state(answer: Mapping[str, Any]) -> RouterState:
    """Return the state in an answer of read_router, also in one from an untrusted router. Raises ParseError."""
    texts, sysctls, problem = answer.get("texts"), answer.get("sysctls"), answer.get("problem")
    if not isinstance(texts, dict) or not isinstance(sysctls, dict):
        raise ParseError("not an answer of this collection's reader of routers: expected texts and sysctls")
    if problem is not None:
        raise ParseError(str(problem)[:500])
    for command in COMMANDS:
        text = texts.get(command)
        if not isinstance(text, str) or len(text) > LONGEST:
            raise ParseError(f"`{command}`: expected a text of at most {LONGEST} characters, got {quoted(text)}")
    runs = not any(mark in texts[BFD] for mark in NOT_RUNNING) and texts[BFD].strip() != ""
    return RouterState(
        parse_show_bgp_summary(texts[SUMMARY]),
        parse_show_bgp_neighbors(texts[NEIGHBORS]),
        parse_show_bgp_ipv4_unicast(texts[TABLE]),
        parse_show_ip_route(texts[ROUTES]),
        parse_show_bfd_peers(texts[BFD]) if runs else None,
        parse_show_interface(texts[INTERFACES]),
        {name: int(text) for name, text in sysctls.items() if name in SYSCTLS and isinstance(text, str) and text in ("0", "1", "2", "3")},
        _kernel(answer.get("kernel"), answer.get("kernel_problem")),
    )


def _kernel(text: Any, problem: Any) -> dict[str, list[str]] | str:
    """Return the kernel's paths, or why they are not known. FRR's part of the answer is good without them."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return str(problem or f"`{' '.join(KERNEL)}` was not read")[:500]
    try:
        return parse_ip_route_show(text)
    except ParseError as error:
        return str(error)
