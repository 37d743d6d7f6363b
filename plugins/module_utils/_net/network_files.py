# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which .network file systemd-networkd applies to an interface at the next boot, and the settings in that file and its drop-ins.

Sources: systemd.network(5); networkd-network.c, net-condition.c and conf-files.c of systemd 249 to 257.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import NETPLAN_FOLDERS, read_networkd_link

#: In the order of precedence: a file hides others of its name. /run is written again at each boot, for example by netplan.
FOLDERS = ("/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network")
SUFFIX, NETDEV_SUFFIX = ".network", ".netdev"
#: ARPHRD numbers → networkd's types.
TYPES = {1: "ether", 32: "infiniband"}
#: Keys of [Match] that never match a network card with a device below it: only virtual and wireless interfaces have them.
VIRTUAL = frozenset({"Kind", "WLANInterfaceType", "SSID", "BSSID"})
#: Kinds of interfaces without a device below them, and the keys of [Match] for what they do not have.
MADE = ("vlan", "bond")
NOT_MADE = frozenset({"Path", "PermanentMACAddress"})
#: Settings that prevent systemd-networkd from bringing a rail up with its address; key → the values that do not.
OTHERS = {
    ("Link", "Unmanaged"): ("no", "false", "0", "off", ""),
    ("Link", "ActivationPolicy"): ("up", "always-up", ""),
    ("Network", "DHCP"): ("no", "false", "0", "off", ""),
}
#: Values of IPv6AcceptRA= that leave router advertisements out.
_NO_ADVERTISEMENTS = ("no", "false", "0", "off")
_SECTION = re.compile(r"\[([^\]]*)\]")
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,10})([KMG]?)")


@dataclass(frozen=True)
class Setting:
    """One line. where: "FILE:LINE"."""

    section: str
    key: str
    value: str
    where: str


@dataclass(frozen=True)
class BootSetting:
    """A value and its place, "FILE:LINE"."""

    value: str
    where: str


@dataclass(frozen=True)
class BootNetwork:
    """What systemd-networkd does with an interface at the next boot.

    file: the .network file that it applies, None for none; mtu: MTUBytes=, in bytes if it is a size; others: settings that prevent the
    file's purpose, "DHCP=yes". undecided: files before it that may or may not apply, with the reason. source: the place in netplan's files
    from which the file was rendered, "FILE:LINE". advertisements: the setting by which routers add IPv6 addresses.
    """

    file: str | None = None
    mtu: BootSetting | None = None
    addresses: list[BootSetting] = field(default_factory=list)
    others: list[BootSetting] = field(default_factory=list)
    undecided: list[BootSetting] = field(default_factory=list)
    source: str | None = None
    advertisements: BootSetting | None = None


@dataclass(frozen=True)
class NetworkFile:
    """A file and its drop-ins. error: why it could not be read; parts: the paths of all of them."""

    path: str
    settings: list[Setting]
    error: str | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """The properties of an interface that [Match] compares. id_path: udev's; None for unknown ones.

    kind: "vlan" for a VLAN interface, "bond" for a bond, as the kernel's DEVTYPE says. permanent: the MAC that a bond hides.
    """

    name: str
    mac: str | None = None
    type: int | None = None
    driver: str | None = None
    id_path: str | None = None
    kind: str | None = None
    permanent: str | None = None


def parse_network_settings(text: str, path: str) -> list[Setting]:
    """Return the settings of one file. A line that ends with "\\" continues in the next one; "#" and ";" begin comments."""
    settings, section, start, pending = [], "", 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if pending and line.lstrip().startswith(("#", ";")):
            continue
        start = start if pending else number
        whole = (pending + line).strip()
        pending = ""
        if whole.startswith(("#", ";")):
            continue
        if whole.endswith("\\"):
            pending = whole[:-1] + " "
            continue
        head = _SECTION.fullmatch(whole)
        key, equals, value = whole.partition("=")
        if head is not None:
            section = head[1]
        elif equals:
            settings.append(Setting(section, key.strip(), value.strip(), f"{path}:{start}"))
    return settings


def read_network_files(sys: SysRoot) -> list[NetworkFile]:
    """Return all files in the order in which they are tried. An empty file, or a link to /dev/null, hides others and never applies."""
    return [_read_file(sys, name, path) for name, path in _by_name(sys, FOLDERS, SUFFIX)]


