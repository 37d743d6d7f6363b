#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mlxconfig
version_added: 0.1.0
short_description: Write firmware settings of NVIDIA adapters for the next boot
description:
  - Reads each device with C(mstconfig -e q), or with C(mlxconfig) if mstconfig is missing, and compares the settings of the next boot.
  - Writes only the settings that differ, in one call for each device, and reads them back. It does not change other settings.
  - If a device lacks a setting (C(LINK_TYPE_P1) of an Ethernet adapter), the setting is not applicable to it. This is not an error.
  - Refuses settings that it cannot compare, such as arrays, read-only settings with another value, and values that the tool does not
    report. It then writes nothing to that device, continues with the other devices, and lists all errors.
  - The module neither reboots a host nor resets a card. C(pending) and C(reset_commands) list the settings that require it, and the
    commands.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details: If no tool is installed yet, all settings are reported as if they would be written.
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
        description: The PCI address of one function of the card, V(0000:21:00.0). It represents all ports of the card.
        type: str
        required: true
      settings:
        description:
          - The value of each setting by the name that C(mlxconfig -e q) lists.
          - A value is a number (V(2), V(0xff)), a name in any case (V(eth)), both (V(ETH(2))), or a boolean.
        type: dict
        required: true
"""

EXAMPLES = r"""
- name: Set both ports of a card to Ethernet
  rdma.cluster.mlxconfig:
    devices:
      - device: "0000:21:00.0"
        settings:
          LINK_TYPE_P1: ETH
          LINK_TYPE_P2: 2
"""

RETURN = r"""
devices:
  description: The result for each device, or the expected result in check mode, in the order of the option.
  type: list
  elements: dict
  returned: always
  contains:
    device:
      description: Its PCI address.
      type: str
    tool:
      description: The tool that was used; none if no tool is installed.
      type: str
    written:
      description: The value of the next boot C(before) and C(after), by name.
      type: dict
    not_applicable:
      description: Settings that the device lacks.
      type: list
      elements: str
    pending:
      description: The C(current) and C(next_boot) values of requested settings that differ, by name.
      type: dict
    pending_others:
      description: The same for other settings that someone else has changed. They also take effect at a reboot.
      type: dict
    reboot_required:
      description: Whether a requested setting waits for a reboot or a reset.
      type: bool
    why:
      description: The reason in words.
      type: str
    error:
      description: The error on this device, or none.
      type: str
differences:
  description: Each setting whose value for the next boot differed from the request, in words.
  type: list
  elements: str
  returned: always
  sample: ["0000:21:00.0: LINK_TYPE_P1 is IB(1) at the next boot, requested ETH(2)"]
reboot_required:
  description: Whether any device waits for a reboot or a reset.
  type: bool
  returned: always
reset_commands:
  description: The commands that activate the settings without a reboot of the host. Each takes the links of its card down.
  type: list
  elements: str
  returned: always
  sample: ["mstfwreset -d 0000:21:00.0 -y reset"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ensure_files
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
        ensure_files(result.marks, check_mode=module.check_mode)
    except (ApplyError, OSError) as error:
        module.fail_json(msg=str(error))
    details = {
        "changed": result.changed,
        "devices": [device.to_dict() for device in result.devices],
        "differences": result.differences,
        "reboot_required": result.reboot_required,
        "reset_commands": result.reset_commands,
        "diff": result.diffs,
    }
    if result.errors:
        module.fail_json(msg=" | ".join(result.errors), **details)
    module.exit_json(**details)


if __name__ == "__main__":
    main()
