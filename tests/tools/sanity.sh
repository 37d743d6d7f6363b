#!/usr/bin/env bash
# ansible-test sanity on a copy of what git would commit, since it takes neither a link nor another folder name.
# Further words are passed on: sanity.sh --test validate-modules
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

copy=$VENV/sanity/ansible_collections/rdma/cluster
mkdir -p "$copy"
# A clone of its own, or ansible-test asks the one around it, which ignores all of this.
git init --quiet "$copy"
# tests/output holds what ansible-test made the last time and uses again.
find "$copy" -not -type d -not -path "$copy/.git/*" -not -path "$copy/tests/output/*" -delete
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
    tar --create --null --files-from=- | tar --extract --directory="$copy"

# ansible-test looks for pythonX.Y on PATH, and a pyenv shim that does not start would stop it.
real=$(tests/tools/pythons.sh "${host_pythons[@]}" | while read -r _ python; do dirname "$python"; done)
PATH=$(printf '%s\n' "$VENV/bin" "$real" "${PATH//:/$'\n'}" | grep --invert-match '/shims/*$' | paste --serial --delimiters=:)
export PATH

# Its caches stay in the clone; the user's pip settings go with it.
home=$VENV/sanity/home
cache=$home/.ansible/test/cache
mkdir -p "$cache" "$home/.config"
for settings in .config/pip .pip .netrc; do
    [[ ! -e ${HOME:-/}/$settings || -e $home/$settings ]] || ln -s "$HOME/$settings" "$home/$settings"
done
export HOME=$home
pip_version=$(python -c 'import ansible_test, pathlib, re
print(re.search(r"pip=.([\d.]+)", (pathlib.Path(ansible_test.__file__).parent / "_internal/python_requirements.py").read_text()).group(1))')
if [[ ! -e $cache/pip-$pip_version-py3-none-any.whl ]]; then
    pip download --quiet --disable-pip-version-check --no-deps --dest "$cache" "pip==$pip_version"
fi
cp tests/tools/get_pip.py "$cache/get_pip_${pip_version//./_}.py"

# The oldest and the newest Python that a host may have; with RDMA_TEST_PYTHONS=all every one. With RDMA_TEST_ONCE=yes the oldest alone, and
# only what users get: tests and lab are read by ruff and mypy.
own=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
where=(--venv)
[[ ${RDMA_TEST_PYTHONS:-} == all ]] ||
    where=(--controller "origin:python=venv/$own" --target-python "${host_pythons[0]}" --target-python "${host_pythons[-1]}")
less=()
if [[ ${RDMA_TEST_ONCE:-} == yes ]]; then
    where=("${where[@]:0:4}")
    less=(--exclude "tests/.*" --exclude "lab/.*" --exclude "molecule/.*")
fi
cd "$copy"
exec ansible-test sanity "${where[@]}" ${less[@]+"${less[@]}"} --color no "$@"
