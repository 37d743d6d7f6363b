# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the PCIe links below a rail's card carry the rail: its own link, the narrowest on its way to the root, and shared ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import generation, payload_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import Facts, Rail
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.pcie_settings import check_pcie_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort, rail_ports

declare(
    {
        "pcie.link": Check(
            "preflight",
            "the PCIe link of each rail's card: speed and width against the most that the card can",
            "`current_link_speed`, `current_link_width`, `max_link_*` of the PCI function",
            "reseat the card; slot, riser, BIOS (bifurcation); a warning where it is no more than headroom, or where "
            "`pcie.path` is the error",
            sources=reads.PCI_LINK,
        ),
        "pcie.path": Check(
            "preflight, link",
            "the narrowest PCIe link from each rail's card up to the root, and links that several rails share",
            "the same files of every bridge; the planned rate (preflight), or without one the port's own (link)",
            "another slot, a mended link, or a lower `rate_gbps` in the plan",
            sources=reads.PCI_LINK[:2],
        ),
    }
)

PREFLIGHT = "preflight"
#: What RoCE v2 over IPv4 leaves of a link at an MTU of 4096 bytes, where 82 bytes go with each packet; InfiniBand leaves more.
MTU_EFFICIENCY = 0.98
#: A path that carries less than this of a port's payload caps it: what pairs would be warned for.
ENOUGH = 0.95
EXPECTED_LINK = "as fast and as wide as the card can"
EXPECTED_PATH = "every PCIe link up to the root carries the port's rate"


def check_pcie(host: str, rails: Sequence[Rail], facts: Facts, stage: str, *, mrrs_planned: bool = False) -> list[Finding]:
    """The findings on PCIe that belong to a stage, preflight or link.

    preflight: `pcie.link`, `pcie.payload`, `pcie.mrrs`, `pcie.acs`, `pcie.distance` for each planned rail, `host.iommu` for the host, and
    `pcie.path` for each rail with a planned rate. link: `pcie.path` for the others, against the rate that the port has.
    mrrs_planned: whether the host stage sets MRRS, whose gate then judges it.
    """
    ports = rail_ports(stage, host, rails, facts)
    if (facts.get("iommu") or {}).get("virtual_machine"):
        ports = [_without_bridges(port) for port in ports]
    judged = [port for port in ports if (port.planned_gbps is not None) == (stage == PREFLIGHT)]
    paths = [*(_path(port) for port in judged), *_shared(judged)]
    if stage != PREFLIGHT:
        return paths
    return [*(_link(port) for port in ports), *paths, *check_pcie_settings(host, ports, facts, mrrs_planned=mrrs_planned)]


def _without_bridges(port: RailPort) -> RailPort:
    """As a virtual machine sees it: its bridges are the hypervisor's inventions (QEMU shows 2.5 GT/s x1 above a VF)."""
    pci = port.pci
    own = {name: pci.get(name) for name in ("address", "speed_gtps", "width")}
    narrowest = own if pci.get("speed_gtps") and pci.get("width") else None
    return replace(port, device={**port.device, "pci": {**pci, "narrowest": narrowest, "hops": []} if pci else None})


def needed_gbps(rate_gbps: float) -> float:
    """What a path must carry of payload so that it does not cap a port of a rate."""
    return ENOUGH * MTU_EFFICIENCY * rate_gbps


def _rate_gbps(port: RailPort) -> float | None:
    """The planned rate; without one, what a port that is up runs at."""
    return port.planned_gbps if port.planned_gbps is not None else (port.rate_gbps if port.not_judged is None else None)


def link_words(speed_gtps: float, width: int) -> str:
    """A link in a person's words: "Gen4 x8"."""
    number = generation(speed_gtps)
    return f"{f'Gen{number}' if number else f'{speed_gtps:g} GT/s'} x{width}"


def _most_words(item: Mapping[str, Any]) -> str:
    return link_words(item["max_speed_gtps"], item["max_width"])


def _is_told(item: Mapping[str, Any]) -> bool:
    return all(item.get(name) for name in ("speed_gtps", "width", "max_speed_gtps", "max_width"))


def _is_below(item: Mapping[str, Any]) -> bool:
    """Whether a link is slower or narrower than its function can."""
    return _is_told(item) and bool(item["speed_gtps"] < item["max_speed_gtps"] or item["width"] < item["max_width"])


def _link(port: RailPort) -> Finding:
    pci, check = port.pci, "pcie.link"
    why_not = port.no_pci
    if why_not is None and port.device.get("function") == "vf":
        why_not = "a virtual function has no link of its own"
    if why_not is None and not _is_told(pci):
        why_not = f"{pci['address']} tells no PCIe link (in a virtual machine, say)"
    if why_not is not None:
        return port.skip(check, why_not, EXPECTED_LINK)
    if not _is_below(pci):
        return port.finding(check, OK, link_words(pci["speed_gtps"], pci["width"]), EXPECTED_LINK)
    planned_gbps, narrowest = port.planned_gbps, pci.get("narrowest") or {}
    caps = planned_gbps is not None and payload_gbps(pci["speed_gtps"], pci["width"]) < needed_gbps(planned_gbps)
    own_is_narrowest = narrowest.get("address") == pci["address"]
    observed = f"{link_words(pci['speed_gtps'], pci['width'])} of {_most_words(pci)}"
    if caps and own_is_narrowest:
        observed += ": pcie.path says what it costs"
    status = ERROR if caps and not own_is_narrowest else WARNING
    return port.finding(check, status, observed, EXPECTED_LINK, _mend(port))


