# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the preflight gate that need only one host: distribution, kernel, disk space, SSH and firewalls."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.memory import Filesystem
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import missing
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_addresses, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import rail_under
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.openings import openings
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

declare(
    {
        "preflight.os": Check(
            "preflight",
            "the distribution",
            "`/etc/os-release`",
            "install a supported one, or exclude the host with `--limit`",
            sources=(reads.OS,),
        ),
        "preflight.kernel": Check(
            "preflight",
            "the running kernel",
            "`/proc/sys/kernel/osrelease`",
            "install and boot a newer kernel of the distribution",
            sources=(reads.RELEASE,),
        ),
        "preflight.disk": Check(
            "preflight",
            "free space of the file systems of `/`, `/var` and `/boot`",
            "`statvfs`",
            "`df -h`; clean caches and logs, remove old kernels, or enlarge it",
            "GiB that must be free in `/` and `/var`, instead of 1 (`/boot` needs 0.1)",
            sources=(reads.kernel("statvfs"),),
        ),
        "preflight.ssh": Check(
            "preflight",
            "the interface that carries Ansible's SSH session",
            "`SSH_CONNECTION`, `ip address show`",
            "set `ansible_host` to an address on an interface that is not a rail",
            sources=(reads.kernel("SSH_CONNECTION"), reads.ADDRESSES),
        ),
        "preflight.firewall": Check(
            "preflight",
            "firewalld, nftables and ufw, and whether the rules of the collection open them for the rails",
            "`systemctl show`; `nft list ruleset`, `ufw show added`, `/etc/firewalld/zones`",
            "`firewall_allowed: true` for the network stage, or the ports that the finding names",
            sources=(
                reads.UNITS,
                reads.command("nft", "--json"),
                reads.file(
                    "/etc/ufw/ufw.conf",
                    absent_means="ufw is not configured and filters nothing",
                    garbled_means="without a line ENABLED=yes, ufw filters nothing",
                ),
            ),
        ),
    }
)

STAGE = "preflight"
#: How many interfaces a finding names.
SHOWN = 4
#: os-release's ID → the supported VERSION_IDs; "9" means every 9.x.
SUPPORTED = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04"), "rhel": ("9",), "rocky": ("9",)}
SUPPORTED_WORDS = "Debian 12 or 13, Ubuntu 22.04 or 24.04, RHEL or Rocky 9"
_RHEL_8 = "its dnf needs Python 3.6, which no ansible-core supported by rdma.cluster can manage"
#: Common unsupported distributions, with the reason.
REFUSED = {
    ("rhel", "8"): _RHEL_8,
    ("rocky", "8"): _RHEL_8,
    ("ubuntu", "20.04"): "its standard support ended in May 2025",
}
OLDEST_KERNEL = (5, 4)
GIB_BYTES = 2**30
#: Required free space in GiB: for packages and builds, for logs and evidence, and for one more initramfs.
FREE_GIB = {"/": 1.0, "/var": 1.0, "/boot": 0.1}
#: Two paths of equal size whose free space differs by less than this are on one file system.
SAME_BYTES = 2**24
FIREWALLS = ("firewalld.service", "nftables.service", "ufw.service")


def check_preflight(host: str, facts: Facts) -> list[Finding]:
    """Findings `preflight.os` and `preflight.kernel` of one host."""
    stack = stack_of(facts)
    return [_os(host, stack.distribution), _kernel(host, stack.kernel)]


