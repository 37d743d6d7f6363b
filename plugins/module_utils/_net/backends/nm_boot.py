# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which profile NetworkManager would activate on an interface at the next boot, and the settings in it.

The result has the form of network_files.BootNetwork. A profile that names no interface fits every one of its type. Of those that fit,
NetworkManager takes the one with the highest autoconnect-priority; among equals it prefers the one that was used last, which is not
known here. Profiles in the form of RHEL's network scripts (ifcfg-*) count as claims: their settings are not compared.
Sources: nm-settings-keyfile(5), nm-settings(5), NetworkManager.conf(5) of NetworkManager 1.36 to 1.54.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import (
    BootNetwork,
    BootSetting,
    Card,
    Setting,
    parse_network_settings,
    read_card,
)

#: In the order of precedence: a profile hides others with its UUID.
PROFILE_FOLDERS = (
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
)
SCRIPTS = "/etc/sysconfig/network-scripts"
CONF_FOLDERS = ("/usr/lib/NetworkManager/conf.d", "/run/NetworkManager/conf.d", "/etc/NetworkManager/conf.d")
CONF = "/etc/NetworkManager/NetworkManager.conf"
#: Section and type of profile for the ARPHRD number of an interface.
KINDS = {1: ("ethernet", "802-3-ethernet"), 32: ("infiniband",)}
_FALSE = ("false", "no", "0", "off")
_ADDRESS_KEY = re.compile(r"address(?:es)?[0-9]*")


@dataclass(frozen=True)
class Profile:
    """A profile. settings: its lines; error: why it could not be read."""

    path: str
    settings: list[Setting]
    error: str | None = None

    def value(self, section: str, key: str) -> str:
        """Return the last value of a key; "" without one."""
        return next((each.value for each in reversed(self.settings) if (each.section, each.key) == (section, key)), "")

    @property
    def priority(self) -> int:
        text = self.value("connection", "autoconnect-priority")
        return int(text) if re.fullmatch(r"-?[0-9]{1,4}", text) else 0


def read_profiles(sys: SysRoot) -> list[Profile]:
    """Return all profiles that may be activated at boot, and those that cannot be read."""
    found: dict[str, Profile] = {}
    for folder in PROFILE_FOLDERS:
        for name in sys.list_dir(folder):
            if name.endswith(".nmconnection") or folder == PROFILE_FOLDERS[0]:
                profile = _read(sys, f"{folder}/{name}")
                found.setdefault(profile.value("connection", "uuid") or profile.path, profile)
    scripts = [f"{SCRIPTS}/{name}" for name in sys.list_dir(SCRIPTS) if name.startswith("ifcfg-") and name != "ifcfg-lo"]
    return [*found.values(), *(_script(sys, path) for path in scripts)]


def _read(sys: SysRoot, path: str) -> Profile:
    try:
        return Profile(path, parse_network_settings(sys.read(path) or "", path))
    except (OSError, UnicodeDecodeError) as error:
        return Profile(path, [], f"{path} cannot be read ({error})")


def _script(sys: SysRoot, path: str) -> Profile:
    """Return a network script of RHEL as a profile: what decides whether it fits an interface."""
    read = _read(sys, path)
    given = {each.key: each.value.strip("\"'") for each in read.settings}
    kind = "infiniband" if given.get("TYPE", "").lower() == "infiniband" else "ethernet"
    translated = {
        ("connection", "type"): kind,
        ("connection", "interface-name"): given.get("DEVICE", ""),
        ("connection", "autoconnect"): "false" if given.get("ONBOOT", "yes").lower() in _FALSE else "true",
        ("connection", "autoconnect-priority"): given.get("AUTOCONNECT_PRIORITY", ""),
        (kind, "mac-address"): given.get("HWADDR", ""),
    }
    return Profile(path, [Setting(*name, value, f"{path}:1") for name, value in translated.items()], read.error)


def boot_profile(profiles: Sequence[Profile], card: Card, unmanaged: BootSetting | None) -> BootNetwork:
    """Return what the profiles configure for an interface. unmanaged: the setting by which NetworkManager leaves it alone."""
    if unmanaged is not None:
        return BootNetwork(others=[unmanaged])
    verdicts = [(profile, *_fits(profile, card)) for profile in profiles]
    fitting = [profile for profile, verdict, _why in verdicts if verdict]
    unknown = [(profile, why) for profile, verdict, why in verdicts if verdict is None]
    best = max(fitting, key=lambda each: each.priority, default=None)
    least = best.priority if best is not None else None
    undecided = [BootSetting(why, each.path) for each, why in unknown if least is None or each.priority >= least or each.error]
    if best is None:
        return BootNetwork(undecided=undecided)
    equal = [each for each in fitting if each is not best and each.priority == best.priority]
    undecided += [BootSetting(f"autoconnect-priority={each.priority}, like {best.path}", each.path) for each in equal]
    return _effective(best, undecided)


def read_boot_profiles(sys: SysRoot, names: Collection[str]) -> dict[str, BootNetwork]:
    """Return the same for several interfaces, by name."""
    profiles, conf = read_profiles(sys), read_conf(sys)
    cards = {name: read_card(sys, name) for name in names}
    return {name: boot_profile(profiles, card, unmanaged_by(conf, card)) for name, card in cards.items()}


