# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lookup that returns the plan of the task's host."""

from __future__ import annotations

DOCUMENTATION = """
name: plan
version_added: 0.1.0
short_description: Return the plan of the roles for a host
description:
  - Returns the plan that M(rdma.cluster.observe) has derived from the intent and the facts of the task's host.
  - The playbooks of this collection define C(rdma_host_plan) with it, and the roles read that variable. If your own play uses such a
    role, it needs the same line, and M(rdma.cluster.intent) and M(rdma.cluster.observe) before the role.
  - The plan is read from the folder of the run on the control node. No result of a module can change it. If the facts of a host set a
    variable of this collection, the lookup fails and names the variable.
author: the rdma.cluster authors (@rdma-cluster)
options: {}
"""

EXAMPLES = """
- name: Set the limits of logins and services
  hosts: all
  gather_facts: false
  vars:
    rdma_host_plan: "{{ lookup('rdma.cluster.plan') }}"
  pre_tasks:
    - name: Read the intent
      rdma.cluster.intent:

    - name: Read the host
      rdma.cluster.observe:
  roles:
    - role: rdma.cluster.limits
"""

RETURN = """
_raw:
  description:
    - One dictionary. For each concern, such as C(limits), C(sysctl), C(cpu), C(network) and C(nccl), it has V(true) if the role must
      run. V(false) means that the facts prove that there is nothing to change.
    - C(settings) has the options of the roles' modules.
  type: list
  elements: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan import stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan.stored import permits_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolderError
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.forged import forged_names, note_forged, nothing_done, run_folder


class LookupModule(LookupBase):
    """The lookup."""

    def run(self, terms: list[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return the plan as a list of one dictionary."""
        known = variables or {}
        host, templar = str(known["inventory_hostname"]), self._templar
        if templar is None:
            raise AnsibleError("rdma.cluster.plan is a lookup for playbooks: it needs Ansible's templates.")
        template = templar.template
        try:
            folder = run_folder(known, template)
        except RunFolderError as error:
            raise AnsibleError(str(error)) from error
        forged = forged_names(known, folder)
        if forged:
            note_forged(known, folder, forged)
            raise AnsibleError(nothing_done(host, forged))
        permits = permits_of(lambda name, default: template(known[name]) if name in known else default)
        plan = stored.read(folder, host, permits)
        if plan is None:
            raise AnsibleError(f"{host} has no plan in this run. Call rdma.cluster.intent and rdma.cluster.observe before.")
        return [plan]
