# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of blind_hosts: each is well in every respect that its kind has.

"roce": Debian with MLNX_OFED by DKMS, Secure Boot, two ConnectX-7 on Ethernet, mlnx_qos, GPUs with NVSwitches, NCCL. "infiniband": Rocky
with the kernel's own stack and two ConnectX-7 on InfiniBand. "dcb": "roce" without mlnx_qos and OFED, whose DCQCN stands in debugfs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.elf import MACHINES
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, with_block
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import PluginIntent
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import request_id
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import CONFIG as PTP_CONFIG
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import PtpRequest, ptp_files
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import PluginQuery, PluginStamp, library_path, stamp_path
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.networkd import path_of, render
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import make_rails
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import FIRST_TABLE
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import service_files
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, RP_PARAMETERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.pcie_tuning import pcie_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import plugin_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import files_to_ask, nccl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_query
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import sysctl_settings
from tests.unit.builders.blind_hosts import Host, read
from tests.unit.builders.config_space import config_space
from tests.unit.builders.dcb_texts import APP, BUFFER, DCBX, ETS, PFC
from tests.unit.builders.firmware import listing
from tests.unit.builders.limits import LIMITED
from tests.unit.builders.net_plugin import elf
from tests.unit.builders.trees import write_tree

FIXTURES = Path(__file__).parents[1] / "fixtures"
KERNEL, NEWER = "6.1.0-28-amd64", "6.1.0-31-amd64"
ROCKY = "5.14.0-503.11.1.el9_5.x86_64"
ROOT_PORT, SWITCH, ABOVE_NIC, ABOVE_GPU = "0000:3a:01.0", "0000:3b:00.0", "0000:3c:00.0", "0000:3c:01.0"
OTHER_PORT = "0000:5d:01.0"
NICS = ("0000:3d:00.0", "0000:5e:00.0")
#: The interface of a rail that is on a VLAN of a bond, and the second member of the bond, which has no RDMA device of its own.
VLAN, BOND, SECOND = "bond-rail1.100", "bond-rail1", "0000:5e:00.1"
GPU, NVSWITCH, ETH0 = "0000:3f:00.0", "0000:c1:00.0", "0000:01:00.0"
#: Beside the second NIC, below a root port of its own.
ABOVE_GPU2, GPU2 = "0000:5d:03.0", "0000:60:00.0"
GPUS = (GPU, GPU2)
_SWITCH = f"/sys/devices/pci0000:3a/{ROOT_PORT}/{SWITCH}"
#: Every function by its address.
PATHS = {
    ROOT_PORT: f"/sys/devices/pci0000:3a/{ROOT_PORT}",
    SWITCH: _SWITCH,
    ABOVE_NIC: f"{_SWITCH}/{ABOVE_NIC}",
    ABOVE_GPU: f"{_SWITCH}/{ABOVE_GPU}",
    NICS[0]: f"{_SWITCH}/{ABOVE_NIC}/{NICS[0]}",
    GPU: f"{_SWITCH}/{ABOVE_GPU}/{GPU}",
    OTHER_PORT: f"/sys/devices/pci0000:5d/{OTHER_PORT}",
    NICS[1]: f"/sys/devices/pci0000:5d/{OTHER_PORT}/{NICS[1]}",
    ABOVE_GPU2: f"/sys/devices/pci0000:5d/{ABOVE_GPU2}",
    GPU2: f"/sys/devices/pci0000:5d/{ABOVE_GPU2}/{GPU2}",
    SECOND: f"/sys/devices/pci0000:5d/{OTHER_PORT}/{SECOND}",
    NVSWITCH: f"/sys/devices/pci0000:c0/{NVSWITCH}",
    ETH0: f"/sys/devices/pci0000:00/{ETH0}",
}
BRIDGES = {ROOT_PORT: 4, SWITCH: 5, ABOVE_NIC: 6, ABOVE_GPU: 6, OTHER_PORT: 4, ABOVE_GPU2: 4}
OPTIC = """
\tIdentifier                                : 0x19 (OSFP 8X Pluggable Transceiver)
\tVendor name                               : Acme Optics
\tVendor PN                                 : OSFP-SR4
\tVendor SN                                 : SN4
\tModule temperature                        : 37.53 degrees C / 99.55 degrees F
\tModule voltage                            : 3.3358 V
"""
MLXLINK = """
Module Info
-----------
Temperature [C]                    : 54 [-5..75]
Voltage [mV]                       : 3261.2 [2970..3630]
Identifier                         : OSFP
Cable Technology                   : 850 nm VCSEL
Cable Type                         : Optical Module (separated)
Vendor Name                        : Acme Optics
Vendor Part Number                 : OSFP-SR4
Vendor Serial Number               : SN4
"""
MLNX_QOS = (
    "DCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n"
    + "".join(f"\tprio:{priority} dscp:{','.join(f'{8 * priority + code:02d}' for code in range(7, -1, -1))},\n" for priority in range(8))
    + "Receive buffer size (bytes): 130944,262016,0,0,0,0,0,0,max_buffer_size=2069280\nCable len: 7\nPFC configuration:\n"
    "\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0   \n"
    "\tbuffer      0   0   0   1   0   0   0   0   \ntc: 0 ratelimit: unlimited, tsa: ets, bw: 50%\n"
    + "".join(f"\t priority:  {priority}\n" for priority in (0, 1, 2, 4, 5, 7))
    + "tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%\n\t priority:  3\ntc: 6 ratelimit: unlimited, tsa: strict\n\t priority:  6\n"
)
TESTS = {
    "version": "2.17.8",
    "source": {"host_file": "/root/nccl-tests.tar.gz"},
    "checksum": f"sha256:{64 * '1'}",
    "mpi_home": "/usr/lib/mpi",
}
PLUGIN = {"kind": "file", "name": "standin", "file": {"host_file": "/root/libnccl-net-standin.so"}, "checksum": f"sha256:{64 * '2'}"}
#: A default route and the management network, both of eno1; sshd on all addresses.
ROUTES = "Iface Destination Gateway Flags RefCnt Use Metric Mask\\neno1 00000000 010200C0 0003 0 0 100 00000000"
ROUTES += "\\neno1 000200C0 00000000 0001 0 0 100 00FFFFFF"
LISTENERS = "sl local_address rem_address st\\n0: 00000000:0016 00000000:0000 0A"
MODULES = ("ib_core", "ib_uverbs", "ib_umad", "ib_cm", "iw_cm", "rdma_cm", "rdma_ucm", "ib_ipoib", "mlx5_core", "mlx5_ib")
#: It is no variable of the plan.
LINE_OF_OTHERS = "NCCL_DEBUG=WARN\n"
LACKS = ("mlnx_qos", "dcb", "mstlink", "mokutil", "rpm", "mlxconfig", "nv-fabricmanager", "ethtool")


