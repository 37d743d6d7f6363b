# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the preflight stage asks about kernels: whether the newest runs, and whether it takes modules built for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_dkms import is_relevant, lacks_headers
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

STAGE = "preflight"
INBOX = "inbox"
#: Where a module can come from beside the kernel of the distribution (stack.modules.NAME.provenance).
ADD_ONS = frozenset({"dkms", "extra"})
RPM_FAMILY = frozenset({"rhel", "fedora", "centos", "rocky"})
NEWEST_SUBJECT, HEADERS_SUBJECT, SECURE_BOOT_SUBJECT = "running kernel", "headers of the running kernel", "Secure Boot"


def check_kernels(host: str, intent: Mapping[str, Any], facts: Facts) -> list[Finding]:
    """Findings `preflight.newest`, `preflight.headers` and `preflight.secure_boot` of one host.

    An older kernel that runs lacks its headers where those of the newest have replaced them: then only `preflight.newest` is an error.
    """
    stack = facts["stack"]
    builds = builds_modules(intent, stack)
    return [_newest(host, stack, builds=builds), _headers(host, stack, builds=builds), _secure_boot(host, intent, stack)]


def planned_stack(intent: Mapping[str, Any]) -> str:
    """rdma_driver.stack: "inbox", "doca", …"""
    return str((intent.get("driver") or {}).get("stack") or INBOX)


def builds_modules(intent: Mapping[str, Any], stack: Mapping[str, Any]) -> bool:
    """Whether modules that RDMA or a GPU needs are built for the kernels of a host, or shall be."""
    return any(is_relevant(str(entry["name"])) for entry in stack.get("dkms") or ()) or planned_stack(intent) != INBOX


def _newest(host: str, stack: Mapping[str, Any], *, builds: bool) -> Finding:
    kernel, newest, installed = stack.get("kernel"), stack.get("newest"), stack.get("kernels") or []
    expected = "the newest of its flavour that is installed"
    if kernel is None or not installed:
        why = "no kernel is installed here that it could be compared with" if kernel else "preflight.kernel says that it is not known"
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, NOT_APPLICABLE, why, expected)
    if kernel == newest or (newest is None and kernel in installed):
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, OK, kernel, expected)
    there = f"{newest} is the newest of its flavour" if newest else f"there are {', '.join(installed[-3:])}"
    observed = f"{kernel} runs; {there}" if kernel in installed else f"{kernel} runs and is not installed; {there}"
    todo = f"Reboot {host} into {newest}, or remove it" if kernel in installed else f"Reboot {host} into a kernel that is installed"
    why = "modules are built for one kernel, and the next boot takes another" if builds else "the next boot takes another than this one"
    return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, ERROR if builds else WARNING, observed, expected, f"{todo}: {why}.")


def _headers(host: str, stack: Mapping[str, Any], *, builds: bool) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "preflight.headers", host, HEADERS_SUBJECT, status, observed, "there, to build modules for it", remedy)

    kernel, newest, headers = stack.get("kernel"), stack.get("newest"), stack.get("headers")
    if not builds:
        return finding(NOT_APPLICABLE, "nothing is built for it: the stack is inbox, and DKMS has no module that RDMA or a GPU needs")
    if kernel is None:
        return finding(NOT_APPLICABLE, "preflight.kernel says that it is not known which one runs")
    if headers is None:
        return finding(UNKNOWN, "not read", f"Look at /lib/modules/{kernel}/build on {host}.")
    if not lacks_headers(stack):
        return finding(OK, f"/lib/modules/{kernel}/build")
    if newest not in {None, kernel} and headers.get(newest):
        return finding(NOT_APPLICABLE, f"those of {newest} are there: preflight.newest says to reboot into it")
    package = headers_package(kernel, stack.get("distribution") or {})
    return finding(ERROR, f"nothing at /lib/modules/{kernel}/build", f"Install {package} on {host}.")


def headers_package(kernel: str, distribution: Mapping[str, Any]) -> str:
    """The package with the headers of a release of `uname -r`; the kernels of RHEL's variants are named "5.14.0-427.el9.x86_64+rt"."""
    names = {distribution.get("id"), *(distribution.get("like") or [])}
    if names & RPM_FAMILY:
        release, plus, variant = kernel.partition("+")
        return f"kernel-{variant}-devel-{release}" if plus else f"kernel-devel-{release}"
    return f"linux-headers-{kernel}"


def _secure_boot(host: str, intent: Mapping[str, Any], stack: Mapping[str, Any]) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "preflight.secure_boot", host, SECURE_BOOT_SUBJECT, status, observed, "no obstacle to the driver", remedy)

    if stack.get("secure_boot") is None:
        return finding(NOT_APPLICABLE, "not told: no EFI, or a container")
    if not stack["secure_boot"]:
        return finding(OK, "off")
    if not builds_modules(intent, stack):
        return finding(OK, "on; the modules of the kernel are signed by the distribution")
    built = {name: module for name, module in (stack.get("modules") or {}).items() if module.get("provenance") in ADD_ONS}
    unsigned = sorted(name for name, module in built.items() if module.get("signer") is None)
    if unsigned:
        return finding(ERROR, f"on, and nobody has signed {', '.join(unsigned)}", _enrol(host))
    if not built and planned_stack(intent) != INBOX:
        return finding(WARNING, f"on; what {planned_stack(intent)} builds will have to be signed", _enrol(host))
    return finding(OK, f"on; {len(built)} modules that do not come with the kernel are signed")


def _enrol(host: str) -> str:
    return (
        f"Enrol the key that DKMS signs with on {host}: `mokutil --import /var/lib/dkms/mok.pub` (Ubuntu: "
        "/var/lib/shim-signed/mok/MOK.der), reboot, confirm it on the console, build the modules again; or switch Secure Boot off."
    )
