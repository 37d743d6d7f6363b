#!/usr/bin/env bash
# Runs a playbook of the clone on the lab: lab_playbook.sh PLAYBOOK; further words go to ansible-playbook.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

folder=$(python -c 'import sys; from lab.paths import LabFolder; print(LabFolder.of(sys.argv[1]).path)' "${LAB_NAME:-lab}")
[[ -e $folder/inventory.yml ]] || { echo "There is no lab '${LAB_NAME:-lab}'. Make one with: make lab-up" >&2; exit 1; }
[[ -r $folder/id_ed25519 ]] || {
    echo "The key of lab '${LAB_NAME:-lab}' belongs to $(stat --format=%U "$folder/id_ed25519"): run this as that user." >&2
    exit 1
}
exec ansible-playbook --inventory "$folder/inventory.yml" "$@"
