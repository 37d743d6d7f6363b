# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel settings: current values, values of the next boot, and how to set both.

The boot follows sysctl.d(5) and systemd-sysctl: the files of all folders are sorted by name, and a file hides those of its name in later
folders. The last line of a key wins, and a named key outranks every matching pattern.

A key is written with dots or slashes ("net.ipv4.conf.all.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"); its path is that below /proc/sys.
Results have the keys in the spelling of the query.
"""

from __future__ import annotations

import errno
import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

PROC = "/proc/sys"
#: In the order of precedence for files of one name.
FOLDERS = tuple(f"{folder}/sysctl.d" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
#: After distributions' and administrators' 99-sysctl.conf, so that ours wins.
NAME = "99-zz-rdma-cluster.conf"
FILE = f"{FOLDERS[0]}/{NAME}"
HEADER = "# Managed by rdma.cluster.\n"
NOTE = f"# Taken out by rdma.cluster: it comes after {NAME}, which sets this key."
PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+~-]*(/[A-Za-z0-9_.:@+~-]+)+")
VALUE = re.compile(r"[A-Za-z0-9._:/ -]+")
GLOB = re.compile(r"[*?[]")
READABLE = 0o444
BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Assignment:
    """A line of a sysctl.d file. path: below /proc/sys, or a pattern; value: None excludes path from patterns."""

    path: str
    value: str | None
    line: int


@dataclass(frozen=True)
class BootValue:
    """The value that the next boot gives a key, and the file and line that set it. line: 0 if unknown."""

    value: str
    file: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Override:
    """A line in a file after ours that overrides one of our settings after a boot."""

    file: str
    assignment: Assignment


@dataclass(frozen=True)
class LiveChange:
    """A value of the running kernel that was wrong; before: None if there is no such key."""

    key: str
    before: str | None
    after: str


@dataclass(frozen=True)
class SysctlResult:
    """The changes; in check mode all differences.

    stuck: lines that cannot be edited, in check mode only; withheld: settings that stay because of a foreign line, in words.
    """

    files: list[FileChange]
    live: list[LiveChange]
    stuck: list[Override]
    withheld: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live or self.stuck)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        diffs = [file.to_diff() for file in self.files]
        if self.live:
            before = "".join(f"{change.key} = {change.before if change.before is not None else '(no such key)'}\n" for change in self.live)
            after = "".join(f"{change.key} = {change.after}\n" for change in self.live)
            diffs.append({"before_header": "live sysctl", "after_header": "live sysctl", "before": before, "after": after})
        for item in self.stuck:
            words = f"line {item.assignment.line}, in the way of {spelling(item.assignment.path)}: {remedy(item.file)}\n"
            diffs.append({"before_header": item.file, "after_header": item.file, "before": words, "after": ""})
        return diffs


class Writer:
    """Writes below one root, which a SysRoot reads; by default on the running system."""

    def __init__(self, root: str = "") -> None:
        self._root = root

    def files(self, files: Iterable[ManagedFile], *, check_mode: bool) -> list[FileChange]:
        """Write the files with ensure_files below the root; the changes name the paths on the host."""
        changes = ensure_files([replace(file, path=self._root + file.path) for file in files], check_mode=check_mode)
        return [replace(change, path=change.path[len(self._root) :]) for change in changes]

    def value(self, path: str, value: str) -> None:
        """Set a key of the running kernel, in one write as the kernel requires. Raises OSError if it is refused."""
        Path(f"{self._root}{PROC}/{path}").write_text(f"{value}\n", encoding="ascii")


def path_of(key: str) -> str:
    """Return the path of a key below /proc/sys. Raises ParseError for a pattern, and for a path outside /proc/sys."""
    path = normalize(key)
    if not PATH.fullmatch(path) or ".." in path.split("/"):
        raise ParseError(f"not the name of a kernel setting: {key!r}, expected the form 'net.ipv4.conf.all.rp_filter'")
    return path


def spelling(path: str) -> str:
    """Return our spelling of a path: with dots, or with slashes if a part has dots itself ("eth0.100")."""
    return path if "." in path else path.replace("/", ".")


def normalize(key: str) -> str:
    """Return a key or pattern as a path: if its first separator is a dot, dots and slashes change places."""
    separator = re.search(r"[./]", key)
    if separator is not None and separator[0] == ".":
        key = key.translate(str.maketrans("./", "/."))
    return "/".join(part for part in key.split("/") if part not in ("", "."))


def parse_sysctl_conf(text: str) -> list[Assignment]:
    """Return the assignments of a sysctl.d(5) file, in order.

    An invalid line is skipped without an error, as at boot: systemd-sysctl warns of it and continues.
    """
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip(" \t\r")
        key, equals, value = stripped.partition("=")
        excludes = not equals and key.startswith("-")
        if not stripped or stripped[0] in "#;" or not (equals or excludes):
            continue
        path = normalize((key[1:] if key.startswith("-") else key).strip(" \t\r"))
        found.append(Assignment(path, value.strip(" \t\r") if equals else None, number))
    return found


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of a sysctl.d file matches a path: as glob(7), with braces, and no wildcard matches a slash."""
    braces = BRACES.search(pattern)
    if braces is not None:
        choices = (pattern[: braces.start()] + choice + pattern[braces.end() :] for choice in braces[1].split(","))
        return any(matches(choice, path) for choice in choices)
    parts, names = pattern.replace("[^", "[!").split("/"), path.split("/")
    return len(parts) == len(names) and all(fnmatch.fnmatchcase(name, part) for name, part in zip(names, parts))


