# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cabling plan in the form of rdma_fabric.planes.NAME.plan, as `rdma.cluster.plan --tags topology` writes it, read for a lab.

Port 5 of a switch is the interface swp5. The hosts are the nodes of the lab, with their rails as devices.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.errors import LabError

#: The interfaces of a host (rail0, rail1) and of a switch (swp1, swp2).
HOST_PORT, SWITCH_PORT = "rail", "swp"
TIERS = ("leaf", "spine", "core")
EXAMPLE = "{from: node1 rail0, to: leaf1/1} or {from: leaf1/5-6, to: spine1/1-2}"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")
_PORTS = re.compile(r"([a-z][a-z0-9-]{0,14})/([1-9][0-9]{0,3}(?:-[1-9][0-9]{0,3})?(?:,[1-9][0-9]{0,3}(?:-[1-9][0-9]{0,3})?)*)")
_DEVICE = re.compile(r"([a-z][a-z0-9-]{0,14}) ([a-z0-9]{1,15})")

End = tuple[str, str]
"""A node and its interface."""


@dataclass(frozen=True)
class Cable:
    """a, b: (node, interface). The host of a cable is b."""

    a: End
    b: End


@dataclass(frozen=True)
class Cabling:
    """switches: in the order of the file; hosts: in that of their names; cables: first those between switches."""

    switches: tuple[str, ...]
    hosts: list[str]
    cables: tuple[Cable, ...]

    def check_hosts(self, nodes: Sequence[str], rails: Sequence[str]) -> None:
        """Raise LabError unless each rail of each node has a cable, and nothing else has one."""
        found = {cable.b for cable in self.cables if cable.b[0] in self.hosts}
        expected = {(node, rail) for node in nodes for rail in rails}
        for words, ends in (("has no cable for", expected - found), ("has a cable for", found - expected)):
            if ends:
                names = ", ".join(" ".join(end) for end in sorted(ends))
                raise LabError(f"The cabling plan {words} {names}. The lab has {nodes[0]} to {nodes[-1]}, each with {' and '.join(rails)}.")


def read_file(path: Path) -> str:
    """Return the text of a cabling plan. Raises LabError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError(f"--fabric is clos or a file with a cabling plan; there is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path} cannot be read: {error}") from None
    read_cabling(text)
    return text


@functools.lru_cache(maxsize=8)
def read_cabling(text: str) -> Cabling:
    """Return the cabling of a text. Raises LabError for one that this lab cannot build."""
    try:
        data: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"The cabling plan is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict) or not isinstance(data.get("switches"), dict) or not isinstance(data.get("links"), list):
        raise LabError("The cabling plan has no switches or no links.")
    for name, switch in data["switches"].items():
        if _NAME.fullmatch(str(name)) is None or not isinstance(switch, dict) or switch.get("tier") not in TIERS:
            raise LabError(f"The cabling plan: '{name}' needs a tier ({', '.join(TIERS)}), and a name of lower-case letters, digits and -.")
    switches = tuple(data["switches"])
    cables = [cable for link in data["links"] for cable in _cables(link, switches)]
    if twice := [end for end, count in Counter(end for cable in cables for end in (cable.a, cable.b)).items() if count > 1]:
        raise LabError(f"The cabling plan has several cables at {' '.join(twice[0])}.")
    between = [cable for cable in cables if cable.b[0] in switches]
    of_hosts = [cable for cable in cables if cable.b[0] not in switches]
    hosts = sorted({cable.b[0] for cable in of_hosts}, key=lambda name: (len(name), name))
    return Cabling(switches, hosts, (*between, *of_hosts))


def _cables(link: Any, switches: Sequence[str]) -> Iterator[Cable]:
    if not isinstance(link, dict) or set(link) != {"from", "to"}:
        raise LabError(f"The cabling plan: expected {EXAMPLE}; got {link}.")
    one, other = (_ends(str(link[key]), switches) for key in ("from", "to"))
    if len(one) != len(other) or not {one[0][0], other[0][0]} & set(switches):
        raise LabError(f"The cabling plan: both ends need the same number of ports, and one a switch; got {link}.")
    for a, b in zip(one, other, strict=True):
        yield Cable(*((a, b) if a[0] in switches else (b, a)))


def _ends(text: str, switches: Sequence[str]) -> list[End]:
    """Return the ends of "leaf1/5-6", or that of "node1 rail0"."""
    if found := _PORTS.fullmatch(text):
        if found[1] not in switches:
            raise LabError(f"The cabling plan: '{found[1]}' is not one of its switches.")
        ranges = [[int(end) for end in each.split("-")] for each in found[2].split(",")]
        return [(found[1], f"{SWITCH_PORT}{port}") for each in ranges for port in range(each[0], each[-1] + 1)]
    if (found := _DEVICE.fullmatch(text)) and found[1] not in switches:
        return [(found[1], found[2])]
    raise LabError(f"The cabling plan: expected {EXAMPLE}; got '{text}'.")
