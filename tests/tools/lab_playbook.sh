#!/usr/bin/env bash
# Runs a playbook of the clone on the lab: lab_playbook.sh PLAYBOOK; further words go to ansible-playbook.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

inventory=$(python -c 'import sys; from lab.paths import LabFolder; print(LabFolder.of(sys.argv[1]).inventory)' "${LAB_NAME:-lab}")
exec ansible-playbook --inventory "$inventory" "$@"
