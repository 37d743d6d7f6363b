# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of the driver stage a host is asked for; the module on the host plays a script."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.action import driver_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import files as doca
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.files import DEBIAN, hook_files
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host

KEY = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\nnot one\n-----END PGP PUBLIC KEY BLOCK-----\n"
SUM = hashlib.sha256(KEY).hexdigest()
URL = "https://example.org/doca/"
INBOX = {"doca": None, "hook": False, "hook_dkms": False, "files": True}
BUNDLE = {"doca": None, "hook": True, "hook_dkms": True, "files": True}
DOCA = {"doca": {"repository": URL}, "hook": True, "hook_dkms": True, "files": True}


def ask(
    monkeypatch: pytest.MonkeyPatch,
    plan: dict[str, Any],
    files: dict[str, Any],
    key: dict[str, str] | None = None,
    checksum: str = SUM,
    **variables: Any,
) -> dict[str, str | None] | None:
    """The files that the host is asked for: path → content; None if it is not asked."""
    asked: list[dict[str, Any]] = []
    action = driver_files.ActionModule.__new__(driver_files.ActionModule)
    facts = lab_facts()
    facts["files"] = files
    facts["stack"]["distribution"]["family"] = "debian"
    driver = {"stack": "doca", "version": "3.2.0", "repository": {"key": key or {"file": "key.pub"}, "key_checksum": f"sha256:{checksum}"}}
    action.variables = {"inventory_hostname": "node1", **variables}
    monkeypatch.setattr(driver_files.ActionModule, "all_facts", facts)
    monkeypatch.setattr(action, "intent_of", {"node1": lab_intent(driver=driver)}.get, raising=False)

    def module(name: str, *, files: list[dict[str, Any]]) -> dict[str, Any]:
        assert name == "managed_files"
        asked.extend(files)
        return {"changed": True, "written": [file["path"] for file in files]}

    monkeypatch.setattr(action, "module", module, raising=False)
    monkeypatch.setattr(action, "_find_needle", lambda folder, name: f"{folder}/{name}", raising=False)
    result = action.work({"plan": plan})
    assert result["written"] == [file["path"] for file in asked]
    return {file["path"]: file["content"] for file in asked} or None


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    file = tmp_path / "files/key.pub"
    file.write_bytes(KEY)
    return file


def complete() -> dict[str, Any]:
    """A host that has all of DOCA's files."""
    repository = doca.repository_files("debian", url=URL, version="3.2.0", profile="doca-ofed", key=KEY.decode())
    return on_host([*repository, *hook_files("debian", planned=True)])


def test_a_host_in_order_is_not_asked(monkeypatch: pytest.MonkeyPatch, key_file: Path) -> None:
    key_file.unlink()
    assert ask(monkeypatch, DOCA, complete()) is None
    assert ask(monkeypatch, INBOX, {}) is None


def test_a_new_host_gets_the_key_first_and_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(monkeypatch, DOCA, {}) or {}
    assert list(asked) == [doca.APT_KEY, doca.APT_ENTRY, doca.APT_PIN, *DEBIAN]
    assert asked[doca.APT_KEY] == KEY.decode()


def test_only_what_differs_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    files = complete()
    files[doca.APT_PIN]["sha256"] = "0" * 64
    assert list(ask(monkeypatch, DOCA, files) or {}) == [doca.APT_PIN]


def test_another_stack_takes_the_repository_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(monkeypatch, BUNDLE, complete()) == dict.fromkeys([doca.APT_KEY, doca.APT_ENTRY, doca.APT_PIN])
    assert ask(monkeypatch, INBOX, complete()) == dict.fromkeys([doca.APT_KEY, doca.APT_ENTRY, doca.APT_PIN, *DEBIAN])


def test_a_repository_that_nobody_knows_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(ask(monkeypatch, {**DOCA, "doca": {"repository": None}}, {}) or {}) == list(DEBIAN)


def test_another_key_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnsibleError, match=f"has the SHA-256 {SUM}; .*key_checksum is {'0' * 64}: it is another key"):
        ask(monkeypatch, DOCA, {}, checksum="0" * 64)


def test_a_relative_file_is_beside_the_inventory(monkeypatch: pytest.MonkeyPatch, key_file: Path, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    key_file.rename(inventory / "key.pub")
    asked = ask(monkeypatch, DOCA, {}, inventory_dir=str(inventory)) or {}
    assert asked[doca.APT_KEY] == KEY.decode()


def test_a_host_does_not_choose_the_folder_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/key.pub").write_bytes(b"another key")
    forged = str(tmp_path / "elsewhere")
    asked = ask(monkeypatch, DOCA, {}, inventory_dir=forged, ansible_facts={"inventory_dir": forged}) or {}
    assert asked[doca.APT_KEY] == KEY.decode()


def test_a_key_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch, key_file: Path) -> None:
    key_file.write_bytes(b"\x99\x01\x0d")
    with pytest.raises(AnsibleError, match="not ASCII-armored"):
        ask(monkeypatch, DOCA, {}, checksum=hashlib.sha256(b"\x99\x01\x0d").hexdigest())


class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/key.pub" else 404)
        self.end_headers()
        self.wfile.write(KEY)

    def log_message(self, *_words: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Keys) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_key_by_url_is_fetched_on_the_control_node(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    asked = ask(monkeypatch, DOCA, {}, key={"url": f"{server}/key.pub"}) or {}
    assert asked[doca.APT_KEY] == KEY.decode()
    with pytest.raises(AnsibleError, match=f"Cannot download .*{server}/nokey"):
        ask(monkeypatch, DOCA, {}, key={"url": f"{server}/nokey"})
