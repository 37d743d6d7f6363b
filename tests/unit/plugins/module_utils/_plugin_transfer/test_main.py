# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers between two processes on this machine, through a stand-in for a network plugin that moves the data by TCP."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import RECEIVES, SENDS, TRANSFER_BYTES, TransferResult
from tests.unit.builders.net_plugin import HAS_GCC
from tests.unit.builders.plugin_transfers import STANDIN, Loopback, build_standin

pytestmark = pytest.mark.skipif(not HAS_GCC, reason="gcc builds the stand-in")
FAULT = "STANDIN_FAULT"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is open to nobody, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def one_way(folder: Path, *, fault: str = "", of: str = "node1", seconds: float = 20.0, flags: tuple[str, ...] = ()) -> Loopback:
    """Two hosts of which node1 sends, with a fault of the plugin at one of them."""
    loopback = Loopback(folder, build_standin(folder / "libnccl-net-x.so", 9, *flags), 9, seconds=seconds).one_way()
    return loopback.with_variables(of, {FAULT: fault}) if fault else loopback


def failures(loopback: Loopback) -> tuple[str, str]:
    """Return how the sender and the receiver failed."""
    results = loopback.run()
    return results["node1", SENDS].failed, results["node2", RECEIVES].failed


@pytest.mark.parametrize("version", [6, 7, 8, 9, 10, 11, 12])
def test_each_interface_moves_the_bytes(folder: Path, version: int) -> None:
    loopback = Loopback(folder, build_standin(folder / "libnccl-net-x.so", version), version)
    both = version == 9
    results = loopback.run() if both else loopback.one_way().run()
    one_way = [("node1", SENDS), ("node2", RECEIVES)]
    assert sorted(results) == ([(host, role) for host in ("node1", "node2") for role in (RECEIVES, SENDS)] if both else one_way)
    for (host, role), result in results.items():
        partner = "node2" if host == "node1" else "node1"
        assert result == TransferResult(
            partner,
            "rail0",
            role,
            "mlx5_0",
            TRANSFER_BYTES,
            at=result.at,
            seconds=result.seconds,
            ports=result.ports,
            netdevs=result.netdevs,
        )
        # By TCP on this machine: every byte passes the loopback interface. (Other programs use it too.)
        assert result.netdevs["lo"] >= TRANSFER_BYTES


def test_a_plugin_that_is_not_ready_at_once_is_called_again(folder: Path) -> None:
    loopback = one_way(folder, fault="slow").with_variables("node2", {FAULT: "slow"})
    assert failures(loopback) == ("", "")


def test_altered_bytes_and_sizes_are_found_at_the_receiver(folder: Path) -> None:
    result = one_way(folder, fault="alter", of="node2").run()["node2", RECEIVES]
    assert (result.failed, result.mismatch) == ("", f"8 of {TRANSFER_BYTES} bytes differ, the first at offset 262144")
    result = one_way(folder, fault="short", of="node2").run()["node2", RECEIVES]
    assert result.mismatch == "test reported 524287 bytes for message 0, which has 524288 bytes"


def test_a_plugin_that_hangs_is_ended_in_time(folder: Path) -> None:
    sender, receiver = failures(one_way(folder, fault="hang", of="node2", seconds=3.0))
    assert receiver == "the plugin hangs in accept: no answer in time, so its process was ended"
    # The kernel accepts the connection. If its buffers have room for everything, only the partner knows that nobody reads.
    assert sender in (f"node2 failed: {receiver}", "test was called again and again, and did not finish")


def test_a_receiver_hears_at_once_that_its_partner_has_failed(folder: Path) -> None:
    results = one_way(folder, fault="refuse").run()
    assert results["node2", RECEIVES].seconds < 15.0


def test_a_plugin_that_crashes_or_exits(folder: Path) -> None:
    sender, receiver = failures(one_way(folder, fault="crash", of="node2"))
    assert receiver == "the plugin crashed in accept: its process ended by signal 11"
    assert sender != ""
    sender, receiver = failures(one_way(folder, fault="exit", of="node2"))
    assert receiver == "its process ended in accept with exit code 3"
    assert sender != ""


def test_a_plugin_that_gives_its_partner_little_time(folder: Path) -> None:
    """nccl-mesh-plugin waits 30 s from listen on. To load a plugin can take longer on a busy host."""
    loopback = one_way(folder, fault="late").with_variables("node2", {FAULT: "impatient"})
    assert failures(loopback) == ("", "")


def test_a_connection_that_is_refused(folder: Path) -> None:
    sender, receiver = failures(one_way(folder, fault="refuse"))
    assert sender == "connect failed with 6 (remote error); its last warning is 'no path to %s'"
    assert receiver == f"node1 failed: {sender}"


def test_a_function_that_is_null(folder: Path) -> None:
    sender, receiver = failures(one_way(folder, flags=("-DNO_SEND",)))
    assert sender == "isend is NULL in the table ncclNetPlugin_v9"
    assert receiver == f"node1 failed: {sender}"


def test_a_handle_that_is_larger_than_that_of_nccl(folder: Path) -> None:
    sender, receiver = failures(one_way(folder, fault="large", of="node2"))
    assert receiver == "listen wrote a handle of more than 128 bytes, the size of NCCL's"
    assert sender == f"node2 failed: {receiver}"


def test_a_library_that_cannot_be_loaded(folder: Path) -> None:
    (folder / "libnccl-net-x.so").write_text("no library")
    loopback = Loopback(folder, folder / "libnccl-net-x.so", 9).one_way()
    # Both load it at the same time: each has its own error, or hears of the partner's first.
    said = [each.replace("node1 failed: ", "").replace("node2 failed: ", "") for each in failures(loopback)]
    assert said == [f"{folder}/libnccl-net-x.so: file too short"] * 2


def test_the_plugin_runs_without_rights(folder: Path) -> None:
    library = folder / "libnccl-net-x.so"
    (folder / "found").mkdir()
    (folder / "found").chmod(0o777)
    source = folder / "plugin.c"
    source.write_text(
        f'''#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void found(void) {{
    FILE *file = fopen("{folder}/found/uid", "a");
    fprintf(file, "%d\\n", getuid());
    fclose(file);
}}
#include "{STANDIN}"
'''
    )
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-DVERSION=9", "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=60)
    loopback = Loopback(folder, library, 9).one_way()
    assert failures(loopback) == ("", "")
    assert (folder / "found/uid").read_text().split() == [str(65534 if os.geteuid() == 0 else os.geteuid())] * 2


def test_a_partner_that_does_not_come(folder: Path) -> None:
    loopback = one_way(folder, seconds=1.0)
    loopback.plan = replace(loopback.plan, start_seconds=1.0)
    address = loopback.addresses["node2"]
    assert loopback.run("node2")["node2", RECEIVES].failed == f"node1 did not call {address} port 18590 in time"
    assert loopback.run("node1")["node1", SENDS].failed == (
        f"node2 cannot be reached at {address} port 18590: [Errno 111] Connection refused"
    )


def test_a_partner_with_another_secret_is_not_served(folder: Path) -> None:
    loopback = one_way(folder, seconds=2.0)
    loopback.plan = replace(loopback.plan, start_seconds=1.0)
    loopback.tokens["node1"] = "another"
    sender, receiver = failures(loopback)
    assert "node1 did not call" in receiver
    assert sender != ""
