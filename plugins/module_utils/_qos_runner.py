# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile of one interface from the host's file: `roce_qos.pyz INTERFACE`, the program of rdma-qos@INTERFACE.service.

It runs at boot, when the driver was loaded anew, and when a NIC is plugged in, which are the times when its settings are lost.
"""

from __future__ import annotations

import argparse
import sys
import time

from ansible_collections.rdma.cluster.plugins.module_utils._command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._qos_apply import QosHost, ensure_qos
from ansible_collections.rdma.cluster.plugins.module_utils._qos_file import CONFIG, parse_plan
from ansible_collections.rdma.cluster.plugins.module_utils._qos_ports import find_ports
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_cm import Configfs
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: The RDMA device comes a moment after its interface.
DEVICE_SECONDS = 30.0


def main() -> int:
    """0 if the interface is as the file says, or none of the file's; else 1 with the reason."""
    parser = argparse.ArgumentParser(description="Apply the RoCE profile of a file to an interface.")
    parser.add_argument("interface")
    parser.add_argument("--config", default=CONFIG)
    given = parser.parse_args()
    host = QosHost(SysRoot("/"), SubprocessRunner(), IoctlPort(), Configfs())
    try:
        plan = host.sys.value(given.config, parse_plan)
        if plan is None:
            raise ApplyError(f"{given.config} is not there.")
        ports = find_ports(host.sys, plan.nics)
        deadline = time.monotonic() + DEVICE_SECONDS
        while given.interface in ports.waiting and time.monotonic() < deadline:
            time.sleep(1)
            ports = find_ports(host.sys, plan.nics)
        if given.interface in ports.waiting:
            raise ApplyError(f"{given.interface} has no RDMA device {DEVICE_SECONDS:.0f} s after it came.")
        if given.interface in ports.found:
            done = ensure_qos(plan.profile, ports.found[given.interface], host, check_mode=False, toggle_allowed=True)
            sys.stdout.write("".join(f"{each.name}: {each.was} -> {each.wished}\n" for each in done.written))
    except (ApplyError, CommandError, ParseError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
