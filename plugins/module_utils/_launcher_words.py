# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mpirun, srun, SSH or the loader has said in the output of a run that did not end well."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_rows import begins_row

#: More is not told, in characters.
MOST = 400
_RULER = frozenset("-=*#")


def launcher_words(text: str) -> str:
    """The lines that are none of nccl-tests, rulers or blank, as one: Open MPI's messages have several, between rulers. text: no log."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return " ".join(line for line in lines if line and line[0] != "#" and not _RULER.issuperset(line) and not begins_row(line))[:MOST]
