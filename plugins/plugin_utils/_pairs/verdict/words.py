# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A verdict in words: what was seen, the level of healthy ones, and the next steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Failure, Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

#: The UDP port of RoCE v2 (IANA).
ROCE_PORT = 4791
MTU = "On {partner}: `ping -c 3 -M do -s SIZE {address}`. SIZE is the MTU of {rail} minus 28. Without a reply, fix the MTU on the path"
PCIE = "On {host}: `lspci -vv`; the NIC's `LnkSta` must have the speed and width of `LnkCap`"
FIREWALL_TCP = "On {host}: `nft list ruleset`. Allow inbound {tcp} from the hosts of {rail}"
FIREWALL_UDP = f"On {{host}} and {{partner}}: `nft list ruleset`. Allow inbound UDP port {ROCE_PORT} (RoCE v2) from the hosts of {{rail}}"
RUNNER_LOG = "On {host}: `journalctl -u 'rdma-pairs*'` shows whether the pair runner ran"
LISTENING = "On {host}: `ss -ltnp` shows which process uses {tcp}"
AGAIN = "Run the pairs stage again"
PING = (
    "On {partner}: `ping -c 3 -I {partner_address} {address}`. Without a reply, check power, cable and address of {host} on {rail}",
    "If ping gets a reply, a firewall drops TCP. " + FIREWALL_TCP,
)

