# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests of each mutant, side by side in copies of the tree."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutation.sample import OUTPUT, ROOT, Mutant
from tests.mutation.tests_of import tests_of

PASSED = "passed"


@dataclass(frozen=True)
class Result:
    """What became of a mutant. outcome: of worker.py; test: the file whose failure killed it; said: the failure."""

    mutant: Mutant
    outcome: str
    test: str = ""
    said: str = ""

    @property
    def killed(self) -> bool:
        return self.outcome != PASSED


class Records:
    """The results so far. A killed mutant is not run again as long as its file and the test that killed it are the same."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._known = {tuple(each["mutant"]): each for each in map(json.loads, lines)}

    def known(self, mutant: Mutant) -> Result | None:
        each = self._known.get(mutant.key)
        if each is None or each["texts"] != _texts(mutant.file, each["test"]):
            return None
        return Result(mutant, each["outcome"], each["test"], each["said"])

    def add(self, result: Result) -> None:
        """Record a killed mutant."""
        if not result.killed:
            return
        texts = _texts(result.mutant.file, result.test)
        each = {"mutant": result.mutant.key, "outcome": result.outcome, "test": result.test, "said": result.said, "texts": texts}
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(each) + "\n")


def _texts(*files: str) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update((ROOT / file).read_bytes() if (ROOT / file).exists() else b"")
    return digest.hexdigest()


class Worker:
    """A process of worker.py with its copy of the tree."""

    def __init__(self, number: int) -> None:
        self.tree = tree = OUTPUT / f"tree{number}"
        shutil.rmtree(tree, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_symlink() or (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        known = tree / ".venv/collections/ansible_collections/rdma"
        known.mkdir(parents=True)
        (known / "cluster").symlink_to(tree)
        environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tree / ".venv/collections"), "PYTHONSAFEPATH": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "tests/mutation/worker.py"],
            cwd=tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, file: str, text: str | None, tests: Sequence[str]) -> dict[str, Any]:
        """The answer of worker.py to one job."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"file": file, "text": text, "tests": tests}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def _workers(jobs: int) -> Iterator[Queue[Worker]]:
    free: Queue[Worker] = Queue()
    made = [Worker(number) for number in range(jobs)]
    for each in made:
        free.put(each)
    try:
        yield free
    finally:
        for each in made:
            assert each.process.stdin is not None
            each.process.stdin.close()
            each.process.wait()
            shutil.rmtree(each.tree, ignore_errors=True)


def run(mutants: Sequence[Mutant], jobs: int, progress: Callable[[str], None]) -> list[Result]:
    """The result of each mutant. Test files that fail without a mutant are left out, since they could kill none."""
    records, sound, lock = Records(OUTPUT / "killed.jsonl"), dict[str, bool](), threading.Lock()

    def is_sound(worker: Worker, test: str) -> bool:
        with lock:
            known = sound.get(test)
        if known is None:
            known = worker.run(mutants[0].file, None, [test])["outcome"] == PASSED
            with lock:
                sound[test] = known
            if not known:
                progress(f"left out, since it fails without a mutant: {test}")
        return known

    def tried(worker: Worker, mutant: Mutant) -> Result:
        text = mutant.code()
        for test in tests_of(mutant.file):
            answer = worker.run(mutant.file, text, [test])
            if answer["outcome"] != PASSED and is_sound(worker, test):
                return Result(mutant, answer["outcome"], test, answer["said"])
        return Result(mutant, PASSED)

    def one(mutant: Mutant) -> Result:
        if (known := records.known(mutant)) is not None:
            return known
        worker = free.get()
        try:
            result = tried(worker, mutant)
        finally:
            free.put(worker)
        records.add(result)
        progress(f"{result.outcome:<10} {mutant.file}:{mutant.line}: {mutant.before!r} -> {mutant.after!r}  {result.test} {result.said}")
        return result

    with _workers(jobs) as free, ThreadPoolExecutor(jobs) as pool:
        return [*pool.map(one, mutants)]