def _by_name(sys: SysRoot, folders: Sequence[str], suffix: str) -> list[tuple[str, str]]:
    """Return names and paths, sorted by name; if a name occurs twice, the first folder's file."""
    paths: dict[str, str] = {}
    for folder in folders:
        for name in sys.list_dir(folder):
            if name.endswith(suffix):
                paths.setdefault(name, f"{folder}/{name}")
    return sorted(paths.items())


def _read_file(sys: SysRoot, name: str, path: str) -> NetworkFile:
    drop_ins = [each for _name, each in _by_name(sys, [f"{folder}/{name}.d" for folder in FOLDERS], ".conf")]
    settings: list[Setting] = []
    parts = (path, *drop_ins)
    for each in parts:
        if sys.link_target(each) == "/dev/null":
            continue
        try:
            text = sys.read(each)
        except (OSError, UnicodeDecodeError) as error:
            return NetworkFile(path, settings, f"{each} cannot be read ({error})", parts)
        if each == path and not (text or "").strip():
            return NetworkFile(path, [], parts=parts)
        settings += parse_network_settings(text or "", each)
    return NetworkFile(path, settings, parts=parts)


def read_card(sys: SysRoot, name: str) -> Card:
    """Return an interface as [Match] sees it, from sysfs and udev's database."""
    base = f"/sys/class/net/{name}"
    number, index = sys.text(f"{base}/type"), sys.text(f"{base}/ifindex")
    driver = sys.link_target(f"{base}/device/driver")
    udev = (sys.read(f"/run/udev/data/n{index}") or "").split("\n") if index else []
    return Card(
        name=name,
        mac=(sys.text(f"{base}/address") or "").lower() or None,
        type=int(number) if number and number.isdecimal() else None,
        driver=driver.rsplit("/", maxsplit=1)[-1] if driver is not None else None,
        id_path=next((line.partition("=")[2] for line in udev if line.startswith("E:ID_PATH=")), None),
        permanent=(sys.text(f"{base}/bonding_slave/perm_hwaddr") or "").lower() or None,
        kind=next((kind for kind in MADE if f"DEVTYPE={kind}" in (sys.read(f"{base}/uevent") or "").split("\n")), None),
    )


def boot_network(files: Sequence[NetworkFile], card: Card) -> BootNetwork:
    """Return what the files configure for an interface; the first one that applies counts."""
    undecided: list[BootSetting] = []
    for file in files:
        verdict, why = _applies(file, card)
        if verdict:
            return _effective(file, undecided)
        if verdict is None:
            undecided.append(BootSetting(why, file.path))
    return BootNetwork(undecided=undecided)


def read_boot_networks(sys: SysRoot, names: Collection[str]) -> dict[str, BootNetwork]:
    """Return the same for several interfaces, by name."""
    files = read_network_files(sys)
    found = {name: boot_network(files, read_card(sys, name)) for name in names}
    return {name: replace(boot, source=_netplan_place(sys, boot.file)) if boot.file else boot for name, boot in found.items()}


def _netplan_place(sys: SysRoot, file: str) -> str | None:
    """Return the last line of netplan's files that defines the interface of a rendered file, "10-netplan-ens1.network"."""
    head, rendered, name = file.partition("/10-netplan-")
    if not rendered or head != "/run/systemd/network":
        return None
    defines = re.compile(rf"[ \t]+[\"']?{re.escape(name.removesuffix(SUFFIX))}[\"']?:")
    found = None
    for path in (f"{folder}/{each}" for folder in NETPLAN_FOLDERS for each in sorted(sys.list_dir(folder)) if each.endswith(".yaml")):
        lines = (sys.read(path) or "").split("\n")
        found = next((f"{path}:{number}" for number, line in enumerate(lines, 1) if defines.match(line)), found)
    return found


def applied_files(sys: SysRoot, without: Collection[str]) -> dict[str, str]:
    """Return the interfaces with a device below them, except those in `without`, to which a file applies or may apply: name → that file."""
    cards = [name for name in sys.list_dir("/sys/class/net") if sys.link_target(f"/sys/class/net/{name}/device") is not None]
    found = read_boot_networks(sys, [name for name in cards if name not in without])
    files = {name: boot.file or next((each.where for each in boot.undecided), None) for name, boot in found.items()}
    return {name: file for name, file in files.items() if file is not None}


