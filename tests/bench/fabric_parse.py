# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fabric of 2048 HCAs on 96 switches costs to read: a process of its own prints its seconds of CPU and its peak of memory.

python -m tests.bench.fabric_parse FILE: the file as ibnetdiscover printed it, parsed and made a graph, and that as JSON.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import parse_ibnetdiscover
from tests.bench.bars import Line, figure
from tests.bench.watch import peak_mib
from tests.child import environment
from tests.unit.builders.fabric_texts import rail_fabric

ROOT = Path(__file__).parents[2]
PARSE = ("python", "-m", "tests.bench.fabric_parse", "FILE")
HCAS, SWITCHES, LINKS = 2048, 96, 4096
TIMES = 5


def parse(folder: Path) -> Iterator[Line]:
    """The parse and the graph of a generated fabric, in a process that does nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "ibnetdiscover.txt"
    file.write_text(rail_fabric(hosts=256, rails=8, leaves_per_rail=8, spines=32, uplinks=1), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *PARSE[1:3], str(file)], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment()
    )
    answer = json.loads(done.stdout)
    if (answer["nodes"], answer["links"], answer["complete"]) != (HCAS + SWITCHES, LINKS, True):
        raise RuntimeError(f"The fabric was not read whole, so that something else was measured: {answer}")
    yield figure("fabric_parse_s_2048", answer["seconds"], PARSE, note=f"graph {answer['kib']:.0f} KiB as JSON")
    yield figure("fabric_peak_mib_2048", answer["mib"], PARSE)


def main(file: str) -> None:
    text = Path(file).read_text(encoding="utf-8")
    spent = []
    for _turn in range(TIMES):
        begun = time.process_time()
        graph = fabric_graph("default", parse_ibnetdiscover(text))
        spent.append(time.process_time() - begun)
    tree = json.dumps(graph.to_dict())
    mib = peak_mib("self")
    answer = {"seconds": statistics.median(spent), "mib": mib, "nodes": len(graph.nodes), "links": len(graph.links)}
    print(json.dumps({**answer, "complete": graph.complete, "kib": len(tree) / 1024}))


if __name__ == "__main__":
    main(sys.argv[1])
