# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every captured /sys has a test of the facts that are read from it. All values there were written down by reading the captures."""

from __future__ import annotations

from tests.compat.test_sysfs_gcm import OTHERS, TREES
from tests.compat.test_sysfs_h100 import H100
from tests.compat.test_sysfs_hwloc import PCI_DOMAINS, POWER9, QIB, XEON_PHI
from tests.compat.test_sysfs_node_exporter import NODE_EXPORTER
from tests.compat.test_sysfs_procfs import PROCFS
from tests.compat.test_sysfs_unpacking import CAPTURES

COVERED = {PROCFS, NODE_EXPORTER, H100, PCI_DOMAINS, POWER9, QIB, XEON_PHI, *TREES, *OTHERS}


def test_every_capture_has_a_test() -> None:
    assert {path.name for path in CAPTURES.iterdir()} == COVERED
