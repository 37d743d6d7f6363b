# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the host stage over facts, and faults in them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import FILE
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.host import check_host, check_memory
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict

KEY = "net.ipv4.conf.all.arp_ignore"
LOGIN_FILE = "/etc/security/limits.d/90-rdma-cluster.conf"
LOGINS = {who: {"unlimited": True, "value": "unlimited", "file": LOGIN_FILE} for who in ("*", "root")}
INTENT = {"host": {"memlock_unlimited": True, "open_files": 0, "keep_ipc": False, "sysctl": {}}}
SETTINGS = {KEY: "1"}


def facts(**changes: Any) -> dict[str, Any]:
    """The part of a digest that the stage looks at, of a host that is as it should be, with changes."""
    good = {
        "limits": {"service_memlock": {"unlimited": True, "bytes": None}, "login_memlock": LOGINS},
        "sysctl": {"live": {KEY: "1"}, "boot": {KEY: {"value": "1", "file": FILE}}},
    }
    return {**good, **changes}


def sysctl(live: str | None = "1", boot: str | None = "1", file: str = FILE) -> dict[str, Any]:
    return facts(sysctl={"live": {KEY: live}, "boot": {KEY: {"value": boot, "file": file} if boot is not None else None}})


def test_a_good_host_passes() -> None:
    found = check_host("node1", INTENT, from_dict(facts()), SETTINGS)
    assert [(finding.check, finding.subject, finding.status) for finding in found] == [
        ("host.memlock", "memory that a service may lock", "ok"),
        ("host.memlock", "memory that a login of any user may lock", "ok"),
        ("host.memlock", "memory that a login of root may lock", "ok"),
        ("host.sysctl", KEY, "ok"),
    ]
    assert {finding.stage for finding in found} == {"host"}
    assert found[3].observed == f"live 1, after a boot 1 ({FILE})"
    assert [finding.remedy for finding in found] == [""] * 4


def test_what_nobody_asks_for_is_not_applicable_and_says_why() -> None:
    found = check_host("node1", {"host": {"memlock_unlimited": False, "sysctl": {}}}, from_dict({}), {})
    assert [(finding.check, finding.status) for finding in found] == [("host.memlock", "not_applicable"), ("host.sysctl", "not_applicable")]
    assert "rdma_host.memlock_unlimited is false" in found[0].observed
    assert "requests no kernel setting" in found[1].observed


def test_a_service_that_is_limited() -> None:
    bound = facts(limits={"service_memlock": {"unlimited": False, "bytes": 8388608}, "login_memlock": LOGINS})
    (finding,) = stopping(check_host("node3", INTENT, from_dict(bound), SETTINGS))
    assert (finding.host, finding.check, finding.status) == ("node3", "host.memlock", "error")
    assert (finding.observed, finding.expected) == ("8388608 bytes", "unlimited")
    assert finding.remedy.startswith("1. Run the host stage for node3. 2. On node3, restart the services")


def test_the_line_that_limits_services_is_named() -> None:
    source = {"file": "/etc/systemd/system/service.d/zz-site.conf", "line": 3, "value": "64K"}
    limits = {"service_memlock": {"unlimited": False, "bytes": 65536}, "login_memlock": LOGINS, "service_sources": {"memlock": source}}
    (finding,) = stopping(check_host("node3", INTENT, from_dict(facts(limits=limits)), SETTINGS))
    assert finding.observed == "65536 bytes by line 3 of /etc/systemd/system/service.d/zz-site.conf"
    assert finding.remedy.startswith("1. On node3, remove line 3 of /etc/systemd/system/service.d/zz-site.conf")
    # Our own line, and a live limit that is another: systemd has not read it yet.
    source["file"] = "/etc/systemd/system.conf.d/90-rdma-cluster.conf"
    (finding,) = stopping(check_host("node3", INTENT, from_dict(facts(limits=limits)), SETTINGS))
    assert (finding.observed, finding.remedy[:31]) == ("65536 bytes", "1. Run the host stage for node3")


@pytest.mark.parametrize("limits", [{"login_memlock": LOGINS}, {"service_memlock": None, "login_memlock": LOGINS}])
def test_a_service_that_nobody_asked_is_unknown(limits: dict[str, Any]) -> None:
    (finding,) = stopping(check_host("node1", INTENT, from_dict(facts(limits=limits)), SETTINGS))
    assert (finding.check, finding.status) == ("host.memlock", "unknown")


LOGIN_FILES = [
    ("/etc/security/limits.d/99-hpc.conf", "1. On node3, remove line 7 of /etc/security/limits.d/99-hpc.conf: pam_limits reads it after"),
    ("/etc/security/limits.d/zz-site.conf", "1. On node3, remove line 7 of /etc/security/limits.d/zz-site.conf: pam_limits reads it after"),
    # Files that ours overrides once it exists.
    ("/etc/security/limits.d/10-site.conf", "1. Run the host stage for node3: its /etc/security/limits.d/90-rdma-cluster.conf overrides"),
    ("/etc/security/limits.conf", "1. Run the host stage for node3: its /etc/security/limits.d/90-rdma-cluster.conf overrides"),
]


