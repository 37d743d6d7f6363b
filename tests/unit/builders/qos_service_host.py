# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in of dcb with one of systemd beside it: units are enabled by links, and remembered as running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from tests.unit.builders.qos_nic import Dcb

UNITS = "etc/systemd/system"


class QosMachine(Dcb):
    """broken: units of which a start fails. did: what was asked of systemd beside their states."""

    def __init__(self, root: Path, *, deaf: Sequence[str] = (), refuses: str = "", broken: Sequence[str] = ()) -> None:
        super().__init__(deaf=deaf, refuses=refuses)
        self.root, self.broken = root, broken
        self.active: set[str] = set()
        self.did: list[str] = []

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        if words[0] != "systemctl":
            return super().run(argv, timeout_seconds=timeout_seconds)
        if words[1] == "show":
            assert words[2] == "--property=Id,ActiveState,UnitFileState", words
            return Completed(words, 0, "\n".join(self._state(unit) for unit in words[3:]), "")
        self.did.append(" ".join(words[1:]))
        if words[1] != "daemon-reload":
            return self._systemctl(*words)
        assert words == ("systemctl", "daemon-reload"), words
        return Completed(words, 0, "", "")

    def _state(self, unit: str) -> str:
        enabled = "enabled" if self._link(unit).is_symlink() and self._template.exists() else ""
        return f"Id={unit}\nActiveState={'active' if unit in self.active else 'inactive'}\nUnitFileState={enabled}\n"

    @property
    def _template(self) -> Path:
        return self.root / UNITS / "rdma-qos@.service"

    def _link(self, unit: str) -> Path:
        instance = unit.partition("@")[2].removesuffix(".service")
        return self.root / UNITS / f"sys-subsystem-net-devices-{instance}.device.wants" / unit

    def _systemctl(self, *words: str) -> Completed:
        verb, unit = words[1], words[-1]
        if not self._template.exists():
            return Completed(words, 1, "", f"Failed to {verb} unit: Unit file {unit} does not exist.\n")
        if verb == "restart":
            if unit in self.broken:
                return Completed(words, 1, "", f"Job for {unit} failed.\n")
            self.active.add(unit)
        elif verb == "enable":
            self._link(unit).parent.mkdir(parents=True, exist_ok=True)
            self._link(unit).symlink_to(self._template)
        else:
            assert words[1:3] == ("disable", "--now"), words
            self._link(unit).unlink()
            self._link(unit).parent.rmdir()
            self.active.discard(unit)
        return Completed(words, 0, "", "")
