# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's command line."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from types import FrameType

from lab import clos_cli, cluster, fabric, fabric_cli, fabric_state, namespace, preflight, remote
from lab.errors import LabError
from lab.mesh import EXAMPLE
from lab.plan import KINDS


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(prog="lab", description=__import__("lab").__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default="lab", help="which lab; several can be up side by side (default: lab)")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    up = command("up", "bring a lab up and write its inventory")
    up.add_argument("--nodes", type=int, default=4, help="how many (default: 4)")
    up.add_argument("--kind", choices=KINDS, default="machine", help="machine: QEMU, own kernel, RDMA; container: nspawn")
    up.add_argument("--port-base", type=int, help="node N answers on 127.0.0.1, port BASE+N (default: a free block)")
    up.add_argument("--kernel-args", default="", metavar="WORDS", help="for each machine's kernel, for example lockdown=integrity")
    up.add_argument("--mesh", metavar="full|ring|line|FILE", help=f"cables between the nodes instead of switches; FILE: {EXAMPLE}")
    text = "switches that route, instead of a switch for each rail; clos: two leaves and two spines; FILE: a cabling plan"
    up.add_argument("--fabric", metavar="clos|FILE", help=text)
    command("down", "remove a lab and all that belongs to it")
    command("status", "show the nodes of a lab")
    command("counters", "print the byte and packet counters of every cable as JSON")
    ssh = command("ssh", "open a shell on a node, or run a command there")
    ssh.add_argument("node")
    ssh.add_argument("words", nargs=argparse.REMAINDER, metavar="command")
    power = command("power", "switch a node off or on, as with its plug")
    power.add_argument("node")
    power.add_argument("action", choices=("off", "on", "cycle"))
    cable = command("cable", "break or restore the cable of a node's rail")
    cable.add_argument("node", nargs="?")
    cable.add_argument("rail", type=int, nargs="?")
    cable.add_argument("--rate", help="limit both directions, for example 20mbit")
    cable.add_argument("--loss", type=int, choices=range(101), metavar="PERCENT", help="drop frames at random")
    cable.add_argument("--mark", type=int, metavar="MBIT", help="towards the node, mark what comes faster (ECN); 0: nothing")
    cable.add_argument("--mtu", type=int, metavar="BYTES", help="drop larger frames towards the node")
    cable.add_argument("--cut", action="store_true", default=None, help="no carrier")
    cable.add_argument("--restore", action="store_true", default=None, help="a good cable again")
    cable.add_argument("--swap", nargs=2, metavar="NODE/RAIL", help="exchange the plugs in two ports; without NODE and RAIL before it")
    fabric_cli.add(commands)
    clos_cli.add(commands)
    return top


def dispatch(arguments: argparse.Namespace) -> None:
    """Run one command."""
    name = arguments.name
    match arguments.command:
        case "fabric" | "clos" as part:
            {"fabric": fabric_cli, "clos": clos_cli}[part].dispatch(arguments)
        case "up":
            parts = {"mesh": arguments.mesh, "fabric": arguments.fabric}
            cluster.up(name, arguments.kind, arguments.nodes, arguments.port_base, arguments.kernel_args, **parts)
        case "down":
            _down(name)
        case "status":
            cluster.status(name)
        case "counters":
            preflight.need_root("to look into the network namespace of the lab")
            print(json.dumps(namespace.counters(cluster.load(name).plan.namespace)))
        case "power":
            cluster.power(name, arguments.node, arguments.action)
        case "ssh":
            lab = cluster.load(name)
            argv = remote.ssh_argv(lab.plan.node(arguments.node), lab.folder)
            os.execvp(argv[0], argv + arguments.words)
        case "cable":
            _cable(name, arguments)


def _cable(name: str, arguments: argparse.Namespace) -> None:
    """Apply the changes of the command line to a cable, or swap two."""
    names = ("rate", "loss", "mark", "mtu", "cut", "restore")
    change = {key: getattr(arguments, key) for key in names if getattr(arguments, key) is not None}
    if arguments.swap:
        if change or arguments.node is not None:
            raise LabError("Use --swap alone: lab cable --swap node1/0 node1/1.")
        cluster.swap(name, *arguments.swap)
        return
    if not change:
        raise LabError("Say what to do to the cable: --rate, --loss, --mark, --mtu, --cut, --restore or --swap.")
    if arguments.rail is None:
        raise LabError("Say which cable: lab cable NODE RAIL, for example lab cable node1 0.")
    cluster.cable(name, arguments.node, arguments.rail, change)


def _down(name: str) -> None:
    """Remove a lab, and the fabrics that use its containers as hosts."""
    for standing in fabric_state.on_lab(name):
        fabric.down(standing)
    cluster.down(name)


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(words: list[str] | None = None) -> int:
    """Run the command line, and return its exit status: 0 done, 1 failed (message on standard error), 130 interrupted and cleaned up."""
    arguments = parser().parse_args(words)
    # The user of sudo must be able to read the lab's folders. Secret files in them have their own mode.
    os.umask(0o022)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        dispatch(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted; what had been started is removed.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe (| head). Without this, Python reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
