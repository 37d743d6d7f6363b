# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCIe settings from one file, at boot: `pcie_tuning.pyz [--config FILE]`, the program of rdma-pcie.service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import LOCKED_DOWN, lockdown_words, read_lockdown
from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import SysfsPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import Setting, parse_request
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.tuning import REFUSED, Applied, apply, survey

CONFIG = "/etc/rdma-cluster/pcie.json"


def main() -> int:
    """Return 0 if every setting is as in the file, or if kernel lockdown forbids the writes; else 1 with a line for each failure.

    Lockdown may be switched on after the service was installed. A unit that fails at each boot would then hide real failures.
    """
    parser = argparse.ArgumentParser(description="Apply the PCIe settings of a file.")
    parser.add_argument("--config", default=CONFIG)
    parser.add_argument("--root", default="/", help="of /sys and /proc")
    given = parser.parse_args()
    root, port = SysRoot(given.root), SysfsPort(given.root.rstrip("/"))
    try:
        found = survey(parse_request(Path(given.config).read_text(encoding="utf-8")), root, port)
        lockdown = read_lockdown(root)
    except (ParseError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if lockdown in LOCKED_DOWN:
        done, withheld = Applied(), found.different
    else:
        done = apply(found.settings, port)
        withheld = done.refused
    changed = [setting for setting in found.different if setting not in withheld]
    failures = [*found.problems, *done.failures]
    if lockdown == "none":
        failures += [f"{setting.address}: {REFUSED}" for setting in withheld]
    else:
        sys.stdout.write("".join(f"{_withheld(setting, lockdown)}\n" for setting in withheld))
    sys.stdout.write("".join(f"{setting.words(setting.new)}\n" for setting in changed))
    sys.stderr.write("".join(f"{line}\n" for line in failures))
    return 1 if failures else 0


def _withheld(setting: Setting, lockdown: str | None) -> str:
    why = REFUSED if lockdown is None else lockdown_words(lockdown)
    return f"{setting.address} keeps {setting.shown(setting.old)} instead of {setting.shown(setting.new)}: {why}"
