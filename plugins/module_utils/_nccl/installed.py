# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the installed NCCL, nccl-tests, Open MPI and network plugin of a host; only the plugin is loaded, in a process of its own.

Frameworks include their own NCCL (a wheel of PyTorch, a container), which is not covered here.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN, RPM, Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.support import LIBRARY_FOLDERS
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import NcclPlugin, PluginQuery, read_plugin

LIBRARY = "libnccl.so.2"
#: The name of Open MPI's package in each family.
MPI_PACKAGES = {DEBIAN: "openmpi-bin", RPM: "openmpi"}
#: The record of installed nccl-tests, as render_stamp writes it.
STAMP = "/var/lib/rdma-cluster/nccl-tests.json"
#: The folder of the programs below that of nccl-tests, and the required program.
BUILD, PROGRAM = "build", "all_reduce_perf"
# libnccl.so.2.30.7
_LIBRARY_FILE = re.compile(r"libnccl\.so\.([0-9]{1,3}\.[0-9]{1,4}\.[0-9]{1,4})", re.ASCII)
# 2.30.7-1+cuda13.0, 1:4.1.4-3
_PACKAGE_VERSION = re.compile(r"(?:[0-9]+:)?([0-9]{1,3}(?:\.[0-9]{1,4}){1,2})(?![0-9.])", re.ASCII)


@dataclass(frozen=True)
class NcclTests:
    """The collection's installation: folder, requested version; `order`: the id of the request (_collectives.install.request_id)."""

    folder: str
    version: str
    order: str


@dataclass(frozen=True)
class NcclHost:
    """library: the file that programs find as libnccl.so.2, None without one; version: of it ("2.30.7"), None if unknown.

    tests: None if the collection has installed none, or its programs are gone. openmpi: the version of the distribution's package
    ("4.1.4"), None if it is not installed. tests_unread: why the installed nccl-tests are unknown. plugin: None if it was not requested.
    """

    library: str | None
    version: str | None
    tests: NcclTests | None
    openmpi: str | None
    tests_unread: str | None = None
    plugin: NcclPlugin | None = None


def render_stamp(tests: NcclTests) -> str:
    """Return the stamp's file text, which parse_stamp reads."""
    return json.dumps(asdict(tests), indent=1, sort_keys=True) + "\n"


def parse_stamp(text: str) -> NcclTests:
    """Parse the text of render_stamp. Raises ParseError for any other text."""
    expected = 'expected {"folder": …, "version": …, "order": …}'
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"{STAMP}: {exc} in {quoted(text)}, {expected}") from exc
    names = {"folder", "version", "order"}
    if not isinstance(values, dict) or set(values) != names or not all(isinstance(each, str) for each in values.values()):
        raise ParseError(f"{STAMP}: {quoted(text)}, {expected}")
    return NcclTests(**values)


def upstream_version(version: str | None) -> str | None:
    """Return the upstream version of a package: "2.30.7-1+cuda13.0" → "2.30.7"; None without one at the start."""
    match = _PACKAGE_VERSION.match(version or "")
    return match[1] if match else None


def read_nccl_host(sys: SysRoot, distribution: Distribution, runner: Runner | None = None, plugin: PluginQuery | None = None) -> NcclHost:
    """Return NCCL's state on a host. distribution: must be read with the names of MPI_PACKAGES. runner, plugin: as for read_plugin."""
    library = next((file for folder in LIBRARY_FOLDERS if (file := sys.resolve(f"{folder}/{LIBRARY}")) is not None), None)
    mpi = (distribution.asked or {}).get(MPI_PACKAGES.get(distribution.family or "", ""))
    tests, unread = _read_tests(sys)
    version = _version(library)
    seen = read_plugin(sys, runner, plugin, version) if plugin is not None else None
    return NcclHost(library, version, tests, upstream_version(mpi), unread, seen)


def _version(library: str | None) -> str | None:
    """Return the version at the end of the file's name: the target of a package's libnccl.so.2 has one, the file of a wheel has none."""
    match = _LIBRARY_FILE.fullmatch((library or "").rpartition("/")[2])
    return match[1] if match else None


def _read_tests(sys: SysRoot) -> tuple[NcclTests | None, str | None]:
    """Return the installation, or why it is unknown: the stamp has another form, or its folder is open to root only."""
    try:
        tests = sys.value(STAMP, parse_stamp)
        return (tests if tests is not None and sys.exists(f"{tests.folder}/{BUILD}/{PROGRAM}") else None), None
    except (ParseError, PermissionError) as error:
        return None, str(error)
