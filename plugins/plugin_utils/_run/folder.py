# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run folder: the files of one execution on the control node. Every writer owns its file and renames it into place."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pwd
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from ansible.utils.display import Display

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import lost

DEFAULT_FOLDER = "artifacts"
#: The prefix of a plane's name where a host's name is expected.
PLANE = "plane "
#: The name of all hosts together where a host's name is expected: they differ, and nothing shows which of them are right.
FLEET = "the fleet"
RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9]+")
#: Files next to the run folders that outlive them, such as proofs.
BESIDE = "../"
#: The files that later runs read, and the summary. They are on disk before they get their name, so that a power loss leaves no empty
#: file. The thousands of other files are not read by later runs, and fsync of each would cost too much: docs/running.md.
DURABLE = (BESIDE, "facts/", "fabric/", "summary.")
#: Characters of the cause that a warning quotes at most.
QUOTED = 300
T = TypeVar("T")
display = Display()


@cache
def run_id() -> str:
    """The ID of this run, "20261120T120501Z-4711": start time and pid of the ansible process that owns it.

    Task workers are children of that process, so all of them, and the callback in the process itself, compute the same ID. The callback
    computes it first and workers inherit it, so that a step of the clock changes nothing. Linux only (proc(5), /proc/PID/stat).
    """
    parent = multiprocessing.parent_process()
    pid = parent.pid if parent is not None and parent.pid is not None else os.getpid()
    boot = next(line for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines() if line.startswith("btime"))
    started = int(boot.split()[1]) + int(_start_ticks(pid)) / os.sysconf("SC_CLK_TCK")
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(started))}-{pid}"


def _start_ticks(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]


def process_of(pid: int) -> str | None:
    """The identity of a process, different from a later one with the same pid; None if there is no such process."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='utf-8').strip()} {_start_ticks(pid)}"
    except (FileNotFoundError, ProcessLookupError):
        return None


def user_name() -> str:
    """The user that runs this process; its number if /etc/passwd does not have it, as in containers."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def is_group(name: str) -> bool:
    """Whether the host name of a finding is that of a plane or of the fleet. No host's name has a space."""
    return name == FLEET or name.startswith(PLANE)


