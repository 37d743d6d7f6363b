# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Site runs that are killed at random moments leave readable evidence, and the next one converges; beside it no other may run."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

from lab import remote
from lab.cluster import Lab
from tests.verify.drifts import KINDS, command
from tests.verify.patience import until
from tests.verify.site import Site

#: A run that has something to fix takes longer than that.
LONGEST_SECONDS = 22.0
#: Packages take a minute to come back on an emulated CPU, and dpkg must not be killed for a test's sake.
DRIFTS = [kind for kind in KINDS if kind.name != "package removed"]


def kill_and_converge(lab: Lab, site: Site, chance: random.Random, kills: int) -> None:
    """Two nodes drift; so many runs are killed; the next one, beside which a second one is refused by its name, ends well."""
    for node, kind in zip(chance.sample(lab.plan.nodes, 2), chance.sample(DRIFTS, 2), strict=True):
        done = remote.execute(node, lab.folder, command(node, kind))
        assert done.status == 0, done.stderr
        print(f"{node.name}: {kind.name}")
    for _kill in range(kills):
        _kill_one(site, chance.uniform(1.0, LONGEST_SECONDS))
    before = site.evidence
    with site.start("site") as again:
        _assert_refused(site, _begun(site, before), again)
        answer, _nothing = again.communicate()
    assert again.returncode == 0, answer


def _assert_readable(site: Site) -> None:
    files = [*site.evidence.rglob("*.json"), *site.evidence.rglob("*.jsonl")]
    for file in files:
        for document in file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]:
            json.loads(document)
    print(f"{len(files)} files of the killed run are readable")


def _kill_one(site: Site, moment: float) -> None:
    print(f"killed after {moment:.1f} s")
    before = site.evidence
    site.kill_after(moment)
    if site.evidence != before:
        _assert_readable(site)


def _begun(site: Site, before: Path) -> str:
    """The name of a run that has just been started."""
    until(lambda: site.evidence != before, 60, "a run that begins")
    return site.evidence.name


def _assert_refused(site: Site, run: str, first: subprocess.Popen[str]) -> None:
    second = site.run()
    assert second.returncode != 0
    assert re.search(rf"Run {run} of \w+ \(pid {first.pid}, ", second.stdout), second.stdout
    assert "Read the host" not in second.stdout
