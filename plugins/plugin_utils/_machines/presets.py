# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The presets of known machines (rdma_preset), as data with their sources, and the rails that they give.

A PCI address is in a preset only if a public source gives it for every machine of this model. Where boards of one model have different
addresses, the intent names the NICs, and the preset expects each of them at a GPU of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """A machine. title: for messages. pci: the addresses of the compute NICs in the order of the rails, () if they differ by board.

    common: the keys of each compute rail. gpus, gpu_model: their number, and a word of the model's name. paired: whether rail N belongs to
    GPU N, by address. source: where the addresses, pairs and rates are published.
    """

    title: str
    pci: tuple[str, ...]
    nics: int
    common: Mapping[str, Any]
    gpus: int
    gpu_model: str
    paired: bool
    source: str

    @property
    def names(self) -> list[str]:
        return [f"rail{number}" for number in range(self.nics)]

    def rails(self) -> list[dict[str, Any]]:
        """Return the compute rails, none if the NICs' addresses differ by board."""
        return [
            {"name": name, "nic": {"pci": address}, **self.common} for name, address in zip(self.names, self.pci, strict=bool(self.pci))
        ]


_INFINIBAND_400 = {"link_layer": "infiniband", "rate_gbps": 400, "plane": "compute"}
_CX7_OF_DGX_H100 = ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")
PRESETS = {
    "dgx_h100": Preset(
        title="NVIDIA DGX H100",
        # ibp24s0 of the table is bus 0x18.
        pci=tuple(f"0000:{bus}:00.0" for bus in _CX7_OF_DGX_H100),
        nics=8,
        common=_INFINIBAND_400,
        gpus=8,
        gpu_model="H100",
        paired=True,
        source="https://docs.nvidia.com/dgx-basepod/deployment-guide-dgx-basepod/latest/sriov.html; the GPU of each NIC: the table "
        "Network Modules of the NVIDIA DGX H100 User Guide",
    ),
    "dgx_spark": Preset(
        title="NVIDIA DGX Spark",
        # Each port of the card has one function in either PCIe domain: two paths of four lanes each.
        pci=("0000:01:00.0", "0000:01:00.1", "0002:01:00.0", "0002:01:00.1"),
        nics=4,
        common={"link_layer": "roce", "rate_gbps": 200},
        gpus=1,
        gpu_model="GB10",
        paired=False,
        source="https://www.servethehome.com/the-nvidia-gb10-connectx-7-200gbe-networking-is-really-different",
    ),
    "hgx_b200": Preset(
        title="server with NVIDIA HGX B200",
        pci=(),
        nics=8,
        common={"rate_gbps": 400, "plane": "compute"},
        gpus=8,
        gpu_model="B200",
        paired=True,
        source="no public table of PCI addresses: each maker of servers has its own",
    ),
    "xe9680": Preset(
        title="Dell PowerEdge XE9680",
        pci=(),
        nics=8,
        # The NICs are cards of the buyer's choice: no rate.
        common={"plane": "compute"},
        gpus=8,
        gpu_model="",
        paired=True,
        source="no public table of PCI addresses: they differ by the cards in the slots",
    ),
    "nd_h100_v5": Preset(
        title="Azure ND H100 v5",
        pci=tuple(f"{domain:04x}:00:00.0" for domain in range(0x101, 0x109)),
        nics=8,
        common=_INFINIBAND_400,
        gpus=8,
        gpu_model="H100",
        # A virtual machine does not show the PCIe switches.
        paired=False,
        source="https://github.com/Azure/azhpc-images/blob/master/topology/ndv5-topo.xml",
    ),
}


def with_preset(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a host's variables with the defaults of its preset. A given value has priority.

    Without rdma_rails, the rails are those of the preset. Else each given rail of its names, or each compute rail where the preset knows no
    addresses, gets the keys that it lacks.
    """
    name, given = variables.get("rdma_preset"), variables.get("rdma_rails")
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None or not (given is None or isinstance(given, list)):
        return variables
    defaults = {rail["name"]: rail for rail in preset.rails()}
    if given is None:
        # Without any rail, the schema reports that rdma_rails is missing.
        return {**variables, "rdma_rails": list(defaults.values())} if defaults else variables
    return {**variables, "rdma_rails": [_filled(rail, defaults, preset) for rail in given]}


def _filled(rail: Any, defaults: Mapping[str, Mapping[str, Any]], preset: Preset) -> Any:
    if not isinstance(rail, Mapping) or rail.get("role") == "storage":
        return rail
    of = preset.common if not preset.pci else defaults.get(str(rail.get("name")), {})
    missing = {key: value for key, value in of.items() if rail.get(key) is None}
    return {**rail, **missing} if missing else rail
