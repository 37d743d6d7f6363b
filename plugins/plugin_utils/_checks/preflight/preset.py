# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host is the machine of its preset: NICs, GPUs, and which NIC is next to which GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._machines.presets import PRESETS, Preset

declare(
    {
        "preflight.preset": Check(
            "preflight",
            "whether the host is the machine of `rdma_preset`: its NICs, its GPUs, and a NIC next to each GPU",
            "`/sys/bus/pci/devices`, `/proc/driver/nvidia/gpus`",
            "remove `rdma_preset`, or correct it; a missing NIC or GPU is a fault of the machine",
            fixed=True,
            # Without the folder of PCI devices, each NIC and GPU is missing, which is an error.
            sources=(reads.INTENT,),
        ),
    }
)

STAGE, CHECK = "preflight", "preflight.preset"
#: The distances of a NIC and a GPU with only PCIe switches between them.
NEXT = ("PIX", "PXB")


def check_preset(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Return the finding preflight.preset with the first difference; none without a preset."""
    name = intent.get("preset")
    if name is None:
        return []
    preset = PRESETS[name]
    rails = [rail for rail in intent["rails"] if rail["role"] == "compute"]
    expected = _expected(preset)
    observed = next(_differences(name, host, preset, rails, facts), "")
    if observed:
        remedy = (
            f"1. Compare with `lspci -D -d 15b3:` and `lspci -D -d 10de:` on {host}. 2. If it is another machine, remove rdma_preset of "
            f"{host} and write rdma_rails. 3. If it is this machine, a device is missing: fix it."
        )
        return [Finding(STAGE, CHECK, host, name, ERROR, observed, expected, remedy)]
    if facts.gpus is None:
        return [Finding(STAGE, CHECK, host, name, UNKNOWN, "the GPUs were not read", expected, f"Run `lspci -D -d 10de:` on {host}.")]
    return [Finding(STAGE, CHECK, host, name, OK, f"{len(rails)} compute rails, {len(facts.gpus)} GPUs", expected)]


def _expected(preset: Preset) -> str:
    return f"{preset.title}: {_nics(preset)}, {preset.gpus} {preset.gpu_model} GPU{'s' if preset.gpus > 1 else ''}".replace("  ", " ")


def _nics(preset: Preset) -> str:
    rate = f" of {preset.common['rate_gbps']} Gb/s" if "rate_gbps" in preset.common else ""
    places = f" at {', '.join(preset.pci)}" if preset.pci else ", each next to a GPU of its own"
    return f"{preset.nics} compute NICs{rate}{places}"


def _differences(name: str, host: str, preset: Preset, rails: list[Rail], facts: Facts) -> Iterator[str]:
    """Yield the differences of a host from its preset, NICs first."""
    # A rail with a NIC of its own in the intent is not at the preset's place.
    default = dict(zip(preset.names, preset.pci, strict=False))
    own = {rail["name"]: rail["nic"]["pci"] for rail in rails if rail["name"] in default and "pci" in rail["nic"]}
    places = {**default, **own}
    gone = [address for address in places.values() if address not in facts.nics]
    if gone:
        yield f"{name} expects {_nics(preset)}; {host} has {len(places) - len(gone)} of them, and none at {', '.join(gone)}"
    if not preset.pci and len(rails) != preset.nics:
        yield f"{name} expects {_nics(preset)}; rdma_rails of {host} has {len(rails)} compute rails"
    if facts.gpus is None:
        return
    if len(facts.gpus) != preset.gpus:
        yield f"{name} expects {preset.gpus} GPUs; {host} has {len(facts.gpus)}"
    other = sorted({gpu.model for gpu in facts.gpus if gpu.model is not None and preset.gpu_model not in gpu.model})
    if other:
        yield f"{name} expects GPUs {preset.gpu_model}; {host} has {', '.join(other)}"
    if preset.paired:
        yield from _pairs(name, host, preset, facts, rails)


def _pairs(name: str, host: str, preset: Preset, facts: Facts, rails: list[Rail]) -> Iterator[str]:
    """Yield rails whose NIC is not next to their GPU. Without the driver of the NIC, the distance is unknown."""
    gpus = sorted(gpu.address for gpu in facts.gpus or ())
    for number, rail in enumerate(resolve(rails, facts)):
        at = preset.names.index(rail.name) if rail.name in preset.names else number
        gpu = gpus[at] if at < len(gpus) else None
        distance = (facts.distances or {}).get(gpu or "", {}).get(rail.device or "")
        if distance is not None and distance not in NEXT:
            yield f"{name} expects {rail.name} next to GPU {at} ({gpu}); on {host} its NIC {rail.device} is at distance {distance}"
