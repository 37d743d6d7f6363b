# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCIe settings from one file, at boot: `pcie_tuning.pyz [--config FILE]`, the program of rdma-pcie.service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pci_port import SysfsPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import apply, survey
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import parse_wish
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

CONFIG = "/etc/rdma-cluster/pcie.json"


def main() -> int:
    """0 if everything is as the file says, else 1 with a line for each thing that is not."""
    parser = argparse.ArgumentParser(description="Apply the PCIe settings of a file.")
    parser.add_argument("--config", default=CONFIG)
    parser.add_argument("--root", default="/", help="of /sys and /proc")
    given = parser.parse_args()
    port = SysfsPort(given.root.rstrip("/"))
    try:
        found = survey(parse_wish(Path(given.config).read_text(encoding="utf-8")), SysRoot(given.root), port)
    except (ParseError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    changed = [setting.words(setting.new) for setting in found.different]
    failures = [*found.problems, *apply(found.settings, port)]
    sys.stdout.write("".join(f"{line}\n" for line in changed))
    sys.stderr.write("".join(f"{line}\n" for line in failures))
    return 1 if failures else 0