@pytest.mark.parametrize(("file", "remedy"), LOGIN_FILES)
def test_the_line_that_limits_logins_is_named(file: str, remedy: str) -> None:
    bad = {"unlimited": False, "value": "65536", "file": file, "line": 7}
    bound = facts(limits={"service_memlock": {"unlimited": True, "bytes": None}, "login_memlock": {**LOGINS, "*": bad}})
    (finding,) = stopping(check_host("node3", INTENT, from_dict(bound), SETTINGS))
    assert (finding.subject, finding.status) == ("memory that a login of any user may lock", "error")
    assert finding.observed == f"65536 KiB by line 7 of {file}"
    assert finding.remedy.startswith(remedy)


def test_logins_of_which_no_file_says_anything_have_the_kernels_default() -> None:
    bound = facts(limits={"service_memlock": {"unlimited": True, "bytes": None}, "login_memlock": {"*": None, "root": None}})
    assert [finding.status for finding in stopping(check_host("node3", INTENT, from_dict(bound), SETTINGS))] == ["error", "error"]


FAULTS = [
    pytest.param(sysctl(live="0"), f"live 0, after a boot 1 ({FILE})", "Run the host stage for node1.", id="live"),
    pytest.param(sysctl(live=None), f"live no such key, after a boot 1 ({FILE})", "Correct net.ipv4.conf.all.arp_ignore in", id="no key"),
    pytest.param(sysctl(boot=None), "live 1, after a boot not set by any file", "Run the host stage for node1.", id="not at boot"),
    pytest.param(sysctl(boot="0"), f"live 1, after a boot 0 ({FILE})", "Run the host stage for node1.", id="our file is old"),
    pytest.param(
        sysctl(boot="0", file="/etc/sysctl.d/zz.conf"),
        "live 1, after a boot 0 (/etc/sysctl.d/zz.conf)",
        "1. On node1, remove net.ipv4.conf.all.arp_ignore from /etc/sysctl.d/zz.conf, then run the host stage; or run it with",
        id="a later file of the administrator",
    ),
    pytest.param(
        sysctl(boot="0", file="/usr/lib/sysctl.d/zz.conf"),
        "live 1, after a boot 0 (/usr/lib/sysctl.d/zz.conf)",
        "On node1, remove the key from /usr/lib/sysctl.d/zz.conf, or mask that file with a link /etc/sysctl.d/zz.conf to /dev/null.",
        id="a later file of a package",
    ),
]


@pytest.mark.parametrize(("seen", "observed", "remedy"), FAULTS)
def test_a_setting_that_does_not_hold(seen: dict[str, Any], observed: str, remedy: str) -> None:
    (finding,) = stopping(check_host("node1", INTENT, from_dict(seen), SETTINGS))
    assert (finding.check, finding.subject, finding.status) == ("host.sysctl", KEY, "error")
    assert (finding.observed, finding.expected) == (observed, "1, live and after a boot")
    assert finding.remedy.startswith(remedy)


def test_a_value_from_another_file_is_good_as_well() -> None:
    assert stopping(check_host("node1", INTENT, from_dict(sysctl(file="/etc/sysctl.d/zz.conf")), SETTINGS)) == []


@pytest.mark.parametrize("seen", [None, {"live": {}, "boot": {}}, {"live": {KEY: "1"}, "boot": {}}, {"live": {}, "boot": {KEY: None}}])
def test_a_setting_that_was_not_read_is_unknown(seen: dict[str, Any] | None) -> None:
    (finding,) = stopping(check_host("node1", INTENT, from_dict(facts(sysctl=seen)), SETTINGS))
    assert (finding.check, finding.subject, finding.status) == ("host.sysctl", KEY, "unknown")


def test_every_setting_has_its_own_finding() -> None:
    found = check_host("node1", INTENT, from_dict(facts()), {KEY: "1", "net.core.rmem_max": "4194304"})
    assert [(finding.subject, finding.status) for finding in found[3:]] == [(KEY, "ok"), ("net.core.rmem_max", "unknown")]


GIB = 2**30


def memory(available_gib: float, total_gib: float = 64, **held: int) -> dict[str, Any]:
    none = {"shared_bytes": 0, "huge_bytes": 0, "huge_free_bytes": 0}
    return {"memory": {"total_bytes": int(total_gib * GIB), "available_bytes": int(available_gib * GIB), **none, **held}}


def shm(free_gib: float, size_gib: float, free_inodes: int = 100000, inodes: int = 100000) -> dict[str, Any]:
    reported = {"free_bytes": int(free_gib * GIB), "size_bytes": int(size_gib * GIB), "free_inodes": free_inodes, "inodes": inodes}
    return {"filesystems": {"/dev/shm": reported}, **memory(32)}


def found(seen: dict[str, Any], check: str, **limits: float) -> tuple[str, str, str]:
    (finding,) = [each for each in check_memory("node2", from_dict(seen), **limits) if each.check == check]
    return finding.status, finding.observed, finding.remedy