def natural(name: str) -> list[tuple[str, int]]:
    """The key for natural sorting: node2 before node10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


class RunFolderError(RuntimeError):
    """The run folder cannot be written. The message has rdma_run_dir, the cause and the remedy on the control node."""


#: errno → the cause and the first step. {path}: the existing parent folder.
CAUSES = {
    errno.EROFS: ("its file system is read-only", "Set rdma_run_dir to a folder on a writable file system"),
    errno.EACCES: ("the user {user} has no permission to write in {path}", "Set rdma_run_dir to a folder of {user}"),
    errno.EPERM: ("the user {user} has no permission to write in {path}", "Set rdma_run_dir to a folder of {user}"),
    errno.ENOTDIR: ("{path} is a file", "Set rdma_run_dir to a folder"),
    errno.EEXIST: ("{path} is a file", "Set rdma_run_dir to a folder"),
    errno.ENOSPC: ("no space is left there", "Free space (`df -h {path}`, `df -i {path}`), or set rdma_run_dir to a folder elsewhere"),
    errno.EDQUOT: ("the quota of {user} is used up", "Free space (`quota`), or set rdma_run_dir to a folder elsewhere"),
}
#: The free space that a new run needs: the facts of a host take up to 0.2 MiB.
NEEDED_BYTES = 16 * 2**20


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def current(cls, base: str) -> RunFolder:
        """The folder of this run, created if missing; base: rdma_run_dir. Raises RunFolderError."""
        folder = cls(Path(base or DEFAULT_FOLDER).absolute() / run_id())
        with folder.writing("Nothing was done on any host."):
            if not folder.path.is_dir():
                folder.path.mkdir(parents=True, exist_ok=True)
                free = shutil.disk_usage(folder.path).free
                if free < NEEDED_BYTES:
                    raise OSError(errno.ENOSPC, f"{free / 2**20:.1f} MiB are free, and a run needs {NEEDED_BYTES / 2**20:.0f} MiB")
        return folder

    @contextmanager
    def writing(self, so_far: str = "") -> Iterator[None]:
        """Turn an OSError of writing into the folder into a RunFolderError. so_far: what the run has done so far, if known."""
        try:
            yield
        except OSError as error:
            raise RunFolderError(f"{self._why_not(error)} {so_far}".rstrip()) from error

    def _why_not(self, error: OSError) -> str:
        base = self.path.parent
        there = next(path for path in self.path.parents if os.path.lexists(path))
        unknown = (f"{error.strerror or error}", "Set rdma_run_dir to a folder that you can write")
        cause, step = (text.format(user=user_name(), path=there) for text in CAUSES.get(error.errno or 0, unknown))
        detail = f" ({error.strerror})" if error.errno == errno.ENOSPC and error.filename is None else ""
        return (
            f"rdma_run_dir is {base}, and the control node cannot write the run folder there: {cause}{detail}. "
            f"{step}, for example `-e rdma_run_dir=$HOME/rdma-runs`."
        )

    @staticmethod
    def host_file(folder: str, host: str, suffix: str = ".json") -> str:
        """The name of a host's file; the host name is quoted, because it may contain any character."""
        return f"{folder}/{quote(host, safe='')}{suffix}"

    def link_latest(self) -> None:
        """Point `latest` next to the run folders to this run."""
        link = self.path.parent / "latest"
        if link.is_symlink() and os.readlink(link) == self.path.name:
            return
        new = self.path.parent / f".latest.{os.getpid()}"
        with self.writing():
            new.unlink(missing_ok=True)
            new.symlink_to(self.path.name)
            new.replace(link)

    def write(self, name: str, text: str) -> Path:
        """Write a file atomically: it exists completely or not at all. Raises RunFolderError."""
        path = self.path / name
        new = path.with_name(f".{path.name}.{os.getpid()}")
        with self.writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            with new.open("w", encoding="utf-8") as stream:
                stream.write(text)
                if name.startswith(DURABLE):
                    stream.flush()
                    os.fsync(stream.fileno())
            new.replace(path)
            if name.startswith(DURABLE):
                _sync_folder(path.parent)
        return path

    def write_json(self, name: str, data: Any) -> Path:
        return self.write(name, json.dumps(data, indent=1, sort_keys=True) + "\n")

    def read_json(self, name: str) -> Any:
        """The content of a file. Raises ParseError with its name if it is cut off or was changed by hand."""
        return _loaded(self.path / name)

    def append(self, name: str, data: Any) -> None:
        """Add a line of JSON to a file that only one process writes."""
        self.append_lines(name, [json.dumps(data, sort_keys=True)])

    def append_lines(self, name: str, lines: Iterable[str], *, durable: bool = False) -> None:
        """Add lines to a file that only one process writes; a concurrent reader sees whole lines, except possibly the last one.

        durable: return only when they are on disk.
        """
        path = self.path / name
        with self.writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
                if durable:
                    stream.flush()
                    os.fsync(stream.fileno())

    def read_if_there(self, name: str) -> Any:
        """The content of a file, or None if it is missing. A damaged file next to the runs (BESIDE) counts as missing, with a warning."""
        if name.startswith(BESIDE):
            return if_sound(self.path / name)
        return self.read_json(name) if (self.path / name).exists() else None

    def earlier(self, name: str, parse: Callable[[Any], T] = dict) -> tuple[str, T] | None:  # type: ignore[assignment]
        """The newest earlier run that has the file: its ID and the file's content; None if no run has it.

        parse: converts the JSON object in the file, or raises ParseError. A damaged file counts as missing, with a warning.
        """
        for run in self.earlier_runs():
            found = if_sound(run.path / name, parse)
            if found is not None:
                return run.path.name, found
        return None

    def earlier_runs(self) -> list[RunFolder]:
        """The earlier runs, the newest first."""
        runs = sorted((path for path in self.path.parent.iterdir() if RUN_ID.fullmatch(path.name)), reverse=True)
        return [RunFolder(run) for run in runs if run.name < self.path.name]

    def of_run(self, run: str, name: str, parse: Callable[[Any], T] = dict) -> T | None:  # type: ignore[assignment]
        """A file of another run, or None if it is missing or damaged. parse: as in `earlier`."""
        return if_sound(self.path.parent / run / name, parse)

    def hosts_of(self, stage: str) -> list[str]:
        """The hosts that have begun a stage."""
        return [name for name in self._named(stage) if not is_group(name)]

    def groups_of(self, stage: str) -> list[str]:
        """The planes with their own findings of a stage ("plane default"), and FLEET if it has any."""
        return [name for name in self._named(stage) if is_group(name)]

    def _named(self, stage: str) -> list[str]:
        return self.stored_hosts(f"findings/{stage}")

    def stored_hosts(self, folder: str) -> list[str]:
        """Return the hosts that have a file in a folder, as host_file names it, in natural order."""
        return sorted((unquote(path.stem) for path in (self.path / folder).glob("*.json")), key=natural)

    def write_findings(self, stage: str, host: str, findings: list[Finding], of: str = "findings") -> Path:
        """Write a host's findings of a stage; of: "fleet" for those from comparing hosts, which its gate adds."""
        return self.write_json(self.host_file(f"{of}/{stage}", host), [finding.to_dict() for finding in findings])

    def read_findings(self, stage: str, host: str, of: str = "findings") -> list[Finding]:
        """The findings in a host's file; none if there is no file. Raises ParseError, which names a damaged file."""
        name = self.host_file(f"{of}/{stage}", host)
        data = self.read_if_there(name)
        try:
            return [Finding.from_dict(item) for item in ([] if data is None else data)]
        except (TypeError, ValueError) as error:
            raise ParseError(f"{self.path / name} does not contain findings of this collection ({error}). {STEP}") from error

    def known_findings(self, stage: str, host: str) -> list[Finding]:
        """The findings in a host's file; for a damaged file one unknown finding with its name."""
        try:
            return self.read_findings(stage, host)
        except ParseError as error:
            return [lost(stage, host, str(error))]

    def all_findings(self) -> list[Finding]:
        """The findings of all stages and hosts. A damaged file is its own finding, see known_findings."""
        files = sorted((self.path / "findings").glob("*/*.json"), key=lambda file: natural(file.stem))
        return [finding for file in files for finding in self.known_findings(file.parent.name, unquote(file.stem))]


#: The remedy for a damaged file of this run.
STEP = "It is cut off or was changed by hand. Remove it, then run again."


def _loaded(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{path} is not JSON ({error}). {STEP}") from error


def if_sound(path: Path, parse: Callable[[Any], T] = dict) -> T | None:  # type: ignore[assignment]
    """The content of an optional file; None if it is missing or damaged. A damaged file causes a warning.

    A power loss, a full disk or an editor may have damaged a file of an earlier run. The run then measures again, or compares less.
    parse: converts the JSON object in the file, or raises ParseError.
    """
    try:
        data = _loaded(path)
        if not isinstance(data, Mapping):
            raise ParseError(f"{path} is not a JSON object, got {type(data).__name__}")
        return parse(data)
    except FileNotFoundError:
        return None
    except (ParseError, OSError) as error:
        why = clean(str(error).replace(f" {STEP}", "").replace(f"{path} ", ""), QUOTED)
        display.warning(f"{path} cannot be read and is ignored: {why}. Remove the file to silence this warning.")
        return None


def _sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk. Some network file systems do not support fsync of a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
