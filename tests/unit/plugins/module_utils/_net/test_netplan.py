# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""netplan: the YAML of a rail, mistakes in files of others, and what is put in place. The answers are those of netplan 0.106."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice, netplan, networkd
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, Running
from tests.unit.builders.fakes import FakeRunner

ensure = functools.partial(choice.ensure, "netplan")
MAC = "02:00:00:00:09:01"
RAIL = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "eth1", "192.168.101.1/24", 9000, device="rxe_rail0", port=1, mac=MAC)
RENDERED = """\
[Match]
PermanentMACAddress=02:00:00:00:09:01

[Link]
RequiredForOnline=no
MTUBytes=9000

[Network]
LinkLocalAddressing=ipv6
Address=192.168.101.1/24
IPv6AcceptRA=no
ConfigureWithoutCarrier=yes

[DHCP]
CriticalConnection=true
"""
IDLE = (["rdma", "-j", "resource", "show", "qp"], 0, "[]", "")
RELOAD = (["networkctl", "reload"], 0, "", "")
BROKEN = "{root}/etc/netplan/60-bad.yaml:5:7: Error in network definition: unknown key 'dhcpx'\n      dhcpx: true\n      ^\n"


class Netplan(FakeRunner):
    """A FakeRunner with a stand-in for netplan: it renders RENDERED for each file of ours that is in the copy, or refuses the copy.

    Its call may come anywhere in the script, since the path of the copy is random.
    """

    refuses = ""

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        if tuple(argv[:3]) != ("netplan", "generate", "--root-dir"):
            return super().run(argv, timeout_seconds=timeout_seconds)
        root = Path(argv[3])
        self.saw = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.yaml")}
        if self.refuses:
            return Completed(tuple(argv), 1, "", self.refuses.format(root=root))
        made = root / networkd.RENDERED.lstrip("/")
        made.mkdir(parents=True)
        for path in root.rglob("90-rdma-*.yaml"):
            (made / f"10-netplan-rdma-{path.stem[len('90-rdma-') :]}.network").write_text(RENDERED)
        (made / "10-netplan-eth0.network").write_text("[Match]\nName=eth0\n")
        return Completed(tuple(argv), 0, "", "")


def units(state: str = "active") -> tuple[list[str], int, str, str]:
    names = ["systemd-networkd.service", "NetworkManager.service"]
    text = f"Id={names[0]}\nActiveState={state}\nUnitFileState=enabled\n\nId={names[1]}\nActiveState=inactive\nUnitFileState=\n"
    return ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", *names], 0, text, ""


