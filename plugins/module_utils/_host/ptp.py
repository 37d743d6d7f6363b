# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the state of PTP: ptp4l's answer to pmc, and the programs that adjust a clock.

Sources: ptp4l(8), pmc(8), phc2sys(8) of linuxptp 3.1.1 to 4.4; pmc.c, clock.c, port.c, ntpshm.c there; chronyd(8).

pmc prints a header for each answer, and one line for each value:

    <TAB>5efc9f.fffe.388131-1 seq 1 RESPONSE MANAGEMENT PORT_DATA_SET
    <TAB><TAB>portState               SLAVE

It ends with 0 also if ptp4l does not answer. ptp4l answers only in its own domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import PtpIntent
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import read_processes
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import CONFIG

#: The data sets that pmc requests, all in one process.
DATA_SETS = (
    *("CURRENT_DATA_SET", "PORT_DATA_SET", "PARENT_DATA_SET", "TIME_STATUS_NP", "DEFAULT_DATA_SET"),
    "TIME_PROPERTIES_DATA_SET",
)
#: ps_str of linuxptp's util.c.
PORT_STATES = (
    *("NONE", "INITIALIZING", "FAULTY", "DISABLED", "LISTENING", "PRE_MASTER", "MASTER", "PASSIVE", "UNCALIBRATED", "SLAVE"),
    "GRAND_MASTER",
)
#: The servos that only hand measurements to another program, such as chronyd. With them a port stays UNCALIBRATED, because ntpshm.c always
#: reports SERVO_UNLOCKED.
FEEDS = ("ntpshm", "refclock_sock")
MASTER, SLAVE, UNCALIBRATED = "MASTER", "SLAVE", "UNCALIBRATED"
SYSTEM_CLOCK = "the system clock"
#: The largest offset in ns without `max_offset_ns`: the jitter of time stamps by a NIC, and by the kernel.
OFFSET_NS = {"hardware": 1000, "software": 100_000}
PTP4L, PHC2SYS, CHRONYD = "ptp4l", "phc2sys", "chronyd"
#: The kernel's name of a program (comm, at most 15 characters) → its own name: those that may adjust a clock.
PROGRAMS = {
    **{name: name for name in (PTP4L, PHC2SYS, CHRONYD, "ntpd", "ntpsec", "openntpd")},
    "systemd-timesyn": "systemd-timesyncd",
}
_HEADER = re.compile(r"\t([0-9a-f]{6}\.[0-9a-f]{4}\.[0-9a-f]{6})-([0-9]{1,5}) seq [0-9]+ RESPONSE MANAGEMENT ([A-Z0-9_]+) ?")
_VALUE = re.compile(r"\t\t([A-Za-z0-9_.]{1,64}) +(\S[^\t]*)")
_IDENTITY = re.compile(r"[0-9a-f]{6}\.[0-9a-f]{4}\.[0-9a-f]{6}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_SECTION, _OPTION = re.compile(r"\[([^\[\]]{1,64})\]"), re.compile(r"([A-Za-z][A-Za-z0-9_.]{0,63})\s+(\S.*)")
_SOCKET = re.compile(r"(/[A-Za-z0-9._-]+)+")
#: Sections of ptp4l.conf that are no port's.
_GLOBAL, _TABLE = "global", "unicast_master_table"


@dataclass(frozen=True)
class Ptp:
    """ptp4l's answer. ports: number → state, of PORT_STATES. identity: of its own clock. grandmaster: the identity of the last one.

    offset_ns: how far the clock is ahead of the grandmaster's. present: whether ptp4l has a grandmaster, as of its last measurement.
    measured: whether it has measured since its port changed state. tai: whether the grandmaster's time is TAI (PTP's own time scale).
    """

    domain: int
    ports: dict[str, str]
    identity: str
    grandmaster: str
    offset_ns: int
    path_delay_ns: float
    present: bool
    measured: bool
    tai: bool


@dataclass(frozen=True)
class ClockProgram:
    """A running program that can adjust a clock. clock: the one that it adjusts, SYSTEM_CLOCK or the NIC's ("ptp0", or the interface);

    "" if it adjusts none; None if its options could not be read, with the reason in unread. ours: the ptp4l of our unit.
    """

    pid: int
    name: str
    clock: str | None
    unread: str | None = None
    ours: bool = False

    @property
    def words(self) -> str:
        """The program in words."""
        return f"{self.name} (pid {self.pid})"


@dataclass(frozen=True)
class Ptp4lOptions:
    """The options of a running ptp4l, from its command line and its file. interfaces: its ports."""

    interfaces: tuple[str, ...] = ()
    values: dict[str, str] = field(default_factory=dict)

    def get(self, name: str, default: str) -> str:
        return self.values.get(name, default)

    @property
    def is_software(self) -> bool:
        return self.get("time_stamping", "hardware") == "software"

    @property
    def adjusts(self) -> bool:
        """Whether it may adjust its clock: not as a grandmaster only, not for another program, and not if it runs free."""
        only_master = "1" in (self.get("masterOnly", "0"), self.get("serverOnly", "0"))
        return not only_master and self.get("free_running", "0") != "1" and self.get("clock_servo", "pi") not in FEEDS


def working_states(*, is_grandmaster: bool, is_software: bool) -> tuple[str, ...]:
    """Return the states of a port that does what is planned. is_software: software time stamps, see FEEDS."""
    if is_grandmaster:
        return (MASTER,)
    return (SLAVE, UNCALIBRATED) if is_software else (SLAVE,)


def largest_offset_ns(planned: PtpIntent) -> int:
    """Return how far a clock may be from the grandmaster's, in ns."""
    return planned["max_offset_ns"] or OFFSET_NS[planned["timestamping"]]


def parse_pmc(text: str) -> Ptp:
    """Parse the answers to DATA_SETS. Raises ParseError for another line, and if one is missing."""
    found: dict[str, dict[str, str]] = {}
    ports: dict[str, str] = {}
    identity = ""
    values: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("sending: GET "):
            continue
        if (header := _HEADER.fullmatch(line)) is not None:
            identity, values = header[1], {}
            name = f"{header[3]} {header[2]}" if header[3] == "PORT_DATA_SET" else header[3]
            found[name] = values
        elif (value := _VALUE.fullmatch(line)) is not None and found:
            values[value[1]] = value[2].strip()
        else:
            raise ParseError(f"not a line of pmc: {quoted(line)}")
    for name, values in found.items():
        if name.startswith("PORT_DATA_SET "):
            state = _of(values, "portState", "PORT_DATA_SET")
            if state not in PORT_STATES:
                raise ParseError(f"not the state of a PTP port: {quoted(state)}, expected one of {', '.join(PORT_STATES)}")
            ports[name.split()[1]] = state
    missing = [name for name in DATA_SETS if name not in found and not (name == "PORT_DATA_SET" and ports)]
    if missing:
        raise ParseError(f"pmc printed no {', '.join(missing)}" if found else "ptp4l does not answer to pmc")
    status = found["TIME_STATUS_NP"]
    return Ptp(
        domain=_integer(found["DEFAULT_DATA_SET"], "domainNumber"),
        ports=ports,
        identity=identity,
        grandmaster=_identity(found["PARENT_DATA_SET"], "grandmasterIdentity"),
        offset_ns=_integer(status, "master_offset"),
        path_delay_ns=_number(found["CURRENT_DATA_SET"], "meanPathDelay"),
        present=_of(status, "gmPresent", "TIME_STATUS_NP") == "true",
        measured=_integer(status, "ingress_time") > 0,
        tai=_integer(found["TIME_PROPERTIES_DATA_SET"], "ptpTimescale") == 1,
    )


def _of(values: Mapping[str, str], name: str, where: str) -> str:
    if name not in values:
        raise ParseError(f"pmc printed no {name} in {where}")
    return values[name]


def _integer(values: Mapping[str, str], name: str) -> int:
    word = _of(values, name, "its answer")
    if _INTEGER.fullmatch(word) is None:
        raise ParseError(f"not a number: {name} {quoted(word)}")
    return int(word)


def _number(values: Mapping[str, str], name: str) -> float:
    word = _of(values, name, "its answer")
    if re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,9})?", word) is None:
        raise ParseError(f"not a number: {name} {quoted(word)}")
    return float(word)


