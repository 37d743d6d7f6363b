# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of the RoCE profile: the settings of NICs and switches, from the hosts' intents only, as text and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.switch_config import SUFFIXES, render, switches_of

#: The width of the NIC column.
WIDTH = 46


@dataclass(frozen=True)
class SwitchFile:
    """A switch's file. hosts: those with the switch in their intent."""

    name: str
    suffix: str
    text: str
    hosts: list[str]


@dataclass(frozen=True)
class RocePlan:
    """profiles: each with its hosts, in the order of the first. without: hosts without a profile."""

    profiles: list[tuple[dict[str, Any], list[str]]]
    without: list[str]
    switches: list[SwitchFile]


def make_plan(intents: Mapping[str, Intent]) -> RocePlan:
    """Return the plan. Raises ValueError with every switch for which two hosts have different settings."""
    profiles: list[tuple[dict[str, Any], list[str]]] = []
    without: list[str] = []
    of: dict[str, dict[str, list[str]]] = {}
    files: dict[str, SwitchFile] = {}
    for host, intent in intents.items():
        profile = roce_profile(intent)
        if profile is None:
            without.append(host)
            continue
        _group(profiles, profile).append(host)
        for name, switch in switches_of(intent).items():
            text = render(profile, switch)
            of.setdefault(name, {}).setdefault(text, []).append(host)
            files.setdefault(name, SwitchFile(name, SUFFIXES[switch["syntax"]], text, of[name][text]))
    _refuse(of)
    return RocePlan(profiles, without, list(files.values()))


def _group(profiles: list[tuple[dict[str, Any], list[str]]], profile: dict[str, Any]) -> list[str]:
    for known, hosts in profiles:
        if known == profile:
            return hosts
    profiles.append((profile, []))
    return profiles[-1][1]


def _refuse(of: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    problems = [
        f"{name} has {len(texts)} different settings: " + "; ".join(f"one from {', '.join(hosts)}" for hosts in texts.values())
        for name, texts in of.items()
        if len(texts) > 1
    ]
    if problems:
        raise ValueError(
            "Hosts need the same settings for a switch (rdma_roce, and the rates of their RoCE rails):\n" + "\n".join(problems)
        )


def plan_text(plan: RocePlan) -> str:
    """Return both sides for a person: each NIC profile, and beside it the file of each switch with it; without a final line break."""
    parts = ["The RoCE profile: the planned settings of NICs and switches. Nothing was changed."]
    for profile, hosts in plan.profiles:
        left = [f"NICs of {len(hosts)} host{'' if len(hosts) == 1 else 's'}:", *_wrapped(hosts), "", *nic_lines(profile)]
        files = [file for file in plan.switches if not set(hosts).isdisjoint(file.hosts)]
        if not files:
            parts.append("\n".join([*left, "", "No switch is planned with this profile (rdma_roce.switches)."]))
        parts += [side_by_side(left, [f"{file.name}{file.suffix}:", "", *file.text.splitlines()]) for file in files]
    if plan.without:
        parts.append(f"Without rdma_roce, so nothing is set there: {', '.join(plan.without)}")
    return "\n\n".join(parts)


def _wrapped(hosts: Sequence[str]) -> list[str]:
    """Return names in the NIC column."""
    lines = [""]
    for host in hosts:
        joined = f"{lines[-1]}, {host}" if lines[-1] else f"  {host}"
        lines = [*lines[:-1], joined] if len(joined) < WIDTH or not lines[-1] else [*lines, f"  {host}"]
    return lines


def side_by_side(left: Sequence[str], right: Sequence[str]) -> str:
    return "\n".join(f"{one:{WIDTH}}| {other}".rstrip() for one, other in zip_longest(left, right, fillvalue=""))


def nic_lines(profile: Mapping[str, Any]) -> list[str]:
    """Return the profile for a NIC, one line per setting."""
    lossless = [str(priority) for priority, on in enumerate(profile["pfc"]) if on]
    rows = [
        ("trust", profile["trust"]),
        ("DSCP: priority", ", ".join(f"{dscp}: {priority}" for dscp, priority in profile["dscp_to_priority"].items())),
        ("PFC", f"priority {', '.join(lossless)}" if lossless else "off"),
        ("global pause", "off"),
        ("ECN (DCQCN)", "on" if profile["ecn"] else "off"),
        ("priority: class", ",".join(map(str, profile["priority_to_tc"]))),
        ("scheduling", _scheduling(profile)),
        ("settings owned by", {"os": "operating system", "firmware": "firmware (DCBX)"}[profile["dcbx"]]),
        ("cable length", f"{profile['cable_length_m']} m" if profile["cable_length_m"] else "the driver's"),
        *((name, str(value)) for side in ("np", "rp") for name, value in profile[side].items()),
        ("traffic class", f"{profile['traffic_class']} (NCCL_IB_TC)"),
        ("RDMA-CM", f"{profile['rdma_cm']['mode']}, ToS {profile['rdma_cm']['tos']}"),
    ]
    return [f"{name:18}{value}" for name, value in rows]


def _scheduling(profile: Mapping[str, Any]) -> str:
    """ "0: 50 %, 3: 50 %, 6: strict" by traffic class."""
    used = sorted(set(profile["priority_to_tc"]))
    words = {tc: "strict" if profile["tsa"][tc] == "strict" else f"{profile['bandwidth_percent'][tc]} %" for tc in used}
    return ", ".join(f"{tc}: {each}" for tc, each in words.items())
