# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage does with the firmware of the rails' cards: which settings to ask for, to write, and what waits for a reboot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._firmware_value import Wish
from ansible_collections.rdma.cluster.plugins.module_utils._firmware_wishes import is_pending, is_settled, rail_wishes, told
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

Intent = Mapping[str, Any]
LINK_TYPE_SETTINGS = ("LINK_TYPE_P1", "LINK_TYPE_P2")


def firmware_names(intent: Intent, facts: Facts | None = None) -> list[str]:
    """The names of the settings that rdma_facts shall read; none where nothing is wished, for a query takes a second or more.

    facts: those of earlier in the run, if there are any. The link type is asked for where a port has another link layer than planned,
    and where settings are read anyway.
    """
    names = set(intent["firmware"]["settings"])
    for wish in firmware_wishes(intent, facts) if facts is not None else ():
        names |= set(wish["settings"])
    return sorted(names | (set(LINK_TYPE_SETTINGS) if names and intent["firmware"]["link_type"] else set()))


def firmware_wishes(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The settings of each card, in the shape that rdma.cluster.mlxconfig takes; a card with several ports stands once."""
    cards: dict[str, dict[str, Wish]] = {}
    for wish in rail_wishes(intent, facts):
        if wish.card is not None and wish.settings:
            cards.setdefault(wish.card, {}).update(wish.settings)
    return [{"device": card, "settings": settings} for card, settings in cards.items()]


def firmware_differs(intent: Intent, facts: Facts | None) -> bool:
    """True unless the facts prove that the next boot of every card brings what is wished, or that the card lacks it."""
    if facts is None:
        return bool(intent["firmware"]["settings"])
    wishes = [(wish["device"], name, value) for wish in firmware_wishes(intent, facts) for name, value in wish["settings"].items()]
    return not all(_is_settled(facts, *wish) for wish in wishes)


def _is_settled(facts: Facts, card: str, name: str, value: Wish) -> bool:
    settings = told(facts, card).get("settings") or {}
    return name in settings and is_settled(settings[name], value)


def firmware_pending(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The wished settings that wait for a reboot of the host, or a reset of the card."""
    found = []
    for wish in firmware_wishes(intent, facts):
        seen = told(facts, wish["device"])
        for name, value in wish["settings"].items():
            setting = (seen.get("settings") or {}).get(name)
            if setting is not None and is_settled(setting, value) and is_pending(setting):
                values = {"current": setting["current"], "next_boot": setting["next_boot"]}
                found.append({"device": wish["device"], "name": name, **values})
    return found