def _identity(values: Mapping[str, str], name: str) -> str:
    word = _of(values, name, "its answer")
    if _IDENTITY.fullmatch(word) is None:
        raise ParseError(f"not the identity of a clock: {name} {quoted(word)}, expected the form '5efc9f.fffe.388131'")
    return word


def parse_ptp4l_conf(text: str) -> Ptp4lOptions:
    """Parse ptp4l's file: the interfaces of its sections, and the options of [global]. Raises ParseError for another line."""
    interfaces, values, section = [], {}, _GLOBAL
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if (head := _SECTION.fullmatch(line)) is not None:
            section = head[1].strip()
            if section not in (_GLOBAL, _TABLE):
                interfaces.append(section)
        elif (option := _OPTION.fullmatch(line)) is None:
            raise ParseError(f"line {number}: not an option of ptp4l: {quoted(line)}")
        elif section == _GLOBAL:
            values[option[1]] = option[2].strip()
    return Ptp4lOptions(tuple(interfaces), values)


def ptp4l_options(argv: Sequence[str], sys: SysRoot) -> Ptp4lOptions:
    """Return the options of a running ptp4l. Options of the command line replace those of the file.

    Raises ParseError, with the path, for a file that is missing or has another form, and OSError for one that cannot be read.
    """
    given = list(_arguments(argv, "fipl"))
    file = Ptp4lOptions()
    for path in (value for name, value in given if name == "f"):
        text = sys.read(path)
        if text is None:
            raise ParseError(f"{path}: missing, but ptp4l was started with it")
        try:
            file = parse_ptp4l_conf(text)
        except ParseError as error:
            raise ParseError(f"{path}: {error}") from error
    values = dict(file.values)
    for name, value in given:
        if name in ("S", "H", "L"):
            values["time_stamping"] = {"S": "software", "H": "hardware", "L": "legacy"}[name]
        elif len(name) > 1:
            values[name] = value
    return Ptp4lOptions(tuple(dict.fromkeys((*(value for name, value in given if name == "i"), *file.interfaces))), values)


