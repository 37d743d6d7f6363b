# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Known models of switches: number and rate of ports, and the ways to split a port, each with its source.

Price, power and latency are None, because the sources do not state them: rdma_plan.switch and rdma_plan.models set them. rdma_plan.models
also replaces and adds models. If no source states the ways to split a port, they are unknown, and the port is not split. SONiC's
platform.json, which the vendor maintains, lists the ports of a switch with their rates and breakout modes; only modes that leave all ports
usable at their full rate in sum are used here.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import SwitchModel

#: The dates on which SONiC's files and the other sources of ports were read.
_READ_SONIC, _READ_OTHERS = "2026-11-27", "2026-11-26"
_LIBRARY = "https://github.com/netbox-community/devicetype-library/blob/master/device-types/"
_SONIC = "https://github.com/sonic-net/sonic-buildimage/blob/086b03bd70f9e211aaaf5f6aefe0790b508d2a94/device/"
_NVIDIA = "https://docs.nvidia.com/networking/display/"
_UNKNOWN = (1,)


def _sonic(platform: str) -> tuple[str, str]:
    """Return the source of ports and rates, and that of the ways to split them: one file."""
    url = f"{_SONIC}{platform}/platform.json"
    return url, url


#: name, fabric, ports, gbps, parts of a port, source of ports and gbps, source of the parts ("" if unknown).
_MODELS = (
    ("qm8700", "infiniband", 40, 200, _UNKNOWN, f"{_LIBRARY}Mellanox/qm8700.yml", ""),
    ("qm8790", "infiniband", 40, 200, _UNKNOWN, f"{_LIBRARY}Mellanox/QM8790.yaml", ""),
    # Two fibers of an NDR port, each with two of its four lanes: NDR200.
    ("qm9700", "infiniband", 64, 400, (1, 2), f"{_NVIDIA}QM97X0PUB/Interfaces", f"{_NVIDIA}800GMMS4X00NS/Overview"),
    ("q3400", "infiniband", 144, 800, _UNKNOWN, f"{_LIBRARY}Nvidia/Q3400-RA.yaml", ""),
    ("sn3700c", "ethernet", 32, 100, (1, 2, 4), *_sonic("mellanox/x86_64-mlnx_msn3700c-r0")),
    ("sn3700", "ethernet", 32, 200, (1, 2, 4), *_sonic("mellanox/x86_64-mlnx_msn3700-r0")),
    ("sn4600c", "ethernet", 64, 100, (1, 2), *_sonic("mellanox/x86_64-mlnx_msn4600c-r0")),
    ("sn4600", "ethernet", 64, 200, (1, 2), *_sonic("mellanox/x86_64-mlnx_msn4600-r0")),
    ("sn4700", "ethernet", 32, 400, (1, 2, 4), *_sonic("mellanox/x86_64-mlnx_msn4700-r0")),
    ("sn5400", "ethernet", 64, 400, (1, 2, 4), *_sonic("mellanox/x86_64-nvidia_sn5400-r0")),
    ("sn5600", "ethernet", 64, 800, (1, 2, 4), *_sonic("mellanox/x86_64-nvidia_sn5600-r0")),
    ("sn5610", "ethernet", 64, 800, (1, 2, 4), *_sonic("mellanox/x86_64-nvidia_sn5610n-r0")),
    ("arista-7060dx5-64s", "ethernet", 64, 400, (1, 2, 4, 8), *_sonic("arista/x86_64-arista_7060dx5_64s")),
    ("cisco-9332d-gx2b", "ethernet", 32, 400, _UNKNOWN, f"{_LIBRARY}Cisco/N9K-C9332D-GX2B.yaml", ""),
)
#: name → model.
CATALOGUE = {
    name: SwitchModel(
        name,
        ports,
        gbps,
        parts,
        fabric,
        source=source,
        breakout_source=breakout_source,
        read=_READ_SONIC if source.startswith(_SONIC) else _READ_OTHERS,
    )
    for name, fabric, ports, gbps, parts, source, breakout_source in _MODELS
}
