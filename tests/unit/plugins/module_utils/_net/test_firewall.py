# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which rules open a firewall for the rails. The answers are those of nftables 1.0.6, ufw 0.36.2 and firewalld 1.3.3 (Debian 12)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS, UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net import firewall
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import (
    NFT,
    UFW_ADDED,
    Firewall,
    Opening,
    apply_firewall,
    missing,
    nft_commands,
    nft_files,
    outdated,
    parse_ruleset,
    parse_ufw,
    plan_firewall,
    read_firewall,
    rich_rule,
    ufw_commands,
    words_of,
)
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.garbled import garbled
from tests.unit.builders.hosts import FIXTURES

#: Two base chains for input, of which one drops by its policy and one by a jump; one for output that drops nothing; our rules in both.
RULESET = (FIXTURES / "nft/ruleset-1.0.6.json").read_text()
SOFT, HARD = Opening("lo", "10.1.0.0/24"), Opening("ens1", "192.168.100.0/24", ("tcp", "icmp"))
OPENED = [*HARD.names, *SOFT.names]
OFF = UnitState(active=False, enabled=False)
STOPPED = {"nftables.service": OFF, "ufw.service": OFF, "firewalld.service": OFF}


def with_chain(*rules: dict[str, Any], **changes: Any) -> str:
    """The JSON of a rule set with one base chain for input."""
    chain = {"family": "inet", "table": "t", "name": "c", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}
    own = [{"rule": {"family": "inet", "table": "t", "chain": "c", "handle": number, **rule}} for number, rule in enumerate(rules, 2)]
    return json.dumps({"nftables": [{"metainfo": {}}, {"chain": {**chain, **changes}}, *own]})


def test_the_chains_that_can_drop_and_our_rules_in_them() -> None:
    chains = parse_ruleset(RULESET)
    assert [chain.words for chain in chains] == [("inet", "filter", "input"), ("ip", "second", "in2")]
    assert [sorted(chain.ours) for chain in chains] == [sorted(OPENED), sorted(OPENED)]


@pytest.mark.parametrize(
    ("text", "there"),
    [
        pytest.param(with_chain(policy="drop"), True, id="drops by its policy"),
        pytest.param(with_chain({"expr": [{"drop": None}]}), True, id="drops by a rule"),
        pytest.param(with_chain({"expr": [{"match": {}}, {"reject": {"type": "icmp"}}]}), True, id="rejects"),
        pytest.param(with_chain({"expr": [{"accept": None}]}), False, id="accepts all"),
        pytest.param(with_chain(policy="drop", hook="forward"), False, id="only what is forwarded"),
        pytest.param(with_chain(policy="drop", hook="output"), True, id="output"),
        pytest.param(with_chain(policy="drop", type="nat"), False, id="translates addresses"),
        pytest.param(with_chain(policy="drop", family="ip6"), True, id="IPv6 alone"),
        pytest.param(with_chain({"expr": [{"vmap": {}}]}), True, id="a map of verdicts"),
        pytest.param(with_chain({"expr": [{"xt": None}]}), True, id="a target of iptables-nft"),
        pytest.param(with_chain(policy="drop", hook="prerouting"), True, id="before input"),
        pytest.param('{"nftables": [{"metainfo": {}}]}', False, id="empty"),
    ],
)
def test_which_chains_need_our_rules(text: str, there: bool) -> None:
    assert bool(parse_ruleset(text)) is there


