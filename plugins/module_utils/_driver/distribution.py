# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a host's distribution, and its installed packages for RDMA.

dpkg's database is read; RPM's is queried with rpm.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot, named

#: EVR is version-release, with a leading epoch if there is one: "48.0-1.el9", "1:2.3-4.el9".
ALL = ("rpm", "-qa", "--queryformat", r"%{NAME} %{EVR}\n")
_TIMEOUT_SECONDS = 60.0
_NAME, _VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}"), re.compile(r"[A-Za-z0-9()][A-Za-z0-9._+~^:()-]{0,199}")


def parse_rpm_packages(text: str) -> dict[str, str]:
    """Return the version of each package by its name, from the output of ALL (rpm 4.8 to 6.0); the first of several with one name counts.

    Raises ParseError for a line of another form, for a truncated last line, and without any package.
    """
    lines = text.split("\n")
    if lines[-1]:
        raise ParseError(f"the output of `rpm -qa` is cut off: {lines[-1]!r}")
    found: dict[str, str] = {}
    for line in lines[:-1]:
        name, blank, version = line.partition(" ")
        if not (blank and _NAME.fullmatch(name) and _VERSION.fullmatch(version)):
            raise ParseError(f"not a package of `rpm -qa`: {line!r}, expected the form 'rdma-core 48.0-1.el9'")
        found.setdefault(name, version)
    if not found:
        raise ParseError("`rpm -qa` names no package, expected lines of the form 'rdma-core 48.0-1.el9'")
    return found


def read_rpm_packages(runner: Runner) -> dict[str, str] | None:
    """Query the running system, once for all; None if there is no rpm, or if it cannot read its database."""
    try:
        done = runner.run(ALL, timeout_seconds=_TIMEOUT_SECONDS)
    except CommandError:
        return None
    return None if done.rc else parse_rpm_packages(done.stdout)


OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
DPKG_STATUS = "/var/lib/dpkg/status"
INSTALLED = "install ok installed"
HELD = "hold ok installed"
#: The last word of Status of a package whose installation did not end (dpkg(1)).
PARTIAL = frozenset({"half-installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending"})
DEBIAN, RPM = "debian", "rpm"
#: os-release's ID, or one of ID_LIKE → the package format.
FAMILIES = {"debian": DEBIAN, "ubuntu": DEBIAN, "centos": RPM, "fedora": RPM, "rhel": RPM, "suse": RPM}
#: The packages that the driver stage checks, with each family's names.
PACKAGES = {
    DEBIAN: ("ibverbs-utils", "infiniband-diags", "mstflint", "perftest", "rdma-core"),
    RPM: ("infiniband-diags", "libibverbs-utils", "mstflint", "perftest", "rdma-core"),
}
# The packages of MLNX_OFED and DOCA that show the stack and its version; DOCA's many libraries do not.
_VENDOR = re.compile(r"doca-(?!sdk-|samples).*|(?:kmod-)?mlnx-.*|ofed-scripts|(?:iser|isert|srp)-dkms|kmod-(?:iser|isert|srp)")
# Packages that install the next kernel, and its headers: linux-image-amd64, linux-generic-hwe-24.04; a kernel itself has its release in its
# name.
_KERNELS = re.compile(
    r"linux-(?:(?:image|headers)-)?[a-z][a-z0-9]*(?:-hwe-[0-9.]+)?|linux-(?:image|headers)-[a-z]+-[a-z0-9]+|kernel(?:-[a-z]+)*"
)
_NO_KERNELS = re.compile(
    r"linux-(?:base|firmware|libc-dev|perf|cpupower|source|tools.*|doc.*)|kernel-(?:tools.*|headers|srpm-macros|rpm-macros)"
)


@dataclass(frozen=True)
class Distribution:
    """os-release(5): id "debian", version_id "12", like: the ids of related distributions; packages: name → version, None if absent.

    vendor: name → version of the installed packages of MLNX_OFED and DOCA, by their own names. held: packages that dpkg does not upgrade;
    none on RPM's family, whose versionlock is not read. kernels: the installed packages that install newer kernels. family: "debian" or
    "rpm", the package format, None for another one. asked: of requested packages, name → version, None if absent. packages, vendor, held,
    kernels and asked are None if the package database cannot be read: the installed packages are then unknown.
    """

    id: str | None
    version_id: str | None
    like: list[str]
    packages: dict[str, str | None] | None
    vendor: dict[str, str] | None = None
    held: list[str] | None = None
    family: str | None = None
    kernels: list[str] | None = None
    asked: dict[str, str | None] | None = None


