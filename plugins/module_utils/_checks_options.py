# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the driver stage asks of the options of kernel modules: what is planned holds in the modules that are loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._module_parameters import parse_options, same_value
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

STAGE = "driver"
OPTION = "driver.option"


def module_options(intent: Mapping[str, Any]) -> dict[str, str]:
    """rdma_driver.module_options, a module's name spelled as the kernel does."""
    planned: Mapping[str, str] = (intent.get("driver") or {}).get("module_options") or {}
    return {name.replace("-", "_"): text for name, text in planned.items()}


def check_options(host: str, intent: Mapping[str, Any], facts: Facts) -> list[Finding]:
    """Finding `driver.option` for each planned option of a kernel module of one host; none where none is planned."""
    parameters = facts.get("module_parameters")
    findings: list[Finding] = []
    for module, text in sorted(module_options(intent).items()):
        try:
            wished = parse_options(text)
        except ParseError as error:
            remedy = f"Correct rdma_driver.module_options of {host}."
            findings.append(Finding(STAGE, OPTION, host, f"kernel module {module}", ERROR, str(error), "options", remedy))
            continue
        findings += _of_module(host, module, wished, None if parameters is None else parameters.get(module, {}), facts)
    return findings


def _of_module(
    host: str, module: str, wished: Mapping[str, str | None], shown: Mapping[str, str] | None, facts: Facts
) -> Iterator[Finding]:
    for name, value in wished.items():
        subject, expected = f"{module}.{name}", "on" if value is None else value
        if shown is None or name not in shown:
            status = UNKNOWN if shown is None else NOT_APPLICABLE
            look = f"Run `grep -r . /sys/module/{module}/parameters` on {host}." if shown is None else ""
            yield Finding(STAGE, OPTION, host, subject, status, _why_unknown(module, name, facts, told=shown is not None), expected, look)
        elif same_value(value, shown[name]):
            yield Finding(STAGE, OPTION, host, subject, OK, shown[name], expected)
        else:
            yield Finding(STAGE, OPTION, host, subject, ERROR, shown[name] or "empty", expected, _remedy(host, module))


def _why_unknown(module: str, name: str, facts: Facts, *, told: bool) -> str:
    if not told:
        return "the facts do not tell the parameters of modules"
    if module not in facts["stack"]["modules"]:
        return f"{module} is not loaded, or is no module that is looked at"
    return f"{module} does not show {name}: see `modinfo -p {module}` whether it has one"


def _remedy(host: str, module: str) -> str:
    return (
        f"A module takes its options when it is loaded: reload {module} on {host}, or reboot it. If it is the same after that, see "
        f"`modprobe --showconfig | grep 'options {module} '` there, and build the initramfs again (`update-initramfs -u`, `dracut -f`)."
    )
