# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove that the management of a host does not need its rails: set all rails down for some seconds, then up again.

Before a rail is set down, a transient timer of systemd is armed. It sets the rails up and restores their addresses and routes, whatever
happens to this program, to Ansible or to the connection. Sources: systemd-run(1), ip-address(8), ip-route(8), chronyc(1), RFC 1035;
net/ipv6/addrconf.c: the kernel removes addresses of IPv6 and all routes of an interface that is set down.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base import restore_timer
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.restore_timer import arm, disarm, script, write_private
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import MODES, PID_FILE, SOURCE_VALUES
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import is_up
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session

UNIT = "rdma-planes-restore"
FOLDER = "/run/rdma-cluster-planes"
STATE, SCRIPT = "state.json", "restore.sh"
#: The timer's delay, and how long the addresses may take to come back.
TIMER_SECONDS, BACK_SECONDS = 60, 30.0
DNS_SECONDS, NTP_SECONDS, LOOK_SECONDS = 3.0, 12.0, 0.5
#: Routes that the kernel, or a router's advertisement, sets again by itself.
_BY_THEMSELVES = ("kernel", "ra")
_STATE_WORDS = ("linkdown", "dead")
_STATE_PAIRS = ("expires", "pref")
SOURCES, BURST = ("chronyc", "-n", "-c", "sources"), ("chronyc", "burst", "1/2")
_LAST_RX = 6
#: States of a source of chrony that has answered: selected, combined, not combined.
_REACHED = "*+-"
_SERVFAIL = 2

#: Whether a name server answers a query.
Asks = Callable[[str], bool]


@dataclass(frozen=True)
class Saved:
    """The state before the proof. netdevs: the interfaces of the rails; restore: the commands that bring addresses and routes back.

    addresses, routes: interface → what it had; name_servers, ntp: those that answered; began_seconds: of the monotonic clock.
    """

    netdevs: list[str]
    addresses: dict[str, list[str]]
    routes: dict[str, list[str]]
    restore: list[list[str]]
    name_servers: list[str] = field(default_factory=list)
    ntp: list[str] = field(default_factory=list)
    began_seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """lost: what the host lost while its rails were down, and what did not come back, as sentences; none if the proof has passed."""

    lost: list[str]
    answered: list[str]


def interfaces_on(netdevs: Sequence[str], sys: SysRoot) -> list[str]:
    """Return the rails' interfaces and those above them: VLANs, bonds and bridges (upper_IF in sysfs)."""
    found, todo = list(dict.fromkeys(netdevs)), list(netdevs)
    while todo:
        for name in sys.list_dir(f"/sys/class/net/{todo.pop()}"):
            upper = name.partition("upper_")[2] if name.startswith("upper_") else ""
            if upper and upper not in found:
                found.append(upper)
                todo.append(upper)
    return found


def refuse_session(session: Session, netdevs: Sequence[str], sys: SysRoot) -> None:
    """Raise ApplyError if Ansible's SSH session uses a rail, or if there is no session or its interface is unknown."""
    if session.netdev in interfaces_on(netdevs, sys):
        raise ApplyError(f"Ansible's SSH session uses {session.netdev}, which is a rail or is on one: its proof would cut the session.")
    if session.netdev is None:
        why = f"no single interface has its address {session.address}" if session.address else "the connection is not SSH"
        raise ApplyError(f"The interface of Ansible's SSH session is unknown ({why}), so the proof would prove nothing.")


def parse_addresses(text: str) -> list[tuple[str, ...]]:
    """Return the words of `ip address add` for each static address of an interface that other hosts can use.

    text: of `ip -json address show dev IF`. Raises ParseError for another form.
    """
    found: list[tuple[str, ...]] = []
    try:
        for each in (info for item in json.loads(text or "[]") for info in item.get("addr_info", ())):
            if each.get("scope") == "global" and not each.get("dynamic") and not each.get("temporary"):
                broadcast = ("brd", each["broadcast"]) if "broadcast" in each else ()
                found.append((f"{each['local']}/{each['prefixlen']}", *broadcast))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `ip -json address show`: {exc!r} in {quoted(text)}") from exc
    return found