@given(garbled(RULESET))
def test_a_garbled_rule_set(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert all(chain.family in ("ip", "inet", "netdev") for chain in parse_ruleset(text))


def test_nothing_to_do_where_all_is_there() -> None:
    assert nft_commands([SOFT, HARD], parse_ruleset(RULESET)) == []


def test_what_is_missing_goes_to_the_top_of_each_chain() -> None:
    chains = parse_ruleset(with_chain(policy="drop"))
    assert [" ".join(each.argv) for each in nft_commands([HARD], chains)] == [
        'nft insert rule inet t c iifname "ens1" ip saddr 192.168.100.0/24 ip protocol icmp accept '
        'comment "rdma.cluster ens1 192.168.100.0/24 icmp"',
        'nft insert rule inet t c iifname "ens1" ip saddr 192.168.100.0/24 tcp dport 1024-65535 accept '
        'comment "rdma.cluster ens1 192.168.100.0/24 tcp"',
    ]


def test_output_is_opened_by_the_address_of_the_other_host() -> None:
    [command] = nft_commands([Opening("ens1", "192.168.100.0/24", ("udp",))], parse_ruleset(with_chain(policy="drop", hook="output")))
    assert 'oifname "ens1" ip daddr 192.168.100.0/24 udp dport 4791 accept' in " ".join(command.argv)


def test_only_rules_of_ours_are_removed() -> None:
    """By handle, and a comment that begins otherwise is somebody's own."""
    ours = {"comment": "rdma.cluster ens9 10.0.0.0/8 tcp", "expr": []}
    foreign = [{"comment": text, "expr": []} for text in ("rdma.clusters", "rdma.cluster", "rdma.cluster x", "rdma.cluster a b c")]
    commands = nft_commands([], parse_ruleset(with_chain(ours, *foreign, policy="drop")))
    assert [each.argv for each in commands] == [("nft", "delete", "rule", "inet", "t", "c", "handle", "2")]
    assert commands[0].words == "inet t c: no longer TCP ports 1024 to 65535 from 10.0.0.0/8 on ens9"


def test_the_unit_adds_them_again() -> None:
    rules, drop_in = nft_files([HARD], parse_ruleset(RULESET))
    assert rules.text.splitlines()[1] == (
        'insert rule inet filter input iifname "ens1" ip saddr 192.168.100.0/24 tcp dport 1024-65535 accept '
        'comment "rdma.cluster ens1 192.168.100.0/24 tcp"'
    )
    assert len(rules.text.splitlines()) == 1 + 2 * 2
    # A failure there must not keep the user's own rules from being loaded, nor one rule of ours the others.
    each = """/bin/sh -c 'while read -r rule; do /usr/sbin/nft "$$rule"; done < /etc/rdma-cluster/firewall.nft'"""
    assert drop_in.text.splitlines()[-2:] == [f"ExecStartPost=-{each}", f"ExecReload=-{each}"]
    assert [file.content for file in nft_files([], parse_ruleset(RULESET))] == [None, None]


UFW_RULES = """\
Added user rules (see 'ufw status' for running firewall):
ufw allow in on ens1 from 192.168.100.0/24 to any port 1024:65535 proto tcp comment 'rdma.cluster'
ufw allow in on eth0 from 10.0.0.0/8 to any port 1024:65535 proto tcp comment 'ours'
ufw allow 22/tcp
"""


def test_our_rules_in_ufw() -> None:
    assert parse_ufw(UFW_RULES) == {"ens1 192.168.100.0/24 tcp"}


def test_ufw_gets_what_is_missing_before_other_rules() -> None:
    assert [" ".join(each.argv) for each in ufw_commands([SOFT], {"ens1 192.168.100.0/24 tcp"})] == [
        "ufw prepend allow in on lo from 10.1.0.0/24 to any port 1024:65535 proto tcp comment rdma.cluster",
        "ufw prepend allow in on lo from 10.1.0.0/24 to any port 4791 proto udp comment rdma.cluster",
        "ufw --force delete allow in on ens1 from 192.168.100.0/24 to any port 1024:65535 proto tcp",
    ]
    assert ufw_commands([HARD], {"ens1 192.168.100.0/24 tcp"}) == []


ZONE = (["firewall-cmd", "--get-zone-of-interface=ens1"], 2, "", "no zone\n")
DEFAULT_ZONE = (["firewall-cmd", "--get-default-zone"], 0, "public\n", "")
TCP_RULE = 'rule family="ipv4" source address="192.168.100.0/24" port port="1024-65535" protocol="tcp" accept'


def lists(now: str, permanent: str) -> list[tuple[list[str], int, str, str]]:
    return [
        (["firewall-cmd", "--zone=public", "--list-rich-rules"], 0, now, ""),
        (["firewall-cmd", "--permanent", "--zone=public", "--list-rich-rules"], 0, permanent, ""),
    ]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(firewall, "RECORD", str(tmp_path / "record.json"))
    monkeypatch.setattr(firewall, "RULES_FILE", str(tmp_path / "rules.nft"))
    monkeypatch.setattr(firewall, "DROP_IN", str(tmp_path / "drop-in.conf"))
    return tmp_path / "record.json"


def test_firewalld_gets_what_is_missing_now_and_permanently(record: Path) -> None:
    icmp = rich_rule("ens1 192.168.100.0/24 icmp")
    adds = [
        (["firewall-cmd", "--permanent", "--zone=public", f"--add-rich-rule={TCP_RULE}"], 0, "success\n", ""),
        (["firewall-cmd", "--zone=public", f"--add-rich-rule={icmp}"], 0, "success\n", ""),
        (["firewall-cmd", "--permanent", "--zone=public", f"--add-rich-rule={icmp}"], 0, "success\n", ""),
    ]
    runner = FakeRunner([ZONE, DEFAULT_ZONE, *lists(f"{TCP_RULE}\n", ""), *adds])
    plan = plan_firewall([HARD], {"firewalld.service": RUNS}, sys=SysRoot(), runner=runner)
    apply_firewall(plan, runner)
    assert len(plan.changes) == 3
    assert json.loads(record.read_text())["ens1 192.168.100.0/24 tcp"] == {"zone": "public", "rule": TCP_RULE}
    again = FakeRunner([ZONE, DEFAULT_ZONE, *lists(f"{TCP_RULE}\n{icmp}\n", f"{icmp}\n{TCP_RULE}\n")])
    assert not plan_firewall([HARD], {"firewalld.service": RUNS}, sys=SysRoot(), runner=again).changed


def test_firewalld_loses_only_what_is_recorded(record: Path) -> None:
    record.write_text(json.dumps({"ens1 192.168.100.0/24 tcp": {"zone": "public", "rule": TCP_RULE}}))
    foreign = 'rule family="ipv4" source address="10.9.0.0/16" accept'
    remove = (["firewall-cmd", "--zone=public", f"--remove-rich-rule={TCP_RULE}"], 0, "success\n", "")
    runner = FakeRunner([*lists(f"{foreign}\n{TCP_RULE}\n", f"{foreign}\n"), remove])
    plan = plan_firewall([], {"firewalld.service": RUNS}, sys=SysRoot(), runner=runner)
    apply_firewall(plan, runner)
    assert plan.changes == ["zone public: no longer TCP ports 1024 to 65535 from 192.168.100.0/24 on ens1"]
    assert not record.exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"ens1 192.168.100.0/24 tcp": {"zone": "public"}}', '{"ens1 192.168.100.0/24 tcp": 7}', "[" * 100_000]
)
def test_a_record_that_is_not_ours_is_refused_with_its_path(record: Path, text: str) -> None:
    record.write_text(text)
    with pytest.raises(ParseError, match=f"^{record}: not our record of rules: "):
        plan_firewall([], {"firewalld.service": RUNS}, sys=SysRoot(), runner=FakeRunner([]))


