# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Do not use these fragments outside this collection: they can change at any time.

from __future__ import annotations


class ModuleDocFragment:
    """The meaning of the attributes. Each module documents whether it supports them."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
  diff_mode:
    description: Returns details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  platform:
    description: The operating systems of the hosts that it manages.
    support: full
    platforms: linux
"""

    FACTS = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - It only reads.
  diff_mode:
    support: N/A
    details:
      - It only reads.
  facts:
    description: Returns a C(ansible_facts) dictionary that is added to the host's facts.
    support: full
"""