def _mend(port: RailPort) -> str:
    """What to do about a card's own link that is below its best."""
    pci = port.pci
    slot: Mapping[str, Any] = next(iter(pci.get("hops") or ()), {})
    where = f"card {pci['address']} of {port.host}"
    if slot.get("max_speed_gtps") and slot.get("max_width") and _is_below(pci):
        most = (min(slot["max_speed_gtps"], pci["max_speed_gtps"]), min(slot["max_width"], pci["max_width"]))
        if most == (pci["speed_gtps"], pci["width"]):
            return f"The slot of {where} ({slot['address']}) can do no more than {link_words(*most)}: put the card into a better one."
    return (
        f"Reseat {where}, then see its slot, riser and BIOS (bifurcation, link speed): "
        f"`lspci -vv -s {pci['address']}`, LnkCap against LnkSta."
    )


def _path(port: RailPort) -> Finding:
    check, narrowest, rate_gbps = "pcie.path", port.pci.get("narrowest"), _rate_gbps(port)
    why_not = port.no_pci
    if why_not is None and not narrowest:
        why_not = f"no link from {port.pci['address']} up to the root tells its speed (in a virtual machine, say)"
    if why_not is None and rate_gbps is None:
        why_not = port.not_judged or f"{port.name} tells no rate, and none is planned"
    if why_not is not None or not narrowest or rate_gbps is None:
        return port.skip(check, why_not or "", EXPECTED_PATH)
    carried_gbps = payload_gbps(narrowest["speed_gtps"], narrowest["width"])
    place, remedy = _place(port, narrowest["address"])
    words = f"{link_words(narrowest['speed_gtps'], narrowest['width'])} at {narrowest['address']} ({place})"
    if carried_gbps >= needed_gbps(rate_gbps):
        return port.finding(check, OK, f"{words} is the narrowest and carries {carried_gbps:.0f} Gb/s", EXPECTED_PATH)
    observed = f"{words} caps this {rate_gbps:g} Gb/s port at {carried_gbps:.0f} Gb/s"
    return port.finding(check, ERROR, observed, EXPECTED_PATH, remedy)


def _place(port: RailPort, address: str) -> tuple[str, str]:
    """Where on the way to the root a link is, and what to do about it."""
    hops = port.pci.get("hops") or ()
    if address == port.pci.get("address") or (hops and address == hops[0]["address"]):
        place = "the card's own link" if address == port.pci.get("address") else "the link of the card's slot"
        if _is_below(port.pci) or not _is_told(port.pci):
            return place, _mend(port)
        return place, f"Card {port.pci['address']} of {port.host} can do no more: it takes another card, or a lower rate_gbps in the plan."
    place = "the root port" if hops and address == hops[-1]["address"] else "the uplink of a PCIe switch" if hops else "above the card"
    hop: Mapping[str, Any] = next((hop for hop in hops if hop["address"] == address), {})
    look = f"`lspci -vv -s {address}` on {port.host}"
    if _is_below(hop):
        return place, f"It could be {_most_words(hop)}: see {look} (LnkCap against LnkSta), then riser, backplane and BIOS."
    return place, f"See {look}; put card {port.pci['address']} into a slot with a wider way to the root, or plan a lower rate_gbps."


def _shared(ports: Sequence[RailPort]) -> Iterator[Finding]:
    """A warning for each link that several rails share and that does not carry all of them.

    Of links in a row it is the narrowest, of equal ones the nearest. Left out is a link that caps one of them alone: that rail has its
    own finding.
    """
    worst: dict[tuple[str, ...], tuple[float, float, str]] = {}
    for address, (carried_gbps, rates_gbps) in _users(ports).items():
        needs = [needed_gbps(gbps) for gbps in rates_gbps.values()]
        names = tuple(rates_gbps)
        too_much = len(needs) > 1 and sum(needs) > carried_gbps >= max(needs)
        if too_much and (names not in worst or carried_gbps < worst[names][0]):
            worst[names] = (carried_gbps, sum(rates_gbps.values()), address)
    for names, (carried_gbps, total_gbps, address) in worst.items():
        yield Finding(
            ports[0].stage, "pcie.path", ports[0].host, f"PCIe link at {address}", WARNING,
            f"it carries {carried_gbps:.0f} Gb/s for {', '.join(names)}, which together have {total_gbps:g} Gb/s", EXPECTED_PATH,
            f"They cannot all run at their rate at once: spread their cards over the slots of {ports[0].host}, or plan lower rates.",
        )  # fmt: skip


def _users(ports: Sequence[RailPort]) -> dict[str, tuple[float, dict[str, float]]]:
    """By the address of each link what it carries in Gb/s, and the rates of the rails that go through it, by their names."""
    users: dict[str, tuple[float, dict[str, float]]] = {}
    for port in ports:
        rate_gbps = _rate_gbps(port)
        if port.no_pci is not None or rate_gbps is None:
            continue
        for hop in (port.pci, *(port.pci.get("hops") or ())):
            if hop.get("speed_gtps") and hop.get("width"):
                carried_gbps = payload_gbps(hop["speed_gtps"], hop["width"])
                users.setdefault(hop["address"], (carried_gbps, {}))[1][port.rail.name] = rate_gbps
    return users
