# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read rdma_plan: check it by its schema and by rules between values, and complete it with the switch model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import VALUE, IntentError, IntentProblem
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_variable
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology import PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.catalogue import CATALOGUE
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import CablePrices, PlanRequest, Room, Survive, SwitchModel

NAME = "rdma_plan"
#: More than this slows collective operations of all hosts by the same factor.
MOST_OVERSUBSCRIPTION = 2.0
#: The highest port number that a cable plan of the fabric stage can have.
MOST_PORT_NUMBER = 1024
#: The name of a switch that is given by ports and rate.
OWN_MODEL = "switch"
_KNOWN = frozenset(PLAN.keys or ()) - {"models", "existing", "from_fabric"}
_READ_HERE = frozenset(
    (
        "hosts",
        "hosts_later",
        "gpus_per_host",
        "nics_per_host",
        "nic_gbps",
        "topology",
        "fabric",
        "switch",
        "oversubscription",
        "spare_ports",
        "survive",
        "hosts_per_rack",
        "cables",
        "room",
    )
)


def read_request(variables: Mapping[str, Any]) -> tuple[PlanRequest, str | None]:
    """Return the request, and the file of an existing fabric. variables: {"rdma_plan": {...}}.

    Raises IntentError with every problem found.
    """
    given: dict[str, Any] = read_variable(variables, NAME, replace(PLAN, required=True))
    problems = [*_switch_problems(given)]
    if problems:
        raise IntentError(problems)
    model, host_parts = _switch(given)
    problems = list(_problems(given, model, host_parts))
    if problems:
        raise IntentError(problems)
    survive, cables = given["survive"], given["cables"]
    request = PlanRequest(
        given["hosts"],
        given["hosts_later"] or given["hosts"],
        given["gpus_per_host"],
        given["nics_per_host"],
        given["nic_gbps"],
        model,
        given["topology"],
        given["fabric"],
        host_parts,
        given["switch"]["uplink_breakout"],
        given["oversubscription"],
        given["spare_ports"],
        Survive(survive["spines"], survive["links"], survive["min_bisection"]),
        CablePrices(cables["dac_max_m"], **cables["prices"], aoc_max_m=given["prices"]["aoc_max_m"], fiber=given["prices"]["fiber"]),
        {name: given[name] for name in sorted(_KNOWN - _READ_HERE)},
        Room(given["hosts_per_rack"], **given["room"]),
    )
    return request, given["existing"]


def _models(given: Mapping[str, Any]) -> dict[str, SwitchModel]:
    """Return the catalogue with the models of the request."""
    own = {
        name: SwitchModel(
            name,
            model["ports"],
            model["gbps"],
            tuple(sorted({1, *model["breakout"]})),
            model["fabric"],
            model["watts"],
            model["price"],
            model["latency_ns"],
        )
        for name, model in given["models"].items()
    }
    return {**CATALOGUE, **own}


def _problem(where: str, message: str, expected: str = "") -> IntentProblem:
    return IntentProblem(f"{NAME}.{where}", message, VALUE, expected, message)


def _switch_problems(given: Mapping[str, Any]) -> Iterator[IntentProblem]:
    """Yield why the switch is not known."""
    switch, models = given["switch"], _models(given)
    if switch["model"] is None:
        missing = [key for key in ("ports", "gbps") if switch[key] is None]
        if missing:
            yield _problem("switch", f"needs a model, or ports and gbps; {' and '.join(missing)} is missing")
        return
    if switch["model"] not in models:
        yield _problem("switch.model", f"'{switch['model']}' is not known: {hint(switch['model'], models, 'models')}")
        return
    for key in ("ports", "gbps"):
        if switch[key] is not None:
            yield _problem(f"switch.{key}", f"is a value of the model {switch['model']}: remove it, or remove model")
    model = models[switch["model"]]
    if model.fabric != given["fabric"]:
        fitting = [name for name, each in models.items() if each.fabric == given["fabric"]]
        yield _problem(
            "switch.model",
            f"{model.name} switches {model.fabric}, and rdma_plan.fabric is {given['fabric']}; models for {given['fabric']}: "
            f"{', '.join(fitting)}",
        )


def _switch(given: Mapping[str, Any]) -> tuple[SwitchModel, int]:
    """Return the switch, and the parts of a port to hosts."""
    switch = given["switch"]
    parts = switch["breakout"]
    if switch["model"] is not None:
        model = _models(given)[switch["model"]]
    else:
        breakout = tuple(sorted({1, parts or 1, switch["uplink_breakout"]}))
        model = SwitchModel(OWN_MODEL, switch["ports"], switch["gbps"], breakout, given["fabric"])
    changed = {key: switch[key] for key in ("price", "watts") if switch[key] is not None}
    model = replace(model, **changed)
    if parts is None:
        exact = [each for each in model.breakout if abs(model.gbps / each - given["nic_gbps"]) < 1]
        parts = max(exact, default=1)
    return model, parts


def _problems(given: Mapping[str, Any], model: SwitchModel, host_parts: int) -> Iterator[IntentProblem]:
    """Yield problems between values."""
    hosts, later, nic = given["hosts"], given["hosts_later"], given["nic_gbps"]
    if later is not None and later < hosts:
        yield _problem("hosts_later", f"is {later}, {hosts - later} less than hosts ({hosts}): write at least {hosts}")
    if given["oversubscription"] > MOST_OVERSUBSCRIPTION:
        yield _problem(
            "oversubscription",
            f"is {given['oversubscription']:g}; at most {MOST_OVERSUBSCRIPTION:g} is planned for compute rails. All hosts wait for the "
            f"slowest link of a collective operation, so {given['oversubscription']:g}:1 can divide the bandwidth of each job that spans "
            "leaves by that factor",
        )
    if nic > model.gbps:
        yield _problem(
            "nic_gbps", f"is {nic:g}, and a port of {model.name} has {model.gbps:g} Gb/s: {nic - model.gbps:g} too slow for a NIC"
        )
    for key, parts in (("breakout", host_parts), ("uplink_breakout", given["switch"]["uplink_breakout"])):
        if parts not in model.breakout:
            known = ", ".join(str(each) for each in model.breakout)
            yield _problem(
                f"switch.{key}",
                f"is {parts}; no source states how the ports of {model.name} can be split. If your data sheet does, add this model with "
                "breakout to rdma_plan.models"
                if model.has_unknown_breakout
                else f"is {parts}; ports of {model.name} can be split into {known} parts",
            )
    if nic <= model.gbps and model.gbps / host_parts < nic:
        most = max((each for each in model.breakout if model.gbps / each >= nic), default=1)
        yield _problem(
            "switch.breakout",
            f"is {host_parts}: a part has {model.gbps / host_parts:g} Gb/s, and a NIC {nic:g}; write {most}",
        )
    parts = max(host_parts, given["switch"]["uplink_breakout"])
    if model.ports * parts > MOST_PORT_NUMBER:
        yield _problem("switch", f"has {model.ports} × {parts} port numbers; a cable plan has at most {MOST_PORT_NUMBER}")
    if given["spare_ports"] > model.ports - 2:
        yield _problem(
            "spare_ports", f"is {given['spare_ports']}, and {model.name} has {model.ports} ports: write at most {model.ports - 2}"
        )
