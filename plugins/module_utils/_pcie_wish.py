# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wished of a host's PCIe settings, the file that says it, and a setting as it was found and as it shall be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pci_control import encode_mrrs
from ansible_collections.rdma.cluster.plugins.module_utils._pci_path import parse_address
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import AUTO, BARE_METAL, MODES

MRRS, ACS = "mrrs_bytes", "acs"


@dataclass(frozen=True)
class Wish:
    """nics: PCI addresses, each for its whole card; mrrs_bytes: None leaves them; acs: one of MODES."""

    nics: tuple[str, ...]
    mrrs_bytes: int | None
    acs: str

    def __bool__(self) -> bool:
        """Whether it asks for anything that is lost at a reboot."""
        return bool(self.nics) and (self.mrrs_bytes is not None or self.acs in (AUTO, BARE_METAL))


@dataclass(frozen=True)
class Setting:
    """One setting of one function: old as it was found, new as wished. Of ACS: the controls that are enabled."""

    address: str
    name: str
    old: Any
    new: Any
    offset: int
    mask: int
    bits: int

    @property
    def differs(self) -> bool:
        return bool(self.old != self.new)

    def words(self, value: Any) -> str:
        """A value for a person: "0000:3d:00.0 read requests of 512 bytes"."""
        return f"{self.address} {self.shown(value)}"

    def shown(self, value: Any) -> str:
        """The same without its function: "read requests of 512 bytes", "ACS off"."""
        return f"read requests of {value} bytes" if self.name == MRRS else f"ACS {', '.join(value) or 'off'}"

    @property
    def subject(self) -> str:
        """For a person: "read requests of 0000:3d:00.0"."""
        return f"{'read requests' if self.name == MRRS else 'ACS'} of {self.address}"

    def to_dict(self) -> dict[str, Any]:
        return {"address": self.address, "setting": self.name, "old": self.old, "new": self.new}


def make_wish(nics: Sequence[str], mrrs_bytes: int | None, acs: str) -> Wish:
    """A wish of what the module is given, or its file says. Raises ParseError for an address, a size or a mode that is none."""
    if acs not in MODES:
        raise ParseError(f"acs: {acs!r} is none of {', '.join(MODES)}")
    if mrrs_bytes is not None:
        encode_mrrs(mrrs_bytes)
    return Wish(tuple(sorted({parse_address(each) for each in nics})), mrrs_bytes, acs)


def parse_wish(text: str) -> Wish:
    """The JSON of a file that write_wish made. Raises ParseError."""
    try:
        return make_wish(**json.loads(text))
    except (ValueError, TypeError, AttributeError) as exc:
        raise ParseError(f"not the PCIe settings of a host: {exc} in {text[:200]!r}") from exc


def write_wish(wish: Wish) -> str:
    """The file that the boot and the module apply."""
    return json.dumps({"nics": list(wish.nics), MRRS: wish.mrrs_bytes, ACS: wish.acs}, indent=2, sort_keys=True) + "\n"
