# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the key that DKMS signs modules with (a machine owner key), and its enrollment: with Secure Boot no other module loads.

Sources: dkms 2.8 to 3.4 (dkms.in: prepare_signing, prepare_mok), mokutil 0.2 to 0.7.2 and later (src/mokutil.c: test_key).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot, named
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution

FRAMEWORK = "/etc/dkms/framework.conf"
#: The key that dkms creates itself, and that Ubuntu's update-secureboot-policy creates.
DKMS_KEY = "/var/lib/dkms/mok.pub"
UBUNTU_KEY = "/var/lib/shim-signed/mok/MOK.der"
_SETTING = re.compile(r"^[ \t]*(?:export[ \t]+)?(mok_signing_key|mok_certificate)=(.*)$", re.MULTILINE)
# The answers of mokutil. Its exit code is not usable: for an enrolled key it is 1 up to 0.7.2, and 0 after it.
_TRUSTED = (" is already enrolled", " is already in db", " is already in the built-in trusted keyring")
_NOT_TRUSTED = (" is not enrolled", " is already in the enrollment request")
# By the firmware or by shim, whose list has had two names: "mok.pub is blocked in dbx", "in MokListX", "in MokListXRT".
_BLOCKED = re.compile(r" is blocked in \w+$")


@dataclass(frozen=True)
class Mok:
    """key: the path of the certificate; None if it does not exist yet: DKMS creates one for its first build, which is not enrolled.

    enrolled: whether the firmware, shim or the kernel knows it; None if unknown. said: the exact answer of mokutil, or why the key is
    unknown (which is None then, too); None if mokutil was not run or is not installed.
    """

    key: str | None
    enrolled: bool | None
    said: str | None = None


def parse_framework(text: str) -> dict[str, str]:
    """Return mok_signing_key and mok_certificate, if a file of dkms's configuration sets them; of several lines the last counts.

    The file is a shell script: computed values are unknown here. Raises ParseError for a value that is not a single word.
    """
    found = {}
    for name, value in _SETTING.findall("\n".join(lines_of(text))):
        try:
            words = shlex.split(value, comments=True)
        except ValueError as exc:
            raise ParseError(f"{name}: {exc} in {value!r}") from exc
        if len(words) > 1:
            raise ParseError(f"{name}: not one word: {value!r}")
        found[name] = words[0] if words else ""
    return found


def parse_test_key(text: str) -> bool:
    """Return whether a key is trusted, from the whole output of `mokutil --test-key FILE`, with standard error.

    A key whose enrollment is requested is not yet trusted. Raises ParseError for any other answer: no certificate, no EFI.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    if any(line.endswith(_NOT_TRUSTED) or _BLOCKED.search(line) for line in lines):
        return False
    if any(line.endswith(_TRUSTED) for line in lines):
        return True
    raise ParseError(f"not an answer of `mokutil --test-key`: {quoted(text)}, expected '… is already enrolled' or '… is not enrolled'")


def key_of(settings: Mapping[str, str], distribution: Distribution, kernel: str | None) -> str:
    """Return the path of the certificate that dkms signs with. settings: those of parse_framework, of all its files.

    Without a key setting, Ubuntu and its derivatives use their own; a certificate without a key counts only elsewhere.
    """
    is_ubuntu = distribution.id == "ubuntu" or distribution.like[:1] == ["ubuntu"]
    if is_ubuntu and not settings.get("mok_signing_key"):
        return UBUNTU_KEY
    path = settings.get("mok_certificate") or DKMS_KEY
    return re.sub(r"\$(?:kernelver\b|\{kernelver\})", kernel or "", path)


def read_mok(sys: SysRoot, runner: Runner, distribution: Distribution, kernel: str | None) -> Mok:
    """Return the key and whether it is enrolled: the running system's mokutil is run once, if there is a key."""
    try:
        key = key_of(_settings(sys), distribution, kernel)
        if not sys.exists(key):
            return Mok(key=None, enrolled=None)
    except (OSError, ParseError) as exc:
        return Mok(key=None, enrolled=None, said=str(exc))
    try:
        done = runner.run(["mokutil", "--test-key", key])
    except CommandError:
        return Mok(key, enrolled=None)
    answer = f"{done.stdout.strip()}\n{done.stderr.strip()}".strip()
    try:
        return Mok(key, parse_test_key(answer), answer)
    except ParseError:
        return Mok(key, enrolled=None, said=answer or None)


