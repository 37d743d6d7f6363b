#!/usr/bin/env bash
# What the tools cost: the figures of tests/bench against their bars.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
export PYTHONPATH=$root/.venv/collections
exec python -m tests.bench.figures "$@"
