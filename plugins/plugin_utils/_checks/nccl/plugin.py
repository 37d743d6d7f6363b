# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the nccl gate on a network plugin: its library, its interface, and the devices that it offers to NCCL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import PluginIntent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import (
    FOLDER,
    MESH,
    PATH_SINCE,
    NcclPlugin,
    PluginDevice,
    PluginLibrary,
    PluginProbe,
    interfaces,
    preferred_interface,
    request_id,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_probe import RESULTS
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.mesh import DISABLE_RDMA, GID_INDEX
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import PLUGIN_VARIABLES
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_ip, rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import STAGE
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl_host import READ_AGAIN

CHECK = "nccl.plugin"
declare(
    {
        CHECK: Check(
            STAGE,
            "the network plugin of `rdma_nccl.plugin`: whether NCCL uses it, its library, the interface that it shares with NCCL, and "
            "the devices that it offers, compared with the compute rails: names, speed and GID",
            f"the library below `{FOLDER}` and its record; the library's answers, loaded as `nobody` in a process of its own",
            "run the nccl stage, which builds or copies the library; give the source instead of a built library",
            follows=NO_DEVICE,
            sources=(
                reads.file(f"{FOLDER}/*", absent_means="a missing library or record is an error"),
                reads.command("setpriv", about="devices of plugin *"),
            ),
        )
    }
)
#: A device whose speed is less than this fraction of the rail's rate describes itself with another layout than NCCL's.
_IMPOSSIBLE, _CLOSE = 0.1, 0.9
Verdict = tuple[str, str, str]
"""(status, observed, remedy)"""


@dataclass(frozen=True)
class PluginUse:
    """The plan of a plugin on a host. used: whether NCCL loads it; reason: why, or why not; relays: whether hosts without a direct cable
    are reached; None if the plugin is not for meshes. nccl: the version of NCCL in use."""

    used: bool
    reason: str
    relays: bool | None
    nccl: str | None


def plugin_name(plugin: PluginIntent) -> str:
    """Return the name of a plugin: its own, or that of its kind."""
    return plugin["name"] or plugin["kind"]


def plugin_order(plugin: PluginIntent) -> str:
    """Return the id of the request, which the record of an installation has too."""
    mesh = plugin["kind"] == MESH
    return request_id({"name": plugin_name(plugin), "checksum": plugin["checksum"], "build": plugin["source"] is not None, "verbs": mesh})


def plugin_is_installed(plugin: PluginIntent, seen: NcclPlugin) -> bool:
    """Return whether the requested plugin is installed, and its library is unchanged."""
    return bool(seen.library and seen.stamp and seen.stamp.order == plugin_order(plugin) and seen.stamp.sha256 == seen.library.sha256)


def check_plugin(host: str, plugin: PluginIntent, use: PluginUse, rails: Sequence[ResolvedRail], facts: Facts) -> list[Finding]:
    """Finding `nccl.plugin` for the library, its devices, and each rail. rails: the compute rails."""
    if not use.used:
        return [Finding(STAGE, CHECK, host, "network plugin", NOT_APPLICABLE, use.reason, "what rdma_nccl.plugin requests")]
    case, seen = _Case(host, plugin, use, facts), facts.nccl.plugin if facts.nccl else None
    if seen is None or seen.unread:
        why = seen.unread if seen is not None and seen.unread else "the facts do not contain it"
        return [case.finding("", (UNKNOWN, why, READ_AGAIN.format(host=host)), case.expected)]
    if seen.library is None or not plugin_is_installed(plugin, seen):
        why = f"{seen.path} was not installed with this request" if seen.library else f"{seen.path} does not exist"
        remedy = f"1. Run the nccl stage for {host}. 2. If the host is in use, allow it with `nccl_install_allowed`."
        return [case.finding("", (ERROR, why, remedy), case.expected)]
    words = f"{seen.path}, used because {use.reason}{_reach(use)}"
    library = case.library(seen.library, seen.machine)
    found = [case.finding("", (OK, words, ""), case.expected), library]
    return [*found, *case.answers(rails, seen.probe)] if library.status == OK else found


def _reach(use: PluginUse) -> str:
    if use.relays is None:
        return ""
    return "; hosts without a direct cable are reached through others" if use.relays else "; hosts without a direct cable cannot be reached"


