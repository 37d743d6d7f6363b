# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of the kernel by which errors are recognized: drivers of RDMA NICs, PCIe, the IOMMU, NVIDIA's drivers, and crashes.

They are those of Linux 3.10 to 6.16 and of DOCA-OFED, in dmesg, in the journal and in /dev/kmsg.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_KERNEL, _CORE, _IB = "Linux", "Linux drivers/net/ethernet/mellanox/mlx5/core", "Linux drivers/infiniband"
_NVIDIA, _PCI = "NVIDIA kernel driver", "Linux drivers/pci"
#: The drivers of RDMA NICs.
_DRIVERS = r"(?:mlx[45]_(?:core|ib|en)|bnxt_(?:en|re)|irdma|ice|ionic|efa|hfi1|mana|qedr|ib_mthca|hns\w*|erdma|iw_cxgb4|infiniband)"
_PCI_ADDRESS = r"(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_START = r"(?:CREATE_EQ|INIT_HCA|ENABLE_HCA|QUERY_HCA_CAP|SET_HCA_CAP|SET_ISSI|QUERY_ISSI|QUERY_ADAPTER|MANAGE_PAGES)\(0x"
_SPENT = r"\(0x[0-9a-f]+\).{0,30}failed, status (?:bad resource|no resources|exceed limits?|limits exceeded)"
#: Xid → kind (NVIDIA's list of Xid errors); all others are gpu.xid.
_XIDS = (
    ("gpu.nvlink", "(?:74|14[4-9]|150)"),
    ("gpu.off_bus", "79"),
    ("cuda.ecc", "(?:48|64|94|95|140|171|172)"),
    ("gpu.firmware", "(?:61|62|119|120|122|123)"),
    ("gpu.program", "(?:13|31|43|68|69)"),
    ("gpu.remapped", "(?:63|92)"),
    ("gpu.cleanup", "45"),
    ("gpu.xid", r"\d+"),
)

#: A channel that ends because of an earlier error has Xid 45, and names the Xid of that error.
_PREVIOUS = r"Xid \((?P<gpu>[^)]{1,40})\): 45, .{0,200}caused by previous Xid (?P<code>"

KERNEL_SIGNATURES: tuple[Signature, ...] = (
    # GPUs
    *(Signature(name, "caused by previous Xid", _NVIDIA, _PREVIOUS + code + r")\b") for name, code in _XIDS if name != "gpu.cleanup"),
    *(Signature(name, "NVRM: Xid", _NVIDIA, r"Xid \((?P<gpu>[^)]{1,40})\): (?P<code>" + code + r")\b") for name, code in _XIDS),
    Signature("gpu.off_bus", "has fallen off the bus", _NVIDIA),
    Signature("gpu.off_bus", "NVRM: fallen off the bus", _NVIDIA),
    Signature("gpu.firmware", "GSP Timeout", f"{_NVIDIA} src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c", r"NVRM"),
    Signature("gpu.firmware", "Heartbeat timed out", f"{_NVIDIA} src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c", r"NVRM"),
    Signature("gpu.firmware", "of waiting for RPC response from GPU", _NVIDIA, r"NVRM"),
    Signature(
        "gpu.start", "RmInitAdapter", f"{_NVIDIA} src/nvidia/arch/nvalloc/unix/src/osinit.c", r"(?i)NVRM.{0,80}RmInitAdapter.{0,60}failed"
    ),
    Signature("gpu.start", "rm_init_adapter failed", f"{_NVIDIA} kernel-open/nvidia/nv.c"),
    Signature("gpu.start", "Cannot attach gpu", f"{_NVIDIA} src/nvidia/arch/nvalloc/unix/src/osinit.c", r"NVRM"),
    Signature("gpu.start", "NVRM: installed in this system is not supported by the", f"{_NVIDIA} src/nvidia/arch/nvalloc/unix/src/osapi.c"),
    Signature("gpu.nvswitch", "SXid (PCI", _NVIDIA, r"SXid \((?P<switch>[^)]{1,40})\): (?P<code>\d+), (?:Fatal|Non-fatal)"),
    Signature("kernel.peermem", "nv_get_p2p_free_callback", "nvidia-peermem", r"ERROR"),
    Signature("memory.gpu", "umem get failed", f"{_IB}/hw/mlx5/mr.c"),
    Signature("memory.gpu", "ib_umem_get: failed to get user pages", f"{_IB}/core/umem.c"),
    Signature("kernel.peermem", "nv_mem", "nvidia-peermem", r"nv(?:idia)?[-_]peer\w*.{0,40}(?i:error|fail)"),
    Signature("host.memory", "Out of memory: Kill", _KERNEL),
    Signature("host.memory", "page allocation failure", _KERNEL),
    # the IOMMU comes before the card: it explains its error
    Signature("iommu.fault", "IO_PAGE_FAULT", _KERNEL),
    Signature("iommu.fault", "DMAR: [DMA ", _KERNEL),
    Signature("iommu.fault", "arm-smmu", _KERNEL, r"arm-smmu.{0,120}(?:event 0x1[0-3]|F_TRANSLATION|F_PERMISSION|Unhandled context fault)"),
    # addresses
    Signature("kernel.gid", "SET_ROCE_ADDRESS(", f"{_CORE}/cmd.c", r"failed"),
    Signature("kernel.gid", "add_roce_gid", f"{_IB}/core/cache.c", r"(?i)failed(?:.{0,20}port=(?P<port>\d+) index=(?P<gid_index>\d+))?"),
    Signature("kernel.gid", "unable to add gid", f"{_IB}/core/cache.c"),
    Signature("kernel.gid", "delete gid", f"{_IB}/core/cache.c", r"_ib_cache_gid_del: can't delete gid"),
    # firmware
    Signature("kernel.probe", "failed, status", f"{_CORE}/cmd.c", _START),
    Signature("kernel.resources", "failed, status", f"{_CORE}/cmd.c", _SPENT),
    Signature(
        "kernel.command",
        "failed, status",
        f"{_CORE}/cmd.c",
        r"(?P<command>[A-Z][A-Z0-9_]{2,60})\(0x[0-9a-f]+\).{0,30}failed, status (?P<error>[a-z ]{1,40})",
    ),
    Signature(
        "kernel.command",
        "mlx5_cmd_",
        f"{_CORE}/cmd.c",
        r"mlx5_cmd_(?:check|out_err|comp_handler).{0,80}(?P<command>[A-Z][A-Z0-9_]{2,60})\(0x",
    ),
    Signature("kernel.timeout", "Will cause a leak of a command resource", f"{_CORE}/cmd.c"),
    Signature("kernel.timeout", "canceled on out of queue timeout", f"{_CORE}/cmd.c"),
    Signature("kernel.timeout", "No done completion", f"{_CORE}/cmd.c"),
    Signature("kernel.timeout", "wait_func", f"{_CORE}/cmd.c", r"wait_func\w*:\d+:.{0,120}(?i:timeout|timed out|leak|No done)"),
    Signature("kernel.timeout", "cmd_work_handler", f"{_CORE}/cmd.c", r"cmd_work_handler:\d+:.{0,60}(?i:failed|timeout|timed out|error)"),
    Signature("kernel.timeout", "failed to allocate command entry", f"{_CORE}/cmd.c"),
    Signature("kernel.timeout", "async reg mr failed", f"{_IB}/hw/mlx5/mr.c"),
    Signature("kernel.dump", "dump_command:", f"{_CORE}/cmd.c", r"dump command data (?P<command>\S{1,60})"),
    Signature("kernel.resources", "create_qp:", f"{_IB}/hw/mlx5/qp.c", r"Create QP type \d+ failed"),
    Signature("kernel.command", "ailed to process command", f"{_IB}/hw/efa", r"[Ff]ailed to process command (?P<command>\w{2,40})"),
    Signature("kernel.command", "QPLIB: ", f"{_IB}/hw/bnxt_re", r"QPLIB: cmdq\[0x[0-9a-f]+\]=0x[0-9a-f]+ (?:status 0x[1-9a-f]|timedout)"),
    Signature("kernel.health", "health compromised", f"{_CORE}/health.c", rf"mlx5_core {_PCI_ADDRESS}"),
    Signature("kernel.health", "health recovery", f"{_CORE}/health.c", r"health recovery (?:flow aborted|failed)"),
    Signature(
        "kernel.health",
        "print_health",
        f"{_CORE}/health.c",
        r"Fatal error|synd 0x(?!0:)[0-9a-f]+: (?!.*[Hh]igh [Tt]emp).{1,60}|PCI slot \d+ is unavailable",
    ),
    Signature("kernel.health", "handling bad device here", f"{_CORE}/health.c"),
    Signature("kernel.health", "detected internal error", f"{_CORE}/health.c"),
    Signature("kernel.temperature", "igh temp", f"{_CORE}/events.c", r"mlx5.{0,200}[Hh]igh [Tt]emp"),
    # a card that does not start
    Signature("kernel.interrupts", "equest irq", f"{_CORE}/pci_irq.c", r"mlx5_irq_alloc|[Ff]ailed to request irq"),
    Signature("kernel.interrupts", "mlx5_irq_alloc:", f"{_CORE}/pci_irq.c", r"mlx5_irq_alloc:\d+:.{0,40}Failed"),
    Signature("kernel.interrupts", "Failed to alloc IRQs", f"{_CORE}/main.c"),
    Signature("kernel.probe", "reate EQs", f"{_CORE}/eq.c"),
    Signature("kernel.probe", "create_async_eqs:", f"{_CORE}/eq.c"),
    Signature(
        "kernel.probe",
        "mlx5_",
        f"{_CORE}/main.c",
        r"mlx5_(?:load_one|init_one|function_setup|probe_one|mdev_init|pci_init|health_init|load)\b.{0,40}(?i:failed|aborting)",
    ),
    Signature("kernel.probe", "handle_hca_cap", f"{_CORE}/main.c", r"handle_hca_cap failed"),
    Signature("kernel.probe", "wait_fw_init", f"{_CORE}/main.c", r"(?i)timed ?out|abort|waiting for FW"),
    Signature("kernel.probe", "pre-initializing state", f"{_CORE}/main.c"),
    Signature("kernel.probe", "nitializing command interface", f"{_CORE}/main.c", r"[Ff]ailed initializing command interface"),
    Signature("kernel.probe", "enable hca failed", f"{_CORE}/main.c"),
    Signature("kernel.probe", "probe of ", _KERNEL, rf"{_DRIVERS}\S*: probe of {_PCI_ADDRESS} failed with error (?P<error>-\d+)"),
    Signature(
        "kernel.probe", "probe with driver ", _KERNEL, rf"{_PCI_ADDRESS}: probe with driver {_DRIVERS} failed with error (?P<error>-\d+)"
    ),
    Signature(
        "kernel.probe",
        "SR-IOV",
        _KERNEL,
        r"(?i)(?:not enough MMIO resources for SR-IOV|failed to (?:enable|initialize) SR-?IOV|pci_enable_sriov failed)",
    ),
    Signature("kernel.probe", "pci_enable_sriov failed", f"{_CORE}/sriov.c"),
    Signature("kernel.probe", "Couldn't ", f"{_IB}/core/mad.c", r"infiniband \S+: Couldn't (?:create ib_mad|open port|register)"),
    Signature("kernel.probe", "Could not allocate unit ID", f"{_IB}/hw/hfi1"),
    Signature("kernel.probe", "bnxt_re", f"{_IB}/hw/bnxt_re", r"bnxt_re\d+: [Ff]ailed to (?:create|register|allocate|initialize|add)"),
    # queues and links
    Signature("kernel.queue", "CQ error on CQN", f"{_CORE}/eq.c"),
    Signature("kernel.queue", "cq_err_event_notifier", f"{_CORE}/eq.c"),
    Signature("kernel.queue", "moved to error state", f"{_IB}/sw/rxe", r"rdma_rxe.{0,40}qp#\d+"),
    Signature("kernel.queue", "NETDEV WATCHDOG: ", _KERNEL, rf"NETDEV WATCHDOG: (?P<netdev>\S{{1,64}}) \({_DRIVERS}\): transmit queue"),
    Signature("kernel.queue", "TX timeout detected", f"{_CORE}/en_main.c", r"mlx5_core|mlx4_en"),
    Signature("kernel.queue", "mlx5e_cq_error_event", f"{_CORE}/en_main.c"),
    Signature("kernel.completion", "dump error cqe", _KERNEL),
    Signature("kernel.completion", "error cqe on cqn", f"{_IB}/hw/mlx5/cq.c", r"mlx5_poll_one.{0,60}(?:Requestor|Responder) error cqe"),
    Signature("kernel.completion", "handle_error_cqe", f"{_IB}/hw/mlx5/cq.c", r"WC error: (?P<status>\d+)"),
    Signature("kernel.link", ": Link down", _KERNEL, r"mlx5_core \S+ (?P<netdev>\S+): Link down"),
    Signature("kernel.link", "NIC Link is Down", _KERNEL),
    Signature("kernel.cable", "Port module event[error]", f"{_CORE}/events.c", r"Cable error, (?P<error>.{1,80})"),
    Signature("kernel.cable", "module ", f"{_CORE}/events.c", r"Port module event.{0,40}, Cable error"),
    Signature("kernel.unplugged", "Cable unplugged", f"{_CORE}/events.c"),
    Signature("kernel.power", "insufficient power on the PCIe slot", f"{_CORE}/events.c"),
    Signature("kernel.qos", "Too many traffic classes", "Linux drivers/net"),
    # PCIe
    Signature(
        "kernel.pcie",
        "DPC: ",
        f"{_PCI}/pcie/dpc.c",
        r"DPC: (?:containment event|unmasked uncorrectable|ERR_(?:NON)?FATAL|.{0,40}(?:recovery failed|not set in))",
    ),
    Signature("kernel.pcie", "containment event, status", f"{_PCI}/pcie/dpc.c"),
    Signature("kernel.pcie", "PCIe Bus Error: severity=Uncorrect", f"{_PCI}/pcie/aer.c"),
    Signature(
        "kernel.pcie",
        "AER: ",
        f"{_PCI}/pcie/aer.c",
        r"AER: (?:.{0,20}Uncorrect|.{0,60}(?:device recovery failed|can't recover)|.{0,20}Fatal)",
    ),
    Signature("kernel.pcie", "pciehp", f"{_PCI}/hotplug", r"pciehp.{0,30}(?:Link Down$|Link Down\s|Card not present)"),
    Signature("kernel.pcie", "mlx5_pci_err_detected", f"{_CORE}/main.c"),
    Signature("kernel.pcie", "EEH: ", "Linux arch/powerpc", r"EEH: (?:Frozen|Detected|.{0,40}permanently disabled)"),
    Signature("kernel.pcie_corrected", "severity=Corrected", f"{_PCI}/pcie/aer.c"),
    Signature("kernel.pcie_corrected", "AER: ", f"{_PCI}/pcie/aer.c", r"AER: .{0,20}Correct(?:ed|able)"),
    Signature("kernel.pcie_slow", "available PCIe bandwidth, limited by", f"{_PCI}/pci.c"),
    Signature("kernel.vpd", "invalid VPD tag", f"{_PCI}/vpd.c"),
    Signature("kernel.firmware_old", "HCA FW version", f"{_IB}/hw/mthca", r"is old"),
    # modules, crashes, hangs
    Signature("kernel.build", "Bad return status for module build on kernel", "dkms", r"on kernel: (?P<kernel>\S{1,80})"),
    Signature("kernel.build", "Your kernel headers for kernel", "dkms", r"for kernel (?P<kernel>\S{1,80}) cannot be found"),
    Signature("kernel.build", "Failed to build MLNX_OFED_LINUX for", "MLNX_OFED mlnx_add_kernel_support.sh", r"for (?P<kernel>\S{1,80})"),
    Signature("kernel.build", "Cannot locate nvidia modules", "nv_peer_memory create_nv.symvers.sh"),
    Signature("kernel.modules", "disagrees about version of symbol", "Linux kernel/module"),
    Signature("kernel.modules", "Unknown symbol", "Linux kernel/module", r": Unknown symbol \S+ \(err"),
    Signature(
        "kernel.modules", "could not insert '", "kmod modprobe", r"could not insert '(?P<module>[\w-]{1,64})'(?:: (?P<error>[^:(]{1,80}))?"
    ),
    Signature("kernel.modules", "modprobe: FATAL: Module", "kmod modprobe", r"Module (?P<module>\S{1,64}) not found"),
    Signature("kernel.modules", "does not exist, skipping...", "MLNX_OFED openibd", r"Module (?P<module>\S{1,64}) does not exist"),
    Signature("kernel.oops", "BUG: unable to handle", _KERNEL),
    Signature("kernel.oops", "BUG: Bad ", _KERNEL),
    Signature("kernel.oops", "BUG: KASAN: ", _KERNEL),
    Signature("kernel.oops", "BUG: kernel NULL pointer", _KERNEL),
    Signature("kernel.oops", "nable to handle kernel ", _KERNEL, r"[Uu]nable to handle kernel (?:NULL pointer|paging request)"),
    Signature("kernel.oops", "kernel BUG at", _KERNEL),
    Signature("kernel.oops", "general protection fault", _KERNEL, r"general protection fault(?!.{0,40} ip:)"),
    Signature("kernel.oops", "Oops: ", _KERNEL, r"(?:^|[\s:])Oops: [0-9a-f]{4,16}\b|Internal error: Oops"),
    Signature(
        "kernel.oops", "RIP: 0010:", _KERNEL, r"RIP: 0010:\S+ \[(?P<module>mlx\w+|ib_\w+|rdma\w*|nvidia\w*|hfi1|bnxt_\w+|irdma|efa)\]"
    ),
    Signature("kernel.oops", "register non-static key", _KERNEL),
    Signature(
        "kernel.segfault", "segfault at", _KERNEL, r"(?P<program>\S{1,64})\[\d+\]: segfault at .{0,100} in (?P<library>[^[\s]{1,100})"
    ),
    Signature(
        "kernel.segfault",
        "general protection fault",
        _KERNEL,
        r"(?P<program>\S{1,64})\[\d+\] general protection fault ip:.{0,100} in (?P<library>[^[\s]{1,100})",
    ),
    Signature("kernel.stuck", "blocked for more than", _KERNEL, r"task (?P<program>\S{1,64}):\d+ blocked for more than"),
    Signature("kernel.stuck", "soft lockup", _KERNEL),
)
