# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on the next boot: the .network file of each rail, and the files that override it."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import rail_users
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import BootNetwork
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NETPLAN, PENDING, SERVICE, path_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

_NETWORK_FILES = "/etc/systemd/network"
_NO_NETWORK_FILE = "no file of the rail applies at boot, which is an error"
declare(
    {
        "network.boot": Check(
            "network",
            "how systemd-networkd would configure each planned rail at the next boot: the `.network` file that applies first, its "
            "drop-ins, MTU and addresses, by file and line",
            "`.network` files and their `.d` folders in `/etc`, `/run`, `/usr/local/lib` and `/usr/lib/systemd/network`; `systemctl show`",
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


def check_boot(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `network.boot` for each planned rail: how systemd-networkd would configure its interface at the next boot."""
    return [_boot(host, rail, facts) for rail in resolve(rails, facts)]


def _boot(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    address = rail.rail["address"]
    planned = rail.rail["mtu_bytes"]
    if address is None and planned is None and not rail.rail.get("ipoib"):
        why = "neither address nor MTU is planned, so the collection writes no file for systemd-networkd"
        return Finding(STAGE, "network.boot", host, rail.subject, NOT_APPLICABLE, why, "no file")
    mtu = "any MTU" if planned is None else f"MTU {planned} bytes"
    expected = f"{path_of(rail.name)}: {mtu}, {f'address {address}' if address else 'no address'}"
    status, observed, remedy = _verdict(host, rail, facts)
    return Finding(STAGE, "network.boot", host, rail.subject, status, observed, expected, remedy)


def _stage(host: str) -> str:
    return f"Run `ansible-playbook rdma.cluster.network --limit {host}` on the control node."


def _verdict(host: str, rail: ResolvedRail, facts: Facts) -> Verdict:
    if rail.netdev is None:
        return NOT_APPLICABLE, "no interface: see network.mtu", ""
    boot, service = facts.netdevs[rail.netdev].boot, (facts.units or {}).get(SERVICE)
    if boot is None:
        return UNKNOWN, "the .network files were not read", f"Run `networkctl status {rail.netdev}` on {host}."
    if service is None:
        return UNKNOWN, f"the state of {SERVICE} was not read", f"Run `systemctl status {SERVICE}` on {host}."
    if boot.undecided:
        return _undecided(host, rail, boot)
    if not service.enabled:
        return ERROR, f"{SERVICE} is not enabled", _stage(host)
    return _not_ours(host, rail, facts, boot.file) or _faults(host, rail, boot) or _loaded(host, rail, facts)


def _undecided(host: str, rail: ResolvedRail, boot: BootNetwork) -> Verdict:
    files = "; ".join(f"{each.where} ({each.value})" for each in boot.undecided)
    remedy = f"1. Run `networkctl status {rail.netdev}` on {host}. 2. If it names that file, exclude {rail.netdev} in its [Match] section."
    return UNKNOWN, f"another file may apply to {rail.netdev} first: {files}", remedy


def _not_ours(host: str, rail: ResolvedRail, facts: Facts, file: str | None) -> Verdict | None:
    own = path_of(rail.name)
    if file is None:
        return ERROR, f"{own} is missing, and no other file applies to {rail.netdev}", _stage(host)
    if file == own:
        return None
    observed = f"{file} applies to {rail.netdev}"
    if own not in (facts.files or ()):
        return ERROR, f"{own} is missing; {observed}", _stage(host)
    source = f"/etc/netplan, then run `netplan generate`; it writes {file}" if file.startswith(NETPLAN) else f"[Match] of {file}"
    return ERROR, observed, f"1. On {host}, remove {rail.netdev} from {source}. 2. {_stage(host)}"


def _faults(host: str, rail: ResolvedRail, boot: BootNetwork) -> Verdict | None:
    """The differences between the plan and the file with its drop-ins."""
    own, address = path_of(rail.name), rail.rail["address"]
    mtu, missing = boot.mtu, []
    wrong = [(f"Address={each.value}", each.where) for each in boot.addresses if each.value != address]
    wrong += [(each.value, each.where) for each in boot.others]
    planned = rail.rail["mtu_bytes"]
    if mtu is None and planned is not None:
        missing.append(f"{own} has no MTUBytes=")
    elif mtu is not None and planned is not None and mtu.value != str(planned):
        wrong.insert(0, (f"MTUBytes={mtu.value}", mtu.where))
    if address is not None and address not in [each.value for each in boot.addresses]:
        missing.append(f"{own} with its drop-ins has no Address={address}")
    if not wrong and not missing:
        return None
    lines = [where for _value, where in wrong if not where.startswith(f"{own}:")]
    remedy = f"1. On {host}, remove {' and '.join(lines)}. 2. Run `networkctl reload` there while {rail.netdev} is idle."
    observed = "; ".join([*(f"{value} ({where})" for value, where in wrong), *missing])
    return ERROR, observed, remedy if lines else _stage(host)


def _loaded(host: str, rail: ResolvedRail, facts: Facts) -> Verdict:
    if PENDING not in (facts.files or ()):
        return OK, f"as planned, from {path_of(rail.name)}", ""
    users = rail_users(facts.load, rail.device, rail.port)
    wait = f"1. Wait until the rail is idle ({users}). 2. " if users else ""
    return WARNING, f"as planned, but {SERVICE} has not loaded the file yet because the host was in use", f"{wait}{_stage(host)}"
