# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress of a long task: elapsed time, number of finished hosts, and the hosts it waits for. Reasons and remedies for lost hosts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import names

#: The time before the first line and between lines, and between lines after the first minute.
FIRST_SECONDS = 10.0
LATER_SECONDS = 30.0
SLOW_SECONDS = 60.0


#: Another source of a task's progress: time of the clock → text, None while there is none.
Watch = Callable[[float], str | None]


class Progress:
    """The progress of the current task. Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._task = ""
        self._begun = 0.0
        self._shown = 0.0
        self._waiting: dict[str, None] = {}
        self._done = 0
        self._watch: Watch | None = None

    def begin(self, task: str, now: float, watch: Watch | None = None) -> None:
        self._task, self._begun, self._shown = task, now, now
        self._waiting, self._done = {}, 0
        self._watch = watch

    def host_begins(self, host: str) -> None:
        self._waiting[host] = None

    def host_ends(self, host: str) -> None:
        self._done += self._waiting.pop(host, 0) is None

    def due(self, now: float) -> str | None:
        """The line to print now, if one is due."""
        elapsed = now - self._begun
        interval = FIRST_SECONDS if elapsed <= SLOW_SECONDS else LATER_SECONDS
        if not self._waiting or now - self._shown < interval:
            return None
        self._shown = now
        seen = self._watch(now) if self._watch is not None else None
        known = seen or f"{self._done} hosts done, waiting for {names(list(self._waiting))}"
        return f"  … {self._task}: {elapsed:.0f} s, {known}"


@dataclass(frozen=True)
class _Trouble:
    """pattern: the message of OpenSSH's client (8.0 to 9.9), sudo or Ansible; remedy: a template, see _places.

    fails: whether Ansible counts a host with it as failed instead of unreachable.
    """

    pattern: str
    reason: str
    remedy: str
    fails: bool = False


#: The first match counts.
TROUBLES = (
    _Trouble(
        r"identification has changed|host key for .* has changed",
        "its SSH host key differs from the one in known_hosts on the control node",
        "1. On the console of {host}, run `ssh-keygen -lf /etc/ssh/ssh_host_{key_type}_key.pub`. Compare it with {fingerprint}, the "
        "key that the control node receives. 2. If they are equal, {host} was reinstalled or replaced: on the control node, remove the "
        "old key ({known_hosts}) with `{remove}`. 3. If they differ, another machine answers at {name}: correct `ansible_host`, or look "
        "for a duplicate address.",
    ),
    _Trouble(
        r"no \S+ host key is known|host key verification failed",
        "its SSH host key is not in known_hosts on the control node",
        "On the control node, run `ssh {target}` once, compare the fingerprint with the host's console, and accept it.",
    ),
    _Trouble(
        r"unprotected private key|bad permissions",
        "SSH ignores the private key, because other users of the control node can read it",
        "On the control node, run `chmod 600` on the file of `ansible_ssh_private_key_file`.",
    ),
    _Trouble(
        r"permission denied|too many authentication failures|no supported authentication",
        "its SSH server rejects the login",
        "1. On the control node, try `ssh {login} true`; correct `ansible_user` or `ansible_ssh_private_key_file` in the inventory. "
        "2. On the console of {host}, add the public key to the user's `~/.ssh/authorized_keys`.",
    ),
    _Trouble(
        r"could not resolve hostname|name or service not known",
        "the control node cannot resolve its name",
        "On the control node, run `getent hosts {address}`; set `ansible_host` of {host} to its address, or add the name to DNS.",
    ),
    _Trouble(
        r"connection refused",
        "it refuses the connection: no SSH server listens on the port",
        "1. On the console of {host}, run `systemctl status ssh sshd` and start the one that is installed. "
        "2. If SSH listens on another port, set `ansible_port` of {host} in the inventory.",
    ),
    _Trouble(
        r"no route to host|network is unreachable",
        "the control node has no route to it",
        "1. Check that {host} has power and its management link is up. 2. On the control node, run `ip route get {address}`.",
    ),
    _Trouble(
        r"privilege escalation prompt|missing sudo password|a password is required|incorrect sudo password",
        "sudo on it asks for a password that Ansible does not have",
        "1. Run the playbook with `--ask-become-pass`. 2. Or allow the user in `/etc/sudoers.d` on {host} to use sudo without a password.",
        fails=True,
    ),
    _Trouble(
        r"failed to create temporary directory",
        "Ansible cannot create its temporary folder on it",
        "On {host}, run `df -h ~ /tmp` and `ls -ld ~`: free space, or set `ansible_remote_tmp` to a folder that the user can write.",
    ),
    _Trouble(
        r"sshpass",
        "the control node has no sshpass, which SSH with a password needs",
        "On the control node, install the package sshpass, or log in with a key.",
        fails=True,
    ),
    _Trouble(
        r"interpreter .{0,200}not found|python\S*: (command )?not found|python\S*: no such file",
        "it has no Python where Ansible looks for it",
        "1. On {host}, install Python 3.9 or newer (`apt-get install python3` or `dnf install python3`). "
        "2. If it has one, set `ansible_python_interpreter` of {host} in the inventory.",
        fails=True,
    ),
    _Trouble(
        r"unable to negotiate",
        "its SSH server and the control node's client have no algorithm in common",
        "Update OpenSSH on the older of both: `ssh -V` on the control node and on {host}.",
    ),
    _Trouble(
        r"timed out|timeout",
        "it does not answer in time",
        "1. Check on its BMC or console that {host} has power and has booted. 2. On the control node, run `ping {address}`; if it answers, "
        "a firewall drops the SSH port.",
    ),
    _Trouble(
        r"connection (was )?(closed|reset)|broken pipe",
        "the connection closes before SSH starts, or is lost",
        "1. Check on its BMC or console whether {host} is booting or down. 2. On {host}, run `journalctl -u ssh -u sshd`; if it mentions "
        "`MaxStartups`, lower `forks` on the control node.",
    ),
)


def why_unreachable(message: str) -> str:
    """The reason in Ansible's message on a host that it cannot reach, or the message's first line if none is known."""
    found = _trouble(message)
    return found.reason if found is not None else next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")


def remedy_of(message: str, host: str) -> str:
    """The remedy and the machine where to apply it; "" if the message is not known."""
    found = _trouble(message)
    return "" if found is None else found.remedy.format(host=host, **_places(message, host))


def remedy_of_failure(message: str, host: str) -> str:
    """The remedy for a failed task; "" unless Ansible could run nothing there, since a task has its own timeouts and refusals."""
    found = _trouble(message)
    return remedy_of(message, host) if found is not None and found.fails else ""


def _trouble(message: str) -> _Trouble | None:
    return next((each for each in TROUBLES if re.search(each.pattern, message, re.IGNORECASE)), None)


def _places(message: str, host: str) -> dict[str, str]:
    """The fields of remedies: the address that SSH uses, the login, the line of known_hosts, the command to remove it, the new key."""
    known = re.search(r"host key (?:is known )?for (\S+) (?:has changed|and you)", message, re.IGNORECASE)
    offending = re.search(r"Offending .*?key.*? in (\S+):(\d+)", message)
    sent = re.search(r"fingerprint for the (\S+) key sent by the remote host is\s+(\S+)", message)
    login = re.search(r"(\S+@\S+): Permission denied", message)
    connect = re.search(r"connect to host (\S+) port|resolve hostname ([^\s:]+)", message)
    name = known[1] if known else host
    port = re.fullmatch(r"\[(.+)\]:(\d+)", name)
    file = offending[1] if offending else "~/.ssh/known_hosts"
    return {
        "address": next((each for each in connect.groups() if each), host) if connect else host,
        "name": name,
        "target": f"-p {port[2]} {port[1]}" if port else name,
        "key_type": sent[1].lower() if sent else "ed25519",
        "fingerprint": sent[2].rstrip(".") if sent else f"what `ssh {host}` prints",
        "login": login[1] if login else host,
        "known_hosts": f"line {offending[2]} of {file}" if offending else f"in {file}",
        "remove": shlex.join(["ssh-keygen", "-f", file, "-R", name]) if offending else shlex.join(["ssh-keygen", "-R", name]),
    }