def hosts(folder: Path) -> dict[str, Host]:
    """All of them, by name."""
    return {host.name: host for host in (_roce(folder / "roce"), _dcb(folder / "dcb"), _infiniband(folder / "infiniband"))}


def _roce(root: Path) -> Host:
    text = _system(KERNEL, _DEBIAN, _dpkg(ofed=True)) + _pci() + _netdev("eno1", ETH0, 1, 1500) + _gpu() + _nccl() + _ofed()
    for rail, address in enumerate(NICS):
        text += (
            _netdev(f"ens{rail + 1}np0", address, rail + 2, 9000)
            + _device(rail, address)
            + _roce_port(rail, address)
            + _ofed_qos(rail, address)
        )
    answers = {
        **_answers([*MODULES, "mlx_compat", "nvidia_peermem"], "updates/dkms", "Acme DKMS", "24.10-1.1.4"),
        ("mlnx_qos", "-i"): MLNX_QOS,
        ("mokutil", "--test-key"): "/var/lib/dkms/mok.pub is already enrolled\n",
        ("ibv_devinfo",): _devinfo("Ethernet"),
        ("ethtool", "-m"): OPTIC,
        **_routing(),
    }
    answers["setpriv",] = json.dumps({"interface": 9, "name": "stand-in", "init": 0, "devices": _offered(), "log": []})
    variables = {
        **_common("roce", mtu_bytes=9000),
        "rdma_roce": {"cable_length_m": 7, "dcqcn": {"rpg_ai_rate": 5}},
        "rdma_driver": {
            "stack": "mlnx_ofed", "version": "24.10-1.1.4.0", "source": {"host_file": "/root/ofed.tgz"}, "checksum": f"sha256:{64 * '0'}",
            "module_options": {"mlx5_core": "prof_sel=2"},
        },
        "rdma_gpudirect": {"path": "dmabuf"},
    }  # fmt: skip
    for number, rail in enumerate(variables["rdma_rails"]):
        rail["gateway"] = f"192.168.{number}.254"
    variables["rdma_nccl"] = {**variables["rdma_nccl"], "plugin": PLUGIN}
    return _finished("roce", root, text + _plugin(root, normalize(variables)["nccl"]["plugin"]), variables, answers)


def _plugin(root: Path, plugin: PluginIntent) -> str:
    """A network plugin with its record."""
    library = elf(["ncclNetPlugin_v9"], [], next(number for number, name in MACHINES.items() if name == os.uname().machine))
    path = root / library_path("standin").lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_bytes(library)
    stamp = PluginStamp("1.0", plugin_order(plugin), hashlib.sha256(library).hexdigest())
    return f"{stamp_path('standin')}: {json.dumps(asdict(stamp))}\n"


def _offered() -> list[dict[str, Any]]:
    """The devices that the plugin offers: those of the rails."""
    more = {"pci_path": None, "port": 1, "memory": ["host", "cuda"], "max_receives": 8, "result": 0}
    return [{"name": f"mlx5_{rail}", "speed_mbps": 400_000, **more} for rail in range(len(NICS))]


def _routing() -> dict[tuple[str, ...], str]:
    """The rules and routes of rails with routers."""
    rules, routes = [], []
    for rail in range(len(NICS)):
        table, netdev = str(FIRST_TABLE + rail), f"ens{rail + 1}np0"
        rules.append({"priority": FIRST_TABLE + rail, "src": f"192.168.{rail}.1", "table": table})
        routes.append({"dst": f"192.168.{rail}.0/24", "dev": netdev, "table": table, "scope": "link", "prefsrc": f"192.168.{rail}.1"})
        routes.append({"dst": "default", "gateway": f"192.168.{rail}.254", "dev": netdev, "table": table})
    return {("ip", "-json", "-4", "rule"): json.dumps(rules), ("ip", "-json", "-4", "route"): json.dumps(routes)}


