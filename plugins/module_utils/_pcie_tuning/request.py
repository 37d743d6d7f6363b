# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requested PCIe settings of a host, the file that holds them, and one setting with its current and planned value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._pci.control import encode_mrrs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import parse_address
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import AUTO, BARE_METAL, MODES

MRRS, ACS = "mrrs_bytes", "acs"
#: The effects of the role pcie on a live host; each has the variables pcie_EFFECT_allowed, pcie_EFFECT_required and pcie_EFFECT_reason.
MRRS_EFFECT, ACS_EFFECT = EFFECTS = ("mrrs", "acs_write")


@dataclass(frozen=True)
class PcieRequest:
    """The requested PCIe settings of a host.

    nics: PCI addresses, each for its whole card; mrrs_bytes: None leaves MRRS as it is; acs: one of MODES; mrrs_nics: those of nics
    whose MRRS is set, None for all of them.
    """

    nics: tuple[str, ...]
    mrrs_bytes: int | None
    acs: str
    mrrs_nics: tuple[str, ...] | None = None

    def __bool__(self) -> bool:
        """Return whether it requests anything that is lost at a reboot."""
        return bool(self.mrrs_cards) or (bool(self.nics) and self.acs in (AUTO, BARE_METAL))

    @property
    def mrrs_cards(self) -> tuple[str, ...]:
        """The NICs whose MRRS is set."""
        if self.mrrs_bytes is None:
            return ()
        return self.nics if self.mrrs_nics is None else self.mrrs_nics


@dataclass(frozen=True)
class Setting:
    """One setting of one function: old is the current value, new the requested one. For ACS: the enabled controls."""

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
        """Return a value in words: "0000:3d:00.0 MRRS of 512 bytes"."""
        return f"{self.address} {self.shown(value)}"

    def shown(self, value: Any) -> str:
        """Return the same without its function: "MRRS of 512 bytes", "ACS off"."""
        return f"MRRS of {value} bytes" if self.name == MRRS else f"ACS {', '.join(value) or 'off'}"

    @property
    def subject(self) -> str:
        """The setting in words: "MRRS of 0000:3d:00.0"."""
        return f"{'MRRS' if self.name == MRRS else 'ACS'} of {self.address}"

    @property
    def effect(self) -> str:
        """The effect of the role pcie that must be allowed for this change: EFFECTS has its variables."""
        return MRRS_EFFECT if self.name == MRRS else ACS_EFFECT

    def to_dict(self) -> dict[str, Any]:
        return {"address": self.address, "setting": self.name, "old": self.old, "new": self.new}


def make_request(nics: Sequence[str], mrrs_bytes: int | None, acs: str, mrrs_nics: Sequence[str] | None = None) -> PcieRequest:
    """Return the settings given to the module or in its file. Raises ParseError for an invalid address, size or mode."""
    if acs not in MODES:
        raise ParseError(f"acs: {acs!r} is none of {', '.join(MODES)}")
    if mrrs_bytes is not None:
        encode_mrrs(mrrs_bytes)
    addresses = {parse_address(each) for each in nics}
    fast = addresses if mrrs_nics is None else {parse_address(each) for each in mrrs_nics}
    if not fast <= addresses:
        raise ParseError(f"mrrs_nics: {', '.join(sorted(fast - addresses))} is not in nics")
    return PcieRequest(tuple(sorted(addresses)), mrrs_bytes, acs, None if fast == addresses else tuple(sorted(fast)))


def parse_request(text: str) -> PcieRequest:
    """Parse the JSON of a file that write_request made. Raises ParseError."""
    try:
        return make_request(**json.loads(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the PCIe settings of a host: {exc} in {quoted(text)}") from exc


def write_request(request: PcieRequest) -> str:
    """Return the file that the boot and the module apply."""
    some = {} if request.mrrs_nics is None else {"mrrs_nics": list(request.mrrs_nics)}
    return json.dumps({"nics": list(request.nics), MRRS: request.mrrs_bytes, ACS: request.acs, **some}, indent=2, sort_keys=True) + "\n"