def _arguments(argv: Sequence[str], with_value: str) -> Iterator[tuple[str, str]]:
    """Yield (option, value) of a command line as getopt_long reads it. with_value: the short options that have a value."""
    words = list(argv[1:])
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield name, value if equals else (words.pop(0) if words else "")
        elif word.startswith("-"):
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in with_value:
                    yield letter, letters or (words.pop(0) if words else "")
                    break
                yield letter, ""


def adjusted_clock(name: str, argv: Sequence[str], sys: SysRoot, nic_clocks: Mapping[str, str]) -> str:
    """Return the clock that a program adjusts, as ClockProgram has it. nic_clocks: interface → its NIC's clock ("ptp0").

    Raises ParseError and OSError as ptp4l_options does.
    """
    if name == PTP4L:
        options = ptp4l_options(argv, sys)
        if not options.adjusts:
            return ""
        return SYSTEM_CLOCK if options.is_software else _device(next(iter(options.interfaces), ""), nic_clocks)
    if name == PHC2SYS:
        return _phc2sys_clock(argv, nic_clocks)
    return "" if name == CHRONYD and any(option == "x" for option, _value in _arguments(argv, "fFlLPrtu")) else SYSTEM_CLOCK


def _phc2sys_clock(argv: Sequence[str], nic_clocks: Mapping[str, str]) -> str:
    """Return what phc2sys adjusts: -c, by default the system clock; with -a the NICs' clocks, and with -r the system clock."""
    given = list(_arguments(argv, "csfEOPIRNLMiulnzt"))
    options = dict(given)
    if options.get("E", options.get("clock_servo", "pi")) in FEEDS or options.get("free_running") == "1":
        return ""
    if "a" in options:
        return SYSTEM_CLOCK if "r" in options else ""
    clock = options.get("c", "CLOCK_REALTIME")
    return SYSTEM_CLOCK if clock == "CLOCK_REALTIME" else _device(clock, nic_clocks)


