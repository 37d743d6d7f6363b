# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secure Boot, and what the kernel locks because of it: it then loads no module that is not signed by a key it knows."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

EFI = "/sys/firmware/efi"
VARIABLES = f"{EFI}/efivars"
#: UEFI, "Globally Defined Variables".
SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#: shim's word for "validate nothing" (`mokutil --disable-validation`), as it shows it to the running system.
SHIM_INSECURE = "MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
SECURITYFS = "/sys/kernel/security"
LOCKDOWN = f"{SECURITYFS}/lockdown"
#: systemd has it in a container.
CONTAINER = "/run/systemd/container"
#: The states in which the kernel refuses writes to PCI configuration space, from root too (pci_write_config in drivers/pci/pci-sysfs.c).
LOCKED_DOWN = ("integrity", "confidentiality")
_ATTRIBUTES_BYTES = 4
_NON_VOLATILE = 1
_CHOSEN = re.compile(r"\[([a-z]+)\]")


def parse_secure_boot(data: bytes) -> bool:
    """A variable of efivarfs: its attributes, and one byte that is 1 if Secure Boot is on."""
    if len(data) != _ATTRIBUTES_BYTES + 1 or data[_ATTRIBUTES_BYTES] > 1:
        raise ParseError(f"not the variable SecureBoot: {data[:40]!r}, expected {_ATTRIBUTES_BYTES} bytes of attributes and a 0 or 1")
    return data[_ATTRIBUTES_BYTES] == 1


def parse_shim_insecure(data: bytes) -> bool:
    """Whether the kernel honours shim's word: one byte that is 1, of a variable that does not outlive a boot, as shim alone makes it.

    Anything else it takes for a variable that somebody has forged (efi_get_secureboot in drivers/firmware/efi/libstub of Linux).
    """
    return len(data) == _ATTRIBUTES_BYTES + 1 and data[_ATTRIBUTES_BYTES] == 1 and not data[0] & _NON_VOLATILE


def lockdown_words(state: str) -> str:
    """Why a write to PCI configuration space is refused, of a state of LOCKED_DOWN."""
    return f"kernel lockdown ({state}) forbids writes to PCI configuration space"


def parse_lockdown(text: str) -> str:
    """/sys/kernel/security/lockdown (security/lockdown/lockdown.c): "none [integrity] confidentiality" → "integrity"."""
    chosen = _CHOSEN.findall(text)
    if len(chosen) != 1:
        raise ParseError(f"not a state of lockdown: {text[:200]!r}, expected the form '[none] integrity confidentiality'")
    return str(chosen[0])


def read_secure_boot(sys: SysRoot) -> bool | None:
    """Whether Secure Boot is on, as the kernel takes it; None without EFI, and where its variables are not mounted or may not be read.

    Firmware that has variables, but not this one, cannot do it. Where shim was told to validate nothing, the kernel takes it for off.
    """
    path = f"{VARIABLES}/{SECURE_BOOT}"
    try:
        data = sys.read_bytes(path) if sys.exists(EFI) else None
        insecure = parse_shim_insecure(sys.read_bytes(f"{VARIABLES}/{SHIM_INSECURE}") or b"")
        has_variables = bool(sys.list_dir(VARIABLES))
    except OSError:
        return None
    if data is None:
        return False if has_variables else None
    try:
        return parse_secure_boot(data) and not insecure
    except ParseError as exc:
        raise ParseError(f"{path}: {exc}") from exc


def read_lockdown(sys: SysRoot) -> str | None:
    """ "none", "integrity" (from there on no unsigned modules) or "confidentiality"; None without the file, or if it is not readable."""
    try:
        return sys.value(LOCKDOWN, parse_lockdown)
    except OSError:
        return None


def read_unread(sys: SysRoot, secure_boot: bool | None, lockdown: str | None) -> list[str]:
    """Which of "secure_boot" and "lockdown" the machine may have, and could not be read; the others without a value do not apply.

    A container shares the kernel of its machine, and often sees neither EFI's variables nor securityfs.
    """
    if sys.exists(CONTAINER):
        return []
    unread = ["secure_boot"] if secure_boot is None and sys.exists(EFI) else []
    return [*unread, "lockdown"] if lockdown is None and _may_have_lockdown(sys) else unread


def _may_have_lockdown(sys: SysRoot) -> bool:
    """Whether lockdown's file is there, or securityfs is not mounted: a kernel without lockdown has other files there."""
    try:
        return sys.exists(LOCKDOWN) or (sys.exists(SECURITYFS) and not sys.list_dir(SECURITYFS))
    except OSError:
        return True
