# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beds of whole hosts: trees are read by the real code, and every gate that judges facts judges them, as in a run of the site playbook."""

from __future__ import annotations

import copy
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.action import gate
from ansible_collections.rdma.cluster.plugins.action import intent as intent_action
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import SILENT_MANAGER
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import RECEIVES, SENDS, TRANSFER_BYTES, TransferResult
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import since
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import FOLDER as TRANSFERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import PLAN as TRANSFER_PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import Transfers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import under_way
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import PRIORITY
from tests.faults.beds.trees import ANSWERS, TREE, Inject, damaged, put, read
from tests.simulator.actions import act
from tests.unit.builders.blind_hosts import Host
from tests.unit.builders.blind_trees import hosts as healthy_hosts

RUN = "20261120T120000Z-1"
STAGES = tuple(HOST_CHECKS)
#: Memory where there is some: a run writes a hundred small files.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: Injectors: what is changed before a host is read, in its facts, its inventory, and in the run.
INJECTORS = (*TREE, *ANSWERS, "facts", "intent", "absent", "lost", "managers", "transfer")
#: What of a host's facts has the host's number: addresses, GUIDs, MAC addresses, LIDs are in `_numbered`.
_OWN = (
    (r"\b192\.168\.(\d)\.1\b", r"192.168.\1.{number}"),
    (r"\b192\.0\.2\.1\b", r"192.0.2.{number}"),
    (r"\ba088:c203:0000:000", r"a088:c203:000{number}:000"),
    (r"\ba0:88:c2:00:00:0", r"a0:88:c2:00:0{number}:0"),
    (r"ffff:c0a8:0(\d)01", r"ffff:c0a8:0\g<1>0{number}"),
    (r"\bnode1\b", r"node{number}"),
    (r"0123456789abcdef0123456789abcdef", r"{number}123456789abcdef0123456789abcdef"),
)
ALL = "all"
Facts = dict[str, Any]


