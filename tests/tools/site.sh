#!/usr/bin/env bash
# Runs the site playbook of the clone on the lab; further words go to ansible-playbook.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lab_playbook.sh" playbooks/site.yml "$@"
