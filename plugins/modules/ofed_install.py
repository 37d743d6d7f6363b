#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ofed_install
version_added: 0.1.0
short_description: Install MLNX_OFED by its own installer, or remove it
description:
  - Checks the archive of MLNX_OFED on the host by its SHA-256, looks through it before anything is unpacked, and runs its
    C(mlnxofedinstall).
  - The installer works as the transient systemd unit C(rdma-ofed-install.service), so it goes on when the connection or the control node
    is lost. A second task takes over the one that runs if archive and flags are the same, and is refused otherwise.
  - Every half minute a line tells how far it is. If it fails, its exit status is explained, the lines that tell why are
    quoted, and its whole log is brought into the folder of this run, C(driver/HOST.log).
  - An installer that ends with 0 is not believed, but looked after. The task fails if the kernel's own C(mlx5_core) would be loaded, if
    another version is installed, and if DKMS says that it could not build a module.
  - A stack is installed or removed only while nothing uses the present one. Modules of others on top of it, open devices, storage over
    RDMA, processes on GPUs and jobs are looked for on the host just before, and each of them is a failure that has changed nothing.
  - Nothing happens where the wished version is installed and built for the running kernel. The driver that is in use is not exchanged,
    this comes with the next boot or a restart of the driver.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is started, unpacked or waited for; the archive need not be there.
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) installs.
      - V(absent) runs the O(uninstaller) of the stack that is installed, MLNX_OFED or DOCA-OFED, in the same way.
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
      - The sum of the archive, V(sha256:) and 64 hexadecimal digits.
      - Required for O(state=present).
    type: str
  version:
    description:
      - The version that the archive is of and that shall be installed.
      - Required for O(state=present).
    type: str
  flags:
    description:
      - The flags of C(mlnxofedinstall).
      - Without C(--force) it is run with C(-q), since nobody can answer its question.
    type: list
    elements: str
    default: []
  folder:
    description: Where the archive is unpacked, and where log and state are kept.
    type: str
    default: /var/lib/rdma-cluster/ofed
  tmpdir:
    description:
      - Where the installer builds. Without it, a folder in O(folder) that is removed after a success.
    type: str
  uninstaller:
    description: The program for O(state=absent), and its arguments.
    type: list
    elements: str
    default: [/usr/sbin/ofed_uninstall.sh, --force]
  may_remove:
    description:
      - The packages that may be removed, with those of others that depend on them, as M(rdma.cluster.driver_removal) lists them. They are
        those of an installed stack, or for a first installation the distribution's. If more would be removed, nothing is.
      - Without it packages are not compared.
    type: list
    elements: str
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
- name: Install MLNX_OFED
  rdma.cluster.ofed_install:
    archive: /var/lib/rdma-cluster/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz
    checksum: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    version: 24.10-1.1.4.0
    flags: [--add-kernel-support, --without-fw-update, --force]

- name: Remove it
  rdma.cluster.ofed_install:
    state: absent
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
  sample: "the installer ended with 28: there is not enough free space"
remedy:
  description: What to do about a failure.
  type: str
  returned: always
progress:
  description: The last line of the log that tells how far it is.
  type: str
  returned: while it runs
  sample: Installing mlnx-ofed-kernel-dkms-24.10.OFED.24.10.1.1.4.1...
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
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import OPTIONS, Report
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_installer import FOLDER, OfedInstaller, Wish
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
    told = report.told("MLNX_OFED")
    if report.failed:
        module.fail_json(msg=report.message, **told)
    module.exit_json(**told)


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
    wish = Wish(archive, options["checksum"], version, options["flags"], folder, tmpdir, seconds, host, options["may_remove"])
    installer = OfedInstaller(wish, runner)
    return (
        installer.collected(options["poll_seconds"])
        if options["collect"]
        else installer.present(options["poll_seconds"], check_mode=check_mode)
    )


if __name__ == "__main__":
    main()