def _device(name: str, nic_clocks: Mapping[str, str]) -> str:
    return nic_clocks.get(name, PurePosixPath(name).name)


def read_programs(sys: SysRoot, nic_clocks: Mapping[str, str]) -> list[ClockProgram]:
    """Return the running programs that can adjust a clock, from /proc. No process is started. One that ends meanwhile is omitted.

    Raises OSError, with the path, if /proc cannot be read.
    """
    return [_program(sys, each.pid, PROGRAMS[each.name], nic_clocks) for each in read_processes(sys) if each.name in PROGRAMS]


def _argv(sys: SysRoot, pid: int, name: str) -> list[str]:
    """Return a program's command line. Raises ParseError if it is not that of this program."""
    try:
        argv = (sys.read(f"/proc/{pid}/cmdline") or "").rstrip("\0").split("\0")
    except ProcessLookupError:
        argv = [""]
    if PurePosixPath(argv[0]).name != name:
        raise ParseError(f"/proc/{pid}/cmdline is not that of {name}: {quoted(argv[0])}")
    return argv


def _program(sys: SysRoot, pid: int, name: str, nic_clocks: Mapping[str, str]) -> ClockProgram:
    try:
        argv = _argv(sys, pid, name)
        return ClockProgram(pid, name, adjusted_clock(name, argv, sys, nic_clocks), ours=name == PTP4L and CONFIG in argv)
    except (ParseError, OSError) as error:
        return ClockProgram(pid, name, None, str(error)[:300])


def conflicts(programs: Sequence[ClockProgram]) -> dict[str, list[ClockProgram]]:
    """Return clock → the programs that adjust it, if there are several. chronyd and ntpd may run as several processes."""
    found: dict[str, dict[tuple[str, int], ClockProgram]] = {}
    for each in programs:
        if each.clock:
            found.setdefault(each.clock, {}).setdefault((each.name, each.pid if each.name in (PTP4L, PHC2SYS) else 0), each)
    return {clock: list(several.values()) for clock, several in found.items() if len(several) > 1}


def read_ptp(sys: SysRoot, runner: Runner | None, programs: Sequence[ClockProgram]) -> tuple[Ptp | None, str | None]:
    """Return ptp4l's answer, or why there is none; both None if no ptp4l of root runs: then no process is started.

    Of several, our own is asked.
    """
    pids = [each.pid for each in programs if each.name == PTP4L and (sys.owner(f"/proc/{each.pid}") or "").startswith("0:")]
    if runner is None or not pids:
        return None, None
    try:
        lines = [_argv(sys, pid, PTP4L) for pid in pids]
        argv = next((line for line in lines if CONFIG in line), lines[0])
        done = runner.run(ask_command(ptp4l_options(argv, sys)), timeout_seconds=10.0)
        if done.rc == 0:
            return parse_pmc(done.stdout), None
    except (CommandError, ParseError, OSError) as error:
        return None, str(error)[:300]
    return None, f"`pmc` fails: {(done.stderr.strip() or done.stdout.strip())[-200:] or f'exit status {done.rc}'}"


def ask_command(options: Ptp4lOptions) -> tuple[str, ...]:
    """Return the command that asks a ptp4l with these options. Raises ParseError for options that are not in their form."""
    domain, kind, socket = (options.get(*each) for each in (("domainNumber", "0"), ("transportSpecific", "0x0"), ("uds_address", "")))
    if re.fullmatch(r"[0-9]{1,3}", domain) is None or re.fullmatch(r"(0x)?[0-9a-fA-F]{1,2}", kind) is None:
        raise ParseError(f"not a domain and a transportSpecific of ptp4l: {quoted(domain)}, {quoted(kind)}")
    if socket and _SOCKET.fullmatch(socket) is None:
        raise ParseError(f"not the path of a socket: uds_address {quoted(socket)}")
    where = ("-s", socket) if socket else ()
    return ("pmc", "-u", "-b", "0", "-d", domain, "-t", kind.removeprefix("0x"), *where, *(f"GET {name}" for name in DATA_SETS))
