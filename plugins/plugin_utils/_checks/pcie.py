# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the PCIe links of a rail's card: its own link, the slowest one on its path to the root, and shared links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction, PciHop, PciLink
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import generation, payload_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie_settings import check_pcie_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import NO_FUNCTION, RailPort, rail_ports, way_of

declare(
    {
        "pcie.link": Check(
            "preflight",
            "the PCIe link of each rail's card: current speed and width against the card's maximum",
            "`current_link_speed`, `current_link_width`, `max_link_*` of the PCI function",
            "reseat the card; check slot, riser and BIOS (bifurcation); only a warning if the rate is not affected or `pcie.path` is the "
            "error",
            sources=reads.PCI_LINK,
        ),
        "pcie.path": Check(
            "preflight, link",
            "the slowest PCIe link between each rail's card and the root, and links that several rails share",
            "the same files of every bridge; compared with the planned rate (preflight), else with the port's rate (link)",
            "move the card to another slot, fix the link, or plan a lower `rate_gbps`",
            sources=reads.PCI_LINK[:2],
        ),
    }
)

PREFLIGHT = "preflight"
#: A link's GT/s and lanes.
Link = tuple[float, int]
#: Payload share of RoCE v2 over IPv4 at an MTU of 4096 bytes, with 82 bytes of headers a packet; InfiniBand has a larger share.
MTU_EFFICIENCY = 0.98
#: A path that carries less than this part of a port's payload limits it: the threshold of a pair warning.
ENOUGH = 0.95
EXPECTED_LINK = "the card's maximum speed and width"
EXPECTED_PATH = "every PCIe link up to the root carries the port's rate"


def check_pcie(host: str, rails: Sequence[Rail], facts: Facts, stage: str, *, mrrs_planned: bool = False) -> list[Finding]:
    """The findings on PCIe that belong to a stage, preflight or link.

    preflight: `pcie.link`, `pcie.payload`, `pcie.mrrs`, `pcie.acs`, `pcie.distance` for each planned rail, `host.iommu` for the host, and
    `pcie.path` for each rail with a planned rate. link: `pcie.path` for the others, against the port's current rate.
    mrrs_planned: whether the host stage sets MRRS, whose gate then judges it.
    """
    ports = rail_ports(stage, host, rails, facts)
    if facts.iommu and facts.iommu.virtual_machine:
        ports = [_without_bridges(port) for port in ports]
    judged = [port for port in ports if (port.planned_gbps is not None) == (stage == PREFLIGHT)]
    paths = [*(_path(port) for port in judged), *_shared(judged)]
    if stage != PREFLIGHT:
        return paths
    return [*(_link(port) for port in ports), *paths, *check_pcie_settings(host, ports, facts, mrrs_planned=mrrs_planned)]


def _without_bridges(port: RailPort) -> RailPort:
    """The port of a virtual machine without its bridges, which the hypervisor emulates (QEMU shows 2.5 GT/s x1 above a VF)."""
    pci = port.pci
    if pci is None:
        return port
    narrowest = PciLink(pci.address, pci.speed_gtps, pci.width) if pci.speed_gtps and pci.width else None
    own = replace(pci, narrowest=narrowest, hops=[])
    return replace(port, card=own, device=port.device and replace(port.device, pci=own))


def needed_gbps(rate_gbps: float) -> float:
    """The payload rate that a path must carry so that it does not limit a port of this rate."""
    return ENOUGH * MTU_EFFICIENCY * rate_gbps


def _rate_gbps(port: RailPort) -> float | None:
    """The planned rate; without one, the current rate of a port that is up."""
    return port.planned_gbps if port.planned_gbps is not None else (port.rate_gbps if port.not_judged is None else None)


def link_words(speed_gtps: float, width: int) -> str:
    """A link in the usual notation: "Gen4 x8"."""
    number = generation(speed_gtps)
    return f"{f'Gen{number}' if number else f'{speed_gtps:g} GT/s'} x{width}"


def _links(item: PciFunction | PciHop) -> tuple[Link, Link] | None:
    """A function's current link and its best one; None if any of the four values is not known."""
    if item.speed_gtps and item.width and item.max_speed_gtps and item.max_width:
        return (item.speed_gtps, item.width), (item.max_speed_gtps, item.max_width)
    return None


def _is_below(now: Link, most: Link) -> bool:
    """Whether a link is slower or narrower than its function supports."""
    return now[0] < most[0] or now[1] < most[1]


def _link(port: RailPort) -> Finding:
    pci, check = port.pci, "pcie.link"
    if pci is None or port.no_pci:
        return port.skip(check, port.no_pci or NO_FUNCTION, EXPECTED_LINK)
    if port.virtual:
        return port.skip(check, "a virtual function has no link of its own", EXPECTED_LINK)
    links = _links(pci)
    if links is None:
        return port.skip(check, f"{pci.address} reports no PCIe link, as in many virtual machines", EXPECTED_LINK)
    now, most = links
    if not _is_below(now, most):
        return port.finding(check, OK, link_words(*now), EXPECTED_LINK)
    planned_gbps = port.planned_gbps
    caps = planned_gbps is not None and payload_gbps(*now) < needed_gbps(planned_gbps)
    own_is_narrowest = pci.narrowest is not None and pci.narrowest.address == pci.address
    observed = f"{link_words(*now)} of {link_words(*most)}"
    if caps and own_is_narrowest:
        observed += ": see pcie.path for the effect"
    status = ERROR if caps and not own_is_narrowest else WARNING
    return port.finding(check, status, observed, EXPECTED_LINK, _remedy(port, pci))