def _dcb(root: Path) -> Host:
    """The kernel's own modules; NCCL is older than 2.21, and so asks for one GID index. The second rail is on a VLAN."""
    text = _system(KERNEL, _DEBIAN, _dpkg()) + _pci() + _netdev("eno1", ETH0, 1, 1500) + _gpu() + _nccl("2.20.5") + _inbox()
    for rail, address in enumerate(NICS):
        text += _netdev(f"ens{rail + 1}np0", address, rail + 2, 9000) + _device(rail, address)
        text += _roce_port(rail, address, bonded=rail == 1) + _debugfs(address)
    text += _netdev("ens2np1", SECOND, 4, 9000) + _debugfs(SECOND) + _bond() + _vlan()
    answers = {
        **_answers(MODULES, "kernel/drivers", "Debian", None),
        **{("dcb", "-N", "-j", name): tree for name, tree in {"pfc": PFC, "ets": ETS, "app": APP, "dcbx": DCBX, "buffer": BUFFER}.items()},
        ("ibv_devinfo",): _devinfo("Ethernet"),
        ("ethtool", "-m"): OPTIC,
        ("nft", "--json"): _ruleset(),
    }
    answers["systemctl", "show"] = answers["systemctl", "show"].replace(
        "Id=nftables.service\nActiveState=inactive", "Id=nftables.service\nActiveState=active"
    )
    answers["systemctl", "show"] += "\nId=rdma-ptp@ens1np0.service\nActiveState=active\nUnitFileState=enabled\n"
    answers["pmc",] = (FIXTURES / "ptp/3.1.1-slave.txt").read_text(encoding="utf-8")
    answers["chronyc",] = (FIXTURES / "chrony/4.3-ptp.csv").read_text(encoding="utf-8")
    variables = {**_common("roce", "2.20.5"), "rdma_roce": {"cable_length_m": 7, "dcqcn": {"rpg_ai_rate": 5}}}
    variables["rdma_gpudirect"] = {"path": "dmabuf"}
    bond = {"members": [{"pci": NICS[1]}, {"pci": SECOND}]}
    variables["rdma_rails"][1].update(vlan={"id": 100, "pcp": 3}, bond=bond)
    interfaces = json.loads(answers["ip", "-json"])
    own = next(each for each in interfaces if each["ifname"] == "ens2np0")
    answers["ip", "-json"] = json.dumps(
        [
            *(each for each in interfaces if each is not own),
            *({**own, "ifname": name, "addr_info": []} for name in ("ens2np0", "ens2np1", BOND)),
            {**own, "ifname": VLAN},
        ]
    )
    ptp = {"rail": "rail0", "domain": 24, "timestamping": "software"}
    variables["rdma_host"] = {**variables["rdma_host"], "time": {"manage": True, "ptp": ptp}}
    mesh = {"pool": "10.77.0.0/16", "cables": "discover"}
    variables["rdma_fabric"] = {"management": {"subnet": "192.0.2.0/24"}, "topology": "mesh", "mesh": mesh}
    # Elsewhere the session's interface is NCCL's. Without a plugin, this NCCL would be too old for a mesh.
    plugin = {**variables["rdma_nccl"]["variables"], "NCCL_NET_PLUGIN": "mesh"}
    variables["rdma_nccl"] = {**variables["rdma_nccl"], "socket_ifname": "eno1", "variables": plugin}
    return _finished("dcb", root, text + _ptp(root), variables, answers)


def _ptp(root: Path) -> str:
    """A ptp4l that hands its measurements to a chronyd."""
    for pid, line in {77: "/usr/sbin/chronyd -F 1", 78: f"/usr/sbin/ptp4l -f {PTP_CONFIG} -i ens1np0"}.items():
        (root / f"proc/{pid}").mkdir(parents=True)
        (root / f"proc/{pid}/cmdline").write_bytes(line.replace(" ", "\0").encode() + b"\0")
    request = PtpRequest("ens1np0", NICS[0], 24, "UDPv4", False, False, "chrony.service")
    for file in ptp_files(request):
        _write(root, file)
    return "/proc/77/comm: chronyd\n/proc/78/comm: ptp4l\n"


def _ruleset() -> str:
    """A rule set that drops, with our rules for both rails."""
    chain = {"family": "inet", "table": "filter", "name": "input", "handle": 1, "type": "filter", "hook": "input", "policy": "drop"}
    names = [f"{netdev} 192.168.{rail}.0/24 {kind}" for rail, netdev in enumerate(("ens1np0", VLAN)) for kind in ("tcp", "icmp")]
    rules = [
        {"family": "inet", "table": "filter", "chain": "input", "handle": number, "comment": f"rdma.cluster {name}", "expr": []}
        for number, name in enumerate(names, 2)
    ]
    return json.dumps({"nftables": [{"chain": chain}, *({"rule": rule} for rule in rules)]})


