# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a host cannot be reached, in words that are the same for every host with the same trouble.

OpenSSH words one trouble in several ways (closed, reset, with and without an address and a port), so that hosts that are off
together would not be told together.
"""

from __future__ import annotations

import re

#: (what OpenSSH's client says, 8.0 to 9.9; what it means). The first that fits counts.
REASONS = (
    (r"identification has changed|host key verification failed", "its SSH host key is not the known one"),
    (r"permission denied|too many authentication failures|no supported authentication", "SSH does not let us in"),
    (r"could not resolve hostname|name or service not known", "its name cannot be resolved"),
    (r"connection refused", "the connection is refused: no SSH server listens there"),
    (r"no route to host|network is unreachable", "there is no route to it"),
    (r"timed out|timeout", "nothing answers in time"),
    (r"connection (was )?(closed|reset)|broken pipe", "the connection is closed before SSH has begun, or is lost"),
)


def why_unreachable(said: str) -> str:
    """What Ansible says of a host that it cannot reach, as one of REASONS, or its own first line where none fits."""
    for pattern, reason in REASONS:
        if re.search(pattern, said, re.IGNORECASE):
            return reason
    return next((line.strip() for line in said.splitlines() if line.strip()), "no reason given")
