# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager applies one profile per rail at boot.

`nmcli connection load` reads one file and touches no interface. `nmcli device reapply` then changes only what differs; it removes
addresses that the profile does not have. `nmcli connection up` takes an interface over from another profile, and drops its addresses
before it sets those of the new one (all seen on 1.42). NetworkManager is never started here: it would take over all interfaces of the host.
Where systemd-networkd runs as well, a file of ours makes it leave the rails alone. Sources: nmcli(1), NetworkManager(8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import networkd
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.change import Change, Loading
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.nm_profiles import (
    UNMANAGED,
    conf_path,
    forget,
    profile_path,
    read_conf,
    read_status,
    render_conf,
    render_profile,
    uuid_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NETWORKD_UNIT, NM_UNIT, NetworkRail, Running
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import RECONFIGURES, Step

#: A refusal of NetworkManager 1.42; 1.46 has new names for both settings.
_MEMBERSHIP = re.compile(r"Can't reapply changes to 'connection\.(slave-type|master|port-type|controller)' setting")


class NmChange(Change):
    """The changes for NetworkManager."""

    @staticmethod
    def rail_files(rail: NetworkRail, running: Running) -> list[ManagedFile]:
        """Return the planned files of a rail."""
        release = [ManagedFile(networkd.path_of(rail.name), networkd.render_release(rail))] if running.networkd else []
        # Profiles may have secrets, so NetworkManager ignores a file that others can read.
        return [
            ManagedFile(profile_path(rail.name), render_profile(rail), mode=0o600),
            ManagedFile(conf_path(rail.name), render_conf(rail)),
            *release,
        ]

    def profile_steps(self, rail: NetworkRail) -> list[Step]:
        """Return the step that makes our profile the active one of the rail's interface."""
        if not rail.is_configured:
            return []
        active = self._profile(rail)[1]
        if active == uuid_of(rail.name):
            return []
        # NetworkManager makes a VLAN by itself, and nmcli refuses the name of an interface that does not exist.
        where = () if rail.link.is_made else ("ifname", rail.netdev)
        argv = ("nmcli", "connection", "up", "uuid", uuid_of(rail.name), *where)
        was = f"profile {active} of NetworkManager" if active else "no profile of NetworkManager"
        return [Step(rail.netdev, was, f"profile rdma-{rail.name} of NetworkManager", argv, RECONFIGURES)]

    def refusal(self, units: Mapping[str, UnitState]) -> str:
        if units[NM_UNIT].active:
            return ""
        return (
            f"{NM_UNIT} does not run, and starting it would change the interfaces of this host that are no rails. 1. Start it "
            f"(`systemctl enable --now {NM_UNIT}`), or set rdma_host.network.backend to another manager. 2. Run the network stage again."
        )

    def plan(self, changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> Loading:
        affected = networkd.affected_rails(self.rails, changes, pending=pending)
        reloads = _reloads_networkd(changes, units, pending=pending)
        put_off = self.puts_off([rail for rail in affected if reloads or self._is_reapplied(rail)], LOADS)
        put_off |= reloads and networkd.applies_others(self, self.rails)
        return Loading(put_off, bool(changes or pending) and not put_off and units[NM_UNIT].active)

    def load(self, loading: Loading, changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> None:
        if not loading.loads:
            return
        read_conf(self.runner)
        forget(changes, self.runner)
        if _reloads_networkd(changes, units, pending=pending):
            networkd.remove_rendered(changes)
            networkd.reload(self.runner)
        affected = networkd.affected_rails(self.rails, changes, pending=pending)
        rails = [rail for rail in affected if rail.is_configured and rail.name not in self.held and Path(profile_path(rail.name)).exists()]
        # A member of a bond can only be activated when NetworkManager knows the profile of the bond.
        for rail in rails:
            self._load_profile(rail)
        for rail in rails:
            self._apply_profile(rail)

    def hint(self, rail: NetworkRail) -> str:
        """Return a sentence on the profile that NetworkManager uses for a rail's interface instead of ours; "" if it uses ours."""
        state, active = self._profile(rail)
        if active == uuid_of(rail.name):
            return ""
        return f" NetworkManager says {state} of it, and uses {active or 'no profile'} in the place of {profile_path(rail.name)}."

    def _load_profile(self, rail: NetworkRail) -> None:
        """Make NetworkManager read a rail's profile."""
        path, known = profile_path(rail.name), uuid_of(rail.name)
        run_checked(self.runner, "nmcli", "connection", "load", path)
        # nmcli ends with 0 for a file that NetworkManager refuses.
        if self.runner.run(["nmcli", "--get-values", "connection.uuid", "connection", "show", "uuid", known]).rc:
            raise ApplyError(f"NetworkManager does not read {path}: `journalctl --unit {NM_UNIT}` has the reason.")

    def _apply_profile(self, rail: NetworkRail) -> None:
        """Apply a rail's profile to an interface that uses it already."""
        state, active = self._profile(rail)
        if state == UNMANAGED:
            run_checked(self.runner, "nmcli", "device", "set", rail.netdev, "managed", "yes")
        elif active == uuid_of(rail.name):
            self._reapply(rail)

    def _reapply(self, rail: NetworkRail) -> None:
        """Apply a loaded profile to its interface. Only a new activation takes an interface into a bond, or out of it."""
        try:
            run_checked(self.runner, "nmcli", "device", "reapply", rail.netdev)
        except ApplyError as error:
            if _MEMBERSHIP.search(str(error)) is None:
                raise
            run_checked(self.runner, "nmcli", "connection", "up", "uuid", uuid_of(rail.name), "ifname", rail.netdev)

    def _is_reapplied(self, rail: NetworkRail) -> bool:
        """Return whether loading the profile removes addresses of others from the rail's interface."""
        if self._profile(rail)[1] != uuid_of(rail.name):
            return False
        return bool(self.keeps.get(rail.name)) or _has_ipv6(rail, self.runner)

    def _profile(self, rail: NetworkRail) -> tuple[str, str]:
        """Return the state of a rail's interface now, and the UUID of its active profile, "" if it has none."""
        return read_status(self.runner).get(rail.netdev, ("unknown", ""))


def _reloads_networkd(changes: Sequence[FileChange], units: Mapping[str, UnitState], *, pending: bool) -> bool:
    """Return whether systemd-networkd has to load files as well: it runs, and files of ours for it changed or are not loaded yet."""
    folders = (f"{rail_network.NETWORKD_FOLDER}/", f"{rail_network.NETPLAN_FOLDER}/")
    return units[NETWORKD_UNIT].active and (pending or any(change.path.startswith(folders) for change in changes))


def _has_ipv6(rail: NetworkRail, runner: Runner) -> bool:
    """Return whether the interface has an IPv6 address that is not link-local and not in the rail's profile."""
    shown = json.loads(run_checked(runner, "ip", "-j", "-6", "address", "show", "dev", rail.netdev, "scope", "global") or "[]")
    there = [f"{item.get('local')}/{item.get('prefixlen')}" for each in shown for item in each.get("addr_info") or ()]
    return any(text not in rail.ipv6 for text in there)


#: The loading of profiles in words.
LOADS = "`nmcli device reapply`, which loads the profile of the rail and removes other addresses"
