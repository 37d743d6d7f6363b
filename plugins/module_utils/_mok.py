# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The key that DKMS signs modules with (a machine owner key), and whether the firmware knows it: with Secure Boot no other module loads.

Sources: dkms 2.8 to 3.4 (dkms.in: prepare_signing, prepare_mok), mokutil 0.2 to 0.7.2 and what came after it (src/mokutil.c: test_key).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._distribution import Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot, named

FRAMEWORK = "/etc/dkms/framework.conf"
#: Where dkms puts the key that it makes itself, and where Ubuntu's update-secureboot-policy does.
DKMS_KEY = "/var/lib/dkms/mok.pub"
UBUNTU_KEY = "/var/lib/shim-signed/mok/MOK.der"
_SETTING = re.compile(r"^[ \t]*(?:export[ \t]+)?(mok_signing_key|mok_certificate)=(.*)$", re.MULTILINE)
# The answers of mokutil. Its exit status tells nothing: that of an enrolled key is 1 up to 0.7.2, and 0 after it.
_TRUSTED = (" is already enrolled", " is already in db", " is already in the built-in trusted keyring")
_NOT_TRUSTED = (" is not enrolled", " is already in the enrollment request")
# By the firmware or by shim, whose list has had two names: "mok.pub is blocked in dbx", "in MokListX", "in MokListXRT".
_BLOCKED = re.compile(r" is blocked in \w+$")


@dataclass(frozen=True)
class Mok:
    """key: the path of the certificate; None where there is none yet, as DKMS makes one when it first builds, which nobody has enrolled.

    enrolled: whether the firmware, shim or the kernel knows it; None where that was not told. said: what mokutil says, word for word,
    or why it is not known which key it is (which is None then, too); None where mokutil was not asked or is not installed.
    """

    key: str | None
    enrolled: bool | None
    said: str | None = None


def parse_framework(text: str) -> dict[str, str]:
    """mok_signing_key and mok_certificate, as far as a file of dkms's configuration sets them; of several lines the last counts.

    The file is a script of the shell: what it computes is not known here. Raises ParseError for a value that is no single word.
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
    """Whether a key is trusted, from all that `mokutil --test-key FILE` prints, on standard error too.

    A key whose enrolment is requested is not yet trusted. Raises ParseError for any other answer: no certificate, no EFI.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    if any(line.endswith(_NOT_TRUSTED) or _BLOCKED.search(line) for line in lines):
        return False
    if any(line.endswith(_TRUSTED) for line in lines):
        return True
    raise ParseError(f"not an answer of `mokutil --test-key`: {text[:200]!r}, expected '… is already enrolled' or '… is not enrolled'")


def key_of(settings: Mapping[str, str], distribution: Distribution, kernel: str | None) -> str:
    """The path of the certificate that dkms signs with. settings: those of parse_framework, of all its files.

    Where no key is set, Ubuntu and what is made from it have their own; a certificate that is set without a key counts elsewhere only.
    """
    is_ubuntu = distribution.id == "ubuntu" or distribution.like[:1] == ["ubuntu"]
    if is_ubuntu and not settings.get("mok_signing_key"):
        return UBUNTU_KEY
    path = settings.get("mok_certificate") or DKMS_KEY
    return re.sub(r"\$(?:kernelver\b|\{kernelver\})", kernel or "", path)


def read_mok(sys: SysRoot, runner: Runner, distribution: Distribution, kernel: str | None) -> Mok:
    """The key and whether it is enrolled: the running system's mokutil is asked, once, if there is a key."""
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
    said = f"{done.stdout.strip()}\n{done.stderr.strip()}".strip()
    try:
        return Mok(key, parse_test_key(said), said)
    except ParseError:
        return Mok(key, enrolled=None, said=said or None)


def _settings(sys: SysRoot) -> dict[str, str]:
    """What all files of dkms's configuration set, in the order in which it reads them."""
    extra = [f"{FRAMEWORK}.d/{name}" for name in sys.list_dir(f"{FRAMEWORK}.d") if name.endswith(".conf")]
    settings: dict[str, str] = {}
    for path in (FRAMEWORK, *extra):
        settings.update(named(path, parse_framework, sys.read(path) or ""))
    return settings
