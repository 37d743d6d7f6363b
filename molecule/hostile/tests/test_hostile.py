# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host lies in many ways while three others are built: they are, the liar is named, and nothing leaves its place.

The RDMA devices are files: a container has none. What Ansible, the collection and the liar do with them is real.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import subprocess
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from lab import cluster, remote
from lab.plan import Rail
from tests.unit.builders.trees import write_tree
from tests.verify.site import ROOT, Site

LIAR = "node2"
HONEST = ["node1", "node3", "node4"]
HOSTS = sorted([LIAR, *HONEST])
BUILD = "molecule/hostile/build.yml"
STAGES = ("preflight", "link", "nccl")
#: The files that the build makes below /etc.
BUILT = {"nccl.conf", "rdma-cluster/nccl.env"}
GATE = {"policy": "quarantine", "max_failed_percent": 50}
#: In the name of every file that a lie asks for.
MARK = f"PWNED{secrets.token_hex(4)}"
SECRET = f"secret of the control node {secrets.token_hex(16)}"
#: Sets the title of a terminal and its clipboard, then writes over the line above.
ESCAPE = "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2K\x1b[1A\r"
FORGED_LINE = f"{ESCAPE}link            4 hosts      0 s  4 ok"
#: Placeholders in lies: the folder of the test, and the SHA-256 of the secret in it.
FOLDER, SUM = "/@folder@", "@sum@"
#: And for the liar's own intent, but with the policy `report`.
INTENT = "@intent@"
LARGEST_EVIDENCE, LARGEST_OUTPUT = 2**20, 2**18


@dataclass(frozen=True)
class Run:
    """A build with lies: what each is called, and what lie.json says of each module (see liar.py).

    stage and check: where the gate names the liar; None if all lies are ignored, and it is built. seen: parts of that finding's text.
    """

    lies: tuple[str, ...]
    answers: dict[str, Any]
    stage: str | None = None
    check: str = "host.facts"
    seen: tuple[str, ...] = ()


def facts(tree: Any) -> dict[str, Any]:
    return {"rdma_facts": {"merge": {"ansible_facts": {"rdma": tree}}}}


def refused(lie: str, tree: Any, *seen: str) -> Run:
    """Facts that are refused at their door, in the first stage."""
    return Run((lie,), facts(tree), "preflight", seen=seen)


def no_answer(lie: str, say: str, *seen: str) -> Run:
    return Run((lie,), {"rdma_facts": {"say": say}}, "preflight", "stage.completed", seen)


#: The rail is said to be down, so that the link stage has a module of its own run on the host, whose answer is the lie.
DOWN = facts({"netdevs": {"eth1": {"admin_up": False}}})