XML = """<zone><rule family="ipv4">
    <source address="192.168.100.0/24"/>
    <port port="1024-65535" protocol="tcp"/>
    <accept/>
  </rule><forward/></zone>"""


def icmp(subnet: str, protocol: str) -> str:
    return f'<rule><source address="{subnet}"/><protocol value="{protocol}"/><accept/></rule>'


FOUR, SIX = ("192.168.100.0/24", "icmp"), ("2001:db8:100::/64", "ipv6-icmp")


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        (XML, ["ens1 192.168.100.0/24 tcp"]),
        (XML.replace("accept", "drop"), []),
        ("", []),
        (icmp(*FOUR) + icmp(*SIX), ["ens1 192.168.100.0/24 icmp", "ens1 2001:db8:100::/64 icmp"]),
        (icmp(FOUR[0], SIX[1]) + icmp(SIX[0], FOUR[1]), []),
    ],
    ids=["tcp", "dropped", "empty", "icmp", "icmp of the other version"],
)
def test_for_facts_firewalld_is_read_from_its_files(tmp_path: Path, text: str, opened: list[str]) -> None:
    for path, content in {
        "etc/rdma-cluster/firewalld.json": json.dumps(
            {
                name: {"zone": "public", "rule": TCP_RULE}
                for name in ("ens1 192.168.100.0/24 tcp", "ens1 192.168.100.0/24 icmp", "ens1 2001:db8:100::/64 icmp")
            }
        ),
        "etc/firewalld/zones/public.xml": text,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    seen = read_firewall({**STOPPED, "firewalld.service": RUNS}, SysRoot(str(tmp_path)), FakeRunner([]))
    assert seen == Firewall("firewalld", opened)


def test_a_host_without_a_firewall() -> None:
    assert read_firewall(STOPPED, SysRoot(), FakeRunner([])) == Firewall(None)
    assert read_firewall(None, SysRoot(), FakeRunner([])) is None
    assert not plan_firewall([HARD], STOPPED, sys=SysRoot(), runner=FakeRunner([])).changed


def test_what_cannot_be_read_is_unknown() -> None:
    seen = read_firewall({"nftables.service": RUNS}, SysRoot(), Without(["nft"], []))
    assert seen is not None
    assert seen.unread
    assert seen.opened == []


def test_the_rules_that_are_read() -> None:
    assert read_firewall({"nftables.service": RUNS}, SysRoot(), FakeRunner([(NFT, 0, RULESET, "")])) == Firewall("nftables", sorted(OPENED))
    seen = read_firewall({"ufw.service": RUNS}, SysRoot(), FakeRunner([(UFW_ADDED, 0, UFW_RULES, "")]))
    assert seen == Firewall("ufw", ["ens1 192.168.100.0/24 icmp", "ens1 192.168.100.0/24 tcp"])


def test_a_rule_set_that_drops_nothing_is_open() -> None:
    seen = read_firewall({"nftables.service": RUNS}, SysRoot(), FakeRunner([(NFT, 0, with_chain(), "")]))
    assert seen is not None
    assert (missing([HARD], seen), outdated([], seen)) == ([], [])


def test_a_chain_that_we_cannot_open_is_not_passed_off_as_open() -> None:
    seen = read_firewall({"nftables.service": RUNS}, SysRoot(), FakeRunner([(NFT, 0, with_chain(policy="drop", hook="prerouting"), "")]))
    assert seen is not None
    assert missing([HARD], seen) == HARD.names


def test_ufw_that_drops_outgoing_packets_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "etc/default").mkdir(parents=True)
    (tmp_path / "etc/default/ufw").write_text('DEFAULT_OUTPUT_POLICY="DROP"\n')
    seen = read_firewall({"ufw.service": RUNS}, SysRoot(str(tmp_path)), FakeRunner([]))
    assert seen is not None
    assert "DEFAULT_OUTPUT_POLICY=DROP" in str(seen.unread)


