#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_plugin
version_added: 0.2.0
short_description: Build or copy a network plugin of NCCL and install it
description:
  - Verifies the SHA-256 of O(file) and installs the library as C(/opt/rdma-cluster/nccl/NAME/libnccl-net-NAME.so). A running job keeps the
    library that it has loaded; the file is replaced in one step.
  - With O(build), O(file) is an archive of the source of nccl-mesh-plugin. The module checks its contents, unpacks it, and runs C(make)
    as the user C(nobody) in a temporary folder, with the system's C(infiniband/verbs.h) and with C(libibverbs).
  - Refuses a library for another machine, a library without a symbol C(ncclNetPlugin_vN), and with O(verbs) a library that calls no
    function of C(libibverbs). The plugin is not loaded.
  - With the same file and options it does nothing. The record is C(plugin.json) beside the library.
  - If C(make), C(gcc) or the header of C(libibverbs) is missing, the task fails and names them.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Unpacks and builds nothing, and does not need the file. RV(lacks) lists what is missing for the build.
  diff_mode:
    support: full
options:
  name:
    description: The name of the plugin.
    type: str
    required: true
  file:
    description: The library on the host, or with O(build) an archive of the source with one top-level folder.
    type: path
    required: true
  checksum:
    description: The SHA-256 of the file, C(sha256:) and 64 hexadecimal digits.
    type: str
    required: true
  version:
    description: The version or commit, as a record.
    type: str
    default: ''
  build:
    description: Whether the file is an archive to build the library from.
    type: bool
    default: false
  verbs:
    description: Whether a library that calls no function of C(libibverbs) is refused. nccl-mesh-plugin without it sends data over TCP.
    type: bool
    default: false
  timeout_seconds:
    description: The time limit of the build.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Build nccl-mesh-plugin
  rdma.cluster.nccl_plugin:
    name: mesh
    file: /var/lib/rdma-cluster/nccl/nccl-mesh-plugin-679a394.tar.gz
    checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
    version: 679a394
    build: true
    verbs: true
"""

RETURN = r"""
library:
  description: The path of the library.
  type: str
  returned: always
plugin:
  description: The installation, with C(version), C(order), which identifies file and options, and C(sha256) of the library. V(null) in
    check mode if it would be installed.
  type: dict
  returned: always
lacks:
  description: What is missing for the build, one sentence for each.
  type: list
  elements: str
  returned: always
"""

from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_install import PluginRequest, ensure_plugin

SPEC = {
    "name": {"type": "str", "required": True},
    "file": {"type": "path", "required": True},
    "checksum": {"type": "str", "required": True},
    "version": {"type": "str", "default": ""},
    "build": {"type": "bool", "default": False},
    "verbs": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    request = PluginRequest(**{**module.params, "file": Path(module.params["file"])})
    try:
        result = ensure_plugin(request, runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode)
    except (ApplyError, CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    plugin = asdict(result.after) if result.after is not None else None
    module.exit_json(changed=result.changed, library=request.library, plugin=plugin, lacks=result.lacks, diff=result.diff)


if __name__ == "__main__":
    main()
