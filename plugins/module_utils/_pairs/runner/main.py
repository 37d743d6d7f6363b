# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures one host's share of all pairs: meets each partner, runs perftest with it, records what came of it.

It travels to the hosts as one file, needs nothing but Python 3.9 and Linux, and also runs by hand:

    python3 pair_runner.pyz --plan plan.json --token-file token --host node1 --results results.jsonl

and under srun or mpirun, one task a host: the host finds its own name in the plan, the token comes from the environment
(never from argv, which everybody sees), and where --results is a folder, each host writes HOST.jsonl in it:

    RDMA_PAIRS_TOKEN=$(cat token) srun --ntasks-per-node=1 --export=ALL python3 pair_runner.pyz --plan plan.json --results .
    mpirun --map-by ppr:1:node -x RDMA_PAIRS_TOKEN python3 pair_runner.pyz --plan plan.json --results .

Every host gets the same plan. Each rail paces itself: in every round the host meets its partner there at
(endpoint address, rendezvous_port + its number), each message signed with the token of the sweep. Who serves starts perftest's server
and, once that listens, lets the other start the client; so for each test of the plan. The runner does not judge: it appends
one JSON line per rail, round and test to the results, with the raw output. With --resume it leaves out what the results
hold already, unless it serves a client that has lost its own record, which is the one with the value. Nothing but the time in a
record is taken from the wall clock.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import gc
import hashlib
import hmac
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple, Optional

SCHEMA = 2
CONNECT_TIMEOUT_SECONDS = 5.0
RUMOUR_TIMEOUT_SECONDS = 1.0
"""How long to try to connect to a host that was found dead before: by this host, or by one that told it."""
RUMOURS = 32
"""How many hosts a message may call dead: the last ones that were found so."""
LATE_RETRY_SECONDS = 0.2
RESUME_SHARE = 0.1
"""For which part of the plan's start_deadline_seconds to wait for a partner that may only want to hear of a round that is good here."""
PING_SECONDS = (0.5, 1.0, 2.0)
"""How long to wait for a partner before asking whether it lives, and again, and every further time."""
LISTEN_TIMEOUT_SECONDS = 20.0
POLL_SECONDS = (0.001, 0.02)
"""What nobody tells is looked at after the first of these times, then ever more seldom, up to the second."""
ENDING_SECONDS = 5.0
"""How long one perftest may go on after the other one has ended well."""
FAILED_ENDING_SECONDS = 1.0
"""How long it may go on after the other one has failed, or the other host has gone."""
PERFTEST_OVERHEAD_SECONDS = 30.0
"""What perftest may take beside its measuring time, unless the plan's test says deadline_seconds."""
MOST_SECONDS = 1e6
"""What a plan may give a start or a test."""
STRANGER_SECONDS = 1.0
"""After which time without a listener at perftest's port to look for a connection that has closed it."""
KILL_SECONDS = 5.0
"""How long a perftest may take to end after SIGKILL. One that takes longer hangs in the kernel (state D), and its rail is given up."""
HOP_SECONDS, HOPS = 5.0, 8
"""What a host waits longer for a partner that waits itself, for each host between it and the one that all wait for; and for how many."""
PROBE_SECONDS = 0.5
"""How long a probe after a failure waits for an answer, twice."""
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
SAID_CHARACTERS = 160
LOST_CLOCK = "Correlation coefficient r^2"
"""What perftest says on standard error when it could not tell how fast its CPU counts: what it has measured is lost (get_clock.c)."""
HANDSHAKE_LOST = (
    "Couldn't connect to",
    "Unable to init the socket connection",
    "Unable to open file descriptor for socket connection",
    "Failed to exchange data",
    "Couldn't read remote address",
    "Couldn't send local address",
)
"""What perftest says where its partner is not the one that it speaks with, or nobody takes its connection."""
ATTEMPTS = 3
"""How often two partners measure a test at the most, if the client's clock is lost, or a stranger took the place of the client."""
OUTPUT_HEAD_BYTES = 16 * 1024
OUTPUT_TAIL_BYTES = 48 * 1024
MESSAGE_BYTES = 4096
CALLERS = 512
"""How many callers may be connected that have not said yet what they want."""
CALLS = 8
"""How many different calls may wait for one round: the client's own, and those of before it or this host was started again."""
COMMANDS = ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat")
ERROR_CLASSES = ("dead", "refused", "token", "plan", "timeout", "listen", "start", "signal")
TEST_FAILED = ("timeout", "listen", "start")
"""The error classes after which the partners go on with the next test; after any other the meeting is over."""
TOKEN_VARIABLE = "RDMA_PAIRS_TOKEN"  # noqa: S105
KEEPALIVE = (
    ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPCNT), 5),
)
IP_BIND_ADDRESS_NO_PORT = 24
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR = 2
TCP_LISTEN = 10
TCP_STATE_LISTEN, TCP_STATES_TAKEN = "0A", ("01", "08")
"""How /proc/net/tcp writes the states LISTEN, and ESTABLISHED and CLOSE_WAIT."""
ETH_P_ARP = 0x0806
ARPHRD_ETHER = 1
ARP_REQUEST, ARP_REPLY = 1, 2
ARP_PACKET = struct.Struct("!HHBBH6s4s6s4s")
ICMP_ECHO, ICMP_ECHO_REPLY = 8, 0
JsonDict = dict[str, Any]
Meetings = dict[int, tuple[int, bool]]
"""Of one endpoint: round → (whom it meets there, whether it serves), in the order of the rounds."""


def round_count(n: int) -> int:
    """Return how many rounds it takes until each of n hosts has met each other one: n-1, or n if n is odd."""
    return 0 if n < 2 else n - 1 + n % 2


def partner(index: int, round_number: int, n: int) -> int | None:
    """Return whom a host (0 to n-1) meets in a round (0 to round_count(n)-1), None for a bye.

    The circle method in closed form: with m rounds, i and j meet when i + j = round (mod m). Who would meet itself
    meets the last host if n is even, nobody if n is odd.
    """
    rounds = round_count(n)
    if not 0 <= index < n or not 0 <= round_number < rounds:
        raise ValueError(f"no host {index} of {n} in round {round_number} of {rounds}")
    if n % 2 == 0 and index == n - 1:
        return round_number * n // 2 % rounds  # n/2 is the inverse of 2 modulo n-1
    other = (round_number - index) % rounds
    if other != index:
        return other
    return n - 1 if n % 2 == 0 else None


def serves(index: int, other: int) -> bool:
    """Say whether a host serves when it meets another one: the lower one does where the sum is even, else the higher one.

    The client sends, so that every host sends in half of its meetings and receives in the other half.
    """
    return (index < other) == ((index + other) % 2 == 0)


class Schedule:
    """Who meets whom on one rail, in positions 0 to n-1; rounds: how many; meetings: of all hosts together.

    Of three endpoints and more each one sends to some and receives from others, in every schedule but one that is listed. Two have
    one partner only, so that they meet twice, in swapped roles (BothWays): or else one direction would never be measured.
    """

    n = 0
    rounds = 0
    meetings = 0

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """Return whom one meets in a round and whether one serves, None for a bye."""
        raise NotImplementedError

    def of(self, index: int) -> Meetings:
        """Return all meetings of one endpoint."""
        met = ((number, self.meet(index, number)) for number in range(self.rounds))
        return {number: found for number, found in met if found is not None}

    def pairs(self, round_number: int) -> Iterator[tuple[int, int]]:
        """Yield the (server, client) of a round."""
        for index in range(self.n):
            found = self.meet(index, round_number)
            if found is not None and found[1]:
                yield index, found[0]


class Full(Schedule):
    """Everybody meets everybody once."""

    def __init__(self, n: int) -> None:
        self.n, self.rounds, self.meetings = n, round_count(n), n * (n - 1) // 2

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        other = partner(index, round_number, self.n)
        return None if other is None else (other, serves(index, other))

    def of(self, index: int) -> Meetings:
        """As Schedule's, four times as fast: a sweep of thousands of hosts begins with it."""
        odd, last = index % 2, self.n - 1
        if self.n % 2 == 0 and index == last:
            return super().of(index)
        others = chain(range(self.rounds - index, self.rounds), range(self.rounds - index))
        met = {number: (other, (index < other) == (other % 2 == odd)) for number, other in enumerate(others)}
        alone = 2 * index % self.rounds if self.rounds else None
        if alone is not None:
            found = self.meet(index, alone)
            if found is None:
                del met[alone]
            else:
                met[alone] = found
        return met


class Ring(Schedule):
    """Everybody serves the next one, the last one the first."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.rounds, self.meetings = (0, 0) if n < 2 else (2 + n % 2, n)

    def _round_with_next(self, index: int) -> int:
        return 2 if index == self.n - 1 and self.n % 2 else index % 2

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        before = (index - 1) % self.n
        if self._round_with_next(index) == round_number:
            return (index + 1) % self.n, True
        return (before, False) if self._round_with_next(before) == round_number else None


class Sample(Schedule):
    """Some rounds of Full over a random order: the same ones for the same seed, on every Python."""

    def __init__(self, n: int, partners: int, seed: int) -> None:
        from random import Random  # noqa: PLC0415 # pylint: disable=import-outside-toplevel # only this kind needs it

        draw = Random(seed).random  # noqa: S311
        self._order = _shuffled(n, draw)
        self._place = {position: place for place, position in enumerate(self._order)}
        self._rounds = _shuffled(round_count(n), draw)[:partners]
        self.n, self.rounds, self.meetings = n, len(self._rounds), len(self._rounds) * (n // 2)

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        place = self._place[index]
        other = partner(place, self._rounds[round_number], self.n)
        return None if other is None else (self._order[other], serves(place, other))


def _shuffled(n: int, draw: Any) -> list[int]:
    keys = [draw() for _number in range(n)]
    return sorted(range(n), key=keys.__getitem__)


class Against(Schedule):
    """The first hosts, new or repaired, meet each of the proven others; nobody else meets."""

    def __init__(self, n: int, new: int) -> None:
        self._new, self._proven = new, n - new
        self.n, self.meetings = n, new * (n - new)
        self.rounds = max(new, n - new) if self.meetings else 0

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule. New i and proven j meet when i + j = round (mod rounds)."""
        is_new = index < self._new
        other = (round_number - (index if is_new else index - self._new)) % self.rounds
        if other >= (self._proven if is_new else self._new):
            return None
        other += self._new if is_new else 0
        return other, serves(index, other)