class HostBed:
    """So many hosts of a kind of blind_trees. prior: what is changed in all of them, so that nothing is found where nothing is broken."""

    def __init__(self, kind: str, hosts: int, prior: Inject) -> None:
        self.kind, self.prior = kind, prior
        self.hosts = [f"node{number}" for number in range(1, hosts + 1)]
        self._cache: dict[str, Facts] = {}
        self._intents: dict[str, str] = {}
        self._judged: dict[int, list[Finding]] = {}
        self._runs: dict[int, list[Finding]] = {}

    def forget(self) -> None:
        """Judge everything again from now on, as after a change of the code."""
        self._judged.clear()
        self._runs.clear()

    @cached_property
    def host(self) -> Host:
        """The healthy host, of which the others are copies with names and addresses of their own."""
        host = _trees()[self.kind]
        return damaged(host, self.prior, Path(tempfile.mkdtemp(dir=MEMORY, prefix="rdma-faults-")))

    def judge(self, faults: Mapping[str, Sequence[Inject]], earlier: Mapping[str, Sequence[Inject]] | None = None) -> list[Finding]:
        """What the gates report of all hosts. faults: host → what is injected; earlier: what was, when the last run read them."""
        hosts = [host for host in self.hosts if not any(each.get("absent") for each in faults.get(host, ()))]
        facts = {host: self.facts(host, faults.get(host, ())) for host in hosts}
        for host in hosts:
            old = self.facts(host, (earlier or {}).get(host, ()))
            old["boot"]["uptime_seconds"] -= 3600.0
            facts[host]["since"] = since(old, facts[host], "20261119T120000Z-1")
        return self.judge_facts(facts, faults)

    def judge_facts(self, facts: Mapping[str, Facts], faults: Mapping[str, Sequence[Inject]]) -> list[Finding]:
        """What the gates report of hosts whose facts were read; the values of `facts` in faults are put into them."""
        for host, of_host in facts.items():
            for path, value in _all(faults.get(host, ()), "facts").items():
                put(of_host, path, value)
        key = hash(json.dumps([facts, {host: [_beside(each) for each in of] for host, of in faults.items()}], sort_keys=True))
        if key not in self._runs:
            with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                run = RunFolder(Path(folder) / RUN)
                run.path.mkdir()
                self._runs[key] = self._gates(run, facts, faults)
        return self._runs[key]

    def facts(self, host: str, injects: Sequence[Inject]) -> Facts:
        """The facts of a host, read from its tree; `facts` is injected later."""
        whole = merged(injects)
        key = json.dumps([host, {name: whole[name] for name in (*TREE, *ANSWERS) if name in whole}], sort_keys=True)
        if key not in self._cache:
            with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                self._cache[key] = _numbered(read(damaged(self.host, whole, Path(folder)), whole), self.hosts.index(host) + 1)
        return copy.deepcopy(self._cache[key])

    def _gates(self, run: RunFolder, facts: Mapping[str, Facts], faults: Mapping[str, Sequence[Inject]]) -> list[Finding]:
        hosts, gone = list(facts), list[str]()
        for host in hosts:
            if not self._intent(run, hosts, host, faults.get(host, ())):
                gone.append(host)
            run.write(run.host_file("facts", host), json.dumps(facts[host]))
        self._managers(run, facts, faults)
        # A host that failed before its facts were read is not in the play of later stages.
        for stage in STAGES:
            gone += [host for host in hosts if any(each.get("lost") == stage for each in faults.get(host, ()))]
            for host in hosts:
                if stage != STAGES[0] and (host not in gone or any(each.get("lost") == stage for each in faults.get(host, ()))):
                    run.write_findings(stage, host, [under_way(stage, host)])
            playing = [host for host in hosts if host not in gone]
            if not playing:
                break
            if stage == "nccl":
                self._transfers(run, playing, faults)
            act(gate, run, hosts, gone=gone, stage=stage, scope="fleet")
            for host in playing:
                self._gate(run, hosts, host, stage, gone)
            act(gate, run, hosts, gone=gone, stage=stage, scope="decide", batch=False)
        names = [(stage, host) for stage in STAGES for host in (*hosts, *run.groups_of(stage))]
        return [each for stage, host in names for each in run.read_findings(stage, host)]

    def _intent(self, run: RunFolder, hosts: Sequence[str], host: str, injects: Sequence[Inject]) -> bool:
        """Let the action of the intent read the variables of a host; False if it refuses them. The same variables are read once."""
        variables = self._variables(host, injects)
        key = json.dumps([host, variables], sort_keys=True)
        if key in self._intents:
            run.write_findings(STAGES[0], host, [under_way(STAGES[0], host)])
            run.write(run.host_file("intent", host), self._intents[key])
            return True
        if act(intent_action, run, hosts, host, variables=variables, stage=STAGES[0]).get("failed"):
            return False
        self._intents[key] = json.dumps(run.read_json(run.host_file("intent", host)))
        return True

    def _gate(self, run: RunFolder, hosts: Sequence[str], host: str, stage: str, gone: Sequence[str]) -> None:
        """Let the gate judge a host. What depends on the same files as before is not judged again."""
        files = [run.host_file(name, host) for name in ("intent", "facts")]
        earlier = [run.read_findings(each, host) for each in STAGES[: STAGES.index(stage)]]
        texts = [(run.path / name).read_text(encoding="utf-8") for name in files]
        key = hash((stage, host, *texts, repr(run.read_findings(stage, host, of="fleet")), repr(earlier)))
        if key not in self._judged:
            allowed = {"pcie_mrrs_allowed": True}
            act(gate, run, hosts, host, gone=gone, variables=allowed, stage=stage, scope="host", fail_host=True)
            self._judged[key] = run.read_findings(stage, host)
        else:
            run.write_findings(stage, host, self._judged[key])

    def _variables(self, host: str, injects: Sequence[Inject]) -> dict[str, Any]:
        """The variables of the inventory of a host."""
        variables: dict[str, Any] = _numbered(json.loads(json.dumps(self.host.variables)), self.hosts.index(host) + 1)
        # The name of a host in another host's settings is not its own.
        if "rdma_fabric" in self.host.variables:
            variables["rdma_fabric"] = json.loads(json.dumps(self.host.variables["rdma_fabric"]))
        for path, value in {**_all([self.prior], "intent"), **_all(injects, "intent")}.items():
            put(variables, path, value)
        return variables

    @staticmethod
    def _transfers(run: RunFolder, playing: Sequence[str], faults: Mapping[str, Sequence[Inject]]) -> None:
        """What hosts say of data that they have moved through a network plugin, if they use one: all of it by verbs."""
        transfers = Transfers.of(known_hosts(run, playing), {}, 1_000_000.0, 168.0)
        run.write_json(TRANSFER_PLAN, asdict(transfers.plan("run-1", transfers.meetings, 5)))
        for host in transfers.users:
            results, changed = [], _all(faults.get(host, ()), "transfer")
            for meeting in transfers.of_host(host):
                sends = host == meeting.sender
                partner, device = (meeting.receiver, meeting.sender_device) if sends else (meeting.sender, meeting.receiver_device)
                ports = {f"{device}/1": {"bytes": TRANSFER_BYTES, "packets": 1024}}
                good = TransferResult(
                    partner, meeting.rail, SENDS if sends else RECEIVES, device, TRANSFER_BYTES, at="closed", seconds=1.0, ports=ports
                )
                results.append({**asdict(good), **(changed.get(SENDS if sends else RECEIVES) or {})})
            run.write_json(run.host_file(TRANSFERS, host), {"results": results})

    def _managers(self, run: RunFolder, facts: Mapping[str, Facts], faults: Mapping[str, Sequence[Inject]]) -> None:
        """What sminfo and saquery say of the plane "blue", as node1 stored it; a text is why they say nothing.

        opensm runs on rail 0 of node1: it does not answer if node1 is off, or that port is not active.
        """
        if self.kind != "infiniband":
            return
        master = {"lid": 1, "guid": "0xa088c20300010000", "state": "MASTER", "priority": PRIORITY}
        known: Any = [{**master, "kind": "host", "description": "node1 mlx5_0"}]
        off = "node1" not in facts or any(each.get("lost") == STAGES[0] for each in faults.get("node1", ()))
        ports = [port for device in (facts.get("node1") or {}).get("devices", {}).values() for port in device["ports"].values()]
        if off or not any((port["lid"], port["link_layer"], port["state"]) == (1, "InfiniBand", "ACTIVE") for port in ports):
            known = f"{SILENT_MANAGER} at LID 1"
        for injects in faults.values():
            known = next((each["managers"] for each in injects if "managers" in each), known)
        managers = None if isinstance(known, str) else [{**asdict(SmInfo(1, "", "MASTER", 0, 99)), **each} for each in known]
        answer = {"graph": None, "read_at": 1000.0, "subnet_managers": managers, "no_subnet_manager": known if managers is None else None}
        run.write_json("fabric/blue/managers/node1.json", answer)


