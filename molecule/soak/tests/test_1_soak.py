# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""1 in 1000 packets is dropped on one machine, for 20 s of every 100 s: the pair test passes, the soak names the port and the times."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab import remote
from lab.cluster import Lab
from tests.verify.patience import until
from tests.verify.site import Site

NODE, RAIL = "node2", "rail0"
QUIET_SECONDS, BURST_SECONDS = 80, 20
#: An emulated machine moves a thousandth of the packets of a NIC.
ONE_IN = 1000
#: How long the second run goes on: nine bursts, of which about half meet a transfer of the faulty port.
SECOND_SECONDS = 900
#: Half of each slice: an emulated machine moves few packets.
SETTINGS = {"slice_seconds": 20, "duty_percent": 50, "errors_per_billion_packets": 5000}
FOLDER, UNIT = "/run/rdma-soak-test", "rdma-soak-test"
#: It writes "on" and "off" with the time, and the counter of the rule.
SCRIPT = f"""set -eu
netdev=$(rdma link show rxe_{RAIL}/1 | sed -n 's/.*netdev \\([^ ]*\\).*/\\1/p')
nft add table inet soak_test
nft 'add chain inet soak_test input {{ type filter hook input priority -400 ; }}'
while :; do
  sleep {QUIET_SECONDS}
  nft add rule inet soak_test input iifname "$netdev" udp dport 4791 numgen random mod {ONE_IN} == 0 counter drop
  echo "on $(date +%s)" >> {FOLDER}/log
  sleep {BURST_SECONDS}
  echo "off $(date +%s) $(nft list chain inet soak_test input | grep -o 'packets [0-9]*')" >> {FOLDER}/log
  nft flush chain inet soak_test input
done
"""