def _infiniband(root: Path) -> Host:
    text = _system(ROCKY, _ROCKY, "") + _pci() + _netdev("eno1", ETH0, 1, 1500) + _gpu() + _nccl() + _inbox()
    for rail, address in enumerate(NICS):
        text += _device(rail, address, "InfiniBand") + _netdev(f"ibs{rail}", address, rail + 2, 2044, kind=32)
    packages = {**dict.fromkeys(_RPMS, "58.mlnx43-1.el9"), "libnccl": "2.30.7-1", "openmpi": "4.1.1-7.el9"}
    answers = {
        **_answers(MODULES, "kernel/drivers", "Rocky kernel signing key", None, ROCKY),
        ("rpm", "-qa"): "".join(f"{name} {version}\n" for name, version in packages.items()),
        ("mstlink", "-d"): MLXLINK,
        ("ibv_devinfo",): _devinfo("InfiniBand"),
    }
    variables = {
        **_common("infiniband"),
        "rdma_host": {**_common("infiniband")["rdma_host"], "pcie": {"acs": "bare_metal", "mrrs_bytes": "leave"}},
        "rdma_partitions": {"blue": {"key": 1, "members": "all", "index0": True}},
        "rdma_fabric": {"planes": {"blue": {"subnet_manager": {"kind": "hosts", "hosts": ["node1"]}}}},
    }
    return _finished("infiniband", root, text, variables, answers)


def _finished(name: str, root: Path, text: str, variables: Mapping[str, Any], answers: Mapping[Sequence[str], str]) -> Host:
    """The host with the files that the collection would have written, which follow from its own facts."""
    write_tree(root, text)
    _write_bytes(root)
    intent = normalize(variables)
    settings = sysctl_settings(intent)
    write_tree(root, "".join(f"/proc/sys/{key.replace('.', '/')}: {value}\n" for key, value in settings.items()))
    lines = "".join(f"{key} = {value}\\n" for key, value in sorted(settings.items()))
    write_tree(root, f"/etc/sysctl.d/99-zz-rdma-cluster.conf: {lines}")
    asked = Asked(
        sysctl=sorted(settings),
        files=files_to_ask(intent),
        firmware=sorted(intent["firmware"]["settings"]),
        packages=sorted(intent["nccl"]["install"]["packages"]),
        plugin=PluginQuery(**query) if (query := plugin_query(intent)) is not None else None,
    )
    host = Host(name, root, variables, answers, asked, LACKS)
    for file in _boot_files(intent["rails"]):
        _write(root, file)
    for _time in range(2):
        facts = from_dict(read(host).facts)
        requested = pcie_request(intent, facts, mrrs_allowed=True, acs_allowed=False)
        for file in [*nccl_files(intent, facts), *service_files(requested)]:
            _write(root, file)
    return replace(host)


def _write(root: Path, file: ManagedFile) -> None:
    path = root / file.path.lstrip("/")
    if file.content is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Somebody else has a line of their own in each file that has a block of ours.
    content = with_block(LINE_OF_OTHERS, file.text) if file.block else file.content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(file.mode)


def _common(link_layer: str, nccl: str = "2.30.7", mtu_bytes: int | None = None) -> dict[str, Any]:
    """mtu_bytes: None keeps the interfaces' MTU, which is then compared with other hosts."""
    rails = [
        {
            "name": f"rail{rail}", "nic": {"pci": address}, "link_layer": link_layer, "plane": "blue", "mtu_bytes": mtu_bytes,
            **({"address": f"192.168.{rail}.1/24", "rate_gbps": 400} if link_layer == "roce" else {}),
        }
        for rail, address in enumerate(NICS)
    ]  # fmt: skip
    return {
        "rdma_rails": rails,
        "rdma_firmware": {"settings": {"NUM_OF_VFS": 8}, "versions": {"MT_0000000838": "28.41.1000"}, "link_type": False},
        "rdma_host": {
            "cpu": {"governor": "performance", "max_cstate_latency_us": 5, "irqbalance": "disabled"},
            "rings": {"rx": 8192, "tx": 8192},
            "pcie": {"acs": "bare_metal"},
        },
        "rdma_recorder": {"manage": True},
        "rdma_nccl": {
            "version": nccl,
            "topology_file": "/etc/nccl-topology.xml",
            "variables": {"NCCL_TOPO_FILE": "/etc/nccl-topology.xml"},
            "install": {"kind": "packages", "packages": {"libnccl2" if link_layer == "roce" else "libnccl": {}}, "tests": TESTS},
        },
    }


_DEBIAN = "ID=debian\\nVERSION_ID=12"
_ROCKY = "ID=rocky\\nVERSION_ID=9.5\\nID_LIKE=rhel"
_RPMS = ("infiniband-diags", "libibverbs-utils", "mstflint", "perftest", "rdma-core")


def _dpkg(ofed: bool = False) -> str:
    packages = {"ibverbs-utils": "44.0", "infiniband-diags": "44.0", "mstflint": "4.26", "perftest": "4.5", "rdma-core": "44.0"}
    packages.update({"libnccl2": "2.30.7-1", "openmpi-bin": "4.1.4-3", "nvidia-fabricmanager-580": "580.159.04-1"})
    packages.update({"mlnx-ofed-kernel-dkms": "24.10.OFED.24.10.1.1.4.1-1"} if ofed else {})
    stanzas = (f"Package: {name}\\nStatus: install ok installed\\nVersion: {version}\\n\\n" for name, version in packages.items())
    return f"/var/lib/dpkg/status: {''.join(stanzas)}\n"


