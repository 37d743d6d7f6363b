# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `lab clos`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lab import clos, clos_lldp, clos_systemd, preflight
from lab.clos_plan import ClosShape
from lab.errors import LabError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    """Add `clos` and its subcommands to the lab's commands."""
    text = "a routed Clos network of network namespaces, with the real FRR on its switches"
    top = commands.add_parser("clos", help=text, description=text)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default="clos", help="which network; several can be up side by side (default: clos)")
    verbs = top.add_subparsers(dest="verb", required=True)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, parents=[common])

    up = verb("up", "create leaves, spines, hosts and their cables")
    up.add_argument("--leaves", type=int, default=2, help="how many (default: 2)")
    up.add_argument("--spines", type=int, default=2, help="how many (default: 2)")
    up.add_argument("--hosts", type=int, default=1, help="of each leaf (default: 1)")
    up.add_argument("--cores", type=int, default=0, help="switches of a third tier (default: 0)")
    up.add_argument("--pods", type=int, default=1, help="with cores: divide leaves and spines into so many pods (default: 1)")
    up.add_argument("--frr", type=Path, metavar="FOLDER", help="start FRR on each switch or host that has FOLDER/NODE/frr.conf")
    verb("frr", "start FRR again, with other configurations").add_argument("folder", type=Path, help="with NODE/frr.conf")
    verb("boot", "start systemd in each node, and FRR as its service on each switch that has a configuration")
    verb("lldp", "start lldpd in each node")
    verb("add-leaf", "add a leaf with its cables and hosts to a running network; start its FRR with `frr`")
    verb("counters", "print the byte and packet counters of every port as JSON")
    verb("down", "remove a network and all that belongs to it")
    for name, text in (
        ("cut", "take the carrier from both ends of a cable"),
        ("silence", "drop everything on a cable that keeps its carrier"),
        ("restore", "make a cable as good as new"),
    ):
        verb(name, text).add_argument("link", metavar="LINK", help="leaf1/1, spine2/1, or host1")
    mtu = verb("mtu", "set the MTU of a port")
    mtu.add_argument("link", metavar="LINK")
    mtu.add_argument("mtu_bytes", type=int, metavar="BYTES")
    run = verb("run", "run a command inside a node: run leaf1 -- vtysh -c 'show bgp summary'")
    run.add_argument("node")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="command")


def _run(name: str, arguments: argparse.Namespace) -> None:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise LabError("Name the command to run, for example: lab clos run leaf1 -- vtysh -c 'show bgp summary'")
    argv = clos.load(name).argv(arguments.node, words)
    os.execvp(argv[0], argv)


VERBS: dict[str, Callable[[str, argparse.Namespace], object]] = {
    "up": lambda name, given: clos.up(name, ClosShape(given.leaves, given.spines, given.hosts, given.cores, given.pods), given.frr),
    "frr": lambda name, given: clos.route(clos.load(name), clos.texts_of(given.folder)),
    "boot": lambda name, _given: clos_systemd.boot(clos.load(name)),
    "lldp": lambda name, _given: clos_lldp.start(clos.load(name)),
    "add-leaf": lambda name, _given: clos.add_leaf(clos.load(name)),
    "counters": lambda name, _given: print(json.dumps(clos.counters(clos.load(name)))),
    "down": lambda name, _given: clos.down(name),
    "cut": lambda name, given: clos.cut(clos.load(name), given.link),
    "silence": lambda name, given: clos.silence(clos.load(name), given.link),
    "restore": lambda name, given: clos.restore(clos.load(name), given.link),
    "mtu": lambda name, given: clos.set_mtu(clos.load(name), given.link, given.mtu_bytes),
    "run": _run,
}


def dispatch(arguments: argparse.Namespace) -> None:
    """Run one command."""
    preflight.need_root()
    VERBS[arguments.verb](arguments.name, arguments)