def parse_own_routes(text: str) -> list[str]:
    """Return the routes that nobody sets again by itself, as `ip route add` reads them, those without a router first.

    text: of `ip -4 route show table all dev IF`, or with -6. The next hops of a multipath route are not shown there.
    """
    routes = [_route_words(line) for line in text.splitlines() if line.strip() and not line[0].isspace()]
    kept = [words for words in routes if _value(words, "proto") not in _BY_THEMSELVES and words[0] not in ("local", "broadcast", "anycast")]
    return [" ".join(words) for words in sorted(kept, key=lambda words: "via" in words)]


def _route_words(line: str) -> list[str]:
    words, kept = iter(line.split()), []
    for word in words:
        if word in _STATE_PAIRS:
            next(words, None)
        elif word not in _STATE_WORDS:
            kept.append(word)
    return kept


def _value(words: Sequence[str], key: str) -> str | None:
    return words[words.index(key) + 1] if key in words[:-1] else None


def _read_addresses(runner: Runner, netdev: str) -> list[tuple[str, ...]]:
    return parse_addresses(run_checked(runner, "ip", "-json", "address", "show", "dev", netdev))


def _read_routes(runner: Runner, netdev: str) -> list[tuple[str, str]]:
    """Return the option of the family, and the route."""
    return [
        (family, route)
        for family in ("-4", "-6")
        for route in parse_own_routes(run_checked(runner, "ip", family, "route", "show", "table", "all", "dev", netdev))
    ]


def save(netdevs: Sequence[str], runner: Runner, sys: SysRoot) -> Saved:
    """Read the addresses and routes of the rails. Raises ApplyError if `ip` fails."""
    addresses, routes = {}, {}
    commands: list[list[str]] = [["ip", "link", "set", "dev", netdev, "up"] for netdev in netdevs]
    later: list[list[str]] = []
    for netdev in interfaces_on(netdevs, sys):
        has, leads = _read_addresses(runner, netdev), _read_routes(runner, netdev)
        addresses[netdev] = [words[0] for words in has]
        routes[netdev] = [f"{family} {route}" for family, route in leads]
        commands += [["ip", "address", "replace", *words, "dev", netdev] for words in has]
        later += [["ip", family, "route", "replace", *route.split(), "dev", netdev] for family, route in leads]
    return Saved(list(netdevs), addresses, routes, [*commands, *later])


def take_down(
    netdevs: Sequence[str], *, runner: Runner, sys: SysRoot, name_servers: Sequence[str], asks: Asks, folder: Path = Path(FOLDER)
) -> Saved:
    """Arm the timer, then set the rails down. Raises ApplyError if the timer is not armed: then no rail is set down.

    A rail that cannot be set down ends the proof: the rails are set up again.
    """
    answering, ntp = [each for each in name_servers if asks(each)], _answering(runner, sys)
    saved = save(netdevs, runner, sys)
    saved = Saved(**{**asdict(saved), "name_servers": answering, "ntp": ntp, "began_seconds": time.monotonic()})
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / SCRIPT, script(saved.restore))
    write_private(folder / STATE, json.dumps(asdict(saved)))
    timer, unchanged = "The timer that would set the rails up again", "no rail was set down"
    arm(runner, UNIT, folder / SCRIPT, TIMER_SECONDS, timer=timer, unchanged=unchanged)
    try:
        for netdev in netdevs:
            run_checked(runner, "ip", "link", "set", "dev", netdev, "down")
        left = [netdev for netdev in netdevs if is_up(netdev, sys)]
        if left:
            raise ApplyError(f"still up after `ip link set dev {left[0]} down`: {', '.join(left)}")
    except (ApplyError, CommandError):
        _restore(saved, runner)
        raise
    return saved


def is_armed(runner: Runner) -> bool:
    """Return whether the timer waits. Raises ApplyError if systemd does not answer."""
    return restore_timer.is_armed(runner, UNIT)


def bring_up(*, runner: Runner, sys: SysRoot, asks: Asks, folder: Path = Path(FOLDER)) -> Outcome:
    """Ask the servers, set the rails up, wait until they have their addresses and routes again, and disarm the timer.

    The timer stays armed if something did not come back. Raises ApplyError if no proof is under way.
    """
    saved = _saved(folder)
    lost: list[str] = []
    down = [netdev for netdev in saved.netdevs if not is_up(netdev, sys)]
    if not is_armed(runner) or len(down) < len(saved.netdevs):
        lost.append(f"the rails were set up again, after {time.monotonic() - saved.began_seconds:.0f} s, before the host was reached")
    else:
        lost += [f"name server {each} no longer answers" for each in saved.name_servers if not asks(each)]
        lost += _lost_ntp(saved, runner)
    _restore(saved, runner)
    missing = _wait_for(saved, runner, sys)
    if missing:
        return Outcome([*lost, *missing], [])
    disarm(runner, UNIT)
    for name in (STATE, SCRIPT):
        (folder / name).unlink()
    return Outcome(lost, [*(f"name server {each}" for each in saved.name_servers), *(f"NTP server {each}" for each in saved.ntp)])


