#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_plan
version_added: 0.1.0
short_description: Plan the changes of the driver stage on a host
description:
  - Compares C(rdma_driver) with the facts of the host, and decides what to install, remove, reload and reboot. The facts must be read
    before. The module changes nothing, and needs no connection.
  - If a change could not work, or would leave the host without a driver, the task fails with the reason and the remedy. In check mode it
    only reports them.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  reload_allowed:
    description: Whether the driver may be reloaded on the running host.
    type: bool
    default: false
  switch_allowed:
    description:
      - Whether packages of an installed stack may be removed to switch to another stack or version.
      - The change also requires an idle host.
    type: bool
    default: false
  removal:
    description:
      - The result of M(rdma.cluster.driver_removal) right before this task. Without it, no package of an installed stack is removed.
    type: dict
  group:
    description: An inventory group to which the host is added if it needs a reload or reboot that is allowed.
    type: str
  reboot_allowed:
    description: Whether the host may be rebooted. If not, nothing is built for a kernel that is not the newest installed one.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Plan the changes of the driver
  rdma.cluster.driver_plan:
    reboot_allowed: false
  register: driver
"""

RETURN = r"""
plan:
  description: The plan.
  type: dict
  returned: always
  contains:
    stack:
      description:
        - The planned stack, V(inbox), V(doca) or V(mlnx_ofed). With V(keep) it is the installed stack, or V(add_on) for a stack of
          another kind.
      type: str
    version:
      description: The requested version; none for V(inbox).
      type: str
    kernel:
      description: The running kernel.
      type: str
    installed:
      description: The installed C(stack), its C(version), and its C(packages) by name with their versions.
      type: dict
    change:
      description: One of V(none), V(install), V(upgrade), V(downgrade), V(switch), V(rebuild).
      type: str
    why:
      description: The reason for the change.
      type: str
    refused:
      description: Why the change is refused, and the remedy; none if it is not refused.
      type: str
    switch:
      description:
        - Whether the change removes packages of an installed stack (C(needed)), these C(packages), and the C(dependants), other packages
          that are removed with them. C(withheld) is why the change is not made now, or none. C(reason) is the full text.
        - If C(withheld) is set, nothing is changed, and the host has the facts C(driver_switch_required) and C(driver_switch_reason).
      type: dict
    files:
      description: Whether the repository and the kernel hook are managed. They are not for a kept stack, or if a switch is not made now.
      type: bool
    remove:
      description: The stack that its own uninstaller removes first, or none.
      type: str
    distribution_packages:
      description:
        - Packages of the distribution to install. If another stack is removed first, these are all packages of V(inbox), because the
          removal also removes some of them.
      type: list
      elements: str
    installer:
      description: Whether C(mlnxofedinstall) or the DOCA packages make the change.
      type: bool
    dkms_build:
      description: The kernel for which C(dkms autoinstall -k) rebuilds the installed stack, instead of the installer.
      type: str
    flags:
      description: The options of C(mlnxofedinstall), in order.
      type: list
      elements: str
    doca:
      description:
        - For V(doca), the C(packages) to install, their C(repository), the C(generation) (V(dkms) since 3.2, V(packages) before), and
          whether packages for the running kernel are built first (C(kernel_support)).
      type: dict
    busy:
      description: The users of the host that prevent a reload or reboot. Empty if nothing uses it.
      type: str
    reload:
      description:
        - Whether the loaded modules must be replaced (C(needed)), C(why), the C(modules) to unload, top first, and the C(obstacles) to a
          reload on the running host. C(live) is V(true) if there are no obstacles. C(always) is V(true) if a module option differs; the
          module is then reloaded even if it is the one on disk.
        - While packages are still to be installed or removed, C(needed) is V(false), and the other values are expectations. A plan from
          facts read afterwards has the actual values.
      type: dict
    reboot:
      description:
        - Whether a reboot is C(needed), and C(why). C(first) is V(true) if the host must reboot before anything is built. While packages
          are still to be installed, there is no other reason for a reboot.
        - C(withheld) is why the reboot must wait, or none. C(drainable) is V(true) if it waits only for work on the host.
        - C(build_first) is the kernel for which C(dkms autoinstall -k) must build first, or none if that kernel has the driver. A plan from
          fresh facts shows the result.
      type: dict
    hold:
      description: The C(packages) to hold because they would install another kernel, and whether none of them is held (C(differs)).
      type: dict
    hook:
      description: Whether modules must be built for later kernels before they are booted.
      type: bool
    hook_dkms:
      description: Whether DKMS builds them. If not, the hook can only warn.
      type: bool
msg:
  description: The change in one sentence, or why it is refused.
  type: str
  returned: always
"""
