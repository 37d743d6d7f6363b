# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall of a host, and rules of ours that open it for the traffic between the rails of the cluster.

Rules are only added, and only those of ours are removed again; a firewall that does not run is never started. The rules let pass, from the
subnets of a rail's hosts and (but for firewalld) on the rail's interface alone: TCP ports above 1023, which perftest, the pair runner and
NCCL use; UDP 4791, which Soft-RoCE uses (a NIC's RoCE bypasses the kernel); ICMP, by which the path MTU is found, and with IPv6 neighbors
too. SSH stays as it is.

* nftables.service: a rule at the top of each base chain for input and output that can drop. A verdict of another chain would not help,
  since a packet must pass all of them. A drop-in of the unit adds the rules again when it loads its own, which begin with `flush ruleset`.
* ufw: `ufw prepend`, with our comment. ufw loads them at boot. It accepts ICMP echo by itself.
* firewalld: rich rules in the zone of the rail's interface, now and permanently. They have no interface and no comment, so that ours are
  listed in RECORD.

Sources: nft(8), libnftables-json(5) of nftables 1.0.6; ufw(8) of 0.36.2; firewall-cmd(1), firewalld.richlanguage(5) of firewalld 1.3.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6

NFTABLES, UFW, FIREWALLD = "nftables", "ufw", "firewalld"
UNITS = {NFTABLES: "nftables.service", UFW: "ufw.service", FIREWALLD: "firewalld.service"}
#: The beginning of the comment of each rule of ours.
MARK = "rdma.cluster"
TCP, UDP, ICMP = "tcp", "udp", "icmp"
FIRST_PORT, LAST_PORT, SOFT_ROCE_PORT = 1024, 65535, 4791
RECORD = "/etc/rdma-cluster/firewalld.json"
RULES_FILE = "/etc/rdma-cluster/firewall.nft"
DROP_IN = "/etc/systemd/system/nftables.service.d/60-rdma-cluster.conf"
NFT = ("nft", "--json", "list", "ruleset")
UFW_ADDED = ("ufw", "show", "added")
#: The families whose chains see IPv4, and those that see IPv6.
FAMILIES = {4: ("ip", "inet", "netdev"), 6: ("ip6", "inet", "netdev")}
#: The hooks through which traffic of a rail passes: the field of its interface, and that of the other host's address.
HOOKS = {"input": ("iifname", "saddr"), "output": ("oifname", "daddr")}
#: Parts of a rule's JSON that may drop. xt: a target of iptables-nft.
_DROPS = ("drop", "reject", "jump", "goto", "queue", "vmap", "xt")
#: Hooks at which a packet may be dropped before or after our rules.
_OTHER_HOOKS = ("ingress", "prerouting", "postrouting", "egress")
#: The name of an opening: interface, subnet, protocol.
_NAME = re.compile(r"[!-~]{1,15} [0-9a-f.:]{2,39}/[0-9]{1,3} (?:tcp|udp|icmp)")
UFW_DEFAULTS = "/etc/default/ufw"
_IPV6_OFF = re.compile(r"^[ \t]*IPV6=[\"']?no\b", re.MULTILINE | re.IGNORECASE)
_OUTPUT_POLICY = re.compile(r"^[ \t]*DEFAULT_OUTPUT_POLICY=[\"']?(\w+)", re.MULTILINE)
_RICH = re.compile(r"^[ \t]*(rule [^\n]+?)[ \t]*$", re.MULTILINE)
_ZONE = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Opening:
    """What has to pass: from and to a subnet, on a rail's interface. kinds: of TCP, UDP and ICMP."""

    netdev: str
    subnet: str
    kinds: tuple[str, ...] = (TCP, UDP, ICMP)

    @property
    def names(self) -> list[str]:
        """One name for each kind, by which its rules are known: "ens1 192.168.100.0/24 tcp"."""
        return [f"{self.netdev} {self.subnet} {kind}" for kind in self.kinds]


def names_of(openings: Iterable[Opening]) -> dict[str, Opening]:
    """Return the names of what has to pass, with their openings, in this order."""
    return {name: opening for opening in openings for name in opening.names}


@dataclass(frozen=True)
class Chain:
    """A base chain that can drop packets of a rail, and our rules in it: name → handle."""

    family: str
    table: str
    name: str
    hook: str
    ours: Mapping[str, int]

    @property
    def words(self) -> tuple[str, str, str]:
        return self.family, self.table, self.name


@dataclass(frozen=True)
class Firewall:
    """backend: the firewall that runs, None if none does; opened: the names of what our rules let pass, see Opening.

    unread: why the rules are unknown. others: further firewalls that run: two at once undo each other's rules.
    """

    backend: str | None
    opened: list[str] = field(default_factory=list)
    unread: str | None = None
    others: list[str] = field(default_factory=list)


def running(units: Mapping[str, UnitState]) -> list[str]:
    """Return the firewalls that run, the one that owns the rules first."""
    return [name for name in (FIREWALLD, UFW, NFTABLES) if (state := units.get(UNITS[name])) is not None and state.active]


def read_firewall(units: Mapping[str, UnitState] | None, sys: SysRoot, runner: Runner) -> Firewall | None:
    """Return the firewall of the running system; None if its units are not known."""
    if units is None:
        return None
    names = running(units)
    if not names:
        return Firewall(None)
    try:
        return Firewall(names[0], sorted(_READERS[names[0]](sys, runner)), None, names[1:])
    except (ApplyError, CommandError, ParseError) as error:
        return Firewall(names[0], [], str(error), names[1:])


def parse_ruleset(text: str) -> list[Chain]:
    """Return the base chains that can drop, in the output of NFT: those for input and output, and others, which we cannot open.

    Raises ParseError for another form.
    """
    try:
        items = [next(iter(each.items())) for each in json.loads(text)["nftables"]]
        rules = [rule for kind, rule in items if kind == "rule"]
        found = []
        for chain in (each for kind, each in items if kind == "chain" and _filters(each)):
            place = (chain["family"], chain["table"], chain["name"])
            own = [rule for rule in rules if (rule["family"], rule["table"], rule["chain"]) == place]
            if chain.get("policy") == "drop" or any(map(_can_drop, own)):
                found.append(Chain(*place, chain["hook"], dict(filter(None, map(_mark, own)))))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, StopIteration, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(NFT)}`: {exc!r} in {quoted(text)}") from exc
    return found


def _filters(chain: Mapping[str, Any]) -> bool:
    return (
        chain.get("type") == "filter"
        and chain.get("hook") in (*HOOKS, *_OTHER_HOOKS)
        and any(chain["family"] in names for names in FAMILIES.values())
    )


def _mark(rule: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return name and handle of a rule of ours, None for one of others."""
    mark, _space, name = str(rule.get("comment", "")).partition(" ")
    return (name, int(rule["handle"])) if mark == MARK and _NAME.fullmatch(name) else None


def _can_drop(rule: Mapping[str, Any]) -> bool:
    return any(word in part for part in rule.get("expr", ()) if isinstance(part, Mapping) for word in _DROPS)


def _read_nftables(_sys: SysRoot, runner: Runner) -> set[str]:
    return opened_by(parse_ruleset(run_checked(runner, *NFT)))


def opened_by(chains: Sequence[Chain]) -> set[str]:
    """Return what our rules in all chains for input and output let pass; everything if no chain at all can drop."""
    if not chains:
        return {EVERYTHING}
    found = set()
    for version, families in FAMILIES.items():
        seeing = [chain for chain in chains if chain.family in families]
        ours = [{name for name in chain.ours if _version(name) == version} for chain in seeing if chain.hook in HOOKS]
        found |= set.intersection(*ours) if ours else set() if seeing else {f"{EVERYTHING}{version}"}
    return found


#: The firewall drops nothing: it has no base chain that could. "*4" and "*6": it drops nothing of IPv4, of IPv6.
EVERYTHING = "*"


def _version(name: str) -> int:
    """Return the version of IP of an opening, by its name."""
    return 6 if is_ipv6(name.split(" ")[1]) else 4


def parse_ufw(text: str) -> set[str]:
    """Return what rules of ours let pass, in the output of UFW_ADDED: lines like
    `ufw allow in on ens1 from 192.168.100.0/24 to any port 1024:65535 proto tcp comment 'rdma.cluster'`.
    """
    found = set()
    for line in text.splitlines():
        words = line.split()
        if words[:4] == ["ufw", "allow", "in", "on"] and words[-2:] == ["comment", f"'{MARK}'"] and {"from", "proto"} <= set(words[5:-3]):
            found.add(f"{words[4]} {words[words.index('from') + 1]} {words[words.index('proto') + 1]}")
    return {name for name in found if _NAME.fullmatch(name)}


def _read_ufw(sys: SysRoot, runner: Runner) -> set[str]:
    policy = _OUTPUT_POLICY.search(sys.read(UFW_DEFAULTS) or "")
    if policy is not None and policy[1] != "ACCEPT":
        raise ApplyError(
            f"{UFW_DEFAULTS} has DEFAULT_OUTPUT_POLICY={policy[1]}, and only incoming packets are opened: run `ufw allow out on IF` for "
            "each rail"
        )
    opened = parse_ufw(run_checked(runner, *UFW_ADDED))
    return opened | {f"{name.rpartition(' ')[0]} {ICMP}" for name in opened}


def _read_firewalld(sys: SysRoot, _runner: Runner) -> set[str]:
    """Return what is recorded and is in the permanent zones: no process is started for facts."""
    record = sys.value(RECORD, _parse_record) or {}
    there = set()
    for zone in {entry["zone"] for entry in record.values()}:
        if _ZONE.fullmatch(zone):
            text = sys.read(f"/etc/firewalld/zones/{zone}.xml") or ""
            there |= {name for name, entry in record.items() if entry["zone"] == zone and _is_in_zone(name, text)}
    return there


def _is_in_zone(name: str, text: str) -> bool:
    """Return whether a zone's file has a rule for a subnet and a protocol."""
    _netdev, subnet, kind = name.split(" ")
    rules = re.findall(r"<rule\b.*?</rule>", text, re.DOTALL)
    wanted = f'protocol="{kind}"' if kind != ICMP else f'<protocol value="{"icmp" if _version(name) == 4 else "ipv6-icmp"}"'
    return any(f'"{subnet}"' in rule and wanted in rule and "<accept" in rule for rule in rules)


def _parse_record(text: str) -> dict[str, dict[str, str]]:
    try:
        return {
            str(name): {"zone": str(entry["zone"]), "rule": str(entry["rule"])}
            for name, entry in json.loads(text).items()
            if _NAME.fullmatch(name)
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not our record of rules: {exc!r} in {quoted(text)}") from exc


_READERS = {NFTABLES: _read_nftables, UFW: _read_ufw, FIREWALLD: _read_firewalld}


def missing(openings: Iterable[Opening], firewall: Firewall) -> list[str]:
    """Return the names of what has to pass and is not opened."""
    if EVERYTHING in firewall.opened:
        return []
    return [name for name in names_of(openings) if not {name, f"{EVERYTHING}{_version(name)}"} & set(firewall.opened)]


def outdated(openings: Iterable[Opening], firewall: Firewall) -> list[str]:
    """Return the names of what our rules let pass and need not."""
    needed = names_of(openings)
    return [name for name in firewall.opened if name not in needed and not name.startswith(EVERYTHING)]


def words_of(name: str) -> str:
    """Return a name in words: "TCP ports 1024 to 65535 from 192.168.100.0/24 on ens1"."""
    netdev, subnet, kind = name.split(" ")
    icmp = "ICMP" if _version(name) == 4 else "ICMPv6"
    what = {TCP: f"TCP ports {FIRST_PORT} to {LAST_PORT}", UDP: f"UDP port {SOFT_ROCE_PORT}", ICMP: icmp}[kind]
    return f"{what} from {subnet} on {netdev}"


@dataclass(frozen=True)
class Command:
    """A command that adds or removes one rule. words: the change for a person."""

    argv: tuple[str, ...]
    words: str


def nft_commands(openings: Sequence[Opening], chains: Sequence[Chain]) -> list[Command]:
    """Return the commands that make our rules in these chains right; what is missing is added before what is outdated goes."""
    needed = names_of(openings)
    found = [
        Command(("nft", "insert", "rule", *chain.words, *_nft_rule(name, chain.hook)), f"{' '.join(chain.words)}: {words_of(name)}")
        for chain in chains
        for name in sorted(needed.keys() - chain.ours.keys())
        if chain.family in FAMILIES[_version(name)]
    ]
    for chain in chains:
        for name, handle in chain.ours.items():
            if name not in needed:
                argv = ("nft", "delete", "rule", *chain.words, "handle", str(handle))
                found.append(Command(argv, f"{' '.join(chain.words)}: no longer {words_of(name)}"))
    return found


def _nft_rule(name: str, hook: str) -> tuple[str, ...]:
    netdev, subnet, kind = name.split(" ")
    interface, address = HOOKS[hook]
    if _version(name) == 6 and kind == ICMP:
        # Neighbors are asked at multicast addresses and answer from link-local ones: without that, no packet passes.
        return (interface, f'"{netdev}"', "meta", "l4proto", "ipv6-icmp", "accept", "comment", f'"{MARK} {name}"')
    family = "ip" if _version(name) == 4 else "ip6"
    ports = {
        TCP: ("tcp", "dport", f"{FIRST_PORT}-{LAST_PORT}"),
        UDP: ("udp", "dport", str(SOFT_ROCE_PORT)),
        ICMP: ("ip", "protocol", "icmp"),
    }
    return (interface, f'"{netdev}"', family, address, subnet, *ports[kind], "accept", "comment", f'"{MARK} {name}"')


def nft_files(openings: Sequence[Opening], chains: Sequence[Chain]) -> list[ManagedFile]:
    """Return the files by which the unit adds our rules again; none if there is nothing to open."""
    lines = [
        " ".join(("insert", "rule", *chain.words, *_nft_rule(name, chain.hook)))
        for chain in chains
        for name in names_of(openings)
        if chain.family in FAMILIES[_version(name)]
    ]
    # One by one: a chain of others, such as fail2ban's, may not be there yet, and must not keep the rules out of the other chains.
    add = f"/bin/sh -c 'while read -r rule; do /usr/sbin/nft \"$$rule\"; done < {RULES_FILE}'"
    unit = [
        "# Managed by rdma.cluster. The unit begins with `flush ruleset`, which removes the rules of the rails.",
        "[Service]",
        f"ExecStartPost=-{add}",
        f"ExecReload=-{add}",
    ]
    text = "# Managed by rdma.cluster.\n" + "".join(f"{line}\n" for line in lines)
    return [ManagedFile(RULES_FILE, text if lines else None), ManagedFile(DROP_IN, "\n".join(unit) + "\n" if lines else None)]


def ufw_commands(openings: Sequence[Opening], opened: set[str]) -> list[Command]:
    """Return the commands for ufw. It lets ICMP echo pass by itself."""
    needed = {name for name in names_of(openings) if not name.endswith(f" {ICMP}")}
    add = [Command(("ufw", "prepend", *_ufw_rule(name), "comment", MARK), words_of(name)) for name in sorted(needed - opened)]
    remove = [
        Command(("ufw", "--force", "delete", *_ufw_rule(name)), f"no longer {words_of(name)}")
        for name in sorted(opened - needed)
        if not name.endswith(f" {ICMP}")
    ]
    return [*add, *remove]


def _ufw_rule(name: str) -> tuple[str, ...]:
    netdev, subnet, kind = name.split(" ")
    ports = f"{FIRST_PORT}:{LAST_PORT}" if kind == TCP else str(SOFT_ROCE_PORT)
    return ("allow", "in", "on", netdev, "from", subnet, "to", "any", "port", ports, "proto", kind)


def rich_rule(name: str) -> str:
    """Return the rich rule of firewalld for a name, as `firewall-cmd --list-rich-rules` prints it."""
    _netdev, subnet, kind = name.split(" ")
    what = {
        TCP: f'port port="{FIRST_PORT}-{LAST_PORT}" protocol="tcp"',
        UDP: f'port port="{SOFT_ROCE_PORT}" protocol="udp"',
        ICMP: 'protocol value="icmp"' if _version(name) == 4 else 'protocol value="ipv6-icmp"',
    }[kind]
    return f'rule family="ipv{_version(name)}" source address="{subnet}" {what} accept'


def zone_of(netdev: str, runner: Runner) -> str:
    """Return the zone of an interface: its own, or the default one. Raises ApplyError if firewalld does not answer."""
    own = runner.run(["firewall-cmd", f"--get-zone-of-interface={netdev}"])
    zone = own.stdout.strip() if own.rc == 0 else run_checked(runner, "firewall-cmd", "--get-default-zone").strip()
    if not _ZONE.fullmatch(zone):
        raise ApplyError(f"firewalld names no zone for {netdev}: {quoted(zone)}")
    return zone


#: The options of firewall-cmd for the running system, and for the next boot.
_WAYS: tuple[tuple[str, ...], ...] = ((), ("--permanent",))


def firewalld_commands(
    openings: Sequence[Opening], record: Mapping[str, Mapping[str, str]], runner: Runner
) -> tuple[list[Command], dict[str, dict[str, str]]]:
    """Return the commands for firewalld, and the new record."""
    of_netdev = {netdev: zone_of(netdev, runner) for netdev in dict.fromkeys(opening.netdev for opening in openings)}
    planned = {name: {"zone": of_netdev[opening.netdev], "rule": rich_rule(name)} for name, opening in names_of(openings).items()}
    former = {name: dict(entry) for name, entry in record.items() if planned.get(name) != dict(entry)}
    kept = {(entry["zone"], entry["rule"]) for entry in planned.values()}
    zones = {entry["zone"] for entry in (*planned.values(), *former.values())}
    # A former zone may be gone, and its rules with it.
    lists = {
        (zone, way): set(_RICH.findall(runner.run(["firewall-cmd", *way, f"--zone={zone}", "--list-rich-rules"]).stdout))
        for zone in sorted(zones)
        for way in _WAYS
    }
    removed = {name: entry for name, entry in former.items() if (entry["zone"], entry["rule"]) not in kept}
    commands = [
        Command(
            ("firewall-cmd", *way, f"--zone={entry['zone']}", f"--{verb}-rich-rule={entry['rule']}"),
            f"zone {entry['zone']}{', permanently' if way else ''}: {'no longer ' if verb == 'remove' else ''}{words_of(name)}",
        )
        for verb, entries in (("add", planned), ("remove", removed))
        for name, entry in entries.items()
        for way in _WAYS
        if (entry["rule"] in lists[entry["zone"], way]) == (verb == "remove")
    ]
    return commands, planned


@dataclass(frozen=True)
class FirewallPlan:
    """backend: the firewall, None if none runs; commands: in their order; files: as planned; file_changes: those that differ."""

    backend: str | None
    commands: list[Command] = field(default_factory=list)
    files: list[ManagedFile] = field(default_factory=list)
    file_changes: list[FileChange] = field(default_factory=list)

    @property
    def changes(self) -> list[str]:
        """The rules that are added and removed, in words."""
        return [command.words for command in self.commands]

    @property
    def changed(self) -> bool:
        return bool(self.commands or self.file_changes)

    @property
    def diff(self) -> list[dict[str, str]]:
        """The rules and the files that differ, in the form that Ansible's --diff prints."""
        return [*listed_diff(str(self.backend), self.changes), *(change.to_diff() for change in self.file_changes)]


def plan_firewall(openings: Sequence[Opening], units: Mapping[str, UnitState], *, sys: SysRoot, runner: Runner) -> FirewallPlan:
    """Return what is missing, and which rules of ours are outdated. Changes nothing.

    Raises ApplyError if two firewalls run, CommandError or ParseError if one does not answer as known.
    """
    names = running(units)
    if not names:
        return FirewallPlan(None)
    if len(names) > 1:
        raise ApplyError(
            f"{' and '.join(names)} run at once, and undo each other's rules. 1. Decide which one is to filter. "
            f"2. Disable the other one (`systemctl disable --now {UNITS[names[1]]}`). 3. Run the network stage again."
        )
    files: list[ManagedFile] = []
    if names[0] == NFTABLES:
        chains = [chain for chain in parse_ruleset(run_checked(runner, *NFT)) if chain.hook in HOOKS]
        commands, files = nft_commands(openings, chains), nft_files(openings, chains)
    elif names[0] == UFW:
        if any(_version(name) == 6 for name in names_of(openings)) and _IPV6_OFF.search(sys.read(UFW_DEFAULTS) or ""):
            raise ApplyError(
                f"{UFW_DEFAULTS} has IPV6=no, by which ufw drops all IPv6 packets, also those of the rails. 1. Set IPV6=yes there. "
                "2. Run `ufw reload`, and check that your own rules allow what they must. 3. Run the network stage again."
            )
        commands = ufw_commands(openings, parse_ufw(run_checked(runner, *UFW_ADDED)))
    else:
        commands, record = firewalld_commands(openings, sys.value(RECORD, _parse_record) or {}, runner)
        files = [ManagedFile(RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n" if record else None)]
    return FirewallPlan(names[0], commands, files, ensure_files(files, check_mode=True))


def apply_firewall(plan: FirewallPlan, runner: Runner) -> None:
    """Write the planned files, then run the planned commands. Raises CommandError or ApplyError for a command that fails."""
    ensure_files(plan.files, check_mode=False)
    for command in plan.commands:
        run_checked(runner, *command.argv)
    if any(change.path == DROP_IN for change in plan.file_changes):
        run_checked(runner, "systemctl", "daemon-reload")
