# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run foreign code without root's rights."""

from __future__ import annotations

import os

#: The user and the group `nobody`.
NOBODY = 65534


def as_nobody(*argv: str) -> list[str]:
    """Return the command without root's rights, for foreign code (setpriv(1) of util-linux)."""
    ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"] if os.geteuid() == 0 else []
    return ["setpriv", *ids, "--no-new-privs", "--", *argv]
