# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the host gate on PCIe: MRRS and ACS as requested, now and at the next boot, and the changes that are withheld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import differs
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UNITS, UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import LOCKED_DOWN, lockdown_words
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import (
    AUTO,
    BARE_METAL,
    DATADIRECT,
    LEAVE,
    NO_GPU,
    THIS_PLATFORM,
    platform,
    redirecting,
    slot_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import ACS_EFFECT, EFFECTS, MRRS_EFFECT, PcieRequest
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.runner import CONFIG
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.tuning import VIRTUAL_FUNCTION
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE as CAUSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import NO_DEVICE, RailPort, rail_ports

declare(
    {
        "host.pcie": Check(
            "host",
            "MRRS of each rail's card and ACS between GPUs and NICs as requested, and the service that sets them at boot; a warning if "
            "only a default is not allowed, or a job runs on the host",
            "PCI configuration space, `systemctl show`, the collection's files, `/sys/kernel/security/lockdown`, `/proc`",
            "set `pcie_mrrs_allowed: true` or `pcie_acs_write_allowed: true` and run the host stage; or change `rdma_host.pcie`; "
            "`journalctl --unit rdma-pcie.service`",
            follows=CAUSES,
            sources=(
                reads.but(reads.CONFIG, about="[rA]*"),
                reads.but(reads.UNITS, about="*at boot"),
                reads.file(
                    "/etc/systemd/system/rdma-pcie.service",
                    absent_means="the service is missing, which is an error",
                    garbled_means="different content is an error",
                    about="*at boot",
                ),
            ),
        ),
    }
)

DRIVER = "mlx5_core"
#: The MRRS that auto requests for ports of FAST_GBPS or more. The kernel's 512 bytes are enough for slower ports.
BEST_MRRS_BYTES = 4096
FAST_GBPS = 100.0


@dataclass(frozen=True)
class PcieState:
    """The state that tuning depends on. acs_mode: the mode of auto, None if it is not known; acs_why: the reason.

    mrrs_bytes: physical function of a NIC → bytes, None if it was not read; redirecting: a NIC's function → the bridges above it that
    redirect; gpu_redirecting: those above GPUs.
    """

    acs_mode: str | None
    acs_why: str
    mrrs_bytes: Mapping[str, int | None]
    redirecting: Mapping[str, list[str]]
    gpu_redirecting: list[str]


def pcie_state(facts: Facts) -> PcieState:
    """The PCIe state of a host from its facts."""
    devices = [device for device in facts.devices.values() if device.function == "pf"]
    own, gpus = {device.pci.address: device.pci for device in devices if device.pci is not None}, facts.gpus or []
    slots = {slot_of(address) for address in own}
    beside = {address: pci for address, pci in facts.nics.items() if slot_of(address) in slots}
    virtual_machine = facts.iommu.virtual_machine if facts.iommu is not None else None
    found = platform([gpu.model for gpu in gpus], [pci.device_id for pci in own.values()], virtual_machine)
    blocked = {address: _redirecting_hops(pci) for address, pci in sorted(own.items())}
    return PcieState(
        acs_mode=found.mode if facts.gpus is not None else None,
        acs_why=found.why if facts.gpus is not None else "GPUs were not read",
        mrrs_bytes={address: pci.mrrs_bytes for address, pci in sorted({**own, **beside}.items())},
        redirecting={address: bridges for address, bridges in blocked.items() if bridges},
        gpu_redirecting=sorted({bridge for gpu in gpus if gpu.pci is not None for bridge in _redirecting_hops(gpu.pci)}),
    )


def _redirecting_hops(pci: PciFunction) -> list[str]:
    return [hop.address for hop in pci.hops if redirecting(hop.acs)]


@dataclass(frozen=True)
class Withheld:
    """Requested changes that are not made, in words, and the reason."""

    changes: str
    reason: str

    @property
    def words(self) -> str:
        return f"{self.changes}; {self.reason}"


def requested(intent: Intent, facts: Facts) -> PcieRequest:
    """The settings that the intent requests for the cards of a host's rails, allowed or not."""
    rates = {address: rate_gbps(rail, facts) for rail in resolve(intent["rails"], facts) if (address := _card(rail, facts)) is not None}
    nics = tuple(sorted(rates))
    fast = tuple(nic for nic in nics if (rates[nic] or 0) >= FAST_GBPS) if mrrs_setting(intent) == AUTO else nics
    size = planned_mrrs_bytes(intent) if fast else None
    return PcieRequest(nics, size, planned_acs(intent, facts) or LEAVE, None if fast == nics or size is None else fast)


def pcie_request(intent: Intent, facts: Facts, *, acs_allowed: bool, mrrs_allowed: bool) -> PcieRequest:
    """The requested settings that may be made: those that are allowed, and none that kernel lockdown forbids."""
    request = requested(intent, facts)
    locked = lockdown_of(facts) in LOCKED_DOWN
    mrrs_made = mrrs_allowed and not locked
    return PcieRequest(
        request.nics,
        request.mrrs_bytes if mrrs_made else None,
        LEAVE if request.acs == BARE_METAL and (locked or not acs_allowed) else request.acs,
        request.mrrs_nics if mrrs_made else None,
    )


def boot_request(intent: Intent, facts: Facts, *, acs_allowed: bool, mrrs_allowed: bool) -> PcieRequest:
    """The settings that the service has to apply at boot.

    These are the allowed settings. Withdrawing a permission removes no setting from the existing service: the result is then the
    requested settings that its file contains, or all of them if the file differs from every plan.
    """
    made = pcie_request(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    permits = ((True, True), (True, mrrs_allowed), (acs_allowed, True))
    plans = [pcie_request(intent, facts, acs_allowed=acs, mrrs_allowed=mrrs) for acs, mrrs in permits]
    if not plans[0] or plans[0] == made or CONFIG not in (facts.files or {}):
        return made
    return next((request for request in (*plans, made) if request and not differs(service_files(request)[0], facts.files)), plans[0])


def kept_effects(boot: PcieRequest, made: PcieRequest) -> list[str]:
    """The effects whose settings the service still has although they are no longer allowed."""
    mrrs = boot.mrrs_bytes is not None and made.mrrs_bytes is None
    return [effect for effect, is_kept in ((MRRS_EFFECT, mrrs), (ACS_EFFECT, boot.acs != made.acs)) if is_kept]


def withheld(intent: Intent, facts: Facts, *, acs_allowed: bool, mrrs_allowed: bool, busy: str = "") -> dict[str, Withheld]:
    """Effect of the role → the change that is requested and not made, and why; only what differs from the facts.

    busy: the jobs on the host, in words; they withhold every change.
    """
    request, lockdown = requested(intent, facts), lockdown_of(facts)
    changes = {MRRS_EFFECT: ", ".join(mrrs_changes(request, facts)), ACS_EFFECT: ""}
    if request.acs == BARE_METAL and (bridges := redirecting_bridges(pcie_state(facts), request)):
        changes[ACS_EFFECT] = f"{', '.join(bridges)} redirect traffic between GPUs and NICs to the root complex"
    allowed = {MRRS_EFFECT: mrrs_allowed, ACS_EFFECT: acs_allowed}
    reasons = {effect: "" if allowed[effect] else f"pcie_{effect}_allowed is false" for effect in EFFECTS}
    if lockdown in LOCKED_DOWN:
        reasons = dict.fromkeys(EFFECTS, lockdown_words(lockdown))
    else:
        reasons = {effect: reason or busy for effect, reason in reasons.items()}
    return {effect: Withheld(changes[effect], reasons[effect]) for effect in EFFECTS if changes[effect] and reasons[effect]}


def mrrs_changes(request: PcieRequest, facts: Facts) -> list[str]:
    """The functions whose MRRS is not the requested one, in words: "0000:3d:00.0 MRRS of 512 bytes → 4096 bytes"."""
    state = pcie_state(facts)
    sizes = {address: size for nic in request.mrrs_cards for address, size in mrrs_of(state, nic).items()}
    planned = request.mrrs_bytes
    return [f"{address} MRRS of {size} bytes → {planned} bytes" for address, size in sorted(sizes.items()) if size != planned]


def rate_gbps(rail: ResolvedRail, facts: Facts) -> float | None:
    """The planned rate; without one the rate of a port that is up."""
    planned: float | None = rail.rail.get("rate_gbps")
    if planned is not None or rail.device is None or rail.port is None:
        return planned
    port = facts.devices[rail.device].ports[rail.port]
    return port.rate_gbps if port.state == "ACTIVE" else None


def mrrs_setting(intent: Intent) -> int | str:
    """The intent's rdma_host.pcie.mrrs_bytes: a size, "auto" or "leave"."""
    setting: int | str = intent["host"]["pcie"]["mrrs_bytes"]
    return setting


def planned_mrrs_bytes(intent: Intent) -> int | None:
    """The requested MRRS in bytes, None if it is not changed. For auto it is the MRRS of fast cards."""
    setting = mrrs_setting(intent)
    return {LEAVE: None, AUTO: BEST_MRRS_BYTES}.get(setting) if isinstance(setting, str) else setting


def lockdown_of(facts: Facts) -> str | None:
    """The state of kernel lockdown; None if the facts do not have it."""
    return facts.stack.lockdown if facts.stack is not None else None


def planned_acs(intent: Intent, facts: Facts) -> str | None:
    """The requested ACS mode, or the mode of auto; None if that is not known."""
    mode: str | None = intent["host"]["pcie"]["acs"]
    return pcie_state(facts).acs_mode if mode == AUTO else mode


def mrrs_of(state: PcieState, nic: str) -> dict[str, int | None]:
    """The MRRS of each function of a NIC's card."""
    return {address: size for address, size in state.mrrs_bytes.items() if slot_of(address) == slot_of(nic)}


def redirecting_bridges(state: PcieState, request: PcieRequest) -> list[str]:
    """The redirecting bridges above GPUs and above the NICs whose settings are requested."""
    above = {bridge for nic in request.nics for bridge in state.redirecting.get(nic, ())}
    return sorted(above | set(state.gpu_redirecting)) if request.nics else []


def _card(rail: ResolvedRail, facts: Facts) -> str | None:
    """The PCI function of a rail's card; None for cards that are not tuned: software, virtual functions, other drivers."""
    device = facts.devices[rail.device] if rail.device is not None else None
    if device is None or device.pci is None or rail.rail.get("soft") or device.software:
        return None
    return device.pci.address if device.driver == DRIVER and device.function == "pf" else None


STAGE, CHECK = "host", "host.pcie"
ACS_SUBJECT, BOOT_SUBJECT = "ACS between GPUs and NICs", "PCIe settings at boot"


def check_pcie_tuning(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `host.pcie`: MRRS of each rail, ACS of the host, and whether the next boot applies both again.

    A requested value that is not set is an error. It is a warning while a job withholds it, or if the value is only our default
    (auto) and is not allowed or blocked by kernel lockdown.
    """
    allowed = intent.get("allowed") or {}
    permits = {"acs_allowed": bool(allowed.get("pcie_acs_write")), "mrrs_allowed": bool(allowed.get("pcie_mrrs"))}
    reasons = withheld(intent, facts, **permits, busy=busy_words(facts.load) if facts.load is not None else "")
    request = boot_request(intent, facts, **permits)
    ports = rail_ports(STAGE, host, intent["rails"], facts)
    missing = [port.rail.rail["name"] for port in ports if port.device is None and not port.software]
    return [
        *(_mrrs(port, intent, facts, reasons.get(MRRS_EFFECT)) for port in ports),
        _acs(host, intent, facts, reasons.get(ACS_EFFECT)),
        _boot(host, facts, request, next(iter(reasons.values()), None), missing),
    ]


def _mrrs(port: RailPort, intent: Intent, facts: Facts, reason: Withheld | None) -> Finding:
    setting, request = mrrs_setting(intent), requested(intent, facts)
    expected = "any" if request.mrrs_bytes is None else f"MRRS of {request.mrrs_bytes} bytes on every function of the card"
    why_not = "rdma_host.pcie.mrrs_bytes is leave: MRRS is not checked" if setting == LEAVE else _not_tuned(port)
    if why_not is None and port.address not in request.mrrs_cards:
        why_not = _not_fast(port, facts)
    if setting != LEAVE and (unread := _unread(port, why_not, facts)):
        return port.unread(CHECK, unread, expected)
    if why_not is not None:
        return port.skip(CHECK, why_not, expected)
    found = mrrs_of(pcie_state(facts), port.address)
    words = ", ".join(f"{address} {size} bytes" for address, size in found.items() if size is not None)
    if not found or None in found.values():
        remedy = f"1. On {port.host}, run `lspci -vvv -s {port.address}` as root (MaxReadReq). 2. Run the stage again as root."
        return port.finding(CHECK, UNKNOWN, f"MRRS of some functions could not be read; read: {words or 'none'}", expected, remedy)
    if set(found.values()) == {request.mrrs_bytes}:
        return port.finding(CHECK, OK, words, expected)
    if reason is not None:
        return port.finding(
            CHECK,
            _withheld_status(setting, facts),
            f"{words}; withheld: {reason.reason}",
            expected,
            _mrrs_remedy(port.host, facts, reason.reason),
        )
    remedy = (
        f"1. Run the host stage for {port.host}. 2. If the write does not stick, set rdma_host.pcie.mrrs_bytes to another size or to leave."
    )
    return port.finding(CHECK, ERROR, words, expected, remedy)


def _withheld_status(setting: int | str, facts: Facts) -> str:
    """WARNING for the default, and while a job runs; ERROR for a value that the intent requests explicitly."""
    return WARNING if setting == AUTO or _is_busy(facts) else ERROR


def _is_busy(facts: Facts) -> bool:
    return lockdown_of(facts) not in LOCKED_DOWN and facts.load is not None and bool(busy_words(facts.load))


def _mrrs_remedy(host: str, facts: Facts, reason: str) -> str:
    if lockdown_of(facts) in LOCKED_DOWN:
        return (
            f"1. If {host} passes the pairs stage, set rdma_host.pcie.mrrs_bytes to leave. 2. Else disable Secure Boot in the "
            f"BIOS of {host}, or remove lockdown= from its kernel command line, reboot it and run the host stage."
        )
    if "_allowed is false" in reason:
        return (
            f"1. In the inventory, set `pcie_mrrs_allowed: true` for {host} and run the host stage while {host} is idle. "
            "2. Or set rdma_host.pcie.mrrs_bytes to leave."
        )
    return f"Run the host stage when {host} is idle."


def _not_fast(port: RailPort, facts: Facts) -> str:
    """Why auto does not apply to a card."""
    known = rate_gbps(port.rail, facts)
    if known is None:
        return port.not_judged or f"{port.name} reports no rate, and none is planned"
    return f"{known:g} Gb/s: MRRS does not limit cards below {FAST_GBPS:g} Gb/s"


def _unread(port: RailPort, why_not: str | None, facts: Facts) -> str:
    """The unread facts of an existing NIC, without which it is not clear whether it is tuned (why_not); "" if none."""
    if port.software or not port.device or why_not is None:
        return ""
    known = {"PCI function": port.pci, "kind of PCI function": port.device.function, "driver": port.device.driver}
    missing = [what for what, value in known.items() if not value]
    if missing:
        return f"the {' and the '.join(missing)} of {port.rail.device} could not be read"
    has_no_rate = why_not not in {VIRTUAL_FUNCTION, _not_tuned(port)} and rate_gbps(port.rail, facts) is None and port.not_judged is None
    return why_not if has_no_rate else ""


def _not_tuned(port: RailPort) -> str | None:
    """Why a rail's card is not tuned; None if it is."""
    if port.software or not port.device:
        return port.no_pci if port.software else NO_DEVICE
    if port.device.function != "pf":
        return VIRTUAL_FUNCTION
    return port.no_pci if port.device.driver == DRIVER else f"checked for mlx5 only; the driver here is {port.device.driver}"


def _acs(host: str, intent: Intent, facts: Facts, reason: Withheld | None) -> Finding:
    state, planned, request = pcie_state(facts), planned_acs(intent, facts), requested(intent, facts)
    why_not = _acs_left(intent, facts, request)
    if why_not is not None:
        return _acs_finding(host, NOT_APPLICABLE, why_not)
    bridges = redirecting_bridges(state, request)
    if not bridges and not _are_read(facts):
        return _acs_finding(host, UNKNOWN, "the configuration space of no bridge could be read", f"Run `lspci -vvv` on {host} as root.")
    words = f"{', '.join(bridges)} redirect" if bridges else "no bridge redirects"
    if planned is None:
        remedy = f"Set rdma_host.pcie.acs of {host} to its kind of host: bare_metal, vm, datadirect, or leave."
        return _acs_finding(host, UNKNOWN, f"{words}; {state.acs_why}", remedy)
    if state.acs_mode == DATADIRECT:
        return _acs_finding(host, ERROR, THIS_PLATFORM, f"Set rdma_host.pcie.acs of {host} to auto.")
    return _redirects(host, intent, facts, words, reason) if bridges else _acs_finding(host, OK, words)


def _are_read(facts: Facts) -> bool:
    """Whether the configuration of a bridge was read, if there are bridges."""
    hops = [hop for device in facts.devices.values() if device.pci is not None for hop in device.pci.hops]
    return not hops or any(hop.acs is not None or hop.mps_bytes is not None for hop in hops)


def _acs_left(intent: Intent, facts: Facts, request: PcieRequest) -> str | None:
    """Why ACS is not tuned; None if it is, or if that is not known."""
    if not facts.gpus:
        return NO_GPU
    if not request.nics:
        return "no rail has a card whose ACS is tuned"
    given = intent["host"]["pcie"]["acs"]
    if planned_acs(intent, facts) in (BARE_METAL, None):
        return None
    why: str = pcie_state(facts).acs_why
    return why if given == AUTO else f"rdma_host.pcie.acs is {given}: it is not changed"


def _redirects(host: str, intent: Intent, facts: Facts, words: str, reason: Withheld | None) -> Finding:
    """Bridges that redirect: see check_pcie_tuning for the status."""
    if reason is None:
        return _acs_finding(host, ERROR, words, f"Run the host stage for {host}.")
    status = _withheld_status(intent["host"]["pcie"]["acs"], facts)
    remedy = f"Run the host stage when {host} is idle."
    if lockdown_of(facts) in LOCKED_DOWN:
        remedy = f"1. Disable ACS or Secure Boot in the BIOS of {host}, then rerun. 2. Or set rdma_host.pcie.acs to leave."
    elif "_allowed is false" in reason.reason:
        remedy = (
            f"1. In the inventory, set `pcie_acs_write_allowed: true` for {host} and run the host stage while {host} is idle. This removes "
            "isolation between devices. 2. Or set rdma_host.pcie.acs to leave."
        )
    return _acs_finding(host, status, f"{words}; withheld: {reason.reason}", remedy)


def _acs_finding(host: str, status: str, observed: str, remedy: str = "") -> Finding:
    return Finding(STAGE, CHECK, host, ACS_SUBJECT, status, observed, "no bridge redirects", remedy)


def _boot(host: str, facts: Facts, request: PcieRequest, reason: Withheld | None, missing: Sequence[str]) -> Finding:
    """Finding `host.pcie` of the boot service: it exists for the allowed settings and applies no others.

    missing: rails without an RDMA device. The request lacks their cards, so a file that has them cannot be compared with the plan.
    """
    expected = f"{UNIT} applies them" if request else "no service"
    units, files = facts.units, service_files(request)
    if units is None or facts.files is None:
        return _boot_finding(host, UNKNOWN, "systemd or the files could not be read", expected)
    wrong = [file.path for file in files if differs(file, facts.files)]
    unit = units.get(UNIT) or UnitState(active=False, enabled=False)
    state = [word for word, good in (("not enabled", unit.enabled), ("did not run or failed", unit.active)) if not good]
    if missing and wrong and (not request or (wrong == [CONFIG] and not state)):
        return _boot_unknown(host, wrong[0], missing, expected)
    if not request:
        if wrong:
            return _boot_finding(host, ERROR, f"{wrong[0]} exists and applies settings that the plan does not allow", expected)
        return _boot_finding(host, NOT_APPLICABLE, f"withheld: {reason.reason}" if reason else "no setting is requested", expected)
    seen = [*(f"{path} differs from the plan" for path in wrong), *state]
    if seen and reason is not None and _is_busy(facts):
        return _boot_finding(host, WARNING, f"{'; '.join(seen)}; withheld: {reason.reason}", expected)
    return _boot_finding(host, ERROR if seen else OK, "; ".join(seen) or expected, expected)


def _boot_unknown(host: str, path: str, missing: Sequence[str], expected: str) -> Finding:
    seen = f"{path} cannot be compared with the plan while a card is missing: no RDMA device for {', '.join(missing)}"
    remedy = f"1. Fix the RDMA device of {', '.join(missing)} on {host}: see driver.device. 2. Run the host stage for {host}."
    return Finding(STAGE, CHECK, host, BOOT_SUBJECT, UNKNOWN, seen, expected, remedy)


def _boot_finding(host: str, status: str, observed: str, expected: str) -> Finding:
    todo = f"1. Run the host stage for {host}. 2. If it fails again, check `journalctl --unit {UNIT}` and {UNITS}/{UNIT} on {host}."
    return Finding(STAGE, CHECK, host, BOOT_SUBJECT, status, observed, expected, "" if status in (OK, NOT_APPLICABLE) else todo)
