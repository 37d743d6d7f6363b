# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the removal of a driver stack removes, by dpkg and rpm, and who uses the stack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver import stack_removal
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import (
    DISTRIBUTION_STACK,
    Removal,
    parse_dpkg_purge,
    parse_rpm_erase,
    read_removal,
    refuse_unless_safe,
    stack_uses,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, Process
from tests.unit.builders.driver_hosts import add_on, module, stack_of, stock
from tests.unit.builders.fakes import FakeRunner

# dpkg 1.21.22 of Debian 12.
LIBIBVERBS = """\
dpkg: dependency problems prevent removal of libibverbs1:amd64:
 qemu-system-x86 depends on libibverbs1 (>= 28).
 librdmacm1:amd64 depends on libibverbs1 (>= 31).

dpkg: error processing package libibverbs1:amd64 (--purge):
 dependency problems - not removing
Errors were encountered while processing:
 libibverbs1:amd64
"""
IBSIM = """\
(Reading database ... 112212 files and directories currently installed.)
Would remove or purge ibsim-utils (0.10-2) ...
"""
NOT_THERE = "dpkg: warning: ignoring request to remove nosuchpkg which isn't installed\n"
# rpm 4.16 prints it in this form.
RPM = """\
error: Failed dependencies:
\tlibibverbs.so.1()(64bit) is needed by (installed) qemu-kvm-core-17:7.2.0-14.el9.x86_64
\tlibibverbs.so.1(IBVERBS_1.0)(64bit) is needed by (installed) qemu-kvm-core-17:7.2.0-14.el9.x86_64
\tmlnx-ofa_kernel >= 24.10 is needed by (installed) beegfs-client-dkms-7.4.2-el9.noarch
"""
STATUS = """\
Package: {name}
Status: install ok installed
Version: {version}
"""
OFED_INFO = """\
MLNX_OFED_LINUX-24.10-1.1.4.0 (OFED-24.10-1.1.4):

mlnx-tools:
mlnx-tools/mlnx-tools-24.10.tgz

Installed Packages:
-------------------
ii  libibverbs1   2410mlnx54-1.2410068   amd64   library
ii  ofed-scripts  24.10.OFED.24.10.1.1.4 amd64   scripts
"""
IDLE = Load([], [])


def test_who_depends_on_a_package() -> None:
    assert parse_dpkg_purge(LIBIBVERBS) == ["qemu-system-x86", "librdmacm1"]
    assert parse_dpkg_purge(IBSIM + NOT_THERE) == []


def test_a_dependency_on_one_of_several() -> None:
    text = (
        " standin-ulp-dkms depends on mlnx-ofed-kernel-dkms | mlnx-ofed-kernel-modules; however:\n"
        "  Package mlnx-ofed-kernel-dkms is to be removed.\n"
    )
    assert parse_dpkg_purge(text) == ["standin-ulp-dkms"]


@pytest.mark.parametrize("line", ["dpkg: error: requested operation requires superuser privilege", " ", "Segmentation fault"])
def test_another_kind_of_line_is_quoted(line: str) -> None:
    with pytest.raises(ParseError, match=line.strip() or "not a line"):
        parse_dpkg_purge(LIBIBVERBS + line + "\n")


def test_who_needs_a_package_by_rpm() -> None:
    assert parse_rpm_erase(RPM) == ["qemu-kvm-core", "beegfs-client-dkms"]
    with pytest.raises(ParseError, match="package foo is not installed"):
        parse_rpm_erase("error: package foo is not installed\n")


def tree(path: Path, packages: Mapping[str, str]) -> SysRoot:
    status = path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("\n".join(STATUS.format(name=name, version=version) for name, version in packages.items()))
    return SysRoot(str(path))


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who uses the stack: nobody, unless a test adds it."""
    uses: list[str] = []
    monkeypatch.setattr(stack_removal, "read_uses", lambda _sys, _runner: list(uses))
    return uses


PURGE = ["/usr/bin/dpkg", "--no-act", "--purge", "--"]


def test_packages_that_depend_on_dependants_are_removed_too(tmp_path: Path, idle: list[str]) -> None:
    sys = tree(tmp_path, {"libibverbs1": "44", "librdmacm1": "45", "qemu-system-x86": "7.2", "ofed-scripts": "24.10", "gluster": "9"})
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/ofed_info").touch()
    idle.append("GPU process 4711 (python3)")
    second = " gluster depends on librdmacm1 (>= 31).\n"
    runner = FakeRunner(
        [
            (["/usr/bin/ofed_info"], 0, OFED_INFO, ""),
            ([*PURGE, "libibverbs1", "ofed-scripts"], 1, "", LIBIBVERBS),
            ([*PURGE, "libibverbs1", "librdmacm1", "ofed-scripts", "qemu-system-x86"], 1, "", second),
            ([*PURGE, "gluster", "libibverbs1", "librdmacm1", "ofed-scripts", "qemu-system-x86"], 0, IBSIM, ""),
        ]
    )
    found = read_removal(["ofed-scripts", "not-installed"], sys, runner)
    assert found.packages == {"libibverbs1": "44", "ofed-scripts": "24.10"}
    assert found.dependants == {"gluster": "9", "librdmacm1": "45", "qemu-system-x86": "7.2"}
    assert (found.in_use, found.unread) == (["GPU process 4711 (python3)"], None)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("state", ["half-installed", "unpacked", "half-configured"])
def test_a_package_of_the_stack_whose_installation_did_not_end_belongs_to_the_stack(tmp_path: Path, state: str) -> None:
    sys = tree(tmp_path, {"mlnx-ofed-kernel-dkms": "24.10-1"})
    status = tmp_path / "var/lib/dpkg/status"
    status.write_text(status.read_text().replace("install ok installed", f"install ok {state}"))
    text = " standin-client depends on mlnx-ofed-kernel-dkms.\n"
    runner = FakeRunner(
        [
            ([*PURGE, "mlnx-ofed-kernel-dkms"], 1, "", text),
            ([*PURGE, "mlnx-ofed-kernel-dkms", "standin-client"], 0, "", ""),
        ]
    )
    found = read_removal([], sys, runner)
    assert (found.packages, found.dependants) == ({"mlnx-ofed-kernel-dkms": "24.10-1"}, {"standin-client": "version unknown"})


@pytest.mark.usefixtures("idle")
def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    sys = tree(tmp_path, {"ofed-scripts": "24.10"})
    held = FakeRunner([([*PURGE, "ofed-scripts"], 1, "", "dpkg: error processing package ofed-scripts (--purge):\n")])
    assert "would not remove the packages" in str(read_removal(["ofed-scripts"], sys, held).unread)
    odd = FakeRunner([([*PURGE, "ofed-scripts"], 1, "", "dpkg: package ofed-scripts is on hold\n")])
    assert "is on hold" in str(read_removal(["ofed-scripts"], sys, odd).unread)
    assert read_removal(["other"], sys, FakeRunner([])) == Removal(unread="no installed package of the stack is known")


def test_a_host_that_began_to_work_is_refused(tmp_path: Path, idle: list[str]) -> None:
    sys = tree(tmp_path, {"ofed-scripts": "24.10"})
    calls = [([*PURGE, "ofed-scripts"], 1, "", LIBIBVERBS.replace("librdmacm1:amd64", "qemu-system-x86"))]
    calls += [([*PURGE, "ofed-scripts", "qemu-system-x86"], 0, IBSIM, "")]
    refuse_unless_safe("node1", ["ofed-scripts", "qemu-system-x86"], sys, FakeRunner(calls))
    with pytest.raises(ApplyError, match="qemu-system-x86 would also be removed, but the plan did not list it"):
        refuse_unless_safe("node1", ["ofed-scripts"], sys, FakeRunner(calls))
    idle.append("job process 815 (slurmstepd)")
    with pytest.raises(ApplyError, match=r"Nothing was removed on node1: job process 815 \(slurmstepd\)"):
        refuse_unless_safe("node1", None, sys, FakeRunner([]))


def test_a_first_installation_may_replace_what_was_listed(tmp_path: Path, idle: list[str]) -> None:
    sys = tree(tmp_path, {"libibverbs1": "44", "qemu-system-x86": "7.2"})
    text = LIBIBVERBS.replace("librdmacm1:amd64", "qemu-system-x86")
    calls = [([*PURGE, "libibverbs1"], 1, "", text), ([*PURGE, "libibverbs1", "qemu-system-x86"], 0, IBSIM, "")]
    with pytest.raises(ApplyError, match="libibverbs1, qemu-system-x86 would also be removed, but the plan did not list it"):
        refuse_unless_safe("node1", [], sys, FakeRunner(calls), replaced=DISTRIBUTION_STACK)
    listed = ["libibverbs1", "qemu-system-x86"]
    refuse_unless_safe("node1", listed, sys, FakeRunner([(calls[1][0], 0, IBSIM, "")]), replaced=DISTRIBUTION_STACK)
    refuse_unless_safe("node1", [], tree(tmp_path / "bare", {"bash": "5"}), FakeRunner([]), replaced=DISTRIBUTION_STACK)
    idle.append("job process 815 (slurmstepd)")
    with pytest.raises(ApplyError, match="Nothing was installed on node1: job process 815"):
        refuse_unless_safe("node1", None, sys, FakeRunner([]), replaced=DISTRIBUTION_STACK)


LOADED = add_on()
HELD = {**LOADED["mlx_compat"], "holders": [*LOADED["mlx_compat"]["holders"], "ko2iblnd"], "refcount": 6}
USES = [
    pytest.param({"modules": LOADED}, IDLE, [], id="idle"),
    pytest.param({"modules": {}}, IDLE, [], id="nothing loaded"),
    pytest.param(
        {"modules": {**LOADED, "mlx_compat": HELD, "ko2iblnd": module("ko2iblnd")}},
        IDLE,
        ["ko2iblnd holds mlx_compat (refcount 0), and is not part of the stack"],
        id="a holder",
    ),
    pytest.param(
        {"modules": add_on(ib_uverbs={**LOADED["ib_uverbs"], "refcount": 5})}, IDLE, ["ib_uverbs is in use (refcount 5)"], id="open"
    ),
    pytest.param(
        {"modules": stock(ib_uverbs=module("ib_uverbs", refcount=3))}, IDLE, ["ib_uverbs is in use (refcount 3)"], id="open, stock"
    ),
    pytest.param({"modules": stock(ib_core=module("ib_core", refcount=99))}, IDLE, [], id="the kernel's own core"),
    pytest.param(
        {"modules": add_on(mlx5_ib={**LOADED["mlx5_ib"], "refcount": None})},
        IDLE,
        ["whether mlx5_ib is in use is unknown"],
        id="unknown",
    ),
    pytest.param({"modules": LOADED, "uses": None}, IDLE, ["whether storage uses RDMA is unknown"], id="storage unknown"),
    pytest.param(
        {"modules": LOADED, "uses": [{"kind": "mount", "what": "/data from a:/b by NFS over RDMA"}]},
        IDLE,
        ["mounted: /data from a:/b by NFS over RDMA"],
        id="storage",
    ),
    pytest.param({"modules": LOADED}, None, ["whether it is in use is unknown"], id="load unknown"),
    pytest.param({"modules": LOADED}, Load([], [Process(7, "slurmstepd")]), ["job process 7 (slurmstepd)"], id="a job"),
]


@pytest.mark.parametrize(("differs", "load", "expected"), USES)
def test_who_uses_a_stack(differs: dict[str, Any], load: Load | None, expected: list[str]) -> None:
    assert stack_uses(stack_of({"uses": [], **differs}), load) == expected


@pytest.mark.usefixtures("idle")
def test_the_end_of_what_dpkg_says_is_quoted_if_it_would_not_remove_the_stack(tmp_path: Path) -> None:
    error = "dpkg: error processing package libibverbs1:amd64 (--purge):\n dependency problems - not removing\n"
    for words, quoted in ((error, error.strip()), (error * 3, (error * 3).strip()[-200:])):
        runner = FakeRunner([([*PURGE, "libibverbs1"], 1, "", words)])
        found = read_removal(["libibverbs1"], tree(tmp_path / str(len(words)), {"libibverbs1": "44"}), runner)
        assert found.unread == f"`/usr/bin/dpkg` would not remove the packages: {quoted}"
        assert found.packages == {}
