# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver stack as a whole, on machines as Debian, Ubuntu and RHEL lay them out."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import DkmsModule
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import Mok
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import (
    Module,
    parse_ofed_script,
    parse_refcount,
    read_ofed_version,
    read_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.storage_uses import StorageUse
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import DRIVERS
from tests.unit.builders.fakes import Call, FakeRunner
from tests.unit.builders.garbled import garbled, no_time
from tests.unit.builders.trees import mlx5_machine, soft_roce_machine, write_tree

KERNEL = "6.8.0-51-generic"
LIB = f"/lib/modules/{KERNEL}"
LOADED = ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "mlx_compat", "nvidia_peermem"]
#: What MLNX_OFED's packages install as /usr/bin/ofed_info, without most of the list behind it.
OFED_INFO = """\
#!/bin/bash
usage()
{
\tcat <<EOF
Usage: $0 [options]

Options:
    -s       Show package name and version number.
    -n       Show numerical version number only.
EOF
}
if [ "X$1" == "X-s" ]; then echo MLNX_OFED_LINUX-24.10-1.1.4.0:; exit 0; fi
if [ "X$1" == "X-n" ]; then echo 24.10-1.1.4.0; exit 0; fi
if [ "X$1" != "X-l" ] && [ "X$1" != "X" ]; then usage; exit 1; fi

cat << EOF
MLNX_OFED_LINUX-24.10-1.1.4.0 (OFED-24.10-1.1.4):

clusterkit:
mlnx_ofed_clusterkit/clusterkit-1.15.469-1.2410068.src.rpm

EOF
"""
DKMS = f"""
    /var/lib/dkms/mlnx-ofed-kernel/24.10/source -> /usr/src/mlnx-ofed-kernel-24.10
    /var/lib/dkms/mlnx-ofed-kernel/24.10/{KERNEL}/x86_64/module/mlx5_core.ko: x
    /var/lib/dkms/mlnx-ofed-kernel/kernel-{KERNEL}-x86_64 -> 24.10/{KERNEL}/x86_64
"""
OFED_MACHINE = f"""
    {LIB}/modules.dep: kernel/fs/ext4/ext4.ko:
    {LIB}/kernel/net/x.ko: x
    {LIB}/build/Makefile: x
    /lib/modules/6.8.0-60-generic/modules.dep: kernel/fs/ext4/ext4.ko:
    /lib/modules/6.8.0-60-generic/kernel/net/x.ko: x
    /lib/modules/6.8.0-1013-aws/modules.dep: kernel/fs/ext4/ext4.ko:
    /lib/modules/6.8.0-1013-aws/kernel/net/x.ko: x
    /usr/bin/ofed_info: {OFED_INFO.replace(chr(10), chr(92) + "n")}
    /etc/os-release: ID=ubuntu
    {DKMS}
"""


def block(name: str, file: str, fields: str = "") -> str:
    return f"filename:       {file}\n{fields}name:           {name}\nvermagic:       {KERNEL} SMP preempt mod_unload modversions \n"


MODINFO = (
    block("ib_core", f"{LIB}/kernel/drivers/infiniband/core/ib_core.ko.zst", "srcversion:     IB_CORE0123\n")
    + block("ib_uverbs", f"{LIB}/extra/ib_uverbs.ko")
    + block("mlx5_core", f"{LIB}/updates/dkms/mlx5_core.ko", "version:        24.10-1.1.4\nsrcversion:     MLX5_CORE0123\n")
    + "signer:         DKMS module signing key\n"
    + block("mlx5_ib", f"{LIB}/updates/mlx5_ib.ko")
    + block("mlx_compat", "/opt/mlx_compat.ko")
)


def ofed_machine(root: Path) -> SysRoot:
    return SysRoot(str(write_tree(mlx5_machine(root), OFED_MACHINE)))


@pytest.mark.parametrize(("ethernet", "rdma"), sorted(DRIVERS.values()))
def test_what_a_rail_s_driver_must_have_loaded_is_looked_at(tmp_path: Path, ethernet: str, rdma: str) -> None:
    """Both are read, though an Ethernet driver holds no module of RDMA, and a tree of a capture may show no holders."""
    loaded = (f"/sys/module/{name}/srcversion: {name.upper()}" for name in (ethernet, rdma))
    tree = SysRoot(str(write_tree(tmp_path, "\n".join(loaded))))
    assert read_stack(tree, None).modules == {name: Module(None, name.upper(), []) for name in (ethernet, rdma)}


