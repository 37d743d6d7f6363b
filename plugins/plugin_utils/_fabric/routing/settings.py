# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare BFD, the kernel settings and the MTU of routers with the plan."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import FORWARD, HASH, RouterState
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.judge import APPLY, Judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.routing import HASH_POLICIES


def check_bfd(judge: Judge) -> None:
    if not judge.plane.settings["bfd"]:
        return
    for name, state in judge.read().items():
        down = [
            f"{each.port} ({(state.bfd or {}).get(each.port, 'no session')})"
            for each in judge.good(name)
            if state.bfd is None or state.bfd.get(each.port) != "up"
        ]
        if down:
            observed = "bfdd does not run" if state.bfd is None else f"BFD is not up on {some(down)}"
            late = "Until then, a silent cable is noticed after 9 s."
            remedy = f"1. On {name}: /etc/frr/daemons must have `bfdd=yes`. 2. Apply the plan: {APPLY}. {late}"
            judge.add(ERROR, name, observed, "bfd", remedy)


def check_kernel(judge: Judge) -> None:
    planned = {FORWARD: 1, HASH: HASH_POLICIES[judge.plane.settings["hash_policy"]]}
    words = {FORWARD: "it does not forward", HASH: "all flows of a pair of hosts use one spine"}
    for name, state in judge.read().items():
        # A host does not forward. The chip of a vendor's switch forwards and hashes, not its kernel.
        router = judge.plane.routers.get(name)
        for setting, value in planned.items() if router is not None and router.syntax == "frr" else ():
            seen = state.sysctls.get(setting)
            remedy = f"Apply the plan: {APPLY}. It writes {setting} = {value} for now and for each boot."
            if seen is None:
                judge.add(UNKNOWN, name, f"{setting} could not be read", "kernel", remedy)
            elif seen != value:
                judge.add(ERROR, name, f"{setting} is {seen}, planned {value}: {words[setting]}", "kernel", remedy)


def check_mtu(judge: Judge) -> None:
    for name, state in judge.read().items():
        # The stage `network` compares the MTU of a host's rails.
        for each in judge.plane.routers[name].sessions if name in judge.plane.routers else ():
            port, other = state.interfaces.get(each.port), judge.states.get(each.name)
            its = other.interfaces.get(each.its_port) if isinstance(other, RouterState) else None
            planned = max(judge.mtu_bytes or 0, (its.mtu_bytes or 0) if its is not None else 0)
            if port is not None and port.mtu_bytes is not None and port.mtu_bytes < planned:
                why = "the rails have" if planned == judge.mtu_bytes else f"{each.name} {each.its_port} has"
                remedy = f"On {name}: `ip link set {each.port} mtu {planned}`, and the same in the configuration of its network at boot."
                judge.add(ERROR, f"{name} {each.port}", f"its MTU is {port.mtu_bytes}; {why} {planned}", "mtu", remedy)
