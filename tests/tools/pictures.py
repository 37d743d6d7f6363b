# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the pictures of the documents again: `make pictures`. Root only; it takes some minutes.

A lab of four containers on a simulated fabric has a cut and a narrow cable. The pictures are those of its runs: the report, the drawing
of the fabric, and the live view over SSH. Two ports of the live view are moved by a stand-in of a transfer (tests/verify/sender.py).
"""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from rich.console import Console

from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.screen import screen
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.view import parse_recording
from lab import cluster, fabric_faults
from lab import fabric as fabrics
from lab.fabric import FabricRequest
from lab.fabric_plan import Shape
from tests.child import environment
from tests.verify.driver import Hosts
from tests.verify.patience import until
from tests.verify.sender import Sender
from tests.verify.site import ROOT, Site

LAB, HOSTS, RAILS = "pictures", 4, 2
FOLDER = ROOT / "docs/pictures"
MODULE = "ansible_collections.rdma.cluster.plugins.plugin_utils._watch"
#: A cable of a host that is cut, and one between two switches with one lane of four.
CUT, NARROW = "node3 mlx5_1", "leaf2/5"
#: Where the stand-in of the cut port shows its state, and how long it may take to follow.
STATE, FOLLOW_SECONDS = "/sys/class/infiniband/mlx5_1/ports/1/state", 60
SENDERS = {"node1": 182.0, "node4": 96.5}
SCREEN = (1280, 860)
SCREEN_COLUMNS = 170
LARGEST_BYTES, LARGEST_SUM = 300_000, 1_500_000
#: rich names a font of another host, which a picture may not fetch.
FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


@contextmanager
def lab() -> Iterator[Hosts]:
    """The lab, which is removed at the end."""
    cluster.up(LAB, "container", HOSTS, None)
    try:
        fabrics.up(LAB, Shape("rail", HOSTS, RAILS, ports=8), FabricRequest(lab=LAB))
        yield Hosts(cluster.load(LAB))
    finally:
        fabrics.down(LAB)
        cluster.down(LAB)


def run_stages(site: Site, folder: Path) -> Path:
    """The link and the fabric stage with cut cables; return the folder of the run."""
    stages = folder / "stages.yml"
    stages.write_text(
        yaml.safe_dump([{"import_playbook": str(ROOT / f"playbooks/{stage}.yml")} for stage in ("preflight", "link", "fabric")])
    )
    done = site.run(str(stages), "-e", json.dumps({"rdma_gate": {"policy": "report"}}))
    if not (site.evidence / "report.html").exists():
        raise SystemExit(f"the run has no report:\n{done.stdout}")
    return site.evidence


def discover(site: Site, folder: Path) -> Path:
    """The fabric as the playbook discover draws it, from names of hosts; return the folder of the run."""
    given = yaml.safe_load(site.inventory.read_text())
    given["all"]["vars"] = {key: value for key, value in given["all"]["vars"].items() if not key.startswith("rdma_")}
    (folder / "names.yml").write_text(yaml.safe_dump(given))
    found = Site(folder / "names.yml", folder / "discover")
    done = found.run("discover")
    drawings = list(found.run_dir.glob("*/fabric/default.svg"))
    if done.returncode or not drawings:
        raise SystemExit(f"the playbook discover has drawn nothing:\n{done.stdout}")
    return drawings[0].parents[1]


def picture_report(run: Path, folder: Path) -> None:
    """The first screen of the report, light and dark."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is missing: run `make pictures`, which installs it.")
    for theme, number in (("dark", 0), ("light", 1)):
        argv = [
            chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/chromium-{theme}",
            f"--blink-settings=preferredColorScheme={number}", f"--window-size={SCREEN[0]},{SCREEN[1]}",
            f"--screenshot={FOLDER}/report-{theme}.png", (run / "report.html").as_uri(),
        ]  # fmt: skip
        subprocess.run(argv, check=True, capture_output=True, timeout=120)


def record_view(hosts: Hosts, inventory: Path, folder: Path) -> Path:
    """Record the live view for some seconds, while two ports move."""
    senders = [Sender(hosts, name, "mlx5_0", gbps) for name, gbps in SENDERS.items()]
    recording = folder / "view.jsonl"
    for sender in senders:
        sender.start()
    try:
        argv = [sys.executable, "-m", MODULE, "-i", str(inventory), "--json", "--seconds", "8", "--record", str(recording)]
        subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=120, env=environment())
    finally:
        for sender in senders:
            sender.stop()
    return recording


def picture_view(recording: Path, file: Path, until_seconds: float = math.inf) -> None:
    """The last screen of a recording, or the one at a time after its begin."""
    # The readers end before the recording does; their end is not part of the picture.
    lines = [line for line in recording.read_text().splitlines(keepends=True) if '"kind": "end"' not in line]
    view, entries = parse_recording(lines)
    for entry in entries:
        if entry.got <= until_seconds:
            view.add(entry)
    console = Console(width=SCREEN_COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(screen(view, 40, SCREEN_COLUMNS))
    file.write_text(FONT.sub("", console.export_svg(title="rdma.cluster: live view")), encoding="utf-8")


def main() -> int:
    """Write all pictures, and fail if they are too large for the repository."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, lab() as hosts:
        folder = Path(temporary)
        inventory = fabrics.load(LAB).folder.inventory
        fabric_faults.cut(LAB, CUT)
        until(lambda: hosts.run("node3", f"cat {STATE}") == "1: DOWN", FOLLOW_SECONDS, "a port that is down")
        fabric_faults.degrade(LAB, NARROW, 1, None)
        site = Site(inventory, folder)
        run = run_stages(site, folder)
        picture_report(run, folder)
        shutil.copy(discover(site, folder) / "fabric/default.svg", FOLDER / "fabric.svg")
        picture_view(record_view(hosts, inventory, folder), FOLDER / "watch.svg")
    sizes = {path.name: path.stat().st_size for path in sorted(FOLDER.iterdir())}
    print(json.dumps(sizes, indent=1))
    return int(max(sizes.values()) > LARGEST_BYTES or sum(sizes.values()) > LARGEST_SUM)


if __name__ == "__main__":
    raise SystemExit(main())