#: The steps for slow NICs, by kind of verdict: the most likely cause first, without causes that the evidence excludes.
SLOW: dict[str, tuple[str, ...]] = {
    "host": (
        PCIE + ": no cable is common to all NICs of the host",
        "On {host}: `cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor`; it must be `performance`",
        "On {host}: `uptime`. Stop other work, then run the pairs stage again",
    ),
    "nic": (MTU + ". Compare PFC with that of the switch port", "On {host}: `ethtool -m INTERFACE`. Replace the optic or the cable", PCIE),
    "rail": (
        "On the switch of {rail}: compare the MTU of its ports with that of the NICs; the hosts are fast on other rails",
        "On the switch of {rail}: check PFC and ECN, then the uplinks",
    ),
    "sends": (
        "On {host}: `ethtool -S INTERFACE | grep -i pause`. Pause frames from the switch port slow down what the host sends",
        "On {host}: `ethtool -m INTERFACE`. Replace the optic or the cable whose transmit power is low",
        PCIE + ". Check MRRS too: sending reads the host's memory",
    ),
    "receives": (
        "On the switch port of {host}, {rail}: check PFC and discards",
        "On {host}: `ethtool -m INTERFACE`. Replace the optic or the cable whose receive power is low",
        PCIE + ". Check MaxPayload, ACS and the IOMMU too: receiving writes to the host's memory",
    ),
    "pair": (MTU, "Check the path that ECMP or routing chooses for these two: a spine or an uplink"),
    "path": ("On this element: check MTU and PFC, then its cables and optics; the endpoints are not to blame",),
}
#: The same for InfiniBand, which has no PFC: a port without credits waits (PortXmitWait), and a bad cable causes symbol errors.
ERRORS = "On {host}: `ibqueryerrors`. Reseat or replace the cable of {rail} if its ports count errors"
SLOW_INFINIBAND: dict[str, tuple[str, ...]] = {
    "host": SLOW["host"],
    "nic": (ERRORS, PCIE),
    "rail": (
        "On {host}: `iblinkinfo`. The links of the leaf switches of {rail} must have their full width and speed; the hosts are fast on "
        "other rails",
        "On {host}: `ibqueryerrors`. Replace the cables of {rail} whose ports count errors",
    ),
    "sends": (
        "On {host}: `ibqueryerrors --counters`. If `PortXmitWait` of its port rises, the fabric or the receivers hold back what it sends",
        ERRORS,
        PCIE + ". Check MRRS too: sending reads the host's memory",
    ),
    "receives": (
        "On {host}: `ibqueryerrors --counters`. If `PortXmitWait` of its switch port rises, {host} is too slow to take what it receives",
        ERRORS,
        PCIE + ". Check MaxPayload, ACS and the IOMMU too: receiving writes to the host's memory",
    ),
    "pair": (
        "On {host}: `ibtracert` from its LID to that of {partner}. Check the links on this path: a spine or an uplink",
        ERRORS,
    ),
    "path": (
        "On {host}: `ibqueryerrors` and `iblinkinfo`. Check the links of this element, then its cables; the endpoints are not to blame",
    ),
}
#: The steps for slow software devices, which are as fast as their CPU and their network interface.
SLOW_SOFTWARE = (
    "On {host}: `uptime`. Stop other work there: a software device is as fast as its CPU",
    "On {host}: `ip -s link`. Drops and errors on the interface of {rail} point to its cable or to a rate limit on the switch port",
    MTU,
)
#: The steps for failed measurements, by the kind of failure.
FAILED: dict[str, tuple[str, ...]] = {
    "dead": (*PING, RUNNER_LOG),
    "refused": (RUNNER_LOG, FIREWALL_TCP),
    "token": ("Two sweeps ran at once, or a host has the token of another one. " + AGAIN,),
    "plan": ("Two sweeps ran at once, or a host has the plan of another one. " + AGAIN,),
    "timeout": (MTU, "If ping gets a reply, a firewall may drop the data. " + FIREWALL_UDP, "Check PFC and discards on the path"),
    "listen": (LISTENING, "Read perftest's output in the run folder (`pairs/*.failures.jsonl`)"),
    "start": ("On {host}: `ib_write_bw --version`. Install perftest if it does not start",),
    "signal": ("On {host}: `dmesg | grep -i 'out of memory'` shows whether the kernel ended perftest",),
    "no_device": ("On {host}: `ibv_devices`. Check driver and link of the RDMA device of {rail}",),
    "port_down": ("On {host}: `rdma link`. The port of {rail} must be ACTIVE: check cable and switch port, and run the link stage",),
    "port_taken": (LISTENING,),
    "qp": ("On {host} and {partner}: `show_gids`, or `ibv_devinfo -v`. Compare GID index and type, and check the route between them",),
    "mtu": ("On {host} and {partner}: `ip link show`. The MTU must be the same at both ends and in every switch between",),
    "retry_exceeded": (
        MTU,
        "If ping gets a reply, a firewall may drop the data. " + FIREWALL_UDP,
        "On {host}: `ip -s link` and `ethtool -S INTERFACE`. Packets are lost: check drops, PFC, and the cable or optic of {rail}",
    ),
    "completion": (
        "On {host} and {partner}: `ib_write_bw --version`. Both need the same version, because the NIC rejected an operation of the test",
        "On {host} and {partner}: `dmesg | grep -iE 'mlx5|iommu|dmar'`. Look for errors of the NIC and of the IOMMU",
    ),
    "memory_registration": ("On {host}: `ulimit -l`. It must be `unlimited`, also for services (`LimitMEMLOCK`)",),
    "gpu_memory": ("On {host}: `lsmod | grep nvidia_peermem`, or check that the driver offers DMA-BUF. perftest must be built with CUDA",),
    "version": ("On all hosts: `ib_write_bw --version`. It must be the same, and 23.07 or newer where hosts are reached by IPv6",),
    "no_perftest": ("On {host}: install perftest",),
    "clock": (
        "On {host}: `cat /sys/devices/system/clocksource/clocksource0/current_clocksource`. It must be `tsc`: perftest could not calibrate "
        "its clock (3 attempts)",
        "Stop other work on {host}, then run the pairs stage again",
    ),
    "zero": ("On {host}: `uptime`. Stop other work: perftest measured nothing within its duration. " + AGAIN,),
    "unknown": ("Read perftest's output in the run folder (`pairs/*.failures.jsonl`)",),
}
ACTIVE = "`ibstat`. The port of {rail} must be `Active` and `LinkUp`, and have a LID"
TRACE = "On {host}: `ibtracert` from its LID to that of {partner}. Check the links on this path"
P_KEYS = (
    "On {host} and {partner}: compare the P_Keys in `/sys/class/infiniband/*/ports/*/pkeys`. Both need the same one, at least one of them "
    "as a full member"
)
#: The steps on InfiniBand for the failures whose steps above are those of RoCE.
FAILED_INFINIBAND: dict[str, tuple[str, ...]] = {
    "dead": ("On {host}: " + ACTIVE, FIREWALL_TCP, RUNNER_LOG),
    "timeout": ("On {host} and {partner}: " + ACTIVE, ERRORS, TRACE),
    "qp": ("On {host} and {partner}: " + ACTIVE, P_KEYS),
    "mtu": ("On {host} and {partner}: `ibv_devinfo`. `active_mtu` must be the same at both ends",),
    "retry_exceeded": (ERRORS, TRACE, P_KEYS),
}
#: Failures for which a firewall is the most likely cause if the address answers ping.
BLOCKED = {"dead": FIREWALL_TCP, "refused": FIREWALL_TCP, "timeout": FIREWALL_UDP, "retry_exceeded": FIREWALL_UDP}