def boot_values(sys: SysRoot, keys: Iterable[str]) -> dict[str, BootValue | None]:
    """Return the value of each key after the next boot; None for one that the boot does not set.

    Raises ParseError for an invalid key (see path_of).
    """
    settings: dict[str, Override] = {}
    for file, assignments in _read_conf(sys):
        for item in assignments:
            # As systemd-sysctl does: a repeated value stays in its place, a changed one moves to the end.
            if item.path not in settings or settings[item.path].assignment.value != item.value:
                settings.pop(item.path, None)
                settings[item.path] = Override(file, item)
    return {key: _boot_value(path_of(key), settings) for key in keys}


def _boot_value(path: str, settings: Mapping[str, Override]) -> BootValue | None:
    matching = [line for pattern, line in settings.items() if _applies(pattern, line.assignment.value, path)]
    found = [settings[path]] if path in settings else matching
    if not found or found[-1].assignment.value is None:
        return None
    return BootValue(_words(found[-1].assignment.value), found[-1].file, found[-1].assignment.line)


def _applies(pattern: str, value: str | None, path: str) -> bool:
    return value is not None and GLOB.search(pattern) is not None and matches(pattern, path)


def live_values(sys: SysRoot, keys: Iterable[str]) -> dict[str, str | None]:
    """Return the value of each key in the running kernel, its parts separated by one space; None without a readable one.

    Raises ParseError for an invalid key (see path_of).
    """
    return {key: _live_value(sys, path_of(key)) for key in keys}


def _live_value(sys: SysRoot, path: str) -> str | None:
    try:
        text = sys.read(f"{PROC}/{path}")
    except PermissionError:
        # A key that can only be written, such as net.ipv4.route.flush.
        if (sys.mode(f"{PROC}/{path}") or 0) & READABLE:
            raise
        return None
    return None if text is None else _words(text)


def _words(text: str) -> str:
    return " ".join(text.split())


def _read_conf(sys: SysRoot) -> list[tuple[str, list[Assignment]]]:
    """Return all files that systemd-sysctl reads, in its order; files that it skips are skipped here, too."""
    chosen: dict[str, str] = {}
    for folder in FOLDERS:
        for name in sys.list_dir(folder):
            if name.endswith(".conf") and not name.startswith("."):
                chosen.setdefault(name, f"{folder}/{name}")
    return [(chosen[name], parse_sysctl_conf(_text(sys, chosen[name]))) for name in sorted(chosen)]


def _text(sys: SysRoot, file: str) -> str:
    try:
        return sys.read(file) or ""
    except OSError as exc:
        if exc.errno in (errno.EISDIR, errno.ELOOP):
            return ""
        raise


def remedy(file: str) -> str:
    """Return the remedy for a file that overrides ours."""
    if file.startswith("/etc/"):
        return f"remove the key from {file}"
    return f"remove the key from {file}, or mask that file with a link {FOLDERS[0]}/{Path(file).name} to /dev/null"


def sysctl_files(settings: Mapping[str, str]) -> list[ManagedFile]:
    """Return our file for these settings, the same for any order of them; without settings, its removal.

    Raises ParseError for an invalid key.
    """
    lines = "".join(f"{spelling(path_of(key))} = {_words(value)}\n" for key, value in sorted(settings.items()))
    return [ManagedFile(FILE, HEADER + lines if settings else None)]


def ensure_sysctl(
    settings: Mapping[str, str], *, sys: SysRoot, writer: Writer, check_mode: bool, replace_allowed: bool, in_use: str = ""
) -> SysctlResult:
    """Apply settings now and for the next boot: our file, the running kernel, and later files in /etc that override them.

    settings: key → value; a key that is no longer included is removed from our file, and keeps its value until the next boot.
    replace_allowed: whether foreign lines after our file are removed. Without it such a line stays, and the live value too. in_use: the
    reason that the host is in use; then a live value stays if a foreign line in /etc or /run sets another value than ours. Raises
    ApplyError with each key that does not have its value afterwards, or will not have it after a boot.
    """
    wanted = _checked(settings)
    overrides = _overrides(wanted, sys)
    edits, stuck = _uncover(overrides, sys) if replace_allowed or check_mode else ([], [])
    files = writer.files([*sysctl_files(wanted), *edits], check_mode=check_mode)
    seen = live_values(sys, wanted)
    live = [LiveChange(key, seen[key], value) for key, value in wanted.items() if seen[key] != value]
    held = {} if replace_allowed else _held(wanted, live, overrides, sys, in_use)
    if not check_mode:
        live = [change for change in live if change.key not in held]
        refused = {change.key: _write(change, writer) for change in live if change.before is not None}
        _read_back({key: value for key, value in wanted.items() if key not in held}, refused, sys)
    return SysctlResult(files, live, stuck, list(held.values()))


