# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.send_file; documented in plugins/modules/send_file.py."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction, without_facts

COPY = "ansible.legacy.copy"
BLOCK_BYTES = 2**20


class ActionModule(RunAction):
    TRANSFERS_FILES = True
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "src": {"type": "str", "required": True},
        "dest": {"type": "path", "required": True},
        "mode": {"type": "str", "default": "0600"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        name = options["src"]
        expected = sorted({checksum for file, checksum in named_files(self.intent) if file == name})
        if not expected:
            raise AnsibleError(f"{self.host}: nothing was sent. The intent in the inventory names no file {name!r} with a checksum.")
        path = str(self.local_file(name))
        found = sha256_of(Path(self._loader.get_real_file(path)))
        if found not in expected:
            raise AnsibleError(
                f"{self.host}: nothing was sent. {path} on the control node has the SHA-256 {found}, but the intent has "
                f"{' or '.join(expected)}. Correct the checksum in the inventory, or replace the file."
            )
        return without_facts(self._copy(src=path, dest=options["dest"], mode=options["mode"]))

    def _copy(self, **arguments: Any) -> dict[str, Any]:
        """Run Ansible's copy action instead of this task's module."""
        task = self._task.copy()
        task.args = arguments
        action = self._shared_loader_obj.action_loader.get(
            COPY,
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        done: dict[str, Any] = action.run(task_vars=self.variables)
        return done


def named_files(part: Any) -> Iterator[tuple[str, str]]:
    """The files of the control node that an intent names as a source, as (name, SHA-256 in hex)."""
    if isinstance(part, Mapping):
        checksum = part.get("checksum")
        # A network plugin of NCCL has its source, or in `file` a built library.
        for place in (part.get("source"), part.get("file")):
            if isinstance(place, Mapping) and isinstance(place.get("file"), str) and isinstance(checksum, str):
                yield place["file"], checksum.removeprefix("sha256:")
        for each in part.values():
            yield from named_files(each)
    elif isinstance(part, list):
        for each in part:
            yield from named_files(each)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()
