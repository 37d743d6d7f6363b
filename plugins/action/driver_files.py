# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.driver_files; documented in plugins/modules/driver_files.py."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.errors import AnsibleError
from ansible.module_utils.urls import open_url

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, differs
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.files import KEY_OF, hook_files, no_repository, repository_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict, stack_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

FETCH_SECONDS = 60
KEY_BYTES = 1_000_000


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"plan": {"type": "dict", "required": True}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if not options["plan"]["files"]:
            return {"written": []}
        self.seen = from_dict(self.all_facts)
        wrong = [file for file in self._files(options["plan"]) if differs(file, self.seen.files)]
        if not wrong:
            return {"written": []}
        files = [{"path": file.path, "content": file.content, "mode": f"{file.mode:04o}"} for file in wrong]
        return self.module("managed_files", files=files)

    def _files(self, plan: Mapping[str, Any]) -> list[ManagedFile]:
        family = stack_of(self.seen).distribution.family
        doca = plan["doca"]
        repository = no_repository() if doca is None else self._repository(plan, family) if doca["repository"] is not None else []
        return [*repository, *hook_files(family, planned=plan["hook"], dkms=plan["hook_dkms"])]

    def _repository(self, plan: Mapping[str, Any], family: str | None) -> list[ManagedFile]:
        driver = self.intent["driver"]
        version, place, checksum = driver["version"], driver["repository"]["key"], driver["repository"]["key_checksum"]
        if family is None or version is None or place is None or checksum is None:
            raise AnsibleError(
                f"{self.host}: a DOCA-OFED repository needs a version, a key with its checksum, and a supported distribution."
            )
        wanted = checksum.partition(":")[2]
        there = (self.seen.files or {}).get(KEY_OF[family])
        key = None if there is not None and there["sha256"] == wanted else self._key(place, wanted)
        return repository_files(family, url=plan["doca"]["repository"], version=version, profile=driver["profile"], key=key)

    def _key(self, place: Mapping[str, str], wanted: str) -> str:
        """The key's text. Raises AnsibleError if its checksum is not the one in the intent."""
        name = place.get("file") or place["url"]
        data = self.local_file(name).read_bytes() if "file" in place else _fetch(name)
        found = hashlib.sha256(data).hexdigest()
        if found != wanted:
            raise AnsibleError(
                f"The key of DOCA's repository, {name}, has the SHA-256 {found}; rdma_driver.repository.key_checksum is {wanted}: it is "
                "another key. Inspect it with `gpg --show-keys` before you trust it."
            )
        try:
            return data.decode("ascii")
        except UnicodeDecodeError as exc:
            raise AnsibleError(f"The key {name} is not ASCII-armored text. Convert it with `gpg --armor --export`.") from exc


def _fetch(url: str) -> bytes:
    try:
        with open_url(url, timeout=FETCH_SECONDS) as answer:  # type: ignore[no-untyped-call]
            data: bytes = answer.read(KEY_BYTES)
            return data
    except OSError as exc:
        raise AnsibleError(f"Cannot download the key of DOCA's repository from {url}: {exc}") from exc