def test_a_machine_with_ofed(tmp_path: Path) -> None:
    runner = FakeRunner([(["modinfo", *LOADED], 1, MODINFO, "modinfo: ERROR: Module nvidia_peermem not found.\n")])
    stack = read_stack(ofed_machine(tmp_path), runner)
    assert (stack.kind, stack.kernel, stack.kernels) == ("ofed", KERNEL, ["6.8.0-51-generic", "6.8.0-60-generic", "6.8.0-1013-aws"])
    assert (stack.newest, stack.headers) == (
        "6.8.0-60-generic",
        {"6.8.0-51-generic": True, "6.8.0-60-generic": False, "6.8.0-1013-aws": False},
    )
    assert stack.dkms == [DkmsModule("mlnx-ofed-kernel", "24.10", KERNEL, "x86_64", "installed")]
    assert (stack.secure_boot, stack.ofed_version, stack.distribution.id) == (None, "MLNX_OFED_LINUX-24.10-1.1.4.0", "ubuntu")
    assert stack.modules == {
        "ib_core": Module(None, "IB_CORE0123", [], f"{LIB}/kernel/drivers/infiniband/core/ib_core.ko.zst", None, "IB_CORE0123", "kernel"),
        "ib_uverbs": Module(None, "IB_UVERBS0123", [], f"{LIB}/extra/ib_uverbs.ko", None, None, "extra"),
        "mlx5_core": Module(
            version="24.10-1.1.4",
            srcversion="MLX5_CORE0123",
            holders=["mlx5_ib"],
            file=f"{LIB}/updates/dkms/mlx5_core.ko",
            file_version="24.10-1.1.4",
            file_srcversion="MLX5_CORE0123",
            provenance="dkms",
            signer="DKMS module signing key",
        ),
        "mlx5_ib": Module(None, "MLX5_IB0123", [], f"{LIB}/updates/mlx5_ib.ko", None, None, "extra"),
        "mlx_compat": Module(None, "MLX_COMPAT0123", [], "/opt/mlx_compat.ko", None, None, None),
        "nvidia_peermem": Module(None, "NVIDIA_PEERMEM0123", []),
    }


def test_a_tree_reports_nothing_of_files(tmp_path: Path) -> None:
    stack = read_stack(ofed_machine(tmp_path), None)
    assert stack.modules["mlx5_core"] == Module("24.10-1.1.4", "MLX5_CORE0123", ["mlx5_ib"])
    assert list(stack.modules) == LOADED
    assert (stack.newest, len(stack.dkms), stack.ofed_version) == ("6.8.0-60-generic", 1, "MLNX_OFED_LINUX-24.10-1.1.4.0")


def test_every_module_that_holds_ib_core_counts(tmp_path: Path) -> None:
    sys = SysRoot(
        str(write_tree(soft_roce_machine(tmp_path), "/sys/module/rdma_new/srcversion: 1\n/sys/module/ib_core/holders/rdma_new: x"))
    )
    stack = read_stack(sys, None)
    assert list(stack.modules) == ["ib_core", "ib_uverbs", "rdma_new", "rdma_rxe"]
    assert stack.modules["ib_core"].holders == ["ib_uverbs", "rdma_new", "rdma_rxe"]
    assert stack.kind is None


ULPS = """
    /sys/module/ib_core/holders/rdma_cm -> ../../rdma_cm
    /sys/module/rdma_cm/holders/nvme_rdma -> ../../nvme_rdma
    /sys/module/rdma_cm/refcnt: 3
    /sys/module/nvme_rdma/refcnt: 2
    /sys/module/nvme_rdma/holders/theirs -> ../../theirs
    /sys/module/theirs/refcnt: -1
    /sys/module/mlx5_core/holders/mlx5_vdpa -> ../../mlx5_vdpa
    /sys/module/mlx5_vdpa/srcversion: 1
    /sys/module/mlx_compat/holders/nvme_core -> ../../nvme_core
    /sys/module/nvme_core/srcversion: 1
    /sys/module/mlx5_core/refcnt: 0
"""


def test_what_stands_on_rdma_through_another_module_counts(tmp_path: Path) -> None:
    """Round and round as well, which holders cannot be in a kernel; a holder that has just gone is none."""
    text = "/sys/module/theirs/holders/rdma_cm -> ../../rdma_cm\n/sys/module/theirs/holders/gone -> ../../gone"
    stack = read_stack(SysRoot(str(write_tree(mlx5_machine(tmp_path), ULPS + text))), None)
    assert set(stack.modules) == {*LOADED, "mlx5_vdpa", "nvme_core", "nvme_rdma", "rdma_cm", "theirs"}
    counts = {name: module.refcount for name, module in stack.modules.items() if module.refcount is not None}
    assert counts == {"rdma_cm": 3, "nvme_rdma": 2, "theirs": -1, "mlx5_core": 0}
    assert stack.modules["nvme_rdma"].holders == ["theirs"]


