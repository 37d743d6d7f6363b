# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for job schedulers."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST, NAME, Section, choice, keys, text

SECTIONS: dict[str, Section] = {
    "rdma_scheduler": Section(
        keys(
            "The topology files of Slurm and Kubernetes, which `plan.yml` writes ([the scheduler](scheduler.md)).",
            slurm_name=text("The host's name in Slurm and in the hostfile. Without it, its name in the inventory.", HOST),
            kubernetes_name=text("The host's name in Kubernetes. Without it, its name in the inventory.", HOST),
            plane=text(
                "The compute plane whose leaves decide. Required only if several compute planes group the hosts differently.",
                NAME,
            ),
            unproven=choice(
                "Hosts without a valid proof on each compute rail. `alone`: each is a leaf of its own for Slurm, for jobs of one host. "
                "`exclude`: they are in no file, and Slurm starts no job there. `include`: they are in the tree as the others.",
                "alone",
                "alone",
                "exclude",
                "include",
            ),
            kubernetes_labels=choice(
                "The keys of the labels. `nvidia`: `network.topology.nvidia.com/leaf`, `spine` and `core`, as topograph before 1.0; "
                "`topograph`: `fabric.topograph.run/tier-0`, `tier-1` and `tier-2`, as topograph 1.0.",
                "nvidia",
                "nvidia",
                "topograph",
            ),
        ),
        ("plan",),
    ),
}
