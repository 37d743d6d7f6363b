# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of perftest, rdma-core (libraries, examples and tools), OpenSM and Fabric Manager by which errors are recognized.

The texts are those of perftest 4.5 to 6.29, of ibv_rc_pingpong and of qperf. A status of a completion is recognized in every program that
prints the words of ibv_wc_status_str.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.statuses import STATUS_KINDS, WORDS

_RESOURCES, _COMMUNICATION = "perftest src/perftest_resources.c", "perftest src/perftest_communication.c"
_PARAMETERS, _MAIN = "perftest src/perftest_parameters.c", "perftest src/*_bw.c, *_lat.c"
_PINGPONG, _VERBS = "rdma-core libibverbs/examples", "libibverbs ibv_wc_status_str"
#: "Failed status 12: wr_id" up to 4.5, "Failed status-transport retry counter exceeded (12): wr_id" later.
_FAILED = r"Failed status(?: |-[^()]{{0,99}}\()(?P<status>{})\b"
_POLLED = r"Poll send CQ error status=(?P<status>{})\b"

_LIBRARY, _CM, _MAD = "rdma-core libibverbs", "rdma-core librdmacm", "rdma-core libibmad"
_OPENSM, _MANAGER = "OpenSM", "NVIDIA Fabric Manager"
_ERRNO = (
    r"(?P<error>No such (?:device|file)|Cannot (?:assign|allocate)|Invalid argument|Operation not|Permission|Address|Connection|Network"
    r"|No route|Bad|Function)"
)

TOOL_SIGNATURES: tuple[Signature, ...] = (
    # libibverbs: its plug-ins in user space
    Signature(
        "verbs.abi", "does not support the kernel ABI of", f"{_LIBRARY}/init.c", r"on? device (?P<device_path>\S{1,99})|kernel ABI of"
    ),
    Signature("verbs.abi", "libibverbs: Fatal: kernel ABI version", f"{_LIBRARY}/init.c"),
    Signature(
        "verbs.abi", "IBVERBS_PRIVATE_", f"{_LIBRARY}/dynamic_driver.c", r"couldn't load driver '(?P<library>[^']{1,99})'.{0,200}not found"
    ),
    Signature("verbs.driver", "no userspace device-specific driver found for", f"{_LIBRARY}/init.c"),
    Signature(
        "verbs.unloaded", "libibverbs: Warning: couldn't ", f"{_LIBRARY}/dynamic_driver.c", r"couldn't (?:load driver|open config|stat) "
    ),
    Signature("verbs.memlock", "libibverbs: Warning: RLIMIT_MEMLOCK is", f"{_LIBRARY}/init.c", r"is (?P<limit>\d+) bytes"),
    Signature("test.no_device", "librdmacm: Fatal: no RDMA devices found", f"{_CM}/cma.c"),
    Signature("ib.open", "ailed to open device", f"{_LIBRARY}/examples/devinfo.c", r"^(?!.*NCCL).*[Ff]ailed to open device"),
    Signature("ib.port_down", "no hfi units are active", "libpsm2"),
    Signature(
        "ib.nodes",
        "missing RDMA device spec for device",
        "k8s-rdma-shared-dev-plugin pkg/resources",
        r"for device (?P<pci>[0-9a-f:.]{7,16})",
    ),
    Signature("ib.open", "ail to open rdma device", "brpc src/brpc/rdma/rdma_helper.cpp"),
    # librdmacm: perror("rdma_bind_addr") in its examples
    Signature("cm.channel", "rdma_create_", _CM, r"rdma_create_(?:event_channel|id)(?:\(\))? ?(?:failed|: " + _ERRNO + ")"),
    Signature(
        "cm.address",
        "rdma_",
        _CM,
        r"rdma_(?:bind_addr|resolve_addr|resolve_route|connect|listen|accept|create_ep|getaddrinfo|get_request): " + _ERRNO,
    ),
    # management packets
    Signature("mad.open", "client_register for mgmt", f"{_MAD}/rpc.c", r"client_register for mgmt (?:class )?\d+ failed"),
    Signature(
        "mad.open", "an't open ", f"{_MAD}/rpc.c", r"[Cc]an't open (?:UMAD|MAD|GSI UMAD|SMI UMAD) port \(\(?(?P<device>[A-Za-z]\w*)?"
    ),
    Signature("mad.open", "an't init UMAD library", f"{_MAD}/rpc.c"),
    Signature(
        "mad.timeout", " bad status ", "rdma-core libibnetdisc/query_smp.c", r"umad \(.{0,200}bad status (?P<errno>\d+); (?P<error>.{1,60})"
    ),
    Signature("mad.timeout", "_do_madrpc failed; dport", f"{_MAD}/rpc.c", r"dport \((?P<route>[^)]{1,200})\)"),
    Signature("mad.failed", "iberror: failed: ", "rdma-core infiniband-diags"),
    # the subnet manager
    Signature("opensm.bind", ": ERR ", f"{_OPENSM} libvendor/osm_vendor_ibumad.c", r"ERR (?:542[0-9]|2E10|3118|5404|1A1[01]|2F0[0-9])\b: "),
    Signature(
        "mad.timeout",
        ": ERR ",
        f"{_OPENSM} libvendor/osm_vendor_ibumad.c",
        r"ERR (?:5410|5411|3113|3120|3315)\b: .{0,100}(?i:time|error|complet)",
    ),
    Signature("opensm.failed", ": ERR ", _OPENSM, r"0x01 -> \w{1,80}: ERR (?P<code>[0-9A-F]{4}): (?P<error>.{1,120})"),
    # Fabric Manager
    Signature(
        "fm.version",
        "GPU driver interface version",
        _MANAGER,
        r"version (?P<one_version>\S{1,40}) d(?:o|oes)n[^ ]{1,3}t match with driver version (?P<other_version>\S{1,40}?)\.?\s",
    ),
    Signature("fm.no_switch", "NV_WARN_NOTHING_TO_DO", _MANAGER, r"NVSwitch"),
    Signature("fm.failed", "fabric manager config file item", _MANAGER, r"has an invalid value"),
    Signature("fm.failed", "Job for nvidia-fabricmanager.service failed", "systemd systemctl"),
    Signature("fm.failed", "nvidia-fabricmanager.service: ", "systemd", r"status=[1-9]\d*/FAILURE|Failed with result"),
)