@dataclass(frozen=True)
class _Case:
    """A plugin that NCCL uses on a host."""

    host: str
    plugin: PluginIntent
    use: PluginUse
    facts: Facts

    @property
    def expected(self) -> str:
        return self.plugin["version"] or "as in rdma_nccl.plugin"

    def finding(self, subject: str, verdict: Verdict, expected: str) -> Finding:
        """Return a finding; subject: "interface of ", "" for the plugin itself."""
        status, observed, remedy = verdict
        return Finding(STAGE, CHECK, self.host, f"{subject}plugin {plugin_name(self.plugin)}", status, observed, expected, remedy)

    def library(self, library: PluginLibrary, machine: str) -> Finding:
        """The finding on a library as its file shows it. machine: of the host."""
        known, number = interfaces(self.use.nccl), preferred_interface(library, self.use.nccl)
        nccl = f"NCCL {self.use.nccl}" if self.use.nccl else "a recent NCCL"
        exports = f"the library has {_listed(library.interfaces)}"
        build = "Build it on such a host from the source that rdma_nccl.plugin.source names."
        verdict: Verdict = (OK, f"NCCL uses v{number}; {exports}", "")
        if library.machine != machine:
            verdict = (ERROR, f"the library is built for {library.machine}, but the host is {machine}", build)
        elif self.plugin["kind"] == MESH and not library.verbs:
            verdict = (ERROR, "the library calls no function of libibverbs (ibv_…): it sends everything over TCP", build)
        elif not known:
            verdict = (UNKNOWN, f"{exports}; the interfaces of {nccl} are not known", f"Use NCCL {PATH_SINCE} or newer.")
        elif number is None:
            verdict = (ERROR, f"{exports}, so NCCL does not use it", "Use a version of the plugin for this NCCL.")
        return self.finding("interface of ", verdict, f"an interface of {nccl}: {_listed(known)}")

    def answers(self, rails: Sequence[ResolvedRail], probe: PluginProbe | None) -> Iterator[Finding]:
        """Findings on the plugin's own answers."""
        subject, expected = "devices of ", "the devices of the compute rails"
        if probe is None or probe.unread:
            why = f"the plugin gave no answer: {probe.unread}" if probe else "it was not loaded"
            remedy = f"1. Read the facts of {self.host} again. 2. Run a job with NCCL_DEBUG=INFO there, and look for NET/Plugin."
            yield self.finding(subject, (UNKNOWN, why, remedy), expected)
        elif probe.failed or probe.init or not probe.devices:
            why = probe.failed or f"{_started(probe)}{_last(probe)}"
            remedy = f"1. Correct the other errors of {self.host}. 2. Use another version of the plugin, or remove rdma_nccl.plugin."
            yield self.finding(subject, (ERROR, why, remedy), expected)
        else:
            offered = {device.name: device for device in probe.devices if device.name is not None}
            planned = {rail.device for rail in rails if rail.device}
            yield self.finding(subject, self._offered(offered, [name for name in offered if name not in planned]), expected)
            yield from (self._rail(rail, offered, probe.interface) for rail in rails)

    def _offered(self, offered: Mapping[str, PluginDevice], others: Sequence[str]) -> Verdict:
        """Judge the list of devices. An interface instead of an RDMA device means TCP."""
        by_tcp = [name for name in others if name not in self.facts.devices]
        if by_tcp:
            remedy = f"1. Check that the rails of {self.host} have addresses. 2. Remove {DISABLE_RDMA} from the plugin's variables."
            return ERROR, f"{', '.join(by_tcp)}: no RDMA device, so the plugin uses TCP", remedy
        if others:
            observed = f"{', '.join(offered)}; {', '.join(others)} do not belong to a compute rail, and the plugin may use them"
            return WARNING, observed, "Remove the addresses of these devices, or use a plugin that can exclude them."
        return OK, ", ".join(offered), ""

    def _rail(self, rail: ResolvedRail, offered: Mapping[str, PluginDevice], interface: int) -> Finding:
        """The finding on one rail: the plugin offers its device, with its speed, and uses its GID."""
        subject = f"{rail.name} of "
        if rail.device is None or rail.port is None:
            return self.finding(subject, (NOT_APPLICABLE, "the rail has no RDMA device", ""), "a device")
        seen, device = offered.get(rail.device), self.facts.devices[rail.device]
        rate = None if device.software else device.ports[rail.port].rate_gbps
        expected = f"{rail.device}, {rate:g} Gb/s" if rate else str(rail.device)
        if seen is None:
            observed = f"{rail.device} is not offered; the plugin has {', '.join(offered)}"
            remedy = f"1. On {self.host}, check the address of {rail.name}. 2. nccl-mesh-plugin uses at most 8 devices: use fewer rails."
            return self.finding(subject, (ERROR, observed, remedy), expected)
        memory = "GPU memory" if "cuda" in seen.memory else "host memory only, so no GPUDirect RDMA"
        words = f"{seen.name}, {(seen.speed_mbps or 0) / 1000:g} Gb/s, {memory}"
        status, more, remedy = _speed(seen, rate, interface)
        if status == OK and self.plugin["kind"] == MESH:
            status, more, remedy = self._gid(rocev2_gid_index(device.ports[rail.port], rail_ip(rail.rail)))
        return self.finding(subject, (status, words + more, remedy), expected)

    def _gid(self, index: int | None) -> Verdict:
        """Judge the GID of nccl-mesh-plugin. index: that of the rail's address; other checks report a missing one."""
        used = int(self.plugin["variables"].get(GID_INDEX, PLUGIN_VARIABLES[GID_INDEX].default))
        if index in (None, used):
            return OK, "", ""
        remedy = f"Set {GID_INDEX} in rdma_nccl.plugin.variables to {index}. Only newer versions of the plugin find the GID by the address."
        return WARNING, f"; {GID_INDEX} is {used}, but the rail's address has the GID index {index}", remedy


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"v{number}" for number in numbers) or "none"


def _started(probe: PluginProbe) -> str:
    if probe.init:
        return f"init failed with {probe.init} ({RESULTS.get(probe.init, 'unknown')})"
    return "it offers no device" if probe.devices is not None else "devices failed"


def _last(probe: PluginProbe) -> str:
    return f"; its last message is '{probe.log[-1]}'" if probe.log else ""


def _speed(seen: PluginDevice, rate: float | None, interface: int) -> Verdict:
    """Judge the speed that NCCL reads. rate: of the port in Gb/s; None for a software device."""
    speed = (seen.speed_mbps or 0) / 1000
    if rate and speed < rate * _IMPOSSIBLE:
        observed = f"; the plugin does not have the layout of NCCL's interface v{interface}, so NCCL reads wrong values"
        return ERROR, observed, "Use an NCCL, or a version of the plugin, with which they share a newer interface."
    if rate and not rate * _CLOSE <= speed <= rate / _CLOSE:
        return WARNING, "; NCCL plans with this speed", "Expect that NCCL prefers other NICs, or use another version of the plugin."
    return OK, "", ""
