# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The live view: `python3 -m …._watch -i inventory.yml`. It reads only, and ends with Ctrl-C or after --seconds."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._watch.reader import LONGEST_SECONDS, SECONDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.hosts import Readers, Target, target_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.rich import Console, Live
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.screen import as_text, screen
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.view import View, parse_recording, recorded

#: How long --once waits for all hosts, in intervals and at least in seconds. Two readings make a rate.
ONCE_INTERVALS, ONCE_SECONDS = 3.0, 15.0
_TABLE_LINES = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Show the ports; 1 for an inventory, a recording or a file that cannot be used, and without rich."""
    given = _arguments().parse_args(argv)
    try:
        if not given.json:
            # If rich is missing, fail before a host is contacted.
            Console()
        if given.replay is not None:
            return _replay(given)
        targets = _targets(given)
        if not targets:
            raise ParseError(f"'{given.limit}' names no host of the inventory")
        return _live(given, targets)
    except (ParseError, AnsibleError, OSError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())[:500]}\n")
        return 1
    except KeyboardInterrupt:
        return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rdma-watch", description="Show the RDMA ports of all hosts, the odd ones first.")
    parser.add_argument("-i", "--inventory", action="append", default=[], help="as of ansible-playbook")
    parser.add_argument("-l", "--limit", default="all", help="hosts to show")
    parser.add_argument("-b", "--become", action="store_true", help="read as root, with sudo -n (no password is asked for)")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between readings (1)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"end after this time ({SECONDS:.0f})")
    parser.add_argument("--once", action="store_true", help="print one screen and end")
    parser.add_argument("--json", action="store_true", help="print a line of JSON instead of each screen")
    parser.add_argument("--record", metavar="FILE", help="also write all readings to a new file")
    parser.add_argument("--replay", metavar="FILE", help="show a recording; contacts no host")
    parser.add_argument("--width", type=int, default=0, help="columns of a screen that is not a terminal's")
    return parser


def _targets(given: argparse.Namespace) -> list[Target]:
    loader = DataLoader()  # type: ignore[no-untyped-call]
    inventory = InventoryManager(loader=loader, sources=list(given.inventory) or None)  # type: ignore[no-untyped-call]
    variables = VariableManager(loader=loader, inventory=inventory)
    hosts = inventory.get_hosts(given.limit)  # type: ignore[no-untyped-call]
    switches = {host.name for host in inventory.groups["rdma_switches"].get_hosts()} if "rdma_switches" in inventory.groups else set()
    shown = [host for host in hosts if host.name not in switches]
    return [target_of(host.name, variables.get_vars(host=host), become=given.become) for host in shown]


def _take(readers: Readers, seconds: float, view: View, file: TextIO | None) -> None:
    """Take what comes from the hosts in some seconds, and record it if there is a file."""
    for entry in readers.entries(seconds):
        view.add(entry)
        if file is not None:
            file.write(f"{entry.to_json()}\n")


def _live(given: argparse.Namespace, targets: Sequence[Target]) -> int:
    names, seconds = [target.name for target in targets], min(given.seconds, LONGEST_SECONDS)
    view = View(names, given.interval)
    with ExitStack() as stack:
        file: TextIO | None = None
        if given.record is not None:
            file = stack.enter_context(Path(given.record).open("x", encoding="utf-8"))
            file.write(next(recorded(names, given.interval, ())) + "\n")
        readers = Readers(targets, ["--interval", str(given.interval), "--seconds", str(seconds)])
        stack.callback(readers.close)
        if given.once:
            until = max(ONCE_INTERVALS * given.interval, ONCE_SECONDS)
            while readers.seconds < until and not view.is_complete:
                _take(readers, 0.2, view, file)
            _print(given, view)
            return 0
        show = _shower(given, stack)
        while readers.seconds < seconds and not view.all_ended:
            _take(readers, given.interval, view, file)
            view.now = readers.seconds
            show(view)
    return 0


def _replay(given: argparse.Namespace) -> int:
    with Path(given.replay).open(encoding="utf-8") as file, ExitStack() as stack:
        view, entries = parse_recording(file)
        if given.once:
            for entry in entries:
                view.add(entry)
            _print(given, view)
            return 0
        show, begun, shown = _shower(given, stack), time.monotonic(), 0.0
        for entry in entries:
            while entry.got - shown > view.interval:
                shown += view.interval
                view.now = max(view.now, shown)
                time.sleep(max(begun + shown - time.monotonic(), 0.0))
                show(view)
            view.add(entry)
        show(view)
    return 0


def _shower(given: argparse.Namespace, stack: ExitStack) -> Callable[[View], None]:
    """Return what shows a view: a live screen of a terminal, else a text or a line of JSON each time."""
    if given.json or not (console := Console()).is_terminal:
        return lambda view: _print(given, view)
    live = stack.enter_context(Live(console=console, screen=True, auto_refresh=False))
    return lambda view: live.update(screen(view, console.height - _TABLE_LINES, console.width), refresh=True)


def _print(given: argparse.Namespace, view: View) -> None:
    text = json.dumps(view.to_dict(), sort_keys=True) + "\n" if given.json else as_text(view, width=given.width or 200)
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
