# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of programs around NCCL by class: libraries, rendezvous, processes of a host, MPI, launchers, storage and containers."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_LINKER, _GLOO, _STORE = "the dynamic linker", "Gloo gloo/transport/tcp", "PyTorch socket.cpp"
_UCX, _MPICH, _KUBE, _RAY = "UCX src", "MPICH src/mpid/ch4/netmod/ofi", "Kubernetes", "Ray"
_VLLM, _SGLANG, _KERNEL, _SLURM = "vLLM vllm/v1", "SGLang", "Linux drivers", "Slurm"
_UCX_LINE = r"UCX +(?:ERROR|WARN|FATAL) .{0,200}"

#: They come before the words of any program.
EARLY_PROGRAMS: tuple[Signature, ...] = (
    # memory of another process
    Signature(
        "socket.local",
        "process_vm_",
        f"{_UCX}/uct/sm/scopy/cma/cma_ep.c",
        r"(?P<reads>process_vm_(?:readv|writev)).{0,200}(?:Operation not permitted|Permission denied|Bad address|No such process)",
    ),
    Signature("socket.local", "Read -1, expected", "Open MPI opal/mca/btl/vader", r"(?P<reads>Read) -1, expected \d+, errno ?= ?\d+"),
    Signature(
        "socket.local",
        "CMA ",
        "Open MPI help-btl-vader.txt",
        r"Linux kernel (?P<reads>CMA) support was requested|(?P<reads_too>CMA) support is not available due to restrictive ptrace",
    ),
    # UCX
    Signature("memory.refused", "failed to register region", f"{_UCX}/ucs/memory/rcache.c", r"UCX +(?:WARN|ERROR)"),
    Signature("memory.refused", "Failed to allocate memory pool", f"{_UCX}/ucs/datastruct/mpool.c", _UCX_LINE + "Input/output error"),
    Signature("cm.address", "got error event", f"{_UCX}/uct/ib/rdmacm/rdmacm_cm.c", r"got error event (?P<event>\S{1,60}), event status"),
    Signature("ucx.transport", "but none of the available components support", f"{_UCX}/ucp/core/ucp_context.c"),
    Signature("gid.filter", "failed to find a gid which", f"{_UCX}/uct/ib/base/ib_device.c"),
    Signature("ib.pkey_missing", "pkey", f"{_UCX}/uct/ib/base/ib_iface.c", r"(?:unable to find specified|no valid|requested) pkey"),
    Signature(
        "ucx.transport",
        "ucp_device.c",
        f"{_UCX}/ucp/core/ucp_device.c",
        r"ucp_device\.c:\d+ +UCX +ERROR +(?P<of_gpus>.{1,80})",
    ),
    # NVSHMEM
    Signature(
        "nvshmem.ibgda",
        "Error in mlx5dv_devx_obj_modify for ",
        "NVSHMEM src/modules/transport/ibgda/ibgda.cpp",
        r"obj_modify for (?P<state>[A-Z0-9]{3,8}2[A-Z0-9]{3,8})_QP",
    ),
    Signature("cuda.memory", "CUBLAS_STATUS_ALLOC_FAILED", "cuBLAS"),
    # PSM
    Signature(
        "memory.locked", "hfi_userinit: mmap of", "libpsm2", r"mmap of \w+ at \S+ failed: (?P<error>Resource temporarily unavailable)"
    ),
    Signature("ib.open", "PSM", "libpsm2, libfabric prov/psm3", r"(?P<psm>PSM[23]) can't open (?:hfi|nic) unit"),
    Signature("ib.open", "hfi_userinit: assign_context command failed", "libpsm2", r"assign_context command failed"),
    # libfabric below MPI
    Signature("ofi.transfer", "MPIDI_OFI_", _MPICH, r"OFI .{1,60} failed \(ofi_(?:rma|send|recv|events|progress|win)\w*\.[hc]:"),
    Signature("ofi.provider", "OFI fi_getinfo() failure", _MPICH),
    Signature("test.no_device", "sys files not found (/sys/class/infiniband", "infiniband-diags ibstatus"),
    # RDMA in the kernel
    Signature(
        "cm.address",
        "nvme nvme",
        f"{_KERNEL}/nvme/host/rdma.c",
        r"nvme nvme\d+: (?:Connect (?P<event>rejected): status \d+|rdma_resolve_(?:addr|route) (?:wait )?failed|rdma connection "
        r"establishment failed|RDMA connect (?:error|failed)|failed to connect queue)",
    ),
    Signature(
        "storage.lost",
        "nvme nvme",
        f"{_KERNEL}/nvme/host",
        r"nvme nvme\d+: (?:(?:RECV|SEND|FRWR|MEMREG|INV) for CQE 0x\w+ failed|I/O \d+ .{0,40}timeout|starting error recovery|Failed "
        r"reconnect|Reconnecting in)",
    ),
    Signature("storage.lost", "rpcrdma", "Linux net/sunrpc/xprtrdma", r"rpcrdma: connection to \S+ .{0,60}(?:closed|rejected|failed)"),
    Signature("storage.lost", "kiblnd_", "Lustre lnet/klnds/o2iblnd", r"(?:LNetError|LNet).{0,200}kiblnd_\w+"),
    Signature("storage.lost", "RDMA timed out", "Lustre lnet/klnds/o2iblnd"),
    Signature("storage.lost", "iser", f"{_KERNEL}/infiniband/ulp/iser", r"iser: iser_\w+:.{0,60}(?i:fail|error|timeout)"),
)

