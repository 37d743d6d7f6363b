# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalogue of checks: what each one looks at, where that is read, and what to do. _catalogue/docs.py makes docs/checks.md of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One check. threshold: what rdma_checks.ID.threshold means for it, "" where it has none; fixed: rdma_checks cannot change it.

    follows: the checks whose error on the same rail explains an `unknown` of this one, the most basic first; repeats: those whose error
    explains an `error` of this one too, because both look at the same thing.
    """

    stage: str
    subject: str
    read_from: str
    remedy: str
    threshold: str = ""
    fixed: bool = False
    follows: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()


NO_NIC = ("intent.nic", "driver.nic")
NO_DEVICE = (*NO_NIC, "driver.device")

#: By the stable id that findings carry; in the order of the build.
CHECKS: dict[str, Check] = {
    "stage.completed": Check(
        "every", "a host that has begun a stage", "the run itself", "see the task that failed, or why it cannot be reached", fixed=True
    ),
    "host.facts": Check(
        "every",
        "what a host reports of itself: its schema, types and bounds, and that it sets no variable of this collection",
        "the host's facts",
        "find out what answers on the host",
        fixed=True,
    ),
    "intent.key": Check(
        "every",
        "a variable or key that the schema does not have",
        "the inventory",
        "the nearest valid one is named, with file and line",
        fixed=True,
    ),
    "intent.type": Check("every", "a value of another type", "the inventory", "see docs/intent.md", fixed=True),
    "intent.value": Check("every", "a value that is not allowed", "the inventory", "see docs/intent.md", fixed=True),
    "intent.rails": Check(
        "preflight", "the rails of a host, and of hosts that should be alike", "the inventory", "correct the odd one out"
    ),
    "intent.address": Check(
        "preflight", "each rail's address: form, subnet, given twice", "the inventory", "give every rail of every host its own address"
    ),
    "intent.mtu": Check(
        "preflight", "each rail's MTU against what its NIC takes", "`ip -d address show`", "lower `mtu_bytes`, or see which NIC this is"
    ),
    "intent.nic": Check("preflight", "each planned NIC", "`/sys/class/net`", "correct `nic`; those that are there are named"),
    "intent.hosts": Check("preflight", "the hosts of the play", "the inventory", "add hosts: one alone has no pair"),
    "intent.alike": Check(
        "preflight",
        "`rdma_gate` and `rdma_pairs`, which hold for all hosts at once; `rdma_roce` of hosts whose RoCE rails share a plane",
        "the inventory",
        "set them for all hosts alike",
    ),
    "host.identity": Check(
        "preflight",
        "hostname, machine-id, and node GUIDs of InfiniBand rails",
        "`/proc/sys/kernel/hostname`, `/etc/machine-id`, `/sys/class/infiniband/*/node_guid`",
        "a cloned machine: `systemd-machine-id-setup`; a GUID that two hosts claim: compare `ibstat` with the labels of the cards",
    ),
    "preflight.os": Check(
        "preflight", "the distribution", "`/etc/os-release`", "install a supported one, or take the host out with `--limit`"
    ),
    "preflight.kernel": Check("preflight", "the running kernel", "`/proc/sys/kernel/osrelease`", "boot a newer one"),
    "preflight.newest": Check(
        "preflight",
        "the running kernel against the installed ones of its flavour; an error only where modules are built for kernels",
        "`/proc/sys/kernel/osrelease`, `/lib/modules`",
        "build the driver stack for the newest if it lacks it, then reboot into it; or remove it",
    ),
    "preflight.headers": Check(
        "preflight",
        "the headers of the running kernel, where DKMS or the planned stack builds modules",
        "`/lib/modules/RELEASE/build`",
        "install the package named (`linux-headers-RELEASE`, `kernel-devel-RELEASE`)",
    ),
    "preflight.secure_boot": Check(
        "preflight",
        "Secure Boot against modules that nobody has signed",
        "the EFI variable `SecureBoot`; `modinfo` (signer)",
        "enrol the key that DKMS signs with (`mokutil --import`), or switch Secure Boot off",
    ),
    "preflight.lockdown": Check(
        "preflight",
        "kernel lockdown, which forbids writes to PCI configuration space; informational",
        "`/sys/kernel/security/lockdown`",
        "none needed; `host.pcie` reports the settings that are withheld",
    ),
    "preflight.disk": Check(
        "preflight",
        "free space of the file systems of `/`, `/var` and `/boot`",
        "`statvfs`",
        "`df -h`; clean caches and logs, remove old kernels, or enlarge it",
        "GiB that must be free in `/` and `/var`, instead of 1 (`/boot` needs 0.1)",
    ),
    "preflight.ssh": Check(
        "preflight",
        "the interface that our own SSH session comes in by",
        "`SSH_CONNECTION`, `ip address show`",
        "reach the host by an interface that is no rail (`ansible_host`)",
    ),
    "preflight.firewall": Check(
        "preflight",
        "firewalld, nftables and ufw",
        "`systemctl show`",
        "let pass what is named: TCP of perftest and NCCL, UDP 4791 for Soft-RoCE",
    ),
    "pcie.link": Check(
        "preflight",
        "the PCIe link of each rail's card: speed and width against the most that the card can",
        "`current_link_speed`, `current_link_width`, `max_link_*` of the PCI function",
        "reseat the card; slot, riser, BIOS (bifurcation); a warning where it is no more than headroom, or where `pcie.path` is the error",
    ),
    "pcie.path": Check(
        "preflight, link",
        "the narrowest PCIe link from each rail's card up to the root, and links that several rails share",
        "the same files of every bridge; the planned rate (preflight), or without one the port's own (link)",
        "another slot, a mended link, or a lower `rate_gbps` in the plan",
    ),
    "pcie.payload": Check(
        "preflight",
        "the maximum payload size of the card and of every bridge above it",
        "PCI configuration space",
        "`pci=pcie_bus_safe` on the kernel's command line, or the BIOS",
    ),
    "pcie.mrrs": Check(
        "preflight",
        "MRRS (maximum read request size) of each mlx5 card of 100 Gb/s or more, where `rdma_host.pcie.mrrs_bytes` is `leave`",
        "PCI configuration space",
        "`rdma_host.pcie.mrrs_bytes: auto` and `pcie_mrrs_allowed: true`",
    ),
    "pcie.acs": Check(
        "preflight",
        "ACS controls on the bridges above each rail's card, on hosts with GPUs that are no virtual machine",
        "PCI configuration space",
        "BIOS, or `setpci` at every boot; on ConnectX-8 and boards with Grace see `rdma_topo check`",
    ),
    "pcie.distance": Check(
        "preflight",
        "how far each compute rail is from the nearest GPU",
        "`/sys/devices`, `numa_node`",
        "another slot, or a NIC that is nearer",
    ),
    "host.iommu": Check(
        "preflight",
        "the IOMMU of a host with GPUs that is no virtual machine",
        "`/sys/class/iommu`, `/sys/kernel/iommu_groups`",
        "`iommu.passthrough=1` (on x86 also `iommu=pt`) on the kernel's command line, or off in the BIOS",
    ),
    "driver.package": Check(
        "driver",
        "each RDMA package",
        "`/var/lib/dpkg/status`, `rpm -qa`",
        "run the driver stage; see what apt or dnf says on the host; with a vendor's stack install it from there",
    ),
    "driver.module": Check(
        "driver", "each kernel module that the rails need", "`/sys/module`", "`modprobe NAME` and `dmesg` tell the reason"
    ),
    "driver.nic": Check(
        "driver",
        "each planned rail's NIC",
        "`/sys/class/net/*/device`, `…/address`",
        "correct `nic`, or look for the card; those that are there are named",
        repeats=("intent.nic",),
    ),
    "driver.device": Check(
        "driver", "the RDMA device on that NIC", "`/sys/class/infiniband`", "`journalctl -u rdma-soft-links.service` or `dmesg`"
    ),
    "driver.node": Check(
        "driver",
        "the device node of each planned rail's RDMA device and its mode (0666), and that of `rdma_cm`",
        "`/sys/class/infiniband_verbs`, `/dev/infiniband`",
        "`modprobe ib_uverbs`; hand a container /dev/infiniband; find the udev rule that sets another mode",
    ),
    "driver.dkms": Check(
        "driver",
        "each DKMS module that RDMA or a GPU needs, for the running kernel",
        "`/var/lib/dkms`",
        "`dkms install`; read `/var/lib/dkms/NAME/VERSION/build/make.log`",
    ),
    "driver.stack": Check(
        "driver",
        "where the modules below the rails come from and which version they are, against `rdma_driver`",
        "`modinfo` (filename, version, srcversion), `ofed_info`; how the last installation ended",
        "keep the installed stack (`stack: keep`), or allow the switch; see why the planned stack is not installed for this kernel",
    ),
    "driver.next_kernel": Check(
        "driver",
        "the installed kernels that a reboot may bring: the planned stack is built for them too",
        "`/var/lib/dkms`, `/lib/modules`",
        "install the headers of that kernel and `dkms autoinstall -k RELEASE`, or remove it",
    ),
    "driver.option": Check(
        "driver",
        "the parameters of kernel modules that the intent sets (`rdma_driver.module_options`)",
        "`/sys/module/NAME/parameters`",
        "reload the module or reboot; `modprobe --showconfig`; rebuild the initramfs",
    ),
    "firmware.setting": Check(
        "driver",
        "the firmware settings of each rail's card: as wished at the next boot, and in force",
        "`mstconfig -d PCI -e q`",
        "allow `firmware_write_allowed`; where it is pending, reboot or `mstfwreset`",
    ),
    "firmware.version": Check(
        "driver",
        "the firmware of each card whose PSID is in `rdma_firmware.versions`",
        "`fw_ver`, `board_id`",
        "burn it by hand: `mstflint … burn` or `mlxfwmanager -u`; never done by the build",
    ),
    "driver.loaded": Check(
        "driver",
        "each loaded module of RDMA against its file: version and srcversion",
        "`/sys/module/NAME`, `modinfo`",
        "reload the driver or reboot; if it stays, an old copy is in the initramfs",
    ),
    "alike.firmware": Check(
        "driver", "the firmware of all NICs that are the same board (PSID)", "`fw_ver`, `board_id`", "burn the same on the odd one"
    ),
    "alike.board": Check("driver", "the board (PSID) of each rail, on like hosts", "`board_id`", "see which card it is"),
    "alike.driver": Check(
        "driver",
        "the loaded driver, on like hosts; the kernel's own where the kernel is the same",
        "`/sys/module/NAME/version`, `srcversion`",
        "run the driver stage for the odd one, reboot it",
    ),
    "alike.kernel": Check("driver", "the running kernel, on like hosts", "`/proc/sys/kernel/osrelease`", "install the same, and reboot"),
    "alike.packages": Check(
        "driver", "perftest and rdma-core, on like hosts", "`/var/lib/dpkg/status`", "install the same versions on the odd one"
    ),
    "alike.os": Check("driver", "the distribution, on like hosts", "`/etc/os-release`", "install the same on the odd one"),
    "link.state": Check(
        "link",
        "the port of each planned rail",
        "`ports/N/state`, `phys_state`; `carrier`, `flags` of the interface",
        "cable, switch port, optic; or what set the interface down; on InfiniBand by its state: INIT lacks a subnet manager, "
        "Disabled was switched off",
        follows=NO_DEVICE,
    ),
    "link.layer": Check("link", "the same port", "`ports/N/link_layer`", "`LINK_TYPE` of the NIC, or correct the intent"),
    "link.iwarp": Check(
        "link",
        "what the device of each rail speaks",
        "`node_type`",
        "make an E800 a RoCE device with `devlink`, remove a siw device, or plan another NIC",
    ),
    "link.rate": Check(
        "link",
        "the rate of each rail's port, against `rate_gbps`, or on Ethernet without it against the most that the port can do",
        "ethtool's speed, `ports/N/rate`",
        "cable (type, length), autonegotiation, a forced speed at either end; or correct `rate_gbps`",
    ),
    "link.width": Check(
        "link",
        "its lanes",
        "`ports/N/rate`",
        "splitter cable, split switch port, a dead lane; plan `rate_gbps` where fewer lanes are meant (HDR100, NDR200)",
    ),
    "link.mtu": Check(
        "link",
        "the active MTU of each InfiniBand port",
        "`ibv_devinfo`",
        "`max_mtu`, the switch port, `mtu=5` of the subnet manager's partition",
    ),
    "link.flaps": Check(
        "link",
        "how often each rail's link went down since the last run",
        "`link_downed`, `link_error_recovery`, `link_down_events_phy`, `carrier_down_count`",
        "the kernel's log for when; then cable and optic",
        "the times an hour from which on it is an error, instead of 3",
    ),
    "link.errors": Check(
        "link",
        "what the error counters of each rail's port did since the last run",
        "`ports/N/counters`, `ethtool -S`",
        "cable and optic; for packets damaged before, `ibqueryerrors`; for drops, PFC and ECN; clear a counter that is full",
        "the errors of one counter an hour from which on it is an error, instead of 100",
    ),
    "link.optic": Check(
        "link",
        "the readings of each rail's module against the module's own limits",
        "`ethtool -m`, on InfiniBand `mstlink -m`",
        "clean and reseat both ends, exchange the module or its partner; cooling; where it could not be read, what the tool says; without "
        "it (not applicable), install ethtool or mstflint",
    ),
    "link.sm": Check(
        "link",
        "the subnet manager of each plane: one master, the intended one; the standby; no other",
        "`ports/N/sm_lid`, `lid`; `sminfo`, `saquery -s`, `smpquery nodeinfo`, `nodedesc`",
        "plan or stop the other master, find out why the intended one does not run, or restart the one that does not hand over",
    ),
    "link.pkey": Check(
        "link",
        "the P_Keys of each InfiniBand rail's port",
        "`ports/N/pkeys`",
        "the link stage for the plane's subnet manager; a second manager; the switch's partitions",
    ),
    "link.partitions": Check(
        "link",
        "whether the default partition joins what others keep apart",
        "the intent",
        "`default_membership: limited`, or 0x7fff limited in `rdma_partitions`",
    ),
    "alike.mtu": Check(
        "network",
        "the MTU of each rail whose intent has no `mtu_bytes`, on like hosts; in a mesh at both ends of the cable",
        "`/sys/class/net/IF/mtu`",
        "set `mtu_bytes` of the rail on all hosts",
    ),
    "alike.rate": Check(
        "link",
        "rate and width of each rail that is up, on like hosts, where `link.rate` does not judge it already",
        "`ports/N/rate`",
        "cable, port speed, card, switch port of the odd one",
    ),
    "alike.names": Check(
        "link",
        "names of device and interface of each rail, on like hosts",
        "`/sys/class/infiniband`, `/sys/class/net`",
        "name NICs by PCI address or MAC in configurations, or give the interfaces the same names by .link files",
    ),
    "alike.pcie": Check(
        "link",
        "the PCIe link of each rail's NIC, on like hosts",
        "`current_link_speed`, `current_link_width`",
        "slot, riser, BIOS settings of the odd one",
    ),
    "fabric.graph": Check(
        "fabric",
        "the graph of each plane: whether it is whole; names of switches, GUIDs and LIDs that are given twice",
        "`ibnetdiscover`, `iblinkinfo`, `smpquery` where two nodes may have one GUID, `/etc/rdma/ib-node-name-map`; `lldpcli` on Ethernet",
        "what could not be read, then again; the node-name map; two subnet managers",
    ),
    "fabric.cabling": Check(
        "fabric",
        "every cable against the plan; without one every planned HCA: there, on its plane, with a link",
        "the graph; `rdma_fabric.planes.NAME.plan`, `rdma_rails`",
        "move the cable that is named, or correct the plan",
    ),
    "fabric.rails": Check(
        "fabric",
        "the HCAs of each rail on leaves of that rail, where a plan does not say it",
        "the graph, `rdma_rails`",
        "move the cable, or correct the rails in the intent",
    ),
    "fabric.link": Check(
        "fabric",
        "every link: active, at the width and speed that is planned, that both ends can do, and that its like have",
        "`iblinkinfo`, `ibnetdiscover`",
        "a forced speed or width, the cable's type, both ends; a subnet manager where no link is active",
    ),
    "fabric.change": Check(
        "fabric",
        "what went, moved or got slower since the last run; what came or came back is told too",
        "the graphs of both runs",
        "as of `fabric.cabling`; it is told once, and the next run compares with this one",
    ),
    "fabric.symmetry": Check(
        "fabric",
        "uplinks: as many and as fast from each leaf to each spine, and two ways at least",
        "the graph, as if known faults were mended",
        "the cables and ports of the leaf or spine that is named",
    ),
    "fabric.ratio": Check(
        "fabric",
        "the oversubscription of each leaf, and of each spine below core switches, against the intended one; without one against 1",
        "the graph, as if known faults were mended; `rdma_fabric.planes.NAME.ratio`",
        "add uplinks, move hosts, or set `ratio` to what is meant",
    ),
    "fabric.bisection": Check(
        "fabric",
        "what one half of the hosts can send to the other half",
        "the graph, as if known faults were mended; `rdma_fabric.planes.NAME.ratio`",
        "the tier that is short of links",
    ),
    "fabric.counters": Check(
        "fabric",
        "what the error and congestion counters of every port did since the last run",
        "`ibqueryerrors`",
        "cable and optic of the link that is named; for congestion the receiver that is slow; clear a counter that is full",
    ),
    "host.memlock": Check(
        "host",
        "how much memory a service and a login may lock",
        "`/proc/self/limits` inside a transient service, `limits.d`; `system.conf.d`, `service.d` for the line that sets it",
        "remove the line that is named, or run the host stage",
    ),
    "host.sysctl": Check("host", "each kernel setting, now and after a boot", "`/proc/sys`, `sysctl.d`", "see which later file sets it"),
    "host.files": Check(
        "host",
        "how many files a service and a login may have open",
        "`/proc/self/limits` inside a transient service, `limits.d`",
        "see which later file or drop-in sets less",
    ),
    "host.ipc": Check(
        "host",
        "whether logind removes the shared memory of users who have logged out",
        "`RemoveIPC` of `org.freedesktop.login1`",
        "see which later file sets it: `systemd-analyze cat-config systemd/logind.conf`",
    ),
    "host.services": Check(
        "host",
        "how much memory the services that start jobs may lock, of those that run: SSH, slurmd, containerd, Docker, kubelet",
        "`/proc/PID/limits`",
        "remove the line of its unit or drop-in that is named; drain the host and restart the service",
    ),
    "host.memory": Check(
        "host",
        "the memory that programs can have: an error below the smaller of 1 GiB and 5 %, a warning below the smaller of 4 GiB and 10 %",
        "`/proc/meminfo`",
        "stop the largest processes; fewer huge pages; files in `/dev/shm`",
        threshold="GiB that must be available, instead of both limits",
    ),
    "host.shm": Check(
        "host",
        "free space and inodes of `/dev/shm`, where NCCL puts shared memory: an error below the smaller of 0.5 GiB and 10 %, or 1024 "
        "inodes; a warning if it is smaller than 1 GiB and a quarter of the memory",
        "`statvfs`, `/proc/meminfo`",
        "`du -ah /dev/shm | sort -h | tail`; `mount -o remount,size=50% /dev/shm`",
        threshold="GiB that must be free in `/dev/shm`",
    ),
    "host.rings": Check(
        "host",
        "the rings of each rail's NIC against the wish, or the most that it has",
        "`ethtool -g`",
        "`-e nic_rings_reset_allowed=true`, which takes the link down for a moment",
    ),
    "host.cpu": Check(
        "host",
        "governor and idle states of the CPUs, and irqbalance, as far as `rdma_host.cpu` asks",
        "`/sys/devices/system/cpu`, `/dev/cpu_dma_latency`",
        "see what sets it again: tuned, cpupower",
    ),
    "host.pcie": Check(
        "host",
        "MRRS of each rail's card and ACS between GPUs and NICs as requested, and the service that sets them at boot; a warning where our "
        "default is withheld, or a job is on the host",
        "PCI configuration space, `systemctl show`, files of ours, `/sys/kernel/security/lockdown`, `/proc`",
        "`pcie_mrrs_allowed: true` or `pcie_acs_write_allowed: true` and the host stage; `rdma_host.pcie`; "
        "`journalctl --unit rdma-pcie.service`",
    ),
    "host.time": Check(
        "host",
        "whether the clock is synchronised, and how far off chrony says it is",
        "`adjtimex`, `chronyc tracking`",
        "`timedatectl set-ntp true`; `chronyc tracking`",
        threshold="the seconds that the clock may be off, instead of 0.1",
    ),
    "host.clock": Check(
        "host",
        "each host's clock against the median of all hosts and the control node; an error where more than half agree, else a warning",
        "the time of day, read with the facts between two looks at the control node's clock",
        "the same time servers; `chronyc makestep` while no job runs; `hwclock --systohc`",
        threshold="the seconds that a clock may differ beyond the uncertainty of its reading, instead of 1",
    ),
    "host.clocksource": Check(
        "host",
        "the counter that the kernel reads the time from: the CPU's own, or a hypervisor's for it; anything else is a warning",
        "`/sys/devices/system/clocksource/clocksource0`",
        "`dmesg | grep -iE 'clocksource|tsc'`; write tsc back to `current_clocksource`; `tsc=nowatchdog` on the kernel command line",
    ),
    "network.mtu": Check(
        "network", "the interface of each planned rail", "`/sys/class/net/IF/mtu`", "see what else manages the interface", follows=NO_NIC
    ),
    "network.gid": Check(
        "network",
        "the RoCE v2 GID of the rail's address",
        "`ports/N/gids`, `gid_attrs`",
        "see whether the interface has the address",
        follows=NO_DEVICE,
    ),
    "network.rdma_mtu": Check(
        "network",
        "the MTU of RoCE on each planned rail: 4096 needs an MTU of 4192 at least",
        "`ibv_devinfo` (the port's active MTU), `/sys/class/net/IF/mtu`",
        "set `mtu_bytes` to 9000 on all hosts, and more on the switches",
    ),
    "network.address": Check(
        "network",
        "addresses of rails and other interfaces: each where it is planned, none in another rail's subnet",
        "`ip address show`",
        "`ip addr del`; find who adds it",
    ),
    "network.manager": Check(
        "network",
        "who claims the interface of each planned rail: one at most",
        "systemd-networkd's, NetworkManager's and ifupdown's own state in `/run`",
        "`networkctl`; `unmanaged-devices` of NetworkManager, `nmcli device set IF managed no` until a boot; `/etc/network/interfaces`",
    ),
    "network.boot": Check(
        "network",
        "what systemd-networkd makes of each planned rail at the next boot: the `.network` file that applies first, its drop-ins, MTU and "
        "addresses, by file and line",
        "`.network` files and their `.d` folders in `/etc`, `/run`, `/usr/local/lib` and `/usr/lib/systemd/network`; `systemctl show`",
        "remove the line or the file that the finding names; run the network stage",
    ),
    "network.duplicate": Check(
        "network",
        "addresses of rails: none on a second host",
        "`ip address show` of all hosts, `rdma_rails`",
        "`ip addr del` on the host that must not have it; find who adds it",
    ),
    "alike.gid_index": Check(
        "network",
        "the index of each rail's RoCE v2 GID, on like hosts",
        "`ports/N/gids`, `gid_attrs`",
        "set no GID index by hand (NCCL 2.21 or newer finds it)",
    ),
    "qos.backend": Check(
        "qos",
        "whether mlnx_qos or dcb answers for each RoCE rail",
        "`mlnx_qos -i`, `dcb pfc show`",
        "install iproute2 or mlnx-tools",
    ),
    "qos.dcbx": Check(
        "qos",
        "whose the settings of each rail are, the host's or the firmware's",
        "`mlnx_qos -i`, `dcb dcbx show`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.pause": Check(
        "qos",
        "that global pause is off, which excludes PFC",
        "`ethtool -a`",
        "the QoS stage with `-e roce_qos_link_toggle_allowed=true`",
    ),
    "qos.trust": Check(
        "qos",
        "that each rail trusts DSCP",
        "`mlnx_qos -i`, `dcb app show`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.dscp": Check(
        "qos",
        "the priorities of RDMA's and CNPs' DSCP",
        "`mlnx_qos -i`, `dcb app show`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.pfc": Check(
        "qos",
        "that PFC is on for RDMA's priority alone",
        "`mlnx_qos -i`, `dcb pfc show`",
        "the QoS stage with `-e roce_qos_link_toggle_allowed=true`, which takes the link down for a moment",
    ),
    "qos.ets": Check(
        "qos",
        "priorities' classes and their shares",
        "`mlnx_qos -i`, `dcb ets show`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.buffers": Check(
        "qos",
        "the cable's length, from which the headroom follows",
        "`mlnx_qos -i`, `dcb pfc show`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.ecn": Check(
        "qos",
        "that congestion control is on for RDMA's priority",
        "`/sys/class/net/IF/ecn`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.cnp": Check(
        "qos",
        "DSCP and priority of CNPs",
        "`/sys/class/net/IF/ecn/roce_np`, `cc_params` in debugfs",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.dcqcn": Check(
        "qos",
        "the parameters of DCQCN that `rdma_roce.dcqcn` sets",
        "`/sys/class/net/IF/ecn`, `cc_params` in debugfs",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.traffic_class": Check(
        "qos",
        "the traffic class that OFED's driver forces",
        "`/sys/class/infiniband/DEVICE/tc`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.rdma_cm": Check(
        "qos",
        "RDMA-CM's default mode and ToS",
        "`/sys/kernel/config/rdma_cm`",
        "run the QoS stage; `journalctl --unit rdma-qos@INTERFACE.service`",
    ),
    "qos.overwritten": Check(
        "qos",
        "that no daemon of DCBX would overwrite the settings",
        "control groups of lldpad and dcbd",
        "`systemctl disable --now lldpad.socket lldpad.service`",
    ),
    "qos.boot": Check(
        "qos",
        "that the service of each rail sets all of it again",
        "`systemctl show`",
        "run the QoS stage; `systemctl status rdma-qos@INTERFACE.service`",
    ),
    "gpu.driver": Check(
        "gpu",
        "the NVIDIA driver, for every GPU on the bus",
        "`/proc/driver/nvidia`, PCI",
        "install the driver; `dmesg | grep -iE 'nvrm|xid'`",
    ),
    "gpu.fabricmanager": Check(
        "gpu",
        "Fabric Manager where there are NVSwitches",
        "PCI class 0680 of NVIDIA, product data (VPD) of InfiniBand NICs, systemd, dpkg or `nv-fabricmanager --version`",
        "install the driver's version; `systemctl enable --now nvidia-fabricmanager`",
    ),
    "gpu.cuda": Check("gpu", "libcuda is the driver's", "what `libcuda.so.1` leads to", "reboot after an upgrade; packages of one version"),
    "gpu.path": Check(
        "gpu",
        "the path between GPU and NIC, and why it is that one",
        "GPU driver, kernel, rdma-core, symbols of the RDMA stack, loaded modules",
        "do what the finding says would help, or `rdma_gpudirect.path: none`",
    ),
    "gpu.nics": Check(
        "gpu",
        "each GPU: a NIC of a compute rail on its NUMA node; NICs that serve as many GPUs each",
        "the paths of GPUs and NICs on the PCI tree, NUMA nodes",
        "`nvidia-smi topo -m`; move NICs, or plan those that are nearer",
    ),
    "nccl.file": Check(
        "nccl",
        "nccl.conf, the environment file, and those of launchers",
        "the files' SHA-256 and mode",
        "run the nccl stage; see what else writes the file",
    ),
    "nccl.socket_ifname": Check(
        "nccl",
        "where `NCCL_SOCKET_IFNAME` comes from: `rdma_nccl`, else the interface of Ansible's SSH session; or why it is not set",
        "the session's address and the interfaces' addresses",
        "set `rdma_nccl.socket_ifname`",
    ),
    "nccl.user_lines": Check(
        "nccl",
        "lines of others in nccl.conf that set a variable of the intent to another value: they are kept, and win",
        "nccl.conf outside of the managed block",
        "remove the line, or allow it with `nccl_conf_replace_allowed`; or set its value in `rdma_nccl.variables`",
    ),
    "nccl.hca": Check(
        "nccl",
        "each device that `NCCL_IB_HCA` names",
        "`/sys/class/infiniband`",
        "run the driver and link stages; correct `NCCL_IB_HCA` in `rdma_nccl.variables`",
        follows=NO_DEVICE,
    ),
    "nccl.gid_index": Check("nccl", "`NCCL_IB_GID_INDEX`, where NCCL is older than 2.21", "`ports/N/gids`", "use NCCL 2.21 or newer"),
    "nccl.lint": Check(
        "nccl",
        "every variable that NCCL's files set: known, of a value that NCCL takes, in agreement with the others and the host",
        "`/etc/nccl.conf`, root's `.nccl.conf`, the environment file",
        "correct it where the finding says, intent or file; `rdma.cluster.nccl_lint` on the host reads users' files and services too",
    ),
    "nccl.pkey": Check(
        "nccl",
        "`NCCL_IB_PKEY`, on InfiniBand",
        "`ports/N/pkeys`, by the partition that ports are measured in",
        "`index0: true` in `rdma_partitions`",
    ),
    "nccl.topology": Check(
        "nccl", "the file that `NCCL_TOPO_FILE` names", "whether it is there", "put it there, or take `topology_file` out"
    ),
    "nccl.version": Check(
        "nccl",
        "the host's NCCL against `rdma_nccl.version`; not what frameworks bring",
        "the name of the file that `libnccl.so.2` leads to",
        "install that version, or correct `rdma_nccl.version`",
    ),
    "nccl.install": Check(
        "nccl",
        "each package of `rdma_nccl.install`, and nccl-tests",
        "the package database; what the collection has noted in `/var/lib/rdma-cluster/nccl-tests.json`",
        "run the nccl stage",
    ),
    "alike.nccl": Check(
        "nccl", "NCCL, nccl-tests and Open MPI of like hosts", "as of `nccl.version` and `nccl.install`", "install the same versions"
    ),
    "nccl.alike": Check(
        "nccl",
        "NCCL's variables on hosts that should be alike",
        "what the nccl stage derives for each",
        "see what differs on the odd one out",
    ),
    "pair.bandwidth": Check(
        "pairs",
        "each rail of a host: what it reaches with good partners, and whether a verdict names it",
        "perftest's own output; a proof of an earlier run; link, MTU and PCIe path for what it should reach",
        "MTU, flow control, cable or optic, PCIe, NUMA, in this order; [the pairs](pairs.md) says how the culprit is found",
        "the fraction of what link, MTU and PCIe path allow below which it is an error, instead of `rdma_pairs.fail_below`; of software "
        "devices that of what the fleet reaches, instead of `rdma_pairs.software_fail_below`",
        follows=(*NO_DEVICE, "link.state", "network.gid"),
    ),
    "pair.latency": Check(
        "pairs",
        "each rail of a host: the median latency with good partners; not of software devices",
        "`ib_write_lat` or another, 2 bytes",
        "C-states, the NIC's NUMA node, the number of switches in between",
        "µs from which on it is an error, instead of 5 (InfiniBand and RoCE; the double for `ib_read_lat`)",
    ),
    "pair.clock": Check(
        "pairs",
        "perftest on each host that was measured: a warning where it could not calibrate its clock (3 attempts), with the rails that "
        "have no measurement left; the other measurements count",
        "perftest's own output; `/sys/devices/system/clocksource/clocksource0/current_clocksource` at that moment",
        "`host.clocksource`; stop other work on the host, then measure again",
    ),
    "pair.results": Check(
        "pairs",
        "the lines of each host's results: `unknown` where a line is no result, or is about a measurement that the plan does not have for "
        "this host. The line is not counted; the hosts that it is about keep their own results",
        "what the pair runner of the host has written in `/run/rdma-cluster/pairs`",
        "run the pairs stage again; if it stays so, which program on the host writes there",
    ),
    "pair.errors": Check(
        "pairs",
        "the counters of errors of each port that was measured: what they did under load; not of software devices",
        "`/sys/class/infiniband/*/ports`, `ethtool -S`, before and after the sweep",
        "as of `link.errors`",
    ),
    "fabric.under_load": Check(
        "pairs",
        "what went, moved or got slower in a plane while pairs were measured",
        "the graph before the load and after it",
        "the cable or switch that is named: it does not bear load",
    ),
    "fabric.balance": Check(
        "pairs",
        "what each uplink of a leaf carried while pairs were measured, against the mean of its like",
        "`ibqueryerrors --counters` before the load and after it",
        "routing engine, adaptive routing, more queue pairs",
    ),
    "pair.gpu": Check(
        "pairs",
        "each rail, with `rdma_pairs.gpu_memory`: what it reaches from the memory of its nearest GPU, at least 0.90 of what the same pairs "
        "reach from the hosts' (`gpu_fail_below`); below a quarter data goes through the host",
        "perftest with CUDA (`--use_cuda_bus_id`, `--use_cuda_dmabuf`), after the measurement from the host's memory",
        "the path of the gpu stage; distance of GPU and NIC, ACS, IOMMU; a perftest that was built with CUDA",
    ),
    "pair.isolation": Check(
        "pairs",
        "each rail whose InfiniBand ports are in several partitions: a host of each must not reach one of another, neither with their own "
        "keys nor in a partition of which both are limited members",
        "perftest after the sweep, among hosts that it has found well (`--pkey_index`); ok only if no packet is answered",
        "the ports' P_Key tables; the partition enforcement of the switches; the files of the subnet manager",
    ),
    "pair.oversubscription": Check(
        "pairs",
        "each rail of a plane: what all pairs across the spines reach at once, against one pair alone and what the uplinks leave to each; "
        "an error below 0.7 of it, a warning below 0.9",
        "perftest after the sweep, among hosts that it has found well; the rates in the graph of this run's fabric stage",
        "how flows are spread over the spines: routing engine, adaptive routing, `fabric.balance`; congestion control",
    ),
    "qos.traffic": Check(
        "pairs",
        "each RoCE rail that was measured: what perftest sent and received there, at least 99 % of it in the priority of `rdma_roce`",
        "`ethtool -S` (bytes and pauses of each priority) before and after the sweep; what perftest was told to send, or its rate and time",
        "run the QoS stage; `ethtool -S INTERFACE | grep prio` shows where it is counted",
    ),
    "qos.load": Check(
        "pairs",
        "one host of each RoCE rail while many send to it: pause frames or CNPs move, and nothing is discarded",
        "`ethtool -S`, `ports/N/hw_counters` of all that take part, before and after",
        "PFC, ECN, buffer and headroom of the switch ports: `plan.yml --tags roce`",
    ),
    "collective.exit": Check(
        "collectives",
        "each run: exit status 0, and the whole output",
        "nccl-tests through Open MPI, srun or alone",
        "the first warning of its output; is the program there, and can the launcher reach all hosts",
    ),
    "collective.ranks": Check(
        "collectives",
        "each run: one run of as many ranks as planned, on the planned hosts",
        "nccl-tests' list of devices; NCCL's log",
        "nccl-tests built with `MPI=1`; the launcher's hosts and slots",
    ),
    "collective.wrong": Check(
        "collectives",
        "each run: every size was checked, and no value is wrong",
        "nccl-tests",
        "trust no result of these hosts: Xid and ECC errors of the GPUs",
    ),
    "collective.busbw": Check(
        "collectives",
        "each host: busbw of the large sizes of the last set of hosts that is well, or a proof of an earlier run; on one host alone it is "
        "judged only where `rdma_collectives.nvlink_busbw_gbps` is given",
        "nccl-tests; for what it should reach, the payload of all NICs of a host: link, MTU and PCIe path",
        "`collective.transport` and `collective.hcas` first, then the pairs stage",
    ),
    "collective.transport": Check(
        "collectives",
        "each host: all channels between hosts on NET/IB, with GPUDirect RDMA where it is planned; sockets are an error however fast",
        "NCCL's log (`NCCL_DEBUG=INFO`)",
        "why NCCL takes no RDMA device: NET/IB in its log, `NCCL_IB_HCA`, `NCCL_IB_DISABLE`, memlock; GPUDirect: the gpu stage",
    ),
    "collective.hcas": Check(
        "collectives",
        "each host: its channels use the devices of its compute rails; all of them, but of sendrecv, with a part of its GPUs and in a mesh",
        "NCCL's log",
        "`NCCL_IB_HCA` (the nccl stage); which NIC is near which GPU",
    ),
    "collective.ladder": Check(
        "collectives",
        "each host: whether it is well together with the others, or what of it or of its connections is to blame; a warning for the well "
        "side of a bad connection",
        "runs on 2, 4, 8 … hosts, and on halves of what is not well",
        "the pairs stage for the host or connection that is named",
    ),
    "collective.jitter": Check(
        "collectives",
        "the last set of hosts: how far its repeats lie apart; a warning only where one of them is not well",
        "`rdma_collectives.repeats` runs",
        "other load on hosts or fabric",
    ),
    "collective.pairs": Check(
        "collectives",
        "the first two hosts of the ladder: at least 0.8 of what perftest reached between them, else a warning",
        "the proofs of the pairs stage, all compute rails together",
        "GPUDirect, ACS, the channels of NCCL: the network is well, NCCL does not use it",
    ),
}