@dataclass(frozen=True)
class Places:
    """The places where hosts are reached. addresses: (rail, host) → address. ports: rail → TCP ports of the pair runner and of perftest.

    infiniband: rails without UDP. answers: (rail, host) whose address answered ping although a measurement with it had just failed.
    elsewhere: hosts with an address that answered ARP on another rail than its own.
    """

    addresses: Mapping[tuple[str, str], str]
    ports: Mapping[str, tuple[int, int]]
    infiniband: frozenset[str] = frozenset()
    answers: frozenset[tuple[str, str]] = frozenset()
    elsewhere: frozenset[str] = frozenset()

    @classmethod
    def of(cls, plan: Mapping[str, Any], answers: Iterable[tuple[str, str]] = (), elsewhere: Iterable[str] = ()) -> Places:
        addresses, ports, infiniband = {}, {}, set()
        for number, rail in enumerate(plan["rails"]):
            ports[rail["name"]] = int(plan["rendezvous_port"]) + number, int(plan["perftest_port"]) + number
            there = [each for each in zip(plan["hosts"], rail["addresses"], rail["profiles"], strict=True) if each[1] is not None]
            addresses.update({(rail["name"], host): address for host, address, _profile in there})
            if all(plan["profiles"][profile].get("gid_index") is None for _host, _address, profile in there):
                infiniband.add(rail["name"])
        return cls(addresses, ports, frozenset(infiniband), frozenset(answers), frozenset(elsewhere))


NOWHERE = Places({}, {})


def steps(*texts: str) -> str:
    """Return numbered steps, at most three."""
    return " ".join(f"{number}. {text}." for number, text in enumerate(texts[:3], 1))


def failure_remedy(kind: str, line: str, *, host: str, rail: str, partner: str = "a partner", infiniband: bool = False) -> str:
    """Return the steps for a kind of failure on a host, with the line of output that it left."""
    address, other = f"ADDRESS_OF_{host}", f"ADDRESS_OF_{partner}"
    tcp = "the TCP ports of the pair runner (from 18600) and of perftest (from 18515)"
    names = {"host": host, "rail": rail, "partner": partner, "address": address, "partner_address": other, "tcp": tcp}
    return _quoting(steps(*(text.format(**names) for text in failed_steps(kind, infiniband=infiniband))), line)


def failed_steps(kind: str, *, infiniband: bool = False) -> Sequence[str]:
    """Return the steps for a kind of failure, on a rail of RoCE or of InfiniBand."""
    texts = FAILED.get(kind, FAILED["unknown"])
    return FAILED_INFINIBAND.get(kind, texts) if infiniband else texts


def _quoting(words: str, line: str) -> str:
    return f'{words} Output: "{line}"' if line else words


def describe(verdict: Verdict, matrix: Matrix, places: Places | None = None, *, software: bool = False) -> tuple[str, str, str]:
    """Return (observed, expected, remedy) of a finding."""
    figure, healthy = _figures(verdict, matrix)
    observed = f"{subject(verdict, matrix)}: {_share(verdict)} {figure}{_with(verdict, matrix)}"
    return observed, healthy, _remedy(verdict, matrix, places or NOWHERE, software)


def subject(verdict: Verdict, matrix: Matrix) -> str:
    """ "node2, rail0", "node2, rail0, sends", "node1 with node3, rail1", "rail1", "leaf7"."""
    hosts = [matrix.hosts[host] for host in (verdict.host, verdict.other) if host is not None]
    rail = [matrix.rails[verdict.rail]] if verdict.rail is not None else []
    if verdict.kind == "direction" and not rail:
        rail = ["all rails"]
    parts = [*([" with ".join(hosts)] if hosts else []), *rail, verdict.direction or "", verdict.element or ""]
    return ", ".join(part for part in parts if part)


def _share(verdict: Verdict) -> str:
    if verdict.kind in ("rail", "path"):
        return f"{verdict.explained} of {verdict.measured} measurements"
    if verdict.kind == "pair":
        return "its only measurement" if verdict.explained == 1 else f"{verdict.explained} measurements"
    return f"{verdict.partners} of {verdict.measured} partners"


def _figures(verdict: Verdict, matrix: Matrix) -> tuple[str, str]:
    """Return the reached and the expected figure."""
    values = [matrix.value[at] for at in verdict.evidence if matrix.value[at] > 0]
    unit = "µs" if matrix.is_latency else "Gb/s"
    if verdict.failed or not values or not verdict.ratio:
        return _failed(verdict, matrix, bool(values)), "a measurement that succeeds, as others do"
    reached = median(values)
    healthy = reached * verdict.ratio if matrix.is_latency else reached / verdict.ratio
    return f"at {reached:.3g} of {healthy:.3g} {unit}", f"about {healthy:.3g} {unit}, as healthy pairs reach in this sweep"