class BothWays(Schedule):
    """The one meeting of two endpoints, and in a second round the same in swapped roles."""

    def __init__(self, once: Schedule) -> None:
        self._once = once
        self.n, self.rounds, self.meetings = once.n, 2, 2

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        found = self._once.meet(index, 0)
        return found if found is None or round_number == 0 else (found[0], not found[1])


class Listed(Schedule):
    """Meetings as a plan lists them: rounds of (server, client)."""

    def __init__(self, n: int, rounds: Sequence[Sequence[Sequence[int]]]) -> None:
        self._met: list[dict[int, tuple[int, bool]]] = []
        for pairs in rounds:
            met = {server: (client, True) for server, client in pairs}
            met.update({client: (server, False) for server, client in pairs})
            if len(met) != 2 * len(pairs) or not all(0 <= index < n for index in met):
                raise ValueError(f"round {len(self._met)} of the listed meetings has a host twice, or one that is none")
            self._met.append(met)
        self.n, self.rounds, self.meetings = n, len(rounds), sum(map(len, rounds))

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        return self._met[round_number].get(index)


class Apart(Schedule):
    """Groups that do not reach one another, side by side, each with a schedule of its own; groups: [(schedule, its positions)]."""

    def __init__(self, groups: Sequence[tuple[Schedule, Sequence[int]]]) -> None:
        self._of = {index: (schedule, places, place) for schedule, places in groups for place, index in enumerate(places)}
        self.n = len(self._of)
        self.rounds = max((schedule.rounds for schedule, _places in groups), default=0)
        self.meetings = sum(schedule.meetings for schedule, _places in groups)

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        schedule, places, place = self._of[index]
        found = schedule.meet(place, round_number) if round_number < schedule.rounds else None
        return None if found is None else (places[found[0]], found[1])

    def of(self, index: int) -> Meetings:
        """As Schedule's, by that of the group."""
        schedule, places, place = self._of[index]
        return {number: (places[other], serving) for number, (other, serving) in schedule.of(place).items()}


def make_schedule(wanted: JsonDict, n: int, new: int = 0) -> Schedule:
    """Return the schedule of a plan's kind for n endpoints; new: how many of the first ones, for "against".

    Where two endpoints would meet once, they meet in both directions.
    """
    made = _make_schedule(wanted, n, new)
    return BothWays(made) if n == 2 and made.rounds == 1 else made


def _make_schedule(wanted: JsonDict, n: int, new: int) -> Schedule:
    kind = wanted["kind"]
    if kind == "full":
        return Full(n)
    if kind == "ring":
        return Ring(n)
    if kind == "sample":
        return Sample(n, int(wanted["partners"]), int(wanted["seed"]))
    if kind == "against":
        return Against(n, new)
    raise ValueError(f"no such kind of schedule: {kind!r}")


class RailSchedule(NamedTuple):
    """A rail's schedule over its own endpoints, and which of the plan's hosts they are (None: all, in their order)."""

    schedule: Schedule
    places: tuple[int, ...] | None

    def of(self, host: int) -> Meetings:
        """Return the meetings of a host, in positions of the plan's hosts."""
        if self.places is None:
            return self.schedule.of(host)
        met = self.schedule.of(self.places.index(host)) if host in self.places else {}
        return {number: (self.places[other], serving) for number, (other, serving) in met.items()}

    def pairs(self, round_number: int) -> Iterator[tuple[int, int]]:
        """Yield the (server, client) of a round, in positions of the plan's hosts."""
        for server, client in self.schedule.pairs(round_number):
            yield (server, client) if self.places is None else (self.places[server], self.places[client])


Made = dict[tuple[Optional[tuple[int, ...]], tuple[Optional[int], ...]], RailSchedule]


def rail_schedules(plan: Mapping[str, Any]) -> list[RailSchedule]:
    """Return the schedule of each rail of a plan; rails with the same endpoints have the same one. Raises ValueError.

    But for what is listed, ports in different partitions (profile's pkey) do not meet.
    """
    wanted, hosts = plan["schedule"], len(plan["hosts"])
    if wanted["kind"] == "meetings":
        listed = [*wanted["rails"], *repeat((), len(plan["rails"]) - len(wanted["rails"]))]
        found = [RailSchedule(Listed(hosts, rounds), None) for rounds in listed]
        for rail, schedule in zip(plan["rails"], found):
            _check_listed(rail, schedule)
        return found
    made: Made = {}
    return [_rail_schedule(wanted, rail["addresses"], _several(plan, rail), made) for rail in plan["rails"]]


def _check_listed(rail: JsonDict, schedule: RailSchedule) -> None:
    for number in range(schedule.schedule.rounds):
        for host in chain.from_iterable(schedule.pairs(number)):
            if rail["addresses"][host] is None:
                raise ValueError(f"a meeting is listed of host {host}, which has no endpoint on {rail['name']}")


def partitions(plan: Mapping[str, Any], rail: JsonDict) -> list[int | None]:
    """Return the partition of each host's port on a rail; ports of different ones do not reach each other."""
    return [None if profile is None else plan["profiles"][profile].get("pkey") for profile in rail["profiles"]]


def _several(plan: Mapping[str, Any], rail: JsonDict) -> tuple[int | None, ...]:
    """The partitions of a rail's ports, () where all ports are in the same one."""
    keys = partitions(plan, rail)
    there = {key for key, address in zip(keys, rail["addresses"]) if address is not None}
    return tuple(keys) if len(there) > 1 else ()


def _rail_schedule(wanted: JsonDict, addresses: list[str | None], apart: tuple[int | None, ...], made: Made) -> RailSchedule:
    places = None
    if None in addresses:
        places = tuple(index for index, address in enumerate(addresses) if address is not None)
    if (places, apart) not in made:
        here = range(len(addresses)) if places is None else places
        groups: dict[int | None, list[int]] = {}
        for place, index in enumerate(here):
            groups.setdefault(apart[index] if apart else None, []).append(place)
        first = [sum(here[place] < int(wanted.get("new", 0)) for place in group) for group in groups.values()]
        found = [(make_schedule(wanted, len(group), new), group) for group, new in zip(groups.values(), first)]
        made[places, apart] = RailSchedule(found[0][0] if len(found) == 1 else Apart(found), places)
    return made[places, apart]


def own_meetings(plan: JsonDict, host: int) -> list[Meetings]:
    """Return the meetings of one host on each rail; rails with the same schedule share them. Raises ValueError."""
    schedules = rail_schedules(plan)
    made = {id(schedule): schedule.of(host) for schedule in {id(each): each for each in schedules}.values()}
    return [made[id(schedule)] for schedule in schedules]


class MeetingError(Exception):
    """A measurement that was not made; error_class is one of ERROR_CLASSES."""

    def __init__(self, error_class: str, detail: str) -> None:
        super().__init__(detail)
        self.error_class = error_class
        self.detail = detail

    @property
    def ends_meeting(self) -> bool:
        """Whether the partners cannot go on with the next test."""
        return self.error_class not in TEST_FAILED

    def told(self, kind: str = "refused", **more: Any) -> JsonDict:
        """Return it as a message."""
        return {"kind": kind, "class": self.error_class, "detail": self.detail, **more}


def _refused(message: JsonDict, who: str) -> MeetingError:
    """Return what a partner's refusal means here. A partner that was stopped is as good as dead."""
    error_class = message["class"] if message.get("class") in ERROR_CLASSES else "refused"
    return MeetingError("dead" if error_class == "signal" else error_class, f"{who}: {message.get('detail')}")


class Plan(NamedTuple):
    """What a sweep is about: the document, the SHA-256 of its bytes, this host's position and its meetings on each rail."""

    content: JsonDict
    digest: str
    host: int
    meetings: list[Meetings]


