#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall
version_added: 0.1.0
short_description: Open the firewall that runs for the rails
description:
  - Adds rules to the firewall that runs (firewalld, ufw, or the rule set of C(nftables.service)), now and at boot. It removes only rules
    that it added itself and that are no longer in O(openings). All other rules stay as they are.
  - The rules accept TCP ports 1024 to 65535, which perftest, the pair runner and NCCL use, UDP port 4791 of Soft-RoCE, and ICMP. They
    accept them only from the subnets of O(openings) and, except with firewalld, only on their interfaces.
  - In C(nftables.service), each base chain for input and output that can drop packets gets the rules at its top. A drop-in of the unit adds
    them again whenever the unit loads its own rules.
  - Never starts, stops, enables or reloads a firewall, and removes no rule of others, so it cannot cut the SSH session.
  - Changes nothing while a GPU process, a job or a user's queue pairs use the host. RV(withheld) has the reason.
  - Fails if two firewalls run at once.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  openings:
    description: What has to pass. If empty, all rules of this module are removed.
    type: list
    elements: dict
    required: true
    suboptions:
      netdev:
        description: The interface of the rail.
        type: str
        required: true
      subnet:
        description: The subnet of other hosts, V(192.168.100.0/24).
        type: str
        required: true
      kinds:
        description: The protocols.
        type: list
        elements: str
        choices: [tcp, udp, icmp]
        default: [tcp, udp, icmp]
"""

EXAMPLES = r"""
- name: Open the firewall for a rail
  rdma.cluster.firewall:
    openings:
      - netdev: ens1
        subnet: 192.168.100.0/24
"""

RETURN = r"""
backend:
  description: The firewall that runs, V(firewalld), V(ufw) or V(nftables); V(null) if none does.
  type: str
  returned: always
changes:
  description: The rules that were added and removed, in words. In check mode, all differences.
  type: list
  elements: str
  returned: always
  sample: ["inet filter input: TCP ports 1024 to 65535 from 192.168.100.0/24 on ens1"]
withheld:
  description: Who uses the host, if this is why nothing was changed. Empty otherwise.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import read_units
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import host_users, read_load
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import ICMP, TCP, UDP, Opening, apply_firewall, plan_firewall

OPENING_SPEC = {
    "netdev": {"type": "str", "required": True},
    "subnet": {"type": "str", "required": True},
    "kinds": {"type": "list", "elements": "str", "choices": [TCP, UDP, ICMP], "default": [TCP, UDP, ICMP]},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"openings": {"type": "list", "elements": "dict", "required": True, "options": OPENING_SPEC}},
        supports_check_mode=True,
    )
    openings = [Opening(each["netdev"], each["subnet"], tuple(each["kinds"])) for each in module.params["openings"]]
    sys, runner = SysRoot(), SubprocessRunner()
    try:
        units = read_units(sys, runner)
        if units is None:
            module.fail_json(msg="systemd does not answer, so the firewall is not known: run `systemctl status` on the host.")
        plan = plan_firewall(openings, units, sys=sys, runner=runner)
        applies = plan.changed and not module.check_mode
        users = host_users(read_load(sys, runner)) if applies else ""
        if applies and not users:
            apply_firewall(plan, runner)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    changed = plan.changed and not users
    module.exit_json(changed=changed, backend=plan.backend, changes=plan.changes, diff=plan.diff, withheld=users)


if __name__ == "__main__":
    main()