def _held(
    wanted: Mapping[str, str], live: Iterable[LiveChange], overrides: Iterable[Override], sys: SysRoot, in_use: str
) -> dict[str, str]:
    """Return the keys that stay as foreign lines set them, with the reason in words: later lines, and live values on a host in use."""
    earlier = [Override(file, item) for file, items in _read_conf(sys) if _is_foreign(file) for item in items] if in_use else []
    held = {}
    for change in live:
        lines = [line for line in earlier if line.assignment.path == path_of(change.key)]
        if lines and not _agrees(lines[-1].assignment, change.after):
            held[change.key] = f"{_line_words(lines[-1])}, live {change.before}, requested {change.after} ({in_use})"
    for override in overrides:
        key = spelling(override.assignment.path)
        held[key] = f"{_line_words(override)}, requested {wanted[key]}"
    return held


def _is_foreign(file: str) -> bool:
    """Return whether an administrator or a program has written a file. Distributions' files are below /usr, and may be overridden."""
    return file != FILE and not file.startswith("/usr/")


def _line_words(line: Override) -> str:
    value, key = line.assignment.value, spelling(line.assignment.path)
    return f"{line.file}:{line.assignment.line} " + (f"sets {key} = {_words(value)}" if value is not None else f"removes {key}")


def _checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with each key in our spelling. Raises ApplyError with all invalid ones."""
    wanted: dict[str, str] = {}
    problems = []
    for key, value in settings.items():
        try:
            name = spelling(path_of(key))
        except ParseError as exc:
            problems.append(str(exc))
            continue
        if not VALUE.fullmatch(value) or not value.strip():
            problems.append(f"{key} cannot be {value!r}: a value is one line of letters, digits, spaces and . _ : / -")
        elif wanted.setdefault(name, _words(value)) != _words(value):
            problems.append(f"{name} has two planned values, {wanted[name]!r} and {_words(value)!r}")
    if problems:
        raise ApplyError("These kernel settings cannot be made: " + "; ".join(problems) + ".")
    return wanted


def _overrides(wanted: Mapping[str, str], sys: SysRoot) -> list[Override]:
    """Return the lines after our file that give another value at boot than ours; a pattern never does."""
    later = [Override(file, item) for file, items in _read_conf(sys) if Path(file).name > NAME for item in items]
    found = []
    for key, value in wanted.items():
        own = [override for override in later if override.assignment.path == path_of(key)]
        if own and not _agrees(own[-1].assignment, value):
            found += [override for override in own if not _agrees(override.assignment, value)]
    return found


def _agrees(item: Assignment, value: str) -> bool:
    return item.value is not None and _words(item.value) == value


def _uncover(overrides: Iterable[Override], sys: SysRoot) -> tuple[list[ManagedFile], list[Override]]:
    """Return the files of /etc without these lines, and the lines that we may not remove."""
    lines: dict[str, set[int]] = {}
    stuck = []
    for override in overrides:
        # A link stays a link: its target is edited, if that is in /etc as well.
        target = sys.resolve(override.file) or override.file
        if target.startswith("/etc/") and "\ufffd" not in _text(sys, target):
            lines.setdefault(target, set()).add(override.assignment.line)
        else:
            stuck.append(override)
    return [_without(target, numbers, sys) for target, numbers in lines.items()], stuck


def _without(file: str, numbers: set[int], sys: SysRoot) -> ManagedFile:
    text = _text(sys, file).split("\n")
    kept = [f"{NOTE}\n# {line}" if number in numbers else line for number, line in enumerate(text, start=1)]
    return ManagedFile(file, "\n".join(kept), sys.mode(file) or 0o644)


def _write(change: LiveChange, writer: Writer) -> str | None:
    """Return why the kernel did not accept a value; None if it did."""
    try:
        writer.value(path_of(change.key), change.after)
    except OSError as exc:
        return exc.strerror or str(exc)
    return None


def _read_back(wanted: Mapping[str, str], refused: Mapping[str, str | None], sys: SysRoot) -> None:
    live, boot = live_values(sys, wanted), boot_values(sys, wanted)
    problems = []
    for key, value in wanted.items():
        reason = f" ({refused[key]})" if refused.get(key) else ""
        if live[key] is None:
            problems.append(f"{key} should be {value!r}, but there is no such key: correct it, or load the module that provides it")
        elif live[key] != value:
            problems.append(f"{key} should be {value!r}, but after writing it is {live[key]!r}{reason}")
        at_boot = boot[key]
        if at_boot is None or at_boot.value != value:
            problems.append(f"{key} should be {value!r} after a boot, but {boot_words(at_boot)}")
    if problems:
        raise ApplyError("Kernel settings that did not take effect: " + "; ".join(problems) + ".")


def boot_words(found: BootValue | None) -> str:
    """Return the effect of the next boot on a key with another planned value, and the remedy."""
    if found is None:
        return f"a file after {NAME} removes it with a line that begins with '-': remove that line"
    return f"{found.file} sets it to {found.value!r}: {remedy(found.file)}"
