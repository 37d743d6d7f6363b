# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many bytes a switch port must be able to hold after it has asked for a pause, so that a lossless priority loses nothing."""

from __future__ import annotations

import math

#: In glass and copper, as SONiC reckons (sonic-swss, cfgmgr/buffer_headroom_*.lua).
METRES_PER_SECOND = 198_000_000
#: What the other side may take to obey, in quanta of 512 bits by rate in 10^9 bit/s: IEEE 802.3, 31B.3.7, as SONiC lists it.
PAUSE_QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905}
QUANTUM_BYTES = 64
#: Beside the MTU: the Ethernet header with a VLAN tag, and the check sum.
FRAME_BYTES = 22
#: The pause frame itself, with preamble and gap.
PAUSE_FRAME_BYTES = 64 + 20


def headroom_bytes(cable_length_m: float, rate_gbps: float, mtu_bytes: int) -> int | None:
    """The headroom of one lossless priority of one port; None for a rate of which no time to obey is known here.

    The parts, as in IEEE 802.1Q's annex on buffers for PFC: what is in the cable while the pause frame travels there and the last
    bits travel back; a frame of ours that the pause frame has to wait for, and one of theirs that has just begun; the pause frame;
    the time to obey. What the switch's own MAC and PHY take is its maker's to add.
    """
    quanta = PAUSE_QUANTA.get(int(rate_gbps)) if float(rate_gbps).is_integer() else None
    if quanta is None:
        return None
    in_cable = 2 * cable_length_m / METRES_PER_SECOND * rate_gbps * 1e9 / 8
    frames = 2 * (mtu_bytes + FRAME_BYTES)
    return math.ceil(in_cable) + frames + PAUSE_FRAME_BYTES + quanta * QUANTUM_BYTES
