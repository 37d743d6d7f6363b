# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the driver gate: the planned driver is also built for every kernel that the host could boot next."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import OFED
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernels import flavor, version_key
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import DRIVER, ofed_state
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import INBOX, is_kept, planned_modules
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import build_steps, dkms_versions, lacks_planned
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

declare(
    {
        "driver.next_kernel": Check(
            "driver",
            "whether the planned stack is also built for every kernel that the host could boot next",
            "`/var/lib/dkms`, `/lib/modules`",
            "install the headers of that kernel and run `dkms autoinstall -k RELEASE`, or remove the kernel",
            sources=(
                reads.KERNELS,
                reads.DKMS,
                reads.file("/lib/modules/*/modules.dep", absent_means="DKMS lists what it has built for the kernel"),
                reads.RELEASE,
                reads.file("/usr/bin/ofed_info", absent_means="OFED is not installed"),
            ),
        ),
    }
)

STAGE, SUBJECT = "driver", "kernels that a reboot may bring"


def check_next_kernel(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Finding `driver.next_kernel` of one host. `driver.dkms` and `driver.stack` check the running kernel."""
    stack, planned = stack_of(facts), planned_modules(intent)
    expected = f"the modules of {planned} installed for each newer kernel" if planned != INBOX else "no module to build for them"
    found = _not_asked(stack, planned, kept=is_kept(intent)) or _judged(host, intent, stack, next_kernels(stack))
    return [Finding(STAGE, "driver.next_kernel", host, SUBJECT, found[0], found[1], expected, "".join(found[2:]))]


def _not_asked(stack: Stack, planned: str, *, kept: bool) -> tuple[str, ...]:
    if planned == INBOX:
        return NOT_APPLICABLE, "each kernel has its own modules"
    if stack.kernel is None or not stack.kernels:
        return NOT_APPLICABLE, "no bootable kernel is installed here"
    if not next_kernels(stack):
        return OK, f"none is newer than {stack.kernel}"
    absent = not kept and ofed_state(stack).stack is None
    return (NOT_APPLICABLE, f"{planned} is not installed: see driver.stack") if absent else ()


def _judged(host: str, intent: Intent, stack: Stack, kernels: list[str]) -> tuple[str, ...]:
    if not any(entry.name in OFED for entry in stack.dkms) and not set(kernels) <= set(stack.driver_files or {}):
        todo = f"Run `modinfo -k {kernels[-1]} -F filename {DRIVER}` on {host}."
        return UNKNOWN, f"not in DKMS, so it is not known which driver {', '.join(kernels)} would load", todo
    versions, running = {kernel: dkms_versions(stack, kernel) for kernel in kernels}, dkms_versions(stack, stack.kernel)
    lacking = [kernel for kernel in kernels if lacks_planned(intent, stack, kernel)]
    if lacking:
        return ERROR, f"a reboot into {', '.join(lacking)} would load the stock {DRIVER}", build_steps(host, lacking, stack)
    other = [kernel for kernel in kernels if running and versions[kernel] and not versions[kernel] & running]
    if other:
        seen = f"a reboot into {other[0]} would load {DRIVER} {', '.join(sorted(versions[other[0]]))}, not {', '.join(sorted(running))}"
        return ERROR, seen, build_steps(host, other, stack)
    return OK, f"also installed for {', '.join(kernels)}"


def next_kernels(stack: Stack) -> list[str]:
    """The newer installed kernels of the running kernel's flavor, and the newest one if another runs; oldest first."""
    kernel = stack.kernel
    if kernel is None:
        return []
    alike = [each for each in stack.kernels if flavor(each) == flavor(kernel)]
    found = {each for each in alike if version_key(each) > version_key(kernel)}
    return sorted(found if stack.newest is None or stack.newest == kernel else {*found, stack.newest}, key=version_key)
