# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-ins for MLNX_OFED and DOCA: the real ones' layout and names, the same bytes twice, and refusals with the documented codes."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.standins import cli, doca, mlnx_ofed
from lab.standins.packages import Ofed, ofed_packages, ulp_package

NAME = "MLNX_OFED_LINUX-24.10-1.1.4.0-debian12.1-x86_64"
PROGRAMS = ("mlnxofedinstall", "mlnx_add_kernel_support.sh", "uninstall.sh")


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False)


def make(out: Path, sabotage: str = "") -> Path:
    out.mkdir(exist_ok=True)
    return mlnx_ofed.make("24.10-1.1.4.0", out, distro="debian12.1", sabotage=mlnx_ofed.parse_sabotage(sabotage))


def unpacked(out: Path, sabotage: str) -> Path:
    with tarfile.open(make(out, sabotage)) as archive:
        archive.extractall(out, filter="data")
    return out / NAME


def test_the_tarball_has_the_layout_of_the_real_one(tmp_path: Path) -> None:
    with tarfile.open(make(tmp_path)) as archive:
        names = set(archive.getnames())
        assert {name.split("/")[0] for name in names} == {NAME}
        assert all((member.uid, member.gid, member.uname) == (0, 0, "root") for member in archive)
        for program in PROGRAMS:
            assert archive.getmember(f"{NAME}/{program}").mode & 0o111, program
    debs = {name.rsplit("/", 1)[1] for name in names if name.endswith(".deb")}
    assert debs == {
        "mlnx-ofed-kernel-dkms_24.10.OFED.24.10.1.1.4.1-1_all.deb",
        "mlnx-ofed-kernel-utils_24.10.OFED.24.10.1.1.4.1-1_amd64.deb",
        "mlnx-tools_24.10-0.24101141_amd64.deb",
        "ofed-scripts_24.10.OFED.24.10.1.1.4-1_amd64.deb",
    }
    assert {f"{NAME}/.arch", f"{NAME}/.mlnx", f"{NAME}/distro"} <= names


def test_the_same_words_give_the_same_bytes(tmp_path: Path) -> None:
    first, second, other = (make(tmp_path / name, how).read_bytes() for name, how in (("a", ""), ("b", ""), ("c", "build")))
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()
    assert first != other


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", 0, 0)),
        ("build", ("build", 0, 0)),
        ("silent,slow=5", ("silent", 5, 0)),
        ("rc=173", ("", 0, 173)),
    ],
)
def test_sabotage(text: str, expected: tuple[str, int, int]) -> None:
    sabotage = mlnx_ofed.parse_sabotage(text)
    assert (sabotage.way, sabotage.slow_seconds, sabotage.return_code) == expected


@pytest.mark.parametrize("text", ["bild", "build,silent", "slow", "slow=x", "rc=1,rc=2"])
def test_a_sabotage_that_is_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mlnx-ofed", "--sabotage", text, "--out", str(tmp_path)]) == 1
    assert "Sabotage is one of build, silent and headers" in capsys.readouterr().err


# The tarball of these ends with 171 before it touches the machine, whatever it takes for right: nothing is ever installed here.
@pytest.mark.parametrize(
    ("words", "status", "answer"),
    [
        (["--no-such-option"], 22, "Unsupported installation option: '--no-such-option'"),
        (["--kernel"], 22, "needs a value"),
        (["--distro", "ubuntu22.04"], 172, "is intended for debian12.1"),
        (["--distro", "debian12.9", "--force", "--without-fw-update", "--add-kernel-support", "--with-nvmf"], 171, "not applicable"),
        (["--distro", "rhel9.4", "--skip-distro-check"], 171, "not applicable"),
        (["--help"], 0, "Usage"),
    ],
)
def test_the_installer_s_refusals(words: list[str], status: int, answer: str, tmp_path: Path) -> None:
    folder = unpacked(tmp_path, "rc=171")
    done = run(folder / "mlnxofedinstall", *words)
    assert (done.returncode, answer in done.stdout) == (status, True), done.stdout + done.stderr


def test_the_installer_needs_its_version_file(tmp_path: Path) -> None:
    folder = unpacked(tmp_path, "rc=171")
    (folder / ".mlnx").unlink()
    done = run(folder / "mlnxofedinstall", "--force")
    assert (done.returncode, ".mlnx file not found" in done.stdout) == (172, True)


def test_versions_in_their_spellings() -> None:
    first, second = Ofed("24.10-1.1.4.0"), Ofed("25.10-1.7.1")
    assert (first.module, first.dkms) == ("24.10-1.1.4", "24.10.OFED.24.10.1.1.4.1")
    assert (second.module, second.dkms) == ("25.10-1.7.1", "25.10.OFED.25.10.1.7.1.1")
    with pytest.raises(LabError, match=r"like 24\.10-1\.1\.4\.0"):
        Ofed("24.10")


def test_only_a_sabotaged_source_has_the_line_that_does_not_compile() -> None:
    for broken in (False, True):
        kernel = ofed_packages(Ofed("24.10-1.1.4.0"), breaks_build=broken)[-1]
        source = kernel.files["usr/src/mlnx-ofed-kernel-24.10.OFED.24.10.1.1.4.1/mlx5_core.c"].text
        assert ("standin_missing_helper" in source) is broken
        assert 'MODULE_VERSION("24.10-1.1.4")' in source


def test_every_file_and_package_says_that_it_is_a_stand_in() -> None:
    every = [*ofed_packages(Ofed("24.10-1.1.4.0")), *doca.packages("2.9.1"), ulp_package()]
    for package in every:
        assert "stand-in" in package.control
        for path, file in package.files.items():
            assert re.search("stand-in", file.text, re.IGNORECASE), (package.name, path)
            assert not re.search(r"@[A-Z]+@", file.text), (package.name, path)
        for name, text in package.scripts.items():
            assert "stand-in" in text, (package.name, name)
            assert not re.search(r"@[A-Z]+@", text), (package.name, name)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return doca.make("3.2.0", tmp_path_factory.mktemp("doca"))


def test_the_repository_has_the_vendor_s_names(repository: Path) -> None:
    names = set(re.findall(r"^Package: (\S+)$", (repository / "Packages").read_text(), re.MULTILINE))
    assert {"doca-ofed", "doca-networking", "doca-roce", "doca-ofed-userspace", "mlnx-ofed-kernel-dkms", "ofed-scripts"} <= names
    assert {"rdma-core", "openmpi", "dkms", "doca-extra"} <= names


def test_the_release_file_reports_the_sums_of_the_lists(repository: Path) -> None:
    release = (repository / "Release").read_text()
    assert "\nLabel: DOCA-HOST\n" in release
    for name in ("Packages", "Packages.gz"):
        content = (repository / name).read_bytes()
        assert f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n" in release


def test_the_key_is_the_one_that_has_signed(repository: Path, tmp_path: Path) -> None:
    keyring = tmp_path / "key.gpg"
    tmp_path.chmod(0o700)
    assert run("gpg", "--batch", "--homedir", tmp_path, "--output", keyring, "--dearmor", repository / doca.KEY_FILE).returncode == 0
    assert run("gpgv", "--keyring", keyring, repository / "InRelease").returncode == 0
    altered = tmp_path / "InRelease"
    altered.write_text((repository / "InRelease").read_text().replace("DOCA-HOST", "DOCA-GHOST"))
    assert run("gpgv", "--keyring", keyring, altered).returncode != 0
