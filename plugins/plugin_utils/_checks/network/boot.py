# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on the next boot: the file of each rail for the network manager, and the files that override it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import rail_users
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.networkd import NETPLAN as NETPLAN_FILES
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import bond_name
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import NETPLAN, NM_BACKEND
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import BootNetwork
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import owner_name
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NETWORKD_UNIT, NM_UNIT, PENDING
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_addresses, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.links import missing_words

_NETWORK_FILES = "/etc/systemd/network"
_NO_NETWORK_FILE = "no file of the rail applies at boot, which is an error"
declare(
    {
        "network.boot": Check(
            "network",
            "how the network manager would configure each planned rail at the next boot: the file that applies first, with its drop-ins, "
            "MTU and addresses, by file and line; and that no other manager would",
            "`.network` files and their `.d` folders in `/etc`, `/run`, `/usr/local/lib` and `/usr/lib/systemd/network`; profiles and "
            "configuration of NetworkManager; files of netplan; `systemctl show`",
            "remove the line or the file that the finding names; run the network stage",
            sources=(
                reads.folder(_NETWORK_FILES, absent_means=_NO_NETWORK_FILE),
                reads.file(
                    f"{_NETWORK_FILES}/60-rdma-*.network",
                    absent_means=_NO_NETWORK_FILE,
                    garbled_means="a file that does not apply is an error",
                ),
                reads.file("/run/udev/data/n*"),
                reads.file(f"{reads.NET}/ifindex"),
                reads.UNITS,
            ),
        ),
    }
)

STAGE = "network"
#: (status, observed, remedy)
Verdict = tuple[str, str, str]


@dataclass(frozen=True)
class Manager:
    """How the manager of a host configures a rail at boot. own: the file that it has to use; source: our file that this is made from.

    lacks: (MTU, address) → what is missing in the file. shows: the command that shows what it uses for an interface.
    """

    backend: str
    unit: str
    own: str
    source: str
    lacks: tuple[str, str]
    shows: str


def _manager(backend: str, rail: ResolvedRail) -> Manager:
    is_infiniband = rail.rail["link_layer"] == "infiniband"
    on_vlan = rail.rail.get("vlan") is not None
    on_bond = rail.rail.get("bond") is not None
    name = owner_name(rail.name, on_vlan=on_vlan, on_bond=on_bond)
    own = choice.boot_file(backend, name, is_infiniband=is_infiniband, made=rail.netdev if on_vlan or on_bond else None)
    source = choice.source_file(backend, name, is_infiniband=is_infiniband)
    by_nm = backend == NM_BACKEND
    lacks = ("mtu=", "address1=") if by_nm else ("MTUBytes=", "Address=")
    shows = f"nmcli device show {rail.netdev}" if by_nm else f"networkctl status {rail.netdev}"
    return Manager(backend, choice.UNITS[backend], own, source, lacks, shows)


def check_boot(host: str, rails: Sequence[Rail], facts: Facts, backend: str) -> list[Finding]:
    """Finding `network.boot` for each planned rail: how the network manager would configure its interface at the next boot.

    backend: rdma_host.network.backend.
    """
    chosen = choice.chosen(backend, facts.network_backend)
    return [_boot(host, rail, facts, chosen) for rail in resolve(rails, facts)]


def _parts(rail: ResolvedRail) -> list[ResolvedRail]:
    """A rail as the manager sees it: a rail on a VLAN or a bond is a NIC without an address, and the interfaces above it."""
    vlan, bond = rail.rail.get("vlan"), rail.rail.get("bond")
    if vlan is None and bond is None:
        return [rail]
    nic = replace(rail, rail={**rail.rail, "address": None, "addresses": [], "vlan": None, "bond": None})
    lower = [replace(rail, netdev=rail.bond, rail={**rail.rail, "address": None, "addresses": [], "vlan": None})] if vlan and bond else []
    return [nic, *lower, replace(rail, netdev=rail.interface)]


