# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware settings that the plan requests for each card, and the rail that reports them.

Each function of a card answers for the whole card, so a card is read and written once, at its function 0. Port n is function n - 1 of an
mlx5 card, where each port has its own function, and RDMA port n of an mlx4 card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import (
    DRIVERS,
    RequestedValue,
    card_port,
    is_requested,
    read_value,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import LINK_LAYERS, LINK_TYPES, ResolvedRail, resolve

#: A setting of a card in the facts; None: the card lacks it.
SettingFacts = Mapping[str, Any] | None


@dataclass(frozen=True)
class RailRequest:
    """The requested settings of a rail's card: its port's link type, and at the first rail of a card all other settings.

    card: the PCI address of its function 0, None if there is no card with settings; why is then the reason. first: whether the rail is
    the card's first one in the plan.
    """

    rail: ResolvedRail
    card: str | None = None
    why: str = ""
    first: bool = True
    settings: dict[str, RequestedValue] = field(default_factory=dict)


def rail_requests(intent: Intent, facts: Facts) -> list[RailRequest]:
    """Each planned rail in the plan's order, including those without requested settings.

    The link type is requested if the port has another link layer than planned, and if settings are read anyway.
    A setting that the intent names overrides the one derived from a rail.
    """
    requests: list[RailRequest] = []
    requested = intent["firmware"]["settings"]
    for rail in resolve(intent["rails"], facts):
        why = _no_card(rail, facts)
        if why is not None:
            requests.append(RailRequest(rail, why=why))
            continue
        card, port = _place(rail, facts)
        first = all(each.card != card for each in requests)
        name = f"LINK_TYPE_P{port}"
        value = requested.get(name, LINK_TYPES[rail.rail["link_layer"]])
        link_type = {name: value} if _wants_link_type(intent, rail, facts, card, name) else {}
        requests.append(RailRequest(rail, card, "", first, {**link_type, **(requested if first else {})}))
    return requests


def firmware_facts(facts: Facts, card: str) -> Mapping[str, Any]:
    """The facts on the settings of a card: tool, settings, error; empty if it was not read."""
    return (facts.firmware or {}).get(card) or {}


def is_settled(setting: SettingFacts, request: RequestedValue) -> bool:
    """Whether there is nothing to write: the card lacks the setting, or has the requested value at its next boot."""
    return setting is None or (setting.get("next_boot") is not None and is_requested(read_value(setting["next_boot"]), request))


def is_pending(setting: Mapping[str, Any]) -> bool:
    """Whether the next boot changes the setting; False if one of the values is not known."""
    current, next_boot = setting.get("current"), setting.get("next_boot")
    return current is not None and next_boot is not None and not is_requested(read_value(current), next_boot)


def _no_card(rail: ResolvedRail, facts: Facts) -> str | None:
    """Why a rail has no card with such settings; None if it has one."""
    device, netdev = _device(rail, facts), _netdev(rail, facts)
    if rail.rail["soft"] or (device is not None and device.software):
        return "a software device has no firmware"
    if device is None and netdev is None:
        return "its NIC is missing: see driver.nic"
    there = [each for each in (device, netdev) if each is not None]
    if "vf" in [each.function for each in there]:
        return "a virtual function has no settings; its physical function has"
    driver = next((each.driver for each in there if each.driver), None)
    if driver is not None and driver.partition("[")[0] not in DRIVERS:
        return f"its driver is {driver}: only mlx4_core and mlx5_core cards have these settings"
    return None if _address(rail, facts) else "no PCI function is known for this NIC"


def _place(rail: ResolvedRail, facts: Facts) -> tuple[str, int]:
    """The card of a rail, and the number of its port on the card, from 1."""
    netdev = _netdev(rail, facts)
    own = int(rail.port) if rail.port is not None else (netdev.dev_port or 0 if netdev is not None else 0) + 1
    return card_port(str(_address(rail, facts)), own)


def _wants_link_type(intent: Intent, rail: ResolvedRail, facts: Facts, card: str, name: str) -> bool:
    if not intent["firmware"]["link_type"]:
        return False
    device = _device(rail, facts)
    port = device.ports[rail.port] if device is not None and rail.port is not None else None
    other = port is not None and port.link_layer not in (LINK_LAYERS[rail.rail["link_layer"]], None)
    return other or bool(intent["firmware"]["settings"]) or name in firmware_facts(facts, card).get("settings", {})


def _address(rail: ResolvedRail, facts: Facts) -> str | None:
    """The PCI function of a rail's NIC."""
    device, netdev = _device(rail, facts), _netdev(rail, facts)
    if device is not None and device.pci is not None:
        return device.pci.address
    return netdev.pci if netdev is not None else None


def _device(rail: ResolvedRail, facts: Facts) -> Device | None:
    return facts.devices[rail.device] if rail.device is not None else None


def _netdev(rail: ResolvedRail, facts: Facts) -> Netdev | None:
    return facts.netdevs[rail.netdev] if rail.netdev is not None else None


LINK_TYPE_SETTINGS = ("LINK_TYPE_P1", "LINK_TYPE_P2")


def firmware_names(intent: Intent, facts: Facts | None = None) -> list[str]:
    """The names of the settings that rdma_facts reads; empty if none is requested, because a query takes a second or more.

    facts: the earlier facts of this run, if any. The link type is read if a port has another link layer than planned, and if settings
    are read anyway.
    """
    names = set(intent["firmware"]["settings"])
    for request in firmware_requests(intent, facts) if facts is not None else ():
        names |= set(request["settings"])
    return sorted(names | (set(LINK_TYPE_SETTINGS) if names and intent["firmware"]["link_type"] else set()))


def firmware_requests(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The settings of each card as options of rdma.cluster.mlxconfig; a card with several ports appears once."""
    cards: dict[str, dict[str, RequestedValue]] = {}
    for request in rail_requests(intent, facts):
        if request.card is not None and request.settings:
            cards.setdefault(request.card, {}).update(request.settings)
    return [{"device": card, "settings": settings} for card, settings in cards.items()]


def firmware_differs(intent: Intent, facts: Facts | None) -> bool:
    """True unless the facts prove that every card has the requested settings at its next boot, or lacks them."""
    if facts is None:
        return bool(intent["firmware"]["settings"])
    requests = firmware_requests(intent, facts)
    return not all(_is_settled(facts, each["device"], name, value) for each in requests for name, value in each["settings"].items())


def _is_settled(facts: Facts, card: str, name: str, value: RequestedValue) -> bool:
    settings = firmware_facts(facts, card).get("settings") or {}
    return name in settings and is_settled(settings[name], value)


def firmware_pending(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The requested settings that wait for a reboot of the host or a reset of the card."""
    found = []
    for request in firmware_requests(intent, facts):
        seen = firmware_facts(facts, request["device"])
        for name, value in request["settings"].items():
            setting = (seen.get("settings") or {}).get(name)
            if setting is not None and is_settled(setting, value) and is_pending(setting):
                values = {"current": setting["current"], "next_boot": setting["next_boot"]}
                found.append({"device": request["device"], "name": name, **values})
    return found
