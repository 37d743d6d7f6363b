# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage asks of limits beside locked memory: open files, shared memory of users, services that run already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_host import login_remedy, place, service_remedy
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._login_limits import UNLIMITED
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

STAGE = "host"
SERVICE_SUBJECT = "files that a service may have open"
LOGINS = {"*": "any user", "root": "root"}
IPC_SUBJECT = "shared memory of users who have logged out"


def check_limits(host: str, intent: Mapping[str, Any], facts: Facts) -> list[Finding]:
    """Findings `host.files`, `host.ipc`, and `host.services`, one for each service that starts jobs."""
    limits = facts.get("limits") or {}
    return [*_open_files(host, intent["host"]["open_files"], limits), _ipc(host, intent, limits), *_services(host, intent, limits)]


def _open_files(host: str, wished: int, limits: Facts) -> list[Finding]:
    if not wished:
        why = "rdma_host.open_files is 0: the limit is left as it is"
        return [Finding(STAGE, "host.files", host, SERVICE_SUBJECT, NOT_APPLICABLE, why, "any")]
    logins = limits.get("login_open_files") or {}
    return [_service_files(host, wished, limits), *(_login_files(host, wished, who, logins.get(who)) for who in LOGINS)]


def _service_files(host: str, wished: int, limits: Facts) -> Finding:
    seen = limits.get("service_open_files")
    if seen is None:
        remedy = f"See on {host} whether `systemd-run --wait --pipe cat /proc/self/limits` works."
        return Finding(STAGE, "host.files", host, SERVICE_SUBJECT, UNKNOWN, "no service could be asked", f"{wished} at least", remedy)
    source = (limits.get("service_sources") or {}).get("nofile")
    remedy = "" if seen >= wished else service_remedy(host, source)
    return Finding(STAGE, "host.files", host, SERVICE_SUBJECT, ERROR if remedy else OK, str(seen), f"{wished} at least", remedy)


def _login_files(host: str, wished: int, who: str, seen: Mapping[str, Any] | None) -> Finding:
    subject, expected = f"files that a login of {LOGINS[who]} may have open", f"{wished} at least"
    if seen is None:
        todo = f"Run the host stage for {host}."
        return Finding(STAGE, "host.files", host, subject, ERROR, "no file says it: the kernel's default", expected, todo)
    good = seen["unlimited"] or (seen["value"].isdecimal() and int(seen["value"]) >= wished)
    remedy = "" if good else login_remedy(host, seen)
    return Finding(STAGE, "host.files", host, subject, OK if good else ERROR, f"{seen['value']} by {place(seen)}", expected, remedy)


def _ipc(host: str, intent: Mapping[str, Any], limits: Facts) -> Finding:
    if not intent["host"]["keep_ipc"]:
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, NOT_APPLICABLE, "rdma_host.keep_ipc is false: logind is left as it is", "any")
    removed = limits.get("remove_ipc")
    if removed is None and ("remove_ipc" not in limits or limits.get("logind")):
        look = f"Run `busctl introspect org.freedesktop.login1 /org/freedesktop/login1 | grep RemoveIPC` on {host}."
        words = "logind runs, and did not answer" if "remove_ipc" in limits else "logind was not asked"
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, UNKNOWN, words, "kept", look)
    if removed is None:
        return Finding(STAGE, "host.ipc", host, IPC_SUBJECT, NOT_APPLICABLE, "no logind runs here that could remove it", "kept")
    remedy = f"Run the host stage for {host}; `systemd-analyze cat-config systemd/logind.conf` there names a later file." if removed else ""
    return Finding(
        STAGE, "host.ipc", host, IPC_SUBJECT, ERROR if removed else OK, "removed by logind" if removed else "kept", "kept", remedy
    )


def _services(host: str, intent: Mapping[str, Any], limits: Facts) -> list[Finding]:
    expected = "unlimited, as for services that start now"
    running = limits.get("running")
    if running is None and intent["host"]["memlock_unlimited"]:
        look = f"Run `systemctl list-units --type service --state running` on {host}."
        return [Finding(STAGE, "host.services", host, "services that run", UNKNOWN, "running services were not read", expected, look)]
    if not intent["host"]["memlock_unlimited"] or not running:
        why = "rdma_host.memlock_unlimited is false: the limit is left as it is" if running else "no service that starts jobs runs here"
        return [Finding(STAGE, "host.services", host, "services that run", NOT_APPLICABLE, why, expected)]
    return [_service(host, unit, seen, expected) for unit, seen in sorted(running.items())]


def _service(host: str, unit: str, seen: Mapping[str, Any], expected: str) -> Finding:
    """A warning: nothing is wrong with the configuration, and a restart ends what the service has started."""
    subject = f"memory that {unit} may lock"
    if seen["memlock"]["unlimited"]:
        return Finding(STAGE, "host.services", host, subject, OK, "unlimited", expected)
    source = seen.get("source")
    observed = f"{seen['memlock']['bytes']} bytes (process {seen['pid']})"
    if source is not None and source["value"] not in UNLIMITED:
        observed += f" by {place(source)}"
        remedy = (
            f"1. On {host}, remove {place(source)} and run `systemctl daemon-reload`. 2. Drain {host}, then `systemctl restart {unit}`."
        )
    else:
        remedy = f"Drain {host} and run `systemctl restart {unit}` there: it started before the limit was lifted."
    return Finding(STAGE, "host.services", host, subject, WARNING, observed, expected, remedy)
