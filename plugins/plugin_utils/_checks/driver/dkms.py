# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the driver gate on DKMS: each module that RDMA or GPUs need is installed for the running kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import BROKEN, INSTALLED, OFED, ON_OFED, DkmsModule, is_relevant
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

declare(
    {
        "driver.dkms": Check(
            "driver",
            "each DKMS module that RDMA or a GPU needs: whether it is installed for the running kernel",
            "`/var/lib/dkms`",
            "`dkms install`; if that fails, read `/var/lib/dkms/NAME/VERSION/build/make.log`",
            sources=(reads.DKMS, reads.RELEASE),
        ),
    }
)

STAGE = "driver"


@dataclass(frozen=True)
class Missing:
    """A DKMS module that is not installed for the running kernel. elsewhere: the kernels that it is installed for;
    state: its DKMS state for the running kernel, None if nothing was built; "broken" if its source is missing."""

    name: str
    version: str
    state: str | None
    elsewhere: tuple[str, ...]

    @property
    def words(self) -> str:
        if self.state == BROKEN:
            return f"{self.name}/{self.version} is broken: its source is missing"
        if self.state is not None:
            return f"{self.name}/{self.version} is only {self.state}"
        where = f"installed only for {', '.join(self.elsewhere)}" if self.elsewhere else "added, but not built for any kernel"
        return f"{self.name}/{self.version} is {where}"


def check_dkms(host: str, facts: Facts, *, stack_judged: bool = False) -> list[Finding]:
    """Findings `driver.dkms` of one host: one for each cause of missing modules, or one in all if none is missing.

    stack_judged: driver.stack reports OFED's own modules if the kernel's modules are loaded instead.
    A cause is reported once: modules that build on OFED's are named with them; modules that DKMS built only for other kernels are one
    finding; missing headers are the finding `preflight.headers`.
    """
    stack = stack_of(facts)
    names, kernel = sorted({entry.name for entry in stack.dkms if is_relevant(entry.name)}), stack.kernel
    expected = f"installed for {kernel}"
    if not names or kernel is None:
        why = "no module that RDMA or a GPU needs is registered" if not names else "the running kernel is not known: see preflight.kernel"
        return [Finding(STAGE, "driver.dkms", host, "DKMS modules", NOT_APPLICABLE, why, expected)]
    lacking = missing(stack)
    if lacking and lacks_headers(stack):
        why = f"{lacking[0].words}: kernel headers are missing, see preflight.headers"
        return [Finding(STAGE, "driver.dkms", host, "DKMS modules", NOT_APPLICABLE, why, expected)]
    if not lacking:
        return [Finding(STAGE, "driver.dkms", host, "DKMS modules", OK, f"{', '.join(names)} installed", expected)]
    causes = [cause for cause in _causes(lacking) if not (stack_judged and cause[0].name in OFED)]
    if not causes:
        return [Finding(STAGE, "driver.dkms", host, "DKMS modules", NOT_APPLICABLE, f"{lacking[0].words}: see driver.stack", expected)]
    return [_finding(host, cause, kernel) for cause in causes]


def lacks_headers(stack: Stack) -> bool:
    """Whether the headers of the running kernel are known to be missing."""
    return stack.kernel is not None and not stack.headers.get(stack.kernel)


def missing(stack: Stack) -> list[Missing]:
    """The relevant modules of stack.dkms that are not installed for stack.kernel, in any of their versions."""
    entries: dict[str, list[DkmsModule]] = defaultdict(list)
    for entry in stack.dkms:
        if is_relevant(entry.name):
            entries[entry.name].append(entry)
    found = (_missing(name, own, stack.kernel) for name, own in sorted(entries.items()))
    return [each for each in found if each is not None]


def _missing(name: str, entries: Sequence[DkmsModule], kernel: str | None) -> Missing | None:
    here = [entry for entry in entries if kernel is not None and entry.kernel == kernel]
    if any(_is_installed(entry) for entry in here):
        return None
    elsewhere = sorted({entry.kernel for entry in entries if _is_installed(entry) and entry.kernel is not None})
    last = (here or entries)[-1]
    certain = here or last.state == BROKEN
    return Missing(name, last.version, last.state if certain else None, tuple(elsewhere))


def _is_installed(entry: DkmsModule) -> bool:
    return entry.state.startswith(INSTALLED)


def _causes(lacking: Sequence[Missing]) -> Iterator[list[Missing]]:
    """Groups of modules that are missing for the same reason, the module to build first at the front."""
    lacking = sorted(lacking, key=lambda each: each.name not in OFED)
    untried = [each for each in lacking if each.state is None and each.elsewhere]
    if untried:
        yield untried
    rest = [each for each in lacking if each not in untried]
    base = [each for each in rest if each.name in OFED]
    on_it = [each for each in rest if base and each.name in ON_OFED]
    if base:
        yield [*base, *on_it]
    yield from ([each] for each in rest if each not in base and each not in on_it)


def _finding(host: str, cause: Sequence[Missing], kernel: str) -> Finding:
    first, others = cause[0], [each.name for each in cause[1:]]
    build = f"`dkms autoinstall -k {kernel}`" if others else f"`dkms install {first.name}/{first.version} -k {kernel}`"
    again = f"Install the package of {first.name} again. " if first.state == BROKEN else ""
    return Finding(
        STAGE, "driver.dkms", host, f"DKMS module {first.name}", ERROR,
        observed=first.words + (f"; likewise {', '.join(others)}" if others else ""),
        expected=f"installed for {kernel}",
        remedy=f"{again}On {host}, run {build}. If it fails, read `/var/lib/dkms/{first.name}/{first.version}/build/make.log` there.",
    )  # fmt: skip
