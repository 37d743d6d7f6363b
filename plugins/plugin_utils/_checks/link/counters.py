# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the link gate on a port's counters: their increase since the last run, as rates; a level has no meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import (
    CABLE_ERRORS,
    CONGESTION,
    FLAPS,
    FULL,
    MODULE,
    OVERSIZE,
    PCIE,
    REMOTE_ERRORS,
    of_netdev,
    of_port,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort, rail_ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts

_NO_COUNTERS = "not every driver has these counters; existing ones are compared"
declare(
    {
        "link.flaps": Check(
            "link",
            "how often each rail's link went down since the last run",
            "`link_downed`, `link_error_recovery`, `link_down_events_phy`, `carrier_down_count`",
            "read the times in the kernel log; then check cable and optic",
            "link failures an hour that are an error, instead of 3",
            sources=(
                reads.folder(f"{reads.IB}/ports/*/counters", absent_means=_NO_COUNTERS),
                reads.driver("statistics", absent_means=_NO_COUNTERS),
                reads.file(f"{reads.NET}/carrier_down_count", absent_means=_NO_COUNTERS),
                reads.file("/proc/uptime"),
            ),
        ),
        "link.errors": Check(
            "link",
            "the increase of the error counters of each rail's port since the last run",
            "`ports/N/counters`, `ethtool -S`",
            "check cable and optic; for packets damaged elsewhere, `ibqueryerrors`; for drops, PFC and ECN; clear a full counter",
            "errors an hour of one counter that are an error, instead of 100",
            sources=(
                reads.folder(f"{reads.IB}/ports/*/counters", absent_means=_NO_COUNTERS),
                reads.driver("statistics", absent_means=_NO_COUNTERS),
                reads.file("/proc/uptime"),
            ),
        ),
    }
)

STAGE = "link"
SECONDS_PER_HOUR = 3600
#: Errors of one counter in an hour. NVIDIA tests its cables to a bit error rate below 10^-15, which is about one error an hour at
#: 400 Gb/s; InfiniBand itself allows 10^-12, too many for jobs on many hosts. A hundred an hour is between the two.
ERRORS_PER_HOUR = 100.0
#: How often in an hour a link goes down. Once may be an admin at the cable or a booting switch; a good link does not go down three times.
FLAPS_PER_HOUR = 3.0
#: Smaller counts are not an error, however short the time was.
FEWEST_ERRORS = 10
FEWEST_FLAPS = 3


@dataclass(frozen=True)
class Kind:
    """Counters with the same meaning. can_fail: whether a high rate is an error; remedy: a template."""

    counters: frozenset[str]
    can_fail: bool
    remedy: str


FLAP_KINDS = (
    Kind(
        FLAPS, True,
        "1. On {host}, run `journalctl -k` to see when it happened: was the link set down, or did the switch boot? 2. If not, clean and "
        "reseat {cable} at both ends. 3. Run {look} there for the module's readings, then replace the cable.",
    ),
)  # fmt: skip
ERROR_KINDS = (
    Kind(CABLE_ERRORS, True, "Clean and reseat {cable} at both ends, then replace it ({look} shows the module's readings)."),
    Kind(
        REMOTE_ERRORS, True,
        "Run `ibqueryerrors` on a host of this fabric to find the link: packets were damaged before the switch of {cable}.",
    ),
    Kind(MODULE, False, "Check the cooling, then replace {cable} or its module ({look} shows its readings)."),
    Kind(PCIE, False, "Check `dmesg` on {host} for PCIe errors (AER), then reseat card {address} or move it to another slot."),
    Kind(
        CONGESTION, False,
        "This is congestion, not the cable. On RoCE, compare PFC and ECN of {host} and its switch port; on InfiniBand, find the slow "
        "receiver.",
    ),
    Kind(OVERSIZE, False, "Set the same MTU on all hosts and switch ports of rail {rail}: {host} receives frames larger than its own."),
)  # fmt: skip


def check_counters(
    host: str,
    rails: Sequence[Rail],
    facts: RunFacts,
    errors_per_hour: float | None = None,
    flaps_per_hour: float | None = None,
) -> list[Finding]:
    """Findings `link.flaps` and `link.errors` for each planned rail of one host.

    errors_per_hour, flaps_per_hour: error thresholds instead of ERRORS_PER_HOUR and FLAPS_PER_HOUR.
    """
    flaps = Limit(FLAPS_PER_HOUR if flaps_per_hour is None else flaps_per_hour, FEWEST_FLAPS)
    errors = Limit(ERRORS_PER_HOUR if errors_per_hour is None else errors_per_hour, FEWEST_ERRORS)
    return [finding for port in rail_ports(STAGE, host, rails, facts) for finding in _rail(port, facts.since, flaps, errors)]


@dataclass(frozen=True)
class Limit:
    """The rate and the count from which a counter is an error."""

    per_hour: float
    fewest: int

    @property
    def words(self) -> str:
        return f"none; {self.per_hour:g} an hour or more is an error"

    def passed(self, count: int, hours: float) -> bool:
        return count >= self.fewest and count / hours >= self.per_hour


