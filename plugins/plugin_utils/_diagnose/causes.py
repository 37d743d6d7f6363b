# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of possible causes of error lines: how each is checked, and its remedy.

A remedy contains the host ({host}) and fields of the line ({device}, {file}, {peer}).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes_gpu import (
    fabric_manager,
    gpu_driver,
    gpu_load,
    gpu_lost,
    no_gpu_path,
    peermem_alone,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes_host import (
    device_list,
    iommu,
    ipc_removed,
    is_set,
    locked_memory,
    names_file,
    no_device,
    no_infiniband,
    no_node,
    other_vendor,
    ports_down,
    set_to,
    shared_memory,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes_network import (
    device_named,
    firewall,
    gid_index,
    gid_indexes_differ,
    hca_lists_differ,
    mtus_of_job_differ,
    no_ip_gid,
    socket_interface,
    subnets_differ,
    wrong_address,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.classes.causes import (
    CLASS_CAUSES,
    mixed_networks,
    plugin_version,
    refused,
    said,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_context import Context
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.past import (
    counters_rose,
    gids_changed,
    host_changed,
    journal_reports,
    port_was_down,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import (
    Answer,
    Cause,
    Scene,
    Test,
    confirmed,
    excluded,
    judged,
    not_checkable,
    unknown,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed

_RANKS = re.compile(r"([0-9]{1,7})(?: ?- ?([0-9]{1,7}))?")
_REACHED = re.compile(r"^([0-9]{1,7})\].* ([0-9]{1,18})$")
#: The maximum number of ranks in one range.
_MOST_RANKS = 65_536
#: Collectives to which all ranks bring the same number of elements.
_SAME_SIZE = frozenset({"ALLREDUCE", "BARRIER", "BROADCAST", "REDUCE"})


def earlier_error(scene: Scene) -> Answer:
    """Whether the log has an error before this one, of any rank."""
    before = [each for each in scene.log.occurrences if each.kind == ERROR and each.line < scene.occurrence.line]
    if not before:
        return excluded("the log has no error before this line")
    first = min(before, key=lambda each: each.line)
    where = f" on {listed(first.hosts)}" if first.hosts else ""
    return confirmed(f"line {first.line}{where}: {first.says}")


def different_collectives(scene: Scene) -> Answer:
    """Whether ranks wait in different collectives of the program. That all ranks wait in the same one is known only from all of them."""
    operations, numbers, sizes = (scene.field_values(name) for name in ("operation", "sequence", "elements"))
    groups = _groups(scene)
    mismatch = next((each for each in scene.log.occurrences if each.name == "torch.mismatch"), None)
    if mismatch is not None:
        return confirmed(f"line {mismatch.line}: {mismatch.says}")
    if len(groups) > 1 and max(len(operations), len(numbers), len(sizes)) > 1:
        return unknown(f"ranks wait in process groups {listed(groups)}, each of which counts its own collectives")
    if max(len(operations), len(numbers)) > 1:
        where = ", ".join(operations) if len(operations) > 1 else f"collectives number {listed(numbers)}"
        return confirmed(f"ranks wait in {where}")
    if len(sizes) > 1 and set(operations) <= _SAME_SIZE:
        return confirmed(f"ranks wait in {operations[0]}, number {numbers[0]}, with different numbers of elements: {listed(sizes)}")
    return _agreement(scene, f"{operations[0]}, number {numbers[0]}") if numbers else unknown("the lines do not contain the collective")


def _groups(scene: Scene) -> list[str]:
    """The process groups of the log. Each counts its own collectives."""
    return list(dict.fromkeys(group for each in scene.log.occurrences for group in each.fields.get("group", ())))


def _agreement(scene: Scene, what: str) -> Answer:
    """Whether all ranks of the job report that they wait in the same collective."""
    ranks, count = len(scene.occurrence.ranks), scene.log.context.nranks
    if count > 1 and ranks >= count:
        return excluded(f"all {count} ranks wait in {what}")
    return unknown(f"{ranks} of {count or 'an unknown number of'} ranks report that they wait in {what}; the others report nothing")


def _ranks_of(texts: Iterable[str]) -> list[int]:
    """The ranks in lists as PyTorch writes them: "3", "0, 2" and "0-3"."""
    ranks: dict[int, None] = {}
    for first, last in (found for text in texts for found in _RANKS.findall(text)):
        for rank in range(int(first), min(int(last or first), int(first) + _MOST_RANKS) + 1):
            ranks[rank] = None
    return sorted(ranks)


def _behind(scene: Scene) -> dict[int, int]:
    """Rank → its last collective, of the ranks that have not begun the one in which the others wait, and whose process still writes."""
    numbers = [int(number) for number in scene.field_values("sequence")]
    if not numbers or len(_groups(scene)) > 1:
        return {}
    texts = [text for each in scene.log.occurrences for text in each.fields.get("reached", ())]
    reached = {int(rank): int(last) for rank, last in (_REACHED.findall(text)[0] for text in texts)}
    return {rank: last for rank, last in sorted(reached.items()) if rank not in scene.occurrence.ranks and last < min(numbers)}


def _named_ranks(scene: Scene) -> Answer | None:
    context = scene.log.context
    absent = _ranks_of(text for each in scene.log.occurrences for text in each.fields.get("absent", ()))
    if absent:
        return confirmed(f"PyTorch names rank {listed([str(rank) for rank in absent])}{_hosts_of(context, absent)}")
    behind = _behind(scene)
    if behind:
        last = listed([str(number) for number in dict.fromkeys(behind.values())])
        words = f"rank {listed([str(rank) for rank in behind])}{_hosts_of(context, behind)} had not begun this collective"
        return confirmed(f"{words}: the last one was number {last}, and the process still ran")
    return None


def silent_ranks(scene: Scene) -> Answer:
    """Whether a few ranks were missing, or hang elsewhere.

    They are those that PyTorch names, else those that had not begun the collective, else those without the line that all others wrote.
    """
    named = _named_ranks(scene)
    if named is not None:
        return named
    context = scene.log.context
    ranks, count = set(scene.occurrence.ranks), context.nranks
    joined = _ranks_of(text for each in scene.log.occurrences for text in each.fields.get("joined", ()))
    if count > 1 and len(joined) >= count:
        return excluded(f"all {count} ranks joined the collective, according to PyTorch")
    if count < 2 or not ranks:
        return unknown("the log does not contain the number of ranks, or the ranks of this line")
    silent = [rank for rank in range(count) if rank not in ranks]
    if not silent:
        return excluded(f"all {count} ranks report it")
    if len(silent) > max(8, count // 8):
        return unknown(f"{len(ranks)} of {count} ranks report it")
    return confirmed(f"rank {listed([str(rank) for rank in silent])} of {count} did not report it{_hosts_of(context, silent)}")


def _hosts_of(context: Context, ranks: Iterable[int]) -> str:
    places = list(dict.fromkeys(host for rank in ranks for host in [context.host_of(rank)] if host))
    return f", on {listed(places)}" if places else ""


def versions_differ(scene: Scene) -> Answer:
    versions = [f"{version} on {listed(list(hosts))}" for version, hosts in sorted(scene.log.context.versions.items())]
    if len(versions) > 1:
        return confirmed("; ".join(versions))
    if versions:
        return unknown(f"only {versions[0]} is known")
    numbers = [*scene.field_values("one_version"), *scene.field_values("other_version")]
    return confirmed(f"versions {listed(numbers)}") if len(set(numbers)) > 1 else unknown("the log does not contain the versions")


def networks_differ(scene: Scene) -> Answer:
    mixed = mixed_networks(scene)
    if mixed is not None:
        return mixed
    networks = [f"{name} on {listed(hosts)}" for name, hosts in scene.log.context.networks().items()]
    return confirmed("; ".join(networks)) if len(networks) > 1 else unknown("the log does not name the networks of several hosts")


def gloo_loopback(scene: Scene) -> Answer:
    """Whether Gloo uses an address that no other host reaches."""
    return said(scene, "gloo.fallback") or wrong_address(scene)


def _on(layer: str, test: Test) -> Test:
    """A test that holds only on ports of a layer: "RoCE" or "IB". NCCL names the layer of each port that it uses."""

    def on_layer(scene: Scene) -> Answer:
        layers = scene.log.context.layers
        if layers and layer not in layers:
            return excluded(f"NCCL uses only {'InfiniBand' if layer == 'RoCE' else 'RoCE'} ports, according to the log")
        return test(scene)

    return on_layer


_CONTAINER = not_checkable("the facts describe the host, not a job's container")
_QOS = ("qos.trust", "qos.dscp", "qos.pfc", "qos.ets", "qos.ecn", "qos.traffic_class", "qos.overwritten")

CAUSES: dict[str, Cause] = {
    **CLASS_CAUSES,
    "earlier": Cause("another error came before it", earlier_error, "Fix the error that came first.", of_log=True),
    # the recorder and the journals: see past.py
    "past.port": Cause(
        "a port was down before the error",
        port_was_down,
        "1. Check the port's cable, module and switch port, and the switch's log for that time. 2. Rerun the link stage for the host. "
        "3. See what else happened then: `ansible-playbook rdma.cluster.changed`.",
        of_log=True,
    ),
    "past.gid": Cause(
        "the GID table of a host changed before the error",
        gids_changed,
        "1. Check on the host what changed its addresses: `journalctl -u systemd-networkd -u NetworkManager`. 2. Rerun the network and "
        "nccl stages.",
        of_log=True,
    ),
    "past.counters": Cause(
        "a host counted damaged or dropped packets before the error",
        counters_rose,
        "1. Rerun the link stage for the host, which names the cable or the congestion. 2. Rerun the pairs stage.",
        of_log=True,
    ),
    "past.host": Cause(
        "a host booted, or its driver, firmware or settings changed before the error",
        host_changed,
        "1. Find who changed it: `journalctl` of that time on the host. 2. See what differs from the intent now: `ansible-playbook "
        "rdma.cluster.drift --check`.",
        of_log=True,
    ),
    "past.journal": Cause(
        "the kernel or a service reported a failure before the error",
        journal_reports,
        "Diagnose that text: write the lines of the journal to a file, and pass it as `rdma_job_log`.",
        of_log=True,
    ),
    # memory
    "memlock": Cause(
        "the limit of locked memory is too low",
        locked_memory,
        "1. Run the host stage for {host}. 2. There, run `systemctl restart slurmd` (or containerd), or log in again.",
    ),
    "memlock.container": Cause(
        "the job's container has its own limit", _CONTAINER, "Start the container on {host} with `--ulimit memlock=-1`."
    ),
    "gpu.path": Cause(
        "the host cannot register GPU memory",
        no_gpu_path,
        "1. Run the gpu stage for {host}. 2. If it fails, run `modprobe nvidia_peermem` there, which shows the reason.",
    ),
    "gpu.dmabuf_off": Cause(
        "NCCL may not use DMA-BUF, and nvidia_peermem is missing",
        peermem_alone,
        "Unset NCCL_DMABUF_ENABLE on {host}, or run `modprobe nvidia_peermem` there.",
    ),
    "gpu.intent": Cause("the planned path to GPU memory is missing", judged("gpu", "gpu.path"), "Run the gpu stage for {host}."),
    "iommu": Cause(
        "the IOMMU translates traffic between devices",
        iommu,
        "Boot {host} with `iommu.passthrough=1` (on x86 also `iommu=pt`), or disable the IOMMU in its BIOS.",
    ),
    "acs": Cause(
        "ACS redirects traffic between GPUs and NICs to the root",
        judged("preflight", "pcie.acs"),
        "Set rdma_host.pcie for {host} and run the host stage. Its gate names the bridge.",
    ),
    # devices
    "hca.none": Cause("the host has no RDMA device", no_device, "Run the driver stage for {host}. Its gate reports what is missing."),
    "hca.list": Cause("NCCL_IB_HCA selects no device", device_list, "Run the nccl stage for {host}, or correct NCCL_IB_HCA in the job."),
    "ib.disabled": Cause("RDMA is disabled", set_to("NCCL_IB_DISABLE", "1"), "Unset NCCL_IB_DISABLE on {host}."),
    "ib.net": Cause("the job requests sockets", set_to("NCCL_NET", "Socket"), "Unset NCCL_NET on {host}."),
    "port.down": Cause("a port is not ACTIVE", ports_down, "Run the link stage for {host}. Its gate reports why the port is not ACTIVE."),
    "port.planned": Cause("a planned rail is not up", judged("link", "link.state"), "Run the link stage for {host}."),
    "port.flaps": Cause(
        "the link goes down, or has errors",
        judged("link", "link.flaps", "link.errors", must_apply=True),
        "Check cable and optic of {device} on {host}: `mlxlink -d {device} -m -c -e`.",
    ),
    "ib.node": Cause(
        "a device node in /dev/infiniband is missing", no_node, "Run the driver stage for {host}, then `ls -l /dev/infiniband` there."
    ),
    "ib.container": Cause(
        "the job's container lacks RDMA devices or libibverbs",
        _CONTAINER,
        "1. Start the container on {host} with `--device /dev/infiniband`. 2. Add rdma-core to its image: `ldconfig -p | grep ibverbs`.",
    ),
    "ib.pkey": Cause(
        "partitions separate the hosts", _on("IB", judged("link", "link.pkey", "link.partitions")), "Run the link stage for {host}."
    ),
    "ib.layers": Cause(
        "RoCE and InfiniBand ports are mixed", judged("link", "link.layer"), "Use only ports of one kind in NCCL_IB_HCA on {host}."
    ),
    "ib.sm": Cause(
        "the subnet manager did not configure the port",
        _on("IB", judged("link", "link.sm")),
        "1. Run `sminfo` on {host}. 2. Start a subnet manager, or run the link stage.",
    ),
    "device.kind": Cause(
        "the NIC is not of mlx5, and GPUs control only these",
        other_vendor,
        "1. On {host}, run `rdma link`: mlx5 devices are of NVIDIA. 2. Set NVSHMEM_IB_ENABLE_IBGDA=0 and NVSHMEM_REMOTE_TRANSPORT=ibrc or "
        "libfabric. 3. For DeepEP's low latency, use NICs of NVIDIA.",
    ),
    "nvshmem.ibgda": Cause(
        "the GPU's driver or the container does not allow GPUs to control a NIC",
        not_checkable("the options of the NVIDIA driver were not read"),
        "1. On {host}, check that /proc/driver/nvidia/params contains `EnableStreamMemOPs: 1` and `PeerMappingOverride=1`. 2. Set both in "
        "/etc/modprobe.d, and reboot. 3. Start the container with `--privileged`, or set NVSHMEM_IBGDA_NIC_HANDLER=cpu.",
    ),
    "verbs.version": Cause(
        "libibverbs and its plug-ins, or the kernel's driver, are of different releases",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the container, run `ldconfig -p | grep -E 'ibverbs|mlx5|bnxt_re'`; all must be of one release. 2. Remove "
        "other copies from LD_LIBRARY_PATH and LD_PRELOAD. 3. Install in the container the NIC vendor's rdma-core of the host's driver.",
    ),
    "verbs.package": Cause(
        "the plug-in of libibverbs for this NIC is not installed",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the container, run `ls /etc/libibverbs.d; ls /usr/lib*/libibverbs /usr/lib/*/libibverbs`. 2. Install "
        "ibverbs-providers (Debian, Ubuntu), libibverbs (RHEL) or the vendor's package.",
    ),
    "mad.ethernet": Cause(
        "the port is not InfiniBand, which has no such management",
        no_infiniband,
        "1. On {host}, run `ibstat`, and check `Link layer`. 2. Name an InfiniBand port: `-C DEVICE -P PORT`. For RoCE, use `rdma link` "
        "and `ethtool -S`.",
    ),
    "mad.node": Cause(
        "the device node of management packets is missing, or not readable",
        not_checkable("the nodes of management packets were not read"),
        "1. On {host}, run `ls -l /dev/infiniband/umad*`. 2. Run `modprobe ib_umad`. 3. Run the tool as root.",
    ),
    "mad.route": Cause(
        "a cable, switch or host on the route is down, busy or has another M_Key",
        not_checkable("the fabric was not read"),
        "1. On {host}, run `ibqueryerrors` and `iblinkinfo | grep -i down`. 2. Follow the route of the line: `smpquery -D nodedesc ROUTE`. "
        "3. Reseat the cable or restart the device at its end.",
    ),
    "sm.second": Cause(
        "another process uses the port for the same management class",
        not_checkable("the processes of the host were not read"),
        "1. On {host}, run `pgrep -a opensm`, and end the other one. 2. Check that the kernel's ib_umad works: `sminfo`. 3. If it does not "
        "since a new kernel, start the previous one.",
    ),
    "fm.version": Cause(
        "Fabric Manager is not of the driver's version",
        fabric_manager,
        "1. On {host}, run `modinfo -F version nvidia` and `nv-fabricmanager --version`. 2. Install nvidia-fabricmanager of exactly this "
        "version. 3. Hold both packages at it, and restart nvidia-fabricmanager.",
    ),
    "fm.restarted": Cause(
        "Fabric Manager was stopped or restarted, and the GPUs were not reset",
        not_checkable("the starts of Fabric Manager were not read"),
        "1. On {host}, run `journalctl -b -u nvidia-fabricmanager`. 2. If it was restarted, end all processes on the GPUs and reboot.",
    ),
    "fm.absent": Cause(
        "the host has no NVSwitch, or its driver is not loaded",
        not_checkable("it depends on the model of the host"),
        "1. On {host}, run `lspci -d 10de: | grep -i bridge` and `nvidia-smi topo -m`. 2. Without NVSwitches, disable "
        "nvidia-fabricmanager. 3. With fifth-generation NVLink, run `modprobe mlx5_ib ib_umad` first.",
    ),
    "gpu.imex": Cause(
        "the IMEX service does not run on all hosts, or the job has no IMEX channel",
        not_checkable("the IMEX service was not read"),
        "1. On {host}, run `systemctl status nvidia-imex` and `nvidia-imex-ctl -N`. 2. Check that /dev/nvidia-caps-imex-channels has a "
        "channel, also in the container. 3. For one host, set NCCL_MNNVL_ENABLE=0.",
    ),
    "ucx.two": Cause(
        "the process loads two copies of UCX",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host}, run `grep -E 'libuc[pst]' /proc/PID/maps`. 2. Keep one copy: uninstall UCX of the image, or build NIXL against it.",
    ),
    "debug.ucx": Cause(
        "the line with the reason is not in this log",
        not_checkable("UCX prints it at level warn or info"),
        "Run it again with UCX_LOG_LEVEL=info and NIXL_LOG_LEVEL=DEBUG on {host}.",
    ),
    "debug.nvshmem": Cause(
        "the line with the reason is not in this log",
        not_checkable("NVSHMEM prints it at level WARN"),
        "Run it again with NVSHMEM_DEBUG=INFO and NVSHMEM_DEBUG_SUBSYS=INIT,TRANSPORT on {host}.",
    ),
    "gloo.loopback": Cause(
        "a host's own name leads to an address that no other host reaches, and Gloo uses it",
        gloo_loopback,
        "1. On {host}, run `getent hosts $(hostname)`: it must be an address that other hosts reach. 2. Set GLOO_SOCKET_IFNAME to the "
        "management interface, or correct /etc/hosts.",
    ),
    "device.name": Cause(
        "the named RDMA device does not exist there",
        device_named,
        "1. On {host}, run `rdma link` and `ibdev2netdev`. 2. Name a device that the host has.",
    ),
    "hca.differs": Cause(
        "the hosts use different sets of RDMA ports",
        hca_lists_differ,
        "1. Compare NCCL_IB_HCA and `rdma link` on all hosts of the job. 2. Set the same rails everywhere: run the nccl stage for them.",
    ),
    "limits.nic": Cause(
        "the NIC's own limit of queues or memory is reached",
        not_checkable("the resources in use were not read"),
        "1. On {host}, run `rdma resource show`, and end processes of earlier jobs. 2. Run fewer processes or queues on each NIC.",
    ),
    "driver.fit": Cause(
        "driver, kernel and firmware do not fit each other",
        judged("driver", "driver.loaded", "driver.stack", "driver.module"),
        "1. Run the driver stage for {host}. 2. Reboot it, so that only modules of one driver stack are loaded.",
    ),
    "build.headers": Cause(
        "the headers of this kernel, or modules that it builds on, are not installed",
        not_checkable("the packages were not read"),
        "1. On {host}, run `ls -d /lib/modules/$(uname -r)/build`. 2. Install the headers of exactly this kernel. 3. For nvidia-peermem, "
        "install RDMA drivers first, then the NVIDIA driver.",
    ),
    "build.release": Cause(
        "this release of the driver does not support the kernel",
        not_checkable("the supported kernels are in the release notes of the driver"),
        "1. On {host}, read the make.log that the line names. 2. Compare `uname -r` with the release notes of DOCA-OFED. 3. Install a "
        "newer release, or boot a kernel that it supports.",
    ),
    "pcie.link": Cause(
        "a PCIe link is slower or narrower than planned",
        judged("preflight", "pcie.link"),
        "1. On {host}, run `lspci -vv` for the card, and compare LnkCap with LnkSta. 2. Reseat the card, or move it to another slot.",
    ),
    "pcie.broken": Cause(
        "the card, its slot or a riser is broken",
        not_checkable("errors of PCIe are only in the kernel's log"),
        "1. On {host}, run `dmesg | grep -iE 'aer|dpc|pcie'`. 2. Power it off and on. 3. Reseat or replace the card.",
    ),
    "sriov": Cause(
        "the BIOS, the firmware or the host does not allow virtual functions",
        not_checkable("the settings of virtual functions were not read"),
        "1. On {host}, check SR-IOV in its BIOS, and `mlxconfig -d DEVICE query SRIOV_EN NUM_OF_VFS`. 2. Check that the physical function "
        "works: `dmesg | grep mlx5`.",
    ),
    "interrupts": Cause(
        "the host has no free interrupts",
        not_checkable("the free interrupts were not read"),
        "1. On {host}, count the lines of /proc/interrupts. 2. Configure fewer queues or virtual functions. 3. Reboot it.",
    ),
    "power": Cause(
        "the slot offers too little power",
        not_checkable("the power of slots was not read"),
        "Put the card of {host} into a slot with 75 W, or set the power of the slot in its BIOS.",
    ),
    "cooling": Cause(
        "the cooling of the card fails",
        not_checkable("temperatures were not read"),
        "1. On {host}, run `mget_temp -d DEVICE` and `ipmitool sensor`. 2. Check its fans and the airflow at the card.",
    ),
    "cable": Cause(
        "a cable or transceiver is broken, unplugged or not supported",
        judged("link", "link.optic", "link.errors", must_apply=True),
        "1. On {host}, run `mlxlink -d DEVICE -m -c -e`. 2. Reseat the cable. 3. Replace it.",
    ),
    # addresses
    "gid.differs": Cause(
        "the hosts use different GID indexes",
        _on("RoCE", gid_indexes_differ),
        "1. Compare `show_gids` and NCCL_IB_GID_INDEX on all hosts of the job. 2. Unset it (NCCL 2.21 or newer finds it), or run the nccl "
        "stage for them.",
    ),
    "gid.index": Cause(
        "the GID index does not belong to a RoCE v2 address",
        _on("RoCE", gid_index),
        "Unset NCCL_IB_GID_INDEX on {host} (NCCL 2.21 or newer finds it), or set the index of RoCE v2 on IPv4 from `show_gids`.",
    ),
    "gid.none": Cause("a RoCE port has no IP address", _on("RoCE", no_ip_gid), "Run the network stage for {host}."),
    "gid.planned": Cause("a rail lacks its planned GID", judged("network", "network.gid"), "Run the network stage for {host}."),
    "gid.subnet": Cause(
        "the two ends are in different subnets",
        subnets_differ,
        "1. On {host}, run `ip route get` with the address of the other end. 2. Set NCCL_CROSS_NIC=0 if rails are separate networks; in a "
        "mesh set NCCL_IB_SUBNET_AWARE_ROUTING=1.",
    ),
    "mtu": Cause(
        "MTUs differ", mtus_of_job_differ, "1. Run the network stage for {host}. 2. Test the path to its partners: `ping -M do -s 8972`."
    ),
    "mtu.planned": Cause(
        "a rail lacks its planned MTU", judged("network", "network.mtu", "network.rdma_mtu"), "Run the network stage for {host}."
    ),
    "arp": Cause("several rails answer for each other's addresses", judged("host", "host.sysctl"), "Run the host stage for {host}."),
    "qos": Cause("RoCE is not lossless", _on("RoCE", judged("qos", *_QOS)), "Run the qos stage for {host}."),
    "loss": Cause(
        "the fabric loses packets or is down between them",
        not_checkable("switches were not read"),
        "1. Measure the pair: `ansible-playbook rdma.cluster.pairs`. 2. Check `ethtool -S` on {host} and the discards of its switch ports.",
    ),
    # sockets
    "socket.name": Cause(
        "NCCL uses an interface that does not lead to the other hosts, or NCCL_SOCKET_IFNAME matches none",
        socket_interface,
        "Correct NCCL_SOCKET_IFNAME on {host} (rdma_nccl.socket_ifname); `ip -br address` there lists its interfaces.",
    ),
    "socket.address": Cause(
        "it connects to an address that does not belong to another host",
        wrong_address,
        "Set NCCL_SOCKET_IFNAME to the management interface of {host}; for PyTorch also set MASTER_ADDR.",
    ),
    "socket.firewall": Cause(
        "a firewall blocks them", firewall, "Run `nft list ruleset` on {host}, and allow ports 1024 to 65535 between the job's hosts."
    ),
    "store.alone": Cause(
        "the launcher did not start all ranks, or used different addresses",
        not_checkable("the log has only the ranks that connected"),
        "1. Compare MASTER_ADDR, MASTER_PORT and the number of ranks on all hosts. 2. Read the log of the missing host.",
    ),
    "socket.container": Cause(
        "the job's container has no interface except loopback",
        _CONTAINER,
        "1. Run `ip -br address` in the container. 2. Start it on {host} with `--network=host`.",
    ),
    "net.differs": Cause(
        "a network plugin is installed on a part of the hosts, or their variables differ",
        networks_differ,
        "1. On all hosts of the job and in their images, run `ldconfig -p | grep nccl-net`. 2. Use one image. 3. For a test without "
        "plugins, set NCCL_NET_PLUGIN=none.",
        of_log=True,
    ),
    "port.taken": Cause(
        "an earlier job still runs there",
        not_checkable("listening processes were not read"),
        "Run `ss -ltnp` on {host}, and end the processes of earlier jobs.",
    ),
    "socket.job": Cause(
        "two jobs use the same address and port, or a port scanner connects",
        not_checkable("processes of other jobs are not in this log"),
        "1. On {host}, run `ss -tnp`, and end processes of earlier jobs. 2. Give each job its own MASTER_PORT and NCCL_COMM_ID. "
        "3. Exclude the hosts from port scans.",
    ),
    "test.server": Cause(
        "the other end was not started, has ended, or listens elsewhere",
        refused,
        "1. Start the test without an address on the server first. 2. On the client, use the server's address and the same `-p` port. "
        "3. Check it with `nc -vz PEER 18515` on {host}.",
    ),
    "test.version": Cause(
        "the two ends have different versions or options",
        not_checkable("the options of the other end are not in this log"),
        "1. Compare `ib_write_bw --version` on both hosts. 2. Give both ends the same options.",
    ),
    "test.options": Cause(
        "an option is missing, or comes after the one that needs it",
        not_checkable("the facts do not contain the command"),
        "1. Give `--use_cuda=N` before `--use_cuda_dmabuf`. 2. See `ib_write_bw --help`.",
    ),
    "test.build": Cause(
        "the test is not installed, or was built without GPU support",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `ldd $(command -v ib_write_bw)`. 2. Install perftest, for GPUs with CUDA and DMA-BUF.",
    ),
    "mpi.interface": Cause(
        "MPI uses an interface that does not lead to the other host",
        not_checkable("the options of mpirun are not in the facts"),
        "Give mpirun `--mca btl_tcp_if_include SUBNET --mca oob_tcp_if_include SUBNET` with the management network of {host}.",
    ),
    "files": Cause(
        "the limit of open files is too low",
        judged("host", "host.files"),
        "1. Run the host stage for {host} (rdma_host.open_files). 2. Log in again, or restart the service that starts jobs.",
    ),
    "host.settings": Cause(
        "the kernel moves memory between NUMA nodes",
        judged("host", "host.sysctl"),
        "On {host}, set `kernel.numa_balancing=0` by the host stage.",
    ),
    # versions and programs
    "plugin.version": Cause(
        "the plugin is of another version than NCCL needs",
        plugin_version,
        "1. On {host} and in the image, find the plugin: `ldconfig -p | grep nccl-net`. 2. Install HPC-X or aws-ofi-nccl of the release of "
        "the job's NCCL. 3. For a test without it, set NCCL_NET_PLUGIN=none.",
    ),
    "ofi.efa": Cause(
        "EFA is not installed or not attached to the instance",
        not_checkable("the interfaces of the instance were not read"),
        "1. On {host}, run `fi_info -p efa`. 2. Install the EFA software, and attach EFA interfaces to the instance.",
    ),
    "ofi.address": Cause(
        "the interface of the RDMA port has no IP address, which libfabric's verbs provider needs",
        not_checkable("the providers of libfabric were not read"),
        "1. On {host}, run `fi_info -p verbs` and `ip -br address`. 2. Give the IPoIB or RoCE interface an address.",
    ),
    "ofi.zone": Cause(
        "the instances are in different availability zones or subnets",
        not_checkable("the places of instances were not read"),
        "Put all instances of the job into one subnet and one placement group: EFA does not cross zones.",
    ),
    "ofi.group": Cause(
        "a security group blocks traffic, or the peer is gone",
        not_checkable("security groups were not read"),
        "1. Allow all traffic of the security group from itself, in both directions. 2. Check the log of the peer. "
        "3. Measure with `fi_pingpong -p efa` on {host}.",
    ),
    "ucx.choice": Cause(
        "UCX_TLS, UCX_NET_DEVICES or options of mpirun exclude the transports",
        not_checkable("the environment of ranks was not read"),
        "1. On {host}, run `ucx_info -d`. 2. Unset UCX_TLS and UCX_NET_DEVICES, and check `--mca pml` and `--mca btl`.",
    ),
    "sharp": Cause(
        "no aggregation manager runs, or the fabric does not support SHARP",
        not_checkable("the aggregation manager was not read"),
        "1. On the host of the subnet manager, check sharp_am. 2. Set NCCL_COLLNET_ENABLE=0 if SHARP is not wanted.",
    ),
    "gdrcopy": Cause(
        "the module gdrdrv is missing or does not fit",
        not_checkable("the version of gdrdrv was not read"),
        "1. On {host}, run `lsmod | grep gdrdrv`. 2. Install gdrcopy of one version, or set NCCL_GDRCOPY_ENABLE=0.",
    ),
    "version": Cause(
        "images or installations differ",
        versions_differ,
        "Use one image on all hosts. On {host}, check `ldconfig -p | grep nccl` and LD_LIBRARY_PATH.",
        of_log=True,
    ),
    "mpi.build": Cause(
        "the program was built without MPI, or another mpirun starts it",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `ldd all_reduce_perf | grep mpi`. 2. Build nccl-tests with `make MPI=1 MPI_HOME=…`, and use that MPI's mpirun.",
    ),
    "nccl.algorithm": Cause(
        "NCCL_ALGO or NCCL_PROTO exclude every algorithm for it",
        is_set("NCCL_ALGO", "NCCL_PROTO"),
        "Unset NCCL_ALGO and NCCL_PROTO on {host}, or add `Ring` and `Simple` to their lists.",
    ),
    "slurm.network": Cause(
        "slurmd on the host does not answer in time: its network, its load, or an image that is imported",
        not_checkable("slurmd was not read"),
        "1. On {host}, run `scontrol show slurmd` and `journalctl -u slurmd`. 2. Check that `getent hosts` with the names of the job's "
        "hosts gives the management network. 3. Import the image before the job: `enroot import`. For a test, set "
        "SLURM_PMIX_DIRECT_CONN=false.",
    ),
    "mpi.launcher": Cause(
        "mpirun cannot log in, or finds no installation there",
        not_checkable("logins between hosts were not tested"),
        "On {host}, run `ssh HOST true` and `ssh HOST which orted prted`.",
    ),
    "launch.ssh": Cause(
        "ssh asks for a password, does not know the host's key, or does not reach the host",
        not_checkable("logins between hosts were not tested"),
        "1. As the user of the job, run `ssh -o BatchMode=yes HOST true` on {host}. 2. Install the user's public key on all hosts.",
    ),
    "mpi.pmi": Cause(
        "Open MPI has no PMI or PMIx that fits srun's",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `srun --mpi=list` and `ompi_info | grep -i pmi`. 2. If both have PMIx, use `srun --mpi=pmix`. 3. Otherwise, use "
        "`mpirun` within the job.",
    ),
    "mpi.hosts": Cause(
        "the host file has too few slots",
        not_checkable("the job's host file was not read"),
        "In the host file of {host}, set `slots=GPUs` for each host.",
    ),
    "plugin": Cause(
        "the plugin is not installed, or its folder is not in LD_LIBRARY_PATH",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host}, run `ldconfig -p | grep nccl-net`. 2. If it is not there, unset NCCL_NET_PLUGIN.",
    ),
    "ucx.mpi": Cause("openib is not used since Open MPI 4", not_checkable("it is not a failure"), "`mpirun --mca btl ^openib` hides it."),
    # GPUs
    "gpu.driver": Cause(
        "driver, its libraries and CUDA do not match",
        gpu_driver,
        "On {host}, install a newer NVIDIA driver with libcuda of the same version, then reboot it.",
    ),
    "gpu.fabric_manager": Cause(
        "Fabric Manager does not run",
        fabric_manager,
        "Run `systemctl enable --now nvidia-fabricmanager` on {host}. Its version must match the driver's.",
    ),
    "gpu.nvlink": Cause(
        "an NVLink, its bridge or an NVSwitch is broken",
        not_checkable("the errors of NVLink were not read"),
        "1. On {host}, run `nvidia-smi nvlink -e` and `dcgmi diag -r 3`. 2. Reboot it. 3. If errors return, replace the part.",
    ),
    "gpu.virtual": Cause(
        "the GPU is a virtual one without unified memory or access between GPUs",
        not_checkable("the kind of GPU was not read"),
        "1. On {host}, run `nvidia-smi -q | grep -i virtualization`. 2. Enable unified memory for the vGPU in the hypervisor. "
        "3. Set NCCL_CUMEM_ENABLE=0 and NCCL_P2P_DISABLE=1.",
    ),
    "gpu.mode": Cause(
        "the GPU is in exclusive mode, or in MIG mode",
        not_checkable("the modes of GPUs were not read"),
        "On {host}, run `nvidia-smi -q | grep -iE 'compute mode|mig mode'`, and set the compute mode to Default.",
    ),
    "gpu.container": Cause(
        "the job's container lacks the GPUs or the driver's libraries",
        _CONTAINER,
        "1. Start the container on {host} with `--gpus all`. 2. Run `nvidia-smi` in it.",
    ),
    "gpu.lost": Cause("a GPU fell off the bus", gpu_lost, "1. On {host}, run `dmesg | grep -i xid`. 2. Reboot it."),
    "gpu.broken": Cause(
        "the hardware of a GPU is broken",
        not_checkable("the GPU's own diagnostics were not run"),
        "Run `nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER` and `dcgmi diag -r 3` on {host}.",
    ),
    "gpu.load": Cause("another process uses the GPU", gpu_load, "Run `nvidia-smi` on {host}."),
    "gpu.batch": Cause(
        "the program needs more memory than the GPU has",
        not_checkable("the facts do not contain a program's needs"),
        "Use a smaller batch, or check with `nvidia-smi` what else uses the GPUs of {host}.",
    ),
    "gpu.visible": Cause(
        "CUDA_VISIBLE_DEVICES or the ranks of a host do not match its GPUs",
        not_checkable("the environment of ranks was not read"),
        "Start as many ranks on {host} as it has GPUs, with cuda:LOCAL_RANK.",
    ),
    "program": Cause(
        "the program itself", not_checkable("facts cannot show it"), "Run it with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer."
    ),
    "program.trace": Cause(
        "the program itself",
        not_checkable("facts cannot show it"),
        "Read the traceback above this line in the log: its last file is the place.",
    ),
    # shared memory
    "shm.container": Cause(
        "the container's /dev/shm is small (default 64 MiB)",
        _CONTAINER,
        "Start the container on {host} with `--shm-size=8g` or `--ipc=host`; in Kubernetes use an emptyDir in memory.",
    ),
    "shm.full": Cause(
        "the host's /dev/shm is full", shared_memory, "Run `df -h /dev/shm; ls -l /dev/shm` on {host}, and remove files of earlier jobs."
    ),
    "shm.ipc": Cause("logind removes it while the job runs", ipc_removed, "Run the host stage for {host} (rdma_host.keep_ipc)."),
    "shm.apart": Cause(
        "ranks of a host are in containers without a common /dev/shm",
        _CONTAINER,
        "1. Start the containers on {host} with `--ipc=host --pid=host`. 2. Without that, set a different NCCL_HOSTID in each, for UCX "
        "UCX_POSIX_USE_PROC_LINK=n, and for UCC UCC_TL_SHM_TUNE=0.",
    ),
    "cumem.host": Cause(
        "NCCL shares host memory by cuMem, which a GPU, driver or container of this host does not support",
        not_checkable("what CUDA supports was not read"),
        "1. Set NCCL_CUMEM_HOST_ENABLE=0 on {host}. 2. Compare `numactl -H` in all containers of the host.",
    ),
    # files
    "topo.variable": Cause(
        "NCCL_TOPO_FILE names a missing file",
        names_file("NCCL_TOPO_FILE"),
        "1. On {host} and in the container, run `ls -l {file}`. 2. Unset NCCL_TOPO_FILE, which bare metal does not need.",
    ),
    "graph.variable": Cause("NCCL_GRAPH_FILE names a missing file", names_file("NCCL_GRAPH_FILE"), "Unset NCCL_GRAPH_FILE on {host}."),
    "topo.stale": Cause(
        "the file is of another version of NCCL",
        not_checkable("the file was not read"),
        "Write it again with NCCL_TOPO_DUMP_FILE on {host}, or unset the variable.",
    ),
    # hangs and ends
    "hang.program": Cause(
        "ranks wait in different collectives",
        different_collectives,
        "Run with TORCH_DISTRIBUTED_DEBUG=DETAIL to see where the ranks diverge.",
        of_log=True,
    ),
    "hang.rank": Cause(
        "a rank does not participate",
        silent_ranks,
        "On that rank's host, run `py-spy dump --pid` and `nvidia-smi`. Its log may end earlier.",
        of_log=True,
    ),
    "hang.slow": Cause(
        "a rank is only slow: loading, compiling, writing a checkpoint",
        not_checkable("the facts do not contain the time of a step"),
        "1. Compare the last lines of each rank. 2. Raise the timeout of init_process_group.",
    ),
    "debug": Cause(
        "the line with the reason is not in this log",
        not_checkable("NCCL prints it at level WARN"),
        "Run the job again with NCCL_DEBUG=WARN, or INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET.",
    ),
    "unknown": Cause(
        "this collection does not know the text, so its meaning is unknown",
        not_checkable("no check of the facts exists for it"),
        "1. Read the lines before its first occurrence in the log: the first failed call there is the reason. "
        "2. Run `dmesg -T | grep -iE 'xid|nvrm|mlx5|oom'` on {host} for the time of the job. "
        "3. Run the job again with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET`, and search for the text in the source of NCCL.",
    ),
    "unknown.line": Cause(
        "this collection does not know the text, so its meaning is unknown",
        not_checkable("no check of the facts exists for it"),
        "1. Read the lines before its first occurrence in the log: the first failed call there is the reason. "
        "2. Run `dmesg -T | grep -iE 'xid|nvrm|mlx5|oom'` on {host} for the time of the job. "
        "3. Search for the text in the source of the program that writes it.",
    ),
    "oom.host": Cause(
        "the host's memory or the job's memory limit",
        not_checkable("the process has already ended"),
        "1. Run `journalctl -k --grep oom` on {host}. 2. Check the job's memory limit.",
    ),
    "ended": Cause(
        "the host went down or was drained",
        not_checkable("the facts do not contain the reason"),
        "On {host}, run `journalctl --boot=-1`, and check its BMC's event log.",
    ),
    "time": Cause(
        "the job exceeded its time limit",
        not_checkable("it is the scheduler's limit"),
        "1. Check the last lines of each rank for a hang. 2. If there is none, raise the time limit.",
    ),
    "firmware": Cause(
        "the firmware or the card",
        not_checkable("the card was not read"),
        "Run `dmesg | grep mlx5` on {host}, and compare its firmware with that of the other hosts (alike.firmware).",
    ),
}