def _system(kernel: str, release: str, packages: str, lockdown: str = "[none] integrity confidentiality") -> str:
    limits = "\\n".join(f"{who} - {item}" for who in ("*", "root") for item in ("memlock unlimited", "nofile 1048576"))
    return f"""
        /proc/sys/kernel/osrelease: {kernel}
        /proc/sys/kernel/hostname: node1
        /proc/sys/kernel/random/boot_id: 6f2f6d0e-4d6f-4d2a-9a43-0d2c3e3f5a11
        /proc/uptime: 7311.08 1234.50
        /proc/meminfo: MemTotal: 2097152 kB\\nMemAvailable: 1572864 kB\\nShmem: 69632 kB\\n
        /sys/devices/system/clocksource/clocksource0/current_clocksource: tsc
        /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm
        /sys/kernel/security/lockdown: {lockdown}
        /proc/net/route: {ROUTES}
        /proc/net/tcp: {LISTENERS}
        /proc/net/tcp6: {LISTENERS}
        /proc/sys/net/ipv4/ip_forward: 0
        /proc/sys/net/ipv4/fib_multipath_hash_policy: 1
        /etc/resolv.conf: nameserver 192.0.2.53
        /etc/chrony/chrony.conf: server 192.0.2.5 iburst
        /proc/mounts: 192.0.2.7:/home /home nfs4 rw,addr=192.0.2.7 0 0
        /proc/1/comm: systemd
        /proc/cpuinfo: processor : 0\\nflags\t\t: fpu vme\\n\\n
        /etc/machine-id: 0123456789abcdef0123456789abcdef
        /etc/os-release: {release}
        /lib/modules/{kernel}/kernel/ib_core.ko: x
        /lib/modules/{kernel}/build/Makefile: x
        /sys/fs/cgroup/system.slice/systemd-logind.service/cgroup.procs: 90
        /sys/fs/cgroup/system.slice/systemd-networkd.service/cgroup.procs: 91
        /sys/fs/cgroup/system.slice/ssh.service/cgroup.procs: 100
        /proc/100/comm: sshd
        /run/chrony/chronyd.pid: 77
        /etc/security/limits.d/90-rdma-cluster.conf: {limits}
        /sys/devices/system/cpu/cpufreq/policy0/scaling_governor: performance
        /sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors: performance powersave
        /sys/devices/system/cpu/cpufreq/policy0/scaling_driver: intel_pstate
        /sys/devices/system/cpu/cpu0/cpuidle/state1/name: C1
        /sys/devices/system/cpu/cpu0/cpuidle/state1/latency: 2
        /sys/devices/system/cpu/cpu0/cpuidle/state1/disable: 0
        /sys/devices/system/cpu/cpu0/cpuidle/state2/name: C6
        /sys/devices/system/cpu/cpu0/cpuidle/state2/latency: 133
        /sys/devices/system/cpu/cpu0/cpuidle/state2/disable: 1
        /sys/kernel/iommu_groups/0/type: identity
        /sys/class/iommu/dmar0/x: x
        /boot/x: x
        /var/x: x
        /etc/nccl-topology.xml: x
        /etc/ufw/ufw.conf: ENABLED=no
        /usr/lib/x86_64-linux-gnu/libibverbs.so.1 -> libibverbs.so.1.14.58.0
        /sys/class/infiniband_verbs/abi_version: 6
        /dev/infiniband/rdma_cm:
        {packages}
    """


def _pci() -> str:
    text = "".join(f"/sys/bus/pci/devices/{address} -> ../../../{path[len('/sys/') :]}\n" for address, path in PATHS.items())
    for address in (*BRIDGES, *NICS, *GPUS):
        path = PATHS[address]
        text += f"{path}/current_link_speed: 32.0 GT/s PCIe\n{path}/max_link_speed: 32.0 GT/s PCIe\n"
        text += f"{path}/current_link_width: 16\n{path}/max_link_width: 16\n{path}/numa_node: 0\n"
    for address in NICS:
        text += f"{PATHS[address]}/vendor: 0x15b3\n{PATHS[address]}/device: 0x1021\n{PATHS[address]}/class: 0x020000\n"
        text += f"{PATHS[address]}/driver -> /sys/bus/pci/drivers/mlx5_core\n"
    text += f"{PATHS[ETH0]}/vendor: 0x8086\n{PATHS[ETH0]}/device: 0x1533\n{PATHS[ETH0]}/class: 0x020000\n"
    return text + f"{PATHS[ETH0]}/driver -> /sys/bus/pci/drivers/igb\n"


def _netdev(name: str, address: str, index: int, mtu_bytes: int, kind: int = 1) -> str:
    base = f"{PATHS[address]}/net/{name}"
    mac = f"a0:88:c2:00:00:0{index}" if kind == 1 else f"00:00:10:49:fe:80:00:00:00:00:00:00:a0:88:c2:03:00:00:00:0{index - 2}"
    return f"""
        /sys/class/net/{name} -> {base}
        {base}/device -> ../../../{address}
        {base}/address: {mac}
        {base}/mtu: {mtu_bytes}
        {base}/operstate: up
        {base}/carrier: 1
        {base}/carrier_down_count: 1
        {base}/flags: 0x1003
        {base}/type: {kind}
        {base}/dev_port: 0
        {base}/ifindex: {index}
        /run/udev/data/n{index}: E:ID_NET_DRIVER={"igb" if address == ETH0 else "mlx5_core"}\\nE:ID_PATH=pci-{address}\\n
        /run/systemd/netif/links/{index}: ADMIN_STATE=configured\\nNETWORK_FILE={_network_file(address)}
    """


