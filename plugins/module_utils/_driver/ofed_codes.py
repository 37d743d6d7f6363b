# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain the exit status of MLNX_OFED's installer, with a remedy.

0 to 173: "mlnxofedinstall Return Codes" of its manual (MLNX_OFED 24.10); 174: mlnxofedinstall of 5.9, which is in no manual.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

_LOG = "read the lines below and the log of {host}"
_CODES = {
    0: ("the installation ended successfully", ""),
    1: ("the installation failed", f"1. Find the first cause: {_LOG}. 2. Run the playbook again."),
    2: (
        "no firmware was found for the adapter device",
        "The driver itself may be installed. 1. Set without_fw_update for {host} (flag --without-fw-update). 2. Run the playbook again.",
    ),
    22: (
        "a parameter is not valid",
        "Compare the flags with `mlnxofedinstall --help` of the same release, and correct driver.flags in the intent of {host}.",
    ),
    28: (
        "there is not enough free space",
        "1. On {host}, run `df -h / /tmp /var/tmp /var/lib`. 2. Free space, or set driver_tmpdir to another folder. 3. Run it again.",
    ),
    171: (
        "it does not apply to this system: no supported adapter was found",
        "On {host}, run `lspci -d 15b3:`. Without output, the NIC is missing or not seated. Otherwise use a release that supports it.",
    ),
    172: (
        "a requirement is missing: the archive is for another distribution, release or architecture, or packages are missing",
        "1. Compare the archive's name with /etc/os-release on {host}. 2. Install the packages named below on {host}.",
    ),
    173: (
        "the mst driver could not be started",
        "On {host}, run `mst start` and `dmesg | tail`. Secure Boot rejects the driver if its key is not enrolled.",
    ),
    174: (
        "other packages depend on the installed stack",
        "Remove the packages named below from {host}, or set force, which removes them together with the old stack.",
    ),
}
#: env's exit codes for a program that is not executable, and for one that does not exist.
_NO_PROGRAM = (126, 127)
_CUT_OFF = "On {host}, `dpkg --configure -a` or `rpm -qa --last` shows incomplete packages. Then run the playbook again; it starts over."


@dataclass(frozen=True)
class Meaning:
    """The meaning of an end, without a full stop, and the remedy as sentences; none for success."""

    text: str
    remedy: str


def explain_end(rc: int | None, result: str, timeout_seconds: int, host: str) -> Meaning:
    """Return the meaning of any program's end. rc: negative for a signal; result: systemd's word (systemd.exec(5), $SERVICE_RESULT)."""
    if result == "timeout":
        return Meaning(
            f"it did not finish within {_span(timeout_seconds)} and was stopped",
            f"If its log shows progress, allow {host} more minutes (driver.build_minutes). {_CUT_OFF.format(host=host)}",
        )
    if result == "oom-kill":
        return Meaning("the kernel killed it because memory ran out", f"Free memory on {host} (`free -m`). {_CUT_OFF.format(host=host)}")
    if rc is None:
        return Meaning(f"it could not be started ({result or 'systemd reports no reason'})", f"Run `journalctl -b -n 50` on {host}.")
    if rc < 0:
        return Meaning(f"{_signal(-rc)} killed it", f"Find out what stopped it. {_CUT_OFF.format(host=host)}")
    return Meaning("it ended successfully", "") if rc == 0 else _explain_code(rc, host)


def _explain_code(rc: int, host: str) -> Meaning:
    if rc in _NO_PROGRAM:
        return Meaning(f"the program could not be run (exit code {rc})", f"Check that it exists on {host}, and is executable.")
    return Meaning(f"it failed with exit code {rc}", f"1. Find the first cause: {_LOG.format(host=host)}. 2. Run the playbook again.")


def explain_installer(rc: int | None, result: str, timeout_seconds: int, host: str) -> Meaning:
    """Return the same for mlnxofedinstall, whose exit codes have their own meanings."""
    if rc is None or rc < 0 or result in ("timeout", "oom-kill"):
        return explain_end(rc, result, timeout_seconds, host)
    if rc not in _CODES:
        codes = ", ".join(str(code) for code in _CODES)
        return Meaning(
            f"the installer exited with {rc}, an unknown exit code of mlnxofedinstall (known: {codes})",
            f"Find the first cause: {_LOG.format(host=host)}.",
        )
    text, remedy = _CODES[rc]
    return Meaning(f"the installer exited with {rc}: {text}" if rc else text, remedy.format(host=host))


def _span(seconds: int) -> str:
    return f"{seconds} seconds" if seconds % 60 or seconds < 120 else f"{seconds // 60} minutes"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
