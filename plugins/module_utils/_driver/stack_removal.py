# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""List the packages that the removal of a driver stack removes, and the current users of the stack.

Sources: dpkg(1) (`--no-act --purge`), rpm(8) (`--erase --test`), `ofed_info` of MLNX_OFED and DOCA-OFED. Nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import (
    DPKG_STATUS,
    is_vendors,
    parse_dpkg_status,
    read_rpm_packages,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import CORE, PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import KERNELS_OWN, Module
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import OFED_INFO, Stack, read_stack
from ansible_collections.rdma.cluster.plugins.module_utils._driver.swap import unload_order
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, busy_words, read_load
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import DRIVER_MODULES, OFED_DRIVERS

_HEAD = re.compile(r"(?P<name>[A-Za-z][A-Za-z_]*(?:-[A-Za-z_]+)*)-(?P<version>[0-9][0-9.]*-[0-9][0-9A-Za-z.~+]*)\s*(?:\([^()]*\)\s*)?:")
_COMPONENT = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*:")
_RULE = re.compile(r"-{3,}")
# The two letters of `dpkg -l`: the wanted state, and the current one. Only the state i is installed; h is a held package.
_DPKG = re.compile(r"(?P<want>[uihrp])(?P<state>[ncHUFWti])(?P<error>R?)\s+(?P<name>\S+)(?:\s+(?P<version>\S+).*)?")
_RPM = re.compile(r"[A-Za-z][A-Za-z0-9_.+~-]*")
_ARCHITECTURE = re.compile(r"\.(?:noarch|x86_64|aarch64|ppc64le)$")


@dataclass(frozen=True)
class OfedInfo:
    """name: "MLNX_OFED_LINUX" | "OFED-internal" (DOCA-OFED) | …; version: "24.10-1.1.4.0".

    packages: each installed package with its version, None for a missing version (RPM based systems list only names); packages is None
    without a list (`ofed_info -s`).
    """

    name: str
    version: str
    packages: dict[str, str | None] | None


def parse_ofed_info(text: str) -> OfedInfo:
    """Parse the output. Raises ParseError for text of another kind, and for a truncated list, with the line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    heads = [(number, match) for number, match in enumerate(map(_HEAD.fullmatch, lines)) if match]
    if not heads:
        raise ParseError(f"no line like 'MLNX_OFED_LINUX-24.10-1.1.4.0:' in the output of ofed_info, which ends {lines[-1:]!r:.200}")
    number, head = heads[0]
    return OfedInfo(name=head["name"], version=head["version"], packages=_packages(lines[number + 1 :]))


def _packages(lines: list[str]) -> dict[str, str | None] | None:
    start = next((number for number, line in enumerate(lines) if line.startswith("Installed Packages:")), None)
    listed = [line for line in lines[start + 1 :] if not _RULE.fullmatch(line)] if start is not None else []
    if not listed and (start is not None or any(_COMPONENT.fullmatch(line) for line in lines)):
        raise ParseError(f"no installed packages in the output of ofed_info, which ends {quoted(lines[-1])}")
    if not listed:
        return None
    return dict(_dpkg(listed) if _DPKG.fullmatch(listed[0]) else _rpm(listed))


def _dpkg(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the packages in lines of `dpkg -l`; later lines do not belong to this tool."""
    for line in lines:
        match = _DPKG.fullmatch(line)
        if match is None:
            return
        if match["version"] is None:
            raise ParseError(f"a package without its version in the output of ofed_info: {quoted(line)}")
        if match["state"] == "i":
            yield match["name"].partition(":")[0], match["version"]


def _rpm(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    """Yield names of packages, in older versions with version and release: "ibacm-41mlnx1-OFED.4.6.0.4.1.46101.x86_64"."""
    for line in lines:
        if not _RPM.fullmatch(line):
            return
        name, *version = _ARCHITECTURE.sub("", line).rsplit("-", 2)
        if len(version) == 2 and "0" <= version[0][:1] <= "9":
            yield name, "-".join(version)
        else:
            yield line, None


COMPAT = "mlx_compat"
#: Modules that belong to a stack and are loaded again with it.
OWN = frozenset(
    {
        *(*CORE, COMPAT, "ib_ucm", "memtrack", "mlx4_en", "mlx5_dpll", "mlx5_fwctl", "mlx5_vdpa", "mlxdevm", "mlxfw"),
        *("rdma_rxe", "siw"),
        *DRIVER_MODULES,
    }
)
#: rdma-core loads them on any host with an RDMA device (its rdma.conf): they may be removed while they are unused.
UNUSED_MAY_GO = frozenset({"ib_iser", "ib_isert", "ib_srpt", "rpcrdma"})
#: Programs open this module's devices: its references are work, of any module's origin.
VERBS = "ib_uverbs"
USES = {"mount": "mounted", "nvme": "NVMe over RDMA", "iser": "iSCSI over RDMA"}
#: Packages of the distribution that MLNX_OFED's installer replaces with its own (Debian's family, then RPM's).
DISTRIBUTION_STACK = (
    *("rdma-core", "rdmacm-utils", "ibverbs-utils", "ibverbs-providers", "libibverbs1", "libibverbs-dev", "librdmacm1", "librdmacm1t64"),
    *(
        "librdmacm-dev",
        "libibumad3",
        "libibumad-dev",
        "libibmad5",
        "libibmad-dev",
        "libibnetdisc5",
        "libibnetdisc5t64",
        "ibacm",
        "srptools",
    ),
    *("infiniband-diags", "perftest", "mstflint", "opensm", "libopensm9", "libosmcomp5", "libosmvendor5", "ibutils", "libibdm1"),
    *("rdma-core-devel", "libibverbs", "libibverbs-utils", "librdmacm", "librdmacm-utils", "libibumad", "srp_daemon", "iwpmd"),
    *("python3-pyverbs", "opensm-libs"),
)
#: Removal.unread of a host on which no package would be removed, as far as its database shows.
NO_PACKAGE = "no installed package of the stack is known"
DPKG = ("/usr/bin/dpkg", "--no-act", "--purge", "--")
RPM_ERASE = ("/usr/bin/rpm", "--erase", "--test", "--")
_SECONDS = 120.0
#: The maximum length of a chain of packages that depend on each other.
_ROUNDS = 20
_DEPENDS = re.compile(r" (?P<name>[a-z0-9][a-z0-9+.-]*)(?::[a-z0-9]+)? depends on .+")
# Every other line of `dpkg --no-act --purge`: headings, the names in them, the planned actions, and the details of a dependency.
_DPKG_WORDS = re.compile(
    r"|dpkg: dependency problems prevent removal of .+:|  Package .+|  .+ (?:is to be removed|is not installed|provides .+)\.?"
    r"|dpkg: error processing package .+ \(--purge\):| dependency problems - not removing|Errors were encountered while processing:"
    r"| [a-z0-9][a-z0-9+.:-]*|dpkg: warning: .+|\(Reading database.*|Would remove or purge .+|(?:Removing|Purging) .+"
)
# <TAB>libibverbs.so.1()(64bit) is needed by (installed) qemu-kvm-core-17:7.2.0-14.el9.x86_64
_NEEDED = re.compile(r"\t.+ is needed by \(installed\) (?P<name>[A-Za-z0-9][\w.+-]*?)-(?:[0-9]+:)?[^-\s]+-[^-\s]+")
_RPM_WORDS = re.compile(r"|error: Failed dependencies:|warning: .+")


@dataclass(frozen=True)
class Removal:
    """packages: of the stack, name → version; dependants: other packages that depend on them and are also removed, name → version.

    in_use: the users of the stack, in words; unread: why the packages are unknown, None if they are known.
    """

    packages: dict[str, str] = field(default_factory=dict)
    dependants: dict[str, str] = field(default_factory=dict)
    in_use: list[str] = field(default_factory=list)
    unread: str | None = None


def parse_dpkg_purge(text: str) -> list[str]:
    """Return the packages that `dpkg --no-act --purge` names as depending on the ones to remove, each once.

    Raises ParseError with a line of another kind: then the package cannot be removed for another reason.
    """
    return _dependants(text, _DEPENDS, _DPKG_WORDS, "dpkg --no-act --purge")


def parse_rpm_erase(text: str) -> list[str]:
    """Return the packages that `rpm --erase --test` names as needing the ones to remove, once each. Raises ParseError, too."""
    return _dependants(text, _NEEDED, _RPM_WORDS, "rpm --erase --test")


def _dependants(text: str, names: re.Pattern[str], words: re.Pattern[str], program: str) -> list[str]:
    found: dict[str, None] = {}
    for line in text.splitlines():
        match = names.fullmatch(line)
        if match:
            found[match["name"]] = None
        elif not words.fullmatch(line):
            raise ParseError(f"not a line of `{program}` that names a dependency: {quoted(line)}")
    return list(found)


def read_removal(packages: Collection[str], sys: SysRoot, runner: Runner) -> Removal:
    """Return what the removal of a stack removes, and its users. packages: those in the facts; `ofed_info` adds its own.

    Nothing is raised: read failures are in unread, or in in_use.
    """
    in_use = read_uses(sys, runner)
    try:
        versions, partial = _versions(sys, runner)
        # No list of the stack names a package whose build failed.
        named = {each for each in {*packages, *_listed(sys, runner), *filter(is_vendors, partial)} if each in versions}
        if not named:
            return Removal(in_use=in_use, unread=NO_PACKAGE)
        more = _all_dependants(named, sys, runner)
    except (CommandError, ParseError, OSError) as error:
        return Removal(in_use=in_use, unread=str(error))
    return Removal(_sorted(named, versions), _sorted(more, versions), in_use)


def _sorted(names: Collection[str], versions: Mapping[str, str]) -> dict[str, str]:
    return {name: versions.get(name, "version unknown") for name in sorted(names)}


def _versions(sys: SysRoot, runner: Runner) -> tuple[Mapping[str, str], Collection[str]]:
    """Return the version of each package, and those of them whose installation did not end, which only dpkg has."""
    status = sys.read(DPKG_STATUS)
    if status is not None:
        dpkg = parse_dpkg_status(status)
        return {**dpkg.versions, **dpkg.partial}, dpkg.partial
    found = read_rpm_packages(runner)
    if found is None:
        raise ParseError("the package database cannot be read")
    return found, ()


def _listed(sys: SysRoot, runner: Runner) -> Collection[str]:
    """Return the packages of the stack by its own list."""
    if not sys.exists(OFED_INFO):
        return ()
    done = runner.run([OFED_INFO], timeout_seconds=_SECONDS)
    if done.rc:
        raise ParseError(f"`{OFED_INFO}` ended with {done.rc}: {done.stderr.strip()[:200]}")
    return parse_ofed_info(done.stdout).packages or ()


def _all_dependants(named: Collection[str], sys: SysRoot, runner: Runner) -> set[str]:
    """Return all dependent packages. Each round adds the packages that depend on those of the previous round, until none is left."""
    by_dpkg = sys.exists(DPKG_STATUS)
    argv, parse = (DPKG, parse_dpkg_purge) if by_dpkg else (RPM_ERASE, parse_rpm_erase)
    more: set[str] = set()
    for _round in range(_ROUNDS):
        done = runner.run([*argv, *sorted({*named, *more})], timeout_seconds=_SECONDS)
        new = set(parse(f"{done.stdout}\n{done.stderr}")) - {*named, *more}
        if not new:
            if done.rc:
                raise ParseError(f"`{argv[0]}` would not remove the packages: {done.stderr.strip()[-200:]}")
            return more
        more |= new
    raise ParseError(f"more than {_ROUNDS} levels of packages depend on the stack")


def read_uses(sys: SysRoot, runner: Runner) -> list[str]:
    """Return the current users of the stack, in words; a read failure counts as a use."""
    try:
        return stack_uses(read_stack(sys, runner), read_load(sys))
    except (CommandError, ParseError, OSError) as error:
        return [f"whether it is in use is unknown: {error}"]


def refuse_while_used(host: str, sys: SysRoot, runner: Runner, done: str = "installed") -> None:
    """Raise ApplyError if the stack is in use now. done: the action that then was not done. Unknown counts as in use."""
    in_use = read_uses(sys, runner)
    if in_use:
        raise ApplyError(f"Nothing was {done} on {host}: {'; '.join(in_use)}. Drain {host}, then run the driver stage again.")


def refuse_unless_safe(
    host: str, may_remove: Sequence[str] | None, sys: SysRoot, runner: Runner, *, replaced: Collection[str] | None = None
) -> None:
    """Raise ApplyError if the stack is in use now, or if its removal would remove packages that are not in may_remove (None: not checked).

    Called right before the change: a job may have started since the plan was made. replaced: the packages of the distribution that a first
    installation replaces; none of them must be installed.
    """
    refuse_while_used(host, sys, runner, "removed" if replaced is None else "installed")
    if may_remove is None:
        return
    now = read_removal({*may_remove, *(replaced or ())}, sys, runner)
    if replaced is not None and now.unread == NO_PACKAGE:
        return
    if now.unread is not None:
        raise ApplyError(f"Nothing was removed on {host}: {now.unread}.")
    others = sorted({*now.packages, *now.dependants} - set(may_remove))
    if others:
        raise ApplyError(
            f"Nothing was removed on {host}: {', '.join(others)} would also be removed, but the plan did not list it. "
            f"Run the driver stage with --check and review its list."
        )


def stack_uses(stack: Stack, load: Load | None) -> list[str]:
    """Return the users of an installed stack, in words: foreign modules on top of it, open devices, storage over RDMA, GPU processes, jobs.

    stack, load: of the facts. Unknown counts as in use. Modules of the kernel itself are ignored, except for open devices of verbs.
    """
    modules = stack.modules
    # OFED's core depends on mlx_compat, whose holders with_holders adds.
    base = [name for name in (*OFED_DRIVERS, *CORE, COMPAT) if name in modules and modules[name].provenance != KERNELS_OWN]
    touched = with_holders(base, modules)
    order = unload_order({name: holders_of(name, modules) for name in touched | ({VERBS} & set(modules))})
    found = [words for name in order for words in module_uses(name, order if name in touched else [], modules)]
    return [*found, *storage_uses(stack), *filter(None, [busy_words(load)])]


def storage_uses(stack: Stack) -> Iterator[str]:
    """Yield mounts, NVMe and iSCSI over RDMA, in words."""
    if stack.uses is None:
        yield "whether storage uses RDMA is unknown"
    yield from (f"{USES.get(use.kind, use.kind)}: {use.what}" for use in stack.uses or ())


def holders_of(name: str, modules: Mapping[str, Module]) -> list[str]:
    """Return the modules that depend on one; none for a module that is not loaded."""
    return modules[name].holders if name in modules else []


def with_holders(names: Collection[str], modules: Mapping[str, Module]) -> set[str]:
    """Return these modules and all that depend on them."""
    found, todo = set(names), list(names)
    while todo:
        above = set(holders_of(todo.pop(), modules)) - found
        found |= above
        todo += above
    return found


def module_uses(name: str, order: Sequence[str], modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield the reasons against unloading one module.

    Each module above it is one of its references; further ones are connections and open devices.
    """
    refcount = modules[name].refcount if name in modules else None
    below = ", ".join(other for other in order if name in holders_of(other, modules)) or "the driver"
    if name not in OWN | UNUSED_MAY_GO | set(PEERMEM_MODULES):
        yield f"{name} holds {below} (refcount {'unknown' if refcount is None else refcount}), and is not part of the stack"
    elif refcount is None:
        yield f"whether {name} is in use is unknown"
    elif refcount > len(holders_of(name, modules)):
        yield f"{name} is in use (refcount {refcount})"
