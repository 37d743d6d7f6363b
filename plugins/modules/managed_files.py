#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_files
version_added: 0.1.0
short_description: Manage several files in one call
description:
  - Compares each file with its planned content and writes those that differ. Missing folders are created.
  - A file is replaced as a whole, or only a marked block in it is managed and all other lines are kept.
  - One call manages a list of files, because a remote task costs the control node far more than the work itself.
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
  files:
    description: The files.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path.
        type: str
        required: true
      content:
        description: The whole text. Without it, the file is removed.
        type: str
      mode:
        description: Permission bits in octal digits. With O(files[].block), they apply only to a file that is created.
        type: str
        default: "0644"
      block:
        description:
          - Manage only a block between two marker lines, at the end of the file if it has none yet. All other lines are kept.
          - O(files[].content) is then the text of the block. A file without the block that begins with the line
            C(# Managed by rdma.cluster) comes from an earlier version, and is replaced as a whole.
        type: bool
        default: false
      replaced:
        description: Names of variables. With O(files[].block), lines outside the block that set one of them become comments.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Write NCCL's variables
  rdma.cluster.managed_files:
    files:
      - path: /etc/nccl.conf
        content: |
          NCCL_IB_HCA==mlx5_0:1,mlx5_1:1
        block: true
"""

RETURN = r"""
written:
  description: The files that differed from the plan.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, ensure_files

FILE_SPEC = {
    "path": {"type": "str", "required": True},
    "content": {"type": "str"},
    "mode": {"type": "str", "default": "0644"},
    "block": {"type": "bool", "default": False},
    "replaced": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"files": {"type": "list", "elements": "dict", "required": True, "options": FILE_SPEC}},
        supports_check_mode=True,
    )
    try:
        files = [
            ManagedFile(file["path"], file["content"], int(file["mode"], 8), file["block"], tuple(file["replaced"]))
            for file in module.params["files"]
        ]
        changes = ensure_files(files, check_mode=module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(changes), written=[change.path for change in changes], diff=[change.to_diff() for change in changes])


if __name__ == "__main__":
    main()