def _network_file(address: str) -> str:
    if address == SECOND:
        return path_of("rail1@1")
    return path_of(f"rail{NICS.index(address)}") if address in NICS else "/run/systemd/network/10-netplan-eno1.network"


def _boot_files(rails: Sequence[Mapping[str, Any]]) -> Iterator[ManagedFile]:
    """The .network files of the rails; netplan's of the other interface."""
    yield ManagedFile(_network_file(ETH0), "[Match]\nName=eno1\n\n[Network]\nAddress=192.0.2.1/24\n")
    given = ("name", "nic", "address", "mtu_bytes")
    members = [{"nic": {"pci": address}, "netdev": "", "mac": None} for address in (NICS[1], SECOND)]
    for rail in rails:
        more = {"vlan": {**rail["vlan"], "interface": VLAN}} if rail["vlan"] else {}
        more.update({"bond": {**rail["bond"], "interface": BOND, "members": members}} if rail["bond"] else {})
        for made in make_rails([{**{key: rail[key] for key in given}, "netdev": "", **more}]):
            if made.is_configured:
                yield ManagedFile(path_of(made.name), render(made))


def _device(rail: int, address: str, link_layer: str = "Ethernet") -> str:
    name = f"mlx5_{rail}"
    base = f"{PATHS[address]}/infiniband/{name}"
    guid = f"a088:c203:0000:000{rail}"
    text = f"""
        /sys/class/infiniband/{name} -> {base}
        /sys/class/infiniband_verbs/uverbs{rail}/ibdev: {name}
        /dev/infiniband/uverbs{rail}:
        {base}/device -> ../../../{address}
        {base}/fw_ver: 28.41.1000
        {base}/board_id: MT_0000000838
        {base}/hca_type: MT4129
        {base}/node_type: 1: CA
        {base}/node_guid: {guid}
        {base}/sys_image_guid: {guid}
        {base}/ports/1/state: 4: ACTIVE
        {base}/ports/1/phys_state: 5: LinkUp
        {base}/ports/1/link_layer: {link_layer}
        {base}/ports/1/rate: 400 Gb/sec (4X NDR)
        {base}/ports/1/lid: {hex(rail + 1) if link_layer == "InfiniBand" else "0x0"}
        {base}/ports/1/sm_lid: {"0x1" if link_layer == "InfiniBand" else "0x0"}
        {base}/ports/1/hw_counters/lifespan: 10
        {base}/ports/1/hw_counters/out_of_sequence: 0
    """
    text += "".join(f"{base}/ports/1/counters/{name}: 0\n" for name in ("symbol_error", "link_downed", "port_rcv_errors"))
    if link_layer == "InfiniBand":
        text += f"{base}/ports/1/gids/0: fe80:0000:0000:0000:{guid}\n{base}/ports/1/pkeys/0: 0x8001\n{base}/ports/1/pkeys/1: 0x7fff\n"
    return text


def _vlan() -> str:
    """The VLAN of the second rail."""
    base = f"/sys/devices/virtual/net/{VLAN}"
    egress = "".join(f"{priority}:3 " for priority in range(8))
    text = f"{VLAN}  VID: 100\t REORDER_HDR: 1\\nDevice: {BOND}\\n EGRESS priority mappings: {egress}"
    return f"""
        /sys/class/net/{VLAN} -> ../../devices/virtual/net/{VLAN}
        {base}/uevent: DEVTYPE=vlan\\nINTERFACE={VLAN}\\nIFINDEX=9
        {base}/address: a0:88:c2:00:00:03
        {base}/mtu: 9000
        {base}/operstate: up
        {base}/carrier: 1
        {base}/flags: 0x1003
        {base}/type: 1
        {base}/ifindex: 9
        /run/systemd/netif/links/9: ADMIN_STATE=configured\\nNETWORK_FILE={path_of("rail1@vlan")}
        /proc/net/vlan/{VLAN}: {text}
    """


def _bond() -> str:
    """The bond of the second rail, with LACP."""
    base = f"/sys/devices/virtual/net/{BOND}"
    head = "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\\nTransmit Hash Policy: layer3+4 (1)\\nLACP rate: fast\\n"
    members = "".join(
        f"\\nSlave Interface: {name}\\nMII Status: up\\nPermanent HW addr: a0:88:c2:00:00:0{index}\\nAggregator ID: 1\\n"
        "details partner lacp pdu:\\n    system mac address: 00:11:22:33:44:55\\n"
        for name, index in (("ens2np0", 3), ("ens2np1", 4))
    )
    return f"""
        /sys/class/net/{BOND} -> ../../devices/virtual/net/{BOND}
        {base}/uevent: DEVTYPE=bond\\nINTERFACE={BOND}\\nIFINDEX=8
        {base}/address: a0:88:c2:00:00:03
        {base}/mtu: 9000
        {base}/operstate: up
        {base}/carrier: 1
        {base}/flags: 0x1403
        {base}/type: 1
        {base}/ifindex: 8
        {PATHS[NICS[1]]}/net/ens2np0/master -> ../../../../virtual/net/{BOND}
        {PATHS[SECOND]}/net/ens2np1/master -> ../../../../virtual/net/{BOND}
        /run/systemd/netif/links/8: ADMIN_STATE=configured\\nNETWORK_FILE={path_of("rail1@bond")}
        /proc/net/bonding/{BOND}: {head}{members}
    """


