#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sysctl_settings
version_added: 0.1.0
short_description: Set kernel parameters, now and at boot
description:
  - Writes all settings to C(/etc/sysctl.d/99-zz-rdma-cluster.conf), and writes those that differ to the running kernel.
  - A foreign line in a file that is read after this one overrides its key, live and at boot. RV(withheld) names file and line.
  - With O(replace_allowed) the module comments out the line if the file is in C(/etc), and shows it in the diff. It never edits a file
    elsewhere; the task then fails with the name of the file and the remedy.
  - While a GPU process, a job or a user's queue pairs use the host, the module keeps some live values. It keeps a value if a foreign line
    in C(/etc) or C(/run) sets another value than the requested one.
  - A line that was commented out stays so if its key is no longer in O(settings).
  - Live values and those of the next boot are read back, the latter by the rules of C(systemd-sysctl).
  - A key that is no longer in O(settings) is removed from the file and keeps its value until the next boot.
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
  settings:
    description:
      - The value of each key. One call names all settings of this module. If empty, its file is removed.
      - A key is written as in C(sysctl.d), with dots or slashes (V(net/ipv4/conf/eth0.100/rp_filter)). It must not be a pattern.
      - A value is one line of letters, digits, spaces, dots, underscores, colons, slashes and hyphens.
    type: dict
    required: true
  replace_allowed:
    description: Whether to comment out foreign lines that set another value, and to change such live values on a host in use.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Answer ARP requests only on the rail with the address
  rdma.cluster.sysctl_settings:
    settings:
      net.ipv4.conf.all.arp_ignore: 1
      net.ipv4.conf.all.arp_announce: 2
"""

RETURN = r"""
live:
  description:
    - The keys that were changed in the running kernel; in check mode, all differences.
    - The value is the previous value of the key, V(null) if there is no such key.
  type: dict
  returned: always
  sample:
    net.ipv4.conf.all.arp_ignore: "0"
withheld:
  description: The settings that were not changed because a foreign line sets them, in words.
  type: list
  elements: str
  returned: always
  sample: ["/etc/sysctl.d/99-zzz-site.conf:1 sets net.ipv4.conf.all.arp_announce = 0, requested 2"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import idle_refusal
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import Writer, ensure_sysctl


def main() -> None:
    module = AnsibleModule(
        argument_spec={"settings": {"type": "dict", "required": True}, "replace_allowed": {"type": "bool", "default": False}},
        supports_check_mode=True,
    )
    allowed = module.params["replace_allowed"]
    settings = {str(key): str(value) for key, value in module.params["settings"].items()}
    try:
        result = ensure_sysctl(
            settings,
            sys=SysRoot(),
            writer=Writer(),
            check_mode=module.check_mode,
            replace_allowed=allowed,
            in_use=idle_refusal(SysRoot(), SubprocessRunner(), allowed=allowed),
        )
    except (ApplyError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    live = {change.key: change.before for change in result.live}
    module.exit_json(changed=result.changed, live=live, withheld=result.withheld, diff=result.diffs)


if __name__ == "__main__":
    main()
