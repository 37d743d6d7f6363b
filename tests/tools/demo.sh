#!/usr/bin/env bash
# The demo: demo.sh [FOLDER]. The evidence is left in the folder: without one in artifacts/demo, or in a temporary one if the clone is read-only.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
out=${1:-$root/artifacts/demo}
[[ -n ${1:-} || -w $root ]] || out=$(mktemp --directory --tmpdir rdma-demo-XXXXXXXX)
[[ -n ${1:-} ]] || rm -rf "$out"
mkdir -p "$out"
export RDMA_LAB_DIR=$out/work/lab ANSIBLE_HOME=$out/work/ansible PYTHONPATH=$root/.venv/collections
exec python -m tests.demo "$out"
