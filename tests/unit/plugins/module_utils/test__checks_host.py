# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the host stage over facts, and faults in them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._checks_host import check_host
from ansible_collections.rdma.cluster.plugins.module_utils._findings import stopping
from ansible_collections.rdma.cluster.plugins.module_utils._sysctl import FILE

KEY = "net.ipv4.conf.all.arp_ignore"
LOGIN_FILE = "/etc/security/limits.d/90-rdma-cluster.conf"
LOGINS = {who: {"unlimited": True, "value": "unlimited", "file": LOGIN_FILE} for who in ("*", "root")}
INTENT = {"host": {"memlock_unlimited": True, "sysctl": {}}}
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
    found = check_host("node1", INTENT, facts(), SETTINGS)
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
    found = check_host("node1", {"host": {"memlock_unlimited": False, "sysctl": {}}}, {}, {})
    assert [(finding.check, finding.status) for finding in found] == [("host.memlock", "not_applicable"), ("host.sysctl", "not_applicable")]
    assert "rdma_host.memlock_unlimited is false" in found[0].observed
    assert "asks for no kernel setting" in found[1].observed


def test_a_service_that_is_limited() -> None:
    bound = facts(limits={"service_memlock": {"unlimited": False, "bytes": 8388608}, "login_memlock": LOGINS})
    (finding,) = stopping(check_host("node3", INTENT, bound, SETTINGS))
    assert (finding.host, finding.check, finding.status) == ("node3", "host.memlock", "error")
    assert (finding.observed, finding.expected) == ("8388608 bytes", "unlimited")
    assert finding.remedy.startswith("Run the host stage for node3, and restart the services")


@pytest.mark.parametrize("limits", [{"login_memlock": LOGINS}, {"service_memlock": None, "login_memlock": LOGINS}])
def test_a_service_that_nobody_asked_is_unknown(limits: dict[str, Any]) -> None:
    (finding,) = stopping(check_host("node1", INTENT, facts(limits=limits), SETTINGS))
    assert (finding.check, finding.status) == ("host.memlock", "unknown")


def test_a_later_file_that_limits_logins_is_named() -> None:
    later = {"unlimited": False, "value": "65536", "file": "/etc/security/limits.d/99-hpc.conf"}
    bound = facts(limits={"service_memlock": {"unlimited": True, "bytes": None}, "login_memlock": {**LOGINS, "*": later}})
    (finding,) = stopping(check_host("node3", INTENT, bound, SETTINGS))
    assert (finding.subject, finding.status) == ("memory that a login of any user may lock", "error")
    assert finding.observed == "65536 KiB by /etc/security/limits.d/99-hpc.conf"
    assert finding.remedy.startswith("Take the line out of /etc/security/limits.d/99-hpc.conf on node3")


def test_logins_of_which_no_file_says_anything_have_the_kernels_default() -> None:
    bound = facts(limits={"service_memlock": {"unlimited": True, "bytes": None}, "login_memlock": {"*": None, "root": None}})
    assert [finding.status for finding in stopping(check_host("node3", INTENT, bound, SETTINGS))] == ["error", "error"]


FAULTS = [
    pytest.param(sysctl(live="0"), f"live 0, after a boot 1 ({FILE})", "Run the host stage for node1.", id="live"),
    pytest.param(sysctl(live=None), f"live no such key, after a boot 1 ({FILE})", "Correct net.ipv4.conf.all.arp_ignore in", id="no key"),
    pytest.param(sysctl(boot=None), "live 1, after a boot not set by any file", "Run the host stage for node1.", id="not at boot"),
    pytest.param(sysctl(boot="0"), f"live 1, after a boot 0 ({FILE})", "Run the host stage for node1.", id="our file is old"),
    pytest.param(
        sysctl(boot="0", file="/etc/sysctl.d/zz.conf"),
        "live 1, after a boot 0 (/etc/sysctl.d/zz.conf)",
        "Run the host stage for node1: it takes the key out of /etc/sysctl.d/zz.conf.",
        id="a later file of the administrator",
    ),
    pytest.param(
        sysctl(boot="0", file="/usr/lib/sysctl.d/zz.conf"),
        "live 1, after a boot 0 (/usr/lib/sysctl.d/zz.conf)",
        "On node1, take the key out of /usr/lib/sysctl.d/zz.conf, or mask that file with a link /etc/sysctl.d/zz.conf to /dev/null.",
        id="a later file of a package",
    ),
]


@pytest.mark.parametrize(("seen", "observed", "remedy"), FAULTS)
def test_a_setting_that_does_not_hold(seen: dict[str, Any], observed: str, remedy: str) -> None:
    (finding,) = stopping(check_host("node1", INTENT, seen, SETTINGS))
    assert (finding.check, finding.subject, finding.status) == ("host.sysctl", KEY, "error")
    assert (finding.observed, finding.expected) == (observed, "1, live and after a boot")
    assert finding.remedy.startswith(remedy)


def test_a_value_from_another_file_is_good_as_well() -> None:
    assert stopping(check_host("node1", INTENT, sysctl(file="/etc/sysctl.d/zz.conf"), SETTINGS)) == []


@pytest.mark.parametrize("seen", [None, {"live": {}, "boot": {}}, {"live": {KEY: "1"}, "boot": {}}, {"live": {}, "boot": {KEY: None}}])
def test_a_setting_that_was_not_read_is_unknown(seen: dict[str, Any] | None) -> None:
    (finding,) = stopping(check_host("node1", INTENT, facts(sysctl=seen), SETTINGS))
    assert (finding.check, finding.subject, finding.status) == ("host.sysctl", KEY, "unknown")


def test_every_setting_has_its_own_finding() -> None:
    found = check_host("node1", INTENT, facts(), {KEY: "1", "net.core.rmem_max": "4194304"})
    assert [(finding.subject, finding.status) for finding in found[3:]] == [(KEY, "ok"), ("net.core.rmem_max", "unknown")]
