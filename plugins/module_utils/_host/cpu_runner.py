# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Set the CPUs' governor and idle states from one file, at boot and by hand: `cpu.pyz [--config FILE]`.

rdma-cpu.service runs this program on the host.
The file is {"governor": name or null, "max_cstate_latency_us": number or null}. The latter disables idle states with a longer wake-up time,
like `cpupower idle-set --disable-by-latency`, and enables none. CPUs that come online later are not changed.
Sources: Documentation/admin-guide/pm/cpufreq.rst and cpuidle.rst of Linux.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONFIG = "/etc/rdma-cluster/cpu.json"
CPUS = "sys/devices/system/cpu"


def wanted(config: dict[str, Any], root: Path = Path("/")) -> Iterator[tuple[Path, str]]:
    """Yield each file that the configuration sets, with its requested value."""
    if config["governor"] is not None:
        for path in sorted((root / CPUS / "cpufreq").glob("policy*/scaling_governor")):
            yield path, config["governor"]
    most_us = config["max_cstate_latency_us"]
    if most_us is not None:
        for state in sorted((root / CPUS).glob("cpu[0-9]*/cpuidle/state*")):
            if int((state / "latency").read_text()) > most_us:
                yield state / "disable", "1"


def differing(config: dict[str, Any], root: Path = Path("/")) -> list[tuple[Path, str, str]]:
    """Return the files with another value than requested: path, actual value, requested value."""
    seen = ((path, path.read_text().strip(), value) for path, value in wanted(config, root))
    return [(path, now, value) for path, now, value in seen if now != value]


def apply(config: dict[str, Any], root: Path = Path("/")) -> list[str]:
    """Write the files that differ, read them again, and return a line for each that still differs, with the reason."""
    refused = {}
    for path, _now, value in differing(config, root):
        try:
            path.write_text(value)
        except OSError as error:
            refused[path] = f" ({error.strerror})"
    return [f"{path} is {now}, expected {value}{refused.get(path, '')}" for path, now, value in differing(config, root)]


def main() -> int:
    """Return 0 if all values are as requested, else 1; print a line for each that is not."""
    parser = argparse.ArgumentParser(description="Set the CPUs' governor and idle states from a file.")
    parser.add_argument("--config", default=CONFIG)
    failures = apply(json.loads(Path(parser.parse_args().config).read_text()))
    for failure in failures:
        sys.stderr.write(f"{failure}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
