# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schema: it is complete, and its forms let nothing through that a shell, a unit or a file could take for more than a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.docs import PLAN_STAGE
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Form, Key
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema import fabric, metrics, nccl, table
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RUN, SECTIONS

FORMS = {name.lstrip("_"): form for room in (table, fabric, metrics, nccl) for name, form in vars(room).items() if isinstance(form, Form)}
GOOD = {
    "NAME": ["rail0", "a-b_c", "A" * 32],
    "PCI": ["0000:3d:00.0"],
    "MAC": ["52:54:00:1a:01:01"],
    "HOST": ["node1", "gpu-01.example.org", "10.0.0.1"],
    "FILE": ["plan.yml", "plans/a.yml", "/etc/x/.plan"],
    "ABSOLUTE": ["/etc/nccl.conf", "/home/u/.nccl.conf"],
    "INTERFACE": ["eth0", "bond0.100", "enp1s0f0np0"],
    "VERSION": ["2.20.5", "2.21"],
    "SYSCTL_NAME": ["net.ipv4.conf.all.arp_ignore", "net/ipv4/conf/eth0/rp_filter", "vm.swappiness"],
    "SYSCTL_VALUE": ["1", "4096 87380 6291456", "cubic"],
    "NCCL_NAME": ["NCCL_IB_TC", "UCX_TLS"],
    "ENVIRONMENT_NAME": ["LD_LIBRARY_PATH", "_x", "http_proxy"],
    "NCCL_VALUE": ["", "=mlx5_0:1,mlx5_1:1", "^docker0", "/etc/topo.xml", "0x10"],
    "PACKAGE": ["libnccl2", "libnccl-dev", "libstdc++6"],
    "PLUGIN_NAME": ["mesh", "aws-ofi", "0x"],
    "PLUGIN_VERSION": ["679a394", "v1.16.2", "2.0+mesh"],
    "PACKAGE_VERSION": ["2.30.7-1+cuda13.0", "1:4.1.4-3", "4.1.4-3.el9_2"],
    "LABEL": ["cluster", "rack_row2"],
    "LABEL_VALUE": ["a", "eu-1/r2:3"],
    "CHECK": ["link.state", "pair.bandwidth", "host.memlock_x"],
    "ADDRESS": ["192.168.100.1/24", "10.0.0.0/31", "10.0.0.7/32", "2001:db8::1/64", "fd00::/127", "2001:db8::/128"],
    "IPV4_ADDRESS": ["192.168.100.1/24", "10.0.0.0/31", "10.0.0.7/32"],
    "ROUTER": ["192.168.100.254", "10.0.0.1", "2001:db8::ff", "fe80::1"],
    "SUBNET": ["192.168.0.0/16", "10.0.0.0/31", "10.0.0.7/32", "2001:db8::/32", "fd00::/8"],
    "GUID": ["0x0002c9030002fb05"],
    "HEX64": ["0xfe80000000000001"],
    "HOST_OR_GUID": ["node1", "0x0002c9030002fb05"],
    "VL_TABLE": ["0:4", "0:4,1:255"],
    "SL_TABLE": ["0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7"],
    "DATE": ["2026-12-31", "2028-02-29"],
}
LINES = ["a\n", "\na", "a\r", "a\x00", "a\x1b[0m", "a\u2028", "räil", "٣"]
SHELL = [f"a{character}b" for character in ";|&><$`'\"\\*?()[]{}#!~"]
PATHS = ["..", "../x", "/../x", "a/../b", "-rf"]
HOSTILE = [
    *((name, value) for name in FORMS for value in (*LINES, *SHELL)),
    *((name, value) for name in FORMS if not name.endswith("VALUE") for value in PATHS),
]


def every_key(key: Key) -> Iterator[Key]:
    yield key
    for inner in (*(key.keys or {}).values(), *([key.each] if key.each else [])):
        yield from every_key(inner)


KEYS = [inner for key in (*(section.key for section in SECTIONS.values()), *RUN.values()) for inner in every_key(key)]


def test_every_form_is_tested() -> None:
    assert FORMS.keys() == GOOD.keys()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in GOOD.items() for value in values])
def test_a_form_takes_what_is_good(name: str, value: str) -> None:
    assert FORMS[name].parse(value) == value


@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_a_form_refuses_what_is_more_than_a_value(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        FORMS[name].parse(value)


@given(st.sampled_from(sorted(FORMS)), st.text(max_size=20))
def test_what_a_form_takes_is_printable_ascii_without_the_shell_s_own(name: str, value: str) -> None:
    try:
        taken = FORMS[name].parse(value)
    except ValueError:
        return
    assert taken.isascii()
    assert taken.isprintable() or not taken
    assert not set(taken) & set(";&|<>$`\"'\\*?()[]{}#!~")


@pytest.mark.parametrize(
    "value",
    ["192.168.1.0/24", "192.168.1.255/24", "192.168.1.1", "127.0.0.1/8", "224.0.0.1/24", "0.0.0.0/0", "fe80::1/64", "10.0.0.1/24/8"],
)
def test_an_address_that_no_host_can_have(value: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        FORMS["ADDRESS"].parse(value)


@pytest.mark.parametrize("value", ["2026-02-30", "31.12.2026", "20261231", "2026-W01-1", "2026-12-31 "])
def test_a_date_that_is_none(value: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        FORMS["DATE"].parse(value)


def test_every_key_says_what_it_means_in_a_sentence() -> None:
    assert len(KEYS) > 60
    assert [key for key in KEYS if not key.meaning[:1].strip() or not key.meaning.endswith((".", ")"))] == []


@pytest.mark.parametrize("key", [key for key in KEYS if key.default is not None], ids=lambda key: key.meaning[:30])
def test_a_default_is_what_its_key_allows(key: Key) -> None:
    value: Any = key.default
    assert isinstance(value, key.types)
    assert not key.required
    # Where numbers are taken too, the words are what may stand in their place.
    assert not key.choices or value in key.choices or (int in key.types and isinstance(value, int))
    if not isinstance(value, str):
        assert key.minimum is None or value >= key.minimum
        assert key.maximum is None or value <= key.maximum
    assert key.form is None or key.form.parse(value) == value


def test_stages_that_read_are_stages() -> None:
    assert {stage for section in SECTIONS.values() for stage in section.stages} <= {
        *STAGES,
        "every",
        "drill",
        "exporter",
        "soak",
        *PLAN_STAGE,
    }
