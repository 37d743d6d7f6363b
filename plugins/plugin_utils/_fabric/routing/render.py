# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planned files of a router, or of a host that speaks BGP, in the form that its operating system reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import render, render_daemons, render_sysctls
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr_host import render_host, render_host_sysctls
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.nvue import render_nvue
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.sonic import render_config_db, render_sonic_frr
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import SUFFIXES, plan_suffixes

RENDERERS: dict[str, Callable[[RoutedPlane, Router], tuple[str, ...]]] = {
    "frr": lambda plane, router: (render(plane, router), render_daemons(plane), render_sysctls(plane)),
    "nvue": lambda plane, router: (render_nvue(plane, router),),
    "sonic": lambda plane, router: (render_config_db(router), render_sonic_frr(plane, router)),
}


def router_files(plane: RoutedPlane, router: Router) -> dict[str, str]:
    """Return the suffix of each file of a router → its text."""
    return dict(zip(plan_suffixes(router.syntax), RENDERERS[router.syntax](plane, router), strict=True))


def host_files(planes: Sequence[RoutedPlane], host: str) -> dict[str, str]:
    """Return the suffix of each file of a host that speaks BGP → its text. planes: all; those without the host are skipped."""
    own = [plane for plane in planes if host in plane.hosts]
    return dict(zip(SUFFIXES, (render_host(own, host), render_daemons(*own), render_host_sysctls()), strict=True))
