# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, with each firewall: planned once, shown in check mode, applied, left alone, and withheld."""

from __future__ import annotations

import io
import json
import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._base import command, sysroot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import UNITS
from ansible_collections.rdma.cluster.plugins.module_utils._net import firewall
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import NFT, UFW_ADDED, rich_rule
from tests.unit.builders.fakes import Call, FakeRunner

MODULE = Path(__file__).parents[4] / "plugins/modules/firewall.py"
OPENING = {"netdev": "ens1", "subnet": "192.168.100.0/24", "kinds": ["tcp"]}
NAME = "ens1 192.168.100.0/24 tcp"
WORDS = "TCP ports 1024 to 65535 from 192.168.100.0/24 on ens1"
FIREWALLD, NFTABLES, UFW = "firewalld.service", "nftables.service", "ufw.service"
LIST = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", *UNITS]


def systemd(*active: str) -> Call:
    """The answer of systemd on a host on which these units run."""
    states = [(unit, "active\nUnitFileState=enabled" if unit in active else "inactive\nUnitFileState=") for unit in UNITS]
    return LIST, 0, "\n".join(f"Id={unit}\nActiveState={state}\n" for unit, state in states), ""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    root = tmp_path / "host"
    monkeypatch.setattr(sysroot, "SysRoot", partial(sysroot.SysRoot, str(root)))
    for name in ("RECORD", "RULES_FILE", "DROP_IN"):
        monkeypatch.setattr(firewall, name, str(tmp_path / name))
    (root / "proc/1").mkdir(parents=True)
    (root / "proc/1/comm").write_text("systemd\n")
    (root / "etc/ufw").mkdir(parents=True)
    (root / "etc/ufw/ufw.conf").write_text("ENABLED=yes\n")

    def run(calls: list[Call], *openings: dict[str, Any], **more: Any) -> dict[str, Any]:
        runner = FakeRunner(calls)
        monkeypatch.setattr(command, "SubprocessRunner", lambda: runner)
        arguments = {"ANSIBLE_MODULE_ARGS": {"openings": openings, **more}}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(arguments).encode(), raising=False)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit):
            runpy.run_path(str(MODULE), run_name="__main__")
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def done(*argv: str) -> Call:
    return argv, 0, "", ""


def ruleset(*names: str) -> Call:
    """The answer of nft: one chain that drops by its policy, with rules of ours."""
    chain = {"family": "inet", "table": "t", "name": "c", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}
    rules = [
        {"family": "inet", "table": "t", "chain": "c", "handle": number, "comment": f"rdma.cluster {name}", "expr": [{"accept": None}]}
        for number, name in enumerate(names, 2)
    ]
    return NFT, 0, json.dumps({"nftables": [{"metainfo": {}}, {"chain": chain}, *({"rule": rule} for rule in rules)]}), ""


INSERT = done(
    *("nft", "insert", "rule", "inet", "t", "c", "iifname", '"ens1"', "ip", "saddr", "192.168.100.0/24"),
    *("tcp", "dport", "1024-65535", "accept", "comment", f'"rdma.cluster {NAME}"'),
)
RELOAD = done("systemctl", "daemon-reload")


def test_without_a_firewall_nothing_differs(call: Any) -> None:
    answer = call([systemd()], OPENING)
    assert (answer["changed"], answer["backend"], answer["changes"], answer["diff"], answer["withheld"]) == (False, None, [], [], "")


def test_nftables_is_planned_once_and_check_mode_shows_what_is_applied(call: Any, tmp_path: Path) -> None:
    shown = call([systemd(NFTABLES), ruleset()], OPENING, _ansible_check_mode=True, _ansible_diff=True)
    assert not list(tmp_path.glob("[RD]*"))
    applied = call([systemd(NFTABLES), ruleset(), INSERT, RELOAD], OPENING, _ansible_diff=True)
    assert shown.pop("invocation", None) == applied.pop("invocation", None)
    assert shown == applied
    assert (applied["changed"], applied["backend"], applied["changes"]) == (True, "nftables", [f"inet t c: {WORDS}"])
    assert [diff["after_header"] for diff in applied["diff"]] == ["nftables", str(tmp_path / "RULES_FILE"), str(tmp_path / "DROP_IN")]
    assert applied["diff"][1]["after"] == (tmp_path / "RULES_FILE").read_text()
    again = call([systemd(NFTABLES), ruleset(NAME)], OPENING)
    assert (again["changed"], again["diff"]) == (False, [])


