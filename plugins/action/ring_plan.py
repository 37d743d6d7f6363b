# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.ring_plan; documented in plugins/modules/ring_plan.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TextIO

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.hostnames import names_in_logs
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hops import Hops, Unknown, hops_of_log, hops_of_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hostfile import Hostfile, HostfileError, read_hostfile
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.log import RingLog, read_rings
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.plan import ring_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.ports import Ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.text import plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import (
    SchedulerError,
    StoredPlane,
    compute_planes,
    deciding_plane,
    known_of_runs,
    no_graph,
    stored_planes,
)

FOLDER = "plan/rings"
FILE, TEXT_FILE, HOSTFILE = (f"{FOLDER}/{name}" for name in ("rings.json", "rings.txt", "hostfile"))
#: A longer line comes in pieces.
LONGEST_LINE = 65_536
_GIVE = "Name the log of the job (-e rdma_job_log=FILE) or its hostfile (-e rdma_job_hostfile=FILE), a file on the control node."


class RefusedError(ValueError):
    """The input cannot be used. The message has the reason and what to do."""


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "log": {"type": "str"},
        "hostfile": {"type": "str"},
        "hosts": {"type": "dict", "default": {}},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if not options["log"] and not options["hostfile"]:
            return {"failed": True, "msg": _GIVE}
        intents, unread = self.play_intents()
        if unread:
            return {"failed": True, "msg": unread}
        try:
            return self._plan(options, intents)
        except (RefusedError, SchedulerError) as error:
            return {"failed": True, "msg": str(error)}

    def _plan(self, options: Mapping[str, Any], intents: Mapping[str, Intent]) -> dict[str, Any]:
        given = {str(name): str(host) for name, host in options["hosts"].items()}
        nowhere = sorted(f"{name}: {host}" for name, host in given.items() if host not in intents)
        if nowhere:
            raise RefusedError(f"rdma_job_hosts maps names to hosts that are not in the play: {', '.join(nowhere)}")
        known = known_of_runs(self.folder, intents)
        names = names_in_logs({host: each.facts for host, each in known.items()}, given)
        planes = self._planes(intents, known)
        plane = deciding_plane(intents)
        ports = Ports({name: stored.view for name, stored in planes.items()}, {host: each.facts for host, each in known.items()})
        hostfile = self._hostfile(options["hostfile"], names) if options["hostfile"] else None
        if options["log"]:
            hops = hops_of_log(self._log(options["log"]), ports, names)
        else:
            hops = hops_of_order(hostfile.order if hostfile is not None else (), ports, planes)
        if hostfile is not None:
            hops = _ordered(hops, hostfile)
        plan = ring_plan(hops, ports, planes, plane)
        stored = [str(self.folder.write_json(FILE, plan.to_dict()))]
        proposed = self.folder.path / HOSTFILE
        if plan.order is not None and plan.order.better:
            after = plan.order.after
            lines = hostfile.text(after) if hostfile is not None else "".join(f"{host}\n" for host in after)
            stored.append(str(self.folder.write(HOSTFILE, lines)))
        text = plan_text(plan, str(options["log"] or options["hostfile"]), str(proposed))
        stored.append(str(self.folder.write(TEXT_FILE, f"{text}\n")))
        return {
            "explained": text,
            "stored": stored,
            "out_of_order": list(plan.order.moved) if plan.order is not None else [],
            "unknown": [{"what": each.what, "why": each.why} for each in plan.unknown],
        }

    def _planes(self, intents: Mapping[str, Intent], known: Mapping[str, Known]) -> dict[str, StoredPlane]:
        wanted = compute_planes(intents.values())
        planes = stored_planes(self.folder, wanted, known)
        missing = [name for name in wanted if name not in planes]
        if missing or not planes:
            raise RefusedError(no_graph(f"of plane {', '.join(missing)}" if missing else "of a plane with a compute rail"))
        return planes

    def _log(self, name: str) -> RingLog:
        try:
            with self.given_file(name).open(encoding="utf-8", errors="replace") as handle:
                log = read_rings(_lines(handle))
        except (AnsibleError, OSError) as error:
            raise RefusedError(f"The log {name} cannot be read on the control node: {_one_line(error)}") from error
        if not log.communicators and not log.unclear:
            raise RefusedError(
                f"The log {name} has no communicator of NCCL. Run the job with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV, "
                "and use the output of all ranks."
            )
        return log

    def _hostfile(self, name: str, names: Mapping[str, str]) -> Hostfile:
        try:
            with self.given_file(name).open(encoding="utf-8", errors="replace") as handle:
                found = read_hostfile(_lines(handle), names)
        except HostfileError as error:
            raise RefusedError(f"{name}: {error}") from error
        except (AnsibleError, OSError) as error:
            raise RefusedError(f"The hostfile {name} cannot be read on the control node: {_one_line(error)}") from error
        if not found.order:
            raise RefusedError(f"The hostfile {name} has no host of the play. Map its names in rdma_job_hosts.")
        return found


def _ordered(hops: Hops, hostfile: Hostfile) -> Hops:
    """The hops with the order of the hostfile."""
    strangers = [Unknown(f"host {name}", "it is not in the play; map its name in rdma_job_hosts") for name in hostfile.unknown]
    unknown = [each for each in hops.unknown if each.what != "the order of the hosts"]
    return Hops(hops.hops, (*unknown, *strangers), hostfile.order, hops.between, hops.ranks)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _lines(handle: TextIO) -> Iterator[str]:
    while line := handle.readline(LONGEST_LINE):
        yield line
