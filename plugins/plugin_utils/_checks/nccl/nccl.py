# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the nccl gate: NCCL's files, the devices that they name, and equal variables on like hosts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, differs, others_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import DeviceList, Entry, parse_list
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import OF_HOST
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

declare(
    {
        "nccl.file": Check(
            "nccl",
            "nccl.conf, the environment file, and the launchers' files",
            "the files' SHA-256 and mode",
            "run the nccl stage; find what else writes the file",
            sources=(reads.but(reads.NCCL_FILE, garbled_means="different content is an error"),),
        ),
        "nccl.user_lines": Check(
            "nccl",
            "the users' own lines in nccl.conf that set a variable of the intent to another value: they are kept, and take effect",
            "nccl.conf outside of the managed block",
            "remove the line, or set `nccl_conf_replace_allowed` to replace it; or set its value in `rdma_nccl.variables`",
            sources=(reads.NCCL_FILE,),
        ),
        "nccl.hca": Check(
            "nccl",
            "each device that `NCCL_IB_HCA` names",
            "`/sys/class/infiniband`",
            "run the driver and link stages; correct `NCCL_IB_HCA` in `rdma_nccl.variables`",
            follows=NO_DEVICE,
            sources=(reads.DEVICES, reads.file(f"{reads.IB}/ports/*/state")),
        ),
        "nccl.alike": Check(
            "nccl",
            "NCCL's variables on hosts that should be alike",
            "the variables that the nccl stage derives for each",
            "compare the intent of the host that differs",
            sources=(reads.INTENT,),
        ),
    }
)

STAGE = "nccl"
HCA = "NCCL_IB_HCA"
SOCKET_IFNAME = "NCCL_SOCKET_IFNAME"
_NAMED = 3
# A device in the value of NCCL_IB_HCA, between the leading signs, the commas and the ports.
_DEVICE = re.compile(r"(?<![^,=^])[^,:=^]+")


def check_nccl(
    host: str,
    files: Sequence[ManagedFile],
    facts: Facts,
    variables: Mapping[str, str] | None = None,
    *,
    computes: bool = True,
    asks_for_hca: bool = False,
) -> list[Finding]:
    """Findings `nccl.file` for each file and `nccl.hca` for each device that they name.

    files: the result of nccl_files, nccl.conf first and files to remove last; empty if NCCL uses no rail of the host.
    variables: the variables of jobs; by default those of the first file.
    computes: whether a compute rail is planned; without one no device is expected. asks_for_hca: whether rdma_nccl.variables names the
    devices, instead of deriving them from the rails.
    """
    wanted = [file for file in files if file.content is not None]
    gone = [_file(host, file, facts) for file in files if file.content is None]
    if not wanted:
        return [*gone, *_nothing(host)]
    variables = parse_nccl_conf(wanted[0].text).variables if variables is None else variables
    hcas = _hca(host, variables, facts, _correct(host) if asks_for_hca else _run(host)) if computes or HCA in variables else [_no_hca(host)]
    return [*(_file(host, file, facts) for file in wanted), *gone, *hcas]


def _no_hca(host: str) -> Finding:
    return Finding(STAGE, "nccl.hca", host, HCA, NOT_APPLICABLE, "not set: no compute rail is planned", "ACTIVE")


def _nothing(host: str) -> list[Finding]:
    return [Finding(STAGE, "nccl.file", host, "NCCL's files", NOT_APPLICABLE, "no compute rail and no variable", "nothing")]


def _file(host: str, file: ManagedFile, facts: Facts) -> Finding:
    expected = "no file" if file.content is None else f"the content of the intent, mode {file.mode:04o}"
    expected = "the managed block of the intent" if file.block else expected
    if facts.files is None:
        return Finding(STAGE, "nccl.file", host, file.path, UNKNOWN, "the facts do not contain files", expected, _run(host))
    seen = facts.files.get(file.path)
    if not differs(file, facts.files):
        # The facts omit the usual mode.
        mode = int((seen or {}).get("mode", 0o644))
        if not file.block or mode & 0o004:
            return Finding(STAGE, "nccl.file", host, file.path, OK, expected, expected)
        observed = f"mode {mode:04o}: only root's jobs can read it"
        remedy = f"Run `chmod a+r {file.path}` on {host}."
        return Finding(STAGE, "nccl.file", host, file.path, WARNING, observed, "readable for all users", remedy)
    if file.block and seen is not None:
        observed = "no managed block of rdma.cluster" if not seen.get("block") else "the managed block has different content"
        return Finding(STAGE, "nccl.file", host, file.path, ERROR, observed, expected, _run(host))
    observed = (
        "missing"
        if seen is None
        else "exists"
        if file.content is None
        else f"different content (sha256 {str(seen['sha256'])[:12]}…) or mode ({seen['mode']:04o})"
    )
    return Finding(STAGE, "nccl.file", host, file.path, ERROR, observed, expected, _run(host))