def read_plan(path: Path) -> tuple[JsonDict, str]:
    """Return a plan, plain or gzip, and the SHA-256 of its unpacked bytes. Raises OSError, ValueError."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = zlib.decompress(data, 31)
        except zlib.error as exc:
            raise ValueError(f"{path}: {exc}") from exc
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{path}: not a plan of a sweep: {exc}") from exc
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else None
        raise ValueError(f"{path}: this runner knows schema {SCHEMA}, the plan has {found!r}")
    return content, hashlib.sha256(data).hexdigest()


def load_plan(path: Path, names: Sequence[str]) -> Plan:
    """Read the plan for the first of these names that is in it, and check what would otherwise fail in mid-sweep.

    Raises OSError, ValueError.
    """
    plan, digest = read_plan(path)
    try:
        host = _own_position(path, plan["hosts"], names)
        meetings = own_meetings(plan, host)
        _check_plan(plan, host)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as exc:
        raise ValueError(f"{path}: not a plan of a sweep: {type(exc).__name__} {exc}") from exc
    return Plan(plan, digest, host, meetings)


def _own_position(path: Path, hosts: list[str], names: Sequence[str]) -> int:
    if not all(isinstance(host, str) for host in hosts):
        raise ValueError(f"{path}: a host's name is no text")
    if len(set(hosts)) != len(hosts):
        raise ValueError(f"{path}: a host stands there twice")
    for name in names:
        if name in hosts:
            return hosts.index(name)
    raise ValueError(f"{path}: {' or '.join(map(repr, names))} is not among the plan's hosts")


def _check_plan(plan: JsonDict, host: int) -> None:
    str(plan["sweep"]), int(plan["rendezvous_port"]), int(plan["perftest_port"])
    _check_seconds("start_deadline_seconds", float(plan["start_deadline_seconds"]))
    tests = plan["tests"]
    if not tests or len({test["name"] for test in tests}) != len(tests):
        raise ValueError("the plan has no tests, or two of one name")
    for rail in plan["rails"]:
        if not len(rail["addresses"]) == len(rail["profiles"]) == len(plan["hosts"]):
            raise ValueError(f"{rail['name']} of the plan has not one address and profile a host")
        if rail["addresses"][host] is not None:
            for test in tests:
                _check_seconds(f"the time of {test['name']}", allowed_seconds(test))
                with contextlib.suppress(MeetingError):
                    perftest_argv(test, plan["profiles"][rail["profiles"][host]], 0, None)


def _check_seconds(name: str, seconds: float) -> None:
    if not 0 <= seconds <= MOST_SECONDS:
        raise ValueError(f"{name} of the plan is {seconds:g}, and has to be 0 to {MOST_SECONDS:g} seconds")


def own_names() -> list[str]:
    """Return the names under which this host may stand in a plan: Slurm's, the kernel's, and its first label."""
    name = socket.gethostname()
    return [found for found in (os.environ.get("SLURMD_NODENAME"), name, name.split(".")[0]) if found]


def load_token(path: Path | None) -> bytes:
    """Return the secret of the sweep, from a file or else from the environment, where it does not stay. Raises OSError, ValueError."""
    kept = os.environ.pop(TOKEN_VARIABLE, "")
    token = kept.encode() if path is None else path.read_bytes()
    if not token.strip():
        raise ValueError(f"{path or TOKEN_VARIABLE}: the token is empty" if path or kept else f"no --token-file, no {TOKEN_VARIABLE}")
    return token.strip()


def allowed_seconds(test: JsonDict) -> float:
    """Return how long perftest may take for a test."""
    if test.get("deadline_seconds") is not None:
        return float(test["deadline_seconds"])
    return float(test.get("duration_seconds") or 0) + PERFTEST_OVERHEAD_SECONDS


def meeting_seconds(tests: Sequence[JsonDict]) -> float:
    """Return how long one meeting may take: every test may be measured again until its time is over once, and then takes it once more."""
    return sum(2 * (allowed_seconds(test) + LISTEN_TIMEOUT_SECONDS + 2 * ENDING_SECONDS + KILL_SECONDS) for test in tests)


def perftest_argv(test: JsonDict, profile: JsonDict, tcp_port: int, server_address: str | None) -> list[str]:
    """Return perftest's command line; with a server_address, the client's.

    Raises ValueError for a command that is none of COMMANDS, MeetingError where a GPU's memory is wanted and there is none.
    """
    command = test["command"]
    if command not in COMMANDS:
        raise ValueError(f"no such command: {command!r}")
    bandwidth = command.endswith("_bw")
    argv = [command, "-d", profile["device"], "-i", str(profile["port"])]
    if profile.get("gid_index") is not None:
        argv += ["-x", str(profile["gid_index"])]
    if profile.get("pkey_index"):
        argv.append(f"--pkey_index={profile['pkey_index']}")
    argv += ["--ipv6-addr"] if profile.get("ipv6") else []
    argv += ["-s", str(test["size_bytes"])]
    if bandwidth:
        argv += ["-q", str(test["queue_pairs"])]
    amount = ("-D", "duration_seconds") if test.get("iterations") is None else ("-n", "iterations")
    argv += [amount[0], str(test[amount[1]])]
    argv += [*(["--report_gbits"] if bandwidth else []), "-F", "-p", str(tcp_port)]
    argv += ["-b"] if bandwidth and test.get("bidirectional") else []
    for option, key in (("-m", "mtu_bytes"), ("-u", "qp_timeout")):
        argv += [option, str(test[key])] if test.get(key) is not None else []
    if test.get("traffic_class") is not None:
        argv.append(f"--tclass={test['traffic_class']}")
    argv += _memory_options(test, profile)
    return argv if server_address is None else [*argv, server_address]


def _memory_options(test: JsonDict, profile: JsonDict) -> list[str]:
    if test.get("memory", "host") == "host":
        return []
    gpu = profile.get("gpu")
    if gpu is None:
        raise MeetingError("start", f"{test['name']} wants a GPU's memory, and the plan names no GPU for {profile['device']}")
    return [f"--use_cuda_bus_id={gpu['bus_id']}", *(["--use_cuda_dmabuf"] if gpu.get("dmabuf") else [])]


def node_cpus(node: int | None, nodes: Path = Path("/sys/devices/system/node")) -> set[int]:
    """Return the CPUs of a NUMA node; none if the NIC belongs to no node, or to one without CPUs."""
    if node is None or node < 0:
        return set()
    try:
        text = (nodes / f"node{node}" / "cpulist").read_text(encoding="ascii").strip()
    except OSError:
        return set()
    spans = [span.partition("-") for span in text.split(",") if span]
    return {cpu for first, _dash, last in spans for cpu in range(int(first), int(last or first) + 1)}


def listens(tables: str, port: int, address: str, states: Sequence[str] = (TCP_STATE_LISTEN,)) -> bool:
    """Say whether the text of /proc/net/tcp and tcp6 shows a listener that takes connections to address and port.

    states: or another socket there that is in one of these.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    hosts = [packed, bytes(len(packed)), bytes(16)]
    if family == socket.AF_INET:
        hosts.append(bytes(10) + b"\xff\xff" + packed)
    local = {f"{_kernel_hex(host)}:{port:04X}" for host in hosts}
    cells = (line.split() for line in tables.splitlines())
    return any(len(row) > 3 and row[3] in states and row[1] in local for row in cells)


def _kernel_hex(packed: bytes) -> str:
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _tables_show(port: int, address: str, states: Sequence[str] = (TCP_STATE_LISTEN,)) -> bool:
    texts = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):  # tcp6 is missing where IPv6 is off
            texts.append(Path("/proc/net", name).read_text(encoding="ascii"))
    return listens("\n".join(texts), port, address, states)


class Listeners:
    """Asks the kernel who listens, and never connects: sock_diag(7) for one socket, or else the whole tables of /proc/net.

    The tables also hold every connection of the last minute; to ask for one socket costs the same however many there are.
    """

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
        self._netlink.settimeout(CONNECT_TIMEOUT_SECONDS)
        self._answers = False

    def prove(self, port: int, address: str) -> None:
        """Find out, by a port on which somebody listens, whether the kernel answers such questions here."""
        with contextlib.suppress(OSError):
            self._answers = self._ask(port, address)

    def on(self, port: int, address: str) -> bool:
        """Say whether somebody takes connections to address and port."""
        return self._ask(port, address) if self._answers else _tables_show(port, address)

    def _ask(self, port: int, address: str) -> bool:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        packed = socket.inet_pton(family, address).ljust(16, b"\0")
        wanted = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << TCP_LISTEN)
        wanted += struct.pack("!HH", port, 0) + packed + bytes(16) + struct.pack("=I", 0) + b"\xff" * 8
        self._netlink.send(struct.pack("=IHHII", 16 + len(wanted), SOCK_DIAG_BY_FAMILY, 1, 0, 0) + wanted)
        answer = self._netlink.recv(8192)
        kind = struct.unpack_from("=H", answer, 4)[0]
        if kind == NLMSG_ERROR and struct.unpack_from("=i", answer, 16)[0] != -errno.ENOENT:
            raise OSError(-struct.unpack_from("=i", answer, 16)[0], "sock_diag")
        return bool(kind == SOCK_DIAG_BY_FAMILY and answer[17] == TCP_LISTEN)


def first_line(*outputs: str) -> str:
    """Return the first line of perftest's outputs that says something, printable and at most SAID_CHARACTERS long; "" if none does."""
    for line in chain.from_iterable(output.splitlines() for output in outputs):
        text = " ".join("".join(letter if letter.isprintable() else " " for letter in line).split())
        if text and text[0] not in "-*" and not text.startswith(("WARNING", "Conflicting CPU frequency")):
            return text if len(text) <= SAID_CHARACTERS else text[: SAID_CHARACTERS - 1] + "…"
    return ""


def rail_netdev(profile: Mapping[str, Any], devices: Path = Path("/sys/class/infiniband")) -> str | None:
    """Return the network interface of an endpoint with a GID index (RoCE), None if there is none."""
    if profile.get("gid_index") is None:
        return None
    path = devices / str(profile["device"]) / "ports" / str(profile["port"]) / "gid_attrs/ndevs" / str(profile["gid_index"])
    try:
        return path.read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def arp_request(mac: bytes, address: str) -> bytes:
    """Return an ARP probe (RFC 5227): its sender has no address, so that nobody learns anything from it."""
    nobody = bytes(4), bytes(6)
    return ARP_PACKET.pack(ARPHRD_ETHER, 0x0800, 6, 4, ARP_REQUEST, mac, nobody[0], nobody[1], socket.inet_aton(address))


def arp_answer(packet: bytes, address: str) -> str | None:
    """Return the MAC address that a packet gives for an address, None if it is no such answer."""
    if len(packet) < ARP_PACKET.size:
        return None
    *_form, operation, mac, sender, _to_mac, _to_address = ARP_PACKET.unpack_from(packet)
    return mac.hex(":") if operation == ARP_REPLY and sender == socket.inet_aton(address) else None


def ask_arp(netdevs: Mapping[str, str], address: str) -> dict[str, str | None]:
    """Ask on several interfaces at once who has an IPv4 address. netdevs: rail → interface. Returns rail → MAC that answered, or None.

    An interface that is no Ethernet, or may not be used, is left out. Two requests on each, and at most twice PROBE_SECONDS.
    """
    sockets: dict[int, tuple[str, socket.socket]] = {}
    found: dict[str, str | None] = {}
    with contextlib.ExitStack() as stack:
        for rail, netdev in netdevs.items():
            with contextlib.suppress(OSError):
                sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ARP)))
                sock.bind((netdev, ETH_P_ARP))
                if sock.getsockname()[3] == ARPHRD_ETHER:
                    sockets[sock.fileno()] = rail, sock
                    found[rail] = None
        for _attempt in range(2):
            for rail, sock in sockets.values():
                if found[rail] is None:
                    with contextlib.suppress(OSError):
                        sock.sendto(arp_request(sock.getsockname()[4], address), (netdevs[rail], ETH_P_ARP, 0, 0, b"\xff" * 6))
            _hear_arp(sockets, address, found)
    return found


