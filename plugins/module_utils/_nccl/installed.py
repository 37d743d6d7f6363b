# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which NCCL, nccl-tests and Open MPI a host has installed; nothing of them is run.

Frameworks bring an NCCL of their own (a wheel of PyTorch, a container), of which nothing here tells.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN, RPM, Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.support import LIBRARY_FOLDERS

LIBRARY = "libnccl.so.2"
#: What each family calls the package of Open MPI.
MPI_PACKAGES = {DEBIAN: "openmpi-bin", RPM: "openmpi"}
#: What the collection has installed of nccl-tests, as render_stamp writes it.
STAMP = "/var/lib/rdma-cluster/nccl-tests.json"
#: Where the programs are below the folder of nccl-tests, and the one that must be there.
BUILD, PROGRAM = "build", "all_reduce_perf"
# libnccl.so.2.30.7
_LIBRARY_FILE = re.compile(r"libnccl\.so\.([0-9]{1,3}\.[0-9]{1,4}\.[0-9]{1,4})", re.ASCII)
# 2.30.7-1+cuda13.0, 1:4.1.4-3
_PACKAGE_VERSION = re.compile(r"(?:[0-9]+:)?([0-9]{1,3}(?:\.[0-9]{1,4}){1,2})(?![0-9.])", re.ASCII)


@dataclass(frozen=True)
class NcclTests:
    """What the collection has installed: folder, version as it was asked for; wish: of what order (_collectives.install.wish_id)."""

    folder: str
    version: str
    wish: str


@dataclass(frozen=True)
class NcclHost:
    """library: the file that programs find as libnccl.so.2, None without one; version: of it ("2.30.7"), None where nothing tells.

    tests: None where the collection has installed none, or its programs are gone. openmpi: the version of the distribution's package
    ("4.1.4"), None where it is not installed. tests_unread: why it is not known which nccl-tests the collection has installed.
    """

    library: str | None
    version: str | None
    tests: NcclTests | None
    openmpi: str | None
    tests_unread: str | None = None


def render_stamp(tests: NcclTests) -> str:
    """The stamp as a file, which parse_stamp reads."""
    return json.dumps(asdict(tests), indent=1, sort_keys=True) + "\n"


def parse_stamp(text: str) -> NcclTests:
    """What render_stamp has written. Raises ParseError for any other text."""
    expected = 'expected {"folder": …, "version": …, "wish": …}'
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"{STAMP}: {exc} in {text[:200]!r}, {expected}") from exc
    if not isinstance(told, dict) or set(told) != {"folder", "version", "wish"} or not all(isinstance(each, str) for each in told.values()):
        raise ParseError(f"{STAMP}: {text[:200]!r}, {expected}")
    return NcclTests(**told)


def upstream_version(version: str | None) -> str | None:
    """The version of what a package contains: "2.30.7-1+cuda13.0" → "2.30.7"; None for one that does not begin with it."""
    match = _PACKAGE_VERSION.match(version or "")
    return match[1] if match else None


def read_nccl_host(sys: SysRoot, distribution: Distribution) -> NcclHost:
    """distribution: read with those of MPI_PACKAGES asked for."""
    library = next((file for folder in LIBRARY_FOLDERS if (file := sys.resolve(f"{folder}/{LIBRARY}")) is not None), None)
    mpi = (distribution.asked or {}).get(MPI_PACKAGES.get(distribution.family or "", ""))
    tests, unread = _read_tests(sys)
    return NcclHost(library, _version(library), tests, upstream_version(mpi), unread)


def _version(library: str | None) -> str | None:
    """The version that the file's name ends with: what libnccl.so.2 of a package leads to has one, the file of a wheel has none."""
    match = _LIBRARY_FILE.fullmatch((library or "").rpartition("/")[2])
    return match[1] if match else None


def _read_tests(sys: SysRoot) -> tuple[NcclTests | None, str | None]:
    """What is installed, or why that is not known: the stamp has another form, or its folder is open to root only."""
    try:
        tests = sys.value(STAMP, parse_stamp)
        return (tests if tests is not None and sys.exists(f"{tests.folder}/{BUILD}/{PROGRAM}") else None), None
    except (ParseError, PermissionError) as error:
        return None, str(error)
