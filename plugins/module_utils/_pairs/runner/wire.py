# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The messages of two runners: signed lines over one TCP connection."""

from __future__ import annotations

import hmac
import json
import socket
import time
from typing import Any

CONNECT_TIMEOUT_SECONDS = 5.0
MESSAGE_BYTES = 4096
ERROR_CLASSES = ("dead", "refused", "token", "plan", "timeout", "listen", "start", "signal")
TEST_FAILED = ("timeout", "listen", "start")
"""The error classes after which the partners go on with the next test; after any other the meeting is over."""
KEEPALIVE = (
    ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPCNT), 5),
)
JsonDict = dict[str, Any]


class MeetingError(Exception):
    """A measurement that was not made; error_class is one of ERROR_CLASSES."""

    def __init__(self, error_class: str, detail: str) -> None:
        super().__init__(detail)
        self.error_class = error_class
        self.detail = detail

    @property
    def ends_meeting(self) -> bool:
        """Return whether the partners cannot continue with the next test."""
        return self.error_class not in TEST_FAILED

    def to_message(self, kind: str = "refused", **more: Any) -> JsonDict:
        """Return the error as a message."""
        return {"kind": kind, "class": self.error_class, "detail": self.detail, **more}


def refusal(message: JsonDict, who: str) -> MeetingError:
    """Return what a partner's refusal means here. A stopped partner counts as dead."""
    error_class = message["class"] if message.get("class") in ERROR_CLASSES else "refused"
    return MeetingError("dead" if error_class == "signal" else error_class, f"{who}: {message.get('detail')}")


class Wire:
    """One rendezvous connection. A message is a line: the HMAC-SHA256 of a JSON object, a blank, the object.

    All messages of a connection carry the nonce that the caller chose for it.
    """

    def __init__(self, sock: socket.socket, token: bytes) -> None:
        self.sock = sock
        self.nonce = ""
        self._token = token
        self._came = b""
        sock.settimeout(CONNECT_TIMEOUT_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def keep_alive(self) -> None:
        """Detect within seconds that the partner's host is gone: a host that loses power sends no goodbye."""
        for option, value in KEEPALIVE:
            self.sock.setsockopt(*option, value)

    def send(self, message: JsonDict) -> None:
        """Send one signed message. Raises MeetingError if the partner is gone."""
        body = json.dumps({**message, "nonce": self.nonce}).encode()
        try:
            self.sock.sendall(self._sign(body) + b" " + body + b"\n")
        except OSError as exc:
            raise MeetingError("dead", f"the partner left the meeting: {exc}") from exc

    @property
    def has_message(self) -> bool:
        """Return whether receive() can return without waiting."""
        return b"\n" in self._came

    def take(self) -> None:
        """Read the available data, or wait for data. Raises MeetingError if the partner is gone, or sends too much."""
        try:
            piece = self.sock.recv(MESSAGE_BYTES)
        except OSError as exc:
            raise MeetingError("dead", f"no message from the partner: {exc}") from exc
        self._came += piece
        if not piece or (len(self._came) > MESSAGE_BYTES and not self.has_message):
            raise MeetingError("dead", "the partner left the meeting")

    def receive(self) -> tuple[JsonDict, bool]:
        """Return the next message and whether it is signed with our token, for this connection.

        Raises MeetingError if the partner is gone or silent, or sends anything else.
        """
        deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
        while not self.has_message:
            self.take()
            if time.monotonic() > deadline:
                raise MeetingError("dead", "no whole message from the partner")
        line, _end, self._came = self._came.partition(b"\n")
        signature, _blank, body = line.strip().partition(b" ")
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise MeetingError("dead", f"no message from the partner: {exc}") from exc
        if not isinstance(message, dict):
            raise MeetingError("dead", "no message from the partner, but something else")
        fresh = not self.nonce or message.get("nonce") == self.nonce
        return message, fresh and hmac.compare_digest(signature, self._sign(body))

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._token, body, "sha256").hex().encode()


def whole_number(value: object) -> int:
    """Return the value, or -1 if it is not a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
