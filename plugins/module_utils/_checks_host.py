# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage asks of a host: the memory that services may lock, and kernel settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._sysctl import FILE, remedy

STAGE = "host"
MEMLOCK_SUBJECT = "memory that a service may lock"
#: Whose logins are looked at, as limits.conf names them.
LOGINS = {"*": "any user", "root": "root"}


def check_host(host: str, intent: Mapping[str, Any], facts: Facts, settings: Mapping[str, str]) -> list[Finding]:
    """Finding `host.memlock`, and `host.sysctl` for each setting: key → value, live and after a boot."""
    if not settings:
        why = "the intent asks for no kernel setting"
        return [*_memlock(host, intent, facts), Finding(STAGE, "host.sysctl", host, "kernel settings", NOT_APPLICABLE, why, "none")]
    return [*_memlock(host, intent, facts), *(_setting(host, key, value, facts) for key, value in settings.items())]


def _memlock(host: str, intent: Mapping[str, Any], facts: Facts) -> list[Finding]:
    if not intent["host"]["memlock_unlimited"]:
        why = "rdma_host.memlock_unlimited is false: the limit is left as it is"
        return [Finding(STAGE, "host.memlock", host, MEMLOCK_SUBJECT, NOT_APPLICABLE, why, "any")]
    limits = facts.get("limits") or {}
    logins = limits.get("login_memlock") or {}
    return [_service_memlock(host, limits.get("service_memlock")), *(_login_memlock(host, who, logins.get(who)) for who in LOGINS)]


def _login_memlock(host: str, who: str, seen: Mapping[str, Any] | None) -> Finding:
    subject = f"memory that a login of {LOGINS[who]} may lock"
    if seen is None:
        todo = f"Run the host stage for {host}."
        return Finding(STAGE, "host.memlock", host, subject, ERROR, "no file says it: the kernel's default", "unlimited", todo)
    good = seen["unlimited"]
    return Finding(
        STAGE, "host.memlock", host, subject, OK if good else ERROR,
        observed="unlimited" if good else f"{seen['value']} KiB by {seen['file']}",
        expected="unlimited",
        remedy="" if good else f"Take the line out of {seen['file']} on {host}: it comes after ours and wins. Then log in anew.",
    )  # fmt: skip


def _service_memlock(host: str, seen: Mapping[str, Any] | None) -> Finding:
    if seen is None:
        return Finding(
            STAGE, "host.memlock", host, MEMLOCK_SUBJECT, UNKNOWN, "no service could be asked", "unlimited",
            f"See on {host} whether `systemd-run --wait --pipe cat /proc/self/limits` works.",
        )  # fmt: skip
    good = seen["unlimited"]
    return Finding(
        STAGE, "host.memlock", host, MEMLOCK_SUBJECT, OK if good else ERROR,
        observed="unlimited" if good else f"{seen['bytes']} bytes",
        expected="unlimited",
        remedy="" if good else f"Run the host stage for {host}, and restart the services there that start jobs: they keep theirs.",
    )  # fmt: skip


def _setting(host: str, key: str, value: str, facts: Facts) -> Finding:
    expected = f"{value}, live and after a boot"
    seen = facts.get("sysctl") or {}
    live, boot = seen.get("live") or {}, seen.get("boot") or {}
    if key not in live or key not in boot:
        return Finding(STAGE, "host.sysctl", host, key, UNKNOWN, "not read", expected, f"Read the facts of {host} again.")
    observed = f"live {live[key] or 'no such key'}, after a boot {_boot_words(boot[key])}"
    todo = _todo(host, key, value, live[key], boot[key])
    return Finding(STAGE, "host.sysctl", host, key, ERROR if todo else OK, observed, expected, todo)


def _boot_words(boot: Mapping[str, str] | None) -> str:
    return f"{boot['value']} ({boot['file']})" if boot is not None else "not set by any file"


def _todo(host: str, key: str, value: str, live: str | None, boot: Mapping[str, str] | None) -> str:
    """What to do about a setting; "" if it is as it should be."""
    if live is None:
        return f"Correct {key} in rdma_host.sysctl, or load the kernel module on {host} that brings it."
    if boot is not None and boot["value"] != value and not boot["file"].startswith("/etc/"):
        return f"On {host}, {remedy(boot['file'])}."
    if boot is not None and boot["value"] != value and boot["file"] != FILE:
        return f"Run the host stage for {host}: it takes the key out of {boot['file']}."
    return f"Run the host stage for {host}." if boot is None or boot["value"] != value or live != value else ""