def _hear_arp(sockets: Mapping[int, tuple[str, socket.socket]], address: str, found: dict[str, str | None]) -> None:
    poll = select.poll()
    for descriptor in sockets:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + PROBE_SECONDS
    while None in found.values() and (left := deadline - time.monotonic()) > 0:
        for descriptor, _events in poll.poll(left * 1000):
            rail, sock = sockets[descriptor]
            with contextlib.suppress(OSError):
                found[rail] = found[rail] or arp_answer(sock.recv(512), address)


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of data of even length."""
    total = sum(int(word) for word in struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def ask_echo(netdev: str | None, address: str) -> bool | None:
    """Say whether an IPv4 address answers ICMP echo on an interface; None if that cannot be asked."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
            if netdev is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, netdev.encode() + b"\0")
            sock.connect((address, 0))
            mark = os.urandom(4)
            for _attempt in range(2):
                blank = struct.pack("!BBH", ICMP_ECHO, 0, 0) + mark
                with contextlib.suppress(ConnectionError):
                    sock.send(struct.pack("!BBH", ICMP_ECHO, 0, checksum(blank)) + mark)
                if _hears_echo(sock, mark):
                    return True
    except PermissionError:
        return None
    except OSError:
        return False
    return False


def _hears_echo(sock: socket.socket, mark: bytes) -> bool:
    deadline = time.monotonic() + PROBE_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            packet = sock.recv(1024)
        except OSError:
            return False
        body = packet[4 * (packet[0] & 0xF) :]
        if body[:1] == bytes([ICMP_ECHO_REPLY]) and body[4:8] == mark:
            return True
    return False


def _ping_intervals(at_once: bool) -> Iterator[float]:
    return chain([0.0] if at_once else [], PING_SECONDS, repeat(PING_SECONDS[-1]))


def _poll_intervals() -> Iterator[float]:
    seconds = POLL_SECONDS[0]
    while True:
        yield seconds
        seconds = min(2 * seconds, POLL_SECONDS[1])


class Captured:
    """The head and the tail of an output that may be long."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Append; between the first 16 and the last 48 KiB nothing is kept."""
        room = OUTPUT_HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(0, len(self._tail) - OUTPUT_TAIL_BYTES)
        del self._tail[:excess]
        self._left_out += excess

    def take(self, pipe: int) -> bool:
        """Read what has come on a pipe that does not block; False at its end."""
        try:
            piece = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        self.add(piece)
        return bool(piece)

    def text(self) -> str:
        """Return what was kept, with a line in the gap if there is one."""
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "replace")