#: Variables of the run, a permission, a policy, and a package that is a file of the control node.
OWN = {
    "rdma_nccl": {
        "install": {
            "kind": "files",
            "packages": {"libnccl2": {"version": "2.20.5-1", "source": {"file": f"{FOLDER}/secret"}, "checksum": f"sha256:{SUM}"}},
        }
    },
    "rdma_run_dir": f"{FOLDER}/{MARK}_run_dir",
    "nccl_install_allowed": True,
    "rdma_gate": {"policy": "report"},
}
UP = f"../../../../../../../..{FOLDER}/{MARK}"
GIDS = [{"index": 0, "gid": "fe80::2:c903:2:fb02=full, ALL", "type": "RoCE v2", "netdev": "eth1", "ipv4": None}]
NIC = dict.fromkeys(
    (
        "vendor_id",
        "device_id",
        "numa_node",
        "speed_gtps",
        "width",
        "max_speed_gtps",
        "max_width",
        "mrrs_bytes",
        "mps_bytes",
        "mps_max_bytes",
        "narrowest",
    )
) | {"hops": []}
NEW_HOST = {"host_name": MARK, "groups": ["all"], "host_vars": {"ansible_connection": "local"}}
RUNS = [
    refused("a value that is missing", {"netdevs": {"eth1": {"mac": None}}}, "netdevs.eth1.mac: missing"),
    refused("not a number", {"boot": {"uptime_seconds": math.nan}}, "boot.uptime_seconds: expected a finite number, got nan"),
    refused("an endless number", {"memory": {"total_bytes": 10**4000}}, "memory.total_bytes: expected a number of 64 bits"),
    refused("8 MB of text", {"boot": {"hostname": "x" * 8_000_000}}, "boot.hostname: expected at most 1048576 characters, got 8000000"),
    refused("facts of another schema", {"schema": 99}, "schema: expected 1, got 99"),
    refused(
        "a line of partitions.conf for a GID",
        {"devices": {"rxe0": {"ports": {"1": {"gids": GIDS}}}}},
        "expected a GID, got 'fe80::2:c903:2:fb02=full, ALL'",
    ),
    refused("a path for a PCI address", {"nics": {"0000:00:03.0": {"=": {**NIC, "address": UP}}}}, "expected a PCI address, got '../"),
    refused("the answer of another module", {"=": None}, "facts: expected a dictionary, got None"),
    no_answer("half an answer, NUL bytes and escapes", f'{{"changed": fal\0\0{FORGED_LINE}'),
    no_answer("100,000 brackets", '{"changed": false, "n": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    no_answer("a failure with escapes", json.dumps({"failed": True, "msg": f"broken{FORGED_LINE}"}), "broken"),
    no_answer("it is out of reach", json.dumps({"unreachable": True, "msg": f"gone{FORGED_LINE}"}), "gone"),
    Run(
        ("the name of another host",),
        facts({"boot": {"hostname": "node1"}}),
        "preflight",
        "host.identity",
        ("node1 is the name of another host of the inventory, node1",),
    ),
    Run(
        ("a file of the control node", "another run folder", "a permission", "another policy"),
        {**DOWN, "rail_links": {"merge": {"ansible_facts": OWN}}},
        "link",
        seen=tuple(sorted(OWN)),
    ),
    Run(
        ("escapes in a port's state",),
        facts({"devices": {"rxe0": {"ports": {"1": {"state": f"DOWN{FORGED_LINE}"}}}}}),
        "link",
        "link.state",
        ("DOWN",),
    ),
    Run(
        ("another intent",),
        {**DOWN, "rail_links": {"merge": {"ansible_facts": {"rdma_intent": INTENT}}}},
        "link",
        seen=("its facts set rdma_intent",),
    ),
    Run(("a change that was not made",), {"managed_files": {"idle": True, "merge": {"changed": True}}}, "nccl", "nccl.file"),
    Run(
        (
            "variables beside the facts",
            "a name that is a path",
            "a template",
            "a host for the inventory",
            "words of our own actions",
            "a warning with escapes",
            "a difference with escapes",
        ),
        {
            "rdma_facts": {
                "merge": {
                    "ansible_facts": {
                        **OWN,
                        "rdma": {
                            "boot": {"machine_id": f"{{{{ lookup('pipe', 'touch {FOLDER}/{MARK}') }}}}"},
                            "units": {UP: {"active": True, "enabled": True}},
                        },
                    },
                    "add_host": NEW_HOST,
                    "add_group": f"{MARK}{ESCAPE}",
                    "run_folder": f"{FOLDER}/{MARK}_run_folder",
                    "stage": "collectives",
                    "scope": "decide",
                    "explained": FORGED_LINE,
                    "warnings": [FORGED_LINE],
                }
            },
            "managed_files": {
                "merge": {
                    "run_folder": f"{FOLDER}/{MARK}_run_folder",
                    "add_host": NEW_HOST,
                    "warnings": [FORGED_LINE],
                    "diff": [{"before": FORGED_LINE, "after": FORGED_LINE, "before_header": UP, "after_header": UP}],
                }
            },
        },
    ),
]


def files_of(rail: Rail) -> str:
    """What /sys/class has of a rail's NIC and of a Soft-RoCE device on it, for write_tree."""
    netdev, device = f"eth{rail.index + 1}", f"infiniband/rxe{rail.index}"
    function = f"lab/pci0000:{rail.index:02x}/0000:{rail.index + 1:02x}:00.0"
    net = f"{function}/virtio1/net/{netdev}"
    m = rail.mac.split(":")
    guid = f"{m[0]}{m[1]}:{m[2]}ff:fe{m[3]}:{m[4]}{m[5]}"
    ipv4 = "{:02x}{:02x}:{:02x}{:02x}".format(*(int(each) for each in rail.address.partition("/")[0].split(".")))
    return f"""
        net/{netdev} -> ../{net}
        {function}/vendor: 0x1af4
        {function}/device: 0x1041
        {function}/virtio1/driver -> ../../../../../bus/virtio/drivers/virtio_net
        {net}/device -> ../../../virtio1
        {net}/address: {rail.mac}
        {net}/mtu: 9000
        {net}/operstate: up
        {net}/carrier: 1
        {net}/flags: 0x1003
        {net}/type: 1
        {net}/dev_port: 0
        {device}/parent: {netdev}
        {device}/node_type: 1: CA
        {device}/node_guid: {guid}
        {device}/sys_image_guid: {guid}
        {device}/ports/1/state: 4: ACTIVE
        {device}/ports/1/phys_state: 5: LinkUp
        {device}/ports/1/link_layer: Ethernet
        {device}/ports/1/rate: 2.5 Gb/sec (1X SDR)
        {device}/ports/1/lid: 0x0
        {device}/ports/1/sm_lid: 0x0
        {device}/ports/1/gids/0: fe80:0000:0000:0000:{guid}
        {device}/ports/1/gid_attrs/types/0: RoCE v2
        {device}/ports/1/gid_attrs/ndevs/0: {netdev}
        {device}/ports/1/gids/1: 0000:0000:0000:0000:0000:ffff:{ipv4}
        {device}/ports/1/gid_attrs/types/1: RoCE v2
        {device}/ports/1/gid_attrs/ndevs/1: {netdev}
    """


class Fleet:
    """The lab's containers, and what lies in them."""

    def __init__(self) -> None:
        self.lab = cluster.load("hostile")

    def root(self, name: str) -> Path:
        return self.lab.folder.node(name) / "root"

    def prepare(self) -> None:
        """RDMA devices on every container, and the liar on its own."""
        for node in self.lab.plan.nodes:
            for rail in node.rails:
                write_tree(self.root(node.name) / "opt/class", files_of(rail))
            answer = remote.execute(node, self.lab.folder, "mountpoint -q /sys/class || mount --bind /opt/class /sys/class")
            assert answer.status == 0, answer.stderr
        folder = self.root(LIAR) / "opt/liar"
        folder.mkdir(exist_ok=True)
        (folder / "python").write_text("#!/usr/bin/python3\n" + Path(__file__).with_name("liar.py").read_text())
        (folder / "python").chmod(0o755)

    def lie(self, answers: dict[str, Any], folder: Path) -> None:
        host = yaml.safe_load(self.lab.folder.inventory.read_text())["all"]
        given = {name: value for name, value in {**host["vars"], **host["hosts"][LIAR]}.items() if name.startswith("rdma_")}
        intent = normalize({**given, "rdma_gate": {"policy": "report"}})
        text = json.dumps(answers).replace(FOLDER, str(folder)).replace(SUM, hashlib.sha256(SECRET.encode()).hexdigest())
        text = text.replace(f'"{INTENT}"', json.dumps({"=": intent}))
        (self.root(LIAR) / "opt/liar/lie.json").write_text(text)

    def nccl_conf(self, name: str) -> Path:
        return self.root(name) / "etc/nccl.conf"

    def etc(self, name: str) -> dict[str, tuple[int, int]]:
        """The files of a host below /etc: size and time of change."""
        top = self.lab.folder.node(name) / "upper/etc"
        found = ((path.relative_to(top), path.lstat()) for path in top.rglob("*") if not path.is_dir())
        return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    fleet = Fleet()
    fleet.prepare()
    return fleet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "secret").write_text(SECRET)
    return folder


