# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nccl stage's values derived from intent and facts: NCCL's variables, and the files with them.

Not set: variables that NCCL finds better by itself; NCCL_IB_SL without `vlan.pcp`: it is the priority of a VLAN tag;
and NCCL_DEBUG, which is for a check and not for every job (the profile debug_first_run sets it until one has passed).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import (
    ManagedFile,
    described,
    differs,
    files_differ,
    is_shared,
    others_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import render_environment, render_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules_devices import WITHIN_HOST
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import session_address
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    ResolvedRail,
    rail_addresses,
    rail_ip,
    resolve,
    rocev2_gid_index,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import HCA, SOCKET_IFNAME, STAGE, Kind
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import KEY as MANAGEMENT
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import management_of, rail_under
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import (
    DEBUG,
    DEBUG_SUBSYS,
    FIRST_RUN,
    MESH,
    PASSED,
    TOPOLOGY,
    has_passed,
    knows,
    profile_settings,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import fabric
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.fabric import (
    COLLNET,
    CROSS_NIC,
    PKEY,
    SEE_HCA,
    collnet,
    no_device_words,
    pkey_index,
    rails_apart,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.launchers import HEADER, LAUNCHERS, launcher_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import (
    BY_PLUGIN,
    mesh_path,
    plugin_missing,
    plugin_unread,
    plugin_variables,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile, service_level

declare(
    {
        "nccl.socket_ifname": Check(
            "nccl",
            "the source of `NCCL_SOCKET_IFNAME`: `rdma_nccl`, else the interface of `rdma_fabric.management`, else that of Ansible's SSH "
            "session; or why it is not set",
            "the session's address and the interfaces' addresses",
            "set `rdma_fabric.management`, or `rdma_nccl.socket_ifname`",
            sources=(reads.kernel("SSH_CONNECTION"), reads.ADDRESSES),
        ),
        "nccl.gid_index": Check(
            "nccl",
            "`NCCL_IB_GID_INDEX`, if NCCL is older than 2.21",
            "`ports/N/gids`",
            "use NCCL 2.21 or newer",
            sources=(reads.but(reads.GIDS, absent_means=reads.NO_GID), reads.but(reads.GID_TYPES, absent_means=reads.NO_GID)),
        ),
    }
)

GID_INDEX = "NCCL_IB_GID_INDEX"
NO_RAIL = "no compute rail is planned"
ADDR_FAMILY, ADDR_RANGE = "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE"
TRAFFIC_CLASS, SERVICE_LEVEL = "NCCL_IB_TC", "NCCL_IB_SL"
#: From this version on, NCCL finds the RoCE v2 GID of each port. Older versions use index 0 by default.
FINDS_GID_SINCE = (2, 21)


def nccl_variables(intent: Intent, facts: RunFacts) -> dict[str, str]:
    """Return NCCL's variables for a host, by name; those of the user (rdma_nccl.variables) override the others.

    NCCL_IB_HCA names exactly the devices of the compute rails, in the order of the rails; it is absent if none has a device. NCCL_IB_TC is
    the traffic class of the RoCE profile, if there is one and a compute rail is RoCE. NCCL_IB_SL is the PCP of the rails' VLANs, because
    the NIC copies it into the tag. NCCL_IB_PKEY is the index of the ports' partition, if it is not the first and the same on all rails.
    NCCL_COLLNET_ENABLE is 1 if SHARP runs on the planes of all rails. NCCL_CROSS_NIC is 0 if no network connects the compute rails.
    NCCL_TOPO_FILE is for virtual machines; on other hosts NCCL sees the PCI tree itself. NCCL_SOCKET_IFNAME is rdma_nccl.socket_ifname,
    else the interface of socket_interface. NCCL_IB_ADDR_FAMILY and NCCL_IB_ADDR_RANGE: see address_variables. The settings of the profile
    (rdma_nccl.profile) are added, and NCCL_NET_PLUGIN with the variables of a plugin.
    """
    nccl = intent["nccl"]
    derived: dict[str, str] = {}
    if rails := _compute_rails(intent, facts):
        derived[HCA] = "=" + ",".join(f"{rail.device}:{rail.port}" for rail in rails)
    if index := pkey_index(intent, facts, rails):
        derived[PKEY] = index
    if collnet(intent):
        derived[COLLNET] = "1"
    if rails_apart(intent):
        derived[CROSS_NIC] = "0"
    if nccl["topology_file"] and facts.iommu and facts.iommu.virtual_machine:
        derived[TOPOLOGY] = nccl["topology_file"]
    derived.update(_gid_variables(intent, facts))
    if (profile := roce_profile(intent)) and roce_computes(intent):
        derived[TRAFFIC_CLASS] = str(profile["traffic_class"])
    if (pcp := service_level(compute_rails(intent))) is not None:
        derived[SERVICE_LEVEL] = str(pcp)
    if name := nccl["socket_ifname"] or socket_interface(intent, facts)[0]:
        derived[SOCKET_IFNAME] = f"={name}"
    if mesh_path(intent, facts).by != BY_PLUGIN or nccl["profile"] != MESH:
        derived.update((setting.name, value) for setting, value in profile_settings(intent, facts))
    derived.update(plugin_variables(intent, facts))
    return {**derived, **{name: str(value) for name, value in nccl["variables"].items()}}


def socket_interface(intent: Intent, facts: RunFacts) -> tuple[str | None, str]:
    """Return the interface for NCCL's sockets, and why it is this one or none: that of rdma_fabric.management, else of Ansible's session.

    A host without the interface of its management network gets none: the session's may be another network than that of the other hosts.
    """
    management = management_of(intent, facts)
    if management is None:
        return session_interface(intent, facts)
    if not _has_compute_rail(intent):
        return None, NO_RAIL
    return management.netdev, management.why_not or f"{management.netdev}, the interface of {MANAGEMENT}"


def _gid_variables(intent: Intent, facts: RunFacts) -> dict[str, str]:
    """Return the variables by which NCCL finds the GIDs: of old versions the index, if it is known and the same on all ports."""
    if not _needs_gid_index(intent["nccl"]["version"]):
        return address_variables(intent)
    indexes = set(_gid_indexes(intent, facts).values())
    return {GID_INDEX: str(indexes.pop())} if len(indexes) == 1 and None not in indexes else {}


def address_variables(intent: Intent) -> dict[str, str]:
    """Return the variables by which NCCL finds the GID of each RoCE rail. Only IPv4 rails with one address each need none.

    NCCL takes one family and one range for all ports of a host, and by default the first IPv4 GID of a port. The range is needed only if a
    rail has several addresses of the family: it is the smallest network around the subnets of the rails. If that contains one of the
    further addresses as well, there is no range.
    """
    rails = [rail for rail in intent["rails"] if rail["role"] == "compute" and rail["link_layer"] == "roce" and rail["address"]]
    if len({is_ipv6(str(rail["address"])) for rail in rails}) != 1:
        return {}
    ipv6 = is_ipv6(str(rails[0]["address"]))
    found = {ADDR_FAMILY: "AF_INET6"} if ipv6 else {}
    others = [ipaddress.ip_interface(text).ip for rail in rails for text in rail_addresses(rail)[1:] if is_ipv6(text) is ipv6]
    if others:
        around = _around([*(str(rail["address"]) for rail in rails), *(route for rail in rails for route in rail["routes"])])
        found |= {} if any(each in around for each in others) else {ADDR_RANGE: str(around)}
    return found


def _around(texts: Sequence[str]) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return the smallest network that contains these addresses and networks, of one family, with their subnets."""
    networks = [ipaddress.ip_interface(text).network for text in texts]
    around = networks[0]
    while not all(each.prefixlen >= around.prefixlen and each.overlaps(around) for each in networks):
        around = around.supernet()
    return around


def session_interface(intent: Intent, facts: RunFacts) -> tuple[str | None, str]:
    """Return the interface for NCCL's sockets, that of Ansible's SSH session, and why it is this one or none."""
    address, name = (facts.session.address, facts.session.netdev) if facts.session else (None, None)
    why_not = _no_session_interface(intent, facts, address, name)
    return (None, why_not) if why_not else (name, f"{name}, the interface of Ansible's session")


def _no_session_interface(intent: Intent, facts: RunFacts, address: str | None, name: str | None) -> str:
    """Return why the session's interface is not for NCCL's sockets; "" if it is."""
    if not _has_compute_rail(intent):
        return NO_RAIL
    if address is None:
        return "Ansible's connection to the host is not SSH"
    reached_at, comes_in = facts.reached_at or "", f"Ansible's session uses {name}, which"
    rail = rail_under(name, resolve(intent["rails"], facts), facts)
    reasons = {
        f"Ansible reaches the host at {reached_at}, through a forwarded port": reached_at == "localhost"
        or reached_at.startswith(("127.", "::1")),
        f"Ansible's session uses {address}, a loopback address": session_address(facts.session) is None or name == "lo",
        f"no interface, or more than one, has {address}, the address of Ansible's session": name is None,
        f"{comes_in} is {rail.name if rail else None}": rail is not None,
        f"{comes_in} does not lead to other hosts": (name or "").startswith(WITHIN_HOST),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _has_compute_rail(intent: Intent) -> bool:
    return any(rail["role"] == "compute" for rail in intent["rails"])


def check_socket(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    """Return the finding `nccl.socket_ifname`: the source of NCCL_SOCKET_IFNAME, or why it is not set. nccl.lint judges its value."""
    nccl, check, expected = intent["nccl"], "nccl.socket_ifname", "an interface that connects the hosts and is not a rail"
    if nccl["socket_ifname"] or SOCKET_IFNAME in nccl["variables"]:
        return [Finding(STAGE, check, host, SOCKET_IFNAME, NOT_APPLICABLE, "set by rdma_nccl; nccl.lint judges it", expected)]
    if SOCKET_IFNAME in others_of(facts.files, nccl["conf_file"]):
        words = f"set by a foreign line in {nccl['conf_file']}; nccl.lint judges it"
        return [Finding(STAGE, check, host, SOCKET_IFNAME, NOT_APPLICABLE, words, expected)]
    name, why = socket_interface(intent, facts)
    if name is not None:
        return [Finding(STAGE, check, host, SOCKET_IFNAME, OK, f"={why}", expected)]
    management = management_of(intent, facts)
    if management is not None and why != NO_RAIL:
        remedy = f"Correct {MANAGEMENT} for {host}, or set rdma_nccl.socket_ifname; planes.management names the host's interfaces."
        return [Finding(STAGE, check, host, SOCKET_IFNAME, ERROR if management.read else UNKNOWN, f"not set: {why}", expected, remedy)]
    return [Finding(STAGE, check, host, SOCKET_IFNAME, NOT_APPLICABLE, f"not set, so NCCL chooses: {why}", expected)]


def files_to_ask(intent: Intent) -> list[str]:
    """Return the files to read for the facts, in addition to those of the collection."""
    nccl = intent["nccl"]
    topology = nccl["variables"].get(TOPOLOGY) or nccl["topology_file"]
    return [nccl["conf_file"], nccl["environment_file"], *([str(topology)] if topology else [])]


def alike_variables(intent: Intent, facts: RunFacts) -> dict[str, str]:
    """Return those variables that are equal on like hosts: only the host itself knows whether its first collectives have passed."""
    own = (DEBUG, DEBUG_SUBSYS) if intent["nccl"]["profile"] == FIRST_RUN else ()
    return {name: value for name, value in effective_variables(intent, facts).items() if name not in own}


def alike_kind(intent: Intent, facts: RunFacts) -> Kind:
    """Return the properties of a host's rails that decide with which hosts its variables are compared."""
    compute = [rail for rail in intent["rails"] if rail["role"] == "compute"]
    return Kind(
        link_layers=frozenset(rail["link_layer"] for rail in compute),
        planes=frozenset(rail["plane"] for rail in compute),
        rails_apart=rails_apart(intent),
        devices_of=tuple(rail.name for rail in _compute_rails(intent, facts)),
    )


def nccl_files(intent: Intent, facts: RunFacts, replace_allowed: bool = False) -> list[ManagedFile]:
    """Return nccl.conf, the environment file and those of launchers, in this order; none without NCCL rails and user settings.

    A variable that a foreign line in nccl.conf sets to another value is in none of them, so that this line applies. replace_allowed: the
    line becomes a comment instead. Files of removed launchers, and the mark of a first run, are removed (content None). Raises ValueError
    for a variable that cannot be written to a file.
    """
    nccl, wanted = intent["nccl"], nccl_variables(intent, facts)
    kept = kept_variables(intent, facts)
    variables = wanted if replace_allowed else {name: value for name, value in wanted.items() if name not in kept}
    files: list[ManagedFile] = []
    if wanted or any(rail["role"] == "compute" for rail in intent["rails"]):
        conf, environment = render_nccl_conf(variables), render_environment(_without(variables, facts, nccl["environment_file"]))
        files = [
            _in_block(nccl["conf_file"], conf, sorted(kept) if replace_allowed else ()),
            _in_block(nccl["environment_file"], environment),
            *(launcher_file(name, variables, nccl["conf_file"]) for name in LAUNCHERS if name in nccl["launchers"]),
        ]
    ours = [*(launcher.path for launcher in LAUNCHERS.values()), *([] if nccl["profile"] == FIRST_RUN else [PASSED])]
    paths, there = {file.path for file in files}, facts.files or {}
    return [*files, *(ManagedFile(path, None) for path in ours if path in there and path not in paths)]


def _in_block(path: str, text: str, replaced: Sequence[str] = ()) -> ManagedFile:
    """Return a file with these lines: a block of it, or the whole file in the collection's own folder."""
    return ManagedFile(path, text, block=True, replaced=replaced) if is_shared(path) else ManagedFile(path, HEADER + text)


def _without(variables: Mapping[str, str], facts: RunFacts, path: str) -> dict[str, str]:
    """Return the variables that no foreign line in a file sets to another value."""
    others = others_of(facts.files, path)
    return {name: value for name, value in variables.items() if others.get(name, value) == value}


def kept_variables(intent: Intent, facts: RunFacts) -> dict[str, tuple[str, str]]:
    """Return the variables that foreign lines in nccl.conf set to another value than the intent: name → (theirs, the intent's)."""
    others, wanted = others_of(facts.files, intent["nccl"]["conf_file"]), nccl_variables(intent, facts)
    return {name: (value, wanted[name]) for name, value in sorted(others.items()) if wanted.get(name, value) != value}


def kept_words(intent: Intent, facts: RunFacts) -> list[str]:
    """Return the same as sentences, for the role."""
    conf_file = intent["nccl"]["conf_file"]
    return [f"{conf_file} sets {name}={theirs}, the intent {name}={ours}" for name, (theirs, ours) in kept_variables(intent, facts).items()]


def effective_variables(intent: Intent, facts: RunFacts) -> dict[str, str]:
    """Return NCCL's variables for the jobs of a host: those of the intent, with the kept foreign lines in nccl.conf."""
    return {**nccl_variables(intent, facts), **{name: theirs for name, (theirs, _ours) in kept_variables(intent, facts).items()}}


def passed_files(intent: Intent, facts: RunFacts) -> list[ManagedFile]:
    """Return the files to write when collectives have passed for the first time on a host with the profile debug_first_run."""
    if intent["nccl"]["profile"] != FIRST_RUN or has_passed(facts):
        return []
    mark = ManagedFile(PASSED, HEADER)
    later = replace(facts, files={**(facts.files or {}), mark.path: described(HEADER, mark.mode)})
    return [mark, *(file for file in nccl_files(intent, later) if differs(file, later.files))]


def nccl_passed(intent: Intent, facts: RunFacts) -> list[dict[str, Any]]:
    """Return the same in the shape of rdma.cluster.managed_files."""
    return [_as_options(file) for file in passed_files(intent, facts)]


def nccl_differs(intent: Intent, facts: RunFacts, replace_allowed: bool = False) -> bool:
    """Return whether any of the files differs from the plan, or is unknown. replace_allowed: as for nccl_files.

    False if a compute rail has no device now: its files would be incomplete, and the driver stage comes first. False if the network plugin
    is unknown: the files would name its library.
    """
    if missing_devices(intent, facts) or (plugin_missing(intent, facts) and plugin_unread(facts)):
        return False
    return files_differ(nccl_files(intent, facts, replace_allowed), facts.files)


def missing_devices(intent: Intent, facts: RunFacts) -> list[str]:
    """Return the names of the compute rails without a device."""
    return [rail.name for rail in planned_rails(intent, facts) if rail.device is None]


def with_missing_devices(findings: Sequence[Finding], host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    """Return the findings of a gate, plus one for missing devices of compute rails.

    Files that wait for them, or for the network plugin, are not an error: another finding reports the cause.

    If the user names the devices (rdma_nccl.variables), an error on one of these already reports it.
    """
    names = missing_devices(intent, facts)
    if not names:
        missing = plugin_missing(intent, facts)
        return [_waiting(each, "the network plugin is not installed as requested") if missing else each for each in findings]
    words = no_device_words(names)
    rest = [_waiting(each, words) for each in findings if (each.check, each.subject, each.status) != ("nccl.hca", HCA, UNKNOWN)]
    if HCA in intent["nccl"]["variables"] and any(each.check == "nccl.hca" for each in stopping(rest)):
        return rest
    remedy = f"Run the driver stage for {host}, and fix the findings of its gate."
    return [Finding(STAGE, "nccl.hca", host, HCA, UNKNOWN, words, "a device for each compute rail", remedy), *rest]


def _waiting(finding: Finding, words: str) -> Finding:
    if (finding.check, finding.status) != ("nccl.file", ERROR):
        return finding
    return replace(finding, status=NOT_APPLICABLE, observed=f"unchanged: {words}", remedy="")


def files_to_write(intent: Intent, facts: RunFacts, replace_allowed: bool = False) -> list[dict[str, Any]]:
    """Return the files that differ from the plan, in the shape of rdma.cluster.managed_files. replace_allowed: as for nccl_files."""
    return [_as_options(file) for file in nccl_files(intent, facts, replace_allowed) if differs(file, facts.files)]


def _as_options(file: ManagedFile) -> dict[str, Any]:
    more = {"block": True, "replaced": list(file.replaced)} if file.block else {}
    return {"path": file.path, "content": file.content, "mode": f"{file.mode:04o}", **more}


def check_pkey(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    """Return the finding `nccl.pkey` (_nccl/fabric.py)."""
    return fabric.check_pkey(host, intent, facts, _compute_rails(intent, facts))


def check_gid_index(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    """Return the finding `nccl.gid_index`: NCCL before 2.21 uses one GID index for all rails of a host, so it must be the same on all."""
    version, check, expected = intent["nccl"]["version"], "nccl.gid_index", "one GID index for all RoCE rails"
    indexes = _gid_indexes(intent, facts)
    why = ""
    if not _needs_gid_index(version):
        why = f"NCCL {version or '(assumed to be 2.21 or newer)'} finds the GID by itself"
    elif GID_INDEX in intent["nccl"]["variables"]:
        why = "rdma_nccl.variables sets it"
    elif not roce_computes(intent):
        why = "no compute rail is RoCE"
    if why:
        return [Finding(STAGE, check, host, GID_INDEX, NOT_APPLICABLE, why, expected)]
    seen = ", ".join(f"{rail}: {'none' if index is None else index}" for rail, index in indexes.items())
    if not indexes:
        return [Finding(STAGE, check, host, GID_INDEX, NOT_APPLICABLE, f"no RDMA device: {SEE_HCA}", expected)]
    if len(set(indexes.values())) == 1 and None not in indexes.values():
        return [Finding(STAGE, check, host, GID_INDEX, OK, seen, expected)]
    remedy = f"On {host}, use NCCL 2.21 or newer instead of {version}: it finds the GID of each rail by itself."
    return [Finding(STAGE, check, host, GID_INDEX, ERROR, seen, expected, remedy)]


def _compute_rails(intent: Intent, facts: RunFacts) -> list[ResolvedRail]:
    """Return the rails for NCCL with a device."""
    return [rail for rail in planned_rails(intent, facts) if rail.device is not None]


def planned_rails(intent: Intent, facts: RunFacts) -> list[ResolvedRail]:
    """Return the rails for NCCL, without storage rails."""
    return [rail for rail in resolve(intent["rails"], facts) if rail.rail["role"] == "compute"]


def roce_computes(intent: Intent) -> bool:
    """Return whether a rail for NCCL is RoCE."""
    return any(rail["link_layer"] == "roce" for rail in intent["rails"] if rail["role"] == "compute")


def compute_rails(intent: Intent) -> list[Rail]:
    """Return the planned rails for NCCL."""
    return [rail for rail in intent["rails"] if rail["role"] == "compute"]


def _gid_indexes(intent: Intent, facts: RunFacts) -> dict[str, int | None]:
    """Return rail name → the index of the RoCE v2 GID for its address; None if it has no such GID."""
    indexes = {}
    for rail in _compute_rails(intent, facts):
        if rail.rail["link_layer"] == "roce" and rail.device and rail.port:
            indexes[rail.name] = rocev2_gid_index(facts.devices[rail.device].ports[rail.port], rail_ip(rail.rail))
    return indexes


def _needs_gid_index(version: str | None) -> bool:
    """Return whether NCCL needs a GID index. version: of NCCL ("2.20.5"); None means a recent one."""
    return not knows(version, FINDS_GID_SINCE)