class Group:
    """A process group for perftest: the kernel kills it when this process ends, however it ends.

    Its leader is a process that has ended and stays unreaped, so that the group has its number before its first member.
    Members' standard input is a pipe whose other end only this process holds; when that closes, the pipe signals SIGKILL
    to the group (F_SETSIG of fcntl(2)). So nothing runs between fork and exec, and perftest can be spawned without a copy
    of this process. To be made before there are threads, for it forks.
    """

    def __init__(self) -> None:
        self.number = os.fork()
        if self.number == 0:
            os.setpgid(0, 0)
            os._exit(0)
        os.waitid(os.P_PID, self.number, os.WEXITED | os.WNOWAIT)
        self.stdin, self._held = os.pipe()
        fcntl.fcntl(self.stdin, fcntl.F_SETOWN, -self.number)
        fcntl.fcntl(self.stdin, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(self.stdin, fcntl.F_SETFL, fcntl.fcntl(self.stdin, fcntl.F_GETFL) | os.O_ASYNC)

    def kill(self) -> None:
        """Kill all members."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)


class Perftest:
    """One running perftest in a group of its own."""

    def __init__(self, argv: list[str], group: Group, environment: dict[str, str]) -> None:
        self.stdout, self.stderr = Captured(), Captured()
        self._group = group
        self._exit_code: int | None = None
        self.stuck = False
        ends = [os.pipe(), os.pipe()]
        sources = (group.stdin, ends[0][1], ends[1][1])
        try:
            self.pid = os.posix_spawnp(  # pylint: disable=ansible-bad-function
                argv[0],
                argv,
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(sources)],
                setpgroup=group.number,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        except (OSError, ValueError) as exc:
            for reader, _writer in ends:
                os.close(reader)
            raise MeetingError("start", f"cannot start {argv[0]}: {exc}") from exc
        finally:
            for _reader, writer in ends:
                os.close(writer)
        self.streams = {ends[0][0]: self.stdout, ends[1][0]: self.stderr}
        for pipe in self.streams:
            os.set_blocking(pipe, False)

    def ended(self) -> bool:
        """Say whether the process has ended."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self._exit_code is not None or os.waitid(os.P_PID, self.pid, flags) is not None

    def end(self) -> int | None:
        """Kill what is left of the group, keep what it had printed, and return its exit code.

        None, and stuck is True, if it does not end within KILL_SECONDS: it hangs in the kernel, and nothing here can end it.
        """
        if self._exit_code is None and not self.stuck:
            self._group.kill()
            self._reap(time.monotonic() + KILL_SECONDS)
            for pipe, captured in self.streams.items():
                captured.take(pipe)
                os.close(pipe)
        return self._exit_code

    def _reap(self, deadline: float) -> None:
        for seconds in _poll_intervals():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
                return
            if time.monotonic() > deadline:
                self.stuck = True
                return
            time.sleep(seconds)

    @property
    def lost_its_handshake(self) -> bool:
        """Whether it has failed because it spoke with somebody else than its partner, or with nobody."""
        if not self.ended() or self.end() == 0:
            return False
        said = self.stderr.text() + self.stdout.text()
        return any(sign in said for sign in HANDSHAKE_LOST)


class Wire:
    """One rendezvous connection. A message is a line: the HMAC-SHA256 of a JSON object, a blank, the object.

    All messages of a connection carry the nonce that the caller chose for it.
    """

    def __init__(self, sock: socket.socket, token: bytes) -> None:
        self.sock = sock
        self.nonce = ""
        self._token = token
        self._came = b""
        sock.settimeout(CONNECT_TIMEOUT_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def keep_alive(self) -> None:
        """Notice within seconds when the partner's host goes: one that loses its power says no goodbye."""
        for option, value in KEEPALIVE:
            self.sock.setsockopt(*option, value)

    def send(self, message: JsonDict) -> None:
        """Send one signed message. Raises MeetingError when the partner is gone."""
        body = json.dumps({**message, "nonce": self.nonce}).encode()
        try:
            self.sock.sendall(self._sign(body) + b" " + body + b"\n")
        except OSError as exc:
            raise MeetingError("dead", f"the partner left the meeting: {exc}") from exc

    @property
    def has_message(self) -> bool:
        """Whether receive() has something to return without waiting."""
        return b"\n" in self._came

    def take(self) -> None:
        """Read what has come, or wait for it. Raises MeetingError when the partner is gone, or says too much."""
        try:
            piece = self.sock.recv(MESSAGE_BYTES)
        except OSError as exc:
            raise MeetingError("dead", f"no message from the partner: {exc}") from exc
        self._came += piece
        if not piece or (len(self._came) > MESSAGE_BYTES and not self.has_message):
            raise MeetingError("dead", "the partner left the meeting")

    def receive(self) -> tuple[JsonDict, bool]:
        """Return the next message and whether it is signed with our token, for this connection.

        Raises MeetingError when the partner is gone or silent, or sends something else.
        """
        deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
        while not self.has_message:
            self.take()
            if time.monotonic() > deadline:
                raise MeetingError("dead", "no whole message from the partner")
        line, _end, self._came = self._came.partition(b"\n")
        signature, _blank, body = line.strip().partition(b" ")
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise MeetingError("dead", f"no message from the partner: {exc}") from exc
        if not isinstance(message, dict):
            raise MeetingError("dead", "no message from the partner, but something else")
        fresh = not self.nonce or message.get("nonce") == self.nonce
        return message, fresh and hmac.compare_digest(signature, self._sign(body))

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._token, body, "sha256").hex().encode()


class Results:
    """The file of results: one JSON object a line, whole or not at all. A record that cannot be written is counted.

    To be resumed, it is cut after its last record; good: (rail, round, test) of what need not be measured again. Raises
    OSError, ValueError.
    """

    def __init__(self, path: Path, sweep: str, resume: bool) -> None:
        self.good: set[tuple[str, int, str]] = set()
        self.records = 0
        self.lost = 0
        self.reason: OSError | None = None
        self._sweep = sweep
        self.resumed = resume
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise ValueError(f"{path}: another runner writes to it") from exc
        self._end = 0
        if resume and stat.S_ISREG(os.fstat(self._file).st_mode):
            self._take_up(path)
        self._cut()

    def _take_up(self, path: Path) -> None:
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            try:
                record = _whole_record(line)
            except (ValueError, RecursionError) as exc:
                raise ValueError(f"{path}: line {number + 1} is no record of a sweep: {exc}") from exc
            if record is None or "finished" in record:
                break
            if record.get("sweep") != self._sweep or record.get("schema") != SCHEMA:
                raise ValueError(f"{path}: it holds results of sweep {record.get('sweep')}, not of {self._sweep}")
            self._end += len(line)
            self.records += 1
            if record["exit_code"] == 0 and record["error"] is None:
                self.good.add((str(record["rail"]), _whole_number(record["round"]), str(record["test"])))

    def _cut(self) -> None:
        with contextlib.suppress(OSError):  # what is no file cannot be cut, nor need be
            os.ftruncate(self._file, self._end)

    def write(self, record: JsonDict) -> None:
        """Append one line, at once."""
        line = json.dumps({"schema": SCHEMA, "sweep": self._sweep, **record}).encode() + b"\n"
        with self._lock:
            try:
                if os.write(self._file, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as exc:
                self.lost += 1
                self.reason = exc
                self._cut()
                return
            self._end += len(line)
            self.records += 1

    def close(self) -> None:
        """Close the file. Raises OSError, also where a record was not written."""
        os.close(self._file)
        if self.reason is not None:
            raise OSError(f"{self.lost} of {self.lost + self.records} lines of the results could not be written: {self.reason}")


def _whole_number(value: object) -> int:
    """Return it, or -1 for what is no whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _whole_record(line: bytes) -> JsonDict | None:
    """Return the record that a line holds, None for one that was cut off. Raises ValueError, RecursionError for what nobody can read."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return (
        record
        if isinstance(record, dict) and ("finished" in record or {"rail", "round", "test", "exit_code", "error"} <= set(record))
        else None
    )


class Sweep:
    """What the rails of one host share: the plan, the token, the results, who is dead, and whether to stop."""

    def __init__(self, plan: Plan, token: bytes, results: Results) -> None:
        self.plan, self.digest, self.index, self.meetings = plan.content, plan.digest, plan.host, plan.meetings
        self.token, self.results = token, results
        self.hosts: list[str] = self.plan["hosts"]
        self.host = self.hosts[self.index]
        self.tests: list[JsonDict] = self.plan["tests"]
        self.meeting_seconds = meeting_seconds(self.tests)
        self.environment = {**os.environ, "LC_ALL": "C"}
        self.started = time.monotonic()
        self.start_deadline = self.started + float(self.plan["start_deadline_seconds"])
        self.resume_deadline = self.started + RESUME_SHARE * float(self.plan["start_deadline_seconds"])
        self.seen: set[int] = set()
        self.failures: list[str] = []
        self.signal_number = 0
        self._dead: dict[int, None] = {}
        self._gone: set[int] = set()
        self._lock = threading.Lock()
        self._stop_reader, self._stop_writer = os.pipe()

    @property
    def stopping(self) -> bool:
        """Whether a signal has come."""
        return self.signal_number != 0

    def stop(self, number: int, _frame: object) -> None:
        """Handle a signal: everything that waits looks at the stop pipe, whose other end this closes."""
        if not self.stopping:
            self.signal_number = number
            os.close(self._stop_writer)

    def poll(self, descriptors: Sequence[int], seconds: float, events: int = select.POLLIN) -> list[int]:
        """Return those on which something has come, none when the time is over. Raises MeetingError when a signal has come."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, events)
        poll.register(self._stop_reader, select.POLLIN)
        ready = poll.poll(max(0.0, seconds) * 1000)
        if self.stopping:
            raise MeetingError("signal", f"the runner was stopped by {signal.Signals(self.signal_number).name}")
        return [descriptor for descriptor, _events in ready]

    def heard(self, wire: Wire, seconds: float) -> bool:
        """Wait for a message on a wire; False when the time is over. Raises MeetingError when a signal has come."""
        return wire.has_message or bool(self.poll([wire.sock.fileno()], seconds))

    def saw(self, host: int) -> None:
        """Remember that a host lives."""
        with self._lock:
            self.seen.add(host)
            self._dead.pop(host, None)
            self._gone.discard(host)

    def found_dead(self, host: int) -> None:
        """Remember that a host was found dead, here or elsewhere. That never keeps anybody from trying."""
        with self._lock:
            self._dead.pop(host, None)
            self._dead[host] = None
            if host in self.seen:
                self._gone.add(host)

    def may_be_late(self, host: int) -> bool:
        """Whether a host that refuses connections may just not have started yet: nobody has seen it, and there is time left."""
        return host not in self.seen and host not in self._gone and time.monotonic() < self.start_deadline

    def is_called_dead(self, host: int) -> bool:
        """Whether somebody found a host dead."""
        return host in self._dead

    def rumours(self) -> dict[str, list[int]]:
        """Return, for a message, the last hosts that were found dead, and which of them are gone: they had been seen before."""
        with self._lock:
            dead = list(self._dead)[-RUMOURS:]
            return {"dead": dead, "gone": [host for host in dead if host in self._gone]}

    def hear_rumours(self, message: JsonDict) -> None:
        """Take from a signed message who was found dead."""
        dead, gone = (told[:RUMOURS] if isinstance(told, list) else [] for told in (message.get("dead"), message.get("gone")))
        for host in dead:
            if isinstance(host, int) and 0 <= host < len(self.hosts) and host != self.index:
                if host not in self._dead:
                    self.found_dead(host)
                if host in gone:
                    self._gone.add(host)

    def finish(self) -> None:
        """Write the last line and close the results. Raises OSError."""
        if self.results.lost:
            self.failures.append(f"{self.results.lost} records could not be written: {self.results.reason}")
        reason = signal.Signals(self.signal_number).name if self.stopping else "; ".join(self.failures) or None
        seconds = round(time.monotonic() - self.started, 3)
        last = {"host": self.host, "records": self.results.records, "seconds": seconds, "reason": reason}
        self.results.write({"finished": reason is None, **last})
        self.results.close()


class Rail(threading.Thread):
    """One rail of this host: works through its rounds, and says what becomes of partners that call."""

    def __init__(self, sweep: Sweep, number: int) -> None:
        super().__init__(daemon=True)
        rail = sweep.plan["rails"][number]
        self.sweep, self.name_in_plan = sweep, str(rail["name"])
        self.addresses: list[str | None] = rail["addresses"]
        self.address = str(self.addresses[sweep.index])
        self.profile: JsonDict = sweep.plan["profiles"][rail["profiles"][sweep.index]]
        self.perftest_port = int(sweep.plan["perftest_port"]) + number
        self.place = (self.address, int(sweep.plan["rendezvous_port"]) + number)
        self.meetings = sweep.meetings[number]
        self.round = 0
        self.group = Group()
        self.listeners = Listeners()
        self.listener: socket.socket | None = None
        self.broken: MeetingError | None = None
        self._end = max(self.meetings, default=-1) + 1
        self._parked: dict[int, tuple[Wire, JsonDict] | MeetingError] = {}
        self._more_calls: dict[int, list[tuple[Wire, JsonDict]]] = {}
        self._calls: str | None = None
        self._lock = threading.Lock()
        self._asks_back = threading.Lock()
        self._waits: tuple[int, int] | None = None
        self._bell, self._rope = socket.socketpair()
        self._rope.setblocking(False)

    def open(self) -> None:
        """Listen for partners on this rail's own address, before any rail starts."""
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        try:
            self.listener = socket.create_server(self.place, family=family, backlog=CALLERS)
        except OSError as exc:
            self.broken = MeetingError("start", f"cannot listen on {self.place[0]} port {self.place[1]}: {exc}")
            return
        self.listeners.prove(self.place[1], self.address)

    def close(self) -> None:
        """Stop listening."""
        if self.listener is not None:
            self.listener.close()

    def lacking(self, number: int) -> list[int]:
        """Return the tests of a round of which there is no good record; none are measured again where all are there."""
        good = self.sweep.results.good
        tests = enumerate(self.sweep.tests)
        return [place for place, test in tests if not good or (self.name_in_plan, number, test["name"]) not in good]

    def run(self) -> None:
        """Work through the rounds."""
        cpus = node_cpus(self.profile.get("numa_node"))
        if cpus:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, cpus)  # of this thread, and of the perftests that it starts
        try:
            for number, (other, serving) in self.meetings.items():
                self._enter(number)
                due = self.lacking(number) or ([] if self.broken is not None else self._asked_for(number, other))
                if due and not self.sweep.stopping:
                    Meeting(self, number, other, serving, due).hold()
        except Exception as exc:  # noqa: BLE001 # pylint: disable=broad-exception-caught
            self.sweep.failures.append(f"{self.name_in_plan}: {type(exc).__name__}: {exc}")
        finally:
            self._enter(self._end)

    def _enter(self, number: int) -> None:
        with self._lock:
            self.round, self._waits, self._calls = number, None, None
            for passed in [key for key in {*self._parked, *self._more_calls} if key < number]:
                for parked in (self._parked.pop(passed, None), *self._more_calls.pop(passed, ())):
                    if isinstance(parked, tuple):
                        with contextlib.closing(parked[0]), contextlib.suppress(MeetingError):
                            parked[0].send((self.broken or MeetingError("refused", f"round {passed} has passed")).told())

    def give_up(self, perftest: Perftest) -> None:
        """Measure nothing more on this rail: a perftest of it hangs in the kernel."""
        words = f"process {perftest.pid} of perftest hangs in the kernel: it did not end within {KILL_SECONDS:g} seconds of SIGKILL"
        self.broken = MeetingError("start", words)

    def _asked_for(self, number: int, other: int) -> list[int]:
        """Return the tests of a round that is good here in which this host has to serve, for the client lacks them.

        The partner hears that the round is good here: a server that lacks it need not wait for a client that has gone on, nor for
        one that has ended. A partner that is not there is waited for in the first RESUME_SHARE of the start: it may have ended.
        """
        try:
            while (arrival := self.own_call(number, other, keep=True)) is None:
                pong = self.ping(number, other)
                if pong is not None:
                    comes = self.meetings[number][1] and self.round_of(pong, other) <= number
                    return self.known_tests(pong.get("lacks")) if comes else []
                if time.monotonic() > self.sweep.resume_deadline:
                    return []
                self.sweep.poll([], LATE_RETRY_SECONDS)
            return self.known_tests(arrival[1].get("lacks"))
        except MeetingError:
            return []

    def known_tests(self, told: Any) -> list[int]:
        """Return the tests of the plan that are in what a partner has told, in the plan's order."""
        return [test for test in range(len(self.sweep.tests)) if isinstance(told, list) and test in told]

    def await_client(self, number: int, other: int) -> tuple[Wire, JsonDict]:
        """Return the connection of this round's client with its hello. While it has not come, ask now and then whether it gets on."""
        patience = Patience(self, number, other)
        intervals = _ping_intervals(self.sweep.is_called_dead(other))
        passed, ping_at = False, time.monotonic() + next(intervals)
        while (arrival := self.own_call(number, other)) is None:
            if passed:
                raise MeetingError("refused", f"{self.sweep.hosts[other]} has gone on without this round")
            spare = ping_at - time.monotonic()
            if spare > 0 and self.sweep.poll([self._bell.fileno()], spare):
                self._bell.recv(64)
                continue
            try:
                pong = self.ping(number, other)
            except MeetingError:
                if (arrival := self.own_call(number, other)) is None:
                    raise
                return arrival
            if pong is not None:
                passed = self.round_of(pong, other) > number or not pong.get("lacks", True)
                if not passed:
                    patience.hear(pong)
            ping_at = time.monotonic() + (0.0 if passed else next(intervals))
        return arrival

    def round_of(self, pong: JsonDict, other: int) -> int:
        """Return the round in which a partner says that it is. Raises MeetingError for what is none, and if it has given up this rail."""
        name = self.sweep.hosts[other]
        if pong.get("broken"):
            raise MeetingError("start", f"{name}: {pong['broken']}")
        at = pong.get("at", -1)
        if not isinstance(at, int) or isinstance(at, bool):
            raise MeetingError("refused", f"{name} says a round that is none: {str(at)[:SAID_CHARACTERS]!r}")
        return at

    def waits_behind(self, low: int, hops: int) -> None:
        """Note for those that wait for this host: the lowest round of the hosts that it waits for, and how many these are."""
        self._waits = low, hops

    def arrived(self, number: int, keep: bool = False) -> tuple[Wire, JsonDict] | None:
        """Return the caller that waits for a round, None if there is none. Raises MeetingError if it was turned away."""
        with self._lock:
            parked = self._parked.get(number) if keep else self._parked.pop(number, None)
        if isinstance(parked, MeetingError):
            raise parked
        return parked

    def own_call(self, number: int, other: int, keep: bool = False) -> tuple[Wire, JsonDict] | None:
        """As arrived, but for calls that are not the client's own: they are dropped.

        A hello from before this host or the client was started again is signed, and anybody who has heard it can send it again. The client
        says in its answer to a ping, which cannot be sent again, which call is its own.
        """
        with self._lock:
            doubtful = number in self._more_calls or (self.sweep.results.resumed and isinstance(self._parked.get(number), tuple))
        if doubtful:
            pong = self.ping(number, other)
            own = None if pong is None else pong.get("calls")
            with self._lock:
                calls = [call for call in (self._parked.pop(number, None), *self._more_calls.pop(number, ())) if isinstance(call, tuple)]
                kept = next((call for call in calls if call[0].nonce == own), None)
                if kept is not None:
                    self._parked[number] = kept
            for call in calls:
                if call is not kept:
                    call[0].close()
        return self.arrived(number, keep)

    def last_word(self, number: int, error: MeetingError) -> MeetingError:
        """Return what a partner that is gone had said of a round before it went, else the error that it is gone."""
        try:
            arrival = self.arrived(number)
        except MeetingError as said:
            return said
        if arrival is not None:
            arrival[0].close()
        return error

    def probe(self, other: int) -> JsonDict | None:
        """Return whether a partner answers at its address on this rail: ICMP echo, and ARP on all rails of this host. None for IPv6.

        An address that answers ARP on another rail is at a NIC whose cable ends there.
        """
        address = str(self.addresses[other])
        if ":" in address:
            return None
        plan, own = self.sweep.plan, self.sweep.index
        numbers = {rail["name"]: rail["profiles"][own] for rail in plan["rails"] if rail["addresses"][own] is not None}
        netdevs = {name: rail_netdev(plan["profiles"][number]) for name, number in numbers.items()}
        known = {name: netdev for name, netdev in netdevs.items() if netdev is not None}
        return {"echo": ask_echo(known.get(self.name_in_plan), address), "arp": ask_arp(known, address)}

    def call_server(self, number: int, other: int, lacking: list[int]) -> Wire:
        """Return a connection to the server of this round, which has been asked to measure."""
        while (wire := self._dial(other)) is None:
            self.arrived(number)
            self.sweep.poll([], LATE_RETRY_SECONDS)
        wire.keep_alive()
        try:
            self._say(wire, "hello", number, lacking)
        except MeetingError:
            wire.close()
            raise
        return wire

    def ping(self, number: int, other: int) -> JsonDict | None:
        """Return what the partner says of a round, None if it may still be starting. Raises MeetingError if it is dead."""
        wire = self._dial(other)
        if wire is None:
            return None
        with contextlib.closing(wire):
            self._say(wire, "ping", number, self.lacking(number))
            return self.hear(wire, other)

    def _dial(self, other: int) -> Wire | None:
        """Connect to a partner. Returns None when it refuses and may just be late. Raises MeetingError if it is dead."""
        place = (str(self.addresses[other]), self.place[1])
        seconds = RUMOUR_TIMEOUT_SECONDS if self.sweep.is_called_dead(other) else CONNECT_TIMEOUT_SECONDS
        sock = socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._connect(sock, place, seconds)
        except OSError as exc:
            sock.close()
            if isinstance(exc, ConnectionRefusedError) and self.sweep.may_be_late(other):
                return None
            self.sweep.found_dead(other)
            raise MeetingError("dead", f"{self.sweep.hosts[other]} at {place[0]} port {place[1]}: {exc}") from exc
        except MeetingError:
            sock.close()
            raise
        return Wire(sock, self.sweep.token)

    def _connect(self, sock: socket.socket, place: tuple[str, int], seconds: float) -> None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        sock.bind((self.address, 0))
        sock.setblocking(False)
        code = sock.connect_ex(place)
        if code == errno.EINPROGRESS:
            if not self.sweep.poll([sock.fileno()], seconds, select.POLLOUT):
                raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} seconds")
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

    def _say(self, wire: Wire, kind: str, number: int, lacking: list[int]) -> None:
        """Open a conversation: "hello" to be measured, "ping" to ask whether the partner lives."""
        wire.nonce = os.urandom(16).hex()
        if kind == "hello":
            self._calls = wire.nonce
        about = {"rail": self.name_in_plan, "round": number, "host": self.sweep.host, "lacks": lacking, **self.sweep.rumours()}
        wire.send({"kind": kind, "sweep": self.sweep.plan["sweep"], "plan": self.sweep.digest, **about})

    def hear(self, wire: Wire, other: int) -> JsonDict:
        """Return the answer. Raises MeetingError when it is forged, or a refusal."""
        message, authentic = wire.receive()
        if not authentic:
            raise MeetingError("token", f"the answer of {self.sweep.hosts[other]} is not signed with this sweep's token")
        self.sweep.saw(other)
        self.sweep.hear_rumours(message)
        if message.get("kind") == "refused":
            raise _refused(message, self.sweep.hosts[other])
        return message

    def greet(self, wire: Wire, address: str) -> bool:
        """Answer one caller; say whether it is kept waiting, for its round."""
        message, authentic = wire.receive()
        wire.nonce = str(message.get("nonce"))
        number, host = message.get("round"), message.get("host")
        number = number if isinstance(number, int) else -1
        other, serving = self.meetings.get(number, (-1, False))
        due = other >= 0 and self.sweep.hosts[other] == host
        objection = self._objection(message, authentic, other if due else None, serving)
        if objection is None and message["kind"] == "hello":
            wire.keep_alive()
            objection = self._park(number, (wire, message))
            if objection is None:
                return True
        if objection is None:
            lacking = self.lacking(number)
            if serving and lacking and not message.get("lacks"):
                self._park(number, MeetingError("refused", f"{host} holds a good record of round {number} already"))
            low, hops = self._waits or (self.round, 0)
            where = {"at": self.round, "low": low, "hops": hops, **({"broken": self.broken.detail} if self.broken is not None else {})}
            wire.send({"kind": "pong", **where, "calls": self._calls, "lacks": lacking, **self.sweep.rumours()})
        else:
            if due and not authentic and address == self.addresses[other] and self._asks_back.acquire(blocking=False):
                threading.Thread(target=self._ask_back, args=(wire, number, other, objection), daemon=True).start()
                return True
            wire.send(objection.told())  # first, for this may be the last that our own round waits for
            if due and authentic and objection.error_class != "refused":  # that may be a call of another rail, sent here by anybody
                self._park(number, objection)
        return False

    def _ask_back(self, wire: Wire, number: int, other: int, objection: MeetingError) -> None:
        """Find out whether a message without our signature is the partner's, and only then let it be the answer of its round.

        Any program of the partner's host can send such a message. The partner itself also answers at its own port without our signature.
        One call at a time is asked back about, and is answered only then, for the caller may end with its answer.
        """
        try:
            with contextlib.closing(wire):
                try:
                    self.ping(number, other)
                except MeetingError as exc:
                    if exc.error_class == "token":
                        self._park(number, objection)
                with contextlib.suppress(MeetingError):
                    wire.send(objection.told())
        finally:
            self._asks_back.release()

    def _objection(self, message: JsonDict, authentic: bool, other: int | None, serving: bool) -> MeetingError | None:
        """Return why a caller is turned away, None if it is welcome. other: who it is, None if it has no such meeting."""
        host, here = message.get("host"), self.sweep.host
        if not authentic:
            return MeetingError("token", f"a message in the name of {host} is not signed with the token that {here} has")
        theirs, ours = (message.get("sweep"), message.get("plan")), (self.sweep.plan["sweep"], self.sweep.digest)
        if theirs != ours:
            return MeetingError("plan", f"{host} has sweep {theirs[0]}, plan {theirs[1]}; {here} has {ours[0]}, {ours[1]}")
        kind = message.get("kind")
        if other is None or kind not in ("ping", "hello" if serving else "ping") or message.get("rail") != self.name_in_plan:
            return MeetingError("refused", f"{here} has no such meeting with {host} on {self.name_in_plan}")
        if not self.sweep.results.resumed:  # else it may be a call of before this host was started again, which anybody can send
            self.sweep.saw(other)
            self.sweep.hear_rumours(message)
        return None

    def _park(self, number: int, arrival: tuple[Wire, JsonDict] | MeetingError) -> MeetingError | None:
        """Keep what arrived for a round until the rail gets there. Returns why not if it cannot."""
        with self._lock:
            if self.broken is not None:
                return self.broken
            if number < self.round or not self._is_new_call(number, arrival):
                return MeetingError("refused", f"round {number} has passed or has its caller, {self.sweep.host} says")
            if number not in self._parked:
                self._parked[number] = arrival
            elif isinstance(arrival, tuple):
                self._more_calls.setdefault(number, []).append(arrival)
        with contextlib.suppress(BlockingIOError):  # it is full of rings that wake the rail already
            self._rope.send(b".")
        return None

    def _is_new_call(self, number: int, arrival: tuple[Wire, JsonDict] | MeetingError) -> bool:
        """Whether nothing waits for a round yet, or only other calls of its client, which has been started again since."""
        waiting = [self._parked[number], *self._more_calls.get(number, ())] if number in self._parked else []
        calls = [call[0].nonce for call in (*waiting, arrival) if isinstance(call, tuple)]
        return not waiting or (len(calls) == len(waiting) + 1 <= CALLS and len(set(calls)) == len(calls))


