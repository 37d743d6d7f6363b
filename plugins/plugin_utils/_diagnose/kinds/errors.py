# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the error of a failed call says against a cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.likely import CONTAINER, LOCKED, SPACE


class _Errors(NamedTuple):
    """Errors of a call: how their texts begin, and their numbers."""

    texts: tuple[str, ...]
    numbers: tuple[str, ...]

    def has(self, error: str) -> bool:
        return error.startswith(self.texts) or error in self.numbers


#: The errors of a call by which the limit of locked memory shows, and those of a NIC that does not answer.
_OF_LIMIT = _Errors(("Cannot allocate memory", "Resource temporarily unavailable", "Operation not permitted"), ("12", "11", "1"))
_UNANSWERED = _Errors(("Connection timed out", "Operation canceled", "Input/output error", "Remote I/O error"), ("110", "125", "5", "121"))
#: Errors of a call that the kernel or the device does not have: its node is there, and no limit is reached.
_UNSUPPORTED = _Errors(
    ("Operation not supported", "Protocol not supported", "Inappropriate ioctl", "Function not implemented"), ("95", "93", "25", "38")
)
#: Errors of a call on a file in /dev/shm that do not come from its size.
_NOT_OF_SPACE = ("Permission denied", "Invalid argument", "No such file or directory", "File exists", "Operation not permitted")
_OF_GPUS = ("gpu.path", "gpu.dmabuf_off", "gpu.intent", "iommu")


def contradiction(cause: str, errors: Sequence[str]) -> str | None:
    """The error that excludes a cause. errors: those of the lines, as words or numbers; None if there are none, or one fits."""
    if not errors:
        return None
    if cause in LOCKED and not any(map(_OF_LIMIT.has, errors)):
        return errors[0]
    if cause in SPACE and all(error.startswith(_NOT_OF_SPACE) for error in errors):
        return errors[0]
    if cause in _OF_GPUS and errors[0].startswith(_UNANSWERED.texts):
        return errors[0]
    if cause in (*CONTAINER, "limits.nic", "port.down") and all(map(_UNSUPPORTED.has, errors)):
        return errors[0]
    unanswered = list(filter(_UNANSWERED.has, errors))
    return unanswered[0] if cause in (*CONTAINER, "limits.nic") and len(unanswered) == len(errors) else None
