#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_build
version_added: 0.1.0
short_description: Run a long build for a driver in the background of a host
description:
  - Runs a program such as C(doca-kernel-support) or C(dkms autoinstall) as the transient systemd unit C(rdma-build-NAME.service), so that
    it goes on when the connection or the control node is lost, and waits for its end.
  - A second task takes over the one that runs if its O(argv) is the same, and is refused otherwise.
  - Every half minute a line tells how far it is. If it fails, the lines that tell why are quoted, and its whole log is
    brought into the folder of this run, C(driver/HOST.log).
  - The task fails as well if the program ends with 0 and DKMS says that it could not build a module, or O(creates) is not there.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is started or waited for.
  diff_mode:
    support: full
options:
  name:
    description: The name of the build, of letters, digits and hyphens.
    type: str
    required: true
  argv:
    description: The program by its whole path, and its arguments.
    type: list
    elements: str
    required: true
  creates:
    description: A path that is there after a good end. Nothing is run where it is there before.
    type: str
  idle_only:
    description:
      - Refuse to start it while anything uses the driver stack, which is read right before.
      - Uses are GPU processes, jobs, storage over RDMA, open devices and modules of others.
    type: bool
    default: false
  log:
    description: Where its output goes, C(NAME/build.log) in O(folder) unless given.
    type: str
  folder:
    description: Where log and state are kept.
    type: str
    default: /var/lib/rdma-cluster/builds
  timeout_seconds:
    description: After this time systemd ends it, which is a failure.
    type: int
    default: 3600
  poll_seconds:
    description:
      - How long one question to the host waits for the end. The task asks again and again until it has come.
    type: int
    default: 10
  collect:
    description: Start nothing, and only wait for what an earlier task has started.
    type: bool
    default: false
  host:
    description:
      - How messages and remedies call the host.
      - The name in the inventory, unless given.
    type: str
requirements:
  - systemd 240 or later
"""

EXAMPLES = r"""
- name: Build the modules of DOCA-OFED for the running kernel
  rdma.cluster.driver_build:
    name: doca-kernel-support
    argv: [/opt/mellanox/doca/tools/doca-kernel-support, -k, "{{ ansible_facts.kernel }}"]
    timeout_seconds: 3600
"""

RETURN = r"""
started:
  description: Whether this task started it; V(false) if one that ran already was taken over.
  type: bool
  returned: always
running:
  description: Whether it still runs.
  type: bool
  returned: always
finished:
  description: Whether it has come to its end in this task.
  type: bool
  returned: always
rc:
  description: The exit status, negative for a signal; V(null) while it runs, where nothing was run, and if that is not known.
  type: int
  returned: always
  sample: 28
meaning:
  description: What the end means, or why there was nothing to do.
  type: str
  returned: always
  sample: it failed with exit code 28
remedy:
  description: What to do about a failure.
  type: str
  returned: always
progress:
  description: The last line of the log that tells how far it is.
  type: str
  returned: while it runs
  sample: Building initial module for 6.8.0-58-generic
seconds:
  description: How long it has worked.
  type: float
  returned: when known
lines:
  description: The lines of the logs that tell why it failed, twelve at most.
  type: list
  elements: str
  returned: always
log:
  description: The last 200 lines of its log.
  type: list
  elements: str
  returned: on a failure whose log could not be stored
log_files:
  description: The logs on the host that belong to it.
  type: list
  elements: str
  returned: always
stored:
  description: The file on the control node with the whole log of a failure, C(driver/HOST.log) in the folder of this run.
  type: str
  returned: on failure
note:
  description: What else a person should know, such as that an earlier one was cut off by a power cut.
  type: str
  returned: always
would:
  description: What would be done, in check mode.
  type: str
  returned: always
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build import FOLDER, Build, DriverBuild
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import OPTIONS, Report


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "argv": {"type": "list", "elements": "str", "required": True},
            "creates": {"type": "str"},
            "idle_only": {"type": "bool", "default": False},
            "log": {"type": "str"},
            "folder": {"type": "str", "default": FOLDER},
            **OPTIONS,
        },
        supports_check_mode=True,
    )
    try:
        report = apply(module.params, check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    told = report.told(module.params["name"])
    if report.failed:
        module.fail_json(msg=report.message, **told)
    module.exit_json(**told)


def apply(options: dict, *, check_mode: bool) -> Report:
    log = Path(options["log"]) if options["log"] else None
    wish = Build(
        name=options["name"],
        argv=options["argv"],
        creates=options["creates"],
        folder=Path(options["folder"]),
        log=log,
        timeout_seconds=options["timeout_seconds"],
        host=options["host"] or "this host",
        idle_only=options["idle_only"],
    )
    build = DriverBuild(wish, SubprocessRunner())
    return build.collected(options["poll_seconds"]) if options["collect"] else build.present(options["poll_seconds"], check_mode=check_mode)


if __name__ == "__main__":
    main()
