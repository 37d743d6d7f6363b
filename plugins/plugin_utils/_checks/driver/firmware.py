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
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import RequestedValue, argument, is_array, read_value
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.ensure import RESETS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.requests import (
    RailRequest,
    firmware_facts,
    is_pending,
    is_settled,
    rail_requests,
)

declare(
    {
        "firmware.setting": Check(
            "driver",
            "the firmware settings of each rail's card: as requested for the next boot, and in effect now",
            "`mstconfig -d PCI -e q`",
            "set `firmware_write_allowed`; for a pending setting, reboot or run `mstfwreset`",
            follows=NO_DEVICE,
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
        finding
        for request in rail_requests(intent, facts)
        for finding in (_settings(host, request, facts), _version(host, intent, request, facts))
    ]


def _settings(host: str, request: RailRequest, facts: Facts) -> Finding:
    expected = ", ".join(f"{name}={value}" for name, value in request.settings.items()) or "as requested"
    if request.card is None or not request.settings:
        return Finding(STAGE, SETTING, host, request.rail.subject, NOT_APPLICABLE, request.why or "no setting is requested", expected)
    seen = firmware_facts(facts, request.card)
    judged = [_judge(name, value, seen) for name, value in request.settings.items()]
    bad = [each for status in (ERROR, UNKNOWN) for each in judged if each.status == status]
    if bad:
        observed = f"{request.card}: {'; '.join(each.words for each in bad)}"
        return Finding(STAGE, SETTING, host, request.rail.subject, bad[0].status, observed, expected, _remedy(host, request, seen, bad))
    good = [each.words for each in judged if each.status == OK]
    if good:
        return Finding(STAGE, SETTING, host, request.rail.subject, OK, f"{request.card}: {', '.join(good)}", expected)
    observed = f"{request.card} has no {', '.join(request.settings)}"
    return Finding(STAGE, SETTING, host, request.rail.subject, NOT_APPLICABLE, observed, expected)


def _judge(name: str, value: RequestedValue, seen: Mapping[str, Any]) -> Judged:
    settings = seen.get("settings") or {}
    if name not in settings:
        return Judged(UNKNOWN, f"{name} could not be read: {seen.get('error') or 'the card was not read'}")
    return Judged(NOT_APPLICABLE, "") if settings[name] is None else _judge_value(name, value, settings[name])


def _judge_value(name: str, value: RequestedValue, setting: Mapping[str, Any]) -> Judged:
    current, next_boot = setting.get("current"), setting.get("next_boot")
    if next_boot is None or is_array(read_value(next_boot)):
        return Judged(UNKNOWN, f"{name} is {next_boot or 'not reported (N/A)'}, which cannot be compared")
    if not is_settled(setting, value):
        words = f"{name} is {next_boot} at the next boot, requested is {value}"
        word = f"{name}={argument(value, read_value(next_boot))}"
        return Judged(ERROR, words, READ_ONLY if setting.get("read_only") else WRITE, word)
    if is_pending(setting):
        return Judged(ERROR, f"{name} is pending: {current} now, {next_boot} at the next boot", REBOOT)
    if current is None:
        return Judged(UNKNOWN, f"{name} is {next_boot} at the next boot; its current value is not reported", REBOOT)
    return Judged(OK, f"{name} is {current}")


def _remedy(host: str, request: RailRequest, seen: Mapping[str, Any], bad: Sequence[Judged]) -> str:
    """The remedy for the first cause; a reboot comes after all writes."""
    tool = seen.get("tool") or "mstconfig"
    causes = {each.cause for each in bad}
    reset = f"`{RESETS.get(tool, RESETS['mstconfig'])} -d {request.card} -y reset` there (takes its links down)"
    if READ_ONLY in causes:
        return f"Remove the setting from rdma_firmware of {host}: it is read-only on this card (`{tool} -d {request.card} -e q` there)."
    if WRITE in causes:
        words = " ".join(each.word for each in bad if each.cause == WRITE)
        by_hand = f"`{tool} -y -d {request.card} set {words}` there"
        return f"1. Run the driver stage for {host} with `-e firmware_write_allowed=true`, or {by_hand}. 2. Reboot {host}, or run {reset}."
    if REBOOT in causes:
        return f"Reboot {host}, or run {reset}."
    return f"Run `{tool} -d {request.card} -e q` on {host}. The package mstflint has mstconfig."


def _version(host: str, intent: Intent, request: RailRequest, facts: Facts) -> Finding:
    versions = intent["firmware"]["versions"]
    device = facts.devices[request.rail.device] if request.rail.device is not None else None
    psid, seen = (device.board_id, device.firmware) if device is not None else (None, None)
    expected = versions.get(psid, "as requested") if psid is not None else "as requested"
    why = request.why or _no_version(request, versions, psid, device)
    if why:
        return Finding(STAGE, VERSION, host, request.rail.subject, NOT_APPLICABLE, why, expected)
    if psid is None or seen is None:
        what = "its PSID" if psid is None else "its version"
        path = f"/sys/class/infiniband/{request.rail.device}"
        remedy = f"On {host}, read fw_ver and board_id in {path}, or run `mstflint -d {request.card} q`."
        return Finding(STAGE, VERSION, host, request.rail.subject, UNKNOWN, f"{what} is not known", expected, remedy)
    if seen == expected:
        return Finding(STAGE, VERSION, host, request.rail.subject, OK, f"{seen} ({psid})", expected)
    remedy = (
        f"1. On {host}, burn it by hand: `mstflint -d {request.card} -i IMAGE burn` with the image for {psid}, or "
        f"`mlxfwmanager -d {request.card} -u`. The build never updates firmware. 2. Reboot {host}. "
        "3. If the version is right, correct rdma_firmware.versions."
    )
    return Finding(STAGE, VERSION, host, request.rail.subject, WARNING, f"{seen} ({psid})", expected, remedy)


def _no_version(request: RailRequest, versions: Mapping[str, str], psid: str | None, device: Device | None) -> str:
    """Why the firmware version of a rail's card is not checked; "" if it is."""
    if not versions:
        return "no version is requested"
    if device is None:
        return "no RDMA device to read it from: see driver.device"
    if not request.first:
        return f"reported at another rail of the same card: {request.card}"
    return f"no version is requested for {psid}" if psid is not None and psid not in versions else ""
