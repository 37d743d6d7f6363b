# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The profiles of rdma_nccl, as data: the settings of each in addition to those derived from rails and fabric, and why.

Not set, because NCCL does it better by itself or does not have it (names and defaults: NCCL 2.30.7):
- NCCL_NET_GDR_LEVEL and NCCL_P2P_LEVEL: they are for tests; NCCL knows the distances.
- NCCL_IB_MERGE_NICS in a mesh: routing by subnet takes a single port where those of one card lead to different hosts.
- NCCL_IB_PCI_RELAXED_ORDERING: its 2 means "where it can be had", and its 1 does no more.
- NCCL_IB_WARN_RAIL_LOCAL: in spite of its name it says something at NCCL_DEBUG=INFO only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules_plan import PLUGIN
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import MESH as MESH_PLUGIN
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import NONE
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.mesh import RELAY

Version = tuple[int, ...]
_LIBRARY = re.compile(r"(?:.*/)?libnccl-net-([^/]+)\.so", re.ASCII)
_NUMBERS = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", re.ASCII)


def knows(version: str | None, since: Version) -> bool:
    """Return whether an NCCL of this version ("2.20.5") has a feature of another version; None means a recent one.

    "2.30" is assumed to be the newest 2.30.
    """
    if version is None or not _NUMBERS.fullmatch(version):
        return True
    numbers = tuple(int(number) for number in version.split("."))
    return numbers >= since[: len(numbers)]


DEBUG, DEBUG_SUBSYS, TOPOLOGY = "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_TOPO_FILE"
FIRST_RUN, RAIL_ONLY, MESH, CLOUD = "debug_first_run", "rail_only", "mesh", "cloud"
#: Exists once collectives have passed on a host with the profile debug_first_run. The role writes it after the gate of that stage.
PASSED = "/etc/rdma-cluster/nccl-first-run-passed"
#: The version since which NCCL selects the NIC by the peer's subnet.
BY_SUBNET_SINCE = (2, 30, 7)


@dataclass(frozen=True)
class Setting:
    """A variable of a profile. value: returns its value for a host, None if it is not set there. since: the first NCCL version with it."""

    name: str
    value: Callable[[Intent, Facts], str | None]
    reason: str
    since: Version = ()


def has_passed(facts: Facts) -> bool:
    """Return whether collectives have passed on a host with the profile debug_first_run."""
    return PASSED in (facts.files or {})


def prefix_lengths(intent: Intent) -> dict[str, int]:
    """Return rail name → prefix length of the address, for each RoCE rail of NCCL."""
    rails = (rail for rail in intent["rails"] if rail["role"] == "compute" and rail["link_layer"] == "roce" and rail["address"])
    return {rail["name"]: ipaddress.ip_interface(str(rail["address"])).network.prefixlen for rail in rails}


def loaded_plugin(intent: Intent) -> str | None:
    """Return the network plugin that NCCL loads: "mesh", or the name of another; None without one.

    It is that of rdma_nccl.plugin, or the one that NCCL_NET_PLUGIN of rdma_nccl.variables names: "mesh", or the file libnccl-net-mesh.so.
    """
    plugin, named = intent["nccl"]["plugin"], intent["nccl"]["variables"].get(PLUGIN)
    if plugin["kind"] == NONE:
        library = _LIBRARY.fullmatch(str(named))
        return None if named in (None, "none") else library[1] if library else str(named)
    return MESH_PLUGIN if plugin["kind"] == MESH_PLUGIN else plugin["name"]


def relays(intent: Intent) -> bool:
    """Return whether NCCL reaches hosts that share no cable, through other hosts. NCCL itself does not.

    nccl-mesh-plugin does by default (679a394). With the profile mesh as well, NCCL's own routing may be used, so NCCL_MESH_ENABLE_RELAY=1
    must request it; so too for a plugin that only rdma_nccl.variables name, whose version is unknown: the first release (031bc48) does not
    relay.
    """
    nccl, plugin = intent["nccl"], intent["nccl"]["plugin"]
    default = "1" if plugin["kind"] == MESH_PLUGIN and nccl["profile"] != MESH else "0"
    relay = {**plugin["variables"], **nccl["variables"]}.get(RELAY, default)
    return loaded_plugin(intent) == MESH_PLUGIN and str(relay) != "0"


def _always(value: str) -> Callable[[Intent, Facts], str | None]:
    return lambda _intent, _facts: value


def _level(_intent: Intent, facts: Facts) -> str:
    return "WARN" if has_passed(facts) else "INFO"


def _subsystems(_intent: Intent, facts: Facts) -> str | None:
    return None if has_passed(facts) else "INIT,BOOTSTRAP,ENV,NET"


def _prefix_length(intent: Intent, _facts: Facts) -> str | None:
    """Return the common length of all rails of a host; the rules of another section reject a mesh with several."""
    lengths = set(prefix_lengths(intent).values())
    return str(lengths.pop()) if len(lengths) == 1 else None


def _topology(intent: Intent, _facts: Facts) -> str | None:
    path: str | None = intent["nccl"]["topology_file"]
    return path


#: In the order of the documentation; `default` sets nothing.
PROFILES: dict[str, tuple[Setting, ...]] = {
    "default": (),
    FIRST_RUN: (
        Setting(DEBUG, _level, "INFO shows the transport, NICs and files that a job really uses; after the first good run, WARN is enough"),
        Setting(DEBUG_SUBSYS, _subsystems, "NET adds GPUDirect and queue pairs to the default subsystems of INFO (INIT, BOOTSTRAP, ENV)"),
    ),
    RAIL_ONLY: (Setting("NCCL_CROSS_NIC", _always("0"), "a ring that changes the NIC between hosts would need a path between rails"),),
    MESH: (
        Setting(
            "NCCL_IB_SUBNET_AWARE_ROUTING",
            _always("1"),
            "each peer is reached through one port, that of the common subnet",
            BY_SUBNET_SINCE,
        ),
        Setting("NCCL_IB_SUBNET_PREFIX_LEN", _prefix_length, "the subnets are those of the rails' addresses", BY_SUBNET_SINCE),
    ),
    CLOUD: (Setting(TOPOLOGY, _topology, "a virtual machine shows an artificial PCI tree, and may not look like a virtual machine"),),
}


def profile_settings(intent: Intent, facts: Facts) -> Iterator[tuple[Setting, str]]:
    """Yield the settings of a host's profile, with their values."""
    for setting in PROFILES[intent["nccl"]["profile"]]:
        value = setting.value(intent, facts)
        if value is not None and knows(intent["nccl"]["version"], setting.since):
            yield setting, value
