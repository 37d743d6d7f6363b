# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalogue of checks: what each one looks at, where that is read, and what to do. docs/checks.md is made of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One check. threshold: what rdma_checks.ID.threshold means for it, "" where it has none; fixed: rdma_checks cannot change it."""

    stage: str
    subject: str
    read_from: str
    remedy: str
    threshold: str = ""
    fixed: bool = False


#: By the stable id that findings carry; in the order of the build.
CHECKS = {
    "stage.completed": Check(
        "every", "a host that has begun a stage", "the run itself", "see the task that failed, or why it cannot be reached", fixed=True
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
        "preflight", "`rdma_gate` and `rdma_pairs`, which hold for all hosts at once", "the inventory", "set them for all hosts alike"
    ),
    "host.identity": Check(
        "preflight",
        "hostname and machine-id",
        "`/proc/sys/kernel/hostname`, `/etc/machine-id`",
        "a cloned machine: `systemd-machine-id-setup`",
    ),
    "preflight.os": Check(
        "preflight", "the distribution", "`/etc/os-release`", "install a supported one, or take the host out with `--limit`"
    ),
    "preflight.kernel": Check("preflight", "the running kernel", "`/proc/sys/kernel/osrelease`", "boot a newer one"),
    "driver.package": Check("driver", "each RDMA package", "`/var/lib/dpkg/status`", "run the driver stage; see what apt says on the host"),
    "driver.module": Check(
        "driver", "each kernel module that the rails need", "`/sys/module`", "`modprobe NAME` and `dmesg` tell the reason"
    ),
    "driver.nic": Check(
        "driver",
        "each planned rail's NIC",
        "`/sys/class/net/*/device`, `…/address`",
        "correct `nic`, or look for the card; those that are there are named",
    ),
    "driver.device": Check(
        "driver", "the RDMA device on that NIC", "`/sys/class/infiniband`", "`journalctl -u rdma-soft-links.service` or `dmesg`"
    ),
    "link.state": Check(
        "link",
        "the port of each planned rail",
        "`ports/N/state`, `phys_state`; `carrier`, `flags` of the interface",
        "cable, switch port, optic; or what set the interface down; or a missing subnet manager (INIT on InfiniBand)",
    ),
    "link.layer": Check("link", "the same port", "`ports/N/link_layer`", "`LINK_TYPE` of the NIC, or correct the intent"),
    "fabric.graph": Check("fabric", "the fabric", "nothing yet: always `not_applicable`", ""),
    "host.memlock": Check(
        "host",
        "how much memory a service may lock",
        "`/proc/self/limits` inside a transient service",
        "see which drop-in of systemd overrides ours",
    ),
    "host.sysctl": Check("host", "each kernel setting, now and after a boot", "`/proc/sys`, `sysctl.d`", "see which later file sets it"),
    "network.mtu": Check("network", "the interface of each planned rail", "`/sys/class/net/IF/mtu`", "see what else manages the interface"),
    "network.gid": Check(
        "network", "the RoCE v2 GID of the rail's address", "`ports/N/gids`, `gid_attrs`", "see whether the interface has the address"
    ),
    "qos.chain": Check("qos", "PFC, DSCP, ECN", "nothing yet: always `not_applicable`", ""),
    "gpu.path": Check("gpu", "the path between GPU and NIC", "nothing yet: always `not_applicable`", ""),
    "nccl.file": Check(
        "nccl", "nccl.conf and the environment file", "the files' SHA-256 and mode", "run the nccl stage; see what else writes the file"
    ),
    "nccl.hca": Check("nccl", "each device that `NCCL_IB_HCA` names", "`/sys/class/infiniband`", "run the driver and link stages"),
    "nccl.gid_index": Check("nccl", "`NCCL_IB_GID_INDEX`, where NCCL is older than 2.21", "`ports/N/gids`", "use NCCL 2.21 or newer"),
    "nccl.alike": Check(
        "nccl",
        "NCCL's variables on hosts that should be alike",
        "what the nccl stage derives for each",
        "see what differs on the odd one out",
    ),
    "pair.bandwidth": Check(
        "pairs",
        "each pair of hosts on each rail",
        "perftest's own output; a proof of an earlier run",
        "MTU, flow control, cable or optic, PCIe, NUMA, in this order",
        "the fraction of the rail's median below which a pair fails, instead of `rdma_pairs.software_fail_below`",
    ),
    "collective.busbw": Check("collectives", "nccl-tests", "nothing yet: always `not_applicable`", ""),
}


INTRODUCTION = """\
# The checks

<!-- Made by tests/tools/docs.py from plugins/plugin_utils/_catalogue.py. -->

Each check makes a finding: `ok`, `warning`, `error`, `unknown` (it could not be told, which stops a gate as an error does) or
`not_applicable` with the reason; with what was seen, what was expected and what to do.

"""
RULES = """
## What a site makes of them

`rdma_checks` in the inventory, by a check's id:

```yaml
rdma_checks:
  intent.hosts: {severity: error}          # a warning counts as an error, or the other way round
  link.state:                              # its errors and unknowns stop nobody until the day is over
    silenced_by: ada
    reason: cable of node7 ordered, ticket 4711
    until: 2026-12-31
```

A silenced finding stays in the evidence and in the summary, under its own heading. When the day has passed, it counts again and says
whose silence it was. An `unknown` has no severity to change: what could not be checked is not known to be well.

A finding on a pair stands at both of its hosts, because one pair does not tell which end is to blame. A measurement that could not be
made, or that gave an average of zero, is `unknown`.
"""


def render() -> str:
    """The whole of docs/checks.md."""
    lines = ["| check | stage | subject | read from | what to do |", "|---|---|---|---|---|"]
    lines += [f"| `{name}` | {check.stage} | {check.subject} | {check.read_from} | {check.remedy} |" for name, check in CHECKS.items()]
    thresholds = [f"* `{name}`: {check.threshold}." for name, check in CHECKS.items() if check.threshold]
    table = "\n".join([*lines, "", "With a limit that `rdma_checks.ID.threshold` replaces:", "", *thresholds]) + "\n"
    return INTRODUCTION + table + RULES
