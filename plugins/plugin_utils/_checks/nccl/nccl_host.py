# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the nccl gate on installed software: the version of NCCL, packages, nccl-tests, and the topology file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import request_id
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.installed import LIBRARY, STAMP
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import STAGE

declare(
    {
        "nccl.lint": Check(
            "nccl",
            "every variable in NCCL's files: whether it is known, has a valid value, and agrees with the others and the host",
            "`/etc/nccl.conf`, root's `.nccl.conf`, the environment file",
            "correct it in the intent or file that the finding names; `rdma.cluster.nccl_lint` also reads users' files and services",
            sources=(reads.but(reads.NCCL_FILE, garbled_means="NCCL ignores such lines too, and nccl.file reports the different file"),),
        ),
        "nccl.topology": Check(
            "nccl",
            "the file that `NCCL_TOPO_FILE` names",
            "whether the file exists",
            "copy the file to the host, or remove `topology_file`",
            sources=(reads.entry("/etc/nccl-topology.xml", absent_means="the file that a variable names is missing, which is an error"),),
        ),
        "nccl.version": Check(
            "nccl",
            "the host's NCCL against `rdma_nccl.version`; not the copies in frameworks",
            "the name of the target of `libnccl.so.2`",
            "install that version, or correct `rdma_nccl.version`",
            sources=(reads.LIBNCCL,),
        ),
        "nccl.install": Check(
            "nccl",
            "each package of `rdma_nccl.install`, and nccl-tests",
            "the package database; the collection's record in `/var/lib/rdma-cluster/nccl-tests.json`",
            "run the nccl stage",
            sources=(
                reads.but(reads.PACKAGES_OF, about="package *"),
                reads.but(reads.DPKG, about="package *"),
                reads.but(reads.RPM, about="package *"),
                reads.but(reads.STAMP, about="nccl-tests"),
            ),
        ),
    }
)

#: The part rdma_nccl of the normalized intent.
Nccl = Mapping[str, Any]
READ_AGAIN = "Read the facts of {host} with all subsets."


def check_version(host: str, nccl: Nccl, facts: Facts) -> list[Finding]:
    """Finding `nccl.version`: the host's NCCL library has the version of rdma_nccl.version.

    A host without the library is not applicable, unless the intent installs it, since frameworks bring their own.
    """
    there, wanted = facts.nccl, nccl["version"]
    expected = f"NCCL {wanted}" if wanted else "any version"
    if there is None and wanted is not None:
        verdict = (UNKNOWN, "the facts do not contain the NCCL version", READ_AGAIN.format(host=host))
    elif there is None:
        verdict = (NOT_APPLICABLE, "rdma_nccl.version is not set", "")
    elif there.library is None:
        verdict = _without_library(host, nccl)
    else:
        verdict = _of_library(host, wanted, there.library, there.version)
    return [Finding(STAGE, "nccl.version", host, LIBRARY, verdict[0], verdict[1], expected, verdict[2])]


def _without_library(host: str, nccl: Nccl) -> tuple[str, str, str]:
    """Status, observed and remedy on a host without the library."""
    if nccl["version"] is None or not any(name.startswith("libnccl") for name in nccl["install"]["packages"]):
        return NOT_APPLICABLE, f"the host has no {LIBRARY}; frameworks bring their own", ""
    return ERROR, f"the host has no {LIBRARY}", f"1. Run the nccl stage for {host}. 2. Check `ldconfig -p | grep nccl` there."


def _of_library(host: str, wanted: str | None, library: str, version: str | None) -> tuple[str, str, str]:
    seen = f"{version} ({library})" if version else f"{library}, whose name contains no version"
    if wanted is None:
        return NOT_APPLICABLE, f"rdma_nccl.version is not set; the host has {seen}", ""
    if version is None:
        return UNKNOWN, seen, f"1. On {host}, run `strings {library} | grep 'NCCL version'`. 2. Install NCCL from a package."
    if _is_version(version, wanted):
        return OK, seen, ""
    return (
        ERROR,
        seen,
        f"Install NCCL {wanted} on {host} (rdma_nccl.install, or `apt-cache policy libnccl2`), or correct rdma_nccl.version.",
    )


def _is_version(version: str, wanted: str) -> bool:
    """Whether a version equals the wanted one or belongs to it: "2.30.7" matches "2.30.7" and "2.30"."""
    return version == wanted or version.startswith(f"{wanted}.")


def packages_to_install(nccl: Nccl, facts: Facts) -> list[str]:
    """The packages of rdma_nccl.install that a host lacks in the requested version; all if the facts do not contain them."""
    installed = _installed(facts)
    wanted = nccl["install"]["packages"]
    return [name for name, package in wanted.items() if installed is None or not _has(installed.get(name), package["version"])]


def nccl_tests_due(nccl: Nccl, facts: Facts) -> bool:
    """Whether planned nccl-tests are missing or different, or not in the facts; False if the record could not be read."""
    there = facts.nccl
    if there and there.tests_unread:
        return False
    tests = nccl["install"]["tests"]
    return tests is not None and (there is None or there.tests is None or there.tests.order != request_id(tests))


def _installed(facts: Facts) -> Mapping[str, str | None] | None:
    return facts.stack.distribution.asked if facts.stack else None


