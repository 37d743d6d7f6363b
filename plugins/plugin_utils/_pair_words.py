# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A verdict in words: what was seen, what healthy ones reach, and what to check next."""

from __future__ import annotations

from collections import Counter
from statistics import median

from ansible_collections.rdma.cluster.plugins.plugin_utils._majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_verdict import Verdict

#: What to check of what is slow, in the order MTU, PFC, cable or optic, PCIe, NUMA, without what the evidence rules out.
SLOW = {
    "host": "No cable is common to its NICs: PCIe generation and lanes (pcie.link, pcie.path), then NUMA node, CPU governor and load",
    "nic": "MTU and PFC of its switch port, then cable or optic (ethtool -m), then the card's PCIe generation and lanes, NUMA node",
    "rail": "The switch of this rail: MTU first, then PFC and ECN, then the uplinks; its hosts are well on other rails",
    "sends": "PFC pause frames from its switch port, then the transmitting fibre or lane, then PCIe reads (MRRS, generation, lanes)",
    "receives": "PFC: discards of its switch port, then the receiving fibre or lane, then PCIe writes (payload size, ACS, IOMMU), NUMA",
    "pair": "MTU between these two, then the path that ECMP or routing chooses for them: a spine or an uplink",
    "path": "MTU and PFC of this element, then its cables and optics; the endpoints are not to blame",
}
#: What to check of what fails, by the kind of its failures.
FAILED = {
    "dead": "Whether the host is up, and its address on this rail answers (ping from a partner)",
    "refused": "Whether the pair runner ran there (journalctl -u 'rdma-pairs*'), and what a firewall lets pass",
    "token": "Whether two sweeps ran at once: the token of the other is not this one's",
    "plan": "Whether two sweeps ran at once: the plan of the other is not this one's",
    "timeout": "Address and route on this rail, then MTU (ping -M do), then PFC: nothing came through in time",
    "listen": "What holds perftest's port, and what its output says",
    "start": "Whether perftest is installed and starts there",
    "signal": "What killed perftest: dmesg (out of memory)",
    "no_device": "Whether the RDMA device of this rail is there: ibv_devices, and driver and link of it",
    "port_taken": "What holds perftest's TCP port: ss -ltnp",
    "qp": "GID index and type at both ends, and their route to one another",
    "mtu": "MTU at both ends and in every switch between",
    "retry_exceeded": "MTU (ping -M do), then PFC and drops in the switch, then cable or optic: packets are lost",
    "memory_registration": "Locked memory there: ulimit -l, LimitMEMLOCK",
    "gpu_memory": "GPUDirect there: nvidia-peermem or DMA-BUF, and perftest built with CUDA",
    "version": "perftest's version: make it the same everywhere, and 23.07 or newer where hosts meet by IPv6 addresses",
    "no_perftest": "Install perftest there",
    "clock": "Load of the host, three times, or a kernel that reads another clock than its CPU's counter: perftest could not tell how fast "
    "that counts. End what runs there; see whether /sys/devices/system/clocksource/clocksource0/current_clocksource is hpet instead of tsc",
    "zero": "Load of the host: it measured nothing in the time it had; measure again",
    "unknown": "perftest's own output in the run's folder (pairs/*.failures.jsonl)",
}


def describe(verdict: Verdict, matrix: Matrix) -> tuple[str, str, str]:
    """(observed, expected, remedy) of a finding."""
    figure, healthy = _figures(verdict, matrix)
    return f"{subject(verdict, matrix)}: {_share(verdict)} {figure}{_with(verdict, matrix)}", healthy, _remedy(verdict, matrix)


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
    """What was reached, and what should have been."""
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
    """The partners that the evidence names."""
    if verdict.host is None or verdict.kind == "pair":
        return ""
    ends = [host for at in verdict.evidence for host in (matrix.server[at], matrix.client[at]) if host != verdict.host]
    return f", with {some([matrix.hosts[host] for host in dict.fromkeys(ends)])}"


def _remedy(verdict: Verdict, matrix: Matrix) -> str:
    """By kind of failure; of what is slow by kind of verdict."""
    if not verdict.failed:
        return SLOW[verdict.direction or verdict.kind]
    kinds = Counter(matrix.failures[at] for at in verdict.evidence if at in matrix.failures)
    if not kinds:
        return FAILED["unknown"]
    failure = kinds.most_common(1)[0][0]
    words = FAILED.get(failure.kind, FAILED["unknown"])
    return f"{words}. It said: {failure.line}" if failure.line else words
