#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ofed_install
version_added: 0.1.0
short_description: Install MLNX_OFED with its own installer, or remove it
description:
  - Verifies the SHA-256 of the MLNX_OFED archive on the host, checks its contents before it is unpacked, and runs its
    C(mlnxofedinstall).
  - The installer runs as the transient systemd unit C(rdma-ofed-install.service), so it continues if the connection or the control node
    is lost. If an installer with the same archive and flags is already running, the task waits for it. If they differ, the task fails.
  - Every 30 seconds the task prints the progress. If the installer fails, the task explains the exit status and quotes the relevant log
    lines. It copies the whole log to C(driver/HOST.log) in the folder of this run.
  - Exit status 0 is not sufficient. The task also fails if the kernel's own C(mlx5_core) would be loaded, or if another version is
    installed. It fails too if DKMS reports a module that it could not build.
  - A stack is installed or removed only while nothing uses the current one. Right before, the module looks for other modules on top of it,
    open devices, storage over RDMA, GPU processes and jobs. If it finds one, the task fails and changes nothing.
  - If the requested version is installed and built for the running kernel, the module does nothing. It does not replace the loaded driver;
    this requires a reboot or a restart of the driver.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Starts and unpacks nothing, waits for nothing, and does not need the archive.
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) installs MLNX_OFED.
      - V(absent) runs the O(uninstaller) of the installed stack, MLNX_OFED or DOCA-OFED, in the same way.
    type: str
    choices: [present, absent]
    default: present
  archive:
    description:
      - The archive on the host.
      - Required for O(state=present).
    type: str
  checksum:
    description:
      - The SHA-256 of the archive, V(sha256:) and 64 hexadecimal digits.
      - Required for O(state=present).
    type: str
  version:
    description:
      - The version of the archive, which is installed.
      - Required for O(state=present).
    type: str
  flags:
    description:
      - The flags of C(mlnxofedinstall).
      - Without C(--force) the installer runs with C(-q), because it runs unattended.
    type: list
    elements: str
    default: []
  folder:
    description: The folder of the unpacked archive, the log and the state.
    type: str
    default: /var/lib/rdma-cluster/ofed
  tmpdir:
    description:
      - The build folder of the installer. The default is a folder in O(folder) that is removed after a success.
    type: str
  uninstaller:
    description: The program for O(state=absent), and its arguments.
    type: list
    elements: str
    default: [/usr/sbin/ofed_uninstall.sh, --force]
  may_remove:
    description:
      - The packages that may be removed, with their dependent packages, as M(rdma.cluster.driver_removal) lists them. They belong to an
        installed stack, or for a first installation to the distribution. If more packages would be removed, nothing is removed.
      - If not set, packages are not compared.
    type: list
    elements: str
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
    description: Whether to start nothing, and only wait for a program that an earlier task has started.
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
- name: Install MLNX_OFED
  rdma.cluster.ofed_install:
    archive: /var/lib/rdma-cluster/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz
    checksum: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    version: 24.10-1.1.4.0
    flags: [--add-kernel-support, --without-fw-update, --force]

- name: Remove MLNX_OFED
  rdma.cluster.ofed_install:
    state: absent
"""

RETURN = r"""
started:
  description: Whether this task started the installer; V(false) if it was already running.
  type: bool
  returned: always
running:
  description: Whether the installer still runs.
  type: bool
  returned: always
finished:
  description: Whether the installer ended during this task.
  type: bool
  returned: always
rc:
  description: The exit status, negative for a signal. V(null) while the installer runs, if nothing was run, or if the status is unknown.
  type: int
  returned: always
  sample: 28
meaning:
  description: The meaning of the exit status, or why there was nothing to do.
  type: str
  returned: always
  sample: "the installer ended with 28: there is not enough free space"
remedy:
  description: The remedy of a failure.
  type: str
  returned: always
progress:
  description: The last line of the log that shows the progress.
  type: str
  returned: while the installer runs
  sample: Installing mlnx-ofed-kernel-dkms-24.10.OFED.24.10.1.1.4.1...
seconds:
  description: How long the installer has run.
  type: float
  returned: when known
lines:
  description: The log lines that show why the installer failed, at most 12.
  type: list
  elements: str
  returned: always
log:
  description: The last 200 lines of the log.
  type: list
  elements: str
  returned: on a failure whose log could not be stored
log_files:
  description: The log files of the installer on the host.
  type: list
  elements: str
  returned: always
stored:
  description: The file on the control node with the whole log of a failure, C(driver/HOST.log) in the folder of this run.
  type: str
  returned: on failure
note:
  description: Other information for the admin, such as an earlier installer that a power failure interrupted.
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
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import OPTIONS, Report
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_installer import FOLDER, OfedInstaller, OfedRequest
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_uninstaller import UNINSTALLER, OfedUninstaller, Removal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "archive": {"type": "str"},
            "checksum": {"type": "str"},
            "version": {"type": "str"},
            "flags": {"type": "list", "elements": "str", "default": []},
            "folder": {"type": "str", "default": FOLDER},
            "tmpdir": {"type": "str"},
            "uninstaller": {"type": "list", "elements": "str", "default": list(UNINSTALLER)},
            "may_remove": {"type": "list", "elements": "str"},
            **OPTIONS,
        },
        required_if=[("state", "present", ("archive", "checksum", "version"))],
        supports_check_mode=True,
    )
    try:
        report = apply(module.params, check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    result = report.to_result("MLNX_OFED")
    if report.failed:
        module.fail_json(msg=report.message, **result)
    module.exit_json(**result)


def apply(options: dict, *, check_mode: bool) -> Report:
    folder, seconds = Path(options["folder"]), options["timeout_seconds"]
    host, runner = options["host"] or "this host", SubprocessRunner()
    if options["state"] == "absent":
        remover = OfedUninstaller(Removal(options["uninstaller"], folder, seconds, host, options["may_remove"]), runner)
        return (
            remover.collected(options["poll_seconds"])
            if options["collect"]
            else remover.absent(options["poll_seconds"], check_mode=check_mode)
        )
    tmpdir = Path(options["tmpdir"]) if options["tmpdir"] else None
    archive, version = Path(options["archive"]), options["version"]
    request = OfedRequest(archive, options["checksum"], version, options["flags"], folder, tmpdir, seconds, host, options["may_remove"])
    installer = OfedInstaller(request, runner)
    return (
        installer.collected(options["poll_seconds"])
        if options["collect"]
        else installer.present(options["poll_seconds"], check_mode=check_mode)
    )


if __name__ == "__main__":
    main()
