# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line that makes the stand-ins for MLNX_OFED, DOCA-OFED, a third party's module and the quality of service of a NIC."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.errors import LabError
from lab.standins import doca, mlnx_ofed, qos
from lab.standins.packages import ulp_package


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="python -m lab.standins", description=__doc__)
    kinds = top.add_subparsers(dest="kind", required=True)
    ofed = kinds.add_parser("mlnx-ofed", help="an MLNX_OFED_LINUX tarball")
    ofed.add_argument("--version", default="24.10-1.1.4.0", help="as in the tarball's name (default: %(default)s)")
    ofed.add_argument("--distro", default="debian12.1", help="for which distribution (default: %(default)s)")
    ofed.add_argument("--sabotage", default="", metavar="HOW", help="build, silent, headers, slow=SECONDS or rc=N; more by commas")
    host = kinds.add_parser("doca", help="a signed apt repository of a DOCA release")
    host.add_argument("--release", default="3.2.0", choices=sorted(doca.OFED_OF_RELEASE), help="(default: %(default)s)")
    host.add_argument("--sabotage", default="", choices=("", "build"), help="build: the modules' source does not compile")
    kinds.add_parser("ulp", help="a third party's module on top of the stack, as a DKMS package")
    nic = kinds.add_parser("qos", help="a kernel module that gives the lab's NICs DCB, priority counters and the files of mlx5")
    nic.add_argument(
        "--stack", default="ofed", choices=qos.STACKS, help="ofed: OFED's files and mlnx_qos; inbox: upstream's (default: %(default)s)"
    )
    for kind in kinds.choices.values():
        kind.add_argument("--out", type=Path, required=True, help="the folder to write into; made if it is not there")
    return top


def make(arguments: argparse.Namespace) -> Path:
    """Carry out the command; what it has made."""
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    match arguments.kind:
        case "mlnx-ofed":
            return mlnx_ofed.make(arguments.version, out, distro=arguments.distro, sabotage=mlnx_ofed.parse_sabotage(arguments.sabotage))
        case "doca":
            return doca.make(arguments.release, out, breaks_build=arguments.sabotage == "build")
        case "qos":
            return qos.make(out, stack=arguments.stack)
        case _:
            return ulp_package().build(out)


def main(words: list[str] | None = None) -> int:
    """Entry point; prints the path of what it has made. 1: one sentence on standard error."""
    try:
        print(make(parser().parse_args(words)))
    except LabError as error:
        print(f"lab.standins: {error}", file=sys.stderr)
        return 1
    return 0
