#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_plan
version_added: 0.1.0
short_description: Decide what the driver stage does to a host
description:
  - Compares C(rdma_driver) with the facts of the host, which have to be read first, and decides what is installed, removed, reloaded
    and rebooted. It touches nothing, and needs no connection.
  - A change that could not work, or would leave the host without a driver, is refused with the reason and what to do about it.
    Then the task fails; in check mode it only says so.
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
    description: Whether the driver may be reloaded in the running host.
    type: bool
    default: false
  switch_allowed:
    description:
      - Whether packages of an installed stack may be removed, to switch to another stack or version.
      - The change also waits until the host is idle.
    type: bool
    default: false
  removal:
    description:
      - What M(rdma.cluster.driver_removal) returned just before. Without it no package of an installed stack is removed.
    type: dict
  group:
    description: A group of the inventory that the host joins if it has to be started again, in a way that is allowed.
    type: str
  reboot_allowed:
    description: Whether the host may be rebooted. Without it nothing is built for a kernel that is not the newest installed.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Decide what is done to the driver
  rdma.cluster.driver_plan:
    reboot_allowed: false
  register: driver
"""

RETURN = r"""
plan:
  description: The decision.
  type: dict
  returned: always
  contains:
    stack:
      description: The planned stack, V(inbox), V(doca) or V(mlnx_ofed); of V(keep) the installed one, V(add_on) for one of another kind.
      type: str
    version:
      description: The wished version; none for V(inbox).
      type: str
    kernel:
      description: The kernel that runs.
      type: str
    installed:
      description: The installed C(stack), its C(version), and its C(packages) by name with their versions.
      type: dict
    change:
      description: One of V(none), V(install), V(upgrade), V(downgrade), V(switch), V(rebuild).
      type: str
    why:
      description: Why it is that.
      type: str
    refused:
      description: Why nothing may be changed, and what to do; none if nothing is refused.
      type: str
    switch:
      description:
        - Whether the change removes packages of an installed stack (C(needed)), its C(packages), the C(dependants) of others that are
          removed too, C(withheld), none or why it is not done now, and the whole C(reason) in words.
        - As long as it is withheld, everything is left as it is, and the host has the facts C(driver_switch_required) and
          C(driver_switch_reason).
      type: dict
    files:
      description: Whether the repository and the kernel hook are managed; not for a kept stack, and not where a switch is withheld.
      type: bool
    remove:
      description: The stack that is uninstalled first by its own uninstaller, if one is.
      type: str
    distribution_packages:
      description:
        - Packages of the distribution to install. Where another stack is removed first, all those of V(inbox), of which it takes its own
          along.
      type: list
      elements: str
    installer:
      description: Whether C(mlnxofedinstall), or DOCA's packages, bring the change.
      type: bool
    dkms_build:
      description: The kernel for which C(dkms autoinstall -k) builds again what is installed, in the place of the installer.
      type: str
    flags:
      description: The options of C(mlnxofedinstall), in order.
      type: list
      elements: str
    doca:
      description:
        - For V(doca) the C(packages) to install, the C(repository) that they are in, the C(generation) (V(dkms) since 3.2,
          V(packages) before), and whether packages for the running kernel are made first (C(kernel_support)).
      type: dict
    busy:
      description: Who uses the host, which keeps it from being reloaded or rebooted; an empty text for nobody.
      type: str
    reload:
      description:
        - Whether what is loaded has to be replaced (C(needed)), C(why), the C(modules) to unload, top first, and the C(obstacles)
          to doing that in the running host; C(live) if there is none. C(always) where an option of a module differs, which is then
          reloaded although it is the one on disk.
        - As long as something is to be installed or removed, nothing is needed, and the rest is what is expected after it. Facts that
          were read after that tell what is so.
      type: dict
    reboot:
      description:
        - Whether a reboot is C(needed) and C(why); C(first) if it comes before anything is built. As long as something is to be installed,
          nothing else asks for one.
        - C(withheld) tells why it must wait, none if it need not. C(drainable) where that is work on the host and nothing else.
        - C(build_first) is the kernel for which C(dkms autoinstall -k) has to build before, none if it has the driver. What that has
          come to, a plan from fresh facts tells.
      type: dict
    hold:
      description: The C(packages) to hold that would bring another kernel, and whether none of them is held (C(differs)).
      type: dict
    hook:
      description: Whether later kernels need modules built for them before they are booted.
      type: bool
    hook_dkms:
      description: Whether DKMS builds them; else the hook can only warn.
      type: bool
msg:
  description: The change in a sentence, or why it is refused.
  type: str
  returned: always
"""