PERFTEST_SIGNATURES: tuple[Signature, ...] = (
    *TOOL_SIGNATURES,
    *(Signature(name, "Failed status", "perftest src/perftest_resources.h", _FAILED.format(number)) for name, number in STATUS_KINDS),
    *(Signature(name, "Poll send CQ error", _RESOURCES, _POLLED.format(number)) for name, number in STATUS_KINDS),
    # devices and ports
    Signature("ib.port_down", "Port number ", _PARAMETERS, r"Port number (?P<port>\d{1,3}) state is (?P<state>\w+)"),
    Signature("ib.port_down", "Link layer on port", _PARAMETERS, r"Link layer on port \d+ is Unknown"),
    Signature("test.no_device", "IB device ", _RESOURCES, r"IB device (?P<device>\S{1,99}) not found"),
    Signature("test.no_device", "Unable to find the Infiniband/RoCE device", _MAIN),
    Signature("test.no_device", "No IB devices found", _PINGPONG, r"(?P<none_at_all>No IB devices found)"),
    Signature("test.no_device", "Did not detect devices", _RESOURCES, r"(?P<none_at_all>Did not detect devices)"),
    Signature("ib.open", "Couldn't get context for ", _RESOURCES, r"Couldn't get context for (?:the device|(?P<device>\S{1,99}))"),
    Signature("ib.query", "Couldn't set the link layer", _PARAMETERS),
    Signature("ib.query", "Couldn't get device attributes", _RESOURCES),
    Signature("ib.query", "Couldn't get port info", _PINGPONG),
    Signature("ib.query", "Failed to query device", _RESOURCES, r"Failed to query device (?:attributes|capabilities|vendor id|$)"),
    Signature("ib.query", "Error when trying to query", _PARAMETERS, r"Error when trying to query (?:port|EFA device)"),
    Signature("ib.query", "Unable to query port", _PARAMETERS, r"Unable to query port (?P<port>\d{1,3}) attributes"),
    Signature("ib.query", "ibv_query_device_ex failed", _RESOURCES),
    Signature("qp.gid_missing", "read sgid of index", _PINGPONG, r"(?:can't|could not|Failed to) read sgid of index (?P<gid_index>\d+)"),
    Signature(
        "qp.gid_missing",
        "gid index",
        _PINGPONG,
        r"(?i)(?:can't|couldn't|could not|failed to|unable to) (?:get|find|query|read) .{0,30}gid index",
    ),
    Signature("qp.gid_missing", " GID", _PARAMETERS, r"(?i)(?:unable|failed) to (?:find|get|query|read)(?: \w+){0,3} GID\b"),
    # memory and queues
    Signature("memory.registration", "Couldn't allocate MR", _RESOURCES, r"Couldn't allocate MR(?: with error=(?P<errno>\d+))?"),
    Signature("memory.registration", "ailed to create ", _RESOURCES, r"[Ff]ailed to create (?:mr|MR|mkey)\b"),
    Signature("memory.registration", "Couldn't create null MR", _RESOURCES),
    Signature("memory.registration", "Couldn't register ", _PINGPONG, r"Couldn't register (?:\w+ )?MR"),
    Signature(
        "ib.create",
        "Couldn't create ",
        _RESOURCES,
        r"Couldn't create (?:a receiver |IB |rdma (?:new|old) |ib_)?(?:CQ|QP|SRQ|XRC|send|receive|completion|resources)",
    ),
    Signature("ib.create", "ailed to create ", _RESOURCES, r"[Ff]ailed to create (?:QP|CQs?|SRQ|AH|RDMA CM)\b"),
    Signature(
        "ib.create", "nable to create ", _RESOURCES, r"[Uu]nable to create (?:QP|CQ|rdma resources|AH|address handler|the resources)"
    ),
    Signature("ib.create", "Couldn't allocate ", _RESOURCES, r"Couldn't allocate (?:PA?D|TD|DMAH)\b"),
    Signature("ib.create", "Requested QP size might be too big", _RESOURCES),
    Signature("ib.create", "Couldn't request CQ notification", _RESOURCES),
    Signature("ib.post", "Couldn't post ", _RESOURCES, r"Couldn't post (?:send|recv|receive|my|SRQ)"),
    Signature("ib.post", "Function ibv_post_", _COMMUNICATION, r"Function ibv_post_(?:send|recv) failed"),
    Signature("ib.completion", "oll ", _RESOURCES, r"[Pp]oll (?:on )?(?:Send |Receive |send )?CQ (?:to clean credit )?failed"),
    # the connection
    Signature(
        "qp.connect",
        "ailed to modify ",
        _RESOURCES,
        r"[Ff]ailed to modify (?:\w+ )?QP(?: \d+)? to (?P<state>INIT|RTR|RTS)(?:: (?P<error>[A-Za-z ]{1,60}))?",
    ),
    Signature("qp.connect", "Unable to Connect the HCA's through the link", _MAIN),
    Signature("qp.connect", "Couldn't connect to remote QP", _PINGPONG),
    Signature("test.connect", "Unable to init the socket connection", _MAIN),
    Signature("test.connect", "Unable to open file descriptor for socket connection", _COMMUNICATION),
    Signature("test.connect", "Unable to connect (retries", _COMMUNICATION),
    Signature("test.connect", "Couldn't connect to ", _COMMUNICATION, r"Couldn't connect to (?P<peer>[0-9A-Za-z._:-]{1,253}):\d{1,5}"),
    Signature("store.port", "Couldn't listen to port", _COMMUNICATION, r"listen to port (?P<taken>\d+)"),
    Signature("store.port", "Failed to bind socket", _COMMUNICATION),
    Signature("test.peer", "Failed to exchange ", _COMMUNICATION, r"Failed to exchange .{0,60}between server and clients?"),
    Signature("test.peer", "nable to ", _COMMUNICATION, r"Unable to (?:read|write) (?:from|to) socket/rdma_cm"),
    Signature("test.peer", "ethernet_read_", _COMMUNICATION, r"ethernet_read_(?:data|keys): Couldn't read"),
    Signature("test.peer", "Couldn't read/write remote address", _PINGPONG),
    Signature("test.peer", "client read/write: ", _PINGPONG),
    Signature("test.peer", "Couldn't parse line", _COMMUNICATION),
    Signature("test.peer", "Couldn't send ", _COMMUNICATION, r"Couldn't send (?:local address|reports)"),
    # RDMA CM
    Signature("cm.address", "RDMA CM event error", _COMMUNICATION),
    Signature(
        "cm.address", "RDMA_CM_EVENT_", "rdma-core librdmacm", r"RDMA_CM_EVENT_(?P<event>(?:ADDR|ROUTE|CONNECT)_ERROR|UNREACHABLE|REJECTED)"
    ),
    Signature("cm.address", "ADDR_ERROR", _COMMUNICATION, r"Received \d+ times ADDR_ERROR"),
    Signature(
        "cm.address",
        "rdma_",
        _COMMUNICATION,
        r"(?:rdma_(?:resolve_addr|resolve_route|bind_addr|listen|get_cm_events)|Function rdma_(?:accept|connect)) failed",
    ),
    Signature("cm.address", "Unable to perform rdma_", _COMMUNICATION, r"Unable to perform rdma_(?:client|server) function"),
    # options, versions, GPUs
    Signature("test.mtu", "tu is higher than active mtu", _PARAMETERS, r"[Mm]tu is higher"),
    Signature("test.mtu", "nvalid MTU", _PARAMETERS, r"[Ii]nvalid MTU - (?P<mtu>\d+)"),
    Signature("test.mtu", "Couldn't set Eth MTU", _PARAMETERS),
    Signature(
        "test.mtu", " mismatch: local=", _COMMUNICATION, r"(?i)\bmtu\b.{0,20} mismatch: local=(?P<local>\S+), remote=(?P<remote>\S+)"
    ),
    Signature(
        "test.differs", " mismatch: local=", _COMMUNICATION, r"(?P<option>\S.{0,60}) mismatch: local=(?P<local>\S+), remote=(?P<remote>\S+)"
    ),
    Signature("test.differs", "not compatible with versions older than", _COMMUNICATION),
    Signature("test.differs", "Failed to negotiate parameters", _COMMUNICATION),
    Signature(
        "test.gpu",
        "DMA-BUF ",
        "perftest src/cuda_memory.c",
        r"DMA-BUF is not supported on this GPU|does not support DMA-BUF",
    ),
    Signature("test.options", "DMA-BUF cannot be used without", _PARAMETERS),
    Signature("test.gpu", "DMABUF requested but not supported", _RESOURCES),
    Signature("test.gpu", "support DMA-BUF", _RESOURCES, r"OFED stack does not support DMA-BUF"),
    Signature("test.gpu", "Couldn't init", _RESOURCES, r"Couldn't init(?:ialize)? (?:GPU context|ROCm device)"),
    Signature("test.gpu", "no available device(s) that support CUDA", "perftest src/cuda_memory.c"),
    Signature("test.gpu", "unrecognized option", "getopt", r"unrecognized option '--use_(?:cuda|rocm)"),
    Signature("test.gpu", "load_cuda_function: Failed", "perftest src/cuda_memory.c"),
    Signature("test.gpu", "supports CUDA only in BW", _PARAMETERS),
    Signature("test.gpu", "doesn't support device memory latency test", _PARAMETERS),
    Signature("test.gpu", "No such device ID", "perftest src/cuda_memory.c", r"No such device ID \(-?\d+\) exists"),
    Signature("test.gpu", "CUDA PCIe mapping", "perftest src/cuda_memory.c", r"requires DMA-BUF"),
    Signature("test.gpu", "Failed to ", "perftest src/cuda_memory.c", r"Failed to (?:load|resolve) (?:required )?(?:CUDA|cuGetProc)"),
    Signature("test.gpu", "Requested ROCm device", "perftest src/rocm_memory.c"),
    Signature(
        "test.missing",
        "error while loading shared libraries",
        "the dynamic linker",
        r"\bib_(?:write|read|send|atomic)_(?:bw|lat): error while loading",
    ),
    Signature("tests.timeout", "Did not get Message for ", _RESOURCES),
    Signature(
        "test.missing",
        "ib_",
        "the shell",
        r"\bib_(?:write|read|send|atomic)_(?:bw|lat)\W{0,3}(?: line \d+)?.{0,20}(?:command not found|No such file or directory|cannot "
        r"open shared object)",
    ),
    # words of any program, so they come last
    *(Signature(name, words, _VERBS) for name, words in WORDS),
)