class Patience:
    """How long one meeting waits for a partner that answers: as long as it gets on, or the host for which it waits itself.

    The host that is behind all others measures, so that one of them gets on within the time of one meeting. Whoever waits for a host
    that waits has a little more time than that one, so that the one that does not get on is given up first, by its own partner.
    """

    def __init__(self, rail: Rail, number: int, other: int) -> None:
        self._rail, self._number, self._other = rail, number, other
        self._name = rail.sweep.hosts[other]
        self._at = self._low = -1
        self._since = time.monotonic()

    def hear(self, pong: JsonDict) -> None:
        """Note where the partner is. Raises MeetingError when it has not got on for too long."""
        now, at = time.monotonic(), self._rail.round_of(pong, self._other)
        low = min(at, _whole_number(pong.get("low", at)))
        hops = max(0, min(HOPS, _whole_number(pong.get("hops", 0))))
        if at > self._at or low > self._low:
            self._at, self._low, self._since = max(at, self._at), max(low, self._low), now
        self._rail.waits_behind(min(self._number, low), min(HOPS, hops + 1))
        allowed = self._rail.sweep.meeting_seconds + hops * HOP_SECONDS
        if now > max(self._since, self._rail.sweep.start_deadline) + allowed:
            where = f"it stays in round {at}, and this is round {self._number}"
            raise MeetingError("dead", f"{self._name} answers and has measured nothing for {now - self._since:.0f} seconds: {where}")