@dataclass(frozen=True)
class Dpkg:
    """versions: name → version of installed packages; held: those that dpkg holds; partial: versions of incomplete installations."""

    versions: dict[str, str]
    held: list[str]
    partial: dict[str, str] = field(default_factory=dict)


def parse_os_release(text: str) -> dict[str, str]:
    """Return the variables of os-release(5). Raises ParseError with a line that is not an assignment."""
    values = {}
    for line in lines_of(text):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.strip().partition("=")
        try:
            words = shlex.split(value)
        except ValueError as exc:
            raise ParseError(f"os-release: {exc} in {line!r}") from exc
        if not equals or len(words) > 1:
            raise ParseError(f"os-release: no assignment: {line!r}")
        values[name] = words[0] if words else ""
    return values


def parse_dpkg_status(text: str) -> Dpkg:
    """Return all installed packages (deb-control(5), dpkg's status file). One for several architectures counts once.

    A stanza without a required field is skipped: dpkg does not consider its package installed. Raises ParseError for a text without any.
    """
    if text.strip() and not f"\n{text}".count("\nPackage: "):
        raise ParseError(f"not dpkg's status file: {quoted(text)}, expected paragraphs that begin with 'Package: '")
    versions, partial, held = {}, {}, set()
    # Package is the first field that dpkg writes. The file is long: no regular expression.
    for stanza in f"\n\n{text}".split("\n\nPackage: ")[1:]:
        name = stanza.partition("\n")[0]
        status, version = _field(stanza, "Status"), _field(stanza, "Version")
        if status in (INSTALLED, HELD) and version:
            versions[name] = version
            if status == HELD:
                held.add(name)
        elif status.rpartition(" ")[2] in PARTIAL and version:
            partial[name] = version
    return Dpkg(versions, sorted(held), partial)


def _field(stanza: str, name: str) -> str:
    return stanza.partition(f"\n{name}: ")[2].partition("\n")[0]


def family_of(ids: Iterable[str]) -> str | None:
    """Return the package format, by os-release's ID and its related ids, in this order; None for an unknown one."""
    return next((FAMILIES[name] for name in ids if name in FAMILIES), None)


def read_distribution(sys: SysRoot, runner: Runner | None = None, asked: Sequence[str] = ()) -> Distribution:
    """Read os-release and, on Debian's family, dpkg's status file. asked: further packages to report.

    runner: that of the system that sys is the root of, for RPM's packages; without one they are unknown.
    """
    path, text = next(((path, text) for path in OS_RELEASE if (text := sys.read(path)) is not None), ("", None))
    release = named(path, parse_os_release, text) if text is not None else {}
    like = release.get("ID_LIKE", "").split()
    family = family_of([release.get("ID", ""), *like])
    status = sys.read(DPKG_STATUS) if family != RPM else None
    dpkg = named(DPKG_STATUS, parse_dpkg_status, status) if status is not None else None
    if family is None and dpkg is not None:
        family = DEBIAN
    rpm = read_rpm_packages(runner) if family == RPM and runner is not None else None
    versions = dpkg.versions if dpkg is not None else rpm
    return Distribution(
        id=release.get("ID"),
        version_id=release.get("VERSION_ID"),
        like=like,
        packages=_named(versions, family),
        vendor=_vendor(versions),
        held=dpkg.held if dpkg is not None else [] if family == RPM else None,
        family=family,
        kernels=sorted(filter(_brings_kernels, versions)) if versions is not None else None,
        asked={name: versions.get(name) for name in asked} if versions is not None else None,
    )


def _named(versions: Mapping[str, str] | None, family: str | None) -> dict[str, str | None] | None:
    if versions is None or family is None:
        return None
    return {name: versions.get(name) for name in PACKAGES[family]}


def _brings_kernels(name: str) -> bool:
    return _KERNELS.fullmatch(name) is not None and _NO_KERNELS.fullmatch(name) is None


def _vendor(versions: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if versions is None else {name: versions[name] for name in sorted(versions) if is_vendors(name)}


def is_vendors(name: str) -> bool:
    """Return whether a package is of MLNX_OFED or DOCA by its name."""
    return _VENDOR.fullmatch(name) is not None
