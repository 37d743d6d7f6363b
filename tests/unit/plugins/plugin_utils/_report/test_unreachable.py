# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One trouble, one wording: what OpenSSH says of hosts that cannot be reached."""

from __future__ import annotations

from collections import defaultdict

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.progress import TROUBLES, remedy_of, remedy_of_failure, why_unreachable

HEAD = 'Task failed: Data could not be sent to remote host "127.0.0.1". Make sure this host can be reached over ssh: '
CLOSED = "the connection closes before SSH starts, or is lost"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        # OpenSSH_9.2p1, all seen on containers that were powered off within one run.
        (HEAD + "kex_exchange_identification: Connection closed by remote host\nConnection closed by 127.0.0.1 port 23013", CLOSED),
        (HEAD + "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 127.0.0.1 port 23007", CLOSED),
        (
            HEAD + "ssh: connect to host 127.0.0.1 port 22: Connection refused",
            "it refuses the connection: no SSH server listens on the port",
        ),
        (HEAD + "ssh: connect to host 192.0.2.1 port 22: Connection timed out", "it does not answer in time"),
        (HEAD + "Connection timed out during banner exchange", "it does not answer in time"),
        (HEAD + "ssh: connect to host 192.0.2.1 port 22: No route to host", "the control node has no route to it"),
        (HEAD + "ssh: Could not resolve hostname nope: Name or service not known", "the control node cannot resolve its name"),
        (HEAD + "root@127.0.0.1: Permission denied (publickey,password).", "its SSH server rejects the login"),
        (HEAD + "Host key verification failed.", "its SSH host key is not in known_hosts on the control node"),
        ("\n  something new\nand more", "something new"),
        ("", "no reason given"),
    ],
)
def test_the_reason(answer: str, reason: str) -> None:
    assert why_unreachable(answer) == reason


#: OpenSSH_9.2p1 on Debian 12, as Ansible hands it on.
CHANGED = """Task failed: Failed to connect to the host via ssh: @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
The fingerprint for the ED25519 key sent by the remote host is
SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8.
Please contact your system administrator.
Add correct host key in /home/ada/.ssh/known_hosts to get rid of this message.
Offending ECDSA key in /home/ada/.ssh/known_hosts:17
  remove with:
  ssh-keygen -f "/home/ada/.ssh/known_hosts" -R "[192.0.2.4]:2222"
Host key for [192.0.2.4]:2222 has changed and you have requested strict checking.
Host key verification failed."""


def test_a_changed_host_key_is_fixed_on_the_control_node() -> None:
    assert why_unreachable(CHANGED) == "its SSH host key differs from the one in known_hosts on the control node"
    remedy = remedy_of(CHANGED, "node4")
    assert "line 17 of /home/ada/.ssh/known_hosts" in remedy
    assert "`ssh-keygen -f /home/ada/.ssh/known_hosts -R '[192.0.2.4]:2222'`" in remedy
    assert "on the control node, remove" in remedy
    assert "Compare it with SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8, the key" in remedy
    assert "ssh_host_ed25519_key.pub" in remedy


def test_a_changed_key_whose_place_is_not_printed_still_has_a_command() -> None:
    remedy = remedy_of("Host key for node4 has changed and you have requested strict checking.", "node4")
    assert "`ssh-keygen -R node4`" in remedy


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "ssh: Could not resolve hostname node4.example: Name or service not known",
            "On the control node, run `getent hosts node4.example`",
        ),
        ("ssh: connect to host 192.0.2.4 port 22: No route to host", "On the control node, run `ip route get 192.0.2.4`"),
        ("ssh: connect to host 192.0.2.4 port 22: Connection timed out", "On the control node, run `ping 192.0.2.4`"),
        ("ssh: connect to host 192.0.2.4 port 22: Connection refused", "On the console of node4"),
        ("ada@192.0.2.4: Permission denied (publickey,password).", "On the control node, try `ssh ada@192.0.2.4 true`"),
        ("No RSA host key is known for [192.0.2.4]:2222 and you have requested", "On the control node, run `ssh -p 2222 192.0.2.4` once"),
        ("Failed to create temporary directory. In some cases …", "On node4, run `df -h ~ /tmp`"),
        ("No ED25519 host key is known for node4 and you have requested strict checking.", "On the control node, run `ssh node4` once"),
        ("\n  something new\nand more", ""),
    ],
)
def test_the_remedy_names_the_machine(message: str, words: str) -> None:
    remedy = remedy_of(message, "node4")
    assert words in remedy if words else remedy == ""


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.reason)
def test_every_remedy_says_where_to_act(trouble: object) -> None:
    remedy = trouble.remedy.format_map(defaultdict(lambda: "X", host="node4"))  # type: ignore[attr-defined]
    assert "control node" in remedy or "node4" in remedy or "playbook" in remedy
    assert "{" not in remedy


def test_a_failed_task_is_explained_only_where_nothing_can_run() -> None:
    python = "The module interpreter '/usr/bin/python3' was not found.\n/bin/sh: 1: /usr/bin/python3: not found"
    assert "install Python 3.9" in remedy_of_failure(python, "node4")
    assert "--ask-become-pass" in remedy_of_failure("Task failed: Missing sudo password", "node4")
    assert remedy_of_failure("Failed to fetch https://repo.example: Connection timed out", "node4") == ""
