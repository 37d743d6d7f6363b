#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mlxconfig
version_added: 0.1.0
short_description: Firmware settings of NVIDIA adapters at the next boot
description:
  - Asks each device with C(mstconfig -e q), or C(mlxconfig) where there is no mstconfig, and compares with what the next boot brings.
  - Writes only the settings that differ, in one call for each device, and reads them back. Other settings are left alone.
  - A setting that a device lacks (C(LINK_TYPE_P1) of an Ethernet adapter) is not applicable there, which is no error.
  - What cannot be compared is refused - arrays, read-only settings of another value, values that the tool does not tell. Nothing is
    then written on that device. Every other device is done all the same, and all errors are listed.
  - The module neither reboots a host nor resets a card. C(pending) and C(reset_commands) say what waits for it.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details: Where no tool is installed yet, all settings are told as if they would be written.
  diff_mode:
    support: full
options:
  devices:
    description: The devices and their settings.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description: The PCI address of one function of the card, V(0000:21:00.0). It answers for all ports of the card.
        type: str
        required: true
      settings:
        description:
          - Value by name, as C(mlxconfig -e q) lists the names.
          - A value is a number (V(2), V(0xff)), a name in any case (V(eth)), both (V(ETH(2))), or a boolean.
        type: dict
        required: true
"""

EXAMPLES = r"""
- name: Ethernet on both ports of a card
  rdma.cluster.mlxconfig:
    devices:
      - device: "0000:21:00.0"
        settings:
          LINK_TYPE_P1: ETH
          LINK_TYPE_P2: 2
"""

RETURN = r"""
devices:
  description: What was found and done on each device (would be done, in check mode), in the order of the option.
  type: list
  elements: dict
  returned: always
  contains:
    device:
      description: Its PCI address.
      type: str
    tool:
      description: Which tool answered; none where none is installed.
      type: str
    written:
      description: By name, the value of the next boot C(before) and C(after).
      type: dict
    not_applicable:
      description: Settings that the device lacks.
      type: list
      elements: str
    pending:
      description: By name, the C(current) value of a wished setting and the one of the C(next_boot), where they differ.
      type: dict
    pending_others:
      description: The same for settings that were not asked for, and that someone else has changed. A reboot changes them too.
      type: dict
    reboot_required:
      description: Whether a wished setting waits for a reboot or a reset.
      type: bool
    why:
      description: Why, in words.
      type: str
    error:
      description: What went wrong on this device; none where nothing did.
      type: str
differences:
  description: Each setting that was not as wished for the next boot, in words.
  type: list
  elements: str
  returned: always
  sample: ["0000:21:00.0: LINK_TYPE_P1 is IB(1) at the next boot, wished ETH(2)"]
reboot_required:
  description: Whether any device waits for a reboot or a reset.
  type: bool
  returned: always
reset_commands:
  description: What makes the settings hold without a reboot of the host. Each takes the links of its card down.
  type: list
  elements: str
  returned: always
  sample: ["mstfwreset -d 0000:21:00.0 -y reset"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.ensure import ensure_settings

DEVICE_SPEC = {
    "device": {"type": "str", "required": True},
    "settings": {"type": "dict", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"devices": {"type": "list", "elements": "dict", "required": True, "options": DEVICE_SPEC}},
        supports_check_mode=True,
    )
    try:
        result = ensure_settings(module.params["devices"], runner=SubprocessRunner(), check_mode=module.check_mode)
    except ApplyError as error:
        module.fail_json(msg=str(error))
    told = {
        "changed": result.changed,
        "devices": [device.to_dict() for device in result.devices],
        "differences": result.differences,
        "reboot_required": result.reboot_required,
        "reset_commands": result.reset_commands,
        "diff": result.diffs,
    }
    if result.errors:
        module.fail_json(msg=" | ".join(result.errors), **told)
    module.exit_json(**told)


if __name__ == "__main__":
    main()
