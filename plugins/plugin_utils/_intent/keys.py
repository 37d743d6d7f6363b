# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the intent's schema: keys, the forms of their values, and shorthand functions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any


@dataclass(frozen=True)
class Form:
    """The form of a value. words: for a person. parse: returns the value in its normal form, or raises ValueError."""

    words: str
    parse: Callable[[Any], str]
    check: str = "intent.value"


@dataclass(frozen=True)
class Key:
    """One key. A value has one of `types`. None and a missing key are the same, and mean `default`.

    minimum, maximum: of a number. form: of a string; a string without form and choices is one line of printable text. keys: the closed keys
    of a dictionary; with one_of, exactly one must be given. names, each: the form of the free names of a dictionary, and its values; each
    alone: the elements of a list. optional: a dictionary of closed keys that is None if absent, not one of defaults. read: whether a stage
    reads it yet.
    """

    types: tuple[type, ...]
    meaning: str
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    form: Form | None = None
    keys: Mapping[str, Key] | None = None
    one_of: bool = False
    names: Form | None = None
    each: Key | None = None
    optional: bool = False
    read: bool = True


@dataclass(frozen=True)
class Section:
    """One variable of the intent. stages: its readers; ("every",) for all stages, () for none yet."""

    key: Key
    stages: tuple[str, ...] = ()


def is_form(form: Form, value: Any) -> bool:
    """Return whether a value has a form."""
    try:
        form.parse(value)
    except ValueError:
        return False
    return True


def matching(pattern: str, words: str, *, lower: bool = False) -> Form:
    """Return a form by a regular expression for the whole value, ASCII only."""
    compiled = re.compile(pattern, re.ASCII)

    def parse(value: Any) -> str:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            raise ValueError(words)
        return str(value).lower() if lower else str(value)

    return Form(words, parse)


def parse_address(value: Any) -> str:
    """ "192.168.100.1/24", "2001:db8:100::1/64": an address that a host can have, with its prefix length; IPv6 in compressed text."""
    if not isinstance(value, str) or "/" not in value or "%" in value:
        raise ValueError("no prefix length, or a zone")
    address = ipaddress.ip_interface(value)
    inner = address.network.prefixlen < address.max_prefixlen - 1
    last = [address.network.broadcast_address] if address.version == 4 else []
    if inner and address.ip in (address.network.network_address, *last):
        raise ValueError("the address of the subnet itself, which in IPv6 is that of all its routers, or its broadcast address")
    if address.ip.is_loopback or address.ip.is_multicast or address.ip.is_unspecified or address.ip.is_reserved:
        raise ValueError("not a host address")
    if address.ip.version == 6 and not _is_routable(address.ip):
        raise ValueError("link-local, site-local, or an IPv4 address in the form of IPv6")
    return str(address)


def _is_routable(address: ipaddress.IPv6Address) -> bool:
    """Return whether an address is one of a subnet that routers can know, and not an IPv4 address in the form of IPv6."""
    return not (address.is_link_local or address.is_site_local or address.ipv4_mapped is not None)


def parse_ipv4_address(value: Any) -> str:
    """ "192.168.100.1/24": the same, of IPv4 alone."""
    text = parse_address(value)
    if ":" in text:
        raise ValueError("not IPv4")
    return text


def parse_router(value: Any) -> str:
    """ "192.168.100.254", "2001:db8:100::ff", "fe80::1": the address of a router, without a prefix length."""
    if not isinstance(value, str) or "/" in value or "%" in value:
        raise ValueError("not an address without a prefix length and a zone")
    address = ipaddress.ip_address(value)
    if address.version == 6 and not address.is_link_local:
        return parse_address(f"{value}/128").partition("/")[0]
    return str(address)


#: A wider route by a rail would take the traffic of whole parts of the internet along.
MIN_ROUTE_BITS = 8


def parse_subnet(value: Any) -> str:
    """ "192.168.0.0/16", "2001:db8::/32": a network, not an address in it, and none that is wider than /8."""
    if not isinstance(value, str) or "/" not in value:
        raise ValueError("no prefix length")
    network = ipaddress.ip_network(value)
    if network.prefixlen < MIN_ROUTE_BITS or network.is_loopback or network.is_multicast:
        raise ValueError("not a subnet of rails")
    if network.version == 6 and not _is_routable(network.network_address):
        raise ValueError("not a subnet that routers can know")
    return str(network)


def parse_ipv4_subnet(value: Any) -> str:
    """ "192.168.0.0/16": the same, of IPv4 alone."""
    text = parse_subnet(value)
    if ":" in text:
        raise ValueError("not IPv4")
    return text


def parse_guid(value: Any) -> str:
    """Return "0x0c42a103007aca90" for it, or for "0c42:a103:007a:ca90" as sysfs and ibstat write it."""
    if not isinstance(value, str) or re.fullmatch(r"(0x)?[0-9a-fA-F]{16}|[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){3}", value, re.ASCII) is None:
        raise ValueError("not a GUID")
    return "0x" + value.lower().removeprefix("0x").replace(":", "")


