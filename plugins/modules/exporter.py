#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: exporter
version_added: 0.1.0
short_description: Install the collector of RDMA metrics and its timer
description:
  - Installs a program, its settings, C(rdma-exporter.service) and C(rdma-exporter.timer). The timer starts the program, which reads the
    host and replaces one file of node_exporter's textfile collector.
  - The program reads sysfs, the counters of drivers, modules of Ethernet ports and QoS settings. It changes nothing else on the host.
  - Runs the program once after a change. Fails if the folder of the textfile collector does not exist.
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
  config:
    description: The settings of the collector, as RV(rdma.cluster.exporter_plan#module:config) has them.
    type: str
    required: true
  interval_seconds:
    description: Time between two runs of the collector.
    type: int
    required: true
seealso:
  - module: rdma.cluster.exporter_plan
"""

EXAMPLES = r"""
- name: Plan the collector
  rdma.cluster.exporter_plan:
  register: exporter

- name: Install the collector
  rdma.cluster.exporter:
    config: "{{ exporter.config }}"
    interval_seconds: "{{ exporter.interval_seconds }}"
"""

RETURN = r"""
file:
  description: The file that the collector writes.
  type: str
  returned: success
  sample: /var/lib/prometheus/node-exporter/rdma_cluster.prom
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import FILE, parse_config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.service import ensure_exporter


def main() -> None:
    module = AnsibleModule(
        argument_spec={"config": {"type": "str", "required": True}, "interval_seconds": {"type": "int", "required": True}},
        supports_check_mode=True,
    )
    try:
        config = parse_config(module.params["config"])
        if not module.check_mode and not Path(config.folder).is_dir():
            raise ApplyError(
                f"{config.folder} is not a folder. 1. Install node_exporter, and start it with "
                f"`--collector.textfile.directory={config.folder}`. 2. Set rdma_metrics.textfile_dir to its folder."
            )
        change = ensure_exporter(config, module.params["interval_seconds"], runner=SubprocessRunner(), check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(change), file=f"{config.folder}/{FILE}", diff=change.diffs)


if __name__ == "__main__":
    main()