class Meeting:
    """One meeting of two hosts on a rail: all its tests, one after another, over one connection.

    The client says hello. For each test, the server says "ready" once its perftest listens, and then each says "done" with
    perftest's exit code when that has ended; "failed" stands for either. A client that has lost its clock says so with "done", and
    where both were done, the same test comes again. So it does where both say with "done" that a stranger took the client's place at
    perftest's port. What these messages carry beside:
    hello: which tests the client lacks; ready: which of them are left; both: whom the sender found dead; ready, done, failed: the
    number of the test.
    """

    def __init__(self, rail: Rail, number: int, other: int, serving: bool, tests: list[int]) -> None:
        self._rail, self._sweep = rail, rail.sweep
        self._number, self._other, self._serving = number, other, serving
        self._left = tests
        self._attempts: Counter[int] = Counter()
        self._again = False
        self._done: JsonDict | None = None
        self._waited_since: float | None = time.monotonic()
        self._parted = False
        self._running: Perftest | None = None
        self._first_attempt: dict[int, float] = {}
        self._strangers: Counter[int] = Counter()
        self._probe: JsonDict | None = None

    def hold(self) -> None:
        """Measure, and record every test, whatever comes."""
        try:
            if self._rail.broken is not None:
                raise self._rail.broken
            if self._serving:
                wire, hello = self._rail.await_client(self._number, self._other)
                with contextlib.closing(wire):
                    self._serve(wire, hello)
            else:
                with contextlib.closing(self._rail.call_server(self._number, self._other, self._left)) as wire:
                    self._follow(wire)
        except MeetingError as exc:
            error = self._rail.last_word(self._number, exc) if exc.error_class == "dead" else exc
            if error is exc and exc.error_class == "dead":
                self._sweep.found_dead(self._other)
            for test in list(self._left):
                self._record(self._blank(test), error)

    def _serve(self, wire: Wire, hello: JsonDict) -> None:
        """Measure what the client lacks: it has the values, whatever is good or lacking here."""
        theirs = self._rail.known_tests(hello.get("lacks"))
        self._refuse_all_but(theirs)
        self._left = theirs
        if not theirs:
            wire.send(MeetingError("refused", f"{self._sweep.host} was asked for none of the plan's tests").told())
        while self._left:
            self._attempt(self._left[0], wire)

    def _follow(self, wire: Wire) -> None:
        while self._left:
            message = self._await_ready(wire)
            self._refuse_all_but(message.get("lacks"))
            test = _whole_number(message.get("test"))
            if test not in self._left:
                raise MeetingError("refused", f"{self._name} is at test {str(message.get('test'))[:SAID_CHARACTERS]}, which is not due")
            if message.get("kind") == "ready":
                self._attempt(test, wire)
            else:
                self._record(self._blank(test), _refused(message, self._name))

    @property
    def _name(self) -> str:
        return self._sweep.hosts[self._other]

    def _refuse_all_but(self, tests: Any) -> None:
        for test in [test for test in self._left if test not in (tests if isinstance(tests, list) else ())]:
            self._record(self._blank(test), MeetingError("refused", f"{self._name} holds a good record of this test already"))

    def _await_ready(self, wire: Wire) -> JsonDict:
        patience = Patience(self._rail, self._number, self._other)
        for seconds in _ping_intervals(False):
            if self._sweep.heard(wire, seconds):
                break
            pong = self._rail.ping(self._number, self._other)
            if pong is not None and not self._sweep.heard(wire, 0.0):
                patience.hear(pong)
        return self._rail.hear(wire, self._other)

    def _blank(self, test: int) -> JsonDict:
        pair = (self._sweep.index, self._other) if self._serving else (self._other, self._sweep.index)
        waited = 0.0 if self._waited_since is None else time.monotonic() - self._waited_since
        self._waited_since = None if self._serving else time.monotonic()
        return {
            "rail": self._rail.name_in_plan,
            "round": self._number,
            "test": self._sweep.tests[test]["name"],
            "server": self._sweep.hosts[pair[0]],
            "client": self._sweep.hosts[pair[1]],
            "role": "server" if self._serving else "client",
            "argv": [],
            "exit_code": None,
            "started": time.time(),
            "seconds": 0.0,
            "waited_seconds": round(waited, 3),
            "stdout": "",
            "stderr": "",
            "error": None,
        }

    def _record(self, record: JsonDict, error: MeetingError | None = None) -> None:
        if error is not None:
            record["error"] = {"class": error.error_class, "detail": error.detail}
        failed = error is not None or record["exit_code"] != 0
        if failed and self._sweep.plan.get("probe") and not self._sweep.stopping:
            self._probe = self._probe or self._rail.probe(self._other)
            record["probe"] = self._probe
        if LOST_CLOCK in record["stderr"]:
            with contextlib.suppress(OSError):
                record["clock_source"] = CLOCK_SOURCE.read_text(encoding="ascii").strip()
        self._left = [test for test in self._left if self._sweep.tests[test]["name"] != record["test"]]
        self._sweep.results.write(record)

    def _attempt(self, test: int, wire: Wire) -> None:
        """Measure one test and record it, unless it is to come again. Raises MeetingError when the meeting is over."""
        record, error = self._blank(test), None
        self._attempts[test] += 1
        self._first_attempt.setdefault(test, time.monotonic())
        try:
            self._measure(record, test, wire)
        except MeetingError as exc:
            error = exc
        broken = self._rail.broken
        if broken is not None:
            error = MeetingError("timeout", broken.detail if error is None else f"{error.detail}; {broken.detail}")
        if self._strangers[test]:
            record["strangers"] = self._strangers[test]
        if error is not None or not self._again:
            self._record(record, error)
        if not self._serving:
            self._waited_since = time.monotonic()
        if broken is not None:
            with contextlib.suppress(MeetingError):
                wire.send(broken.told())
            raise broken
        if error is not None and error.ends_meeting:
            raise error

    def _measure(self, record: JsonDict, number: int, wire: Wire) -> None:
        """Run perftest beside the partner's; whatever happens, tell the partner and leave no process."""
        self._running = None
        begun = time.monotonic()
        self._parted, self._done, self._again, under_way = False, None, False, not self._serving
        try:
            perftest = self._listening(record, number) if self._serving else self._start(record, self._sweep.tests[number])
            if self._serving:
                wire.send({"kind": "ready", "test": number, "lacks": self._left, **self._sweep.rumours()})
                under_way = True
            parting = self._supervise(perftest, allowed_seconds(self._sweep.tests[number]), wire)
            may_repeat = self._may_repeat(number)
            lost = may_repeat and not self._serving and perftest.end() == 0 and LOST_CLOCK in perftest.stderr.text()
            stranger = perftest.lost_its_handshake
            self._say_done(wire, number, perftest.end(), again=lost, stranger=stranger and may_repeat)
            parting = parting or self._await_parting(wire)
            if perftest.end() != 0 and parting is not None and parting.error_class == "dead":
                raise parting
            self._strangers[number] += stranger and self._partner_says("stranger")
            asked = lost or (self._serving and self._partner_says("again") and self._attempts[number] < ATTEMPTS)
            self._again = (asked and self._done is not None) or (stranger and may_repeat and self._partner_says("stranger"))
        except MeetingError as exc:
            if self._stranger_stays(exc, number):
                self._strangers[number] += 1
                self._again = True
                self._say_done(wire, number, None, again=False, stranger=True)
                return
            with contextlib.suppress(MeetingError):
                wire.send(exc.told("failed", test=number, lacks=self._left))
            if under_way and not self._parted and not exc.ends_meeting and len(self._left) > 1:
                self._await_parting(wire)  # or else it would be taken for an answer about the next test
            raise
        finally:
            record["seconds"] = round(time.monotonic() - begun, 3)
            if self._running is not None:
                code = self._running.end()
                record.update(exit_code=code, stdout=self._running.stdout.text(), stderr=self._running.stderr.text())
                if self._running.stuck:
                    self._rail.give_up(self._running)

    def _may_repeat(self, test: int) -> bool:
        """Whether there is an attempt and time left for a test that was lost to its client's clock, or to a stranger."""
        spent = time.monotonic() - self._first_attempt[test]
        return self._attempts[test] < ATTEMPTS and spent < allowed_seconds(self._sweep.tests[test])

    def _say_done(self, wire: Wire, test: int, code: int | None, *, again: bool, stranger: bool) -> None:
        wire.send({"kind": "done", "test": test, "exit_code": code, "again": again, "stranger": stranger})

    def _partner_says(self, word: str) -> bool:
        return self._done is not None and self._done.get(word) is True

    def _stranger_stays(self, error: MeetingError, test: int) -> bool:
        """Whether perftest's server still serves a stranger, while the client has found the port closed, and there is another attempt."""
        running = self._running
        if not self._serving or running is None or error.ends_meeting or not self._partner_says("stranger") or not self._may_repeat(test):
            return False
        return not self._rail.listeners.on(self._rail.perftest_port, self._rail.address)

    def _listening(self, record: JsonDict, number: int) -> Perftest:
        """Return perftest's server when it listens. One that a stranger has taken before that was seen is started again."""
        for _attempt in range(ATTEMPTS):
            perftest = self._start(record, self._sweep.tests[number])
            if self._await_listen(perftest):
                return perftest
            perftest.end()
            self._strangers[number] += 1
        port = self._rail.perftest_port
        raise MeetingError("listen", f"another process connected to perftest's port {port} before its client, {ATTEMPTS} times")

    def _start(self, record: JsonDict, test: JsonDict) -> Perftest:
        rail = self._rail
        record["argv"] = perftest_argv(test, rail.profile, rail.perftest_port, None if self._serving else rail.addresses[self._other])
        if self._serving and rail.listeners.on(rail.perftest_port, rail.address):
            raise MeetingError("listen", f"TCP port {rail.perftest_port} is taken by another process")
        self._running = Perftest(record["argv"], rail.group, self._sweep.environment)
        return self._running

    def _await_listen(self, perftest: Perftest) -> bool:
        """Wait for perftest's server by looking, never by connecting: it takes one client and no other.

        False: a stranger was that one client, before its listener was seen.
        """
        begun = time.monotonic()
        deadline, look_at = begun + LISTEN_TIMEOUT_SECONDS, begun + STRANGER_SECONDS
        place = self._rail.perftest_port, self._rail.address
        for seconds in _poll_intervals():
            if self._rail.listeners.on(*place):
                return True
            if perftest.ended():
                if perftest.lost_its_handshake:
                    return False
                code, said = perftest.end(), first_line(perftest.stderr.text(), perftest.stdout.text())
                words = f"perftest's server ended with exit code {code} before it listened"
                raise MeetingError("listen", f"{words}: {said}" if said else words)
            if time.monotonic() > look_at:
                if _tables_show(*place, TCP_STATES_TAKEN):
                    return False
                look_at = time.monotonic() + STRANGER_SECONDS
            if time.monotonic() > deadline:
                break
            self._sweep.poll([], seconds)
        raise MeetingError("listen", f"perftest's server did not listen within {LISTEN_TIMEOUT_SECONDS:g} s")

    def _supervise(self, perftest: Perftest, allowed: float, wire: Wire) -> MeetingError | None:
        """Collect the output until perftest ends. Returns the partner's parting if it was first.

        Raises MeetingError when perftest outlives its deadline, or its partner by more than ENDING_SECONDS.
        """
        deadline = time.monotonic() + allowed
        parting: MeetingError | None = None
        pipes = dict(perftest.streams)
        looks = _poll_intervals()
        while pipes or not perftest.ended():
            if time.monotonic() > deadline:
                raise parting or MeetingError("timeout", f"perftest did not end within {allowed:g} seconds")
            watched = [*pipes, wire.sock.fileno()] if parting is None else list(pipes)
            spare = deadline - time.monotonic()
            ready = self._sweep.poll(watched, 0.0 if wire.has_message and parting is None else min(spare, 1.0 if pipes else next(looks)))
            for pipe in [pipe for pipe in ready if pipe in pipes and not pipes[pipe].take(pipe)]:
                del pipes[pipe]
            if parting is None and (wire.has_message or wire.sock.fileno() in ready):
                parting, ending_seconds = self._parting(wire)
                deadline = min(deadline, time.monotonic() + ending_seconds)
        return parting

    def _await_parting(self, wire: Wire) -> MeetingError | None:
        return self._parting(wire)[0] if self._sweep.heard(wire, ENDING_SECONDS) else None

    def _parting(self, wire: Wire) -> tuple[MeetingError, float]:
        """Return what the partner's last message means for a perftest of ours that still runs, and how long it may."""
        self._parted = True
        try:
            message, authentic = wire.receive()
        except MeetingError as exc:
            return exc, FAILED_ENDING_SECONDS
        if not authentic or message.get("kind") != "done":
            return _refused(message, "the partner"), FAILED_ENDING_SECONDS
        self._done = message
        code = message.get("exit_code")
        error = MeetingError("timeout", f"the partner's perftest ended with exit code {code} and ours went on")
        return error, FAILED_ENDING_SECONDS if code else ENDING_SECONDS