def _saved(folder: Path) -> Saved:
    try:
        return Saved(**json.loads((folder / STATE).read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ApplyError(f"No proof is under way on this host: there is no {folder / STATE}.") from error


def _restore(saved: Saved, runner: Runner) -> None:
    for command in saved.restore:
        runner.run(command)


def _wait_for(saved: Saved, runner: Runner, sys: SysRoot) -> list[str]:
    """Return what has not come back in time, as sentences. What a network manager removes meanwhile is set again."""
    deadline = time.monotonic() + BACK_SECONDS
    while True:
        missing = _missing(saved, runner, sys)
        if not missing or time.monotonic() >= deadline:
            return missing
        time.sleep(LOOK_SECONDS)
        _restore(saved, runner)


def _missing(saved: Saved, runner: Runner, sys: SysRoot) -> list[str]:
    found = [f"{netdev} is still down" for netdev in saved.netdevs if not is_up(netdev, sys)]
    for netdev, addresses in saved.addresses.items():
        has = {words[0] for words in _read_addresses(runner, netdev)}
        found += [f"{netdev} has lost its address {each}" for each in addresses if each not in has]
        routes = {f"{family} {route}" for family, route in _read_routes(runner, netdev)}
        found += [f"{netdev} has lost a route: ip {each}" for each in saved.routes[netdev] if each not in routes]
    return found


def parse_sources(text: str) -> dict[str, tuple[str, float]]:
    """Parse `chronyc -n -c sources`: server → its state and the seconds since its last answer. Raises ParseError.

    Reference clocks are left out: they need no network.
    """
    found = {}
    for line in filter(None, text.splitlines()):
        values = line.split(",")
        if len(values) != SOURCE_VALUES or values[0] not in tuple(MODES) or not values[_LAST_RX].isdecimal():
            raise ParseError(f"not a source of chronyc: {quoted(line)}")
        if values[0] != "#":
            found[values[2]] = (values[1], float(values[_LAST_RX]))
    return found


def _answering(runner: Runner, sys: SysRoot) -> list[str]:
    """Return the servers from which chrony has its time; none if it does not run."""
    if not sys.exists(PID_FILE):
        return []
    return [name for name, (state, _seconds) in parse_sources(run_checked(runner, *SOURCES)).items() if state in _REACHED]


def _lost_ntp(saved: Saved, runner: Runner) -> list[str]:
    """Make chrony ask its servers, and return a sentence for each that does not answer."""
    if not saved.ntp:
        return []
    asked = time.monotonic()
    try:
        run_checked(runner, *BURST)
        while True:
            elapsed = time.monotonic() - asked
            seen = parse_sources(run_checked(runner, *SOURCES))
            silent = [each for each in saved.ntp if each not in seen or seen[each][1] > elapsed]
            if not silent or elapsed >= NTP_SECONDS:
                return [f"NTP server {each} no longer answers" for each in silent]
            time.sleep(LOOK_SECONDS)
    except (ApplyError, CommandError, ParseError) as error:
        return [f"whether the NTP servers answer is unknown: {error}"]


def answers(server: str, port: int = 53) -> bool:
    """Return whether a name server answers a query for the root's name servers, with anything but a failure of its own."""
    number = secrets.randbelow(1 << 16)
    query = struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + b"\0" + struct.pack(">2H", 2, 1)
    try:
        family, kind, protocol, _name, where = socket.getaddrinfo(server, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)[0]
        with socket.socket(family, kind, protocol) as asking:
            asking.settimeout(DNS_SECONDS)
            asking.connect(where)
            asking.send(query)
            reply = asking.recv(4096)
    except OSError:
        return False
    return len(reply) >= 12 and reply[:2] == query[:2] and reply[3] & 0xF != _SERVFAIL
