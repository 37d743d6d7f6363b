#!/usr/bin/env bash
# Pins again everything that requirements.in and tests/requirements-hosts.in ask for, for every Python from the oldest on.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

pin() { # pin SOURCE OLDEST_PYTHON
    {
        echo "# Made from ${1##*/} by \`make requirements\`."
        uv pip compile --quiet --system-certs --universal --upgrade --no-annotate --no-header --python-version "$2" "$1"
    } > "${1%.in}.new"
    mv "${1%.in}.new" "${1%.in}.txt"
}

pin requirements.in 3.11
pin tests/requirements-hosts.in 3.9
