# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line for simulated InfiniBand fabrics: `lab fabric …`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from lab import cluster, fabric, fabric_faults, preflight
from lab.errors import LabError
from lab.fabric import FabricRequest
from lab.fabric_plan import KINDS, SWITCH_PORTS, Shape
from lab.plan import RAILS

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    """Add `fabric` and its subcommands to the lab's commands."""
    text = "a simulated InfiniBand fabric (ibsim) with the real opensm and the real tools"
    top = commands.add_parser("fabric", help=text, description=text)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default="fabric", help="which fabric; several can be up side by side (default: fabric)")
    verbs = top.add_subparsers(dest="verb", required=True)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, parents=[common])

    _add_up(verb("up", "bring a fabric up: simulator, subnet manager, planned cabling and node-name map"))
    verb("down", "remove a fabric and all that belongs to it")
    verb("status", "show its simulator and its subnet managers")
    for name, text in (("cut", "unplug a cable, or all of a node"), ("restore", "plug it in again, or give it its full width and speed")):
        verb(name, text).add_argument("link", metavar="LINK", help="leaf1/33, 'node17 mlx5_3', or leaf1 for all of it")
    swap = verb("swap", "exchange two cables at the ends named")
    swap.add_argument("links", nargs=2, metavar="LINK")
    degrade = verb("degrade", "make a cable narrower or slower")
    degrade.add_argument("link", metavar="LINK")
    degrade.add_argument("--width", type=int, choices=sorted(fabric_faults.WIDTHS), help="lanes")
    degrade.add_argument("--speed", choices=tuple(fabric_faults.SPEEDS))
    counter = verb("counter", "set a performance counter of a port")
    counter.add_argument("node")
    counter.add_argument("port", type=int)
    counter.add_argument("counter", help="by perfquery's name, for example SymbolErrorCounter")
    counter.add_argument("value", type=int)
    verb("console", "say something else to ibsim").add_argument("line", help='for example: Guid "leaf2" 0x506b4b0300000010')
    second = verb("second-sm", "start one more subnet manager")
    _add_manager(second)
    stop = verb("stop-sm", "end a subnet manager")
    stop.add_argument("number", type=int)
    stop.add_argument("--kill", action="store_true", help="by SIGKILL")
    verb("start-sm", "start one again that has ended").add_argument("number", type=int)
    run = verb("run", "run a tool on the fabric: run [--host 'node17 mlx5_3'] -- ibnetdiscover -p")
    run.add_argument("--host", help="the HCA or switch it is run at (default: the subnet manager's)")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="command")


def _add_up(up: argparse.ArgumentParser) -> None:
    up.add_argument(
        "--plan", choices=KINDS, default="rail", help="rail: leaves of its own for each rail (default); leafspine: a host's HCAs on one"
    )
    up.add_argument("--hosts", type=int, help="how many (default: 8, or as many as --lab has containers)")
    up.add_argument("--lab", default="", help="the lab whose containers are to be hosts of the fabric")
    up.add_argument("--no-sm", action="store_true", help="start no subnet manager: a host is to run it")
    up.add_argument("--rails", type=int, help="HCAs of a host (default: 4 of a rail plan, 1 of a leafspine)")
    up.add_argument("--spines", type=int, help="how many (default: as many as make it non-blocking)")
    up.add_argument("--uplinks", type=int, help="of a leaf, to all spines together (default: as many as it has HCAs)")
    up.add_argument("--ports", type=int, default=SWITCH_PORTS, help=f"of a switch (default: {SWITCH_PORTS})")
    up.add_argument("--unnamed", action="store_true", help="the switches describe themselves as factory-new ones do")
    _add_manager(up)


def _add_manager(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--host",
        help="the HCA or switch that opensm runs at (default: the first HCA; with --lab the last switch; of a second one: the next host)",
    )
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of opensm.conf, for example sm_priority=5")


def _options(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if wrong := [key for key, equals, _value in pairs if not equals]:
        raise LabError(f"--set takes KEY=VALUE; got '{wrong[0]}'.")
    return {key: value for key, _equals, value in pairs}


def _up(name: str, arguments: argparse.Namespace) -> None:
    few = RAILS if arguments.lab else 4
    rails = arguments.rails if arguments.rails is not None else few if arguments.plan == "rail" else 1
    all_hosts = len(cluster.load(arguments.lab).plan.nodes) if arguments.lab else 8
    hosts = arguments.hosts if arguments.hosts is not None else all_hosts
    shape = Shape(arguments.plan, hosts, rails, arguments.spines, arguments.uplinks, arguments.ports)
    request = FabricRequest(arguments.host, not arguments.unnamed, _options(arguments.set), arguments.lab, not arguments.no_sm)
    fabric.up(name, shape, request)


def _run(name: str, arguments: argparse.Namespace) -> None:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise LabError("Say what to run, for example: lab fabric run -- ibnetdiscover")
    fabric.run_tool(name, words, arguments.host)


VERBS: dict[str, Callable[[str, argparse.Namespace], None]] = {
    "up": _up,
    "down": lambda name, _given: fabric.down(name),
    "status": lambda name, _given: fabric.status(name),
    "cut": lambda name, given: fabric_faults.cut(name, given.link),
    "restore": lambda name, given: fabric_faults.restore(name, given.link),
    "swap": lambda name, given: fabric_faults.swap(name, *given.links),
    "degrade": lambda name, given: fabric_faults.degrade(name, given.link, given.width, given.speed),
    "counter": lambda name, given: fabric_faults.counter(name, given.node, given.port, given.counter, given.value),
    "console": lambda name, given: fabric_faults.console(name, given.line),
    "second-sm": lambda name, given: fabric.second_manager(name, given.host, _options(given.set)),
    "stop-sm": lambda name, given: fabric.stop_manager(name, given.number, kill=given.kill),
    "start-sm": lambda name, given: fabric.start_manager(name, given.number),
    "run": _run,
}


def dispatch(arguments: argparse.Namespace) -> None:
    """Run one command."""
    if arguments.verb != "status":
        preflight.need_folder()
    VERBS[arguments.verb](arguments.name, arguments)
