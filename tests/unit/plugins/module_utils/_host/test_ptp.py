# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PTP as ptp4l reports it, by real output, and which clock a running program adjusts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import parse_chrony
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp import (
    SYSTEM_CLOCK,
    ClockProgram,
    Ptp,
    Ptp4lOptions,
    adjusted_clock,
    ask_command,
    conflicts,
    parse_pmc,
    parse_ptp4l_conf,
    read_programs,
    read_ptp,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import CONFIG, REFID, PtpRequest, ptp_files
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, read_or_refused

FIXTURES = Path(__file__).parents[3] / "fixtures"
LISTENING, FOLLOWS, GRANDMASTER, LOST = (
    FIXTURES.joinpath(f"ptp/3.1.1-{name}.txt").read_text(encoding="ascii") for name in ("listening", "slave", "gm", "lost")
)
ME, OTHER = "5efc9f.fffe.388131", "56fc6c.fffe.b69e69"


def test_a_follower() -> None:
    assert parse_pmc(FOLLOWS) == Ptp(
        domain=24,
        ports={"1": "UNCALIBRATED"},
        identity=ME,
        grandmaster=OTHER,
        offset_ns=-83,
        path_delay_ns=2296.0,
        present=True,
        measured=True,
        tai=False,
    )


def test_a_grandmaster_follows_itself() -> None:
    seen = parse_pmc(GRANDMASTER)
    assert (seen.ports, seen.identity, seen.grandmaster, seen.present) == ({"1": "MASTER"}, OTHER, OTHER, False)


def test_without_a_grandmaster_a_port_listens() -> None:
    seen = parse_pmc(LISTENING)
    assert (seen.ports, seen.grandmaster, seen.present) == ({"1": "LISTENING"}, ME, False)


def test_only_the_port_tells_that_the_grandmaster_is_lost() -> None:
    seen = parse_pmc(LOST)
    assert (seen.ports, seen.grandmaster, seen.present, seen.measured) == ({"1": "LISTENING"}, OTHER, True, False)


BROKEN = [
    ("sending: GET CURRENT_DATA_SET\n", "ptp4l does not answer to pmc"),
    ("", "ptp4l does not answer to pmc"),
    ("pmc: command failed\n", "not a line of pmc: 'pmc: command failed'"),
    (FOLLOWS.replace("UNCALIBRATED", "FINE"), "not the state of a PTP port: 'FINE'"),
    (FOLLOWS.replace("master_offset              -83", "master_offset              none"), "not a number: master_offset 'none'"),
    (FOLLOWS.replace("grandmasterIdentity                   56fc6c.fffe", "grandmasterIdentity       x"), "not the identity of a clock"),
    (FOLLOWS.replace("RESPONSE MANAGEMENT TIME_STATUS_NP", "RESPONSE MANAGEMENT OTHER_NP"), "pmc printed no TIME_STATUS_NP"),
    (FOLLOWS.replace("\t\tgmPresent                  true\n", ""), "pmc printed no gmPresent in TIME_STATUS_NP"),
    (FOLLOWS.replace("meanPathDelay    2296.0", "meanPathDelay    nan"), "not a number: meanPathDelay 'nan'"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_other_output_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_pmc(text)


@given(garbled(FOLLOWS))
def test_damaged_output_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_pmc, text)


def test_chrony_names_the_reference_clock() -> None:
    seen = parse_chrony(FIXTURES.joinpath("chrony/4.3-ptp.csv").read_text(encoding="ascii"))
    assert (seen.source, seen.sources) == (REFID, {REFID: "*"})
    lost = parse_chrony(FIXTURES.joinpath("chrony/4.3-ptp-lost.csv").read_text(encoding="ascii"))
    assert lost.sources == {REFID: "?"}


def request(*, hardware: bool = False, grandmaster: bool = False) -> PtpRequest:
    return PtpRequest("ens1-a", "0000:21:00.0", 24, "L2", hardware, grandmaster, "chrony.service")


def texts(planned: PtpRequest) -> dict[str, str | None]:
    return {each.path: each.content if each.content is None else each.text for each in ptp_files(planned)}


def test_with_software_stamps_ptp4l_cannot_adjust_a_clock() -> None:
    files = texts(request())
    config = parse_ptp4l_conf(files[CONFIG] or "")
    assert config.values == {
        "domainNumber": "24", "network_transport": "L2", "time_stamping": "software", "slaveOnly": "1", "clock_servo": "ntpshm",
        "ntpshm_segment": "15", "kernel_leap": "0",
    }  # fmt: skip
    assert not config.adjusts
    unit = files["/etc/systemd/system/rdma-ptp@.service"] or ""
    assert "CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE\n" in unit
    assert "BindsTo=sys-subsystem-net-devices-%i.device\n" in unit
    assert files["/etc/chrony/rdma-cluster-ptp.conf"] == (
        "# Managed by rdma.cluster.\nrefclock SHM 15 poll 2 refid PTP prefer\nmakestep 1 0\n"
    )
    assert files["/etc/udev/rules.d/90-rdma-cluster-ptp.rules"] is None
    assert files["/etc/systemd/system/chrony.service.d/60-rdma-cluster-ptp.conf"] is None


def test_with_hardware_stamps_chrony_follows_the_clock_of_the_nic() -> None:
    files = texts(request(hardware=True))
    config = parse_ptp4l_conf(files[CONFIG] or "")
    assert config.adjusts
    assert not config.is_software
    assert "CAP_SYS_TIME\n" in (files["/etc/systemd/system/rdma-ptp@.service"] or "")
    assert "refclock PHC /dev/rdma-cluster-ptp tai poll 0 dpoll -2 refid PTP prefer\n" in (files["/etc/chrony/rdma-cluster-ptp.conf"] or "")
    rule = 'SUBSYSTEM=="ptp", KERNELS=="0000:21:00.0", SYMLINK+="rdma-cluster-ptp", TAG+="systemd"\n'
    assert rule in (files["/etc/udev/rules.d/90-rdma-cluster-ptp.rules"] or "")
    start = files["/etc/systemd/system/chrony.service.d/60-rdma-cluster-ptp.conf"] or ""
    assert "After=dev-rdma\\x2dcluster\\x2dptp.device\n" in start


def test_a_grandmaster_follows_no_clock() -> None:
    files = texts(request(grandmaster=True))
    assert not parse_ptp4l_conf(files[CONFIG] or "").adjusts
    assert files["/etc/chrony/rdma-cluster-ptp.conf"] == "# Managed by rdma.cluster.\nmakestep 1 0\n"


def test_the_unit_of_an_interface() -> None:
    assert request().unit == "rdma-ptp@ens1\\x2da.service"


@pytest.mark.parametrize(
    ("line", "clock"),
    [
        ("chronyd -F 1", SYSTEM_CLOCK),
        ("chronyd -F 1 -x", ""),
        ("chronyd -u x -F 1", SYSTEM_CLOCK),
        ("ntpd -g", SYSTEM_CLOCK),
        ("phc2sys -w -s ens1", SYSTEM_CLOCK),
        ("phc2sys -a -r", SYSTEM_CLOCK),
        ("phc2sys -ar", SYSTEM_CLOCK),
        ("phc2sys -a", ""),
        ("phc2sys -s CLOCK_REALTIME -c ens1 -w", "ptp0"),
        ("phc2sys -s CLOCK_REALTIME -c /dev/ptp0 -w", "ptp0"),
        ("phc2sys -s ens1 -E ntpshm -w", ""),
        ("ptp4l -i ens1", "ptp0"),
        ("ptp4l -i ens9", "ens9"),
        ("ptp4l -i ens1 -S", SYSTEM_CLOCK),
        ("ptp4l -Si ens1", SYSTEM_CLOCK),
        ("ptp4l -i ens1 -S --clock_servo ntpshm", ""),
        ("ptp4l -i ens1 -S --clock_servo=pi --free_running=1", ""),
        ("ptp4l -i ens1 -S --masterOnly 1", ""),
        ("ptp4l -f /etc/own.conf", SYSTEM_CLOCK),
        ("ptp4l -f /etc/own.conf --clock_servo=ntpshm", ""),
    ],
)
def test_the_clock_that_a_program_adjusts(tmp_path: Path, line: str, clock: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/own.conf").write_text("# mine\n[global]\ntime_stamping\tsoftware\n\n[ens1]\nmasterOnly 0\n")
    argv = line.split()
    assert adjusted_clock(argv[0], argv, SysRoot(str(tmp_path)), {"ens1": "ptp0"}) == clock


def test_a_file_of_another_form_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/own.conf").write_text("[global]\n%%\n")
    with pytest.raises(ParseError, match=r"/etc/own\.conf: line 2: not an option of ptp4l: '%%'"):
        adjusted_clock("ptp4l", ["ptp4l", "-f", "/etc/own.conf"], SysRoot(str(tmp_path)), {})
    with pytest.raises(ParseError, match=r"/etc/missing\.conf: missing"):
        adjusted_clock("ptp4l", ["ptp4l", "-f", "/etc/missing.conf"], SysRoot(str(tmp_path)), {})


def running(root: Path, **programs: str) -> SysRoot:
    """A host with processes: their names, and their command lines."""
    for pid, (name, line) in enumerate(programs.items(), 77):
        folder = root / f"proc/{pid}"
        folder.mkdir(parents=True)
        (folder / "comm").write_text(name.replace("_", "-")[:15] + "\n")
        (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in line.split()) + b"\0")
    return SysRoot(str(root))


def test_the_programs_of_a_host(tmp_path: Path) -> None:
    sys = running(tmp_path, chronyd="/usr/sbin/chronyd -F 1", bash="bash", phc2sys="/usr/sbin/phc2sys -a -r")
    found = read_programs(sys, {})
    assert found == [ClockProgram(77, "chronyd", SYSTEM_CLOCK), ClockProgram(79, "phc2sys", SYSTEM_CLOCK)]
    assert [each.words for each in conflicts(found)[SYSTEM_CLOCK]] == ["chronyd (pid 77)", "phc2sys (pid 79)"]


def test_a_command_line_of_another_program_is_unknown(tmp_path: Path) -> None:
    (program,) = read_programs(running(tmp_path, chronyd="something else"), {})
    assert (program.clock, program.unread) == (None, "/proc/77/cmdline is not that of chronyd: 'something'")


def test_processes_of_one_chronyd_are_one() -> None:
    assert conflicts([ClockProgram(7, "chronyd", SYSTEM_CLOCK), ClockProgram(8, "chronyd", SYSTEM_CLOCK)]) == {}
    two = [ClockProgram(7, "ptp4l", "ptp0"), ClockProgram(8, "ptp4l", "ptp0"), ClockProgram(9, "chronyd", SYSTEM_CLOCK)]
    assert conflicts(two) == {"ptp0": two[:2]}


def with_ptp4l(tmp_path: Path, line: str = f"/usr/sbin/ptp4l -f {CONFIG} -i ens1-a") -> SysRoot:
    sys = running(tmp_path, ptp4l=line)
    (tmp_path / "etc/rdma-cluster").mkdir(parents=True)
    (tmp_path / CONFIG.lstrip("/")).write_text(request().config)
    return sys


ASK = ask_command(Ptp4lOptions(values={"domainNumber": "24"}))


@pytest.fixture
def by_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SysRoot, "owner", lambda _self, _path: "0:0")


@pytest.mark.usefixtures("by_root")
def test_our_ptp4l_is_asked_once_in_its_domain(tmp_path: Path) -> None:
    sys = with_ptp4l(tmp_path)
    programs = read_programs(sys, {})
    assert [(each.clock, each.ours) for each in programs] == [("", True)]
    assert ASK[:8] == ("pmc", "-u", "-b", "0", "-d", "24", "-t", "0")
    assert read_ptp(sys, FakeRunner([(ASK, 0, FOLLOWS, "")]), programs) == (parse_pmc(FOLLOWS), None)


@pytest.mark.usefixtures("by_root")
@pytest.mark.parametrize(
    ("answer", "why"),
    [((ASK, 255, "", "failed to open socket"), "`pmc` fails: failed to open socket"), ((ASK, 0, "", ""), "ptp4l does not answer to pmc")],
)
def test_why_ptp4l_does_not_answer(tmp_path: Path, answer: tuple[tuple[str, ...], int, str, str], why: str) -> None:
    sys = with_ptp4l(tmp_path)
    assert read_ptp(sys, FakeRunner([answer]), read_programs(sys, {})) == (None, why)


def test_no_process_is_started_without_a_ptp4l_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sys = with_ptp4l(tmp_path)
    monkeypatch.setattr(SysRoot, "owner", lambda _self, _path: "1000:1000")
    assert read_ptp(sys, FakeRunner([]), read_programs(sys, {})) == (None, None)
    assert read_ptp(sys, FakeRunner([]), []) == (None, None)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"uds_address": "/run/own"}, ("-d", "0", "-t", "0", "-s", "/run/own")),
        ({"transportSpecific": "0x1", "domainNumber": "7"}, ("-d", "7", "-t", "1")),
    ],
)
def test_another_socket_and_domain(values: dict[str, str], words: tuple[str, ...]) -> None:
    asked = ask_command(Ptp4lOptions(values=values))
    assert asked[4 : 4 + len(words)] == words


@pytest.mark.parametrize("values", [{"uds_address": "own; x"}, {"domainNumber": "-1"}, {"transportSpecific": "x"}])
def test_options_of_another_form_start_nothing(values: dict[str, str]) -> None:
    with pytest.raises(ParseError, match="not "):
        ask_command(Ptp4lOptions(values=values))
