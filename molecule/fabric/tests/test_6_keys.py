# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fabric with an M_Key at protection level 2 and an SA_Key: our own tools read it by the file that only root reads.

opensm, its SA_Key and the tools are real. ibsim's ports answer without an M_Key, so that a stand-in (m_key.c) drops what real ports would
not answer.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric import tools as fabric_tools
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import FabricFacts, read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.smpquery import parse_pkeys
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools, keys_text
from lab import fabric
from lab.fabric import Fabric, FabricRequest
from lab.fabric_plan import Shape
from tests.verify.fabric import OnFabric

NAME = "mfabric8"
M_KEY, SA_KEY = "0x00000000deadbeef", "0x00000000cafef00d"


class Protected(OnFabric):
    """The tools on ports that do not answer without the M_Key; what was on their command lines is kept."""

    def __init__(self, there: Fabric, shim: Path) -> None:
        super().__init__(there, "node2 mlx5_0")
        self.shim = shim
        self.argvs: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        self.argvs.append(argv)
        words, environment = fabric.tool(self.there, argv, node=self.node)
        environment = {**environment, "LD_PRELOAD": f"{self.shim} {environment['LD_PRELOAD']}", "M_KEY": M_KEY}
        done = subprocess.run(
            words, env=environment, cwd=self.there.folder.clients, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    shim = tmp_path_factory.mktemp("shim") / "m_key.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, Path(__file__).parent / "m_key.c", "-ldl"], check=True)
    fabric.up(NAME, Shape("leafspine", 4, 1), FabricRequest(options={"m_key": M_KEY, "m_key_protection_level": "2", "sa_key": SA_KEY}))
    yield Protected(fabric.load(NAME), shim)
    fabric.down(NAME)


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the role writes the file of the plane."""
    path = tmp_path / "diags-blue.conf"
    monkeypatch.setattr(fabric_tools, "keys_path", lambda _plane: str(path))
    return path


def read(runner: Protected) -> FabricFacts:
    # The kernel ends a query that is not answered; behind the stand-in ibnetdiscover waits until it is ended.
    return read_fabric(runner, SysRoot("/"), Asked("blue", data=True, timeout_seconds=30))


def test_without_the_file_the_fabric_is_not_read_and_that_is_reported(protected: Protected, keys: Path) -> None:
    assert not keys.exists()
    assert not read(protected).graph.complete


def test_with_the_file_all_is_read_and_no_key_is_on_a_command_line(protected: Protected, keys: Path) -> None:
    keys.write_text(keys_text(M_KEY, SA_KEY) or "")
    keys.chmod(0o600)
    facts = read(protected)
    assert (facts.graph.complete, facts.graph.problems) == (True, [])
    assert len([node for node in facts.graph.nodes.values() if node.kind == "host"]) == 4
    managers = read_managers(Tools(protected, SysRoot("/"), Asked("blue")), identify=True)
    assert managers.why_not is None
    assert [(each.kind, each.description, each.state) for each in managers.known or ()] == [("host", "node1 mlx5_0", "MASTER")]
    (master,) = managers.known or ()
    tools = Tools(protected, SysRoot("/"), Asked("blue"))
    assert tools.run("smpquery", ["pkeys", str(master.lid), "1"], parse_pkeys)
    text = repr((protected.argvs, facts, managers, tools.problems))
    assert str(keys) in text
    for key in ("deadbeef", "cafef00d", str(int(M_KEY, 16)), str(int(SA_KEY, 16))):
        assert key not in text.lower()


def test_the_administrator_takes_its_key_from_the_file(protected: Protected, keys: Path) -> None:
    """opensm answers a query for P_Keys to those alone who have the SA_Key."""
    assert Tools(protected, SysRoot("/"), Asked("blue")).run("saquery", ["PKTR"], lambda text: text) is None
    keys.write_text(keys_text(None, SA_KEY) or "")
    assert "PKeyTableRecord" in (Tools(protected, SysRoot("/"), Asked("blue")).run("saquery", ["PKTR"], lambda text: text) or "")
