#!/usr/bin/env bash
# Runs one program of the virtual environment: run.sh PROGRAM WORD...
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
# Programs of tests/ import the collection by its name.
export PYTHONPATH=$root/.venv/collections
exec "$@"