def _boot(host: str, rail: ResolvedRail, facts: Facts, backend: str) -> Finding:
    addresses = rail_addresses(rail.rail)
    planned = rail.rail["mtu_bytes"]
    if not addresses and planned is None and not rail.rail.get("ipoib"):
        why = "neither address nor MTU is planned, so the collection writes no file for the network manager"
        return Finding(STAGE, "network.boot", host, rail.subject, NOT_APPLICABLE, why, "no file")
    if rail.bond not in (None, bond_name(rail.name)):
        why = f"{rail.bond} was made by others, and its files are theirs"
        return Finding(STAGE, "network.boot", host, rail.subject, NOT_APPLICABLE, why, "no file")
    mtu = "any MTU" if planned is None else f"MTU {planned} bytes"
    address = f"address {', '.join(addresses)}" if addresses else "no address"
    expected = f"{_manager(backend, _parts(rail)[-1]).own}: {mtu}, {address}"
    verdicts = [_verdict(host, part, facts, _manager(backend, part)) for part in _parts(rail)]
    status, observed, remedy = next((verdict for verdict in verdicts if verdict[0] != OK), verdicts[-1])
    return Finding(STAGE, "network.boot", host, rail.subject, status, observed, expected, remedy)


def _stage(host: str) -> str:
    return f"Run `ansible-playbook rdma.cluster.network --limit {host}` on the control node."


def _verdict(host: str, rail: ResolvedRail, facts: Facts, manager: Manager) -> Verdict:
    if rail.netdev is None or rail.netdev not in facts.netdevs:
        missing = "no interface: see network.mtu" if rail.netdev is None else missing_words(rail, rail.netdev)
        return NOT_APPLICABLE, missing, ""
    netdev, service = facts.netdevs[rail.netdev], (facts.units or {}).get(manager.unit)
    boot = netdev.profile if manager.backend == NM_BACKEND else netdev.boot
    if boot is None:
        return UNKNOWN, f"the files of {manager.unit} were not read", f"Run `{manager.shows}` on {host}."
    if service is None:
        return UNKNOWN, f"the state of {manager.unit} was not read", f"Run `systemctl status {manager.unit}` on {host}."
    if boot.undecided:
        return _undecided(host, rail, boot, manager)
    # netplan's generator starts systemd-networkd at boot, whether it is enabled or not.
    if not service.enabled and manager.backend != NETPLAN:
        enable = f"1. Run `systemctl enable {manager.unit}` on {host}. 2. {_stage(host)}"
        return ERROR, f"{manager.unit} is not enabled", enable if manager.backend == NM_BACKEND else _stage(host)
    return (
        _not_ours(host, rail, facts, boot, manager)
        or _two_managers(host, rail, facts, manager)
        or _faults(host, rail, boot, manager)
        or _loaded(host, rail, facts, manager)
    )


def _undecided(host: str, rail: ResolvedRail, boot: BootNetwork, manager: Manager) -> Verdict:
    files = "; ".join(f"{each.where} ({each.value})" for each in boot.undecided)
    where = "[Match] section" if manager.backend != NM_BACKEND else "[match] section, or set autoconnect=false there"
    remedy = f"1. Run `{manager.shows}` on {host}. 2. If it names that file, exclude {rail.netdev} in its {where}."
    return UNKNOWN, f"another file may apply to {rail.netdev} first: {files}", remedy


def _not_ours(host: str, rail: ResolvedRail, facts: Facts, boot: BootNetwork, manager: Manager) -> Verdict | None:
    own, file = manager.own, boot.file
    if file == own:
        return None
    if file is None and boot.others:
        lines = "; ".join(f"{each.value} ({each.where})" for each in boot.others)
        places = " and ".join(each.where for each in boot.others)
        observed = f"{manager.unit} leaves {rail.netdev} alone: {lines}"
        return ERROR, observed, f"1. On {host}, remove {places}. 2. {_stage(host)}"
    if file is None:
        return ERROR, f"{own} is missing, and no other file applies to {rail.netdev}", _stage(host)
    observed = f"{file} applies to {rail.netdev}" + (f", from {boot.source}" if boot.source else "")
    if manager.source not in (facts.files or ()):
        return ERROR, f"{manager.source} is missing; {observed}", _stage(host)
    place = f"[Match] of {file}"
    if file.startswith(NETPLAN_FILES):
        place = f"{boot.source or '/etc/netplan'}, then run `netplan generate`; it writes {file}"
    elif manager.backend == NM_BACKEND:
        place = f"{file} (`nmcli connection modify` with connection.autoconnect no)"
    return ERROR, observed, f"1. On {host}, remove {rail.netdev} from {place}. 2. {_stage(host)}"


