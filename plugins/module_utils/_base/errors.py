# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exceptions that parsers and readers raise, and how a message quotes a text."""

from __future__ import annotations

#: The longest message, in characters; readers need only its beginning.
MESSAGE = 1000
#: How much of a text a message quotes, in characters or bytes.
QUOTED = 200


def quoted(value: object) -> str:
    """Return the beginning of a text or of another value in quotes, for a message. The text may be as long as a file."""
    text = value if isinstance(value, (str, bytes)) else str(value)
    return repr(text[:QUOTED])


class ParseError(ValueError):
    """A text does not have the form that its source promises; the message quotes the offending text.

    The quoted text may be as long as a file: from MESSAGE characters on, the middle is left out.
    """

    def __init__(self, message: str) -> None:
        half = MESSAGE // 2
        super().__init__(message if len(message) <= MESSAGE else f"{message[:half]} … {message[-half:]}")


class CommandError(RuntimeError):
    """A command could not be run to its end: not found, not executable, or stopped at its timeout."""


class ApplyError(RuntimeError):
    """A change to a host failed or did not take effect; the message names the change and the observed state."""
