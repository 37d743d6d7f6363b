"""Writes the pages of docs/ and the READMEs of roles that are made from the code; with --check, lists those that are out of date."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / ".venv/collections")]

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import docs, effects
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import docs as intent_docs
from tests.tools import role_pages

PAGES = {"docs/intent.md": intent_docs.render, "docs/checks.md": docs.render, "docs/effects.md": effects.render, **role_pages.pages()}


def main():
    """Exit status 1 if --check finds another text."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--check", action="store_true", help="write nothing")
    if not words.parse_args().check:
        for name, render in PAGES.items():
            (ROOT / name).write_text(render(), encoding="utf-8")
        return 0
    stale = [name for name, render in PAGES.items() if (ROOT / name).read_text(encoding="utf-8") != render()]
    for name in stale:
        print(f"{name} is out of date: run `python tests/tools/docs.py`.", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
