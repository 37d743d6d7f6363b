# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernels at the preflight gate: the newest runs, modules can be built for it, and Secure Boot lets them in."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import headers_package
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.kernel import check_kernels
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import FactsError
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict, stack_of
from tests.unit.builders.hosts import lab_facts

OLD, NEW = "6.1.0-9-amd64", "6.1.0-10-amd64"
INBOX: dict[str, Any] = {"driver": {"stack": "inbox"}}
DOCA: dict[str, Any] = {"driver": {"stack": "doca"}}
KNEM = {"name": "knem", "version": "1.1.4", "kernel": NEW, "arch": "x86_64", "state": "installed"}


def facts(**changes: Any) -> dict[str, Any]:
    """A host whose newest kernel runs, with its headers, without EFI."""
    stack = {
        "kernel": NEW,
        "kernels": [OLD, NEW],
        "newest": NEW,
        "headers": {OLD: False, NEW: True},
        "secure_boot": None,
        "dkms": [],
        "distribution": {"id": "debian", "version_id": "12", "like": [], "packages": {}},
        "modules": {},
    }
    return {"stack": {**stack, **changes}}


def by_check(intent: dict[str, Any], tree: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    found = check_kernels("node1", intent, from_dict(tree))
    *three, lockdown = found
    assert [finding.check for finding in three] == ["preflight.newest", "preflight.headers", "preflight.secure_boot"]
    assert (lockdown.check, lockdown.status) == ("preflight.lockdown", "not_applicable")
    assert {(finding.stage, finding.host) for finding in found} == {("preflight", "node1")}
    return {finding.check: (finding.status, finding.observed, finding.remedy) for finding in three}


LOCKDOWN = [
    ("none", False, "none"),
    ("integrity", True, "integrity (Secure Boot is on): the kernel refuses writes to PCI configuration space (MRRS, ACS"),
    ("confidentiality", None, "confidentiality (set by the kernel command line or configuration): the kernel refuses"),
]


@pytest.mark.parametrize(("state", "secure_boot", "observed"), LOCKDOWN)
def test_lockdown_is_reported_and_is_no_fault(state: str, secure_boot: bool | None, observed: str) -> None:
    finding = check_kernels("node1", INBOX, from_dict(facts(lockdown=state, secure_boot=secure_boot)))[-1]
    assert (finding.check, finding.status, finding.remedy) == ("preflight.lockdown", "ok", "")
    assert finding.observed.startswith(observed)


@pytest.mark.parametrize(("intent", "status"), [(INBOX, "not_applicable"), (DOCA, "unknown")], ids=["inbox", "doca"])
def test_what_could_not_be_read_is_unknown(intent: dict[str, Any], status: str) -> None:
    found = {each.check: each for each in check_kernels("node1", intent, from_dict(facts(unread=["secure_boot", "lockdown"])))}
    secure_boot, lockdown = found["preflight.secure_boot"], found["preflight.lockdown"]
    assert (secure_boot.status, lockdown.status) == (status, "unknown")
    assert "mount -t securityfs" in lockdown.remedy
    assert ("mount -t efivarfs" in secure_boot.remedy) == (status == "unknown")


def test_a_good_host_without_add_ons() -> None:
    assert by_check(INBOX, facts()) == {
        "preflight.newest": ("ok", NEW, ""),
        "preflight.headers": (
            "not_applicable",
            "no module is built: the stack is inbox, and DKMS has no module for RDMA or GPUs",
            "",
        ),
        "preflight.secure_boot": ("not_applicable", "not reported: no EFI, or a container", ""),
    }


def test_a_good_host_with_add_ons() -> None:
    module = {"provenance": "dkms", "signer": "DKMS module signing key"}
    found = by_check(DOCA, facts(dkms=[KNEM], secure_boot=True, modules={"mlx5_core": module, "ib_core": module}))
    assert found == {
        "preflight.newest": ("ok", NEW, ""),
        "preflight.headers": ("ok", f"/lib/modules/{NEW}/build", ""),
        "preflight.secure_boot": ("ok", "on; 2 add-on modules are signed", ""),
    }


@pytest.mark.parametrize(
    ("intent", "dkms", "status"), [(INBOX, [], "warning"), (INBOX, [KNEM], "error"), (DOCA, [], "error")], ids=["inbox", "dkms", "doca"]
)
def test_an_older_kernel_runs(intent: dict[str, Any], dkms: list[Any], status: str) -> None:
    found = by_check(intent, facts(kernel=OLD, headers={OLD: True, NEW: True}, dkms=dkms))
    assert found["preflight.newest"][:2] == (status, f"{OLD} runs; {NEW} is the newest of its flavor")
    assert found["preflight.newest"][2].startswith(f"Reboot node1 into {NEW}, or remove that kernel: ")
    assert found["preflight.headers"][0] != "error"


def test_the_next_kernel_needs_no_build_of_a_stack_that_is_not_installed() -> None:
    """Each host with an mlx5 NIC has a stock driver for each kernel; the driver stage installs the planned stack after the reboot."""
    files = {NEW: f"/lib/modules/{NEW}/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko"}
    found = by_check(DOCA, facts(kernel=OLD, headers={OLD: True, NEW: True}, driver_files=files))
    assert found["preflight.newest"][1] == f"{OLD} runs; {NEW} is the newest of its flavor"
    assert found["preflight.newest"][2].startswith(f"Reboot node1 into {NEW}, or remove that kernel: ")


def test_a_kernel_that_is_no_longer_installed() -> None:
    found = by_check(INBOX, facts(kernel="6.1.0-8-amd64"))["preflight.newest"]
    assert found[:2] == ("warning", f"6.1.0-8-amd64 runs but is not installed; {NEW} is the newest of its flavor")
    assert found[2].startswith("Reboot node1 into an installed kernel")


def test_only_other_flavors_are_installed() -> None:
    found = by_check(DOCA, facts(kernel="6.1.0-10-rt-amd64", newest=None))["preflight.newest"]
    assert found[:2] == ("error", f"6.1.0-10-rt-amd64 runs but is not installed; installed are {OLD}, {NEW}")


@pytest.mark.parametrize("kernels", [[], None])
def test_a_container_has_no_kernels(kernels: list[str] | None) -> None:
    assert by_check(INBOX, facts(kernels=kernels, newest=None))["preflight.newest"][0] == "not_applicable"


def test_a_kernel_whose_release_is_not_known_is_the_finding_of_another_check() -> None:
    found = by_check(DOCA, facts(kernel=None))
    assert [found[check][0] for check in ("preflight.newest", "preflight.headers")] == ["not_applicable"] * 2
    assert all("preflight.kernel" in found[check][1] for check in ("preflight.newest", "preflight.headers"))


@pytest.mark.parametrize("headers", [{OLD: True, NEW: False}, {OLD: True}, {}])
def test_missing_headers_name_the_package(headers: dict[str, bool]) -> None:
    (finding,) = stopping(check_kernels("node1", INBOX, from_dict(facts(headers=headers, dkms=[KNEM]))))
    assert (finding.check, finding.status) == ("preflight.headers", "error")
    assert finding.remedy == f"Install linux-headers-{NEW} on node1."


def test_the_driver_stage_installs_the_headers_that_the_planned_stack_needs() -> None:
    found = by_check(DOCA, facts(headers={}))["preflight.headers"]
    assert found == ("warning", f"/lib/modules/{NEW}/build is missing", f"The driver stage installs linux-headers-{NEW} on node1.")


@pytest.mark.parametrize("intent", [INBOX, DOCA])
def test_an_older_kernel_is_a_warning_where_the_host_may_be_rebooted(intent: dict[str, Any]) -> None:
    tree = facts(kernel=OLD, headers={OLD: True, NEW: True}, dkms=[KNEM])
    (first, *_others) = check_kernels("node1", intent, from_dict(tree), reboot_allowed=True)
    assert (first.check, first.status) == ("preflight.newest", "warning")
    assert check_kernels("node1", intent, from_dict(tree))[0].status == "error"


KEY = "/var/lib/dkms/mok.pub"
SIGNED = {"mlx5_core": {"provenance": "dkms", "signer": "DKMS module signing key"}}
ON = "on; the key that DKMS signs with"
KEYS = [
    pytest.param(DOCA, True, {}, "ok", f"on; the key that DKMS signs with ({KEY}) is enrolled", id="enrolled"),
    pytest.param(DOCA, False, SIGNED, "error", f"{ON} ({KEY}) is not enrolled", id="not enrolled"),
    pytest.param(DOCA, None, {}, "unknown", f"on; not known whether the key that DKMS signs with ({KEY}) is enrolled", id="unknown"),
    pytest.param(INBOX, False, SIGNED, "ok", "on; the distribution signed the kernel's modules", id="inbox"),
]


def test_secure_boot_where_dkms_has_no_key_yet() -> None:
    found = by_check(DOCA, facts(secure_boot=True, mok={"key": None, "enrolled": None}))["preflight.secure_boot"]
    assert found[:2] == ("error", "on; DKMS has no signing key yet")
    assert "dkms generate_mok" in found[2]


@pytest.mark.parametrize(("intent", "enrolled", "modules", "status", "observed"), KEYS)
def test_secure_boot_and_the_key_of_dkms(
    intent: dict[str, Any], enrolled: bool | None, modules: dict[str, Any], status: str, observed: str
) -> None:
    found = by_check(intent, facts(secure_boot=True, mok={"key": KEY, "enrolled": enrolled}, modules=modules))["preflight.secure_boot"]
    assert found[:2] == (status, observed)
    assert ("mokutil --import" in found[2]) is (status != "ok")


def test_headers_that_a_newer_kernel_has_taken_along_are_one_error() -> None:
    (finding,) = stopping(check_kernels("node1", DOCA, from_dict(facts(kernel=OLD))))
    assert finding.check == "preflight.newest"
    assert by_check(DOCA, facts(kernel=OLD))["preflight.headers"][:2] == (
        "not_applicable",
        f"only the headers of {NEW} are installed: see preflight.newest",
    )


def test_of_a_stack_that_was_not_read_nothing_is_reported() -> None:
    with pytest.raises(FactsError, match="stack: not read"):
        check_kernels("node1", DOCA, from_dict({"stack": None}))


PACKAGES = [
    ("6.8.0-45-generic", {"id": "ubuntu", "like": ["debian"]}, "linux-headers-6.8.0-45-generic"),
    ("5.14.0-70.13.1.el9_0.x86_64", {"id": "rhel", "like": ["fedora"]}, "kernel-devel-5.14.0-70.13.1.el9_0.x86_64"),
    ("5.14.0-427.el9.x86_64", {"id": "almalinux", "like": ["rhel", "centos", "fedora"]}, "kernel-devel-5.14.0-427.el9.x86_64"),
    ("5.14.0-427.el9.aarch64+64k", {"id": "rocky", "like": []}, "kernel-64k-devel-5.14.0-427.el9.aarch64"),
    ("6.1.0-10-amd64", {}, "linux-headers-6.1.0-10-amd64"),
]


@pytest.mark.parametrize(("kernel", "distribution", "package"), PACKAGES)
def test_the_package_with_the_headers(kernel: str, distribution: dict[str, Any], package: str) -> None:
    assert headers_package(kernel, stack_of(from_dict({"stack": {"distribution": distribution}})).distribution) == package


UNSIGNED = {"mlx5_core": {"provenance": "dkms", "signer": None}, "knem": {"provenance": "extra"}, "ib_core": {"provenance": "kernel"}}


@pytest.mark.parametrize(("intent", "dkms"), [(INBOX, [KNEM]), (DOCA, [])], ids=["dkms", "doca"])
def test_secure_boot_against_modules_that_nobody_has_signed(intent: dict[str, Any], dkms: list[Any]) -> None:
    (finding,) = stopping(check_kernels("node1", intent, from_dict(facts(secure_boot=True, modules=UNSIGNED, dkms=dkms))))
    assert (finding.check, finding.status) == ("preflight.secure_boot", "error")
    assert finding.observed == "on; unsigned modules: knem, mlx5_core"
    assert "mokutil --import" in finding.remedy


@pytest.mark.parametrize(
    ("intent", "secure_boot", "modules", "status"),
    [
        (DOCA, False, UNSIGNED, "ok"),
        (DOCA, None, UNSIGNED, "not_applicable"),
        (INBOX, True, UNSIGNED, "ok"),
        (DOCA, True, {}, "warning"),
    ],
    ids=["off", "no EFI", "nothing is built", "nothing is built yet"],
)
def test_secure_boot_is_no_error_where_it_hinders_nothing(
    intent: dict[str, Any], secure_boot: bool | None, modules: dict[str, Any], status: str
) -> None:
    found = by_check(intent, facts(secure_boot=secure_boot, modules=modules))["preflight.secure_boot"]
    assert found[0] == status
    assert ("mokutil" in found[2]) is (status == "warning")


def test_facts_of_before_report_nothing_and_stop_nobody() -> None:
    tree = lab_facts()
    for key in ("kernels", "newest", "headers", "secure_boot", "dkms"):
        tree["stack"].pop(key, None)
    assert stopping(check_kernels("node1", INBOX, from_dict(tree))) == []


def test_what_dkms_builds_for_others_asks_for_no_headers() -> None:
    camera = {**KNEM, "name": "v4l2loopback", "kernel": OLD}
    found = by_check(INBOX, facts(kernel=OLD, headers={OLD: False, NEW: False}, dkms=[camera]))
    assert (found["preflight.newest"][0], found["preflight.headers"][0]) == ("warning", "not_applicable")
