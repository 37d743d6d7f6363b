# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units of the plan's numbers: sizes in bytes, times in seconds, rates in 10^9 bit/s.

1 MB is 10^6 bytes and 1 MiB is 2^20 bytes.
"""

from __future__ import annotations

import math

BITS_PER_BYTE = 8
GIGA = 10**9
_UNITS = {f"{letter}B": 10 ** (3 * (step + 1)) for step, letter in enumerate("kMGTP")}


def size_words(size_bytes: float) -> str:
    """Return a size in units of 10^3: "14 GB", "1.97 GB", "512 B"."""
    for unit in ("PB", "TB", "GB", "MB", "kB"):
        if size_bytes >= 0.9995 * _UNITS[unit]:
            return f"{_digits(size_bytes / _UNITS[unit])} {unit}"
    return f"{_digits(size_bytes)} B"


def seconds_words(seconds: float) -> str:
    """Return a time in its nearest unit: "12.5 µs", "89.6 s", "4.2 min", "3.1 h"."""
    for limit, scale, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if seconds < 0.9995 * limit:
            return f"{_digits(seconds * scale)} {unit}"
    return f"{_digits(seconds / 3600)} h"


def money_words(amount: float, currency: str) -> str:
    """Return an amount with its currency: "$15.4 M", "EUR 80,000", "$1.25". Amounts from 10^6 are in M, from 10^9 in G."""
    sign = "-" if amount < 0 else ""
    before = currency if len(currency) == 1 else f"{currency} "
    value = abs(amount)
    if value >= 999_500:
        scale, unit = (1e9, "G") if value >= 999.5e6 else (1e6, "M")
        return f"{sign}{before}{_digits(value / scale)} {unit}"
    return f"{sign}{before}{value:,.0f}" if value >= 100 else f"{sign}{before}{value:.2f}"


def transfer_seconds(size_bytes: float, gbps: float, efficiency: float = 1.0) -> float:
    """Return the time of a transfer in seconds: T = S × 8 / (rate × efficiency).

    size_bytes: S in bytes; gbps: the rate in 10^9 bit/s; efficiency: the part of the rate that carries payload, above 0 and at most 1.
    Example: 280 GB at 25 Gb/s take 89.6 s. Raises ValueError if a rate or an efficiency is not possible.
    """
    if not (gbps > 0 and math.isfinite(gbps) and 0 < efficiency <= 1):
        raise ValueError(f"a rate above 0 Gb/s and an efficiency above 0 and at most 1 are needed; got {gbps} and {efficiency}")
    return size_bytes * BITS_PER_BYTE / (gbps * GIGA * efficiency)


def _digits(value: float) -> str:
    """Return three significant digits, without an exponent."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.3g}"