def merged(injects: Sequence[Inject]) -> dict[str, Any]:
    """Several injections as one."""
    whole: dict[str, Any] = {}
    for inject in injects:
        for key, value in inject.items():
            if key not in INJECTORS:
                raise ValueError(f"no injector {key}; those of a host are {', '.join(INJECTORS)}")
            whole[key] = {**whole[key], **value} if key in whole and isinstance(value, dict) else value
    return whole


def _beside(inject: Inject) -> dict[str, Any]:
    """What of an injection the facts do not show."""
    return {key: value for key, value in inject.items() if key not in (*TREE, *ANSWERS)}


def _all(injects: Sequence[Inject], key: str) -> dict[str, Any]:
    return {path: value for each in injects for path, value in (each.get(key) or {}).items()}


def _numbered(tree: Any, number: int) -> Any:
    """The facts or variables of the first host as those of another one."""
    text = json.dumps(tree)
    for pattern, new in _OWN:
        text = re.sub(pattern, new.replace("{number}", str(number)), text)
    found = json.loads(text)
    for device in (found.get("devices") or {}).values() if isinstance(found, dict) else ():
        for port in device["ports"].values():
            port["lid"] = (port["lid"] or 0) + 10 * (number - 1)
    return found


@cache
def _trees() -> dict[str, Host]:
    return healthy_hosts(Path(tempfile.mkdtemp(dir=MEMORY, prefix="rdma-faults-")))


def remove_trees() -> None:
    """Remove what this process has built."""
    for bed in BEDS.values():
        if "host" in bed.__dict__:
            shutil.rmtree(bed.host.root, ignore_errors=True)
    for host in _trees().values() if _trees.cache_info().currsize else ():
        shutil.rmtree(host.root.parent, ignore_errors=True)


Judge = Callable[[Mapping[str, Sequence[Inject]]], list[Finding]]
BEDS = {
    # Its newest kernel does not run; that is a fault of the catalogue.
    "roce": HostBed("roce", 3, {"remove": {"/lib/modules/6.1.0-31-amd64": None}}),
    "dcb": HostBed("dcb", 2, {}),
    "infiniband": HostBed("infiniband", 3, {"intent": {"rdma_fabric.planes.blue.subnet_manager.default_membership": "limited"}}),
}