def check_others(host: str, path: str, kept: Mapping[str, tuple[str, str]], asked_for: Collection[str], facts: Facts) -> list[Finding]:
    """Finding `nccl.user_lines`: the users' own lines in nccl.conf agree with the intent.

    kept: the variables that differ, name → (the line's value, the intent's); asked_for: the names in rdma_nccl.variables.
    """
    check, expected = "nccl.user_lines", "no line outside the block that sets a variable of the intent to another value"
    if facts.files is None:
        return [Finding(STAGE, check, host, path, UNKNOWN, "the facts do not contain files", expected, _run(host))]
    others = others_of(facts.files, path)
    if not others:
        return [Finding(STAGE, check, host, path, NOT_APPLICABLE, "no variables outside the block", expected)]
    if not kept:
        return [Finding(STAGE, check, host, path, OK, f"{len(others)} variables outside the block, none differs", expected)]
    return [
        Finding(
            STAGE, check, host, f"{name} in {path}", ERROR if name in asked_for else WARNING,
            f"{name}={theirs}, set outside the block; it is kept, and jobs use it",
            f"{name}={ours}, from the intent",
            f"1. On {host}, remove the line from {path}, then run the nccl stage; or run it with `-e nccl_conf_replace_allowed=true`."
            f" 2. To keep the line, set rdma_nccl.variables.{name} of {host} to its value.",
        )
        for name, (theirs, ours) in kept.items()
    ]  # fmt: skip


def _run(host: str) -> str:
    return f"Run the nccl stage for {host}."


def _correct(host: str) -> str:
    return f"Correct rdma_nccl.variables.{HCA} of {host}, or remove it."


def _hca(host: str, variables: Mapping[str, str], facts: Facts, correct: str) -> Iterator[Finding]:
    """Findings `nccl.hca`. correct: the remedy for a missing device."""
    value = variables.get(HCA)
    expected = "ACTIVE"
    if value is None:
        yield Finding(STAGE, "nccl.hca", host, HCA, UNKNOWN, "not set: no compute rail has an RDMA device", expected, _look(host))
        return
    listed = parse_list(value)
    if listed.excluded or not listed.entries:
        why = f"{value} only excludes devices" if listed.excluded else f"{value!r} names no device: NCCL may use any"
        yield Finding(STAGE, "nccl.hca", host, HCA, NOT_APPLICABLE, why, expected)
    else:
        yield from (_device(host, entry, listed, facts, correct) for entry in listed.entries)


def _look(host: str) -> str:
    return f"Run the driver stage for {host}. Its gate reports what is missing."


def _device(host: str, entry: Entry, listed: DeviceList, facts: Facts, correct: str) -> Finding:
    subject, expected = f"device {entry} of {HCA}", "ACTIVE"
    states = _states(entry, listed, facts.devices)
    if not states:
        observed = f"no such device; the host has {', '.join(sorted(facts.devices)) or 'none'}"
        return Finding(STAGE, "nccl.hca", host, subject, ERROR, observed, expected, correct)
    good = "ACTIVE" in states.values()
    status = OK if good else UNKNOWN if None in states.values() else ERROR
    observed = ", ".join(f"{port} is {state or 'in an unknown state'}" for port, state in states.items())
    remedy = "" if good else f"Run the link stage for {host}. Its gate reports why the port is not ACTIVE."
    return Finding(STAGE, "nccl.hca", host, subject, status, observed, expected, remedy)


def _states(entry: Entry, listed: DeviceList, devices: Mapping[str, Device]) -> dict[str, str | None]:
    """The state of each port that matches an entry, by "mlx5_0/1"."""
    return {
        f"{device}/{number}": port.state
        for device, seen in sorted(devices.items())
        if listed.named(entry, device)
        for number, port in sorted(seen.ports.items())
        if entry.port in (None, int(number))
    }


@dataclass(frozen=True)
class Kind:
    """The properties of a host's compute rails from which its variables are derived: link layers (none without such a rail), planes,
    whether the rails are separate networks, and the names of the rails with a device."""

    link_layers: frozenset[str] = frozenset()
    planes: frozenset[str] = frozenset()
    rails_apart: bool = False
    devices_of: tuple[str, ...] = ()


#: A job runs on hosts of the same link layers, so all variables are compared among these; these variables only among hosts
#: with equal rails.
FOLLOWS_FROM: dict[str, Callable[[Kind], Hashable]] = {
    HCA: lambda kind: kind.devices_of,
    "NCCL_CROSS_NIC": lambda kind: kind.rails_apart,
    "NCCL_COLLNET_ENABLE": lambda kind: kind.planes,
}