#: A failed call in the words of any program; not a line at a level at which programs log calls that they expect to fail.
_CALL = (
    r"^(?!.*(?:\b(?:DEBUG|TRACE|DIAG)\b|UCX +INFO|<(?:info|debug)>)).*\b{}\b.{{0,200}}"
    r"(?:[Ff]ail|[Ee]rr(?:or)?\b|returned (?:-?[1-9]|NULL|null)|: (?=[A-Z][a-z]+ ))"
)
_WHY = r"(?:.{0,80}?(?P<error>Cannot allocate memory|Bad address|Invalid argument|Connection timed out|Operation not \w+|No such device))?"
CALL_SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "memory.locked", "Cannot allocate memory", _LIBRARY, _CALL.format(r"ibv_(?:reg_\w*mr\w*|create_\w+|alloc_pd)") + ".*Cannot allocate"
    ),
    Signature(
        "memory.locked", "ibv_reg_", _LIBRARY, _CALL.format(r"ibv_reg_\w*mr\w*") + r".{0,40}\b(?:code|errno|error|rc)\b[ =:]{1,3}-?12\b"
    ),
    Signature(
        "memory.locked",
        "Cannot allocate memory",
        "any program",
        r"(?i)(?:regist\w{0,12}(?: of)?(?: memory)? failed|fail\w* to (?:register|create (?:qp|cq|srq|mr)))\b.{0,60}Cannot allocate memory"
        r"|Cannot allocate memory.{0,20}fail\w* to (?:register|create (?:qp|cq|srq|mr))\b",
    ),
    Signature("memory.gpu", "Bad address", _LIBRARY, _CALL.format(r"ibv_reg_\w*mr\w*") + ".*Bad address"),
    Signature("memory.dmabuf", "ibv_reg_dmabuf_mr", _LIBRARY, _CALL.format("ibv_reg_dmabuf_mr") + _WHY),
    Signature(
        "memory.refused", " failed", "any program", r"\b[Rr]egister\w{0,40}(?:Memory|MR|Mr)\w{0,40} failed\b" + _WHY.replace("80", "120")
    ),
    Signature("memory.refused", "ibv_reg_", _LIBRARY, _CALL.format(r"ibv_reg_\w*mr\w*") + _WHY),
    Signature("qp.timeout", "ibv_modify_qp", _LIBRARY, _CALL.format("ibv_modify_qp") + r".*(?:timed out|\b110\b)"),
    Signature("qp.connect", "ibv_modify_qp", _LIBRARY, _CALL.format("ibv_modify_qp") + _WHY),
    Signature("ib.open", "ibv_open_device", _LIBRARY, _CALL.format("ibv_open_device") + _WHY),
    Signature("ib.query", "ibv_query_", _LIBRARY, _CALL.format(r"ibv_query_(?:device\w*|port|gid\w*|pkey)") + _WHY),
    Signature("ib.post", "ibv_post_", _LIBRARY, _CALL.format(r"ibv_post_\w+") + _WHY),
    Signature("ib.create", "ibv_", _LIBRARY, _CALL.format(r"ibv_(?:create_\w+|alloc_\w+)") + _WHY),
    Signature(
        "cm.address",
        "rdma_",
        _CM,
        _CALL.format(r"rdma_(?:bind_addr|resolve_addr|resolve_route|connect|listen|accept|create_ep|getaddrinfo)"),
    ),
    Signature("process.crashed", "Assertion ", "assert", r"Assertion [`'].{1,300}' failed"),
    Signature("cm.address", "ib_cm_", "UCX src/uct/ib/cm", r"ib_cm_\w+\(\) failed"),
)