def _roce_port(rail: int, address: str, *, bonded: bool = False) -> str:
    port, netdev = f"{PATHS[address]}/infiniband/mlx5_{rail}/ports/1", BOND if bonded else f"ens{rail + 1}np0"
    gids = {0: ("fe80:0000:0000:0000:a288:c2ff:fe00:0000", "RoCE v2"), 1: (f"0000:0000:0000:0000:0000:ffff:c0a8:0{rail}01", "RoCE v2")}
    text = "".join(
        f"{port}/gids/{index}: {gid}\n{port}/gid_attrs/types/{index}: {kind}\n"
        f"{port}/gid_attrs/ndevs/{index}: {VLAN if bonded and index else netdev}\n"
        for index, (gid, kind) in gids.items()
    )
    cm = f"/sys/kernel/config/rdma_cm/mlx5_{rail}/ports/1"
    return text + f"{cm}/default_roce_mode: RoCE v2\n{cm}/default_roce_tos: 106\n/sys/module/rdma_cm/refcnt: 1\n"


def _ofed_qos(rail: int, address: str) -> str:
    ecn = f"{PATHS[address]}/net/ens{rail + 1}np0/ecn"
    values = {"cnp_dscp": 48, "cnp_802p_prio": 6, "rpg_ai_rate": 5}
    text = "".join(f"{ecn}/roce_np/{name}: {values.get(name, 4)}\n" for name in NP_PARAMETERS)
    text += "".join(f"{ecn}/roce_rp/{name}: {values.get(name, 9)}\n" for name in RP_PARAMETERS)
    text += "".join(f"{ecn}/roce_{point}/enable/{priority}: 1\n" for point in ("np", "rp") for priority in range(8))
    return text + f"{PATHS[address]}/infiniband/mlx5_{rail}/tc/1/traffic_class: Global tclass=106\n"


def _debugfs(address: str) -> str:
    params = f"/sys/kernel/debug/mlx5/{address}/cc_params"
    values = {"np_cnp_dscp": 48, "np_cnp_prio": 6, "rp_ai_rate": 5}
    return "".join(f"{params}/{name}: {values.get(name, 9)}\n" for name in (*NP_PARAMETERS.values(), *RP_PARAMETERS.values()))


def _gpu() -> str:
    alias = "pci:v000010DEd00002330sv000010DEsd000016C1"
    text = "".join(
        f"""
        {PATHS[gpu]}/modalias: {alias}bc03sc02i00
        {PATHS[gpu]}/vendor: 0x10de
        {PATHS[gpu]}/device: 0x2330
        {PATHS[gpu]}/class: 0x030200
        /proc/driver/nvidia/gpus/{gpu}/information: Model: \t\t NVIDIA H100 80GB HBM3\\nBus Location: \t {gpu}\\n
        """
        for gpu in GPUS
    )
    return f"""
        {text}
        {PATHS[NVSWITCH]}/modalias: {alias}bc06sc80i00
        {PATHS[NVSWITCH]}/class: 0x068000
        /proc/driver/nvidia/version: NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\\n
        /usr/lib/x86_64-linux-gnu/libcuda.so.1 -> libcuda.so.580.159.04
        /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04: x
        /usr/bin/nv-fabricmanager: x
    """


def _nccl(version: str = "2.30.7") -> str:
    intent = normalize(_common("roce", version))["nccl"]["install"]["tests"]
    stamp = json.dumps({"folder": intent["folder"], "version": intent["version"], "order": request_id(intent)})
    return f"""
        /usr/lib/x86_64-linux-gnu/libnccl.so.2 -> libnccl.so.{version}
        /usr/lib/x86_64-linux-gnu/libnccl.so.{version}: x
        /var/lib/rdma-cluster/nccl-tests.json: {stamp}
        {intent["folder"]}/build/all_reduce_perf: x
    """


def _ofed() -> str:
    """MLNX_OFED by DKMS for both kernels that are installed, on a host with Secure Boot."""
    tree = "/var/lib/dkms/mlnx-ofed-kernel"
    text = _modules([*MODULES, "mlx_compat", "nvidia_peermem"], "24.10-1.1.4")
    text += f"{tree}/24.10/source -> /usr/src/mlnx-ofed-kernel-24.10\n/usr/src/mlnx-ofed-kernel-24.10/dkms.conf: x\n"
    for kernel in (KERNEL, NEWER):
        text += f"/lib/modules/{kernel}/kernel/x: x\n/lib/modules/{kernel}/build/Makefile: x\n"
        text += f"/lib/modules/{kernel}/modules.dep: updates/dkms/mlx5_core.ko: updates/dkms/mlx_compat.ko\n"
        text += f"{tree}/24.10/{kernel}/x86_64/module/mlx5_core.ko: x\n{tree}/kernel-{kernel}-x86_64 -> 24.10/{kernel}/x86_64\n"
    return (
        text
        + """
        /usr/bin/ofed_info: #!/bin/bash\\nif [ "X$1" == "X-s" ]; then echo MLNX_OFED_LINUX-24.10-1.1.4.0:; exit 0; fi\\n
        /etc/dkms/framework.conf: # nothing set
        /var/lib/dkms/mok.pub: x
        /sys/module/mlx5_core/parameters/prof_sel: 2
    """
    )