@pytest.fixture(scope="module")
def site(fleet: Fleet, folder: Path) -> Site:
    """The lab's inventory with the false interpreter on the liar. Facts become variables, which is Ansible's default."""
    inventory = yaml.safe_load(fleet.lab.folder.inventory.read_text())
    inventory["all"]["hosts"][LIAR]["ansible_python_interpreter"] = "/opt/liar/python"
    inventory["all"]["vars"] |= {"rdma_gate": GATE, "rdma_run_dir": str(folder / "artifacts")}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return Site(folder / "hosts.yml", folder, environment={"ANSIBLE_INJECT_FACT_VARS": "true"})


def stopping(site: Site, stage: str, host: str) -> list[dict[str, Any]]:
    findings = json.loads((site.evidence / f"findings/{stage}/{host}.json").read_text())
    return [finding for finding in findings if finding["status"] in ("error", "unknown")]


def control_characters(text: str) -> set[str]:
    return {each for each in text if unicodedata.category(each) == "Cc" and each not in "\n\t"}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.lies[0])
def test_the_others_are_built_and_the_liar_is_named(site: Site, fleet: Fleet, folder: Path, run: Run) -> None:
    fleet.lie(run.answers, folder)
    for host in HOSTS:
        for name in BUILT:
            (fleet.root(host) / "etc" / name).unlink(missing_ok=True)
    before = {host: fleet.etc(host) for host in HONEST}
    beside = {path.name for path in site.run_dir.iterdir()} if site.run_dir.exists() else set()
    done = site.run(BUILD)

    # The others are built, by the inventory's policy.
    for host in HONEST:
        assert fleet.nccl_conf(host).exists(), done.stdout
        assert "NCCL_IB_HCA==rxe0:1,rxe1:1" in fleet.nccl_conf(host).read_text()
        assert [stopping(site, stage, host) for stage in STAGES] == [[], [], []]
        after = fleet.etc(host)
        assert {name for name in before[host].keys() | after.keys() if before[host].get(name) != after.get(name)} == BUILT
        read = site.json(f"facts/{host}.json")
        assert (read["boot"]["hostname"], read["netdevs"]["eth1"]["mac"]) == (host, fleet.lab.plan.node(host).rails[0].mac)
    for stage in STAGES:
        decision = site.json(f"gates/{stage}.json")
        is_out = run.stage is not None and STAGES.index(stage) >= STAGES.index(run.stage)
        assert (decision["policy"], decision["stops"], decision["hosts"]) == ("quarantine", False, len(HOSTS))
        assert sorted(decision["out"]) == ([LIAR] if is_out else [])
    assert (done.returncode == 0) is (run.stage is None), done.stdout

    # The liar is named with its lie, or the lie has changed nothing.
    if run.stage is None:
        assert [stopping(site, stage, LIAR) for stage in STAGES] == [[], [], []]
        assert fleet.nccl_conf(LIAR).read_text() == fleet.nccl_conf("node1").read_text()
    else:
        found = [finding for finding in stopping(site, run.stage, LIAR) if finding["check"] == run.check]
        assert found, done.stdout
        for part in run.seen:
            assert part in found[0]["observed"]
        assert f"{LIAR}, {found[0]['subject']}: {run.check} is {found[0]['status']} ({run.stage} stage)" in done.stdout, done.stdout
        assert not fleet.nccl_conf(LIAR).exists()

    # Nothing leaves its place.
    assert {path.name for path in site.run_dir.iterdir()} == beside | {site.evidence.name, "latest", "history.jsonl"}
    assert f"Evidence: {site.evidence}" in done.stdout
    assert {path.name for path in folder.iterdir()} == {"secret", "hosts.yml", "artifacts"}
    assert MARK not in {line.partition(" ")[0] for line in done.stdout.splitlines()}
    assert control_characters(done.stdout) == set(), done.stdout
    kept = [path for path in site.evidence.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) < LARGEST_EVIDENCE
    assert len(done.stdout) < LARGEST_OUTPUT
    for path in kept:
        answer = path.read_text()
        assert MARK not in path.name
        assert control_characters(answer) == set(), path


def test_nothing_is_where_a_lie_pointed(fleet: Fleet) -> None:
    """No file of a lie's name is on the control node, and no secret of the control node is on the liar."""
    places = ["/tmp", "/root", "/home", "/etc", "/run", "/opt", "/var/tmp", str(ROOT)]
    search = ["find", *(place for place in places if Path(place).exists()), "-xdev", "-name", f"*{MARK}*", "-print"]
    assert subprocess.run(search, capture_output=True, text=True, check=False).stdout == ""
    upper = fleet.lab.folder.node(LIAR) / "upper"
    assert (upper / "opt/liar/lie.json").exists()
    there = subprocess.run(["grep", "-rlF", SECRET, upper], capture_output=True, text=True, check=False)
    assert (there.returncode, there.stdout) == (1, "")


def test_enough_lies_are_reported() -> None:
    assert len({lie for run in RUNS for lie in run.lies}) >= 20
