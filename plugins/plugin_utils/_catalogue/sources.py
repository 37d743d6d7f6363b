# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sources of checks, as data: each check declares where it reads.

A test removes each source in turn (missing, forbidden, unreadable, garbled; for commands also a timeout) and requires that no finding of
the check stays `ok`. The test also fails for a check without sources, and for a source that nothing reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FILE, FOLDER, ENTRY, LINK, COMMAND, DRIVER = "file", "folder", "entry", "link", "command", "driver"
KERNEL, RESULT, NOTHING = "kernel", "result", "nothing"


@dataclass(frozen=True)
class Source:
    """One source. kind: FILE, FOLDER, ENTRY or LINK of a host (names: path patterns), a COMMAND (names: its words, or patterns of
    them), an ethtool request to a DRIVER, a call of the KERNEL, or a RESULT of a measurement that the run has stored.

    absent_means: why its absence is an answer, in one clause; "" if it is not. garbled_means: the same for a file whose content is
    compared but not parsed. about: a pattern of the subjects of the findings that need it, if others do not.
    replaced_by: the sources that are read instead if it does not answer; the test removes all of them together.
    """

    kind: str
    names: tuple[str, ...]
    absent_means: str = ""
    garbled_means: str = ""
    about: str = "*"
    replaced_by: tuple[Source, ...] = ()

    @property
    def words(self) -> str:
        """The source as text."""
        own = " ".join(self.names) if self.kind == COMMAND else ", ".join(self.names)
        return " or ".join([own, *(each.words for each in self.replaced_by)])

    @property
    def all(self) -> tuple[Source, ...]:
        """The source and its replacements."""
        return (self, *(each for other in self.replaced_by for each in other.all))


def file(*paths: str, absent_means: str = "", garbled_means: str = "", about: str = "*") -> Source:
    """A file; "*" in its path matches anything, including slashes."""
    return Source(FILE, paths, absent_means, garbled_means, about)


def folder(*paths: str, absent_means: str = "", about: str = "*") -> Source:
    """A folder with all its content."""
    return Source(FOLDER, paths, absent_means, "", about)


def entry(*paths: str, absent_means: str = "", about: str = "*") -> Source:
    """A path of which only the existence matters."""
    return Source(ENTRY, paths, absent_means, "", about)


def link(*paths: str, absent_means: str = "", about: str = "*") -> Source:
    """A symbolic link whose target is read."""
    return Source(LINK, paths, absent_means, "", about)


def command(*words: str, absent_means: str = "", about: str = "*") -> Source:
    """A command; more words may follow the named ones."""
    return Source(COMMAND, words, absent_means, "", about)


def driver(request: str, absent_means: str = "", about: str = "*") -> Source:
    """A request of ethtool to the driver of an interface: "link", "rings", "pause", "statistics", "module"."""
    return Source(DRIVER, (request,), absent_means, "", about)


def kernel(call: str, absent_means: str = "", about: str = "*") -> Source:
    """A system call, or a value of our own process's session."""
    return Source(KERNEL, (call,), absent_means, "", about)


def result(name: str, absent_means: str = "", about: str = "*") -> Source:
    """The stored result of a measurement or discovery of this run, by its name in the tests."""
    return Source(RESULT, (name,), absent_means, "", about)


def any_of(first: Source, *others: Source) -> Source:
    """Sources of which any one is enough."""
    return replace(first, replaced_by=others)


def but(source: Source, **changes: str) -> Source:
    """A copy of a source for one check. changes: absent_means, garbled_means, about."""
    return replace(source, **changes)  # type: ignore[arg-type]


#: Only the inventory; nothing is read from a host.
INTENT = Source(NOTHING, ("the intent",))
#: The run's own records.
RUN = Source(NOTHING, ("the run",))

NET, IB = "/sys/class/net/*", "/sys/class/infiniband/*"
PCI = "/sys/devices/pci*"
OS = any_of(file("/etc/os-release"), file("/usr/lib/os-release"))
#: It decides which package database is read.
PACKAGES_OF = but(OS, absent_means="only rpm is not asked without it")
RELEASE = file("/proc/sys/kernel/osrelease")
KERNELS = folder("/lib/modules", "/usr/lib/modules")
MODULES = folder("/sys/module", absent_means="a missing module is not loaded, which is an error")
MODINFO = command("modinfo")
UNITS = command("systemctl", "show")
ADDRESSES = command("ip", "-json")
DPKG, RPM = file("/var/lib/dpkg/status"), command("rpm", "-qa")
SOURCE_VERSIONS = (
    file("/sys/module/*/srcversion", absent_means="some kernels have none; then versions are compared"),
    file("/sys/module/*/version", absent_means="the kernel's own modules have none"),
)
CONFIG = file(f"{PCI}/config")
PCI_LINK = tuple(file(f"{PCI}/{name}") for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"))
DEVICES = folder("/sys/class/infiniband")
FIRMWARE, BOARD = file(f"{IB}/fw_ver"), file(f"{IB}/board_id")
RATE = file(f"{IB}/ports/*/rate")
GIDS = file(f"{IB}/ports/*/gids/*")
GID_TYPES = file(f"{IB}/ports/*/gid_attrs/types/*")
NO_GID = "the address has no GID, which is an error"
PKEYS = folder(f"{IB}/ports/*/pkeys")
DEVINFO = command("ibv_devinfo")
DKMS = folder("/var/lib/dkms", absent_means="DKMS is not installed, or no module is registered with it")
GPUS = folder("/sys/bus/pci/devices")
MLNX_QOS, DCB_PFC = command("mlnx_qos", "-i"), command("dcb", "-N", "-j", "pfc")
NO_DCQCN = "only mlx5 has these files"
SERVICE_GROUPS = "/sys/fs/cgroup/system.slice"
NCCL_FILE = file("/etc/nccl.conf", absent_means="it is missing, which is an error if it is planned")
LIBNCCL = link("/usr/lib/*/libnccl.so.2", absent_means="frameworks bring their own NCCL")
STAMP = file("/var/lib/rdma-cluster/nccl-tests.json", absent_means="the collection has installed none")
GRAPH, SWEEP, LADDER = result("graph"), result("sweep"), result("ladder")