class Bursts:
    """The faulty machine."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        [self._node] = [node for node in lab.plan.nodes if node.name == NODE]

    def run(self, command: str) -> str:
        done = remote.execute(self._node, self._lab.folder, command)
        assert done.status == 0, done.stderr
        return done.stdout

    def begin(self) -> None:
        self.run(f"mkdir -p {FOLDER}; : > {FOLDER}/log; cat > {FOLDER}/script <<'END'\n{SCRIPT}END\n")
        self.run(f"systemd-run --quiet --collect --unit {UNIT} sh {FOLDER}/script")

    def end(self) -> None:
        self.run(f"systemctl stop {UNIT} || true; nft delete table inet soak_test || true; rm -rf {FOLDER}")

    @property
    def log(self) -> list[list[str]]:
        """Lines ["on", time] and ["off", time, "packets", dropped]."""
        return [line.split() for line in self.run(f"cat {FOLDER}/log").splitlines()]

    @property
    def dropped(self) -> int:
        return sum(int(words[3]) for words in self.log if words[0] == "off")


@pytest.fixture(scope="module")
def bursts(lab: Lab) -> Iterator[Bursts]:
    made = Bursts(lab)
    made.begin()
    yield made
    made.end()


def words(hours: float) -> tuple[str, ...]:
    return ("-e", json.dumps({"rdma_soak": SETTINGS}), "-e", f"rdma_soak_hours={hours}")


def lines(site: Site) -> list[dict[str, Any]]:
    """The lines of the slices of the last run that are on disk."""
    file = site.evidence / "soak/slices.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def ends(found: list[dict[str, Any]]) -> list[int]:
    return [line["number"] for line in found if "lasted_seconds" in line]


def under_way(site: Site) -> int:
    """The slice that was planned last."""
    return int(site.json("soak/slice/plan.json")["sweep"].rsplit("-", 1)[1])


def with_errors(found: list[dict[str, Any]]) -> set[int]:
    """The slices in which the faulty port or its partner has counted errors."""
    return {line["number"] for line in found if line.get("errors") and line["rail"] == RAIL and NODE in (line["host"], line["partner"])}


def test_check_mode_lists_the_load_and_measures_nothing(site: Site) -> None:
    done = site.run("soak", "--check", *words(24))
    print(done.stdout[done.stdout.index("TASK [Plan the soak]") :][:3000])
    assert done.returncode == 0, done.stdout
    assert f"{RAIL}: node3-node2, node2-node1, node1-node3; all of them in 3 slices." in done.stdout
    assert f"{NODE}: {RAIL} rxe_{RAIL}/1 at " in done.stdout
    assert not lines(site)
    assert not (site.run_dir / "soak").exists()


def test_the_soak_names_the_port_also_if_it_is_killed(site: Site, bursts: Bursts) -> None:
    before, dropped = site.evidence, bursts.dropped
    with site.start("soak", *words(1)) as run:
        begun = time.monotonic()
        try:
            until(
                lambda: site.evidence != before and len(with_errors(lines(site))) >= 1 and len(ends(lines(site))) >= 3,
                900,
                "errors",
                pause=2,
            )
            until(lambda: under_way(site) > ends(lines(site))[-1], 60, "a further slice is under way")
        finally:
            site.kill(run)
            answer, _nothing = run.communicate()
            print(f"killed after {time.monotonic() - begun:.0f} s; slices: {ends(lines(site))}; with errors: {with_errors(lines(site))}")
            if not lines(site):
                print(answer[-6000:])
    first_run, first = site.evidence, lines(site)
    seconds = sum(line.get("lasted_seconds", 0) for line in first)
    done = site.run("soak", *words((seconds + SECOND_SECONDS) / 3600), seconds=2 * SECOND_SECONDS)
    print(done.stdout[done.stdout.index("TASK [Compute the rate") :][:6000])
    print(f"dropped by the rule: {bursts.dropped - dropped}; bursts: {bursts.log}")
    assert f"The soak of run {first_run.name} goes on. Slices that are done: {len(ends(first))}." in done.stdout
    second = lines(site)
    # The killed slice is measured again; the time between the runs does not count.
    assert ends(second)[0] == ends(first)[-1] + 1
    assert done.returncode != 0
    results = site.json("soak/results.json")
    assert results["soak"]["runs"] == [first_run.name, site.evidence.name]
    assert results["slices"] == len(ends(first)) + len(ends(second))
    assert results["seconds"] < seconds + SECOND_SECONDS + 100
    found = {(line["host"], line["subject"]): line for line in site.lines("findings.jsonl") if line["check"] == "soak.errors"}
    assert len(found) == 6
    assert [port for port, line in found.items() if line["status"] in ("error", "warning")] == [(NODE, RAIL)], done.stdout
    [port] = [each for each in results["ports"] if (each["host"], each["rail"]) == (NODE, RAIL)]
    assert {each["number"] for each in port["bursts"]} == with_errors(first) | with_errors(second)
    assert {each["number"] for each in port["bursts"]} & with_errors(first)
    assert port["blamed"]


def test_the_pair_test_does_not_see_it(site: Site, bursts: Bursts) -> None:
    over = len(bursts.log)
    until(lambda: len(bursts.log) > over and bursts.log[-1][0] == "off", 150, "a burst is over", pause=2)
    done = site.run("pairs", "-e", "rdma_measure=true")
    found = [line for line in site.lines("findings.jsonl") if line["status"] == "error"]
    assert not [line for line in found if line["host"] == NODE], done.stdout
    counted = [line["observed"] for line in site.lines("findings.jsonl") if line["check"] == "pair.errors"]
    print(f"pairs: exit status {done.returncode}; {len(found)} errors; pair.errors: {counted}")


def test_nothing_is_left_on_the_machines(lab: Lab) -> None:
    for node in lab.plan.nodes:
        left = remote.execute(node, lab.folder, "ls -A /run/rdma-cluster/pairs 2>/dev/null; pgrep -a 'ib_wri|python3'")
        assert left.stdout == "", node.name
