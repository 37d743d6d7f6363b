# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver stage as a person runs it on machines of a lab, and what those say themselves of the driver."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lab import cluster, remote
from lab.cluster import Lab
from tests.verify.site import Site

GOOD, NEWER = "24.10-1.1.4.0", "24.10-2.1.8.0"
BUNDLES = "/srv/standins/mlnx_ofed"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
REBOOT_SECONDS = 240.0


class Hosts:
    """The machines of a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def run(self, name: str, command: str, *, timeout_seconds: float = 300.0) -> str:
        """What a command of the shell there prints; it must succeed."""
        answer = remote.execute(self.lab.plan.node(name), self.lab.folder, command, timeout_seconds=timeout_seconds)
        assert answer.status == 0, f"{name}: {command}: {answer.stdout}{answer.stderr}"
        return answer.stdout.strip()

    def write(self, name: str, path: str, content: bytes, mode: int) -> None:
        """A file in a folder that may have to be made, on a node."""
        self.run(name, f"mkdir -p {os.path.dirname(path)}")
        with closing(remote.connect(self.lab.plan.node(name), self.lab.folder)) as client, client.open_sftp() as files:
            with files.open(path, "wb") as file:
                file.write(content)
            files.chmod(path, mode)

    def reboot(self, name: str) -> None:
        """Until it answers again, rebooted."""
        node, before = self.lab.plan.node(name), self.run(name, BOOT_ID)
        remote.execute(node, self.lab.folder, "systemctl reboot")
        deadline = time.monotonic() + REBOOT_SECONDS
        while True:
            try:
                cluster.wait_until_ready(self.lab, [node], time.monotonic())
                if self.run(name, BOOT_ID) != before:
                    return
            except (*remote.NOT_YET, AssertionError):
                pass
            assert time.monotonic() < deadline, f"{name} has not rebooted"
            time.sleep(1)

    def driver(self, name: str) -> dict[str, str]:
        """What the machine's own tools say of mlx5_core: the file that modprobe takes, its version, and that of what is loaded."""
        command = "modinfo -F filename mlx5_core; modinfo -F version mlx5_core; cat /sys/module/mlx5_core/version 2>/dev/null || true"
        return dict(zip(("file", "on_disk", "loaded"), [*self.run(name, command).splitlines(), "", ""], strict=False))

    def bundle(self, way: str, version: str, distro: str = "debian12.1") -> dict[str, Any]:
        """rdma_driver for a stand-in of the scenario; way: its folder."""
        path = f"{BUNDLES}/{way}/MLNX_OFED_LINUX-{version}-{distro}-x86_64.tgz"
        checksum = self.run("node1", f"sha256sum {path}").split()[0]
        return {"stack": "mlnx_ofed", "version": version, "source": {"host_file": path}, "checksum": f"sha256:{checksum}"}


class Driver:
    """Runs playbooks with another rdma_driver than the inventory's."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self._file = site, folder / "driver.json"

    def words(self, driver: Mapping[str, Any], limit: str | None = None, **variables: Any) -> list[str]:
        self._file.write_text(json.dumps({"rdma_driver": driver, **variables}))
        return ["-e", f"@{self._file}", *(("--limit", limit) if limit else ())]

    def run(
        self, driver: Mapping[str, Any], playbook: str = "driver", limit: str | None = None, **variables: Any
    ) -> subprocess.CompletedProcess[str]:
        return self.site.run(playbook, *self.words(driver, limit, **variables))

    def findings(self, check: str, *statuses: str) -> dict[str, dict[str, str]]:
        """The findings of a check in the last run, by host, of those that have one of these statuses, or any."""
        found = [line for line in self.site.lines("findings.jsonl") if line["check"] == check]
        return {line["host"]: line for line in found if not statuses or line["status"] in statuses}

    def bad(self, host: str) -> list[str]:
        """What stops a host in the last run."""
        return sorted(
            {line["check"] for line in self.site.lines("findings.jsonl") if line["host"] == host and line["status"] in ("error", "unknown")}
        )

    def changed(self) -> list[dict[str, str]]:
        """What the last run has changed, a line for each host and task."""
        return self.site.lines("changes.jsonl")


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
