# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What smpquery and perfquery (infiniband-diags 43) say of a port of ibsim 0.10; of the longer ones, the lines that are read."""

from __future__ import annotations

PORTINFO = """\
# Port info: DR path slid 65535; dlid 65535; 0 port 1
Mkey:............................<not displayed>
GidPrefix:.......................0xfe80000000000000
Lid:.............................4
SMLid:...........................1
CapMask:.........................0x50c048
\t\t\t\tIsTrapSupported
LinkWidthEnabled:................1X or 4X
LinkWidthActive:.................4X
LinkState:.......................Active
PhysLinkState:...................LinkUp
LinkDownDefState:................Polling
LMC:.............................0
LinkSpeedActive:.................10.0 Gbps
NeighborMTU:.....................2048
MtuCap:..........................2048
LinkSpeedExtActive:..............53.125 Gbps
"""
#: As it is before there is a subnet manager.
UNCONFIGURED = (
    PORTINFO.replace("0xfe80000000000000", "0x0000000000000000")
    .replace("..4\n", "..0\n")
    .replace("..1\n", "..0\n")
    .replace("Active\n", "Initialize\n")
)
PKEYS = """\
   0: 0x7fff 0x8101 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000
   8: 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000
64 pkeys capacity for this port
"""
COUNTERS = """\
# Port counters: Lid 4 port 1 (CapMask: 0x1200)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............7
LinkDownedCounter:...............0
VL15Dropped:.....................0
PortXmitData:....................720
"""