def _rail(port: RailPort, since: Mapping[str, Any] | None, flaps: Limit, errors: Limit) -> Iterator[Finding]:
    yield _judge(port, "link.flaps", FLAP_KINDS, since, flaps)
    yield _judge(port, "link.errors", ERROR_KINDS, since, errors)


def _judge(port: RailPort, check: str, kinds: Sequence[Kind], since: Mapping[str, Any] | None, limit: Limit) -> Finding:
    names = frozenset().union(*(kind.counters for kind in kinds))
    unread = port.unread_by_driver("statistics")
    if unread and port.not_judged is None:
        remedy = f"On {port.host}, run `ethtool -S {port.rail.netdev}`, then check `dmesg` for the driver of {port.address}."
        return port.finding(check, UNKNOWN, f"the counters of {port.rail.netdev} could not be read: {unread}", limit.words, remedy)
    if port.infiniband and port.not_judged is None and not names & _of_port(port).keys():
        remedy = f"On {port.host}, run `perfquery -C {port.rail.device} -P {port.rail.port}`, then check `dmesg` for the driver."
        return port.finding(check, UNKNOWN, f"{port.name} has none of these counters, which every InfiniBand port has", limit.words, remedy)
    why_not = port.not_judged or _not_counted(port, names)
    if why_not is not None:
        return port.skip(check, why_not, limit.words)
    counters = (port.port.counters if port.port else None) or {}
    full = sorted(name for name in FULL.keys() & names if counters.get(name) == FULL[name])
    counts = _counts(port, since, names)
    if counts is None or since is None:
        why_not = "no earlier run of this boot to compare with" if since is None else f"not the same port as in run {since['run']}"
        return _full(port, check, full, limit, why_not) if full else port.skip(check, why_not, limit.words)
    hours = since["seconds"] / SECONDS_PER_HOUR
    time = f"in {hours:.3g} h since run {since['run']}"
    if not counts:
        return _full(port, check, full, limit, time) if full else port.finding(check, OK, f"none {time}", limit.words)
    seen = [kind for kind in kinds if kind.counters & counts.keys()]
    failed = any(kind.can_fail and any(limit.passed(counts[name], hours) for name in kind.counters & counts.keys()) for kind in seen)
    observed = ", ".join([f"{name} {count} ({_rate_words(count / hours)})" for name, count in counts.items()])
    remedies = [_words(port, kind.remedy) for kind in seen] + ([_clear(port)] if full else [])
    if failed:
        remedies.append("If this has been fixed since, run again: the next run counts from this one.")
    return port.finding(check, ERROR if failed else WARNING, f"{observed} {time}{_full_words(full)}", limit.words, " ".join(remedies))


def _rate_words(per_hour: float) -> str:
    return f"{per_hour:.0f} an hour" if per_hour >= 10 else f"{per_hour:.2g} an hour"


def _not_counted(port: RailPort, names: frozenset[str]) -> str | None:
    netdev, ethtool = port.netdev, port.ethtool
    of_interface = of_netdev(ethtool.counters if ethtool else {}, netdev.carrier_downs) if netdev else {}
    known = names & (_of_port(port).keys() | of_interface.keys())
    return None if known else f"{port.name} and its interface have none of these counters"


def _of_port(port: RailPort) -> dict[str, int]:
    return of_port(port.port.counters, port.port.hw_counters) if port.port else {}


def _counts(port: RailPort, since: Mapping[str, Any] | None, names: frozenset[str]) -> dict[str, int] | None:
    """The counters that have increased, the largest increase first; None if there is nothing to compare with."""
    device, number = port.rail.device or "", port.rail.port or ""
    of_device = (((since or {}).get("devices") or {}).get(device) or {}).get(number)
    of_interface = ((since or {}).get("netdevs") or {}).get(port.rail.netdev or "")
    if of_device is None and of_interface is None:
        return None
    risen = {**(of_interface or {}), **(of_device or {})}
    return {name: risen[name] for name in sorted(risen, key=lambda name: (-risen[name], name)) if name in names and risen[name] > 0}


def _full(port: RailPort, check: str, full: Sequence[str], limit: Limit, context: str) -> Finding:
    return port.finding(check, WARNING, f"{context}{_full_words(full)}", limit.words, _clear(port))


def _full_words(full: Sequence[str]) -> str:
    return f"; {', '.join(full)} is at its maximum and no longer counts" if full else ""


def _clear(port: RailPort) -> str:
    if port.infiniband:
        return (
            f"On {port.host}, clear the full counters so that they count again: `perfquery -C {port.rail.device} -P {port.rail.port} -R`."
        )
    return f"Reload the driver of {port.rail.device} or reboot {port.host}: this resets the full counters."


def _words(port: RailPort, template: str) -> str:
    return template.format(host=port.host, cable=port.cable, look=port.look, address=port.address, rail=port.rail.name)