def test_two_firewalls_at_once_are_refused() -> None:
    units = {"firewalld.service": RUNS, "nftables.service": RUNS}
    with pytest.raises(ApplyError, match=r"firewalld and nftables run at once.* 2\. Disable the other one"):
        plan_firewall([HARD], units, sys=SysRoot(), runner=FakeRunner([]))


def test_what_is_missing_and_what_is_outdated() -> None:
    seen = Firewall("nftables", ["ens1 192.168.100.0/24 tcp", "ens9 10.0.0.0/8 tcp"])
    assert missing([HARD], seen) == ["ens1 192.168.100.0/24 icmp"]
    assert outdated([HARD], seen) == ["ens9 10.0.0.0/8 tcp"]
    assert words_of("lo 10.1.0.0/24 udp") == "UDP port 4791 from 10.1.0.0/24 on lo"


def test_a_plan_changes_nothing(record: Path) -> None:
    runner = FakeRunner([(NFT, 0, with_chain(policy="drop"), "")])
    plan = plan_firewall([HARD], {"nftables.service": RUNS}, sys=SysRoot(), runner=runner)
    assert len(plan.changes) == 2
    assert list(record.parent.iterdir()) == []


SIX = Opening("ens1", "2001:db8:100::/64")


def test_rules_of_ipv6_go_into_the_chains_that_see_it() -> None:
    chains = [firewall.Chain(family, "t", "c", "input", {}) for family in ("ip", "ip6", "inet")]
    argvs = [" ".join(command.argv) for command in nft_commands([SIX], chains)]
    assert argvs[:3] == [
        'nft insert rule ip6 t c iifname "ens1" meta l4proto ipv6-icmp accept comment "rdma.cluster ens1 2001:db8:100::/64 icmp"',
        'nft insert rule ip6 t c iifname "ens1" ip6 saddr 2001:db8:100::/64 tcp dport 1024-65535 accept comment '
        '"rdma.cluster ens1 2001:db8:100::/64 tcp"',
        'nft insert rule ip6 t c iifname "ens1" ip6 saddr 2001:db8:100::/64 udp dport 4791 accept comment '
        '"rdma.cluster ens1 2001:db8:100::/64 udp"',
    ]
    assert len(argvs) == 6
    assert not any(" ip t c " in argv for argv in argvs)
    [rules, _drop_in] = nft_files([SIX, HARD], chains)
    assert {line.split()[2] for line in rules.text.splitlines()[1:] if "2001:" in line} == {"ip6", "inet"}
    assert {line.split()[2] for line in rules.text.splitlines()[1:] if "192.168." in line} == {"ip", "inet"}