def _has(installed: str | None, wanted: str | None) -> bool:
    return installed is not None and wanted in (None, installed)


def check_install(host: str, nccl: Nccl, facts: Facts) -> list[Finding]:
    """Findings `nccl.install`: each package of rdma_nccl.install, and nccl-tests."""
    found = [*_packages(host, nccl, facts), *_tests(host, nccl, facts)]
    if found:
        return found
    why = "rdma_nccl.install names nothing"
    return [Finding(STAGE, "nccl.install", host, "NCCL", NOT_APPLICABLE, why, "what rdma_nccl.install names")]


def _packages(host: str, nccl: Nccl, facts: Facts) -> Iterator[Finding]:
    installed, missing = _installed(facts), set(packages_to_install(nccl, facts))
    for name, package in nccl["install"]["packages"].items():
        subject, expected = f"package {name}", package["version"] or "installed"
        if installed is None:
            why = "the package database was not read"
            yield Finding(STAGE, "nccl.install", host, subject, UNKNOWN, why, expected, READ_AGAIN.format(host=host))
            continue
        seen = installed.get(name) or "not installed"
        remedy = f"1. Run the nccl stage for {host}. 2. If it fails, check the repositories: `apt-cache policy {name}`, `dnf list {name}`."
        status = ERROR if name in missing else OK
        yield Finding(STAGE, "nccl.install", host, subject, status, seen, expected, remedy if name in missing else "")


def _tests(host: str, nccl: Nccl, facts: Facts) -> Iterator[Finding]:
    tests = nccl["install"]["tests"]
    if tests is None:
        return
    expected = f"{tests['version']} in {tests['folder']}"
    there = facts.nccl
    seen = f"{there.tests.version} in {there.tests.folder}" if there and there.tests else "not installed by this collection"
    if there is None:
        why = "the facts do not contain it"
        yield Finding(STAGE, "nccl.install", host, "nccl-tests", UNKNOWN, why, expected, READ_AGAIN.format(host=host))
    elif there.tests_unread:
        remedy = f"1. On {host}, remove {STAMP}. 2. Run the nccl stage, which installs nccl-tests again."
        yield Finding(STAGE, "nccl.install", host, "nccl-tests", UNKNOWN, there.tests_unread, expected, remedy)
    elif nccl_tests_due(nccl, facts):
        other = f"{seen}, from another archive or with other options" if seen == expected else seen
        yield Finding(STAGE, "nccl.install", host, "nccl-tests", ERROR, other, expected, f"Run the nccl stage for {host}.")
    else:
        yield Finding(STAGE, "nccl.install", host, "nccl-tests", OK, seen, expected)


def check_topology(host: str, path: str | None, facts: Facts) -> list[Finding]:
    """Finding `nccl.topology`: the file that NCCL_TOPO_FILE names exists; NCCL only warns without it. path: None if it is not set."""
    check, expected = "nccl.topology", "an existing file"
    if path is None:
        why = "not set: NCCL detects the topology itself"
        return [Finding(STAGE, check, host, "NCCL_TOPO_FILE", NOT_APPLICABLE, why, expected)]
    if facts.files is None:
        return [Finding(STAGE, check, host, path, UNKNOWN, "the facts do not contain files", expected, READ_AGAIN.format(host=host))]
    if path in facts.files:
        return [Finding(STAGE, check, host, path, OK, "exists", expected)]
    remedy = f"Copy the topology file of this machine type from its provider to {path} on {host}, or remove it from rdma_nccl."
    return [Finding(STAGE, check, host, path, ERROR, "missing", expected, remedy)]


CHECK = "nccl.lint"
_SUBJECT = "NCCL's variables"
#: The prefix of places in the intent.
_INTENT = "rdma_"
_EXPECTED = "variables that NCCL reads and that agree with the host and each other"


def check_lint(host: str, problems: Sequence[Mapping[str, str]] | None) -> list[Finding]:
    """A finding for each error, unknown and warning, or one that is ok; notes are only counted.

    problems: the result of rdma.cluster.nccl_lint; None if it did not run.
    """
    if problems is None:
        remedy = f"Run the nccl stage for {host}, which checks them."
        return [Finding(STAGE, CHECK, host, _SUBJECT, UNKNOWN, "not checked yet", _EXPECTED, remedy)]
    findings = [_finding(host, problem) for problem in problems if problem["severity"] in (ERROR, UNKNOWN, WARNING)]
    notes = len(problems) - len(findings)
    observed = "no problem" + (f"; {notes} note{'s' if notes > 1 else ''}" if notes else "")
    return findings or [Finding(STAGE, CHECK, host, _SUBJECT, OK, observed, _EXPECTED)]


def _finding(host: str, problem: Mapping[str, str]) -> Finding:
    named = f"{problem['variable']} in " if problem["variable"] else ""
    subject = f"{named}{problem['where']} ({problem['rule']})"
    where = "Of" if problem["where"].startswith(_INTENT) else "On"
    remedy = f"{where} {host}: {problem['remedy'][:1].lower()}{problem['remedy'][1:]}"
    return Finding(STAGE, CHECK, host, subject, problem["severity"], problem["observed"], problem["expected"], remedy)
