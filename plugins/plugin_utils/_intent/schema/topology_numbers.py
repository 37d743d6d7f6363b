# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of rdma_plan for the numbers of a plan: uplink, training, prices, and what an hour of a GPU costs."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    DATE,
    NAME,
    Form,
    Key,
    choice,
    flag,
    integer,
    keys,
    named,
    number,
    optional,
    text,
)

_UNITS: dict[str, int] = {"B": 1, **{f"{letter}B": 10 ** (3 * (step + 1)) for step, letter in enumerate("kMGTP")}}
_UNITS.update({f"{letter}iB": 2 ** (10 * (step + 1)) for step, letter in enumerate("KMGTP")})
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([A-Za-z]{1,3})?\s*", re.ASCII)


def parse_size(value: Any) -> int:
    """Return a size in bytes: "1 GB" is 10^9, "256 MiB" is 268435456, and 4096 is 4096. Raises ValueError."""
    match = _SIZE.fullmatch(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    if match is None:
        raise ValueError("not a size")
    unit = match[2] or "B"
    if unit not in _UNITS:
        raise ValueError(f"not a unit: {unit}")
    size = round(float(match[1]) * _UNITS[unit])
    if size < 1:
        raise ValueError("not a size above zero")
    return size


def _normal_size(value: Any) -> str:
    parse_size(value)
    return str(value).strip()


SIZE = Form("a size with its unit (1 GB is 10^9 bytes, 256 MiB is 2^28 bytes); units: B, kB, MB, GB, TB, PB, KiB to PiB", _normal_size)
#: Kinds of work with usual loads.
WORKLOADS = ("text", "images", "tuning", "inference")
#: The largest rate of a link or of a load, in Gb/s.
FASTEST_GBPS = 100_000

MANAGEMENT = keys(
    "The management plane, which works without the compute fabric.",
    ports_per_host=integer("Ports of a host: one of the system and one of the BMC.", 1, 8, default=2),
    port_gbps=number("Rate of a host's port.", 0.1, FASTEST_GBPS, default=1),
    switch_ports=integer("Ports of a management switch, uplinks included.", 4, 128, default=48),
    switch_uplinks=integer("Uplinks of a management switch.", 1, 16, default=2),
    install_image=text("Size of the image or packages that an installation sends to a host.", SIZE),
    install_hosts=integer("Hosts that are installed at the same time.", 1, 4096, default=16),
    install_minutes=number("Time in which the image must arrive at these hosts.", 0.1, 1440, default=10),
)
UPLINK = optional(
    keys(
        "The links of the cluster to storage and to other networks. All rates in 10^9 bit/s.",
        workload=choice(
            "Take the usual loads of a kind of work for those that are not given: the upper ends of published ranges for 4 hosts.",
            None,
            *WORKLOADS,
        ),
        ingest_gbps=number("Sustained rate at which the cluster reads training data.", 0, FASTEST_GBPS),
        ingest_gbytes_per_s_per_gpu=number("The same for one GPU, in 10^9 bytes per second.", 0, 1000),
        checkpoint_gbps=number("Sustained rate for checkpoints.", 0, FASTEST_GBPS),
        checkpoint_seconds=number(
            "Time in which a checkpoint must be written; with `parameters_billions` it gives the rate for checkpoints.", 0.1, 86400
        ),
        checkpoint_interval_minutes=number("Time between two checkpoints.", 0.1, 100_000),
        checkpoint_bytes_per_parameter=number(
            "Bytes of a parameter in a checkpoint. 14: weights in BF16 (2), and 32-bit weights, momentum and variance of Adam (12).",
            1,
            64,
            default=14,
        ),
        parameters_billions=number("Parameters of the model in 10^9, for the sizes of weights and checkpoints.", 0.001, 100_000),
        inference_gbps=number("Sustained rate of requests and answers.", 0, FASTEST_GBPS),
        burst_gbps=number("Largest rate for a short time.", 0, FASTEST_GBPS),
        storage_gbps=number("Rate at which the storage writes.", 0.1, FASTEST_GBPS),
        flow_gbps=number("Largest rate that one flow (one connection) needs.", 0.1, FASTEST_GBPS),
        flows=integer("Number of equal flows that read at the same time.", 1, 100_000),
        headroom=number("Part of the links that sustained loads may use.", 0.1, 1, default=0.8),
        link_gbps=Key(
            (list,), "Rates of links to choose from; default: 10, 25, 100, 200 and 400.", each=number("A rate.", 0.1, FASTEST_GBPS)
        ),
        max_links=integer("Most links of a LAG.", 1, 64, default=8),
        spare_links=integer("Links that may fail.", 0, 8, default=0),
        files=named("Further transfers: name → size.", NAME, text("Its size.", SIZE)),
        management=MANAGEMENT,
    )
)
TRAINING = optional(
    keys(
        "A model that is trained with data parallelism. Without `compute_seconds` only times are shown.",
        model=text("Name of the model, for the tables."),
        parameters_billions=number("Parameters of the model in 10^9.", 0.001, 100_000, required=True),
        bytes_per_gradient=number("Bytes of a gradient that are sent: 2 for BF16, 4 for FP32.", 0.5, 8, default=2),
        compute_seconds=number("Time of a step without communication, in seconds.", 0.0001, 100_000),
        overlap=number("Part of the compute time in which gradients are sent. The backward pass is about 0.67 of it.", 0, 1, default=0.67),
        hosts=integer("Hosts of a job; default: all.", 1, 4096),
        efficiency=number("Part of a NIC's rate that carries payload.", 0.1, 1, default=1.0),
        latency_usec=number("Latency of a step between hosts in a collective, software included.", 0, 10_000, default=10),
        nvlink_gbytes_per_s=number(
            "Rate of a GPU's NVLink in one direction, in 10^9 bytes per second (half of the published sum of both).", 1, 100_000
        ),
        nvlink_latency_usec=number("Latency of a step within a host.", 0, 1000, default=3.5),
        message_sizes=Key((list,), "Sizes of messages to compute; default: 1 MB, 64 MB and 1 GB.", each=text("A size.", SIZE)),
    )
)
PRICES = keys(
    "Your prices. A part without a price is counted, and its cost is not given.",
    currency=text("The currency, as in front of an amount.", default="$"),
    date=Key((str, date), "Date of the prices.", form=DATE),
    source=text("Where the prices come from."),
    nic=number("Price of a NIC.", 0),
    fiber=number("Price of a fiber between two transceivers.", 0),
    kwh=number("Price of a kilowatt hour.", 0),
    nic_watts=number("Power of a NIC.", 0, 1000),
    optic_watts=number("Power of a transceiver; an active optical cable has two.", 0, 1000),
    aoc_max_m=number("Longest active optical cable in meters. Longer ones need two transceivers and a fiber.", 1, 1000, default=30),
    nics=flag("Count the NICs of the hosts as a part of the network.", False),
)
GPU_HOUR = number(
    "Price of an hour of one GPU. With it, the summary of a run shows what a slow rate costs a day, the most expensive first. It uses "
    "`gpus_per_host` and `training` too.",
    0,
)
#: The sections of rdma_plan for the numbers.
NUMBERS: dict[str, Key] = {"uplink": UPLINK, "training": TRAINING, "prices": PRICES, "gpu_hour": GPU_HOUR}
