# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Soft-RoCE links from one file, at boot and by hand: `soft_links.pyz [--config FILE]`.

rdma-soft-links.service runs it on the host as a program of its own.
The file is a JSON list of {"name": RDMA device, "type": "rxe", "nic": {"pci": address} or {"mac": address}}; a NIC is
searched again each time, because interface names change. Sources: rdma-link(8), Linux drivers/infiniband/sw/rxe.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CONFIG = "/etc/rdma-cluster/soft-links.json"
#: At boot a NIC may appear late.
NIC_WAIT_SECONDS = 30.0


def find_netdev(nic: dict[str, str], root: Path = Path("/")) -> str | None:
    """Return the interface of a NIC named by PCI address (virtio adds a level of its own in between) or by MAC."""
    if "pci" in nic:
        function = root / "sys/bus/pci/devices" / nic["pci"].lower()
        found = [*function.glob("net/*"), *function.glob("virtio*/net/*")]
        return min(path.name for path in found) if found else None
    for address in sorted((root / "sys/class/net").glob("*/address")):
        if address.read_text().strip().lower() == nic["mac"].lower():
            return address.parent.name
    return None


def parent_of(device: str, root: Path = Path("/")) -> str | None:
    """Return the interface that a software RDMA device is on; None if there is no such device."""
    try:
        return (root / "sys/class/infiniband" / device / "parent").read_text().strip()
    except FileNotFoundError:
        return None


def is_right(link: dict[str, Any], root: Path = Path("/")) -> bool:
    """Return whether the link's device exists on the link's NIC."""
    netdev = find_netdev(link["nic"], root)
    return netdev is not None and parent_of(link["name"], root) == netdev


def apply(link: dict[str, Any], deadline: float) -> str | None:
    """Make one link right; return None, or the reason why it is not."""
    while (netdev := find_netdev(link["nic"])) is None:
        if time.monotonic() > deadline:
            return f"{link['name']}: there is no NIC {link['nic']}"
        time.sleep(0.2)
    parent = parent_of(link["name"])
    if parent == netdev:
        return None
    commands = [["rdma", "link", "add", link["name"], "type", link["type"], "netdev", netdev]]
    if parent is not None:
        commands.insert(0, ["rdma", "link", "delete", link["name"]])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # pylint: disable=ansible-bad-function
        if done.returncode:
            return f"{link['name']}: `{' '.join(command)}`: {done.stderr.strip() or done.returncode}"
    return None


def main() -> int:
    """Return 0 if every link exists, else 1 with a line for each that does not."""
    parser = argparse.ArgumentParser(description="Create the Soft-RoCE links of a file.")
    parser.add_argument("--config", default=CONFIG)
    links = json.loads(Path(parser.parse_args().config).read_text())
    deadline = time.monotonic() + NIC_WAIT_SECONDS
    failures = [reason for reason in (apply(link, deadline) for link in links) if reason]
    for reason in failures:
        sys.stderr.write(f"{reason}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
