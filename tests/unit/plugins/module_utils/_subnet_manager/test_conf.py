# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""opensm.conf, against what the real opensm writes as its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.conf import (
    KEYS,
    UPDATABLE,
    parse_conf,
    port_changes,
    redacted,
    render_conf,
    restart_reasons,
    settings,
    with_port_settings_of,
)
from tests.unit.builders.subnet_managers import manager

DEFAULTS = Path(__file__).parents[3] / "fixtures/opensm/opensm-3.3.23-defaults.conf"
PARTITIONS = "/etc/rdma-cluster/partitions-a.conf"


def text(keys: dict[str, str | None] | None = None, **given: Any) -> str:
    return render_conf("a", manager(**given), keys or {}, PARTITIONS)


def test_our_defaults_are_opensm_s_own() -> None:
    theirs = parse_conf(DEFAULTS.read_text(encoding="utf-8"))
    ours = parse_conf(text())
    assert len(theirs) > 150
    assert {name: (value, theirs.get(name)) for name, value in ours.items() if value != theirs.get(name)} == {
        "partition_config_file": (PARTITIONS, "/etc/opensm/partitions.conf")
    }


def test_what_is_requested_is_written_in_opensm_s_words() -> None:
    found = parse_conf(
        text(
            {"m_key": "0x00000000000000ff", "sa_key": None},
            routing="ftree", lmc=2, sweep_interval_seconds=30, partition_enforcement="out", log={"flags": 7, "flush": True},
            qos={"enabled": True, "max_vls": 4, "sl2vl": "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7"}, m_key_protection_level=2,
        )
    )  # fmt: skip
    assert found["routing_engine"] == "ftree"
    assert (found["lmc"], found["sweep_interval"], found["part_enforce"], found["log_flags"]) == ("2", "30", "out", "0x07")
    assert (found["qos"], found["force_log_flush"], found["qos_max_vls"]) == ("TRUE", "TRUE", "4")
    assert found["qos_vlarb_high"] == "(null)"
    assert (found["m_key"], found["sa_key"], found["m_key_protection_level"]) == ("0x00000000000000ff", KEYS["sa_key"], "2")


def test_the_file_is_the_same_on_every_host_of_a_plane() -> None:
    """A second subnet manager with another configuration is the harm: nothing of one host is in the file."""
    assert not {"guid", "sm_priority", "log_file"} & parse_conf(text()).keys()


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({"sweep_interval_seconds": 5}, []),
        ({"m_key_protection_level": 1, "log": {"flags": 15}}, []),
        ({"qos": {"enabled": True, "high_limit": 4}}, []),
        ({"routing": "updn"}, ["routing_engine (null) → updn"]),
        ({"lmc": 1, "sweep_interval_seconds": 5}, ["lmc 0 → 1"]),
        ({"partition_enforcement": "off"}, ["part_enforce both → off"]),
    ],
    ids=["sweep", "m_key", "qos", "routing", "lmc", "enforce"],
)
def test_a_new_start_is_asked_only_where_a_signal_is_not_enough(given: dict[str, Any], reasons: list[str]) -> None:
    assert restart_reasons(text(), text(**given)) == reasons


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({"sweep_interval_seconds": 5, "log": {"flags": 7, "flush": True, "max_size_mb": 9}}, []),
        ({"m_key_protection_level": 2}, ["m_key_protection_level 0 → 2"]),
        ({"m_key_lease_seconds": 60}, ["m_key_lease_period 0 → 60"]),
        ({"qos": {"enabled": True, "sl2vl": "0,1"}}, ["qos FALSE → TRUE", "qos_sl2vl (null) → 0,1"]),
        ({"qos": {"max_vls": 4, "high_limit": 4}}, ["qos_max_vls 0 → 4", "qos_high_limit -1 → 4"]),
        ({"qos": {"vlarb_high": "0:1", "vlarb_low": "0:2"}}, ["qos_vlarb_high (null) → 0:1", "qos_vlarb_low (null) → 0:2"]),
    ],
    ids=["quiet", "level", "lease", "sl2vl", "vls", "vlarb"],
)
def test_what_a_signal_changes_on_the_ports_of_the_fabric(given: dict[str, Any], changes: list[str]) -> None:
    assert port_changes(text(), text(**given)) == changes
    kept = with_port_settings_of(text(**given), text())
    assert port_changes(text(), kept) == []
    assert parse_conf(kept)["sweep_interval"] == parse_conf(text(**given))["sweep_interval"]


def test_a_secret_that_changes_is_not_shown() -> None:
    assert port_changes(text(), text({"m_key": "0x00000000000000ff", "sa_key": "0x00000000000000fe"})) == [
        "m_key changes",
        "sa_key changes",
    ]


def test_a_setting_that_the_present_file_lacks_stays_away() -> None:
    assert with_port_settings_of("# x\nlmc 1\nqos TRUE\n", "lmc 0\n") == "# x\nlmc 1\n"


def test_a_key_that_goes_needs_a_new_start_even_if_a_signal_would_take_over_its_value() -> None:
    assert restart_reasons("sweep_interval 5\n", "") == ["sweep_interval 5 → absent"]


def test_what_a_signal_takes_over_is_known_to_opensm() -> None:
    assert parse_conf(DEFAULTS.read_text(encoding="utf-8")).keys() >= UPDATABLE


def test_secrets_are_not_shown_and_opensm_s_own_are() -> None:
    found = redacted(text({"m_key": "0x00000000000000ff"}), "secret")
    assert "ff" not in parse_conf(found)["m_key"]
    assert parse_conf(found)["m_key"] == "(secret)"
    assert parse_conf(found)["sm_key"] == KEYS["sm_key"]
    assert redacted(text(), "secret") == text()


def test_nvidia_s_key_is_written_only_where_it_is_asked_for() -> None:
    assert "sharp_enabled" not in text()
    assert settings({**manager(), "sharp": True}, {}, PARTITIONS)["sharp_enabled"] == "2"


def test_a_file_is_read_as_opensm_reads_it() -> None:
    assert parse_conf('# x\n\nlmc 1 # two\nlmc 2\nlog_prefix "a b"\nqos\n') == {"lmc": "2", "log_prefix": "a b", "qos": ""}