def parse_date(value: Any) -> str:
    """ "2026-12-31", which YAML reads as a date if it is not quoted."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str) or re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is None:
        raise ValueError("not a date")
    return date.fromisoformat(value).isoformat()


_SEGMENT = r"[A-Za-z0-9_-]+"
NAME = matching(r"[A-Za-z][A-Za-z0-9_-]{0,31}", "letters, digits, _ and -, at most 32, beginning with a letter")
PCI = matching(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]", "a PCI address (0000:21:00.0)", lower=True)
MAC = matching(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", "a MAC address (52:54:00:12:34:56)", lower=True)
GUID = Form("a GUID in quotes ('0x0c42a103007aca90', or '0c42:a103:007a:ca90')", parse_guid)
HOST = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", "a host name: letters, digits, ., _ and -")
FILE = matching(r"/?[A-Za-z0-9_][A-Za-z0-9._-]*(/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)*", "a file path: letters, digits, /, ., _ and -")
ABSOLUTE = matching(r"(/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)+", "an absolute file path: letters, digits, /, ., _ and -")
INTERFACE = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}", "an interface name: letters, digits, ., _ and -, at most 15")
VERSION = matching(r"[0-9]{1,3}\.[0-9]{1,4}(\.[0-9]{1,4})?", "a version in quotes ('2.20.5')")
SYSCTL_NAME = matching(rf"{_SEGMENT}([./]{_SEGMENT})+", "a kernel parameter (net.ipv4.conf.all.rp_filter)")
SYSCTL_VALUE = matching(r"[A-Za-z0-9._:/-][A-Za-z0-9._:/ -]*", "a number, or one line of letters, digits, spaces and . _ : / -")
# nccl:src/misc/param.cc: name and value have at most 1023 characters, and there is no quoting.
NCCL_NAME = matching(r"(NCCL|UCX)_[A-Z0-9_]{1,250}", "the name of an NCCL or UCX variable (NCCL_IB_QPS_PER_CONNECTION)")
NCCL_VALUE = matching(r"[A-Za-z0-9_.,:/=^%+@-]{0,1023}", "a number, or letters, digits and _ . , : / = ^ % + @ -")
ENVIRONMENT_NAME = matching(r"[A-Za-z_][A-Za-z0-9_]{0,254}", "a variable name (LD_LIBRARY_PATH)")
LABEL = matching(r"[a-zA-Z][a-zA-Z0-9_]{0,62}", "the name of a label: letters, digits and _, beginning with a letter")
LABEL_VALUE = matching(r"[A-Za-z0-9_./:-]{1,128}", "a label's value: letters, digits and _ . / : -")
CHECK = matching(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+", "a check id (link.state)")
ADDRESS = Form(
    "an IPv4 or IPv6 host address with prefix length (192.168.100.1/24, 2001:db8:100::1/64), not link-local",
    parse_address,
    "intent.address",
)
IPV4_ADDRESS = Form("an IPv4 host address with prefix length (192.168.100.1/24)", parse_ipv4_address, "intent.address")
ROUTER = Form("an IPv4 or IPv6 address without prefix length (192.168.100.254, fe80::1)", parse_router, "intent.address")
SUBNET = Form("an IPv4 or IPv6 network with prefix length (192.168.0.0/16, 2001:db8::/32), of at least 8", parse_subnet, "intent.address")
IPV4_SUBNET = Form("an IPv4 network with prefix length (10.1.0.0/16), of at least 8", parse_ipv4_subnet, "intent.address")
DATE = Form("a date (2026-12-31)", parse_date)


def text(meaning: str, form: Form | None = None, **more: Any) -> Key:
    return Key((str,), meaning, form=form, **more)


def choice(meaning: str, default: str | None, *choices: str, **more: Any) -> Key:
    return Key((str,), meaning, default, choices=choices, **more)


def flag(meaning: str, default: bool, **more: Any) -> Key:
    return Key((bool,), meaning, default, **more)


def integer(meaning: str, minimum: int, maximum: int, **more: Any) -> Key:
    return Key((int,), meaning, minimum=minimum, maximum=maximum, **more)


def number(meaning: str, minimum: float, maximum: float | None = None, **more: Any) -> Key:
    return Key((int, float), meaning, minimum=minimum, maximum=maximum, **more)


def keys(meaning: str, **of: Key) -> Key:
    return Key((dict,), meaning, keys=of)


def optional(key: Key) -> Key:
    """Return a dictionary of closed keys that may be absent as a whole."""
    return replace(key, optional=True)


def named(meaning: str, names: Form, each: Key) -> Key:
    return Key((dict,), meaning, names=names, each=each)
