# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Known models of switches: number and rate of ports from the source, and the ways to split a port.

Price, power and latency are None, because the sources do not state them: rdma_plan.switch and rdma_plan.models set them. rdma_plan.models
also replaces and adds models. The ways to split a port depend on cable and firmware: check them with the vendor.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import SwitchModel

#: The date on which the sources were read.
READ = "2026-11-26"
_LIBRARY = "https://github.com/netbox-community/devicetype-library/blob/master/device-types/"


def _model(name: str, ports: int, gbps: float, breakout: tuple[int, ...], fabric: str, file: str) -> SwitchModel:
    return SwitchModel(name, ports, gbps, breakout, fabric, source=f"{_LIBRARY}{file}", read=READ)


_MODELS = (
    _model("qm8700", 40, 200, (1, 2), "infiniband", "Mellanox/qm8700.yml"),
    _model("qm8790", 40, 200, (1, 2), "infiniband", "Mellanox/QM8790.yaml"),
    _model("qm9700", 64, 400, (1, 2), "infiniband", "Nvidia/QM9700.yaml"),
    _model("q3400", 144, 800, (1,), "infiniband", "Nvidia/Q3400-RA.yaml"),
    _model("sn3700c", 32, 100, (1, 2, 4), "ethernet", "Mellanox/SN3700C.yml"),
    _model("sn3700", 32, 200, (1, 2, 4), "ethernet", "Mellanox/SN3700.yml"),
    _model("sn4600c", 64, 100, (1, 2, 4), "ethernet", "Mellanox/SN4600C.yml"),
    _model("sn4600", 64, 200, (1, 2), "ethernet", "Mellanox/SN4600.yml"),
    _model("sn4700", 32, 400, (1, 2, 4), "ethernet", "Mellanox/SN4700.yml"),
    _model("sn5600", 64, 800, (1, 2, 4), "ethernet", "Nvidia/SN5600.yaml"),
    _model("arista-7060dx5-64s", 64, 400, (1, 2, 4), "ethernet", "Arista/DCS-7060DX5-64S-F.yaml"),
    _model("cisco-9332d-gx2b", 32, 400, (1, 2, 4), "ethernet", "Cisco/N9K-C9332D-GX2B.yaml"),
)
#: name → model.
CATALOGUE = {model.name: model for model in _MODELS}
