# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collector, the program of rdma-exporter.service: reads the host once and writes one file for node_exporter, or prints it."""

from __future__ import annotations

import argparse
import sys

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, ensure_files
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.collect import Host, collect
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import CONFIG, FILE, parse_config
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort


def main() -> int:
    """Return 0 if the file was written, else 1; print the reason. The file is replaced as a whole, so a reader never sees a part."""
    parser = argparse.ArgumentParser(description="Write the RDMA metrics of this host for node_exporter's textfile collector.")
    parser.add_argument("--config", default=CONFIG)
    parser.add_argument("--print", action="store_true", help="print the metrics and write no file")
    given = parser.parse_args()
    try:
        config = SysRoot().value(given.config, parse_config)
        if config is None:
            sys.stderr.write(f"{given.config} is missing. Run the playbook rdma.cluster.exporter again.\n")
            return 1
        text = collect(config, Host(SysRoot(), SubprocessRunner(), IoctlPort()))
        if given.print:
            sys.stdout.write(text)
        else:
            ensure_files([ManagedFile(f"{config.folder}/{FILE}", text)], check_mode=False)
    except (OSError, ParseError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
