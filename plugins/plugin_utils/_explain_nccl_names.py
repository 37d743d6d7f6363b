# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables as an explanation words them: default and meaning, as of NCCL 2.30; and names that NCCL does not read."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_reading import LEVELS, read_level
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_variable import GONE, LEVEL
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_variables import NEVER, PREFIX, VARIABLES
from ansible_collections.rdma.cluster.plugins.module_utils._near import nearest

#: Always told of, in this order.
MAIN = (
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_SOCKET_IFNAME",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NTHREADS",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_BUFFSIZE",
    "NCCL_GRAPH_DUMP_FILE",
)
#: Names of guides and scripts that no version of NCCL reads, or none since long: name → why, and what to use.
DEAD = {
    **NEVER,
    **{
        name: f"removed in NCCL {variable.until}" + (f": {variable.instead} took its place" if variable.instead else "")
        for name, variable in VARIABLES.items()
        if variable.kind == GONE
    },
}
#: Those of DEAD that are always told of, because the scripts that this replaces print them.
NEVER_THERE = ("NCCL_NCHUNKS_COARSE", "NCCL_SHARP_ENABLE")
_DIGITS = re.compile(r"[0-9]{1,9}")
#: Variables that take a distance; case counts.
WITH_LEVEL = tuple(name for name, variable in VARIABLES.items() if variable.kind == LEVEL)
#: From here on a name is taken for another one that was not typed well.
_LIKE = 0.9


def default(name: str) -> str:
    """What holds if nobody sets a variable."""
    return VARIABLES[name].default if name in VARIABLES else "not set"


def meaning(name: str) -> str:
    """What a variable does, in a few words."""
    if name in DEAD:
        return "nothing"
    if name in VARIABLES:
        return VARIABLES[name].meaning
    return "not known here; what NCCL does not know either has no effect" if name.startswith(PREFIX) else "none of NCCL's variables"


def name_trouble(name: str) -> str:
    """Why a variable that somebody sets has no effect: "" for one that has, and for one that is not known here and like no other."""
    if name in DEAD:
        return DEAD[name]
    near = nearest(name, VARIABLES, _LIKE) if name.startswith(PREFIX) else None
    return f"is {near} meant?" if near and near != name else ""


def value_trouble(name: str, value: str) -> str:
    """Why a value has no effect; "" if it has, or is not looked at."""
    if name not in WITH_LEVEL or value in LEVELS or not value or _DIGITS.fullmatch(value):
        return ""
    return f"NCCL knows no such level and takes its default; levels are {', '.join(LEVELS)}"


def value_words(name: str, value: str) -> str:
    """What a value of the old spelling means; "" for any other."""
    if name not in WITH_LEVEL or not _DIGITS.fullmatch(value):
        return ""
    return f"{value} is the old spelling of {read_level(value)}"