def reloaded_files(sys: SysRoot, without: Collection[str], prefix: str) -> dict[str, list[str]]:
    """Return what `networkctl reload` reads for interfaces that are not ours: interface → files that apply or may apply, with drop-ins.

    This includes the file that systemd-networkd uses now, even if it was deleted. without: interfaces to leave out; prefix: that of the
    paths of our own files, which are left out.
    """
    files = read_network_files(sys)
    by_path = {file.path: file for file in files}
    found: dict[str, list[str]] = {}
    for name in sys.list_dir("/sys/class/net"):
        if name in without:
            continue
        boot, live = boot_network(files, read_card(sys, name)), read_networkd_link(sys, name)
        paths = [*(each.where for each in boot.undecided), boot.file, live.file if live is not None and live.is_managed else None]
        found[name] = [part for path in dict.fromkeys(paths) if path for part in (by_path[path].parts if path in by_path else (path,))]
    for _name, path in _by_name(sys, FOLDERS, NETDEV_SUFFIX):
        settings = parse_network_settings(sys.read(path) or "", path)
        made = next((each.value for each in settings if (each.section, each.key) == ("NetDev", "Name")), path)
        found.setdefault(made, []).append(path)
    ours = {name: [path for path in paths if not path.startswith(prefix)] for name, paths in found.items()}
    return {name: paths for name, paths in ours.items() if paths and name not in without}


def _applies(file: NetworkFile, card: Card) -> tuple[bool | None, str]:
    """Return whether a file applies to an interface, None if that is unknown, and why. All keys of [Match] must match."""
    keys: dict[str, list[str]] = {}
    for setting in file.settings:
        if setting.section == "Match":
            keys[setting.key] = [*keys.get(setting.key, []), *setting.value.split()] if setting.value else []
    keys = {key: values for key, values in keys.items() if values}
    verdicts = {key: _matches(key, values, card) for key, values in keys.items()}
    if False in verdicts.values() or (not verdicts and file.error is None):
        return False, ""
    if file.error is not None:
        return None, file.error
    unknown = [f"{key}={' '.join(keys[key])}" for key, verdict in verdicts.items() if verdict is None]
    return (None, f"[Match] {', '.join(unknown)}") if unknown else (True, "")


def _matches(key: str, values: Sequence[str], card: Card) -> bool | None:
    """Return whether one key matches; "!" before the first value inverts it."""
    inverted = values[0].startswith("!")
    patterns = [values[0][1:], *values[1:]] if inverted else list(values)
    has_device = card.driver is not None
    if (key in VIRTUAL and has_device) or (key in NOT_MADE and card.kind is not None):
        return inverted
    seen = {
        "Name": card.name,
        "MACAddress": card.mac,
        "PermanentMACAddress": card.permanent or card.mac,
        "Path": card.id_path,
        "Driver": card.driver,
        "Type": TYPES.get(card.type or 0) if has_device else card.kind,
        "Kind": card.kind,
    }.get(key)
    if seen is None:
        return None
    if key.endswith("MACAddress"):
        patterns = [pattern.lower().replace("-", ":") for pattern in patterns]
    return any(fnmatch.fnmatchcase(seen, pattern) for pattern in patterns) != inverted


def _effective(file: NetworkFile, undecided: list[BootSetting]) -> BootNetwork:
    """Return the effective settings. The last line of a single value counts; addresses add up; an empty one in [Network] drops them."""
    mtu: BootSetting | None = None
    addresses: list[BootSetting] = []
    others: dict[tuple[str, str], BootSetting] = {}
    advertisements: BootSetting | None = None
    for setting in file.settings:
        name = (setting.section, setting.key)
        if name == ("Link", "MTUBytes"):
            mtu = BootSetting(_size(setting.value), setting.where) if setting.value else None
        elif name in (("Network", "Address"), ("Address", "Address")):
            addresses = [*addresses, BootSetting(setting.value, setting.where)] if setting.value else []
        elif name == ("Network", "IPv6AcceptRA"):
            is_off = setting.value.lower() in _NO_ADVERTISEMENTS
            advertisements = None if is_off else BootSetting(f"{setting.key}={setting.value}", setting.where)
        elif name in OTHERS:
            others[name] = BootSetting(f"{setting.key}={setting.value}", setting.where)
    wrong = [setting for name, setting in others.items() if setting.value.partition("=")[2].lower() not in OTHERS[name]]
    return BootNetwork(file.path, mtu, addresses, wrong, undecided, advertisements=advertisements)


def _size(text: str) -> str:
    """Return a size in bytes: "9K" → "9216", in steps of 1024; other texts stay as they are."""
    found = _SIZE.fullmatch(text.upper())
    return str(int(found[1]) * _FACTORS[found[2]]) if found is not None else text
