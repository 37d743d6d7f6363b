# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where hosts reach each other if nothing else is told: at the address that our own SSH session came in at."""

from __future__ import annotations

import ipaddress

from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session


def session_address(session: Session | None) -> str | None:
    """The address of a host's end of our session, as its sshd says it. session: of the host's facts.

    None without a session (a local connection), and for a loopback address (a forwarded port), by which no other host reaches it.
    """
    address = session.address if session else None
    if address is None or ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return None
    return address