@pytest.mark.parametrize("text", ["", "many", "1 2", "--1", "٣"])
def test_another_count_of_users_is_quoted(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_refcount(text)
    assert repr(text) in str(caught.value)


SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ENROLLED = (["mokutil", "--test-key", "/var/lib/dkms/mok.pub"], 1, "/var/lib/dkms/mok.pub is already enrolled\n", "")


@pytest.mark.parametrize(("is_on", "calls"), [(True, [ENROLLED]), (False, [])])
def test_the_key_of_dkms_is_asked_for_where_secure_boot_is_on(tmp_path: Path, is_on: bool, calls: list[Call]) -> None:
    write_tree(tmp_path, "/var/lib/dkms/mok.pub: x")
    (tmp_path / SECURE_BOOT).parent.mkdir(parents=True)
    (tmp_path / SECURE_BOOT).write_bytes(bytes([6, 0, 0, 0, is_on]))
    runner = FakeRunner(calls)
    mok = read_stack(SysRoot(str(tmp_path)), runner).mok
    assert mok == (Mok("/var/lib/dkms/mok.pub", enrolled=True, said=calls[0][2].strip()) if is_on else None)
    assert read_stack(SysRoot(str(tmp_path)), None).mok is None


def test_a_host_with_rpm_is_asked_for_its_packages(tmp_path: Path) -> None:
    runner = FakeRunner([(["rpm", "-qa", "--queryformat", "%{NAME} %{EVR}\\n"], 0, "perftest 4.5-1.el9\n", "")])
    stack = read_stack(SysRoot(str(write_tree(tmp_path, "/etc/os-release: ID=rhel"))), runner)
    assert (stack.distribution.packages or {})["perftest"] == "4.5-1.el9"


def test_what_uses_rdma_for_storage(tmp_path: Path) -> None:
    mount = "10.0.0.1:/export /data nfs rw,proto=rdma 0 0"
    stack = read_stack(SysRoot(str(write_tree(tmp_path, f"/proc/mounts: {mount}"))), None)
    assert stack.uses == [StorageUse("mount", "/data from 10.0.0.1:/export by NFS over RDMA")]


def test_a_machine_without_anything(tmp_path: Path) -> None:
    """No module is loaded, so no process is started."""
    stack = read_stack(SysRoot(str(tmp_path)), FakeRunner([]))
    assert dataclasses.asdict(stack) == {
        "kind": None,
        "kernel": None,
        "modules": {},
        "distribution": {
            "id": None,
            "version_id": None,
            "like": [],
            "packages": None,
            "vendor": None,
            "held": None,
            "family": None,
            "kernels": None,
            "asked": None,
        },
        "kernels": [],
        "newest": None,
        "headers": {},
        "secure_boot": None,
        "dkms": [],
        "ofed_version": None,
        "mok": None,
        "driver_files": {},
        "last_build": None,
        "arch": platform.machine(),
        "lockdown": None,
        "unread": [],
        "uses": None,
    }


def test_a_running_kernel_that_is_not_installed_has_an_answer_about_headers(tmp_path: Path) -> None:
    stack = read_stack(SysRoot(str(write_tree(tmp_path, f"/proc/sys/kernel/osrelease: {KERNEL}"))), None)
    assert (stack.kernels, stack.newest, stack.headers) == ([], None, {KERNEL: False})


OLD, NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.16.1.el9_4.x86_64"
RHEL = f"""
    /proc/sys/kernel/osrelease: {NEW}
    /sys/module/mlx5_core/version: 24.10-1.1.4
    /lib -> usr/lib
    /usr/lib/modules/{OLD}/extra/mlx5_core.ko.xz: x
    /usr/lib/modules/{NEW}/weak-updates/mlx5_core.ko.xz -> /lib/modules/{OLD}/extra/mlx5_core.ko.xz
"""
RHEL_DKMS = f"""
    /var/lib/dkms/mlnx-ofa_kernel/24.10/source -> /usr/src/mlnx-ofa_kernel-24.10
    /var/lib/dkms/mlnx-ofa_kernel/24.10/{OLD}/x86_64/module/mlx5_core.ko.xz: x
    /var/lib/dkms/mlnx-ofa_kernel/kernel-{OLD}-x86_64 -> 24.10/{OLD}/x86_64
"""


@pytest.mark.parametrize(
    ("file", "dkms", "expected"),
    [
        pytest.param(f"/lib/modules/{OLD}/extra/mlx5_core.ko.xz", RHEL_DKMS, "dkms", id="DKMS, extra"),
        pytest.param(f"/lib/modules/{OLD}/extra/mlx5_core.ko.xz", "", "extra", id="a package, extra"),
        pytest.param(f"/lib/modules/{NEW}/weak-updates/mlx5_core.ko.xz", RHEL_DKMS, "dkms", id="DKMS, weak-updates"),
        pytest.param(f"/lib/modules/{NEW}/weak-updates/mlx5_core.ko.xz", "", "extra", id="a package, weak-updates"),
        pytest.param(f"/lib/modules/{NEW}/extra/mlx5_core.ko.xz", RHEL_DKMS, "extra", id="a package, DKMS has it for another kernel"),
        pytest.param(f"/lib/modules/{NEW}/kernel/drivers/mlx5_core.ko.xz", RHEL_DKMS, "kernel", id="of the kernel"),
    ],
)
def test_where_a_file_of_rhel_comes_from(tmp_path: Path, file: str, dkms: str, expected: str) -> None:
    runner = FakeRunner([(["modinfo", "mlx5_core"], 0, block("mlx5_core", file), "")])
    stack = read_stack(SysRoot(str(write_tree(tmp_path, RHEL + dkms))), runner)
    assert (stack.modules["mlx5_core"].file, stack.modules["mlx5_core"].provenance) == (file, expected)


def test_a_part_of_the_kernel(tmp_path: Path) -> None:
    runner = FakeRunner([(["modinfo", "ib_core"], 0, "name:           ib_core\nfilename:       (builtin)\nlicense:        GPL\n", "")])
    stack = read_stack(SysRoot(str(write_tree(tmp_path, "/sys/module/ib_core/parameters/x: 1"))), runner)
    assert stack.modules == {"ib_core": Module(None, None, [], "(builtin)", None, None, "kernel")}


def test_another_output_of_modinfo_is_an_error(tmp_path: Path) -> None:
    runner = FakeRunner([(["modinfo", "ib_core"], 0, "usage: modinfo\n", "")])
    with pytest.raises(ParseError, match="usage: modinfo"):
        read_stack(SysRoot(str(write_tree(tmp_path, "/sys/module/ib_core/srcversion: 1"))), runner)


DOCA = OFED_INFO.replace("MLNX_OFED_LINUX-24.10-1.1.4.0 (OFED-24.10-1.1.4)", "OFED-internal-25.10-1.7.1").replace(
    "MLNX_OFED_LINUX-24.10-1.1.4.0", "OFED-internal-25.10-1.7.1"
)
WITHOUT_ANSWER = "".join(line for line in OFED_INFO.splitlines(keepends=True) if "-s" not in line)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param(OFED_INFO, "MLNX_OFED_LINUX-24.10-1.1.4.0", id="MLNX_OFED"),
        pytest.param(DOCA, "OFED-internal-25.10-1.7.1", id="DOCA-OFED"),
        pytest.param(WITHOUT_ANSWER, "MLNX_OFED_LINUX-24.10-1.1.4.0", id="the heading alone"),
        pytest.param(OFED_INFO.replace("\n", "\r\n"), "MLNX_OFED_LINUX-24.10-1.1.4.0", id="CRLF"),
        pytest.param('[ "$1" = "-s" ]; then echo "DOCA-OFED-26.07-0.4.3:"; exit', "DOCA-OFED-26.07-0.4.3", id="a name not seen yet"),
        pytest.param("#!/bin/bash\ncat << EOF\nOFED-1.5.3.2:\n\ncompat-dapl:\n", "OFED-1.5.3.2", id="OFED 1.5"),
    ],
)
def test_the_version_of_ofed(tmp_path: Path, text: str, version: str) -> None:
    assert parse_ofed_script(text) == version
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/ofed_info").write_text(text)
    assert read_ofed_version(SysRoot(str(tmp_path))) == version


@pytest.mark.parametrize("text", ["", "#!/bin/sh\nexec /opt/ofed/info\n", 'echo "MLNX_OFED_LINUX-5.4-0 (User space)"'])
def test_a_script_that_reports_no_version(tmp_path: Path, text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ofed_script(text)
    assert repr(text) in str(caught.value)
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/ofed_info").write_text(text)
    assert read_ofed_version(SysRoot(str(tmp_path))) is None


@given(text=garbled(OFED_INFO))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert parse_ofed_script(text)


@pytest.mark.parametrize(
    "text", ["OFED" * 30_000, "-s" + " " * 100_000, "_" * 100_000, "OFED-1" + "." * 100_000, "-s]; then echo " + "a" * 100_000]
)
def test_long_texts_take_no_time(text: str) -> None:
    with no_time(), pytest.raises(ParseError):
        parse_ofed_script(text)
