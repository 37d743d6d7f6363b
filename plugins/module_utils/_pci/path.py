# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI addresses, the path of a function to the root as shown in /sys/devices, and the capacity of a link."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

# A domain behind a VMD controller has more than four digits: 10000:e1:00.0.
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# nvidia-smi writes eight digits and capitals; NVIDIA's drivers before 2010 write a dot for the second colon.
_ANY_ADDRESS = re.compile(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{2})[:.]([0-9a-fA-F]{2})\.([0-7])")
_HOST_BRIDGE = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
_8B10B, _128B130B, _FLIT = 8 / 10, 128 / 130, 242 / 256
# The payload's share of a link's bytes, after headers and acknowledgments, with 256 bytes of payload in a packet.
_PAYLOAD_SHARE = 0.91


def parse_address(text: str) -> str:
    """Return the address as /sys spells it: "00000000:1B:00.0" of nvidia-smi -> "0000:1b:00.0". Raises ParseError."""
    match = _ANY_ADDRESS.fullmatch(text.strip())
    if match is None:
        raise ParseError(f"not a PCI address: {quoted(text)}, expected the form '0000:1b:00.0'")
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()


def function_paths(path: str) -> list[str]:
    """Return the paths of the function at a path and of those above it, up to the root port; itself first.

    ".../pci0000:00/0000:00:01.0/0000:01:00.0" -> [that, ".../pci0000:00/0000:00:01.0"]
    """
    parts = path.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts) - 1, -1, -1) if ADDRESS.fullmatch(parts[end])]


def host_bridge(path: str) -> str | None:
    """Return the host bridge that a function is below, "pci0000:00"; None for a path without a PCI function."""
    return next((part for part in path.split("/") if _HOST_BRIDGE.fullmatch(part)), None)


def generation(speed_gtps: float) -> int | None:
    """Return the generation of PCI Express that introduced a speed: 16.0 -> 4; None for an unknown speed."""
    return _GENERATIONS.get(speed_gtps)


def payload_gbps(speed_gtps: float, width: int) -> float:
    """Return the payload that a link carries in one direction, in 10^9 bit/s: 16 lanes of 16 GT/s -> 229.

    Line coding is 8b/10b below 8 GT/s, 128b/130b below 64 GT/s, flits of 256 bytes with 242 of them for packets above.
    """
    coding = _8B10B if speed_gtps < 8 else _128B130B if speed_gtps < 64 else _FLIT
    return speed_gtps * width * coding * _PAYLOAD_SHARE
