#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_build
version_added: 0.1.0
short_description: Run a long driver build in the background of a host
description:
  - Runs a program such as C(doca-kernel-support) or C(dkms autoinstall) as the transient systemd unit C(rdma-build-NAME.service), and waits
    for its end. The build continues if the connection or the control node is lost.
  - If a build with the same O(argv) is already running, the task waits for it. If the O(argv) differs, the task fails.
  - Every 30 seconds the task prints the progress. If the build fails, it quotes the relevant log lines, and copies the whole log to
    C(driver/HOST.log) in the folder of this run.
  - The task also fails if the program exits 0 but DKMS reports a module that it could not build, or O(creates) is missing.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Starts nothing and waits for nothing.
  diff_mode:
    support: full
options:
  name:
    description: The name of the build. It consists of letters, digits and hyphens.
    type: str
    required: true
  argv:
    description: The absolute path of the program, and its arguments.
    type: list
    elements: str
    required: true
  creates:
    description: A path that exists after a successful build. If it already exists, the module runs nothing.
    type: str
  idle_only:
    description:
      - Whether to refuse to start while anything uses the driver stack. The users are read right before the start.
      - Users are GPU processes, jobs, storage over RDMA, open devices and other modules.
    type: bool
    default: false
  log:
    description: The file of the program's output. The default is C(NAME/build.log) in O(folder).
    type: str
  folder:
    description: The folder of the log and the state.
    type: str
    default: /var/lib/rdma-cluster/builds
  timeout_seconds:
    description: The time limit. When it expires, systemd ends the program and the task fails.
    type: int
    default: 3600
  poll_seconds:
    description:
      - How long one call to the host waits for the end. The task repeats the call until the program has ended.
    type: int
    default: 10
  collect:
    description: Whether to start nothing, and only wait for a build that an earlier task has started.
    type: bool
    default: false
  host:
    description:
      - The name of the host in messages and remedies.
      - The default is the name in the inventory.
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
  description: Whether this task started the build; V(false) if the build was already running.
  type: bool
  returned: always
running:
  description: Whether the build still runs.
  type: bool
  returned: always
finished:
  description: Whether the build ended during this task.
  type: bool
  returned: always
rc:
  description: The exit status, negative for a signal. V(null) while the build runs, if nothing was run, or if the status is unknown.
  type: int
  returned: always
  sample: 28
meaning:
  description: The meaning of the exit status, or why there was nothing to do.
  type: str
  returned: always
  sample: it failed with exit code 28
remedy:
  description: The remedy of a failure.
  type: str
  returned: always
progress:
  description: The last line of the log that shows the progress.
  type: str
  returned: while the build runs
  sample: Building initial module for 6.8.0-58-generic
seconds:
  description: How long the build has run.
  type: float
  returned: when known
lines:
  description: The log lines that show why the build failed, at most 12.
  type: list
  elements: str
  returned: always
log:
  description: The last 200 lines of the log.
  type: list
  elements: str
  returned: on a failure whose log could not be stored
log_files:
  description: The log files of the build on the host.
  type: list
  elements: str
  returned: always
stored:
  description: The file on the control node with the whole log of a failed build, C(driver/HOST.log) in the folder of this run.
  type: str
  returned: on failure
note:
  description: Other information for the admin, such as an earlier build that a power failure interrupted.
  type: str
  returned: always
would:
  description: The action that would be taken, in check mode.
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
    result = report.to_result(module.params["name"])
    if report.failed:
        module.fail_json(msg=report.message, **result)
    module.exit_json(**result)


def apply(options: dict, *, check_mode: bool) -> Report:
    log = Path(options["log"]) if options["log"] else None
    request = Build(
        name=options["name"],
        argv=options["argv"],
        creates=options["creates"],
        folder=Path(options["folder"]),
        log=log,
        timeout_seconds=options["timeout_seconds"],
        host=options["host"] or "this host",
        idle_only=options["idle_only"],
    )
    build = DriverBuild(request, SubprocessRunner())
    return build.collected(options["poll_seconds"]) if options["collect"] else build.present(options["poll_seconds"], check_mode=check_mode)


if __name__ == "__main__":
    main()
