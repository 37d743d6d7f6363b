# shellcheck shell=bash
# Sourced by the tools beside it: the clone's own programs first, and the clone itself known as rdma.cluster.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit
VENV=$(realpath --canonicalize-missing "${VENV:-.venv}")
export VENV
export PATH="$VENV/bin:$PATH"
export ANSIBLE_COLLECTIONS_PATH="$root/.venv/collections"
# Facts are data: nothing of ours may need Ansible to make variables of them. Users may have either setting.
export ANSIBLE_INJECT_FACT_VARS=false
# git refuses to list the files of a clone that belongs to another user, as it may when root runs the checks.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$root"
# Without it, every start of Ansible compiles Ansible again.
unset PYTHONDONTWRITEBYTECODE
# A log file has no use for colors and links.
[[ -t 1 ]] || export NO_COLOR=1
# The Pythons that a host may have.
# shellcheck disable=SC2034
host_pythons=(3.9 3.10 3.11 3.12 3.13)

# install_requirements VENV FILE: uv takes seconds where pip takes a minute, but does not read pip's settings
# (a company's own index): where it fails, pip does it.
install_requirements() {
    uv pip install --quiet --system-certs --python "$1/bin/python" --requirement "$2" ||
        "$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
}
