# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MRRS of NICs and ACS of the bridges between GPUs and NICs: read, written where they differ, read back.

For an MRRS (maximum read request size) of 4096 bytes it does what `setpci -s ADDRESS CAP_EXP+8.w=5000:7000` does to every function of a
card: bits 14:12 of Device Control change and no others. Of ACS, `setpci -s BRIDGE ECAP_ACS+6.w=0000:001d`: only the controls that redirect
are disabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import gpu_addresses, read_gpus
from ansible_collections.rdma.cluster.plugins.module_utils._pci.capabilities import word
from ansible_collections.rdma.cluster.plugins.module_utils._pci.control import (
    MRRS_MASK,
    ControlWords,
    decode_acs,
    decode_mps,
    decode_mrrs,
    encode_acs,
    encode_mrrs,
    find_control_words,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES, parse_id, read_function_kind, read_iommu
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import function_paths
from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import ConfigPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import (
    BARE_METAL,
    DATADIRECT,
    LEAVE,
    REDIRECTING,
    THIS_PLATFORM,
    VM,
    is_data_direct,
    platform,
    slot_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import ACS, MRRS, PcieRequest, Setting

VIRTUAL_FUNCTION = "a virtual function: what its physical function has set holds"
_ACS_MASK = encode_acs(REDIRECTING)
REFUSED = "the kernel refuses the write, as it does in lockdown (Secure Boot)"


@dataclass
class Survey:
    """The result of a survey. payload: the MPS, which is never written, of each function. left: (what, why) of everything not to be tuned.

    problems: the obstacles to a requested setting, a sentence each.
    """

    acs: str = LEAVE
    settings: list[Setting] = field(default_factory=list)
    payload: dict[str, int | None] = field(default_factory=dict)
    left: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def different(self) -> list[Setting]:
        return [setting for setting in self.settings if setting.differs]


def survey(request: PcieRequest, sys: SysRoot, port: ConfigPort) -> Survey:
    """Look at everything that a request covers; nothing is written."""
    found = Survey()
    there = []
    for nic in request.nics:
        if not sys.exists(f"{PCI_DEVICES}/{nic}"):
            found.problems.append(f"there is no PCI function {nic}")
        elif read_function_kind(sys, f"{PCI_DEVICES}/{nic}")[0] == "vf":
            found.left.append((nic, VIRTUAL_FUNCTION))
        else:
            there.append(nic)
    fast = {slot_of(nic) for nic in request.mrrs_cards}
    for address in sorted({function for nic in there for function in card_functions(sys, nic)}):
        _look_at_card(found, request.mrrs_bytes if slot_of(address) in fast else None, address, port, named=address in there)
    _look_at_bridges(found, request, there, sys, port)
    return found


def card_functions(sys: SysRoot, nic: str) -> list[str]:
    """Return all physical functions of the card that a function belongs to."""
    names = [name for name in sys.list_dir(PCI_DEVICES) if slot_of(name) == slot_of(nic)]
    return [name for name in names if sys.link_target(f"{PCI_DEVICES}/{name}/physfn") is None]


def bridges_between(sys: SysRoot, nics: Sequence[str]) -> list[str]:
    """Return the bridges above NICs and above GPUs, up to the root ports; none without a GPU or without a NIC."""
    gpus = gpu_addresses(sys)
    paths = [sys.resolve(f"{PCI_DEVICES}/{address}") or "" for address in (*nics, *gpus)]
    above = {path.rsplit("/", 1)[1] for each in paths for path in function_paths(each)[1:]}
    return sorted(above) if nics and gpus else []


def _look_at_card(found: Survey, mrrs_bytes: int | None, address: str, port: ConfigPort, *, named: bool) -> None:
    words = _control_words(found, address, port)
    if words is None:
        return
    if words.device is None:
        if named and mrrs_bytes is not None:
            found.problems.append(f"{address}: no PCI Express capability can be read")
        return
    control = word(port.read(address, words.device, 2))
    found.payload[address] = decode_mps(control)
    if mrrs_bytes is not None:
        bits = encode_mrrs(mrrs_bytes)
        found.settings.append(Setting(address, MRRS, decode_mrrs(control), mrrs_bytes, words.device, MRRS_MASK, bits))


def _look_at_bridges(found: Survey, request: PcieRequest, nics: Sequence[str], sys: SysRoot, port: ConfigPort) -> None:
    found.acs, why = _mode(found, request.acs, nics, sys)
    for address in bridges_between(sys, nics) if found.acs != LEAVE else []:
        words = _control_words(found, address, port)
        if words is None or words.acs is None:
            continue
        controls = decode_acs(word(port.read(address, words.acs, 2)))
        if found.acs == BARE_METAL:
            kept = [name for name in controls if name not in REDIRECTING]
            found.settings.append(Setting(address, ACS, controls, kept, words.acs, _ACS_MASK, 0))
        elif controls:
            found.left.append((address, f"ACS {', '.join(controls)} {why}"))


def _mode(found: Survey, requested: str, nics: Sequence[str], sys: SysRoot) -> tuple[str, str]:
    """Return the ACS mode to apply, and why controls stay if they do."""
    if requested in (LEAVE, VM, DATADIRECT) or not nics:
        return requested if nics else LEAVE, f"stays: acs is {requested}"
    models = [gpu.model for gpu in read_gpus(sys)[0]]
    device_ids = [sys.value(f"{PCI_DEVICES}/{nic}/device", parse_id) for nic in nics]
    if requested == BARE_METAL:
        if not is_data_direct(models, device_ids):
            return BARE_METAL, ""
        found.problems.append(f"acs is bare_metal, but {THIS_PLATFORM}")
        return DATADIRECT, "stays"
    detected = platform(models, device_ids, read_iommu(sys, running=True).virtual_machine)
    if detected.mode is None:
        found.left.append((ACS, detected.why))
    return detected.mode or LEAVE, f"stays: {detected.why}"


def _control_words(found: Survey, address: str, port: ConfigPort) -> ControlWords | None:
    try:
        words = find_control_words(lambda offset, length: port.read(address, offset, length))
    except (ParseError, OSError) as exc:
        found.problems.append(f"{address}: {exc}")
        return None
    if words is None:
        found.problems.append(f"{address}: nothing answers, as when a device fell off the bus")
    return words


@dataclass
class Applied:
    """The outcome of writing settings. refused: those that the kernel did not permit; failures: a sentence for each other failure."""

    refused: list[Setting] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def apply(settings: Sequence[Setting], port: ConfigPort) -> Applied:
    """Write the settings that differ and read them back."""
    done = Applied()
    for setting in settings:
        if setting.differs:
            _write(setting, port, done)
    return done


def _write(setting: Setting, port: ConfigPort, done: Applied) -> None:
    try:
        before = word(port.read(setting.address, setting.offset, 2))
        port.write_word(setting.address, setting.offset, before & ~setting.mask | setting.bits)
        after = word(port.read(setting.address, setting.offset, 2))
    except PermissionError:
        done.refused.append(setting)
        return
    except OSError as exc:
        done.failures.append(f"{setting.address}: {exc}")
        return
    if after & setting.mask != setting.bits:
        seen = decode_mrrs(after) if setting.name == MRRS else decode_acs(after)
        done.failures.append(
            f"{setting.words(setting.new)} was written, and {setting.shown(seen)} is read back: "
            "the device ignores the write, as devices that QEMU emulates do"
        )
