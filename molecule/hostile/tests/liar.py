# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python interpreter that lies: it runs what Ansible sends with the real Python, and changes the answers.

Install it on a host as ansible_python_interpreter. The file lie.json beside it has a lie for each module, by the module's name:

* merge: a tree to merge into the answer; null removes a key, and {"=": value} replaces a whole value.
* say: a text to print instead of the answer.
* idle: true if the module does not run. The answer is then only what `merge` makes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

REAL = "/usr/bin/python3"
MODULE = re.compile(rb"ansible_collections\.rdma\.cluster\.plugins\.modules\.([a-z_]+)")


def merged(answer: Any, lie: Any) -> Any:
    """The answer with a lie in it."""
    if not isinstance(lie, dict):
        return lie
    if set(lie) == {"="}:
        return lie["="]
    tree = dict(answer) if isinstance(answer, dict) else {}
    for key, each in lie.items():
        if each is None:
            tree.pop(key, None)
        else:
            tree[key] = merged(tree.get(key), each)
    return tree


def main() -> int:
    sent = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    module = MODULE.search(sent)
    lies = json.loads(Path(__file__).with_name("lie.json").read_text())
    lie = lies.get(module[1].decode()) if module else None
    if lie is None:
        return subprocess.run([REAL, *sys.argv[1:]], input=sent, check=False).returncode
    if "say" in lie:
        sys.stdout.write(lie["say"])
        return 0
    true = b"{}"
    if not lie.get("idle"):
        true = subprocess.run([REAL, *sys.argv[1:]], input=sent, stdout=subprocess.PIPE, check=False).stdout
    json.dump(merged(json.loads(true), lie["merge"]), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
