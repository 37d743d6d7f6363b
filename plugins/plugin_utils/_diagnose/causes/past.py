# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: what the recorder and the journals have."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.past import (
    counters_rose,
    gids_changed,
    host_changed,
    journal_reports,
    port_was_down,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause

PAST: dict[str, Cause] = {
    "past.port": Cause(
        "a port was down before the error",
        port_was_down,
        "1. Check the port's cable, module and switch port, and the switch's log for that time. 2. Rerun the link stage for the host. "
        "3. See what else happened then: `ansible-playbook rdma.cluster.changed`.",
        of_log=True,
    ),
    "past.gid": Cause(
        "the GID table of a host changed before the error",
        gids_changed,
        "1. Check on the host what changed its addresses: `journalctl -u systemd-networkd -u NetworkManager`. 2. Rerun the network and "
        "nccl stages.",
        of_log=True,
    ),
    "past.counters": Cause(
        "a host counted damaged or dropped packets before the error",
        counters_rose,
        "1. Rerun the link stage for the host, which names the cable or the congestion. 2. Rerun the pairs stage.",
        of_log=True,
    ),
    "past.host": Cause(
        "a host booted, or its driver, firmware or settings changed before the error",
        host_changed,
        "1. Find who changed it: `journalctl` of that time on the host. 2. See what differs from the intent now: `ansible-playbook "
        "rdma.cluster.drift --check`.",
        of_log=True,
    ),
    "past.journal": Cause(
        "the kernel or a service reported a failure before the error",
        journal_reports,
        "Diagnose that text: write the lines of the journal to a file, and pass it as `rdma_job_log`.",
        of_log=True,
    ),
}
