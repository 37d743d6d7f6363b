# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One trouble, one wording: what OpenSSH says of hosts that cannot be reached."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._unreachable import why_unreachable

HEAD = 'Task failed: Data could not be sent to remote host "127.0.0.1". Make sure this host can be reached over ssh: '
CLOSED = "the connection is closed before SSH has begun, or is lost"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        # OpenSSH_9.2p1, all seen on containers that were powered off within one run.
        (HEAD + "kex_exchange_identification: Connection closed by remote host\nConnection closed by 127.0.0.1 port 23013", CLOSED),
        (HEAD + "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 127.0.0.1 port 23007", CLOSED),
        (HEAD + "ssh: connect to host 127.0.0.1 port 22: Connection refused", "the connection is refused: no SSH server listens there"),
        (HEAD + "ssh: connect to host 192.0.2.1 port 22: Connection timed out", "nothing answers in time"),
        (HEAD + "Connection timed out during banner exchange", "nothing answers in time"),
        (HEAD + "ssh: connect to host 192.0.2.1 port 22: No route to host", "there is no route to it"),
        (HEAD + "ssh: Could not resolve hostname nope: Name or service not known", "its name cannot be resolved"),
        (HEAD + "root@127.0.0.1: Permission denied (publickey,password).", "SSH does not let us in"),
        (HEAD + "Host key verification failed.", "its SSH host key is not the known one"),
        ("\n  something new\nand more", "something new"),
        ("", "no reason given"),
    ],
)
def test_the_reason(said: str, reason: str) -> None:
    assert why_unreachable(said) == reason
