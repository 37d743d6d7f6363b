#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcie_tuning
version_added: 0.1.0
short_description: Set MRRS of NICs and disable ACS between GPUs and NICs, now and at boot
description:
  - Sets MRRS (maximum read request size) of all functions of the given NICs' cards. Only bits 14:12 of Device Control are written, as
    C(setpci -s ADDRESS CAP_EXP+8.w=5000:7000) does for 4096 bytes.
  - On bare metal, disables the ACS controls that redirect traffic on the bridges above GPUs and these NICs (C(SrcValid), C(ReqRedir),
    C(CmpltRedir) and C(UpstreamFwd)). Other controls do not change.
  - Each register is read, written only if it differs, and read back. A value that does not persist is an error.
  - The maximum payload size (MPS) is reported and never written. It must fit the whole path to the root port, and belongs to the
    firmware or the kernel.
  - Installs C(rdma-pcie.service), which applies the same file with the same code at every boot, and fails if that fails. The service
    is installed only after the settings have been applied.
  - A reset of the card (C(mlxfwreset)) also discards the settings. Run the module again after a reset.
  - While a GPU process, a job or a user's queue pairs use the host, a setting that differs is not written; RV(withheld) reports it.
  - Kernel lockdown, which Secure Boot enables, forbids every such write. The settings then do not change, RV(withheld) reports
    them, and the service is removed. If lockdown is enabled later, the service reports it in the journal and does not fail.
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
  nics:
    description:
      - One function of each card, by PCI address. A virtual function has no such settings and is skipped.
      - If empty, the service and its files are removed. The settings stay until the next boot.
    type: list
    elements: str
    required: true
  mrrs_nics:
    description: The members of O(nics) whose MRRS is set. The default is all.
    type: list
    elements: str
  mrrs_bytes:
    description: MRRS in bytes. If not set, MRRS does not change.
    type: int
    choices: [128, 256, 512, 1024, 2048, 4096]
  acs:
    description:
      - V(bare_metal) disables the controls that redirect traffic. It is refused on boards with Grace, and with ConnectX-8 and later.
      - V(vm) and V(datadirect) keep ACS enabled, which virtual machines and Data Direct need, and report the enabled controls.
      - V(auto) selects one of these three by the kind of host, or V(leave) if the kind is unknown.
      - V(leave) does not read or change ACS.
    type: str
    choices: [auto, bare_metal, vm, datadirect, leave]
    default: leave
  kept:
    description:
      - The effects that are requested but no longer allowed. The module writes none of their live settings. The service keeps the settings
        that its file already has, and gets no others.
    type: list
    elements: str
    choices: [mrrs, acs_write]
    default: []
"""

EXAMPLES = r"""
- name: Set MRRS to 4096 bytes
  rdma.cluster.pcie_tuning:
    nics: ["0000:3d:00.0", "0000:5e:00.0"]
    mrrs_bytes: 4096
    acs: auto
"""

RETURN = r"""
acs:
  description: The mode. With V(auto), the mode selected on this host.
  type: str
  returned: always
  sample: bare_metal
functions:
  description: Each setting that was read.
  type: list
  elements: dict
  returned: always
  contains:
    address:
      description: The PCI address of a function of a card, or of a bridge.
      type: str
    setting:
      description: V(mrrs_bytes), or V(acs).
      type: str
    old:
      description: The previous value, in bytes or as the list of enabled ACS controls.
      type: raw
    new:
      description: The current value, or the value that would be set in check mode.
      type: raw
  sample:
    - address: "0000:3d:00.0"
      setting: mrrs_bytes
      old: 512
      new: 4096
payload_bytes:
  description: The configured maximum payload size, by the address of the function.
  type: dict
  returned: always
  sample: {"0000:3d:00.0": 256}
left:
  description: The settings that were not tuned, each with C(subject) and C(reason).
  type: list
  elements: dict
  returned: always
withheld:
  description:
    - The requested changes that were not made, by their effect, C(mrrs) or C(acs_write), with functions, values and the reason.
    - If there is such a change, no setting was written.
  type: dict
  returned: always
  sample: {"mrrs": "0000:3d:00.0 MRRS of 512 bytes → MRRS of 4096 bytes; GPU process 4711 (python3)"}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.control import MRRS_BYTES
from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import SysfsPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import LEAVE, MODES
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import EFFECTS, make_request
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import ensure_pcie


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nics": {"type": "list", "elements": "str", "required": True},
            "mrrs_nics": {"type": "list", "elements": "str"},
            "mrrs_bytes": {"type": "int", "choices": list(MRRS_BYTES)},
            "acs": {"type": "str", "choices": list(MODES), "default": LEAVE},
            "kept": {"type": "list", "elements": "str", "choices": list(EFFECTS), "default": []},
        },
        supports_check_mode=True,
    )
    try:
        given = dict(module.params)
        kept = given.pop("kept")
        request = make_request(**given)
        result = ensure_pcie(request, sys=SysRoot(), port=SysfsPort(), runner=SubprocessRunner(), check_mode=module.check_mode, kept=kept)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, diff=result.diffs, **result.to_dict())


if __name__ == "__main__":
    main()
