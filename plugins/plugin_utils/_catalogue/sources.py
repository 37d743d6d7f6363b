# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where each check of the catalogue reads what it judges, as data.

A test takes each source away in turn (missing, forbidden, unreadable, garbled; of commands also a timeout) and requires that no finding of
the check stays `ok`. A new check without sources fails that test, and so does a source that nothing reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FILE, FOLDER, ENTRY, LINK, COMMAND, DRIVER = "file", "folder", "entry", "link", "command", "driver"
KERNEL, RESULT, NOTHING = "kernel", "result", "nothing"


@dataclass(frozen=True)
class Source:
    """One thing that is read. kind: FILE, FOLDER, ENTRY or LINK of a host (names: patterns of paths), a COMMAND (names: its words, or
    patterns of them), an ethtool request to a DRIVER, a call of the KERNEL, or a RESULT that the run has stored of a measurement.

    absent_means: why its absence is an answer and no blindness, in one clause; "" where it is not. garbled_means: the same of a file whose
    content is compared and not understood. about: a pattern of the subjects of the findings that need it, where others do not.
    replaced_by: what is read in its place where it does not answer; all of them are taken away together.
    """

    kind: str
    names: tuple[str, ...]
    absent_means: str = ""
    garbled_means: str = ""
    about: str = "*"
    replaced_by: tuple[Source, ...] = ()

    @property
    def words(self) -> str:
        """The source in a person's words."""
        own = " ".join(self.names) if self.kind == COMMAND else ", ".join(self.names)
        return " or ".join([own, *(each.words for each in self.replaced_by)])

    @property
    def all(self) -> tuple[Source, ...]:
        """The source and what replaces it."""
        return (self, *(each for other in self.replaced_by for each in other.all))


def file(*paths: str, absent_means: str = "", garbled_means: str = "", about: str = "*") -> Source:
    """A file; "*" in its path stands for anything, slashes too."""
    return Source(FILE, paths, absent_means, garbled_means, about)


def folder(*paths: str, absent_means: str = "", about: str = "*") -> Source:
    """A folder with all that is in it."""
    return Source(FOLDER, paths, absent_means, "", about)


def entry(*paths: str, absent_means: str = "", about: str = "*") -> Source:
    """Something of which only matters that it is there."""
    return Source(ENTRY, paths, absent_means, "", about)


def link(*paths: str, absent_means: str = "", about: str = "*") -> Source:
    """A symbolic link of which its target tells."""
    return Source(LINK, paths, absent_means, "", about)


def command(*words: str, absent_means: str = "", about: str = "*") -> Source:
    """A command; words that are not named may follow."""
    return Source(COMMAND, words, absent_means, "", about)


def driver(request: str, absent_means: str = "", about: str = "*") -> Source:
    """A request of ethtool to the driver of an interface: "link", "rings", "pause", "statistics", "module"."""
    return Source(DRIVER, (request,), absent_means, "", about)


def kernel(call: str, absent_means: str = "", about: str = "*") -> Source:
    """A system call, or what our own process has of its session."""
    return Source(KERNEL, (call,), absent_means, "", about)


def result(name: str, absent_means: str = "", about: str = "*") -> Source:
    """What a measurement or a discovery of this run has stored, by the name that the tests know it by."""
    return Source(RESULT, (name,), absent_means, "", about)


def any_of(first: Source, *others: Source) -> Source:
    """Sources of which one is enough."""
    return replace(first, replaced_by=others)


#: The inventory alone: nothing of a host is read.
INTENT = Source(NOTHING, ("the intent",))
#: What the run itself has noted.
RUN = Source(NOTHING, ("the run",))

