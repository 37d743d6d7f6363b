# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the driver stage asks of the firmware of the rails' cards: settings as wished and in force, and the version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import Wish, argument, is_array, read_value
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.ensure import RESETS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.wishes import RailWish, is_pending, is_settled, rail_wishes, told

declare(
    {
        "firmware.setting": Check(
            "driver",
            "the firmware settings of each rail's card: as wished at the next boot, and in force",
            "`mstconfig -d PCI -e q`",
            "allow `firmware_write_allowed`; where it is pending, reboot or `mstfwreset`",
            sources=(reads.command("mstconfig", "-d"),),
        ),
        "firmware.version": Check(
            "driver",
            "the firmware of each card whose PSID is in `rdma_firmware.versions`",
            "`fw_ver`, `board_id`",
            "burn it by hand: `mstflint … burn` or `mlxfwmanager -u`; never done by the build",
            sources=(reads.FIRMWARE, reads.BOARD),
        ),
    }
)

STAGE = "driver"
SETTING, VERSION = "firmware.setting", "firmware.version"
#: What keeps a setting from being as wished, the first to be mended first.
READ_ONLY, WRITE, REBOOT = "read-only", "write", "reboot"


@dataclass(frozen=True)
class Judged:
    """One setting of a card. cause: one of the above, "" where another look is all that can be done; word: what to hand to `set`."""

    status: str
    words: str
    cause: str = ""
    word: str = ""


def check_firmware(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `firmware.setting` and `firmware.version` of each planned rail of one host.

    The settings of a card stand at its first rail; at another one stands the link type of its own port.
    """
    return [
        finding for wish in rail_wishes(intent, facts) for finding in (_settings(host, wish, facts), _version(host, intent, wish, facts))
    ]


def _settings(host: str, wish: RailWish, facts: Facts) -> Finding:
    expected = ", ".join(f"{name}={value}" for name, value in wish.settings.items()) or "as wished"
    if wish.card is None or not wish.settings:
        return Finding(STAGE, SETTING, host, wish.rail.subject, NOT_APPLICABLE, wish.why or "no setting is wished of it", expected)
    seen = told(facts, wish.card)
    judged = [_judge(name, value, seen) for name, value in wish.settings.items()]
    bad = [each for status in (ERROR, UNKNOWN) for each in judged if each.status == status]
    if bad:
        observed = f"{wish.card}: {'; '.join(each.words for each in bad)}"
        return Finding(STAGE, SETTING, host, wish.rail.subject, bad[0].status, observed, expected, _remedy(host, wish, seen, bad))
    good = [each.words for each in judged if each.status == OK]
    if good:
        return Finding(STAGE, SETTING, host, wish.rail.subject, OK, f"{wish.card}: {', '.join(good)}", expected)
    return Finding(STAGE, SETTING, host, wish.rail.subject, NOT_APPLICABLE, f"{wish.card} has no {', '.join(wish.settings)}", expected)


def _judge(name: str, wish: Wish, seen: Mapping[str, Any]) -> Judged:
    settings = seen.get("settings") or {}
    if name not in settings:
        return Judged(UNKNOWN, f"{name} could not be read: {seen.get('error') or 'the card was not asked'}")
    return Judged(NOT_APPLICABLE, "") if settings[name] is None else _judge_told(name, wish, settings[name])


def _judge_told(name: str, wish: Wish, setting: Mapping[str, Any]) -> Judged:
    current, next_boot = setting.get("current"), setting.get("next_boot")
    if next_boot is None or is_array(read_value(next_boot)):
        return Judged(UNKNOWN, f"{name} is {next_boot or 'not told (N/A)'}, which cannot be compared")
    if not is_settled(setting, wish):
        words = f"{name} is {next_boot} at the next boot, wished {wish}"
        word = f"{name}={argument(wish, read_value(next_boot))}"
        return Judged(ERROR, words, READ_ONLY if setting.get("read_only") else WRITE, word)
    if is_pending(setting):
        return Judged(ERROR, f"{name} is pending: {current} now, {next_boot} at the next boot", REBOOT)
    if current is None:
        return Judged(UNKNOWN, f"{name} is {next_boot} at the next boot, and what it is now is not told", REBOOT)
    return Judged(OK, f"{name} is {current}")


def _remedy(host: str, wish: RailWish, seen: Mapping[str, Any], bad: Sequence[Judged]) -> str:
    """What mends the first cause; a reboot comes after everything that is to be written."""
    tool = seen.get("tool") or "mstconfig"
    causes = {each.cause for each in bad}
    reset = f"`{RESETS.get(tool, RESETS['mstconfig'])} -d {wish.card} -y reset` there, which takes its links down"
    if READ_ONLY in causes:
        return f"The card does not let this be set: correct rdma_firmware of {host}, see `{tool} -d {wish.card} -e q` there."
    if WRITE in causes:
        words = " ".join(each.word for each in bad if each.cause == WRITE)
        by_hand = f"`{tool} -y -d {wish.card} set {words}` there"
        return f"Run the driver stage for {host} with firmware_write_allowed=true, or {by_hand}; then reboot {host}, or run {reset}."
    if REBOOT in causes:
        return f"Reboot {host}, or run {reset}."
    return f"See `{tool} -d {wish.card} -e q` on {host}; mstconfig comes with the package mstflint."


def _version(host: str, intent: Intent, wish: RailWish, facts: Facts) -> Finding:
    wished = intent["firmware"]["versions"]
    device = facts.devices[wish.rail.device] if wish.rail.device is not None else None
    psid, seen = (device.board_id, device.firmware) if device is not None else (None, None)
    expected = wished.get(psid, "as wished") if psid is not None else "as wished"
    why = wish.why or _no_version(wish, wished, psid, device)
    if why:
        return Finding(STAGE, VERSION, host, wish.rail.subject, NOT_APPLICABLE, why, expected)
    if psid is None or seen is None:
        what = "its PSID" if psid is None else "its version"
        remedy = f"Look on {host} at fw_ver and board_id in /sys/class/infiniband/{wish.rail.device}, or `mstflint -d {wish.card} q`."
        return Finding(STAGE, VERSION, host, wish.rail.subject, UNKNOWN, f"{what} is not told", expected, remedy)
    if seen == expected:
        return Finding(STAGE, VERSION, host, wish.rail.subject, OK, f"{seen} ({psid})", expected)
    remedy = (
        f"Firmware is never updated by the build. Burn it by hand on {host}: `mstflint -d {wish.card} -i IMAGE burn` with the image for "
        f"{psid} (or `mlxfwmanager -d {wish.card} -u`), and reboot; or correct rdma_firmware.versions."
    )
    return Finding(STAGE, VERSION, host, wish.rail.subject, WARNING, f"{seen} ({psid})", expected, remedy)


def _no_version(wish: RailWish, wished: Mapping[str, str], psid: str | None, device: Device | None) -> str:
    """Why no version is asked of a rail's card; "" where one is."""
    if not wished:
        return "no version is wished"
    if device is None:
        return "no RDMA device, which would tell it: driver.device says what to do"
    if not wish.first:
        return f"the same card as another rail's, which says it: {wish.card}"
    return f"no version is wished for {psid}" if psid is not None and psid not in wished else ""
