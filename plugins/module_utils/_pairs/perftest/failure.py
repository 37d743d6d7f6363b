# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a perftest run has no result: the kind of failure, and the line of output that shows it.

The texts are those of perftest 4.5 (6.06) to 6.29: perftest_resources.c, perftest_communication.c, perftest_parameters.c,
cuda_memory.c, rocm_memory.c and the tests' own main files; also those of getopt, the shell and the dynamic linker.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import words_of_json
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import (
    BandwidthResult,
    BandwidthRow,
    bandwidth_result,
    bandwidth_row,
    parse_bandwidth,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.latency import (
    LatencyResult,
    LatencyRow,
    latency_result,
    latency_row,
    parse_latency,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.table import NUMBER, is_header

_RATES = ("BW_peak", "BW_average", "MsgRate")
_LATENCIES = {
    "t_min": "min_usec",
    "t_max": "max_usec",
    "t_typical": "typical_usec",
    "t_avg": "average_usec",
    "t_stdev": "stdev_usec",
    "percentile_99": "percentile_99_usec",
    "percentile_99.9": "percentile_99_9_usec",
    "tps_average": "transactions_per_second",
}


def parse_json(text: str, *, report_gbits: bool) -> BandwidthResult | LatencyResult:
    """Parse one --out_json file; with -a it holds the largest size alone.

    The file names no unit: report_gbits is whether --report_gbits was given. Raises ParseError.
    """
    results = _results(text)
    quoted = json.dumps(results)
    if "BW_average" in results:
        unit = "Gb/sec" if report_gbits else "MiB/sec"
        peak, average, message_rate = (_number(results, name) for name in _RATES)
        return bandwidth_result([bandwidth_row(_integers(results), (peak, average, message_rate), unit, quoted)], unit)
    if "t_avg" not in results and "t_typical" not in results:
        raise ParseError(f"neither a bandwidth nor a latency in perftest's JSON: {quoted}")
    values = {field: _number(results, name) for name, field in _LATENCIES.items() if name in results}
    return latency_result([latency_row(_integers(results), values, quoted)])


def _results(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(words_of_json(text))
    except (ValueError, RecursionError) as exc:
        number = getattr(exc, "lineno", 1)
        line = [*text.split("\n"), ""][number - 1].strip()
        raise ParseError(
            f"perftest before version 6.20 (release 24.01) writes no valid JSON, or it was cut off, at line {number}: {line!r}"
        ) from exc
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, dict):
        raise ParseError(f"no results in perftest's JSON: {text.strip()!r}")
    return results


def _number(results: Mapping[str, Any], name: str) -> float:
    value = results.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ParseError(f"{name} is {value!r} in perftest's JSON: {json.dumps(results)}")
    try:
        return float(value)
    except OverflowError as exc:
        raise ParseError(f"{name} is beyond all measure in perftest's JSON") from exc


def _integers(results: Mapping[str, Any]) -> tuple[int, int]:
    size_bytes, iterations = results.get("MsgSize"), results.get("n_iterations")
    if isinstance(size_bytes, int) and isinstance(iterations, int) and not {type(size_bytes), type(iterations)} & {bool}:
        return size_bytes, iterations
    raise ParseError(f"MsgSize is {size_bytes!r} and n_iterations {iterations!r} in perftest's JSON")


TIMEOUT_EXIT_CODE = 124
"""The exit code of coreutils' timeout after it ended its command."""
NOT_FOUND_EXIT_CODE = 127


@dataclass(frozen=True)
class Failure:
    """Why a perftest run has no result, and the line of its output that shows it ("" if no line does).

    kind: no_device, port_down, refused, port_taken, qp, mtu, retry_exceeded, completion (the NIC reports another status than exceeded
    retries), memory_registration, gpu_memory, version (the two ends
    have versions or options that do not match), no_perftest (it is not installed, or cannot be loaded), timeout, signal
    (something other than the caller killed it; SIGKILL: most likely for lack of memory), clock (it could not measure how fast
    its CPU counts, so it has no rate), zero (it ended well and measured nothing) or unknown.
    """

    kind: str
    line: str


#: get_clock.c: it fits the CPU's counter to the clock, and gives up if the fit is poor; every rate is zero then.
_LOST_CLOCK = re.compile(r"^Correlation coefficient r\^2: .*", re.MULTILINE)
_MR_REFUSED = ("Couldn't allocate MR", "failed to create mr", "Failed to create mr", "Failed to create MR")
_SIGNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("retry_exceeded", ("Failed status",), r"Failed status(?: 12\b|-.{0,99}\(12\))"),
    ("port_down", ("Port number ",), r"Port number \d+ state is "),
    ("no_device", ("IB device ",), r"IB device .{1,99} not found"),
    ("no_device", ("Unable to find the Infiniband/RoCE device", "No IB devices found"), ""),
    ("no_device", ("Did not detect devices", "Couldn't get context for the device"), ""),
    ("port_taken", ("Couldn't listen to port",), ""),
    ("refused", ("Couldn't connect to ", "Unable to init the socket connection", "Unable to connect (retries"), ""),
    ("refused", ("Unable to open file descriptor for socket connection",), ""),
    ("version", ("not compatible with versions older than", " mismatch: local=", "Failed to negotiate parameters"), ""),
    ("version", ("unrecognized option '--ipv6-addr'",), ""),
    ("gpu_memory", ("unrecognized option '--use_cuda", "unrecognized option '--use_rocm", "CUDA DMA-BUF cannot be used without CUDA"), ""),
    ("gpu_memory", ("cu",), r"\bcu[A-Z]\w*(?:\(\d*\))? (?:error=|returned |failed )"),
    ("gpu_memory", ("hip",), r"\bhip[A-Z]\w*(?:\(\))? (?:error=|returned )"),
    ("gpu_memory", ("no available device(s) that support CUDA",), ""),
    ("gpu_memory", ("No such device ID",), r"No such device ID \(-?\d+\) exists in system"),
    ("gpu_memory", ("DMA-BUF is not supported on this GPU", "OFED stack does not support DMA-BUF"), ""),
    ("gpu_memory", ("DMABUF requested but not supported in this build", "MAPPING_TYPE_PCIE", "CUDA PCIe mapping requires DMA-BUF"), ""),
    ("gpu_memory", ("Failed to ",), r"Failed to (?:load|resolve) (?:required )?(?:CUDA|cuGetProcAddress)"),
    ("gpu_memory", ("load_cuda_function: Failed", "Perftest supports CUDA only in BW", "doesn't support device memory latency test"), ""),
    ("gpu_memory", ("Couldn't init GPU context", "Couldn't initialize ROCm device", "Requested ROCm device"), ""),
    ("memory_registration", _MR_REFUSED, ""),
    ("qp", ("Couldn't create rdma new QP", "Couldn't create rdma old QP"), ""),
    ("qp", ("Failed to modify QP", "nable to create QP", "Failed to create QP"), ""),
    ("qp", ("Unable to Connect the HCA's through the link", "Requested QP size might be too big"), ""),
    ("memory_registration", ("Cannot allocate memory", " Cannot Allocate\n"), ""),
    ("memory_registration", ("Failed to allocate ",), r"Failed to allocate \d+ bytes"),
    ("no_perftest", ("No such file",), r"(?:\[Errno 2\]|\bib_\w+\W{0,2}:) No such file or directory"),
    ("no_perftest", (" not found",), r"\bib_\w+: (?:command )?not found"),
    ("no_perftest", ("error while loading shared libraries",), ""),
    ("timeout", ("Did not get Message for ",), ""),
    ("mtu", ("Couldn't set Eth MTU",), ""),
    ("completion", ("Failed status",), r"Failed status(?: \d+\b|-.{0,99}\(\d+\))"),
)
"""Kind, a substring of the text, and a pattern if the substring is not enough. The more specific ones come first."""
_CHANGED_MTU = re.compile(r"Invalid MTU - |Requested mtu is higher than active mtu")
"""The run continues with the port's MTU after these, so they explain only a run that failed by itself."""
_NOISE = re.compile(r"^\s*(?:$|-----|\*\*\*|WARNING|Conflicting CPU frequency)")
_GPU_BUFFERS = ("GPU buffer", "Picking GPU number", "initializing CUDA", "creating CUDA Ctx", "Using ROCm Device")
_GPU_WITNESS = re.compile(r"Couldn't allocate MR|Failed status(?: 4\b|-.{0,99}\(4\))")
"""How a registration or a local protection error points to a GPU's memory, if the buffers are there."""


def parse_result(text: str, *, report_gbits: bool) -> BandwidthResult | LatencyResult:
    """Parse the output of one of the six tests, or its --out_json file.

    report_gbits is whether --report_gbits was given; only JSON needs it, because JSON names no unit. Raises ParseError.
    """
    if text.lstrip().startswith("{"):
        return parse_json(text, report_gbits=report_gbits)
    header = next((line for line in text.splitlines() if is_header(line)), "")
    return parse_latency(text) if "[usec]" in header else parse_bandwidth(text)


def values_of(result: BandwidthResult | LatencyResult) -> list[float]:
    """Return the value to compare of each row: the average in 10^9 bit/s, or the typical latency in µs; the last is the result's."""
    return [_value(row) for row in result.rows]


def _value(row: BandwidthRow | LatencyRow) -> float:
    return row.average_gbps if isinstance(row, BandwidthRow) else row.usec


def find_sign(stdout: str, stderr: str, *, argv: Sequence[str] = ()) -> Failure | None:
    """Return the failure that an output names, None if it names none: the earliest sign of the most specific kind.

    If the buffers are in a GPU, according to argv or the output, a refused registration is the GPU's.
    """
    text = f"{stderr}\n{stdout}\n"
    found = _first_sign(text)
    if found is not None and found.kind not in ("memory_registration", "completion"):
        return found
    on_gpu = any(word.startswith(("--use_cuda", "--use_rocm")) for word in argv) or any(sign in stdout for sign in _GPU_BUFFERS)
    witness = _GPU_WITNESS.search(text) if on_gpu else None
    return Failure("gpu_memory", _line_at(text, witness.start())) if witness else found


def _first_sign(text: str) -> Failure | None:
    """Return the failure of the most specific sign in a text, with the first line that shows it."""
    for kind, needles, pattern in _SIGNS:
        places = [place for place in map(text.find, needles) if place >= 0]
        if places and pattern:
            match = re.search(pattern, text)
            places = [match.start()] if match else []
        if places:
            return Failure(kind, _line_at(text, min(places)))
    return None


def classify_failure(
    stdout: str, stderr: str, exit_code: int | None, *, argv: Sequence[str] = (), stopped_by_caller: bool = True
) -> Failure:
    """Return why a test has no result.

    exit_code is None if the test was never started or not waited for, negative if a signal ended it. The signal is the
    caller's own, after its deadline, unless stopped_by_caller is false. The decisive line is the earliest sign of the most
    specific kind; for an unknown failure, the first line of stderr; for a timeout without a sign, the last output.
    """
    if exit_code == 0:
        return _unmeasured(stdout, stderr) or Failure("unknown", "")
    sign = find_sign(stdout, stderr, argv=argv)
    if sign is not None:
        return sign
    complaints = [line.strip() for line in stderr.splitlines() if not _NOISE.match(line)]
    relevant = [*complaints, *(line.strip() for line in stdout.splitlines() if not _NOISE.match(line))]
    if exit_code is not None and exit_code < 0 and not stopped_by_caller:
        return Failure("signal", _ended_by(-exit_code))
    if exit_code is None or exit_code < 0 or exit_code == TIMEOUT_EXIT_CODE:
        return Failure("timeout", relevant[-1] if relevant else "")
    changed = next((line for line in relevant if _CHANGED_MTU.search(line)), None)
    if changed is not None:
        return Failure("mtu", changed)
    kind = "no_perftest" if exit_code == NOT_FOUND_EXIT_CODE else "unknown"
    return Failure(kind, complaints[0] if complaints else (relevant[-1] if relevant else ""))


def _ended_by(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "no signal's number"
    cause = "; most likely the kernel, for want of memory" if number == signal.SIGKILL else ""
    return f"perftest was ended by signal {number} ({name}) from elsewhere{cause}"


def _line_at(text: str, place: int) -> str:
    """Return the line that contains a position; the text ends with a newline."""
    return text[text.rfind("\n", 0, place) + 1 : text.find("\n", place)].strip()


def _unmeasured(stdout: str, stderr: str) -> Failure | None:
    failure, lost = _no_value(stdout), _LOST_CLOCK.search(stderr)
    return failure if failure is None or lost is None else Failure("clock", lost.group().strip())


def _no_value(stdout: str) -> Failure | None:
    try:
        result = parse_result(stdout, report_gbits=True)
    except ParseError as exc:
        return Failure("unknown", str(exc))
    for position, value in enumerate(values_of(result)):
        if value == 0:
            return Failure("zero", _row_line(stdout, position))
    return None


def _row_line(stdout: str, position: int) -> str:
    """Return a row of the table as printed; for JSON, its results on one line."""
    if stdout.lstrip().startswith("{"):
        return " ".join(stdout[stdout.find('"results"') :].split())
    lines = stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if is_header(line))
    rows = [line.strip() for line in lines[start + 1 :] if NUMBER.match(line.strip())]
    return rows[position] if position < len(rows) else ""