def _os(host: str, distribution: Distribution) -> Finding:
    name, version = distribution.id, distribution.version_id
    if name is None:
        return Finding(
            STAGE,
            "preflight.os",
            host,
            "distribution",
            UNKNOWN,
            "no os-release file",
            SUPPORTED_WORDS,
            f"Run `cat /etc/os-release` on {host}.",
        )
    # For distributions with minor versions only the major one counts.
    known = {version, (version or "").partition(".")[0]} if name in ("rhel", "rocky") else {version}
    good = bool(known & set(SUPPORTED.get(name, ())))
    why = next((reason for (refused, of), reason in REFUSED.items() if refused == name and of in known), None)
    observed = f"{name} {version}" + (f": {why}" if why else "")
    return Finding(
        STAGE, "preflight.os", host, "distribution", OK if good else ERROR, observed, SUPPORTED_WORDS,
        "" if good else f"Install a supported distribution on {host}, or exclude it from the play: `--limit 'all:!{host}'`.",
    )  # fmt: skip


def _kernel(host: str, release: str | None) -> Finding:
    expected = ".".join(map(str, OLDEST_KERNEL)) + " or newer"
    found = re.match(r"(\d+)\.(\d+)", release or "")
    if found is None:
        remedy = f"Run `uname -r` on {host}."
        return Finding(STAGE, "preflight.kernel", host, "running kernel", UNKNOWN, f"release {release!r}", expected, remedy)
    good = (int(found[1]), int(found[2])) >= OLDEST_KERNEL
    return Finding(
        STAGE, "preflight.kernel", host, "running kernel", OK if good else ERROR, str(release), expected,
        "" if good else f"Install a newer kernel of the distribution on {host}, then reboot it.",
    )  # fmt: skip


def check_space(host: str, facts: Facts, threshold: float | None = None) -> list[Finding]:
    """Finding `preflight.disk` for each file system of one host that the build writes to.

    threshold: the space that must be free, in GiB, instead of FREE_GIB for / and /var.
    """
    needed = {path: gib if threshold is None or path == "/boot" else threshold for path, gib in FREE_GIB.items()}
    filesystems = facts.filesystems or {}
    readable = {path: filesystems[path] for path in needed if path in filesystems}
    unread = [] if "/" in readable else ["/"]
    return [
        *(_space(host, paths, readable[paths[0]], max(needed[path] for path in paths)) for paths in _by_filesystem(readable)),
        *(
            Finding(STAGE, "preflight.disk", host, f"space in {path}", UNKNOWN, "not read", "known", f"Run `df -h {path}` on {host}.")
            for path in unread
        ),
    ]


def _by_filesystem(read: Mapping[str, Filesystem]) -> list[list[str]]:
    groups: list[list[str]] = []
    for path, space in read.items():
        for group in groups:
            other = read[group[0]]
            if space.size_bytes == other.size_bytes and abs(space.free_bytes - other.free_bytes) < SAME_BYTES:
                group.append(path)
                break
        else:
            groups.append([path])
    return groups


def _space(host: str, paths: Sequence[str], space: Filesystem, needed_gib: float) -> Finding:
    free_gib = space.free_bytes / GIB_BYTES
    good = free_gib >= needed_gib
    todo = "remove old kernels" if list(paths) == ["/boot"] else "remove cached packages and old logs (`journalctl --vacuum-size=200M`)"
    return Finding(
        STAGE, "preflight.disk", host, f"space in {', '.join(paths)}", OK if good else ERROR, f"{free_gib:.2f} GiB free",
        f"{needed_gib:g} GiB free",
        "" if good else f"Free space in {paths[0]} on {host} (`df -h {paths[0]}`): {todo}, or enlarge it.",
    )  # fmt: skip


