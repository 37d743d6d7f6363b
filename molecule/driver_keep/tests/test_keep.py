# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with a vendor's stack which a storage client, a GPU process and a job use: it stays unless a switch is allowed and they are idle.

The stack, the storage client, /sys/module, the GPU process and the job are stand-ins; packages, dpkg and processes are real.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import cluster
from lab.standins.deb import Deb
from lab.standins.packages import Ofed, ofed_packages
from tests.verify.driver import Driver, Hosts
from tests.verify.site import ROOT, Site

OFED = "24.10-1.1.4.0"
NAMES = ("node1", "node2")
#: But for the demo's: its hosts exist nowhere, and the demo makes its plan of the cables.
EXAMPLES = sorted(path.parent.name for path in (ROOT / "inventories").glob("*/hosts.yml") if path.parent.name != "demo")
STACK = ["mlnx-ofed-kernel-utils", "mlnx-tools", "ofed-scripts"]
CLIENT = "standin-storage-client"
#: What is installed and enabled, every setting on disk, and the addresses; the clock of no file.
STATE = (
    "dpkg-query --show --showformat='${db:Status-Abbrev} ${Package} ${Version}\\n'; "
    "find /etc /usr/local /var/lib/rdma-cluster \\( -type f -exec sha256sum {} + -o -type l -printf '%p -> %l\\n' \\) 2>/dev/null | sort; "
    "ip -o address show | sed 's/valid_lft.*//'"
)
#: Modules of an add-on, and a storage client's module on top of them: a stand-in, which only a container allows.
MODULES = """
mountpoint --quiet /sys/module || mount -t tmpfs tmpfs /sys/module
put() { mkdir -p /sys/module/$1/holders; echo "$2" > /sys/module/$1/refcnt; for each in $3; do touch /sys/module/$1/holders/$each; done; }
put mlx_compat 5 "ib_core ib_uverbs mlx5_core mlx5_ib rdma_cm"
put ib_core 5 "ib_uverbs mlx5_ib rdma_cm rdma_ucm ib_ipoib"
put ib_uverbs 2 "mlx5_ib rdma_ucm"; put rdma_cm 1 rdma_ucm; put mlx5_core 1 mlx5_ib
for each in mlx5_ib rdma_ucm ib_umad ib_ipoib; do put $each 0; done
for each in mlx_compat mlx5_core; do echo 24.10-1.1.4 > /sys/module/$each/version; done
"""
HOLDER = """
touch /sys/module/mlx_compat/holders/standin_client
echo 6 > /sys/module/mlx_compat/refcnt
mkdir -p /sys/module/standin_client/holders
echo 1 > /sys/module/standin_client/refcnt
"""
NO_HOLDER = "rm -r /sys/module/mlx_compat/holders/standin_client /sys/module/standin_client; echo 5 > /sys/module/mlx_compat/refcnt"
GPU = "touch /dev/nvidia0; systemd-run --quiet --unit=standin-gpu sh -c 'exec 3</dev/nvidia0; exec sleep infinity'"
JOB = "cp /bin/sleep /usr/local/sbin/slurmstepd; systemd-run --quiet --unit=standin-job /usr/local/sbin/slurmstepd 86400"
#: The modules with who holds them, and since when the host is up.
LOADED = "grep -H '' /sys/module/*/refcnt | sort; ls /sys/module/*/holders; stat --format=%Y /proc/1"
USERS = {
    "standin_client holds": (HOLDER, NO_HOLDER),
    "GPU process ": (GPU, "systemctl stop standin-gpu"),
    "job process ": (JOB, "systemctl stop standin-job"),
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    """Both have the stack without its modules' package, which needs a kernel, and a package of somebody else's that depends on it."""
    found = Hosts(cluster.load("dkeep"))
    folder = tmp_path_factory.mktemp("packages")
    client = Deb(CLIENT, "7.4.2-1", "a storage client", fields={"Depends": "mlnx-ofed-kernel-utils"})
    packages = [*(each for each in ofed_packages(Ofed(OFED)) if each.name in STACK), client]
    files = [each.build(folder) for each in packages]
    for name in NAMES:
        root = found.lab.folder.node(name) / "root/root"
        for file in files:
            (root / file.name).write_bytes(file.read_bytes())
        names = " ".join(f"/root/{file.name}" for file in files)
        # The installer of MLNX_OFED does this too, so that ofed_info names MLNX_OFED; DOCA's packages do not.
        rename = f"sed -i 's/OFED-internal-[^:]*:/MLNX_OFED_LINUX-{OFED}:/' /usr/bin/ofed_info"
        found.run(name, f"dpkg --install {names} && {rename} && {MODULES}", timeout_seconds=120)
    return found


@pytest.fixture(scope="module")
def driver(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """The lab's hosts without a rail of theirs that a container could have, and without a driver in their inventory."""
    folder = tmp_path_factory.mktemp("site")
    inventory = yaml.safe_load(hosts.lab.folder.inventory.read_text())
    inventory["all"]["vars"].pop("rdma_driver")
    rail = {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": "roce", "mtu_bytes": 1500, "plane": "lab"}
    for number, values in enumerate(inventory["all"]["hosts"].values(), 1):
        values["rdma_rails"] = [{**rail, "nic": dict(rail["nic"]), "address": f"192.168.77.{number}/24"}]
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return Driver(Site(folder / "hosts.yml", folder), folder)


@pytest.fixture
def busy(hosts: Hosts) -> Iterator[None]:
    for begin, _end in USERS.values():
        hosts.run("node1", begin)
    yield
    for _begin, end in USERS.values():
        hosts.run("node1", end)


def packages(hosts: Hosts) -> set[str]:
    listed = hosts.run("node1", "dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\\n' | sed -n 's/^ii *//p'")
    return set(listed.split())


def state(hosts: Hosts, name: str = "node1") -> str:
    return hosts.run(name, STATE)


def withheld(driver: Driver) -> dict[str, str]:
    """Why the last run has not switched a host, by host, as its summary groups it."""
    groups = driver.site.json("summary.json")["withheld"]
    assert {group["effect"] for group in groups} <= {"driver_switch"}, groups
    return {host: group["reason"] for group in groups for host in group["hosts"]}


def changed(text: str) -> dict[str, int]:
    """How many tasks have changed each host, by the play recap: without --diff the run folder has no line for apt's."""
    return {host: int(number) for host, number in re.findall(r"^(node\d)\s+: ok=\d+\s+changed=(\d+)", text, re.MULTILINE)}


def one_line(text: str) -> str:
    return " ".join(text.split())


LIST = (
    f"mlnx_ofed {OFED} is installed, and inbox is requested. Packages that would be removed: "
    f"mlnx-ofed-kernel-utils 24.10.OFED.24.10.1.1.4.1-1, mlnx-tools 24.10-0.24101141, ofed-scripts 24.10.OFED.24.10.1.1.4-1. "
    f"Other packages that depend on them and would be removed too: {CLIENT} 7.4.2-1."
)


PERMISSIONS = ("driver_switch_allowed", "driver_reload_allowed", "reboot_allowed")
#: None of them, each alone, and all.
ALLOWED = [{}, *({name: True} for name in PERMISSIONS), dict.fromkeys(PERMISSIONS, True)]


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: "+".join(allowed) or "none")
def test_without_a_driver_in_the_inventory_nothing_of_it_changes(hosts: Hosts, driver: Driver, allowed: dict[str, bool]) -> None:
    before = [state(hosts, name) for name in NAMES]
    (driver.site.inventory.parent / "vars.json").write_text(json.dumps(allowed))
    done = driver.site.run("driver", "-e", f"@{driver.site.inventory.parent / 'vars.json'}")
    assert [state(hosts, name) for name in NAMES] == before
    assert set(driver.findings("driver.stack")) == set(NAMES)
    for host, seen in driver.findings("driver.stack").items():
        assert seen["expected"] == f"the installed stack (kept): mlnx_ofed {OFED}", (host, seen)
    assert changed(done.stdout) == dict.fromkeys(NAMES, 0), done.stdout
    assert withheld(driver) == {}


@pytest.mark.parametrize("words", [[], ["--check"]], ids=["run", "check"])
def test_a_plan_for_another_stack_waits_until_it_is_allowed(hosts: Hosts, driver: Driver, words: list[str]) -> None:
    before = [state(hosts, name) for name in NAMES]
    done = driver.site.run("driver", *driver.words({"stack": "inbox"}), *words)
    assert done.returncode == (0 if words else 2), done.stdout
    assert [state(hosts, name) for name in NAMES] == before
    assert withheld(driver) == dict.fromkeys(NAMES, f"{LIST} Withheld: driver_switch_allowed is false.")
    assert one_line(done.stdout).count(f"driver_switch_required: {LIST}") == len(NAMES), done.stdout
    summary = (driver.site.evidence / "summary.txt").read_text()
    print(summary[summary.index("Not applied") :])
    assert "driver_switch on node1, node2: " in summary
    for seen in driver.findings("driver.stack").values():
        assert (seen["status"], seen["observed"]) == ("error", f"mlnx_ofed {OFED} is installed")


def test_a_switch_that_is_allowed_is_shown_in_check_mode(hosts: Hosts, driver: Driver) -> None:
    before = [state(hosts, name) for name in NAMES]
    done = driver.site.run("driver", *driver.words({"stack": "inbox"}, driver_switch_allowed=True), "--check")
    assert done.returncode == 0, done.stdout
    assert [state(hosts, name) for name in NAMES] == before
    assert withheld(driver) == {}
    for name in NAMES:
        assert f"{name}: {LIST}" in one_line(done.stdout), done.stdout
    print(done.stdout)


@pytest.mark.parametrize("name", PERMISSIONS[1:])
def test_a_permission_for_something_else_switches_nothing(hosts: Hosts, driver: Driver, name: str) -> None:
    before = [(state(hosts, each), hosts.run(each, LOADED)) for each in NAMES]
    done = driver.run({"stack": "inbox"}, **{name: True})
    assert done.returncode == 2, done.stdout
    assert [(state(hosts, each), hosts.run(each, LOADED)) for each in NAMES] == before
    assert withheld(driver) == dict.fromkeys(NAMES, f"{LIST} Withheld: driver_switch_allowed is false.")


@pytest.mark.parametrize("use", USERS)
def test_a_host_that_somebody_uses_is_not_switched(hosts: Hosts, driver: Driver, use: str) -> None:
    before = state(hosts)
    begin, end = USERS[use]
    hosts.run("node1", begin)
    try:
        done = driver.run({"stack": "inbox"}, limit="node1", driver_switch_allowed=True)
    finally:
        hosts.run("node1", end)
    assert done.returncode == 2
    assert state(hosts) == before
    assert withheld(driver)["node1"].startswith(f"{LIST} Withheld: the host is in use: {use}"), done.stdout


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_inventories_change_nothing_in_check_mode(hosts: Hosts, driver: Driver, example: str, tmp_path: Path) -> None:
    """The first two hosts of an example are ours; the hosts of the lab's examples plan inbox, and list what a switch would remove."""
    inventory = yaml.safe_load((ROOT / "inventories" / example / "hosts.yml").read_text())
    ours = yaml.safe_load(driver.site.inventory.read_text())["all"]
    found = [values for values in _host_tables(inventory) if values]
    addresses = [{key: value for key, value in {**ours["vars"], **ours["hosts"][name]}.items() if "rdma" not in key} for name in NAMES]
    number = 0
    for table in found:
        for host in table:
            table[host] = {**(table[host] or {}), **addresses[number % len(NAMES)]}
            number += 1
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
    names = [host for table in found for host in table][: len(NAMES)]
    before = [state(hosts, name) for name in NAMES]
    site = Site(tmp_path / "hosts.yml", tmp_path)
    done = site.run("driver", "--check", "--limit", ",".join(names))
    assert done.returncode == 0, done.stdout
    assert [state(hosts, name) for name in NAMES] == before
    assert (LIST in one_line(done.stdout)) == ("lab" in example), done.stdout
    # The whole site: the gates report what these containers lack, and each stage shows what it would do.
    done = site.run("site", "--check", "--limit", ",".join(names), "-e", json.dumps({"rdma_gate": {"policy": "report"}}))
    assert [state(hosts, name) for name in NAMES] == before
    recap = re.findall(r"^(\S+)\s+: ok=\d+\s+changed=\d+\s+unreachable=(\d+)\s+failed=(\d+)", done.stdout, re.MULTILINE)
    assert sorted(recap) == sorted((name, "0", "0") for name in names), done.stdout


def _host_tables(tree: Any) -> list[dict[str, Any]]:
    if not isinstance(tree, dict):
        return []
    own = [tree["hosts"]] if isinstance(tree.get("hosts"), dict) else []
    return [*own, *(each for key, value in tree.items() if key not in ("vars", "hosts") for each in _host_tables(value))]


def test_an_idle_host_is_switched_when_that_is_allowed_and_nothing_else_is_done(hosts: Hosts, driver: Driver) -> None:
    """Other packages than the listed ones stay, and what is loaded does: neither a reload nor a reboot is allowed."""
    other, before, loaded = state(hosts, "node2"), packages(hosts), hosts.run("node1", LOADED)
    done = driver.run({"stack": "inbox"}, limit="node1", driver_switch_allowed=True)
    assert f"node1: {LIST}" in one_line(done.stdout), done.stdout
    after = packages(hosts)
    assert before - after == {*STACK, CLIENT}, done.stdout
    assert {"rdma-core", "ibverbs-utils", "perftest", "mstflint", "infiniband-diags"} <= after
    assert hosts.run("node1", LOADED) == loaded
    assert withheld(driver) == {}
    # The removal, the distribution's packages, and nothing that is loaded.
    assert changed(done.stdout) == {"node1": 2}, done.stdout
    assert state(hosts, "node2") == other


#: The driver's part of a host: the packages of its stack and its dependants, repository and hooks, what is loaded, and the boot.
OF_DRIVER = (
    f"dpkg-query --show --showformat='${{db:Status-Abbrev}} ${{Package}} ${{Version}}\\n' {' '.join(STACK)} {CLIENT}; "
    "find /etc/apt /etc/kernel /var/lib/rdma-cluster/ofed /var/lib/rdma-cluster/builds -type f -exec sha256sum {} + 2>/dev/null | sort; "
    f"{LOADED}"
)


def test_the_whole_site_changes_nothing_of_the_driver_of_a_busy_host(hosts: Hosts, driver: Driver) -> None:
    """The last test, on the host that still has the stack: other stages may change what they are for. The gates report, so that all run."""
    for begin, _end in USERS.values():
        hosts.run("node2", begin)
    before = hosts.run("node2", OF_DRIVER)
    try:
        done = driver.site.run("site", "--limit", "node2", "-e", json.dumps({"rdma_gate": {"policy": "report"}}))
        after = hosts.run("node2", OF_DRIVER)
    finally:
        for _begin, end in USERS.values():
            hosts.run("node2", end)
    assert after == before, done.stdout
    found = driver.findings("driver.stack")
    assert found["node2"]["expected"] == f"the installed stack (kept): mlnx_ofed {OFED}", done.stdout
    effects = {group["effect"] for group in driver.site.json("summary.json")["withheld"]}
    assert not effects & {"driver_switch", "driver_reload", "reboot"}, effects
    assert "driver_switch_required" not in done.stdout
