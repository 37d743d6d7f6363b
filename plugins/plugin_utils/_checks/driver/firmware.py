# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the driver gate on the firmware of the rails' cards: settings as requested and in effect, and the version."""

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
            "the firmware settings of each rail's card: as requested for the next boot, and in effect now",
            "`mstconfig -d PCI -e q`",
            "set `firmware_write_allowed`; for a pending setting, reboot or run `mstfwreset`",
            sources=(reads.command("mstconfig", "-d"),),
        ),
        "firmware.version": Check(
            "driver",
            "the firmware of each card whose PSID is in `rdma_firmware.versions`",
            "`fw_ver`, `board_id`",
            "burn it by hand: `mstflint … burn` or `mlxfwmanager -u`; the build never does",
            sources=(reads.FIRMWARE, reads.BOARD),
        ),
    }
)

STAGE = "driver"
SETTING, VERSION = "firmware.setting", "firmware.version"
#: Why a setting differs, in the order in which to fix it.
READ_ONLY, WRITE, REBOOT = "read-only", "write", "reboot"


@dataclass(frozen=True)
class Judged:
    """One checked setting of a card. cause: one of the above, or "" if it can only be read again; word: the argument of `set`."""

    status: str
    words: str
    cause: str = ""
    word: str = ""


def check_firmware(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `firmware.setting` and `firmware.version` of each planned rail of one host.

    The settings of a card are reported at its first rail; the link type of a port at the rail of that port.
    """
    return [
        finding for wish in rail_wishes(intent, facts) for finding in (_settings(host, wish, facts), _version(host, intent, wish, facts))
    ]


def _settings(host: str, wish: RailWish, facts: Facts) -> Finding:
    expected = ", ".join(f"{name}={value}" for name, value in wish.settings.items()) or "as requested"
    if wish.card is None or not wish.settings:
        return Finding(STAGE, SETTING, host, wish.rail.subject, NOT_APPLICABLE, wish.why or "no setting is requested", expected)
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
        return Judged(UNKNOWN, f"{name} could not be read: {seen.get('error') or 'the card was not read'}")
    return Judged(NOT_APPLICABLE, "") if settings[name] is None else _judge_told(name, wish, settings[name])


def _judge_told(name: str, wish: Wish, setting: Mapping[str, Any]) -> Judged:
    current, next_boot = setting.get("current"), setting.get("next_boot")
    if next_boot is None or is_array(read_value(next_boot)):
        return Judged(UNKNOWN, f"{name} is {next_boot or 'not reported (N/A)'}, which cannot be compared")
    if not is_settled(setting, wish):
        words = f"{name} is {next_boot} at the next boot, requested is {wish}"
        word = f"{name}={argument(wish, read_value(next_boot))}"
        return Judged(ERROR, words, READ_ONLY if setting.get("read_only") else WRITE, word)
    if is_pending(setting):
        return Judged(ERROR, f"{name} is pending: {current} now, {next_boot} at the next boot", REBOOT)
    if current is None:
        return Judged(UNKNOWN, f"{name} is {next_boot} at the next boot; its current value is not reported", REBOOT)
    return Judged(OK, f"{name} is {current}")


def _remedy(host: str, wish: RailWish, seen: Mapping[str, Any], bad: Sequence[Judged]) -> str:
    """The remedy for the first cause; a reboot comes after all writes."""
    tool = seen.get("tool") or "mstconfig"
    causes = {each.cause for each in bad}
    reset = f"`{RESETS.get(tool, RESETS['mstconfig'])} -d {wish.card} -y reset` there (takes its links down)"
    if READ_ONLY in causes:
        return f"Remove the setting from rdma_firmware of {host}: it is read-only on this card (`{tool} -d {wish.card} -e q` there)."
    if WRITE in causes:
        words = " ".join(each.word for each in bad if each.cause == WRITE)
        by_hand = f"`{tool} -y -d {wish.card} set {words}` there"
        return f"1. Run the driver stage for {host} with `-e firmware_write_allowed=true`, or {by_hand}. 2. Reboot {host}, or run {reset}."
    if REBOOT in causes:
        return f"Reboot {host}, or run {reset}."
    return f"Run `{tool} -d {wish.card} -e q` on {host}. The package mstflint has mstconfig."


def _version(host: str, intent: Intent, wish: RailWish, facts: Facts) -> Finding:
    wished = intent["firmware"]["versions"]
    device = facts.devices[wish.rail.device] if wish.rail.device is not None else None
    psid, seen = (device.board_id, device.firmware) if device is not None else (None, None)
    expected = wished.get(psid, "as requested") if psid is not None else "as requested"
    why = wish.why or _no_version(wish, wished, psid, device)
    if why:
        return Finding(STAGE, VERSION, host, wish.rail.subject, NOT_APPLICABLE, why, expected)
    if psid is None or seen is None:
        what = "its PSID" if psid is None else "its version"
        remedy = f"On {host}, read fw_ver and board_id in /sys/class/infiniband/{wish.rail.device}, or run `mstflint -d {wish.card} q`."
        return Finding(STAGE, VERSION, host, wish.rail.subject, UNKNOWN, f"{what} is not known", expected, remedy)
    if seen == expected:
        return Finding(STAGE, VERSION, host, wish.rail.subject, OK, f"{seen} ({psid})", expected)
    remedy = (
        f"1. On {host}, burn it by hand: `mstflint -d {wish.card} -i IMAGE burn` with the image for {psid}, or "
        f"`mlxfwmanager -d {wish.card} -u`. The build never updates firmware. 2. Reboot {host}. "
        "3. If the version is right, correct rdma_firmware.versions."
    )
    return Finding(STAGE, VERSION, host, wish.rail.subject, WARNING, f"{seen} ({psid})", expected, remedy)


def _no_version(wish: RailWish, wished: Mapping[str, str], psid: str | None, device: Device | None) -> str:
    """Why the firmware version of a rail's card is not checked; "" if it is."""
    if not wished:
        return "no version is requested"
    if device is None:
        return "no RDMA device to read it from: see driver.device"
    if not wish.first:
        return f"reported at another rail of the same card: {wish.card}"
    return f"no version is requested for {psid}" if psid is not None and psid not in wished else ""
