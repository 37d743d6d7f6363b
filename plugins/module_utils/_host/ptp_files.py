# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of PTP on a host: ptp4l's configuration, its unit, chrony's reference clock, and a udev rule for the NIC's clock.

Only chronyd adjusts the system clock. With hardware time stamps ptp4l adjusts the NIC's clock (PHC), which chronyd follows. With software
time stamps ptp4l adjusts nothing: it hands its measurements to chronyd in shared memory (`clock_servo ntpshm`), and its unit has no
CAP_SYS_TIME. Sources: ptp4l(8), chrony.conf(5), refclock_shm.c and refclock_phc.c of chrony.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import hardened
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UNITS

CONFIG, TEMPLATE = "/etc/rdma-cluster/ptp4l.conf", "rdma-ptp@.service"
UNIT_FILE = f"{UNITS}/{TEMPLATE}"
#: Below /etc/chrony, because the AppArmor profile of chronyd allows no other place.
CHRONY_FILE = "/etc/chrony/rdma-cluster-ptp.conf"
RULES_FILE = "/etc/udev/rules.d/90-rdma-cluster-ptp.rules"
#: The NIC's clock: its number changes, and chronyd takes no interface.
CLOCK = "/dev/rdma-cluster-ptp"
#: chrony's name of the reference clock, which `chronyc sources` prints.
REFID = "PTP"
#: The segment of NTP's shared memory. gpsd uses the first ones.
SEGMENT = 15
_HEADER = "# Managed by rdma.cluster.\n"


@dataclass(frozen=True)
class PtpRequest:
    """The planned PTP of a host. netdev: its interface; pci: the PCI address of the NIC, None for an interface without one.

    transport: "UDPv4" or "L2". is_hardware: hardware time stamps. is_grandmaster: the host gives its own time to the others.
    chrony_unit: the distribution's unit of chrony.
    """

    netdev: str
    pci: str | None
    domain: int
    transport: str
    is_hardware: bool
    is_grandmaster: bool
    chrony_unit: str

    @property
    def unit(self) -> str:
        """The unit; of the characters in interface names, systemd escapes only "-"."""
        return TEMPLATE.replace("@", "@" + self.netdev.replace("-", "\\x2d"))

    @property
    def feeds_chrony(self) -> bool:
        """Whether chrony follows PTP on this host."""
        return not self.is_grandmaster

    @property
    def config(self) -> str:
        """The text of ptp4l's file."""
        stamps = "hardware" if self.is_hardware else "software"
        lines = [f"domainNumber {self.domain}", f"network_transport {self.transport}", f"time_stamping {stamps}"]
        if self.is_grandmaster:
            # It never follows another clock, not even a better one: chronyd keeps the clock of this host.
            lines += ["masterOnly 1", "free_running 1"]
        else:
            lines += ["slaveOnly 1"]
            # The first correction may step the NIC's clock, which starts at any time; no program reads it before chronyd.
            lines += [] if self.is_hardware else ["clock_servo ntpshm", f"ntpshm_segment {SEGMENT}", "kernel_leap 0"]
        return f"{_HEADER}[global]\n" + "".join(f"{line}\n" for line in lines)

    @property
    def unit_text(self) -> str:
        """The text of the unit's template."""
        capabilities = "CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE" + (" CAP_SYS_TIME" if self.is_hardware else "")
        # Its own filter would refuse to read the clock's state, which ptp4l does at its start.
        calls = "SystemCallFilter=@clock"
        devices = ("DevicePolicy=closed", "DeviceAllow=char-ptp rw") if self.is_hardware else ("PrivateDevices=yes",)
        families = "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET"
        own = ("ProtectHome=yes", "MemoryDenyWriteExecute=yes", "ReadWritePaths=/run", *devices, calls, families)
        return f"""\
# Managed by rdma.cluster: PTP as in {CONFIG} on %I.
[Unit]
Description=Precision Time Protocol on %I
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device network.target

[Service]
ExecStart=/usr/sbin/ptp4l -f {CONFIG} -i %I
Restart=on-failure
RestartSec=5
# The sockets of ptp4l and pmc are in /run. Without CAP_SYS_TIME ptp4l cannot adjust a clock.
{hardened(*own, f"CapabilityBoundingSet={capabilities}")}

[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""

    @property
    def chrony(self) -> str:
        """The text of chrony's file; without a reference clock on the grandmaster, whose chrony follows its time servers.

        `makestep 1 0` replaces the line of chrony.conf above: chronyd never steps the clock. Without a list of leap seconds, chronyd
        ignores a clock in TAI. `prefer`, not `trust`: chronyd rejects PTP if it disagrees with most time servers.
        """
        clock = f"PHC {CLOCK} tai poll 0 dpoll -2" if self.is_hardware else f"SHM {SEGMENT} poll 2"
        source = f"refclock {clock} refid {REFID} prefer\n" if self.feeds_chrony else ""
        return f"{_HEADER}{source}makestep 1 0\n"

    @property
    def rule(self) -> str | None:
        """The udev rule that names the NIC's clock; None if chrony does not read it."""
        if not self.is_hardware or not self.feeds_chrony or self.pci is None:
            return None
        name = CLOCK.removeprefix("/dev/")
        return f'{_HEADER}SUBSYSTEM=="ptp", KERNELS=="{self.pci}", SYMLINK+="{name}", TAG+="systemd"\n'

    @property
    def chrony_start(self) -> str | None:
        """The addition to chrony's unit, which does not start without the NIC's clock; None if chrony does not read it."""
        if self.rule is None:
            return None
        device = CLOCK.removeprefix("/").replace("-", "\\x2d").replace("/", "-") + ".device"
        return f"{_HEADER}[Unit]\nWants={device}\nAfter={device}\nStartLimitIntervalSec=0\n[Service]\nRestart=on-failure\nRestartSec=10\n"


def ptp_files(request: PtpRequest) -> list[ManagedFile]:
    """Return the files of PTP; content None removes one."""
    return [
        ManagedFile(CONFIG, request.config),
        ManagedFile(UNIT_FILE, request.unit_text),
        ManagedFile(CHRONY_FILE, request.chrony),
        ManagedFile(RULES_FILE, request.rule),
        ManagedFile(f"{UNITS}/{request.chrony_unit}.d/60-rdma-cluster-ptp.conf", request.chrony_start),
    ]