def read_conf(sys: SysRoot) -> list[Setting]:
    """Return the lines of NetworkManager's configuration, in the order in which later ones override earlier ones."""
    names: dict[str, str] = {}
    for folder in CONF_FOLDERS:
        names.update({name: f"{folder}/{name}" for name in sys.list_dir(folder) if name.endswith(".conf")})
    below = [path for _name, path in sorted(names.items())]
    vendor = [path for path in below if not path.startswith(CONF_FOLDERS[2])]
    return [setting for path in (*vendor, CONF, *(path for path in below if path not in vendor)) for setting in _read(sys, path).settings]


def unmanaged_by(conf: Sequence[Setting], card: Card) -> BootSetting | None:
    """Return the setting by which NetworkManager does not manage an interface: `unmanaged-devices`, or `managed` of a device section."""
    found: BootSetting | None = None
    sections: dict[str, dict[str, Setting]] = {}
    for setting in conf:
        key = setting.key.rstrip("+-")
        if (setting.section, key) == ("keyfile", "unmanaged-devices"):
            has = _matches_device(setting.value, card)
            found = BootSetting(f"unmanaged-devices={setting.value}", setting.where) if has else (None if key == setting.key else found)
        if setting.section.startswith("device"):
            sections.setdefault(setting.section, {})[key] = setting
    for keys in sections.values():
        managed = keys.get("managed")
        match = keys["match-device"].value if "match-device" in keys else "*"
        if managed is not None and managed.value.lower() in _FALSE and _matches_device(match, card):
            return BootSetting(f"managed={managed.value}", managed.where)
    return found


def _matches_device(text: str, card: Card) -> bool:
    """Return whether a list of devices, "interface-name:ib*;mac:02:…;except:driver:veth", has an interface. Unknown kinds do not match."""
    matched = False
    for word in filter(None, re.split(r"[;,]", text.strip().strip("\"'"))):
        spec, inverted = (word[len("except:") :], True) if word.startswith("except:") else (word, False)
        kind, colon, value = spec.partition(":")
        kinds = KINDS.get(card.type or 0, ("",))
        seen: Mapping[str, str | None] = {"interface-name": card.name, "mac": card.mac, "driver": card.driver, "type": kinds[0]}
        fits = spec == "*" or (bool(colon) and _equal(kind, value, seen.get(kind))) or (not colon and fnmatch.fnmatchcase(card.name, spec))
        if fits and inverted:
            return False
        matched = matched or fits
    return matched


def _equal(kind: str, value: str, seen: str | None) -> bool:
    if seen is None:
        return False
    return value.lower() == seen.lower() if kind == "mac" else fnmatch.fnmatchcase(seen, value.lstrip("="))


def _fits(profile: Profile, card: Card) -> tuple[bool | None, str]:
    """Return whether a profile fits an interface and is activated by itself, None if that is unknown, and why."""
    if profile.error is not None:
        return None, profile.error
    kind = profile.value("connection", "type")
    if (
        kind not in ((card.kind,) if card.kind else KINDS.get(card.type or 0, ()))
        or profile.value("connection", "autoconnect").lower() in _FALSE
    ):
        return False, ""
    mac = next((profile.value(name, "mac-address") for name in KINDS[card.type or 0] if profile.value(name, "mac-address")), "")
    wanted = {
        "interface-name": ([profile.value("connection", "interface-name")], card.name),
        "match.interface-name": (profile.value("match", "interface-name").split(";"), card.name),
        "match.path": (profile.value("match", "path").split(";"), card.id_path),
        "match.driver": (profile.value("match", "driver").split(";"), card.driver),
        "mac-address": ([mac.lower()], card.permanent or card.mac),
    }
    given = {key: ([each for each in patterns if each], seen) for key, (patterns, seen) in wanted.items()}
    given = {key: each for key, each in given.items() if each[0]}
    if any(seen is not None and not any(fnmatch.fnmatchcase(seen, pattern) for pattern in patterns) for patterns, seen in given.values()):
        return False, ""
    unknown = [key for key, (_patterns, seen) in given.items() if seen is None]
    return (None, f"{', '.join(unknown)} cannot be compared") if unknown else (True, "")


def _effective(profile: Profile, undecided: list[BootSetting]) -> BootNetwork:
    """Return the MTU and the addresses of a profile, and settings that would not bring the rail up as planned."""
    mtu: BootSetting | None = None
    addresses: list[BootSetting] = []
    wrong: list[BootSetting] = []
    advertisements: BootSetting | None = None
    for each in profile.settings:
        if each.key == "mtu" and each.section in ("ethernet", "802-3-ethernet", "infiniband") and each.value not in ("", "0", "auto"):
            mtu = BootSetting(each.value, each.where)
        elif each.section in ("ipv4", "ipv6") and _ADDRESS_KEY.fullmatch(each.key):
            addresses += [BootSetting(value.split(",")[0], each.where) for value in each.value.split(";") if value]
        elif (each.section, each.key, each.value) == ("ipv4", "method", "auto"):
            wrong.append(BootSetting("method=auto", each.where))
        elif (each.section, each.key) == ("ipv6", "method"):
            advertisements = BootSetting(f"method={each.value}", each.where) if each.value in ("auto", "dhcp") else None
    return BootNetwork(profile.path, mtu, addresses, wrong, undecided, advertisements=advertisements)
