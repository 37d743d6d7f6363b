#!/usr/bin/env bash
# Makes the virtual environment that everything else runs in: venv.sh [PYTHON]. Does nothing where it is up to date.
set -euo pipefail
python=${1:-python3}
uv=uv==0.13.8

# A name such as python3.13 may be a shim that does not start.
if ! "$python" -c '' 2>/dev/null; then
    read -r _ real < <("$(dirname "$0")/pythons.sh" "${python#python}") || { echo "There is no $python on this machine." >&2; exit 1; }
    python=$real
fi
python=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "The control node needs Python 3.11 or newer, and $python is $("$python" -V): name another, as in make PYTHON=python3.12" >&2
    exit 1
}

source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
made_of="$root $python $("$python" -V)"
wanted="$made_of $uv $(sha256sum requirements.txt)"
[[ $(cat "$VENV/made" 2>/dev/null) == "$wanted" ]] && exit 0

echo "venv: $VENV from $python ..."
[[ $(cat "$VENV/made_of" 2>/dev/null) == "$made_of" ]] || rm -rf "$VENV"
"$python" -m venv "$VENV"
echo "$made_of" > "$VENV/made_of"
pip install --quiet --disable-pip-version-check "$uv" || echo "venv: $uv cannot be installed, going on with pip"
install_requirements "$VENV" requirements.txt

# The clone is found under the collection's name by Ansible, pytest and mypy alike.
mkdir -p .venv/collections/ansible_collections/rdma
ln -sfn "$root" .venv/collections/ansible_collections/rdma/cluster
echo "$wanted" > "$VENV/made"