def test_a_lost_drop_in_alone_is_shown_and_loaded(call: Any, tmp_path: Path) -> None:
    call([systemd(NFTABLES), ruleset(), INSERT, RELOAD], OPENING)
    (tmp_path / "DROP_IN").unlink()
    answer = call([systemd(NFTABLES), ruleset(NAME), RELOAD], OPENING)
    assert (answer["changed"], answer["changes"]) == (True, [])
    assert [diff["after_header"] for diff in answer["diff"]] == [str(tmp_path / "DROP_IN")]


def test_ufw(call: Any) -> None:
    rule = ("allow", "in", "on", "ens1", "from", "192.168.100.0/24", "to", "any", "port", "1024:65535", "proto", "tcp")
    old = "ufw allow in on ens9 from 10.0.0.0/8 to any port 4791 proto udp comment 'rdma.cluster'\n"
    outdated = ("allow", "in", "on", "ens9", "from", "10.0.0.0/8", "to", "any", "port", "4791", "proto", "udp")
    changes = [done("ufw", "prepend", *rule, "comment", "rdma.cluster"), done("ufw", "--force", "delete", *outdated)]
    answer = call([systemd(UFW), (UFW_ADDED, 0, old, ""), *changes], OPENING)
    assert (answer["changed"], answer["backend"]) == (True, "ufw")
    assert answer["changes"] == [WORDS, "no longer UDP port 4791 from 10.0.0.0/8 on ens9"]
    good = f"ufw {' '.join(rule)} comment 'rdma.cluster'\n"
    assert not call([systemd(UFW), (UFW_ADDED, 0, good, "")], OPENING)["changed"]


def rich(now: str, permanent: str) -> list[Call]:
    return [
        (["firewall-cmd", "--zone=public", "--list-rich-rules"], 0, now, ""),
        (["firewall-cmd", "--permanent", "--zone=public", "--list-rich-rules"], 0, permanent, ""),
    ]


def test_firewalld_adds_and_later_removes(call: Any, tmp_path: Path) -> None:
    zone = (["firewall-cmd", "--get-zone-of-interface=ens1"], 0, "public\n", "")
    rule = rich_rule(NAME)
    add = [done("firewall-cmd", *way, "--zone=public", f"--add-rich-rule={rule}") for way in ((), ("--permanent",))]
    answer = call([systemd(FIREWALLD), zone, *rich("", ""), *add], OPENING)
    assert (answer["changed"], answer["backend"]) == (True, "firewalld")
    assert answer["changes"] == [f"zone public: {WORDS}", f"zone public, permanently: {WORDS}"]
    record = tmp_path / "RECORD"
    seen = tmp_path / "host" / str(record).lstrip("/")
    seen.parent.mkdir(parents=True)
    seen.write_bytes(record.read_bytes())
    remove = [done("firewall-cmd", *way, "--zone=public", f"--remove-rich-rule={rule}") for way in ((), ("--permanent",))]
    answer = call([systemd(FIREWALLD), *rich(f"{rule}\n", f"{rule}\n"), *remove])
    assert answer["changes"] == [f"zone public: no longer {WORDS}", f"zone public, permanently: no longer {WORDS}"]
    assert not record.exists()


def test_a_job_withholds_the_rules(call: Any, tmp_path: Path) -> None:
    for name, text in {"comm": "slurmstepd\n", "cmdline": "slurmstepd: [7.0]\0"}.items():
        (tmp_path / "host/proc/4711").mkdir(exist_ok=True)
        (tmp_path / f"host/proc/4711/{name}").write_text(text)
    answer = call([systemd(NFTABLES), ruleset()], OPENING)
    assert (answer["changed"], answer["withheld"]) == (False, "job process 4711 (slurmstepd)")
    assert answer["changes"] == [f"inet t c: {WORDS}"]
    assert not list(tmp_path.glob("[RD]*"))


def test_refused(call: Any) -> None:
    two = call([systemd(FIREWALLD, NFTABLES)], OPENING)
    assert two["failed"]
    assert two["msg"].startswith("firewalld and nftables run at once")
    silent = call([(LIST, 1, "", "System has not been booted with systemd as init system (PID 1).\n")], OPENING)
    assert silent["msg"].startswith("systemd does not answer")
    failing = call([systemd(NFTABLES), ruleset(), (INSERT[0], 1, "", "Error: No such file or directory\n")], OPENING)
    assert "No such file or directory" in failing["msg"]
