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


#: fabric → source → the models that it states: name, ports, gbps, parts of a port.
_MODELS = {
    "infiniband": {
        f"{_LIBRARY}Mellanox/qm8700.yml": ("qm8700", 40, 200, (1, 2)),
        f"{_LIBRARY}Mellanox/QM8790.yaml": ("qm8790", 40, 200, (1, 2)),
        "https://docs.nvidia.com/networking/display/QM97X0PUB/Interfaces": ("qm9700", 64, 400, (1, 2)),
        f"{_LIBRARY}Nvidia/Q3400-RA.yaml": ("q3400", 144, 800, (1,)),
    },
    "ethernet": {
        f"{_LIBRARY}Mellanox/SN3700C.yml": ("sn3700c", 32, 100, (1, 2, 4)),
        f"{_LIBRARY}Mellanox/SN3700.yml": ("sn3700", 32, 200, (1, 2, 4)),
        f"{_LIBRARY}Mellanox/SN4600C.yml": ("sn4600c", 64, 100, (1, 2)),
        f"{_LIBRARY}Mellanox/SN4600.yml": ("sn4600", 64, 200, (1, 2)),
        f"{_LIBRARY}Mellanox/SN4700.yml": ("sn4700", 32, 400, (1, 2, 4)),
        f"{_LIBRARY}Nvidia/SN5600.yaml": ("sn5600", 64, 800, (1, 2, 4)),
        f"{_LIBRARY}Nvidia/SN5610.yaml": ("sn5610", 64, 800, (1, 2, 4)),
        f"{_LIBRARY}Arista/DCS-7060DX5-64S-F.yaml": ("arista-7060dx5-64s", 64, 400, (1, 2, 4)),
        f"{_LIBRARY}Cisco/N9K-C9332D-GX2B.yaml": ("cisco-9332d-gx2b", 32, 400, (1, 2, 4)),
    },
}
#: name → model.
CATALOGUE = {
    model[0]: SwitchModel(*model, fabric, source=source, read=READ)
    for fabric, models in _MODELS.items()
    for source, model in models.items()
}
