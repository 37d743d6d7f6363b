# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The equal paths between leaves that a cabling plan has, and the share of line rate that hashed flows reach on them."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.hashed import forecast
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

CHECK, STAGE = "nccl.queue_pairs", "nccl"
declare(
    {
        CHECK: Check(
            "nccl",
            "the expected share of line rate if switches hash the planned queue pairs over the equal paths of a RoCE plane's cabling plan; "
            "no finding without such a plan",
            "`rdma_fabric.planes.NAME.plan`; `NCCL_IB_QPS_PER_CONNECTION`",
            "set `NCCL_IB_QPS_PER_CONNECTION` in `rdma_nccl.variables`, or enable adaptive routing on the switches",
            threshold="least share of what the paths carry (0.8)",
            sources=(reads.INTENT,),
        ),
    }
)

QUEUE_PAIRS, SPLIT, ADAPTIVE = "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_ADAPTIVE_ROUTING"
LEAST_SHARE = 0.8
#: The numbers of queue pairs that are compared. NCCL allows 1 to 128; each one takes memory on both NICs.
CHOICES, MOST_QUEUE_PAIRS = (1, 2, 4, 8, 16, 32), 128


@dataclass(frozen=True)
class LeafPaths:
    """A planned leaf. ports: cables to hosts; paths: its least number of equal first cables to another leaf; spines: where they end."""

    leaf: str
    ports: int
    paths: int
    spines: int

    @property
    def most(self) -> float:
        """The share of line rate that the paths carry if the load is even."""
        return min(1.0, self.paths / self.ports)

    def reached(self, queue_pairs: int) -> float:
        """Return the expected share of line rate, from 0 to 1, while each port sends to another leaf by one connection.

        Every cable of the leaf counts as equally fast, and the switches above as even.
        """
        return forecast(self.paths, self.ports * queue_pairs, queue_pairs).reached_share

    def split(self, queue_pairs: int) -> float:
        """Return the same if every message waits for its part on the busiest path (NCCL_IB_SPLIT_DATA_ON_QPS=1).

        One queue pair has nothing to split.
        """
        if queue_pairs == 1:
            return self.reached(queue_pairs)
        return self.most / (self.paths * forecast(self.paths, self.ports * queue_pairs).largest_share)


def leaf_paths(plan: Plan) -> list[LeafPaths]:
    """Return each leaf that has several equal paths to every other leaf. Leaves are the switches with cables to hosts.

    A path is equal if it is one of the shortest, as BGP with one AS number per tier and OSPF count. Parallel cables are several paths.
    """
    ports: Counter[str] = Counter()
    joined: dict[str, Counter[str]] = defaultdict(Counter)
    for link in plan.links:
        switches = [end.name for end in (link.a, link.b) if end.device is None]
        if len(switches) == 1:
            ports[switches[0]] += 1
        elif len(switches) == 2:
            one, other = switches
            joined[one][other] += 1
            joined[other][one] += 1
    return sorted(_leaves(ports, joined), key=lambda each: natural(each.leaf))


def _leaves(ports: Mapping[str, int], joined: Mapping[str, Mapping[str, int]]) -> Iterator[LeafPaths]:
    hops = {leaf: _hops(leaf, joined) for leaf in ports}
    for leaf, count in ports.items():
        found = [_first_cables(leaf, hops[other], joined) for other in ports if other != leaf and leaf in hops[other]]
        paths, spines = min(found, default=(0, 0))
        if paths > 1:
            yield LeafPaths(leaf, count, paths, spines)


def _first_cables(leaf: str, hops: Mapping[str, int], joined: Mapping[str, Mapping[str, int]]) -> tuple[int, int]:
    """Return the number of a leaf's cables on shortest paths, and of the switches at their other ends. hops: to the other leaf."""
    cables = [count for switch, count in joined.get(leaf, {}).items() if hops.get(switch) == hops[leaf] - 1]
    return sum(cables), len(cables)


