# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply the RoCE profile in the host's file to an interface: `roce_qos.pyz INTERFACE`, the program of rdma-qos@INTERFACE.service.

It runs when the settings of a NIC are lost: at boot, after the driver was loaded again, and after a NIC was plugged in.
"""

from __future__ import annotations

import argparse
import sys

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import QosHost, ensure_qos
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import Difference, format_value
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import CONFIG, find_ports, parse_plan, unit_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import Configfs

#: The RDMA device appears a moment after its interface.
DEVICE_SECONDS = 30


def main() -> int:
    """Return 0 if the interface matches the file or is not in it, else 1; print what was written, or the reason."""
    parser = argparse.ArgumentParser(description="Apply the RoCE profile of a file to an interface.")
    parser.add_argument("interface")
    parser.add_argument("--config", default=CONFIG)
    given = parser.parse_args()
    try:
        written = apply(given.interface, given.config, QosHost(SysRoot("/"), SubprocessRunner(), IoctlPort(), Configfs()))
    except (ApplyError, CommandError, ParseError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{each.name}: {format_value(each.was)} -> {format_value(each.requested)}\n" for each in written))
    return 0


def apply(interface: str, config: str, host: QosHost) -> list[Difference]:
    """Apply a file to an interface, and return the written settings; none for an interface that is not one of the file's NICs.

    The link may go down for a moment. Raises ApplyError if the interface differs afterwards, and ParseError for a file that is not ours.
    """
    plan = host.sys.value(config, parse_plan)
    if plan is None:
        raise ApplyError(f"{config} is not there: run the QoS stage again, or `systemctl disable {unit_of(interface)}`.")
    ports = find_ports(host.sys, plan.nics)
    for _second in range(DEVICE_SECONDS):
        if interface not in ports.waiting:
            break
        host.sleep(1.0)
        ports = find_ports(host.sys, plan.nics)
    if interface in ports.waiting:
        raise ApplyError(f"{interface} has no RDMA device {DEVICE_SECONDS} s after it came: `rdma link` shows none.")
    if interface not in ports.found:
        return []
    return ensure_qos(plan.profile, ports.found[interface], host, check_mode=False, change_allowed=True, toggle_allowed=True).written