def _failed(verdict: Verdict, matrix: Matrix, some_slow: bool) -> str:
    """ "failed (dead, timeout)", "failed or are slow (dead)"."""
    kinds = Counter(matrix.failures[at].kind for at in verdict.evidence if at in matrix.failures)
    words = ", ".join(kind for kind, _number in kinds.most_common(2))
    return f"failed{' or are slow' if some_slow else ''}{f' ({words})' if words else ''}"


def _with(verdict: Verdict, matrix: Matrix) -> str:
    """Return the partners in the evidence."""
    if verdict.host is None or verdict.kind == "pair":
        return ""
    ends = [host for at in verdict.evidence for host in (matrix.server[at], matrix.client[at]) if host != verdict.host]
    return f", with {some([matrix.hosts[host] for host in dict.fromkeys(ends)])}"


def _remedy(verdict: Verdict, matrix: Matrix, places: Places, software: bool) -> str:
    """Return steps by kind of failure; for slow parts by kind of verdict. The failure's line of output is quoted."""
    names = _names(verdict, matrix, places)
    if not verdict.failed:
        return steps(*(text.format(**names) for text in _slow_steps(verdict, names["rail"], places, software)))
    failure = _failure(verdict, matrix) or Failure("unknown")
    texts = [*_failed_steps(failure.kind, names, places)]
    rails = list(dict.fromkeys(matrix.rails[matrix.rail[at]] for at in verdict.evidence))
    if verdict.kind == "host" and len(rails) > 1 and failure.kind == "dead" and names["host"] in places.elsewhere:
        texts[2:] = [f"The cables of {' and '.join(rails)} of {names['host']} may be swapped: compare them with the plan"]
    if software:
        texts = [text.replace(", PFC, and the cable or optic", " and the cable") for text in texts]
        texts = [text for text in texts if "PFC" not in text]
    return _quoting(steps(*(text.format(**names) for text in texts)), failure.line)


def _slow_steps(verdict: Verdict, rail: str, places: Places, software: bool) -> Sequence[str]:
    """Return the steps for slow parts. Software devices have no PCIe, PFC and governor steps: they are as fast as CPU and interface."""
    if not software or verdict.kind == "path":
        return (SLOW_INFINIBAND if rail in places.infiniband else SLOW)[verdict.direction or verdict.kind]
    return SLOW["rail"][:1] if verdict.kind == "rail" else SLOW_SOFTWARE


def _failed_steps(kind: str, names: Mapping[str, str], places: Places) -> Sequence[str]:
    """Return the steps for a kind of failure. On RoCE, a firewall comes first if the address answers ping."""
    infiniband = names["rail"] in places.infiniband
    texts = failed_steps(kind, infiniband=infiniband)
    if not infiniband and kind in BLOCKED and (names["rail"], names["host"]) in places.answers:
        rest = (text for text in texts if BLOCKED[kind] not in text and text not in PING)
        texts = ("The address answers ping, so a firewall is likely. " + BLOCKED[kind], *rest)
    return texts


def _failure(verdict: Verdict, matrix: Matrix) -> Failure | None:
    """Return the most common failure in a verdict's evidence."""
    kinds = Counter(matrix.failures[at] for at in verdict.evidence if at in matrix.failures)
    return kinds.most_common(1)[0][0] if kinds else None


def _names(verdict: Verdict, matrix: Matrix, places: Places) -> dict[str, str]:
    """Return the names in the steps: a host, one of its partners, their addresses, and the ports of a rail."""
    at = next((at for at in verdict.evidence if not matrix.value[at] > 0), verdict.evidence[0]) if verdict.evidence else None
    number = verdict.rail if at is None else matrix.rail[at]
    rail = "the rail" if number is None else matrix.rails[number]
    ends = [] if at is None else [matrix.hosts[matrix.server[at]], matrix.hosts[matrix.client[at]]]
    host = matrix.hosts[verdict.host] if verdict.host is not None else (ends or ["each host"])[0]
    partner = next((end for end in ends if end != host), "a partner")
    address, other = (places.addresses.get((rail, end), f"ADDRESS_OF_{end}") for end in (host, partner))
    tcp = "TCP ports {} (pair runner) and {} (perftest)".format(*places.ports.get(rail, (18600, 18515)))
    return {"host": host, "partner": partner, "rail": rail, "address": address, "partner_address": other, "tcp": tcp}