def _remedy(port: RailPort, pci: PciFunction) -> str:
    """The remedy for a card's own link that is below its maximum."""
    links, where = _links(pci), f"card {pci.address} of {port.host}"
    slot = next(iter(pci.hops), None)
    if slot and slot.max_speed_gtps and slot.max_width and links and _is_below(*links):
        now, best = links
        most = (min(slot.max_speed_gtps, best[0]), min(slot.max_width, best[1]))
        if most == now:
            return f"Move {where} to a faster slot: this one ({slot.address}) supports at most {link_words(*most)}."
    return (
        f"1. Reseat {where}. 2. Run `lspci -vv -s {pci.address}` there and compare LnkSta with LnkCap. "
        "3. If LnkSta is still lower, check slot, riser and BIOS (bifurcation, link speed)."
    )


def _path(port: RailPort) -> Finding:
    check, pci, rate_gbps = "pcie.path", port.pci, _rate_gbps(port)
    if pci is None or port.no_pci:
        return port.skip(check, port.no_pci or NO_FUNCTION, EXPECTED_PATH)
    narrowest = pci.narrowest
    if narrowest is None:
        why_not = f"no link from {pci.address} up to the root reports its speed, as in many virtual machines"
        return port.skip(check, why_not, EXPECTED_PATH)
    if rate_gbps is None:
        return port.skip(check, port.not_judged or f"{port.name} reports no rate, and none is planned", EXPECTED_PATH)
    carried_gbps = payload_gbps(narrowest.speed_gtps, narrowest.width)
    place, remedy = _place(port, pci, narrowest.address)
    words = f"{link_words(narrowest.speed_gtps, narrowest.width)} at {narrowest.address} ({place})"
    if carried_gbps >= needed_gbps(rate_gbps):
        return port.finding(check, OK, f"{words} is the slowest and carries {carried_gbps:.0f} Gb/s", EXPECTED_PATH)
    observed = f"{words} limits this {rate_gbps:g} Gb/s port to {carried_gbps:.0f} Gb/s"
    return port.finding(check, ERROR, observed, EXPECTED_PATH, remedy)


def _place(port: RailPort, pci: PciFunction, address: str) -> tuple[str, str]:
    """The place of a link on the path to the root, and the remedy."""
    hops = pci.hops
    if address == pci.address or (hops and address == hops[0].address):
        place, links = "the card's own link" if address == pci.address else "the link of the card's slot", _links(pci)
        if links is None or _is_below(*links):
            return place, _remedy(port, pci)
        return place, f"Card {pci.address} of {port.host} is at its maximum: replace the card, or plan a lower rate_gbps."
    place = "the root port" if hops and address == hops[-1].address else "the uplink of a PCIe switch" if hops else "above the card"
    links = next((_links(hop) for hop in hops if hop.address == address), None)
    look = f"`lspci -vv -s {address}` on {port.host}"
    if links and _is_below(*links):
        return place, (
            f"1. Run {look} and compare LnkSta with LnkCap: the link supports {link_words(*links[1])}. 2. Check riser, backplane and BIOS."
        )
    return place, f"1. Run {look}. 2. Move card {pci.address} to a slot with a faster path to the root, or plan a lower rate_gbps."


def _shared(ports: Sequence[RailPort]) -> Iterator[Finding]:
    """A warning for each link that several rails share and that cannot carry all of them at once.

    Of several links on a path it is the slowest, of equally fast ones the nearest. A link that limits a single rail is skipped: that
    rail has its own finding.
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
            f"it carries {carried_gbps:.0f} Gb/s, but {', '.join(names)} together need {total_gbps:g} Gb/s", EXPECTED_PATH,
            f"Spread the cards over other slots of {ports[0].host}, or plan lower rates: these rails cannot reach their rates at once.",
        )  # fmt: skip


def _users(ports: Sequence[RailPort]) -> dict[str, tuple[float, dict[str, float]]]:
    """By the address of each link: the Gb/s it carries, and the rates of the rails that use it, by their names."""
    users: dict[str, tuple[float, dict[str, float]]] = {}
    for port in ports:
        pci, rate_gbps = port.pci, _rate_gbps(port)
        if pci is None or port.software or rate_gbps is None:
            continue
        for hop in way_of(pci):
            if hop.speed_gtps and hop.width:
                carried_gbps = payload_gbps(hop.speed_gtps, hop.width)
                users.setdefault(hop.address, (carried_gbps, {}))[1][port.rail.name] = rate_gbps
    return users
