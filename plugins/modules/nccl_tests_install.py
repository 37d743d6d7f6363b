#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_tests_install
version_added: 0.2.0
short_description: nccl-tests on a host, made with MPI from an archive
description:
  - Checks the archive by its SHA-256, looks through it, unpacks it, runs C(make MPI=1), and puts the programs to C(build) in O(folder),
    which is replaced as a whole.
  - What was installed is noted in C(/var/lib/rdma-cluster/nccl-tests.json); with the same archive and options nothing is done.
  - It fails, and says what is missing, where CUDA's compiler, MPI's or NCCL's headers, C(make) or C(g++) are not there.
  - A folder that has something else in it is left alone, and is an error.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is unpacked or built, and the archive need not be there; RV(lacks) tells what the build would miss now.
  diff_mode:
    support: full
options:
  archive:
    description: The archive on the host, of the source, or with O(built) of the programs; with one folder at its top.
    type: path
    required: true
  checksum:
    description: Its SHA-256, C(sha256:) and 64 hexadecimal digits.
    type: str
    required: true
  version:
    description: The version of nccl-tests. A source that says another one is refused.
    type: str
    required: true
  folder:
    description: Where it goes.
    type: path
    default: /opt/nccl-tests
  built:
    description: Whether the archive has the programs themselves, in C(build) or at its top.
    type: bool
    default: false
  cuda_home:
    description: Where CUDA is.
    type: path
    default: /usr/local/cuda
  mpi_home:
    description: Where MPI is, with C(include/mpi.h); needed unless O(built).
    type: path
  nccl_home:
    description: Where NCCL is, if not where the compiler looks by itself.
    type: path
  architectures:
    description: Compute capabilities to compile for, all that the makefile names unless given.
    type: list
    elements: int
    default: []
  timeout_seconds:
    description: How long the build may take.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: nccl-tests for H100
  rdma.cluster.nccl_tests_install:
    archive: /var/lib/rdma-cluster/nccl/nccl-tests-2.19.6.tar.gz
    checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
    version: 2.19.6
    mpi_home: /usr/lib/x86_64-linux-gnu/openmpi
    architectures: [90]
"""

RETURN = r"""
tests:
  description: What is installed, C(folder), C(version), and C(wish), which differs where archive or options do.
  type: dict
  returned: always
lacks:
  description: What the build would miss, a sentence each.
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
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import Wish, ensure_tests

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
        result = ensure_tests(Wish(**options), runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode)
    except (ApplyError, CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, tests=asdict(result.after), lacks=result.lacks, diff=result.diff)


if __name__ == "__main__":
    main()