_NET, _IB = "/sys/class/net/*", "/sys/class/infiniband/*"
_PCI = "/sys/devices/pci*"
_NO_NIC = "the NIC is not there, which is an error unless its RDMA device is"
_NO_COUNTERS = "not every driver has counters of this kind; what is there is compared"
_OS = any_of(file("/etc/os-release"), file("/usr/lib/os-release"))
_RELEASE = file("/proc/sys/kernel/osrelease")
_KERNELS = folder("/lib/modules", "/usr/lib/modules")
_MODULES = folder("/sys/module", absent_means="a module that is not there is not loaded, which is an error")
_MODINFO = command("modinfo")
_UNITS = command("systemctl", "show")
_ADDRESSES = command("ip", "-json")
_DPKG, _RPM = file("/var/lib/dpkg/status"), command("rpm", "-qa")
_SOURCE_VERSIONS = (
    file("/sys/module/*/srcversion", absent_means="some kernels give none; then versions are compared"),
    file("/sys/module/*/version", absent_means="the kernel's own modules declare none"),
)
_CONFIG = file(f"{_PCI}/config")
_LINK = tuple(file(f"{_PCI}/{name}") for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"))
_DEVICES = folder("/sys/class/infiniband")
_FIRMWARE, _BOARD = file(f"{_IB}/fw_ver"), file(f"{_IB}/board_id")
_RATE = file(f"{_IB}/ports/*/rate")
_GIDS = file(f"{_IB}/ports/*/gids/*")
_GID_TYPES = file(f"{_IB}/ports/*/gid_attrs/types/*")
_NO_GID = "the address has no GID, which is an error"
_PKEYS = folder(f"{_IB}/ports/*/pkeys")
_DEVINFO = command("ibv_devinfo")
_DKMS = folder("/var/lib/dkms", absent_means="there is no DKMS, or nothing is registered with it")
_GPUS = folder("/sys/bus/pci/devices")
_NVIDIA = file("/proc/driver/nvidia/version", absent_means="the driver is not loaded, which is an error")
_MLNX_QOS, _DCB_PFC = command("mlnx_qos", "-i"), command("dcb", "-N", "-j", "pfc")
_NO_TOOL = "neither tool is installed, which is an error"
_NO_DCQCN = "only mlx5 has these files"
_NP = file(f"{_NET}/ecn/roce_np/cnp_*", "/sys/kernel/debug/mlx5/*/cc_params/np_cnp_*", absent_means=_NO_DCQCN)
_RP = file(f"{_NET}/ecn/roce_rp/rpg_ai_rate", "/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate", absent_means=_NO_DCQCN)
_LIMITS_CONF = folder("/etc/security/limits.d", absent_means="nothing lifts the kernel's own limit, which is an error", about="*login*")
_IN_A_SERVICE = command("systemd-run", about="*a service*")
_CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_NETWORK_FILES = "/etc/systemd/network"
_NO_NETWORK_FILE = "no file of the rail applies at boot, which is an error"
_SERVICE_GROUPS = "/sys/fs/cgroup/system.slice"
_NCCL_FILE = file("/etc/nccl.conf", absent_means="it is not there, which is an error where it is planned")
_LIBNCCL = link("/usr/lib/*/libnccl.so.2", absent_means="frameworks bring their own NCCL")
_STAMP = file("/var/lib/rdma-cluster/nccl-tests.json", absent_means="the collection has installed none")
_GRAPH, _SWEEP, _LADDER = result("graph"), result("sweep"), result("ladder")

#: By check: all that it reads. Where a check reads a source only to find the rail that it is about, the checks that look for the rail
#: (driver.nic, driver.device) have it.
SOURCES: dict[str, tuple[Source, ...]] = {
    "stage.completed": (RUN,),
    "host.facts": (RUN,),
    "intent.key": (INTENT,),
    "intent.type": (INTENT,),
    "intent.value": (INTENT,),
    "intent.rails": (INTENT,),
    "intent.address": (INTENT,),
    "intent.mtu": (_ADDRESSES,),
    "intent.nic": (folder("/sys/class/net", absent_means="the interfaces are not there: the driver may be missing yet"),),
    "intent.hosts": (INTENT,),
    "intent.alike": (INTENT,),
    "host.identity": (file("/proc/sys/kernel/hostname", about="hostname"), file("/etc/machine-id", about="machine-id")),
    "preflight.os": (_OS,),
    "preflight.kernel": (_RELEASE,),
    "preflight.newest": (_RELEASE, _KERNELS),
    "preflight.headers": (_RELEASE, entry("/lib/modules/*/build/*", absent_means="headers that are not there are the finding")),
    "preflight.secure_boot": (
        folder("/sys/firmware/efi", absent_means="the host was not booted by EFI"),
        file("/sys/firmware/efi/efivars/SecureBoot-*", absent_means="firmware with variables but without this one cannot do it"),
        _MODINFO,
    ),
    "preflight.lockdown": (file("/sys/kernel/security/lockdown"),),
    "preflight.disk": (kernel("statvfs"),),
    "preflight.ssh": (kernel("SSH_CONNECTION"), _ADDRESSES),
    "preflight.firewall": (
        _UNITS,
        file(
            "/etc/ufw/ufw.conf",
            absent_means="ufw without its own file filters nothing",
            garbled_means="without a line ENABLED=yes ufw filters nothing",
        ),
    ),
    "pcie.link": _LINK,
    "pcie.path": _LINK[:2],
    "pcie.payload": (_CONFIG,),
    "pcie.mrrs": (_CONFIG,),
    "pcie.acs": (_CONFIG,),
    "pcie.distance": (_GPUS,),
    "host.iommu": (
        folder("/sys/kernel/iommu_groups", absent_means="a kernel that uses no IOMMU has no groups"),
        file("/sys/kernel/iommu_groups/*/type"),
    ),
    "driver.package": (_DPKG, _RPM),
    "driver.module": (_MODULES,),
    "driver.nic": (
        folder("/sys/class/net", absent_means=_NO_NIC),
        link(f"{_NET}/device", absent_means=_NO_NIC),
    ),
    "driver.device": (replace(_DEVICES, absent_means="the device is not there, which is an error"),),
    "driver.node": (
        folder("/dev/infiniband", absent_means="the node is not there, which is an error"),
        file("/sys/class/infiniband_verbs/*/ibdev", absent_means="the device has no node, which is an error"),
    ),
    "driver.dkms": (_DKMS, _RELEASE),
    "driver.stack": (
        _MODINFO,
        _MODULES,
        file("/usr/bin/ofed_info", absent_means="no OFED is installed, or its packages give its version"),
    ),
    "driver.next_kernel": (
        _KERNELS,
        _DKMS,
        file("/lib/modules/*/modules.dep", absent_means="DKMS says what it has built for the kernel"),
        _RELEASE,
    ),
    "driver.option": (file("/sys/module/*/parameters/*"),),
    "firmware.setting": (command("mstconfig", "-d"),),
    "firmware.version": (_FIRMWARE, _BOARD),
    "driver.loaded": (_MODINFO, *_SOURCE_VERSIONS),
    "alike.firmware": (_FIRMWARE, _BOARD),
    "alike.board": (_BOARD,),
    "alike.driver": _SOURCE_VERSIONS,
    "alike.kernel": (_RELEASE,),
    "alike.packages": (_DPKG, _RPM),
    "alike.os": (_OS,),
    "link.state": (file(f"{_IB}/ports/*/state"), file(f"{_IB}/ports/*/phys_state")),
    "link.layer": (file(f"{_IB}/ports/*/link_layer"),),
    "link.iwarp": (file(f"{_IB}/node_type"),),
    "link.rate": (any_of(_RATE, driver("link")),),
    "link.width": (_RATE,),
    "link.mtu": (_DEVINFO,),
    "link.flaps": (
        folder(f"{_IB}/ports/*/counters", absent_means=_NO_COUNTERS),
        driver("statistics", absent_means=_NO_COUNTERS),
        file(f"{_NET}/carrier_down_count", absent_means=_NO_COUNTERS),
        file("/proc/uptime"),
    ),
    "link.errors": (
        folder(f"{_IB}/ports/*/counters", absent_means=_NO_COUNTERS),
        driver("statistics", absent_means=_NO_COUNTERS),
        file("/proc/uptime"),
    ),
    "link.optic": (
        command("ethtool", "-m"),
        command("mstlink", "-d"),
        driver("module", absent_means="the driver's own answer that there is no module"),
    ),
    "link.sm": (file(f"{_IB}/ports/*/sm_lid"), result("sminfo"), result("saquery")),
    "link.pkey": (_PKEYS,),
    "link.partitions": (INTENT,),
    "alike.rate": (_RATE,),
    "alike.names": (_DEVICES,),
    "alike.pcie": _LINK[:2],
    "fabric.graph": (result("ibnetdiscover"), result("iblinkinfo"), _GRAPH),
    "fabric.cabling": (_GRAPH,),
    "fabric.rails": (_GRAPH,),
    "fabric.link": (_GRAPH, result("iblinkinfo")),
    "fabric.change": (_GRAPH,),
    "fabric.symmetry": (_GRAPH,),
    "fabric.ratio": (_GRAPH,),
    "fabric.bisection": (_GRAPH,),
    "fabric.counters": (_GRAPH, result("ibqueryerrors")),
    "host.memlock": (_IN_A_SERVICE, _LIMITS_CONF),
    "host.sysctl": (
        file("/proc/sys/net/*", absent_means="the kernel has no such key, which is an error"),
        folder("/etc/sysctl.d", absent_means="nothing sets the key at boot, which is an error"),
    ),
    "host.memory": (file("/proc/meminfo"),),
    "host.shm": (kernel("statvfs"), file("/proc/meminfo")),
    "host.files": (_IN_A_SERVICE, _LIMITS_CONF),
    "host.ipc": (command("busctl", "get-property"),),
    "host.services": (
        file(f"{_SERVICE_GROUPS}/*/cgroup.procs", absent_means="a service that does not run has no processes"),
        file("/proc/*/limits", absent_means="a process that has ended has no limits"),
    ),
    "host.rings": (driver("rings", absent_means="the driver has no rings that could be set"),),
    "host.cpu": (
        file("/sys/devices/system/cpu/cpufreq/*/scaling_governor", absent_means="the kernel does not scale frequencies", about="governor*"),
        file("/sys/devices/system/cpu/cpu*/cpuidle/*/latency", about="idle*"),
        file(
            "/sys/devices/system/cpu/cpu*/cpuidle/*/disable",
            absent_means="a state that cannot be switched off counts as entered",
            about="idle*",
        ),
        replace(_UNITS, about="irqbalance"),
    ),
    "host.pcie": (
        replace(_CONFIG, about="[rA]*"),
        replace(_UNITS, about="*at boot"),
        file(
            "/etc/systemd/system/rdma-pcie.service",
            absent_means="the service is not there, which is an error",
            garbled_means="another content is an error",
            about="*at boot",
        ),
    ),
    "host.time": (
        kernel("adjtimex"),
        command("chronyc"),
        entry("/run/chrony/chronyd.pid", absent_means="chrony does not run; the kernel says whether another one keeps the clock"),
    ),
    "host.clock": (kernel("clock_gettime"),),
    "host.clocksource": (file(_CLOCKSOURCE), kernel("uname")),
    "network.mtu": (file(f"{_NET}/mtu"),),
    "network.gid": (replace(_GIDS, absent_means=_NO_GID), replace(_GID_TYPES, absent_means=_NO_GID)),
    "network.rdma_mtu": (_DEVINFO, file(f"{_NET}/mtu")),
    "network.address": (_ADDRESSES,),
    "network.manager": (
        file("/run/systemd/netif/links/*", absent_means="systemd-networkd does not know the interface"),
        file(f"{_NET}/ifindex"),
    ),
    "network.boot": (
        folder(_NETWORK_FILES, absent_means=_NO_NETWORK_FILE),
        file(f"{_NETWORK_FILES}/60-rdma-*.network", absent_means=_NO_NETWORK_FILE, garbled_means="a file that does not apply is an error"),
        file("/run/udev/data/n*"),
        file(f"{_NET}/ifindex"),
        _UNITS,
    ),
    "network.duplicate": (_ADDRESSES,),
    "alike.mtu": (file(f"{_NET}/mtu"),),
    "alike.gid_index": (_GIDS, _GID_TYPES),
    "qos.backend": (replace(_MLNX_QOS, absent_means=_NO_TOOL), replace(_DCB_PFC, absent_means=_NO_TOOL)),
    "qos.dcbx": (_MLNX_QOS, command("dcb", "-N", "-j", "dcbx")),
    "qos.pause": (driver("pause"),),
    "qos.trust": (_MLNX_QOS, command("dcb", "-N", "-j", "app")),
    "qos.dscp": (_MLNX_QOS, command("dcb", "-N", "-j", "app")),
    "qos.pfc": (_MLNX_QOS, _DCB_PFC),
    "qos.ets": (_MLNX_QOS, command("dcb", "-N", "-j", "ets")),
    "qos.buffers": (_MLNX_QOS, _DCB_PFC),
    "qos.ecn": (file(f"{_NET}/ecn/roce_*/enable/*", absent_means="the driver has no switch for it"),),
    "qos.cnp": (_NP,),
    "qos.dcqcn": (_RP,),
    "qos.traffic_class": (file(f"{_IB}/tc/*/traffic_class", absent_means="the kernel's own driver forces none"),),
    "qos.rdma_cm": (folder("/sys/kernel/config/rdma_cm", absent_means="no program has made the folder, which is an error"),),
    "qos.overwritten": (
        folder(_SERVICE_GROUPS, absent_means="no service runs"),
        folder("/etc/systemd/system", absent_means="nothing is enabled"),
    ),
    "qos.boot": (_UNITS,),
    "gpu.driver": (
        _NVIDIA,
        replace(_GPUS, absent_means="a GPU that the driver has and the bus has not is lost, which is an error"),
        file("/proc/driver/nvidia/gpus/*/information", absent_means="the driver does not drive the GPU, which is an error"),
    ),
    "gpu.fabricmanager": (
        _UNITS,
        any_of(_DPKG, command("/usr/bin/nv-fabricmanager")),
        file(f"{_GPUS.names[0]}/*/modalias", absent_means="older kernels have none; then the class is read"),
        _NVIDIA,
    ),
    "gpu.cuda": (link("/usr/lib/*/libcuda.so.1", absent_means="the library is not there, which is an error"), _NVIDIA),
    "gpu.path": (_NVIDIA, _RELEASE, link("/usr/lib/*/libibverbs.so.1")),
    "gpu.nics": (
        _GPUS,
        _DEVICES,
        file(f"{_PCI}/numa_node", absent_means="what is below one host bridge is near without it; else how far it is, is unknown"),
    ),
    "nccl.file": (replace(_NCCL_FILE, garbled_means="another content is an error"),),
    "nccl.socket_ifname": (kernel("SSH_CONNECTION"), _ADDRESSES),
    "nccl.user_lines": (_NCCL_FILE,),
    "nccl.hca": (_DEVICES, file(f"{_IB}/ports/*/state")),
    "nccl.gid_index": (replace(_GIDS, absent_means=_NO_GID), replace(_GID_TYPES, absent_means=_NO_GID)),
    "nccl.lint": (replace(_NCCL_FILE, garbled_means="NCCL passes over such lines too, and nccl.file says that the file is another"),),
    "nccl.pkey": (_PKEYS,),
    "nccl.topology": (entry("/etc/nccl-topology.xml", absent_means="the file that a variable names is not there, which is an error"),),
    "nccl.version": (_LIBNCCL,),
    "nccl.install": (replace(_DPKG, about="package *"), replace(_RPM, about="package *"), replace(_STAMP, about="nccl-tests")),
    "alike.nccl": (_LIBNCCL, _STAMP, _DPKG, _RPM),
    "nccl.alike": (INTENT,),
    "pair.bandwidth": (_SWEEP,),
    "pair.latency": (_SWEEP,),
    "pair.clock": (result("attempts of perftest"),),
    "pair.results": (result("lines of the results"),),
    "pair.errors": (result("port counters"),),
    "fabric.under_load": (result("graph under load"),),
    "fabric.balance": (result("graph under load"),),
    "pair.gpu": (result("sweep from GPUs"),),
    "pair.isolation": (result("attempts between partitions"),),
    "pair.oversubscription": (result("load across spines"),),
    "qos.traffic": (result("priority counters"),),
    "qos.load": (result("many-to-one load"), result("priority counters")),
    "collective.exit": (result("nccl-tests"),),
    "collective.ranks": (result("nccl-tests"),),
    "collective.wrong": (result("nccl-tests"),),
    "collective.busbw": (result("nccl-tests"), _LADDER),
    "collective.transport": (result("NCCL log"),),
    "collective.hcas": (result("NCCL log"),),
    "collective.ladder": (_LADDER,),
    "collective.jitter": (_LADDER,),
    "collective.pairs": (result("pair proofs"),),
}
