# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README of a role, from its argument specification, the playbooks that run it and the catalogue of effects."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.effects import EFFECTS

ROOT = Path(__file__).parents[2]
COLLECTION = "rdma.cluster"
MARKUP = re.compile(r"\b[BCEIMOPV]\(([^)#]*)(?:#\w+)?\)")
DOCUMENTS = {
    "collectives": "collectives",
    "driver": "driver",
    "nccl": "nccl",
    "pairs": "pairs",
    "pairs_fabric_load": "pairs",
    "pairs_qos_load": "qos",
    "roce_qos": "qos",
    "subnet_manager": "subnet_manager",
}
"""The document that explains a role, below docs/."""


def pages() -> dict[str, partial[str]]:
    """Return the path of each role's README, and the function that returns its text."""
    return {f"roles/{role.name}/README.md": partial(render, role) for role in sorted((ROOT / "roles").iterdir())}


def render(role: Path) -> str:
    """Return the README of a role."""
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    main = specs["main"]
    return "\n".join(
        [
            f"# {COLLECTION}.{role.name}",
            "",
            f"<!-- Made by tests/tools/docs.py from meta/argument_specs.yml. -->\n\n{_markdown(main['short_description'])}.",
            "",
            *(f"{paragraph}\n" for paragraph in _paragraphs(main.get("description", []))),
            *_run_by(role.name),
            *_variables(main.get("options") or {}),
            *_effects(role.name),
            *_more(role.name),
        ]
    )


def _run_by(role: str) -> list[str]:
    line = f"role: {COLLECTION}.{role}\n"
    playbooks = sorted(file for file in (ROOT / "playbooks").glob("*.yml") if line in file.read_text(encoding="utf-8"))
    names = [f"[`{COLLECTION}.{file.stem}`](../../playbooks/{file.name})" for file in playbooks]
    return [f"The playbook {' and '.join(names)} runs this role.\n"] if names else []


def _variables(options: dict[str, Any]) -> list[str]:
    rows = [
        f"| `{name}` | {option.get('type', 'str')} | {_default(option)} | {' '.join(_paragraphs(option['description']))} |"
        for name, option in options.items()
    ]
    return ["## Variables", "", *(["| variable | type | default | meaning |", "|---|---|---|---|", *rows] if rows else ["None."]), ""]


def _default(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    default = option.get("default")
    return "" if default in (None, "") else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _effects(role: str) -> list[str]:
    rows = [
        f"| {effect.does} | {effect.guard} | {f'`{effect.allowed_by}`' if effect.allowed_by else ''} | {effect.refused_by} |"
        for effect in EFFECTS
        if effect.role == role
    ]
    if not rows:
        return []
    head = ["| effect | guard | variable or key | refused by |", "|---|---|---|---|"]
    return ["## Effects on a live host or fabric", "", "[Effects](../../docs/effects.md) explains the guards.", "", *head, *rows, ""]


def _more(role: str) -> list[str]:
    document = DOCUMENTS.get(role)
    return [] if document is None else [f"[More about it](../../docs/{document}.md).", ""]


def _paragraphs(text: str | list[str]) -> list[str]:
    return [_markdown(paragraph).replace("|", "\\|") for paragraph in ([text] if isinstance(text, str) else text)]


def _markdown(text: str) -> str:
    """Return Ansible's markup as Markdown: C(x), V(x), M(x) and P(x#type) become code."""
    return MARKUP.sub(r"`\1`", " ".join(text.split()))