def test_chains_of_one_family_leave_the_other_open() -> None:
    six = firewall.Chain("ip6", "t", "c", "input", dict.fromkeys(SIX.names, 7))
    assert firewall.opened_by([six]) == {"*4", *SIX.names}
    seen = Firewall("nftables", ["*4", "ens1 2001:db8:100::/64 tcp"])
    assert missing([HARD, SIX], seen) == ["ens1 2001:db8:100::/64 udp", "ens1 2001:db8:100::/64 icmp"]
    assert outdated([], seen) == ["ens1 2001:db8:100::/64 tcp"]
    both = firewall.Chain("inet", "t", "c", "input", dict.fromkeys([*SIX.names, *HARD.names], 7))
    assert firewall.opened_by([both, six]) == {*SIX.names, *HARD.names}


def test_the_rules_of_ufw_and_firewalld_for_ipv6() -> None:
    added = "ufw allow in on ens1 from 2001:db8:100::/64 to any port 1024:65535 proto tcp comment 'rdma.cluster'"
    assert parse_ufw(added) == {"ens1 2001:db8:100::/64 tcp"}
    assert [command.argv[1] for command in ufw_commands([SIX], parse_ufw(added))] == ["prepend"]
    assert rich_rule("ens1 2001:db8:100::/64 icmp") == (
        'rule family="ipv6" source address="2001:db8:100::/64" protocol value="ipv6-icmp" accept'
    )
    assert words_of("ens1 2001:db8:100::/64 icmp") == "ICMPv6 from 2001:db8:100::/64 on ens1"


def test_ufw_that_drops_all_of_ipv6_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc/default").mkdir(parents=True)
    (tmp_path / "etc/default/ufw").write_text("IPV6=no\n")
    with pytest.raises(ApplyError, match="IPV6=no, by which ufw drops all IPv6 packets"):
        plan_firewall([SIX], {**STOPPED, "ufw.service": RUNS}, sys=SysRoot(str(tmp_path)), runner=FakeRunner([]))
