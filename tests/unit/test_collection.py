# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What galaxy.yml promises about the collections that we build on."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import yaml
from ansible.galaxy.dependency_resolution.versioning import meets_requirements

ROOT = Path(__file__).parents[2]
DEPENDENCIES = yaml.safe_load((ROOT / "galaxy.yml").read_text())["dependencies"]


@pytest.mark.parametrize("name", DEPENDENCIES)
def test_range_admits_the_version_that_the_tests_ran_with(name: str) -> None:
    spec = importlib.util.find_spec(f"ansible_collections.{name}")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    manifest = Path(next(iter(spec.submodule_search_locations))) / "MANIFEST.json"
    version = json.loads(manifest.read_text())["collection_info"]["version"]
    assert meets_requirements(version, DEPENDENCIES[name])
