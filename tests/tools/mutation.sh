#!/usr/bin/env bash
# Measures how many mutants of parsers and judges the unit tests kill: N mutants, drawn with SEED, and FRESH others, drawn with FRESH_SEED.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
install_requirements "$VENV" tests/mutation/requirements.txt
exec nice -n 19 python -m tests.mutation --mutants "${N:-450}" --seed "${SEED:-59}" --fresh "${FRESH:-150}" --fresh-seed "${FRESH_SEED:-61}" "$@"