def _settings(sys: SysRoot) -> dict[str, str]:
    """Return the settings of all files of dkms's configuration, in the order in which it reads them."""
    extra = [f"{FRAMEWORK}.d/{name}" for name in sys.list_dir(f"{FRAMEWORK}.d") if name.endswith(".conf")]
    settings: dict[str, str] = {}
    for path in (FRAMEWORK, *extra):
        settings.update(named(path, parse_framework, sys.read(path) or ""))
    return settings


EFI = "/sys/firmware/efi"
VARIABLES = f"{EFI}/efivars"
#: UEFI, "Globally Defined Variables".
SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#: shim's variable for "validate nothing" (`mokutil --disable-validation`), as shown to the running system.
SHIM_INSECURE = "MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
SECURITYFS = "/sys/kernel/security"
LOCKDOWN = f"{SECURITYFS}/lockdown"
#: systemd creates it in a container.
CONTAINER = "/run/systemd/container"
#: The states in which the kernel refuses writes to PCI configuration space, also from root (pci_write_config in drivers/pci/pci-sysfs.c).
LOCKED_DOWN = ("integrity", "confidentiality")
_ATTRIBUTES_BYTES = 4
_NON_VOLATILE = 1
_CHOSEN = re.compile(r"\[([a-z]+)\]")


def parse_secure_boot(data: bytes) -> bool:
    """Parse a variable of efivarfs: its attributes, and one byte that is 1 if Secure Boot is on."""
    if len(data) != _ATTRIBUTES_BYTES + 1 or data[_ATTRIBUTES_BYTES] > 1:
        raise ParseError(f"not the variable SecureBoot: {quoted(data)}, expected {_ATTRIBUTES_BYTES} bytes of attributes and a 0 or 1")
    return data[_ATTRIBUTES_BYTES] == 1


def parse_shim_insecure(data: bytes) -> bool:
    """Return whether the kernel honors shim's variable: one byte that is 1, in a variable that exists for one boot, as shim creates it.

    Anything else counts as forged (efi_get_secureboot in drivers/firmware/efi/libstub of Linux).
    """
    return len(data) == _ATTRIBUTES_BYTES + 1 and data[_ATTRIBUTES_BYTES] == 1 and not data[0] & _NON_VOLATILE


def lockdown_words(state: str) -> str:
    """Return why a write to PCI configuration space is refused, for a state of LOCKED_DOWN."""
    return f"kernel lockdown ({state}) forbids writes to PCI configuration space"


def parse_lockdown(text: str) -> str:
    """Parse /sys/kernel/security/lockdown (security/lockdown/lockdown.c): "none [integrity] confidentiality" → "integrity"."""
    chosen = _CHOSEN.findall(text)
    if len(chosen) != 1:
        raise ParseError(f"not a state of lockdown: {quoted(text)}, expected the form '[none] integrity confidentiality'")
    return str(chosen[0])


def read_secure_boot(sys: SysRoot) -> bool | None:
    """Return whether Secure Boot is on for the kernel; None without EFI, and if its variables are not mounted or may not be read.

    Firmware that has variables, but not this one, does not support it. If shim validates nothing, the kernel treats it as off.
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
    """Return "none", "integrity" (no unsigned modules from there on) or "confidentiality"; None if the file is missing or unreadable."""
    try:
        return sys.value(LOCKDOWN, parse_lockdown)
    except OSError:
        return None


def read_unread(sys: SysRoot, secure_boot: bool | None, lockdown: str | None) -> list[str]:
    """Return which of "secure_boot" and "lockdown" the machine may have, but could not be read; the others without a value do not apply.

    A container shares the kernel of its machine, and often sees neither EFI's variables nor securityfs.
    """
    if sys.exists(CONTAINER):
        return []
    unread = ["secure_boot"] if secure_boot is None and sys.exists(EFI) else []
    return [*unread, "lockdown"] if lockdown is None and _may_have_lockdown(sys) else unread


def _may_have_lockdown(sys: SysRoot) -> bool:
    """Return whether lockdown's file exists, or securityfs is not mounted: a kernel without lockdown has other files there."""
    try:
        return sys.exists(LOCKDOWN) or (sys.exists(SECURITYFS) and not sys.list_dir(SECURITYFS))
    except OSError:
        return True