MEMORY = [
    pytest.param(memory(32), "ok", id="good"),
    pytest.param(memory(3.9), "warning", id="less than 4 GiB"),
    pytest.param(memory(4.0), "ok", id="4 GiB"),
    pytest.param(memory(1.0), "warning", id="1 GiB"),
    pytest.param(memory(0.9), "error", id="less than 1 GiB"),
    pytest.param(memory(0.4, 0.75), "ok", id="a small machine"),
    pytest.param(memory(0.05, 0.75), "warning", id="a small machine, less than 10 %"),
    pytest.param(memory(0.03, 0.75), "error", id="a small machine, less than 5 %"),
    pytest.param({"memory": None}, "unknown", id="not read"),
    pytest.param({}, "unknown", id="facts without it"),
]


@pytest.mark.parametrize(("seen", "status"), MEMORY)
def test_memory_that_is_available(seen: dict[str, Any], status: str) -> None:
    reported = found(seen, "host.memory")
    assert (reported[0], bool(reported[2])) == (status, status != "ok")


def test_a_site_has_its_own_limit_of_memory() -> None:
    assert found(memory(32), "host.memory", memory_gib=40)[0] == "error"
    assert found(memory(0.9), "host.memory", memory_gib=0.5)[0] == "ok"


def test_what_holds_the_memory_is_reported_first() -> None:
    status, observed, remedy = found(memory(0.5, huge_bytes=60 * GIB, huge_free_bytes=59 * GIB), "host.memory")
    assert (status, observed) == ("error", "512 MiB of 64.0 GiB; huge pages hold 60.0 GiB")
    assert remedy.startswith(
        "1. On node2, `grep -i huge /proc/meminfo` shows unused huge pages: lower vm.nr_hugepages. 2. On node2, `ps -eo"
    )
    remedy = found(memory(0.5, shared_bytes=50 * GIB), "host.memory")[2]
    assert remedy.startswith("1. On node2, `du -ah /dev/shm | sort -h | tail` shows files in memory")
    assert found(memory(0.5), "host.memory")[2].startswith("1. On node2, `ps -eo pid,rss,comm")


SHM = [
    pytest.param(shm(30, 32), "ok", "30.0 GiB of 32.0 GiB free", id="good"),
    pytest.param(shm(0.4, 32), "error", "410 MiB of 32.0 GiB free", id="nearly full"),
    pytest.param(shm(0, 32), "error", "0 MiB of 32.0 GiB free", id="full"),
    pytest.param(shm(30, 32, free_inodes=3), "error", "30.0 GiB of 32.0 GiB free; 3 of 100000 inodes free", id="no inodes"),
    pytest.param(shm(30, 32, free_inodes=0, inodes=0), "ok", "30.0 GiB of 32.0 GiB free", id="inodes without a limit"),
    pytest.param(shm(0.0625, 0.0625), "warning", "64 MiB of 64 MiB free; this host has 64.0 GiB of memory", id="as Docker makes it"),
    pytest.param({"filesystems": {"/": {}}}, "error", "/dev/shm does not exist", id="none"),
    pytest.param({"filesystems": None}, "unknown", "file systems were not read", id="not read"),
]


@pytest.mark.parametrize(("seen", "status", "observed"), SHM)
def test_shared_memory(seen: dict[str, Any], status: str, observed: str) -> None:
    reported = found(seen, "host.shm")
    assert (*reported[:2], bool(reported[2])) == (status, observed, status != "ok")


def test_a_site_has_its_own_limit_of_shared_memory() -> None:
    assert found(shm(30, 32), "host.shm", shm_gib=31)[0] == "error"
    assert "1. On node2, `du -ah /dev/shm | sort -h | tail`" in found(shm(0, 32), "host.shm")[2]
    assert found(shm(0.0625, 0.0625), "host.shm")[2].startswith("1. If it is too small, run `mount -o remount,size=50% /dev/shm` on node2")
    # Only a small /dev/shm is judged by the size of the memory.
    assert found({**shm(30, 32), "memory": None}, "host.shm")[0] == "ok"
    status, observed, remedy = found({**shm(0.5, 0.5), "memory": None}, "host.shm")
    assert (status, remedy) == ("unknown", "On node2, run `cat /proc/meminfo`.")
    assert observed == "512 MiB of 512 MiB free; not known whether this is enough: /proc/meminfo was not read"
    # A small machine, as those of the lab: its /dev/shm is half of its memory.
    assert found({**shm(0.37, 0.37), **memory(0.5, 0.75)}, "host.shm")[0] == "ok"


def test_a_line_of_somebody_else_is_named() -> None:
    tree = sysctl(boot="0", file="/etc/sysctl.d/zz.conf")
    tree["sysctl"]["boot"][KEY]["line"] = 7
    (finding,) = stopping(check_host("node1", INTENT, from_dict(tree), SETTINGS))
    assert "from line 7 of /etc/sysctl.d/zz.conf" in finding.remedy
