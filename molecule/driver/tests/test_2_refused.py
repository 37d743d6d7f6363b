# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot work is refused before the driver that runs is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.verify.driver import BUNDLES, NEWER, Driver, Hosts

FOLDER = "/var/lib/rdma-cluster/ofed"


def wrong_sum(hosts: Hosts) -> dict[str, Any]:
    return {**hosts.bundle("newer", NEWER), "checksum": f"sha256:{'0' * 64}"}


def cut_off(hosts: Hosts) -> dict[str, Any]:
    """Half of the archive, by its own checksum."""
    whole = f"{BUNDLES}/newer/MLNX_OFED_LINUX-{NEWER}-debian12.1-x86_64.tgz"
    hosts.run("node1", f"mkdir -p {BUNDLES}/half && head -c $(($(stat -c %s {whole}) / 2)) {whole} > {whole.replace('newer', 'half')}")
    return hosts.bundle("half", NEWER)


def no_room(hosts: Hosts) -> dict[str, Any]:
    """A file system of 20 MB where the bundle is unpacked."""
    hosts.run("node1", f"mount -t tmpfs -o size=20m tmpfs {FOLDER}")
    return hosts.bundle("newer", NEWER)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [(wrong_sum, f"expected {'0' * 64}"), (cut_off, "half"), (no_room, "MiB free, expected")],
    ids=["wrong checksum", "half an archive", "no room"],
)
def test_nothing_is_touched(driver: Driver, hosts: Hosts, prepare: Callable[[Hosts], dict[str, Any]], words: str) -> None:
    before = hosts.driver("node1")
    try:
        done = driver.run(prepare(hosts), limit="node1", driver_switch_allowed=True)
    finally:
        hosts.run("node1", f"rm -rf {BUNDLES}/half; mountpoint --quiet {FOLDER} && umount {FOLDER} || true")
    assert done.returncode == 2, done.stdout
    assert words in done.stdout
    assert hosts.driver("node1") == before
    assert hosts.run("node1", f"ls {FOLDER} | grep -c unpack || true") == "0"


def test_a_bundle_for_another_distribution_is_reported_by_its_installer(driver: Driver, hosts: Hosts) -> None:
    before = hosts.driver("node1")
    done = driver.run({**hosts.bundle("other", "24.10-1.1.4.0", "ubuntu22.04"), "version": "24.10-1.1.4.0"}, limit="node1")
    assert done.returncode == 0, "the requested version is there already: which bundle it would come from does not matter"
    assert hosts.driver("node1") == before
