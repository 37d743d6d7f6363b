# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of Open MPI and UCX by which errors are recognized: Open MPI 1.8 to 5.0 and UCX 1.8 to 1.19."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.statuses import STATUS_KINDS, UCX_WORDS, WORDS

_OMPI, _UCX, _OPENIB = "Open MPI", "UCX", "Open MPI opal/mca/btl/openib"
#: "[[1,1],0][btl_openib_component.c:3645:handle_wc] from node1 to: node2 error polling LP CQ with status RETRY EXCEEDED ERROR status
#: number 12 for wr_id 1 opcode 1 vendor error 129 qp_idx 0".
_POLLING = r"(?:from (?P<host>\S{{1,253}}) to: (?P<peer>\S{{1,253}}) )?error polling .{{0,60}}status number (?P<status>{})\b"
_MVAPICH, _SSH, _MM = "MVAPICH2 src/mpid/ch3/channels/mrail", "OpenSSH ssh", "UCX src/uct/sm/mm"
_ERROR = r"UCX +ERROR .{0,300}"

MPI_SIGNATURES: tuple[Signature, ...] = (
    Signature("mpi.slots", "There are not enough slots available", _OMPI),
    Signature("mpi.daemon", "was unable to reliably start one or more daemons", _OMPI),
    Signature("mpi.daemon", "unable to complete a TCP connection", _OMPI),
    Signature("mpi.lost", "has lost communication with a remote daemon", _OMPI),
    Signature("ib.create", "cannot create cq", _MVAPICH, r"rdma_\w{1,60}\(\d+\)\.{0,20}: cannot create cq|^cannot create cq\s*$"),
    Signature("mpi.pmi", "but OMPI was not built with SLURM", _OMPI),
    Signature("mpi.pmi", "PMI2_Init failed to intialize", f"{_OMPI} help-pmi.txt"),
    Signature("launch.ssh", "Host key verification failed", _SSH),
    Signature("launch.ssh", "Permission denied (", _SSH, r"^(?!.*\bgit@).*\S: Permission denied \((?:[a-z-]{1,30},?){1,6}\)"),
    Signature("launch.ssh", "ssh: connect to host", _SSH, r"to host (?P<host>\S{1,253}) port \d+: (?P<error>.{1,60})"),
    Signature("launch.ssh", "ssh: Could not resolve hostname", _SSH, r"hostname (?P<name>\S{1,253}): (?P<error>.{1,60})"),
    Signature("launch.ssh", "ssh exited with exit code 255", "pdsh src/modules/sshcmd.c"),
    Signature("launch.ssh", "was not reachable via ssh", "DeepSpeed deepspeed/launcher/runner.py", r"host=(?P<host>\S{1,253}) was not"),
    Signature(
        "mpi.runtime",
        "_ERROR_LOG: ",
        f"{_OMPI} orte",
        r"(?:ORTE|PRTE|PMIX|OPAL)_ERROR_LOG: (?P<error>.{1,80}?) in file (?P<place>\S{1,100})",
    ),
    Signature("mpi.runtime", "PMIX ERROR: ", "PMIx", r"PMIX ERROR: (?P<error>.{1,80}?) in file"),
    # openib
    *(Signature(name, "error polling", f"{_OPENIB}/btl_openib_component.c", _POLLING.format(number)) for name, number in STATUS_KINDS),
    Signature("memory.locked", "allocate some locked memory", f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("memory.locked", "Memlock limit:", f"{_OPENIB}/help-mpi-btl-openib.txt", r"Memlock limit: +(?P<limit>\S+)"),
    Signature("ib.create", "create an internal queue", f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("ib.retry", "InfiniBand retry count between two MPI processes", f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("ib.receiver_not_ready", 'OpenFabrics "receiver not ready" retry count', f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("mpi.no_port", "there are no active ports detected", f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("mpi.event", "has reported a network error event", f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("mpi.event", "has reported an unknown network error event", f"{_OPENIB}/help-mpi-btl-openib.txt"),
    Signature("ib.open", "Open MPI failed to open an OpenFabrics device", f"{_OMPI} opal/mca/common/verbs"),
    Signature("ib.query", "Open MPI failed to query an OpenFabrics device", f"{_OMPI} opal/mca/common/verbs"),
    Signature("mpi.openib", "There was an error initializing an OpenFabrics device", _OPENIB),
    Signature("mpi.openib", "No preset parameters were found for the device", _OPENIB),
    Signature("mpi.openib", "No OpenFabrics devices of the right type", _OPENIB),
    Signature("mpi.openib", "default subnet GID prefix was detected", _OPENIB),
    Signature("mpi.openib", "nonexistent OpenFabrics devices/ports were", _OPENIB),
    Signature("mpi.openib", "OpenFabrics BTL will be ignored", _OPENIB),
    Signature("mpi.openib", "InfiniBand (openib) BTL is deprecated", _OPENIB),
    Signature("mpi.openib", "By default, for Open MPI 4.0 and later, infiniband ports on a device", _OPENIB),
    Signature("ib.query", "error obtaining device ", _OPENIB, r"error obtaining device (?:attributes|context) for (?P<device>\w+)"),
    Signature("ib.create", "error creating ", _OPENIB, r"btl_openib.{0,200}error creating (?:channel|\w+ [cC]q|qp)"),
    Signature("qp.connect", "error modifying QP to ", _OPENIB, r"btl_openib.{0,300}error modifying QP to (?P<state>\w+)"),
    Signature("mpi.registerable", "allow registering part of your physical memory", _OPENIB),
    # other transports
    Signature("mpi.unreachable", "pair of MPI processes are unable to reach each other", _OMPI),
    Signature("mpi.unreachable", "PML add procs failed", _OMPI),
    Signature("mpi.pml", "No components were able to be opened in the pml framework", _OMPI),
    Signature("mpi.pml", "requested component was not found", _OMPI),
    Signature("mpi.tcp", "Open MPI failed to TCP connect to a peer MPI process", _OMPI),
    Signature(
        "mpi.tcp", "btl_tcp_endpoint", _OMPI, r"btl_tcp_endpoint.{0,300}connect\(\) to (?P<peer>[0-9a-fA-F.:]{3,45}?)(?::\d+)? failed"
    ),
    Signature("ofi.provider", "OFI addrinfo() failed", "MPICH src/mpid/ch4/netmod/ofi"),
    Signature("ofi.open", " failed (ofi_init.", "MPICH src/mpid/ch4/netmod/ofi", r"OFI .{0,60}failed \(ofi_init"),
    Signature("mpi.tcp", "received unexpected process identifier", f"{_OMPI} opal/mca/btl/tcp/btl_tcp_endpoint.c"),
    Signature("mpi.tcp", "Open MPI detected an inbound MPI TCP connection request from a peer", _OMPI),
    Signature("socket.closed", "mca_btl_tcp_frag_", _OMPI, r"mca_btl_tcp_frag_(?:recv|send): (?:readv|writev) failed"),
    Signature("mpi.no_nic", "unable to find any relevant network interfaces", f"{_OMPI} help-mpi-btl-base.txt"),
    Signature("ofi.open", "Open MPI failed an OFI Libfabric library call", f"{_OMPI} ompi/mca/mtl/ofi"),
    Signature(
        "mpi.signal",
        "noticed that process rank",
        _OMPI,
        r"rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal (?P<signal>\d+)",
    ),
    Signature("mpi.aborted", "process returned a non-zero exit code", _OMPI),
    Signature("mpi.aborted", "MPI_ABORT was invoked", _OMPI),
    Signature("mpi.aborted", "MPI_ERRORS_ARE_FATAL", _OMPI),
    Signature("mpi.aborted", "Fatal error in ", "MPICH", r"Fatal error in (?:P?MPI_|internal_)"),
    Signature("mpi.aborted", "It looks like MPI_INIT failed for some reason", _OMPI),
    Signature("mpi.aborted", "exited normally, but with a non-zero status", _OMPI),
    # shared memory between processes of a host
    Signature("socket.local", "failed to connect to remote FIFO id", f"{_MM}/base/mm_ep.c"),
    Signature("socket.local", "open(file_name=/proc/", f"{_MM}/posix/mm_posix.c", _ERROR + r"open\(file_name=/proc/\d+/fd/.{0,60}failed: "),
    Signature("socket.local", "shmat(shmid=", f"{_MM}/sysv/mm_sysv.c", _ERROR + r"shmat\(shmid=\d+\) failed: "),
    Signature("socket.local", "Shared memory error", f"{_OMPI} ompi/mca/pml/ucx", r"ucp_ep_create\(proc=\d+\) failed: Shared"),
    Signature("socket.local", "failed to attach to shmseg", "UCC src/components/tl/shm/tl_shm_team.c"),
    # UCX: memory and queues
    # The kernel's driver mlx5 returns this error for the status "limits exceeded" of the NIC, and locks no memory for such an object.
    Signature(
        "kernel.resources",
        "mlx5dv_devx_obj_create(",
        f"{_UCX} src/uct/ib/mlx5/dv/ib_mlx5_dv.c",
        _ERROR + r"mlx5dv_devx_obj_create\(.{0,200}failed.{0,80}: (?P<error>Cannot allocate memory)",
    ),
    Signature("memory.locked", "Please set max locked memory", _UCX, r"\(current: (?P<limit>[^)]{1,40})\)"),
    Signature("memory.locked", "Please set max locked memory", _UCX),
    Signature(
        "memory.locked",
        "failed: Cannot allocate memory",
        _UCX,
        r"UCX +ERROR .{0,300}(?:ibv|mlx5dv)_\w+\(?.{0,300}failed: Cannot allocate memory",
    ),
    Signature("memory.gpu", "failed: Bad address", _UCX, r"UCX +ERROR .{0,200}reg_\w*mr"),
    Signature("memory.gpu", "Couldn't enable GPUDirect RDMA", _UCX),
    Signature("memory.refused", "reg_", _UCX, r"UCX +ERROR .{0,200}reg_\w*mr.{0,300}failed: (?P<error>[A-Za-z ]{1,60})"),
    # An address handle needs the hardware address of the other end.
    Signature("qp.timeout", "ibv_create_ah(", _UCX, _ERROR + r"ibv_create_ah\(.{0,400}failed: Connection timed out"),
    Signature(
        "qp.unreachable", "ibv_create_ah(", _UCX, _ERROR + r"ibv_create_ah\(.{0,400}failed: (?:Network is unreachable|No route to host)"
    ),
    Signature("qp.invalid", "ibv_create_ah(", _UCX, _ERROR + r"ibv_create_ah\(.{0,400}failed: "),
    Signature(
        "ib.create",
        "mlx5dv_",
        f"{_UCX} src/uct/ib/mlx5",
        _ERROR + r"mlx5dv_(?:create_\w+|devx_(?:obj_create|create_\w+|umem_reg|alloc_uar)"
        r")\(?.{0,200}failed.{0,80}: (?P<error>[A-Z][A-Za-z/ ]{1,60})",
    ),
    Signature(
        "qp.connect",
        "mlx5dv_devx_",
        f"{_UCX} src/uct/ib/mlx5/dv/ib_mlx5_dv.c",
        _ERROR + r"mlx5dv_devx_(?:obj|qp)_modify\(.{0,200}failed.{0,80}: (?P<error>[A-Z][A-Za-z/ ]{1,60})",
    ),
    Signature("ib.create", "ibv_create_", _UCX, r"UCX +ERROR .{0,200}ibv_create_\w+\(?.{0,300}failed: (?P<error>[A-Za-z ]{1,60})"),
    Signature("qp.connect", "UCX ", _UCX, _ERROR + r"(?:modify|modifying|modify_qp).{0,60}\b(?P<state>INIT|RTR|RTS)\b"),
    Signature(
        "memory.refused",
        "failed to register ",
        _UCX,
        _ERROR + r"failed to register (?:address|user buffer).{0,200}: "
        "(?P<error>[A-Za-z/ ]{1,60})",
    ),
    Signature("host.files", "maximal number of files that could be opened", _UCX),
    Signature("shm.failed", "please check shared memory limits", _UCX),
    Signature("shm.space", "Not enough memory to write total of", _UCX),
    # UCX: completions
    *(
        Signature(name, words, "UCX src/uct/ib/mlx5/ib_mlx5_log.c", r"UCX +(?:ERROR|WARN|DIAG|FATAL)|^(?!.*UCX).{0,200}" + words)
        for name, words in UCX_WORDS[:2]
    ),
    *(Signature(name, words, "UCX src/uct/ib/mlx5/ib_mlx5_log.c", r"UCX +(?:ERROR|WARN|DIAG|FATAL)") for name, words in UCX_WORDS[2:]),
    *(Signature(name, words, "UCX src/uct/ib/rc/verbs", r"UCX +(?:ERROR|WARN|DIAG|FATAL)") for name, words in WORDS),
    # UCX: the choice of a transport
    Signature("ucx.version", "UCP API version is incompatible", "UCX src/ucp/core/ucp_context.c"),
    Signature(
        "ib.port_down",
        "UCX ",
        _UCX,
        r"UCX +(?:ERROR|WARN|DIAG) .{0,200}(?P<device>[a-z]\w{0,63}):(?P<port>\d{1,3}).{0,60}(?:is not active|no active ports?|not in "
        r"ACTIVE)",
    ),
    Signature("ib.port_down", "port is not active", _UCX),
    Signature("ucx.device", "is not available, please use one or more of", _UCX, r"'(?P<device>[A-Za-z]\w*)(?::\d+)?' is not available"),
    Signature("ucx.device", "enable it in UCX_NET_DEVICES", f"{_UCX} src/ucp", r"device (?P<device>\S{1,63}) is not enabled"),
    Signature("ucx.device", "are not available, please use one or more of", _UCX),
    Signature(
        "ucx.transport",
        "transport",
        _UCX,
        _ERROR + r"no (?:usable|active|supported|auxiliary)?.{0,40}transport|UCX +ERROR +no "
        ".{0,60}transport",
    ),
    Signature("ucx.transport", "Destination is unreachable", _UCX, r"UCX +ERROR|UCXPY|UCX\w*Error|pml_ucx|ucp_ep_create|NET/UCX"),
    Signature("ucx.transport", "Failed to resolve UCX endpoint for rank", "Open MPI ompi/mca/pml/ucx", r"for rank (?P<unreachable>\d+)"),
    Signature("ucx.transport", "Failed to create UCP worker", "Open MPI ompi/mca/pml/ucx"),
    Signature("ucx.transport", "Failed to receive UCX worker address", "Open MPI ompi/mca/pml/ucx"),
    Signature(
        "socket.refused",
        "failed: Connection refused",
        _UCX,
        r"UCX +(?:ERROR|DIAG) .{0,200}connect\(.{0,200}dest_addr=(?P<peer>[0-9a-fA-F.]{3,45})",
    ),
    Signature(
        "socket.unreachable",
        "dest_addr=",
        _UCX,
        r"UCX +(?:ERROR|DIAG) .{0,200}dest_addr=(?P<peer>[0-9a-fA-F.]{3,45}).{0,40}(?P<error>No route to host|Network is unreachable|"
        r"Connection timed out)",
    ),
    Signature("cm.address", "rdma_resolve_", _UCX, r"UCX +(?:ERROR|DIAG|WARN) .{0,200}rdma_resolve_(?:addr|route).{0,200}failed"),
    # UCX: consequences
    Signature("ucx.closed", "Connection reset by remote peer", _UCX),
    Signature("ucx.closed", "Endpoint is not connected", _UCX),
    Signature("ucx.closed", "Endpoint timeout", _UCX),
)
