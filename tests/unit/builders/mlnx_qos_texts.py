# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mlnx_qos prints, in the form of python/mlnx_qos of mlnx-tools: priority 3 lossless with trust in DSCP, and nothing set."""

from __future__ import annotations

DSCP = """DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:1 dscp:15,14,13,12,11,10,09,08,
\tprio:2 dscp:23,22,21,20,19,18,17,16,
\tprio:3 dscp:31,30,29,28,27,25,24,
\tprio:4 dscp:39,38,37,36,35,34,33,32,
\tprio:5 dscp:26,47,46,45,44,43,42,41,
\tprio:5 dscp:40,
\tprio:6 dscp:55,54,53,52,51,50,49,48,
\tprio:7 dscp:63,62,61,60,59,58,57,56,
Receive buffer size (bytes): 130944,262016,0,0,0,0,0,0,max_buffer_size=2069280
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0\x20\x20\x20
\tbuffer      0   0   0   1   0   0   0   0\x20\x20\x20
tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%
\t priority:  0
\t priority:  1
\t priority:  2
\t priority:  4
\t priority:  5
\t priority:  7
tc: 3 ratelimit: 100.5 Gbps, tsa: ets, bw: 50%
\t priority:  3
tc: 6 ratelimit: unlimited, tsa: strict
\t priority:  6
"""
PCP = """DCBX mode: Firmware controlled
Priority trust state: pcp
default priority:
Receive buffer size (bytes): 524160,0,0,0,0,0,0,0,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   0   0   0
\tbuffer      0   0   0   0   0   0   0   0
tc: 1 ratelimit: unlimited, tsa: vendor
\t priority:  0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
""" + "".join(f"tc: {tc} ratelimit: unlimited, tsa: vendor\n\t priority:  {tc}\n" for tc in range(2, 8))
WARNING = "****** WARNING: lldpad service is running and may overwrite your settings ******\n\n"