def show(*texts: str, mtu: int = 9000) -> tuple[list[str], int, str, str]:
    parts = [text.split("/") for text in texts]
    element = {"mtu": mtu, "addr_info": [{"family": "inet", "local": ip, "prefixlen": int(bits)} for ip, bits in parts]}
    return ["ip", "-j", "address", "show", "dev", "eth1"], 0, json.dumps([element]), ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    places = {"NETWORKD_FOLDER": "network", "PROFILES": "system-connections", "CONF": "conf.d", "NETPLAN_FOLDER": "netplan"}
    for name, part in places.items():
        (tmp_path / part).mkdir()
        monkeypatch.setattr(rail_network, name, str(tmp_path / part))
    monkeypatch.setattr(netplan, "NETPLAN_FOLDERS", (str(tmp_path / "netplan"),))
    monkeypatch.setattr(rail_network, "PENDING", str(tmp_path / "pending"))
    monkeypatch.setattr(networkd, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(networkd, "LOADED", str(tmp_path / "loaded"))
    monkeypatch.setattr(networkd, "LOAD_SECONDS", 0.0)
    (tmp_path / "netplan/50-cloud-init.yaml").write_text("network:\n  ethernets:\n    eth0:\n      dhcp4: true\n")
    return tmp_path


@pytest.fixture
def sys(tmp_path: Path) -> SysRoot:
    """A host with an RDMA device and a process 1, whose systemd-networkd uses the rendered file for eth1."""
    for path, text in {
        "proc/1/comm": "systemd\n",
        "sys/class/infiniband/rxe_rail0/node_type": "1: CA\n",
        "sys/class/net/eth1/ifindex": "3\n",
        "run/systemd/netif/links/3": f"ADMIN_STATE=configured\nNETWORK_FILE={tmp_path}/rendered/10-netplan-rdma-rail0.network\n",
    }.items():
        (tmp_path / "host" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "host" / path).write_text(text)
    return SysRoot(str(tmp_path / "host"))


def test_the_whole_file() -> None:
    assert netplan.render(RAIL) == (
        "# Managed by rdma.cluster: rail0.\nnetwork:\n  version: 2\n  ethernets:\n    rdma-rail0:\n      renderer: networkd\n"
        f'      match:\n        macaddress: "{MAC}"\n      set-name: eth1\n      mtu: 9000\n      dhcp4: false\n'
        "      dhcp6: false\n      accept-ra: false\n"
        "      link-local: [ipv6]\n      optional: true\n      ignore-carrier: true\n      critical: true\n"
        "      addresses:\n        - 192.168.101.1/24\n"
    )


def test_a_rail_without_address_and_mtu_has_neither_key() -> None:
    text = netplan.render(NetworkRail("rail0", {"mac": MAC}, "eth1", None, None))
    assert "addresses" not in text
    assert "mtu" not in text


def test_netplan_finds_an_interface_only_by_its_mac() -> None:
    with pytest.raises(ApplyError, match="rail0: netplan finds an interface by its MAC address, and that of eth1 is not known"):
        netplan.render(NetworkRail("rail0", {"pci": "0000:21:00.0"}, "eth1", None, None))


def test_an_infiniband_rail_has_a_file_of_systemd_networkd() -> None:
    rail = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ib0", "172.16.0.1/24", 2044, link_layer="infiniband")
    [file] = choice.files("netplan", [rail], [], [], Running(networkd=True, networkmanager=False))
    assert file.path.endswith("/network/60-rdma-rail0.network")


def test_first_run_puts_only_what_is_rendered_for_the_rail_in_place(folder: Path, sys: SysRoot) -> None:
    """The other rendered files stay untouched: a reload would reconfigure their interfaces."""
    (folder / "rendered").mkdir()
    (folder / "rendered/10-netplan-eth0.network").write_text("as netplan made it at boot\n")
    bare, good = show(mtu=1500), show("192.168.101.1/24")
    runner = Netplan([units(), bare, bare, IDLE, RELOAD, good])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert result.withheld == []
    assert len(runner.saw) == 2
    assert (folder / "netplan/90-rdma-rail0.yaml").read_text() == netplan.render(RAIL)
    assert (folder / "netplan/90-rdma-rail0.yaml").stat().st_mode & 0o777 == 0o600
    assert (folder / "rendered/10-netplan-rdma-rail0.network").read_text() == RENDERED
    assert (folder / "rendered/10-netplan-eth0.network").read_text() == "as netplan made it at boot\n"
    second = Netplan([units(), good, good])
    assert not ensure([RAIL], ["rail0"], runner=second, sys=sys, check_mode=False).changed


def test_a_mistake_in_a_file_of_others_is_named_and_ours_is_not_written(folder: Path, sys: SysRoot) -> None:
    bare = show()
    runner = Netplan([units(), bare, bare])
    runner.refuses = BROKEN
    with pytest.raises(ApplyError) as caught:
        ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    refused = "netplan refuses /etc/netplan/60-bad.yaml, line 5: Error in network definition: unknown key 'dhcpx'"
    assert str(caught.value).startswith(refused)
    assert "1. Correct /etc/netplan/60-bad.yaml." in str(caught.value)
    assert [path.name for path in (folder / "netplan").iterdir()] == ["50-cloud-init.yaml"]


def test_a_refusal_without_a_place_is_shown_as_it_is(sys: SysRoot) -> None:
    bare = show()
    runner = Netplan([units(), bare, bare])
    runner.refuses = "segmentation fault\n"
    with pytest.raises(ApplyError, match="so the files of the rails were not written: segmentation fault"):
        ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=True)


def test_a_host_whose_renderer_does_not_run_is_refused(sys: SysRoot) -> None:
    with pytest.raises(ApplyError, match=r"systemd-networkd\.service does not run, .*backend to networkmanager if"):
        ensure([RAIL], ["rail0"], runner=Netplan([units("inactive")]), sys=sys, check_mode=True)


def test_what_was_rendered_stays_with_the_file_of_a_rail(folder: Path, sys: SysRoot) -> None:
    """Its rail may be in use, and so keep its file: a reload without the rendered one would take the address away."""
    (folder / "netplan/90-rdma-rail1.yaml").write_text("network: {}\n")
    (folder / "rendered").mkdir()
    (folder / "rendered/10-netplan-rdma-rail1.network").write_text(RENDERED)
    networkd.remove_rendered()
    assert [path.name for path in (folder / "rendered").iterdir()] == ["10-netplan-rdma-rail1.network"]


def test_what_was_rendered_goes_with_the_file(folder: Path, sys: SysRoot) -> None:
    """The rail goes back to a file of systemd-networkd, which sorts after what netplan rendered."""
    (folder / "netplan/90-rdma-rail0.yaml").write_text(netplan.render(RAIL))
    (folder / "rendered").mkdir()
    for name in ("10-netplan-rdma-rail0.network", "10-netplan-eth0.network"):
        (folder / "rendered" / name).write_text(RENDERED)
    link = f"ADMIN_STATE=configured\nNETWORK_FILE={folder}/network/60-rdma-rail0.network\n"
    (folder / "host/run/systemd/netif/links/3").write_text(link)
    seen = show("192.168.101.1/24")
    runner = FakeRunner([units(), seen, seen, IDLE, RELOAD, seen])
    choice.ensure("networkd", [RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert [path.name for path in (folder / "rendered").iterdir()] == ["10-netplan-eth0.network"]
    assert [path.name for path in (folder / "netplan").iterdir()] == ["50-cloud-init.yaml"]