def _two_managers(host: str, rail: ResolvedRail, facts: Facts, manager: Manager) -> Verdict | None:
    """A file of another manager that would configure the interface at boot as well."""
    netdev, units = facts.netdevs[str(rail.netdev)], facts.units or {}
    by_nm = manager.backend == NM_BACKEND
    unit, other = (NETWORKD_UNIT, netdev.boot) if by_nm else (NM_UNIT, netdev.profile)
    releases = other is None or other.file is None or any(each.value.startswith("Unmanaged=") for each in other.others)
    if releases or other is None or unit not in units or not units[unit].enabled:
        return None
    remedy = f"1. If the file is not needed, remove {other.source or other.file} on {host}. 2. {_stage(host)}"
    return ERROR, f"{unit} would configure {rail.netdev} as well, by {other.file}", remedy


def _faults(host: str, rail: ResolvedRail, boot: BootNetwork, manager: Manager) -> Verdict | None:
    """The differences between the plan and the file with its drop-ins."""
    own, planned_addresses = manager.own, rail_addresses(rail.rail)
    mtu, missing = boot.mtu, []
    mtu_key, address_key = manager.lacks
    wrong = [(f"{address_key}{each.value}", each.where) for each in boot.addresses if _normal(each.value) not in planned_addresses]
    wrong += [(each.value, each.where) for each in boot.others]
    if boot.advertisements is not None and any(map(is_ipv6, planned_addresses)):
        wrong.append((boot.advertisements.value, boot.advertisements.where))
    planned = rail.rail["mtu_bytes"]
    if mtu is None and planned is not None:
        missing.append(f"{own} has no {mtu_key}")
    elif mtu is not None and planned is not None and mtu.value != str(planned):
        wrong.insert(0, (f"{mtu_key}{mtu.value}", mtu.where))
    drop_ins = "" if manager.backend == NM_BACKEND else " with its drop-ins"
    found = [_normal(each.value) for each in boot.addresses]
    missing += [
        f"{own}{drop_ins} has no {_address_key(manager, address)}{address}" for address in planned_addresses if address not in found
    ]
    if not wrong and not missing:
        return None
    lines = [where for _value, where in wrong if not where.startswith(f"{own}:")]
    remedy = f"1. On {host}, remove {' and '.join(lines)}. 2. Run `networkctl reload` there while {rail.netdev} is idle."
    observed = "; ".join([*(f"{value} ({where})" for value, where in wrong), *missing])
    return ERROR, observed, remedy if lines else _stage(host)


def _address_key(manager: Manager, address: str) -> str:
    """The key of an address in the manager's file. NetworkManager has a section for each family."""
    key = manager.lacks[1]
    return f"[ipv6] {key}" if manager.backend == NM_BACKEND and is_ipv6(address) else key


def _normal(text: str) -> str:
    """An address in the form of the intent; other texts as they are."""
    try:
        return str(ipaddress.ip_interface(text)) if "/" in text else text
    except ValueError:
        return text


def _loaded(host: str, rail: ResolvedRail, facts: Facts, manager: Manager) -> Verdict:
    if PENDING not in (facts.files or ()):
        return OK, f"as planned, from {manager.own}", ""
    users = rail_users(facts.load, rail.device, rail.port)
    wait = f"1. Wait until the rail is idle ({users}). 2. " if users else ""
    return WARNING, f"as planned, but {manager.unit} has not loaded the file yet because the host was in use", f"{wait}{_stage(host)}"
