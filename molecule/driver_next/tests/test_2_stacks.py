# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the bundle to DOCA, by a repository that is signed, and back to the distribution's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.verify.driver import Driver, Hosts, sha256

RELEASE, PORT = "3.2.0", 8765
URL = f"http://127.0.0.1:{PORT}/"
KEY = "/srv/standins/doca-3.2.0/GPG-KEY-Mellanox.pub"


@pytest.fixture(scope="module")
def doca(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """rdma_driver for the stand-in's repository, which the machine serves to itself."""
    serve = f"python3 -m http.server --bind 127.0.0.1 --directory /srv/standins/doca-{RELEASE} {PORT}"
    hosts.run("node1", f"systemctl is-active standin-doca || systemd-run --unit=standin-doca {serve}")
    file = tmp_path_factory.mktemp("key") / "doca.pub"
    file.write_text(hosts.run("node1", f"cat {KEY}") + "\n")
    repository = {"url": URL, "key": {"file": str(file)}, "key_checksum": sha256(file.read_bytes())}
    return {"stack": "doca", "version": RELEASE, "repository": repository}


def test_a_key_that_is_not_the_repository_s_installs_nothing(driver: Driver, hosts: Hosts, doca: dict[str, Any], tmp_path: Path) -> None:
    wrong = {**doca, "repository": {**doca["repository"], "key_checksum": f"sha256:{'0' * 64}"}}
    done = driver.run(wrong, limit="node1", driver_switch_allowed=True)
    assert done.returncode == 2
    assert "it is another key" in done.stdout, done.stdout
    assert hosts.run("node1", "ls /etc/apt/sources.list.d/") == ""


def test_from_the_bundle_to_doca(driver: Driver, hosts: Hosts, doca: dict[str, Any]) -> None:
    done = driver.run(doca, limit="node1", driver_reload_allowed=True, driver_switch_allowed=True)
    assert done.returncode == 0, done.stdout
    assert hosts.run("node1", "ofed_info -s") == "OFED-internal-25.10-1.7.1:"
    now = hosts.driver("node1")
    assert "/updates/dkms/" in now["file"]
    assert now["loaded"] == now["on_disk"] != ""
    assert not hosts.run("node1", "dpkg-query -W -f '${Version}' dkms").startswith("3.99")
    again = driver.run(doca, limit="node1")
    assert again.returncode == 0, again.stdout
    assert driver.changed() == []


def test_back_to_the_distribution_s_own(driver: Driver, hosts: Hosts) -> None:
    done = driver.run({"stack": "inbox"}, limit="node1", driver_reload_allowed=True, driver_switch_allowed=True)
    assert done.returncode == 0, done.stdout
    assert "/kernel/drivers/" in hosts.driver("node1")["file"]
    assert hosts.run("node1", "ls /etc/apt/sources.list.d/ /etc/apt/keyrings/ | grep rdma || true") == ""
    assert hosts.run("node1", "command -v ofed_info || true") == ""