def _hops(start: str, joined: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    found, left = {start: 0}, deque([start])
    while left:
        here = left.popleft()
        for there in joined.get(here, ()):
            if there not in found:
                found[there] = found[here] + 1
                left.append(there)
    return found


def planned_paths(intents: Iterable[Intent], read_plan: Callable[[str], str]) -> dict[str, list[LeafPaths]]:
    """Return plane → its leaves with several equal paths, for the planes whose switches hash and that have a cabling plan.

    read_plan: returns the text of a plan file. Raises ParseError, with the plane, for a plan that cannot be read.
    """
    files: dict[str, str] = {}
    for intent in intents:
        for plane, settings in intent["fabric"]["planes"].items():
            if settings["plan"] is not None and hashes(intent, plane):
                files.setdefault(plane, settings["plan"])
    return {plane: _read(plane, file, read_plan) for plane, file in sorted(files.items())}


def _read(plane: str, file: str, read_plan: Callable[[str], str]) -> list[LeafPaths]:
    try:
        return leaf_paths(parse_plan(read_plan(file)))
    except ParseError as error:
        raise ParseError(f"rdma_fabric.planes.{plane}.plan, {file}: {error}") from error


def hashes(intent: Intent, plane: str) -> bool:
    """Return whether switches hash the flows of a plane's compute rails: RoCE on NICs. InfiniBand forwards by tables of destinations."""
    rails = (rail for rail in intent["rails"] if rail["plane"] == plane and rail["role"] == "compute")
    return any(rail["link_layer"] == "roce" and not rail["soft"] for rail in rails)


def forecast_text(planes: Mapping[str, Sequence[LeafPaths]]) -> str:
    """Return what queue pairs per connection reach on each plane, for a person; "" without a plane of several equal paths."""
    parts = [f"Plane {plane}:\n" + "\n".join(_kinds(leaves)) for plane, leaves in planes.items() if leaves]
    if not parts:
        return ""
    return "\n\n".join(
        [
            f"Queue pairs per connection ({QUEUE_PAIRS}). The switches hash each queue pair onto one of the equal paths. Expected share\n"
            "of line rate, if all ports of a leaf send to other leaves by one connection each and adaptive routing is off:",
            *parts,
            f"{SPLIT}=1 splits each message over all queue pairs, and the message waits for the busiest path (second figure).\n"
            "With 0, NCCL's default since 2.20, queue pairs send whole messages in turn (first figure).",
        ]
    )


def _kinds(leaves: Sequence[LeafPaths]) -> Iterator[str]:
    """Yield a line for each kind of leaf."""
    kinds: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for each in leaves:
        kinds[each.ports, each.paths, each.spines].append(each.leaf)
    for (ports, paths, spines), names in kinds.items():
        of = LeafPaths(names[0], ports, paths, spines)
        figures = "; ".join(f"{count}: {of.reached(count):.0%} ({of.split(count):.0%})" for count in CHOICES)
        yield f"  {some(names)}: {ports} ports over {_paths(of)}\n    {figures}"


def _paths(of: LeafPaths) -> str:
    return f"{of.paths} equal paths to {of.spines} spine{'' if of.spines == 1 else 's'}"


def check_queue_pairs(
    host: str, intent: Intent, variables: Mapping[str, str], planes: Mapping[str, Sequence[LeafPaths]], least: float | None = None
) -> list[Finding]:
    """Return the finding nccl.queue_pairs for each plane whose switches hash the host's flows over several planned paths; else none.

    variables: NCCL's variables on the host. planes: plane → its leaves with several equal paths. least: the threshold of the check.
    """
    named = [(plane, leaves) for plane, leaves in planes.items() if leaves and hashes(intent, plane)]
    version, share = intent["nccl"]["version"], LEAST_SHARE if least is None else least
    return [_queue_pairs(host, plane, leaves, variables, share, version=version) for plane, leaves in named]


def _queue_pairs(
    host: str, plane: str, leaves: Sequence[LeafPaths], variables: Mapping[str, str], least: float, *, version: str | None
) -> Finding:
    expected = f"at least {least:.0%} of the rate that the equal paths carry"

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, CHECK, host, f"plane {plane}", status, observed, expected, remedy)

    if variables.get(ADAPTIVE) == "1":
        return finding(NOT_APPLICABLE, f"{ADAPTIVE}=1: switches with adaptive routing do not hash")
    text = variables.get(QUEUE_PAIRS, "1")
    if not text.isdecimal() or not 1 <= int(text) <= MOST_QUEUE_PAIRS:
        return finding(UNKNOWN, f"{QUEUE_PAIRS}={text} is not a number from 1 to {MOST_QUEUE_PAIRS}", f"Correct {QUEUE_PAIRS} of {host}.")
    of, count = min(leaves, key=lambda each: each.reached(int(text)) / each.most), int(text)
    split = variables.get(SPLIT, _default_split(version)) == "1"
    share = (of.split if split else of.reached)(count)
    observed = (
        f"{QUEUE_PAIRS}={count} over {_paths(of)} of {of.leaf}: expect {share:.0%} of line rate when its {of.ports} ports send by one "
        "connection each"
    )
    if share >= least * of.most:
        return finding(OK, observed)
    return finding(WARNING, observed, _remedy(of, count, least, split=split and count > 1))


def _default_split(version: str | None) -> str:
    """Return NCCL's default of NCCL_IB_SPLIT_DATA_ON_QPS: 1 in 2.18 and 2.19 (its guide, env.rst). Older versions do not read it."""
    return "1" if is_older(version, "2.20") and not is_older(version, "2.18") else "0"


def _remedy(of: LeafPaths, count: int, least: float, *, split: bool) -> str:
    enough = (
        None
        if of.reached(count) >= least * of.most
        else next((each for each in CHOICES if each > count and of.reached(each) >= least * of.most), None)
    )
    more = f"Set {QUEUE_PAIRS}: {enough} in rdma_nccl.variables of all hosts: expect {of.reached(enough):.0%}." if enough else ""
    steps = [
        f"Set {SPLIT}: 0. With 1, each message waits for the busiest path." if split else "",
        more,
        f"If the switches have adaptive routing, enable it there, and set {ADAPTIVE}: 1.",
    ]
    return " ".join(f"{number}. {step}" for number, step in enumerate((step for step in steps if step), 1))