PROGRAM_CLASSES: tuple[Signature, ...] = (
    # libraries; those of a network plugin and of libibverbs have their own texts
    Signature("nccl.library", "undefined symbol", _LINKER, r"undefined symbol: (?P<symbol>p?nccl[A-Z]\w{2,60})"),
    Signature("nccl.library", "libnccl", _LINKER, r"libnccl\.so\S*: cannot open shared object file"),
    Signature(
        "verbs.abi",
        "' not found (required by ",
        _LINKER,
        r"lib(?:ibverbs|mlx[45]|rdmacm|efa)\S*: version `(?P<symbol>\w[\w.]{1,60})' not found",
    ),
    Signature("verbs.abi", "undefined symbol", _LINKER, r"undefined symbol: (?P<symbol>(?:ibv|mlx5dv|rdma|efadv)_\w{2,60})"),
    Signature("ucx.version", "undefined symbol", _LINKER, r"undefined symbol: (?P<symbol>uc[pstm]_\w{2,60})"),
    Signature("cuda.no_device", "libcuda.so.1: cannot open shared object file", _LINKER),
    Signature("library.version", "undefined symbol", _LINKER, r"(?P<library>\S{1,200}): undefined symbol: (?P<symbol>\S{1,100})"),
    Signature(
        "library.version", "' not found (required by ", _LINKER, r"(?P<library>\S{1,200}): version `(?P<symbol>[^']{1,60})' not found"
    ),
    Signature(
        "library.missing",
        "cannot open shared object file",
        _LINKER,
        r"^(?!.*(?:NCCL|NET/|PROFILER/|TUNER/|libibverbs: Warning)).*?(?P<library>[\w.+-]{3,100}\.so[\w.]{0,20}): cannot open "
        r"shared object",
    ),
    Signature("nccl.library", "Unable to load NCCL library", "XLA xla/service/gpu"),
    # rendezvous
    Signature(
        "store.wait", "got error: ", "PyTorch ProcessGroupNCCL.cpp", r"store->get\('.{1,40}'\) got error: (?:Socket Timeout|wait timeout)"
    ),
    Signature("store.lost", "got error: ", "PyTorch ProcessGroupNCCL.cpp", r"store->get\('.{1,40}'\) got error: "),
    Signature(
        "torch.desync",
        "reached monitoredBarrier, but received errors",
        "PyTorch ProcessGroupGloo.cpp",
        r"errors while waiting for send/recv from rank (?P<absent>\d+)",
    ),
    Signature("store.connect", "host not found: ", "PyTorch TCPStore", r"host not found: (?P<unresolved>.{1,60})"),
    Signature("store.connect", "cannot be retrieved (gai error", _STORE, r"retrieved \(gai error: -?\d+ - (?P<unresolved>[^)]{1,60})"),
    Signature("gloo.fallback", "Using the loopback address as fallback", "PyTorch ProcessGroupGloo.cpp"),
    Signature("gloo.interface", "Unable to find interface for", f"{_GLOO}/device.cc"),
    Signature("torch.timeout", "Application timeout caused pair closure", f"{_GLOO}/pair.cc"),
    Signature("torch.timeout", "Read timeout [", f"{_GLOO}/pair.cc"),
    Signature(
        "socket.closed",
        "gloo/transport/tcp/pair.cc",
        f"{_GLOO}/pair.cc",
        r"pair\.cc:\d+\].{0,80}(?:Connection reset|Broken pipe|Connection closed)",
    ),
    Signature("torch.stuck", "Heartbeat monitor timed out!", "PyTorch ProcessGroupNCCL.cpp"),
    Signature("torch.stuck", "detected no heartbeat of its watchdog", "PyTorch ProcessGroupNCCL.cpp"),
    Signature("torch.timeout", "One or more tensors were submitted to be reduced", "Horovod horovod/common/stall_inspector.cc"),
    Signature("torch.remote", "Horovod has been shut down", "Horovod"),
    Signature("store.clients", "Barrier timed out", "JAX xla/tsl/distributed_runtime/coordination"),
    Signature(
        "mooncake.handshake",
        "rpc ",
        "Mooncake mooncake-store/src",
        r"coro_rpc_client\.hpp:\d+\] read rpc \w+ failed|client\.cpp:\d+\] .{0,60}due to rpc error",
    ),
    # what ends because a process ended
    Signature("engine.ended", "ngine", _VLLM, r"EngineDeadError|Engine core initialization failed|EngineCore failed to start"),
    Signature("engine.ended", "initialization failed due to an exception in a background process", _VLLM),
    Signature("engine.ended", "This might cause deadlock in distributed execution", f"{_VLLM}, vllm/worker"),
    Signature("engine.ended", "Scheduler hit an exception", _SGLANG),
    Signature("engine.ended", "ActorHandleNotFoundError", _RAY),
    Signature("engine.ended", "exits with return code = ", "DeepSpeed deepspeed/launcher/launch.py", r"return code = [1-9]"),
    # processes
    Signature("host.memory", "due to the node running low on memory", _RAY),
    Signature("host.memory", "OOMKilled", _KUBE),
    Signature(
        "ray.ended",
        "orker",
        _RAY,
        r"WorkerCrashedError\b|Worker exit type: SYSTEM_ERROR|A worker died or was killed",
    ),
    Signature("ray.ended", "Actor", _RAY, r"\b(?:ActorDiedError|RayActorError)\b"),
    Signature("process.killed", "killed by signal: Killed", "PyTorch DataLoader"),
    Signature("process.killed", " Killed ", "bash", r"(?:: line \d+: |^)\s*\d+ Killed\s"),
    Signature("shm.loader", "unable to open shared memory object", "PyTorch aten/src/ATen/MapAllocator.cpp"),
    Signature("shm.loader", "unable to mmap", "PyTorch aten/src/ATen/MapAllocator.cpp", r"from file </torch_\S+>"),
    Signature("host.files", "received 0 items of ancdata", "Python multiprocessing"),
    Signature(
        "host.processes",
        "thread",
        "any program",
        r"pthread_create (?:failed|call failed)|can't start new thread|Thread creation failed: Resource temporarily|unable to create new "
        r"(?:native )?thread",
    ),
    Signature(
        "host.disk", "No space left on device", "any program", r"^(?!.*/dev/shm)(?!.*NCCL).*(?:Errno 28|[Ee]rror|[Ff]ail|cannot write)"
    ),
    Signature("host.disk", "Disk quota exceeded", "any program"),
    # GPUs
    Signature("gpu.nvml", "Failed to initialize NVML: Unknown Error", "NVML"),
    Signature("cuda.no_device", "driver not loaded", "nvidia-container-cli", r"nvml error: driver not loaded"),
    Signature("cuda.no_device", "could not select device driver", "Docker", r'device driver "\w*" with capabilities'),
    Signature("cuda.no_device", "No CUDA GPUs are available", "PyTorch"),
    Signature("cuda.no_device", "CUDA driver initialization failed", "PyTorch"),
    Signature("cuda.mismatch", "forward compatibility was attempted on non supported HW", "CUDA"),
    Signature("cuda.failed", "CUBLAS_STATUS_", "cuBLAS", r"(?P<error>CUBLAS_STATUS_(?:NOT_INITIALIZED|EXECUTION_FAILED|INTERNAL_ERROR))"),
    # schedulers
    Signature(
        "slurm.request",
        "srun: error: ",
        _SLURM,
        r"(?:Unable to (?:create step|allocate resources|confirm allocation)|Invalid generic resource).{0,100}",
    ),
    Signature("slurm.request", "sbatch: error: ", _SLURM, r"Batch job submission failed"),
    Signature(
        "kube.resources", "Insufficient ", _KUBE, r"Insufficient (?P<resource>(?:nvidia\.com|rdma|amd\.com|vpc\.amazonaws\.com)/\S{1,60})"
    ),
    Signature("kube.resources", "no healthy devices present", _KUBE),
    Signature("kube.network", "FailedCreatePodSandBox", _KUBE, r"(?i)sriov|sr-iov|multus|rdma|macvlan|ipam|VF "),
)