def check_nccl_fleet(hosts: Mapping[str, Mapping[str, str]], kinds: Mapping[str, Kind] | None = None) -> dict[str, list[Finding]]:
    """Finding `nccl.alike` for each host: its variables equal those of like hosts; an error for each that differs.

    hosts: host → its variables; kinds: host → its kind, without it all are alike. Variables of OF_HOST may differ; in NCCL_IB_HCA only
    the device names may, since kernels choose them, but not the number of devices and the ports.
    If no value is the most frequent one, the fleet gets the error, and the hosts are `not_applicable`. NCCL_SOCKET_IFNAME may differ, but
    a host without it gets a warning if others have it: NCCL then chooses an interface, possibly of another network.
    """
    of_kind = {host: (kinds or {}).get(host, Kind()) for host in hosts}
    odd: dict[str, list[Finding]] = {host: [] for host in hosts}
    for name in sorted({name for variables in hosts.values() for name in variables} - (OF_HOST - {HCA})):
        for group in _groups(name, of_kind):
            for finding in _compare(name, {host: hosts[host].get(name) for host in group}):
                odd.setdefault(finding.host, []).append(finding)
    for group in _groups(SOCKET_IFNAME, of_kind):
        for finding in _without_socket({host: hosts[host].get(SOCKET_IFNAME) for host in group}):
            odd[finding.host].append(finding)
    like = Counter(kind.link_layers for kind in of_kind.values())
    return {host: findings or [_alike(host, like[of_kind[host].link_layers] - 1)] for host, findings in odd.items()}


def _alike(host: str, others: int) -> Finding:
    if not others:
        why = "no other host has such rails"
        return Finding(STAGE, "nccl.alike", host, "NCCL variables", NOT_APPLICABLE, why, "as on other hosts")
    return Finding(STAGE, "nccl.alike", host, "NCCL variables", OK, f"as on {others} other hosts", "as on other hosts")


def _groups(name: str, kinds: Mapping[str, Kind]) -> list[list[str]]:
    """The hosts that must have the same value of a variable."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for host, kind in kinds.items():
        groups[kind.link_layers, FOLLOWS_FROM[name](kind) if name in FOLLOWS_FROM else None].append(host)
    return list(groups.values())


def _compare(name: str, values: Mapping[str, str | None]) -> Iterator[Finding]:
    alike: dict[str | None, list[str]] = defaultdict(list)
    for host, value in values.items():
        alike[_shape(name, value)].append(host)
    if len(alike) == 1:
        return
    first, second = sorted(alike.items(), key=lambda item: -len(item[1]))[:2]
    if len(first[1]) == len(second[1]):
        yield from _tied(name, alike)
        return
    for host, value in values.items():
        if host not in first[1]:
            yield _odd(host, name, value, *first)


def _without_socket(values: Mapping[str, str | None]) -> Iterator[Finding]:
    """A warning for each host that has no NCCL_SOCKET_IFNAME, if other hosts have one."""
    having = [host for host, value in values.items() if value is not None]
    for host in values.keys() - set(having) if having else ():
        expected = f"set, as on {first_of(having, _NAMED)}"
        remedy = f"Set rdma_nccl.socket_ifname for {host} to the interface on which {having[0]} reaches it."
        yield Finding(STAGE, "nccl.alike", host, SOCKET_IFNAME, WARNING, "not set: NCCL chooses an interface", expected, remedy)


def _shape(name: str, value: str | None) -> str | None:
    """The part of a value that must be equal: NCCL_IB_HCA without its device names."""
    return _DEVICE.sub("*", value) if name == HCA and value is not None else value


def _odd(host: str, name: str, value: str | None, usual: str | None, there: Sequence[str]) -> Finding:
    """The finding of a host that differs from most. usual: the value of most; there: the hosts that have it."""
    expected = f"as on other hosts: {_value_words(name, usual)} on {first_of(there, _NAMED)}"
    remedy = f"Compare rdma_nccl and the rails of {host} with those of {there[0]}."
    return Finding(STAGE, "nccl.alike", host, name, ERROR, _value_words(name, value), expected, remedy)


def _tied(name: str, alike: Mapping[str | None, Sequence[str]]) -> Iterator[Finding]:
    """The findings on values of which none is the most frequent: nothing shows which hosts are right."""
    by_size = sorted(alike.items(), key=lambda item: -len(item[1]))
    values = "; ".join(f"{_value_words(name, shape)} on {first_of(there, _NAMED)}" for shape, there in by_size[:_NAMED])
    more = f"; and {len(alike) - _NAMED} more values" if len(alike) > _NAMED else ""
    expected = "one value on all hosts"
    remedy = "1. Choose which of them is right: none is the most frequent. 2. Correct rdma_nccl or the rails of the other hosts."
    yield Finding(STAGE, "nccl.alike", FLEET, name, ERROR, f"{values}{more}", expected, remedy)
    why = f"no value is the most frequent one: see nccl.alike of {FLEET}"
    yield from (Finding(STAGE, "nccl.alike", host, name, NOT_APPLICABLE, why, expected) for there in alike.values() for host in there)


def _value_words(name: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return f"{value} (* is a device)" if name == HCA and "*" in value else value