class Reception(threading.Thread):
    """Answers all who call, on all rails of this host; nobody who is slow to speak keeps others waiting."""

    def __init__(self, rails: Sequence[Rail]) -> None:
        super().__init__(daemon=True)
        self._poll = select.poll()
        self._doors = {rail.listener.fileno(): (rail, rail.listener) for rail in rails if rail.listener is not None}
        self._callers: dict[int, tuple[Rail, Wire, str, float]] = {}
        self._reader, self._writer = os.pipe()
        for descriptor in (*self._doors, self._reader):
            self._poll.register(descriptor, select.POLLIN)

    def close(self) -> None:
        """End the thread, and wait for that."""
        os.close(self._writer)
        self.join()

    def run(self) -> None:
        """Answer until closed."""
        while True:
            ready = [descriptor for descriptor, _events in self._poll.poll(1000 if self._callers else None)]
            if self._reader in ready:
                return
            for descriptor in ready:
                if descriptor in self._doors:
                    self._accept(*self._doors[descriptor])
                elif descriptor in self._callers:
                    self._listen_to(descriptor)
            now = time.monotonic()
            for descriptor in [each for each, caller in self._callers.items() if caller[3] < now]:
                self._dismiss(descriptor).close()

    def _accept(self, rail: Rail, listener: socket.socket) -> None:
        try:
            sock, peer = listener.accept()
            wire = Wire(sock, rail.sweep.token)
        except OSError:
            time.sleep(LATE_RETRY_SECONDS)
            return
        if len(self._callers) >= CALLERS:
            self._dismiss(next(iter(self._callers))).close()
        deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
        self._callers[sock.fileno()] = (rail, wire, peer[0], deadline)
        self._poll.register(sock.fileno(), select.POLLIN)

    def _dismiss(self, descriptor: int) -> Wire:
        self._poll.unregister(descriptor)
        return self._callers.pop(descriptor)[1]

    def _listen_to(self, descriptor: int) -> None:
        rail, wire, address, _deadline = self._callers[descriptor]
        waits = False
        try:
            wire.take()
            if not wire.has_message:
                return
            self._dismiss(descriptor)
            waits = rail.greet(wire, address)
        except (MeetingError, OSError):
            self._callers.pop(descriptor, None)
            with contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)
        if not waits:
            wire.close()


def results_path(given: Path, host: str) -> Path:
    """Return the file of results: the given one, or the host's in a given folder, which it cannot leave. Raises ValueError."""
    if not given.is_dir():
        return given
    if "/" in host or "\0" in host:
        raise ValueError(f"{host!r} of the plan cannot be the name of a file in {given}: name a file with --results")
    return given / f"{host}.jsonl"


def run(sweep: Sweep) -> int:
    """Work through all rails, side by side, and return the exit code."""
    rails = [Rail(sweep, number) for number, rail in enumerate(sweep.plan["rails"]) if rail["addresses"][sweep.index] is not None]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, sweep.stop)
    for rail in rails:
        rail.open()
    reception = Reception(rails)
    gc.freeze()  # a plan of thousands of hosts is not to be looked through again and again
    reception.start()
    for rail in rails:
        rail.start()
    for rail in rails:
        while rail.is_alive():
            rail.join(1.0)
    reception.close()
    for rail in rails:
        rail.close()
    try:
        sweep.finish()
    except OSError as exc:
        sys.stderr.write(f"pair runner: {exc}\n")
        return 1
    if sweep.stopping:
        return 128 + sweep.signal_number
    return 1 if sweep.failures else 0


def main() -> int:
    """Run one host's share of a sweep. Returns 0 when every round was recorded, whatever it gave.

    1: the recording failed; 2: plan, token or results file cannot be used; 128 + n: stopped by signal n.
    """
    parser = argparse.ArgumentParser(description="Run one host's share of a sweep of pairwise RDMA measurements.")
    parser.add_argument("--plan", type=Path, required=True, help="the plan, the same on every host (JSON, maybe gzipped)")
    parser.add_argument("--token-file", type=Path, help=f"a file with the secret of this sweep; else it is in {TOKEN_VARIABLE}")
    parser.add_argument("--host", help="this host's name in the plan; else Slurm's or the kernel's name, or its first label")
    parser.add_argument("--results", type=Path, required=True, help="the file to write, a JSON object a line, or a folder for HOST.jsonl")
    parser.add_argument("--resume", action="store_true", help="go on with the results that are there")
    arguments = parser.parse_args()
    try:
        plan = load_plan(arguments.plan, [arguments.host] if arguments.host else own_names())
        token = load_token(arguments.token_file)
        path = results_path(arguments.results, plan.content["hosts"][plan.host])
        results = Results(path, plan.content["sweep"], arguments.resume)
        return run(Sweep(plan, token, results))
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"pair runner: {exc}\n")
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
