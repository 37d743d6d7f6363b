#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_tests_install
version_added: 0.2.0
short_description: Build nccl-tests with MPI from an archive and install them
description:
  - Verifies the SHA-256 of the archive, checks its contents, unpacks it, and runs C(make MPI=1). It copies the programs to C(build) in
    O(folder), which is replaced as a whole.
  - Records the installation in C(/var/lib/rdma-cluster/nccl-tests.json). With the same archive and options it does nothing.
  - If the CUDA compiler, the headers of MPI or NCCL, C(make) or C(g++) are missing, the task fails and names them.
  - If the folder contains other files, the task fails and does not change it.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Unpacks and builds nothing, and does not need the archive. RV(lacks) lists what is missing for the build.
  diff_mode:
    support: full
options:
  archive:
    description: The archive on the host with one top-level folder. It contains the source, or with O(built) the programs.
    type: path
    required: true
  checksum:
    description: The SHA-256 of the archive, C(sha256:) and 64 hexadecimal digits.
    type: str
    required: true
  version:
    description: The version of nccl-tests. A source of another version is rejected.
    type: str
    required: true
  folder:
    description: The installation folder.
    type: path
    default: /opt/nccl-tests
  built:
    description: Whether the archive contains built programs, in C(build) or at its top level.
    type: bool
    default: false
  cuda_home:
    description: The folder of CUDA.
    type: path
    default: /usr/local/cuda
  mpi_home:
    description: The folder of MPI, which contains C(include/mpi.h). Required unless O(built).
    type: path
  nccl_home:
    description: The folder of NCCL, if the compiler does not search it by default.
    type: path
  architectures:
    description: The compute capabilities to compile for. The default is all that the makefile names.
    type: list
    elements: int
    default: []
  timeout_seconds:
    description: The time limit of the build.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Build nccl-tests for H100
  rdma.cluster.nccl_tests_install:
    archive: /var/lib/rdma-cluster/nccl/nccl-tests-2.19.6.tar.gz
    checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
    version: 2.19.6
    mpi_home: /usr/lib/x86_64-linux-gnu/openmpi
    architectures: [90]
"""

RETURN = r"""
tests:
  description: The installation, with C(folder), C(version), and C(order), which identifies archive and options.
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
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import InstallRequest, ensure_tests

SPEC = {
    "archive": {"type": "path", "required": True},
    "checksum": {"type": "str", "required": True},
    "version": {"type": "str", "required": True},
    "folder": {"type": "path", "default": "/opt/nccl-tests"},
    "built": {"type": "bool", "default": False},
    "cuda_home": {"type": "path", "default": "/usr/local/cuda"},
    "mpi_home": {"type": "path"},
    "nccl_home": {"type": "path"},
    "architectures": {"type": "list", "elements": "int", "default": []},
    "timeout_seconds": {"type": "int", "default": 3600},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, required_if=[("built", False, ("mpi_home",))], supports_check_mode=True)
    options = {**module.params, "archive": Path(module.params["archive"]), "folder": Path(module.params["folder"])}
    try:
        result = ensure_tests(InstallRequest(**options), runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode)
    except (ApplyError, CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, tests=asdict(result.after), lacks=result.lacks, diff=result.diff)


if __name__ == "__main__":
    main()