def _inbox() -> str:
    return _modules(MODULES, None)


def _modules(names: Sequence[str], version: str | None) -> str:
    text = ""
    for name in names:
        text += f"/sys/module/{name}/srcversion: {name.upper()}0123\n/sys/module/{name}/refcnt: 0\n"
        text += f"/sys/module/{name}/version: {version}\n" if version else ""
    return text


def _answers(modules: Sequence[str], folder: str, signer: str, version: str | None, kernel: str = KERNEL) -> dict[Sequence[str], str]:
    """What the commands that every host has print."""
    answer = "".join(
        f"filename:       /lib/modules/{kernel}/{folder}/{name}.ko\n"
        + (f"version:        {version}\n" if version else "")
        + f"srcversion:     {name.upper()}0123\nname:           {name}\nsigner:         {signer}\nsig_key:        01\n"
        for name in modules
    )
    active = ("systemd-networkd", "nvidia-fabricmanager", "rdma-pcie", "rdma-cpu", "chrony", "ufw", "rdma-qos@ens1np0", "rdma-qos@ens2np0")
    units = (*active, "rdma-soft-links", "firewalld", "nftables", "irqbalance", "chronyd")
    states = "\n".join(
        f"Id={name}.service\nActiveState={'active' if name in active else 'inactive'}\n"
        f"UnitFileState={'enabled' if name in active else 'disabled'}\n"
        for name in units
    )
    states += "\nId=rdma-recorder.timer\nActiveState=active\nUnitFileState=enabled\n"
    addresses = [
        {"ifname": name, "max_mtu": 9978, "addr_info": [{"family": "inet", "local": local, "prefixlen": 24}] if local else []}
        for name, local in {
            "eno1": "192.0.2.1", "ens1np0": "192.168.0.1", "ens2np0": "192.168.1.1", "ibs0": "", "ibs1": "",
        }.items()
    ]  # fmt: skip
    return {
        ("modinfo",): answer,
        ("systemctl", "show"): states,
        ("systemd-run",): limits_text(),
        ("busctl", "get-property"): "b false\n",
        ("chronyc",): (FIXTURES / "chrony/4.3-synchronized.csv").read_text(encoding="utf-8"),
        ("ip", "-json"): json.dumps(addresses),
        ("/usr/bin/nv-fabricmanager", "--version"): "\nFabric Manager version is : 580.159.04\n\n",
        ("rdma", "-j", "resource", "show", "qp"): json.dumps(
            [
                {
                    "ifindex": rail,
                    "ifname": f"mlx5_{rail}",
                    "port": 1,
                    "lqpn": number,
                    "type": kind,
                    "state": "RTS",
                    "sq-psn": 0,
                    "comm": "ib_core",
                }
                for rail in range(len(NICS))
                for number, kind in ((1, "GSI"), (0, "SMI"))
            ]
        ),
        ("mstconfig", "-d"): listing({"NUM_OF_VFS": ("8", "8", "8")}),
    }


def limits_text() -> str:
    """/proc/PID/limits of a process that may lock all memory."""
    wanted = {"Max locked memory": ("unlimited", "bytes"), "Max open files": ("1048576", "files")}
    lines = LIMITED.splitlines()
    return (
        "\n".join(
            next((f"{name:<26}{value:<21}{value:<21}{unit:<10}" for name, (value, unit) in wanted.items() if line.startswith(name)), line)
            for line in lines
        )
        + "\n"
    )


def _devinfo(link_layer: str) -> str:
    return "".join(
        f"hca_id:\tmlx5_{rail}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.41.1000\n\tnode_guid:\t\t\ta088:c203:0000:000{rail}\n"
        f"\tsys_image_guid:\t\t\ta088:c203:0000:000{rail}\n\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4129\n\thw_ver:\t\t\t\t0x0\n"
        "\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
        "\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n"
        f"\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\t{link_layer}\n\n"
        for rail in range(2)
    )


def _write_bytes(root: Path) -> None:
    """What is no text."""
    for address, path in PATHS.items():
        kind = BRIDGES.get(address)
        space = config_space(capability=2) if kind is None else config_space(header_type=1, port_type=kind, capability=2)
        folder = root / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config").write_bytes(space)
    (root / "proc/100/limits").write_text(limits_text(), encoding="utf-8")
    if (root / "etc/dkms").is_dir():
        efi = root / "sys/firmware/efi/efivars"
        efi.mkdir(parents=True, exist_ok=True)
        (efi / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(b"\x06\0\0\0\1")
    latency = root / "dev/cpu_dma_latency"
    latency.parent.mkdir(parents=True, exist_ok=True)
    latency.write_bytes((2_000_000_000).to_bytes(4, "little"))
    for node in (root / "dev/infiniband").iterdir():
        node.chmod(0o666)
