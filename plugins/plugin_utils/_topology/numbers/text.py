# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The printed texts of the numbers: training, uplink, cost, and the comparison of alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import Item, Row, items, section, table, text_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import CollectiveTime, Network, NoTime
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.compare import Alternative
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import CHANGE, Cost, Price
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.training import Step, Training
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.units import (
    GIGA,
    money_words,
    seconds_words,
    size_words,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.uplink import (
    CheckpointWrite,
    Lag,
    Load,
    Management,
    Transfer,
    Uplink,
)

NOT_GIVEN = "not given"
NOT_KNOWN = "-"


def training_text(found: Training) -> str:
    """Return the text of `--tags training`."""
    model, network = found.model, found.network
    size = f"{model.parameters / GIGA:g} × 10^9 parameters × {model.bytes_per_gradient:g} bytes = {size_words(model.gradient_bytes)}"
    compute = NOT_GIVEN if model.compute_seconds is None else seconds_words(model.compute_seconds)
    head = [
        Item("gradients", size),
        Item("network", network_words(network)),
        Item("compute time of a step", compute),
    ]
    if found.required_gbytes_per_s is not None:
        rate = network.nic_bytes_per_s / GIGA
        words = f"{found.required_gbytes_per_s:.3g} GB/s so that communication takes as long as the compute; it has {rate:.3g} GB/s"
        head.append(Item("needed rate of a NIC", words))
    parts = [
        section(f"Training {model.name}", items(head)),
        section("all_reduce of the gradients", *_algorithms(found)),
    ]
    if found.steps:
        words = f"Overlap: {model.overlap:g} of the compute time can hide communication."
        parts.append(section("A step", _steps(found), text_lines(words)))
    parts.append(section("Single messages (all_reduce: the faster of ring and tree; others: ring)", _messages(found.messages)))
    notes = (
        "These times are computed, not measured: real jobs are usually slower. The all_reduce is one operation over all hosts. k: NICs of "
        "a host, B: payload rate of a NIC, V: rate of NVLink, n: hosts, g: GPUs of a host, N: all GPUs, S: size, t: latency of a step."
    )
    return "\n\n".join([*parts, section("Notes", text_lines(notes))])


def network_words(network: Network) -> str:
    """Return a job's network in words."""
    words = f"{network.hosts} hosts × {network.gpus_per_host} GPUs, {network.nics_per_host} NICs of {network.nic_gbps:g} Gb/s"
    words += f", {network.efficiency:.0%} of it payload" if network.efficiency < 1 else ""
    words += f", {network.oversubscription:.3g}:1 oversubscribed" if network.oversubscription > 1 else ""
    nvlink = network.nvlink_gbytes_per_s
    return words + (f", NVLink {nvlink:g} GB/s" if nvlink is not None else f", NVLink {NOT_GIVEN}")


def _algorithms(found: Training) -> list[list[str]]:
    rows, lacking = [], []
    for name, time in found.times.items():
        if isinstance(time, NoTime):
            lacking += text_lines(f"{name}: not computed: {time.why}.")
        else:
            rows.append(
                Row((name, size_words(time.nic_bytes), seconds_words(time.seconds), seconds_words(time.latency_seconds), time.formula))
            )
    return [table(("algorithm", "sent by a NIC", "time", "of it latency", "formula"), rows, (12, 14, 10, 14)), lacking]


def _steps(found: Training) -> list[str]:
    rows = []
    for name, (without, overlapped) in found.steps.items():
        cells = (*_step_cells(without), *_step_cells(overlapped))
        rows.append(Row((name, *cells)))
    return table(("algorithm", "step", "waits", "computes", "step with overlap", "waits", "computes"), rows, (12, 10, 8, 8, 18, 8))


def _step_cells(step: Step) -> tuple[str, str, str]:
    return seconds_words(step.seconds), f"{step.share:.1%}", f"{step.utilization:.1%}"


def _messages(messages: Sequence[CollectiveTime | NoTime]) -> list[str]:
    known = [each for each in messages if isinstance(each, CollectiveTime)]
    rows = [
        Row(
            (
                f"{each.operation} ({each.algorithm})",
                size_words(each.size_bytes),
                seconds_words(each.seconds),
                f"{each.size_bytes / each.seconds / GIGA:.3g} GB/s",
            )
        )
        for each in known
        if each.seconds
    ]
    lacking = sorted({each.why for each in messages if isinstance(each, NoTime)})
    lines = table(("operation", "size", "time", "size / time"), rows, (24, 10, 10)) if rows else []
    return [*lines, *(line for why in lacking for line in text_lines(f"Not computed: {why}."))]


def uplink_text(found: Uplink, written: CheckpointWrite | None, moved: Sequence[Transfer], plane: Management, prices: str = "") -> str:
    """Return the text of `--tags uplink`. prices: a further section, "" for none."""
    demand = found.demand
    loads = [_load_item(load) for load in (*demand.sustained, demand.burst)]
    need = f"{demand.needed_gbps:.4g} Gb/s = max({demand.sustained_gbps:.4g} / {demand.headroom:g}, burst {demand.burst.gbps or 0:.4g})"
    parts = [
        section("Loads of the uplink", items([*loads, Item("needed", need)])),
        section("Links", _lags(found.lags, found.chosen), *(text_lines(words, marked=True) for words in found.warnings)),
    ]
    if moved:
        parts.append(section("Transfers at the full rate of one flow", _transfers(moved)))
    if written is not None:
        parts.append(section("Checkpoint", text_lines(checkpoint_words(written))))
    parts.append(section("Management plane", items(_management(plane)), *(text_lines(words, marked=True) for words in plane.warnings)))
    return "\n\n".join([*parts, *([prices] if prices else [])])


def checkpoint_words(written: CheckpointWrite) -> str:
    """Return the time of a checkpoint as a sentence."""
    words = f"{size_words(written.size_bytes)} take {seconds_words(written.seconds)} at {written.gbps:g} Gb/s, the rate of the {written.by}"
    return words + (f": {written.share:.1%} of the interval." if written.share is not None else ". The interval is not given.")


def _load_item(load: Load) -> Item:
    return Item(load.name, NOT_GIVEN if load.gbps is None else f"{load.gbps:.4g} Gb/s ({load.source})")


def _lags(lags: Iterable[Lag], chosen: Lag | None) -> list[str]:
    rows = []
    for lag in lags:
        links = f"{lag.links} × {lag.link_gbps:g} Gb/s"
        spare = str(lag.spare) if lag.spare else "none"
        note = "chosen: fewest links" if lag == chosen else lag.why_not
        rows.append(Row((links, f"{lag.total_gbps:g} Gb/s", f"{lag.link_gbps:g} Gb/s", spare, note)))
    return table(("links", "all flows", "one flow", "spare", "note"), rows, (18, 12, 12, 6))


def _transfers(moved: Sequence[Transfer]) -> list[str]:
    rates = list(dict.fromkeys(each.gbps for each in moved))
    by_name: dict[str, list[Transfer]] = {}
    for each in moved:
        by_name.setdefault(each.name, []).append(each)
    rows = [Row((name, size_words(of[0].size_bytes), *(seconds_words(each.seconds) for each in of))) for name, of in by_name.items()]
    return table(("what", "size", *(f"{rate:g} Gb/s" for rate in rates)), rows, (32, 10, *(12 for _rate in rates[:-1])))


def _management(plane: Management) -> list[Item]:
    found = [
        Item("ports", str(plane.ports)),
        Item("switches", f"{plane.switches} with {plane.switch_ports} ports, and {plane.uplinks} uplinks in all"),
    ]
    rate = NOT_GIVEN if plane.install_gbps is None else f"{plane.install_gbps:.3g} Gb/s while hosts are installed"
    return [*found, Item("installation", f"{rate}" if plane.install_gbps is not None else f"image {NOT_GIVEN}")]


def cost_text(cost: Cost) -> str:
    """Return the cost of a design: parts, sum, power, and how the sum changes with each price."""
    effect = {name: (low, high) for name, low, high in cost.sensitivity()}
    rows = []
    for part in cost.parts:
        amount = NOT_GIVEN if part.amount is None else money_words(part.amount, cost.currency)
        price = NOT_GIVEN if part.price is None else _price_words(part.price, cost.currency)
        span = " to ".join(money_words(each, cost.currency) for each in effect[part.name]) if part.name in effect else NOT_KNOWN
        rows.append(Row((part.name, str(part.count), amount, span, price)))
    header = ("part", "pieces", "amount", f"sum if its price changes by ± {CHANGE:.0%}", "price of one")
    return section("Cost by your prices (an estimate, not a quote)", table(header, rows, (20, 8, 12, 34)), items(_sums(cost)))


def total_words(cost: Cost) -> str:
    """Return the sum; if prices are missing, what is known and which are missing."""
    if cost.total is not None:
        return money_words(cost.total, cost.currency)
    missing = ", ".join(cost.missing)
    if len(cost.missing) == len(cost.parts):
        return f"{NOT_GIVEN} (no price of {missing})"
    return f"more than {money_words(cost.known, cost.currency)} (no price of {missing})"


def _sums(cost: Cost) -> list[Item]:
    watts = NOT_GIVEN if cost.watts is None else f"{cost.watts / 1000:.3g} kW"
    energy = (
        NOT_GIVEN
        if cost.energy_per_year is None or cost.kwh is None
        else (
            f"{money_words(cost.energy_per_year, cost.currency)} a year, without cooling (a kWh: {_price_words(cost.kwh, cost.currency)})"
        )
    )
    return [Item("sum", total_words(cost)), Item("power", watts), Item("energy", energy)]


def _price_words(price: Price, currency: str) -> str:
    return f"{money_words(price.amount, currency)} ({price.source}, {price.date or 'date ' + NOT_GIVEN})"


def comparison_text(rows: Sequence[Alternative], currency: str, gpu_day: float | None = None) -> str:
    """Return the table of the alternatives. gpu_day: what a day of all GPUs of the job costs, None if the price is not given."""
    header = ("family", "cost", "switches", "cables", "free ports", "bisection", "all_reduce", "one failed spine", "note")
    cells = [Row(_alternative(row, currency, gpu_day)) for row in rows]
    notes = [f"{row.family}: {row.why_not}" for row in rows if row.why_not]
    lines = table(header, cells, (14, 12, 8, 7, 14, 10, 10, 22))
    assumed = (
        "Cables at hosts are counted as copper. Those between switches are counted as active optical cables, or as fibers with two "
        "transceivers if only these have a price. Their lengths are not known here."
    )
    return section("Alternatives", lines, text_lines(assumed), *(text_lines(note) for note in notes))


def _alternative(row: Alternative, currency: str, gpu_day: float | None) -> tuple[str, ...]:
    def words(value: float | None, unit: str = "") -> str:
        return NOT_KNOWN if value is None else f"{value:,.4g}{unit}" if unit else f"{value:,.0f}"

    cost = NOT_KNOWN
    if row.cost is not None:
        cost = money_words(row.cost.total, currency) if row.cost.total is not None else NOT_GIVEN
    free = ", ".join(f"{tier} {count}" for tier, count in (row.free_ports or {}).items()) or NOT_KNOWN
    time = NOT_KNOWN if row.all_reduce_seconds is None else seconds_words(row.all_reduce_seconds)
    bisection = None if row.bisection_gbps is None else row.bisection_gbps / 1000
    return (
        row.family, cost, words(row.switches), words(row.cables), free, words(bisection, " Tb/s"), time,
        spine_words(row, currency, gpu_day), "chosen" if row.chosen else "",
    )  # fmt: skip


def spine_words(row: Alternative, currency: str, gpu_day: float | None) -> str:
    """Return what one failed spine costs: the time of the all_reduce, how much longer a step is, and its price a day."""
    if row.spine_seconds is None or row.all_reduce_seconds is None:
        return NOT_KNOWN
    words = f"{seconds_words(row.spine_seconds)} (+{row.spine_seconds / row.all_reduce_seconds - 1:.0%})"
    if row.spine_step_share is None:
        return words
    words += f", step +{row.spine_step_share:.1%}"
    if gpu_day is None:
        return words
    lost = gpu_day * row.spine_step_share / (1 + row.spine_step_share)
    return f"{words}, {money_words(lost, currency)} a day"