def check_ssh(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `preflight.ssh` of one host: Ansible's SSH session does not use a rail."""
    address, netdev = (facts.session.address, facts.session.netdev) if facts.session else (None, None)
    ours = [rail for rail in resolve(rails, facts) if _carries(rail, facts, address, netdev)]
    expected = "an interface that is not a rail"
    if ours:
        remedy = (
            f"Set `ansible_host` of {host} to an address on another interface, or remove {ours[0].name} from its rdma_rails. "
            "The build reconfigures rails and would cut this connection."
        )
        by = f"{netdev or address}, which is {', '.join(rail.subject for rail in ours)}"
        return [Finding(STAGE, "preflight.ssh", host, "our SSH session", ERROR, by, expected, remedy)]
    if netdev is None:
        unread = sorted(name for name, each in facts.netdevs.items() if each.addresses is None)
        # Link-local addresses are not read: such a session names its interface.
        if address and unread and not ipaddress.ip_address(address.partition("%")[0]).is_link_local:
            why = f"its address is {address}; the addresses of {first_of(unread, SHOWN)} were not read"
            remedy = f"Run `ip addr show to {address}` on {host}: the interface must not be a rail."
            return [Finding(STAGE, "preflight.ssh", host, "our SSH session", UNKNOWN, why, expected, remedy)]
        why = f"no interface has its address {address}" if address else "the connection does not use SSH"
        return [Finding(STAGE, "preflight.ssh", host, "our SSH session", NOT_APPLICABLE, why, expected)]
    return [Finding(STAGE, "preflight.ssh", host, "our SSH session", OK, str(netdev), expected)]


def _carries(rail: ResolvedRail, facts: Facts, address: str | None, netdev: str | None) -> bool:
    """Whether a session uses a rail: its interface, a VLAN on it, its bond or bridge, or its planned address."""
    if netdev is None:
        return address is not None and address in map(ip_of, rail_addresses(rail.rail))
    return rail_under(netdev, [rail], facts) is not None


def check_firewall(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `preflight.firewall` of one host: a warning with the required ports if a firewall is active."""
    units = facts.units or {}
    known = [name for name in FIREWALLS if name in units]
    active = [name for name in known if units[name].active]
    expected = "none active, or one that allows the cluster's traffic"
    if not known:
        remedy = f"Run `systemctl is-active {' '.join(FIREWALLS)}` on {host}."
        return [Finding(STAGE, "preflight.firewall", host, "firewall", UNKNOWN, "the firewall units were not read", expected, remedy)]
    if not active:
        return [Finding(STAGE, "preflight.firewall", host, "firewall", OK, f"none of {', '.join(known)} is active", expected)]
    seen = facts.firewall
    needed = openings(rails, facts)
    if seen is not None and seen.unread is not None:
        look = f"On {host}, run {', '.join(_how_to_look(active))}."
        observed = f"{', '.join(active)} active; its rules were not read: {seen.unread}"
        return [Finding(STAGE, "preflight.firewall", host, "firewall", UNKNOWN, observed, expected, look)]
    if needed and seen is not None and not seen.others and not missing(needed, seen):
        return [Finding(STAGE, "preflight.firewall", host, "firewall", OK, f"{', '.join(active)} active, and open for the rails", expected)]
    remedy = (
        f"1. Run `ansible-playbook rdma.cluster.network --limit {host} -e firewall_allowed=true`, which opens it for the rails, or allow "
        f"between the hosts by yourself: {' and '.join(_must_pass(rails))}. 2. To see the rules, run {', '.join(_how_to_look(active))} "
        f"on {host}."
    )
    return [Finding(STAGE, "preflight.firewall", host, "firewall", WARNING, f"{', '.join(active)} active", expected, remedy)]


def _must_pass(rails: Sequence[Rail]) -> Iterator[str]:
    """The traffic that a firewall must allow. RoCE of a NIC bypasses the kernel, and InfiniBand does not use IP."""
    if any(rail["soft"] for rail in rails):
        yield "UDP 4791 (Soft-RoCE; RoCE of a NIC is not filtered)"
    yield "TCP 18600 and up (pairs), 18515 and up (perftest), 18590 (NCCL's network plugins)"
    yield "TCP ports of net.ipv4.ip_local_port_range (NCCL; default 32768-60999)"


def _how_to_look(active: Sequence[str]) -> list[str]:
    ways = {"firewalld.service": "`firewall-cmd --list-all`", "nftables.service": "`nft list ruleset`", "ufw.service": "`ufw status`"}
    return [ways[name] for name in active]
