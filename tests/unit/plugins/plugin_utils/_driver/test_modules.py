# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import CORE_MODULES, needed_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_intent, lab_rails


def hard_intent() -> dict[str, Any]:
    intent = lab_intent()
    return {**intent, "rails": [{**rail, "soft": False} for rail in lab_rails()]}


@pytest.mark.parametrize(
    ("device", "netdev", "modules"),
    [
        ("mlx5_core", "mlx5_core", ["mlx5_core", "mlx5_ib"]),
        ("mlx5_core.sf", "mlx5_core.sf", ["mlx5_core", "mlx5_ib"]),
        ("bnxt_en", "bnxt_en", ["bnxt_en", "bnxt_re"]),
        ("mlx4_core", "mlx4_en", ["mlx4_core", "mlx4_ib"]),
        ("efa", None, ["efa"]),
        ("hns3", "hns3", ["hns3", "hns_roce_hw_v2"]),
        ("mana", "mana", ["mana", "mana_ib"]),
        (None, "ice", ["ice", "irdma"]),
        (None, "ionic", ["ionic", "ionic_rdma"]),
        (None, "qede", ["qede", "qedr"]),
        (None, "virtio_net", ["mlx5_core", "mlx5_ib"]),
        (None, None, ["mlx5_core", "mlx5_ib"]),
    ],
)
def test_the_modules_of_a_card_are_those_of_its_driver(device: str | None, netdev: str | None, modules: list[str]) -> None:
    facts = lab_facts()
    for number in (0, 1):
        facts["devices"][f"rxe_rail{number}"].update(driver=device, software=False)
        facts["netdevs"][f"ens{number + 1}"]["driver"] = netdev
    assert needed_modules(hard_intent(), from_dict(facts)) == [*CORE_MODULES, *modules]


def test_a_software_device_on_a_card_says_nothing_of_the_card() -> None:
    assert needed_modules(hard_intent(), from_dict(lab_facts())) == [*CORE_MODULES, "mlx5_core", "mlx5_ib"]
    assert needed_modules(lab_intent(), from_dict(lab_facts())) == [*CORE_MODULES, "rdma_rxe"]
    assert needed_modules(hard_intent(), from_dict({})) == [*CORE_MODULES, "mlx5_core", "mlx5_ib"]


@pytest.mark.parametrize("stack", ["doca", "mlnx_ofed"])
def test_an_add_on_is_loaded_whatever_the_cards_are(stack: str) -> None:
    planned = {**lab_intent(), "driver": {"stack": stack, "profile": "doca-ofed"}}
    assert needed_modules(planned, from_dict(lab_facts())) == [*CORE_MODULES, "mlx5_core", "rdma_rxe"]
    hard = {**hard_intent(), "driver": {"stack": stack, "profile": "doca-ofed"}}
    assert needed_modules(hard, from_dict(lab_facts())) == [*CORE_MODULES, "mlx5_core", "mlx5_ib"]


def test_docas_userspace_brings_no_modules() -> None:
    planned = {**lab_intent(), "driver": {"stack": "doca", "profile": "doca-ofed-userspace"}}
    assert needed_modules(planned, from_dict(lab_facts())) == needed_modules(lab_intent(), from_dict(lab_facts()))
