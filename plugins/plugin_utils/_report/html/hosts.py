# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the facts of all hosts show, read one host after the other: the facts of 512 hosts at once would need a gigabyte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit, is_software, limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import names
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import if_sound, natural

#: Packages whose version is shown and compared.
PACKAGES = ("perftest", "rdma-core", "infiniband-diags", "opensm", "mstflint", "doca-ofed", "mlnx-ofed-basic")
#: Values that one row names at most.
SHOWN = 12


@dataclass
class HostFacts:
    """What the report keeps of each host's facts.

    traits: host → name → value, what "changed" means; near: host → ((GPU, NIC, distance), …); guids: (host, device) → node GUID in
    hexadecimal digits; limits: host → rail → limit of the pairs stage; unread: host → why its facts cannot be used; schemas: the schemas of
    all facts.
    """

    traits: dict[str, dict[str, str]] = field(default_factory=dict)
    near: dict[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    guids: dict[tuple[str, str], str] = field(default_factory=dict)
    limits: dict[str, Mapping[str, Limit | NoLimit]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    schemas: set[Any] = field(default_factory=set)


def read_hosts(run: Run, plan: Mapping[str, Any] | None) -> HostFacts:
    """Return what the facts of a run show. plan: of the sweep, for the limits of its ports; None if there was none."""
    found = HostFacts()
    planned = set(plan["hosts"]) if plan else set()
    for host, file in run.host_files("facts"):
        tree = if_sound(file)
        if tree is None:
            found.unread[host] = "the file is damaged"
            continue
        found.schemas.add(tree.get("schema"))
        try:
            found.traits[host] = traits(tree)
            found.near[host] = _near(tree)
            for name, device in (tree.get("devices") or {}).items():
                found.guids[host, name] = _digits(device.get("node_guid"))
            if plan is not None and host in planned:
                intent = if_sound(run.folder.path / run.folder.host_file("intent", host))
                if intent is not None:
                    one = {**plan, "hosts": [host]}
                    found.limits |= limits(one, {host: intent}, {host: from_dict(comparable(tree))})
        except Exception as error:  # noqa: BLE001 (whatever a host's data does)
            found.unread[host] = f"{type(error).__name__}: {error}"
    return found


def _digits(guid: Any) -> str:
    return str(guid or "").removeprefix("0x").replace(":", "").lower()


def traits(tree: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of a host and of its devices by name: "kernel", "firmware of mlx5_0"."""
    stack, boot = tree.get("stack") or {}, tree.get("boot") or {}
    distribution, modules = stack.get("distribution") or {}, stack.get("modules") or {}
    found = {
        "operating system": f"{distribution.get('id') or '?'} {distribution.get('version_id') or ''}".strip(),
        "kernel": stack.get("kernel"),
        "kernel command line": boot.get("cmdline"),
        "NVIDIA driver": (tree.get("gpu_driver") or {}).get("version"),
        "CUDA": (tree.get("gpu_support") or {}).get("cuda"),
        "Fabric Manager": (tree.get("gpu_support") or {}).get("fabric_manager"),
        "NCCL": _nccl(tree),
        **{f"module {name}": modules[name].get("version") for name in ("mlx5_core", "mlx5_ib") if name in modules},
        **{f"package {name}": (distribution.get("packages") or {}).get(name) for name in PACKAGES},
    }
    for name, device in sorted((tree.get("devices") or {}).items()):
        if not device.get("software"):
            found[f"firmware of {name}"] = device.get("firmware")
            found[f"board of {name}"] = device.get("board_id")
        for number, port in sorted((device.get("ports") or {}).items()):
            found[f"rate of {name} port {number}"] = f"{port['rate_gbps']:g} Gb/s" if port.get("rate_gbps") else None
        pci = device.get("pci") or {}
        if pci.get("width"):
            found[f"PCIe of {name}"] = f"{pci.get('speed_gtps'):g} GT/s x{pci['width']}"
    return {name: str(value) for name, value in found.items() if value}


def _nccl(tree: Mapping[str, Any]) -> str | None:
    nccl = tree.get("nccl") or {}
    version = nccl.get("version") or (nccl.get("library") or {}).get("version") if isinstance(nccl, Mapping) else None
    return str(version) if version else None


def _near(tree: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    distances = tree.get("distances") or {}
    return tuple((gpu, nic, str(distance or "unknown")) for gpu, of in sorted(distances.items()) for nic, distance in sorted(of.items()))


@dataclass(frozen=True)
class Version:
    """One trait of the fleet. values: (value, number of hosts, the hosts in words), the most frequent first."""

    name: str
    values: Sequence[tuple[str, int, str]]


def versions(found: HostFacts) -> list[Version]:
    """Return each trait with its values. The devices of a host share a row if their name is the only difference."""
    by_trait: dict[str, dict[str, dict[str, None]]] = {}
    for host, of in found.traits.items():
        for name, value in of.items():
            short = name.split(" of ", 1)[0] if " of " in name else name
            by_trait.setdefault(short, {}).setdefault(value, {})[host] = None
    return [
        Version(
            name,
            [(value, len(hosts), names(list(hosts))) for value, hosts in sorted(values.items(), key=lambda each: -len(each[1]))][:SHOWN],
        )
        for name, values in by_trait.items()
        if name != "kernel command line"
    ]


@dataclass(frozen=True)
class Affinity:
    """The distances of GPUs and NICs that some hosts share. rows: GPU → NIC → distance, as rows of a table."""

    hosts: str
    count: int
    nics: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


def affinity(found: HostFacts) -> list[Affinity]:
    """Return the tables of distances, that of most hosts first; empty if no host has a GPU and a NIC."""
    groups: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for host, near in found.near.items():
        if near:
            groups.setdefault(near, []).append(host)
    tables = []
    for near, hosts in sorted(groups.items(), key=lambda each: -len(each[1])):
        nics = sorted({nic for _gpu, nic, _distance in near}, key=natural)
        cells = {(gpu, nic): distance for gpu, nic, distance in near}
        gpus = list(dict.fromkeys(gpu for gpu, _nic, _distance in near))
        tables.append(Affinity(names(hosts), len(hosts), nics, [(gpu, [cells.get((gpu, nic), "") for nic in nics]) for gpu in gpus]))
    return tables[:SHOWN]


def kind_of_devices(found: HostFacts) -> str:
    """Return what the measured devices are, for the evidence of figures: "cards", "software", "mixed" or "unknown"."""
    every = [limit for of in found.limits.values() for limit in of.values()]
    soft = sum(map(is_software, every))
    if not every:
        return "unknown"
    return "software" if soft == len(every) else "mixed" if soft else "cards"


def changed_traits(
    before: Iterable[tuple[str, Mapping[str, str]]], now: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str, str, str]]:
    """Return (hosts in words, trait, was, is) of hosts that both runs have read; hosts with the same change share a line."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for host, old in before:
        new = now.get(host)
        if new is None:
            continue
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                lines.setdefault((name, old.get(name, "none"), new.get(name, "none")), []).append(host)
    return [(names(hosts), *key) for key, hosts in lines.items()]
